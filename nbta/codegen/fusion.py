"""Loops over all items that do several operations at once.

Elementwise operations wait in a group for each shape, until somebody needs a result in memory. Then
one loop does them all; what only the group itself uses stays in registers. A `Fold` says how items
along an axis become one: sums, products, the greatest and the least. `Elementwise` is the rule of
an operation that goes item by item.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from nbta.codegen.values import (
    Block,
    Lazy,
    Scalar,
    is_known,
    numba_name,
    product,
    times,
    total,
    typed,
)
from nbta.codegen.windows import Window, added, clear, strides_of
from nbta.loops import (
    Attribute,
    Call,
    Constant,
    Expression,
    Name,
    assign,
    both,
    call,
    do,
    otherwise,
    over,
    select,
    when,
)
from nbta.loops.nodes import ONE, ZERO, as_node
from nbta.tuning import CACHE_LINE, FUSED_STEPS, PREFETCH_STRETCH, SHORT_RUN, SUM_BLOCK

#: Infinity in generated code.
INF = Name("inf")


def as_it_is(item: Expression) -> Expression:
    """The rule that changes nothing."""
    return item


def calling(name: str | Expression) -> Callable:
    """The rule that calls a function."""
    function = Name(name) if isinstance(name, str) else name
    return lambda *items: Call(function, items)


def numpy_name(name: str) -> Attribute:
    """A function of NumPy's."""
    return Attribute(Name("np"), name)


@dataclass(frozen=True)
class Fold:
    """A reduction's parts.

    Attributes
    ----------
    start : Expression
        Of nothing at all.
    step : callable
        Of the result so far and another one.
    inner : callable
        The same in a run of items that are folded one after another in a register.
    item, back : callable
        What becomes of an item before such a run, and of the run's result.
    wide : str
        Numba's name of what holds the results of runs.
    """

    start: Expression
    step: Callable
    inner: Callable
    wide: str
    item: Callable = as_it_is
    back: Callable = as_it_is

    @property
    def first(self) -> Expression:
        """With what a run of items begins."""
        return self.item(self.start)

    @property
    def of_few(self) -> "Fold":
        """For runs that are written out: items as they are, which need no way there and back."""
        return replace(self, item=as_it_is, back=as_it_is)


def total_of(dtype) -> Fold:
    """Sums: of floats in any order, and float32 in blocks whose sums are added as float64."""
    start = typed(0, dtype)
    if dtype.kind == "f":
        return Fold(start, operator.add, calling("fast_add"), "float64")
    return _in_order(start, operator.add, dtype)


def product_of(dtype) -> Fold:
    """Products, in order."""
    return _in_order(typed(1, dtype), operator.mul, dtype)


def _in_order(start, step, dtype):
    return Fold(start, step, lambda *both: typed(step(*both), dtype), numba_name(dtype))


def extreme_of(dtype, sign) -> Fold:
    """The greatest (sign 1) or the least (-1), or NaN where there is one."""
    step, name = calling("maximum" if sign > 0 else "minimum"), numba_name(dtype)
    start = typed(farthest(dtype, -sign), dtype)
    if dtype.kind != "f":
        return Fold(start, step, step, name)
    order = calling("order_up" if sign > 0 else "order_down")
    return Fold(start, step, step, name, order, calling("from_order"))


def farthest(dtype, sign) -> Expression:
    """The greatest or the least of a dtype's numbers."""
    if dtype.kind == "f":
        return INF if sign > 0 else -INF
    if dtype.kind == "b":
        return Constant(sign > 0)
    info = np.iinfo(dtype)
    return Constant(info.max) if sign > 0 else as_node(info.min + 1) - 1


@dataclass
class _Sum:
    """A sum, or another fold, over some axes: into a scalar, or into a block."""

    tensor: object
    item: Expression
    dtype: np.dtype
    target: object  # name of a scalar's variable, or a block
    kept: tuple  # axis by axis, whether it stays; the result's dimension where the run tells
    fold: Fold
    finish: Callable | None = None  # what becomes of a result after the loop

    @property
    def value(self):
        """What stands for the sum after the loop."""
        return self.target if isinstance(self.target, Block) else Scalar(self.target, self.dtype)

    @property
    def may_keep_all(self) -> bool:
        """Whether the run tells of some axes if they stay, and all others do."""
        return all(map(_may_stay, self.kept)) and any(
            isinstance(kept, Expression) for kept in self.kept
        )

    @property
    def alone(self) -> Expression:
        """A result that is of one item."""
        item = typed(self.fold.step(self.fold.start, self.item), self.dtype)
        return typed(self.finish(item), self.dtype) if self.finish else item


@dataclass(frozen=True)
class _Put:
    """What replaces items of a buffer, or is added to them, axis by axis of the group."""

    tensor: object
    name: Name
    target: Window
    adds: bool

    def line(self, *indices):
        """The statement for the item at an index an axis."""
        at, dtype = self.target.at(*indices), self.target.base.dtype
        item = added(at, self.name, dtype) if self.adds else self.name
        return assign(at, typed(item, dtype))


@dataclass(eq=False)
class Group:
    """Operations on items of one shape that wait to be written down.

    Attributes
    ----------
    dimensions : tuple of Expression
    reads : set of Base
        Buffers that the loop will read.
    cheap : dict
        By a step's name: what LLVM makes vector instructions of, in place of the step's, and an
        integer that is not 0 for an item that it is not for.
    """

    dimensions: tuple[Expression, ...]
    steps: list = field(default_factory=list)  # of (name, expression)
    results: dict = field(default_factory=dict)  # of tensor: (name, dtype)
    reads: set = field(default_factory=set)
    loads: dict = field(default_factory=dict)
    sums: list = field(default_factory=list)
    cheap: dict = field(default_factory=dict)
    puts: list = field(default_factory=list)
    flushed: bool = False

    def load(self, code, block: Block) -> Name:
        """The name of an item of a block in the loop."""
        key = (block.base, block.offset, block.dimensions)
        if key not in self.loads:
            self.loads[key] = code.name("x"), block, _pattern(code, self, block)
            self.reads.add(block.base)
        return self.loads[key][0]

    def repeat(self, code, item: Expression, tensor) -> None:
        """A number that all items of a tensor are: loops that read it need no memory for that."""
        code.everywhere[tensor] = item
        self.step(code, item, tensor)

    def step(self, code, item: Expression, tensor, cheap=None) -> None:
        """Another operation, whose result stands for a tensor."""
        name = code.name("t")
        self.steps.append((name, item))
        if cheap is not None:
            self.cheap[name] = cheap
        self.results[tensor] = name
        code.bind(tensor, Lazy(self, name, tensor.dtype, self.dimensions))

    def kept(self, code, item: Expression, dtype) -> Name:
        """The name of a number of the loop that stands for no tensor."""
        name = code.name("t")
        self.steps.append((name, typed(item, dtype)))
        return name

    def add_sum(self, tensor, item, dtype, target, kept, fold, finish) -> None:
        """A fold of items over the axes that are not kept, for a tensor."""
        self.sums.append(_Sum(tensor, item, dtype, target, tuple(kept), fold, finish))

    def flush(self, code) -> None:
        """Write the loop down; results that others need get memory."""
        if self.flushed:
            return
        self.flushed = True
        done = [item.op for item in self.results] + [item.tensor.op for item in self.sums]
        with code.part(done):
            self._write(code, [op.type for op in done])

    def _write(self, code, done):
        stores = []  # while it is pending, nothing takes the buffers that it reads
        put = {item.tensor for item in self.puts}
        for tensor, name in self.results.items():
            if code.needs_items(tensor) > (tensor in put):
                block = self._place(code, tensor)
                code.flush_readers(block.base)
                code.bind(tensor, block)
                stores.append((block, name))
        code.pending.pop(self.dimensions, None)
        for item in self.sums:
            code.bind(item.tensor, item.value)
        if stores or self.sums or self.puts:
            code.loops.append(f"({', '.join(map(str, self.dimensions))}): {', '.join(done)}")
            if self.sums or self.puts or not self._clears(code, stores):
                self._loop(code, stores)

    def _loop(self, code, stores):
        """The loops; twice where the run tells that some sums are over nothing, as shapes agree."""
        found = [item for item in self.sums if item.may_keep_all]
        if not found:
            return _Nest(code, self, stores).write()
        pairs = [zip(item.kept, self.dimensions, strict=True) for item in found]
        agree = {k.equals(e): None for pair in pairs for k, e in pair if isinstance(k, Expression)}
        rest = [item for item in self.sums if not item.may_keep_all]
        alike = [*stores, *((item.target, item.alone) for item in found)]
        with code.nest(when(both(*agree))):
            _Nest(code, replace(self, sums=rest), alike).write()
        with code.nest(otherwise()):
            _Nest(code, self, stores).write()
        return None

    def _clears(self, code, stores):
        """Fill with zeros what is all zeros; whether that was everything."""
        zeros, items = {ZERO, Constant(False)}, dict(self.steps)
        zeros |= {name for (_, data), (name, _) in code.numbers.items() if not any(data)}
        if not all(items[name] in zeros for _, name in stores):
            return False
        for block, _ in stores:
            clear(code, block)
        return True

    def _place(self, code, tensor):
        """Where a result goes; where the loop reads it must be item by item, and no other may.

        Those that read it are written down before, but one that waits for this to be written: of
        two that exchange their buffers, one needs another.
        """
        block = code.destination(tensor, tensor.dtype, self.dimensions)
        reads = [(b, pattern) for _, b, pattern in self.loads.values() if b.base is block.base]
        same = all(b.offset == block.offset and set(p) <= {"full"} for b, p in reads)
        others = (group for group in code.pending.values() if group is not self and group.flushed)
        taken = any(block.base in group.reads for group in others)
        return block if same and not taken else code.new(tensor.dtype, self.dimensions)


def _pattern(code, group, block):
    """Axis by axis of the group: ``"full"``, ``"one"``, or the dimension that the run compares."""
    missing = len(group.dimensions) - len(block.dimensions)
    found = ["one"] * missing
    for ours, theirs in zip(group.dimensions[missing:], block.dimensions, strict=True):
        if code.same(ours, theirs):
            found.append("full")
        else:
            found.append("one" if theirs == ONE else theirs)
    return tuple(found)


class _Nest:
    """Loops over merged axes."""

    def __init__(self, code, group, stores):
        self.code, self.group, self.stores = code, group, stores
        patterns = {key: pattern for key, (_, _, pattern) in group.loads.items()}
        kept = [_kept_pattern(s) for s in group.sums]
        self.axes = _merged(group.dimensions, [*patterns.values(), *kept], apart=bool(group.puts))
        self.whole = [list(range(len(axis))) for axis in self.axes]
        self.twice = bool(group.cheap) and self._may_repeat()

    def _may_repeat(self):
        """Whether a run of items can be gone through again, as it changes nothing that it reads."""
        read = {block.base for _, block, _ in self.group.loads.values()}
        adds = any(self._keeps_last(item) for item in self.group.sums)
        adds = adds or any(item.adds for item in self.group.puts)
        return not adds and read.isdisjoint(block.base for block, _ in self.stores)

    def write(self):
        """The loops, with results of sums after them."""
        for item in self.group.sums:
            self._begin(item)
        self._level(0, [])
        for item in self.group.sums:
            self._end(item)

    def _begin(self, s):
        if not isinstance(s.target, Block):
            self.code.add(assign(_wide(s), call(s.fold.wide, s.fold.start)))
        elif s.fold.start == typed(0, s.dtype):
            clear(self.code, s.target)
        else:
            self._each(s.target, lambda _: s.fold.start)

    def _end(self, s):
        finish = s.finish or as_it_is
        if not isinstance(s.target, Block):
            self.code.add(assign(s.target, typed(finish(_wide(s)), s.dtype)))
        elif s.finish:
            self._each(s.target, lambda item: typed(finish(item), s.dtype))

    def _each(self, block, rule):
        """Give each item of a block what a rule makes of it."""
        index = self.code.name("i")
        with self.code.nest(over(index, product(block.dimensions))):
            self.code.add(assign(block.at(index), rule(block.at(index))))

    def _level(self, depth, indices):
        code = self.code
        if depth >= len(self.axes) - 1:
            self._innermost(indices)
            return
        index = code.name("i")
        length = product(self._dimensions(depth))
        with code.nest(over(index, length)):
            self._level(depth + 1, [*indices, index])

    def _dimensions(self, depth):
        return [self.group.dimensions[axis] for axis in self.axes[depth]]

    def _innermost(self, indices):
        code, sums = self.code, self.group.sums
        length = product(self._dimensions(-1)) if self.axes else ONE
        offsets = {key: self._offset(block, pattern, indices)
                   for key, (_, block, pattern) in self.group.loads.items()}  # fmt: skip
        targets = [self._offset(b, ("full",) * len(self.group.dimensions), indices)
                   for b, _ in self.stores]  # fmt: skip
        inner = [s for s in sums if not self._keeps_last(s)]
        for s in inner if is_known(length) and length.value <= SHORT_RUN else ():
            s.fold = s.fold.of_few
        places = [self._sum_offset(s, indices) for s in sums]
        partial = {id(s): code.name("p") for s in inner}
        index, ahead = code.name("i"), self._ahead()
        block = PREFETCH_STRETCH if ahead else SUM_BLOCK
        long = not (is_known(length) and length.value <= SUM_BLOCK)
        if ahead or ((inner or self.twice) and long):
            start = code.name("k")
            with code.nest(over(start, 0, length, block)):
                for base, there, count in ahead:
                    self._ask(base, there, start, call("min", start + count, length))
                self._run(indices, index, (start, call("min", start + block, length)),
                          offsets, targets, partial, places)  # fmt: skip
        else:
            self._run(indices, index, (length,), offsets, targets, partial, places)

    def _ahead(self):
        """What the loop asks for while it reads a row; another one need not ask again."""
        blocks = [block for _, block, _ in self.group.loads.values()]
        asked = [(b.base, self.code.ahead.pop((b.base, b.offset), None)) for b in blocks]
        return [(base, *found) for base, found in asked if found is not None]

    def _ask(self, base, there, start, stop):
        """Bring the lines of items nearer, one by one."""
        index = self.code.name("j")
        with self.code.nest(over(index, start, stop, CACHE_LINE // base.dtype.itemsize)):
            self.code.add(do("fetch", base.name, total(there, index)))

    def _run(self, indices, index, span, offsets, targets, partial, places):
        """Once by what LLVM makes vectors of, and all over if that is not for some item."""
        code, given = self.code, (offsets, targets, partial, places)
        if self.twice:
            missed = code.name("q")
            code.add(assign(missed, typed(0, np.int64)))
            self._pass(indices, index, span, *given, missed)
            with code.nest(when(missed.differs(0))):
                self._pass(indices, index, span, *given)
        else:
            self._pass(indices, index, span, *given)
        for s, place in zip(self.group.sums, places, strict=True):
            if id(s) in partial:
                self._add_partial(s, partial[id(s)], place)

    def _pass(self, indices, index, span, offsets, targets, partial, places, missed=None):
        code = self.code
        for s in self.group.sums:
            if id(s) in partial:
                code.add(assign(partial[id(s)], s.fold.first))
        with code.nest(over(index, *span)):
            self._items(index, offsets, targets, partial, places, missed)
            for item in self.group.puts:
                code.add(item.line(*self._along(indices, index)))

    def _along(self, indices, index):
        """The index of each axis, where each is walked by itself."""
        found = dict.fromkeys(range(len(self.group.dimensions)), ZERO)
        found.update(zip((axis for (axis,) in self.axes), [*indices, index], strict=False))
        return found.values()

    def _step_lines(self, name, item, missed):
        if missed is None or name not in self.group.cheap:
            return [assign(name, item)]
        cheap, outside = self.group.cheap[name]
        return [assign(name, cheap), assign(missed, missed | outside)]

    def _items(self, index, offsets, targets, partial, places, missed):
        code = self.code
        for key, (name, block, pattern) in self.group.loads.items():
            step = self._step(pattern)
            code.add(assign(name, block.base.name[total(offsets[key], times(index, step))]))
        for name, item in self.group.steps:
            code.add(*self._step_lines(name, item, missed))
        for s, place in zip(self.group.sums, places, strict=True):
            if id(s) in partial:
                name = partial[id(s)]
                code.add(assign(name, s.fold.inner(name, s.fold.item(s.item))))
            else:
                step = self._step(_kept_pattern(s))
                at = s.target.base.name[total(place, times(index, step))]
                code.add(assign(at, typed(s.fold.step(at, s.item), s.dtype)))
        for (block, name), offset in zip(self.stores, targets, strict=True):
            code.add(assign(block.base.name[total(offset, index)], name))

    def _add_partial(self, s, partial, place):
        partial = s.fold.back(partial)
        if isinstance(s.target, Block):
            at = s.target.base.name[place]
            self.code.add(assign(at, typed(s.fold.step(at, partial), s.dtype)))
        else:
            name = _wide(s)
            self.code.add(assign(name, call(s.fold.wide, s.fold.step(name, partial))))

    def _keeps_last(self, s):
        return bool(self.axes) and all(_may_stay(s.kept[axis]) for axis in self.axes[-1])

    def _sum_offset(self, s, indices):
        if not isinstance(s.target, Block):
            return ZERO
        return self._offset(s.target, _kept_pattern(s), indices)

    def _step(self, pattern):
        """By how much the innermost index moves in a block."""
        if not self.axes:
            return ZERO
        kinds = {pattern[axis] for axis in self.axes[-1]}
        if kinds == {"full"}:
            return ONE
        return ZERO if kinds == {"one"} else self._dynamic(kinds.pop())

    def _dynamic(self, dimension):
        return typed(dimension.differs(1), np.int64)

    def _offset(self, block, pattern, indices):
        """Where a run over the innermost axes begins in a block."""
        terms = [block.offset]
        for depth, index in enumerate(indices):
            kinds = {pattern[axis] for axis in self.axes[depth]}
            if kinds == {"one"}:
                continue
            later = [a for axes in self.axes[depth + 1 :] for a in axes if pattern[a] != "one"]
            lengths = [self._length(pattern[a], a) for a in later]
            stride = product(lengths)
            if kinds != {"full"}:
                stride = times(self._dynamic(next(iter(kinds))), stride)
            terms.append(times(index, stride))
        offset = total(*terms)
        if offset == ZERO or (offset == block.offset and type(offset) is Name):
            return offset
        name = self.code.name("o")
        self.code.add(assign(name, offset))
        return name

    def _length(self, kind, axis):
        return self.group.dimensions[axis] if kind == "full" else kind


def _kept_pattern(item):
    """`_pattern` of what a sum goes into."""
    return tuple(
        kept if isinstance(kept, Expression) else "full" if kept else "one" for kept in item.kept
    )


def _may_stay(kept):
    return isinstance(kept, Expression) or kept


def _wide(item):
    """The variable in which a sum that is a scalar is made."""
    return Name(f"{item.target.id}w")


def _merged(dimensions, patterns, apart):
    """Axes in runs that are walked as one: all operands go along with all of a run, or none.

    With ``apart`` each axis is a run of its own.
    """
    runs = []
    for axis, dimension in enumerate(dimensions):
        if dimension == ONE:
            continue
        kinds = [pattern[axis] for pattern in patterns]
        simple = not apart and all(isinstance(kind, str) for kind in kinds)
        if runs and simple and kinds == runs[-1][1]:
            runs[-1][0].append(axis)
        else:
            runs.append(([axis], kinds if simple else None))
    return [axes for axes, _ in runs]


class Elementwise:
    """The rule of an operation that goes item by item.

    Parameters
    ----------
    rule : callable
        ``rule(*items)`` gives an item of the result by those of the inputs.
    kinds : str
        Kinds of dtypes that it is for; others are left to Python.
    is_plain : bool
        Whether the rule gives the dtype of its operands: as sums do, without numbers of its own.

    Attributes
    ----------
    in_vectors : callable or None
        ``in_vectors(op, items)`` of a rule that has a call: an item that LLVM makes vectors of, and
        an integer that is 0 for the items that this is for; or None.
    """

    in_vectors = None

    def __init__(self, rule, kinds="biufc", *, is_plain=False):
        self._rule, self._kinds, self.is_plain = rule, kinds, is_plain

    def __call__(self, code, op):
        """Let the operation wait in the group of its shape; scalars are computed at once."""
        result = op.outputs[0]
        if not self.takes(op):
            code.call_python(op)
            return
        if result.spec.rank == 0:
            items = [code.scalar(tensor) for tensor in op.inputs]
            items = self.shortened(op, items, lambda item: code.local(item, result.dtype).item)
            name = code.name("t")
            code.add(assign(name, self._typed(op, items, code)))
            code.bind(result, Scalar(name, result.dtype))
            return
        dimensions = broadcast(code, [(code.dimensions(t), t.spec.shape) for t in op.inputs])
        group = joined(code, op.inputs, dimensions)
        if len(group.steps) >= FUSED_STEPS:
            group.flush(code)
            group = joined(code, op.inputs, dimensions)
        items = [item_of(code, group, tensor) for tensor in op.inputs]
        items = self.shortened(op, items, lambda item: group.kept(code, item, result.dtype))
        group.step(code, self._typed(op, items, code), result, self._cheap(op, items))

    def shortened(self, op, items, keep):
        """Items that the rule may be given at once, with ``keep(item)`` for names."""
        return items

    def takes(self, op) -> bool:
        """Whether it has code for the dtypes of an operation."""
        return all(tensor.dtype.kind in self._kinds for tensor in op.inputs)

    def _typed(self, op, items, code):
        """An item of the right dtype, by a cast where the rule may give another one."""
        dtype = op.outputs[0].dtype
        alike = all(tensor.dtype == dtype for tensor in op.inputs)
        item = self.item(op, items, code)
        return item if self.is_plain and alike and dtype.kind in "fc" else typed(item, dtype)

    def _cheap(self, op, items):
        if self.in_vectors is None:
            return None
        found = self.in_vectors(op, items)
        return found and (typed(found[0], op.outputs[0].dtype), found[1])

    def item(self, op, items, code):
        """An item of the result."""
        return self._rule(*items)


class ElementwiseOf(Elementwise):
    """One whose rule looks at the operation: ``rule(op, *items)``."""

    def item(self, op, items, code):
        """An item of the result."""
        return self._rule(op, *items)


def by_kind(truth, number, kinds="biufc"):
    """A rule for truth values, and another one for numbers."""
    return ElementwiseOf(
        lambda op, *items: (truth if op.inputs[0].dtype.kind == "b" else number)(*items), kinds
    )


def complex_only(rule, other):
    """A rule for complex numbers, and another one for real numbers."""
    return ElementwiseOf(lambda op, item: (rule if _is_complex(op) else other)(item))


def parts_of(op, item):
    """The real numbers that an item of an operation's input is made of."""
    return (item.real, item.imag) if _is_complex(op) else (item,)


def _is_complex(op):
    return op.inputs[0].dtype.kind == "c"


class Elementary(Elementwise):
    """Calls a function of floats, for which records say what it is in NumPy.

    Parameters
    ----------
    name : str
        What it is called in code: a name in `nbta.kernels.vector_math`, where ``compiled`` is
        None.
    of_complex : str or Expression, optional
        The name of one for complex numbers, as in `nbta.kernels.complex_math`. Numba's functions of
        complex numbers that give other values than NumPy's for NaN and infinities, or lose digits,
        are not used.
    compiled : callable, optional
        A function that Numba compiles.
    """

    def __init__(self, name, of_complex=None, *, compiled=None):
        # Those of `vector_math` and `complex_math` give the dtype of their argument.
        plain = compiled is None and (of_complex is None or isinstance(of_complex, str))
        kinds = "f" if of_complex is None else "fc"
        super().__init__(calling(name), kinds, is_plain=plain)
        self.name, self.compiled = name, compiled
        self._of_complex = None if of_complex is None else calling(of_complex)

    def item(self, op, items, code):
        """An item of the result."""
        return (self._of_complex if _is_complex(op) else self._rule)(*items)


def joined(code, tensors, dimensions) -> Group:
    """The group of a shape; other groups that its operands wait in are written down."""
    dimensions = tuple(map(code.canonical, dimensions))
    for tensor in tensors:
        value = code.values[tensor]
        if not isinstance(value, Lazy) or tensor in code.everywhere:
            continue
        if value.group.dimensions != dimensions or value.item is None:
            value.group.flush(code)
    if dimensions not in code.pending:
        if not any(_has(code, tensor, dimensions) for tensor in tensors):  # which is in memory
            code.refuse_uncountable(dimensions)
        code.pending[dimensions] = Group(dimensions)
    return code.pending[dimensions]


def _has(code, tensor, dimensions):
    return tuple(map(code.canonical, code.dimensions(tensor))) == dimensions


def item_of(code, group, tensor) -> Expression:
    """An item of an operand in a group's loop."""
    if tensor in code.everywhere:
        return code.everywhere[tensor]
    value = code.values[tensor]
    if isinstance(value, Lazy) and value.group is group:
        return value.item
    value = code.value(tensor)
    return value.item if isinstance(value, Scalar) else group.load(code, value)


def put_at_once(code, tensor, dimensions, target: Window, *, adds: bool) -> bool:
    """Let the loop that makes a tensor's items replace those of a window, or add to them.

    False, and nothing is done, where no loop of just these items waits, or it reads the buffer.
    """
    value = code.values[tensor]
    if not isinstance(value, Lazy) or value.item is None or value.group.flushed:
        return False
    group, wanted = value.group, tuple(map(code.canonical, dimensions))
    if tuple(map(code.canonical, group.dimensions)) != wanted or target.base in group.reads:
        return False
    group.puts.append(_Put(tensor, value.item, target, adds))
    group.flush(code)
    return True


def broadcast(code, operands) -> tuple[Expression, ...]:
    """Dimensions of a result; the run fails where they do not fit.

    ``operands`` are pairs of dimensions and what the graph knows of them.
    """
    rank = max(len(dimensions) for dimensions, _ in operands)
    padded = [
        ((ONE,) * (rank - len(e)) + tuple(e), (1,) * (rank - len(e)) + tuple(known))
        for e, known in operands
    ]
    return tuple(
        _dimension(code, [(dimensions[axis], known[axis]) for dimensions, known in padded])
        for axis in range(rank)
    )


def _dimension(code, found):
    """The dimension that several meet in."""
    wide = [(e, known) for e, known in found if e != ONE]
    distinct = list({code.canonical(e): known for e, known in wide}.items())
    if len(distinct) <= 1:
        return distinct[0][0] if distinct else ONE
    proven = [e for e, known in distinct if known is not None]
    for other in proven[1:]:
        code.equate(proven[0], other)
    unproven = [e for e, known in distinct if known is None]
    if not unproven:
        return code.canonical(proven[0])
    first, rest = (proven[0], unproven) if proven else (unproven[0], unproven[1:])
    for other in rest:
        merged = code.derived(select(first.equals(1), other, first))
        code.fail_if(both(other.differs(1), other.differs(merged)))
        first = merged
    return first


def spread(code, dimensions, rank, wanted) -> list[Expression]:
    """How far apart items are along axes that broadcasting may repeat."""
    padded = (ONE,) * (rank - len(dimensions)) + tuple(dimensions)
    steps = strides_of(code, padded)
    return [_step(code, *pair, step) for *pair, step in zip(padded, wanted, steps, strict=True)]


def _step(code, dimension, wanted, step):
    if dimension == ONE:
        return ZERO
    if code.same(dimension, wanted):
        return step
    if is_known(dimension):
        code.equate(dimension, wanted)
        return step
    code.fail_if(both(dimension.differs(1), dimension.differs(wanted)))
    return code.derived(select(dimension.differs(1), step, 0), "k")


def reduction(code, op, kept, dimensions) -> None:
    """Sum items of an input over the axes that are not kept, in the loop that makes them."""
    result = op.outputs[0]
    fold_items(code, op.inputs[0], result, kept, dimensions, total_of(result.dtype))


def fold_items(code, tensor, result, kept, dimensions, fold, finish=None) -> None:
    """Fold items of a tensor over the axes that are not kept, in the loop that makes them."""
    group = joined(code, [tensor], code.dimensions(tensor))
    item = typed(item_of(code, group, tensor), result.dtype)
    fold_in(code, group, item, result, kept, dimensions, fold, finish)


def fold_in(code, group, item, result, kept, dimensions, fold, finish=None) -> None:
    """Fold an item of a group's loop, for a result with some dimensions."""
    dtype = result.dtype
    if not dimensions:
        target = code.name("s")
    else:
        target = Block(code.new(dtype, dimensions, "s").base, tuple(dimensions))
    code.bind(result, Lazy(group, None, dtype, tuple(dimensions)))
    group.add_sum(result, item, dtype, target, kept, fold, finish)
