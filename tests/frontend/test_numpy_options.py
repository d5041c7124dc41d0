"""Arguments of NumPy's functions: each is honoured as NumPy does, or refused by its name.

Every function that takes values of a run is called with every parameter of NumPy's own signature,
by name and by place, with values of each class.
"""

import inspect
import itertools
import sys
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest

import nbta
from nbta.errors import NbtaError
from nbta.structure import leaves

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
import numpy_table as table

X, M = table.X, table.M
MASK = np.array([True, False, True, True])
OUT = object()
FLAGS, AXES = [True, False], [None, 0, -1, (0, 1)]
DTYPES = [np.float32, np.int64, np.complex128, bool, "i1"]
#: Values by the names of parameters. Those that NumPy refuses are left out where they are met.
VALUES = {
    "M": [None, 3], "N": [None, 3], "UPLO": ["L", "U"], "a_max": [], "a_min": [],
    "append": [0.0, X[:1]], "assume_unique": FLAGS, "atol": [1e-3], "aweights": [None, X],
    "axes": [None, (1, 0), [0, 1], 0, (0,)], "axis": AXES, "axis1": [0, -1], "axis2": [0, 1],
    "axisa": [0], "axisb": [0], "axisc": [0], "base": [2.0], "bias": FLAGS,
    "bins": [3, [0.0, 0.3, 1.0]], "casting": ["no", "safe", "unsafe"], "compute_uv": FLAGS,
    "copy": [True, False, None], "correction": [0, 1], "count": [-1], "cov": FLAGS, "d": [0.5],
    "ddof": [0, 1], "decimals": [0, 1, -1], "default": [1.5], "deg": FLAGS, "density": FLAGS,
    "destination": [0], "device": [None, "cpu"], "discont": [None, 1.0], "dtype": DTYPES,
    "dx": [0.5], "edge_order": [1, 2], "endpoint": FLAGS, "equal_nan": FLAGS, "full": FLAGS,
    "full_matrices": FLAGS, "fweights": [None, np.array([1, 2, 1, 1])], "hermitian": FLAGS,
    "include_initial": FLAGS, "increasing": FLAGS, "ind": [1], "indexing": ["xy", "ij"],
    "initial": [2.0, 1], "invert": FLAGS, "k": [0, 1, -1], "keepdims": FLAGS,
    "kind": [None, "stable"], "left": [None, -1.0], "like": [None, X], "m": [None, 1, 3],
    "max": [0.5], "mean": [0.5], "method": ["linear", "lower", "median_unbiased"], "min": [0.3],
    "minlength": [0, 8], "mode": ["full", "valid", "wrap", "clip", "edge", "reduced", "r"],
    "n": [0, 1, 2, 6], "nan": [1.0], "ndim": [1], "ndmax": [1, 3], "ndmin": [0, 2, 5],
    "neginf": [None, 1.0], "norm": [None, "ortho", "forward"], "num": [3], "offset": [0, 1, -1],
    "optimize": [*FLAGS, "greedy"], "ord": [None, 1, 2, np.inf, "fro", "nuc"],
    "order": ["C", "F", "A", "K", None], "out": [OUT], "overwrite_input": FLAGS,
    "p": [None, 1, 2, "fro"], "period": [None, 0.5], "posinf": [None, 1.0],
    "prepend": [0.0, X[:1]], "range": [None, (0.0, 1.0)], "rcond": [None, 1e-3, 0.5],
    "requirements": [None, "C", "W", "F"], "retstep": FLAGS, "return_counts": FLAGS,
    "return_index": FLAGS, "return_inverse": FLAGS, "sorted": [True],
    "returned": FLAGS, "right": [None, True, -1.0], "rowvar": FLAGS, "rtol": [None, 1e-3, 0.5],
    "s": [None, (6,), (3, 3)], "shape": [(4,), (2, 2), 3, ()], "side": ["left", "right"],
    "signature": [], "sorter": [None, [1, 3, 0, 2]], "source": [0], "sparse": FLAGS,
    "stable": [None, *FLAGS], "start": [0, 1], "step": [2], "stop": [7], "subok": FLAGS,
    "to_begin": [None, 1.0, [1.0, 2.0]], "to_end": [None, 1.0], "tol": [None, 0.5],
    "upper": FLAGS, "w": [None, X], "weights": [None, X, M, [1, 2, 3, 4]],
    "where": [True, MASK, M > 1], "wrap": FLAGS, "x": [None, X], "y": [None, X],
}  # fmt: skip
#: Those that SciPy has besides, and where one of them means something else.
VALUES |= {
    "assume_a": [None, "gen", "sym", "pos", "upper triangular"], "b": [None, X, M],
    "b_": [], "balanced": FLAGS, "baxis": [0], "caxis": [0], "calc_q": FLAGS,
    "check_finite": FLAGS, "compute_expm": FLAGS, "cond": [None, 0.3], "disp": [False],
    "driver": [None, "ev"], "eigvals_only": FLAGS, "exact": FLAGS, "extend": ["zero", "complex"],
    "homogeneous_eigvals": FLAGS, "lapack_driver": [None, "gesvd", "gesdd"], "lower": FLAGS,
    "lwork": [None], "outaxis": [0], "overwrite_a": [False], "overwrite_ab": [False],
    "overwrite_b": [False], "p_indices": FLAGS, "permute_l": FLAGS, "pivoting": FLAGS,
    "q": [None, 2.0], "r": [None, X], "repetition": FLAGS, "return_rank": FLAGS,
    "return_sign": FLAGS, "scale": [None, "n"], "select": ["a", "i"],
    "select_range": [None, (0, 1)],
    "singular": ["raise", "lstsq"], "subset_by_index": [None, (0, 1)],
    "subset_by_value": [None, (0.0, 4.0)], "trans": [0, 1, 2], "transposed": FLAGS,
    "type": [1, 2, 3], "unit_diagonal": FLAGS, "workers": [None, 1], "z": [],
}  # fmt: skip
#: Of universal functions, which are many and alike.
OF_UFUNCS = {"order": ["C", "F"], "casting": ["no", "unsafe"], "subok": [False]}
NAMES = [(space, name) for space in table.NAMESPACES
         for name, function in table.functions(space).items()
         if space[:5] == "numpy" or not isinstance(function, np.ufunc)]  # fmt: skip


#: What SciPy leaves is of no known value: the other triangle.
UNKNOWN = {("cho_factor", "lower")}


def quietly(call):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return call()


def sample(name, function):
    """A value, and a call with it, that both libraries take; None for refused functions."""
    return next((each for each in table._samples(name, function) if taken(function, *each)), None)


def taken(function, start, call):
    """Whether NumPy and nbta take a call."""
    try:
        quietly(lambda: call(function, start))
        quietly(lambda: nbta.function(lambda x: call(function, x), compiled=False)(start))
    except Exception:  # whatever it is, the next sample may do
        return False
    return True


def given_in(function, start, call):
    """How many arguments a call gives by place, and which by name."""
    seen = []

    def spy(*args, **kwargs):
        seen.append((len(args), set(kwargs)))
        return function(*args, **kwargs)

    quietly(lambda: call(spy, start))
    return seen[0]


def variants(function, start, call):
    """Calls with one argument more: its name, and the function that gives it."""
    count, names = given_in(function, start, call)
    parameters = list(inspect.signature(function).parameters.values())
    by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for one in parameters:
        place = by_place.index(one) if one in by_place else None
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) or one.name in names:
            continue
        if place is not None and place < count:
            continue
        values = OF_UFUNCS.get(one.name) if isinstance(function, np.ufunc) else None
        values = VALUES[one.name] if values is None else values
        for value in values:
            if one.kind is not one.POSITIONAL_ONLY:
                yield one.name, value, named(function, one.name)
        between = [p.default for p in by_place[count:place]] if place is not None else [np._NoValue]
        if values and not any(default in (inspect._empty, np._NoValue) for default in between):
            yield one.name, values[-1], placed(function, between)


def named(function, name):
    return lambda value: lambda *args, **kwargs: function(*args, **{**kwargs, name: value})


def placed(function, between):
    return lambda value: lambda *args, **kwargs: function(*args, *between, value, **kwargs)


def program(call, give, value, wanted):
    """A function of one array that makes the call, with an array to fill if it is given one."""
    if value is not OUT:
        return lambda x: call(give(value), x)
    shape, dtype = wanted.shape, wanted.dtype

    def filling(x):
        out = np.zeros(shape, dtype)
        found = call(give(out), x)
        return out, found

    return filling


def assert_same(found, wanted):
    for one, other in zip(leaves(found), leaves(wanted), strict=True):
        assert np.shape(one) == np.shape(other)
        if not isinstance(other, np.ndarray | np.generic):
            continue
        assert np.asarray(one).dtype == other.dtype
        low = np.finfo(other.dtype).bits < 64 if other.dtype.kind == "f" else False
        np.testing.assert_allclose(
            one, other, rtol=1e-5 if low else 1e-9, atol=1e-7 if low else 1e-11
        )


def plain(found):
    return tuple(map(plain, found)) if isinstance(found, list | tuple) else found


@pytest.mark.parametrize(("space", "name"), NAMES)
def test_each_parameter_is_honoured_or_refused_by_name(space, name):
    function = table.functions(space)[name]
    found = sample(name, function)
    if found is None:
        return
    start, call = found
    usual = quietly(lambda: call(function, start))
    for parameter, value, give in variants(function, start, call):
        if value is OUT and not isinstance(usual, np.ndarray):
            continue
        if (name, parameter) in UNKNOWN:
            continue
        run = program(call, give, value, usual)
        try:
            wanted = quietly(lambda run=run: run(start))
        except Exception:  # NumPy takes it for another kind of argument
            continue
        said = f"{name}: {parameter}={value!r}"
        try:
            found = quietly(lambda run=run: nbta.function(run, compiled=False)(start))
        except (NbtaError, TypeError, ValueError) as error:
            text = str(error) + "".join(getattr(error, "__notes__", []))
            assert parameter in text, f"{said}: {text}"
            continue
        try:
            assert_same(plain(found), plain(wanted))
        except AssertionError as error:
            raise AssertionError(f"{said}: {error}") from None


def taken_variants(function, start, call):
    """Calls with one argument more that both take: what it is, a program, and its results."""
    usual = quietly(lambda: call(function, start))
    for parameter, value, give in variants(function, start, call):
        if value is OUT and not isinstance(usual, np.ndarray):
            continue
        run = program(call, give, value, usual)
        try:
            wanted = quietly(lambda run=run: run(start))
            quietly(lambda run=run: nbta.function(run, compiled=False)(start))
        except Exception:  # refused by one of them, of which another test is about
            continue
        if (function.__name__, parameter) not in UNKNOWN:
            yield f"{parameter}={value!r}", run, wanted


def is_precise(result):
    """Whether central differences of a result say something: it has float64, and no less."""
    kinds = [np.asarray(leaf).dtype for leaf in leaves(plain(result))]
    return any(kind.char in "dD" for kind in kinds) and not any(k.char in "efF" for k in kinds)


#: By parts that compile in one: alone each would take its time, and all of a function too long.
TOGETHER = 12


@pytest.mark.slow_but_every(60)
@pytest.mark.parametrize(("space", "name"), NAMES)
def test_each_parameter_is_honoured_in_compiled_code(space, name):
    function = table.functions(space)[name]
    found = sample(name, function)
    if found is None:
        return
    start, call = found
    some = list(taken_variants(function, start, call))
    for first in range(0, len(some), TOGETHER):
        part = some[first : first + TOGETHER]
        runs = [run for _, run, _ in part]
        every = nbta.function(lambda x, runs=runs: [run(x) for run in runs], compiled=True)
        results = quietly(lambda every=every: every(start))
        for (said, _, wanted), result in zip(part, results, strict=True):
            try:
                assert_same(plain(result), plain(wanted))
            except AssertionError as error:
                raise AssertionError(f"{name}: {said}: {error}") from None


@pytest.mark.slow_but_every(10)
@pytest.mark.parametrize(("space", "name"), NAMES)
def test_gradients_are_right_by_each_parameter(space, name):
    """Where a function has one. Beside the samples' points, of which some are on edges of bins."""
    function = table.functions(space)[name]
    found = sample(name, function)
    if found is None or found[0].dtype.kind != "f":
        return
    start, call = found
    aside = np.cos(np.arange(start.size)).reshape(start.shape) / 100
    start = start + aside + aside.T
    for said, run, wanted in taken_variants(function, start, call):
        if not is_precise(wanted):
            continue
        try:
            quietly(lambda run=run: table._has_gradient(None, start, lambda _, x: run(x)))
        except AssertionError as error:
            raise AssertionError(f"{name}: {said}: {error}") from None


#: Values that few parameters have.
STRANGE = [
    "no such", "stable", None, True, False, (), (0, 0), [0, 1], 7, -7, 3, 1, 0, -1, 1.5, 1j,
    np.array(0.5), np.int64(1), np.float32(0.5),
]  # fmt: skip


def test_each_refusal_is_an_error_of_its_own():
    """One that is raised again would keep the frames, and so the arrays, of all earlier calls."""
    found = []
    for _ in range(2):
        with pytest.raises(TypeError, match="a_max") as caught:
            nbta.function(lambda x: np.clip(x, a_min=1.0), compiled=False)(np.ones(3))
        found.append(caught.value)
    assert found[0] is not found[1]
    assert len(traceback.extract_tb(found[0].__traceback__)) == 2


@pytest.mark.slow_but_every(16)
@pytest.mark.parametrize(("space", "name"), NAMES)
def test_what_the_library_refuses_of_any_parameter_is_refused(space, name):
    """And what it takes is the same.

    The library is asked only for what nbta takes, as some of SciPy's routines write outside of
    their memory for other values.
    """
    function = table.functions(space)[name]
    found = sample(name, function)
    if found is None:
        return
    start, call = found
    usual = quietly(lambda: call(function, start))
    count, names = given_in(function, start, call)
    parameters = list(inspect.signature(function).parameters.values())
    optional = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    optional = [p for p in optional if p.name not in names and p.name != "out"]
    by_place = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY][:count]
    for one, value in itertools.product(optional, STRANGE):
        if one.name in by_place or (name, one.name) in UNKNOWN:
            continue
        run = program(call, named(function, one.name), value, usual)
        said = f"{name}: {one.name}={value!r}"
        try:
            found = quietly(lambda run=run: nbta.function(run, compiled=False)(start.copy()))
        except Exception:  # it may be NumPy's, or a refusal
            continue
        try:
            wanted = quietly(lambda run=run: run(start.copy()))
        except Exception as error:
            raise AssertionError(f"{said}: {error!r}") from None
        try:
            assert_same(plain(found), plain(wanted))
        except AssertionError as error:
            raise AssertionError(f"{said}: {error}") from None


A, B = np.arange(12.0).reshape(3, 4) / 7 + 0.1, np.arange(8.0).reshape(2, 4) - 3.0


def filled(function):
    """What a function leaves in an array, and whether it gives that array."""

    def run(x):
        out = np.full(x.shape, 9.0)
        found = function(x, out)
        out[0] += 100.0
        return out, found

    return run


HONOURED = {
    "likes": lambda x: [np.zeros_like(x, shape=(2, 3)), np.ones_like(x, shape=5),
                        np.full_like(x, 7.0, shape=(2,)), np.empty_like(x, shape=(4, 1)).shape],
    "like of another shape and dtype": lambda x: np.zeros_like(x, np.int64, shape=(2, 2)),
    "ndmin": lambda x: [np.array(x, ndmin=4), np.array(x[0, 0], ndmin=1), np.array(x, ndmin=1)],
    "array and copy": lambda x: [np.array(x, copy=False), np.asarray(x, copy=True)],
    "astype": lambda x: [x.astype(np.float32, order="F"), x.astype("f4", casting="same_kind"),
                         x.astype(float, copy=False), np.asarray(x, dtype=np.int64, order="F")],
    "transpose": lambda x: [np.transpose(x, axes=(1, 0)), np.swapaxes(x, axis1=0, axis2=1),
                            x[0].transpose(0), x.transpose(np.array([1, 0])), x.transpose(None)],
    "round": lambda x: [round(x[0, 1], ndigits=0), round(x[1, 1], ndigits=2)],
    "average": lambda x: [np.average(x, axis=(0, 1), weights=x), np.average(x, 0, x[:, 0]),
                          np.average(x.T, axis=(1, 0), weights=x),
                          np.average(np.stack([x, x * x]), (2, 0), np.outer(x[0], [1, 2]))],
    "vecdot": lambda x: [np.vecdot(x, x[0]), np.vecdot(np.stack([x, x], 1), x, axis=0),
                         np.vecdot(x, x[:, 0], axis=0), np.vecdot(x, x, axis=-2)],
    "reductions": lambda x: [np.sum(x, initial=2.0), np.sum(x, 0, where=x > 1, keepdims=True),
                             np.prod(x, 1, initial=3.0), np.max(x, 0, initial=1.0, where=x < 1),
                             np.sum(x, 0, np.float32), x.sum(0, np.float32), x.mean(1, "f4"),
                             np.mean(x, where=x > 1), np.std(x, 0, None, None, 1),
                             np.nansum(x, where=x > 1, initial=1.0), x.max(axis=1, keepdims=True)],
    "a reduction of integers": lambda x: [np.sum(x * 99, dtype="i1"), np.sum(x > 1, dtype=bool),
                                          np.cumsum(x * 99, 0, 'i1'), np.prod(x > 0, dtype=bool)],
    "out": filled(lambda x, out: np.exp(x, out=out)),
    "out by place": filled(lambda x, out: np.add(x, 1.0, out)),
    "out and where": filled(lambda x, out: np.divide(1.0, x, out=out, where=x > 1)),
    "out of a reduction": filled(lambda x, out: np.sum(x, axis=0, out=out[0])),
    "out of a method": filled(lambda x, out: x.cumsum(0, out=out)),
    "several out": lambda x: np.modf(x, out=(np.zeros((3, 4)), None)),
    "universal": lambda x: [np.add(x, 1, dtype=np.float32), np.sqrt(x, casting="unsafe"),
                            np.exp(x, order="F"), np.multiply(x, 2.0, subok=False)],
    "means of variances": lambda x: [x.std(mean=0.5), np.var(x, 1, mean=x[:, :1], ddof=1),
                                     np.nanstd(x, 0, mean=x[:1], where=x > 1, correction=1)],
    "extremes without NaN": lambda x: [np.nanmax(x, 0, initial=0.9), np.nanmin(x / (x > 1), 1),
                                       np.nanmax(x, 1, initial=0.2, where=x < 1, keepdims=True)],
    "joined in a dtype": lambda x: [np.concatenate([x, x], 1, dtype=np.float32),
                                    np.stack([x, x * 2], 1, dtype=int, casting="unsafe"),
                                    np.hstack([x, x], dtype=complex), np.stack([x[0, 0], 1]),
                                    np.vstack([x, x], dtype="f4", casting="same_kind"),
                                    np.stack([row * 2 for row in x], dtype=np.float32)],
    "numbers that are stacked": lambda x: np.stack([x.astype("f4")[0, 0], 1.5]),
    "hermitian": lambda x: [np.linalg.svd(x[:, :3] @ x[:, 1:].T, hermitian=True),
                            np.linalg.svd(x @ x.T - 9 * np.eye(3), False, False, True),
                            np.linalg.pinv(x @ x.T, hermitian=True, rcond=1e-4),
                            np.linalg.matrix_rank(x @ x.T, hermitian=True, rtol=0.01)],
    "rtol": lambda x: [np.linalg.pinv(x, rtol=None), np.linalg.pinv(x, rtol=0.3),
                       np.linalg.pinv(np.stack([x, x]), rtol=np.array([0.1, 0.3]))],
    "clip": lambda x: [np.clip(x, None, 1.0), np.clip(x, 0.5, None), np.clip(x, max=1.0)],
    "size": lambda x: [np.arange(np.size(x)) * x[0, 0], np.size(x, 1), np.shape(x),
                       np.zeros(np.size(x, axis=0))],
    "defaults": lambda x: [np.sum(x, None, None, None, False), np.reshape(x, (4, 3), "C"),
                           np.linalg.norm(x, None, None, False), np.fft.fft2(x, None, (-2, -1))],
    "what small arrays are not": lambda x: [
        np.asarray(x.astype("f4"), dtype=np.float32, copy=False), np.diff(x, 2, prepend=x[:, :1]),
        np.stack([x.astype("f4"), x.astype("f4")], dtype="f4", casting="no"),
        np.ediff1d(x[0], to_end=[x[0, 0], 2.0]), np.linalg.norm(np.stack([x, x]), "fro", (1, 2)),
        np.einsum("ij,kj->ik", x, x, optimize=["einsum_path", (0, 1)]), np.max(x, initial=x[0, 0]),
        np.quantile(x, 0.3, 1, method="inverted_cdf", weights=x), np.clip(x, a_min=x[0], a_max=1.0),
        np.take_along_axis(x, np.argsort(x, None), None), np.std(x, 0, mean=x[:1], ddof=True)],
    "nan_to_num": lambda x: [np.nan_to_num(x, copy=False) is x, np.nan_to_num(x / 0, True, 1.0)],
}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", HONOURED)
def test_arguments_are_honoured(name, compiled):
    function = HONOURED[name]
    wanted = quietly(lambda: function(A.copy()))
    found = quietly(lambda: nbta.function(function, compiled=compiled)(A.copy()))
    assert_same(plain(found), plain(wanted))


def test_weights_of_several_axes_have_gradients():
    def loss(x):
        return np.sum(np.average(np.stack([x, x * x]), axis=(2, 0), weights=np.outer(x[0], [1, 2])))

    nbta.testing.check_grads(loss, (A,))


@pytest.mark.parametrize("compiled", [False, True])
def test_options_have_gradients(compiled):
    def loss(x):
        mirrored = x[:, :3] @ x[:, 1:].T
        return [np.var(x, 1, mean=x[:, :1] * x[0, 0]), np.nanmax(x, 0, initial=0.9, where=x < 1.5),
                np.linalg.pinv(mirrored + np.eye(3), hermitian=True),
                np.linalg.svd(mirrored - np.diag([1, 5, 9]), False, False, True)]  # fmt: skip

    nbta.testing.check_grads(nbta.function(loss, compiled=compiled), (A,), order=1 + compiled)


REFUSED = {
    "where=": lambda x: np.exp(x, where=x > 1),
    "uninitialised": lambda x: np.add(x, x, where=x > 1),
    "mean=": lambda x: np.var(x, mean=1.0, dtype=np.float32),
    "out=": lambda x: np.sum(x, axis=0, out=np.zeros(4, np.float32)),
    "signature=": lambda x: np.add(x, x, signature="dd->d"),
    "requirements=": lambda x: np.require(x, None, "F"),
    "dtype=": lambda x: np.mean(x, dtype=int),
    "weights": lambda x: np.average(x, weights=x[0]),
    "order=": lambda x: np.sort(x, order="a"),
    "ndmax=": lambda x: np.array(x, ndmax=3),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_taken_is_refused_by_its_name(name):
    with pytest.raises((NbtaError, TypeError), match=name):
        nbta.function(REFUSED[name])(A)


WRONG = {
    "axes": (ValueError, lambda x: np.flip(x, 2)),
    "squeezed": (ValueError, lambda x: np.squeeze(x, 0)),
    "transposed": (ValueError, lambda x: x.transpose(0)),
    "twice": (ValueError, lambda x: x.transpose(1, 1)),
    "unknown": (TypeError, lambda x: np.sum(x, axes=1)),
    "cast": (TypeError, lambda x: x.astype(int, casting="safe")),
    "copied": (ValueError, lambda x: np.array(x, np.float32, copy=False)),
    "apart": (ValueError, lambda x: np.reshape(x.T, (-1,), copy=False)),
    "no loop": (TypeError, lambda x: np.isnan(x, dtype=np.float64)),
    "one axis": (ValueError, lambda x: np.cumsum(x, axis=(0,))),
    "mask": (ValueError, lambda x: np.sum(x[0], where=x > 1)),
    "two names": (ValueError, lambda x: np.var(x, ddof=1, correction=1)),
    "two limits": (ValueError, lambda x: np.linalg.pinv(x, 0.1, rtol=0.1)),
    "joined": (TypeError, lambda x: np.stack([x, x], dtype=int)),
    "one limit": (TypeError, lambda x: np.clip(x, a_min=1)),
    "two sorts of limits": (ValueError, lambda x: np.clip(x, x[0], 2.0, min=1.0)),
    "limit and another": (TypeError, lambda x: np.clip(x, a_min=x[0], max=2.0)),
    "no axis": (TypeError, lambda x: np.linspace(x, 2.0, 3, axis=None)),
    "truth as an axis": (TypeError, lambda x: x.sum(axis=False)),
    "kind of parts": (ValueError, lambda x: np.partition(x, 1, kind="stable")),
    "kind of a method": (ValueError, lambda x: x.argpartition(1, kind="stable")),
    "kind in place": (ValueError, lambda x: x.copy().partition(1, kind="stable")),
    "kind of a sort": (ValueError, lambda x: x.copy().sort(kind="no such")),
    "sorter": (ValueError, lambda x: np.searchsorted(x[0], 1.0, sorter=[0, 1])),
    "one weight": (ValueError, lambda x: np.histogram(x, weights=2.0)),
    "axis twice": (ValueError, lambda x: np.gradient(x, axis=(0, 0))),
    "joined alike": (TypeError, lambda x: np.concatenate([x[0], [1, 2]], casting="no")),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_numpy_refuses_is_an_error(name):
    kind, function = WRONG[name]
    with pytest.raises((TypeError, ValueError)):
        function(A)
    with pytest.raises(kind) as raised:
        nbta.function(function)(A)
    said = "\n".join([str(raised.value), *getattr(raised.value, "__notes__", [])])
    assert f"{Path(__file__).name}:" in said


def test_nothing_is_summed_where_none_says_so():
    def sums(x):
        return [
            np.sum(x, where=None),
            x.sum(where=None),
            np.any(x, where=None),
            np.prod(x, 0, where=None),
        ]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_same(nbta.function(sums)(A), sums(A))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("rcond", [None, -1.0, 0.0, 1e-30, 0.5, 1.0, 2.0])
def test_shares_of_least_squares_are_lapacks(rcond, compiled):
    start = np.array([1.0, 1e-3, 1e-20])

    def shares(x):
        a, share = np.diag(x), rcond if rcond is None else rcond * x[0]
        return [np.linalg.lstsq(a, np.ones(3), rcond=share)[k] for k in (0, 2)]

    assert_same(nbta.function(shares, compiled=compiled)(start), shares(start))


def test_items_that_an_iterator_does_not_have():
    def few(x):
        return np.fromiter((v for v in x if v > 0.0), float, count=3)

    def pairs(x):
        return np.fromiter(zip(x, x, strict=True), float)

    x = np.array([1.0, -1.0, 2.0])
    for f, message in (few, "fewer items than count="), (pairs, "one of the items is a sequence"):
        with pytest.raises(ValueError, match=message):
            nbta.function(f, compiled=False)(x)
