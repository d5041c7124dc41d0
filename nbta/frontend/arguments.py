"""Arguments that are taken apart before a graph is looked up: records, and what Numba compiled."""

from __future__ import annotations

from nbta.frontend.jit_classes import is_compiled_object, python_object
from nbta.frontend.records import as_records, is_structured
from nbta.frontend.typed_containers import is_typed, opened
from nbta.structure import leaves, map_leaves


def taken_apart(structure):
    """A structure with the parts of structured arrays and of Numba's objects in their place.

    It is the structure itself where there are none: objects stay who they are.
    """
    if not any(map(_has_parts, leaves(structure))):
        return structure
    return map_leaves(_parts, structure)


def _has_parts(leaf):
    return is_structured(leaf) or is_compiled_object(leaf) or is_typed(type(leaf))


def _parts(leaf):
    if is_compiled_object(leaf):
        return taken_apart(python_object(leaf))
    if is_typed(type(leaf)):
        found = opened(leaf)
        return found if found is leaf else taken_apart(found)
    return as_records(leaf) if is_structured(leaf) else leaf
