"""From source to a function in machine code."""

import math

import numba
import numpy as np
from numba import types

from nbta.codegen.number_rules import Elementary
from nbta.compiler import cache
from nbta.compiler.phases import phase
from nbta.graph.record import TABLE
from nbta.runtime import clock, foreign, memory, number_math, pointers, slots, vector_math
from nbta.runtime.numba_private import ShortPipeline, global_compiler_lock

OPTIONS = {"error_model": "numpy", "fastmath": {"contract"}, "nogil": True}
_SIGNATURE = types.int64(types.int64)
_NUMBERS = (
    "boolean", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip
_POINTERS = (
    "pointer", "address", "call", "copy", "clear", "fast_add", "refuse", "too_many", "room", "tick",
    "array_in", "extent_in", "adopt", "agrees",
)  # fmt: skip


def elementary() -> list[tuple]:
    """The rules of records that call functions by name, and what these are in NumPy."""
    records = [record for record in TABLE.values() if isinstance(record.emit, Elementary)]
    return [(record.emit, record.evaluate) for record in records]


def namespace() -> dict:
    """What generated source refers to."""
    names = {name: getattr(types, name) for name in _NUMBERS}
    names |= {r.name: r.compiled or getattr(vector_math, r.name) for r, _ in elementary()}
    names |= {name: getattr(slots, name) for name in ("slot", "write_item", "read_item", "watch")}
    names |= {name: getattr(number_math, name) for name in number_math.NAMES}
    names |= {name: getattr(pointers, name) for name in _POINTERS}
    names |= {name: getattr(math, name) for name in ("inf", "nan")}
    names |= {"attempt": foreign.attempt, "frozen": foreign.frozen}
    names |= {name: getattr(clock, name) for name in clock.NAMES}
    return names | {"load_int": memory.load_int, "np": np}


def build(source: str, extra: dict | None = None):
    """A function of the address of a table of words, which gives a status.

    Parameters
    ----------
    source : str
    extra : dict, optional
        What the source refers to besides the `namespace`. Nothing tells when that changes, so
        such a function is not kept on disk.

    Returns
    -------
    Loaded or Compiled
        Its ``function`` is for Python, its ``address`` for C.
    """

    def compiled():
        facts["compiled"] = True
        names = namespace() | (extra or {})
        exec(compile(source, "<nbta>", "exec"), names)
        dispatcher = numba.njit(pipeline_class=ShortPipeline, **OPTIONS)(names["run"])
        with global_compiler_lock:
            dispatcher.compile(_SIGNATURE)
        return dispatcher

    with phase("machine code") as facts:
        return cache.Compiled(compiled()) if extra else cache.kept(source, OPTIONS, compiled)
