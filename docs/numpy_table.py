"""Which of NumPy's and SciPy's functions take values that only a run knows, by calling each.

``python docs/numpy_table.py`` writes the tables of ``numpy_functions.md`` anew. Each function is
called in one that nbta traces, with one sample of arguments after another until one is taken, and
must give what the library gives; its gradient must be the central difference. So what the page
says is so.
"""

import inspect
import warnings
from pathlib import Path

import numpy as np
import scipy.linalg
import scipy.special

import nbta
from nbta.structure import leaves

PAGE = Path(__file__).with_name("numpy_functions.md")
NAMESPACES = {
    "numpy": np, "numpy.linalg": np.linalg, "numpy.fft": np.fft, "scipy.linalg": scipy.linalg,
    "scipy.special": scipy.special,
}  # fmt: skip
GRADIENT, VALUE, REFUSED = "value and gradient", "value alone", "refused"
#: What has nothing to do with values of arrays: files, texts, dtypes, settings, memory.
ELSEWHERE = {
    "numpy": """
        array2string array_repr array_str array_equal array_equiv asarray_chkfinite asmatrix
        base_repr binary_repr bmat broadcast_shapes busday_count busday_offset can_cast common_type
        datetime_as_string datetime_data einsum_path format_float_positional
        format_float_scientific from_dlpack frombuffer fromfile fromfunction fromiter frompyfunc
        fromregex fromstring genfromtxt get_include get_printoptions getbufsize geterr geterrcall
        info is_busday isdtype isfortran isnat issubdtype iterable load loadtxt mask_indices matrix
        may_share_memory min_scalar_type mintypecode nested_iters printoptions promote_types
        result_type save
        savetxt savez savez_compressed set_printoptions setbufsize seterr seterrcall shares_memory
        show_config show_runtime test typename""",
    "numpy.linalg": "test",
    "numpy.fft": "test",
    "scipy.linalg": "find_best_blas_type get_blas_funcs get_lapack_funcs test",
    "scipy.special": "geterr seterr test",
}

X = np.array([0.4, 0.2, 0.7, 0.3])
N = np.array([5, 3, 4, 6])
M = np.diag([2.0, 3.0, 4.0, 5.0]) + np.add.outer(X, X) / 4  # positive definite
for _array in (X, N, M):
    _array.setflags(write=False)
#: Values to trace, and calls with them, by how many arguments are given, tried in this order.
GENERAL = {
    1: [(X, lambda f, x: f(x)), (M, lambda f, m: f(m)), (X, lambda f, x: f([x, 2 * x])),
        (N, lambda f, n: f(n)), (X > 0.3, lambda f, t: f(t)), (X + 0.5j, lambda f, z: f(z))],
    2: [(X, lambda f, x: f(x, x[::-1])), (M, lambda f, m: f(m, m)), (M, lambda f, m: f(m, X)),
        (X, lambda f, x: f(x, 2)), (X, lambda f, x: f(2, x)), (N, lambda f, n: f(n, n[::-1])),
        (X > 0.3, lambda f, t: f(t, ~t))],
    3: [(X, lambda f, x: f(2.0, 3.0, x)), (X, lambda f, x: f(x, 2, 3))],
    4: [(X, lambda f, x: f(2.0, 3.0, 1.5, x))],
}  # fmt: skip


def changing(*rest):
    """A call that changes its argument: the function of a copy."""

    def call(f, x):
        y = x.copy()
        f(y, *rest)
        return y

    return call


#: Of functions that need arguments of their own.
SAMPLES = {
    "apply_along_axis": (M, lambda f, m: f(np.sum, 0, m)),
    "astype": (X, lambda f, x: f(x, np.complex128)),
    "arange": (X, lambda f, x: f(x.shape[0]) * x),
    "apply_over_axes": (M, lambda f, m: f(np.sum, m, [0])),
    "block": (M, lambda f, m: f([[m, m], [m, m]])),
    "bincount": (N, lambda f, n: f(n, minlength=8)),
    "broadcast_arrays": (X, lambda f, x: f(x, M)),
    "broadcast_to": (X, lambda f, x: f(x, (3, 4))),
    "choose": (X, lambda f, x: f([0, 1, 1, 0], [x, 2 * x])),
    "cho_factor": (M, lambda f, m: np.triu(f(m)[0])),
    "cho_solve": (M, lambda f, m: f(scipy.linalg.cho_factor(m), X)),
    "compress": (X, lambda f, x: f([True, False, True, True], x)),
    "copyto": (X, changing(2.0)),
    "cross": (M, lambda f, m: f(m[0, :3], m[1, :3])),
    "delete": (X, lambda f, x: f(x, 1)),
    "digitize": (X, lambda f, x: f(x, [0.1, 0.35, 0.6])),
    "eigh": (M, lambda f, m: f(m)[0]),
    "eye": (X, lambda f, x: f(x.shape[0])), "identity": (X, lambda f, x: f(x.shape[0])),
    "einsum": (X, lambda f, x: f("i,i->", x, x)),
    "extract": (X, lambda f, x: f([True, False, True, True], x)),
    "fill_diagonal": (M, changing(2.0)),
    "diag_indices": (X, lambda f, x: f(x.shape[0])),
    "fftfreq": (X, lambda f, x: f(5, x[0])), "rfftfreq": (X, lambda f, x: f(5, x[0])),
    "irfft2": (M, lambda f, m: f(m)), "irfftn": (M, lambda f, m: f(m)),
    "full": (X, lambda f, x: f(3, x[0])),
    "full_like": (X, lambda f, x: f(x, 2.0)),
    "geomspace": (X, lambda f, x: f(x[0], 2.0, 5)),
    "histogram": (X, lambda f, x: f(x, [0.0, 0.3, 0.6, 1.0])),
    "insert": (X, lambda f, x: f(x, 1, x[0])),
    "interp": (X, lambda f, x: f(x, [0.0, 0.45, 1.0], [1.0, 3.0, 2.0])),
    "histogram2d": (X, lambda f, x: f(X, X[::-1], 2, weights=x)[0]),
    "histogramdd": (X, lambda f, x: f([X, X[::-1]], 2, weights=x)[0]),
    "indices": (X, lambda f, x: f(x.shape)),
    "isin": (N, lambda f, n: f(n, [3, 4])),
    "ix_": (N, lambda f, n: f(n, n)),
    "linspace": (X, lambda f, x: f(x[0], 2.0, 5)),
    "logspace": (X, lambda f, x: f(x[0], 2.0, 5)),
    "lu_solve": (M, lambda f, m: f(scipy.linalg.lu_factor(m), X)),
    "moveaxis": (M, lambda f, m: f(m, 0, 1)),
    "multi_dot": (M, lambda f, m: f([m, m, m])),
    "ones": (X, lambda f, x: f(x.shape)), "zeros": (X, lambda f, x: f(x.shape)),
    "empty": (X, lambda f, x: f(x.shape).shape), "empty_like": (X, lambda f, x: f(x).shape),
    "expand_dims": (X, lambda f, x: f(x, 0)),
    "diagonal": (M, lambda f, m: f(m)),
    "dsplit": (M, lambda f, m: f(m.reshape(2, 2, 4), 2)), "vsplit": (M, lambda f, m: f(m, 2)),
    "matrix_norm": (M, lambda f, m: f(m)), "matrix_power": (M, lambda f, m: f(m, 3)),
    "matvec": (M, lambda f, m: f(m, X)), "vecmat": (M, lambda f, m: f(X, m)),
    # Of (x, x[::-1]) the solution is a unit vector, whatever x is.
    "solve_toeplitz": (X, lambda f, x: f(x, M[0])),
    "searchsorted": (np.sort(X), lambda f, x: f(x, [0.2, 0.4])),
    "sort_complex": (X + 0.5j, lambda f, z: f(z)),
    "tri": (X, lambda f, x: f(x.shape[0])),
    "tril_indices": (X, lambda f, x: f(x.shape[0])),
    "triu_indices": (X, lambda f, x: f(x.shape[0])),
    **{
        name: (X, lambda f, x: f(x.shape[0]) * x)
        for name in ("bartlett", "blackman", "hamming", "hanning")
    },
    "kaiser": (X, lambda f, x: f(x.shape[0], 2.0) * x),
    **{
        name: (X, lambda f, x: f(x.shape[0]) @ x)
        for name in ("dft", "hadamard", "helmert", "hilbert", "invhilbert", "invpascal", "pascal")
    },
    "solve_triangular": (M, lambda f, m: f(m, X)),
    "toeplitz": (X, lambda f, x: f(x)), "circulant": (X, lambda f, x: f(x)),
    "trace": (M, lambda f, m: f(m)), "vector_norm": (X, lambda f, x: f(x)),
    "pad": (X, lambda f, x: f(x, 2)),
    "percentile": (X, lambda f, x: f(x, 30)),
    "nanpercentile": (X, lambda f, x: f(x, 30)),
    "piecewise": (X, lambda f, x: f(x, [x > 0.25], [np.sin, 2.0])),
    "place": (X, changing([True, False, True, True], [1.0, 2.0])),
    "polyfit": (X, lambda f, x: f(X, x, 1)),
    "put": (X, changing([0, 2], [5.0, 6.0])),
    "put_along_axis": (X, changing(np.array([0, 2]), np.array([5.0, 6.0]), 0)),
    "putmask": (X, changing([True, False, True, True], [1.0, 2.0, 3.0, 4.0])),
    "quantile": (X, lambda f, x: f(x, 0.3)),
    "nanquantile": (X, lambda f, x: f(x, 0.3)),
    "ravel_multi_index": (N, lambda f, n: f((n, n), (7, 7))),
    "repeat": (X, lambda f, x: f(x, 2)),
    "reshape": (X, lambda f, x: f(x, (2, 2))),
    "resize": (X, lambda f, x: f(x, 6)),
    "roll": (X, lambda f, x: f(x, 1)),
    "rollaxis": (M, lambda f, m: f(m, 1)),
    "select": (X, lambda f, x: f([x > 0.5, x > 0.25], [x, 2 * x])),
    "solve_banded": (M, lambda f, m: f((1, 1), m[:3], X)),
    "split": (X, lambda f, x: f(x, 2)),
    "swapaxes": (M, lambda f, m: f(m, 0, 1)),
    "take": (X, lambda f, x: f(x, [0, 2])),
    "take_along_axis": (X, lambda f, x: f(x, np.array([0, 2]), 0)),
    "tensorinv": (M, lambda f, m: f(m.reshape(2, 2, 2, 2))), "poly": (X, lambda f, x: f(x)),
    "tensordot": (M, lambda f, m: f(m, m, axes=1)),
    "companion": (X, lambda f, x: f(x)), "hankel": (X, lambda f, x: f(x)),
    "convolution_matrix": (X, lambda f, x: f(x, 3)), "diagsvd": (X, lambda f, x: f(x, 4, 5)),
    "leslie": (X, lambda f, x: f(x, x[1:])),
    "eigh_tridiagonal": (X, lambda f, x: f(x, x[1:])[0]),
    "eigvalsh_tridiagonal": (X, lambda f, x: f(x, x[1:])),
    "expm_frechet": (M, lambda f, m: f(m / 9, m)),
    "solve_discrete_lyapunov": (M, lambda f, m: f(m / 9, m)),
    "solve_sylvester": (M, lambda f, m: f(m, m, m)),
    "solveh_banded": (X, lambda f, x: f(np.stack([x / 9, x + 1]), x)),
    "tensorsolve": (M, lambda f, m: f(m.reshape(2, 2, 2, 2), X.reshape(2, 2))),
    "tile": (X, lambda f, x: f(x, 2)),
    "unravel_index": (N, lambda f, n: f(n, (3, 4))),
    "unwrap": (X, lambda f, x: f(9 * x)),
    "vander": (X, lambda f, x: f(x, 3)),
    "where": (X, lambda f, x: f(x > 0.25, x, 2.0)),
    "acosh": (X, lambda f, x: f(x + 1)), "arccosh": (X, lambda f, x: f(x + 1)),
}  # fmt: skip


def functions(namespace) -> dict:
    """The public functions of a namespace that are about values, by name."""
    home, elsewhere = NAMESPACES[namespace], ELSEWHERE[namespace].split()
    names = getattr(home, "__all__", dir(home))
    found = {name: getattr(home, name) for name in sorted(names) if name[0] != "_"}
    return {
        name: f for name, f in found.items()
        if callable(f) and not isinstance(f, type) and name not in elsewhere
    }  # fmt: skip


def status(name, function):
    """What a function is good for with traced values.

    Raises
    ------
    AssertionError
        If it gives something else than the library, or another gradient than the difference.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        taken = (_tried(function, *sample) for sample in _samples(name, function))
        return next((found for found in taken if found is not None), REFUSED)


def _samples(name, function):
    if name in SAMPLES:
        return [SAMPLES[name]]
    return GENERAL.get(function.nin if isinstance(function, np.ufunc) else _needed(function), [])


def _needed(function):
    """How many arguments a function must be given, at least one."""
    try:
        given = inspect.signature(function).parameters.values()
    except ValueError:  # it says nothing
        return 1
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return max(1, sum(p.kind in places and p.default is p.empty for p in given))


def _tried(function, start, call):
    """The status by one sample; None where it is not taken."""
    try:
        wanted = call(function, start)
        found = nbta.function(lambda x: call(function, x), compiled=False)(start)
    except Exception:  # the library's or nbta's
        return None
    _compare(found, wanted)
    inexact = start.dtype.kind == "f" and any(map(_is_real, leaves(wanted)))
    return GRADIENT if inexact and _has_gradient(function, start, call) else VALUE


def _is_real(value):
    return np.asarray(value).dtype.kind in "fc"


def _compare(found, wanted):
    found, wanted = leaves(_plain(found)), leaves(_plain(wanted))
    assert len(found) == len(wanted), "another number of results"
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def _plain(found):
    """A result whose parts are in plain tuples."""
    return tuple(map(_plain, found)) if isinstance(found, list | tuple) else found


def _has_gradient(function, start, call):
    """Whether there is a gradient that is not 0, which is the central difference then."""

    def total(x):
        parts = [part for part in leaves(_plain(call(function, x))) if _is_real(part)]
        return sum(np.sum(_weighted(part)) for part in parts)

    try:
        slope = nbta.grad(total, compiled=False)(start)
    except Exception:  # there is none, says nbta
        return False
    way = np.cos(np.arange(start.size)).reshape(start.shape) * 1e-6
    way = way + way.T  # some functions take symmetric matrices
    ends = [total(start + sign * way) for sign in (1, -1)]
    np.testing.assert_allclose(np.sum(slope * way), (ends[0] - ends[1]) / 2, rtol=1e-4, atol=1e-11)
    return bool(np.any(slope))


def _weighted(part):
    """Its items, each in a share of its own, so that nothing cancels out."""
    part = np.asarray(part)
    part = np.real(part) + 0.5 * np.imag(part) if part.dtype.kind == "c" else part
    return np.cos(np.arange(part.size) + 1.0) * np.ravel(part)


def table(namespace) -> dict:
    """Names of functions by their status."""
    found = {kind: [] for kind in (GRADIENT, VALUE, REFUSED)}
    for name, function in functions(namespace).items():
        found[status(name, function)].append(name)
    return found


def page() -> str:
    """The text of the page, with the tables made anew."""
    text = PAGE.read_text(encoding="utf-8").partition("\n## ")[0]
    for namespace in NAMESPACES:
        rows = [f"| {kind} | {' '.join(names)} |" for kind, names in table(namespace).items()]
        text += "\n".join([f"\n## {namespace}\n", "| | functions |", "| --- | --- |", *rows, ""])
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
