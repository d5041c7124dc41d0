"""SciPy's special functions, written as for arrays, in plain functions."""

import numpy as np
import pytest
from scipy import special as sp

import nbta
from nbta.ops.special.gammas import variate_slope
from nbta.testing import check_grads

X = np.array([[0.3, 0.7, 0.15], [0.9, 0.25, 0.55]])
W = np.array([1.5, 0.5, 2.0])
EDGES = np.array([
    0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 30.0, -40.0, 1e5, np.inf, -np.inf, np.nan, 90.0, 180.0, -3.0,
    1e-310, 2.0**-1024, -5.56e-309, 5.57e-309, 0.999, 1e-9,
])  # fmt: skip

#: What is called with numbers from 0 to 1, by family; "~" before a name says: without a gradient.
FAMILIES = {
    "gamma": {
        "gamma": lambda x: (sp.gamma(x), sp.gamma(x - 2.0)),
        "gammaln": lambda x: (sp.gammaln(x), sp.gammaln(x * 50), sp.loggamma(x)),
        "digamma": lambda x: (sp.digamma(x), sp.psi(-x)),
        "polygamma": lambda x: (sp.polygamma(0, x), sp.polygamma(1, x), sp.polygamma(3, x + 5)),
        "rgamma": lambda x: (sp.rgamma(x), sp.rgamma(x - 3.0), sp.rgamma(-x * 20)),
        "~gammasgn": lambda x: sp.gammasgn(x - 2.0),
        "poch": lambda x: (sp.poch(x, W), sp.poch(2.0, x), sp.poch(x - 3.0, 2.0)),
        "binom": lambda x: (sp.binom(x + 3.0, W), sp.binom(7.0, x), sp.binom(x - 3.0, W)),
        "counts": lambda x: (sp.comb(x + 3.0, W), sp.perm(x + 3.0, W), sp.factorial(x)),
        "~no counts": lambda x: (sp.comb(x, 2.0), sp.perm(x - 1.0, 1.0), sp.factorial(x - 2.0)),
        "multigammaln": lambda x: sp.multigammaln(x[0, 0] + 3.0, 3),
        "zeta": lambda x: (sp.zeta(x + 1.2), sp.zeta(x + 2.0, W), sp.zeta(3.0, x)),
        "zeta below 1": lambda x: sp.zeta(x),
    },
    "beta": {
        "beta": lambda x: (sp.beta(x, W), sp.beta(2.0, x)),
        "betaln": lambda x: (sp.betaln(x, W), sp.betaln(300.0, x)),
        "betainc": lambda x: (sp.betainc(2.0, 3.0, x), sp.betainc(W, 0.5, x)),
        "betaincc": lambda x: (sp.betaincc(2.0, 3.0, x), sp.betaincc(W, 0.5, x)),
        "beta quantiles": lambda x: (sp.betaincinv(2.0, W, x), sp.betainccinv(W, 2.5, x)),
        "gamma quantiles": lambda x: (sp.gammaincinv(W, x), sp.gammainccinv(W, x)),
        "chi squares": lambda x: (sp.chdtr(W, x), sp.chdtrc(3.0, x * 9), sp.chdtri(W, x)),
        "gamma variates": lambda x: (sp.gdtr(2.0, W, x), sp.gdtrc(x, 2.0, W)),
        "gammainc": lambda x: (sp.gammainc(W, x), sp.gammainc(30.0, x * 40)),
        "gammaincc": lambda x: (sp.gammaincc(W, x), sp.gammaincc(30.0, x * 40)),
    },
    "normal": {
        "erf": lambda x: (sp.erf(x), sp.erfc(x * 4)),
        "erfinv": lambda x: (sp.erfinv(x), sp.erfinv(-x), sp.erfcinv(x)),
        "erfcx": lambda x: (sp.erfcx(x), sp.erfcx(x * 100), sp.erfcx(-x)),
        "ndtr": lambda x: (sp.ndtr(x), sp.ndtr(-8 * x)),
        "ndtri": lambda x: (sp.ndtri(x), sp.ndtri(x * 1e-3)),
        "log_ndtr": lambda x: (sp.log_ndtr(x), sp.log_ndtr(-20 * x)),
        "dawsn": lambda x: (sp.dawsn(x), sp.dawsn(-x * 80)),
        "erfi": lambda x: (sp.erfi(x), sp.erfi(-x)),
        "ndtri_exp": lambda x: (sp.ndtri_exp(-x), sp.ndtri_exp(-x * 100)),
        "expit": lambda x: (sp.expit(x), sp.log_expit(x - 0.5)),
        "logit": lambda x: sp.logit(x),
    },
    "logarithms": {
        "xlogy": lambda x: (sp.xlogy(x, W), sp.xlogy(2.0, x)),
        "xlog1py": lambda x: (sp.xlog1py(x, W), sp.xlog1py(W, x)),
        "entr": lambda x: sp.entr(x),
        "rel_entr": lambda x: (sp.rel_entr(x, W), sp.rel_entr(0.4, x)),
        "kl_div": lambda x: (sp.kl_div(x, W), sp.kl_div(0.4, x)),
        "lambertw": lambda x: (sp.lambertw(x).real, sp.lambertw(-x / 3).real),
        "lambertw below": lambda x: sp.lambertw(-x / 3, -1).real,
        "complex lambertw": lambda x: sp.lambertw(x),
    },
    "exponentials": {
        "cosm1": lambda x: (sp.cosm1(x), sp.cosm1(x * 1e-9)),
        "exp10": lambda x: (sp.exp10(x), sp.exp2(x)),
        "exprel": lambda x: (sp.exprel(x), sp.exprel(x * 1e-9), sp.exprel(-x * 50)),
        "spence": lambda x: (sp.spence(x), sp.spence(x + 0.5), sp.spence(x * 9)),
        "wrightomega": lambda x: (sp.wrightomega(x), sp.wrightomega(x * 100)),
        "integrals": lambda x: (sp.exp1(x), sp.expi(x), sp.expi(-x * 9)),
        "expn": lambda x: (sp.expn(0, x), sp.expn(1, x), sp.expn(3, x), sp.expn(2.0, x)),
        "logsumexp": lambda x: (sp.logsumexp(x), sp.logsumexp(x, axis=0, keepdims=True)),
        "logsumexp of factors": lambda x: (sp.logsumexp(x, b=W), sp.logsumexp(x, axis=1, b=x)),
        "logsumexp signed": lambda x: sp.logsumexp(x, b=[1.0, -2.0, 0.0], return_sign=True)[0],
        "~sign": lambda x: sp.logsumexp(x, b=[1.0, -2.0, 0.0], return_sign=True, axis=1)[1],
        "softmax": lambda x: (sp.softmax(x), sp.softmax(x, axis=1)),
        "log_softmax": lambda x: (sp.log_softmax(x), sp.log_softmax(x, axis=0)),
    },
    "powers": {
        "powm1": lambda x: (sp.powm1(x, W), sp.powm1(W, x * 1e-9)),
        "boxcox": lambda x: (sp.boxcox(x, W), sp.boxcox(W, x), sp.boxcox(x, 0.0 * x)),
        "boxcox1p": lambda x: (sp.boxcox1p(x, W), sp.boxcox1p(W, x), sp.boxcox1p(x - 0.9, 0 * x)),
        "inv_boxcox": lambda x: (sp.inv_boxcox(x, W), sp.inv_boxcox(W, x), sp.inv_boxcox(x, 0 * x)),
        "inv_boxcox1p": lambda x: (sp.inv_boxcox1p(x, W), sp.inv_boxcox1p(x - 0.5, x - 0.5)),
        "huber": lambda x: (sp.huber(W, x * 3), sp.huber(x, -W)),
        "pseudo_huber": lambda x: (sp.pseudo_huber(W, x * 3), sp.pseudo_huber(x, -W)),
    },
    "degrees": {
        "sindg": lambda x: (sp.sindg(x * 400), sp.cosdg(x * 400)),
        "tandg": lambda x: (sp.tandg(x * 80), sp.cotdg(x * 80)),
        "radian": lambda x: (sp.radian(x, W, 3.0), sp.radian(10.0, 20.0, x)),
    },
    "second kind": {
        "y": lambda x: (sp.y0(x * 9), sp.y1(x * 9), sp.yn(2, x * 9), sp.yn(0, x), sp.yv(3, x)),
        "k": lambda x: (sp.k0(x), sp.k1(x), sp.kn(2, x), sp.kv(3, x), sp.kv(1, x)),
        "ke": lambda x: (sp.k0e(x * 9), sp.k1e(x * 9), sp.kve(2, x)),
    },
    "bessel": {
        "i": lambda x: (sp.i0(x), sp.i1(x), sp.i0e(x), sp.i1e(-x), np.i0(x)),
        "j": lambda x: (sp.j0(x * 9), sp.j1(x * 9)),
        "orders": lambda x: (sp.jv(3, x), sp.iv(2, x), sp.ive(2, x)),
    },
}  # fmt: skip


def parts(found):
    return list(found) if isinstance(found, list | tuple) else [found]


def all_of(family, x):
    """Every result of a family."""
    return [part for function in family.values() for part in parts(function(x))]


def hold(got, want, rtol):
    assert np.asarray(got).dtype == np.asarray(want).dtype
    assert np.shape(got) == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=rtol)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
def test_values(name, compiled):
    function = nbta.function(lambda x: all_of(FAMILIES[name], x), compiled=compiled)
    for x, rtol in ((X, 1e-15), (X.astype(np.float32), 1e-6)):
        if x.dtype == np.float32 and name in ("logarithms", "beta", "gamma", "powers", "degrees"):
            continue  # the arrays beside are of float64
        for got, want in zip(function(x), all_of(FAMILIES[name], x), strict=True):
            hold(got, want, rtol * 4)


@pytest.mark.parametrize("name", FAMILIES)
def test_gradients(name):
    family = {key: f for key, f in FAMILIES[name].items() if not key.startswith("~")}
    check_grads(lambda x: all_of(family, x), (X,))


def test_no_call_of_python():
    """Of derivatives either, which are of other orders."""
    total = nbta.value_and_grad(
        lambda x: np.sum(sp.gammaln(x) + sp.j0(x) + sp.i1e(x)), compiled=True
    )
    total(X)
    assert "of_reals" in total.source
    assert "operations that run in Python" not in total.explain()


OF_ONE = (
    sp.psi, sp.gammaln, sp.erfinv, sp.erfcinv, sp.erfcx, sp.ndtr, sp.ndtri, sp.log_ndtr, sp.expit,
    sp.logit, sp.log_expit, sp.cosm1, sp.entr, sp.i0, sp.i0e, sp.i1, sp.i1e, sp.j0, sp.j1,
    sp.exprel, sp.rgamma, sp.exp10, sp.spence, sp.wrightomega, sp.exp1, sp.expi, sp.dawsn, sp.erfi,
    sp.ndtri_exp, sp.sindg, sp.cosdg, sp.tandg, sp.cotdg, sp.y0, sp.y1, sp.k0, sp.k1, sp.k0e,
    sp.k1e, sp.gammasgn,
)  # fmt: skip
OF_TWO = (
    sp.xlogy, sp.xlog1py, sp.rel_entr, sp.kl_div, sp.beta, sp.betaln, sp.gammainc, sp.gammaincc,
    sp._ufuncs._zeta, sp.boxcox, sp.boxcox1p, sp.inv_boxcox, sp.inv_boxcox1p, sp.huber,
    sp.chdtr, sp.chdtrc, sp.chdtri, sp.pseudo_huber, sp.powm1, sp.poch, sp.binom, sp.gammaincinv,
    sp.gammainccinv,
)  # fmt: skip


def at_edges(x):
    return [f(x) for f in OF_ONE] + [f(x[:, None], x) for f in OF_TWO]


@pytest.mark.parametrize("compiled", [False, True])
def test_values_at_the_edges(compiled):
    with np.errstate(all="ignore"):
        want = at_edges(EDGES)
    found = nbta.function(at_edges, compiled=compiled)(EDGES)
    for function, got, expected in zip(OF_ONE + OF_TWO, found, want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=2e-15, err_msg=function.__name__)


def slope(function, *values, n=0):
    return nbta.grad(lambda *x: nbta.sum(function(*x)), argnums=n)(*map(np.asarray, values))


def test_gradients_at_the_edges():
    inf, nan = np.inf, np.nan
    same = np.testing.assert_array_equal
    same(slope(nbta.xlogy, [0.0, 0.0], [0.0, 2.0], n=1), [0, 0])
    same(slope(nbta.xlogy, [0.0, 0.0], [0.0, 1.0]), [-inf, 0])
    same(slope(nbta.entr, [0.0, -1.0]), [inf, nan])
    same(slope(nbta.rel_entr, [0.0, 0.0], [0.0, 1.0], n=1), [0, 0])
    same(slope(nbta.logsumexp, [-inf, -inf]), [0, 0])
    same(slope(lambda x: nbta.logsumexp(x, b=[0.0, 1.0]), [inf, 2.0]), [0, 1])
    same(slope(nbta.lambertw, [0.0]), [1])
    same(slope(nbta.lambertw, [-1.0]), [nan])
    same(slope(nbta.logit, [0.0, 1.0]), [inf, inf])
    same(slope(nbta.ndtr, [inf, -inf]), [0, 0])
    same(slope(nbta.log_ndtr, [inf]), [0])
    same(slope(nbta.i0e, [0.0]), [0])
    same(slope(nbta.gammainc, 1.0, [0.0], n=1), [1])
    same(slope(nbta.betainc, 1.0, 2.0, [0.0, 1.0], n=2), [2, 0])
    same(slope(nbta.exprel, [inf, -inf, 0.0]), [inf, 0, 0.5])
    same(slope(nbta.spence, [0.0, 1.0]), [-inf, -1])
    same(slope(nbta.wrightomega, [inf, -inf]), [1, 0])
    same(slope(nbta.rgamma, [0.0, -1.0, -2.0, -5.0, 200.0, inf]), [1, -1, 2, -120, 0, 0])
    same(slope(nbta.boxcox, [0.0, 0.0, 0.0, 2.0], [2.0, 1.0, -1.0, 0.0]), [0, 1, inf, 0.5])
    same(slope(nbta.boxcox, [0.0, 0.0, 0.0], [2.0, 1.0, -1.0], n=1), [0.25, 1, inf])
    same(slope(nbta.boxcox, [-2.0], [3.0]), [nan])
    same(slope(nbta.inv_boxcox, [-0.5, -2.0, -3.0], [2.0, 0.5, 1.0]), [inf, 0, nan])
    same(slope(nbta.inv_boxcox, [-0.5, -2.0], [2.0, 0.5], n=1), [-inf, 0])
    same(slope(nbta.huber, [1.0, 1.0, -1.0, 0.0], [inf, 1.0, 2.0, 3.0], n=1), [1, 1, 0, 0])
    same(slope(nbta.huber, [1.0, 1.0, -1.0, 0.0], [inf, 1.0, 2.0, 3.0]), [inf, 0, 0, 3])
    far = [1.0, 0.0, -1.0, 1e-200], [inf, 1.0, 2.0, 1e200]
    same(slope(nbta.pseudo_huber, *far, n=1), [1, 0, 0, 1e-200])
    same(slope(nbta.pseudo_huber, *far), [inf, 0, 0, 1e200])
    same(slope(nbta.powm1, [0.0, 0.0, 2.0], [0.0, 2.0, 0.0]), [0, 0, 0])
    same(slope(nbta.k0e, [0.0, inf]), [-inf, 0])
    same(slope(nbta.k0, [0.0, 1e3]), [-inf, 0])
    np.testing.assert_allclose(slope(nbta.dawsn, [0.0, inf, 1e9]), [1, 0, -5e-19], rtol=1e-15)
    # -1 / (sqrt(pi) x**2), though 2 x erfcx(x) and 2 / sqrt(pi) have all digits in common
    np.testing.assert_allclose(slope(nbta.erfcx, [1e9]), [-1e-18 / np.sqrt(np.pi)], rtol=1e-15)
    np.testing.assert_allclose(slope(nbta.log_ndtr, [-1e6]), [1e6], rtol=1e-11)
    # I1 at 0 is x / 2 + x**3 / 16 + ...: by orders, the fourth derivative too.
    found = [nbta.i1]
    for expected in (0.5, 0.0, 3 / 8, 0.0, 5 / 16):
        found.append(nbta.grad(found[-1]))
        assert found[-1](np.float64(0.0)) == expected


@pytest.mark.slow
def test_gradients_where_formulas_meet():
    steps = np.array([1.0, 1.19, 1.21, 0.81, 0.79, 0.3])
    for f, x in (
        (nbta.exprel, np.array([0.0, 1e-8, 0.49, 0.51, -0.49, -0.51, 30.0, -30.0])),
        (nbta.spence, steps), (nbta.dawsn, np.array([0.0, 49.9, 50.1, -51.0, 20.0])),
        (nbta.rgamma, np.array([0.49, 0.51, -1.0, -2.5, 4.0])),
    ):  # fmt: skip
        check_grads(f, (x,), rtol=2e-5)
    for f in (nbta.gammaincinv, nbta.gammainccinv):
        check_grads(lambda a, f=f: f(a, 0.3), (steps * 5,))
    for f in (nbta.boxcox, nbta.boxcox1p, nbta.inv_boxcox, nbta.inv_boxcox1p):
        check_grads(f, (steps / 2, np.array([0.0, 1e-9, 0.3, -0.3, 1.0, 0.9])), rtol=2e-5)


@pytest.mark.slow
def test_gradients_over_the_range():
    rng = np.random.default_rng(3)
    a, x = rng.uniform(0.5, 20, 5), rng.uniform(-6, 6, 5)
    unit = rng.uniform(0.02, 0.98, 5)
    for f in (nbta.erfcx, nbta.ndtr, nbta.log_ndtr, nbta.i0e, nbta.i1e, nbta.j0, nbta.j1, nbta.i0):
        check_grads(f, (x,), rtol=1e-5)
    for f in (nbta.exprel, nbta.dawsn, nbta.wrightomega, nbta.expi, nbta.rgamma):
        check_grads(f, (x,), rtol=2e-5)
    for f in (nbta.digamma, nbta.gammaln, nbta.entr, nbta.lambertw):
        check_grads(f, (a,))
    for f in (nbta.y0, nbta.y1, nbta.k0, nbta.k1, nbta.k0e, nbta.k1e, nbta.exp1, nbta.spence):
        check_grads(f, (a,), rtol=2e-5)
    for f in (nbta.poch, nbta.binom, nbta.pseudo_huber, nbta.huber):
        check_grads(f, (a + 3.0, a[::-1] / 3), rtol=2e-5)
    check_grads(nbta.zeta, (a[:2] + 1.0, a[2:4]))
    check_grads(nbta.beta, (a, a[::-1].copy()))
    check_grads(nbta.betaln, (a, a[::-1].copy()))
    check_grads(lambda x: nbta.betainc(a, 2.0, x), (unit,))
    check_grads(lambda x: nbta.gammainc(a, x), (a * unit * 2,))
    check_grads(nbta.gammainc, (a, a * unit * 2))
    check_grads(nbta.gammaincc, (a, a * unit * 2))


#: a, x, -(dP/da) / p and dP/da, of 40 digits by series and quadrature.
ORDER_SLOPES = np.array([
    (0.001, 1e-200, 4.5994144666699882e-195, -290.37075342317919),
    (0.001, 1e-05, 0.10937472778081825, -10.818398299086339),
    (0.001, 0.4, 419.58412371803221, -0.70290016845612756),
    (0.001, 0.6, 497.37423398150627, -0.45497110906011573),
    (0.001, 3.0, 787.91488588308652, -0.013097911478885032),
    (0.05, 1e-20, 9.1107713737162077e-18, -4.6793690053578439),
    (0.05, 0.1, 4.1659141744973374, -1.7254922610573575),
    (0.05, 0.5499, 10.155089585330802, -0.5311630245887071),
    (0.05, 0.5501, 10.15664914888809, -0.53095490695510533),
    (0.05, 4.0, 18.375006147640914, -0.0046315325355630199),
    (0.5, 1e-08, 3.6914341690846384e-7, -0.0020826686857231329),
    (0.5, 0.3, 1.0098019459488546, -0.77057035137535192),
    (0.5, 1.0, 1.8782472817325202, -0.38983726432851058),
    (0.5, 1.1, 1.9605046407197262, -0.35105298132225119),
    (0.5, 20.0, 4.8891717729440829, -1.2713224714768203e-9),
    (1.0, 0.01, 0.05055692236986734, -0.050053872587156755),
    (1.0, 1.0, 1.1735630272247269, -0.4317297106348987),
    (1.0, 1.4999, 1.4308926155422634, -0.31930722758742668),
    (1.0, 1.5001, 1.430982266876197, -0.31926337444383453),
    (1.0, 30.0, 4.0107027853226684, -3.7530644505126665e-13),
    (3.7, 0.001, 0.0022559460146024536, -4.2923040385060265e-12),
    (3.7, 2.0, 0.75635611742816045, -0.15948300756607284),
    (3.7, 4.3, 1.1266996600517167, -0.18814937930049886),
    (3.7, 9.0, 1.5779336905544901, -0.017607157781015402),
    (3.7, 60.0, 3.0806145821249402, -4.0904670387313206e-22),
    (15.9, 0.5, 0.11316564450362428, -2.2574657066030131e-18),
    (15.9, 10.0, 0.79420661405931302, -0.028799796382270506),
    (15.9, 16.3, 1.0231523060173961, -0.098840805225841249),
    (15.9, 16.5, 1.0293779512389546, -0.097639920204909441),
    (15.9, 50.0, 1.6969425156577503, -6.7919868590522349e-9),
    (16.0, 0.5, 0.11263326806979981, -1.5942994577114406e-18),
    (16.0, 10.0, 0.79147527732373281, -0.027478493789090381),
    (16.0, 15.4, 0.99128977150500628, -0.1010128919913856),
    (16.0, 15.6, 0.99774074893227659, -0.10101669517545175),
    (16.0, 50.0, 1.692520490649071, -7.6183390004472913e-9),
    (120.0, 40.0, 0.55003986997675818, -1.8515748003181639e-24),
    (120.0, 100.0, 0.91287345421982914, -0.0060918582145100705),
    (120.0, 119.4, 0.99888237867724058, -0.036480056289208113),
    (120.0, 119.6, 0.99971919739090886, -0.036480079296865655),
    (120.0, 200.0, 1.2788242733356907, -2.1099461588350182e-10),
    (10000.0, 9600.0, 0.9797441965368693, -1.0961527311706699e-6),
    (10000.0, 9999.4, 0.99998666573328379, -0.0039895039233331397),
    (10000.0, 9999.6, 0.99999666623330649, -0.003989503923692234),
    (10000.0, 10000.0, 1.0000166668333238, -0.0039894560494536686),
    (10000.0, 10400.0, 1.0197555369295166, -1.6142448367768301e-6),
    (100000.0, 90000.0, 0.94824622074510343, -2.0861776097988051e-236),
    (100000.0, 99900.0, 0.99950149908461479, -0.0012006003180334229),
    (100000.0, 100000.0, 1.0000016666683333, -0.001261567312316086),
    (100000.0, 100100.0, 1.0005015009179519, -0.0011994802802501906),
    (100000.0, 102000.0, 1.0099356753081834, -3.3482326805747529e-12),
])  # fmt: skip
#: The derivatives of both by a.
ORDER_BENDS = np.array([
    (-4.5993980413380294e-192, 133552.50743333167),
    (-109.35830357573179, 116.70010711471054),
    (-419131.50081571396, -0.51875643979667402),
    (-496760.45354015869, -0.59091092541986794),
    (-786252.12156668985, -0.049569297003486668),
    (-1.8190895600590112e-16, 213.00589957480131),
    (-80.676336175089479, 2.0197891394972943),
    (-192.26776130017757, -0.51346645330808228),
    (-192.29602890671513, -0.51352420373399528),
    (-331.07556593260432, -0.017907484793404331),
    (-7.1959079144054973e-7, 0.038334690358712341),
    (-1.5875238842549952, 0.62614765583991265),
    (-2.6593083139190029, -0.21349996749544507),
    (-2.748035646481117, -0.23068467138063602),
    (-4.5894312349431444, -5.1114146941034202e-9),
    (-0.044226803297962289, 0.24540146163773333),
    (-0.76878225752775028, 0.033618035299959197),
    (-0.88999315170311615, -0.11515161148016296),
    (-0.89003295915999968, -0.11518192471965898),
    (-1.5144484819328814, -1.3514076784547946e-12),
    (-0.00054575700462404099, 3.569835515573079e-11),
    (-0.12200585355192193, 0.10132175211729649),
    (-0.16218768012956453, -0.02775431692468492),
    (-0.20022920288458417, -0.01590239305165259),
    (-0.27131740545546591, -1.1613320766461083e-21),
    (-0.0053521898866351304, 7.8446604480127885e-18),
    (-0.027435119626715446, 0.01343516363554378),
    (-0.032717895669117292, -0.0024358818094615195),
    (-0.032850663110755191, -0.0036033221407153117),
    (-0.044393674740904575, -7.8197432325524435e-9),
    (-0.0052954970510494172, 5.5500368481591422e-18),
    (-0.027192214831833502, 0.012991408749515208),
    (-0.031824876808799229, 0.003914283239676587),
    (-0.031964439456990036, 0.0026041328961348837),
    (-0.04404762079407986, -8.7228824331239022e-9),
    (-0.0027098134687231356, 2.0355591437612736e-24),
    (-0.0039298441442733312, 0.0011114840192489811),
    (-0.0041770597842945497, 0.00018319633240655765),
    (-0.0041793959425995892, 0.00012209946233130073),
    (-0.0048909388473628381, -1.0785486017689771e-10),
    (-4.9322130444905203e-5, 4.4747514586040384e-8),
    (-5.0001499959991714e-5, 2.3938273627485632e-7),
    (-5.0001833329994285e-5, 1.5958800315676672e-7),
    (-5.0002500049997024e-5, 3.3246021083087074e-12),
    (-5.0656184306147859e-5, -6.3312359949422147e-8),
    (-4.8244880390409444e-6, 2.1980093187324071e-237),
    (-4.9983574895446228e-6, 1.2012020297001215e-6),
    (-5.0000250000499997e-6, 1.0513078457461101e-14),
    (-5.0016908438780433e-6, -1.1988819287102753e-6),
    (-5.0330291454906961e-6, -6.6303859099291763e-14),
])  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
def test_derivatives_of_the_incomplete_gamma_function_by_its_order(compiled):
    (a, x, by_density, by_order), (bend, second) = ORDER_SLOPES.T, ORDER_BENDS.T
    lower = nbta.grad(lambda a: nbta.sum(nbta.gammainc(a, x)), compiled=compiled)
    np.testing.assert_allclose(lower(a), by_order, rtol=2e-11)
    upper = nbta.grad(lambda a: nbta.sum(nbta.gammaincc(a, x)), compiled=compiled)
    np.testing.assert_allclose(upper(a), -by_order, rtol=2e-11)
    slope = nbta.function(variate_slope, compiled=compiled)
    np.testing.assert_allclose(slope(a, x), by_density, rtol=1e-12)
    bends = nbta.grad(lambda a: nbta.sum(variate_slope(a, x)), compiled=compiled)
    np.testing.assert_allclose(bends(a), bend, rtol=1e-12)
    seconds = nbta.grad(lambda a: nbta.sum(lower(a)), compiled=compiled)
    terms = np.abs(by_order * (np.log(x) - sp.digamma(a)))  # of which it is a difference
    assert np.all(np.abs(seconds(a) - second) < 2e-11 * (np.abs(second) + terms))
    single = slope(np.float32(2.5), x.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single[1:], slope(2.5, x)[1:], rtol=1e-6)


def test_second_derivatives_of_the_incomplete_gamma_function():
    for f in (nbta.gammainc, nbta.gammaincc):
        one = nbta.grad(nbta.grad(f), argnums=1)(2.0, 1.0)
        other = nbta.grad(nbta.grad(f, argnums=1))(2.0, 1.0)
        np.testing.assert_allclose(one, other, rtol=1e-13)
    check_grads(nbta.grad(nbta.gammainc), (2.0, 1.5), order=1)
    check_grads(lambda x: nbta.grad(nbta.grad(nbta.gammainc))(2.0, x), (1.5,))
    check_grads(variate_slope, (2.0, 1.5), order=1)
    check_grads(lambda x: nbta.grad(variate_slope)(2.0, x), (1.5,), order=1)


@pytest.mark.parametrize("compiled", [False, True])
def test_derivatives_by_order_at_the_edges(compiled):
    a = np.array([1.0, 2.0, 0.0, -1.0, np.nan, 2.0, np.inf, 1e7, 2.0])
    x = np.array([0.0, np.inf, 1.0, 1.0, 1.0, np.nan, 1.0, 1.0, -1.0])
    slope = nbta.grad(lambda a: nbta.sum(nbta.gammainc(a, x)), compiled=compiled)(a)
    nan = np.nan
    np.testing.assert_array_equal(slope, [0, 0, nan, nan, nan, nan, nan, 0, nan])
    first = nbta.grad(lambda a: nbta.sum(nbta.gammainc(a, x)))
    second = nbta.grad(lambda a: nbta.sum(first(a)), compiled=compiled)(a)
    np.testing.assert_array_equal(second, [0, 0, nan, nan, nan, nan, nan, 0, nan])


BELOW = np.array([-0.0, 0.0, -1e-20, -0.05, -0.1, -0.11, 0.5, 1 - 1e-9, -1.0, -2.0, -3.5, -20.0])
EVEN = (-2.0, -20.0, -258.0, -400.0, -1e5)
FAR_BELOW = np.array([-30.5, -171.0, -201.3, -258.0, -400.0, -401.0, -1e5, -np.inf, 1.0, np.nan])


@pytest.mark.parametrize("compiled", [False, True])
def test_zeta_below_1(compiled):
    """Riemann's has values there, zeros at even numbers, and slopes that are not 0 in these."""
    riemann = nbta.function(lambda x: (sp.zeta(x), sp.zeta(x, 1.0)), compiled=compiled)
    for x, rtol in ((BELOW, 2e-14), (FAR_BELOW, 1e-12)):
        found, hurwitz = riemann(x)
        np.testing.assert_allclose(found, sp.zeta(x), rtol=rtol)
        np.testing.assert_array_equal(found[np.isin(x, EVEN)], 0)
        np.testing.assert_allclose(hurwitz, sp.zeta(x, 1.0))
    found = riemann(BELOW.astype(np.float32))[0]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, sp.zeta(BELOW.astype(np.float32)), rtol=3e-7)
    slopes = nbta.grad(lambda x: np.sum(sp.zeta(x)), compiled=compiled)(np.array([0.0, -1.0, -2.0]))
    glaisher = 1.2824271291006226
    expected = [-np.log(2 * np.pi) / 2, 1 / 12 - np.log(glaisher), -sp.zeta(3) / (4 * np.pi**2)]
    np.testing.assert_allclose(slopes, expected, rtol=2e-13)
    check_grads(nbta.zeta, (BELOW[3:7],))
    check_grads(nbta.zeta, (np.array([-1.0, -2.0, -3.5, -12.0]),))


REFUSED = {
    "gammainc": (
        lambda x: nbta.grad(nbta.grad(nbta.grad(lambda a: np.sum(sp.gammainc(a, 1.0)))))(2.0),
        "the order of the gamma distribution \\(third derivative\\): .* to x",
    ),
    "betainc": (lambda x: nbta.grad(lambda b: np.sum(sp.betainc(2.0, b, x)))(x), "betainc: b: "),
    "lambertw": (lambda x: nbta.function(lambda x: sp.lambertw(x, 1))(x), "k: the branch 1"),
    "complex lambertw": (
        lambda x: nbta.function(lambda x: sp.lambertw(x, -1))(x * 0 + 1.0),
        "is complex here",
    ),
    "order": (
        lambda x: nbta.function(lambda x: sp.jv(0.5, x))(x),
        "jv: the order must be .* not 0.5",
    ),
    "polygamma": (
        lambda x: nbta.function(lambda x: sp.polygamma(-1, x))(x),
        "n must be 0 or more, not -1",
    ),
    "complex": (lambda x: nbta.function(lambda x: sp.erfinv(x * 1j))(x), "for real numbers"),
    "exact": (
        lambda x: nbta.function(lambda x: sp.comb(x, 2, exact=True))(x),
        "for Python.s integers",
    ),
    "repetition": (lambda x: nbta.function(lambda x: sp.comb(x, 2, repetition=True))(x), "binom"),
    "extend": (lambda x: nbta.function(lambda x: sp.factorial(x, extend="complex"))(x), "extend="),
    "order of expn": (
        lambda x: nbta.function(lambda x: sp.expn(-1, x))(x),
        "expn: the order must be .* not -1",
    ),
    "quantile": (
        lambda x: nbta.grad(nbta.grad(nbta.grad(lambda a: sp.gammaincinv(a, 0.5))))(x[0, 0]),
        "the order of the gamma distribution \\(third derivative\\): .* to x",
    ),
    "another": (
        lambda x: nbta.function(lambda x: sp.kei(x))(x),
        r"scipy\.special\.kei with .*custom_gradient",
    ),
    "beside": (lambda x: nbta.function(lambda x: sp.zetac(x))(x), r"see nbta\.zeta"),
    "of beta": (lambda x: nbta.function(lambda x: sp.stdtr(3.0, x))(x), r"nbta\.betaincinv"),
    "elliptic": (lambda x: nbta.function(lambda x: sp.ellipk(x))(x), "arithmetic-geometric mean"),
    "polynomials": (lambda x: nbta.function(lambda x: sp.eval_jacobi(2, 1, 1, x))(x), "recurrence"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    function, message = REFUSED[name]
    with pytest.raises(nbta.NbtaError, match=message):
        function(X)


def test_a_fixed_parameter_passes():
    """What nobody differentiates by is no matter."""
    found = nbta.grad(lambda a, x: nbta.sum(nbta.gammainc(a, x)), argnums=1)(W, W)
    np.testing.assert_allclose(found, np.exp((W - 1) * np.log(W) - W - sp.gammaln(W)), rtol=1e-14)
    held = lambda a: nbta.sum(nbta.gammainc(nbta.stop_gradient(a), W) * a)  # noqa: E731
    np.testing.assert_allclose(nbta.grad(held)(W), sp.gammainc(W, W), rtol=1e-14)
