"""A program as one function in machine code, for some lengths of its inputs."""

import gc
import threading
from contextlib import contextmanager

from nbta.codegen.code import NotCompiledError
from nbta.compiler.build import build
from nbta.compiler.executable import Executable, FailedError, RaggedError
from nbta.compiler.explain import Log
from nbta.compiler.generate import Generated, generate
from nbta.compiler.phases import phase
from nbta.compiler.pipeline import lowered
from nbta.compiler.slow_loops import warn_of
from nbta.compiler.specialising import fits
from nbta.runtime.numba_private import NumbaError


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
        log = Log(program)
        with _no_collection():
            self._begin(lowered(program, shapes, log), log.rows, new_step)

    def _begin(self, program, log, new_step):
        self.program, self.log, self._new_step = program, log, new_step
        self.generated = self._generate()
        self._executable, self._refusal = None, None
        self._lock, self._telling = threading.Lock(), threading.Lock()
        self._told = None
        self.misses = 0

    def _generate(self, ragged=False) -> Generated:
        with phase("source") as facts:
            generated = generate(self.program, ragged)
            facts["lines"] = generated.source.count("\n")
        return generated

    def __call__(self, given):
        """Values of the results for those of the inputs, and the step."""
        executable = self.build()
        if self._told is not self.generated:
            self._tell()
        try:
            return executable(given)
        except RaggedError:
            return self._without_plain(executable)(given)

    def _tell(self):
        """Warn of slow loops, once, in whichever thread is first; a warning may be an error."""
        with self._telling:
            if self._told is not self.generated:
                warn_of(self.generated)
                self._told = self.generated

    def _without_plain(self, executable):
        """What Python keeps the arrays of whose elements turned out to be of several shapes."""
        with self._lock:
            if self._executable is executable:  # no other thread was here before
                try:
                    generated = self._generate(ragged=True)
                    self._executable, self.generated = self._built(generated), generated
                except NotCompiledError as reason:
                    raise FailedError(str(reason)) from reason
            return self._executable

    def build(self) -> Executable:
        """Compile it, if it is not yet.

        Raises
        ------
        NotCompiledError
            For what Numba does not compile.
        """
        if self._executable is None:
            with self._lock:
                if self._executable is None:
                    self._executable = self._built(self.generated)
        return self._executable

    def _built(self, generated):
        if self._refusal is not None:  # to ask Numba again would take seconds at every run
            raise self._refusal
        try:
            code = build(generated.source, generated.globals)
        except NumbaError as error:
            self._refusal = NotCompiledError(f"Numba refuses its source: {error}")
            raise self._refusal from error
        return Executable(generated, code, self._new_step)

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
