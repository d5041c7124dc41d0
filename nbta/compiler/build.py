"""From the loop IR to machine code, with what it calls by name or by address."""

import contextlib
import ctypes
import functools
import hashlib
import math
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

import numba
import numpy as np
import scipy
from numba import types

from nbta import tuning
from nbta.codegen import gammas, philox, positive_gammas, prefetching, special
from nbta.codegen.fusion import Elementary
from nbta.compiler import lowering, outlining, short_loops
from nbta.compiler.lowering import lowered
from nbta.compiler.phases import phase
from nbta.graph.operation import TABLE
from nbta.kernels import complex_math, exponential, factors, fourier, matrices, vector_math
from nbta.loops import nodes, printing, saving, structure
from nbta.runtime import clock, intrinsics, machine_code, memory, plain
from nbta.runtime.numba_private import ShortPipeline, global_compiler_lock
from nbta.runtime.object_files import only_overload

FUNCTIONS = matrices.FUNCTIONS | factors.FUNCTIONS | exponential.FUNCTIONS | fourier.FUNCTIONS
#: Whose names are asked for after a prefix, and who knows their addresses.
_FORTRAN = {"blas": matrices.blas_address, "lapack": factors.lapack_address}


@functools.cache
def address(name: str) -> int:
    """The address of a helper, loaded or compiled at its first use.

    Names that begin with ``Py`` are functions of Python's C interface, those with ``blas_``,
    ``lapack_`` and ``special_`` such as SciPy exports.
    """
    if name.startswith("Py"):
        return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    if name.startswith(special.PREFIX):
        function, _, arity = name.removeprefix(special.PREFIX).rpartition("_")
        return special.special_address(function, int(arity))
    kind, _, function = name.partition("_")
    if kind in _FORTRAN:
        with _alone(f"scipy.linalg.cython_{kind}"):
            return _FORTRAN[kind](function)
    found = FUNCTIONS[name].load()
    _kept.append(found)
    return found.address


_kept = []  # what the addresses belong to


@contextlib.contextmanager
def _alone(name):
    """Have a module that knows where BLAS is, without all of ``scipy.linalg``: 5 ms, not 150.

    It is taken out again, so that whoever imports it finds it as an attribute of its package, too.
    Cython gives the same module again then. A package that another thread imports is waited for.
    """
    with global_compiler_lock:  # a module half loaded is no use to other threads, nor to a fork
        package = name.rpartition(".")[0]
        if package in sys.modules:
            import_module(package)
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


OPTIONS = {"error_model": "numpy", "fastmath": {"contract"}, "nogil": True}
#: What code is made by, besides the runtime, as it is when it is imported.
_SOURCES = b"".join(
    Path(file).read_bytes()
    for file in (
        __file__,
        *(
            module.__file__
            for module in (
                lowering,
                outlining,
                short_loops,
                nodes,
                printing,
                structure,
                saving,
                special,
                philox,
                gammas,
                positive_gammas,
                prefetching,
                tuning,
            )
        ),
    )
)
_OURS = f"# {hashlib.sha256(_SOURCES).hexdigest()}\n"
_NUMBERS = (
    "boolean", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip
_INTRINSICS = (
    "pointer", "address", "call", "copy", "clear", "fast_add", "refuse", "too_many", "room", "tick",
    "watch", "array_in", "dimension_in", "adopt", "agrees", "attempt", "frozen", "opaque", "fence",
    "unless", "chosen", "guarded", "carried", "has_nan",
)  # fmt: skip


def elementary() -> list[tuple]:
    """The rules of records that call functions by name, and what these are in NumPy."""
    records = [record for record in TABLE.values() if isinstance(record.emit, Elementary)]
    return [(record.emit, record.evaluate) for record in records]


def namespace() -> dict:
    """What generated functions refer to."""
    names = {name: getattr(types, name) for name in _NUMBERS}
    names |= {r.name: r.compiled or getattr(vector_math, r.name) for r, _ in elementary()}
    names |= {name: getattr(plain, name) for name in ("slot", "write_item", "read_item")}
    names |= {name: getattr(m, name) for m in (vector_math, complex_math) for name in m.NAMES}
    names |= {name: getattr(intrinsics, name) for name in _INTRINSICS}
    names |= {name: getattr(math, name) for name in ("inf", "nan")}
    names |= {name: getattr(clock, name) for name in clock.NAMES}
    names |= special.NAMES | philox.NAMES | gammas.NAMES
    names |= positive_gammas.NAMES | prefetching.NAMES
    return names | {"load_int": memory.load_int, "np": np}


def is_kept(source: str) -> bool:
    """Whether its machine code is on disk."""
    return machine_code.is_kept(_OURS + source, OPTIONS)


def build(source: str, extra: dict | None, function: Callable):
    """A function of the address of a table of words, which gives a status.

    Parameters
    ----------
    source : str
        The function as text, by which its machine code is found on disk.
    extra : dict, optional
        What the source refers to besides the `namespace`. Nothing tells when that changes, so
        such a function is not kept on disk.
    function : callable
        Gives the function as nodes; called where its machine code is not on disk.

    Returns
    -------
    Loaded or Compiled
        Its ``function`` is for Python, its ``address`` for C.
    """

    def compiled():
        facts["compiled"] = True
        names = namespace() | (extra or {})
        if not extra:
            return lowered(function(), names)
        exec(compile(source, "<nbta>", "exec"), names)
        dispatcher = numba.njit(pipeline_class=ShortPipeline, **OPTIONS)(names["run"])
        dispatcher.compile(types.int64(types.int64))
        return only_overload(dispatcher)

    with phase("machine code") as facts:
        return (
            machine_code.Compiled(compiled())
            if extra
            else machine_code.kept(_OURS + source, OPTIONS, compiled)
        )
