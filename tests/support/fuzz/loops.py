"""Loops, branches and arrays of random programs; with `menu`'s expressions in their bodies."""

import numpy as np

from .menu import GRAPH
from .program import Statement

DEEPEST = 2


def _short(g):
    return g.random.randint(1, 5 - g.depth)


def _checkpoint(g):
    return g.among(", checkpoint='online'", ", checkpoint=2", "", "", "")


def _iterations(g, scope):
    """How many iterations, as text: a literal, or an integer of the program."""
    return g.among(g.integer(scope) + " % 4", "0", "1", "3", "4", "n1")


def _states(g, scope):
    """Names of one to three values that a loop carries."""
    found = [g.number(scope) for _ in range(g.random.randint(1, 3))]
    return [name for name in found if name is not None]


def _params(g, scope, names):
    return {g.name("h"): scope.values[name] for name in names}


def _carry(g, params):
    return lambda inner: ", ".join(g.like(inner, name) for name in params)


def while_loop(g, scope):
    """A counted loop, or one that stops early, of some values."""
    if g.depth >= DEEPEST or not (first := _states(g, scope)):
        return 0
    i, params = g.name("i"), _params(g, scope, first)
    result = _carry(g, params)
    body = g.body(
        scope, {i: np.int64(1), **params}, _short(g), lambda inner: f"{i} + 1, {result(inner)}"
    )
    iterations, limit = _iterations(g, scope), ""
    given = ", ".join([i, *params])
    test = f"{i} < {iterations}"
    if g.chance(0.3):
        test = f"nbta.logical_and({test}, nbta.sum({next(iter(params))}) < 1.137)"
    elif g.chance(0.2):
        limit = f", maximum_iterations={g.among(0, 2, 5)}"
    names = [g.name() for _ in params]
    line = (
        f"{g.name()}, {', '.join(names)} = nbta.while_loop(lambda {given}: {test}, {body.name}, "
        f"(np.int64(0), {', '.join(first)}){limit}{_checkpoint(g)})"
    )
    return int(g.add(scope, Statement(tuple(names), (line,), (), [body])))


def _row(value):
    """A row to try a body with, of a value that may have none."""
    value = np.asarray(value)
    return value[0] if len(value) else np.zeros(value.shape[1:], value.dtype)[()]


def scan(g, scope):
    """A scan over one or two values of equal length, which gives results."""
    xs = g.number(scope, least=1)
    first = _states(g, scope)
    if g.depth >= DEEPEST or xs is None or not first:
        return 0
    carry, params, row = g.name("c"), _params(g, scope, first), g.name("r")
    rows = {row: _row(scope.values[xs])}
    result = _carry(g, params)

    def returns(inner):
        y = g.number(inner) or row
        return f"({result(inner)},), {y}"

    body = g.body(scope, {**params, **rows}, _short(g), returns)
    body.params = (carry, row)
    unpack = Statement(tuple(params), (f"{', '.join(params)}, = {carry}",), (None,) * len(params))
    body.statements.insert(0, unpack)
    lasts, ys = [g.name() for _ in params], g.name()
    reverse = g.among(True, False)
    line = (
        f"({', '.join(lasts)},), {ys} = nbta.scan({body.name}, ({', '.join(first)},), {xs}, "
        f"reverse={reverse}{_checkpoint(g).replace('online', 'sqrt')})"
    )
    return int(g.add(scope, Statement((*lasts, ys), (line,), (), [body])))


def map_fn(g, scope):
    """A function of each row."""
    xs = g.number(scope, least=1)
    if g.depth >= DEEPEST or xs is None:
        return 0
    row = g.name("r")
    params = {row: _row(scope.values[xs])}
    body = g.body(scope, params, _short(g), lambda inner: g.number(inner) or row)
    threads = g.among("", "", ", parallel_iterations=2", ", checkpoint=2")
    name = g.name()
    line = f"{name} = nbta.map_fn({body.name}, {xs}{threads})"
    return int(g.add(scope, Statement((name,), (line,), (), [body])))


def fold(g, scope):
    """A fold from either end."""
    xs, first = g.number(scope, least=1), g.number(scope)
    if g.depth >= DEEPEST or xs is None:
        return 0
    acc, row = g.name("h"), g.name("r")
    params = {acc: scope.values[first], row: _row(scope.values[xs])}
    body = g.body(scope, params, _short(g), lambda inner: g.like(inner, acc))
    name = g.name()
    line = f"{name} = nbta.{g.among('foldl', 'foldr')}({body.name}, {xs}, {first})"
    return int(g.add(scope, Statement((name,), (line,), (), [body])))


def cond(g, scope):
    """One of two or three functions of nothing, or of operands, which give values of one kind."""
    like, by = g.number(scope), g.number(scope, 0)
    if g.depth >= DEEPEST or like is None:
        return 0
    given = [g.number(scope) for _ in range(g.among(0, 0, 1, 2))]
    params = {g.name("o"): scope.values[value] for value in given}
    some = [g.body(scope, params, _short(g), lambda s: g.like(s, like)) for _ in range(3)]
    operands = "".join(f", {value}" for value in given)
    i = g.integer(scope)
    if by is not None and g.chance(0.6):
        some = some[:2]
        call = f"nbta.cond({by} > 0.137, {some[0].name}, {some[1].name}{operands})"
    else:
        call = f"nbta.switch_case({i} % 4, [{', '.join(body.name for body in some)}]{operands})"
    name = g.name()
    return int(g.add(scope, Statement((name,), (f"{name} = {call}",), (), some)))


def array_loop(g, scope):
    """A loop that fills an array and reads what it wrote earlier, or the array of another one."""
    first = g.number(scope)
    if g.depth >= DEEPEST or first is None:
        return 0
    i, h, t, past = g.name("i"), g.name("h"), g.name("t"), g.name("p")
    value = scope.values[first]
    inner = scope.inside({i: np.int64(1), h: value, past: value})
    g.depth += 1
    g.grow(inner, _short(g))
    g.depth -= 1
    back = g.among(f"{i} // 2", f"nbta.maximum({i} - 2, 0)", f"{i}", "0")
    put = g.among(f"{t}.append({h})", f"{t}.write({i} + 1, {h})")
    body = g.body(scope, {}, 0, lambda _: f"{i} + 1, {g.like(inner, h)}, {put}")
    body.params = (i, h, t)
    reading = Statement((past,), (f"{past} = {t}.read({back})",), (None,))
    body.statements = [reading, *inner.statements]
    iterations = _iterations(g, scope)
    start, last, array = g.name("t"), g.name(), g.name("t")
    wanted, names = _views(g, array)
    lines = (
        f"{start} = nbta.TensorArray({g.dtype!r}, 1, dynamic_size=True, clear_after_read=False)",
        f"{g.name()}, {last}, {array} = nbta.while_loop(lambda {i}, {h}, {t}: {i} < {iterations}, "
        f"{body.name}, (np.int64(0), {first}, {start}.write(0, {first})){_checkpoint(g)})",
        *wanted,
    )
    return int(g.add(scope, Statement((last, *names), lines, (), [body])))


def _views(g, array):
    """Lines that read an array as a whole, and their names."""
    names = [g.name() for _ in range(3)]
    texts = [
        f"{array}.stack()", f"{array}.read({array}.size() // 2)",
        f"{array}.gather([0, 0])", f"{array}.gather(nbta.stack([{array}.size() - 1, 0]))",
    ]  # fmt: skip
    chosen = g.random.sample(texts, 2)
    return [f"{n} = {text}" for n, text in zip(names, chosen, strict=False)], names[:2]


def array_outside(g, scope):
    """An array that is written at once and read in a loop, at places that move."""
    rows, first = g.number(scope, least=1), g.number(scope)
    if g.depth >= DEEPEST or rows is None or not len(scope.values[rows]):
        return 0
    t, i, h, p = g.name("t"), g.name("i"), g.name("h"), g.name("p")
    params = {i: np.int64(0), h: scope.values[first], p: _row(scope.values[rows])}
    body = g.body(scope, params, _short(g), lambda inner: f"{i} + 1, {g.like(inner, h)}")
    body.params = (i, h)
    place = g.among(f"{i} % {t}.size()", f"{t}.size() - 1", f"({i} * 2) % {t}.size()")
    body.statements.insert(0, Statement((p,), (f"{p} = {t}.read({place})",), (None,)))
    last = g.name()
    size = f"nbta.shape({rows})[0]"
    lines = (
        f"{t} = nbta.TensorArray({g.dtype!r}, {size}, clear_after_read=False).unstack({rows})",
        f"{g.name()}, {last} = nbta.while_loop(lambda {i}, {h}: {i} < {_iterations(g, scope)}, "
        f"{body.name}, (np.int64(0), {first}){_checkpoint(g)})",
    )
    return int(g.add(scope, Statement((last,), lines, (), [body])))


def items(g, scope):
    """A loop that reads items of arrays that it carries, replaces some, and adds to others."""
    first = g.number(scope, least=1)
    if g.depth >= DEEPEST or first is None or not len(scope.values[first]):
        return 0
    i, a, b, row = g.name("i"), g.name("h"), g.name("h"), g.name("r")
    value = scope.values[first]
    inner = scope.inside({i: np.int64(1), a: value, b: value, row: _row(value)})
    g.depth += 1
    g.grow(inner, _short(g))
    g.depth -= 1
    reading = _named(row, f"{a}[{_place(g, i, a)}]")
    changes, last = _changes(g, inner, i, a, row)
    after = g.among((last, b), (last, b), (b, last), (last, a), (last, f"{a} * 0.5"))
    body = g.body(scope, {}, 0, lambda _: f"{i} + 1, {', '.join(after)}")
    body.params = (i, a, b)
    body.statements = [reading, *inner.statements, *changes]
    lasts = [g.name(), g.name()]
    start = g.among(first, f"nbta.tanh({first})")
    line = (
        f"{g.name()}, {', '.join(lasts)} = nbta.while_loop(lambda {i}, {a}, {b}: {i} < "
        f"{_iterations(g, scope)}, {body.name}, (np.int64(0), {start}, {first}){_checkpoint(g)})"
    )
    return int(g.add(scope, Statement(tuple(lasts), (line,), (), [body])))


def _place(g, i, array):
    """An index of a row in any iteration, as text; one in a while is out of range."""
    return g.among("0", "-1", *[f"{i} % nbta.shape({array})[0]"] * 3, f"-1 - {i} // 2", i)


def _changes(g, inner, i, array, row):
    """Statements that change an array, and the name of the last one."""
    found, last = [], array
    for _ in range(g.random.randint(1, 3)):
        new, there = g.name("h"), _place(g, i, array)
        value = g.like(inner, row)
        text = g.among(
            f"nbta.set_item({last}, {there}, {value})",
            f"nbta.add_item({last}, {there}, {value})",
            f"nbta.add_item({last}, {there}, 0.5 * {array}[{_place(g, i, array)}])",
            f"nbta.set_item({last}, {there}, {last}[{_place(g, i, array)}])",
            f"nbta.set_item({last}, np.s_[1:], {last}[:-1])",
            f"nbta.add_item({last}, np.s_[:{i}], {row})",
            f"nbta.cond(nbta.sum({row}) > 0.137, lambda: nbta.set_item({last}, {there}, {value}), "
            f"lambda: {g.among(last, f'nbta.add_item({last}, 0, {row})')})",
        )
        found.append(_named(new, text))
        last = new
    return found, last


def _named(name, text):
    """A statement whose values are different in each iteration."""
    return Statement((name,), (f"{name} = {text}",), (None,))


def in_place(g, scope):
    """A value under another name, changed by an operator in place."""
    name, v = g.number(scope), g.name()
    other = name and g.partner(scope, name)
    if not g.depth or other is None:
        return 0
    change = g.among(
        f"+= {other}", f"-= 0.4 * {other}", f"*= {other}", "/= 2.0", "*= nbta.sin({v})"
    )
    # A NumPy scalar's [...] is an array that nothing knows of: a named error in plain calls.
    view = f"{name}[...]" if np.ndim(scope.values[name]) else name
    start = g.among(name, view, f"nbta.tanh({name})", f"{name} * 0.7")
    after = g.name()
    lines = (f"{v} = {start}", f"{after} = {v}", f"{v} {change.format(v=v)}")
    return int(g.add(scope, Statement((v, after), lines, ())))


def nest(g, scope):
    """A scan or fold, mostly in another one."""
    return g.among(scan, scan, map_fn, fold)(g, scope)


LOOPS = [
    *(while_loop, while_loop, scan, scan, map_fn, fold, cond, items, items),
    *(array_loop, array_outside),
]
LOOP = [*GRAPH, *LOOPS, *LOOPS]
#: Functions that change what they got, in place.
MUTATING = [*GRAPH[:: max(1, len(GRAPH) // 12)], *[in_place] * 15, *LOOPS, cond]
#: Loops in loops, of which most run no iteration.
NESTED = [*GRAPH[:: max(1, len(GRAPH) // 12)], *[nest] * 12]
