"""A program as one function in machine code, for some lengths of its inputs."""

import gc
from contextlib import contextmanager

from numba.core.errors import NumbaError

from nbta.codegen.code import NotCompiledError
from nbta.compiler.build import build
from nbta.compiler.executable import Executable, RaggedError
from nbta.compiler.explain import Log
from nbta.compiler.generate import generate
from nbta.compiler.pipeline import lowered
from nbta.compiler.specialising import fits


@contextmanager
def _no_collection():
    """Passes make many objects that stay: looking for garbage among them doubles their time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Compiled:
    """Runs a program compiled, and compiles it when it is first run.

    Parameters
    ----------
    program : Program
    shapes : list of tuple
        Of the values that are fed; lengths of 1 are compiled in, others may change.
    new_step : callable
        Makes the container of a run.

    Attributes
    ----------
    program : Program
        As it is compiled, behind all passes.
    log : list of str
        What the passes did.
    misses : int
        How often in a row it gave up for nothing; whoever runs it counts.
    """

    def __init__(self, program, shapes, new_step):
        self._new_step = new_step
        log = Log(program)
        with _no_collection():
            self.program = lowered(program, shapes, log)
            self.generated = generate(self.program)
        self.log = log.rows
        self._executable = None
        self.misses = 0

    def __call__(self, given):
        """Values of the results for those of the inputs, and the step."""
        self.build()
        try:
            return self._executable(given)
        except RaggedError:
            self.generated, self._executable = generate(self.program, ragged=True), None
            self.build()
            return self._executable(given)

    def build(self) -> None:
        """Compile it, if it is not yet.

        Raises
        ------
        NotCompiledError
            For what Numba does not compile.
        """
        if self._executable is not None:
            return
        try:
            function = build(self.generated.source, self.generated.globals)
        except NumbaError as error:
            raise NotCompiledError(f"Numba refuses its source: {error}") from error
        self._executable = Executable(self.generated, function, self._new_step)

    @property
    def executable(self):
        """What runs it, once it was run."""
        return self._executable

    @property
    def is_built(self) -> bool:
        """Whether there is machine code."""
        return self._executable is not None

    def fits(self, shapes) -> bool:
        """Whether it is for values of some shapes."""
        return fits(self.program, shapes)
