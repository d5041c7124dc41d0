"""Random functions whose derivatives ``@njit`` functions call, in as many ways as there are.

A program is a function of a few arguments of random types, a derivative of it, and a caller. What
the caller gives is bit by bit what the call from Python gives, or the same error. A second call
like it needs no Python, nothing is written that nobody asked for, and no thread waits for ever.
"""

import collections
import faulthandler
import itertools
import linecache
import random
import re
import sys
import threading
from contextlib import contextmanager
from typing import NamedTuple

import numba
import numpy as np
from numba.core.errors import TypingError
from numba.extending import overload

import nbta
from nbta.api import in_njit
from nbta.runtime.native_calls import EMPTY
from nbta.structure import leaves

from .ways import DisagreementError, count, outcome

Pair = collections.namedtuple("Pair", ["at", "scale"])
#: A program that takes as many seconds hangs: the process says where, and ends.
SECONDS = 240
_files = itertools.count()


def _floats(*shape):
    return lambda rng, n: rng.uniform(0.5, 1.5, [n if k is None else k for k in shape])


#: By kind of argument what gives a value, for a generator and a length, and terms of it, ``a``.
KINDS = {
    "number": (lambda rng, n: rng.uniform(0.5, 1.5), ["np.sin(a) * a", "a ** 3"]),
    "single": (lambda rng, n: np.float32(rng.uniform(0.5, 1.5)), ["a * a"]),
    "whole": (
        lambda rng, n: int(rng.integers(-2, 3)),
        ["a * 0.5", "np.sum(np.linspace(0.0, 1.0, abs(a) + 2))", "np.eye(5)[2, a]"],
    ),
    "byte": (lambda rng, n: np.uint8(rng.integers(5)), ["a * 0.25", "np.sum(np.tri(4, k=a))"]),
    "truth": (lambda rng, n: bool(rng.integers(2)), ["(2.0 if a else 0.5)"]),
    "nothing": (lambda rng, n: None, ["(1.5 if a is None else a)"]),
    "vector": (_floats(None), ["np.sum(a ** 2)", "np.sum(np.roll(a, 1) * a)", "summed(a)"]),
    "singles": (lambda rng, n: _floats(None)(rng, n).astype("f4"), ["np.sum(a * a)"]),
    "backwards": (lambda rng, n: _floats(None)(rng, n)[::-1], ["np.sum(a ** 3) + len(a)"]),
    "matrix": (_floats(None, 3), ["np.sum(a[:, 1] ** 2)", "summed(a)", "np.sum(a.T @ a)"]),
    "columns": (
        lambda rng, n: np.asfortranarray(_floats(n, 2)(rng, n)),
        ["np.sum(a * a)", "summed(a.ravel())"],
    ),
    "integers": (lambda rng, n: rng.integers(-3, 3, n), ["np.sum(a * 0.5)", "summed(a)"]),
    "pair": (
        lambda rng, n: Pair(_floats(None)(rng, n), rng.uniform(0.5, 1.5)),
        ["np.sum(a.at * a.at) * a.scale"],
    ),
    "tuple": (
        lambda rng, n: (rng.uniform(0.5, 1.5), _floats(n, 2)(rng, n)),
        ["np.sum(a[1] ** 2) * a[0]"],
    ),
}
#: Kinds that have gradients.
DIFFERENTIATED = {"number", "single", "vector", "singles", "backwards", "matrix", "columns"}
#: Kinds that a batch is cut from, with their ranks.
CUT = {"vector": 1, "singles": 1, "integers": 1, "matrix": 2, "columns": 2}
#: Derivatives, with the kinds of their first arguments.
MODES = {
    "function": sorted(KINDS),
    "grad": sorted(DIFFERENTIATED),
    "value_and_grad": sorted(DIFFERENTIATED),
    "hessian": ["number", "vector", "backwards"],
    "jvp": sorted(DIFFERENTIATED),
    "hvp": sorted(DIFFERENTIATED),
    "batch": sorted(DIFFERENTIATED),
    "vmap": sorted(CUT.keys() & DIFFERENTIATED),
}
#: Callers that call once.
ONCE = {
    "plain": "@numba.njit\ndef caller({names}):\n    return {call}\n",
    "nogil": "@numba.njit(nogil=True)\ndef caller({names}):\n    return {call}\n",
    "argument": "@numba.njit\ndef with_g(g, {names}):\n    return {call}\n"
    "def caller({names}):\n    return with_g(g, {names})\n",
    "closure": "@numba.njit\ndef caller({names}):\n    def inner({names}):\n"
    "        return {call}\n    return inner({names})\n",
    "recursion": "@numba.njit\ndef again(n, {names}):\n    if n == 0:\n        return {call}\n"
    "    return again(n - 1, {names})\ndef caller({names}):\n    return again(2, {names})\n",
    "overload": "@numba.njit\ndef caller({names}):\n    return via({names})\n",
}
#: Callers that call sixteen times, with multiples of the first argument.
LOOPS = {
    "list": "@numba.njit\ndef caller({names}):\n    return [{scaled} for k in range(16)]\n",
    "prange": "@numba.njit(parallel=True)\ndef caller({names}):\n"
    "    found = np.zeros((16,) + np.shape(x))\n    for k in numba.prange(16):\n"
    "        found[k] = {scaled}\n    return found\n",
    "prange in prange": "@numba.njit(parallel=True)\ndef inner(found, first, {names}):\n"
    "    for j in numba.prange(2):\n        k = first + j\n        found[k] = {via}\n"
    "@numba.njit(parallel=True)\ndef caller({names}):\n"
    "    found = np.zeros((16,) + np.shape(x))\n    for i in numba.prange(8):\n"
    "        inner(found, 2 * i, {names})\n    return found\n",
    "vectorize": "of_all = numba.vectorize(lambda {names}: {call})\n"
    "def caller({names}):\n    return of_all({numbers})\n",
}
_VIA = (
    "def via({names}):\n    return {call}\n"
    "@overload(via)\ndef _via({names}):\n    return lambda {names}: {call}\n"
)
_BY_PYTHON = {
    True: "def by_python({names}):\n    return {call}\n",
    False: "def by_python({names}):\n    return [{scaled} for k in range(16)]\n",
}
_FUNCTION = """def summed(a):
    total = 0.0
    for i in range(len(a)):
        total = total + np.sum(a[i]) * (i + 1)
    return total

def f({names}):
    total = {total}
{fails}    return total
"""


class Program(NamedTuple):
    """A function, the kinds of its arguments, a derivative, and who calls it."""

    text: str
    kinds: tuple
    mode: str
    caller: str
    axes: tuple
    reduction: str
    seed: int

    def operations(self):
        """How many arguments there are."""
        return len(self.kinds)

    def function(self):
        """It; its text is where `inspect` finds it."""
        name = f"<callers {next(_files)}>"
        linecache.cache[name] = (len(self.text), None, self.text.splitlines(True), name)
        space = {"np": np, "__name__": "random_callers"}
        exec(compile(self.text, name, "exec"), space)
        return space["f"]

    def derivative(self, f):
        """What is called."""
        if self.mode in ("jvp", "hvp"):
            return nbta.function(f, compiled=True)
        if self.mode == "vmap":
            return nbta.function(nbta.vmap(nbta.grad(f), self.axes[0]), compiled=True)
        options = {"compiled": True}
        if self.mode in ("grad", "value_and_grad", "batch"):
            chosen = [k for k, kind in enumerate(self.kinds) if kind in DIFFERENTIATED]
            is_one = self.caller in LOOPS or self.seed % 3 == 0
            options["argnums"] = 0 if is_one else tuple(chosen)
        if self.mode == "batch":
            options.update(batch_axis=self.axes, reduction=self.reduction)
            return nbta.value_and_grad(f, **options)
        return getattr(nbta, self.mode)(f, **options)

    def callers(self, g):
        """What calls a derivative from compiled code, and what does from Python."""
        names = "xyzuvw"[: len(self.kinds)]
        call = "g({})" if self.mode not in ("jvp", "hvp") else f"nbta.{self.mode}(g, ({{}},), (x,))"
        scaled = ", ".join(["x * (k + 1.0)", *names[1:]])
        texts = {
            "names": ", ".join(names),
            "call": call.format(", ".join(names)),
            "scaled": call.format(scaled),
            "via": f"via({scaled})",
            "numbers": ", ".join(["x * np.arange(1.0, 17.0)", *names[1:]]),
        }
        lines = _VIA + {**ONCE, **LOOPS}[self.caller] + _BY_PYTHON[self.caller in ONCE]
        space = {"g": g, "np": np, "numba": numba, "nbta": nbta, "overload": overload}
        exec(lines.format(**texts), space)
        return space["caller"], space["by_python"]

    def given(self):
        """The arguments of calls, of several lengths and values."""
        rng = np.random.default_rng(self.seed)
        for n in (3, 2, 3, 1, 6, 0):
            yield tuple(self._value(rng, n, k) for k in range(len(self.kinds)))

    def _value(self, rng, n, k):
        make, axis = KINDS[self.kinds[k]][0], self.axes[k] if self.axes else None
        if axis is None:
            return make(rng, n)
        items = [make(rng, 3) for _ in range(n)] or [make(rng, 3)]
        return np.moveaxis(np.stack(items)[:n], 0, axis)


def program(seed):
    """The program of a seed."""
    one = random.Random(seed)
    mode, axes = one.choice(list(MODES)), ()
    caller = one.choice([*ONCE, *LOOPS, *LOOPS])
    firsts = MODES[mode]
    if caller in LOOPS:  # which fill an array
        mode, firsts = "grad", ["number"] if caller == "vectorize" else ["number", "vector"]
    more = ["number", "whole"] if caller == "vectorize" else list(KINDS)
    others = 0 if mode in ("jvp", "hvp", "vmap") else one.randrange(3)
    kinds = [one.choice(firsts), *(one.choice(more) for _ in range(others))]
    if mode == "batch":
        kinds.append(one.choice(list(CUT)))
    if mode in ("batch", "vmap"):
        axes = [
            one.choice([None, one.randrange(-CUT.get(k, 0) - 1, CUT.get(k, 0) + 1)]) for k in kinds
        ]
        axes = [axis if kind in CUT else None for axis, kind in zip(axes, kinds, strict=True)]
        axes[-1] = axes[-1] or 0
    names = "xyzuvw"[: len(kinds)]
    terms = [
        re.sub(r"\ba\b", n, one.choice(KINDS[k][1])) for n, k in zip(names, kinds, strict=True)
    ]
    total = terms[0]
    for term in terms[1:]:
        total = f"({total}) {one.choice('+*')} ({term})"
    fails = one.choice(["", "", f"    assert total < {one.randint(2, 12)}.0, 'too large'\n"])
    text = _FUNCTION.format(names=", ".join(names), total=total, fails=fails)
    reduction = one.choice(["sum", "mean"])
    return Program(text, tuple(kinds), mode, caller, tuple(axes), reduction, seed)


def check(made, machine_code=False, counts=None):
    """Hold what compiled code is given against what Python is; always in machine code."""
    counts = {} if counts is None else counts
    numba.get_num_threads()  # which chooses the layer
    if made.caller == "prange in prange" and numba.threading_layer() == "workqueue":
        count(counts, "loops in loops, which end the process here")
        return
    g = made.derivative(made.function())
    compiled, by_python = made.callers(g)
    for call, values in enumerate(made.given()):
        with _watched(made, call) as asked:
            expected = _outcome(by_python, values)
            if isinstance(expected, nbta.UnimplementedError):
                count(counts, "not compiled")
                continue
            found = _outcome(compiled, values)
            if getattr(found, "reason", None) == "result_types":
                count(counts, "of another type for other lengths")
                continue
            _hold(made, call, found, expected)
            if isinstance(expected, Exception):
                count(counts, "errors")
                continue
            asked.clear()
            _hold(made, call, _outcome(compiled, values), expected)
            if made.caller == "nogil":
                _on_threads(made, call, compiled, values, expected)
            if asked:
                raise DisagreementError("asks Python", call, asked)
        count(counts, "agreed")


def _outcome(f, values):
    return outcome(lambda: _try(f, values), ())


def _try(f, values):
    """What a call gives, or its error."""
    try:
        return f(*values)
    except (AssertionError, TypingError) as error:
        return error


@contextmanager
def _watched(made, call):
    """Why Python is asked meanwhile; an error where it has one that nobody sees, or hangs."""
    unseen, asked = [], []
    hook, answer = sys.unraisablehook, in_njit.Entry._answer

    def note(entry, request, record, reason, words):
        if reason != EMPTY:  # a thread's first call
            asked.append(reason)
        return answer(entry, request, record, reason, words)

    faulthandler.dump_traceback_later(SECONDS, exit=True)
    sys.unraisablehook, in_njit.Entry._answer = unseen.append, note
    try:
        yield asked
    finally:
        sys.unraisablehook, in_njit.Entry._answer = hook, answer
        faulthandler.cancel_dump_traceback_later()
    if unseen:
        raise DisagreementError("errors that nobody sees", call, unseen)


def _on_threads(made, call, compiled, values, expected):
    """Hold the results of several threads at once."""
    found = [None] * 3

    def work(k):
        found[k] = _outcome(compiled, values)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in found:
        _hold(made, call, each, expected)


def _hold(made, call, found, expected):
    """Hold two outcomes against each other: bitwise identical, or the same error."""
    failed = [isinstance(each, Exception) for each in (found, expected)]
    if any(failed):
        if not all(failed) or not _are_alike(found, expected):
            raise DisagreementError("errors", call, f"{found!r} and {expected!r}")
        return
    expected = expected if made.caller in ONCE else np.array(expected)
    found = np.array(found) if made.caller == "list" else found
    pairs = list(zip(leaves(found), leaves(expected), strict=True))
    for one, other in pairs:
        a, b = np.asarray(one), np.asarray(other)
        if a.shape != b.shape or a.astype(b.dtype).tobytes() != b.tobytes():
            raise DisagreementError("values", call, f"{found!r} and {expected!r}")
        if isinstance(one, np.ndarray) and a.dtype != b.dtype:
            raise DisagreementError("dtypes", call, f"{found!r} and {expected!r}")


def _are_alike(found, expected):
    """Whether errors say the same; types tell no lengths, and what Python refuses has no type."""
    said, wanted = (re.sub(r"\([^()]*\)", "()", str(each)) for each in (found, expected))
    if isinstance(found, TypingError):
        return wanted.splitlines()[0] in said
    return type(found) is type(expected) and wanted.splitlines()[0] == said.splitlines()[0]
