"""A charged particle between two charges, one of which is moved so that it flies to the origin."""

import numpy as np

from .descent import MODES, minimum
from .evaluation import Eval, compiled

STEP = 0.1


def potential(place, w):
    """The inverse distances of the charges."""
    x, y = place[0] - 10.0, place[1] - 10.0 + w
    return 1.0 / np.sqrt(x * x + y * y) + 1.0 / np.sqrt(x * x + place[1] * place[1])


def potential_in_numpy(place, w):
    """The same, with distances of vectors."""
    off = place - np.stack((np.array([10.0, 0.0]), np.stack((10.0, 10.0 - w))))
    return np.sum(1.0 / np.sqrt(np.sum(off * off, axis=1)))


def landing(w, potential, derive):
    """The square of where the particle meets the x axis, by Euler's method."""
    place, speed = np.array([0.0, 8.0]), np.array([0.75, 0.0])
    slope = derive(lambda place: potential(place, w))
    while True:
        force = -slope(place)
        place = place + STEP * speed
        if place[1] <= 0.0:
            break
        speed = speed + STEP * force
    x = place[0] - place[1] / speed[1] * speed[0]
    return x * x


def functions(potential):
    def by(outer, inner):
        def found(w):
            return minimum(lambda w: landing(w[0], potential, inner), w, outer)[0]

        return compiled(found)

    return {a + b: by(MODES[a], MODES[b]) for a in MODES for b in MODES}


EVAL = Eval(
    objectives={"loops": potential, "numpy": potential_in_numpy},
    arguments=lambda data: (np.array([data["w"]], np.float64),),
    functions=functions,
    generate=lambda w: {"w": w},
    sizes=((0.0,),),
    small=(0.0,),
    pair=("ff", "rr"),
)
