"""Random numbers that a run draws from generators with a state: NumPy's, Python's and Numba's.

A draw takes the token of what the function did before, and gives the next one
(`nbta.ops.core.checks`), so that numbers come in the order in which the function would draw them.
What a function makes itself is no more than its state, an array of integers that a draw takes and
gives anew: each run, thread and item of a batch has the numbers of its own. `nbta.random` has
numbers by key instead, which need no order and no Python.
"""

import ctypes
import functools
import random
import threading

import numba
import numpy as np

from nbta.codegen.values import Scalar
from nbta.errors import invalid
from nbta.graph.graph import within
from nbta.graph.operation import NotDifferentiable, Spec
from nbta.loops import assign, attempt, comment
from nbta.ops.core.checks import TOKEN
from nbta.ops.core.dispatch import apply, define
from nbta.runtime.numba_private import helperlib

GENERATORS = (np.random.RandomState, np.random.Generator, random.Random)
#: Bytes of Numba's generators: index, 624 words, whether there is a second Gaussian number, that
#: number, and whether it was seeded (``rnd_state_t`` in Numba's ``_random.h``).
_NUMBAS_SIZE = 4 + 4 * 624 + 4 + 8 + 8


class Generator:
    """NumPy's or Python's generators, as methods of an object.

    Parameters
    ----------
    owner : numpy.random.RandomState, numpy.random.Generator or random.Random
    """

    def __init__(self, owner):
        self._owner = owner

    def method(self, name):
        """What draws."""
        return getattr(self._owner, name)

    def state(self):
        """What it will draw next."""
        if isinstance(self._owner, random.Random):
            return self._owner.getstate()
        if isinstance(self._owner, np.random.Generator):
            return self._owner.bit_generator.state
        return self._owner.get_state(legacy=False)

    def restore(self, state) -> None:
        """Draw next what it drew after `state`."""
        if isinstance(self._owner, random.Random):
            self._owner.setstate(state)
        elif isinstance(self._owner, np.random.Generator):
            self._owner.bit_generator.state = state
        else:
            self._owner.set_state(state)


class NumbasGenerator:
    """A thread's generator in functions that Numba compiles: that of `numpy.random` or `random`.

    Parameters
    ----------
    module : {"np.random", "random"}
    """

    def __init__(self, module):
        self._module = module

    def method(self, name):
        """What draws."""
        return lambda *given: _in_numba(self._module, name, len(given))(*given)

    def function(self, name, count):
        """What draws, with so many arguments, for code that Numba compiles."""
        return _in_numba(self._module, name, count)

    def _address(self):
        numpys = self._module == "np.random"
        return helperlib.rnd_get_np_state_ptr() if numpys else helperlib.rnd_get_py_state_ptr()

    def state(self):
        """What it will draw next."""
        return ctypes.string_at(self._address(), _NUMBAS_SIZE)

    def restore(self, state) -> None:
        """Draw next what it drew after `state`."""
        ctypes.memmove(self._address(), state, len(state))


@functools.cache
def _in_numba(module, name, count):
    given = ", ".join(f"a{k}" for k in range(count))
    return numba.njit(
        eval(f"lambda {given}: {module}.{name}({given})", {"np": np, "random": random})
    )


def _infer(token, *values, generator, name, arguments, spec):
    return Spec(TOKEN, ()), spec


def _evaluate(token, *values, generator, name, arguments, spec):
    args, kwargs = arguments(values)
    found = generator.method(name)(*args, **kwargs)
    return np.asarray(token), np.asarray(0 if found is None else found, spec.dtype)


def _emit(code, op) -> None:
    """Call Numba's generator for a number by numbers; others are in Python."""
    attrs = op.attrs
    native = isinstance(attrs["generator"], NumbasGenerator) and attrs["spec"].shape == ()
    token, *values = op.inputs
    given, _ = (
        attrs["arguments"]([_Source(code, tensor) for tensor in values]) if native else ((), 0)
    )
    if not native or attrs["name"] == "seed" or not all(map(_is_plain, given)):
        return code.call_python(op)
    name, found = (
        code.foreign(attrs["generator"].function(attrs["name"], len(given))),
        code.name("r"),
    )
    code.add(comment(op.name), assign(found, attempt(name, given)))
    code.bind(op.outputs[0], Scalar(code.scalar(token), TOKEN))
    code.bind(op.outputs[1], Scalar(found, op.outputs[1].dtype))
    return None


class _Source:
    """A number of the run, as its code.

    Parameters
    ----------
    code : Code
    tensor : Tensor
    """

    def __init__(self, code, tensor):
        self._code, self._tensor = code, tensor

    def item(self):
        return self

    def __str__(self):
        return self._code.scalar(self._tensor)


def _is_plain(value):
    return isinstance(value, _Source | int | float) and np.isfinite(getattr(value, "real", 0))


DRAW = define(
    "Draw", _infer, _evaluate,
    NotDifferentiable("random numbers have no derivative"),
    emit=_emit, foreign=True, connections=lambda op: [[], []],
)  # fmt: skip


def draw(token, generator, name, arguments, values, spec):
    """The token after a draw, and what was drawn.

    Parameters
    ----------
    token : Tensor
        Of what was done before.
    generator : Generator or NumbasGenerator
    name : str
        Of its method.
    arguments : callable
        ``arguments(values)`` gives those by place and by name, for values of the run.
    values : list of Tensor
        What of the arguments only the run knows.
    spec : Spec
        Of the result.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def noisy(x):
    ...     return x * rng.normal()
    >>> expected = np.random.default_rng(0).normal()
    >>> bool(nbta.function(noisy)(np.float64(2.0)) == 2.0 * expected)
    True
    """
    attrs = {"generator": generator, "name": name, "arguments": arguments, "spec": spec}
    return apply(DRAW, [token, *values], attrs)


# Generators that are no more than a state.


class Stream:
    """What generators of one kind draw, by their states.

    Parameters
    ----------
    owner : numpy.random.RandomState, numpy.random.Generator or random.Random
        One of that kind.

    Attributes
    ----------
    size : int
        How many integers a state is.
    """

    def __init__(self, owner):
        self._make = functools.partial(_like, type(owner), type(source_of(owner)))
        self._template = Generator(owner).state()
        self._local = threading.local()
        self.size = len(self.words(owner))

    def words(self, owner):
        """The state of a generator, as integers."""
        found = list(state_words(Generator(owner).state()))
        return np.array(found, np.uint64).view(np.int64)

    def set(self, owner, words) -> None:
        """Let a generator draw what comes after a state."""
        words = iter(np.ascontiguousarray(words).view(np.uint64).tolist())
        Generator(owner).restore(_state(self._template, words))

    def at(self, words):
        """A generator with a state, which is its thread's."""
        if not hasattr(self._local, "owner"):
            self._local.owner = self._make()
        self.set(self._local.owner, words)
        return self._local.owner

    def __reduce__(self):
        return Stream, (self._make(),)


def source_of(owner):
    """What holds the state of a generator: generators may share it."""
    if isinstance(owner, np.random.Generator):
        return owner.bit_generator
    return owner._bit_generator if isinstance(owner, np.random.RandomState) else owner


def _like(kind, source):
    return kind(source(0)) if kind is np.random.Generator else kind(0)


def state_words(state):
    """A state as integers of 64 bits."""
    if isinstance(state, dict):
        for key in sorted(state):
            yield from state_words(state[key])
    elif isinstance(state, tuple):
        for part in state:
            yield from state_words(part)
    elif isinstance(state, np.ndarray):
        yield from state.ravel().tolist()
    elif state is None or isinstance(state, float):
        yield int(state is None)
        yield int(np.float64(state or 0.0).view(np.uint64))
    elif not isinstance(state, str):
        yield state % 2**64
        yield state >> 64  # PCG64 has integers of 128 bits


def _state(template, words):
    """A state like another one, of integers."""
    if isinstance(template, dict):
        found = {key: _state(template[key], words) for key in sorted(template)}
        return {key: found[key] for key in template}
    if isinstance(template, tuple):
        return tuple(_state(part, words) for part in template)
    if isinstance(template, np.ndarray):
        found = [next(words) for _ in range(template.size)]
        return np.array(found, template.dtype).reshape(template.shape)
    if template is None or isinstance(template, float):
        is_none, bits = next(words), next(words)
        return None if is_none else float(np.uint64(bits).view(np.float64))
    if isinstance(template, str):
        return template
    return next(words) + (next(words) << 64)


def _infer_from(state, *values, stream, name, arguments, spec):
    return Spec(TOKEN, (stream.size,)), spec


def _evaluate_from(state, *values, stream, name, arguments, spec):
    args, kwargs = arguments(values)
    owner = stream.at(state)
    found = getattr(owner, name)(*args, **kwargs)
    return stream.words(owner), np.asarray(found, spec.dtype)


DRAW_FROM = define(
    "DrawFrom", _infer_from, _evaluate_from,
    NotDifferentiable("random numbers have no derivative"),
    emit=lambda code, op: code.call_python(op), foreign=True, connections=lambda op: [[], []],
)  # fmt: skip


def _infer_seeded(*values, stream, kind, arguments):
    return Spec(TOKEN, (stream.size,))


def _evaluate_seeded(*values, stream, kind, arguments):
    args, kwargs = arguments(values)
    return stream.words(kind(*args, **kwargs))


SEEDED = define(
    "Seeded", _infer_seeded, _evaluate_seeded,
    NotDifferentiable("random numbers have no derivative with respect to a seed"),
    emit=lambda code, op: code.call_python(op), foreign=True, connections=lambda op: [[]],
)  # fmt: skip


def draw_from(state, stream, name, arguments, values, spec):
    """The state after a draw, and what was drawn; see `draw`.

    Examples
    --------
    >>> def noisy(x, seed):
    ...     rng = np.random.default_rng(seed)
    ...     return x * rng.normal()
    >>> value, slope = nbta.value_and_grad(noisy)(2.0, 7)
    >>> bool(value == 2.0 * slope == noisy(2.0, 7))
    True
    """
    attrs = {"stream": stream, "name": name, "arguments": arguments, "spec": spec}
    return apply(DRAW_FROM, [state, *values], attrs)


def seeded(stream, kind, arguments, values):
    """The state of a generator that ``kind`` makes of a seed of the run."""
    return apply(SEEDED, values, {"stream": stream, "kind": kind, "arguments": arguments})


def generators_of(operations) -> list:
    """The generators that operations draw from."""
    return [op.attrs["generator"] for op in within(operations) if op.record is DRAW]


def check_drawn_once(body) -> None:
    """Refuse draws in a loop whose iterations run once more for a gradient."""
    for op in within(body.operations):
        if op.record is DRAW:
            message = (
                f"{op.attrs['name']}() draws random numbers in a loop with checkpoint=, which runs "
                f"each iteration again for a gradient and would draw others; draw before the loop, "
                f"or use nbta.random, whose numbers are those of a key"
            )
            raise invalid("random", message)
