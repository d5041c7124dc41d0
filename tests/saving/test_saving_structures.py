"""Files of nested structures of arrays."""

import collections
import dataclasses
import enum
import json
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import nbta
from nbta import saving

Pair = collections.namedtuple("Pair", "w b")
Colour = enum.IntEnum("Colour", "RED")


@nbta.register_structure
@dataclasses.dataclass
class Point:
    x: Any
    y: Any = 0.0
    label: str = "point"
    derived: Any = dataclasses.field(init=False)


@nbta.register_structure
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    point: Point
    tags: tuple = ("a", None)


@nbta.register_structure
class Range(NamedTuple):
    low: Any
    high: Any = None


class Named:
    """Has parts, and a name that is none."""

    def __init__(self, name, parts):
        self.name, self.parts = name, parts

    def __eq__(self, other):
        return (self.name, self.parts) == (other.name, other.parts)


nbta.register_structure(
    Named, lambda v: (v.parts, v.name), lambda name, parts: Named(name, [*parts])
)


@dataclasses.dataclass
class Unknown:
    x: Any


def more():
    point = Point(1.0)
    point.other = 2
    return point


def circled():
    point = Point(1.0)
    point.x = point
    return point


@pytest.fixture
def again(tmp_path):
    """Save and load."""

    def run(structure):
        saving.save(tmp_path / "all.npz", structure)
        return saving.load(tmp_path / "all.npz")

    return run


def written(dtype="float64", **options):
    return nbta.TensorArray(dtype, 2, **options).write(0, np.ones(3, dtype))


def same(new, old):
    """Whether two structures are the same, to the type and the bit."""
    assert type(new) is type(old)
    if isinstance(old, dict):
        assert [(type(k), repr(k)) for k in new] == [(type(k), repr(k)) for k in old]
        old = list(old.values())
        new = list(new.values())
    if isinstance(old, list | tuple):
        assert len(new) == len(old)
        for one, other in zip(new, old, strict=True):
            same(one, other)
    elif isinstance(old, nbta.TensorArray):
        assert (new.dtype, new._states().tolist()) == (old.dtype, old._states().tolist())
        np.testing.assert_array_equal(np.asarray(new), np.asarray(old))
    elif isinstance(old, np.ndarray | np.generic):
        assert (new.dtype, new.shape, new.tobytes()) == (old.dtype, old.shape, old.tobytes())
    else:
        assert repr(new) == repr(old)


STRUCTURES = {
    "nothing": [None, [], (), {}],
    "numbers": [True, 0, -(2**200), 1.5, -0.0, float("nan"), float("inf"), 2.0**-1074, 1 - 2j],
    "keys": {"b": 1, "a": 2, 3: 4, None: 5, 2.5: 6, True: 7, "": 8, "\ud800": 9},
    "text": ["", "é", "\0", '"]', "\ud800"],
    "arrays": {
        "a": np.arange(6.0).reshape(2, 3), "f": np.asfortranarray(np.ones((2, 3))),
        "big": np.arange(3, dtype=">i4"), "half": np.ones(2, ml_dtypes.bfloat16),
        "none": np.zeros((0, 3)), "text": np.array(["é", "ab"]), "bytes": np.array([b"x"]),
        "dates": np.array(["2020-01-01", "NaT"], "M8[D]"), "alone": np.array(3.0),
        "records": np.array([(1, 2.0)], [("a", "i2"), ("b", "f8")]), "view": np.arange(9)[::2],
    },
    "scalars": (
        np.float32(0.1), np.int8(-1), np.True_, np.complex64(1j), np.str_("é"), np.bytes_(b"x"),
        np.datetime64("2020-01-01"), ml_dtypes.bfloat16(2), np.float64(0.5), np.longdouble(1) / 3,
    ),
    "deep": {"layers": [{"w": np.ones(2), "b": (0.5, [written()])}, {"w": None}]},
    "array": np.ones(3),
    "number": 3,
}  # fmt: skip


@pytest.mark.parametrize("name", STRUCTURES)
def test_what_comes_back_is_the_same(name, again):
    same(again(STRUCTURES[name]), STRUCTURES[name])


def test_arrays_with_all_that_they_have(again):
    ragged = nbta.TensorArray("int32", 3, infer_shape=False).write(0, [1]).write(2, [[2, 3]])
    cleared = written(clear_after_read=True)
    cleared.read(0)
    summed = written()
    summed.grad("s").accumulate(0, np.full(3, 2.0))
    new = again([ragged, cleared, summed])
    assert new[0][2].tolist() == [[2, 3]]
    assert new[1]._states().tolist() == cleared._states().tolist()
    assert new[2].grad("s").read(0).tolist() == [2, 2, 2]
    new[0].write(1, [7])
    assert ragged._states()[1] == 0


def test_one_array_under_several_names_is_one_afterwards(again):
    ta = written()
    deep = ta.grad("s").accumulate(0, np.ones(3)).grad("t")
    new = again({"second": deep, "first": ta.grad("s"), "array": ta, "again": ta.identity()})
    assert new["array"].write(1, np.zeros(3)) is not None
    assert new["again"].read(1).tolist() == [0, 0, 0]
    new["array"].grad("s").accumulate(1, np.ones(3))
    assert new["first"].read(1).tolist() == [1, 1, 1]
    new["second"].accumulate(0, np.full(3, 5.0))
    assert new["first"].grad("t").read(0).tolist() == [5, 5, 5]


def test_a_gradient_array_without_its_array(again):
    gradient = written().grad("s").accumulate(0, np.ones(3))
    assert again([gradient])[0].read(0).tolist() == [1, 1, 1]


def looped():
    inner = []
    inner.append(inner)
    return {"a": inner}


def closed():
    ta = written()
    ta.close()
    return ta


def of_a_graph():
    with nbta.Graph().as_default():
        return [nbta.TensorArray("float64", 1)]


def tensor():
    with nbta.Graph().as_default():
        return nbta.constant(1.0)


REFUSED = {
    "object": (lambda: {"a": [object()]}, r"structure\['a'\]\[0\] is a builtins.object; give Tens"),
    "named tuple": (lambda: [Pair(1, 2)], r"structure\[0\] is a .*Pair; .* give a plain tuple"),
    "ordered": (collections.OrderedDict, r"OrderedDict; .* give a plain dict"),
    "enum": (lambda: Colour.RED, "Colour; give TensorArrays"),
    "set": (lambda: {1}, "is a builtins.set"),
    "bytes": (lambda: b"x", "is a builtins.bytes"),
    "function": (lambda: [len], "builtin_function"),
    "objects": (lambda: np.array([None]), "Python objects"),
    "masked": (lambda: [np.ma.array([1])], r"structure\[0\]: a .*MaskedArray has a mask"),
    "key": (lambda: {frozenset((1, 2)): 3}, r"the key frozenset\(\{1, 2\}\)"),
    "key in a key": (lambda: {(1, ("a", b"x")): 3}, r"the key \(1, \('a', b'x'\)\)"),
    "dataclass": (lambda: [Unknown(1)], r"structure\[0\] is a .*Unknown; register it with"),
    "more": (lambda: [more()], r"structure\[0\]: it has an attribute 'other', which is no field"),
    "function in a field": (lambda: Point(len, 1), r"structure\.x is a .*builtin_function"),
    "function of a rest": (lambda: Named(len, [1]), r"structure's rest is a .*builtin_function"),
    "object in itself": (circled, r"structure\.x contains itself"),
    "circle": (looped, r"structure\['a'\]\[0\] contains itself"),
    "closed": (lambda: [closed()], "the array is closed"),
    "graph": (of_a_graph, "belongs to a graph"),
    "tensor": (tensor, "Tensor; give TensorArrays"),
    "no name": (lambda: np.zeros(1, [("h", ml_dtypes.bfloat16)]), "no file can name"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_saved(name, tmp_path):
    make, words = REFUSED[name]
    with pytest.raises(nbta.InvalidArgumentError, match=words):
        saving.save(tmp_path / "all.npz", make())
    assert list(tmp_path.iterdir()) == []


def test_numpy_opens_the_file(tmp_path):
    saving.save(tmp_path / "all.npz", {"w": np.arange(3)})
    with np.load(tmp_path / "all.npz") as file:
        assert file["value_0"].tolist() == [0, 1, 2]


# Users' classes.


def test_objects_come_back(again):
    array, ta = np.arange(3.0), written()
    point = Point(array, [1, None, {"a": 2.5}], "first")
    found = again({"p": point, "f": Fixed(point=Point(1j)), "r": Range(ta, (1, "x")),
                   "n": Named(("two", 2), [np.float32(1.0), Range(1)]), "again": [ta]})  # fmt: skip
    assert [type(each) for each in found.values()] == [Point, Fixed, Range, Named, list]
    np.testing.assert_array_equal(found["p"].x, array)
    assert (found["p"].y, found["p"].label) == ([1, None, {"a": 2.5}], "first")
    assert not hasattr(found["p"], "derived")
    assert (found["f"].point.x, found["f"].tags) == (1j, ("a", None))
    assert found["r"].low is found["again"][0]
    assert found["r"].high == (1, "x")
    assert found["n"] == Named(("two", 2), [np.float32(1.0), Range(1)])
    assert type(found["n"].parts[1]) is Range


def test_keys_that_are_tuples(again):
    structure = {(1, "a"): 1, (): 2, ((2.5, None), True): 3, "x": {(0,): np.ones(1)}}
    same(again(structure), structure)


def test_a_class_that_nobody_registered(tmp_path):
    @nbta.register_structure
    @dataclasses.dataclass
    class Local:
        x: Any

    path = tmp_path / "all.npz"
    saving.save(path, [Local(1.0)])
    assert saving.load(path) == [Local(1.0)]
    forged_class(path, lambda name: name.replace("Local", "Other"))
    with pytest.raises(
        nbta.InvalidArgumentError, match=r"Other', a class that is not regis"
    ) as caught:
        saving.load(path)
    assert caught.value.reason == "register"


def forged_class(path, change):
    """The file with another name of the class of the first object in a list."""
    with np.load(path) as file:
        members = dict(file)
    meta = json.loads(str(members["meta"]))
    meta["tree"][1][0][1] = change(meta["tree"][1][0][1])
    members["meta"] = np.array(json.dumps(meta))
    with open(path, "w+b") as stream:
        saving._write_archive(stream, members)


@pytest.mark.parametrize(
    "name", ["os.system", "builtins.eval", "json.JSONDecoder", "nbta.TensorArray"]
)
def test_names_in_files_are_looked_up_and_not_imported(name, tmp_path):
    path = tmp_path / "all.npz"
    saving.save(path, [Point(1.0)])
    forged_class(path, lambda _: name)
    with pytest.raises(nbta.InvalidArgumentError, match="not registered here"):
        saving.load(path)


def test_classes_that_changed(tmp_path):
    path = tmp_path / "all.npz"
    for given, other, words in (
        (
            Point(1.0),
            "Fixed",
            r"fields x, y, label, derived, and those of the class are point, tags",
        ),
        (Point(1.0), "Named", "registered in another way"),
        (Range(1), "Point", "registered in another way"),
        (Named("a", []), "Range", "registered in another way"),
    ):
        saving.save(path, [given])
        forged_class(path, lambda name, new=other: name.rpartition(".")[0] + "." + new)
        with pytest.raises(nbta.InvalidArgumentError, match=words) as caught:
            saving.load(path)
        assert caught.value.reason == "register"


def test_a_class_that_is_defined_anew(again):
    """As a cell of a notebook does: the last one counts."""

    def made():
        @nbta.register_structure
        @dataclasses.dataclass
        class Again:
            x: Any

        return Again

    old, new = made(), made()
    assert type(again(new(1.0))) is new
    with pytest.raises(nbta.InvalidArgumentError, match="Again; register it"):
        again(old(1.0))


def test_files_without_classes_are_as_before(tmp_path):
    saving.save(tmp_path / "all.npz", {"a": [1, (2.0, None)]})
    with np.load(tmp_path / "all.npz") as file:
        assert json.loads(str(file["meta"]))["format"] == 2


# Files that were made up.


def forged(path, change):
    """A file with the right digest and another tree, or other members."""
    saving.save(path, {"w": np.ones(2), "ta": [written()], "n": np.float32(1), "z": 1j})
    with np.load(path) as file:
        members = dict(file)
    meta = json.loads(str(members["meta"]))
    change(meta, members)
    members["meta"] = np.array(json.dumps(meta))
    with open(path, "w+b") as stream:
        saving._write_archive(stream, members)


def tree(value):
    return lambda meta, members: meta.update(tree=value)


def member(**new):
    return lambda meta, members: members.update(new)


def nested(depth):
    value = ["NoneType", None]
    for _ in range(depth):
        value = ["list", [value]]
    return value


ARRAY = ["array", 0, False]
FORGED = {
    "no tree": lambda meta, members: meta.pop("tree"),
    "a number": tree(3),
    "an empty node": tree([]),
    "an unknown kind": tree(["set", []]),
    "a kind that is none": tree([["list"], []]),
    "list of a number": tree(["list", 3]),
    "dict of a number": tree(["dict", [3]]),
    "a dict's key": tree(["dict", [[ARRAY, ARRAY]]]),
    "two keys": tree(["dict", [[["str", "a"], ["int", "0x1"]]] * 2]),
    "no array there": tree(["tensor_array", 1, 0]),
    "no gradient array there": tree(["tensor_array", 0, 1]),
    "a negative place": tree(["tensor_array", -1, 0]),
    "a place that is true": tree(["tensor_array", False, 0]),
    "a value twice": tree(["list", [ARRAY, ARRAY]]),
    "no value there": tree(["array", 9, False]),
    "a value that is nowhere": tree(["list", []]),
    "a scalar with axes": tree(["scalar", 0, False]),
    "half of float64": tree(["array", 0, True]),
    "an integer": tree(["int", 3]),
    "no integer": tree(["int", "one"]),
    "no number": tree(["float", "one"]),
    "half a complex number": tree(["complex", ["0x1p0"]]),
    "a truth value": tree(["bool", "True"]),
    "too deep": tree(nested(50_000)),
    "an object": tree(["object"]),
    "an object of no name": tree(["dataclass", 3, []]),
    "a field alone": tree(["dataclass", f"{__name__}.Point", [["x"]]]),
    "fields that are none": tree(["namedtuple", f"{__name__}.Range", 3]),
    "no parts": tree(["object", f"{__name__}.Named", ["str", "a"]]),
    "a key in a key": tree(["dict", [[["tuple", [ARRAY]], ARRAY]]]),
    "a missing value": tree(["missing"]),
    "no count": lambda meta, members: meta.pop("tensor_arrays"),
    "a count of many": lambda meta, members: meta.update(tensor_arrays=10**9),
    "a member more": member(other=np.ones(1)),
    "an array more": member(t7_meta=np.array("{}")),
    "a broken array": member(t0_meta=np.array("{}")),
    "other states": member(t0_states_0=np.full(2, 255, np.uint8)),
}


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("name", FORGED)
def test_made_up_files(name, tmp_path):
    path = tmp_path / "all.npz"
    try:
        forged(path, FORGED[name])
    except RecursionError:  # too deep for json.dumps as well
        meta = np.array('{"format": 2, "tensor_arrays": 0, "tree": ' + "[" * 50_000)
        with open(path, "w+b") as stream:
            saving._write_archive(stream, {"meta": meta})
    with pytest.raises(nbta.InvalidArgumentError, match=r"load: .*all\.npz"):
        saving.load(path)


def test_forging_alone_changes_nothing(tmp_path):
    forged(tmp_path / "all.npz", lambda meta, members: None)
    assert saving.load(tmp_path / "all.npz")["w"].tolist() == [1, 1]


def test_a_bit_of_any_byte(tmp_path):
    path = tmp_path / "all.npz"
    saving.save(path, [np.ones(2), written(), "x"])
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(nbta.InvalidArgumentError, match="load"):
            saving.load(path)
