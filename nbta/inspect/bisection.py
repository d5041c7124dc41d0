"""The first pass after which a program gives other results than before all passes."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nbta.compiler import pipeline
from nbta.compiler.manager import Settings, using, watching
from nbta.errors import UnimplementedError
from nbta.execution.pass_check import PassCheck, PassError
from nbta.execution.runner import Runner
from nbta.graph.graph import at_once

if TYPE_CHECKING:
    from collections.abc import Iterator

#: How far results of compiled code may lie apart, as a multiple of `pass_check.TOLERANCES`: its
#: functions are within some units in the last place of NumPy's.
COMPILED = 1e3


class Finding(NamedTuple):
    """What a bisection finds.

    Attributes
    ----------
    number : int or None
        Of the pass, from 1; 0 is the code generator, and None says that results agree.
    text : str
        In words.
    is_refused : bool
        Whether nothing could be compared.
    """

    number: int | None
    text: str
    is_refused: bool = False


class Bisection:
    """Runs a graph after more and more passes.

    Parameters
    ----------
    runner : Runner
    values : list of array
        Of what it is given.
    """

    def __init__(self, runner: Runner, values: list) -> None:
        self._runner, self._values = runner, values
        self._check = PassCheck(runner.tensors, values, runner.generators)

    def find(self) -> Finding:
        """The first pass after which the reference executor, or compiled code, differs.

        Compiled code is made with a limit of passes, which is halved each time. So of two faulty
        passes that undo each other neither may be found.
        """
        if self._check.reason is not None:
            return Finding(None, f"nothing is compared: {self._check.reason}", True)
        return self._by_reference() or self._by_code()

    def _by_reference(self) -> Finding | None:
        """The pass after which the reference executor gives something else."""
        done: list[int] = []
        shapes = [value.shape for value in self._values]
        try:
            with (
                using(Settings()),
                watching(lambda number, step, program: done.append(number)),
                watching(self._check),
            ):
                pipeline.lowered(pipeline.optimised(*self._runner.tensors), shapes)
        except PassError as error:
            return Finding(error.number, f"by the reference executor, {error}")
        except Exception as error:  # whatever a faulty pass raises
            number = done[-1] + 1 if done else 1
            return Finding(number, f"pass {number}, {_name(number)}, fails: {error!r}")
        return None

    def _by_code(self) -> Finding:
        """The pass after which compiled code gives something else."""
        count = len(pipeline.passes())
        text = self._difference(count)
        if text is None:
            return Finding(None, f"results agree after each of {count} passes, and compiled")
        first = self._difference(0)
        if first is not None:
            return Finding(
                0, f"compiled code differs without any pass that can be left out: {first}"
            )
        low, high = 0, count
        while high - low > 1:
            middle = (low + high) // 2
            found = self._difference(middle)
            low, high, text = (middle, high, text) if found is None else (low, middle, found)
        return Finding(high, f"by compiled code, after pass {high}, {_name(high)}: {text}")

    def _difference(self, limit: int) -> str | None:
        """How compiled code differs after so many passes; None where it agrees."""
        given, wanted, targets = self._runner.tensors
        with using(Settings(limit=limit)), _restored(self._runner.generators), at_once():
            runner = Runner(given, [*wanted, *targets])
            try:
                with np.errstate(all="ignore"):
                    found, step = runner.run(self._values, True)
            except UnimplementedError as error:
                return f"it cannot be compiled ({error})"
            found = self._check.plain(step, found)
        return self._check.difference(self._check.expected, found, factor=COMPILED)


@contextlib.contextmanager
def _restored(generators: list) -> Iterator[None]:
    """A context after which generators of random numbers are where they were."""
    states = [generator.state() for generator in generators]
    try:
        yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            generator.restore(state)


def _name(number: int) -> str:
    return pipeline.passes()[number - 1].__name__
