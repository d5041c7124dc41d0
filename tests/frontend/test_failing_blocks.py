"""Blocks of a branch that do something before they end in an error: a run does it, and fails so."""

import numpy as np
import pytest

import nbta


def told_apart(kind, x):
    """Both blocks of a branch in a block end in an error."""
    if kind < 3:
        if kind == 2:
            value = np.sin(x)
        else:
            if x > 100.0:
                raise ValueError("too large")
            else:  # noqa: RET506
                raise ValueError("too small")
    else:
        raise KeyError("unknown kind")
    return value


def in_turn(kind, x):
    """An error of a block, or of what comes after it."""
    if x > 0.0:
        if x > kind:
            raise ValueError("above")
        else:  # noqa: RET506
            raise KeyError("positive")
    if x < -kind:
        raise TypeError("below")
    return 3.0 * x


def asserted(kind, x):
    """A loop, arrays that change before the error, and an assertion before it."""
    items, total = np.zeros(3), 0.0
    for i in range(4):
        value = x * (i - kind)
        if value > 0.0:
            items[i % 3] = value
            total += value
        elif value < -5.0:
            items[0] = 100.0
            assert value > -10.0, "far below"
            raise RuntimeError("below")
        else:
            total += value**2
    return total + np.sum(items)


CALLS = [
    *((told_apart, (kind, x)) for kind, x in [(2, 0.5), (1, 0.5), (0, 200.0), (5, 1.0)]),
    *((in_turn, (1, x)) for x in (-0.5, 0.5, 2.0, -3.0)),
    *((asserted, (kind, x)) for kind, x in [(1, 0.5), (1, 6.0), (2, 4.0), (0, -3.0), (3, 4.0)]),
]


def outcome(f, *args):
    try:
        return f(*args)
    except Exception as error:
        return type(error), str(error).splitlines()[0].rpartition(": ")[2].strip("'")


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("f", "args"), CALLS)
def test_the_error_is_the_one_that_python_raises(f, args, compiled):
    expected = outcome(f, *args)
    found = outcome(nbta.value_and_grad(f, 1, compiled=compiled), *args)
    if isinstance(expected, tuple):
        assert found == expected
    else:
        np.testing.assert_allclose(found[0], expected, rtol=1e-14)
        kind, x = args
        step = 1e-6
        slope = (f(kind, x + step) - f(kind, x - step)) / (2 * step)
        np.testing.assert_allclose(found[1], slope, rtol=1e-6)


def test_what_is_printed_before_the_error(capsys):
    def printed(x):
        y = x * 2.0
        if x > 1.0:
            y = y * x
            print("bad", y)
            raise ValueError("no good")
        return y

    f = nbta.value_and_grad(printed, compiled=False)
    assert f(0.5) == (1.0, 2.0)
    assert capsys.readouterr().out == ""
    with pytest.raises(ValueError, match="no good"):
        f(3.0)
    assert capsys.readouterr().out == "bad 18.0\n"
