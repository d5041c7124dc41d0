"""Random numbers of NumPy's, Python's and Numba's generators.

A generator that a function makes from a known seed gives the same numbers in each call, and Python
draws them while the function is traced. Others have a state of their own, as `numpy.random.normal`
has: a run draws from them (`nbta.ops.draws`), in the function's order. Gradients pass to what
shifts and scales the numbers, and there are none for other parameters.
"""

from __future__ import annotations

import inspect
import random

import numpy as np

from nbta.errors import UnimplementedError, invalid
from nbta.frontend import effects, native
from nbta.frontend.boxes import born, boxed, in_trace
from nbta.frontend.problems import here
from nbta.frontend.raising import is_numbas
from nbta.graph.graph import current
from nbta.graph.operation import Spec, Tensor
from nbta.ops.arithmetic import add, divide, greater_equal, multiply, subtract
from nbta.ops.checks import order_now
from nbta.ops.dispatch import as_tensor
from nbta.ops.draws import Generator, NumbasGenerator, draw
from nbta.ops.elementary import exp, log
from nbta.ops.gathering import take
from nbta.ops.numbers import Number
from nbta.ops.statistics import all as all_of

GENERATORS = (np.random.RandomState, np.random.Generator, random.Random)
#: The generators of `numpy.random` and `random`, which are others in functions of Numba's.
_NUMPYS = np.random.normal.__self__
_FUNCTIONS = (
    (np.random.seed, _NUMPYS.seed), (np.random.ranf, _NUMPYS.random_sample),
    (np.random.sample, _NUMPYS.random_sample),
)  # fmt: skip
_NUMBAS = {id(_NUMPYS): "np.random", id(random.seed.__self__): "random"}
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
    """A generator that a function makes, from what Python knows."""
    if not all(map(_is_fixed, (args, kwargs))):
        message = (
            f"{here()}: {kind.__name__} takes a seed that only the run knows; give it to "
            f"numpy.random.seed, or use nbta.random"
        )
        raise UnimplementedError(message)
    if all(seed is None for seed in (*args, *kwargs.values())):
        message = (
            f"{here()}: {kind.__name__} without a seed gives other numbers in each call, and the "
            f"same to all runs of a graph; give it a seed, or make it outside of the function"
        )
        raise invalid("random", message)
    return born(kind(*args, **kwargs))


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
    made_here = outside is not None and outside.has_made(owner)
    _check(owner, name, made_here)

    def numbers(*args, **kwargs):
        if made_here:
            return trace(function, args, kwargs)
        return _of_run(owner, name, args, kwargs)

    given = inspect.signature(function).bind(*args, **kwargs)
    given.apply_defaults()
    size = given.arguments.pop("size", None)
    in_place = name == "shuffle"
    is_known = all(map(_is_fixed, (*given.args, given.kwargs))) and (made_here or not in_place)
    if name in _OF_SIZES or is_known:
        return numbers(*args, **kwargs)
    if name in _LOCATED:
        if isinstance(owner, np.random.RandomState | np.random.Generator) and name != "uniform":
            _check_scale(name, given.args[-1])
        return _located(numbers, *_LOCATED[name], given.args, size)
    if name in ("choice", "permutation", "shuffle") and given.args and _rank(given.args[0]):
        items, *rest = given.args
        _check_items(owner, name, items)
        if name == "choice":
            places = numbers(items.shape[0], size, *rest)
        else:
            places = drawn(owner.permutation, (items.shape[0],), {}, trace)
        return _of_items(items, places, in_place)
    if made_here or name not in _INTEGERS or any(map(_rank, given.arguments.values())):
        message = (
            f"{here()}: {name}() takes parameters that only the run knows, by which its numbers "
            f"have no derivative here; draw standard numbers and compute yours of them, or use "
            f"nbta.random"
        )
        raise UnimplementedError(message)
    size = () if size is None else size if type(size) is tuple else (size,)
    known = tuple(part if native.is_known(part) else None for part in size)
    return _of_run(owner, name, args, kwargs, Spec(np.dtype(np.int64), known))


def _located(numbers, standard, formula, parameters, size):
    """Numbers of a distribution that is shifted and scaled by what only the run knows."""
    shape = boxed(sum(map(as_tensor, map(native.plain, parameters)))).shape
    many = {} if size is None and not shape else {"size": shape if size is None else size}
    z = numbers(*standard, **many)
    return boxed(formula(*map(native.plain, (z, *parameters))))


def _of_items(items, places, in_place):
    """The items of an array at places that were drawn, which may go into it."""
    found = boxed(take(native.plain(items), native.plain(places), axis=0))
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


def _check(owner, name, made_here):
    if made_here and in_trace(owner):
        message = (
            f"{here()}: {name}() draws in a loop or a branch that the run decides about, where all "
            f"iterations would have the same numbers of a generator that the function makes; make "
            f"it outside of the function, or draw before, or use nbta.random"
        )
        raise invalid("random", message)
    if not made_here and name in _STATES:
        message = (
            f"{here()}: {name}() of a generator that the function did not make is no operation of "
            f"nbta's; call it outside of the function"
        )
        raise UnimplementedError(message)


def _check_items(owner, name, items):
    """Refuse what draws items of an array otherwise than their places."""
    plain = isinstance(owner, np.random.RandomState) and isinstance(items, Tensor)
    if not plain or is_numbas():
        message = (
            f"{here()}: {name}() of {type(items).__name__} is taken for arrays in functions that "
            f"Numba does not compile, by numpy.random or a RandomState; draw places of its items, "
            f"and take those"
        )
        raise UnimplementedError(message)


def _rank(value):
    if isinstance(value, list | tuple):
        return 1
    return value.ndim if isinstance(value, Tensor) else np.ndim(value)


def _is_fixed(value):
    """Whether Python knows an argument, or it is a length or several."""
    if type(value) in (list, tuple):
        return all(map(_is_fixed, value))
    if isinstance(value, dict):
        return all(map(_is_fixed, value.values()))
    return isinstance(value, Number) or native.is_known(value)


# What a run draws.


def _of_run(owner, name, args, kwargs, spec=None):
    """What a run draws, by parameters some of which only it may know."""
    module = _NUMBAS.get(id(owner)) if is_numbas() else None
    if module is not None and kwargs:
        args, kwargs = _in_order(getattr(owner, name), args, kwargs), {}
    values = []
    arguments = _Arguments(_template(args, values), _template(kwargs, values))
    generator = Generator(owner) if module is None else NumbasGenerator(module)
    order, spec = order_now(), spec or _spec(owner, name, args, kwargs)
    if order is None:
        raise invalid("random", f"{here()}: {name}() draws where no function is traced")
    order.token, found = draw(order.token, generator, name, arguments, values, spec)
    if name == "seed":
        return None
    return boxed(found) if spec.shape else found


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
        message = f"{here()}: {name}() gives what is no number or array of numbers; draw its place"
        raise UnimplementedError(message)
    of_items = name in ("choice", "choices", "sample") and _rank(ones[0][0])
    dtype = np.asarray(ones[0][0]).dtype if of_items else sample.dtype
    return Spec(dtype, sample.shape if native.is_known((args, kwargs)) else (None,) * sample.ndim)


def _with_ones(value):
    """An argument with 1 in place of what only the run knows."""
    if type(value) in (list, tuple):
        return type(value)(map(_with_ones, value))
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
    if type(value) in (list, tuple):
        return type(value)(_template(part, values) for part in value)
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
