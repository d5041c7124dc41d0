"""The disk cache of compiled graphs: a file for each, named by a hash of all it depends on.

A file is a head that says what it is, a checksum, names of symbols, and object code. Whatever is
wrong with a file or with the folder, code is compiled again and nobody hears of it.
"""

import contextlib
import hashlib
import json
import os
import re
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import llvmlite
import numba
import numpy as np
from numba import config

from nbta.compiler.machine_code import Code, Loaded, taken_from
from nbta.runtime.compiled import call_directly, pointer_of, runtime_stamp
from nbta.runtime.numba_private import cpu_target, global_compiler_lock
from nbta.runtime.turns import turn

#: How the bytes of a file are laid out; other layouts have other names.
HEAD = b"nbta graph 1\n"
#: Bytes that all files may have; above it those go that were not used for longest.
LIMIT = 256 << 20
#: Seconds after which a file that another process was writing is left over.
LEFT_OVER = 3600
#: What code is made by, besides the runtime, as it is when it is imported.
_OURS = hashlib.sha256(
    b"\0".join(
        (Path(__file__).parent / name).read_bytes() for name in ("build.py", "machine_code.py")
    )
).hexdigest()
_NAMES = re.compile(r"[0-9a-f]{64}\.(graph|[^.]+\.tmp)")


class Compiled:
    """What `Loaded` is, for code that only the process that compiled it can run."""

    def __init__(self, dispatcher):
        self.function, self.address = call_directly(dispatcher), pointer_of(dispatcher)
        self._kept = dispatcher


def kept(text: str, options: dict, compiled):
    """A function from the cache, or compiled and put there.

    Parameters
    ----------
    text : str
        Source, or the name of a function of the runtime with its signature.
    options : dict
        Of Numba's compiler.
    compiled : callable
        Gives Numba's function, compiled for one signature.

    Returns
    -------
    Loaded or Compiled
    """
    with global_compiler_lock:
        name = key(text, options)
        found = _loaded(lambda: read(name))
        if found is not None:
            return found
        with _turn():
            return _loaded(lambda: read(name)) or _made(name, compiled)


def _turn():
    """The turn of this process at compiling; none where there is no folder."""
    place = folder()
    if place is None:
        return contextlib.nullcontext()
    with contextlib.suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    return turn(place)


def _made(name, compiled):
    dispatcher = compiled()
    code = taken_from(dispatcher)
    if code is None:
        return Compiled(dispatcher)
    write(name, code)
    return _loaded(lambda: code) or Compiled(dispatcher)


def _loaded(code):
    try:
        return Loaded(code())
    except LookupError:
        return None


def key(text: str, options: dict) -> str:
    """The name of an entry: a hash of the source and of what makes code from it."""
    settled = {name: sorted(v) if isinstance(v, set) else v for name, v in options.items()}
    parts = [text, repr(sorted(settled.items())), *_versions()]
    parts += [config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE, config.BOUNDSCHECK]
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()


@cache
def _versions():
    """Versions of everything, and the processor."""
    others = [numba.__version__, llvmlite.__version__, *np.__version__.split(".")[:2], sys.version]
    return [runtime_stamp(), _OURS, *others, *cpu_target.target_context.codegen().magic_tuple()]


def folder() -> Path | None:
    """Where the files are; None where nothing says where."""
    given = os.environ.get("NBTA_CACHE_DIR")
    if given:
        return Path(given).absolute()
    if sys.platform == "win32":
        place = os.environ.get("LOCALAPPDATA") or os.path.expanduser(r"~\AppData\Local")
    elif sys.platform == "darwin":
        place = os.path.expanduser("~/Library/Caches")
    else:
        place = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(place):  # to be ignored, says the XDG Base Directory Specification
            place = os.path.expanduser("~/.cache")
    return Path(place, "nbta") if os.path.isabs(place) else None


def read(name: str) -> Code:
    """An entry.

    Raises
    ------
    LookupError
        If there is none, or none that is whole and this user's or the administrator's own.
    """
    place = folder()
    if place is None:
        raise LookupError(name)
    try:
        with open(place / f"{name}.graph", "rb") as file:
            _check_owner(file)
            data = file.read()
        code = decoded(name, data)
        with contextlib.suppress(OSError):
            os.utime(place / f"{name}.graph")
    except (OSError, ValueError) as error:
        raise LookupError(name) from error
    return code


def _check_owner(file):
    """What is read will run: it must not be another user's."""
    if hasattr(os, "geteuid") and os.fstat(file.fileno()).st_uid not in (os.geteuid(), 0):
        raise PermissionError("another user's file")


def encoded(name: str, code: Code) -> bytes:
    """The bytes of an entry's file."""
    symbols = [name, code.wrapper, code.pointer, code.environment, code.needed]
    body = json.dumps(symbols).encode() + b"\n" + code.binary
    return HEAD + hashlib.sha256(body).digest() + body


def decoded(name: str, data: bytes) -> Code:
    """The entry of that name that a file's bytes hold.

    Raises
    ------
    ValueError
        If they do not.
    """
    start = len(HEAD) + 32
    body = data[start:]
    if not data.startswith(HEAD) or hashlib.sha256(body).digest() != data[len(HEAD) : start]:
        raise ValueError("not what was written")
    symbols, _, binary = body.partition(b"\n")
    written, *symbols = json.loads(symbols)
    if written != name:
        raise ValueError("another entry")
    return Code(*symbols, binary)


def write(name: str, code: Code):
    """Put an entry there, if that can be done; other processes see all of it or nothing."""
    place = folder()
    if place is None:
        return
    with contextlib.suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        number, path = tempfile.mkstemp(".tmp", f"{name}.", place)
        try:
            with open(number, "wb") as file:
                file.write(encoded(name, code))
            os.replace(path, place / f"{name}.graph")
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(path)
            raise
        _shrink(place)


def _shrink(place):
    """Remove what was not used for longest, and what others left behind."""
    found = sorted((*_facts(path), path) for path in files(place))
    size = sum(nbytes for _, nbytes, _ in found)
    old = time.time() - LEFT_OVER
    for used, nbytes, path in found:
        left = path.suffix == ".tmp" and used < old
        if left or (size > LIMIT and path.suffix == ".graph"):
            with contextlib.suppress(OSError):
                path.unlink()
            size -= nbytes


def _facts(path):
    """When a file was used, and its bytes; neither if another process removed it."""
    try:
        facts = path.stat()
    except OSError:
        return 0.0, 0
    return facts.st_mtime, facts.st_size


def files(place: Path | None = None) -> list:
    """All files of the cache, unfinished ones too."""
    place = place or folder()
    try:
        return [path for path in place.iterdir() if _NAMES.fullmatch(path.name)] if place else []
    except OSError:
        return []
