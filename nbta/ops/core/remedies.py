"""What to use in place of functions of NumPy's and SciPy's that there is no operation for."""

_PLACES = (
    "the number of indices is known only in a run, so no shape can hold it: use nbta.where with "
    "the condition, nbta.argmax for the first index, or a loop with `if`"
)
_DIFFERENT = (
    "the number of different items is known only in a run, so no shape can hold it: sort with "
    "nbta.sort and compare neighbours, or count with nbta.bincount and minlength="
)
_LENGTH = (
    "the length of the result is known only in a run, so no shape can hold it: use nbta.where "
    "with a condition"
)
_BETA = "it is made of the incomplete beta function: write it with nbta.betainc or nbta.betaincinv"
_GAMMA = "it is made of the incomplete gamma function: write it with nbta.gammainc or gammaincinv"
_RECURRENCE = (
    "write the recurrence of the polynomials as a loop, or nbta.fori_loop, over their orders"
)
_NODES = "points and weights are constants: give their number as an integer of Python's"
_ELLIPTIC = (
    "write the arithmetic-geometric mean as a loop, whose gradient is exact, or give it a gradient "
    "with nbta.custom_gradient"
)
_SERIES = "sum the series in a loop, or give it a gradient with nbta.custom_gradient"
_INTEGRAL = "give it a gradient with nbta.custom_gradient: the integrand"
_BITS = (
    "take bits with nbta.right_shift and nbta.bitwise_and, and add up what nbta.left_shift gives"
)

#: By the last name of a function.
REMEDIES = {
    name: remedy
    for remedy, names in (
        (_PLACES, "nonzero argwhere flatnonzero"),
        (_DIFFERENT, "unique unique_all unique_counts unique_inverse unique_values"),
        (_LENGTH, "trim_zeros intersect1d union1d setdiff1d setxor1d"),
        ("the result's dtype would depend on values: use nbta.real and nbta.imag", "real_if_close"),
        ("complex numbers have no order: take x[nbta.argsort(x.real)]", "sort_complex"),
        ("index with rows[:, None] and columns, or use nbta.take", "ix_"),
        (_BITS, "packbits unpackbits"),
        ("floats are not taken apart into bits: use nbta.log2 and nbta.floor", "frexp"),
        (_BETA, "bdtr bdtrc bdtri fdtr fdtrc fdtri nbdtr nbdtrc nbdtri stdtr stdtrit"),
        (_GAMMA, "pdtr pdtrc pdtri pdtrik chdtriv gdtria gdtrib gdtrix"),
        (_RECURRENCE, " ".join(
            f"eval_{name} eval_sh_{name}" for name in (
                "legendre", "chebyt", "chebyu", "chebyc", "chebys", "hermite", "hermitenorm",
                "laguerre", "genlaguerre", "gegenbauer", "jacobi",
            )
        )),
        (_NODES, " ".join(
            f"roots_{name} roots_sh_{name}" for name in (
                "legendre", "chebyt", "chebyu", "chebyc", "chebys", "hermite", "hermitenorm",
                "laguerre", "genlaguerre", "gegenbauer", "jacobi",
            )
        )),
        (_ELLIPTIC, "agm ellipk ellipe ellipkm1 ellipkinc ellipeinc ellipj elliprc elliprd elliprf "
                    "elliprg elliprj"),
        (_SERIES, "hyp0f1 hyp1f1 hyp2f1 hyperu"),
        (_INTEGRAL, "sici shichi fresnel modfresnelm modfresnelp itj0y0 iti0k0 itairy struve"),
        ("it is zeta(x) - 1: see nbta.zeta", "zetac"),
        ("use nbta.gamma or nbta.gammaln", "factorial2 factorialk"),
        ("the order is an integer of Python's, from 0 on: see nbta.j0, scipy.special.jv and yn",
         "jve yve hankel1 hankel2 hankel1e hankel2e spherical_jn spherical_yn spherical_in "
         "spherical_kn"),
        ("compare nbta.tril and nbta.triu of the matrix with 0", "bandwidth"),
    )
    for name in names.split()
}  # fmt: skip
