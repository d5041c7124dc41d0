"""Texts of values that only the run knows, in all ways in which Python makes texts."""

# ruff: noqa: F507, UP030, UP031, UP032 - texts as programs make them

import logging
import warnings

import frontend_checks as checks
import numpy as np
import pytest

import nbta

X = np.array([1.5, -2.25])
TELLING = []


def telling(function):
    """Note a function that prints."""
    TELLING.append(function)
    return function


@telling
def by_percent(x, n):
    print("x=%6.2f|%s|%d%%|%-5d|%+.1e" % (x[0], x[1], n, n, x[1]))
    print("%s" % x[0], "%5.1f" % x[1], "%*d|%.*f" % (4, n, 2, x[0]))


@telling
def by_format(x, n):
    line = "{:>8.3f}|{!s}|{name}|{{}}|{:{width}d}"
    print(line.format(x[0], n, n, name="q", width=4))
    print("{1} {0}".format(x[0], n), "{v:.1f}".format(v=x[1]), format(x[0], ".2e"))


@telling
def by_operators(x, n):
    text = "n=" + str(n)
    text += "; " + str(x[0])
    text = f"<{text}> {n:03d}"
    print(text + "!", f"{text}" + f"{text!s}")


@telling
def by_joining(x, n):
    print(", ".join([str(n), "one", str(x[0])]), "-".join("abc"), "".join([]))
    print(" ".join(str(v) for v in x), "|".join([f"{v:.1f}" for v in x]))


@telling
def of_arrays(x, n):
    y = x + n
    before = f"{y[0]} {y}"
    whole = str(y)
    y[0] = 100.0
    print(before, whole, str(y), "%s" % y)


@telling
def in_loops(x, n):
    for i in range(len(x)):
        label = "item " + str(i)
        if x[i] > 0.0:
            print(label + ": " + str(x[i]) + " of %d" % n)
        else:
            print("{} is {}".format(label, x[i]))


@telling
def in_warnings_and_logs(x, n):
    if n > 0:
        warnings.warn("n is " + str(n), stacklevel=1)
        logging.getLogger("nbta.test").warning("x is %s" % x[0])


def _told(f, x, n, capsys, caplog):
    caplog.clear()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        f(x, n)
    return capsys.readouterr().out, [str(each.message) for each in found], caplog.messages


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("f", TELLING, ids=lambda f: f.__name__)
def test_as_python(f, compiled, capsys, caplog):
    def told(x, v):
        total = 0.0
        n = int(v) + 0
        for item in x:  # no text outside of loops is told by runs
            total += item
            f(x, n)
        return total

    made = nbta.function(told, compiled=compiled)
    for x, v in ((X, 3.5), (-X, 1.5), (X * 1e3, 0.5)):
        assert _told(made, x, v, capsys, caplog) == _told(told, x, v, capsys, caplog)


class OfTwoError(ValueError):
    """An error that is made of other arguments than those it is left with."""

    def __init__(self, what, code):
        super().__init__(f"{what} went wrong")
        self.code = code


FORMAT = "too large: {}"
RAISING = {
    "joined": (lambda v: ValueError("value " + str(v) + " of " + repr(2)), "value {v} of 2"),
    "percent": (lambda v: ValueError("value %g" % v), "value {v}"),
    "a format of the module": (lambda v: ValueError(FORMAT.format(v)), "too large: {...}"),
    "two arguments": (lambda v: OfTwoError("it", 7), "it went wrong"),
}


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("error", "words"), RAISING.values(), ids=RAISING)
def test_errors_of_the_run(error, words, compiled):
    def f(x):
        if x[0] > 5.0:
            message = "value " + str(x[0])
            message += "; " + FORMAT.format(x[1])
            if x[1] > 5.0:
                raise ValueError(message)
            raise error(x[0])
        return x.sum()

    made = nbta.function(f, compiled=compiled)
    assert made(X) == X.sum()
    with pytest.raises(type(error(1.0))) as found:
        made(np.array([6.0, 1.0]))
    assert type(found.value) is type(error(1.0))
    assert vars(error(1.0)).items() <= vars(found.value).items()
    assert str(found.value).replace("{...}", "{v}") == words.replace("{...}", "{v}")
    with pytest.raises(ValueError, match=r"^value \{...\}; too large: \{...\}"):
        made(np.array([6.0, 6.0]))


def joined_in_a_loop(x):
    text = ""
    for v in x:
        text += str(v)
    return x[0] * len(text)


def chosen_in_a_branch(x):
    text = "none"
    if x[0] > 0.0:
        text = "x is " + str(x[0])
    print(text)
    return x[0]


@pytest.mark.parametrize(
    "f",
    [
        joined_in_a_loop,
        chosen_in_a_branch,
        lambda x: x[0] * len(str(x[0])),
        lambda x: x[0] if "1" in "%s" % x[0] else x[1],
        lambda x: x[0] if "{}".format(x[0]) == "1.5" else x[1],
        lambda x: x[0] * len("{0.real}".format(x[0])),
        lambda x: x[0] * len("{:{}}".format(1.5, str(x[0]))),
        lambda x: x[0] * len(str(x[0]).upper()),
        lambda x: {str(x[0]): x[0]}["1.5"],
    ],
)  # fmt: skip
def test_what_would_have_to_be_known(f):
    checks.check_refused(f, X, "the text of a value")


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x: print("%s %s" % x[0]), "not enough arguments"),
        (lambda x: print("%s" % (x[0], 1)), "not all arguments converted"),
        (lambda x: print(", ".join([str(x[0]), 1])), "an item that is no text"),
    ],
)  # fmt: skip
def test_errors_of_python(f, words):
    with pytest.raises(TypeError, match=words):
        nbta.function(f)(X)
