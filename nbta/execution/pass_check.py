"""Results after each pass, compared with those of the program that no pass has changed.

The reference executor runs the program after each pass, so that the first pass that changes a
result is named. A pass whose contract does not say that it takes sums in another order leaves
results bitwise identical. With ``NBTA_CHECK=passes`` in the environment this is done for each
compilation, for the values that it is needed for.

A program that prints, or calls Python functions of users', is not compared, as it would do so
again after each pass; nor is one that fails, whose error users get from the run itself.
"""

import contextlib
import sys

import numpy as np

from nbta.compiler.manager import BrokenPassError, settings, watching
from nbta.compiler.program import extract, rebuild
from nbta.execution.reference import Plan, Step
from nbta.graph.copying import copied
from nbta.graph.graph import at_once, within
from nbta.graph.operation import DATA, HANDLE, label_of

#: How far results may lie apart where sums are taken in another order, by the bytes of a real
#: number, as a part of the largest number of the result.
TOLERANCES = {2: 1e-2, 4: 1e-4, 8: 1e-9}


class PassError(BrokenPassError):
    """A pass after which a result is another one.

    Attributes
    ----------
    number : int
    step : callable
        The pass.
    """


class PassCheck:
    """Compares results after each pass; what `nbta.compiler.manager.watching` calls.

    Parameters
    ----------
    tensors : tuple
        What `nbta.compiler.program.extract` takes: given, wanted, targets.
    values : list of array
        Of what is given.
    generators : list
        Those that the program draws random numbers from.

    Attributes
    ----------
    reason : str or None
        Why nothing is compared.
    """

    def __init__(self, tensors, values, generators=()):
        given, wanted, targets = tensors
        self._values, self._generators = values, generators
        self._kinds = [tensor.kind for tensor in wanted]
        self._names = [_name(tensor, place) for place, tensor in enumerate(wanted)]
        program = extract(given, wanted, targets)
        self.reason, self._expected = _refusal(program), None
        if self.reason is None:
            try:
                self._expected = self.run(program)
            except Exception as error:
                self.reason = f"it fails one by one, too ({error})"
        self._last, self._number = self._expected, 0

    @property
    def expected(self) -> list:
        """The results of the program that no pass has changed."""
        return self._expected

    def run(self, program) -> list:
        """Results of a program by the reference executor, for the values."""
        states = [generator.state() for generator in self._generators]
        step, plan = Step(), Plan(program.inputs, program.outputs, program.targets)
        try:
            with at_once(), np.errstate(all="ignore"):
                return self.plain(step, plan(step, self._values))
        finally:
            for generator, state in zip(self._generators, states, strict=True):
                generator.restore(state)

    def plain(self, step, found) -> list:
        """Results of a run to compare: arrays by what their slots hold, and flows as nothing."""
        return [_plain(step, *pair) for pair in zip(self._kinds, found, strict=True)]

    def __call__(self, number, step, program):
        """Compare after a pass.

        Raises
        ------
        PassError
        """
        if self.reason is not None:
            return
        if number <= self._number:  # the passes run for other shapes, or to free arrays
            self._last = self._expected
        self._number = number
        try:
            found = self.run(rebuild(program, copied))
        except Exception as error:
            text = f"the reference executor fails: {type(error).__name__}: {error}"
            raise _broken(number, step, text) from error
        if program.is_plain and any(map(_has_nan, found)):
            return  # it may differ: see `nbta.compiler.plain_products`
        exact = not step.contract.reorders
        text = self.difference(self._last, found, exact) or self.difference(self._expected, found)
        if text is not None:
            raise _broken(number, step, text)
        self._last = found

    def difference(self, expected, found, exact=False, factor=1.0) -> str | None:
        """The first result that is another one, in words; None where all agree."""
        for name, one, other in zip(self._names, expected, found, strict=True):
            text = _difference(one, other, exact, factor)
            if text is not None:
                return f"{name} {text}"
        return None


def _broken(number, step, text):
    error = PassError(f"after pass {number}, {step.__name__}: {text}")
    error.number, error.step = number, step
    return error


def _refusal(program):
    foreign = [op.type for op in within(program.operations) if op.record.foreign]
    return f"it calls Python by {foreign[0]}, and would again" if foreign else None


def _name(tensor, place):
    label = label_of(tensor)
    named = tensor.name if label is None else f"{label} ({tensor.name})"
    return f"result {place}, {named},"


def _plain(step, kind, value):
    if kind == HANDLE:
        return [_slot(step.array(value), slot) for slot in range(len(step.array(value)))]
    return np.array(value) if kind == DATA else None


def _slot(array, slot):
    try:
        return np.array(array[slot])
    except Exception as error:
        return type(error).__name__


def _difference(one, other, exact, factor):
    """How two results differ, in words; None where they agree."""
    if isinstance(one, list):
        if len(one) != len(other):
            return f"is an array of {len(other)} slots in place of {len(one)}"
        pairs = enumerate(zip(one, other, strict=True))
        found = ((k, _difference(a, b, exact, factor)) for k, (a, b) in pairs)
        return next((f"at slot {k} {text}" for k, text in found if text is not None), None)
    if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
        return None if one is other or one == other else f"is {other} in place of {one}"
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return f"is {other.dtype} {other.shape} in place of {one.dtype} {one.shape}"
    wrong = _unlike(one, other, exact, factor)
    if not wrong.any():
        return None
    place = tuple(map(int, np.argwhere(wrong)[0]))
    where = f" at {list(place)}" if place else ""
    text = f"is {other[place]!r}{where} in place of {one[place]!r}"
    return f"{text} ({np.count_nonzero(wrong)} of {one.size} items differ)" if place else text


def _has_nan(value):
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc" and np.isnan(value).any()


def _unlike(one, other, exact, factor):
    """Where the items of two arrays differ."""
    if one.dtype.kind not in "fcV" or one.dtype.hasobject:
        return np.asarray(one != other)
    same = (one == other) | ((one != one) & (other != other))
    if exact or same.all():
        return ~same
    size = one.dtype.itemsize // (2 if one.dtype.kind == "c" else 1)
    with np.errstate(all="ignore"):
        wide = [np.asarray(a, np.result_type(a, np.float64)) for a in (one, other)]
        finite = np.abs(wide[0][np.isfinite(wide[0])])
        scale = finite.max(initial=0.0)
        near = np.abs(wide[0] - wide[1]) <= factor * TOLERANCES.get(size, 1e-9) * scale
    return ~(same | near)


@contextlib.contextmanager
def checking(tensors, values, generators):
    """A context in which passes are compared, if the settings say so and there are values."""
    if values is None or not settings().checks:
        yield
        return
    check = PassCheck(tensors, values, generators)
    if check.reason is not None:
        print(f"# NBTA_CHECK: a program is not compared, as {check.reason}", file=sys.stderr)
    with watching(check):
        yield
