"""Memory of arrays in compiled code: views that outlive them, nothing left behind, no counting."""

import re

import numpy as np
import pytest
from memory_in_use import in_use
from numba import njit
from numba.core.runtime import _nrt_python

import nbta
from nbta.runtime import settings


@pytest.fixture
def counting():
    """Numba counts what it allocates and frees."""
    _nrt_python.memsys_enable_stats()
    yield
    _nrt_python.memsys_disable_stats()


@njit(cache=True)
def churn(value):
    """Allocate and fill memory, so that what was freed too early is overwritten."""
    total = 0.0
    for k in range(20):
        other = np.full(64 + 16 * k, value)
        small = np.full(3, value)
        total += other[k] + small[2]
    return total


@njit(cache=True)
def last_use_is_read():
    ta = nbta.TensorArray(np.float64, 4, element_shape=(3,))
    ta.write(0, np.array([1.0, 2.0, 3.0]))
    return ta.read(0)


@njit(cache=True)
def last_use_is_stack():
    ta = nbta.TensorArray(np.float64, dynamic_size=True, element_shape=(3,))
    for k in range(20):
        ta.append(np.full(3, float(k)))
    view = ta.stack()
    churn(-1.0)
    return view


@njit(cache=True)
def views_in_use():
    ta = nbta.TensorArray(np.float64, 3, clear_after_read=False, element_shape=(3,))
    for k in range(3):
        ta.write(k, np.full(3, float(k)))
    first, last = ta.read(0), ta.read(2)
    both = ta.stack()
    churn(-1.0)
    return first.sum(), last.sum(), both.sum()


@njit(cache=True)
def overwritten():
    ta = nbta.TensorArray(np.float64, 1, element_shape=(3,)).write(0, np.ones(3))
    view = ta.read(0)
    for _ in range(5):
        ta = nbta.TensorArray(np.float64, 1, element_shape=(3,)).write(0, np.full(3, -2.0))
        churn(-1.0)
    return view, ta.read(0)


@njit(cache=True)
def grown_under_views():
    ta = nbta.TensorArray(np.float64, dynamic_size=True, element_shape=(3,), clear_after_read=False)
    ta.append(np.full(3, 0.0))
    first = ta.read(0)
    total = 0.0
    for k in range(1, 300):
        ta.append(np.full(3, float(k)))
        total += ta.read(k // 2).sum()
    churn(-1.0)
    return first, ta.read(1), ta.read(299), total


@njit(cache=True)
def ragged_views():
    ta = nbta.TensorArray(np.float64, dynamic_size=True, element_shape=(None,), infer_shape=False)
    for k in range(1, 40):
        ta.append(np.full(k, float(k)))
    kept = [ta.read(k) for k in range(0, 39, 5)]
    churn(-1.0)
    return kept


@njit(cache=True)
def gradient_alone():
    """The forward array dies before its gradient array, and that before its view."""
    forward = nbta.TensorArray(np.float64, 2, element_shape=(3,)).write(0, np.ones(3))
    gradient = forward.grad("gradients")
    churn(-1.0)
    gradient.accumulate(0, np.full(3, 2.0)).accumulate(0, np.full(3, 0.5))
    view = gradient.read(0)
    churn(-1.0)
    return view, gradient


@njit(cache=True)
def chained():
    ta = nbta.TensorArray(np.float64, 2, element_shape=())
    return ta.write(0, 1.0).write(1, 2.0).stack()


@njit(cache=True)
def from_argument(ta):
    view = ta.read(0)
    ta = nbta.TensorArray(np.float64, 1, element_shape=(3,)).write(0, np.full(3, -2.0))
    churn(-1.0)
    return view, ta


@njit(cache=True)
def moved_between_names(flag):
    first = nbta.TensorArray(np.float64, 1, element_shape=(3,)).write(0, np.full(3, 1.0))
    second = nbta.TensorArray(np.float64, 1, element_shape=(3,)).write(0, np.full(3, 2.0))
    if flag:
        first, second = second, first
    a = first.read(0)
    first = second
    churn(-1.0)
    return a, first.read(0)


@njit(cache=True)
def method_in_a_variable():
    ta = nbta.TensorArray(np.float64, 1, element_shape=(3,))
    write, read = ta.write, ta.read
    ta = nbta.TensorArray(np.float64, 1, element_shape=(3,))
    churn(-1.0)
    write(0, np.ones(3))
    return read(0)


def check_gradient_alone():
    view, gradient = gradient_alone()
    assert view.tolist() == [2.5] * 3
    assert gradient.is_gradient
    assert gradient.handle.name.endswith("@gradients")
    assert len(gradient) == 2


def check_from_argument():
    given = nbta.TensorArray("float64", 1, element_shape=(3,)).write(0, np.full(3, 3.0))
    view, other = from_argument(given)
    del given
    churn(-1.0)
    assert view.tolist() == [3.0] * 3
    assert other.read(0).tolist() == [-2.0] * 3


def check_grown():
    first, second, last, total = grown_under_views()
    assert first.tolist() == [0.0] * 3
    assert second.tolist() == [1.0] * 3
    assert last.tolist() == [299.0] * 3
    assert total == sum(3 * (k // 2) for k in range(1, 300))


def check_ragged():
    for k, view in zip(range(0, 39, 5), ragged_views(), strict=True):
        assert view.tolist() == [k + 1.0] * (k + 1)


def check_moved():
    assert [value.tolist() for value in moved_between_names(True)] == [[2.0] * 3, [1.0] * 3]
    assert [value.tolist() for value in moved_between_names(False)] == [[1.0] * 3, [2.0] * 3]


def check_stack():
    np.testing.assert_array_equal(last_use_is_stack(), np.arange(20.0)[:, None] * np.ones(3))


def check(function, expected):
    def compare():
        result = function()
        churn(-1.0)
        parts = result if isinstance(result, tuple) else (result,)
        assert [np.asarray(part).tolist() for part in parts] == expected

    return compare


SITUATIONS = {
    "last use is a read": check(last_use_is_read, [[1.0, 2.0, 3.0]]),
    "last use is a stack": check_stack,
    "views in use": check(views_in_use, [0.0, 6.0, 9.0]),
    "overwritten": check(overwritten, [[1.0] * 3, [-2.0] * 3]),
    "grown": check_grown,
    "ragged": check_ragged,
    "gradient alone": check_gradient_alone,
    "chained": check(chained, [[1.0, 2.0]]),
    "argument": check_from_argument,
    "moved": check_moved,
    "method in a variable": check(method_in_a_variable, [[1.0] * 3]),
}


@pytest.mark.slow_but_every(11)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_views_outlive_arrays_and_nothing_is_left(situation, counting):
    run = SITUATIONS[situation]
    run()
    before = in_use()
    for _ in range(20):
        run()
    assert in_use() == before


@njit(cache=True)
def made_and_dropped(count):
    total = 0.0
    for k in range(count):
        ta = nbta.TensorArray(np.float64, dynamic_size=True, element_shape=(2,))
        for i in range(k % 20 + 1):
            ta.append(np.full(2, float(i)))
        g = ta.grad("gradients")
        g.accumulate(0, np.ones(2)).accumulate(0, np.ones(2))
        total += ta.read(k % 20)[0] + g.read(0)[1]
    return total


@pytest.mark.slow
def test_many_arrays_are_made_and_dropped(counting):
    made_and_dropped(1)
    before = in_use()
    assert made_and_dropped(500) == 25 * sum(range(20)) + 2 * 500
    assert in_use() == before


# Errors.


@njit(cache=True)
def passed_and_failing(ta, index):
    ta.write(index, 1.0)


@njit(cache=True)
def made_and_failing(index):
    ta = nbta.TensorArray(np.float64, 2, element_shape=())
    ta.write(index, 1.0)
    return ta.read(0)


@njit(cache=True)
def fail_above_one(index):
    if index > 1:
        raise ValueError("index")


@njit(cache=True)
def buffer_and_failing(index):
    """The same with a NumPy array, and a plain exception of a function that is called."""
    values = np.zeros(2)
    fail_above_one(index)
    values[index] = 1.0
    return values[0]


def repeat_failing(function, *args, times=50):
    with pytest.raises(ValueError):  # noqa: PT011
        function(*args)
    before = in_use()
    for _ in range(times):
        with pytest.raises(ValueError):  # noqa: PT011
            function(*args)
    return [after - start for after, start in zip(in_use(), before, strict=True)][:2]


@pytest.mark.slow
def test_failing_on_an_array_passed_in_leaves_nothing(counting):
    ta = nbta.TensorArray("float64", 2, element_shape=())
    assert repeat_failing(passed_and_failing, ta, 5) == [0, 0]
    assert ta.write(0, 2.0).read(0) == 2.0


@pytest.mark.slow
def test_an_array_made_where_an_error_is_raised_is_lost_as_numba_loses_arrays(counting):
    """Numba does not release what a function holds when a function that it called raises."""
    assert repeat_failing(buffer_and_failing, 5) == [0, 50]
    nbytes, lost = repeat_failing(made_and_failing, 5)
    assert lost <= 3 * 50  # the store, its elements, its states
    assert nbytes <= 50 * (4 * settings.get(settings.GUARD) + 64)


# The hot loops count no references.


@njit
def write_loop(ta, n, v):
    for i in range(n):
        ta.write(i, v)


@njit
def write_vector_loop(ta, n, v):
    for i in range(n):
        ta.write(i, v)


@njit
def append_loop(ta, n, v):
    for _ in range(n):
        ta.append(v)


@njit
def read_loop(ta, n):
    total = 0.0
    for i in range(n):
        total += ta.read(i)
    return total


@njit
def read_vector_loop(ta, n):
    total = 0.0
    for i in range(n):
        total += ta.read(i)[0]
    return total


@njit
def sum_loop(ta, n, v):
    for i in range(n):
        ta.accumulate(i, v)


def blocks_of(function):
    """Basic blocks of a compiled function: name -> (instructions, successors).

    One that the disk cache gave has no text, so those that are looked at do without it.
    """
    (text,) = function.inspect_llvm().values()
    (overload,) = function.overloads.values()
    name = re.escape(overload.fndesc.mangled_name)
    body = re.search(rf'^define [^\n]*@"?{name}"?\(.*?^}}', text, re.MULTILINE | re.DOTALL).group()
    blocks, label = {"entry": []}, "entry"
    for line in body.splitlines()[1:-1]:
        found = re.match(r'^("?[\w.$\-]+"?):', line)
        if found:
            label = found.group(1).strip('"')
            blocks[label] = []
        else:
            blocks[label].append(line)
    targets = r'label %"?([\w.$\-]+)"?'
    return {name: (lines, re.findall(targets, "\n".join(lines))) for name, lines in blocks.items()}


def in_loops(blocks):
    """Names of the blocks that can come round to themselves."""

    def reachable(start):
        seen, todo = set(), list(blocks[start][1])
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo += blocks[name][1]
        return seen

    return {name for name in blocks if name in reachable(name)}


def scalars(**options):
    return nbta.TensorArray("float64", 20, element_shape=(), **options)


def vectors(**options):
    return nbta.TensorArray("float64", 20, element_shape=(2,), **options)


def hot_part(blocks):
    """Without the blocks that call a kernel by its address: growth, errors, shapes to infer."""
    cold = {name for name, (lines, _) in blocks.items() if "call i64 %" in "\n".join(lines)}
    return {
        name: (lines, [target for target in targets if target not in cold])
        for name, (lines, targets) in blocks.items()
        if name not in cold
    }


LOOPS = [
    (write_loop, lambda: (scalars(), 20, 1.0)),
    (write_vector_loop, lambda: (vectors(), 20, np.ones(2))),
    (append_loop, lambda: (scalars(dynamic_size=True), 20, 1.0)),
    (read_loop, lambda: (scalars(), 20)),
    (read_vector_loop, lambda: (vectors(), 20)),
    (sum_loop, lambda: (scalars().grad("gradients"), 20, 1.0)),
]


@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize(("function", "arguments"), LOOPS, ids=lambda x: getattr(x, "__name__", ""))
def test_hot_loops_count_no_references(function, arguments):
    function(*arguments())
    blocks = hot_part(blocks_of(function))
    looping = in_loops(blocks)
    assert looping
    calls = [
        line.strip()
        for name in looping
        for line in blocks[name][0]
        if "NRT_incref" in line or "NRT_decref" in line
    ]
    assert calls == []


@njit
def counts_references(values, n):
    kept = [values]
    for _ in range(n):
        kept.append(values)
    return kept


@pytest.mark.slow
def test_counting_in_a_loop_would_be_seen():
    counts_references(np.ones(2), 3)
    blocks = blocks_of(counts_references)
    lines = [line for name in in_loops(blocks) for line in blocks[name][0]]
    assert any("NRT_incref" in line for line in lines)
