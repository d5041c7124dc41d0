"""Find out which lines of a loop and of its gradient take the time.

Stars attract each other, and the gradient says how their energy in the end depends on where they
begin. `profile` measures the compiled gradient by clocks in it, and gives the time of each line of
the function as it is written, and how much of that its gradient takes.
"""

import sys
from pathlib import Path

import numba
import numpy as np

import nbta

STEPS, STEP, SOFTENING = 20, 0.01, 0.05


@numba.njit
def final_energy(place, velocity, mass):
    """Kinetic energy of stars after some steps in time."""
    place, velocity = place.copy(), velocity.copy()
    for _ in range(STEPS):
        for i in range(len(mass)):
            apart = place - place[i]
            squared = np.sum(apart * apart, axis=1) + SOFTENING
            pull = mass / (squared * np.sqrt(squared))
            velocity[i] += STEP * (pull @ apart)
        place += STEP * velocity
    return 0.5 * np.sum(mass * np.sum(velocity**2, axis=1))


def main(picture=None):
    """Profile the gradient, print the table, and draw it; gives the lines and the gradient."""
    random = np.random.default_rng(0)
    given = random.normal(size=(80, 3)), random.normal(0.0, 0.3, (80, 3)), np.full(80, 1.0 / 80)
    slope = nbta.value_and_grad(final_energy, compiled=True)
    profile = slope.profile(*given)
    print(profile.text(rows=8))
    lines = [line for line in profile.lines() if line.filename == __file__]
    if picture:
        draw(picture, lines)
    return lines, slope(*given), given


def draw(picture, lines):
    """Time of each line that takes any, and of its gradient."""
    import matplotlib.pyplot as plt

    text = Path(__file__).read_text("utf-8").splitlines()
    most = max(line.seconds for line in lines)
    lines = sorted((each for each in lines if each.seconds > 0.01 * most), key=lambda e: -e.line)
    names = [text[line.line - 1].strip() for line in lines]
    backward = np.array([1e3 * line.gradient for line in lines])
    forward = np.array([1e3 * line.seconds for line in lines]) - backward
    with plt.style.context(Path(__file__).with_name("gallery.mplstyle")):
        figure, axes = plt.subplots()
        axes.barh(names, forward, color="C0", label="the function")
        axes.barh(names, backward, left=forward, color="C1", label="its gradient")
        axes.set_yticks(range(len(names)), names, family="monospace", fontsize="small")
        axes.set(xlabel="ms")
        axes.legend()
        figure.savefig(picture, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
