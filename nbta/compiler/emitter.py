"""From a program to one function: operations, loops, branches, and calls of Python."""

import ctypes
import operator
from collections import Counter, defaultdict
from contextlib import contextmanager
from dataclasses import replace
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from nbta.codegen.code import Code, NotCompiledError
from nbta.codegen.fusion import Elementwise
from nbta.codegen.values import NUMBERS, TABLE, Block, Scalar, Transposed, is_known, product, typed
from nbta.compiler import array_code
from nbta.compiler.access_sets import OF_ITEMS, indices_of, is_within
from nbta.compiler.loop_ends import settled
from nbta.compiler.prefetch import look_ahead, read_backwards
from nbta.compiler.promoted_items import Promoted, carried, promotable
from nbta.compiler.short_counted_loops import is_short_counted_loop
from nbta.compiler.stencil_windows import Windows, windows_of
from nbta.compiler.stencils import Rows, stencils
from nbta.compiler.sums import Sums, free_sums, goes_in_vectors, is_free_of_loops
from nbta.graph.graph import everything
from nbta.graph.operation import DATA, FLOW, HANDLE, Operation, Tensor
from nbta.graph.order import before, ordered
from nbta.graph.views import Branch, Loop, is_body_of_branch, place_of
from nbta.loops import (
    Break,
    Constant,
    Evaluate,
    Name,
    Pass,
    assign,
    both,
    call,
    call_at,
    comment,
    do,
    either,
    leave,
    loop_while,
    negated,
    otherwise,
    over,
    refuse,
    select,
    when,
)
from nbta.loops.nodes import ZERO, as_node
from nbta.ops.core.arithmetic import add, multiply, subtract
from nbta.ops.core.dispatch import CONSTANT, PARAMETER
from nbta.ops.core.filling import FILL
from nbta.ops.core.shaping import BROADCAST_TO, CAST, SHAPE, SIZE
from nbta.ops.indexing.items import GETITEM
from nbta.ops.loops.branch import CASE
from nbta.ops.loops.iteration_counts import is_integer, iterations_on_entry, plain_limit
from nbta.ops.loops.loop import WHILE
from nbta.progress import bar
from nbta.runtime.intrinsics import ANSWER, INTERRUPTED, OK, PYTHON, WATCH
from nbta.runtime.plain import HINT
from nbta.tuning import (
    COUNTED_ITERATIONS,
    INDEX_CHECK_OPERATIONS,
    LARGE_BODY,
    PARTED_ITERATIONS,
    UNWATCHED_TURNS,
    VERY_LARGE_BODY,
    WATCHED_ITERATIONS,
)


def emit_python_call(code, op) -> None:
    """Hand the inputs over, call Python, take the results."""
    inputs = [_hand_over(code, tensor) for tensor in op.inputs if tensor.kind != FLOW]
    outputs = [
        (tensor, code.word(1 + (tensor.spec.rank or 0)))
        for tensor in op.outputs
        if tensor.kind != FLOW
    ]
    code.add(comment(f"{op.name}, in Python"))
    _add_call(code, Call(op, inputs, [word for _, word in outputs]))
    for tensor, word in outputs:
        _take(code, op, tensor, word)
    for tensor in op.outputs:
        if tensor.kind == FLOW:
            code.bind(tensor, Scalar(ZERO, tensor.dtype))


class Call:
    """An operation that the reference executor's rule computes.

    Attributes
    ----------
    op : Operation
    inputs : list of (int, dtype, int)
        Word, dtype and rank of what is handed over: its address, or the item itself in two words
        where the rank is -1; then its dimensions.
    outputs : list of int
        Words of the results: address, dimensions.
    """

    def __init__(self, op, inputs, outputs):
        self.op, self.inputs, self.outputs = op, inputs, outputs

    def run(self, work) -> None:
        """Compute the results, and say among the words where they are."""
        op, words = self.op, work.words
        given = iter([handed(words, *entry) for entry in self.inputs])
        arguments = [np.float32(0) if t.kind == FLOW else next(given) for t in op.inputs]
        step = (work.step,) if op.record.effects else ()
        arguments = [arguments] if op.record.takes_list else arguments
        with np.errstate(all="ignore"):
            results = op.record.evaluate(*step, *arguments, **op.attrs)
        several = len(op.outputs) != 1 or op.record.several
        pairs = zip(results if several else (results,), op.outputs, strict=True)
        kept = [
            np.array(value, tensor.dtype, order="C", copy=None)
            for value, tensor in pairs
            if tensor.kind != FLOW
        ]
        wanted = [tensor.spec.rank for tensor in op.outputs if tensor.kind != FLOW]
        if [array.ndim for array in kept] != wanted:  # such as what comes of an empty array
            raise ValueError(f"{op.name} gives other ranks")
        work.kept[self] = kept
        for word, array in zip(self.outputs, kept, strict=True):
            words[word] = array.ctypes.data
            words[word + 1 : word + 1 + array.ndim] = array.shape


class ShowBar:
    """The begin of a loop with a progress bar.

    Attributes
    ----------
    op : Operation
    inputs : dict
        By place among the loop's inputs, where an integer is handed over.
    word : int
        For the address of the counter of iterations.
    """

    def __init__(self, op, inputs, word):
        self.op, self.inputs, self.word = op, inputs, word

    def run(self, work) -> None:
        """Show the bar, until `HideBar` or the end of the call."""
        loop = Loop(self.op)
        given = {place: handed(work.words, *entry) for place, entry in self.inputs.items()}
        values = [given.get(place) for place in range(len(self.op.inputs))]
        total = iterations_on_entry(loop.cond, loop.body, loop.count, values)
        shown = bar(loop.progress, total)
        counter = shown.__enter__()
        work.bars.append((shown, counter))
        work.words[self.word] = counter.ctypes.data


class HideBar:
    """The end of a loop with a progress bar."""

    def run(self, work) -> None:
        """Let the bar show that the loop is done."""
        work.bars.pop()[0].__exit__(None, None, None)


@contextmanager
def progress_bar(code, op):
    """Lines that show a bar around a loop; gives the pointer to its counter, or None."""
    if Loop(op).progress is None:
        yield None
        return
    scalars = {
        place: _hand_over(code, tensor)
        for place, tensor in enumerate(op.inputs)
        if tensor.kind == DATA and tensor.dtype.kind in "iu" and tensor.spec.rank == 0
    }
    word, base = code.word(), code.base(np.int64, "bar")
    _add_call(code, ShowBar(op, scalars, word))
    code.add(code.pointer(base, TABLE[word]))
    yield base.name
    _add_call(code, HideBar())


def _add_call(code, call):
    answer = TABLE[ANSWER]
    called = call_at(TABLE[PYTHON], len(code.calls))
    code.add(assign(answer, INTERRUPTED), Evaluate(called))
    code.add(refuse(answer.differs(OK), answer))
    code.calls.append(call)


def handed(words, word, dtype, rank):
    """A value that generated code handed over."""
    if rank < 0:
        return words[word : word + 2].view(np.uint8)[: dtype.itemsize].view(dtype)[0]
    shape = tuple(int(n) for n in words[word + 1 : word + 1 + rank])
    count = int(np.prod(shape))
    if not count:
        return np.empty(shape, dtype)
    items = (ctypes.c_char * (count * dtype.itemsize)).from_address(int(words[word]))
    return np.frombuffer(items, dtype).reshape(shape).copy()[()]


def _hand_over(code, tensor):
    value = code.value(tensor)
    if isinstance(value, Scalar):
        word = code.word(2)
        base = code.base(value.dtype, "h")
        code.add(code.pointer(base, Name("w") + 8 * word), assign(base.name[0], value.item))
        return word, value.dtype, -1
    word = code.word(1 + len(value.dimensions))
    code.add(assign(TABLE[word], value.address))
    code.add(
        *(assign(TABLE[word + 1 + k], dimension) for k, dimension in enumerate(value.dimensions))
    )
    return word, value.dtype, len(value.dimensions)


def _take(code, op, tensor, word):
    spec = tensor.spec
    source = code.base(spec.dtype, "y")
    code.add(code.pointer(source, TABLE[word]))
    if spec.rank == 0 and code.is_number(spec.dtype):
        code.bind(tensor, code.local(source.name[0], spec.dtype))
        return
    dimensions = tuple(
        as_node(known) if type(known) is int else code.variable(TABLE[word + 1 + axis])
        for axis, known in enumerate(spec.shape)
    )
    block = code.result(op, spec.dtype, dimensions, tensor.index)
    code.copy_to(block, Block(source, dimensions))


def operations(body) -> list:
    """What a body needs, in order."""
    return reads_first(ordered({tensor.op for tensor in body.outputs}))


def reads_first(operations) -> list:
    """Operations in another order: what reads a tensor comes before what changes it in place.

    Only operations that depend on their inputs alone change places.
    """
    changes = [(op, changed) for op in operations for changed in [_changed(op)] if changed]
    if not changes:
        return operations
    readers = _readers(operations, {tensor for _, changed in changes for tensor in changed})
    places = {op: place for place, op in enumerate(operations)}
    for change, changed in changes:
        place = places[change]
        late = [op for tensor in changed for op in readers[tensor] if places[op] > place]
        if late:
            operations = _moved_ahead(operations, place, late)
            places = {op: place for place, op in enumerate(operations)}
    return operations


def _changed(op) -> list:
    """The tensors that an operation, also a loop or a branch, may change in place."""
    if op.record.changes:
        return op.inputs[:1]
    if op.record is WHILE:
        variables = (v for v in Loop(op).variables() if v.parameter.spec.rank and not v.is_kept)
        return [v.first for v in variables if v.parameter.spec.kind == DATA]
    if op.record is CASE:
        case = Branch(op)
        return [case.captured[place] for place in _changed_places(case).values()]
    return []


def _readers(operations, tensors):
    """By tensor, the operations that read it."""
    readers = {tensor: [] for tensor in tensors}
    for op in operations:
        for tensor in tensors.intersection(op.inputs):
            readers[tensor].append(op)
    return readers


def _moved_ahead(operations, place, late):
    """The operations with some of them, and what these need, ahead of a place, as far as can be."""
    after = dict.fromkeys(operations[place + 1 :])
    fixed = {operations[place]}  # what cannot come before it
    for op in after:
        if not op.record.pure or not fixed.isdisjoint(before(op)):
            fixed.add(op)
    wanted = {op for op in late if op not in fixed}
    for op in reversed(after):
        if op in wanted:
            wanted.update(o for o in before(op) if o in after)
    ahead = [op for op in after if op in wanted]
    rest = [op for op in after if op not in wanted]
    return [*operations[:place], *ahead, operations[place], *rest]


def emit_while(code, op) -> None:
    """A loop: variables have places of their own, which each iteration's end fills again."""
    loop = Loop(op)
    cond, body = loop.cond, loop.body
    code.flush()
    variables, captured = _taken(code, loop)
    code.tiles += filter(None, [op.facts.tiling])
    code.joint += [op.name] if op.facts.has_adjoint else []
    code.add(comment(op.name))
    iterations = _iterations(code, loop, variables, captured)
    code.count(body, iterations)
    if iterations is not None:
        code.sums.update(free_sums(loop))
    size = None if iterations is None else _size(code, loop)
    between = _between(code, loop, size)
    rows = None if iterations is None else _rows(code, loop, variables, captured, between)
    code.turned.append([])
    short_counted = (
        iterations is not None and rows is None and is_short_counted_loop(loop, code.counts)
    )
    alone = size is not None and rows is None and between is None and size < VERY_LARGE_BODY
    promoted = _promoted(code, loop, variables, captured) if alone else None
    if promoted is not None:
        each = promoted.each_iteration(body, iterations, _watch_word(code))
    else:
        asked = _Asked() if iterations is None else _asked(code, loop, size, rows)
        each = _each_iteration(code, body, iterations, rows, short_counted, asked)
    with progress_bar(code, op) as counter, each:
        for variable in variables:
            variable.enter()
        if iterations is None:
            _bind(code, cond, variables, captured)
            code.body(operations(cond), cond.outputs)
            code.add(leave(negated(code.scalar(cond.outputs[0])), Break()))
            code.end(cond.outputs)
            code.flush()
        _bind(code, body, variables, captured)
        for variable, tensor in zip(variables, body.outputs, strict=True):
            variable.offer(tensor)
        with code.variables([v.value for v in variables if v.may_change]):
            code.body(operations(body), body.outputs)
        _assign(code, variables, body)
        if iterations is None:
            code.add(do("watch", "w", _watch_word(code), variables[0].value.item))
        if counter is not None:
            code.add(do("tick", counter))
    for turned in code.turned.pop():
        _put_back(code, *turned)
    for variable, tensor in zip(variables, op.outputs, strict=True):
        code.bind(tensor, variable.value)


def _rows(code, loop, variables, captured, between):
    """The rows of the loop's stencils; None if it has none, or that is not proven to do."""
    found = stencils(loop, code.counts, code.sums, between)
    if not found or not all(variables[each.variable.place].may_change for each in found):
        return None
    _bind(code, loop.body, variables, captured)
    first = [
        [[_index_on_entry(code, index, loop.body) for index in line] for line in each.first]
        for each in found
    ]
    if any(None in line for lines in first for line in lines):
        return None
    blocks = [variables[each.variable.place].value for each in found]
    counts = code.counts if between is None else between.counts
    windows = windows_of(loop, found, counts, code.sums)
    if windows is None:
        rows = Rows(code, found, first, blocks)
    else:
        numbers = [(variables[place].value, step) for place, step in windows.numbers]
        tapes = _tapes(code, loop.body) if numbers else []
        rows = Windows(code, found, first, blocks, windows, numbers, tapes)
    code.keep_in_rows(loop.body, rows)
    return rows


def _tapes(code, body):
    """What a loop reads from the last item to the first, and the index in its first iteration."""
    found = read_backwards(code, body).items()
    places = [(array, _on_entry_of(code, index, body)) for array, index in found]
    return [(array, first) for array, first in places if first is not None]


def _promoted(code, loop, variables, captured) -> Promoted | None:
    """The loop's items that stay in registers; None for none."""
    items, moving = (
        [each for each in found(loop, code.counts) if variables[each.variable.place].may_change]
        for found in (promotable, carried)
    )
    if not (items or moving):
        return None
    _bind(code, loop.body, variables, captured)
    blocks = {each.variable: variables[each.variable.place].value for each in (*items, *moving)}
    promoted = Promoted(
        code, items, moving, lambda index: _on_entry_of(code, index, loop.body), blocks
    )
    if not promoted.is_plain:
        return None
    code.promote(loop.body, promoted)
    return promoted


class _Asked(NamedTuple):
    """Names of truth values that tell the two versions of a loop apart.

    In the version where none holds nothing asks, and iterations may be vector instructions.

    Attributes
    ----------
    guards : tuple of str
        Bounds guards, whether indices may be outside.
    ends : str or None
        Whether an iteration is at an end of the loop, of `nbta.compiler.loop_ends`.
    apart : int
        How many iterations each end has.
    """

    guards: tuple[str, ...] = ()
    ends: str | None = None
    apart: int = 0


def _size(code, loop):
    """How large the code of an iteration is, with what looks at indices; None with loops in it."""
    if not is_free_of_loops(loop):
        return None
    operations = list(everything(loop.body))
    items = (op for op in operations if op.record in OF_ITEMS)
    checked = sum(not is_within(code.counts, op) for op in items)
    return len(operations) + INDEX_CHECK_OPERATIONS * checked


def _between(code, loop, size):
    """What holds between the ends of a loop, where these are to be apart; None elsewhere."""
    if size is None or size >= VERY_LARGE_BODY:
        return None
    between = settled(loop, code.counts)
    if between is not None:
        code.settle(loop.body, between, code.name("u"))
    return between


def _asked(code, loop, size, rows) -> _Asked:
    """What a loop with two versions asks; nothing for one that has a single version."""
    body, counts = loop.body, code.counts
    ends, apart = code.ends_of(body)
    if rows is not None:
        return _Asked((), ends, apart)
    if size is None:
        return _Asked()
    branches = any(op.record is CASE for op in everything(body))
    large = LARGE_BODY < size < VERY_LARGE_BODY and not _goes_along_arrays(body)
    pays = ends is not None or large
    may = branches or size > LARGE_BODY
    if not (pays or (may and goes_in_vectors(loop, counts, branches=True))):
        return _Asked()
    guards = tuple(code.name("u") for _ in range(1 + branches))
    code.call_guards(body, *guards)
    return _Asked(guards, ends, apart)


def _goes_along_arrays(body) -> bool:
    """Whether iterations have loops along arrays, beside which looks at indices take no time."""
    shapes = (op.outputs[0].spec.shape for op in everything(body) if op.record.elementwise)
    return any(shape is None or any(type(n) is not int for n in shape) for shape in shapes)


def _index_on_entry(code, index, body):
    return as_node(index) if type(index) is int else _on_entry_of(code, index, body)


@contextmanager
def _each_iteration(code, body, iterations, rows, short_counted, asked):
    """The lines of an iteration: in stretches where it is known how many there will be.

    Short loops that run often are not divided, which takes as long as a few iterations. Where
    versions ask for ends, the first iterations, those between, and the last are loops of their own.
    """
    around = code.lines
    if asked.ends is not None:
        part, count, apart = code.name("p"), code.name("n"), asked.apart
        whole = iterations < PARTED_ITERATIONS
        code.in_parts(over(part, select(whole, 1, 3)))
        between = select(part.equals(1), iterations - 2 * apart, apart)
        code.add(
            assign(count, select(whole, iterations, between)),
            assign(asked.ends, either(whole, part.differs(1))),
        )
        iterations = count
        code.count(body, iterations)
    if rows is not None:
        with rows.each_iteration(iterations, _watch_word(code), asked.ends):
            yield
        code.lines = around
        return
    if short_counted:
        with code.nest(when(iterations > UNWATCHED_TURNS)):
            code.add(do("watch", "w", _watch_word(code), UNWATCHED_TURNS))
        lines = [over("_", iterations)]
    else:
        start, word, lines = code.name("i"), _watch_word(code), [loop_while(True)]
        if iterations is not None:
            lines = [
                over(start, 0, iterations, WATCHED_ITERATIONS),
                do("watch", "w", word, start + (WATCHED_ITERATIONS - 1)),
                over("_", start, call("min", start + WATCHED_ITERATIONS, iterations)),
            ]
    names = (*asked.guards, *([] if asked.ends is None else [asked.ends]))
    with code.loop(*lines, versions=names):
        for guard in asked.guards:
            code.heads[-1].add(assign(guard, iterations > COUNTED_ITERATIONS))
        yield
    code.lines = around


def _iterations(code, loop, variables, captured):
    """The variable with the number of iterations; None where only the run tells.

    Arrays that the loop fills are told how many slots that will be.
    """
    limit = plain_limit(loop.cond, loop.body, loop.count)
    if limit is None or not (is_integer(limit.low) and is_integer(limit.high)):
        return None
    given = [*(variable.value for variable in variables), *captured]
    low, high = (_on_entry(end, given) for end in (limit.low, limit.high))
    iterations = code.variable(
        call("max", 0, call("int64", high) - call("int64", low) + limit.more)
    )
    for record in array_code.filled(code, loop.body):
        code.add(assign(TABLE[record + HINT], iterations + 1))
    array_code.reserve(code, loop, iterations)
    return iterations


def _on_entry_of(code, tensor, body):
    """An integer of a body as in the first iteration; None where that is not plain."""
    tensor = _in_loop(tensor)
    op = tensor.op
    settled = code.integer_between(tensor)
    if settled is not None:
        parts = [_on_entry_of(code, t, body) for t in settled if isinstance(t, Tensor)]
        return None if None in parts else _summed(parts, settled[1])
    if op.record is CAST and _is_captured(op.inputs[0], body):
        return code.scalar(op.inputs[0])
    if tensor.dtype != np.int64 or tensor.spec.rank != 0:
        return None  # another one wraps around elsewhere
    if op.record is CONSTANT:
        return as_node(int(op.attrs["value"]))
    if op.record is PARAMETER and tensor.graph is body:
        return code.scalar(tensor)
    parts = [_on_entry_of(code, t, body) for t in op.inputs] if op.record in _SIGNS else [None]
    return None if None in parts else _SIGNS[op.record](*parts)


def _summed(items, sign):
    """A number, and another one on top with a sign, or none."""
    one, other = items
    return one if not sign else one + other if sign > 0 else one - other


def _in_loop(tensor):
    """A tensor of a body of a loop that branches in it capture, perhaps through others."""
    while tensor in tensor.graph.sources and is_body_of_branch(tensor.graph):
        tensor = tensor.graph.sources[tensor]
    return tensor


def _is_captured(tensor, body):
    """Whether an integer of a body comes from around it."""
    inside = tensor.op.record is PARAMETER and tensor.graph is body
    return inside and tensor.dtype.kind == "i" and place_of(tensor) >= Loop(body.owner).count


def unread(op: Operation) -> list[Tensor]:
    """The inputs of which an operation reads no items in memory, as often as it has them."""
    if op.record in (SHAPE, SIZE):
        return op.inputs[:1]
    rule = op.record.emit
    if not isinstance(rule, Elementwise) or not rule.takes(op) or not _computable(op):
        return []
    return [t for t in op.inputs if t.op.record in (FILL, BROADCAST_TO) and _repeats(t.op)]


def _repeats(op):
    """Whether all items of a result are one number."""
    return op.outputs[0].spec.rank and not op.inputs[op.record is FILL].spec.rank


_SIGNS = {
    add.record: operator.add,
    subtract.record: operator.sub,
    multiply.record: operator.mul,
}


def _on_entry(end, given):
    known = end.op.record is CONSTANT
    return as_node(int(end.op.attrs["value"])) if known else given[place_of(end)].item


def _watch_word(code):
    """The first of the words with what a loop needs to see signals."""
    if code.watch_word is None:
        code.watch_word = code.word(len(WATCH))
        code.initial += [(code.watch_word + k, name) for k, name in enumerate(WATCH)]
    return code.watch_word


def _taken(code, loop):
    """Places for variables, and what is captured.

    What is captured is looked up again, as a part of a buffer that a variable takes is copied.
    """
    for tensor in loop.captured:
        _captured(code, tensor)
    variables = _variables(code, loop)
    return variables, [_captured(code, tensor) for tensor in loop.captured]


def _captured(code, tensor):
    """What a loop captures; a transpose is made once, before it."""
    if isinstance(code.values[tensor], Transposed):
        return code.value(tensor)
    return code.kept(tensor)


def _bind(code, body, variables, captured):
    values = [variable.value for variable in variables] + captured
    for parameter, value in zip(body.inputs, values, strict=True):
        code.bind(parameter, value)


def _assign(code, places, body):
    """What a body gives takes the places of what was there, all at once."""
    code.flush()
    pairs = [
        (place, code.value(tensor)) for place, tensor in zip(places, body.outputs, strict=True)
    ]
    pairs = [(place, value) for place, value in pairs if not place.holds(value)]
    pairs = _swapped(code, pairs)
    for _, value in pairs:
        code.note_move(body, value)
    own = [place.value for place, _ in pairs]
    names = {value.item for value in own if isinstance(value, Scalar)}
    bases = {value.base for value in own if isinstance(value, Block)}
    saved = [_saved(code, value, names, bases) for _, value in pairs]
    for (place, _), value in sorted(
        zip(pairs, saved, strict=True), key=lambda item: item[0][0].is_view
    ):
        place.take(value)
    _measure(code, dict(pair for (place, value) in pairs for pair in place.lengths(value)))
    code.end(body.outputs)


def _saved(code, value, names, bases):
    """A value that stays when places of some names and buffers change."""
    if isinstance(value, Scalar):
        return code.local(value.item, value.dtype) if value.item in names else value
    if value.base not in bases:
        return value
    kept = code.new(value.dtype, value.dimensions)
    code.copy_to(kept, value)
    return kept


def _measure(code, lengths):
    """Let variables for lengths be others, all at once; some may be each other's."""
    kept = {}
    for theirs in lengths.values():
        if theirs in lengths:
            kept[theirs] = code.name("n")
            code.add(assign(kept[theirs], theirs))
    code.add(*(assign(mine, kept.get(theirs, theirs)) for mine, theirs in lengths.items()))


def _variables(code, loop):
    """Places for variables; those that change places in each iteration have buffers that can."""
    rotating, found, taken = _rotating(loop), [], set()
    for place, variable in enumerate(loop.variables()):
        alike = code.same_shapes.first_alike(variable)
        like = found[alike] if alike < place else None
        made = _Variable(code, variable, place in rotating, like, taken)
        found.append(made)
        if isinstance(made.value, Block):
            taken.add(made.value.base)
    for each in found:
        each.look_again()
    return found


def _rotating(loop):
    """Places of the variables that iterations let change places.

    These take each other's values in turn; or each takes the one of the next, and the last one
    what an iteration makes.
    """
    following = [
        _changed_from(loop.body, variable.following) if variable.parameter.spec.rank else None
        for variable in loop.variables()
    ]
    takers = Counter(following)
    found: set = set()
    for place in range(loop.count):
        several, other = [place], following[place]
        while other is not None and other not in several and other < loop.count:
            several.append(other)
            other = following[other]
        begins = other == place or (other is None and takers[place] == 0)
        if len(several) > 1 and begins and all(takers[other] == 1 for other in several[1:]):
            found.update(several)
    return found


def _turned(code, pairs):
    """Exchange the buffers of places that only change places; the rest of the pairs.

    Where the last of them gets what the iteration made in its second buffer, the first one's buffer
    becomes the second one of the last.
    """
    places = {place: value for place, value in pairs if place.may_rotate is not None}
    whose = {p: next((o for o in places if o.has(v)), None) for p, v in places.items()}
    taken = {other for other in whose.values() if other is not None}
    for place in whose:
        several, other = [place], whose[place]
        while other is not None and other not in several:
            several.append(other)
            other = whose[other]
        blocks, last = [each.value for each in several], several[-1]
        if other is None and place not in taken and last.is_second(places[last]):
            blocks.append(last.second)
        elif other is not place:
            continue
        if len(blocks) > 1:
            _turn(code, blocks, len(several))
            return _turned(code, _rest(pairs, several, blocks))
    return pairs


def _turn(code, blocks, count):
    """Let each name stand for the next buffer, and the last for the first, until `_put_back`.

    The items of the first ``count`` are needed after the loop. No access moves past here, as LLVM
    takes names to be of memory that lies apart. What names stand for before the loop is kept, as
    a loop around may let them change places too, so that their words do not tell.
    """
    bases = [block.base for block in blocks]
    homes = [code.name("z") for _ in bases]
    code.rooms[-1].add(
        *(assign(z, call("address", b.name, 0)) for z, b in zip(homes, bases, strict=True))
    )
    kept = code.name("z")
    code.add(assign(kept, bases[0].name))
    for base, name in zip(bases, [*(base.name for base in bases[1:]), kept], strict=True):
        code.add(code.pointer(base, call("address", name, 0)))
    code.add(do("fence"))
    code.turned[-1].append((bases, homes, blocks[0].dimensions, count))


def _put_back(code, bases, homes, dimensions, count):
    """After a loop, bring items to the buffers that the names stood for before it."""
    i = code.name("i")

    def one(base, address):
        # of one scope here: what one name leaves is where the items of another one go
        known = replace(base, name=code.name("z"), number=bases[0].number)
        code.add(code.pointer(known, address))
        return known.name

    with code.nest(when(call("address", bases[0].name, 0).differs(homes[0]))):
        back = [one(base, home) for base, home in zip(bases[:count], homes, strict=False)]
        there = [one(base, call("address", base.name, 0)) for base in bases[:count]]
        items = [code.name("t") for _ in there]
        with code.nest(over(i, product(dimensions))):
            code.add(*(assign(t, name[i]) for t, name in zip(items, there, strict=True)))
            code.add(*(assign(name[i], t) for t, name in zip(items, back, strict=True)))
        code.add(*map(code.pointer, bases, homes))
        code.add(do("fence"))


def _swapped(code, pairs):
    """Exchange two buffers, item by item, where each is to have what the other has; the rest."""
    pairs = _turned(code, pairs)
    blocks = [(place, value) for place, value in pairs if isinstance(value, Block)]
    for place, (one, value) in enumerate(blocks):
        for other, back in blocks[place + 1 :]:
            alike = all(map(code.same, value.dimensions, back.dimensions))
            if alike and one.has(back) and other.has(value):
                i, item = code.name("i"), code.name("t")
                with code.nest(over(i, product(one.value.dimensions))):
                    code.add(
                        assign(item, one.value.at(i)), assign(one.value.at(i), other.value.at(i))
                    )
                    code.add(assign(other.value.at(i), item))
                places = [one, other]
                return _swapped(code, _rest(pairs, places, [place.value for place in places]))
    return pairs


def _rest(pairs, exchanged, blocks):
    """The pairs without some places that have changed buffers: what they held is elsewhere now.

    Each of the blocks has what the next one had, and the last what the first one had.
    """
    now = {
        block.base: before.base
        for before, block in zip([blocks[-1], *blocks[:-1]], blocks, strict=True)
    }

    def found(value):
        base = now.get(value.base) if isinstance(value, Block) else None
        return value if base is None else replace(value, base=base)

    return [(place, found(value)) for place, value in pairs if place not in exchanged]


class _Place:
    """Where a value is brought at the end of a body."""

    is_view = False
    #: Whether the body may change the buffer that is here before its end.
    may_change = False
    #: The buffer, where it may be exchanged for another one.
    may_rotate = None
    #: Whether all that is brought here has the shape of what is here.
    keeps_shape = False
    #: Another block for what is made while what is here is still needed, once there is one.
    second = None

    def __init__(self, code):
        self._code = code

    def offer(self, tensor):
        """Let a tensor be computed here, once nobody needs what is here."""
        if not self.may_change:
            return
        block, code = self.value, self._code

        def place(dimensions, there=None):
            if not (self.keeps_shape or all(map(code.same, dimensions, block.dimensions))):
                return None
            if there is not None and self.is_second(there):
                return None  # both buffers change places at the end: no item moves
            if code.is_free(block.base):
                return block
            return self.beside() if there is None else None

        code.destinations[tensor] = place
        for made in _made_there(tensor):  # what becomes it may be made here already
            code.destinations.setdefault(made, place)

    def beside(self):
        """The block beside the one that is here, if there may be one, and nobody needs it."""
        return

    def lengths(self, value):
        """Pairs of variables for lengths, and what they become with a value."""
        return ()

    def is_second(self, value):
        """Whether a value is the whole block beside the one that is here."""
        made = self.second
        return (
            made is not None
            and isinstance(value, Block)
            and (value.base, value.offset) == (made.base, made.offset)
            and all(map(self._code.same, value.dimensions, made.dimensions))
        )

    def has(self, value):
        """Whether a value is the whole block of items that is here."""
        own = self.value
        blocks = isinstance(value, Block) and isinstance(own, Block) and not self.is_view
        return (
            blocks
            and (value.base, value.offset) == (own.base, own.offset)
            and all(map(self._code.same, value.dimensions, own.dimensions))
        )


class _Variable(_Place):
    """A variable of a loop, in a local variable or in a buffer of its own."""

    #: A tensor that the body only reads, where it is.
    _read = None

    def __init__(self, code, variable, rotates, like, taken):
        super().__init__(code)
        parameter, following, first = variable.parameter, variable.following, variable.first
        spec = parameter.spec
        self._is_flow, self._array = spec.kind == FLOW, None
        value = code.value(first)
        if self._is_flow:
            self.value = value
            return
        if isinstance(value, Scalar):
            self.value = code.local(value.item, spec.dtype, "v")
            return
        self._fixed = _keeps_shape(variable) or code.same_shapes.keeps(variable)
        if variable.is_kept:
            self._read, self.value = first, value
            return
        found = array_code.kept_in_slots(code, parameter.graph, following, first)
        if found is not None and self._fixed:
            self._array, place = found
            self._following = following
            self.value = Block(self._array.data, value.dimensions, code.variable(place, "v"))
            return
        dimensions = value.dimensions
        if not self._fixed:
            dimensions = like.value.dimensions if like else tuple(map(code.variable, dimensions))
        rotates = rotates and self._fixed
        stays = self._fixed and not rotates
        if stays and code.takes(first, value):
            self.value = value
            return
        rule = code.destinations.get(variable.last) if stays and code.level else None
        block = rule(value.dimensions) if rule is not None else None
        if block is None or block.base in taken:
            block = code.new(spec.dtype, value.dimensions, "v", anew=rotates)
        if stays:
            code.note_start(variable.loop.op, value)
        code.copy_to(block, value)
        self.value = Block(block.base, dimensions)

    def look_again(self):
        """Find what the body only reads; it was copied if another variable takes its buffer."""
        if self._read is not None:
            self.value = self._code.value(self._read)

    @property
    def keeps_shape(self):
        """See `_Place.keeps_shape`."""
        return self._fixed

    @property
    def is_view(self):
        """Whether it is a slot of an array: others may still be copied from its old place."""
        return self._array is not None

    @property
    def may_change(self):
        """See `_Place.may_change`."""
        own = isinstance(self.value, Block) and not self.is_view and self._read is None
        return own and self._fixed

    @property
    def may_rotate(self):
        """See `_Place.may_rotate`."""
        base = self.value.base if self.may_change else None
        return base if base is not None and base.loose and base.word is not None else None

    def beside(self):
        """See `_Place.beside`."""
        code, own = self._code, self.value
        if self.second is None:
            if self.may_rotate is None:
                return None
            self.second = code.new(own.dtype, own.dimensions, "v", anew=True)
            self.second.base.loose = False
            code.may_change_in_loop(self.second.base)
        return self.second if code.is_free(self.second.base) else None

    def enter(self):
        """At the beginning of an iteration."""
        for dimension in self.value.dimensions if not getattr(self, "_fixed", True) else ():
            if not is_known(dimension):
                self._code.note_variable(dimension)

    def holds(self, value):
        """Whether a value is in its place already."""
        if isinstance(value, Scalar):
            return self._is_flow or value.item == self.value.item
        same = value.base is self.value.base and value.offset == self.value.offset
        return same and self._fixed

    def take(self, value):
        """The value for the next iteration."""
        code = self._code
        if isinstance(value, Scalar):
            code.add(assign(self.value.item, typed(value.item, value.dtype)))
            return
        if self._array is not None:
            place = code.arrays.stored[self._array, self._following]
            code.add(assign(self.value.offset, place))
            return
        if not self._fixed:
            code.room(self.value.base, value.dimensions)
        code.copy_to(self.value, value)

    def lengths(self, value):
        """See `_Place.lengths`."""
        if isinstance(value, Scalar) or self._array is not None or self._fixed:
            return
        for mine, theirs in zip(self.value.dimensions, value.dimensions, strict=True):
            if mine != theirs:
                yield mine, theirs


def emit_case(code, op) -> None:
    """A branch: each branch puts its results into the same places."""
    code.flush()
    case = Branch(op)
    for tensor in case.captured:
        code.kept(tensor)
    taken = _changed_by_branches(code, case)
    captured = [code.kept(tensor) for tensor in case.captured]  # as of a loop
    sums = {k: code.sums.branches[t] for k, t in enumerate(op.outputs) if t in code.sums.branches}
    summed = set(sums.values())
    for place, tensor in enumerate(case.captured):
        if tensor in summed:  # each branch says what it adds, for a sum of all iterations
            captured[place] = Scalar(code.number(tensor.dtype.type(-0.0)), tensor.dtype)
    branches, index = case.branches, case.index
    results = [_Result(code, tensor, taken.get(k)) for k, tensor in enumerate(op.outputs)]
    taken_one = code.scalar(index)
    for number, branch in enumerate(branches):
        with code.branch(_header(taken_one, index.dtype, number, len(branches))):
            code.add(comment(f"{op.name}: branch {number}"))
            begun = code.lines.size
            for parameter, value in zip(branch.inputs, captured, strict=True):
                code.bind(parameter, value)
            for result, tensor in zip(results, branch.outputs, strict=True):
                result.offer(tensor)
            with code.changing([result.value for result in results if result.may_change]):
                code.body(operations(branch), branch.outputs)
            _assign(code, results, branch)
            if code.lines.size == begun:
                code.add(Pass())
    for place, (result, tensor) in enumerate(zip(results, op.outputs, strict=True)):
        value = result.value
        if place in sums:
            item = call("fast_add", code.scalar(sums[place]), value.item)
            value = code.local(item, tensor.dtype)
        code.bind(tensor, value)


def _changed_by_branches(code, case) -> dict:
    """Blocks of captured tensors that only become results, by the place of those.

    Branches change them in place, or leave them as they are.
    """
    found = {}
    for result, place in _changed_places(case).items():
        tensor = case.captured[place]
        value = code.values[tensor]
        if isinstance(value, Block) and code.takes(tensor, value):
            found[result] = value
    return found


def _changed_places(case) -> dict[int, int]:
    """By the place of a result that is a captured tensor, changed or not, the place of that."""
    found = {}
    for result in range(len(case.op.outputs)):
        places = {_changed_from(branch, branch.outputs[result]) for branch in case.branches}
        if len(places) == 1 and None not in places:
            found[result] = places.pop()
    return found


def changed_from(tensor, uses):
    """The tensors that are changed in place to become one, from the last; nothing else has them.

    Parameters
    ----------
    tensor : Tensor
    uses : Counter
        How often each tensor is an input, or a result.
    """
    made = _made_there(tensor) if uses[tensor] == 1 else ()
    return takewhile(lambda before: uses[before] == 1, made)


def _made_there(tensor):
    """The tensors that are changed in place to become one, if nothing else needs them by then."""
    while True:
        op = tensor.op
        if op.record.changes:
            tensor = op.inputs[0]
        elif op.record is WHILE and tensor.spec.rank:
            variable = Loop(op).variable(tensor.index)
            if _changed_from(variable.loop.body, variable.following) != variable.place:
                return
            tensor = variable.first
        else:
            return
        yield tensor


def _changed_from(body, tensor):
    """The place of the parameter of a body that a tensor is, but for items that were changed."""
    while tensor.op.record is not PARAMETER:
        op, index = tensor.op, tensor.index
        if op.record is WHILE and _keeps_shape(Loop(op).variable(index)):
            tensor = Loop(op).variable(index).first
        elif op.record is CASE:
            ends = {_changed_from(branch, branch.outputs[index]) for branch in Branch(op).branches}
            if len(ends) > 1 or None in ends:
                return None
            tensor = Branch(op).captured[ends.pop()]
        elif op.record.changes:
            tensor = op.inputs[0]
        elif op.record.elementwise and _only_ranked(op) is not None:
            tensor = _only_ranked(op)
        else:
            return None
    return place_of(tensor) if tensor.graph is body and tensor.spec.rank else None


def _only_ranked(op):
    """The one input that is not a scalar, where the result has its shape and dtype; else None."""
    ranked = [tensor for tensor in op.inputs if tensor.spec.rank != 0]
    alike = len(ranked) == 1 and ranked[0].dtype == op.outputs[0].dtype
    return ranked[0] if alike else None


def _keeps_shape(variable):
    """Whether no iteration changes the dimensions of a loop's variable."""
    specs = variable.parameter.spec, variable.following.spec
    alike = specs[0].shape == specs[1].shape
    if alike and None not in specs[0].shape:
        return True
    return alike and _changed_from(variable.loop.body, variable.following) == variable.place


def _header(index, dtype, number, count):
    if count == 1:
        return when(True)
    if number == count - 1:
        return otherwise()
    test = index if dtype.kind == "b" else index.equals(number)
    return otherwise(test) if number else when(test)


class _Result(_Place):
    """Where the branches put one result: in new room, or where the tensor is that they change."""

    def __init__(self, code, tensor, taken):
        super().__init__(code)
        spec = tensor.spec
        self._is_flow, self.may_change = spec.kind == FLOW, taken is not None
        if self.may_change:
            self.value = taken
            return
        if spec.rank == 0 and code.is_number(spec.dtype):
            zero = Constant(False) if spec.dtype.kind == "b" else ZERO
            self.value = code.local(zero, spec.dtype, "r")
            return
        dimensions = tuple(
            as_node(e) if type(e) is int else code.variable(ZERO) for e in spec.shape
        )
        self.value = Block(code.base(spec.dtype, "r", code.word(2)), dimensions)
        code.add(code.pointer(self.value.base, TABLE[self.value.base.word]))

    def holds(self, value):
        """Whether a value is in its place already."""
        if isinstance(value, Scalar):
            return False
        return (
            self.may_change and value.base is self.value.base and value.offset == self.value.offset
        )

    def take(self, value):
        """A branch's result."""
        code = self._code
        if isinstance(value, Scalar):
            code.add(assign(self.value.item, typed(value.item, value.dtype)))
            return
        if self.may_change:
            code.copy_to(self.value, value)
            return
        code.room(self.value.base, value.dimensions)
        code.copy_to(self.value, value)
        pairs = zip(self.value.dimensions, value.dimensions, strict=True)
        code.add(*(assign(mine, theirs) for mine, theirs in pairs if not is_known(mine)))


class Emitter(Code):
    """Writes a program down.

    Attributes
    ----------
    calls : list of Operation
        What runs in Python, one by one.
    copies : list of (Operation, Block, str, Graph)
        What copies a whole tensor in a loop, to change a part of it or to another variable's
        place: the operation, what it copies, why, and the body that does it.
    tiles : list of str
        Which loops over long rows run tile by tile, and why others do not.
    joint : list of str
        Loops whose adjoint iterations run right after themselves.
    """

    def __init__(self, arrays, counts, same_shapes):
        super().__init__()
        self.arrays, self.counts, self.same_shapes = arrays, counts, same_shapes
        self.calls = []
        self.copies: list = []
        self.tiles: list = []
        self.joint: list = []
        self._left = Counter()
        self._unread = Counter()  # those of them that read no items in memory
        self._on_base = defaultdict(set)
        self._writes: dict = {}  # what may be computed in its slot: operation and lines, by tensor
        self._done: set = set()
        self._op = self._graph = None  # the operation which is being written down, and its graph
        self._variables: list = [set()]  # by level, buffers of the variables of the loop around
        self._bound_in: dict = {}  # the lines in which a tensor got its value
        self._counted: dict = {}  # by body, the variable with the number of iterations
        self._guards: dict = {}  # by body, and whether in branches: if indices may be outside
        self._settled: dict = {}  # what is known between ends of a loop, and whether it is at one
        self._between: dict = {}  # by body of a loop whose ends are apart: that, and what is known
        self._checked: set = set()  # by which conditions it is found
        self.sums = Sums.none()  # additions that may change places with others
        self.turned: list = []  # by loop around, blocks of variables that change places
        self.asked: set = set()  # matrices whose rows a loop over tiles asks for, with the tiles
        self._rows: dict = {}  # by addition to an item of a stencil, the rows of its loop
        self._promoted: dict = {}  # by body of a loop, its items that are in registers

    def bind(self, tensor, value) -> None:
        """Say what stands for a tensor."""
        super().bind(tensor, value)
        self._bound_in[tensor] = self.lines
        base = _base(value)
        if base is not None:
            self._on_base[base].add(tensor)

    def uses(self, tensor) -> int:
        """See `Code.uses`."""
        return self._left[tensor]

    def needs_items(self, tensor) -> int:
        """See `Code.needs_items`."""
        return self._left[tensor] - self._unread[tensor]

    def is_within(self, index, x, axis) -> bool:
        """See `Code.is_within`."""
        return self.counts.is_within(index, self.counts.length(x, axis), self._graph)

    def count(self, body, iterations) -> None:
        """Say which variable counts the iterations of a loop; None where only the run tells."""
        self._counted[body] = iterations

    def call_guards(self, body, *names) -> None:
        """Say how the truth values are called of whether indices may be outside.

        Of those in a loop's body, and of those in branches of it. They are apart, as an index that
        is outside where a branch is not taken, such as that of a neighbour at an end, leaves the
        others alone.
        """
        self._guards.update(zip(((body, False), (body, True)), names, strict=False))

    def settle(self, body, between, ends) -> None:
        """Say what is known of a loop where the truth value of its ends does not hold."""
        self._between[body] = (ends, between)
        known = between.truths | between.integers
        self._settled.update((tensor, (found, ends)) for tensor, found in known.items())

    def ends_of(self, body):
        """The truth value of a loop's ends, and how many iterations they have; None where whole."""
        ends, between = self._between.get(body, (None, None))
        return ends, 0 if between is None else between.iterations

    def integer_between(self, tensor):
        """What an integer is between the ends of a loop, of `Between.integers`, or None."""
        found, _ = self._settled.get(tensor, (None, None))
        return found if isinstance(found, tuple) else None

    def keep_in_rows(self, body, rows) -> None:
        """Keep what some additions of a loop's body add in rows, where no guard holds."""
        self.call_guards(body, rows.guard, rows.guard)
        self._rows.update(dict.fromkeys(rows.operations, rows))

    def promote(self, body, promoted) -> None:
        """Keep some items of a loop in registers, where no guard holds."""
        self.call_guards(body, promoted.guard, promoted.guard)
        self._promoted[body] = promoted

    def guard(self, index, dimension) -> Name | None:
        """See `Code.guard`; of an index that each iteration around raises by as much."""
        return self.guard_in(self._graph, index, dimension)

    def guard_in(self, graph, index, dimension) -> Name | None:
        """`guard`, of an index in a graph."""
        body = graph
        while is_body_of_branch(body):
            body = body.outer
        known = is_known(dimension) or self.level_of([dimension]) < self.level
        if self._counted.get(body) is None or not known:
            return None
        at_end, between = self._between.get(body, (None, None))
        counts = self.counts if between is None else between.counts
        form, first = counts.affine(index, body), _on_entry_of(self, index, body)
        if form is None or first is None or abs(form[1]) > WATCHED_ITERATIONS:
            return None
        place, iterations, head = (
            (body, body is not graph),
            self._counted[body],
            self.heads[-1],
        )
        name = self._guards.get(place)
        if name is None:
            name = self._guards[place] = self.name("u")
            head.add(assign(name, iterations > COUNTED_ITERATIONS))
        ends = [first, first + form[1] * (iterations - 1)] if form[1] else [first]
        # iterations that do not come to the index may have one below 0, but none that wraps around
        in_branch = between is None and graph is not body
        low = -(2**62) if in_branch and counts.is_index_in(index, graph) else 0
        doubts = [either(end < low, end >= dimension) for end in ends]
        if form != self.counts.affine(index, body):  # it is so between the ends alone
            doubts.append(at_end)
        for doubt in doubts:
            if (name, doubt) not in self._checked:
                self._checked.add((name, doubt))
                head.add(assign(name, either(name, doubt)))
        return name

    @contextmanager
    def holding(self, part):
        """See `Code.holding`."""
        self._left[part] += 1
        yield
        self._left[part] -= 1

    def destination(self, tensor, dtype, dimensions) -> Block:
        """Where a result goes: into the slot that it is written to, or where it may."""
        write, before, lines = self._writes.pop(tensor, (None, (), None))
        if write is not None and lines is self.lines and self._done.issuperset(before):
            block = array_code.slot_ahead(self, write, dimensions)
            if block is not None:
                return block
        return super().destination(tensor, dtype, dimensions)

    def is_free(self, base) -> bool:
        """Whether nothing to come uses what is in a buffer now."""
        return not self._needed_on(base)

    def _needed_on(self, base):
        """The tensors that are in a buffer now and that something to come uses."""
        tensors = self._on_base[base]
        return [t for t in tensors if self.needs_items(t) and _base(self.values.get(t)) is base]

    @contextmanager
    def variables(self, values):
        """The body of a loop, whose variables' buffers may change once nobody needs the old values.

        What is in them in the end is what the next values are.
        """
        self._variables.append({base for base in map(_base, values) if base is not None})
        yield
        self._variables.pop()

    def change_here(self, base) -> None:
        """Let what is in a buffer outside of loops be changed once nobody needs it."""
        self._variables[0].add(base)

    def may_change_in_loop(self, base):
        """Let a buffer of the loop around change, as those of its `variables`."""
        self._variables[-1].add(base)

    @contextmanager
    def changing(self, blocks):
        """A branch, that may change blocks too; their buffers are for nothing else meanwhile."""
        bases = {block.base: block.base.loose for block in blocks}
        self._variables.append(self._variables[-1] | set(bases))
        for base in bases:
            base.loose = False
        yield
        for base, loose in bases.items():
            base.loose = loose
        self._variables.pop()

    def _may_change(self, base):
        """Whether what is in a buffer is of no use after the last use of its tensors here."""
        return base in self._variables[-1] or (base.loose and base.level == self.level)

    def takes(self, tensor, block) -> bool:
        """Let a tensor's buffer be for something else from here on, if nothing else needs it.

        Parts of it that are still needed are copied first, where that is enough.
        """
        if (
            not self._may_change(block.base)
            or block.offset != ZERO
            or self.needs_items(tensor) != 1
        ):
            return False
        if tensor not in self._on_base[block.base]:  # something else has it already
            return False
        self._left[tensor] -= 1
        self._keep_parts(block)
        free = self.is_free(block.base)
        self._left[tensor] += 1
        if free:
            self._on_base[block.base].discard(tensor)
        return free

    def changed(self, op, place=0) -> Block:
        """See `Code.changed`."""
        x, result = op.inputs[place], op.outputs[0]
        value, rule = self.value(x), self.destinations.get(result)
        self._left[x] -= 1
        self._keep_parts(value)
        stays = self._may_change(value.base) and self.is_free(value.base)
        block = rule(value.dimensions, value if stays else None) if rule is not None else None
        if block is None and stays:
            block = value
        self._left[x] += 1
        block = block or self.new(result.dtype, value.dimensions)
        if block.base is value.base and block.offset == value.offset:
            self.flush_readers(block.base)
        else:
            self._note_copy(op, value)
            self.copy_to(block, value)
        self.bind(result, block)
        return block

    def _keep_parts(self, block):
        """Copy what is still needed of parts of a block, where the block itself is to change."""
        tensors = self._needed_on(block.base)
        parts = [t for t in tensors if self._is_part(t, block)]
        if parts and len(parts) == len(tensors):
            for tensor in sorted(parts, key=lambda t: t.op.number):
                value = self.values[tensor]
                kept = self.new(value.dtype, value.dimensions)
                self.copy_to(kept, value)
                self.bind(tensor, kept)

    def _is_part(self, tensor, block):
        """Whether a tensor is a part of a block that these very lines have taken."""
        value = self.values.get(tensor)
        here = isinstance(value, Block) and self._bound_in[tensor] is self.lines
        return here and (value.dimensions, value.offset) != (block.dimensions, block.offset)

    def _note_copy(self, op, value):
        """Note for people that a loop copies a tensor to change it."""
        if self.level:
            others = sorted(t.name for t in self._on_base[value.base] if self.needs_items(t))
            reason = f"{', '.join(others)} is needed later" if others else "others have it too"
            self.copies.append((op, value, reason, op.graph))

    def note_start(self, op, value) -> None:
        """Note for people that a loop copies a variable of the loop around, to go on with it."""
        if self.level and self._may_change(value.base):
            self._note_copy(op, value)

    def note_move(self, body, value) -> None:
        """Note for people that an iteration copies to a variable or result what it has not made."""
        if self.level and isinstance(value, Block) and value.base.level < self.level:
            here = [t for t in self._on_base[value.base] if t.graph is body]
            if any(t.op.record in (PARAMETER, WHILE, CASE) or t.op.record.changes for t in here):
                names = ", ".join(sorted(t.name for t in here))
                reason = f"{names} takes another one's place"
                self.copies.append((body.owner, value, reason, body))

    def end(self, outputs) -> None:
        """The end of a body: its results were taken."""
        self._left.subtract(outputs)

    def body(self, operations, outputs) -> None:
        """Operations of a graph, in order; `end` comes after them."""
        self._left.update(t for op in operations for t in op.inputs)
        self._left.update(outputs)
        self._unread.update(t for op in operations for t in unread(op))
        self._writes.update(array_code.writes(self, operations))
        for op in operations:
            self.operation(op)
            self._done.add(op)

    def operation(self, op) -> None:
        """One operation, by the rule of its record."""
        self._op, self._graph = op, op.graph
        if op.record is not PARAMETER:
            with self.part([op]):
                self._emit(op)
        for tensor in op.inputs:
            self._left[tensor] -= 1
        self._unread.subtract(unread(op))
        for tensor in dict.fromkeys(op.inputs):  # in order: source must not differ by process
            value = self.values.get(tensor)
            base = _base(value)
            if base is not None and not self._left[tensor] and self.is_free(base):
                self.release(base)

    def _emit(self, op):
        if op.record is CONSTANT:
            return self._constant(op)
        check([*op.inputs, *op.outputs])
        if op.record is WHILE:
            return emit_while(self, op)
        if op.record is CASE:
            return emit_case(self, op)
        if self.arrays.has(op):
            return array_code.emit(self, op)
        if op.outputs and all(tensor.kind == FLOW for tensor in op.outputs) and not _has_handle(op):
            return self._flows(op)
        if op in self.sums.operations:
            return self._sum(op)
        rule = op.record.emit
        if rule is None or not _computable(op):
            return self.call_python(op)
        rule(self, op)
        self._note_settled(op)
        self._note_promoted(op)
        return look_ahead(self, op)

    def _note_settled(self, op):
        """Let a truth value be constant between the ends of a loop, and an integer a sum."""
        found, ends = self._settled.get(op.outputs[0] if op.outputs else None, (None, None))
        if ends is None:
            return
        name = self.scalar(op.outputs[0])
        if isinstance(found, bool):
            holds = either(name, negated(ends)) if found else both(name, ends)
            self.add(assign(name, call("boolean", holds)))
            return
        other, sign, more = found
        item = _summed([self.scalar(other), self.scalar(more)], sign)
        self.add(assign(name, typed(select(ends, name, item), op.outputs[0].dtype)))

    def addition(self, store) -> None:
        """See `Code.addition`: where iterations are few or a guard holds; else in a row."""
        if self._op not in self._rows:
            return self._promoted_addition(store)
        return self._in_rows(store)

    def replacement(self, store) -> None:
        """See `Code.replacement`, which rows may do without as sums begin with it."""
        return self._in_rows(store) if self._op in self._rows else self.add(store)

    def _in_rows(self, store):
        op, rows = self._op, self._rows[self._op]
        if self.values[op.outputs[0]].base is not rows.block(op).base or not self._is_seen(op):
            raise NotCompiledError(f"{op.name} adds where rows do not go")
        with self.nest(when(rows.guard)):
            self.add(store)
        kept = rows.keep(op)
        if kept:
            with self.nest(when(negated(rows.guard))):
                self.add(*kept)

    def _promoted_addition(self, store):
        op, promoted = self._op, self._promoted_in(self._op.graph)
        if promoted is None or not promoted.holds(op, self.values[op.outputs[0]]):
            return self.add(store)
        with self.nest(when(promoted.guard)):
            self.add(store)
        with self.nest(when(negated(promoted.guard))):
            self.add(*promoted.added(op, self.scalar(op.inputs[1])))
        return None

    def _promoted_in(self, graph):
        """The promoted items of the loop whose body a graph is, or is a branch of; or None."""
        while is_body_of_branch(graph):
            graph = graph.outer
        return self._promoted.get(graph)

    def _note_promoted(self, op):
        """Let a read give what is in a register."""
        promoted = self._promoted_in(op.graph)
        if op.record is not GETITEM or promoted is None:
            return
        if promoted.holds(op, self.values[op.inputs[0]]):
            with self.nest(when(negated(promoted.guard))):
                self.add(*promoted.read(op, self.scalar(op.outputs[0])))

    def _is_seen(self, op):
        """Whether all indices are proven to be within their axes where a loop has no guard.

        Also in iterations that do not take the branch of the operation, as rows have a number for
        each iteration.
        """
        x, dimensions, body = op.inputs[0], self.dimensions(op.inputs[0]), self._graph
        while is_body_of_branch(body):
            body = body.outer
        return all(
            type(index) is int
            or self.counts.is_within(index, self.counts.length(x, axis), body)
            or self.guard_in(body, index, dimensions[axis]) is not None
            for axis, index in enumerate(indices_of(op))
        )

    def _sum(self, op):
        item, *others = map(self.scalar, op.inputs)
        for other in others:
            item = call("fast_add", item, -other if op.record is subtract.record else other)
        self.bind(op.outputs[0], self.local(item, op.outputs[0].dtype))

    def _constant(self, op):
        tensor, value = op.outputs[0], np.asarray(op.attrs["value"])
        if tensor.spec.kind != DATA:
            item = ZERO if tensor.spec.kind == FLOW else as_node(-1)
            self.bind(tensor, Scalar(item, tensor.dtype))
        elif value.ndim == 0 and value.dtype.char in NUMBERS:
            self.bind(tensor, Scalar(self.number(value), value.dtype))
        else:
            self.bind(tensor, self.constant(np.array(value, order="C")))

    def _flows(self, op):
        for tensor in op.outputs:
            self.bind(tensor, Scalar(ZERO, tensor.dtype))

    def copy_to(self, target: Block, value: Block) -> None:
        """Copy items."""
        self.flush_readers(target.base)
        places = target.base.name, target.offset, value.base.name, value.offset
        self.add(do("copy", *places, product(value.dimensions)))

    def call_python(self, op) -> None:
        """See `Code.call_python`."""
        emit_python_call(self, op)


def _base(value):
    """The buffer that has the items of a value."""
    value = value.block if isinstance(value, Transposed) else value
    return value.base if isinstance(value, Block) else None


def _has_handle(op):
    return any(tensor.kind == HANDLE for tensor in op.inputs)


def check(tensors) -> None:
    """Refuse what cannot be in a compiled function."""
    for tensor in tensors:
        if tensor.spec.kind == DATA and tensor.spec.rank is None:
            raise NotCompiledError(f"the rank of {tensor.name!r} is known in a run only")
        if not has_code(tensor.dtype):
            raise NotCompiledError(f"{tensor.name!r} is of {tensor.dtype}")


def has_code(dtype) -> bool:
    """Whether items of a dtype can be in a compiled function: not texts, dates and records."""
    return not dtype.hasobject and dtype.kind in "biufcV" and dtype.names is None


def _computable(op):
    return all(t.dtype.char in NUMBERS for t in [*op.inputs, *op.outputs])
