"""Distributions of scipy.stats: values with their edges, and gradients by all parameters."""

import numpy as np
import pytest
import scipy.stats

import nbta

#: Shapes of each distribution; of those in the second table by which there is no derivative here.
SHAPES = {
    "norm": (), "t": (3.5,), "gamma": (2.3,), "beta": (1.7, 2.4), "chi2": (3.2,), "lognorm": (0.8,),
    "expon": (), "uniform": (), "laplace": (), "cauchy": (), "poisson": (2.7,), "binom": (6.0, 0.4),
    "nbinom": (3.5, 0.4),
}  # fmt: skip
#: Functions of incomplete beta functions have no derivative by these shapes.
FIXED = {"t": (1,), "beta": (1, 2), "nbinom": (1,), "binom": (1,)}
DISCRETE = ("poisson", "binom", "nbinom")
METHODS = ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")
CASES = [
    (name, method)
    for name in SHAPES
    for method in (
        ("pmf", "logpmf", "cdf", "sf", "logcdf", "logsf") if name in DISCRETE else METHODS
    )
]
POINTS = np.array([-0.4, 0.0, 0.3, 0.9, 1.0, 1.6, 4.0, np.nan])
SHARES = np.array([-0.1, 0.0, 1e-20, 0.1, 0.5, 0.93, 1.0, 1.2])
COUNTS = np.array([-1.0, 0.0, 1.0, 2.0, 2.5, 6.0, 7.0])


def method_of(name, method):
    def f(x, *parameters):
        return getattr(getattr(scipy.stats, name), method)(x, *parameters)

    return f


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize(("name", "method"), CASES)
def test_values_are_scipys(name, method):
    f = method_of(name, method)
    x = COUNTS if name in DISCRETE else SHARES if method in ("ppf", "isf") else POINTS
    placed = (1.0,) if name in DISCRETE else (0.2, 1.3)
    invalid = () if name in DISCRETE else (0.0, -1.0)
    for more in ((), placed, invalid):
        given = (x, *SHAPES[name], *more)
        with np.errstate(all="ignore"):
            expected = f(*given)
        for compiled in (False, True):
            found = nbta.function(f, compiled=compiled)(*given)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-13)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize(("name", "method"), CASES)
def test_gradients_by_all_parameters(name, method):
    f, step = method_of(name, method), 1e-5
    x = 2.0 if name in DISCRETE else 0.37 if method in ("ppf", "isf") else 0.63
    given = [x, *SHAPES[name], *(() if name in DISCRETE else (0.2, 1.3))]
    density = method in ("pdf", "logpdf", "pmf", "logpmf")
    fixed = () if density and name != "binom" else FIXED.get(name, ())
    for k in range(name in DISCRETE, len(given)):
        if k in fixed:
            continue
        above, below = list(given), list(given)
        above[k] += step
        below[k] -= step
        slope = (f(*above) - f(*below)) / (2 * step)
        for compiled in (False, True):
            found = nbta.grad(f, argnums=k, compiled=compiled)(*given)
            np.testing.assert_allclose(found, slope, rtol=1e-5, atol=1e-7)


def test_counts_that_are_no_integers_are_invalid():
    found = nbta.function(lambda n: scipy.stats.binom.pmf(2.0, n, 0.3))(np.array([4.0, 4.5]))
    np.testing.assert_allclose(found, scipy.stats.binom.pmf(2.0, [4.0, 4.5], 0.3))


def test_slopes_in_the_middle():
    """Where a formula by the incomplete beta function would be 0 times infinity."""
    t, laplace = scipy.stats.t, scipy.stats.laplace
    assert nbta.grad(lambda x: t.cdf(x, 3.0))(0.0) == pytest.approx(t.pdf(0.0, 3.0))
    assert nbta.grad(lambda p: t.ppf(p, 3.0))(0.5) == pytest.approx(1.0 / t.pdf(0.0, 3.0))
    assert nbta.grad(lambda x: laplace.cdf(x))(0.0) == pytest.approx(0.5)


def test_distributions_with_their_parameters():
    x = np.array([0.2, 1.4, 0.7])

    def made_inside(mean, scale):
        return scipy.stats.norm(mean, scale=scale).logpdf(x).sum()

    made_outside = scipy.stats.gamma(2.0, scale=0.5)
    found = nbta.grad(made_inside, argnums=(0, 1))(0.3, 1.2)
    apart = x - 0.3
    np.testing.assert_allclose(found, [(apart / 1.44).sum(), (apart**2 / 1.2**3 - 1 / 1.2).sum()])
    f = nbta.function(lambda x: made_outside.logpdf(x).sum())
    assert f(x) == pytest.approx(made_outside.logpdf(x).sum())


def test_several_variables():
    rng = np.random.default_rng(0)
    root, mean, x = rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=(5, 3))
    cov = root @ root.T + np.eye(3)
    normal, dirichlet = scipy.stats.multivariate_normal, scipy.stats.dirichlet
    frozen, alpha, q = normal(mean, cov), np.array([1.2, 2.0, 0.7]), np.array([0.2, 0.5, 0.3])
    calls = [
        (lambda x, m, c: normal.logpdf(x, m, c), (x, mean, cov)),
        (lambda x, m, c: normal.pdf(x, m, c), (x[0], mean, cov)),
        (lambda x: frozen.logpdf(x), (x,)),
        (lambda x: normal.logpdf(x), (x[:, 0],)),
        (lambda q, a: dirichlet.logpdf(q, a), (q, alpha)),
        (lambda q, a: dirichlet.pdf(q, a), (q[:2], alpha)),
        (lambda q, a: dirichlet.logpdf(q, a), (np.stack([q, q[::-1]], 1), alpha)),
    ]
    for f, given in calls:
        for compiled in (False, True):
            found = nbta.function(f, compiled=compiled)(*given)
            np.testing.assert_allclose(found, f(*given), rtol=1e-12)

    def loss(root, mean):
        return np.sum(normal.logpdf(x, mean, root @ root.T + np.eye(3)))

    nbta.testing.check_grads(loss, (root, mean))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: scipy.stats.norm.entropy(x), nbta.UnimplementedError, r"norm\.entropy .* write"),
        (lambda x: scipy.stats.norm(x).std(), nbta.UnimplementedError, r"norm\.std of values"),
        (lambda x: scipy.stats.levy.pdf(x), nbta.UnimplementedError, r"levy\.pdf of values"),
        (lambda x: scipy.stats.norm.pdf(x, foo=1), TypeError, "no argument 'foo'"),
        (lambda x: scipy.stats.gamma.pdf(x), TypeError, "lacks 'a'"),
        (lambda x: scipy.stats.norm.pdf(x, 0, 1, 2), TypeError, "too many"),
    ],
)
def test_what_there_is_no_formula_for_is_told(call, error, words):
    with pytest.raises(error, match=words):
        nbta.function(call)(1.0)
