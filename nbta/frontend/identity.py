"""What Python asks of a value beside computing with it: who it is, its class and its hash.

Of a number that only the run knows these are decided by its value where that gives what Python
would, and are known where each number gives the same; all else is refused by name. Nothing is
decided by the object that stands for a number in a trace.
"""

from __future__ import annotations

import builtins
import numbers

import numpy as np

from nbta.errors import UnimplementedError, invalid
from nbta.frontend import control, python_numbers, texts
from nbta.frontend.array_wrappers import ArrayWrapper, is_apart
from nbta.frontend.constants import Chosen
from nbta.frontend.containers import relatives
from nbta.frontend.languages import is_numbas
from nbta.frontend.lists import Listing
from nbta.frontend.maybe import is_maybe, may_be_gone, there, used
from nbta.frontend.outside import note_class, reading, seen_by
from nbta.frontend.problems import here
from nbta.frontend.records import Record, Records
from nbta.frontend.records import has_attribute as has_field
from nbta.frontend.tensor_array_wrappers import unwrapped
from nbta.graph.operation import Tensor
from nbta.ops.core.arithmetic import equal, imag, logical_and, real
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.elementary.rounding import rint
from nbta.ops.numbers import Number, holds_text

#: Python's class for each kind of a dtype.
PYTHONS = {"f": float, "i": int, "u": int, "b": bool, "c": complex}
#: Integers of which CPython has one object each.
_ONE_EACH = range(-5, 257)
_RECORDS = Record | Records


def is_run_number(value) -> bool:
    """Whether a value is a number, or a truth value, that only the run knows."""
    return (
        isinstance(value, Tensor)
        and not isinstance(value, ArrayWrapper | Number)
        and not is_maybe(value)
    )


def _refuse(what, remedy):
    raise invalid("identity", f"{here()}: {what} that only the run knows; {remedy}")


# Who it is.


def is_same(left, right):
    """``left is right``, where one array has one wrapper."""
    left, right = (_asked(*pair) for pair in ((left, right), (right, left)))
    if left is right:
        return True
    lists = isinstance(left, list) and isinstance(right, list)
    if lists and any(isinstance(each, Listing) and each.is_picked for each in (left, right)):
        _refuse("`is` compares a list that is chosen by an index", "compare indices in its place")
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Class):
            return one.is_class(other)
    if is_run_number(left) or is_run_number(right):
        return _is_same_number(left, right)
    arrays = isinstance(left, ArrayWrapper) and isinstance(right, ArrayWrapper)
    if arrays and left.root.links_to(right.root):
        message = f"{here()}: whether two arrays are the same is decided when the function runs"
        raise invalid("identity", message)
    if arrays and (outside := reading()) is not None:
        return outside.is_same(left, right)
    if type(left) is type(right) and any(
        is_apart(each) or relatives(each) for each in (left, right)
    ):
        _refuse("`is` compares objects of which one is chosen by an if or a loop", _COMPARE)
    return False


_COMPARE = "choose a number beside them, such as an index, and compare that"


def _asked(value, other):
    """A number, of a length where Python must know it to compare it with another one."""
    return int(value) if isinstance(value, Number) and isinstance(other, int) else value


def _is_same_number(left, right):
    """Truth values are one object each, and so are small integers of Python's."""
    one, other = (left, right) if is_run_number(left) else (right, left)
    kinds = [_kind(each) for each in (one, other)]
    if None in kinds or "b" in kinds:
        return equal(as_tensor(one), as_tensor(other)) if kinds == ["b", "b"] else False
    known = not is_run_number(other)
    if kinds[0] != kinds[1]:
        return False
    if kinds[0] in "iu" and known and other in _ONE_EACH:
        return equal(as_tensor(one), as_tensor(other))
    return _refuse("`is` compares the identity of a number", "write == in its place")


def differ(left, right) -> bool:
    """Whether a number of the run is compared with what no number is equal to."""
    if not is_run_number(left):
        left, right = right, left
    if not is_run_number(left) or isinstance(right, Tensor | np.ndarray | _PLAIN):
        return False
    if right is not None and holds_text(left):
        return False
    if isinstance(right, list | tuple):
        what = f"== with a {'list' if isinstance(right, list) else 'tuple'} of a number"
        _refuse(what, "compare it with one number, or make the other one an array")
    own = type(right).__eq__ is not object.__eq__
    return not own or right is None or isinstance(right, str | bytes | dict | set | frozenset)


def _kind(value):
    """The kind of a number's dtype; None for what is none."""
    if isinstance(value, ArrayWrapper):
        return None
    if isinstance(value, Tensor):
        return value.dtype.kind
    return np.asarray(value).dtype.kind if isinstance(value, _PLAIN) else None


_PLAIN = bool | int | float | complex | np.generic


def id_of(value):
    """``id``."""
    if isinstance(value, Tensor):
        _refuse("id() of a value", "compare values by ==, arrays by `is`")
    return id(value)


def with_floats(left, right):
    """Operands, of which a fraction is a float beside a float that only the run knows."""
    return _beside(left, right), _beside(right, left)


def _beside(value, other):
    is_fraction = isinstance(value, numbers.Rational) and not isinstance(value, Tensor | _PLAIN)
    if not (is_fraction and is_run_number(other) and other.dtype.kind in "fc"):
        return value
    seen_by(value, "__float__", followed=False)
    return float(value)


# Of which class.


class Class:
    """The class of a number that only the run knows: Python's, or NumPy's where it is one of those.

    Which of the two an argument or a result is nobody knows, so that what differs is refused.
    """

    def __init__(self, kinds):
        self.kinds = kinds

    def is_class(self, other):
        """Whether it is a certain class."""
        if isinstance(other, Class):
            same = self.kinds == other.kinds
            return same if not same or len(self.kinds) == 1 else self._refuse()
        if other not in self.kinds:
            return False
        return True if len(self.kinds) == 1 else self._refuse()

    def _refuse(self):
        python, numpys = self.kinds
        return _refuse(
            f"type(), either {python.__name__} or numpy.{numpys.__name__}, of a number",
            f"use isinstance(value, {python.__name__})",
        )

    def __eq__(self, other):
        return self.is_class(other)

    def __hash__(self):
        return self._refuse()

    def __getattr__(self, name):
        return self._refuse() if len(self.kinds) > 1 else getattr(self.kinds[0], name)

    def __str__(self):
        return self._refuse() if len(self.kinds) > 1 else str(self.kinds[0])

    __repr__ = __str__


def type_of(value, *rest):
    """``type``."""
    if rest:
        return type(value, *rest)
    value = unwrapped(value)
    if isinstance(value, ArrayWrapper):
        return np.ndarray
    if is_maybe(value):
        _refuse("type() of a value, either None or a number,", "test `is None` first")
    if isinstance(value, Number):
        return value.weak
    if isinstance(value, Tensor):
        return Class(classes_of(value))
    note_class(value)
    return list if isinstance(value, Listing) else type(value)


def is_instance(value, classes) -> bool:
    """``isinstance`` of an array or a number of the run, of which each class may say the same."""
    kinds = classes_of(value)
    found = {issubclass(kind, classes) for kind in kinds}
    if len(found) == 1:
        return found.pop()
    python, numpys = kinds
    if is_numbas() and (python is not bool or isinstance(classes, type)):
        return classes is not int or python is int  # one type has both names; no bool is an int
    both = f"({python.__name__}, numpy.{numpys.__name__})"
    return _refuse("isinstance() of what is of one class only, of a number", f"ask for {both}")


def has(value, name) -> bool:
    """``hasattr`` of what stands for a value of the run: what NumPy's, or Python's too, have."""
    if isinstance(value, _RECORDS):
        return has_field(value, name)
    kinds = classes_of(value)
    found = {_of_instances(kind, name) for kind in kinds}
    if len(found) == 1:
        return found.pop()
    python, numpys = kinds
    return _refuse(
        f"hasattr() for .{name}, which numpy.{numpys.__name__} has and {python.__name__} lacks, "
        "of a number",
        f"use isinstance(value, {python.__name__})",
    )


def classes_of(value):
    """The classes that an array or a number of the run may have: Python's, NumPy's or either."""
    if isinstance(value, ArrayWrapper):
        return (np.ndarray,)
    if isinstance(value, Number):
        return (value.weak,)
    python = PYTHONS.get(value.dtype.kind)
    if python is None or value.dtype != np.asarray(python()).dtype:
        return (value.dtype.type,)
    return (python,) if python_numbers.rely_on(value) else (python, value.dtype.type)


def _of_instances(kind, name):
    """Whether instances of a built-in class have an attribute: not what classes have, as a call."""
    return hasattr(_MATRIX if kind is np.ndarray else kind(), name)


_MATRIX = np.empty((1, 1))


def has_attribute(owner, name):
    """``hasattr``."""
    if isinstance(owner, Listing):
        return hasattr([], name)
    if isinstance(owner, Tensor | _RECORDS) and not is_maybe(owner):
        return has(owner, name)
    found = getattr(owner, name, None)
    return found.parts.present if may_be_gone(found) else hasattr(owner, name)


def attribute_of(owner, name, *default):
    """``getattr``."""
    if isinstance(owner, Listing):
        if name == "__class__":
            return list
        if not has_attribute(owner, name):
            return default[0] if default else getattr([], name)
    if default and isinstance(owner, _RECORDS) and not has_field(owner, name):
        return default[0]
    if not isinstance(owner, Tensor) or is_maybe(owner):
        found = getattr(owner if name.startswith("__") else used(owner), name, *default)
        return _there(found, name, *default) if may_be_gone(found) else found
    if default and not has(owner, name):
        return default[0]
    return tensor_attribute(owner, name)


def _there(found, name, *default):
    """The value of an attribute that an object may not have, or a default in its place."""
    if not default:
        return there(found, name)
    return control.either(found.parts.present, lambda: found.parts.value, lambda: default[0])


#: Attributes of NumPy's scalars that tensors have not.
_OF_SCALARS = {"real": real, "imag": imag, "T": lambda scalar: scalar}


#: Attributes that only tensors have: what users of graphs ask, and JAX's change of items.
_OF_TENSORS = {"at", "graph", "op", "spec"}

#: Attributes of arrays that say of which dtype they are.
_OF_DTYPES = {"dtype", "itemsize", "nbytes"}


def tensor_attribute(owner, name):
    """An attribute of an array or a number of the run, if NumPy's or Python's have it too."""
    if name == "__class__":
        return type_of(owner)
    if isinstance(owner, ArrayWrapper):
        kinds = (np.ndarray,)
        if name in _OF_DTYPES:
            owner.check_one_dtype(f"asked for its {name}")
    elif name in _OF_SCALARS:
        return _OF_SCALARS[name](as_tensor(owner))
    else:
        kinds = (owner.dtype.type, PYTHONS.get(owner.dtype.kind, object))
    if name not in _OF_TENSORS and not any(hasattr(kind, name) for kind in kinds):
        raise no_attribute(owner, name)
    if hasattr(owner, name):
        return getattr(owner, name)
    if name == "item":
        return lambda *index: _item(owner, index)
    if name == "is_integer":
        return lambda: True if owner.dtype.kind in "iu" else _is_whole(as_tensor(owner))
    message = f"{here()}: nbta has no operation for .{name} of a value that only the run knows"
    raise UnimplementedError(f"{message}; compute it with others")


def _item(scalar, index):
    """``scalar.item(*index)``, the number itself."""
    if index not in ((), ((),), (0,), (-1,)):
        raise IndexError(f"{here()}: item{index} of a number, which has one item")
    return scalar


def called_by_python(value):
    """What Python calls the class of a value."""
    if isinstance(value, ArrayWrapper):
        return "numpy.ndarray"
    if isinstance(value, Tensor):
        return PYTHONS.get(value.dtype.kind, object).__name__
    return "list" if isinstance(value, list) else type(value).__name__


def no_attribute(owner, name):
    """The error for an attribute that a value does not have."""
    kind = called_by_python(owner)
    return AttributeError(f"{here()}: {kind!r} object has no attribute {name!r}")


def _is_whole(value):
    return logical_and(equal(rint(value), value), equal(value - value, 0.0))


# Its hash.


def check_key(key, container):
    """Refuse what only the run knows as a key of a dict or an item of a set, or in one."""
    if isinstance(key, tuple | frozenset):
        for part in key:
            check_key(part, container)
    elif isinstance(key, Class):
        hash(key)
    elif isinstance(key, Chosen) or (isinstance(key, Tensor) and key.weak is None):
        kind = "dict" if isinstance(container, dict) else "set"
        message = (
            f"{here()}: a value that only the run knows is looked up in a {kind}; use an array"
        )
        raise invalid("dict", message)


def is_known_key(key) -> bool:
    """Whether Python knows a key."""
    if isinstance(key, tuple | frozenset):
        return all(map(is_known_key, key))
    return not (isinstance(key, Chosen) or (isinstance(key, Tensor) and key.weak is None))


def checked_keys(container):
    """What is made here; of a dict or a set Python knows all keys."""
    for key in container if isinstance(container, dict | set | frozenset) else ():
        check_key(key, container)
    return container


def hash_of(value):
    """``hash``."""
    if not is_known_key(value):
        _refuse("hash() of a value", "compare values by ==")
    seen_by(value, "__hash__", followed=False)
    return hash(value)


FUNCTIONS = {
    builtins.type: type_of, builtins.id: id_of, builtins.hash: hash_of,
    **texts.FUNCTIONS,
}  # fmt: skip
