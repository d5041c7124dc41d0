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
        self._words = np.zeros(generated.words, np.int64)
        self.address = self._words.ctypes.data
        self._buffers: dict[int, np.ndarray] = {}
        self._results = {}
        self._constants = [array for _, array in generated.constants]
        for word, array in generated.constants:
            self._words[word] = array.ctypes.data
        self._callbacks = {
            "ensure": _ROOM(self._ensure), "grow": _GROW(self._grow), "python": _CALL(self._python),
        }  # fmt: skip
        for word, name in enumerate(("ensure", "grow", "python", "plain")):
            self._words[word] = self._helper(name)
        for name, word in generated.helpers.items():
            self._words[word] = self._helper(name)
        for word, value in generated.initial:
            self._words[word] = self._helper(value) if isinstance(value, str) else value

    def _helper(self, name):
        if name in self._callbacks:
            return ctypes.cast(self._callbacks[name], ctypes.c_void_p).value
        return helpers.address(name)

    def run(self, function, given):
        """One call; its status."""
        self._given = [np.asarray(value) for value in given]
        for word, array in zip(self._plan.inputs, self._given, strict=True):
            self._words[word] = id(array)
        return function(self.address)

    # What compiled code calls: 0 for success.

    def _ensure(self, word, nbytes):
        return self._allocate(word, nbytes, 0)

    def _grow(self, word, nbytes, kept):
        return self._allocate(word, max(nbytes, 2 * int(self._words[word + 1])), kept)

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
        self._words[word : word + 2] = buffer.ctypes.data, nbytes
        return OK

    def _python(self, number):
        try:
            self._call(self._plan.calls[number], number)
        except BaseException:  # the reference executor meets it again and says where
            return FAILED
        return OK

    def _call(self, call, number):
        op = call.op
        given = iter([self._handed(*entry) for entry in call.inputs])
        arguments = [np.float32(0) if t.kind == "flow" else next(given) for t in op.inputs]
        if op.record.effects:
            results = op.record.evaluate(self.step, *arguments, **op.attrs)
        else:
            with np.errstate(all="ignore"):
                results = op.record.evaluate(*arguments, **op.attrs)
        several = len(op.outputs) != 1 or op.record.several
        results = results if several else (results,)
        kept = [
            np.array(value, tensor.dtype, order="C", copy=None)
            for value, tensor in zip(results, op.outputs, strict=True)
            if tensor.kind != "flow"
        ]
        self._results[number] = kept
        for word, array in zip(call.outputs, kept, strict=True):
            self._words[word] = array.ctypes.data
            self._words[word + 1 : word + 1 + array.ndim] = array.shape

    def _handed(self, word, dtype, rank):
        if rank < 0:
            return self._words[word : word + 2].view(np.uint8)[: dtype.itemsize].view(dtype)[0]
        shape = tuple(int(n) for n in self._words[word + 1 : word + 1 + rank])
        array = _at(int(self._words[word]), dtype, shape)
        return array[()] if rank == 0 else array

    def results(self):
        """The results of the last call."""
        return [self._result(output) for output in self._plan.outputs]

    def _result(self, output):
        if output.extents is None:
            item = self._words[output.word : output.word + 2].view(np.uint8)
            return item[: output.dtype.itemsize].view(output.dtype)[0]
        shape = [int(self._words[word]) for word in output.extents]
        size = int(np.prod(shape)) * output.dtype.itemsize
        buffer = self._buffers.pop(output.word, None)
        self._words[output.word : output.word + 2] = 0
        if buffer is None:
            return np.empty(shape, output.dtype)
        return buffer[:size].view(output.dtype).reshape(shape)

    def clean(self):
        """Forget what belongs to the last call."""
        self.step, self._given = None, ()
        self._results.clear()
        if sum(buffer.nbytes for buffer in self._buffers.values()) > KEPT:
            for word in self._buffers:
                self._words[word : word + 2] = 0
            self._buffers.clear()


def _at(address, dtype, shape):
    """A copy of the items at an address."""
    count = int(np.prod(shape))
    if not count:
        return np.empty(shape, dtype)
    items = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return np.frombuffer(items, dtype).reshape(shape).copy()
