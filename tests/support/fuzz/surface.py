"""Random programs of everyday Python, right and wrong ones, that must end as Python has it.

Numbers, texts, containers, attributes, calls, comprehensions, branches, loops and `try`, of
variables of any kind: what comes out of nbta is what Python gives, an error of the class that
Python raises, or an error of nbta's that names the user's file and line. All else, such as an
exception from nbta's inside, is a failure.
"""

import itertools
import linecache
import os
import random
import re
import signal
import sys
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest import mock

import numpy as np

import nbta
from nbta.locations import OWN

from .ways import DisagreementError, count, executed

HEAD = """import math
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass

import numpy as np


Pair = namedtuple("Pair", "a b")


@dataclass
class Bag:
    value: object
    note: object = None

    def scaled(self, by):
        return self.value * by

    @property
    def twice(self):
        return self.value * 2.0

    def __len__(self):
        return 2

    def __add__(self, other):
        return Bag(self.value + getattr(other, "value", other))


def helper(v, by=2.0, *rest, shift=0.0, **more):
    if len(rest) > 2:
        raise ValueError("too many")
    return v * by + shift + len(more)


"""

#: Expressions by the kind of what they should give: ``$n`` is a number that the run knows,
#: ``$k`` an integer of Python's, ``$s`` a text, ``$l`` a list, ``$d`` a dict, ``$t`` a tuple,
#: ``$a`` an array, ``$b`` a Bag, ``$v`` anything, ``$p`` a condition.
EXPRESSIONS = {
    "n": [
        "$n + $n", "$n * $k", "$n - 0.5", "$n / $k", "$n // $k", "$n % 3.0", "$n ** 2",
        "-$n", "abs($n)", "max($n, $n)", "min($l)", "sum($l)", "float($k)", "$n if $p else $n",
        "$l[$k]", "$d['a']", "$d[$s]", "$d.get($s, $n)", "$t[0]", "$a[$k]", "$a.sum()",
        "$b.value", "$b.twice", "$b.scaled($n)", "helper($n)", "helper($n, $k, shift=$n)",
        "helper(*$t)", "helper(**$d)", "math.sin($n)", "np.tanh($n)", "$n.real", "round($n, 2)",
        "np.dot($a, $a)", "(lambda q, r=$n: q * r)($n)", "sum(q * q for q in $l)", "$l[-1]",
        "$l.pop()", "$d.pop('a')", "math.sqrt($k)", "$n and $n", "$n or $n", "float($s)",
        "np.mean($l)", "$a[$k:].sum()", "(w := $n) * w", "next(iter($l))", "$a.max()",
        "type($n)(2) * $n", "pow($n, 2)", "divmod($n, 2.0)[1]", "$n.conjugate()", "$t.b", "$v",
        "$a[int($n)]", "$l[int($n)]", "float($n > $n)", "$n.is_integer() * 1.0", "len($v) * $n",
        "int($s) * $n", "$a.item($k)", "$a.mean(axis=0)", "np.interp($n, [0.0, 1.0], [2.0, 3.0])",
        "dict($d)['a']", "$a.flat[$k]", "$a.T[0]", "$n.imag", "max($l, key=abs)", "$v + $v",
        "$v * $v",
    ],
    "k": [
        "1", "2", "3", "0", "-1", "len($l)", "len($s)", "len($t)", "$k + 1", "$k * $k", "$k - 2",
        "$k % 2", "$k // $k", "$s.count('a')", "int('7')", "$l.index($v)", "ord($s[0])", "$a.ndim",
        "$a.shape[0]", "len($d)", "$t.index($k)", "$s.find('b')", "len($b)", "$k << 1",
        "hash($s) % 3",
        "sorted([$k, $k])[0]", "[1, 2, 3][$k]", "$s.index('z')", "int($s)", "id($v) * 0",
    ],
    "s": [
        "'a'", "'ab'", "'value'", "$s + 'b'", "$s.upper()", "$s[$k]", "f'{$k}'", "str($k)",
        "'-'.join([$s, $s])", "$s * $k", "$s.strip('a')", "type($v).__name__",
        "$s.replace('a', $s)",
        "'{}'.format($k)", "'%d' % $k", "repr($k)", "$s.split('b')[0]", "$s[::-1]", "str($v)",
        "f'{$v}'",
        "chr(97 + $k)", "next(iter($d))", "'%s' % $s", "$s.zfill($k)", "$s.encode().decode()",
        "$s + $v",
    ],
    "l": [
        "[$n, $n]", "[$n, $k, $n]", "[]", "$l + [$n]", "list($t)", "[q * 2.0 for q in $l]",
        "$l[1:]",
        "[$n] * $k", "$l[::-1]", "sorted($l)", "list($d.values())", "[q for q in $l if q > 0.0]",
        "list(map(abs, $l))", "[*$l, *$t]", "list(range($k))", "$l.copy()", "list($a)",
        "$a.tolist()",
        "[a + b for a, b in zip($l, $t)]", "[i * q for i, q in enumerate($l)]",
        "list(reversed($l))",
        "[helper(q) for q in $t]", "list(filter(None, [$k, $k]))", "[[$n], [$n]][$k]", "list($s)",
        "$v[:]",
        "list(deque($l))", "[row.sum() for row in $a]", "list($d)", "$d.get('l', $l)",
    ],
    "d": [
        "{'a': $n}", "{'a': $n, 'b': $n}", "dict(a=$n, by=$n)", "{**$d, 'c': $n}", "{}",
        "{s: $n for s in $s}", "dict(zip('ab', $l))", "$d | {'a': $n}", "$d.copy()", "vars($b)",
        "defaultdict(float, a=$n)", "OrderedDict(a=$n, v=$k)", "{$k: $n}", "{'v': $n}", "dict($t)",
        "{$s: $v}", "Counter($s)", "{q: i for i, q in enumerate($s)}",
    ],
    "t": [
        "($n, $n)", "($n,)", "()", "tuple($l)", "Pair($n, $n)", "$t + ($n,)", "$t[:1]",
        "divmod($n, 2.0)", "tuple(q + 1.0 for q in $l)", "Pair(*$t)", "$a.shape",
        "$t._replace(a=$n)",
        "tuple(sorted($d.items()))", "($n, $s)", "tuple($v)", "(*$t, $k)", "Pair(b=$n, a=$k)",
    ],
    "a": [
        "np.zeros($k)", "np.ones(3) * $n", "np.array($l)", "np.arange(3.0) + $n", "$a * $n",
        "$a[1:]",
        "np.array([$n, $n])", "$a + $a", "np.stack([$a, $a])", "$a.reshape(-1)", "np.sin($a)",
        "$a.copy()",
        "np.where($a > 0.0, $a, $n)", "np.concatenate([$a, $a])", "np.full($k, $n)", "$a[::-1]",
        "$a.T",
        "$a.reshape($k, 2)", "np.linspace(0.0, $n, 4)", "np.outer($a, $a)", "$a[$a > 0.5]",
        "$a @ $a",
        "np.array($t)", "np.cumsum($l)", "np.zeros_like($v)", "np.asarray($v)",
        "np.maximum($a, $l)",
        "$a[np.array([0, 1])]", "np.array([$s])", "np.array($d)", "$a[..., None]", "np.diff($a)",
    ],
    "b": ["Bag($n)", "Bag($n, $s)", "Bag($l)", "$b + $n", "$b + $b", "Bag(value=$v)", "Bag()"],
    "p": [
        "$n > $n", "$n < 0.5", "$k > 1", "$n > 100.0", "$s == 'a'", "$n in $l", "'a' in $d",
        "$v is None",
        "isinstance($v, float)", "isinstance($v, (list, tuple))", "not $n", "$n > 0.0 and $k", "$l",
        "$d",
        "$s in $s", "$v == $v", "$n != $n", "hasattr($v, 'value')", "callable($v)",
        "0.0 < $n < 1.0",
        "$n > 0.5 or $s", "any($l)", "all(q > 0.0 for q in $l)", "$t == $t", "$l < $l", "$v is $v",
        "isinstance($v, int | float)", "$a.any()", "$n > 100.0 and $v > 0.0", "len($v) > 1",
        "$k in $d",
    ],
}  # fmt: skip
EXPRESSIONS["v"] = ["$n", "$k", "$s", "$l", "$d", "$t", "$a", "$b", "None", "$n * 1.0"]
#: Statements that change something; all are of one line.
EFFECTS = [
    "$l.append($n)", "$l[$k] = $n", "$d['a'] = $n", "$d[$s] = $v", "$a[$k] = $n", "$b.value = $n",
    "$b.other = $n", "$l.extend($t)", "del $l[0]", "del $d['a']", "$l.insert($k, $n)",
    "$d.update($d)",
    "$l.sort()", "$l.reverse()", "$a += $n", "$n += $k", "$k += 1", "$s += 'x'", "$l += [$n]",
    "$d['b']['a'] = $n", "$v.a = $n", "$v[$k] = $n", "$d.clear()", "$l.remove($k)", "$a[:] = $l",
    "$a[$a > 0.0] = $n", "$a.flat = $v", "$t[0] = $n", "$d.setdefault('q', []).append($n)",
    "$a.fill($n)",
    "assert $p", "raise ValueError($s)", "$n, $n = $t", "$n, *$l = $l", "$v.push($n)",
    "$n = $n + $v",
    "($n, $k), $s = $t, $v", "setattr($b, $s, $n)", "$n **= $k", "$a[$k, $k] = $n", "$a = $n",
    "del $n", "$b.value += $n", "$d['a'] += $n", "$l[0] *= $n", "$s[0] = 'x'", "$v()",
    "$v($n, q=$n)",
]  # fmt: skip
HEADS = [
    ("if $p:", 6, None), ("if $p:", 6, "else:"), ("if $p:", 2, "elif $p:"),
    ("for q in $l:", 2, None),
    ("for i in range($k):", 3, None), ("for q, r in $d.items():", 1, None),
    ("for i, q in enumerate($t):", 1, None),
    ("while $n < 2.0 and $k < 3:", 1, None), ("for q in $a:", 2, None),
    ("for i in range(int($n)):", 2, None),
    ("for i in range(len($v)):", 1, "else:"), ("try:", 2, "except ($e):"), ("try:", 1, "finally:"),
    ("with np.errstate(all='ignore'):", 1, None), ("for q in $v:", 1, None),
    ("while True:", 1, None),
]  # fmt: skip
ERRORS = ["ValueError", "KeyError", "IndexError", "TypeError", "ZeroDivisionError", "Exception",
"LookupError, AttributeError"]  # fmt: skip
LEAVING = ["return $n", "return $v", "break", "continue", "return", "pass"]
_FILES = itertools.count()


@dataclass(eq=False)
class Node:
    """A statement: its head, and its blocks with what stands before each but the first."""

    head: str
    blocks: list = field(default_factory=list)
    between: list = field(default_factory=list)

    def lines(self):
        found = [self.head]
        for k, block in enumerate(self.blocks):
            found += [self.between[k - 1]] if k else []
            found += ["    " + line for node in block for line in node.lines()] or ["    pass"]
        return found


class _Maker:
    """Statements of variables of each kind; sometimes of another one than they should be."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.wrong = self.random.choice((0.0, 0.0, 0.02, 0.1))
        self.names = {
            "n": ["x", "y"], "k": ["k"], "s": ["s"], "l": ["l"], "d": ["d"], "t": ["t"], "a": ["a"],
            "b": ["b"],
        }  # fmt: skip
        self.loops = 0

    def name(self, kind):
        if kind == "v" or self.random.random() < self.wrong:
            kind = self.random.choice("nnkslldtaab")
        return self.random.choice(self.names[kind])

    def filled(self, template, depth=1):
        def place(found):
            kind = found[1]
            if kind == "e":
                return self.random.choice(ERRORS)
            if kind == "p" or (depth and self.random.random() < 0.25):
                inner = self.filled(self.random.choice(EXPRESSIONS[kind]), depth - 1)
                return f"({inner})"
            return self.name(kind)

        return re.sub(r"\$([nkslatdbvpe])\b", place, template)

    def target(self, template):
        """A statement whose targets are names."""
        return self.filled(template, 0)

    def statement(self, left):
        chance = self.random.random()
        if left and chance < 0.3:
            heads = [head for head in HEADS for _ in range(head[1])]
            head, _, other = self.random.choice(heads)
            around, self.loops = self.loops, self.loops if other != "finally:" else -99
            loops = head.startswith(("for", "while"))
            self.loops += loops
            blocks = [self.block(left - 1)]
            if head == "while True:":
                blocks[0].append(Node("break"))
            between = []
            if other:
                self.loops -= loops
                blocks.append(self.block(left - 1))
                between.append(self.filled(other, 0))
            self.loops = around
            return Node(self.filled(head, 1), blocks, between)
        if chance < 0.36:
            leaving = LEAVING if self.loops > 0 else LEAVING[:2] + LEAVING[4:]
            leaving = ["pass"] if self.loops < 0 else leaving  # `return` in `finally` hides errors
            return Node(self.filled(self.random.choice(leaving)))
        if chance < 0.6:
            return Node(self.target(self.random.choice(EFFECTS)))
        kind = self.random.choice("nnnnkslldtaab")
        new = self.random.random() < 0.3
        name = f"{kind}{self.random.randrange(3)}" if new else self.name(kind)
        if new and name not in self.names[kind]:
            self.names[kind].append(name)
        return Node(f"{name} = {self.filled(self.random.choice(EXPRESSIONS[kind]))}")

    def block(self, left):
        return [self.statement(left) for _ in range(self.random.randint(1, 3))]


FIRST = [
    "k = 2", "s = 'ab'", "l = [x, 0.5, y]", "d = {'a': x, 'b': 1.5}", "t = (y, x)",
    "a = np.array([x, y, 1.0])", "b = Bag(x)",
]  # fmt: skip


@dataclass(eq=False)
class Program:
    """A function of two numbers, and some of them."""

    nodes: list
    result: str
    values: list

    def source(self):
        lines = [line for node in (*map(Node, FIRST), *self.nodes) for line in node.lines()]
        return HEAD + "\n".join(
            ["def f(x, y):", *("    " + line for line in lines), f"    return {self.result}", ""]
        )

    def operations(self):
        return self.source().count("\n") - HEAD.count("\n")

    def __repr__(self):
        return f"# {self.values}\n{self.source()}"


RESULTS = ["{0}", "{0}", "{0}, {1}", "[{0}, {1}, {2}]", "dict(p={0}, q={1})"]


def program(seed):
    """The same for the same seed."""
    for part in range(1000):
        maker = _Maker(f"{seed}/{part}")
        nodes = [maker.statement(2) for _ in range(maker.random.randint(2, 7))]
        names = [maker.name(kind) for kind in maker.random.choices("nnnalstdbk", k=3)]
        result = maker.random.choice(RESULTS)
        draw = maker.random.uniform
        values = [(round(draw(-2, 3), 3), round(draw(-2, 3), 3)) for _ in range(2)]
        made = Program(nodes, result.format(*names), values)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(made.source(), "?", "exec")
        except SyntaxError:
            continue
        return made
    raise AssertionError(seed)


def function(source):
    """The function of a program, whose source can be found, and the name of its file."""
    name = f"<surface {next(_FILES)}>.py"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    names = {"__name__": "surface"}
    exec(compile(source, name, "exec"), names)
    return names["f"], name


class EndlessError(BaseException):
    """More lines than a small program runs, or more time than it takes."""


#: How many lines of Python a program may run, and how many seconds nbta may take for it.
LINES, SECONDS = 3000, 20


@contextmanager
def few_lines():
    """Raise an error in functions that run on and on."""
    left = LINES

    def trace(frame, event, arg):
        nonlocal left
        left -= 1
        if left < 0:
            raise EndlessError("lines")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def _ring(number, frame):
    raise EndlessError("seconds")


@contextmanager
def little_time():
    """Raise an error where nbta goes on and on."""
    before = signal.signal(signal.SIGALRM, _ring)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(f, values, limit):
    """What a call gives, or the error that it raises."""
    whole = mock.patch.dict(os.environ, NBTA_FULL_TRACEBACK="1")  # it says where an error came up
    with np.errstate(all="ignore"), whole:
        try:
            with limit():
                return f(*values)
        except (Exception, EndlessError) as error:
            return error


def check(given, machine_code=False, counts=None):
    """Hold a program's runs against Python's."""
    counts = {} if counts is None else counts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f, name = function(given.source())
        ways = {compiled: nbta.function(f, compiled=compiled) for compiled in (False, True)}
        for call, values in enumerate(given.values):
            # a number in a trace is Python's or NumPy's, which differ a little
            kinds = float, np.float64
            plain = [outcome(f, [kind(v) for v in values], few_lines) for kind in kinds]
            if any(isinstance(each, EndlessError) for each in plain):
                count(counts, "endless")
                continue
            for compiled, way in ways.items():
                with executed(machine_code):
                    found = outcome(way, values, little_time)
                what = judged(found, plain, name)
                if what is not None:
                    stage = f"{'compiled' if compiled else 'reference'}: {what[0]}"
                    raise DisagreementError(stage, call, what[1]) from (
                        found if isinstance(found, Exception) else None
                    )
            count(counts, _kind(found, plain))
    return counts


def _kind(found, plain):
    if isinstance(found, nbta.NbtaError) and not any(isinstance(each, Exception) for each in plain):
        return "refused"
    return "raised" if isinstance(found, Exception) else "agreed"


def judged(found, plain, name):
    """What is wrong with an outcome, in a word and in full; None where nothing is."""
    if isinstance(found, Exception):
        if any(isinstance(found, type(each)) for each in plain if isinstance(each, Exception)):
            return None
        text = "\n".join([str(found), *getattr(found, "__notes__", ())])
        if isinstance(found, nbta.NbtaError):
            inside = "nbta cannot follow this" in text
            if inside and not isinstance(found.__cause__, RecursionError):
                return f"{_inside(found.__cause__)} inside", text
            return None if f"{name}:" in text else ("no place", f"{found!r}, Python: {plain}")
        if all(isinstance(each, Exception) for each in plain):
            return None  # an error after one of a run comes first, as it is found in a trace
        return f"{type(found).__name__} leaks", f"{found!r}, Python: {plain}"
    if any(not isinstance(each, Exception) and same(found, each) for each in plain):
        return None
    if isinstance(found, EndlessError) and all(isinstance(each, Exception) for each in plain):
        return None  # what is after the error of a run is traced before
    if any(_OF_LENGTHS.search(str(each)) for each in plain):
        return None  # an error in what nobody uses, which a run leaves out
    if any(_LIST_IS_ARRAY.search(str(each)) for each in plain):
        return None
    return "other result", f"{found!r}, Python: {plain}"


#: What Python's numbers refuse, and NumPy's, which they may be, do not.
_LIST_IS_ARRAY = re.compile(r"unsupported operand.* '(float|list|tuple)' and '(float|list|tuple)'")
#: Errors of indices and lengths that the run knows.
_OF_LENGTHS = re.compile(r"out of (range|bounds)|broadcast|shape|dimension")


def _inside(error):
    """The kind of an error and where in nbta it came up."""
    place, trace = "", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename.startswith(OWN):
            place = code.co_qualname
        trace = trace.tb_next
    return f"{type(error).__name__} in {place}"


def same(found, expected):
    """Whether two results are one, numbers up to rounding; a list may be an array."""
    if isinstance(expected, dict):
        keys = isinstance(found, dict) and list(map(str, found)) == list(map(str, expected))
        return keys and all(same(found[key], expected[key]) for key in expected)
    if isinstance(expected, list | tuple):
        long = isinstance(found, list | tuple | np.ndarray) and len(found) == len(expected)
        return long and all(map(same, found, expected))
    if hasattr(expected, "__dict__") and not callable(expected):
        parts = (dict(sorted(getattr(each, "__dict__", {}).items())) for each in (found, expected))
        return same(*parts)
    if isinstance(expected, str | bytes) or expected is None:
        return found == expected and type(found) is type(expected)
    one, other = np.asarray(found), np.asarray(expected)
    if one.shape != other.shape:
        return False
    if other.dtype.kind not in "fciub" or one.dtype.kind not in "fciub":
        return bool(np.all(one == other))
    return bool(np.allclose(one, other, rtol=1e-9, atol=1e-12, equal_nan=True))


def shrunk(given, fails, seconds=60.0):
    """A smaller program that fails in the same way."""
    end, before = time.monotonic() + seconds, None
    while before != repr(given) and time.monotonic() < end:
        before = repr(given)
        for smaller in _smaller(given):
            if time.monotonic() > end:
                break
            try:
                compile(smaller.source(), "?", "exec")
            except SyntaxError:
                continue
            if fails(smaller):
                given = smaller
                break
    return given


def _smaller(given):
    for values in given.values if len(given.values) > 1 else ():
        yield Program(given.nodes, given.result, [values])
    for nodes in _without_one(given.nodes):
        yield Program(nodes, given.result, given.values)
    if given.result != "x":
        yield Program(given.nodes, "x", given.values)


def _without_one(nodes):
    for k, node in enumerate(nodes):
        yield nodes[:k] + nodes[k + 1 :]
        for j, block in enumerate(node.blocks):
            yield nodes[:k] + block + nodes[k + 1 :]
            for inner in _without_one(block):
                blocks = [*node.blocks[:j], inner, *node.blocks[j + 1 :]]
                yield [*nodes[:k], Node(node.head, blocks, node.between), *nodes[k + 1 :]]
