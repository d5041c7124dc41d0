"""Functions that go item by item, by name, from nbta's own table, so that no test lists them."""

import inspect

from nbta.ops.functions import FUNCTIONS

_FOUND = {name: f for name, f in FUNCTIONS.items() if hasattr(f, "record")}
OF_ONE = {n: f for n, f in _FOUND.items() if len(inspect.signature(f).parameters) == 2}
OF_TWO = {n: f for n, f in _FOUND.items() if n not in OF_ONE}
