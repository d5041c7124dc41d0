"""Lanes of an array: for each thread one of its own, joined afterwards."""

import numpy as np

from nbta import errors
from nbta.eager.base import Face, Request, as_integer
from nbta.runtime import extension, python_calls
from nbta.runtime import request as rq
from nbta.runtime.store import FIELD


class Lanes(Face):
    """Private arrays of an array, which threads fill side by side: see `TensorArray.lanes`.

    The same methods serve Python's threads and the ``prange`` loops of compiled code, where lanes
    may be made, passed in and handed out.

    Parameters
    ----------
    array : TensorArray
        A dynamic array, whose lanes are empty, or a gradient array, whose lanes are zeros.
    count : int
        How many lanes; a fixed number, whatever the number of threads.

    Notes
    -----
    A loop that takes each lane once, does the share of the iterations that `range` names, and is
    followed by `join`, gives the same bits whichever thread had which lane, and when. Operations
    on the array itself between `TensorArray.lanes` and `join` are allowed; what the lanes hold
    comes after them.

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

    def __init__(self, array, count: int):
        request = Request()
        request[rq.INDEX] = as_integer(f"lanes on {array._name}: count", "lanes_count", count)
        request[rq.VALUE] = array._owner()
        array._run(rq.LANES, request)
        self._array, self._dtype, self._name = array, array._dtype, array._name
        self._adopt(request[rq.OWNER])

    def __len__(self) -> int:
        return self._fields[FIELD.size]

    def take(self, lane: int):
        """The array of a lane, for whoever asks first.

        Parameters
        ----------
        lane : int

        Returns
        -------
        TensorArray
            To be used by one thread at a time; `join` closes it.

        Raises
        ------
        InvalidArgumentError
            For a lane that does not exist or was taken, and after `join`.

        Examples
        --------
        >>> lanes = nbta.TensorArray("int64", dynamic_size=True).lanes(2)
        >>> len(lanes.take(1).append(7))
        1
        >>> lanes.take(1)
        Traceback (most recent call last):
        nbta.errors.InvalidArgumentError: take on TensorArray_...: lane 1 was taken before, ...
        """
        request = self._request("take", lane)
        self._run(rq.TAKE, request)
        store = python_calls.native(python_calls.own_store)(request[rq.OWNER])
        return type(self._array)._over(store, self._dtype, f"{self._name}[lane {int(lane)}]")

    def range(self, lane: int, total: int) -> range:
        """A lane's share of so many iterations: neighbours, and one more or less than other lanes.

        Parameters
        ----------
        lane, total : int

        Returns
        -------
        range
            Those of all lanes, one behind the other, are ``range(total)``.

        Raises
        ------
        InvalidArgumentError
            For a lane that does not exist, or a negative total.

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

    def join(self):
        """Put what the lanes hold into the array, in the order of the lanes, and free them.

        Slots of dynamic arrays go behind the array's last slot, those of lane 0 first; sums of
        gradient arrays are added slot by slot, those of lane 0 first. The arrays that `take` gave
        are closed. After an error everything is as it was.

        Returns
        -------
        TensorArray
            The array that the lanes belong to.

        Raises
        ------
        InvalidArgumentError
            For a slot of a lane that holds no value, or one of a shape that does not fit the
            array or the other lanes; when the array stopped growing; after `join`.
        ResourceExhaustedError
            When there is no memory for all slots.

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

    def _request(self, operation, lane):
        request = Request()
        request[rq.INDEX] = as_integer(f"{operation} on {self._name}: lane", "no_lane", lane)
        return request

    def __reduce__(self):
        message = f"lanes of {self._name} belong to this process; join them and save the array"
        raise errors.invalid("lanes", message)

    def __repr__(self):
        *taken, joined = python_calls.native(python_calls.state_bytes)(self._address).tolist()
        state = "joined" if joined else f"{sum(taken)} taken"
        return f"<nbta.Lanes of {self._name!r}: {len(taken)} lanes, {state}>"

    @property
    def _numba_type_(self):
        """What compiled code sees: the type of the array that the lanes belong to."""
        kind = self._array._numba_type_
        return kind if isinstance(kind, errors.NoNumbaType) else extension.LanesType(kind)


def _from_compiled_code(store, dtype):
    """The face of lanes that compiled code made or passed on."""
    lanes = Lanes._over(store, dtype, "")
    owner = python_calls.native(python_calls.gradient_owners)(lanes._address).view(np.int64)[0]
    array = python_calls.native(python_calls.share_store)(int(owner))
    lanes._array = extension.faces["make"](array, dtype)
    lanes._name = lanes._array._name
    return lanes


extension.faces["lanes"] = _from_compiled_code
