"""Generated source run by Python itself, without a compiler: slow loops, but no wait for LLVM.

Memory is real: pointers are addresses, and helpers are called at theirs.
"""

import ctypes
import functools
import math
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import scipy.special

from nbta.codegen import gammas, philox, special
from nbta.compiler import build, executable
from nbta.kernels import complex_math
from nbta.loops.interpreting import Interpreter
from nbta.runtime import clock
from nbta.runtime.intrinsics import MEMORY, MOST_ITEMS

_TYPES = {
    "boolean": np.bool_, **{np.dtype(c).name: np.dtype(c).type for c in "bBhHiIlLfdFD"}
}  # fmt: skip


class Pointer:
    """Items of a dtype from an address on."""

    def __init__(self, dtype, address, _number):
        self.dtype, self.start = np.dtype(dtype), int(address)
        self.first, self.last = _room_at(self.start)

    def check(self, index, count=1):
        """Refuse what is outside of the buffer."""
        first = self.start + int(index) * self.dtype.itemsize
        last = first + int(count) * self.dtype.itemsize
        assert self.first <= first <= last <= self.last, "outside of the buffer"

    def _item(self, index):
        self.check(index)
        address = self.start + int(index) * self.dtype.itemsize
        buffer = (ctypes.c_char * self.dtype.itemsize).from_address(address)
        return np.frombuffer(buffer, self.dtype)

    def __getitem__(self, index):
        value = self._item(index)[0]
        return int(value) if self.dtype == np.int64 else value

    def __setitem__(self, index, value):
        self._item(index)[0] = value


def _room_at(address):
    """First and last address of the memory that an address is in; of the largest of views."""
    found = []
    work = getattr(_running, "work", None)
    if work is None:
        return 0, 1 << 63
    for array in _memory(work):
        first = array.__array_interface__["data"][0]
        if first <= address < first + max(1, array.nbytes):
            found.append((first, first + array.nbytes))
    return max(found, key=lambda room: room[1] - room[0], default=(0, 0))


_running = threading.local()  # with the workspace and the arrays of the call, if it is watched
#: Where functions were left with a status: its number and the line, after that of the operation.
exits = []


def _give(self, given, new, original=executable.Workspace.give):
    _running.arrays = [array for array in (*given, *new) if array is not None]
    _running.work = self
    return original(self, given, new)


def _memory(work):
    yield work.words
    yield from work._buffers.values()
    yield from _running.arrays
    yield from work._constants
    for results in work.kept.values():
        yield from results
    yield from (counter for _, counter in work.bars)


@contextmanager
def watched():
    """Check that all accesses are within the buffers of the call that makes them."""
    own = executable.Workspace.give
    executable.Workspace.give = _give
    try:
        yield
    finally:
        executable.Workspace.give = own


def _number(kind):
    if kind is np.int64:
        return lambda value: int(_wrapped(value).astype(np.int64))
    if issubclass(kind, np.integer):
        return lambda value: _wrapped(value).astype(kind)[()]
    return lambda value: np.array(value).astype(kind)[()]


def _wrapped(value):
    """A number as an array; integers of Python without what is above 64 bits."""
    return np.array(value % 2**64, np.uint64) if type(value) is int else np.array(value)


def _call(function, arguments):
    assert function, "no function there"
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(arguments))
    return kind(function)(*map(int, arguments))


#: How many items have been copied or set to zero.
moved = [0]


def _copy(target, at, source, start, count):
    size = target.dtype.itemsize
    moved[0] += int(count)
    if count:
        target.check(at, count)
        source.check(start, count)
        ctypes.memmove(
            target.start + int(at) * size, source.start + int(start) * size, int(count) * size
        )


def _has_nan(items, at, count):
    return any(items[k] != items[k] for k in range(int(at), int(at) + int(count)))


def _clear(target, at, count):
    moved[0] += int(count)
    if count:
        target.check(at, count)
        ctypes.memset(
            target.start + int(at) * target.dtype.itemsize, 0, int(count) * target.dtype.itemsize
        )


class _LeftError(Exception):
    """The function was left with a status."""


def _refuse(condition, status):
    if condition:
        raise _LeftError(status)


def _words(w, word, count=1):
    return [ctypes.c_int64.from_address(int(w) + 8 * (word + k)).value for k in range(count)]


def _too_many(dimensions):
    return math.prod(map(int, dimensions)) > MOST_ITEMS


def _room(kind, w, word, dimensions, number):
    nbytes = math.prod(map(int, dimensions)) * np.dtype(kind.kind).itemsize
    _refuse(nbytes >= 2**63, MEMORY)
    if _words(w, word + 1)[0] < nbytes:
        status = _call(_words(w, 0)[0], (word, nbytes))
        _refuse(status != 0, status)
    return Pointer(kind.kind, _words(w, word)[0], number)


def _slot(w, record, what, a, b):
    result = _call(_words(w, 3)[0], (w, record, what, a, b))
    _refuse(result < 0, -result)
    return result


def _tick(place):
    place[0] = place[0] + 1


def _object(w, word):
    """The array whose Python object a word has the address of."""
    return ctypes.cast(_words(w, word)[0], ctypes.py_object).value


def _array_in(kind, w, word, head, rank, number):
    array = _object(w, word)
    _refuse(array.ndim != rank, 1)
    _refuse(not (array.flags.c_contiguous and array.flags.aligned), 3)
    return Pointer(kind.kind, array.__array_interface__["data"][0], number)


def _dimension_in(w, word, head, axis):
    return _object(w, word).shape[axis]


def _adopt(w, word, given, head, rank, itemsize):
    place = Pointer(np.int64, int(w) + 8 * word, 0)
    place[1] = 0
    if _words(w, given)[0]:
        array = _object(w, given)
        assert (array.ndim, array.itemsize) == (rank, itemsize)
        place[0], place[1] = array.__array_interface__["data"][0], array.nbytes


def _agrees(w, given, head, dimensions):
    return bool(_words(w, given)[0]) and _object(w, given).shape == tuple(map(int, dimensions))


def _load_int(address):
    return ctypes.c_int64.from_address(int(address)).value


class _Kind:
    """A dtype's name in generated source: makes numbers, and names items of pointers."""

    def __init__(self, kind):
        self.kind, self._number = kind, _number(kind)

    def __call__(self, value):
        return self._number(value)


def _frozen(place, index, dimensions):
    """A read-only array of items."""
    count = int(np.prod(dimensions)) * place.dtype.itemsize
    if not count:
        return np.empty(dimensions, place.dtype)
    start = place.start + int(index) * place.dtype.itemsize
    array = np.frombuffer((ctypes.c_char * count).from_address(start), place.dtype)
    array.flags.writeable = False
    return array.reshape(dimensions)


def _of_reals(address, arguments):
    kinds = [ctypes.c_double] * (len(arguments) + 1) + [ctypes.c_int]
    return ctypes.CFUNCTYPE(*kinds)(int(address))(*map(float, arguments), 0)


def _attempt(function, arguments):
    try:
        return function(*arguments)
    except Exception:
        raise _LeftError(1) from None


def _exit(source, error):
    """The place where a function was left, in words."""
    lines, place, frame = source.splitlines(), 0, error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == "<nbta>":
            place = frame.tb_lineno
        frame = frame.tb_next
    around = next((line for line in reversed(lines[:place]) if line.strip().startswith("#")), "")
    return f"{error.args[0]}: {lines[place - 1].strip()} {around.strip()}"


def fetch(place, index):
    """Ask the processor for an item ahead: nothing to Python."""


def names_of(extra=None):
    """What generated code refers to, in Python."""
    names = dict.fromkeys(build.namespace())
    names |= {name: _Kind(kind) for name, kind in _TYPES.items()}
    names |= {rule.name: evaluate for rule, evaluate in build.elementary()}
    names |= {"inf": np.inf, "nan": np.nan}
    names |= {
        "pointer": lambda kind, address, number: Pointer(kind.kind, address, number),
        "address": lambda place, index: place.start + int(index) * place.dtype.itemsize,
        "call": _call, "copy": _copy, "clear": _clear, "fast_add": lambda a, b: a + b,
        "guarded": lambda adjoint, value: type(value)(0) if adjoint == 0 else value,
        "has_nan": _has_nan,
        "unless": lambda condition, value: type(value)(0) if condition else value,
        "chosen": lambda condition, one, other: one if condition else other,
        "refuse": _refuse, "too_many": _too_many, "room": _room, "slot": _slot, "np": np,
        "tick": _tick, "fetch": fetch,
        "fence": lambda: None,
        "watch": lambda w, word, iteration: None,
        "write_item": lambda w, record, index, _: _slot(w, record, 2, index, 0),
        "read_item": lambda w, record, index, _: _slot(w, record, 3, index, 0),
        "array_in": _array_in, "dimension_in": _dimension_in, "adopt": _adopt, "agrees": _agrees,
        "load_int": _load_int, "frozen": _frozen, "attempt": _attempt,
        "opaque": int, "carried": lambda value: value,
    }  # fmt: skip
    names |= {name: getattr(np, name) for name in ("maximum", "minimum", "sign", "floor")}
    names |= {
        "floor_divide": np.floor_divide, "modulo": np.mod, "complex_divide": np.divide,
        "complex_exp": np.exp,
        "half_integer_power": lambda x, halves: x ** type(x)(halves / 2),
        "integer_power": lambda x, y: pow(int(x), int(y), 1 << 64),
        **dict.fromkeys(("order_up", "order_down", "from_order"), lambda x: x),
    }  # fmt: skip
    names |= {name: getattr(np, name.removeprefix("complex_")) for name in complex_math.NAMES}
    names |= dict.fromkeys(clock.NAMES, lambda *words: None)
    names |= philox.NAMES | special.NAMES | gammas.NAMES | {"of_reals": _of_reals}
    names |= {"positive_gammaln": scipy.special.gammaln, "positive_digamma": scipy.special.psi}
    names["positive_trigamma"] = functools.partial(scipy.special.polygamma, 1)
    names["positive_tetragamma"] = functools.partial(scipy.special.polygamma, 2)
    names |= extra or {}
    missing = [name for name, value in names.items() if value is None]
    assert not missing, missing
    return names


def interpreted(source, extra=None, function=None):
    """The code of generated source, as `nbta.compiler.build.build` gives it."""
    names = names_of(extra)
    exec(compile(source, "<nbta>", "exec"), names)
    return _running_by(names["run"], lambda left: [_exit(source, left)])


def by_nodes(function, extra=None):
    """The same of nodes, by the interpreter of the loop IR."""
    return _running_by(Interpreter(function, names_of(extra)).run, lambda left: [str(left)])


def _running_by(function, told):
    def run(address):
        with np.errstate(all="ignore"):
            try:
                return function(address)
            except _LeftError as left:
                exits[:] = told(left)
                return left.args[0]
            finally:
                _running.work = None

    return SimpleNamespace(function=run)
