"""Random numbers of NumPy's, Python's and Numba's generators.

A generator that a function makes is its state, in a wrapper like any other array: as long as Python
knows it, as before the first loop that the run decides about, Python draws the numbers while the
function is traced; a run draws the others from the state. Other generators have a state of their
own, as `numpy.random.normal` has: a run draws from them (`nbta.ops.random.draws`), in the
function's order. Gradients pass to what shifts and scales the numbers, and there are none for other
parameters.
"""

from __future__ import annotations

import copy
import inspect
import random
import types
from contextlib import ExitStack, contextmanager

import numpy as np

from nbta.errors import UnimplementedError, invalid
from nbta.frontend import effects, native
from nbta.frontend.array_wrappers import ArrayWrapper, born, older_serial, wrapped
from nbta.frontend.languages import is_numbas
from nbta.frontend.outside import CONTAINERS
from nbta.frontend.problems import here
from nbta.graph.graph import current
from nbta.graph.operation import Spec, Tensor
from nbta.ops.axes.truths import all as all_of
from nbta.ops.core.arithmetic import add, divide, greater_equal, multiply, subtract
from nbta.ops.core.checks import order_now
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.elementary.basic import exp, log
from nbta.ops.indexing.gathering import take
from nbta.ops.numbers import Number
from nbta.ops.random.draws import (
    GENERATORS,
    Generator,
    NumbasGenerator,
    Stream,
    draw,
    draw_from,
    seeded,
    state_words,
)
from nbta.ops.random.draws import source_of as _source

#: What generators draw bits from, and seeds are made of.
SOURCES = (np.random.BitGenerator, np.random.SeedSequence)
#: The generators of `numpy.random` and `random`, which are others in functions of Numba's.
_NUMPYS = np.random.normal.__self__
_FUNCTIONS = (
    (np.random.seed, _NUMPYS.seed), (np.random.ranf, _NUMPYS.random_sample),
    (np.random.sample, _NUMPYS.random_sample),
)  # fmt: skip
_PYTHONS = random.seed.__self__
_NUMBAS = {id(_NUMPYS): "np.random", id(_PYTHONS): "random"}
#: What says how a generator stands, or gives bytes.
_STATES = {
    "bytes", "get_state", "getrandbits", "getstate", "randbytes", "set_state", "setstate", "spawn",
}  # fmt: skip


def _shifted(z, loc, scale):
    return add(loc, multiply(scale, z))


def _scaled(z, scale):
    return multiply(scale, z)


def _between(u, low, high):
    return add(low, multiply(subtract(high, low), u))


def _exp_shifted(z, loc, scale):
    return exp(_shifted(log(z), loc, scale))


#: By method: parameters for standard numbers, and how others follow from these.
_LOCATED = {
    "normal": ((0.0, 1.0), _shifted), "laplace": ((0.0, 1.0), _shifted),
    "logistic": ((0.0, 1.0), _shifted), "gumbel": ((0.0, 1.0), _shifted),
    "gauss": ((0.0, 1.0), _shifted), "normalvariate": ((0.0, 1.0), _shifted),
    "uniform": ((0.0, 1.0), _between), "exponential": ((1.0,), _scaled),
    "rayleigh": ((1.0,), _scaled), "expovariate": ((1.0,), divide),
    "lognormal": ((0.0, 1.0), _exp_shifted), "lognormvariate": ((0.0, 1.0), _exp_shifted),
}  # fmt: skip
_OF_SIZES = {"rand", "randn"}  #: Their arguments are lengths.
#: Integers, which change in steps by parameters that only the run may know.
_INTEGERS = {"binomial", "geometric", "integers", "poisson", "randint", "randrange", "seed"}


def is_draw(function) -> bool:
    """Whether a function is a method of a generator of random numbers."""
    owner = getattr(function, "__self__", None)
    return isinstance(owner, GENERATORS) or _method(function) is not None


def _method(function):
    """The method that a function of `numpy.random` without an object calls; None for others."""
    return next((method for one, method in _FUNCTIONS if one is function), None)


def made(kind, *args, **kwargs):
    """A generator, or what one draws from, that a function makes."""
    if not all(map(_is_fixed, (args, kwargs))):
        return _made_by_run(kind, args, kwargs)
    args, kwargs = native.plain(args), native.plain(kwargs)
    if all(seed is None for seed in (*args, *kwargs.values())):
        message = (
            f"{here()}: {kind.__name__} without a seed draws new numbers in each call of the "
            "function, and the same numbers in each run of its graph; give it a seed, or make it "
            "outside of the function"
        )
        raise invalid("random", message)
    found, outside = kind(*args, **kwargs), current().root.outside
    if args and _source(found) is args[0] and not (outside and outside.has_made(args[0])):
        return found  # another way to draw from what the function did not make
    return born(found)


def _made_by_run(kind, args, kwargs):
    """A generator whose seed only the run knows."""
    values = []
    arguments = _Arguments(_template(args, values), _template(kwargs, values))
    if any(value.ndim != 0 for value in values) or (
        isinstance(kind, type) and issubclass(kind, SOURCES)
    ):
        message = (
            f"{here()}: the seed of {kind.__name__} is known only in a run; give "
            "np.random.default_rng or np.random.RandomState an integer or a list of integers"
        )
        raise UnimplementedError(message)
    owner = born(kind(0))
    state = _State(owner)
    state.wrapper.store(seeded(state.stream, kind, arguments, values))
    _states()[id(_source(owner))] = state
    return owner


_STATES_OF = "the states of generators that the function made"


def _states():
    return current().root.cache.setdefault(_STATES_OF, {})


class _State:
    """The state of a generator that the function made.

    Parameters
    ----------
    owner : numpy.random.RandomState, numpy.random.Generator or random.Random

    Attributes
    ----------
    wrapper : ArrayWrapper
        It holds the state.
    stream : Stream
    """

    def __init__(self, owner):
        self._owner, self.stream = owner, Stream(owner)
        self._held = self.stream.words(owner)
        self.wrapper = ArrayWrapper(self._held, f"the state of {type(owner).__name__}")
        # Blocks that began after the birth of what it draws from find that it changes.
        source = _source(owner)
        first = source if current().root.outside.has_made(source) else owner
        self.wrapper.serial = older_serial(first, self.wrapper.serial)

    def store(self, words) -> None:
        """Hold another state."""
        if self.wrapper.is_value:
            message = (
                f"{here()}: the body of a loop or branch of nbta draws from a generator that was "
                "made outside; make the generator in the body, draw before, or use nbta.random"
            )
            raise invalid("random", message)
        self.wrapper.store(words)

    @contextmanager
    def settled(self):
        """Let Python draw from a state that it knows."""
        held = self.wrapper.content
        if held is not self._held:
            self.stream.set(self._owner, held)
            self._held = held
        yield
        found = self.stream.words(self._owner)
        if not np.array_equal(found, held):
            self._held = found
            self.store(found)


def _state_of(owner):
    """The state of a generator that the function made."""
    key, states = id(_source(owner)), _states()
    if key not in states:
        states[key] = _State(owner)
    return states[key]


@contextmanager
def with_states(function, owner, generators):
    """Around a function that nbta cannot look into, and that may draw from generators.

    Parameters
    ----------
    function : callable
    owner : object
        Whose method it is.
    generators : list
        Those in all that it is given.
    """
    if isinstance(owner, CONTAINERS):  # which draws nothing
        yield
        return
    name, outside = getattr(function, "__qualname__", repr(function)), current().root.outside
    with ExitStack() as stack:
        others = []
        for generator in generators:
            if outside is None or not outside.has_made(generator):
                others.append(generator)
                continue
            state = _state_of(generator)
            _check_known(state, name)
            stack.enter_context(state.settled())
        if isinstance(function, types.FunctionType | types.MethodType):
            others += (_NUMPYS, _PYTHONS)
        if others:
            stack.enter_context(_undrawn(others, name))
        yield


def _check_known(state, name):
    if not state.wrapper.is_known:
        message = (
            f"{here()}: nbta cannot follow {name}, which is given a generator that has drawn in a "
            "data-dependent loop or branch; call the generator's methods in place of it"
        )
        raise UnimplementedError(message)


@contextmanager
def _undrawn(owners, name):
    """Refuse what draws, once for all runs, from generators that the function did not make."""
    before = [(each, each.state()) for each in map(Generator, owners)]
    yield
    for each, state in before:
        if list(state_words(state)) != list(state_words(each.state())):
            each.restore(state)
            message = (
                f"{here()}: {name} draws from a generator that the function did not make, and "
                "nbta, which cannot follow it, would draw once for all runs; call the generator's "
                "methods in place of it"
            )
            raise UnimplementedError(message)


@contextmanager
def copying(generators):
    """Around a copy of generators, or of what holds them."""
    outside = current().root.outside
    if not all(outside is not None and outside.has_made(each) for each in generators):
        message = (
            f"{here()}: a copy of a generator that the function did not make would be the same in "
            f"all runs; make it outside of the function"
        )
        raise UnimplementedError(message)
    with with_states(copy.deepcopy, None, generators):
        yield


def drawn(function, args, kwargs, trace):
    """What a method of a generator gives.

    Parameters
    ----------
    function : callable
    args, kwargs : tuple, dict
    trace : callable
        ``trace(function, args, kwargs)`` calls it while the function is traced.
    """
    function = _method(function) or function
    owner, name = function.__self__, function.__name__
    outside = current().root.outside
    state = _state_of(owner) if outside is not None and outside.has_made(owner) else None
    in_python = state is not None and state.wrapper.is_known
    _check(name, in_python)

    def numbers(*args, spec=None, **kwargs):
        if in_python and all(map(_is_fixed, (args, kwargs))):
            return trace(function, args, kwargs)
        return _of_run(owner, name, args, kwargs, spec, state)

    given = inspect.signature(function).bind(*args, **kwargs)
    given.apply_defaults()
    has_size = "size" in given.arguments
    size, out = given.arguments.pop("size", None), given.arguments.get("out")
    if out is not None and not in_python:
        message = f"{here()}: {name}(out=) needs a generator that the function makes"
        raise UnimplementedError(message)
    in_place = name == "shuffle"
    is_known = all(map(_is_fixed, given.arguments.values())) and (in_python or not in_place)
    if name in _OF_SIZES or is_known:
        is_place = name == "choice" and has_size and not _rank(given.args[0])
        return numbers(*args, spec=_integers(size) if is_place else None, **kwargs)
    if name in _LOCATED:
        if isinstance(owner, np.random.RandomState | np.random.Generator) and name != "uniform":
            _check_scale(name, given.args[-1])
        return _located(numbers, *_LOCATED[name], given.args, size)
    if name in ("choice", "permutation", "shuffle") and given.args and _rank(given.args[0]):
        items, *_ = given.arguments.values()
        options = dict([*given.arguments.items()][1:])
        _check_items(owner, name, items)
        if all(map(_is_fixed, options.values())):
            return _of_items(owner, items, size, options, in_place, trace)
    if name not in _INTEGERS or any(map(_rank, given.arguments.values())):
        message = (
            f"{here()}: nbta has no derivative of {name}() with respect to parameters that only "
            "the run knows; draw standard numbers and transform them, or use nbta.random"
        )
        raise UnimplementedError(message)
    return numbers(*args, spec=_integers(size), **kwargs)


def _integers(size):
    """The spec of so many integers."""
    size = () if size is None else size if type(size) is tuple else (size,)
    return Spec(np.dtype(np.int64), tuple(n if native.is_known(n) else None for n in size))


def _located(numbers, standard, formula, parameters, size):
    """Numbers of a distribution that is shifted and scaled by what only the run knows."""
    shape = wrapped(sum(map(as_tensor, map(native.plain, parameters)))).shape
    many = {} if size is None and not shape else {"size": shape if size is None else size}
    z = numbers(*standard, **many)
    return wrapped(formula(*map(native.plain, (z, *parameters))))


def _of_items(owner, items, size, options, in_place, trace):
    """Items of an array at places that are drawn, by which NumPy itself goes; or all in place."""
    axis = options.pop("axis", 0)
    if in_place or not options:
        places = drawn(owner.permutation, (items.shape[axis],), {}, trace)
    else:
        places = drawn(owner.choice, (items.shape[axis], size), options, trace)
    found = wrapped(take(native.plain(items), native.plain(places), axis=axis))
    if not in_place:
        return found
    items[...] = found
    return None


def _check_scale(name, scale):
    """Fail in a run as NumPy does; Numba does not look."""
    if not is_numbas():
        holds = all_of(greater_equal(as_tensor(native.plain(scale)), 0.0))
        what = "sigma" if name == "lognormal" else "scale"
        effects.check(holds, ValueError(f"{here()}: {what} < 0"))


def _check(name, in_python):
    if not in_python and name in _STATES:
        message = (
            f"{here()}: nbta does not support {name}() of a generator whose state only the run "
            "knows; call it outside of the function, or of a generator that the function made, "
            "before data-dependent loops and branches"
        )
        raise UnimplementedError(message)


def _check_items(owner, name, items):
    """Refuse what draws items of an array otherwise than their places."""
    plain = not isinstance(owner, random.Random) and isinstance(items, Tensor)
    if not plain or is_numbas():
        kind = "list" if isinstance(items, list) else type(items).__name__
        message = (
            f"{here()}: {name}() of a {kind} is supported only for arrays, with NumPy's "
            "generators, in functions that Numba does not compile; draw indices, and take the "
            "items at them"
        )
        raise UnimplementedError(message)


def _rank(value):
    if isinstance(value, list | tuple):
        return 1
    if isinstance(value, type):
        return 0
    return value.ndim if isinstance(value, Tensor) else np.ndim(value)


def _is_fixed(value):
    """Whether Python knows an argument, or it is a length or several."""
    if _is_sequence(value):
        return all(map(_is_fixed, value))
    if isinstance(value, dict):
        return all(map(_is_fixed, value.values()))
    return isinstance(value, Number) or native.is_known(value)


def _is_sequence(value):
    """Whether a value is a list or tuple whose items Python has."""
    return type(value) is tuple or (isinstance(value, list) and native.is_python(value))


def _sequence(value, items):
    return tuple(items) if isinstance(value, tuple) else list(items)


# What a run draws.


def _of_run(owner, name, args, kwargs, spec, state):
    """What a run draws, by parameters some of which only it may know, perhaps from a state."""
    if state is not None:
        return _of_state(owner, name, args, kwargs, spec, state)
    module = _NUMBAS.get(id(owner)) if is_numbas() else None
    if module is not None and kwargs:
        args, kwargs = _in_order(getattr(owner, name), args, kwargs), {}
    values = []
    arguments = _Arguments(_template(args, values), _template(kwargs, values))
    generator = Generator(owner) if module is None else NumbasGenerator(module)
    order, spec = order_now(), spec or _spec(owner, name, args, kwargs)
    if order is None:
        raise invalid("random", f"{here()}: {name}() can draw only while a function is traced")
    order.token, found = draw(order.token, generator, name, arguments, values, spec)
    if name == "seed":
        return None
    return wrapped(found) if spec.shape else found


def _of_state(owner, name, args, kwargs, spec, state):
    values = []
    arguments = _Arguments(_template(args, values), _template(kwargs, values))
    spec = spec or _spec(owner, name, args, kwargs)
    held = as_tensor(state.wrapper.itself)
    after, found = draw_from(held, state.stream, name, arguments, values, spec)
    state.store(after)
    if name == "seed":
        return None
    return wrapped(found) if spec.shape else found


def _in_order(function, args, kwargs):
    """Arguments by place alone, as Numba takes them, without defaults at the end."""
    signature = inspect.signature(function)
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    found = list(bound.arguments.items())
    while found and found[-1][1] is signature.parameters[found[-1][0]].default:
        found.pop()
    return tuple(value for _, value in found)


def _spec(owner, name, args, kwargs):
    """Dtype and shape, by what another generator gives for such arguments."""
    if name == "seed":
        return Spec(np.dtype(np.int64), ())
    if isinstance(owner, np.random.Generator):
        other = np.random.default_rng(0)
    else:
        other = type(owner)(0)
    ones = [_with_ones(value) for value in (args, kwargs)]
    sample = np.asarray(getattr(other, name)(*ones[0], **ones[1]))
    if sample.dtype.kind not in "biuf":
        message = f"{here()}: {name}() returns neither a number nor an array; draw an index"
        raise UnimplementedError(message)
    of_items = name in ("choice", "choices", "sample") and _rank(ones[0][0])
    dtype = np.asarray(ones[0][0]).dtype if of_items else sample.dtype
    return Spec(dtype, sample.shape if native.is_known((args, kwargs)) else (None,) * sample.ndim)


def _with_ones(value):
    """An argument with 1 in place of what only the run knows."""
    if _is_sequence(value):
        return _sequence(value, map(_with_ones, value))
    if isinstance(value, dict):
        return {key: _with_ones(part) for key, part in value.items()}
    return native.plain(value) if native.is_known(value) else 1


class _Hole:
    """Stands for a value that a run brings."""


class _Arguments:
    """Arguments of a method, for values of a run.

    Parameters
    ----------
    args, kwargs : tuple, dict
        With holes where the values go.
    """

    def __init__(self, args, kwargs):
        self._args, self._kwargs = args, kwargs

    def __call__(self, values):
        values = iter(values)
        return _filled(self._args, values), _filled(self._kwargs, values)


def _template(value, values):
    """The same with holes for what only the run knows, which goes to a list."""
    if _is_sequence(value):
        return _sequence(value, [_template(part, values) for part in value])
    if isinstance(value, dict):
        return {key: _template(part, values) for key, part in value.items()}
    if native.is_known(value):
        return native.plain(value)
    values.append(as_tensor(native.plain(value)))
    return _Hole


def _filled(template, values):
    if template is _Hole:
        return next(values).item()
    if type(template) in (list, tuple):
        return type(template)(_filled(part, values) for part in template)
    if isinstance(template, dict):
        return {key: _filled(part, values) for key, part in template.items()}
    return template
