"""Give SciPy's optimisers exact derivatives of one model, each those that it asks for.

An epidemic is simulated by an ordinary Numba loop, and its three parameters are fitted to daily
counts: by least squares with the Jacobian of the residuals, and by minimising the sum of squares
with its gradient, its Hessian, or products of its Hessian with vectors.
"""

import sys
from pathlib import Path

import numba
import numpy as np
from scipy.optimize import curve_fit, least_squares, minimize

import nbta

DAYS, NOISE, TRUE = 60, 0.004, np.log([0.5, 0.15, 0.002])


@numba.njit
def epidemic(log_rates):
    """Infected part of a population on each day, by its rates of infection and recovery."""
    infection, recovery, infected = np.exp(log_rates)
    susceptible, result = 1.0 - infected, np.zeros(DAYS)
    for day in range(DAYS):
        result[day] = infected
        for _ in range(10):
            new = 0.1 * infection * susceptible * infected
            susceptible -= new
            infected += new - 0.1 * recovery * infected
    return result


@numba.njit
def loss(log_rates, observed):
    """Half the sum of squared residuals."""
    return 0.5 * np.sum(((epidemic(log_rates) - observed) / NOISE) ** 2)


def main(picture=None):
    """Fit in five ways, print what each needed, and draw it; gives what each found."""
    observed = epidemic(TRUE) + np.random.default_rng(0).normal(0.0, NOISE, DAYS)
    start, paths, found = np.log([0.4, 0.2, 0.01]), {}, {}

    def noted(name, function):
        """The function, which notes where it is called."""
        paths[name] = []
        return lambda p, *args: paths[name].append(p.copy()) or function(p, *args)

    value_and_grad = nbta.value_and_grad(loss, compiled=True)
    jacobian = nbta.jacobian(epidemic, compiled=True)
    hessian = nbta.hessian(loss, compiled=True)

    def product(p, v, observed):
        return nbta.hvp(lambda p: loss(p, observed), p, v)

    def minimised(name, **options):
        function = noted(name, value_and_grad)
        found[name] = minimize(function, start, (observed,), jac=True, **options).x

    minimised("BFGS", method="BFGS")
    minimised("trust-ncg, hessp", method="trust-ncg", hessp=nbta.function(product, compiled=True))
    minimised("trust-exact, hess", method="trust-exact", hess=hessian)
    residuals = noted("least_squares", lambda p: (epidemic(p) - observed) / NOISE)
    found["least_squares"] = least_squares(residuals, start, lambda p: jacobian(p) / NOISE).x
    model = noted("curve_fit", epidemic)
    found["curve_fit"], covariance = curve_fit(
        lambda _, *p: model(np.array(p)), np.arange(DAYS), observed, start,
        np.full(DAYS, NOISE), absolute_sigma=True, jac=lambda _, *p: jacobian(np.array(p)),
    )  # fmt: skip

    for name, p in found.items():
        print(f"{name:18} {np.exp(p).round(5)} after {len(paths[name])} evaluations")
    print(
        f"{'true':18} {np.exp(TRUE)}, errors {np.sqrt(np.diag(covariance)).round(4)} of logarithms"
    )
    if picture:
        draw(picture, paths, found["least_squares"])
    return found, covariance, observed


def draw(picture, paths, best):
    """How far each method is from the best fit after so many evaluations."""
    import matplotlib.pyplot as plt

    with plt.style.context(Path(__file__).with_name("gallery.mplstyle")):
        figure, axes = plt.subplots()
        for name, path in paths.items():
            distances = np.linalg.norm(np.array(path) - best, axis=1)
            style = ".:" if name == "curve_fit" else ".-"  # its path is that of least_squares
            axes.semilogy(np.maximum(distances, 1e-10), style, label=name)
        axes.set(xlabel="evaluation", ylabel="distance to the fit")
        axes.legend()
        figure.savefig(picture, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
