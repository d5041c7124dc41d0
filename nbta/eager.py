"""How Python calls the runtime: wrappers of stores, requests, results; and lanes of arrays."""

from __future__ import annotations

import ctypes
import operator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from nbta import errors
from nbta.dtypes import as_plain, check_plain
from nbta.runtime import entry_points, extension, python_calls, settings
from nbta.runtime import request as rq
from nbta.runtime.numba_private import BOX_FIELDS, BOX_OWNER
from nbta.runtime.store import FIELD, HEADER
from nbta.shapes import MAX_RANK

if TYPE_CHECKING:
    import builtins

    from nbta.tensor_array import TensorArray


Request = ctypes.c_int64 * rq.WORDS
_Fields = ctypes.c_int64 * len(HEADER)
_BULK = {rq.GATHER, rq.STACK, rq.LOOK_AT_ALL, rq.SCATTER, rq.CONCAT, rq.SPLIT, rq.OFFSETS}
_LANES = {rq.LANES, rq.TAKE, rq.RANGE, rq.JOIN}
#: Entry points of operations, where they are not the one of storage.
_ENTRIES = {
    rq.GRAD: settings.GRADIENT_ENTRY,
    **dict.fromkeys(_BULK, settings.BULK_ENTRY),
    **dict.fromkeys(_LANES, settings.LANES_ENTRY),
}
_FURTHEST = 2**62
#: Fields of an array that is about to be made.
NO_FIELDS = _Fields()


def _entry(operation: Any) -> Any:
    """The kernels' entry point for an operation, by its setting."""
    return _ENTRIES.get(operation, settings.STORAGE_ENTRY)


def as_integer(argument: str, reason: str, value: Any) -> int:
    """A scalar integer argument; too large ones become numbers that no array reaches."""
    check_plain(argument, value)
    try:
        number = operator.index(value)
    except TypeError:
        shape = np.shape(value)
        what = f"has shape {shape}" if shape else f"is {value!r}"
        raise errors.invalid(reason, f"{argument} must be one integer; it {what}") from None
    return max(min(number, _FURTHEST), -_FURTHEST)


def as_vector(argument: str, reason: str, values: Any) -> np.ndarray:
    """A vector of integers as contiguous int64, which nobody else can change meanwhile."""
    array = as_plain(argument, values)
    if array.ndim != 1:
        message = f"{argument} must be a vector of integers; it has shape {array.shape}"
        raise errors.invalid(reason, message)
    if array.dtype.kind not in "iu" and array.size:
        message = f"{argument} must be a vector of integers; its dtype is {array.dtype}"
        raise errors.invalid(reason, message)
    return np.array(array, np.int64, order="C")


def put_pattern(request: Any, pattern: Any) -> None:
    """Describe a shape pattern in a request."""
    request[rq.RANK] = -1 if pattern is None else len(pattern)
    for axis, dimension in enumerate(() if pattern is None else pattern):
        request[rq.SHAPE + axis] = -1 if dimension is None else dimension


class StoreWrapper:
    """A store's wrapper in Python: its fields, and the way into its kernels."""

    __slots__ = ("__weakref__", "_address", "_dtype", "_fields", "_name", "_store")
    _address: int
    _dtype: np.dtype[Any]
    _fields: Any
    _name: str
    _store: Any

    def _adopt(self, owner: Any) -> None:
        """Become the wrapper of the store after an owner, whose reference passes here."""
        self._bind(python_calls.native(python_calls.own_store)(owner))

    def _bind(self, store: Any) -> None:
        self._store = store
        self._address = ctypes.c_int64.from_address(id(store) + BOX_FIELDS).value
        self._fields = _Fields.from_address(self._address)

    @classmethod
    def _over(cls, store: Any, dtype: Any, name: str) -> Any:
        """Another wrapper for a store that exists."""
        self = object.__new__(cls)  # eager, whatever graph is being built
        self._dtype, self._name = dtype, name
        self._bind(store)
        return self

    def _run(self, operation: Any, request: Any, nbytes: Any = 0) -> None:
        """Run a kernel that moves so many bytes; its failure is an exception.

        Where that takes long, or where others use the array without the interpreter's lock, it
        is let go of: they may hold the array's own lock.
        """
        pointer = ctypes.addressof(request)
        if nbytes < settings.get(settings.LARGE) and not self._fields[FIELD.users]:
            status = entry_points.entry(_entry(operation))(operation, self._address, pointer)
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

    def _run_aside(self, operation: Any, pointer: Any) -> Any:
        """Run a kernel without the interpreter's lock."""
        run = entry_points.releasing_entry(_entry(operation))
        python_calls.native(python_calls.lend_store)(self._address)
        try:
            return run(operation, self._address, pointer)
        finally:
            python_calls.native(python_calls.take_store_back)(self._address)

    def _owner(self) -> Any:
        """Address of what keeps the store alive."""
        place = id(self._store) + BOX_OWNER
        return ctypes.c_int64.from_address(place).value

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the elements."""
        return self._dtype


class Lanes(StoreWrapper):
    """Private arrays of an array, which threads fill in parallel: see `TensorArray.lanes`.

    Python's threads and the ``prange`` loops of compiled code use the same methods. In compiled
    code, lanes may be made, passed as arguments and returned.

    Parameters
    ----------
    array : TensorArray
        A dynamic array, whose lanes are empty, or a gradient array, whose lanes are zeros.
    count : int
        The number of lanes: a fixed number, whatever the number of threads.

    Notes
    -----
    If a loop takes each lane once and runs the iterations that `range` returns for it, and `join`
    follows the loop, then results are bitwise identical, whichever thread fills which lane, and
    when. Operations on the array itself are allowed between `TensorArray.lanes` and `join`; the
    elements of the lanes come after theirs.

    Examples
    --------
    >>> import numpy as np
    >>> from numba import njit, prange
    >>> import nbta
    >>> @njit(parallel=True)
    ... def add_up(sums, terms):
    ...     lanes = sums.lanes(4)
    ...     for lane in prange(len(lanes)):
    ...         part = lanes.take(lane)
    ...         for k in lanes.range(lane, len(terms)):
    ...             part.accumulate(0, terms[k])
    ...     return lanes.join()
    >>> sums = nbta.TensorArray("float64", size=1, element_shape=()).grad("sums")
    >>> add_up(sums, np.arange(10.0)).read(0)
    np.float64(45.0)
    """

    __slots__ = ("_array",)
    _array: Any

    def __init__(self, array: TensorArray, count: int) -> None:
        self._array = array
        self._dtype, self._name = self._array._dtype, self._array._name
        request = Request()
        request[rq.INDEX] = as_integer(f"lanes on {self._name}: count", "lanes_count", count)
        request[rq.VALUE] = self._array._owner()
        self._array._run(rq.LANES, request)
        self._adopt(request[rq.OWNER])

    def __len__(self) -> int:
        return self._fields[FIELD.size]

    def take(self, lane: int) -> TensorArray:
        """Return the array of a lane. Each lane can be taken once.

        Parameters
        ----------
        lane : int
            The number of the lane.

        Returns
        -------
        TensorArray
            For use by one thread at a time; `join` closes it.

        Raises
        ------
        InvalidArgumentError
            If the lane does not exist or was taken, and after `join`.

        Examples
        --------
        >>> lanes = nbta.TensorArray("int64", dynamic_size=True).lanes(2)
        >>> len(lanes.take(1).append(7))
        1
        >>> lanes.take(1)
        Traceback (most recent call last):
        nbta.errors.InvalidArgumentError: take on TensorArray_...: lane 1 was already taken, ...
        """
        request = self._request("take", lane)
        self._run(rq.TAKE, request)
        store = python_calls.native(python_calls.own_store)(request[rq.OWNER])
        return type(self._array)._over(store, self._dtype, f"{self._name}[lane {int(lane)}]")

    def range(self, lane: int, total: int) -> builtins.range:
        """Return the iterations of a lane: consecutive ones, and equally many up to one.

        Parameters
        ----------
        lane : int
            The number of the lane.
        total : int
            The number of iterations of all lanes together.

        Returns
        -------
        range
            The iterations of the lane. Those of all lanes, concatenated, are ``range(total)``.

        Raises
        ------
        InvalidArgumentError
            If the lane does not exist, or the total is negative.

        Examples
        --------
        >>> lanes = nbta.TensorArray("int64", dynamic_size=True).lanes(3)
        >>> [lanes.range(k, 8) for k in range(3)]
        [range(0, 3), range(3, 6), range(6, 8)]
        """
        request = self._request("range", lane)
        request[rq.COUNT] = as_integer(f"range on {self._name}: total", "lanes_total", total)
        self._run(rq.RANGE, request)
        return range(request[rq.RESULT], request[rq.RESULT] + request[rq.COUNT])

    def join(self) -> TensorArray:
        """Move the elements of the lanes into the array, in order, and free the lanes.

        Slots of dynamic arrays are appended to the array, those of lane 0 first; sums of gradient
        arrays are added slot by slot, those of lane 0 first. The arrays that `take` returned are
        closed. After an error, nothing has changed.

        Returns
        -------
        TensorArray
            The array that the lanes belong to.

        Raises
        ------
        InvalidArgumentError
            If a slot of a lane has no value, or a shape that does not fit the array or the other
            lanes; if the array stopped growing; and after `join`.
        ResourceExhaustedError
            If there is not enough memory for all slots.

        Examples
        --------
        >>> g = nbta.TensorArray("float64", size=2, element_shape=()).grad("gradients")
        >>> lanes = g.lanes(2)
        >>> for k in range(2):
        ...     _ = lanes.take(k).accumulate(k, 0.5).accumulate(1, 2.0)
        >>> lanes.join().stack()
        array([0.5, 4.5])
        """
        request = Request()
        self._run(rq.JOIN, request)
        python_calls.native(python_calls.own_store)(request[rq.OWNER])  # a reference, dropped
        return self._array

    def _request(self, operation: Any, lane: Any) -> Any:
        request = Request()
        request[rq.INDEX] = as_integer(f"{operation} on {self._name}: lane", "no_lane", lane)
        return request

    def __reduce__(self) -> NoReturn:
        message = f"lanes of {self._name} belong to this process; join them and save the array"
        raise errors.invalid("lanes", message)

    def __repr__(self) -> str:
        *taken, joined = python_calls.native(python_calls.state_bytes)(self._address).tolist()
        state = "joined" if joined else f"{sum(taken)} taken"
        return f"<nbta.Lanes of {self._name!r}: {len(taken)} lanes, {state}>"

    @property
    def _numba_type_(self) -> Any:
        """What compiled code sees: the type of the array that the lanes belong to."""
        kind = self._array._numba_type_
        return kind if isinstance(kind, errors.NoNumbaType) else extension.LanesType(kind)


def _from_compiled_code(store: Any, dtype: Any) -> Any:
    """The wrapper of lanes that compiled code made or passed on."""
    lanes = Lanes._over(store, dtype, "")
    owner = python_calls.native(python_calls.gradient_owners)(lanes._address).view(np.int64)[0]
    array = python_calls.native(python_calls.share_store)(int(owner))
    lanes._array = extension.wrappers["make"](array, dtype)
    lanes._name = lanes._array._name
    return lanes


extension.wrappers["lanes"] = _from_compiled_code
