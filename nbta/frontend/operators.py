"""Functions of the module `operator`, which do what the operators do in the user's code."""

from __future__ import annotations

import operator

from nbta.frontend import conversion

_BINARY = {
    "add": "Add", "sub": "Sub", "mul": "Mult", "truediv": "Div", "floordiv": "FloorDiv",
    "mod": "Mod", "pow": "Pow", "matmul": "MatMult", "and_": "BitAnd", "or_": "BitOr",
    "xor": "BitXor", "lshift": "LShift", "rshift": "RShift",
}  # fmt: skip


def _binary(name):
    return lambda left, right: conversion.runtime().binary(name, left, right)


def _in_place(name):
    return lambda old, value: conversion.runtime().in_place(name, old, value)


def _get(owner, key):
    return conversion.runtime().item(owner, key)


def _set(owner, key, value):
    conversion.runtime().set_item(value, owner, key)


def _delete(owner, key):
    conversion.runtime().delete_item(owner, key)


def _of_python():
    found = {operator.getitem: _get, operator.setitem: _set, operator.delitem: _delete}
    for name, kind in _BINARY.items():
        found[getattr(operator, name)] = _binary(kind)
        found[getattr(operator, f"i{name.strip('_')}")] = _in_place(kind)
    return found


#: What stands for functions of the module.
FUNCTIONS = _of_python()


def items_of(getter, args, kwargs):
    """What an ``operator.itemgetter`` gives: views where subscripts are views."""
    (owner,), (_, keys) = args, getter.__reduce__()
    found = tuple(_get(owner, key) for key in keys)
    return found[0] if len(found) == 1 else found


def attributes_of(getter, args, kwargs):
    """What an ``operator.attrgetter`` gives."""
    (owner,), (_, names) = args, getter.__reduce__()
    found = []
    for name in names:
        value = owner
        for part in name.split("."):
            value = conversion.runtime().attribute(value, part)
        found.append(value)
    return found[0] if len(found) == 1 else tuple(found)
