"""Random numbers that a run draws from generators with a state: NumPy's, Python's and Numba's.

A draw takes the token of what the function did before, and gives the next one (`nbta.ops.checks`),
so that numbers come in the order in which the function would draw them. `nbta.random` has numbers
by key instead, which need no order and no Python.
"""

import ctypes
import functools
import random

import numba
import numpy as np

from nbta.codegen.values import Scalar
from nbta.errors import invalid
from nbta.graph.graph import within
from nbta.graph.operation import NotDifferentiable, Spec
from nbta.ops.checks import TOKEN
from nbta.ops.dispatch import apply, define
from nbta.runtime.numba_private import helperlib

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
    code.add(f"# {op.name}")
    code.add(f"{found} = attempt({name}, ({''.join(f'{value}, ' for value in given)}))")
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
    NotDifferentiable("random numbers do not depend on anything little by little"),
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
    """
    attrs = {"generator": generator, "name": name, "arguments": arguments, "spec": spec}
    return apply(DRAW, [token, *values], attrs)


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
