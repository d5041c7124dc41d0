"""Draw from a curved distribution by Hamiltonian Monte Carlo, compiled as one function.

The sampler is plain Python: a loop over draws, around one of leapfrog steps that calls `nbta.grad`
of the log-density. `nbta.function` compiles all of it, gradient included.
"""

import sys
from pathlib import Path

import numpy as np

import nbta

CURVATURE = 0.5


def log_density(x):
    """A banana: x[0] is normal, and x[1] is normal around a parabola of it."""
    return -0.5 * (x[0] ** 2 + (x[1] - CURVATURE * (x[0] ** 2 - 1.0)) ** 2)


def sample(start, momenta, uniforms, step, leaps):
    """The draws, and the share of proposals that were accepted."""
    slope = nbta.grad(log_density)
    x, accepted = start, 0
    draws = np.zeros(momenta.shape)
    for k in range(len(momenta)):
        p = momenta[k]
        energy = 0.5 * np.sum(p**2) - log_density(x)
        new = x
        for _ in range(leaps):
            p = p + 0.5 * step * slope(new)
            new = new + step * p
            p = p + 0.5 * step * slope(new)
        change = energy - (0.5 * np.sum(p**2) - log_density(new))
        if np.log(uniforms[k]) < change:
            x = new
            accepted += 1
        draws[k] = x
    return draws, accepted / len(momenta)


def main(picture=None):
    """Draw, print moments next to the exact ones, and draw a picture."""
    generator = np.random.default_rng(0)
    n = 20000
    momenta, uniforms = generator.normal(size=(n, 2)), generator.uniform(size=n)
    draws, share = nbta.function(sample)(np.zeros(2), momenta, uniforms, 0.25, 8)
    print(f"{n} draws, {share:.1%} of the proposals accepted")
    print(f"means     {draws.mean(0).round(3)}, exactly [0 0]")
    print(f"variances {draws.var(0).round(3)}, exactly [1 {1 + 2 * CURVATURE**2}]")
    if picture:
        draw(picture, draws)
    return draws


def draw(picture, draws):
    """The first draws as a path, and some of them over the contours of the density."""
    import matplotlib.pyplot as plt

    a, b = np.meshgrid(np.linspace(-3.5, 3.5, 40), np.linspace(-6.0, 6.0, 40))
    with plt.style.context(Path(__file__).with_name("gallery.mplstyle")):
        figure, (left, right) = plt.subplots(1, 2)
        levels = np.array([-4.5, -2.0, -0.5])  # three, two and one standard deviations
        for axes in (left, right):
            axes.contour(a, b, log_density(np.array([a, b])), levels, colors="C0", linestyles="-")
        left.plot(*draws[:30].T, ".-", color="C1", lw=0.6, ms=4)
        left.set(title="the first 30 draws")
        right.plot(*draws[::125].T, ".", color="C1", ms=2)
        right.set(title="every 125th draw")
        figure.savefig(picture, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
