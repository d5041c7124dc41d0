"""Functions that go item by item, by name, from nbta's own table, so that no test lists them."""

import inspect

import numpy as np

from nbta.errors import NbtaError
from nbta.graph.operation import Spec
from nbta.ops.functions import FUNCTIONS

_FOUND = {name: f for name, f in FUNCTIONS.items() if hasattr(f, "record")}
OF_ONE = {n: f for n, f in _FOUND.items() if len(inspect.signature(f).parameters) == 2}


def _takes_floats(function):
    floats = [Spec(np.dtype(np.float64), ())] * 2
    try:
        return bool(function.record.infer(*floats))
    except NbtaError:
        return False


OF_TWO = {n: f for n, f in _FOUND.items() if n not in OF_ONE and _takes_floats(f)}
OF_INTEGERS = {n: f for n, f in _FOUND.items() if n not in OF_ONE and n not in OF_TWO}
