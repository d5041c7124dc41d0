"""Gradients of random programs: against differences, compiled and not, and of batches."""

import numpy as np

import nbta
from nbta.structure import leaves

from .ways import DisagreementError, count, executed, hold, outcome, without_the_unused

#: Of central differences: one that disagrees alone is near a corner, or too long for the curve.
STEPS = (6e-6, 7e-7, 5e-5, 6e-8)
#: What has another derivative than its differences have.
ROUGH = ("stop_gradient", "'float32'")


def scalar_of(program):
    """One number from all floats that a program gives."""
    f = program.function(nbta)

    def scalar(*given):
        found = [y for y in f(*given) if y.dtype == np.float64]
        terms = [0.3 * nbta.sum(y) + 0.1 * nbta.sum(nbta.sin(y) * y) for y in found]
        return nbta.add_n(terms) if terms else 0.0 * given[0]

    return scalar


def check(program, machine_code=False, counts=None):
    """`DisagreementError` where any two ways to a derivative differ."""
    counts = {} if counts is None else counts
    scalar = scalar_of(program)
    places = tuple(k for k, v in enumerate(program.inputs.values()) if v.dtype.kind == "f")
    if not places or is_refused(scalar, places, program):
        count(counts, "no gradient, or refused")
        return counts
    for call, values in enumerate(program.given()):
        found = outcome(nbta.function(scalar, compiled=False), values)
        if isinstance(found, Exception):
            count(counts, "failed")
            continue
        if not np.isfinite(found):  # of which there are no differences
            count(counts, "not finite")
            continue
        against_differences(scalar, call, values, counts)
    for way, f in {"gradient": scalar, "second gradient": slope_of(scalar, places)}.items():
        compiled_and_not(way, f, places, program, machine_code, counts)
    of_batches(scalar, places, program, counts)
    return counts


def is_refused(scalar, places, program):
    """Whether there is no gradient to be had: of loops that compute iterations again."""
    slow = nbta.value_and_grad(scalar, places, compiled=False)
    error = outcome(slow, list(program.inputs.values()))
    return isinstance(error, Exception) and "leave out checkpoint=" in str(error)


def against_differences(f, call, values, counts):
    """Reverse and forward mode; at a corner differences say nothing."""
    for step in STEPS:
        try:
            nbta.testing.check_grads(f, tuple(values), order=1, rtol=2e-5, atol=1e-6, step=step)
        except nbta.NbtaError:  # of what nobody uses, with shapes that are known at once
            count(counts, "failed")
            return
        except AssertionError as error:
            wrong = error
        else:
            count(counts, "as differences")
            return
    raise DisagreementError("gradient and differences", call, wrong)


def slope_of(scalar, places):
    """The weighted sum of all gradients, to be differentiated again."""

    def slope(*given):
        grads = nbta.grad(scalar, places)(*given)
        return nbta.add_n([nbta.sum(nbta.sin(g) * 0.3 + g) for g in grads])

    return slope


def compiled_and_not(way, f, places, program, machine_code, counts):
    slow = nbta.value_and_grad(f, places, compiled=False)
    fast = nbta.value_and_grad(f, places, compiled=True)
    for call, values in enumerate(program.given()):
        expected = outcome(slow, values)
        with executed(machine_code):
            found = outcome(fast, values)
        if isinstance(found, nbta.UnimplementedError) and "cannot be compiled" in str(found):
            count(counts, "not compiled")
            return
        if isinstance(expected, Exception) and not isinstance(found, Exception):
            count(counts, "an error in what nobody uses")
            found, expected = leaves(found), without_the_unused(fast, values)
        hold(f"compiled {way} and reference", call, found, expected, 1e-7)
        count(counts, f"{way}: {'failed' if isinstance(expected, Exception) else 'agreed'}")


def of_batches(scalar, places, program, counts):
    """The gradient of a batch is the sum of those of its items."""
    values = list(program.inputs.values())
    if len(places) < 2:
        return
    item, shared = places[0], places[1:]
    rows = [values[item] * factor for factor in (1.0, 0.8, -0.6)]
    axes = tuple(0 if k == item else None for k in range(len(values)))
    single = nbta.value_and_grad(scalar, shared, compiled=False)
    given = [[row if k == item else v for k, v in enumerate(values)] for row in rows]
    each = [outcome(single, arguments) for arguments in given]
    batched = nbta.value_and_grad(scalar, shared, batch_axis=axes)
    found = outcome(batched, [rows if k == item else v for k, v in enumerate(values)])
    failed = [one for one in each if isinstance(one, Exception)]
    if failed:
        hold("batch and items", 0, found, failed[0], 1e-7)
        return
    sums = tuple(sum(one[1][k] for one in each) for k in range(len(shared)))
    expected = (sum(one[0] for one in each), sums)
    hold("batch and items", 0, found, expected, 1e-7)
    count(counts, "batch agreed")
