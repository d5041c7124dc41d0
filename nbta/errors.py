"""Exceptions, and the one table of what can go wrong in an array operation.

Each class is also a subclass of the built-in that a Python user would catch. The *reason* of an
error is one word, the same for eager operations, graphs and compiled code.
"""

from __future__ import annotations

from collections import namedtuple
from contextlib import contextmanager
from typing import Any, NamedTuple

from nbta.naming import forward_name


class NbtaError(Exception):
    """Base class of all errors of nbta.

    Attributes
    ----------
    code : str
        TensorFlow's name for the kind of error, such as ``"INVALID_ARGUMENT"``.
    reason : str or None
        One word for the rule that was broken, such as ``"already_written"``.
    """

    code = "UNKNOWN"

    def __init__(self, message: Any, *numbers: int) -> None:
        self.reason = None
        if numbers:  # raised by compiled code, which passes the facts as integers
            self.reason = REASONS[message].reason
            message = describe(message, *numbers)
        super().__init__(_shortened(message))

    def __str__(self):  # KeyError's own would show the message as a repr
        return str(self.args[0])

    def __reduce__(self):
        return _restore, (type(self), self.args[0]), self.__dict__  # the reason, and notes


#: Characters of a message: a value of the user's may have a text of any length.
LONGEST = 2000


def _shortened(message):
    """A message without its middle where it is too long: the end says what to do."""
    if not isinstance(message, str) or len(message) <= LONGEST:
        return message
    left_out = f" [... {len(message) - LONGEST:,} characters more ...] "
    last = LONGEST // 3
    return f"{message[: LONGEST - last - len(left_out)]}{left_out}{message[-last:]}"


def _restore(cls, message):
    return cls(message)


class InvalidArgumentError(NbtaError, ValueError):
    """An argument breaks a rule of the operation."""

    code = "INVALID_ARGUMENT"


class OutOfRangeError(InvalidArgumentError, IndexError):
    """An index is out of range; iterating over an array ends with this error."""

    code = "OUT_OF_RANGE"


class NotFoundError(NbtaError, KeyError):
    """An object with the given name does not exist."""

    code = "NOT_FOUND"


class ResourceExhaustedError(NbtaError, MemoryError):
    """There is not enough memory."""

    code = "RESOURCE_EXHAUSTED"


class UnimplementedError(NbtaError, NotImplementedError):
    """The operation is not defined, or not implemented, for these arguments."""

    code = "UNIMPLEMENTED"


class FailedPreconditionError(NbtaError, RuntimeError):
    """The state of the system does not allow the operation."""

    code = "FAILED_PRECONDITION"


class PerformanceWarning(UserWarning):
    """A function is far slower than it could be; the message names the place and the remedy.

    The warning is given once for each nest of loops of a compiled function whose iterations call
    Python or copy a large array; once for a call that uses large buffers; once for a function that
    is traced for many lengths, or to thousands of operations; and once if the cache of machine code
    cannot be trusted (``SECURITY.md``). Results are correct.

    Examples
    --------
    A loop that reads one of two arrays, which branches of an iteration around it make, does so
    today:

    >>> import warnings
    >>> def power(x):
    ...     def row(y, factor):
    ...         filled = lambda v: nbta.TensorArray("float64", 2).write(0, v).write(1, factor)
    ...         ta = nbta.cond(factor > 0.5, lambda: filled(x), lambda: filled(-x))
    ...         return nbta.foldl(lambda y, k: y * ta.read(k), np.arange(2), y), None
    ...     return nbta.scan(row, 1.0, np.ones(4))[0]
    >>> slope = nbta.grad(power, compiled=True)
    >>> with warnings.catch_warnings(record=True, action="always") as found:
    ...     slope(2.0)  # 4 x**3
    np.float64(32.0)
    >>> print(found[0].category.__name__, found[0].message)
    PerformanceWarning the loop 'scan' (...:6), with 'scan/body/foldl' (...:5) in it, is compiled,
    but it or its gradient calls Python in each iteration, ...
    """


class PrecisionWarning(UserWarning):
    """An initial value of a loop is float64 while the rows are float32, so results become float64.

    The message names the initial value.

    Examples
    --------
    >>> import warnings
    >>> rows = np.ones((3, 2), np.float32)
    >>> with warnings.catch_warnings(record=True, action="always") as found:
    ...     total = nbta.foldl(lambda total, row: total + row, rows, np.zeros(2))
    >>> print(total.dtype, found[0].category.__name__, found[0].message)
    float64 PrecisionWarning foldl: initializer is float64 and elems float32, ...
    """


class NoNumbaType:
    """In place of a Numba type where there is none: whatever Numba asks of it raises why.

    What ``_numba_type_`` itself raises would be lost, and from Python 3.13 on printed besides.
    """

    def __init__(self, error):
        self._error = error

    def __getattr__(self, name):
        raise self._error


class Reason(NamedTuple):
    """A way to fail: its word, its class and its message.

    The message may use ``slot``, ``expected`` and ``got`` (integers), ``expected_shape`` and
    ``got_shape``.
    """

    reason: str
    error: type
    message: str


_I, _U, _R = InvalidArgumentError, UnimplementedError, ResourceExhaustedError
_UNKNOWN_SHAPE = (
    "and the element shape is not fully known ({expected_shape}), so there are no zeros to give; "
    "write it first, or make the array with element_shape="
)

#: Kernels answer with an index into this list; 0 is success.
REASONS = [
    Reason("ok", _I, ""),
    Reason("closed", _I, "the array is closed; make a new one"),
    Reason(
        "read_out_of_range",
        _I,
        "there is no slot {slot}: the array has {expected} slots, numbered from 0",
    ),
    Reason(
        "write_out_of_range",
        _I,
        "there is no slot {slot}: the array has {expected} slots, numbered from 0, and does not "
        "grow; make it with dynamic_size=True (a gradient lookup ends growth) or a larger size",
    ),
    Reason(
        "scatter_out_of_range",
        _I,
        "there is no slot {slot}: the array has {expected} slots, numbered from 0, and does not "
        "grow; make it with dynamic_size=True (a gradient lookup ends growth) or a larger size",
    ),
    Reason(
        "already_written",
        _I,
        "slot {slot} holds a value, and slots of a forward array are written once; write to "
        "another slot or to a new array, accumulate into a gradient array, or keep values that "
        "change in a NumPy array",
    ),
    Reason(
        "already_read",
        _I,
        "slot {slot} was read, so it takes no more writes; order the write before the read",
    ),
    Reason(
        "cleared",
        _I,
        "slot {slot} was cleared when it was read; make the array with "
        "clear_after_read=False to read a slot more than once",
    ),
    Reason("unknown_element_shape", _I, "slot {slot} was never written, " + _UNKNOWN_SHAPE),
    Reason(
        "incompatible_element_shape",
        _I,
        "slot {slot} takes elements of shape {expected_shape}, and the value has shape "
        "{got_shape}; reshape it, or make the array with infer_shape=False and a wider "
        "element_shape",
    ),
    Reason(
        "aggregate_shape",
        _I,
        "gradient slot {slot} holds shape {expected_shape}, and the value to add has shape "
        "{got_shape}; only equal shapes add",
    ),
    Reason("aggregate_dtype", _I, "slot {slot} holds a bool, and bools have no sum; use numbers"),
    Reason("write_dtype", _I, "the value's dtype is not the array's; cast the value first"),
    Reason("read_dtype", _I, "the dtype asked for is not the array's; ask for the array's dtype"),
    Reason(
        "rank",
        _I,
        "elements have at most 8 dimensions, and this one would have {got}; reshape it",
    ),
    Reason(
        "scatter_length",
        _I,
        "there are {expected} indices and {got} rows of the value; give one index per row",
    ),
    Reason("scatter_scalar", _I, "a scalar has no rows to scatter; use write"),
    Reason("split_scalar", _I, "a scalar has no first axis to split; use write"),
    Reason(
        "split_count",
        _I,
        "there are {got} lengths for {expected} slots; give one length per slot (more only if "
        "the array grows, with dynamic_size=True)",
    ),
    Reason(
        "split_sum", _I, "the lengths add up to {got}, and the value's first axis has {expected}"
    ),
    Reason("split_negative", _I, "length {slot} is {got}; lengths are 0 or more"),
    Reason("concat_scalar", _I, "slot {slot} is a scalar, which has no first axis; use stack"),
    Reason(
        "concat_except0",
        _I,
        "slot {slot} has shape {expected_shape}, and {got_shape} was asked for after its first "
        "axis; ask for a shape that fits",
    ),
    Reason(
        "inconsistent_shapes",
        _I,
        "slot {slot} has shape {got_shape} where {expected_shape} is needed to join it with the "
        "others; read such elements one by one",
    ),
    Reason(
        "gather_element_shape",
        _I,
        "the element shape asked for, {got_shape}, does not fit {expected_shape}",
    ),
    Reason(
        "empty_gather",
        _U,
        "there is nothing to stack, and the element shape is not fully known ({expected_shape}); "
        "make the array with element_shape=, or ask for a full one",
    ),
    Reason(
        "empty_concat",
        _U,
        "there is nothing to concatenate, and the shape after the first axis is not known; give "
        "it with element_shape_except0=",
    ),
    Reason("negative_size", _I, "the size is {got}; it must be 0 or more"),
    Reason(
        "prepend_negative",
        _I,
        "the shape to prepend has the dimension {got}; dimensions are 0 or more",
    ),
    Reason("no_gradient", _U, "elements of this dtype have no gradients; use numbers"),
    Reason(
        "not_gradient",
        _I,
        "only gradient arrays accumulate, and this is a forward array; use grad(source), or write",
    ),
    Reason(
        "too_large",
        _R,
        "not enough memory for {got} slots of {expected} bytes and one byte of state each; ask for "
        "fewer or smaller ones",
    ),
    Reason(
        "not_loaded",
        FailedPreconditionError,
        "the kernels could not be compiled or loaded; interrupted, or out of memory?",
    ),
    Reason(
        "negative_extent",
        _I,
        "the dimension {got} of element_shape is outside [0, 2**62); use None where it is unknown",
    ),
    Reason(
        "gradient_rank",
        _I,
        "grad_with_shape made this gradient array with elements of rank {got}, and compiled code "
        "counts on rank {expected}; look it up from Python and pass it in",
    ),
    Reason(
        "lanes_fixed_size",
        _I,
        "lanes are joined after the last slot, and the array does not grow; make it with "
        "dynamic_size=True (a gradient lookup ends growth)",
    ),
    Reason(
        "lanes_count",
        _I,
        "there may be 1 to {expected} lanes, and {got} were asked for; give a fixed number, a few "
        "times as many as there are processors",
    ),
    Reason(
        "no_lane",
        _I,
        "there is no lane {slot}: there are {expected} lanes, numbered from 0",
    ),
    Reason(
        "lane_taken",
        _I,
        "lane {slot} was already taken, and has only one user; keep the array that take returned",
    ),
    Reason("lanes_joined", _I, "the lanes were joined and are finished; make new ones with lanes"),
    Reason("lanes_total", _I, "the total is {got}; it must be in [0, 2**62)"),
    Reason(
        "lane_closed",
        _I,
        "lane {got} was closed, and its elements are lost; do not close lanes, as join closes them",
    ),
    Reason(
        "lane_unwritten",
        _I,
        "slot {slot} of lane {got} was never written; write or append the slots of a lane without "
        "a gap",
    ),
    Reason(
        "lane_cleared",
        _I,
        "slot {slot} of lane {got} was cleared when it was read; read after the join, or "
        "make the array with clear_after_read=False",
    ),
    Reason(
        "lane_shape",
        _I,
        "slot {slot} of lane {got} has shape {got_shape} where {expected_shape} is needed to join "
        "it; reshape it, or make the array with infer_shape=False and a wider element_shape",
    ),
    Reason(
        "growth_in_loop",
        FailedPreconditionError,
        "slot {slot} is past the end of the array, which cannot grow in a parallel loop, as the "
        "order of its slots would depend on the schedule; give it its final size, or make lanes "
        "before the loop (parts = ta.lanes(n))",
    ),
    Reason(
        "deposited_twice",
        FailedPreconditionError,
        "slot {slot} was added to in this parallel loop already, and a second term would make "
        "the sum depend on the schedule; add once per slot, use lanes, or loop with range",
    ),
    Reason(
        "bulk_in_loop",
        FailedPreconditionError,
        "a parallel loop uses the array, one slot at a time; do this before or after the loop",
    ),
    Reason(
        "no_slot",
        OutOfRangeError,
        "there is no slot {slot}: the array has {expected} slots, numbered from 0, or from -1 "
        "backwards",
    ),
    Reason(
        "look_in_loop",
        FailedPreconditionError,
        "slot {slot} may change while a parallel loop uses the array; inspect it before "
        "or after the loop, or read it",
    ),
    Reason("flow", _I, "the flow is another array's; give this array's own"),
    Reason(
        "inferred_rank",
        _I,
        "the array has elements of rank {got}, and this function was compiled for those of rank "
        "{expected}, which it writes; make the array with element_shape=, or read it in another "
        "function",
    ),
    Reason(
        "size_int32",
        _I,
        "the array has {got} slots, and size gives an int32, as TensorFlow's does; len(array) "
        "gives any number",
    ),
]
#: Status codes of kernels, which are places in that table; compiled code takes them from here too.
STATUS: Any = namedtuple("STATUS", [row.reason for row in REASONS])(*range(len(REASONS)))


#: What Python's lists do and arrays do not, with Python's words for it and what to write instead:
#: the same in Python, in compiled code and in traced functions.
NOT_OF_ARRAYS = {
    "__setitem__": ("does not support item assignment", "write ta = ta.write(i, value)"),
    "__delitem__": (
        "doesn't support item deletion",
        "write the values that you keep to a new array, or free all slots with ta.close()",
    ),
} | {
    name: (f"has no attribute {name!r}", cure)
    for name, cure in {
        "extend": "append the values in a loop with ta = ta.append(value), or write them at once "
        "with ta = ta.unstack(values) or ta = ta.scatter(indices, values)",
        "insert": "slots do not move; write to a free slot with ta = ta.write(i, value), or after "
        "the last one with ta = ta.append(value)",
        "pop": "read the last slot with ta.read(ta.size() - 1); no slot is removed, so a stack "
        "needs a counter of your own",
        "remove": "no slot is removed; select from ta.stack(), or write the values that you keep "
        "to a new array",
        "clear": "free all slots with ta.close() and make a new array",
        "sort": "sort a copy of the values with np.sort(ta.stack())",
        "reverse": "reverse the values with ta.stack()[::-1], or read the slots from the last one "
        "down",
        "copy": "copy the values with np.array(ta.stack())",
        "index": "look for the value with np.flatnonzero(ta.stack() == value)",
        "count": "count the value with np.count_nonzero(ta.stack() == value)",
    }.items()
}


def not_of_arrays(name):
    """What is said of an attribute or special method that arrays do not have."""
    said, cure = NOT_OF_ARRAYS.get(name, (f"has no attribute {name!r}", ""))
    return f"'TensorArray' object {said}{cure and '; '}{cure}"


#: What Python raises for items that cannot be set, and also what `hasattr` takes for an answer.
_ItemError = type(
    "TypeError",
    (TypeError, AttributeError),
    {"__module__": "builtins", "__reduce__": lambda self: (TypeError, self.args)},
)


class NotOfArrays:
    """In place of what lists have and a class does not, so that Python says what to write.

    A ``__getattr__`` for all names would make Python bind each method that is called, 40 ns.

    Parameters
    ----------
    name : str
        A key of `NOT_OF_ARRAYS`.
    where : callable, default str
        Gives what the message begins with.
    """

    def __init__(self, name, where=str):
        self._name, self._where = name, where

    def __get__(self, owner, kind=None):
        message = self._where() + not_of_arrays(self._name)
        raise _ItemError(message) if self._name[0] == "_" else AttributeError(message)

    def __set__(self, owner, value):
        raise AttributeError(f"{self._name} of an array cannot be set")


def _shape(numbers):
    """``(rank, dimensions...)`` as text: ``(2, ?)``, or ``unknown rank``."""
    rank, dimensions = numbers[0], numbers[1:]
    if rank < 0:
        return "unknown rank"
    parts = ["?" if dimension < 0 else str(dimension) for dimension in dimensions[:rank]]
    return f"({parts[0]},)" if rank == 1 else f"({', '.join(parts)})"


def _text(words):
    """A text that compiled code passed as integers, two code points each."""
    points = (word >> shift & 0xFFFFFFFF for word in words for shift in (0, 32))
    return "".join(chr(point) for point in points if point)


def _named(array, texts):
    """An array's name: eager code gives it, compiled code a number and two texts as integers.

    The texts are the name that the array was given, and what a gradient array's name adds.
    """
    if isinstance(array, str):
        return array
    if array == -1:
        return "TensorArray"  # which was not made
    name, suffix = map(_text, texts)
    return forward_name(name, array) + suffix


def describe(status, operation, array, slot, expected, got, expected_shape, got_shape, *texts):
    """The message for a kernel's status and the facts it left after."""
    row = REASONS[status]
    if row.reason.endswith("out_of_range") and slot < 0:
        row = row._replace(message="slot {slot} is negative; slots are numbered from 0")
    text = row.message.format(
        slot=slot,
        expected=expected,
        got=got,
        expected_shape=_shape(expected_shape),
        got_shape=_shape(got_shape),
    )
    return f"{OPERATIONS[operation]} on {_named(array, texts)}: {text}"


def failure(status, *facts):
    """The exception for a kernel's status; ``facts`` as for `describe`."""
    return REASONS[status].error(status, *facts)


def invalid(reason, message):
    """An InvalidArgumentError found before any kernel ran."""
    error = InvalidArgumentError(message)
    error.reason = reason
    return error


def out_of_range(message):
    """An OutOfRangeError for an index of an array or a list."""
    error = OutOfRangeError(message)
    error.reason = "index"
    return error


@contextmanager
def memory_for(what):
    """Make a MemoryError nbta's own, which says what there was no memory for."""
    try:
        yield
    except NbtaError:
        raise
    except MemoryError as found:
        said = str(found) or "not enough memory"
        error = ResourceExhaustedError(f"{what}: {said}; give less at once, or free some memory")
        error.reason = "too_large"
        raise error from None


def located(error, where):
    """An error of the same kind that begins with where it happened."""
    made = type(error)(f"{where}: {error}")
    made.reason = error.reason
    return made


#: Names of the kernels' operations, in the order of their numbers.
OPERATIONS = (
    "create", "write", "read", "gather", "scatter", "concat", "split", "grad", "close",
    "append", "stack", "accumulate", "read", "size", "lanes", "take", "range", "join",
    "enter", "leave", "arrive", "depart", "getitem", "asarray", "offsets",
)  # fmt: skip
