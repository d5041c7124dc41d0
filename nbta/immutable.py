"""Arrays that loops and branches outside of graphs hand to users' functions.

Traced, such a function gets tensors: ``y += x`` gives the name ``y`` to a new tensor, and what
changes a tensor in place is an error. Outside of graphs it gets arrays that behave alike, so that
both ways give the same and the caller's arrays stay as they are.
"""

import operator
import threading
from contextlib import contextmanager

import numpy as np

from nbta.dtypes import PLAIN
from nbta.errors import NbtaError, invalid

#: Methods of NumPy's arrays that change them.
METHODS = (
    "byteswap", "fill", "itemset", "partition", "put", "resize", "setfield", "setflags", "sort",
)  # fmt: skip
#: Functions of NumPy that change an argument.
FUNCTIONS = ("copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask")
REMEDY = (
    "y = y + x, nbta.set_item(y, key, value), nbta.add_item and nbta.where give a new one, and a "
    "TensorArray is what a loop fills"
)


def refused(what, name):
    """The error for something that would change an array or a tensor."""
    return invalid("immutable", f"{what} would change {name} in place; {REMEDY}")


class ImmutableArray(np.ndarray):
    """An array that does not change: ``y += x`` makes a new one, as with tensors.

    Where it stands for a tensor, what is computed from it does too, and writing that into another
    array is refused. Else it is a constant, from which new arrays are NumPy's own. ``y.copy()`` is
    an ordinary array in any case.
    """

    _name, _is_tensor = "an array", False

    def __array_finalize__(self, source):
        if isinstance(source, ImmutableArray):
            self.__dict__.update(source.__dict__)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        if method == "at":
            _check(f"np.{ufunc.__name__}.at", inputs, inputs[:1])
        elif out is not None:
            _check(f"np.{ufunc.__name__} with out=", inputs, out)
            options["out"] = out
        return _like(_source(inputs), getattr(ufunc, method)(*map(_plain, inputs), **options))

    def __array_function__(self, function, kinds, args, options):
        name, given = function.__name__, [*args, *options.values()]
        if name in FUNCTIONS:
            _check(f"np.{name}", given, args[:1])
        elif options.get("out") is not None:
            _check(f"np.{name} with out=", given, [options["out"]])
        found = function(*_plain(args), **_plain(options))
        return found if name == "copy" else _like(_source(given), found)

    def __getitem__(self, key):
        return _like(self, np.asarray(self)[_plain(key)])

    def __setitem__(self, key, value):
        raise refused("an item assignment", self._name)

    def __setattr__(self, attribute, value):
        raise refused(f"an assignment to .{attribute}", self._name)

    def copy(self, order="C"):
        """An ordinary array, which may be changed."""
        return np.array(self, order=order)

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        return self.copy()

    def __reduce__(self):
        return np.asarray(self).__reduce__()

    def __reduce_ex__(self, protocol):
        return np.asarray(self).__reduce_ex__(protocol)

    def __repr__(self):
        return repr(np.asarray(self))


PLAIN.add(ImmutableArray)


def _immutable(values):
    """The immutable arrays among arguments, also those in lists."""
    for value in values:
        if isinstance(value, ImmutableArray):
            yield value
        elif type(value) in (list, tuple):
            yield from _immutable(value)


def _source(values):
    """The array that decides what is computed from several: one that stands for a tensor."""
    found = list(_immutable(values))
    return next((array for array in found if array._is_tensor), found[0] if found else None)


def _check(what, inputs, changed):
    """Refuse to change immutable arrays, and to write what is computed from tensors elsewhere."""
    target, source = _source(changed), _source(inputs)
    if target is not None:
        raise refused(what, target._name)
    if source is not None and source._is_tensor:
        raise refused(what, f"an array ({source._name} is among the arguments)")


def _plain(value):
    """A value with NumPy's own arrays in place of immutable ones, which stay read-only."""
    if isinstance(value, ImmutableArray):
        return np.asarray(value)
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return {k: _plain(v) for k, v in value.items()} if type(value) is dict else value


def _like(source, found):
    """What was computed from an immutable array."""
    if type(found) in (list, tuple):
        return type(found)(_like(source, part) for part in found)
    if source is None or not isinstance(found, np.ndarray):
        return found
    if found.flags.writeable and not source._is_tensor:
        return found
    return frozen(found, source._name, source._is_tensor)


def frozen(value, name="an array", is_tensor=True):
    """A view of an array that cannot change it; other values as they are.

    Parameters
    ----------
    value : any
    name : str
        What messages call it.
    is_tensor : bool
        Whether there is a tensor in its place where the same function is traced.
    """
    if not isinstance(value, np.ndarray):
        return value
    view = value.view(ImmutableArray)
    np.ndarray.setflags(view, write=False)
    view.__dict__.update(_name=name, _is_tensor=is_tensor)
    return view


def _method(name):
    def method(self, *args, **options):
        if options.get("out") is not None:
            _check(f".{name} with out=", [self], [options["out"]])
        return _like(self, getattr(np.asarray(self), name)(*_plain(args), **_plain(options)))

    return method


def _changing(name):
    def method(self, *args, **options):
        raise refused(f".{name}()", self._name)

    return method


def _rebinding(compute):
    return lambda self, other: compute(self, other)


_COMPUTING = (
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "astype", "choose", "clip",
    "compress", "conj", "conjugate", "cumprod", "cumsum", "diagonal", "dot", "flatten", "max",
    "mean", "min", "nonzero", "prod", "ravel", "repeat", "reshape", "round", "searchsorted",
    "squeeze", "std", "sum", "swapaxes", "take", "trace", "transpose", "var",
)  # fmt: skip
_OPERATORS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor",
    "lshift", "rshift",
)  # fmt: skip
for _name in _COMPUTING:
    setattr(ImmutableArray, _name, _method(_name))
for _name in METHODS:
    setattr(ImmutableArray, _name, _changing(_name))
for _name in _OPERATORS:
    setattr(ImmutableArray, f"__i{_name}__", _rebinding(getattr(operator, f"__{_name}__")))


# While users' functions run.


class _Running(threading.local):
    bodies = False  # of the class, as asking a thread for what it lacks takes 1 us


_running = _Running()
#: Something while any thread may be in a body: asking a thread takes 0.1 us, a sixth of a read.
anywhere = []


def in_body() -> bool:
    """Whether a function of a loop or a branch runs outside of graphs, in this thread."""
    return _running.bodies


@contextmanager
def _bodies(run):
    before = in_body()
    _running.bodies = run
    anywhere.append(run)
    try:
        yield
    finally:
        anywhere.pop()
        _running.bodies = before


@contextmanager
def refusals(what):
    """Make NumPy's refusal to change an array, as by its own C code, an error of nbta's."""
    try:
        yield
    except ValueError as error:
        if isinstance(error, NbtaError) or "read-only" not in str(error):
            raise
        message = f"{what}: {error}: its functions may not change their arrays; {REMEDY}"
        raise invalid("immutable", message) from error


@contextmanager
def bodies(what):
    """Around calls of functions of loops and branches: nbta's functions give immutable arrays."""
    with _bodies(True), refusals(what):
        yield


def own_numpy():
    """Around calls of users' functions that work with NumPy: nbta's give ordinary arrays."""
    return _bodies(False)


def computed(result):
    """What a function of nbta's gives outside of graphs: in a body, what cannot be changed."""
    if not in_body():
        return result
    if isinstance(result, tuple):
        return tuple(frozen(part, "the result of an nbta function") for part in result)
    return frozen(result, "the result of an nbta function")


def given_back(value):
    """A value that a loop or a branch gives: the caller's own, unless that is a body itself."""
    if not isinstance(value, np.ndarray):
        return value
    return frozen(value) if in_body() else np.array(value, order="K", subok=False)
