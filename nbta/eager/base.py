"""What every operation of an eager array goes through: the store, requests, results."""

import ctypes
import math
import operator

import numpy as np

from nbta import errors, naming
from nbta.dtypes import as_plain, check_plain, code_of
from nbta.errors import OPERATIONS
from nbta.naming import Flow, Handle
from nbta.runtime import compiled, python_calls, settings
from nbta.runtime import request as rq
from nbta.runtime.numba_private import BOX_FIELDS, BOX_OWNER
from nbta.runtime.store import CLEARED, FIELD, HEADER, RAGGED, READ, UNDECIDED, WRITTEN
from nbta.shapes import MAX_RANK

Request = ctypes.c_int64 * rq.WORDS
_Fields = ctypes.c_int64 * len(HEADER)
_BULK = {rq.GATHER, rq.STACK, rq.LOOK_AT_ALL, rq.SCATTER, rq.CONCAT, rq.SPLIT}
_LANES = {rq.LANES, rq.TAKE, rq.RANGE, rq.JOIN}
#: Entrances of operations, where they are not the one of storage.
_ENTRIES = {
    rq.GRAD: settings.GRADIENT_ENTRY,
    **dict.fromkeys(_BULK, settings.BULK_ENTRY),
    **dict.fromkeys(_LANES, settings.LANES_ENTRY),
}
_FURTHEST = 2**62
_RAGGED_BYTES = 64
#: Stands for the view of all elements, and its address, until there is one.
NOTHING_SEEN = (-1, None)
#: Fields of an array that is about to be made.
NO_FIELDS = _Fields()


def _entry(operation):
    """The kernels' entrance for an operation, by its setting."""
    return _ENTRIES.get(operation, settings.STORAGE_ENTRY)


def as_integer(argument: str, reason: str, value) -> int:
    """A scalar integer argument; too large ones become numbers that no array reaches."""
    check_plain(argument, value)
    try:
        number = operator.index(value)
    except TypeError:
        shape = np.shape(value)
        what = f"has shape {shape}" if shape else f"is {value!r}"
        raise errors.invalid(reason, f"{argument} must be one integer; it {what}") from None
    return max(min(number, _FURTHEST), -_FURTHEST)


def as_vector(argument: str, reason: str, values) -> np.ndarray:
    """A vector of integers as contiguous int64, which nobody else can change meanwhile."""
    array = as_plain(argument, values)
    if array.ndim != 1:
        message = f"{argument} must be a vector of integers; it has shape {array.shape}"
        raise errors.invalid(reason, message)
    if array.dtype.kind not in "iu" and array.size:
        message = f"{argument} must be a vector of integers; its dtype is {array.dtype}"
        raise errors.invalid(reason, message)
    return np.array(array, np.int64, order="C")


def put_pattern(request, pattern) -> None:
    """Describe a shape pattern in a request."""
    request[rq.RANK] = -1 if pattern is None else len(pattern)
    for axis, extent in enumerate(() if pattern is None else pattern):
        request[rq.SHAPE + axis] = -1 if extent is None else extent


class Face:
    """A store's face in Python: its fields, and the way into its kernels."""

    __slots__ = ("__weakref__", "_address", "_dtype", "_fields", "_name", "_store")

    def _adopt(self, owner):
        """Become the face of the store behind an owner, whose reference passes here."""
        self._bind(python_calls.native(python_calls.own_store)(owner))

    def _bind(self, store):
        self._store = store
        self._address = ctypes.c_int64.from_address(id(store) + BOX_FIELDS).value
        self._fields = _Fields.from_address(self._address)

    @classmethod
    def _over(cls, store, dtype, name):
        """Another face for a store that exists."""
        self = cls.__new__(cls)
        self._dtype, self._name = dtype, name
        self._bind(store)
        return self

    def _run(self, operation, request, nbytes=0):
        """Run a kernel that moves so many bytes; its failure is an exception.

        Where that takes long, or where others use the array without the interpreter's lock, it
        is let go of: they may hold the array's own lock.
        """
        pointer = ctypes.addressof(request)
        if nbytes < settings.get(settings.LARGE) and not self._fields[FIELD.users]:
            status = compiled.entry(_entry(operation))(operation, self._address, pointer)
        else:
            status = self._run_aside(operation, pointer)
        if status:
            raise errors.failure(
                status,
                operation,
                self._name,
                *(request[word] for word in (rq.SLOT, rq.EXPECTED, rq.GOT)),
                tuple(request[rq.OUT_RANK : rq.OUT_SHAPE + MAX_RANK]),
                tuple(request[rq.RANK : rq.SHAPE + MAX_RANK]),
            )

    def _run_aside(self, operation, pointer):
        """Run a kernel without the interpreter's lock."""
        run = compiled.releasing_entry(_entry(operation))
        python_calls.native(python_calls.lend_store)(self._address)
        try:
            return run(operation, self._address, pointer)
        finally:
            python_calls.native(python_calls.take_store_back)(self._address)

    def _owner(self):
        """Address of what keeps the store alive."""
        place = id(self._store) + BOX_OWNER
        return ctypes.c_int64.from_address(place).value

    @property
    def dtype(self) -> np.dtype:
        """Of the elements."""
        return self._dtype


class Base(Face):
    """What every operation of an array needs, and facts about it."""

    __slots__ = ("_seen",)

    def _bind(self, store):
        super()._bind(store)
        self._seen = NOTHING_SEEN

    def _put_value(self, operation, request, value):
        if value.ndim > MAX_RANK + 1:
            raise errors.invalid(
                "rank",
                f"{OPERATIONS[operation]} on {self._name}: elements have at most {MAX_RANK} "
                f"dimensions, and the value has {value.ndim}; reshape it",
            )
        request[rq.DTYPE] = code_of(value.dtype)
        request[rq.VALUE] = value.ctypes.data
        request[rq.RANK] = value.ndim
        request[rq.SHAPE : rq.SHAPE + value.ndim] = value.shape

    def _dtype_asked(self, dtype):
        """Code of the dtype that a read asks for; -1 for one that is not the array's."""
        if dtype is None or np.dtype(dtype) == self._dtype:
            return code_of(self._dtype)
        return -1

    def _result(self, request):
        """The array that a kernel's request describes."""
        rank = request[rq.OUT_RANK]
        shape = tuple(request[rq.OUT_SHAPE : rq.OUT_SHAPE + rank])
        if not request[rq.OWNER]:
            value = np.empty(shape, self._dtype)
        else:
            nbytes = math.prod(shape) * self._dtype.itemsize
            take = python_calls.native(python_calls.take_bytes)
            data = take(request[rq.OWNER], request[rq.RESULT], nbytes)
            value = data.view(self._dtype).reshape(shape)
        value.flags.writeable = False
        return value

    def _bytes_in(self, slots):
        """About how many bytes a number of slots hold; ragged ones cost more than they hold."""
        return slots * (self._fields[FIELD.element_bytes] or _RAGGED_BYTES)

    # Facts.

    @property
    def element_shape(self) -> tuple[int | None, ...] | None:
        """As far as it is known: None in it for an unknown extent, None for an unknown rank."""
        rank, first = self._fields[FIELD.rank], FIELD.extent0
        if rank < 0:
            return None
        return tuple(None if n < 0 else n for n in self._fields[first : first + rank])

    @property
    def dynamic_size(self) -> bool:
        """Whether writes past the end make the array grow (a gradient lookup ends this)."""
        return bool(self._fields[FIELD.dynamic])

    @property
    def clear_after_read(self) -> bool:
        """Whether a read gives the slot's memory up."""
        return bool(self._fields[FIELD.clear_after_read])

    @property
    def infer_shape(self) -> bool:
        """Whether the first write fixes the element shape."""
        return bool(self._fields[FIELD.infer_shape])

    @property
    def is_gradient(self) -> bool:
        """Whether writes accumulate."""
        return bool(self._fields[FIELD.gradient])

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return bool(self._fields[FIELD.closed])

    @property
    def handle(self) -> Handle:
        """Container and name."""
        return Handle(naming.GRADIENT if self.is_gradient else naming.FORWARD, self._name)

    @property
    def flow(self) -> Flow:
        """What an operation takes to run after all that this array has seen."""
        return Flow(self.handle)

    def size(self, *, name: str | None = None) -> np.int32:
        """How many slots there are, as an int32 scalar.

        Raises
        ------
        InvalidArgumentError
            For a closed array.
        """
        return np.int32(len(self))

    def __len__(self) -> int:
        if self.closed:
            message = f"size on {self._name}: the array is closed; make a new one"
            raise errors.invalid("closed", message)
        return self._fields[FIELD.size]

    def _is_uniform(self):
        """Whether elements lie, or will lie, in one buffer in the dtype that users see."""
        layout = self._fields[FIELD.layout]
        if layout == UNDECIDED and not self.infer_shape:
            return False
        stored = self._fields[FIELD.storage_itemsize]
        return layout != RAGGED and stored == self._dtype.itemsize

    def _states(self):
        return python_calls.native(python_calls.state_bytes)(self._address)[: len(self)]

    def _count(self, state):
        """Slots in a state, counted in pieces: a sparse array may be larger than memory."""
        states = self._states()
        pieces = (states[i : i + (1 << 20)] for i in range(0, len(states), 1 << 20))
        return sum(int(np.count_nonzero(piece & state)) for piece in pieces)

    def __repr__(self):
        if self.closed:
            return f"<nbta.TensorArray {self._name!r} closed>"
        written, read, cleared = (self._count(state) for state in (WRITTEN, READ, CLEARED))
        return (
            f"<nbta.TensorArray {self._name!r} dtype={self._dtype} size={len(self)} "
            f"element_shape={self.element_shape} written={written} read={read} cleared={cleared}>"
        )
