"""Arrays made in `@njit` functions without an element shape: the first write tells the rank."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from numba import njit, prange
from numba.core.errors import TypingError

from nbta import InvalidArgumentError, TensorArray, UnimplementedError
from nbta.runtime.extension import TensorArrayType

X = np.arange(1.0, 7.0)
ROWS = X.reshape(3, 2)


def scalars(x):
    ta = TensorArray(np.float64, dynamic_size=True)
    ta.append(x[0])
    ta.append(2.0)
    return ta.stack()


def literals(x):
    ta = TensorArray(np.int64, dynamic_size=True)
    ta.append(1)
    ta.append(-3)
    return ta.stack()


def vectors(x):
    ta = TensorArray(np.float64, dynamic_size=True)
    ta.append(x)
    ta.append(np.ones(6))
    return ta.stack()


def strided(x):
    ta = TensorArray(np.float64, dynamic_size=True)
    ta.append(x[::2])
    return ta.stack()


def tuples(x):
    ta = TensorArray(np.float64, dynamic_size=True)
    ta.append((x[0], 2.0))
    return ta.stack()


def writes(x):
    ta = TensorArray(np.float64, 2)
    ta.write(1, x[1])
    ta.write(index=0, value=x[0])
    return ta.stack()


def rebound(x):
    ta = TensorArray(np.float64, dynamic_size=True)
    for k in range(len(x)):
        ta = ta.write(k, x[k])
    return ta.stack()


def rebound_vectors(x):
    ta = TensorArray(np.float64, dynamic_size=True)
    for v in x:
        ta = ta.append(np.full(2, v))
    return ta.stack()


def in_a_loop(x):
    ta = TensorArray(np.float64, dynamic_size=True)
    k = 0
    while k < len(x):
        ta.append(x[k])
        k += 1
    return ta.stack().sum() + ta.read(1) + len(ta)


def read_before_it_is_written_in_the_text(x):
    ta = TensorArray(np.float64, dynamic_size=True)
    total = 0.0
    for k in range(len(x)):
        if k > 0:
            total += ta.read(k - 1)
        ta.append(x[k])
    return total


def in_branches(x):
    ta = TensorArray(np.float64, dynamic_size=True)
    for v in x:
        if v > 3.0:
            ta.append(v)
        else:
            ta.append(-v)
    return ta.stack()


def rebound_in_branches(x):
    ta = TensorArray(np.float64, dynamic_size=True)
    for v in x:
        if v > 3.0:
            ta = ta.append(v)
        elif v > 2.0:
            ta = ta.append(-v)
    return ta.stack()


def one_of_two(x):
    if x[0] > 3.0:
        ta = TensorArray(np.float64, dynamic_size=True)
    else:
        ta = TensorArray(np.float64, dynamic_size=True, element_shape=())
    ta.append(x[0])
    return ta.stack()


def another_name(x):
    ta = TensorArray(np.float64, dynamic_size=True)
    other = ta
    other.append(x[0])
    return ta.stack()


def unstack(x):
    ta = TensorArray(np.float64, dynamic_size=True)
    ta.unstack(x)
    return ta.stack()


def unstack_rows(x):
    ta = TensorArray(np.float64, dynamic_size=True)
    ta = ta.unstack(x.reshape(3, 2))
    return ta.stack()


def scatter(x):
    ta = TensorArray(np.float64, 3)
    ta.scatter((2, 0, 1), x.reshape(3, 2))
    return ta.stack()


def split(x):
    ta = TensorArray(np.float64, 2)
    ta.split(x, (3, 3))
    return ta.stack(), ta.concat()[0]


def gather(x):
    ta = TensorArray(np.float64, dynamic_size=True)
    ta.unstack(x)
    return ta.gather((3, 1))


def looks(x):
    ta = TensorArray(np.float64, dynamic_size=True)
    ta.append(x)
    ta.append(2.0 * x)
    total = np.zeros(6)
    for row in ta:
        total += row
    return total + ta[-1], np.asarray(ta)


def gradients(x):
    ta = TensorArray(np.float64, dynamic_size=True)
    ta.append(x[0])
    ta.append(x[1])
    g = ta.grad("gradients")
    g.accumulate(0, x[2])
    g.accumulate(0, x[3])
    return g.stack()


def gradients_with_a_prefix(x):
    ta = TensorArray(np.float64, dynamic_size=True)
    ta.append(x[0])
    g = ta.grad_with_shape("gradients", (2,))
    g.accumulate(0, x[:2])
    return g.stack()


def stored_method(x):
    ta = TensorArray(np.float64, dynamic_size=True)
    put = ta.append
    put(x[0])
    put(x[1])
    return ta.stack()


def single_precision(x):
    ta = TensorArray(np.float32, dynamic_size=True)
    for v in x:
        ta.append(np.float32(v))
    return ta.stack()


def truth_values(x):
    ta = TensorArray(np.bool_, dynamic_size=True)
    for v in x:
        ta.append(v > 2.0)
    return ta.stack()


def complex_numbers(x):
    ta = TensorArray(np.complex128, dynamic_size=True)
    ta.append(np.ones((2, 2)) * 1j)
    return ta.stack()


@njit
def total_of(ta):
    return ta.stack().sum()


@njit
def made(x):
    return TensorArray(np.float64, dynamic_size=True)


@njit
def filled(x):
    ta = TensorArray(np.float64, dynamic_size=True)
    for v in x:
        ta.append(v)
    return ta


@njit
def add_to(ta, v):
    ta.append(v)
    return ta


def passed_on(x):
    ta = TensorArray(np.float64, dynamic_size=True)
    for v in x:
        ta.append(v)
    return total_of(ta)


def made_elsewhere(x):
    ta = made(x)
    ta.append(x[0])
    return ta.stack()


def filled_elsewhere(x):
    ta = filled(x)
    return ta.stack()


def told_by_what_a_call_gives(x):
    ta = TensorArray(np.float64, dynamic_size=True)
    ta = add_to(ta, x[0])
    ta = add_to(ta, x[1])
    return ta.stack()


def in_a_tuple(x):
    ta = TensorArray(np.float64, dynamic_size=True)
    pair = (ta, 1.0)
    ta.append(x[0])
    return pair[0].size() + ta.stack()[0]


PROGRAMS = [
    scalars, literals, vectors, strided, tuples, writes, rebound, rebound_vectors, in_a_loop,
    read_before_it_is_written_in_the_text, in_branches, rebound_in_branches, one_of_two,
    another_name, unstack, unstack_rows, scatter, split, gather, looks, gradients,
    gradients_with_a_prefix, stored_method, single_precision, truth_values, complex_numbers,
    passed_on, made_elsewhere, filled_elsewhere, told_by_what_a_call_gives, in_a_tuple,
]  # fmt: skip


def equal(found, expected):
    if isinstance(expected, tuple):
        return all(map(equal, found, expected))
    same_kind = np.asarray(found).dtype == np.asarray(expected).dtype
    return same_kind and np.array_equal(found, expected)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_in_python(program):
    assert equal(njit(program)(X), program(X))


def test_an_array_of_python_that_nobody_has_written_to():
    ta = TensorArray("float64", dynamic_size=True)
    scope = njit(lambda ta, v: ta.append(v).append(v).stack())
    assert scope(ta, 1.5).tolist() == [1.5, 1.5]
    assert scope(TensorArray("float64", dynamic_size=True), ROWS).shape == (2, 3, 2)


def test_lanes():
    @njit(parallel=True)
    def squares(x):
        ta = TensorArray(np.float64, dynamic_size=True)
        lanes = ta.lanes(3)
        for lane in prange(len(lanes)):
            part = lanes.take(lane)
            for k in lanes.range(lane, len(x)):
                part.append(x[k] ** 2)
        lanes.join()
        return ta

    assert squares(X).stack().tolist() == (X**2).tolist()


def test_a_parallel_loop():
    @njit(parallel=True)
    def squares(x):
        ta = TensorArray(np.float64, len(x))
        ta.write(0, x[0] ** 2)
        for k in prange(1, len(x)):
            ta.write(k, x[k] ** 2)
        return ta.stack()

    assert squares(X).tolist() == (X**2).tolist()


def either(x, second):
    ta = TensorArray(np.float64, dynamic_size=True)
    if second:
        ta.append(x)
    else:
        ta.append(x[0])
    return ta


def test_writes_of_two_ranks_stay_what_the_run_decides():
    compiled = njit(either)
    assert compiled(X, True).element_shape == (6,)
    assert compiled(X, False).element_shape == ()

    @njit
    def both(x):
        ta = TensorArray(np.float64, dynamic_size=True)
        ta.append(x[0])
        ta.append(x)

    with pytest.raises(InvalidArgumentError, match=r"slot 1 takes elements of shape \(\), and"):
        both(X)


def test_an_array_that_nothing_was_written_to_is_refused_as_eagerly():
    with pytest.raises(UnimplementedError, match="there is nothing to stack"):
        njit(rebound)(X[:0])


@njit
def fill(ta, x):
    ta.append(x)


def stack(ta):
    return ta.stack()


def read(ta):
    return ta.read(0)


def take_some(ta):
    return ta.gather((0,))


def concat(ta):
    return ta.concat()[0]


def look(ta):
    return ta[0]


def look_at_all(ta):
    return np.asarray(ta)


def go_over(ta):
    total = 0
    for _ in ta:
        total += 1
    return total


READS = [stack, read, take_some, concat, look, look_at_all, go_over]


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("reading", READS, ids=lambda reading: reading.__name__)
def test_an_array_of_another_rank_than_was_inferred_is_refused(reading):
    reading = njit(reading)

    @njit
    def mixed(x, more):
        ta = TensorArray(np.float64, dynamic_size=True)
        fill(ta, x)
        if more:
            ta.append(x.reshape(2, 3))
        return reading(ta)

    with pytest.raises(
        InvalidArgumentError, match=r"has elements of rank 1, and .* for those of rank 2"
    ) as caught:
        mixed(X, False)
    assert caught.value.reason == "inferred_rank"
    with pytest.raises(InvalidArgumentError, match=r"slot 1 takes elements of shape \(6,\)"):
        mixed(X, True)


def test_a_scalar_is_not_put_among_vectors():
    @njit
    def mixed(x):
        ta = TensorArray(np.float64, dynamic_size=True)
        fill(ta, x)
        ta.append(x[0])

    with pytest.raises(InvalidArgumentError, match=r"slot 1 takes elements of shape \(6,\)"):
        mixed(X)


def only_after_a_call(x):
    ta = TensorArray(np.float64, dynamic_size=True)
    fill(ta, x)
    return ta.stack()


def of_any_shape(x):
    ta = TensorArray(np.float64, dynamic_size=True, infer_shape=False)
    ta.append(x)
    return ta.stack()


def of_two_ranks(x):
    return either_compiled(x, True).stack()


either_compiled = njit(either)


@pytest.mark.parametrize("function", [only_after_a_call, of_any_shape, of_two_ranks])
def test_the_error_stays_where_no_write_tells(function):
    with pytest.raises(TypingError) as caught:
        njit(function)(X)
    last = str(caught.value).splitlines()[-1]
    assert "stack: the rank of the elements is not known when compiling" in last
    assert last.startswith(__file__)


def test_types_meet_in_any_order():
    from numba.core.registry import cpu_target
    from numba.types import float64

    context = cpu_target.typing_context
    kinds = [
        TensorArrayType(float64, ndim, True, inferred)
        for ndim in (None, 0, 1)
        for inferred in (False, True)
    ]
    meet = context.unify_pairs
    for a in kinds:
        assert meet(a, a) == a
        for b in kinds:
            assert meet(a, b) == meet(b, a)
            assert context.can_convert(a, meet(a, b)) is not None
            for c in kinds:
                assert meet(meet(a, b), c) == meet(a, meet(b, c))
    unknown, inferred = kinds[0], kinds[1]
    assert meet(kinds[2], kinds[5]) == unknown
    assert meet(inferred, kinds[2]) == kinds[3]
    assert context.can_convert(kinds[3], kinds[2]) is None
    assert context.can_convert(unknown, inferred) is None
    assert meet(kinds[0], TensorArrayType(float64, 0, False)) is None


MODULE = """
import numpy as np
from numba import njit
import nbta

@njit(cache=True)
def f(x):
    ta = nbta.TensorArray(np.float64, dynamic_size=True)
    for v in x:
        ta = ta.append(v)
    return ta.stack(), ta
"""
RUN = """
import json
import numpy as np
from inferred import f
value, ta = f(np.arange(3.0))
hits = sum(f.stats.cache_hits.values())
print(json.dumps([value.tolist(), hits]))
"""


def test_compiled_code_is_kept_on_disk(tmp_path):
    (tmp_path / "inferred.py").write_text(MODULE)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    environment = os.environ | {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    found = [
        subprocess.run(
            [sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert [json.loads(each) for each in found] == [[[0.0, 1.0, 2.0], 0], [[0.0, 1.0, 2.0], 1]]
