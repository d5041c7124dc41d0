"""Calling a compiled function with a structure of arrays, by a few microseconds.

What a structure is made of is written out as a Python function once: to look at each type and key
in turn, as `nbta.structure` does, takes ten times as long as the call itself.
"""

import numpy as np

from nbta.runtime.protocol import OK

_NUMBERS = np.ndarray | np.generic | int | float | complex


class Launcher:
    """Runs a compiled function for arguments of the same kind as some.

    Parameters
    ----------
    executable : Executable
    arguments : structure
        Those of a call. Arrays and numbers in it are the inputs of the function; strings, truth
        values and functions must be the same in other calls.
    dtypes : list of dtype
        Of the inputs.
    result : structure
        With any leaves, as many as the function has results.
    looks : dict
        What the function counts on: by `nbta.graph.lengths.Look`, what that sees.
    """

    def __init__(self, executable, arguments, dtypes, result, looks):
        self.executable, self._run = executable, executable.run
        self._dtypes = dtypes
        source = _Source()
        source.take(arguments, "arguments")
        source.check(looks)
        picked = "".join(f"{leaf}, " for leaf in source.leaves)
        names = source.names | {"ndarray": np.ndarray}
        self._leaves = _made(f"def f(arguments):\n{source.text()}    return ({picked})\n", names)
        self._pack = _made(*_packing(result))

    def __call__(self, arguments):
        """The result; None for arguments of another kind, and where anything is to be refused."""
        given = self.inputs(arguments)
        if given is None:
            return None
        status, values, _ = self._run(given)
        return self._pack(values) if status == OK else None

    def inputs(self, arguments):
        """The inputs of the function in arguments; None for those of another kind."""
        given = self._leaves(arguments)
        if given is not None:
            for place, dtype in enumerate(self._dtypes):
                value = given[place]
                if value.dtype is dtype:
                    continue
                if value.dtype != dtype:
                    return None
                # Arrays from pickles have dtype objects of their own.
                given = (*given[:place], value.view(dtype), *given[place + 1 :])
        return given


def _made(source, names):
    names = dict(names)
    exec(source, names)
    return names["f"]


class _Source:
    """Lines that take a structure apart, and return None where it is another one."""

    def __init__(self):
        self.names, self.leaves, self._lines, self._values = {}, [], [], []

    def text(self):
        """The lines."""
        return "".join(f"    {line}\n" for line in self._lines)

    def _name(self, value):
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    def _unless(self, condition):
        self._lines.append(f"if not ({condition}): return None")

    def check(self, looks):
        """Refuse arrays of lengths that the function is not for."""
        for look, seen in looks.items():
            axis = f"{look.axis}:{look.axis + 1}"
            self._unless(f"{self._values[look.leaf]}.shape[{axis}] == ({seen},)")

    def take(self, part, text):
        """Take a part, which ``text`` gives."""
        if isinstance(part, dict):
            self._unless(f"type({text}) is {self._name(type(part))}")
            self._unless(f"tuple({text}) == {self._name(tuple(part))}")  # order may matter
            for key in sorted(part, key=repr):
                self._lines.append(f"v{len(self._lines)} = {text}[{self._name(key)}]")
                self.take(part[key], f"v{len(self._lines) - 1}")
        elif isinstance(part, list | tuple):
            self._unless(f"type({text}) is {self._name(type(part))} and len({text}) == {len(part)}")
            for k, item in enumerate(part):
                self._lines.append(f"v{len(self._lines)} = {text}[{k}]")
                self.take(item, f"v{len(self._lines) - 1}")
        elif isinstance(part, _NUMBERS) and not isinstance(part, bool):
            self._take_leaf(part, text)
        elif part is None:
            self._unless(f"{text} is None")
        else:
            self._values.append(text)
            same = "==" if isinstance(part, str) else "is"
            self._unless(f"{text} {same} {self._name(part)}")

    def _take_leaf(self, part, text):
        self._values.append(text)
        if isinstance(part, np.ndarray):
            # Arrays without elements have graphs of their own.
            self._unless(f"type({text}) is ndarray and {text}.size")
            self.leaves.append(text)
            return
        self._unless(f"type({text}) is {self._name(type(part))}")
        name = f"v{len(self._lines)}"
        self._lines.append(f"{name} = {self._name(np.asarray)}({text})")
        self.leaves.append(name)


def _packing(result):
    """Source of a function from a list of values to a structure like ``result``."""
    names, count = {}, iter(range(1 << 30))

    def text(part):
        if part is None:
            return "None"
        if isinstance(part, dict):
            ordered = {key: text(part[key]) for key in sorted(part, key=repr)}
            keys = {key: f"k{len(names) + i}" for i, key in enumerate(part)}
            names.update({name: key for key, name in keys.items()})
            return "{" + ", ".join(f"{keys[key]}: {ordered[key]}" for key in part) + "}"
        if isinstance(part, tuple) and hasattr(part, "_fields"):
            inner = ", ".join(map(text, part))
            names[f"k{len(names)}"] = type(part)
            return f"k{len(names) - 1}({inner})"
        if isinstance(part, list | tuple):
            inner = "".join(f"{text(item)}, " for item in part)
            return f"[{inner}]" if isinstance(part, list) else f"({inner})"
        return f"values[{next(count)}]"

    return f"def f(values):\n    return {text(result)}\n", names
