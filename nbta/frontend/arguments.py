"""Arguments that are taken apart before a graph is looked up: records and compiled objects."""

from __future__ import annotations

from nbta.frontend.jit_classes import is_compiled_object, python_object
from nbta.frontend.records import as_records, is_structured
from nbta.structure import leaves, map_leaves


def taken_apart(structure):
    """A structure with the parts of structured arrays and of objects of jitclasses in their place.

    It is the structure itself where there are none: objects stay who they are.
    """
    if not any(is_structured(leaf) or is_compiled_object(leaf) for leaf in leaves(structure)):
        return structure
    return map_leaves(_parts, structure)


def _parts(leaf):
    if is_compiled_object(leaf):
        return taken_apart(python_object(leaf))
    return as_records(leaf) if is_structured(leaf) else leaf
