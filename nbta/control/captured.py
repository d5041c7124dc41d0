"""Arrays that users' functions take from around them, which they may not change."""

import dis
import functools
import types

import numpy as np

from nbta.errors import invalid
from nbta.graph.graph import current
from nbta.immutable import frozen, in_body, refusals

_REBINDING = ("STORE_DEREF", "DELETE_DEREF", "STORE_GLOBAL", "DELETE_GLOBAL")


@functools.lru_cache(maxsize=1024)
def names_of(code) -> tuple:
    """Global names that a function, or one in it, uses; and names that it gives other values."""
    steps = list(dis.get_instructions(code))
    used = {step.argval for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    given = {step.argval for step in steps if step.opname in _REBINDING}
    inner = [names_of(const) for const in code.co_consts if isinstance(const, types.CodeType)]
    return used.union(*(a for a, _ in inner)), given.union(*(b for _, b in inner))


class _Globals(dict):
    """Some names of a module, before all others."""

    def __init__(self, first, others):
        super().__init__(first)
        self._others = others

    def __missing__(self, name):
        return self._others[name]


def guarded(function, what):
    """A function for which arrays from around it do not change while it runs.

    Parameters
    ----------
    function : callable
        A Python function, or a partial one; others stay as they are. So do names to which it gives
        other values, and what it reaches by other ways than its names and defaults.
    what : str
        What messages call it.
    """
    if isinstance(function, functools.partial):
        return _partial(function, what)
    if not isinstance(function, types.FunctionType):
        return function
    used, given = names_of(function.__code__)
    free = set(function.__code__.co_freevars) - given
    if not given.isdisjoint(function.__globals__):  # what it writes must reach the module
        used = set()
    if not (free or used or function.__defaults__ or function.__kwdefaults__):
        return function

    @functools.wraps(function)
    def call(*args, **options):
        before = {name: _content(function, name) for name in free}
        around = {name: function.__globals__.get(name) for name in used}
        arrays = {n: v for n, v in {**around, **before}.items() if type(v) is np.ndarray}
        if (graph := current()) is not None and (outside := graph.root.outside) is not None:
            outside.around(function, names_of(function.__code__)[0], fix=False)
        if not arrays and not function.__defaults__ and not function.__kwdefaults__:
            return function(*args, **options)
        with refusals(what):
            found = _clone(function, arrays, free, what)(*args, **options)
        for name, array in arrays.items():
            now = _content(function, name) if name in free else function.__globals__.get(name)
            if now is not array:
                raise _rebound(what, name)
        return found

    return call


def _partial(function, what):
    part = functools.partial(frozen, name=f"an argument of {what}", is_tensor=_stand_for_tensors())
    args = map(part, function.args)
    options = {name: part(value) for name, value in function.keywords.items()}
    return functools.partial(guarded(function.func, what), *args, **options)


def _stand_for_tensors() -> bool:
    """Whether this is a plain call, or a trace that only finds out what one will give."""
    return current() is None or in_body()


def _rebound(what, name):
    message = (
        f"{what}: another function gave {name!r} another array while it ran; make it a variable "
        f"of the loop, or a result"
    )
    return invalid("immutable", message)


def _content(function, name):
    """What a name of an enclosing function stands for; None where that is not known yet."""
    try:
        return function.__closure__[function.__code__.co_freevars.index(name)].cell_contents
    except ValueError:
        return None


def _clone(function, arrays, free, what):
    """The function with immutable arrays under some names, and as defaults.

    What an enclosing function brings may be a tensor when this is traced; what a module has may
    not, and so is a constant in both ways.
    """
    tensors = _stand_for_tensors()

    def view(name, value):
        graph = current()
        outside = None if graph is None else graph.root.outside
        if outside is not None and (found := outside.tensor(value)) is not None:
            return found  # as it is at each call
        is_tensor = name in free and tensors
        return frozen(value, f"{name!r}, from outside of {what},", is_tensor)

    code, cells = function.__code__, function.__closure__ or ()
    cells = tuple(
        types.CellType(view(name, arrays[name])) if name in arrays and name in free else cell
        for name, cell in zip(code.co_freevars, cells, strict=True)
    )
    names = {name: view(name, value) for name, value in arrays.items() if name not in free}
    around = _Globals(names, function.__globals__) if names else function.__globals__
    default = functools.partial(frozen, name=f"a default of {what}", is_tensor=tensors)
    defaults, named = function.__defaults__, function.__kwdefaults__
    made = types.FunctionType(
        code, around, function.__name__, defaults and tuple(map(default, defaults)), cells
    )
    made.__kwdefaults__ = named and {name: default(value) for name, value in named.items()}
    return made
