"""Functions of arrays that other libraries call, with their derivatives to any order.

A library that differentiates sees operations on a list of arrays. `FlatFunction` is one, made of a
user's function for one structure of arguments; its derivatives are flat functions themselves, so
that a library may differentiate these again, and a batch of one is one, too.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from nbta.api.derivatives import jvp, vjp
from nbta.api.sequences import vmap
from nbta.api.tracing import Function, as_examples, is_text, named
from nbta.errors import UnimplementedError, invalid
from nbta.frontend.entry import prepared
from nbta.frontend.pickling import Sent
from nbta.frontend.source import described
from nbta.graph.operation import Spec, Tensor
from nbta.ops.core.dispatch import as_tensor
from nbta.structure import layout, leaves, map_leaves, pack


class Hole:
    """Stands for an array among arguments; pickled by its name."""


class FlatFunction(Sent):
    """A function of arrays.

    Parameters
    ----------
    graph : callable
        Gives a structure of tensors for tensors.
    title : str
        What it is, for messages.
    compiled : {"auto", True, False}
    """

    def __init__(self, graph: Any, title: str, compiled: Any) -> None:
        self._graph, self.title, self._compiled = graph, title, compiled
        self._function: Any = Function(graph, compiled, convert=False, what="interop")
        self._made: dict[Any, FlatFunction] = {}
        self._results: dict[Any, Any] = {}

    def __call__(self, *arrays: Any) -> list[np.ndarray]:
        """All results, from left to right."""
        return [np.asarray(leaf) for leaf in leaves(self._function(*arrays))]

    @functools.cached_property
    def native(self) -> Any:
        """The same as one that ``@njit`` functions call: it gives a tuple of all results."""
        return Function(self._tuple, self._compiled, convert=False, what="interop")

    def results(self, specs: list[Spec]) -> Any:
        """The structure of results for arguments of some specs, with tensors that tell theirs.

        Raises
        ------
        UnimplementedError
            For results that are no arrays.
        """
        key = tuple((spec.dtype, spec.shape) for spec in specs)
        if key not in self._results:
            traced: Any = Function(self._graph, signature=specs, convert=False)
            trace, _ = traced.bound((tuple(map(as_examples, specs)), {}))
            if trace.lengths.values:
                raise UnimplementedError(
                    f"{self.title}: Python needs the value of a whole number among the arguments; "
                    f"fix it, as functools.partial does"
                )
            for leaf in leaves(trace.result):
                if is_text(leaf) or not isinstance(leaf, Tensor):
                    raise UnimplementedError(f"{self.title}: a result is {leaf!r}, and no array")
            self._results[key] = trace.result
        return self._results[key]

    def tangent(self, wrt: tuple[int, ...], outs: tuple[int, ...]) -> FlatFunction:
        """Derivatives of some results along directions of some arguments, which follow all."""

        def graph(*given: Any) -> Any:
            xs, directions = given[: -len(wrt)], given[-len(wrt) :]
            along = tuple(xs[k] for k in wrt)
            return jvp(self._of_some(xs, wrt, outs), along, directions, convert=False)[1]

        return self._derived(("tangent", wrt, outs), graph)

    def pullback(self, wrt: tuple[int, ...], outs: tuple[int, ...]) -> FlatFunction:
        """Products of cotangents of some results, which follow all arguments, with the Jacobian.

        One for each of some arguments.
        """

        def graph(*given: Any) -> Any:
            xs, cotangents = given[: -len(outs)], given[-len(outs) :]
            along = tuple(xs[k] for k in wrt)
            _, pull = vjp(self._of_some(xs, wrt, outs), *along, convert=False)
            return pull(tuple(cotangents))

        return self._derived(("pullback", wrt, outs), graph)

    def batched(self, mask: tuple[bool, ...]) -> FlatFunction:
        """The same for all items along the first axis of some arguments."""

        def graph(*given: Any) -> Any:
            axes = tuple(0 if each else None for each in mask)
            return vmap(self._tuple, axes, convert=False)(*given)

        return self._derived(("batched", mask), graph)

    def _recipe(self) -> tuple[Any, ...]:
        """The arguments that make one like it."""
        return self._graph, self.title, self._compiled

    def _derived(self, key: Any, graph: Any) -> FlatFunction:
        if key not in self._made:
            self._made[key] = FlatFunction(graph, f"{key[0]} of {self.title}", self._compiled)
        return self._made[key]

    def _tuple(self, *xs: Any) -> tuple:
        return tuple(map(as_tensor, leaves(self._graph(*xs))))

    def _of_some(self, xs: Any, wrt: Any, outs: Any) -> Any:
        """A function of some arguments that gives some results."""

        def some(*chosen: Any) -> tuple:
            given = list(xs)
            for place, x in zip(wrt, chosen, strict=True):
                given[place] = x
            found = self._tuple(*given)
            return tuple(found[k] for k in outs)

        return some


class Door:
    """A user's function as flat functions, one for each structure of its arguments.

    Parameters
    ----------
    f : callable
    name : str
        The public function that made it.
    compiled : {"auto", True, False}
    finish : callable, optional
        Makes of each tensor of the result the one that is handed out.
    """

    def __init__(self, f: Any, name: str, compiled: Any, finish: Any = as_tensor) -> None:
        self._f, self._name, self._compiled, self._finish = f, name, compiled, finish
        self.title = f"nbta.interop.{name} of {described(f)}"
        self._found: dict[Any, FlatFunction] = {}

    def flat(self, args: Any, kwargs: Any, is_array: Any) -> tuple[FlatFunction, list]:
        """The function for a call's arguments, and the arrays among them.

        Parameters
        ----------
        args : tuple
        kwargs : dict
        is_array : callable
            Whether a leaf is an array or a number; others are part of what the function is for.

        Returns
        -------
        function : FlatFunction
        arrays : list
        """
        structure = (args, kwargs)
        values = leaves(structure)
        mask = tuple(map(is_array, values))
        others = tuple(v for v, each in zip(values, mask, strict=True) if not each)
        if not all(isinstance(value, bool | str) or callable(value) for value in others):
            self._refuse(structure, is_array)
        key = layout(structure), mask, others
        if key not in self._found:
            self._found[key] = self._made(structure, values, mask)
        arrays = [v for v, each in zip(values, mask, strict=True) if each]
        return self._found[key], arrays

    def _refuse(self, structure: Any, is_array: Any) -> None:
        for path, value in named(structure):
            if not is_array(value) and not (isinstance(value, bool | str) or callable(value)):
                message = f"{self.title}: {path} is {value!r}; give arrays, numbers or texts"
                raise invalid("argument", message)

    def _made(self, structure: Any, values: Any, mask: Any) -> FlatFunction:
        f, finish = self._f, self._finish
        pairs = zip(values, mask, strict=True)
        shell = pack(structure, [Hole if each else value for value, each in pairs])

        def graph(*given: Any) -> Any:
            left = iter(given)
            full = [next(left) if v is Hole else v for v in leaves(shell)]
            args, kwargs = pack(shell, full)
            return map_leaves(finish, prepared(f, "the function")(*args, **kwargs))

        return FlatFunction(graph, self.title, self._compiled)
