"""A compiled program as a Python callable: words in, arrays out."""

import ctypes

import numpy as np

from nbta.codegen.code import FAILED, LAYOUT, MEMORY, OK, RAGGED
from nbta.compiler import helpers

_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
_ROOM = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_GROW = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
#: Bytes of buffers that a program keeps for its next run.
KEPT = 1 << 30


class FailedError(Exception):
    """The function gave up: the reference executor must run the program."""


class RaggedError(FailedError):
    """Elements of an array were of several shapes."""


class Executable:
    """Runs a compiled function; several threads may.

    Parameters
    ----------
    generated : Generated
    function : callable
        Of the address of the words, as an int; gives a status.
    new_step : callable
        Makes the container of a run, for what runs in Python.
    """

    def __init__(self, generated, function, new_step):
        self.generated, self._function, self._new_step = generated, function, new_step
        self._free: list[_Workspace] = []

    def __call__(self, given):
        """Values of the results for arrays of the inputs, and the step.

        Raises
        ------
        FailedError
            Where anything is to be refused.
        """
        work = self._free.pop() if self._free else _Workspace(self.generated)
        step = work.step = self._new_step() if self.generated.calls else None
        try:
            status = work.run(self._function, given)
            if status % 16 == LAYOUT:
                given = [np.array(value, order="C") for value in given]
                status = work.run(self._function, given)
            if status != OK:
                raise (RaggedError if status % 16 == RAGGED else FailedError)(status)
            return work.results(), step
        finally:
            work.clean()
            self._free.append(work)


class _Workspace:
    """The words of one call at a time, and the buffers that they point to."""

    def __init__(self, generated):
        self._plan, self.step = generated, None
        self.words = np.zeros(generated.words, np.int64)
        self.address = self.words.ctypes.data
        self._buffers: dict[int, np.ndarray] = {}
        self.kept, self.bars = {}, []
        self._constants = [array for _, array in generated.constants]
        for word, array in generated.constants:
            self.words[word] = array.ctypes.data
        self._callbacks = {
            "ensure": _ROOM(self._ensure), "grow": _GROW(self._grow), "python": _CALL(self._python),
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
        return helpers.address(name)

    def run(self, function, given):
        """One call; its status."""
        self._given = [np.asarray(value) for value in given]
        for word, array in zip(self._plan.inputs, self._given, strict=True):
            self.words[word] = id(array)
        return function(self.address)

    # What compiled code calls: 0 for success.

    def _ensure(self, word, nbytes):
        return self._allocate(word, nbytes, 0)

    def _grow(self, word, nbytes, kept):
        return self._allocate(word, max(nbytes, 2 * int(self.words[word + 1])), kept)

    def _allocate(self, word, nbytes, kept):
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
        except BaseException:  # the reference executor meets it again and says where
            return FAILED
        return OK

    def results(self):
        """The results of the last call."""
        return [self._result(output) for output in self._plan.outputs]

    def _result(self, output):
        if output.extents is None:
            item = self.words[output.word : output.word + 2].view(np.uint8)
            return item[: output.dtype.itemsize].view(output.dtype)[0]
        shape = [int(self.words[word]) for word in output.extents]
        size = int(np.prod(shape)) * output.dtype.itemsize
        buffer = self._buffers.pop(output.word, None)
        self.words[output.word : output.word + 2] = 0
        if buffer is None:
            return np.empty(shape, output.dtype)
        return buffer[:size].view(output.dtype).reshape(shape)

    def clean(self):
        """Forget what belongs to the last call."""
        self.step, self._given = None, ()
        self.kept.clear()
        while self.bars:
            self.bars.pop()[0].__exit__(None, None, None)
        if sum(buffer.nbytes for buffer in self._buffers.values()) > KEPT:
            for word in self._buffers:
                self.words[word : word + 2] = 0
            self._buffers.clear()
