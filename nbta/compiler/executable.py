"""A program as one function in machine code, for some lengths of its inputs."""

import ctypes
import functools
import gc
import math
import struct
import threading
from contextlib import contextmanager

import numpy as np

from nbta.codegen.code import NotCompiledError
from nbta.compiler.build import address, build, is_kept, namespace
from nbta.compiler.explain import Log, warn_of, warn_of_copies
from nbta.compiler.generate import Generated, generate
from nbta.compiler.passes import frees
from nbta.compiler.phases import phase
from nbta.compiler.pipeline import lowered
from nbta.compiler.specialising import fits
from nbta.errors import PerformanceWarning
from nbta.locations import warn_caller
from nbta.loops import structure, verifying
from nbta.runtime.intrinsics import (
    ANSWER,
    FAILED,
    INTERRUPTED,
    LAYOUT,
    MEMORY,
    NOT_A_NUMBER,
    OK,
    RESIZED,
    STATUSES,
)
from nbta.runtime.numba_private import NumbaError
from nbta.tuning import LARGE_BUFFERS, LARGE_BUFFERS_RATIO, NOTED_BUFFERS, SAVED_BUFFERS

_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
_ROOM = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_GROW = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


class FailedError(Exception):
    """The function gave up: the reference executor must run the program."""


class NotANumberError(FailedError):
    """A result has a NaN, and may be wrong; see `nbta.compiler.plain_products`."""


class Executable:
    """Runs a compiled function; several threads may.

    Parameters
    ----------
    generated : Generated
    code : Loaded or Compiled
        With a function of the address of the words, as an int, which gives a status.
    new_step : callable
        Makes the container of a run, for what runs in Python.
    """

    def __init__(self, generated, code, new_step):
        self.generated, self._new_step = generated, new_step
        self._code, self.function = code, code.function
        self.free: list[Workspace] = []
        #: Shapes of the last results; None where there were none yet.
        self.shapes = [() if output.dimensions is None else None for output in generated.outputs]
        self._told_of_memory = False

    def __call__(self, given):
        """Values of the results for those of the inputs, and the step.

        Raises
        ------
        FailedError
            Where anything is to be refused.
        """
        given = [np.asarray(value) for value in given]
        status, values, step = self.run(given)
        if status % STATUSES == LAYOUT:
            status, values, step = self.run([np.array(value, order="C") for value in given])
        if status == NOT_A_NUMBER:
            raise NotANumberError
        if status != OK:
            raise FailedError(status)
        return values, step

    def run(self, given):
        """The status, and where it is OK the results, for arrays; and the step."""
        work, step = self.borrow(), None
        pairs = zip(self.shapes, self.generated.outputs, strict=True)
        new = [shape if shape is None else np.empty(shape, to.dtype) for shape, to in pairs]
        if self.generated.calls:
            step = work.step = self._new_step()
        try:
            work.give(given, new)
            status = self.function(work.address)
        except BaseException as error:
            self.leave(work, error)
        return *self.finish(work, status, given, new), step

    def leave(self, work, error):
        """Raise an error of a call; what a signal's handler raised is the cause of another."""
        self.give_back(work)
        if isinstance(error, SystemError):  # the function gives a result with an exception set
            raise error.__cause__ or error from None
        raise error

    def finish(self, work, status, given, new):
        """The status of a call, and where it is OK the results; the workspace is given back."""
        try:
            if status == INTERRUPTED:
                raise work.interrupt or KeyboardInterrupt
            if work.is_used and not self._told_of_memory:
                self._warn_of_memory(work.held(), sum(value.nbytes for value in given))
            if status == RESIZED:
                status, new = OK, work.results(new)
                self.shapes[:] = [value.shape for value in new]
            return status, [value if value.ndim else value[()] for value in new if status == OK]
        finally:
            self.give_back(work)

    def _warn_of_memory(self, held, given):
        """Warn once of buffers that are large, and large for what the function is given."""
        if held > LARGE_BUFFERS or held > max(NOTED_BUFFERS, LARGE_BUFFERS_RATIO * given):
            self._told_of_memory = True
            message = (
                f"this call holds {held / 2**20:,.0f} MB in buffers, for arguments of "
                f"{given / 2**20:,.1f} MB: mostly values of each iteration that the gradient "
                f"needs. nbta.scan and nbta.while_loop with checkpoint= keep fewer, and compute "
                f"the others again; to silence this: "
                f"warnings.simplefilter('ignore', nbta.PerformanceWarning)"
            )
            warn_caller(message, PerformanceWarning)

    @property
    def address(self) -> int:
        """Of the function, for C."""
        return self._code.address

    def output(self, k):
        """The shape that a result had last, or None, and its dtype."""
        return self.shapes[k], self.generated.outputs[k].dtype

    def borrow(self):
        """A workspace that nobody else uses until it is given back."""
        try:
            return self.free.pop()
        except IndexError:  # all are in use by other threads
            return Workspace(self.generated)

    def give_back(self, work) -> None:
        """Let a workspace be used again."""
        if work.is_used:
            work.clean()
        self.free.append(work)


class Workspace:
    """The words of one call at a time, and the buffers that they point to."""

    def __init__(self, generated):
        self._plan, self.step, self.numbers = generated, None, {}
        self.words = np.zeros(generated.words, np.int64)
        self.address = self.words.ctypes.data
        self._buffers: dict[int, np.ndarray] = {}
        self.kept, self.bars, self.is_used, self.interrupt = {}, [], True, None
        count = len(generated.outputs) + generated.arguments
        pack = struct.Struct(f"{count}q").pack_into
        self._give = functools.partial(pack, memoryview(self.words), 8 * generated.inputs)
        self._constants = [array for _, array in generated.constants]
        for word, array in generated.constants:
            self.words[word] = array.ctypes.data
        self._callbacks = {
            "ensure": _ROOM(self._grow), "grow": _GROW(self._grow), "python": _CALL(self._python),
        }  # fmt: skip
        for word, name in enumerate(("ensure", "grow", "python", "plain")):
            self.words[word] = self._helper(name)
        for name, word in generated.helpers.items():
            self.words[word] = self._helper(name)
        for word, value in generated.initial:
            self.words[word] = self._helper(value) if isinstance(value, str) else value

    def _helper(self, name):
        if name in self._callbacks:
            return ctypes.cast(self._callbacks[name], ctypes.c_void_p).value
        return address(name)

    def give(self, given, new):
        """Say where the arrays of a call are: what is given, and what is to be filled."""
        addresses = [0 if array is None else id(array) for array in new]
        self._give(*map(id, given), *addresses)

    def with_numbers(self, key, dtypes):
        """What a call needs that is written out, for its numbers: see `written_calls`.

        Parameters
        ----------
        key : str
            By which it is found in ``numbers`` from now on.
        dtypes : list of dtype
            Of arrays for the numbers that are given or found.

        Returns
        -------
        tuple
            What says where arrays are, the address of the words, arrays of one number each, and
            the addresses of these.
        """
        arrays = [np.empty((), dtype) for dtype in dtypes]
        self.numbers[key] = found = (self._give, self.address, *arrays, *map(id, arrays))
        return found

    # What compiled code calls.

    def _grow(self, word, nbytes, kept=0):
        self.is_used = True
        try:
            buffer = np.empty(nbytes, np.uint8)
        except (MemoryError, ValueError):
            return MEMORY
        old = self._buffers.get(word)
        if kept and old is not None:
            kept = min(kept, old.size)
            buffer[:kept] = old[:kept]
        self._buffers[word] = buffer
        self.words[word : word + 2] = buffer.ctypes.data, nbytes
        return OK

    def _python(self, number):
        try:
            self._plan.calls[number].run(self)
            self.words[ANSWER] = OK
        except Exception:  # the reference executor meets it again and says where
            self.words[ANSWER] = FAILED
        except BaseException as error:
            self.interrupt, self.is_used, self.words[ANSWER] = error, True, INTERRUPTED
        return OK

    def held(self) -> int:
        """Bytes of all buffers."""
        return sum(buffer.nbytes for buffer in self._buffers.values())

    def results(self, new):
        """The results of the last call, some of which did not fit what was to be filled."""
        pairs = zip(self._plan.outputs, new, strict=True)
        return [self._result(output, array) for output, array in pairs]

    def _result(self, output, array):
        if output.dimensions is None:
            return array
        shape = tuple(int(self.words[word]) for word in output.dimensions)
        buffer = self._buffers.pop(output.word, None)
        if buffer is None:  # then it is in the array, which may be larger
            buffer = np.empty(0, output.dtype) if array is None else array.reshape(-1)
        return buffer.view(output.dtype)[: math.prod(shape)].reshape(shape)

    def forget_results(self):
        """Drop what a failed call grew for its results, which `results` would give next time."""
        for output in self._plan.outputs:
            self._buffers.pop(output.word, None)

    def clean(self):
        """Forget what belongs to the last call."""
        self.step = self.interrupt = None
        self.kept.clear()
        self.forget_results()
        while self.bars:
            self.bars.pop()[0].__exit__(None, None, None)
        if self.held() > SAVED_BUFFERS:
            for word in self._buffers:
                self.words[word : word + 2] = 0
            self._buffers.clear()
        self.is_used = bool(self._plan.calls)


@contextmanager
def no_collection():
    """Compiling makes many objects that stay: to look for garbage among them doubles its time."""
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
    program : callable
        Gives the program, once.
    shapes : list of tuple
        Of the values that are fed; lengths of 1 are compiled in, others may change.
    new_step : callable
        Makes the container of a run.
    entry : Entry, optional
        What passes and generator give, where that was kept.

    Attributes
    ----------
    log : list of str
        What the passes did.
    misses : int
        How often in a row it gave up for nothing; whoever runs it counts.
    seconds : float
        CPU seconds that it took to come to its source; whoever makes it measures.
    """

    def __init__(self, program, shapes, new_step, entry=None):
        self._given, self._new_step = (program, shapes), new_step
        self._program, self._entry = None, entry
        self._begin()
        if entry is not None:
            self.generated, self.log = entry.generated, entry.log
            return
        with no_collection():
            self._lower()
            self.generated = self._generate()
            if self.generated.kept and frees(program()):
                self._lower(frees=True)
                self.generated = self._generate()

    def _begin(self):
        """Nothing is built yet."""
        self._executable, self._refusal = None, None
        self._lock, self._telling = threading.Lock(), threading.Lock()
        self._told = None
        self.misses, self.seconds = 0, 0.0

    def _lower(self, **options):
        """Do all passes."""
        program, shapes = self._given[0](), self._given[1]
        log = Log(program)
        self._program, self.log = lowered(program, shapes, log, **options), log.rows

    @property
    def program(self):
        """The program as it is compiled; passes that an entry did without run now."""
        if self._program is None:
            with no_collection():
                self._lower()
        return self._program

    def _generate(self) -> Generated:
        with phase("source") as facts:
            generated = generate(self.program)
            if verifying.DEBUG:
                verifying.verify(generated.function, namespace() | generated.globals)
            generated.sizes = structure.sizes(generated.function, namespace())
            self.program.analyses.clear()  # which nobody needs from now on
            facts["lines"] = generated.source.count("\n")
        return generated

    def __call__(self, given):
        """Values of the results for those of the inputs, and the step."""
        executable = self.build()
        if self._told is not self.generated:
            self._tell(given)
        return executable(given)

    def _tell(self, given):
        """Warn of slow loops, once, in whichever thread is first; a warning may be an error."""
        with self._telling:
            if self._told is not self.generated:
                warn_of(self.generated)
                warn_of_copies(self.generated, list(map(np.shape, given)))
                self._told = self.generated

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
            with no_collection():
                code = build(generated.source, generated.globals, generated.nodes)
            generated.function = None  # nodes take eleven times the memory of text
        except NumbaError as error:
            self._refusal = NotCompiledError(f"Numba refuses its source: {error}")
            raise self._refusal from error
        return Executable(generated, code, self._new_step)

    @property
    def executable(self):
        """What runs it, once it was run."""
        return self._executable

    @functools.cached_property
    def is_kept(self) -> bool:
        """Whether its machine code was on disk when that was asked first."""
        return not self.generated.globals and is_kept(self.generated.source)

    @property
    def is_refused(self) -> bool:
        """Whether Numba did not compile it."""
        return self._refusal is not None

    @property
    def is_built(self) -> bool:
        """Whether there is machine code."""
        return self._executable is not None

    def fits(self, shapes) -> bool:
        """Whether it is for values of some shapes."""
        if shapes == self._given[1]:
            return True
        told = None if self._entry is None else self._entry.fits(shapes)
        return fits(self.program, shapes) if told is None else told
