"""Calls of compiled functions in one or two microseconds.

What arguments are made of, how the function is called and what the result is made of is written out
as one Python function: to look at each type and key in turn, as `nbta.structure` does, takes ten
times as long as the call itself.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from nbta.api.static import Fixed, is_constant
from nbta.classes import node_of
from nbta.compiler.written_calls import is_inlined, listed, written_out
from nbta.graph.lengths import ValueLook
from nbta.ops.core.dispatch import as_array
from nbta.structure import dict_like, items_of, kind_of_dict, leaves

#: Up to where each whole number is a float.
_EXACT = 2**53
_NUMBERS = np.ndarray | np.generic | int | float | complex


class Launcher:
    """Runs a compiled function for arguments of the same kind as some.

    Parameters
    ----------
    executable : Executable
    arguments : structure
        Those of a call. Arrays and numbers in it are the inputs of the function; strings, truth
        values and functions must be the same in other calls.
    specs : list of Spec
        Of the inputs.
    result : structure
        With a tensor for each result of the function.
    looks : dict
        What the function counts on: by `nbta.graph.lengths.Look`, what that sees.
    apart : list of tuple of int
        Pairs of inputs that may not be one array.
    lying_apart : set of int
        Inputs whose items lie in another order than C's; others of the kind do so, too.
    now : callable, optional
        Gives further inputs, from outside; see `nbta.frontend.outside.Looking`.
    objects_apart : bool
        Whether no two lists, dicts or objects of the arguments may be one.
    taken_apart : callable, optional
        What gave ``arguments`` for those of the call, which have parts of their own.
    """

    def __init__(
        self,
        executable: Any,
        arguments: Any,
        specs: Any,
        result: Any,
        looks: Any,
        apart: Any,
        lying_apart: Any = frozenset(),
        now: Any = None,
        objects_apart: bool = False,
        taken_apart: Any = None,
    ) -> None:
        self.executable = executable
        self._specs, self._result = specs, result
        source = self._source = _Source([spec.dtype for spec in specs], lying_apart)
        if taken_apart is not None:
            source.open_with(taken_apart)
        source.take_call(*arguments)
        source.check(looks)
        if now is not None:
            source.take_hidden(now, executable.generated.arguments)
        source.keep_apart(apart)
        if objects_apart:
            source.keep_objects_apart()
        self._same = source.text("return True"), source.names
        source.take_copies()
        lines, names, values = written_out(executable, source.leaves, source.numbers)
        packed, more = _packing(result, values)
        text = source.text(*lines, f"return {packed}")
        #: Of positional and keyword arguments: the result, or None for those of another kind and
        #: where anything is to be refused.
        self.call = _defined(text, source.names | names | more)

    def fits(self, args: Any, kwargs: Any) -> bool:
        """Whether arguments are of the same kind, whatever the function makes of them."""
        return _defined(*self._same)(args, kwargs) is not None

    @functools.cached_property
    def fill(self) -> Any:
        """As `call` with a third argument: arrays for the second part of the result.

        The function writes to these itself. It leaves everything that does not fit, arrays that an
        input may share memory with, and shapes that only a run knows, with None and untouched.
        """
        source, (first, gradient) = self._source.copy(), self._result
        outs = source.take_out(gradient, self._specs)
        if outs is None or not is_inlined(self.executable):
            return _leave
        before = len(leaves(first))
        given = {before + k: name for k, name in enumerate(outs)}
        lines, names, values = written_out(self.executable, source.leaves, source.numbers, given)
        packed, more = _packing(first, values)
        text = source.text(*lines, f"return {packed}, out", further=", out")
        return _defined(text, source.names | names | more)


def _leave(args: Any, kwargs: Any, out: Any) -> None:
    """Fill nothing."""


def _defined(source: str, names: dict[str, Any]) -> Any:
    names = dict(names)
    exec(source, names)
    return names["f"]


def _of_dtype(array: Any, dtype: Any) -> Any:
    """An array of a dtype; None where it is of another.

    Arrays from pickles have dtype objects of their own.
    """
    return array.view(dtype) if array.dtype == dtype else None


class _Source:
    """Lines that take a structure apart, and leave a function where it is another one.

    Attributes
    ----------
    names : dict
        What the lines refer to.
    leaves : list of str
        Variables with the inputs.
    numbers : dict
        The dtypes of those that are numbers and no arrays, by variable.
    """

    def __init__(self, dtypes: Any, lying_apart: Any) -> None:
        self.names: dict[str, Any] = {"ndarray": np.ndarray}
        self.leaves: list[str] = []
        self.numbers: dict[str, Any] = {}
        self._dtypes, self._lying_apart = iter(dtypes), lying_apart
        self._lines: list[str] = []
        self._values: list[str] = []
        self._objects: list[str] = []

    def text(self, *more: str, further: str = "") -> str:
        """Source of a function with the lines, and more of them; further arguments."""
        lines = "".join(f"    {line}\n" for line in (*self._lines, *more))
        return f"def f(args, kwargs{further}):\n{lines}"

    def copy(self) -> _Source:
        """One with the same lines, to which others may be added."""
        made = _Source((), self._lying_apart)
        made.names, made.numbers = dict(self.names), dict(self.numbers)
        made.leaves, made._lines = list(self.leaves), list(self._lines)
        made._values = list(self._values)
        return made

    def _name(self, value: Any) -> str:
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    def _variable(self, text: str) -> str:
        """A variable for what a text gives."""
        name = f"v{len(self._lines)}"
        self._lines.append(f"{name} = {text}")
        return name

    def _unless(self, condition: str) -> None:
        self._lines.append(f"if not ({condition}): return None")

    def open_with(self, taken_apart: Any) -> None:
        """Take what a function makes of what a function is called with."""
        self._lines.append(f"args, kwargs = {self._name(taken_apart)}((args, kwargs))")

    def take_call(self, args: Any, kwargs: Any) -> None:
        """Take what a function is called with."""
        self._unless(f"len(args) == {len(args)}")
        self._take_items(args, "args")
        if kwargs:
            self._take(kwargs, "kwargs")
        else:
            self._lines.append("if kwargs: return None")

    def take_hidden(self, now: Any, count: int) -> None:
        """Take what the function uses from outside, as many inputs as are missing."""
        hidden = self._variable(f"{self._name(now)}(({listed(self.leaves)}))")
        self._lines.append(f"if {hidden} is None: return None")
        self.leaves += [self._variable(f"{hidden}[{k}]") for k in range(count - len(self.leaves))]

    def check(self, looks: Any) -> None:
        """Refuse arrays of lengths, and whole numbers, that the function is not for."""
        for look, seen in looks.items():
            value = self._values[look.leaf]
            if isinstance(look, ValueLook):
                self._unless(f"{value} == {seen}")
            else:
                self._unless(f"{value}.shape[{look.axis}:{look.axis + 1}] == ({seen},)")

    def keep_apart(self, pairs: Any) -> None:
        """Leave those to the trace that may be one array: it looks closer."""
        for one, other in pairs:
            share = self._name(np.may_share_memory)
            self._unless(f"not {share}({self.leaves[one]}, {self.leaves[other]})")

    def keep_objects_apart(self) -> None:
        """Leave lists, dicts and objects to the trace of which two are one: it refuses them."""
        if len(self._objects) > 1:
            ids = ", ".join(f"id({each})" for each in self._objects)
            self._unless(f"len({{{ids}}}) == {len(self._objects)}")

    def take_copies(self) -> None:
        """Take copies in C's order of what lies in another."""
        for k in self._lying_apart:
            self.leaves[k] = self._variable(f"{self.leaves[k]}.copy()")

    def take_out(self, gradient: Any, specs: Any) -> list[str] | None:
        """Take arrays to fill for a structure of results, for inputs of some specs.

        Returns
        -------
        list of str or None
            A variable for each; None where only a run knows a shape.
        """
        lengths: dict[Any, str] = {}
        for spec, leaf in zip(specs, self.leaves, strict=False):  # those from outside follow
            for axis, n in enumerate(spec.shape):
                lengths.setdefault(n, f"{leaf}.shape[{axis}]")
        shapes: list[Any] = [tensor.spec.shape for tensor in leaves(gradient)]
        if any(type(n) is not int and n not in lengths for shape in shapes for n in shape):
            return None
        found: list[str] = []

        def take_array(tensor: Any, text: str) -> None:
            shape = [str(n) if type(n) is int else lengths[n] for n in tensor.spec.shape]
            self._unless(f"type({text}) is ndarray and {text}.dtype is {self._name(tensor.dtype)}")
            flags = self._variable(f"{text}.flags")
            self._unless(f"{flags}.carray and {text}.shape == ({listed(shape)})")
            share = self._name(np.may_share_memory)
            others = [leaf for leaf in self.leaves if leaf not in self.numbers]
            for other in (*others, *found):
                # Arrays that own their memory have none of others, which is quicker to see.
                apart = f"{flags}.owndata and {other}.flags.owndata"
                self._unless(f"{text} is not {other} and ({apart} or not {share}({text}, {other}))")
            found.append(text)

        self._take(gradient, self._variable("out"), take_array)
        return found

    def _take(self, part: Any, text: str, take_leaf: Any = None) -> None:
        """Take a part, which ``text`` gives, with what takes a leaf."""
        if isinstance(part, dict | list) or node_of(part) is not None:
            self._objects.append(text)
        if isinstance(part, dict):
            self._unless(f"type({text}) is {self._name(type(part))}")
            self._unless(f"tuple({text}) == {self._name(tuple(part))}")  # order may matter
            item_of = f"{text}[%s]"
            if type(part) is not dict:
                kind, found = self._name(kind_of_dict), self._name(kind_of_dict(part))
                self._unless(f"{kind}({text}) == {found}")
                item_of = f"{self._name(dict.__getitem__)}({text}, %s)"
            for key, value in items_of(part):
                self._take(value, self._variable(item_of % self._name(key)), take_leaf)
        elif isinstance(part, list | tuple):
            self._unless(f"type({text}) is {self._name(type(part))} and len({text}) == {len(part)}")
            self._take_items(part, text, take_leaf)
        elif (node := node_of(part)) is not None:
            self._unless(f"type({text}) is {self._name(type(part))}")
            made = self._variable(f"{self._name(node_of)}({text})")
            self._unless(f"{made}.rest == {self._name(node.rest)}")
            self._take(node.parts, self._variable(f"{made}.parts"), take_leaf)
        elif take_leaf is not None and part is not None:
            take_leaf(part, text)
        elif part is None:
            self._unless(f"{text} is None")
        else:
            self._take_leaf(part, text)

    def _take_leaf(self, part: Any, text: str) -> None:
        """Take what is no structure."""
        if is_constant(part):
            self._values.append(text)
            if isinstance(part, str | bytes | Fixed):
                kind = self._name(type(part))
                self._unless(f"type({text}) is {kind} and {text} == {self._name(part)}")
            else:
                self._unless(f"{text} is {self._name(part)}")
            return
        self._unless(f"type({text}) is {self._name(type(part))}")
        if isinstance(part, np.ndarray):
            self._take_array(text, part.ndim)
        elif isinstance(part, _NUMBERS):
            self._take_number(part, text)
        else:  # such as a range
            self._lines.append(f"{text} = {self._name(as_array)}({text})")
            self._take_array(text, np.ndim(part))

    def _take_items(self, part: Any, text: str, take_leaf: Any = None) -> None:
        for k, item in enumerate(part):
            self._take(item, self._variable(f"{text}[{k}]"), take_leaf)

    def _take_array(self, text: str, ndim: int) -> None:
        dtype, of_dtype = self._name(next(self._dtypes)), self._name(_of_dtype)
        # Arrays without elements have graphs of their own.
        self._unless(f"{text}.size")
        self._lines += [
            f"if {text}.dtype is not {dtype}:",
            f"    {text} = {of_dtype}({text}, {dtype})",
            f"    if {text} is None: return None",
        ]
        if len(self.leaves) in self._lying_apart:
            self._unless(f"{text}.ndim == {ndim} and not {text}.flags.c_contiguous")
        self._values.append(text)
        self.leaves.append(text)

    def _take_number(self, part: Any, text: str) -> None:
        self._values.append(text)
        self.leaves.append(text)
        self.numbers[text] = dtype = next(self._dtypes)
        if isinstance(part, int) and dtype == np.float64:  # by a signature
            self._unless(f"{-_EXACT} <= {text} <= {_EXACT}")
        elif np.asarray(part).dtype != dtype:
            self._lines.append("return None")
        elif isinstance(part, int):  # others are arrays of objects, or of another dtype
            limits = np.iinfo(dtype)
            self._unless(f"{limits.min} <= {text} <= {limits.max}")


def _packing(result: Any, values: list[str]) -> tuple[str, dict[str, Any]]:
    """Source of a structure like ``result`` of some values, and what it refers to."""
    names: dict[str, Any] = {}
    left = iter(values)

    def text(part: Any) -> Any:
        if part is None:
            return "None"
        if isinstance(part, dict):
            ordered = {key: text(value) for key, value in items_of(part)}
            keys = {key: f"p{len(names) + i}" for i, key in enumerate(part)}
            names.update({name: key for key, name in keys.items()})
            inner = "{" + ", ".join(f"{keys[key]}: {ordered[key]}" for key in part) + "}"
            if type(part) is dict:
                return inner
            like = f"p{len(names)}"
            names[like] = functools.partial(dict_like, part)
            return f"{like}({inner})"
        if isinstance(part, tuple) and hasattr(part, "_fields"):
            inner = ", ".join(map(text, part))
            names[f"p{len(names)}"] = type(part)
            return f"p{len(names) - 1}({inner})"
        if isinstance(part, list | tuple):
            inner = "".join(f"{text(item)}, " for item in part)
            return f"[{inner}]" if isinstance(part, list) else f"({inner})"
        if (node := node_of(part)) is not None:
            inner = text(node.parts)
            names[f"p{len(names)}"] = node.packed
            return f"p{len(names) - 1}({inner})"
        return next(left)

    return text(result), names
