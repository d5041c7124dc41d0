"""Graphs that were compiled before: found on disk by what they are ahead of all passes.

`machine_code` keeps the object code of a source. To get to the source takes a trace through all
passes and the generator, a tenth of a second and more, which a second process need not do again.
So what they gave, all that a call needs but the object code, is kept under a hash of the graph as
it was traced: operations with their attributes and names, specs, constants by their digest, kinds
of shapes, nbta's sources, and versions. Bodies come with their operations.

What a hash could not tell, such as a function of the user's, has no entry; nor has a program that
calls Python, which needs its operations. An entry is no pickle: JSON and arrays, after a checksum.
Where somebody looks at what passes do, such as the verifier with NBTA_DEBUG=1, there are none
(`nbta.compiler.manager.is_observed`).
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import struct
import time
from pathlib import Path

import numpy as np
import scipy

from nbta.compiler.generate import Generated, Output
from nbta.compiler.manager import is_observed
from nbta.compiler.specialising import fits_pattern
from nbta.graph.graph import SubGraph
from nbta.graph.operation import Operation, Spec
from nbta.graph.order import ordered
from nbta.loops import saving
from nbta.loops.structure import Sizes
from nbta.ops.indexing.items import SYMBOLIC
from nbta.runtime import machine_code, object_files
from nbta.shapes import Dim
from nbta.tuning import CACHED_ARRAYS

#: How the bytes are laid out; other layouts have other names.
HEAD = b"nbta graph 2\n"
_BEGAN = time.time()
_PACKAGE = Path(__file__).parents[1]


class UnknownError(Exception):
    """Something of a graph of which no hash tells all that matters."""


@functools.cache
def sources() -> str | None:
    """A digest of nbta's own sources; None where they are not there, or were changed meanwhile.

    What a process that read them before would keep is of other code than they are.
    """
    digest, paths = hashlib.sha256(), sorted(_PACKAGE.rglob("*.py"))
    if Path(__file__) not in paths:
        return None
    for path in paths:
        if path.stat().st_mtime >= _BEGAN:
            return None
        digest.update(b"%s\0" % path.relative_to(_PACKAGE).as_posix().encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


class Description:
    """What a graph computes, as text that is the same for the same graph in all processes.

    Parameters
    ----------
    given, wanted : list of Tensor
    targets : list of Operation

    Raises
    ------
    UnknownError

    Attributes
    ----------
    arrays : dict
        The constants, by what stands for them in the text.
    digest : str
    """

    def __init__(self, given, wanted, targets):
        self.arrays, self._dims, self._specs = {}, {}, {}
        graphs = {item.graph.root for item in [*wanted, *targets][:1]}
        scopes = [sorted(graph.gradient_scopes) for graph in graphs]
        text = repr((scopes, self._part(list(given), list(wanted), list(targets))))
        self.digest = hashlib.sha256(text.encode()).hexdigest()

    def _part(self, given, wanted, targets=()):
        """Parameters, the operations that what is wanted needs, and which these are."""
        numbers = {tensor: (-1, k) for k, tensor in enumerate(given)}
        live = ordered([*(tensor.op for tensor in wanted), *targets], _fed(given))
        places = {op: k for k, op in enumerate(live)}

        def place(tensor):
            return numbers.get(tensor) or (places[tensor.op], tensor.index)

        return (
            [(tensor.op.name, self._value(tensor.spec)) for tensor in given],
            [self._operation(op, place, places) for op in live],
            list(map(place, wanted)),
            [places[op] for op in targets],
        )

    def _operation(self, op: Operation, place, places):
        if not op.record.is_registered or op.record.foreign:
            raise UnknownError(op.type)
        return (
            op.type,
            op.name,
            list(map(place, op.inputs)),
            [places[other] for other in op.control_inputs if other in places],
            [(name, self._value(value)) for name, value in op.attrs.items()],
            [self._value(tensor.spec) for tensor in op.outputs],
        )

    def _value(self, value):
        """An attribute or a part of one; types are distinguished, and what equals by chance."""
        describe = _DESCRIBE.get(type(value))
        if describe is not None:
            return describe(self, value)
        if isinstance(value, SubGraph):  # what a gradient is made in is one, too
            return self._body(value)
        if isinstance(value, np.generic):
            return self._array(np.asarray(value)), "scalar"
        if isinstance(value, np.dtype):
            return _dtype(value)
        if isinstance(value, tuple):
            return type(value).__qualname__, list(map(self._value, value))
        if dataclasses.is_dataclass(value) and type(value).__module__.startswith("nbta."):
            fields = (getattr(value, field.name) for field in dataclasses.fields(value))
            return type(value).__qualname__, list(map(self._value, fields))
        raise UnknownError(type(value))

    def _array(self, array):
        if array.dtype.hasobject:
            raise UnknownError("objects")
        known = _known(array)
        self.arrays[known] = array
        return known

    def _spec(self, spec):
        found = self._specs.get(spec)
        if found is None:
            found = self._specs[spec] = "spec", list(map(self._value, spec))
        return found

    def _dim(self, dim):
        return "dim", self._dims.setdefault(dim, len(self._dims))

    def _body(self, body):
        return "body", body.scope, self._part(body.inputs, body.outputs)


def _fed(given):
    """Operations of which nothing but what is given is needed."""
    known = set(given)
    return {tensor.op for tensor in given if known.issuperset(tensor.op.outputs)}


def _known(array):
    """What stands for an array, by which it is known."""
    items = np.ascontiguousarray(array).reshape(-1).view(np.uint8)  # of bfloat16 and dates, too
    digest = hashlib.sha256(items) if array.size else None
    return "array", _dtype(array.dtype), array.shape, digest and digest.hexdigest()


def _dtype(dtype):
    if dtype.fields or dtype.subdtype or dtype.metadata:
        raise UnknownError(dtype)
    return "dtype", dtype.name, dtype.str


def _plain(description, value):
    return type(value).__name__, value


def _listed(description, values):
    return type(values).__name__, [description._value(value) for value in values]


_DESCRIBE = {
    **dict.fromkeys((type(None), bool, int, str, bytes), _plain),
    float: lambda _, value: ("float", struct.pack("<d", value).hex()),
    complex: lambda _, value: ("complex", struct.pack("<dd", value.real, value.imag).hex()),
    type(...): lambda *_: "...",
    type(SYMBOLIC): lambda *_: "symbolic",
    slice: lambda d, s: ("slice", [d._value(n) for n in (s.start, s.stop, s.step)]),
    tuple: _listed,
    list: _listed,
    dict: lambda d, items: ("dict", [(d._value(k), d._value(v)) for k, v in items.items()]),
    Dim: Description._dim,
    Spec: Description._spec,
    np.ndarray: Description._array,
}


def _alike(shapes):
    """Shapes with lengths told by a number for those that are equal; 0 and 1 are what they are."""
    numbers = {0: 0, 1: 1}
    return [[numbers.setdefault(n, len(numbers)) for n in shape] for shape in shapes]


def _exactly(shapes):
    return "exactly", [list(shape) for shape in shapes]


@dataclasses.dataclass
class Entry:
    """What is kept of a compiled program.

    Attributes
    ----------
    generated : Generated
    log : list of str
        What the passes did.
    size : int
        Operations of the program after the first passes.
    pattern : list or None
        Shapes of the inputs, with a `Dim` for each length; None where lengths are to hold to more
        than that, and the entry is for the very shapes that it was made for.
    """

    generated: Generated
    log: list
    size: int
    pattern: list | None

    def fits(self, shapes) -> bool | None:
        """Whether it is for values of some shapes; None where the program must tell."""
        return None if self.pattern is None else fits_pattern(self.pattern, shapes)


class GraphCache:
    """The entries of one graph, for several kinds of shapes.

    Parameters
    ----------
    given, wanted, targets
        As those of `nbta.compiler.program.extract`.

    Attributes
    ----------
    is_careful : bool
        Whether it is for programs whose products look at zeros.
    """

    def __init__(self, given, wanted, targets):
        self._graph, self.is_careful = (given, wanted, targets), False

    @functools.cached_property
    def _description(self):
        """None where there are to be no entries."""
        if is_observed() or machine_code.folder() is None or sources() is None:
            return None
        try:
            return Description(*self._graph)
        except UnknownError:
            return None

    def _name(self, shapes):
        versions = np.__version__, scipy.__version__, sources()
        text = repr((versions, self._description.digest, self.is_careful, shapes))
        return machine_code.key("graph " + text, {})

    def read(self, shapes) -> Entry | None:
        """The entry for values of some shapes; None where there is none that is whole."""
        if self._description is None:
            return None
        found = (self._entry(kind(shapes)) for kind in (_alike, _exactly))
        return next((e for e in found if e is not None and e.fits(shapes) is not False), None)

    def _entry(self, kind):
        with contextlib.suppress(LookupError):
            return machine_code.read_as(self._name(kind), self._meaning)
        return None

    def _is_taken(self, shapes):
        """Whether there is an entry for other lengths that the program names."""
        entry = self._entry(_alike(shapes))
        return entry is not None and entry.fits(shapes) is False

    def _meaning(self, name, data):
        return decoded(name, data, self._description.arrays)

    def write(self, shapes, compiled, size) -> None:
        """Keep what a `Compiled` for these shapes has, where that is all that a call needs."""
        found, program = compiled.generated, compiled.program
        if self._description is None or found.calls or found.globals or found.kept:
            return
        exact = program.assumed is not None
        pattern = None if exact else [tensor.spec.shape for tensor in program.inputs]
        name = self._name((_exactly if exact or self._is_taken(shapes) else _alike)(shapes))
        entry = Entry(found, compiled.log, size, pattern)
        data = encoded(name, entry, self._description.arrays)
        if data is not None:
            machine_code.write_bytes(name, data)


_FACTS = (
    "source", "words", "inputs", "arguments", "helpers", "initial", "loops", "buffers", "arrays",
    "copies", "tiles", "joint", "lengths", "is_plain", "sizes",
)  # fmt: skip


def encoded(name: str, entry: Entry, arrays) -> bytes | None:
    """The bytes of an entry of that name; None for one that is not to be kept.

    ``arrays`` are the graph's own, which need not be in it.
    """
    found, places = entry.generated, {known: k for k, known in enumerate(arrays)}
    numbers = [places.get(_known(array)) for _, array in found.constants]
    pairs = list(zip(found.constants, numbers, strict=True))
    own = [array for (_, array), number in pairs if number is None]
    outputs = [(o.dtype.str, o.kind, o.word, o.dimensions) for o in found.outputs]
    known = all(np.dtype(dtype).isbuiltin == 1 for dtype, *_ in outputs)
    if not known or not all(array.dtype.isbuiltin == 1 for array in own):
        return None
    if sum(array.nbytes for array in own) > CACHED_ARRAYS:
        return None
    facts = {fact: getattr(found, fact) for fact in _FACTS}
    facts |= {"name": name, "outputs": outputs, "log": entry.log, "size": entry.size}
    facts["pattern"] = entry.pattern and _numbered(entry.pattern)
    facts["constants"] = [(word, number) for (word, _), number in pairs]
    facts["own"] = [(array.dtype.str, array.shape) for array in own]
    lines = json.dumps(facts).encode(), saving.encoded(found.function), b""
    body = b"\n".join(lines) + b"".join(array.tobytes() for array in own)
    return object_files.sealed(HEAD, body)


def _numbered(pattern):
    numbers: dict = {}

    def dimension(n):
        return [numbers.setdefault(n, len(numbers))] if isinstance(n, Dim) else n

    return [shape if shape is None else list(map(dimension, shape)) for shape in pattern]


def decoded(name: str, data: bytes, arrays) -> Entry:
    """The entry of that name that bytes hold, for a graph with these arrays.

    Raises
    ------
    ValueError
        If they do not.
    """
    text, function, rest = object_files.opened(HEAD, data).split(b"\n", 2)
    facts = json.loads(text)
    if facts["name"] != name:
        raise ValueError("another entry")
    generated = Generated(**{fact: facts[fact] for fact in _FACTS})
    generated.initial = [tuple(pair) for pair in generated.initial]
    generated.sizes, generated.function = Sizes(*generated.sizes), function
    generated.outputs = [Output(np.dtype(dtype), *others) for dtype, *others in facts["outputs"]]
    own, given = _arrays(facts["own"], rest), list(arrays.values())
    generated.constants = [
        (word, next(own) if number is None else np.array(given[number], order="C"))
        for word, number in facts["constants"]
    ]
    dims: dict = {}
    pattern = facts["pattern"] and [
        shape if shape is None else tuple(
            dims.setdefault(n[0], Dim()) if isinstance(n, list) else n for n in shape
        ) for shape in facts["pattern"]
    ]  # fmt: skip
    return Entry(generated, facts["log"], facts["size"], pattern)


def _arrays(kinds, data):
    """Arrays of some dtypes and shapes that lie one after the other."""
    at = 0
    for text, shape in kinds:
        dtype = np.dtype(text)
        count = int(np.prod(shape, dtype=np.int64))
        yield np.frombuffer(data, dtype, count, at).reshape(shape).copy()
        at += count * dtype.itemsize
