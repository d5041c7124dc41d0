"""Functions of NumPy and SciPy by kind: each with all shapes, axes and settings of its kind.

A case gives results for every combination. Values are the library's, derivatives those of central
differences to second order, forward and reverse, and the compiled gradient is the reference's.
"""

import itertools

import numpy as np
import pytest
import scipy.linalg
import scipy.special
import scipy.stats

import nbta
from nbta.structure import leaves
from nbta.testing import check_grads

RNG = np.random.default_rng(31)


def draw(*shape, low=-1.5, high=1.5):
    return RNG.uniform(low, high, shape)


SHAPES = ((), (2,), (3, 2), (1, 2))
COMPLEX = draw(3, 2) + 1j * draw(3, 2)
SQUARE, STACK = draw(3, 3) + 3.0 * np.eye(3), draw(2, 3, 3) + 3.0 * np.eye(3)


def unary(names, low=-1.5, high=1.5, library=np):
    functions = [getattr(library, name) for name in names.split()]
    given = [draw(*shape, low=low, high=high) for shape in SHAPES]
    return lambda *xs: [f(x) for f in functions for x in xs], given


def binary(names, low=0.3, high=1.7):
    functions = [getattr(np, name) for name in names.split()]
    given = [draw(*shape, low=low, high=high) for shape in SHAPES]
    pairs = [*itertools.permutations(range(len(SHAPES)), 2), (2, 2)]
    return lambda *xs: [f(xs[i], xs[j]) for f in functions for i, j in pairs], given


def of_complex(names):
    functions = [getattr(np, name) for name in names.split()]
    return lambda z: [f(z) for f in functions], [COMPLEX]


def reductions(names, complexes=False):
    functions = [getattr(np, name) for name in names.split()]
    axes = (None, 0, 1, -1, (0, 1))
    kinds = [{"axis": axis, "keepdims": keep} for axis in axes for keep in (False, True)]
    given = [draw(3, 4, low=0.4)] + ([COMPLEX] if complexes else [])
    return lambda *xs: [f(x, **kind) for f in functions for kind in kinds for x in xs], given


def along(names, **options):
    functions = [getattr(np, name) for name in names.split()]
    return (
        lambda x, y: [f(v, axis=axis, **options) for f in functions for v in (x, y)
                      for axis in range(-1, v.ndim)],
        [draw(4, 3, low=0.4), draw(2, 3, 2, low=0.4)],
    )  # fmt: skip


RANKS = [draw(3), draw(3, 3), draw(2, 3, 3)]


def products(function):
    pairs = [(i, j) for i in range(3) for j in range(3)]
    return lambda *xs: [function(xs[i], xs[j]) for i, j in pairs], RANKS


def einsums():
    forms = [
        "ij,jk->ik", "ij,jk", "ij,kj->ik", "ij->ji", "ij->i", "ii->", "ii->i", "ij,ij->",
        "ij,k->ijk",
    ]  # fmt: skip

    def run(a, b, v, t):
        two = {"ij,k->ijk": v}
        found = [np.einsum(form, a, two.get(form, b)) if "," in form else np.einsum(form, a)
                 for form in forms]  # fmt: skip
        return [
            *found,
            np.einsum("bij,bjk,k->bi", t, t, v),
            np.einsum(a, [0, 1], b, [1, 2], [0, 2]),
        ]

    return run, [draw(3, 3), draw(3, 3), draw(3), draw(2, 3, 3)]


def joins(x, y):
    return [
        np.concatenate([x, y]), np.concatenate((x, y[:1]), axis=0), np.concatenate([x.T, y.T], 1),
        np.vstack([x, y[0]]), np.hstack((x, x[:, :1])), np.dstack([x, x]),
        np.stack([x, x], axis=-1),
        np.column_stack([x[:, 0], x]), np.append(x, y), np.append(x, y, axis=0),
        np.tile(x, (2, 1, 2)),
        np.repeat(x, 2, axis=1), np.repeat(x, 3), np.block([[x, x], [y[:2], y[:2]]]),
        *np.split(y, 3), *np.array_split(x, 2, axis=1), *np.hsplit(x, 3),
        *np.meshgrid(x[0], y[:, 0]),
    ]  # fmt: skip


def arrangements(x, t):
    return [
        x.T, np.transpose(t, (2, 0, 1)), np.swapaxes(t, 0, 2), np.moveaxis(t, 0, -1),
        np.rollaxis(t, 2), np.roll(x, 1), np.roll(t, (1, 2), (0, 1)), np.flip(t), np.flip(t, 1),
        np.fliplr(x), np.flipud(x), np.rot90(x), np.reshape(t, (3, -1)), np.ravel(x, order="F"),
        np.expand_dims(x, 1), np.squeeze(x[:1]), np.broadcast_to(x, (2, *x.shape)),
        np.pad(x, ((1, 0), (0, 2))), np.pad(x, 1, mode="edge"), np.pad(x, 1, mode="reflect"),
        np.tril(x), np.triu(x, 1), np.diag(x), np.diag(x[0], 1), np.diagonal(t, 0, 1, 2),
        np.trace(x, 1), np.trace(t, 0, 1, 2), np.atleast_3d(x), np.where(x > 0, x, x**2),
    ]  # fmt: skip


def items(x, t):
    rows, mask = np.array([2, 0, 2]), np.array([True, False, True])
    return [
        x[1], x[-1, 2], x[::2], x[::-1, 1:], x[..., None], x[rows], x[rows, rows], x[:, [0, 2]],
        x[mask], x[:, mask], t[0, rows], t[:, rows, 1], t[..., [0, 1]], x[np.ix_([0, 2], [1, 2])],
        np.take(x, rows, axis=1), np.take_along_axis(x, rows[None], 0),
        np.compress(mask, x, axis=0),
        np.extract(np.eye(3) > 0, x), np.delete(x, 1, 0), np.insert(x, 1, 2.0, axis=1),
        np.sort(x, 0), np.sort(t, None), np.partition(x, 1, axis=1), np.max(x, 1),
        np.min(t, (0, 2)),
        np.median(x, 0), np.percentile(x, [20.0, 70.0], axis=1), np.clip(x, -0.5, 0.8),
    ]  # fmt: skip


def norms(x, t):
    orders = (None, "fro", 1, -1, 2, np.inf, -np.inf, "nuc")
    vectors = (None, 1, 2, 3, 0.5, np.inf, -np.inf)
    return [
        *(np.linalg.norm(x, order) for order in orders),
        *(np.linalg.norm(t, order, axis=(1, 2)) for order in (None, 1, 2)),
        *(np.linalg.norm(x[0], order) for order in vectors),
        *(np.linalg.norm(t, order, axis=axis) for order in (None, 1, 3) for axis in (0, -1)),
    ]


def solving(a, s, b):
    return [
        np.linalg.inv(a), np.linalg.inv(s), np.linalg.det(a), np.linalg.det(s),
        np.linalg.slogdet(a)[1], np.linalg.slogdet(s)[1], np.linalg.solve(a, b),
        np.linalg.solve(s, b), np.linalg.solve(a, b[:, 0]), np.linalg.pinv(a[:, :2]),
        np.linalg.matrix_power(a, 3), np.linalg.matrix_power(a, -2),
        np.linalg.lstsq(a[:, :2], b)[0],
        scipy.linalg.solve_triangular(a, b, lower=True),
        scipy.linalg.solve_triangular(a, b, trans=1),
        scipy.linalg.expm(0.3 * a), np.linalg.multi_dot([a, a, b]),
    ]  # fmt: skip


def factors(a, s):
    found = []
    for m in (a, s):
        sym = (m + np.swapaxes(m, -1, -2)) / 2
        pos = m @ np.swapaxes(m, -1, -2) + np.eye(3)
        w, v = np.linalg.eigh(sym)
        u, d, vt = np.linalg.svd(m[..., :2], full_matrices=False)
        q, r = np.linalg.qr(m)
        found += [w, v**2, np.linalg.eigvalsh(sym), np.linalg.cholesky(pos), d, u**2, vt**2]
        found += [np.linalg.svd(m, compute_uv=False), q @ r, np.abs(r)]
    return found


def transforms(x, z):
    real, several = [np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.ihfft], [np.fft.fft2, np.fft.fftn]
    found = [f(x, n=n, axis=axis, norm=norm) for f in real for n in (None, 3, 6) for axis in (0, -1)
             for norm in (None, "ortho")]  # fmt: skip
    found += [f(z, n=n, axis=axis) for f in (np.fft.irfft, np.fft.hfft, np.fft.ifft)
              for n in (None, 5) for axis in (0, -1)]  # fmt: skip
    found += [f(x, s, axes) for f in (*several, np.fft.ifft2, np.fft.rfft2) for s in (None, (3, 6))
              for axes in ((0, 1), (1, 0))]  # fmt: skip
    return [*found, np.fft.irfftn(z), np.fft.fftshift(x), np.fft.ifftshift(x, axes=1)]


def densities(x, scale):
    s, positive = scipy.stats, np.exp(x)
    return [
        s.norm.pdf(x, 0.2, scale), s.norm.logpdf(x, x**2, scale), s.norm.cdf(x, scale=scale),
        s.norm.logcdf(x), s.norm.sf(x, 0.1), s.t.logpdf(x, 3.0, 0.1, scale), s.t.cdf(x, 4.0),
        s.gamma.logpdf(positive, 2.0 * scale), s.gamma.cdf(positive, 2.5),
        s.chi2.logpdf(positive, 3),
        s.beta.logpdf(1 / (1 + positive), scale + 1, 2.0), s.lognorm.logpdf(positive, scale),
        s.expon.logpdf(positive, scale=scale), s.laplace.logpdf(x, 0.1, scale),
        s.cauchy.logpdf(x, 0.2, scale), s.poisson.logpmf(3, positive),
        s.binom.logpmf(2, 5, 1 / (1 + positive)),
        s.multivariate_normal.logpdf(x[:2], x[1:3], np.eye(2) * scale),
    ]  # fmt: skip


CASES = {
    "smooth": unary("exp expm1 sin cos tan sinh cosh tanh arctan arcsinh square exp2 sinc"),
    "with kinks": unary("abs fabs sign floor ceil rint trunc negative deg2rad rad2deg"),
    "of positive numbers": unary("log log2 log10 log1p sqrt cbrt", 0.2),
    "between -1 and 1": unary("arcsin arccos arctanh", -0.8, 0.8),
    "above 1": unary("arccosh", 1.2, 3.0),
    "special": unary("erf erfc expit ndtr log_ndtr j0 j1 i0 i1 dawsn", 0.2, 1.5, scipy.special),
    "gamma functions": unary("gamma gammaln psi rgamma", 0.6, 2.5, scipy.special),
    "two arguments": binary("add subtract multiply divide power hypot arctan2"),
    "two, with kinks": binary("maximum minimum fmax fmin mod logaddexp logaddexp2"),
    "complex": of_complex("exp sin cos tanh square sqrt log conj real imag abs angle"),
    "sums": reductions("sum mean prod", complexes=True),
    "spreads": reductions("var std max min"),
    "running": along("cumsum cumprod diff"),
    "dot": products(np.dot),
    "inner": products(np.inner),
    "outer": products(np.outer),
    "matmul": products(np.matmul),
    "tensordot": (
        lambda a, t: [np.tensordot(t, t, k) for k in (1, 2, 3)]
        + [np.tensordot(a, t, ([1], [2])), np.tensordot(t, a, ((1, 2), (0, 1)))],
        [draw(3, 3), draw(3, 3, 3)],
    ),
    "kron": (lambda a, v: [np.kron(a, a), np.kron(v, a), np.kron(v, v)], [draw(2, 2), draw(2)]),
    "cross": (lambda a, b: [np.cross(a, b), np.cross(a[0], b)], [draw(2, 3), draw(2, 3)]),
    "einsum": einsums(),
    "joins": (joins, [draw(2, 3), draw(3, 3)]),
    "arrangements": (arrangements, [draw(3, 3), draw(2, 3, 2)]),
    "items": (items, [draw(3, 3), draw(2, 3, 3)]),
    "norms": (norms, [draw(3, 3), draw(2, 3, 2)]),
    "solving": (solving, [SQUARE, STACK, draw(3, 2)]),
    "factors": (factors, [SQUARE, STACK]),
    "transforms": (transforms, [draw(4, 5), draw(4, 3) + 1j * draw(4, 3)]),
    "densities": (densities, [draw(4), np.array(0.7)]),
    "logsumexp": (
        lambda x: [scipy.special.logsumexp(x, axis=a, keepdims=k, b=b) for a in (None, 0, 1)
                   for k in (False, True) for b in (None, 2.0)]
        + [scipy.special.softmax(x, axis=0), scipy.special.log_softmax(x, axis=1)],
        [draw(3, 4)],
    ),
}  # fmt: skip


def loss(function):
    """A sum in which no part of any result cancels another."""

    def total(*args):
        parts = [np.asarray(part) for part in leaves(list(function(*args)))]
        found = 0.0
        for place, part in enumerate(parts):
            weights = np.cos(np.arange(part.size) + place).reshape(part.shape)
            found = found + np.sum(weights * np.real(part)) + 0.5 * np.sum(weights * np.imag(part))
        return found

    return total


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", CASES)
def test_values_are_the_librarys(kind, compiled):
    function, args = CASES[kind]
    found = nbta.function(lambda *xs: tuple(function(*xs)), compiled=compiled)(*args)
    wanted = function(*args)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert (np.shape(one), np.asarray(one).dtype) == (np.shape(other), np.asarray(other).dtype)
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("kind", CASES)
def test_gradients_are_the_differences(kind):
    function, args = CASES[kind]
    check_grads(loss(function), args, order=1, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CASES)
def test_second_derivatives_are_the_differences(kind):
    function, args = CASES[kind]
    total = loss(function)
    ways = [np.cos(np.arange(np.size(x)) + k).reshape(np.shape(x)) for k, x in enumerate(args)]

    def slope(*xs):
        parts = nbta.grad(total, argnums=tuple(range(len(xs))))(*xs)
        return sum(np.sum(np.real(part * way)) for part, way in zip(parts, ways, strict=True))

    check_grads(slope, args, order=1, modes=("forward",), rtol=1e-5, atol=1e-5)


@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize("kind", CASES)
def test_compiled_gradients_are_those_of_the_reference(kind):
    function, args = CASES[kind]
    argnums = tuple(range(len(args)))
    found = [nbta.grad(loss(function), argnums, compiled=compiled)(*args)
             for compiled in (False, True)]  # fmt: skip
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
