"""Names whose arrays have another dtype in another iteration, branch or place of a list.

NumPy rounds, wraps around and truncates by the dtype of each array, so that such a name is not one
array of the wider dtype. Python makes the iterations where these are few, and all else is refused
but integers beside floats, and real numbers beside complex ones, of which no item is written.
"""

import numpy as np
import pytest
from fuzz.ways import in_python

import nbta

LONG, SHORT = np.cos(np.arange(2000.0)), np.cos(np.arange(5.0))


def change_places(x):
    a, b = x.astype(np.float32), x * 1.1
    for _ in range(len(x)):
        a, b = b, a * 0.3
    return a, b


def one_after_the_other(x):
    a = x.astype(np.float32)
    for _ in range(len(x)):
        a = a * 0.3 * x
    return a


def integers_at_first(x):
    k, t = np.zeros(3, np.int64), 0.0
    for _ in range(len(x)):
        k[1] = 2.7
        t += k[1]
        k = k + x[:3]
    return k, t


def small_integers(x):
    k, m = (x[:3] * 100).astype(np.int8), x[:3].astype(np.int64)
    for _ in range(len(x)):
        k, m = m, k + k
    return k, m


def places_in_a_pair(x):
    pair = x.astype(np.float32), x * 1.1
    for _ in range(len(x)):
        pair = pair[1], pair[0] * 0.3
    return pair


def in_a_dict(x):
    d = {"a": x.astype(np.float32)}
    for _ in range(len(x)):
        d["a"] = d["a"] * 0.3 + x
    return d


def by_a_branch(x):
    a = x.astype(np.float32)
    if x[0] > 0.1:
        a = x * 0.3
    return a


def by_an_expression(x):
    return (x.astype(np.float32) if x[0] > 0.1 else x) * 0.3


def by_a_return(x):
    for i in range(len(x)):
        if x[i] < -0.9:
            return x.astype(np.float32), i
    return x, 0


def by_an_index(x):
    return [x.astype(np.float32), x * 1.1][int(x[0] > 2.0)] * 0.3


def appended(x):
    rows = [x[:4].astype(np.float32)]
    for i in range(len(x)):
        if x[i] > 0.0:
            rows.append(x[:4])
    return rows[0] * 0.3


def appended_first(x):
    rows = []
    for i in range(len(x)):
        if x[i] > 2.0:
            rows.append(x[:4])
        rows.append(x[:4].astype(np.float32))
    return rows[0] * 0.3


def back_in_its_place(x):
    a, b = x[:3].astype(np.float32), x[:3] * 1.1
    for _ in range(len(x)):
        a, b = b, a * 0.3
        a, b = b, a
    return a, b


def numbers_of_python(x):
    a = x[:3].astype(np.float32)
    for _ in range(len(x)):
        a = a * 0.5 + 1
    return a


def integers_that_become_floats(x):
    chances = np.array([1, 0])
    for i in range(len(x)):
        chances = chances @ np.array([[0.9, 0.1], [0.2, 0.8]]) + 1e-3 * x[i]
    return chances


def real_numbers_that_become_complex(x):
    wave = np.exp(-(x[:3] ** 2))
    for i in range(len(x)):
        wave = wave * np.exp(0.1j * x[:3]) + 1e-3 * x[i]
    return wave


def integers_or_floats_that_are_read(x):
    steps = np.arange(len(x)) if x[0] > 0.1 else x
    return steps * x


def complex_or_real_numbers_that_are_read(x):
    wave = x * 1j if x[0] > 0.1 else x
    return wave * x


def integers_or_floats_that_are_written(x):
    if x[0] > 0.1:
        sums = np.zeros(len(x), np.int64)
    else:
        sums = np.ones(len(x))
    sums[1:][0] = 2.7
    return sums


IN_LOOPS = [
    change_places, one_after_the_other, integers_at_first, small_integers, places_in_a_pair,
    in_a_dict,
]  # fmt: skip
ELSEWHERE = [
    by_a_branch, by_an_expression, by_a_return, by_an_index, appended, appended_first,
    integers_or_floats_that_are_written,
]  # fmt: skip
OF_ONE_DTYPE = [
    back_in_its_place, numbers_of_python, integers_that_become_floats,
    real_numbers_that_become_complex, integers_or_floats_that_are_read,
    complex_or_real_numbers_that_are_read,
]  # fmt: skip


def hold(f, x, compiled):
    with in_python():
        found = nbta.function(f, compiled=compiled, convert=True)(x)
    wanted = nbta.structure.leaves(f(x))
    for one, other in zip(nbta.structure.leaves(found), wanted, strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", IN_LOOPS)
def test_short_loops_give_each_array_its_dtype(f, compiled):
    hold(f, SHORT, compiled)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", OF_ONE_DTYPE)
def test_names_that_keep_their_dtype(f, compiled):
    hold(f, LONG, compiled)


@pytest.mark.parametrize("f", IN_LOOPS)
def test_long_loops_are_refused(f):
    with pytest.raises(nbta.InvalidArgumentError, match=r"give both arrays one dtype, .* astype"):
        nbta.function(f, compiled=False, convert=True)(LONG)


@pytest.mark.parametrize("f", ELSEWHERE)
def test_what_only_the_run_decides_is_refused(f):
    with pytest.raises(nbta.InvalidArgumentError, match=r"one dtype|several dtypes"):
        nbta.function(f, compiled=False, convert=True)(LONG)


def of_either(x):
    return np.arange(len(x)) if x[0] > 0 else x


def doubled(a, x):
    for _ in range(12):
        a = a * 2
    return a


#: What NumPy makes of integers is of integers, and cuts off what is stored in it.
MADE_OF_EITHER = {
    "a copy": lambda a, x: a.copy(),
    "a part": lambda a, x: np.concatenate([a[1:], a]),
    "a product": lambda a, x: 2 * a,
    "products": lambda a, x: np.outer(a, a)[0],
    "a sum": lambda a, x: np.array([np.sum(a), 1]),
    "of a loop": doubled,
    "like it": lambda a, x: np.zeros_like(a),
    "filled": lambda a, x: np.full_like(a, 1),
    "by its dtype": lambda a, x: np.empty(3, a.dtype),
    "by the dtype of another": lambda a, x: np.empty(3, (2 * a).dtype),
    "by the result of dtypes": lambda a, x: np.empty(3, np.result_type(a, np.int8)),
}
#: What is of floats whatever it is made of.
MADE_FLOATS = {
    "cast": lambda a, x: 2 * a.astype(float),
    "copied": lambda a, x: np.array(a, dtype=float),
    "like it": lambda a, x: np.zeros_like(a, dtype=float),
    "a quotient": lambda a, x: a / 2,
    "products": lambda a, x: 0.5 * a + a * x,
    "roots": lambda a, x: np.sqrt(abs(a)),
    "in a loop": lambda a, x: np.array([item * 0.5 for item in a]),
}


def doubled_wave(x):
    wave = 2.5 * (x * 1j if x[0] > 0 else x)
    wave[0] = x[1]
    return wave


def stored(make):
    def f(x):
        made = make(of_either(x), x)
        made[0] = x[1]
        return made

    return f


def test_nothing_is_stored_in_what_is_made_of_real_or_complex_numbers():
    with pytest.raises(nbta.InvalidArgumentError, match="array of complex128 or float64"):
        nbta.function(doubled_wave, compiled=False, convert=True)(LONG)


@pytest.mark.parametrize("make", MADE_OF_EITHER.values(), ids=MADE_OF_EITHER)
def test_nothing_is_stored_in_what_is_made_of_integers_or_floats(make):
    with pytest.raises(nbta.InvalidArgumentError, match=r"array of int64 or float64, .*one dtype"):
        nbta.function(stored(make), compiled=False, convert=True)(LONG)


def test_what_is_made_floats_of_integers_or_floats_is_stored_in():
    def f(x):
        return [stored(make)(x) for make in MADE_FLOATS.values()]

    for compiled in (False, True):
        hold(f, LONG, compiled)
        hold(f, -LONG, compiled)
