"""Saving arrays, and nested structures of them, to files and loading them.

A file is a NumPy ``.npz`` archive that `numpy.load` opens; `nbta.packing` says what is in it of an
array. The archive's comment is a digest of everything before it, so that any changed byte is found.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import time
import zipfile
from dataclasses import is_dataclass
from typing import Any

import numpy as np

from nbta import classes, errors
from nbta.array_memory import gradients_of
from nbta.dtypes import check_plain
from nbta.packing import file_dtype, meta_of, pack, require, unpack, unpack_all
from nbta.tensor_array import TensorArray

__all__ = ["load", "pack", "save", "unpack"]

#: Seconds after which a file that nobody wrote to is one that a killed process left behind.
LEFT_OVER = 3600


def save(file: str | os.PathLike[str], array: Any) -> None:
    """Write an array with its gradient arrays, or a structure of arrays, to a file.

    The file is replaced in one step: after a crash, it is either the old or the new file, complete.
    The incomplete file of a killed process stays in the same folder, as ``FILE.DIGITS.tmp``, until
    the same file is saved an hour later or more.

    Parameters
    ----------
    file : path-like
        The path of the file, to which no suffix is added.
    array : TensorArray or structure
        Nested dicts, lists and tuples of TensorArrays, NumPy arrays, numbers, strings and None;
        also named tuples, dataclasses and other classes that `register_structure` knows, whose
        names are saved. Keys of dicts are strings, numbers, None and tuples of these. TensorArrays
        do not change: saving does not count as `TensorArray.read`. If an array occurs twice, or is
        also the gradient array of another, it still is after `load`.

    Raises
    ------
    InvalidArgumentError
        If ``file`` is not a path, if an array is closed, if a dtype cannot be saved, if an object
        has attributes other than its fields, and for any other object in a structure, such as those
        of unregistered classes and masked arrays.
    OSError
        If the file cannot be written; the old file then does not change.

    See Also
    --------
    load : reads it.

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
    >>> from dataclasses import dataclass
    >>> @nbta.register_structure
    ... @dataclass
    ... class Fit:
    ...     weights: np.ndarray
    ...     method: str
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nbta.save(os.path.join(folder, "fit.npz"), Fit(np.ones(2), "newton"))
    ...     nbta.load(os.path.join(folder, "fit.npz"))
    Fit(weights=array([1., 1.]), method='newton')
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
    """Remove what processes left after that were killed while they saved to the same file."""
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


def load(file: str | os.PathLike[str]) -> Any:
    """Read an array, or a structure, that was written by `save`; no code of the file is ever run.

    Classes are found, by module and name, among those that were given to `register_structure`;
    nothing is imported. Objects of dataclasses get their fields without a call of ``__init__``.

    Parameters
    ----------
    file : path-like
        The path of the file.

    Returns
    -------
    TensorArray or structure
        Arrays have the same values, states of slots and gradient arrays as when they were saved,
        and the same names, with new numbers.

    Raises
    ------
    InvalidArgumentError
        If ``file`` is not a path; if the file is damaged, incomplete, or was not written by `save`;
        or if the class of an object is not registered in this process, or its fields have changed.
    ResourceExhaustedError
        If there is not enough memory for the contents.
    OSError
        If the file cannot be read; for example, a FileNotFoundError.

    See Also
    --------
    save : writes it.

    Examples
    --------
    >>> import os, tempfile
    >>> import nbta
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nbta.save(os.path.join(folder, "state.npz"), {"rate": 0.1, "epoch": 3})
    ...     nbta.load(os.path.join(folder, "state.npz"))
    {'rate': 0.1, 'epoch': 3}
    """
    path = _path("load", file)
    with errors.memory_for(f"load: {path}"), open(path, "rb") as stream:
        try:
            _check_digest(stream)
            stream.seek(0)
            members = _members(stream)
            meta = meta_of(members)
            if meta.get("format") in (NESTED, WITH_CLASSES):
                return unpack_structure(members, meta)
            return unpack(members)
        except (OSError, MemoryError):
            raise
        except errors.NbtaError as error:
            reason = "register" if error.reason == "register" else "file"
            raise errors.invalid(reason, f"load: {path}: {error}") from None
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


# Nested structures. ``meta`` has format 2 and a *tree*: a node is a list of its kind and what
# belongs to it. A NumPy array is the member ``value_k``. A TensorArray has the members that
# `nbta.packing` gives it, with ``t{k}_`` in front; a node names it by ``k``, and by the place of a
# gradient array below it. An object has the name of its class, and its fields or its parts; such a
# file has format 3.

NESTED, WITH_CLASSES = 2, 3  # the format; that of a single array is 1
_WHAT = "TensorArrays, NumPy arrays, numbers, strings, None, and lists, tuples and dicts of these"


def pack_structure(structure) -> dict[str, np.ndarray]:
    """A structure as NumPy arrays; the inverse of `unpack_structure`.

    Raises
    ------
    InvalidArgumentError
        For what is no structure of arrays, closed arrays, and dtypes that no file can name.
    """
    packing = _Packing(structure)
    tree = packing.node("structure", structure)
    version = WITH_CLASSES if packing.has_classes else NESTED
    meta = {"format": version, "tree": tree, "tensor_arrays": packing.count}
    return {"meta": np.array(json.dumps(meta)), **packing.members}


class _Packing:
    """The members of a file, as they are found."""

    def __init__(self, structure):
        self.members, self.count, self._values = {}, 0, 0
        self.has_classes = False
        self._places, self._open = {}, set()
        found = list(_tensor_arrays(structure, set()))
        for array in sorted(found, key=_depth):
            if not array.closed and array._address not in self._places:
                self._add(array)

    def _add(self, array):
        for name, value in pack(array).items():
            self.members[f"t{self.count}_{name}"] = value
        for place, below in enumerate(_with_gradients(array)):
            self._places.setdefault(below._address, (self.count, place))
        self.count += 1

    def node(self, path, value):
        """How the tree says what a value is."""
        kind = type(value)
        if isinstance(value, TensorArray):
            if value.closed or value._address not in self._places:
                pack(value)  # says why it cannot be
            return ["tensor_array", *self._places[value._address]]
        if isinstance(value, np.ndarray | np.generic):
            return self._array(path, value)
        if kind in _PLAIN:
            return [kind.__name__, _PLAIN[kind][0](value)]
        if kind in (list, tuple, dict):
            return [kind.__name__, self._within(path, value, _INNER[kind])]
        if classes.is_registered(kind):
            self.has_classes = True
            return self._within(path, value, _Packing._object)
        raise _refused(path, value)

    def _within(self, path, value, inner):
        """What ``inner`` gives for what is in a value, which must not be the value itself."""
        if id(value) in self._open:
            raise errors.invalid("structure", f"save: {path} contains itself")
        self._open.add(id(value))
        found = inner(self, path, value)
        self._open.remove(id(value))
        return found

    def _items(self, path, value):
        return [self.node(f"{path}[{i}]", part) for i, part in enumerate(value)]

    def _keys(self, path, value):
        return [self._item(path, key, part) for key, part in value.items()]

    def _item(self, path, key, part):
        found = self._key(key)
        if found is None:
            message = (
                f"save: {path} has the key {key!r}; give keys that are strings or numbers, or "
                f"tuples of these"
            )
            raise errors.invalid("structure", message)
        return [found, self.node(f"{path}[{key!r}]", part)]

    def _key(self, key):
        """How the tree says what a key is; None for what is none."""
        kind = type(key)
        if kind in _PLAIN:
            return [kind.__name__, _PLAIN[kind][0](key)]
        parts = list(map(self._key, key)) if kind is tuple else [None]
        if None in parts:
            return None
        self.has_classes = True  # which older versions cannot read either
        return ["tuple", parts]

    def _object(self, path, value):
        kind, name = type(value), classes.file_name(type(value))
        if classes.is_namedtuple(kind):
            named = zip(kind._fields, value, strict=True)
            return ["namedtuple", name, self._named(path, named)]
        if classes.rules_of(kind) is None:
            reason = classes.more_than_fields(value)
            if reason:
                message = f"save: {path}: {reason}, so that load could not give it back"
                raise errors.invalid("structure", message)
            return ["dataclass", name, self._named(path, classes.fields_of(value))]
        node = classes.node_of(value)
        parts = zip(node.names, node.parts, strict=True)
        inner = [self.node(path + own, part) for own, part in parts]
        return ["object", name, self.node(f"{path}'s rest", node.rest), inner]

    def _named(self, path, named):
        return [
            [name, ["missing"] if part is classes.Missing else self.node(f"{path}.{name}", part)]
            for name, part in named
        ]

    def _array(self, path, value):
        check_plain(f"save: {path}", value)
        if value.dtype.hasobject:
            raise errors.invalid("dtype", f"save: {path} has Python objects; give numbers or text")
        number, half = self._values, value.dtype.name == "bfloat16"
        dtype = np.lib.format.drop_metadata(value.dtype)
        self.members[f"value_{number}"] = np.asarray(value).view(dtype).view(file_dtype(dtype))
        self._values += 1
        return ["scalar" if isinstance(value, np.generic) else "array", number, half]


_INNER = {list: _Packing._items, tuple: _Packing._items, dict: _Packing._keys}


def _refused(path, value):
    kind = type(value)
    register = "register it with nbta.register_structure, so that load finds it"
    if classes.is_namedtuple(kind):
        remedy = f"{register}, or give a plain tuple"
    elif isinstance(value, list | tuple | dict):
        remedy = f"load could not give it back; give a plain {kind.__mro__[-2].__name__}"
    elif is_dataclass(value):
        remedy = register
    else:
        remedy = f"give {_WHAT}"
    message = f"save: {path} is a {kind.__module__}.{kind.__qualname__}; {remedy}"
    return errors.invalid("structure", message)


def _tensor_arrays(value, seen):
    if type(value) is TensorArray:
        yield value
    elif isinstance(value, TensorArray):
        value.__reduce__()  # says that arrays of graphs are not saved
    elif id(value) not in seen:
        parts = _parts(value)
        if parts:
            seen.add(id(value))
        for part in parts:
            yield from _tensor_arrays(part, seen)


def _parts(value):
    """What may have arrays in it."""
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list | tuple):
        return value
    node = classes.node_of(value)
    return () if node is None else node.parts


def _depth(array):
    """How many gradient arrays lead to an array, or more; those above it come first."""
    return array.handle.name.count("@")


def _with_gradients(array):
    """An array and all below it, in the order of their numbers in a file."""
    yield array
    for gradient in gradients_of(array):
        yield from _with_gradients(gradient)


#: How Python's own values are written in a tree, and read: all without loss.
_PLAIN = {
    type(None): (lambda value: None, lambda text: None),
    bool: (bool, bool),
    int: (hex, lambda text: int(text, 16)),
    float: (float.hex, float.fromhex),
    complex: (
        lambda value: [value.real.hex(), value.imag.hex()],
        lambda parts: complex(float.fromhex(parts[0]), float.fromhex(parts[1])),
    ),
    str: (str, str),
}
_BY_NAME = {kind.__name__: rules[1] for kind, rules in _PLAIN.items()}
_WRITTEN = {"NoneType": type(None), "bool": bool, "complex": list}


def unpack_structure(members, meta):
    """The structure that `pack_structure` took apart."""
    count = meta.get("tensor_arrays")
    require(type(count) is int and 0 <= count <= len(members), "number of arrays")
    parts, values = [{} for _ in range(count)], {}
    for name, value in members.items():
        prefix, _, rest = name.partition("_")
        if prefix == "value":
            values[name] = value
        elif name != "meta":
            require(prefix[:1] == "t" and prefix[1:].isdecimal(), "a member that is no part")
            require(int(prefix[1:]) < count, "an array more than it tells of")
            parts[int(prefix[1:])][rest] = value
    structure = _Unpacking(list(map(unpack_all, parts)), values).value(meta.get("tree"))
    require(not values, "a value that is nowhere")
    return structure


def _is_key(node):
    """Whether a node may be a key."""
    if not isinstance(node, list) or len(node) != 2 or type(node[0]) is not str:
        return False
    if node[0] == "tuple":
        return isinstance(node[1], list) and all(map(_is_key, node[1]))
    return node[0] in _BY_NAME


def _written(kind):
    """How objects of a class are written."""
    if classes.is_namedtuple(kind):
        return "namedtuple"
    return "dataclass" if classes.rules_of(kind) is None else "object"


class _Unpacking:
    def __init__(self, arrays, values):
        self._arrays, self._values = arrays, values

    def value(self, node):
        """The value that a node stands for; each NumPy array is that of one node."""
        require(isinstance(node, list) and node and type(node[0]) is str, "a node of its tree")
        kind, *rest = node
        if kind == "tensor_array":
            require(len(rest) == 2 and all(type(i) is int and i >= 0 for i in rest), "an array")
            known = rest[0] < len(self._arrays) and rest[1] < len(self._arrays[rest[0]])
            require(known, "an array that is not there")
            return self._arrays[rest[0]][rest[1]]
        if kind in ("array", "scalar"):
            return self._array(kind, rest)
        if kind in ("namedtuple", "dataclass", "object"):
            return self._object(kind, *rest)
        require(len(rest) == 1, "a node of its tree")
        if kind in _BY_NAME:
            require(type(rest[0]) is _WRITTEN.get(kind, str), f"a value of {kind}")
            return _BY_NAME[kind](rest[0])
        require(kind in ("list", "tuple", "dict") and isinstance(rest[0], list), "a node")
        if kind == "dict":
            return self._dict(rest[0])
        return (list if kind == "list" else tuple)(map(self.value, rest[0]))

    def _dict(self, items):
        found = {}
        for item in items:
            require(isinstance(item, list) and len(item) == 2, "an item of a dict")
            require(_is_key(item[0]), "a key")
            found[self.value(item[0])] = self.value(item[1])
        require(len(found) == len(items), "two keys that are one")
        return found

    def _object(self, written, name, *rest):
        kind = classes.named(name) if type(name) is str else None
        if kind is None:
            message = (
                f"has an object of {name!r}, a class that is not registered here; import its "
                f"module, and give the class to nbta.register_structure, before load"
            )
            raise errors.invalid("register", message)
        if written != _written(kind):
            message = f"has an object of {name!r}, which is registered in another way now"
            raise errors.invalid("register", message)
        if written == "object":
            require(len(rest) == 2 and isinstance(rest[1], list), "an object")
            unflatten = classes.rules_of(kind)[1]
            return unflatten(self.value(rest[0]), tuple(map(self.value, rest[1])))
        return self._with_fields(kind, name, *rest)

    def _with_fields(self, kind, name, fields):
        require(isinstance(fields, list), "an object")
        require(all(isinstance(f, list) and len(f) == 2 for f in fields), "a field")
        names = [each[0] for each in fields]
        known = kind._fields if classes.is_namedtuple(kind) else classes.field_names(kind)
        if names != list(known):
            message = (
                f"has an object of {name!r} with the fields {', '.join(map(str, names))}, and "
                f"those of the class are {', '.join(known)} now"
            )
            raise errors.invalid("register", message)
        values = [classes.Missing if n == ["missing"] else self.value(n) for _, n in fields]
        if classes.is_namedtuple(kind):
            return kind._make(values)
        return classes.with_fields(kind, zip(names, values, strict=True))

    def _array(self, kind, rest):
        require(len(rest) == 2 and type(rest[0]) is int and type(rest[1]) is bool, "a value")
        value = self._values.pop(f"value_{rest[0]}", None)
        require(isinstance(value, np.ndarray), "a value that is not there")
        if rest[1]:
            import ml_dtypes

            require(value.dtype == np.uint16, "a value of bfloat16")
            value = value.view(ml_dtypes.bfloat16)
        require(kind == "array" or value.ndim == 0, "a scalar")
        return value if kind == "array" else value[()]
