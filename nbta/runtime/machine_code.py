"""Functions in machine code: such as came with the package, kept on disk, or compiled now.

On disk there is a file for each function (`object_files`), named by a hash of all it depends on.
Whatever is wrong with a file or with the folder, code is compiled again and nobody hears of it; but
a folder that others may write to is told of, as nothing of it is taken (SECURITY.md).
"""

import contextlib
import hashlib
import os
import re
import signal
import stat
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import numba
import numpy as np

from nbta.errors import PerformanceWarning
from nbta.runtime import shipped
from nbta.runtime.compiled import compiler_settings, folder_lock, runtime_stamp
from nbta.runtime.numba_private import cpu_target, global_compiler_lock
from nbta.runtime.object_files import (
    Code,
    Compiled,
    Loaded,
    decoded,
    encoded,
    only_overload,
    taken_from,
)
from nbta.runtime.waiting import told
from nbta.tuning import CODE_FILE, CODE_FOLDER, LEFT_OVER_SECONDS

_NAMES = re.compile(r"[0-9a-f]{64}\.(graph|[^.]+\.tmp)")


@contextlib.contextmanager
def uninterrupted():
    """Let Ctrl-C wait, unless it comes twice.

    Where it came while Numba filled its tables of types, these stayed half full, and nothing
    compiled any more in the process.
    """
    came, before = [], signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is None:
        yield  # no handler of Python's interrupts it
        return

    def note(*given):
        if came:
            signal.signal(signal.SIGINT, before)
            signal.raise_signal(signal.SIGINT)
        came.append(given)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        signal.raise_signal(signal.SIGINT)


class Routine(NamedTuple):
    """A function of the runtime that is called from outside, with one signature.

    Attributes
    ----------
    function : callable
    signature : numba.core.typing.Signature
    options : dict
        Of Numba's compiler.
    by_processor : bool
        Whether it is lowered to other code for each processor.
    """

    function: Callable
    signature: Any
    options: dict
    by_processor: bool = False

    @property
    def name(self) -> str:
        """Under which it is kept; no two have the same."""
        return self.function.__name__

    @property
    def text(self) -> str:
        """What stands for the source."""
        return f"{self.name} {self.signature}"

    def load(self):
        """The function in machine code: `Loaded` or `Compiled`."""
        return _shipped(self.name) or kept(self.text, self.options, self.compiled)

    def compiled(self):
        """What Numba has of the function, compiled."""
        with uninterrupted():
            dispatcher = numba.njit(**self.options)(self.function)
            dispatcher.compile(self.signature)
            return only_overload(dispatcher)


def _shipped(name):
    """A routine that came with the package; None where none does for this process."""
    with global_compiler_lock:
        found = (_loaded(lambda: code) for code in shipped.codes(name))  # noqa: B023 - at once
        return next(filter(None, found), None)


def kept(text: str, options: dict, compiled):
    """A function from the cache, or compiled and put there.

    Parameters
    ----------
    text : str
        Source, or the name of a function of the runtime with its signature.
    options : dict
        Of Numba's compiler.
    compiled : callable
        Gives what Numba has of a function, compiled for one signature.

    Returns
    -------
    Loaded or Compiled
    """
    with global_compiler_lock:
        name = key(text, options)
        found = _loaded(lambda: read(name))
        if found is not None:
            return found
        with _lock():
            return _loaded(lambda: read(name)) or _made(name, compiled)


def is_kept(text: str, options: dict) -> bool:
    """Whether the cache seems to have a function; see `kept`."""
    place = folder()
    return place is not None and os.path.exists(place / f"{key(text, options)}.graph")


def _lock():
    """The lock of the folder, for compiling; none where there is no folder."""
    place = folder()
    if place is None:
        return contextlib.nullcontext()
    with contextlib.suppress(OSError):
        _make(place)
        with _private(place):
            return folder_lock(place)
    return contextlib.nullcontext()


def _made(name, compiled):
    with told("compiling what operations call, once for this machine and version"):
        overload = compiled()
    code = taken_from(overload)
    if code is None:
        return Compiled(overload)
    write(name, code)
    return _loaded(lambda: code) or Compiled(overload)


def _loaded(code):
    try:
        return Loaded(code())
    except LookupError:
        return None


def key(text: str, options: dict) -> str:
    """The name of an entry: a hash of the source and of what makes code from it."""
    settled = {name: sorted(v) if isinstance(v, set) else v for name, v in options.items()}
    parts = [text, repr(sorted(settled.items())), *_versions(), *compiler_settings()]
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()


@cache
def _versions():
    """Versions of everything, and the processor."""
    others = [numba.__version__, llvmlite.__version__, *np.__version__.split(".")[:2], sys.version]
    return [runtime_stamp(), *others, *cpu_target.target_context.codegen().magic_tuple()]


def folder() -> Path | None:
    """Where the files are; None where nothing says where."""
    given = os.environ.get("NBTA_CACHE_DIR")
    if given:
        with contextlib.suppress(OSError):  # a relative one, where the working directory is gone
            return Path(given).absolute()
        return None
    if sys.platform == "win32":
        place = os.environ.get("LOCALAPPDATA") or os.path.expanduser(r"~\AppData\Local")
    elif sys.platform == "darwin":
        place = _in_home("Library/Caches")
    else:
        place = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(place):  # to be ignored, says the XDG Base Directory Specification
            place = _in_home(".cache")
    return Path(place, "nbta") if os.path.isabs(place) else None


def _make(place):
    """Make a folder, and those around it that there are not, for this user alone."""
    for each in (*reversed(place.parents), place):
        if not os.path.isdir(each):
            each.mkdir(mode=0o700, exist_ok=True)


def _in_home(path):
    """A place in the user's home; an empty HOME would make it one at the root of all files."""
    if os.path.isabs(os.environ.get("HOME", os.sep)):
        return os.path.expanduser(f"~/{path}")
    import pwd  # not on Windows, which has another place

    try:
        return os.path.join(pwd.getpwuid(os.getuid()).pw_dir, path)
    except KeyError:  # a user without an entry, as in containers
        return ""


def read(name: str) -> Code:
    """An entry that holds code.

    Raises
    ------
    LookupError
        If there is none, or none that is whole and this user's or the administrator's own.
    """
    return read_as(name, decoded)


def read_as(name: str, meaning):
    """What an entry holds: ``meaning(name, data)`` of its bytes, or a ValueError.

    Raises
    ------
    LookupError
        As `read`.
    """
    place = folder()
    if place is None:
        raise LookupError(name)
    try:
        with _private(place) as descriptor, _opened(place, f"{name}.graph", descriptor) as file:
            found = meaning(name, file.read())
            with contextlib.suppress(OSError):
                os.utime(file.fileno() if _DESCRIBED else file.name)
    except (OSError, ValueError) as error:
        raise LookupError(name) from error
    return found


# What is read will run: nobody but the user and the administrator may have written it.

#: Whether files have owners here, and are opened by a descriptor of their folder.
_DESCRIBED = hasattr(os, "geteuid") and os.open in os.supports_dir_fd
_told_of = set()


@contextlib.contextmanager
def _private(place):
    """A descriptor of a folder that nobody else can write to; None where there is no such thing.

    Raises
    ------
    OSError
        If it is no folder, or others can; the latter is told of once.
    """
    if not _DESCRIBED:
        yield None
        return
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK)
    try:
        if reason := _reach_of_others(os.fstat(descriptor)):
            _tell_of(place, reason, os.fstat(descriptor))
            raise PermissionError(reason)
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _opened(place, name, descriptor):
    """A file of such a folder, open for reading: a regular one, of bounded size, and as private."""
    if descriptor is None:
        with open(place / name, "rb") as file:
            yield file
        return
    # Not by a link, and without waiting for somebody to write to a pipe.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    with open(os.open(name, flags, dir_fd=descriptor), "rb") as file:
        facts = os.fstat(file.fileno())
        if reason := _reach_of_others(facts):
            raise PermissionError(reason)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > CODE_FILE:
            raise ValueError("no file of a cache")
        yield file


def reach_of_others(place) -> str:
    """Why nothing in a folder is trusted, in words; nothing where it is, or where none is there."""
    if _DESCRIBED:
        with contextlib.suppress(OSError):
            return _reach_of_others(os.stat(place))
    return ""


def _reach_of_others(facts):
    """Who else may have written a file or folder, in words; nothing for nobody."""
    if not _is_ours(facts):
        return f"belongs to user {facts.st_uid}"
    if facts.st_mode & 0o022:
        return f"can be written by others (mode {stat.S_IMODE(facts.st_mode):o})"
    return ""


def _is_ours(facts):
    """Whether a file or folder belongs to the user, or to the administrator."""
    return facts.st_uid in (os.geteuid(), 0)


def _tell_of(place, reason, facts):
    if place in _told_of:
        return
    _told_of.add(place)
    cure = f"chmod go-w {place}, or " if _is_ours(facts) else ""
    message = (
        f"the cache folder {place} {reason}, and what is in it would be run: nbta does not use it, "
        f"and each process compiles again; {cure}set NBTA_CACHE_DIR to a folder of your own"
    )
    warnings.warn(message, PerformanceWarning, stacklevel=2)


def write(name: str, code: Code):
    """Put an entry that holds code there, if that can be done."""
    write_bytes(name, encoded(name, code))


def write_bytes(name: str, data: bytes):
    """Put an entry there, if that can be done; other processes see all of it or nothing."""
    place = folder()
    if place is None or len(data) > CODE_FILE:
        return
    with contextlib.suppress(OSError):
        _make(place)
        with _private(place):
            number, path = tempfile.mkstemp(".tmp", f"{name}.", place)
        try:
            with open(number, "wb") as file:
                file.write(data)
            os.replace(path, place / f"{name}.graph")
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(path)
            raise
        _shrink(place)


def _shrink(place):
    """Remove what was not used for longest, and what others left after."""
    found = sorted((*_facts(path), path) for path in files(place))
    size = sum(nbytes for _, nbytes, _ in found)
    old = time.time() - LEFT_OVER_SECONDS
    for used, nbytes, path in found:
        left = path.suffix == ".tmp" and used < old
        if left or (size > CODE_FOLDER and path.suffix == ".graph"):
            with contextlib.suppress(OSError):
                path.unlink()
            size -= nbytes


def _facts(path):
    """When a file was used, and its bytes; neither if another process removed it.

    A time far ahead is that of a clock that went wrong: it would make a file stay for ever.
    """
    try:
        facts = path.lstat()
    except OSError:
        return 0.0, 0
    is_ahead = facts.st_mtime > time.time() + LEFT_OVER_SECONDS
    return 0.0 if is_ahead else facts.st_mtime, facts.st_size


def files(place: Path | None = None) -> list:
    """All files of the cache, unfinished ones too."""
    place = place or folder()
    try:
        return [path for path in place.iterdir() if _NAMES.fullmatch(path.name)] if place else []
    except OSError:
        return []
