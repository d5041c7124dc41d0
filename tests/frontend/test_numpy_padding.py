"""Borders of `numpy.pad`: all modes with all their arguments, for several shapes and dtypes."""

import warnings

import numpy as np
import pytest

import nbta
from nbta.errors import NbtaError
from nbta.testing import check_grads

A = np.arange(12.0).reshape(3, 4) ** 1.5 + 0.3
N = np.arange(12).reshape(3, 4) * 7 % 11
ARRAYS = [A, N, A[0, :3], A[:1, 0], N.astype("u1"), A.astype("f4"), np.stack([A, A + 1])]
WIDTHS = [2, (1, 3), ((1, 2), (0, 3)), ((7, 5), (9, 11)), 0, {0: 1}, {-1: (2, 1)}, ((3,), (1,))]
OPTIONS = [
    ("constant", {}), ("constant", {"constant_values": 3}),
    ("constant", {"constant_values": (1, 2.7)}),
    ("constant", {"constant_values": ((1, 2), (3, 4))}),
    ("linear_ramp", {}), ("linear_ramp", {"end_values": 5}),
    ("linear_ramp", {"end_values": (5, -4)}), ("linear_ramp", {"end_values": ((1, 2), (3, -4))}),
    *[(mode, given) for mode in ("maximum", "mean", "median", "minimum")
      for given in ({}, {"stat_length": 2}, {"stat_length": ((1, 2), (3, 9))})],
    *[(mode, given) for mode in ("reflect", "symmetric")
      for given in ({}, {"reflect_type": "odd"}, {"reflect_type": "even"})],
    ("edge", {}), ("wrap", {}),
]  # fmt: skip
NAMES = [f"{mode} {given}" for mode, given in OPTIONS]


def padding(width, option):
    mode, given = option
    return lambda x: np.pad(x, width, mode, **given)


@pytest.mark.parametrize("option", OPTIONS, ids=NAMES)
def test_each_mode_is_numpys(option):
    for width in WIDTHS:
        for x in ARRAYS:
            run = padding(width, option)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    wanted = run(x)
            except (ValueError, IndexError):
                with pytest.raises((NbtaError, ValueError, IndexError)):
                    nbta.function(run, compiled=False)(x)
                continue
            found = nbta.function(run, compiled=False)(x)
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=1e-6, err_msg=f"{width}, {x.dtype}")


@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize("option", OPTIONS, ids=NAMES)
def test_gradients_in_both_ways(option):
    run = padding(((2, 1), (4, 3)), option)
    np.testing.assert_allclose(nbta.function(run)(A), run(A))
    check_grads(run, (A,))
    check_grads(nbta.function(run, compiled=False), (A,), order=1)


def test_values_of_the_border_have_gradients():
    def run(x):
        ramp = np.pad(x[0], 2, "linear_ramp", end_values=(x[1, 0], x[2, 2]))
        return ramp, np.pad(x, 1, constant_values=x[:2, :2])

    for found, wanted in zip(nbta.function(run)(A), run(A), strict=True):
        np.testing.assert_allclose(found, wanted)
    check_grads(run, (A,))


REFUSED = {
    "empty": lambda x: np.pad(x, 1, "empty"),
    "end_values": lambda x: np.pad(x, 1, "edge", end_values=1),
    "pad_width": lambda x: np.pad(x, ((1, 2),) * 3),
    "stat_length": lambda x: np.pad(x, 1, "median", stat_length=0),
    "reflect_type": lambda x: np.pad(x, 1, "reflect", reflect_type="both"),
    "integral": lambda x: np.pad(x, 1.5),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    with pytest.raises((NbtaError, ValueError, TypeError), match=name):
        nbta.function(REFUSED[name], compiled=False)(A)


WIDTHS_OF_RUNS = {
    "half the length": lambda x: np.pad(x, x.shape[1] // 2),
    "half the length, rounded": lambda x: np.pad(x, (int(len(x) / 2), 2)),
    "a pair for each axis": lambda x: np.pad(x, ((0, 0), (int(x[1, 0]), 1))),
    "one for each axis": lambda x: np.pad(x, ((int(x[1, 0]),), (1,))),
    "an array": lambda x: np.pad(x, np.array([int(x[1, 0]), len(x)])),
    "a dict": lambda x: np.pad(x, {-1: (len(x), int(x[1, 0]))}),
    "0": lambda x: np.pad(x, int(x[0, 0])),
    "values of the run": lambda x: np.pad(x[1], int(x[1, 0]), constant_values=(x[0, 1], 2.5)),
    "the edge": lambda x: np.pad(x[1], len(x) // 2, "edge"),
    "mirrored": lambda x: np.pad(x[1], len(x) - 1, mode="reflect"),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", WIDTHS_OF_RUNS.values(), ids=WIDTHS_OF_RUNS)
def test_widths_that_a_run_decides(f, compiled):
    run = nbta.function(f, compiled=compiled)
    for x in (A, A[:, ::2] + 1.0):
        np.testing.assert_array_equal(run(x), f(x))
    check_grads(run, (A,), order=1)


REFUSED_IN_RUNS = {
    "negative": (ValueError, lambda x: np.pad(x, -int(x[1, 0]))),
    "integral type": (TypeError, lambda x: np.pad(x, x[1, 0])),
    "mode 'edge' needs an integer": (ValueError, lambda x: np.pad(x, int(x[1, 0]), "edge")),
    "does not fit 2 axes": (ValueError, lambda x: np.pad(x, ((int(x[1, 0]), 2),) * 3)),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("message", REFUSED_IN_RUNS)
def test_widths_that_a_run_may_not_decide(message, compiled):
    kind, f = REFUSED_IN_RUNS[message]
    with pytest.raises(kind, match=message):
        nbta.function(f, compiled=compiled)(A)
