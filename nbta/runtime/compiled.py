"""Compiling what users' functions link once for all processes, and keeping it in Numba's cache.

Numba's cache looks at the source file of a function only; these functions depend on every file
of the runtime, and a full disk must not stop anybody from computing.

One process compiles what a folder keeps, the others wait and load it. Two hundred processes that
start together on an empty cache would each compile the same, which takes 15 s of a processor and
270 MB, where loading takes 0.2 s and 40 MB.
"""

import contextlib
import hashlib
import os
import time
from functools import cache, wraps
from pathlib import Path
from types import FunctionType

from numba import config, njit, types
from numba.extending import intrinsic

import nbta.dtypes
import nbta.errors
from nbta.runtime.numba_private import (
    COMPILER_LOCKS,
    FunctionCache,
    forget_literals,
    global_compiler_lock,
    has_entry,
    keep_on_disk,
    stamp,
)
from nbta.tuning import LOCK_PAUSE, LOCK_SECONDS, of_room

try:
    import fcntl
except ImportError:  # Windows: every process compiles for itself
    fcntl = None


@cache
def runtime_stamp() -> str:
    """A hash of all sources and constants that the kernels are compiled from."""
    package = Path(__file__).parents[1]
    files = sorted([*package.glob("runtime/*.py"), *package.glob("kernels/*.py")])
    files += [Path(nbta.errors.__file__), Path(nbta.dtypes.__file__)]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    digest.update(repr((of_room("runtime"), of_room("kernels"))).encode())
    return digest.hexdigest()


def compiler_settings() -> list[str]:
    """Settings of Numba's that change what is compiled."""
    settled = config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE, config.BOUNDSCHECK
    return [str(setting) for setting in settled]


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


#: Folders whose lock this process holds.
_locked = set()


@contextlib.contextmanager
def folder_lock(folder):
    """Hold the lock of a folder; none where the system has no locks for it.

    The lock is on the folder itself, so that no file is left over, and goes with its process.
    Whoever calls this holds Numba's compiler lock, so that one thread at a time comes here.
    """
    folder = os.path.abspath(folder)
    if fcntl is None or folder in _locked:  # what is compiled on the way to something else
        yield
        return
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            flags = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NONBLOCK", 0)
            descriptor = os.open(folder, os.O_RDONLY | flags)  # never waits for a pipe
            stack.callback(os.close, descriptor)
            if _wait(descriptor):
                stack.callback(fcntl.flock, descriptor, fcntl.LOCK_UN)  # a fork may share it
        _locked.add(folder)
        stack.callback(_locked.discard, folder)
        yield


def _wait(descriptor) -> bool:
    """Whether the lock came before the patience ended."""
    end, pause = time.monotonic() + LOCK_SECONDS, LOCK_PAUSE / 64
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if time.monotonic() > end:
            return False
        time.sleep(pause)
        pause = min(2 * pause, LOCK_PAUSE)


def cacheable(function, **options):
    """``njit(cache=True)`` by the rules above; without a cache where no folder can be written."""
    dispatcher = njit(**options)(function)
    with contextlib.suppress(RuntimeError):
        kept = _RuntimeCache(function)
        keep_on_disk(dispatcher, kept)
        dispatcher.compile = _one_at_a_time(dispatcher, kept)
    return dispatcher


def _one_at_a_time(dispatcher, kept):
    """A dispatcher's ``compile`` for one process at a time; the others load what that one made."""
    compile_or_load = dispatcher.compile

    def compile_one_at_a_time(sig):
        with global_compiler_lock:
            if kept.has(sig, dispatcher.targetctx):
                return compile_or_load(sig)
            with folder_lock(kept.cache_path):
                return compile_or_load(sig)

    return compile_one_at_a_time


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
    dispatcher = cacheable(function, forceinline=False)
    forget_literals(dispatcher)
    return dispatcher


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


def loaded_once(function):
    """`functools.cache` for what gives machine code: one thread makes it, while others wait.

    Addresses of it are given away, and its memory goes with the Python object: what a second thread
    made at the same time would be freed while others run it.
    """
    made = {}

    @cache
    @wraps(function)
    def found(*args):
        with global_compiler_lock:
            if args not in made:
                made[args] = function(*args)
            return made[args]

    return found


def call_directly(dispatcher):
    """A compiled function with one signature, callable from Python without type dispatch."""
    (overload,) = dispatcher.overloads.values()
    return overload.entry_point


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
