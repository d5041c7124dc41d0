"""Generated source run by Python itself, without a compiler: slow loops, but no wait for LLVM.

Memory is real: pointers are addresses, and helpers are called at theirs.
"""

import ctypes

import numpy as np

from nbta.compiler import build

_TYPES = {
    "boolean": np.bool_, **{np.dtype(c).name: np.dtype(c).type for c in "bBhHiIlLfdFD"}
}  # fmt: skip


class Pointer:
    """Items of a dtype from an address on."""

    def __init__(self, dtype, address, _number):
        self.dtype, self.start = np.dtype(dtype), int(address)

    def _item(self, index):
        address = self.start + int(index) * self.dtype.itemsize
        assert self.start, "a null pointer"
        buffer = (ctypes.c_char * self.dtype.itemsize).from_address(address)
        return np.frombuffer(buffer, self.dtype)

    def __getitem__(self, index):
        value = self._item(index)[0]
        return int(value) if self.dtype == np.int64 else value

    def __setitem__(self, index, value):
        self._item(index)[0] = value


def _number(kind):
    if kind is np.int64:
        return lambda value: int(np.array(value).astype(np.int64))
    return lambda value: np.array(value).astype(kind)[()]


def _call(function, arguments):
    assert function, "no function there"
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(arguments))
    return kind(function)(*map(int, arguments))


def _copy(target, at, source, start, count):
    size = target.dtype.itemsize
    if count:
        ctypes.memmove(
            target.start + int(at) * size, source.start + int(start) * size, int(count) * size
        )


def _clear(target, at, count):
    if count:
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


def _room(kind, w, word, count, number):
    nbytes = int(count) * np.dtype(kind.kind).itemsize
    if _words(w, word + 1)[0] < nbytes:
        status = _call(_words(w, 0)[0], (word, nbytes))
        _refuse(status != 0, status)
    return Pointer(kind.kind, _words(w, word)[0], number)


def _slot(w, record, what, a, b):
    result = _call(_words(w, 3)[0], (w, record, what, a, b))
    _refuse(result < 0, -result)
    return result


def _special(name):
    from scipy import special

    return getattr(special, name)


class _Kind:
    """A dtype's name in generated source: makes numbers, and names items of pointers."""

    def __init__(self, kind):
        self.kind, self._number = kind, _number(kind)

    def __call__(self, value):
        return self._number(value)


def interpreted(source):
    """The function of generated source, as `nbta.compiler.build.build` gives it."""
    names = dict.fromkeys(build.namespace())
    names |= {name: _Kind(kind) for name, kind in _TYPES.items()}
    names |= {
        name: getattr(np, name)
        for name in ("exp", "expm1", "log", "log1p", "tanh", "sqrt", "sin", "cos", "inf", "nan")
    }
    names |= {"sigmoid": lambda x: _special("expit")(x), "erf": lambda x: _special("erf")(x),
              "softplus": lambda x: np.logaddexp(x, np.zeros((), x.dtype))}  # fmt: skip
    names |= {
        "pointer": lambda kind, address, number: Pointer(kind.kind, address, number),
        "address": lambda place, index: place.start + int(index) * place.dtype.itemsize,
        "call": _call, "copy": _copy, "clear": _clear, "fast_add": lambda a, b: a + b,
        "refuse": _refuse, "room": _room, "slot": _slot, "np": np,
        "load_int": lambda address: ctypes.c_int64.from_address(int(address)).value,
    }  # fmt: skip
    missing = [name for name, value in names.items() if value is None]
    assert not missing, missing
    exec(compile(source, "<nbta>", "exec"), names)

    def run(address):
        with np.errstate(all="ignore"):
            try:
                return names["run"](address)
            except _LeftError as left:
                return left.args[0]

    return run
