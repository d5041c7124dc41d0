"""Addresses of functions that generated code calls by name."""

import contextlib
import ctypes
import functools
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

import numba
import scipy
from numba import types

from nbta.compiler import cache
from nbta.runtime import blocks, factors

FUNCTIONS = blocks.FUNCTIONS | factors.FUNCTIONS


@functools.cache
def address(name: str) -> int:
    """The address of a helper, compiled or loaded from the disk cache at its first use.

    Names that begin with ``Py`` are functions of Python's C interface.
    """
    if name.startswith("Py"):
        return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    kind, _, dtype = name.partition("_")
    if kind == "blas":
        with _cython_blas_alone():
            return blocks.blas_address(dtype)
    function, arity = FUNCTIONS[name]
    signature = types.int64(*[types.int64] * arity)

    def compiled():
        dispatcher = numba.njit(**blocks.OPTIONS)(function)
        dispatcher.compile(signature)
        return dispatcher

    found = cache.kept(f"{name} {signature}", blocks.OPTIONS, compiled)
    _kept.append(found)
    return found.address


_kept = []  # what the addresses belong to


@contextlib.contextmanager
def _cython_blas_alone(name="scipy.linalg.cython_blas"):
    """Have the module that knows where BLAS is, without all of ``scipy.linalg``: 5 ms, not 150.

    It is taken out again, so that whoever imports it finds it as an attribute of its package, too.
    Cython gives the same module again then.
    """
    alone = name not in sys.modules and _load(name)
    try:
        yield
    finally:
        if alone:
            sys.modules.pop(name, None)


def _load(name):
    """Load a module of SciPy without its package; False where that cannot be done."""
    folder = name.split(".")[1]
    try:
        found = PathFinder.find_spec(name, [str(Path(p, folder)) for p in scipy.__path__])
        module = sys.modules[name] = module_from_spec(found)
        found.loader.exec_module(module)
    except Exception:  # the usual import will do, or say what is wrong
        sys.modules.pop(name, None)
        return False
    return True
