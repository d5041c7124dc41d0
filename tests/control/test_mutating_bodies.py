"""Functions that change their arrays in place, handed to everything that calls users' functions.

Plain calls give what traced ones give, or both refuse; the caller's arrays stay as they are.
"""

import functools
from types import SimpleNamespace

import numpy as np
import pytest
from fuzz.ways import in_python

import nbta
from nbta.structure import leaves

X = np.array([0.5, -1.25, 2.0])
M = np.array([[0.5, 0.25, 0.0], [0.0, 1.0, 0.5], [-0.5, 0.0, 0.75]])


# In-place operators, and what they stand for.


def iadd(y):
    y += 0.5
    return y


def isub(y):
    y -= 1
    return y


def imul(y):
    y *= y
    return y


def itruediv(y):
    y /= 2.0
    return y


def ipow(y):
    y **= 2
    return y


def imod(y):
    y %= 1.5
    return y


def ifloordiv(y):
    y //= 0.75
    return y


def imatmul(y):
    y @= M
    return y


def by_another_name(y):
    z = y
    z += 1.0
    return y + 0.5 * z


def by_a_view(y):
    z = y[1:]
    z *= 3.0
    return nbta.concatenate([y[:1] + y[2:], z - y[1:]])


def a_computed_array(y):
    z = w = y * 2.0
    z += 1.0
    return z - 3.0 * w


def what_nbta_computed(y):
    z = w = nbta.sin(y) + nbta.zeros(3)
    z += y
    return z * w


def nbta_zeros(y):
    z = w = nbta.zeros(3)
    z += 1.0
    return y * z + w


def a_reduction(y):
    total = nbta.sum(y)
    again = total
    total += 1.0
    return y * total - again


WORKING = {
    iadd: lambda y: y + 0.5,
    isub: lambda y: y - 1,
    imul: lambda y: y * y,
    itruediv: lambda y: y / 2.0,
    ipow: lambda y: y**2,
    imod: lambda y: y % 1.5,
    ifloordiv: lambda y: y // 0.75,
    imatmul: lambda y: y @ M,
    by_another_name: lambda y: y + 0.5 * (y + 1.0),
    by_a_view: lambda y: nbta.concatenate([y[:1] + y[2:], 2.0 * y[1:]]),
    a_computed_array: lambda y: y * 2.0 + 1.0 - 6.0 * y,
    what_nbta_computed: lambda y: (nbta.sin(y) + y) * nbta.sin(y),
    nbta_zeros: lambda y: y * 1.0,
    a_reduction: lambda y: y * (nbta.sum(y) + 1.0) - nbta.sum(y),
}


# What a traced function cannot do.


def doing(change):
    """A function that changes its argument and gives it back."""

    @functools.wraps(change)
    def changed(y):
        change(y)
        return y

    return changed


def _assigned(attribute, value):
    return lambda y: setattr(y, attribute, value)


def _local(y):
    z = np.zeros(3)
    z += y


REFUSED = {
    "item": lambda y: y.__setitem__(0, 1.0),
    "slice": lambda y: y.__setitem__(slice(1, None), 0.0),
    "ellipsis": lambda y: y.__setitem__(Ellipsis, 0.0),
    "indices": lambda y: y.__setitem__([0, 2], y[:2]),
    "item of a view": lambda y: y[1:].__setitem__(0, 1.0),
    "item of a computed array": lambda y: (y * 2.0).__setitem__(0, 1.0),
    "item of what nbta computed": lambda y: nbta.sin(y).__setitem__(0, 1.0),
    "item of a reshaped one": lambda y: y.reshape(3, 1).__setitem__((0, 0), 1.0),
    "out": lambda y: np.add(y, 1.0, out=y),
    "out elsewhere": lambda y: np.add(y, 1.0, out=np.zeros(3)),
    "local": _local,
    "sum out": lambda y: np.sum(y, keepdims=True, out=np.zeros(1)),
    "at": lambda y: np.add.at(y, [0, 0], 1.0),
    "at elsewhere": lambda y: np.subtract.at(np.zeros(3), [0, 1, 2], y),
    "sort": lambda y: y.sort(),
    "fill": lambda y: y.fill(0.0),
    "put": lambda y: y.put([0], 1.0),
    "partition": lambda y: y.partition(1),
    "resize": lambda y: y.resize((2,)),
    "byteswap": lambda y: y.byteswap(inplace=True),
    "setflags": lambda y: y.setflags(write=True),
    "np.copyto": lambda y: np.copyto(y, 0.0),
    "np.put": lambda y: np.put(y, [0], 1.0),
    "np.place": lambda y: np.place(y, [True, False, False], [0.0]),
    "np.putmask": lambda y: np.putmask(y, [True, False, False], 0.0),
    "np.put_along_axis": lambda y: np.put_along_axis(y, np.array([0]), 1.0, 0),
    "np.fill_diagonal": lambda y: np.fill_diagonal(y.reshape(3, 1), 0.0),
    "flat": lambda y: y.flat.__setitem__(0, 1.0),
    "flat as a whole": _assigned("flat", 1.0),
    "shape": _assigned("shape", (3, 1)),
    "dtype": _assigned("dtype", np.int64),
    "real": _assigned("real", 0.0),
    "flags": lambda y: setattr(y.flags, "writeable", True),
}


#: What tensors do not have at all.
UNKNOWN = {"flat", "flat as a whole", "real", "flags"}


# Where functions are handed to: each takes a function of a vector and a vector.


def counted(body, first, n=3, **options):
    return nbta.while_loop(
        lambda i, _: i < n, lambda i, y: (i + 1, body(y)), (0, first), **options
    )[1]


def in_condition(f, x):
    def condition(i, y):
        return (f(y), i < 2)[1]

    return nbta.while_loop(condition, lambda i, y: (i + 1, y * 0.5), (0, x))[1]


def captured_by_while(f, x):
    body = lambda i, y: (i + 1, y + f(x))  # noqa: E731
    return nbta.while_loop(lambda i, _: i < 3, body, (0, nbta.zeros(3)))[1]


def in_a_structure(f, x):
    def body(i, v):
        return i + 1, {"a": [f(v["a"][0])], "b": v["b"]}

    first = (0, {"a": [x], "b": x})
    return nbta.while_loop(lambda i, v: i < 2, body, first)[1]


def by_an_array(f, x):
    ta = nbta.TensorArray("float64", 2, element_shape=(3,))
    body = lambda i, ta, y: (i + 1, ta.write(i, f(y)), y * 0.5)  # noqa: E731
    return nbta.while_loop(lambda i, *_: i < 2, body, (0, ta, x))[1].stack()


def rows(x):
    return nbta.stack([x, 0.5 * x])


def by_carry(f, x):
    return nbta.scan(lambda c, r: (f(c), c), x, rows(x))


def by_row(f, x):
    return nbta.scan(lambda c, r: (c + f(r), r), x, rows(x), reverse=True)


def captured_by_scan(f, x):
    return nbta.scan(lambda c, r: (c + r, f(x)), x, rows(x), checkpoint="sqrt")


def nested(f, x):
    inner = lambda c, r: (f(c) + r, c)  # noqa: E731
    return nbta.scan(lambda c, r: nbta.scan(inner, f(c) * 0.1, rows(r)), x, rows(x))


def branch_in_loop(f, x):
    return counted(lambda y: nbta.cond(nbta.sum(y) > 0.3, lambda: f(y), lambda: y), x, 2)


def loop_in_branch(f, x):
    return nbta.cond(nbta.sum(x) > 0.3, lambda: counted(f, x, 2), lambda: x)


def by_default(f, x):
    def branch(x=x):
        return f(x)

    return nbta.cond(nbta.sum(x) > 0.0, branch, branch)


def traced_function_in_loop(f, x):
    g = nbta.function(lambda y: y * 2.0, compiled=False)
    return counted(lambda y: f(g(y)), x, 2)


CONTROL_FLOW = {
    "while": lambda f, x: counted(f, x),
    "while, no iteration": lambda f, x: counted(f, x, 0),
    "while, checkpoint": lambda f, x: counted(f, x, checkpoint=2),
    "while, condition": in_condition,
    "while, captured": captured_by_while,
    "while, structure": in_a_structure,
    "while, array": by_an_array,
    "scan, carry": by_carry,
    "scan, row": by_row,
    "scan, captured": captured_by_scan,
    "map_fn": lambda f, x: nbta.map_fn(f, rows(x)),
    "map_fn, checkpoint": lambda f, x: nbta.map_fn(f, rows(x), checkpoint=1),
    "map_fn, threads": lambda f, x: nbta.map_fn(f, rows(x), parallel_iterations=2),
    "map_fn, captured": lambda f, x: nbta.map_fn(lambda r: f(x) + r, rows(x)),
    "foldl, accumulated": lambda f, x: nbta.foldl(lambda a, r: f(a) + r, rows(x), x),
    "foldl, row": lambda f, x: nbta.foldl(lambda a, r: a + f(r), rows(x), x),
    "foldl, first row": lambda f, x: nbta.foldl(lambda a, r: f(a) + r, rows(x)),
    "foldr, accumulated": lambda f, x: nbta.foldr(lambda a, r: f(a) + r, rows(x), x),
    "foldr, row": lambda f, x: nbta.foldr(lambda a, r: a + f(r), rows(x), x),
    "foldr, captured": lambda f, x: nbta.foldr(lambda a, r: a + f(x), rows(x), x),
    "cond": lambda f, x: nbta.cond(nbta.sum(x) > 0.0, lambda: f(x), lambda: -x),
    "cond, false": lambda f, x: nbta.cond(nbta.sum(x) < 0.0, lambda: -x, lambda: f(x)),
    "cond, operand": lambda f, x: nbta.cond(nbta.sum(x) > 0.0, f, lambda x: -x, x),
    "cond, default": by_default,
    "switch_case": lambda f, x: nbta.switch_case(1, [lambda: -x, lambda: f(x)]),
    "switch_case, operand": lambda f, x: nbta.switch_case(1, [lambda x: -x, f], x),
    "switch_case, default": lambda f, x: nbta.switch_case(7, [lambda: -x], default=lambda: f(x)),
    "nested scans": nested,
    "cond in while": branch_in_loop,
    "while in cond": loop_in_branch,
    "traced function in while": traced_function_in_loop,
}
NO_ITERATION = {"while, no iteration"}

total = lambda f, x: nbta.sum(f(x))  # noqa: E731
TRANSFORMS = {
    "function": lambda f, x: nbta.function(f, compiled=False, convert=False)(x),
    "compiled function": lambda f, x: nbta.function(f, compiled=True, convert=False)(x),
    "value_and_grad": lambda f, x: nbta.value_and_grad(functools.partial(total, f), convert=False)(
        x
    ),
    "grad": lambda f, x: nbta.grad(functools.partial(total, f), convert=False)(x),
    "grad of a loop": lambda f, x: nbta.grad(lambda x: nbta.sum(counted(f, x, 2)), convert=False)(
        x
    ),
    "has_aux": lambda f, x: nbta.grad(lambda x: (nbta.sum(f(x)), x), has_aux=True, convert=False)(
        x
    ),
    "batch_axis": lambda f, x: nbta.value_and_grad(
        lambda w, x: nbta.sum(f(w * x)), batch_axis=(None, 0), convert=False
    )(X, np.stack([x, x])),
    "jvp": lambda f, x: nbta.jvp(f, (x,), (np.ones(3),), convert=False),
    "hvp": lambda f, x: nbta.hvp(functools.partial(total, f), x, np.ones(3), convert=False),
    "flatten": lambda f, x: nbta.function(
        lambda x: nbta.flatten([f(x), x]), compiled=False, convert=False
    )(x),
    "unflatten": lambda f, x: nbta.function(
        lambda x: nbta.unflatten(nbta.flatten([f(x)]), [X]), compiled=False, convert=False
    )(x),
}
PLACES = {**CONTROL_FLOW, **TRANSFORMS}


def values(result):
    return [np.array(value) for value in leaves(result)]


def hold(found, expected):
    for mine, theirs in zip(values(found), values(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-14)


def ways(name, f, compiled=False, convert=True):
    """The calls of one place: plain, traced, and compiled; transforms always trace.

    Transforms are given functions as they are, without conversion: there ``y += x`` rebinds, and
    in converted ones it changes the array, as in NumPy (`tests/frontend`).
    """
    place = functools.partial(PLACES[name], f)
    found = {"plain": place}
    if name in CONTROL_FLOW:
        found["traced"] = lambda x: nbta.function(place, compiled=compiled, convert=convert)(x)
    return found


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("change", WORKING, ids=lambda change: change.__name__)
def test_in_place_operators(name, change):
    x, compiled = X.copy(), change in (iadd, what_nbta_computed)
    with in_python():
        expected = PLACES[name](WORKING[change], x)
        for f in ways(name, change, compiled).values():
            found = f(x)
            np.testing.assert_array_equal(x, X)
            for value in leaves(found):
                assert type(value) is np.ndarray or not isinstance(value, np.ndarray)
                assert not np.shares_memory(value, x)
            hold(found, expected)


def error_of(f, *args):
    try:
        f(*args)
    except Exception as error:
        return error
    return None


#: Everywhere a few changes are tried, and in a few places all.
EVERYWHERE = {"item", "item of what nbta computed", "out", "local", "at", "sort", "np.copyto"}
PLACES_FOR_ALL = {"while", "scan, row", "map_fn", "foldl, accumulated", "cond", "function"}


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize(
    ("change", "name"),
    [
        (change, name)
        for change in REFUSED
        for name in PLACES
        if name not in NO_ITERATION and (change in EVERYWHERE or name in PLACES_FOR_ALL)
    ],
)
def test_what_cannot_be_traced_is_refused(name, change):
    x = X.copy()
    traced = change == "item" or name in ("while", "cond")
    places = ways(name, doing(REFUSED[change]), convert=False)
    for f in list(places.values())[: 1 + traced]:
        error = error_of(f, x)
        np.testing.assert_array_equal(x, X)
        if change in UNKNOWN and isinstance(error, AttributeError):
            continue
        assert isinstance(error, nbta.InvalidArgumentError), error
        assert error.reason == "immutable"


@pytest.mark.parametrize("name", CONTROL_FLOW)
def test_results_are_the_callers_own(name):
    """Also where a function forwards what it got, or the same array twice."""
    x = X.copy()
    for f in ways(name, lambda y: y).values():
        found = [value for value in leaves(f(x)) if isinstance(value, np.ndarray)]
        for i, value in enumerate(found):
            assert type(value) is np.ndarray
            others = [x, *found[:i]]
            assert not any(np.shares_memory(value, other) for other in others)


def test_the_name_of_a_variable_is_told():
    def body(i, state):
        state["h"][0] = 1.0
        return i + 1, state

    with pytest.raises(nbta.InvalidArgumentError, match=r"loop_vars\[1\]\['h'\] in place; y = y"):
        nbta.while_loop(lambda i, _: i < 1, body, (0, {"h": X.copy()}))

    def step(carry, row):
        np.add(row, 1.0, out=row)
        return carry, row

    with pytest.raises(nbta.InvalidArgumentError, match=r"np\.add with out="):
        nbta.scan(step, 0.0, np.ones((2, 3)))
    x = X.copy()
    with pytest.raises(nbta.InvalidArgumentError, match="'x', from outside of true_fn, in place"):
        nbta.cond(True, lambda: x.__setitem__(0, 1.0), lambda: None)


def test_a_copy_is_an_ordinary_array():
    def body(i, y):
        z = y.copy()
        z[0] = 7.0
        z += 1.0
        return i + 1, z

    x = X.copy()
    found = nbta.while_loop(lambda i, _: i < 2, body, (0, x))[1]
    np.testing.assert_array_equal(found, [8.0, X[1] + 2.0, X[2] + 2.0])
    np.testing.assert_array_equal(x, X)


def test_numpy_works_on_what_bodies_get():
    """Also what works in place on arrays of its own."""
    functions = [
        np.median, np.var, np.gradient, np.linalg.norm, np.sort, np.cov, np.diff, np.unique,
        np.copy, np.array, lambda y: y.mean(0), lambda y: y.std(), lambda y: y.argsort(),
        lambda y: np.interp(y, [0.0, 1.0], [2.0, 3.0]), lambda y: np.histogram(y, 2)[0],
        lambda y: np.einsum("i,i", y, y), lambda y: np.where(y > 0, y, 0.0), list, repr,
        lambda y: y.T @ y, lambda y: np.linalg.solve(M, y), lambda y: y.astype("float32"),
        lambda y: 1.0 / y, lambda y: divmod(y, 2.0), lambda y: y.tolist(), lambda y: y[y > 0],
    ]  # fmt: skip
    found = []

    def body(i, y):
        found.extend(function(y) for function in functions)
        return i + 1, y

    nbta.while_loop(lambda i, _: i < 1, body, (0, X.copy()))
    for function, value in zip(functions, found, strict=True):
        expected = function(X.copy())
        np.testing.assert_equal(np.asarray(value), np.asarray(expected))


# Arrays from around a function.

OUTSIDE = X.copy()


def change_outside():
    y = OUTSIDE
    y += 1.0
    return y


@pytest.mark.parametrize("traced", [False, True])
def test_arrays_of_a_module(traced):
    f = lambda p: nbta.cond(p, change_outside, lambda: OUTSIDE)  # noqa: E731
    f = nbta.function(f, compiled=False) if traced else f
    for _ in range(2):
        np.testing.assert_array_equal(f(np.bool_(True)), X + 1.0)
    np.testing.assert_array_equal(OUTSIDE, X)


@pytest.mark.parametrize("traced", [False, True])
def test_constants_are_numpys(traced):
    """What is computed from a module's array is NumPy's own in both ways."""

    def body(i, y):
        z = np.zeros(3)
        z += OUTSIDE
        w = OUTSIDE * 2.0
        w[0] = 7.0
        return i + 1, y + z + w

    f = lambda x: nbta.while_loop(lambda i, _: i < 2, body, (0, x))[1]  # noqa: E731
    f = nbta.function(f, compiled=False) if traced else f
    np.testing.assert_array_equal(f(X), X + 2.0 * (X + np.array([7.0, 2.0 * X[1], 2.0 * X[2]])))
    np.testing.assert_array_equal(OUTSIDE, X)


@pytest.mark.parametrize("threads", [None, 1, 2])
def test_rows_of_a_plain_map_on_threads_rebind_as_others(threads):
    """On two threads, rows changed in place what they had computed from a captured array."""
    outside = X.copy()

    def row(r):
        a = outside * 0.5
        before = a
        a /= 2.0
        return before + 0.0 * nbta.sum(r)

    found = nbta.map_fn(row, np.ones((2, 3)), parallel_iterations=threads)
    np.testing.assert_array_equal(found, [outside * 0.5] * 2)


READS = {
    "read": lambda ta: ta.read(1),
    "read again": lambda ta: ta.read(0) * 0 + ta.read(ta.size() - 1),
    "gather": lambda ta: ta.gather([1, 0]),
    "stack": lambda ta: ta.stack(),
    "concat": lambda ta: ta.concat().value,
    "lengths": lambda ta: ta.concat().lengths,
    "an unwritten slot": lambda ta: ta.write(2, ta.read(0)).read(3),
}


@pytest.mark.parametrize("way", READS)
def test_what_arrays_give_changes_as_what_functions_give(way):
    """A body's array gave an ordinary one, so that ``v *= y`` was refused in a plain call."""

    def body(i, y):
        ta = nbta.TensorArray("float64", 4, element_shape=(3,), clear_after_read=False)
        ta = ta.write(0, y).write(1, 2.0 * y)
        if way in ("stack", "concat", "lengths"):
            ta = nbta.TensorArray("float64", 2, clear_after_read=False).unstack(ta.gather([0, 1]))
        value = READS[way](ta)
        before = value
        value *= 2 if way == "lengths" else nbta.sum(y)
        return i + 1, y + 0.1 * nbta.sum(value) + 0.01 * nbta.sum(before)

    def run(x):
        return nbta.while_loop(lambda i, y: i < 3, body, (0, x))[1]

    x = X.copy()
    plain = run(x)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_allclose(plain, nbta.function(run, compiled=False)(x), rtol=1e-14)


def test_outside_of_bodies_arrays_give_numpys_own():
    ta = nbta.TensorArray("float64", 2, clear_after_read=False).unstack(np.ones((2, 3)))
    found = [ta.read(0), ta.gather([1, 0]), ta.stack(), *ta.concat(), ta[0], np.asarray(ta)]
    assert {type(value) for value in found} == {np.ndarray}


def test_a_plain_scan_looks_ahead_with_the_same_arrays():
    """What is computed from an array of an enclosing function is no constant there either."""
    x, y = X[:, None].copy(), np.stack([X, -X], 1)

    def step(c, row):
        z = w = x * 0.7
        z += y
        return z + c, w + row

    found = nbta.scan(step, y, y)
    traced = nbta.function(
        lambda x, y: nbta.scan(lambda c, r: (x * 0.7 + y + c, x * 0.7 + r), y, y)
    )
    hold(found, traced(x, y))


calls = 0


def test_names_that_a_function_gives_other_values():
    seen = []

    def body(i, y):
        global calls
        nonlocal seen
        calls += 1
        seen = [*seen, OUTSIDE.sum()]
        return i + 1, y + X

    nbta.while_loop(lambda i, _: i < 3, body, (0, X))
    assert calls == len(seen) == 3


def test_an_array_that_something_else_replaces():
    x = X.copy()

    def replace():
        nonlocal x
        x = x + 1.0

    def body(i, y):
        replace()
        return i + 1, y + x

    with pytest.raises(nbta.InvalidArgumentError, match="another function gave 'x' another array"):
        nbta.while_loop(lambda i, _: i < 3, body, (0, X))


def test_partial_functions_and_methods():
    x = X.copy()
    body = lambda w, i, y: (i + 1, iadd(w) + y)  # noqa: E731
    f = functools.partial(body, x)
    found = nbta.while_loop(lambda i, _: i < 2, f, (0, X))[1]
    np.testing.assert_array_equal(found, X + 2.0 * (X + 0.5))
    np.testing.assert_array_equal(x, X)
    owner = SimpleNamespace(f=f)
    np.testing.assert_array_equal(nbta.while_loop(lambda i, _: i < 2, owner.f, (0, X))[1], found)


@pytest.mark.parametrize("way", ["plain", "reference", "compiled"])
def test_custom_gradient_refuses(way):
    def forward(x):
        x += 1.0
        return x

    f = nbta.custom_gradient(forward)
    if way != "plain":
        f = nbta.function(f, compiled=way == "compiled")
    x = X.copy()
    with (
        in_python(),
        pytest.raises(nbta.InvalidArgumentError, match=r"forward.*read-only") as caught,
    ):
        f(x)
    assert caught.value.reason == "immutable"
    np.testing.assert_array_equal(x, X)


def test_custom_gradient_in_a_body_has_numpys_arrays():
    @nbta.custom_gradient
    def forward(x):
        z = nbta.sin(x)
        z[0] = 5.0
        z += x
        return z

    f = lambda x: counted(forward, x, 2)  # noqa: E731
    hold(f(X), nbta.function(f, compiled=False)(X))
