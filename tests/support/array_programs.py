"""What kinds of random programs of two arrays and a number share: their arguments and their checks.

A kind is a `Maker`, which draws the text of a function ``f(x, y, c)``, and the lengths that its
arrays have.
"""

import numpy as np
from frontend_random import ARGNUMS, HEAD, Choices, Program, built, indented
from fuzz.ways import executed

import nbta


class Maker(Choices):
    """Writes one program; `program` gives its text.

    Attributes
    ----------
    lengths : sequence of range
        Of the arrays, by call; the last one is for all further calls, too.
    """

    lengths = ()

    @staticmethod
    def function(lines):
        """The text of a function of some lines."""
        return "def f(x, y, c):\n" + "\n".join(indented(lines)) + "\n"

    @classmethod
    def made(cls, seed):
        """The same program for the same seed."""
        return Made(HEAD + cls(seed).program(), seed, False, cls.lengths)


class Made(Program):
    """A program, with arguments of several lengths."""

    def __init__(self, source, seed, wrong, lengths):
        super().__init__(source, seed, wrong)
        self.lengths = lengths

    def arguments(self, call):
        """Two arrays of one length, and a number."""
        made = np.random.default_rng([self.seed, call])
        length = self.lengths[min(call, len(self.lengths) - 1)]
        n = int(made.integers(length.start, length.stop))
        x, y = made.uniform(-1, 1, (2, n))
        return x, y, float(made.uniform(-1, 1))


def check(made, machine_code=False, second=False, alone=False, calls=2):
    """The compiled gradient, which is what operations give one by one, and is right.

    So is, on request, the value of a function that gives no gradient, and are second derivatives.
    """
    f, _ = built(made.source)
    slope, reference = (
        nbta.value_and_grad(f, ARGNUMS, compiled=kind, convert=True) for kind in (True, False)
    )
    value_alone = nbta.function(f, compiled=True, convert=True)
    for call in range(calls):
        arguments = made.arguments(call)
        with executed(machine_code):
            value, found = slope(*arguments)
            if alone:
                np.testing.assert_allclose(value_alone(*arguments), value, rtol=1e-10, atol=1e-10)
        same, expected = reference(*arguments)
        np.testing.assert_allclose(value, f(*arguments), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(value, same, rtol=1e-10, atol=1e-10)
        hold_equal(found, expected, 1e-10)
        hold_differences(f, arguments, found, call)
        if second and call == 0:
            hold_second_derivatives(f, arguments, machine_code)
    return slope


def hold_equal(found, expected, bound):
    """Arrays, to a share of the largest item of each."""
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=bound * max(1, np.max(abs(other))))


def hold_differences(f, arguments, found, call):
    """A gradient, to central differences along a direction."""
    direction = tangents(arguments, call)

    def difference(h):
        ends = [[a + s * d for a, d in zip(arguments, direction, strict=True)] for s in (h, -h)]
        return (f(*ends[0]) - f(*ends[1])) / (2 * h)

    wide, near = difference(1e-6), difference(1e-7)
    slope = sum(np.sum(g * d) for g, d in zip(found, direction, strict=True))
    scale = max(1.0, abs(f(*arguments)), *(np.max(np.abs(g)) for g in found))
    bound = 1e-5 * scale + 2 * abs(wide - near)  # some programs are far from linear there
    assert abs(slope - near) <= bound, (slope, wide, near)


def hold_second_derivatives(f, arguments, machine_code=False):
    """Those along a direction, compiled and one by one, and the slope that they are of."""
    direction = tangents(arguments, len(arguments[0]))
    gradient = nbta.grad(f, ARGNUMS, convert=True)

    def slope(*given):
        return sum(nbta.sum(g * d) for g, d in zip(gradient(*given), direction, strict=True))

    compiled, reference = (
        nbta.value_and_grad(slope, ARGNUMS, compiled=kind) for kind in (True, False)
    )
    with executed(machine_code):
        value, found = compiled(*arguments)
    wanted, expected = reference(*arguments)
    np.testing.assert_allclose(value, wanted, rtol=1e-9, atol=1e-9)
    hold_equal(found, expected, 1e-9)


def tangents(arguments, seed):
    """Random tangents of some arguments."""
    made = np.random.default_rng(seed)
    return [made.uniform(-1, 1, np.shape(a)) for a in arguments]
