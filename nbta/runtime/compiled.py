"""Compiling the kernels' entrances once, and keeping them in Numba's disk cache.

Numba's cache looks at the source file of a function only; these entrances depend on every file
of the runtime, and a full disk must not stop anybody from computing.
"""

import contextlib
import ctypes
import hashlib
import os
from functools import cache
from pathlib import Path
from types import FunctionType

from numba import njit, types
from numba.extending import intrinsic

import nbta.dtypes
import nbta.errors
from nbta.runtime import settings
from nbta.runtime.numba_private import (
    COMPILER_LOCKS,
    FunctionCache,
    global_compiler_lock,
    has_entry,
    keep_on_disk,
    stamp,
)
from nbta.runtime.status import NOT_LOADED
from nbta.runtime.turns import turn

_SIGNATURE = types.int64(types.int64, types.int64, types.int64)


@cache
def runtime_stamp() -> str:
    """A hash of all sources that the kernels are compiled from."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    files += [Path(nbta.errors.__file__), Path(nbta.dtypes.__file__)]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


class _RuntimeCache(FunctionCache):
    """A disk cache whose entries are as old as the whole runtime."""

    def __init__(self, function):
        super().__init__(function)
        stamp(self, runtime_stamp())

    def load_overload(self, sig, target_context):
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged file raises whatever pickle makes of it: start over
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig, data):
        with contextlib.suppress(OSError):  # a full or read-only disk: compile again next time
            super().save_overload(sig, data)

    def has(self, sig, target_context) -> bool:
        """Whether there is an entry for a signature."""
        try:
            return has_entry(self, sig, target_context)
        except Exception:  # a damaged file, as above
            return False


def cacheable(function, **options):
    """``njit(cache=True)`` by the rules above; without a cache where no folder can be written."""
    dispatcher = njit(**options)(function)
    with contextlib.suppress(RuntimeError):
        kept = _RuntimeCache(function)
        keep_on_disk(dispatcher, kept)
        dispatcher.compile = _in_turn(dispatcher, kept)
    return dispatcher


def _in_turn(dispatcher, kept):
    """A dispatcher's ``compile`` for one process at a time; the others load what that one made."""
    compile_or_load = dispatcher.compile

    def compile_in_turn(sig):
        with global_compiler_lock:
            if kept.has(sig, dispatcher.targetctx):
                return compile_or_load(sig)
            with turn(kept.cache_path):
                return compile_or_load(sig)

    return compile_in_turn


@intrinsic
def stay_out_of_line(typingctx):
    """Keep the function that calls this from being inlined, so that hot code stays small."""

    def codegen(context, builder, sig, args):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.none(), codegen


def out_of_line(function):
    """`cacheable`, for a function that begins with `stay_out_of_line`.

    What a function of Numba's calls first takes over its ``forceinline``, unless told otherwise.
    """
    return cacheable(function, forceinline=False)


def cache_folder(sources: Path = Path(__file__).parent) -> Path | None:
    """Where Numba keeps what it compiles from a folder of sources; None where it cannot write."""
    code = cacheable.__code__.replace(co_filename=str(sources / "__init__.py"))
    try:
        return Path(FunctionCache(FunctionType(code, {}, "probe")).cache_path)
    except RuntimeError:
        return None


def cached(function, signature, **options):
    """Compile a function for one signature, or load it from the disk cache."""
    dispatcher = cacheable(function, **options)
    with global_compiler_lock:
        dispatcher.compile(signature)
    return dispatcher


def pointer_of(dispatcher) -> int:
    """Address of the C function behind a compiled function with one signature."""
    (overload,) = dispatcher.overloads.values()
    return overload.library.get_pointer_to_function(overload.fndesc.llvm_cfunc_wrapper_name)


def call_directly(dispatcher):
    """A compiled function with one signature, callable from Python without type dispatch."""
    (overload,) = dispatcher.overloads.values()
    return overload.entry_point


@cache
def entry(field: int):
    """An entrance of the kernels as a Python callable, compiled or loaded at its first use.

    It keeps the interpreter's lock, which operations that take no longer than letting go of it
    are better off with.
    """
    from nbta.runtime import kernels, lanes

    module = lanes if field == settings.LANES_ENTRY else kernels
    function = getattr(module, settings.NAMES[field])
    dispatcher = cached(function, _SIGNATURE, error_model="numpy")
    settings.put(field, pointer_of(dispatcher))
    return call_directly(dispatcher)


@cache
def releasing_entry(field: int):
    """`entry`, letting go of the interpreter's lock for the length of the call."""
    entry(field)
    return _C_ENTRY(settings.get(field))


def _stand_in(field):
    """What compiled code calls until an entrance is there: fetch it, then do as asked."""

    @_C_ENTRY
    def fetch(operation, store, request):
        try:
            return entry(field)(operation, store, request)
        except BaseException as error:
            _failures.append(error)
            return NOT_LOADED

    settings.put(field, ctypes.cast(fetch, ctypes.c_void_p).value)
    return fetch


#: Errors of the last attempts to fetch an entrance, for whoever looks into a NOT_LOADED.
_failures = []
_C_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
ENTRIES = (
    settings.STORAGE_ENTRY,
    settings.BULK_ENTRY,
    settings.GRADIENT_ENTRY,
    settings.LANES_ENTRY,
)
_stand_ins = [_stand_in(field) for field in ENTRIES]


# Forks. A child has none of its parent's other threads: what one of them had locked stays locked,
# and the first operation that the child must compile or load would wait for ever.

_held = []


def _hold_compiler():
    """Wait until no other thread compiles or loads anything."""
    for lock in COMPILER_LOCKS:
        lock.__enter__()
        _held.append(lock)


def _let_compiler_go():
    while _held:
        _held.pop().__exit__(None, None, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_hold_compiler, after_in_parent=_let_compiler_go, after_in_child=_let_compiler_go
    )
