"""Arguments that are taken apart before a graph is looked up: records, and what Numba compiled."""

from __future__ import annotations

import numpy as np

from nbta.frontend.jit_classes import is_compiled_object, place_of, python_object
from nbta.frontend.records import as_records, is_structured
from nbta.frontend.typed_containers import is_typed, opened
from nbta.structure import leaves, map_leaves


def taken_apart(structure):
    """A structure with the parts of structured arrays and of Numba's objects in their place.

    It is the structure itself where there are none: objects stay who they are.
    """
    if not any(map(_has_parts, leaves(structure))):
        return structure
    made = {}  # what is in two places is one in both, as a function may change it
    return map_leaves(lambda leaf: _parts(leaf, made), structure)


def _has_parts(leaf):
    return is_structured(leaf) or is_compiled_object(leaf) or is_typed(type(leaf))


def _parts(leaf, made):
    if not _has_parts(leaf):
        return leaf
    key = _identity(leaf)
    if key not in made:
        made[key] = _taken_apart(leaf)
    return made[key]


def _identity(leaf):
    if is_compiled_object(leaf):
        return place_of(leaf)
    # A single record has a copy of itself as its array.
    return repr(leaf.__array_interface__) if isinstance(leaf, np.ndarray) else id(leaf)


def _taken_apart(leaf):
    if is_compiled_object(leaf):
        return taken_apart(python_object(leaf))
    if is_typed(type(leaf)):
        found = opened(leaf)
        return found if found is leaf else taken_apart(found)
    return as_records(leaf)
