"""Saving arrays to files and loading them.

A file is a NumPy ``.npz`` archive that `numpy.load` opens; `nbta.packing` says what is in it. The
archive's comment is a digest of everything before it, so that any changed byte is found.
"""

import contextlib
import hashlib
import io
import os
import re
import secrets
import shutil
import time
import zipfile

import numpy as np

from nbta import errors, nesting
from nbta.nesting import pack_structure, unpack_structure
from nbta.packing import pack
from nbta.tensor_array import TensorArray
from nbta.unpacking import meta_of, unpack

__all__ = ["load", "pack", "save", "unpack"]

#: Seconds after which a file that nobody wrote to is one that a killed process left behind.
LEFT_OVER = 3600


def save(file, array) -> None:
    """Write an array with its gradient arrays, or a structure of arrays, to a file.

    The file is replaced in one step: after a crash it is the old one or the new one, whole. What a
    killed process was writing stays beside it, as ``FILE.DIGITS.tmp``, until a save to the same
    file an hour later or more.

    Parameters
    ----------
    file : path-like
        Used as given; no suffix is added.
    array : TensorArray or structure
        Dicts, lists and tuples, nested, of TensorArrays, NumPy arrays, numbers, strings and None.
        TensorArrays stay as they are: saving reads no slot in the sense of `TensorArray.read`. One
        that is there twice, or as a gradient array of another, is so after `load` too.

    Raises
    ------
    InvalidArgumentError
        For a file that is no path, for a closed array, for a dtype that no file can name, and for
        anything else in a structure, such as named tuples and masked arrays.
    OSError
        When the file cannot be written; the old file is then untouched.

    See Also
    --------
    load : reads it back.

    Examples
    --------
    >>> import os, tempfile
    >>> import nbta
    >>> ta = nbta.TensorArray("float64", size=2).write(1, 0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nbta.save(os.path.join(folder, "states.npz"), ta)
    ...     nbta.load(os.path.join(folder, "states.npz")).read(1)
    np.float64(0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nbta.save(os.path.join(folder, "all.npz"), {"rate": 0.1, "w": np.ones(2), "path": [ta]})
    ...     nbta.load(os.path.join(folder, "all.npz"))
    {'rate': 0.1, 'w': array([1., 1.]), 'path': [<nbta.TensorArray ...>]}
    """
    path = os.path.realpath(_path("save", file))  # of a link, the file that it leads to
    members = pack(array) if isinstance(array, TensorArray) else pack_structure(array)
    temporary = f"{path}.{secrets.token_hex(6)}.tmp"
    try:
        with open(temporary, "x+b") as stream:
            _write_archive(stream, members)
            stream.flush()
            os.fsync(stream.fileno())
        if os.path.exists(path):
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(os.path.dirname(path))
    _sweep(path)


def _path(what, file):
    """The path that a user gave."""
    try:
        return os.fspath(file)
    except TypeError:
        message = f"{what}: file must be a path, which comes first, not a {type(file).__name__}"
        raise errors.invalid("path", message) from None


def _sweep(path):
    """Remove what processes left behind that were killed while they saved to the same file."""
    ours = re.compile(re.escape(os.path.basename(path)) + r"\.[0-9a-f]{12}\.tmp")
    old = time.time() - LEFT_OVER
    with contextlib.suppress(OSError), os.scandir(os.path.dirname(path)) as entries:
        for entry in entries:
            if ours.fullmatch(entry.name) and entry.stat().st_mtime < old:
                os.unlink(entry.path)


def _sync_folder(folder):
    """Make a renaming in a folder last; only POSIX systems can be asked to."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_archive(stream, members):
    """An ``.npz`` archive with the digest as its comment."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, value in members.items():
            entry = zipfile.ZipInfo(name + ".npy")  # without the time: equal arrays, equal files
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, value, allow_pickle=False)
        archive.comment = bytes(len(_comment(stream, 0)))
    end = stream.seek(0, io.SEEK_END) - len(archive.comment)
    comment = _comment(stream, end)
    stream.seek(end)
    stream.write(comment)


def _comment(stream, end):
    """The last bytes of a file: a word to know it by, and a digest of what comes before."""
    digest, left = hashlib.blake2b(digest_size=16), end
    stream.seek(0)
    while left and (block := stream.read(min(left, 1 << 20))):
        digest.update(block)
        left -= len(block)
    return f"nbta {digest.hexdigest()}".encode()


def load(file):
    """Read an array, or a structure, that `save` wrote; nothing in the file is ever run.

    Parameters
    ----------
    file : path-like

    Returns
    -------
    TensorArray or structure
        Arrays have the values, the states of their slots and the gradient arrays that they had, and
        the names that they had, with new numbers.

    Raises
    ------
    InvalidArgumentError
        For a file that is no path, that is damaged, cut short, or not from `save`.
    ResourceExhaustedError
        When there is no memory for what the file holds.
    OSError
        For a file that cannot be read, such as FileNotFoundError.

    See Also
    --------
    save : writes it.
    """
    path = _path("load", file)
    with errors.memory_for(f"load: {path}"), open(path, "rb") as stream:
        try:
            _check_digest(stream)
            stream.seek(0)
            members = _members(stream)
            meta = meta_of(members)
            if meta.get("format") == nesting.FORMAT:
                return unpack_structure(members, meta)
            return unpack(members)
        except (OSError, MemoryError):
            raise
        except errors.NbtaError as error:
            raise errors.invalid("file", f"load: {path}: {error}") from None
        except Exception as error:  # whatever a made-up archive sets off on the way
            message = f"load: {path}: its contents are not what nbta.save writes ({error})"
            raise errors.invalid("file", message) from None


def _members(stream):
    """The arrays of an archive, none larger than what the file has for it.

    An archive may be made up so that little expands to much: compressed, or with members that lie
    over one another.
    """
    with zipfile.ZipFile(stream) as archive:
        entries = archive.infolist()
        plain = all(e.compress_type == zipfile.ZIP_STORED and not e.flag_bits & 1 for e in entries)
        whole = sum(e.file_size for e in entries) <= stream.seek(0, io.SEEK_END)
        names = {entry.filename for entry in entries}
        if not plain or not whole or len(names) < len(entries):
            raise errors.invalid("file", "is damaged: its members are not what nbta.save writes")
        members = {}
        for entry in entries:
            with archive.open(entry) as member:
                value = np.lib.format.read_array(member, allow_pickle=False)
            members[entry.filename.removesuffix(".npy")] = value
        return members


def _check_digest(stream):
    start = stream.read(4)
    if start != b"PK\3\4":
        what = "is no file from nbta.save" if start else "is empty"
        raise errors.invalid("file", what)
    length = len(_comment(stream, 0))
    end = stream.seek(0, io.SEEK_END) - length
    stream.seek(max(end, 0))
    found = stream.read()
    if not found.startswith(b"nbta "):
        raise errors.invalid("file", "is cut short, damaged at its end, or not from nbta.save")
    if found != _comment(stream, end):
        raise errors.invalid("file", "is damaged: its bytes do not give the digest it carries")
