"""Passes that do in one product of large matrices what a loop does in many of small ones.

For that, the values of all iterations lie below each other (`Stacks`): in a tensor, or in an array
that the loop fills.
"""

from typing import NamedTuple

import numpy as np

from nbta import shapes
from nbta.compiler.access_sets import users_of
from nbta.compiler.induction import Counts, Linear
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.passes import prune
from nbta.compiler.products import is_of_iterations
from nbta.compiler.program import Program, changes
from nbta.graph.graph import at_line, current, live, running, substitute
from nbta.graph.operation import DATA, Tensor, is_inexact
from nbta.graph.views import Loop, Variable, is_loop, origin, place_of
from nbta.locations import Location
from nbta.ops.arrays.tensor_arrays import CREATE, GATHER, READ, Access, build
from nbta.ops.core.arithmetic import ADD_N, add, add_n, greater, multiply
from nbta.ops.core.dispatch import CONSTANT, as_tensor, constant_in
from nbta.ops.core.filling import FILL, RANGE, arange, zeros
from nbta.ops.core.shaping import RESHAPE, SUM_TO, cast, shape_of
from nbta.ops.indexing.items import GETITEM, SYMBOLIC
from nbta.ops.indexing.joining import CONCATENATE, stack
from nbta.ops.indexing.transposing import SWAPAXES, TRANSPOSE, transpose
from nbta.ops.linalg.products import MATMUL, OUTER, matmul
from nbta.ops.loops.aliases import ArrayUses, array_of
from nbta.ops.loops.bodies import trace
from nbta.ops.loops.branch import add_case
from nbta.ops.loops.iteration_counts import compared


class Stacks:
    """Values of a loop's body, stacked after the loop in one order of the iterations.

    The order is that of the iterations, or the opposite one where the body reads rows and slots
    from the last to the first, so that these need not be turned.
    """

    def __init__(self, loop, counts, uses):
        self.loop, self.body = loop, Loop(loop).body
        self._counts, self._uses = counts, uses
        self._iterations = counts.iterations(loop)
        self._known = self._count_on_entry()
        self._order, self._slot = 1, Loop(loop).counter
        self._arrays: dict[Tensor, Access] = {}
        self._found = {}

    def _count_on_entry(self):
        """The tensor that the iterations are counted up to, where it is known before the loop."""
        limit = compared(Loop(self.loop).condition)
        found = limit and self._counts.affine(limit.low, self.body)
        if found is None or limit.more:
            return None
        (first, step), limit = found, origin(limit.high)
        plain = step == 1 and first == Linear(0)
        return limit if plain and self._counts.number(limit) == self._iterations else None

    def choose_order(self, tensors) -> None:
        """Go through the iterations as most of the tensors do that are rows and slots already."""
        ways = [(tensor, self._direction(tensor)) for tensor in tensors]
        backwards = [tensor for tensor, way in ways if way == -1]
        forwards = [tensor for tensor, way in ways if way == 1]
        if self._known is not None and len(backwards) > len(forwards):
            self._order, self._slot = -1, backwards[0].op.inputs[1]

    def _direction(self, tensor):
        """How a row or slot of something there goes with the iterations; None for others."""
        found = self._counts.direction
        if tensor.op.record is GETITEM and self._is_row(tensor):
            length = self._counts.length(tensor.op.inputs[0])
            return found(tensor.op.inputs[1], self.loop, length)
        if tensor.op.record is READ and self._is_slot(tensor):
            return found(tensor.op.inputs[1], self.loop, self._iterations)
        return None

    def _is_row(self, tensor):
        return tensor.op.attrs["key"] == (SYMBOLIC,) and tensor.op.inputs[0] in self.body.sources

    def _is_slot(self, tensor):
        """Whether it is read from an array that nothing changes in the loop, and that keeps it."""
        handle, _, flow = tensor.op.inputs
        array = array_of(handle)
        return (
            array is not None
            and len(array) == 1
            and array[0].attrs.get("clear_after_read") is False
            and self._uses.is_plain(array)
            and handle in self.body.sources
            and origin(flow).graph is not self.body
            and origin(handle).graph is self.loop.graph
        )

    def is_new(self, tensor) -> bool:
        """Whether an array has to be filled for it."""
        return tensor not in self._arrays and self._direction(tensor) is None

    def prepare(self, tensor) -> None:
        """See to it that the values can be stacked: in the loop, where nothing has them yet."""
        if self.is_new(tensor):
            self._arrays[tensor] = self._filled(tensor)

    def _filled(self, tensor):
        spec = tensor.spec
        attrs = {
            "dtype": spec.dtype,
            "dynamic_size": self._known is None,
            "clear_after_read": False,
            "element_shape": spec.shape if shapes.is_known(spec.shape) else None,
            "infer_shape": True,
            "tensor_array_name": f"stack_of_{tensor.op.type}",
        }
        with self.loop.graph.as_default():
            size = np.int32(0)
            if self._known is not None:
                size = cast(self._limit(), np.int32)
            start = Access(*build(CREATE, [size], attrs, f"stack_of_{tensor.op.type}"))

        def following(flow):
            return Access(self.body.capture(start.handle), flow).write(self._slot, tensor)

        return Access(start.handle, Loop(self.loop).add_variable(start.flow, following))

    def _limit(self):
        """What the iterations are counted up to, in the graph around the loop."""
        if self._known.op.record is CONSTANT:
            return constant_in(self.loop.graph, self._known.op.attrs["value"])
        return self.loop.graph.resolve(self._known)

    def never_fails(self, tensor) -> bool:
        """Whether the values can be stacked where there was no iteration."""
        if self._direction(tensor) is not None and tensor.op.record is GETITEM:
            return True
        return shapes.is_known(tensor.spec.shape)

    def stacked(self, tensor):
        """The values of all iterations, in the graph that is being built."""
        key = (current(), tensor)
        if key not in self._found:
            self._found[key] = self._stacked(tensor)
        return self._found[key]

    def _stacked(self, tensor):
        if tensor in self._arrays:
            return self._gathered(tensor, self._arrays[tensor], 1)
        turn = self._direction(tensor) * self._order
        if tensor.op.record is READ:
            handle, _, flow = tensor.op.inputs
            return self._gathered(tensor, Access(*map(self._outside, (handle, flow))), turn)
        rows = self._outside(tensor.op.inputs[0])
        return rows if turn == 1 else rows[::-1]

    def _outside(self, tensor):
        """What a tensor of the body is around it."""
        while tensor.graph is self.body:
            before = self.body.sources.get(tensor)
            tensor = self.loop.inputs[place_of(tensor)] if before is None else before
        return current().resolve(tensor)

    def _gathered(self, tensor, array, turn):
        """The slots of an array from the first to the last, or the other way."""
        graph, fixed = current(), None if self._iterations.terms else self._iterations.constant
        count = np.int64(fixed) if fixed is not None else graph.resolve(Loop(self.loop).iterations)
        slots = arange(count) if turn == 1 else arange(count - 1, np.int64(-1), np.int64(-1))
        self._note_length(slots)
        known = tensor.spec.shape if shapes.is_known(tensor.spec.shape) else None
        attrs = {"dtype": tensor.dtype, "known": tensor.spec.shape, "element_shape": known}
        handle, flow = map(graph.resolve, array)
        return build(GATHER, [handle, slots, flow], attrs)[0]

    def _note_length(self, slots):
        """Say of indices of all iterations how many they are, if that is an axis' length."""
        terms = list(self._iterations.terms.items())
        plain = slots.op.record is RANGE and self._iterations.constant == 0
        if plain and len(terms) == 1 and isinstance(terms[0][0], shapes.Dim) and terms[0][1] == 1:
            slots.op.attrs["dimension"] = terms[0][0]
            slots.spec = slots.spec._replace(shape=(terms[0][0],))


@contract(requires=[Fact.RANKS, Fact.WHOLE_AXES], reorders=True)
@changes
def hoist_products(program: Program) -> Program:
    """Multiply all rows of a tensor at once where a loop multiplies each with the same matrix."""
    found = [_hoist(op) for op in _loops(program)]
    return prune.in_place(program) if any(found) else program


def _loops(program):
    """Loops, those in bodies before those around them."""
    return [op for op in running(program) if is_loop(op)][::-1]


def _hoist(loop):
    counts, body = analysis(Counts, loop.graph), Loop(loop).body
    found = [op for op in live(body) if op.record is MATMUL and _is_row_product(op, loop, counts)]
    for op in found:
        row, matrix = op.inputs
        with loop.graph.as_default():
            rows = _times(body.sources[row.op.inputs[0]], body.sources[matrix])
        inputs = [body.capture(rows), row.op.inputs[1]]
        new = body.create(GETITEM, inputs, row.op.attrs).outputs[0]
        substitute(body, {op.outputs[0]: new})
    return bool(found)


def _is_row_product(op, loop, counts):
    """Whether it multiplies each row of a tensor, one per iteration, with a matrix from around."""
    row, matrix = op.inputs
    sources = Loop(loop).body.sources
    if not is_row(row) or matrix not in sources or row.op.inputs[0] not in sources:
        return False
    rows = sources[row.op.inputs[0]]
    length = counts.length(rows)
    return (
        rows.spec.rank in (2, 3)
        and matrix.spec.rank == 2
        and _proven_to_be(rows.spec.shape[-1], matrix.spec.shape[0])
        and counts.direction(row.op.inputs[1], loop, length) is not None
        and not op.control_inputs
    )


def is_row(tensor) -> bool:
    """Whether a tensor is a row that an index picks."""
    return tensor.op.record is GETITEM and tensor.op.attrs["key"] == (SYMBOLIC,)


def _proven_to_be(one, other):
    return one is not None and (one is other or one == other)


def _times(rows, matrix):
    """The product of each row with a matrix, by one product of matrices."""
    if rows.spec.rank == 2:
        return matmul(rows, matrix)
    flat = matmul(_flat(rows), matrix)
    lengths = [*(_dimension(rows, axis) for axis in (0, 1)), _dimension(matrix, 1)]
    return _reshaped(flat, lengths, (*rows.spec.shape[:2], matrix.spec.shape[1]))


def _flat(rows):
    """The rows of all iterations, each one or several rows of a matrix, below each other."""
    if rows.spec.rank == 2:
        return rows
    first, second, third = rows.spec.shape
    count = first * second if type(first) is type(second) is int else None
    lengths = [multiply(_dimension(rows, 0), _dimension(rows, 1)), _dimension(rows, 2)]
    return _reshaped(rows, lengths, (count, third))


def _dimension(tensor, axis):
    dimension = tensor.spec.shape[axis]
    return as_tensor(np.int64(dimension) if type(dimension) is int else shape_of(tensor)[axis])


def _reshaped(tensor, lengths, pattern):
    lengths = as_tensor(np.array(pattern, np.int64)) if shapes.is_known(pattern) else stack(lengths)
    return current().create(RESHAPE, [tensor, lengths], {"pattern": pattern}).outputs[0]


@contract(requires=[Fact.RANKS, Fact.WHOLE_AXES], breaks=[Fact.SAVED_BY_TAPES], reorders=True)
@changes
def sum_products_outside(program: Program) -> Program:
    """Sum what a loop adds up, such as the gradient of a weight, by one product after the loop.

    What it multiplies in each iteration is stacked, as far as no tensor or array has it already.
    The sums are the same but for the order of additions.
    """
    known = moved = None
    for op in _loops(program):
        known = known or (analysis(Counts, program), analysis(ArrayUses, program))
        if _Sums(op, *known).move():
            known, moved = None, True  # who uses what has changed
    return prune.in_place(program) if moved else program


class _Product(NamedTuple):
    """The sum of products of a transposed matrix and a matrix, or of vectors' outer products."""

    left: Tensor
    right: Tensor

    @property
    def stacked(self):
        return self

    def after(self, stacks):
        left, right = (_flat(stacks.stacked(tensor)) for tensor in self)
        return matmul(transpose(left), right)


class _Sum(NamedTuple):
    """The sum of a tensor, over its own repeated axes too."""

    value: Tensor
    shape: Tensor  # around the loop
    pattern: tuple

    @classmethod
    def like(cls, value, first):
        """The sum of a tensor that has the shape of another one."""
        with first.graph.as_default():
            return cls(value, shape_of(first), first.spec.shape)

    @property
    def stacked(self):
        return (self.value,)

    def after(self, stacks):
        inputs = [stacks.stacked(self.value), as_tensor(self.shape)]
        return current().create(SUM_TO, inputs, {"pattern": self.pattern}).outputs[0]


class _Accumulator(NamedTuple):
    """A variable to which a loop only adds, and what it adds."""

    variable: Variable
    moved: list
    kept: list
    line: Location | None


class _Sums:
    """The accumulators of one loop."""

    def __init__(self, loop, counts, uses):
        self.loop, self.body = loop, Loop(loop).body
        self._stacks = Stacks(loop, counts, uses)
        self._iterations = counts.iterations(loop)
        self._users = users_of(self.body)
        self._tested = users_of(Loop(loop).cond)
        self._joined = {}
        self._dims = {n for t in loop.inputs for n in t.spec.shape or () if type(n) is shapes.Dim}

    def move(self) -> bool:
        """Sum after the loop what can be; whether there is anything."""
        found = self._accumulators(())
        if not found:
            return False
        found = self._accumulators(_stacked(found))
        used = _stacked(found)
        self._stacks.choose_order(used)
        for tensor in used:
            with at_line(tensor.op.location):
                self._stacks.prepare(tensor)
        self._finish(found, self._totals(found, used))
        return True

    def _accumulators(self, stacked):
        """Those of whose terms some are products, or are stacked for others in any case."""
        found = [self._accumulator(v, stacked) for v in Loop(self.loop).variables()[1:]]
        return [accumulator for accumulator in found if accumulator is not None]

    def _accumulator(self, added, stacked):
        """What a variable adds up; None where nothing is to be gained or it has another use."""
        variable, first = added.parameter, added.first
        if variable.kind != DATA or not variable.spec.rank or not is_inexact(variable.dtype):
            return None
        if self._tested[added.tested]:
            return None
        terms = self._terms(added.following, variable.spec.shape)
        if sum(term is variable for term in terms) != 1 or len(self._users[variable]) != 1:
            return None
        terms = [term for term in terms if term is not variable]
        products = [
            self._product(t, first) or (_Sum.like(t, first) if t in stacked else None)
            for t in terms
        ]
        kept = [term for term, product in zip(terms, products, strict=True) if not product]
        moved = [product for product in products if product]
        if not moved:
            return None
        lines = (t.op.location for t, product in zip(terms, products, strict=True) if product)
        return _Accumulator(added, moved, kept, next(filter(None, lines), None))

    def _terms(self, tensor, shape):
        """What is added up to a tensor, none of it with another use."""
        alone = len(self._users[tensor]) == 1 and not tensor.op.control_inputs
        if tensor.op.record not in (add.record, ADD_N) or not alone:
            return [tensor]
        if any(t.spec.shape != shape or None in shape for t in tensor.op.inputs):
            return [tensor]
        return [term for t in tensor.op.inputs for term in self._terms(t, shape)]

    def _product(self, term, first):
        """How a term is summed over all iterations by one operation; None for other terms.

        ``first`` is something around the loop that has the shape of the term.
        """
        op = term.op
        if op.control_inputs or not all(map(self._is_regular, [*op.inputs, term])):
            return None
        if op.record is SUM_TO:
            return self._sum(op)
        if op.record is CONCATENATE:
            return self._of_parts(op, first)
        ranks = {t.spec.rank for t in op.inputs}
        if not is_of_iterations(op) or ranks != {2 if op.record is MATMUL else 1}:
            return None
        left, right = op.inputs
        if op.record is OUTER:
            return _Product(left, right)
        fits = _proven_to_be(left.spec.shape[1], right.spec.shape[0])
        return _Product(self._transposed(left), right) if fits else None

    def _of_parts(self, op, first):
        """What is joined of products with one factor in common, or of sums of rows."""
        if op.attrs["axis"] not in (-1, op.outputs[0].spec.rank - 1):
            return None
        if all(t.op.record is SUM_TO and _keeps_last(t.op) for t in op.inputs):
            value = self._join([tensor.op.inputs[0] for tensor in op.inputs], op)
            return None if value is None else _Sum.like(value, first)
        if any(tensor.op.record is not MATMUL for tensor in op.inputs):
            return None
        parts = [self._product(tensor, None) for tensor in op.inputs]
        if None in parts or any(part.left is not parts[0].left for part in parts):
            return None
        right = self._join([part.right for part in parts], op)
        return None if right is None else _Product(parts[0].left, right)

    def _join(self, tensors, op):
        """Tensors after each other as the inputs of an operation are; None if they do not fit."""
        rows = {tensor.spec.shape[:-1] for tensor in tensors}
        if len(rows) > 1 or not all(map(self._is_regular, tensors)):
            return None
        key = tuple(tensors)
        if key not in self._joined:
            made = self.body.create(CONCATENATE, tensors, {"axis": -1}).outputs[0]
            shape = (*rows.pop(), op.outputs[0].spec.shape[-1])
            made.spec = made.spec._replace(shape=shape)
            self._joined[key] = made
        return self._joined[key]

    def _sum(self, op):
        shape = op.inputs[1]
        if shape.op.record is not CONSTANT and shape not in self.body.sources:
            return None
        fixed = shape.op.record is CONSTANT
        shape = shape.op.attrs["value"] if fixed else self.body.sources[shape]
        return _Sum(op.inputs[0], shape, op.attrs["pattern"])

    def _is_regular(self, tensor):
        """Whether it has one shape in all iterations."""
        shape = tensor.spec.shape
        return shape is not None and all(type(n) is int or n in self._dims for n in shape)

    def _transposed(self, tensor):
        op = tensor.op
        swapped = op.record is SWAPAXES and {op.attrs["a"] % 2, op.attrs["b"] % 2} == {0, 1}
        if swapped or (op.record is TRANSPOSE and op.attrs["axes"] in (None, (1, 0))):
            return op.inputs[0]
        return self.body.create(TRANSPOSE, [tensor], {"axes": None}).outputs[0]

    def _totals(self, found, used):
        """The sums, after the loop; where empty stacks would fail, only if an iteration ran."""

        def sums():
            return [self._total(accumulator) for accumulator in found]

        def nothing():
            first = [a.variable.first for a in found]
            return [zeros(shape_of(tensor), tensor.dtype) for tensor in first]

        graph, iterations = self.loop.graph, Loop(self.loop).iterations
        with graph.as_default():
            some = (self._iterations - Linear(1)).is_natural()
            if some or all(map(self._stacks.never_fails, used)):
                return sums()
            with graph.name_scope(self.loop.name.rpartition("/")[2] + "_sums") as scope:
                names = (f"{scope}some", f"{scope}none")
                made = zip(names, (sums, nothing), strict=True)
                branches = [trace(graph, name, [], function) for name, function in made]
                return add_case(greater(iterations, np.int64(0)), branches).outputs

    def _total(self, accumulator):
        with at_line(accumulator.line):
            return add_n([each.after(self._stacks) for each in accumulator.moved])

    def _finish(self, found, totals):
        """Let the loop add up only what is kept, and use the sums in place of its results."""
        for each, total in zip(found, totals, strict=True):
            variable, result = each.variable, each.variable.last
            with self.body.as_default():
                self.body.outputs[variable.place] = add_n([variable.parameter, *each.kept])
            self.body.changed()
            first = result if each.kept else variable.first
            graph = self.loop.graph
            with graph.as_default():
                final = total if _is_zero(first) else add(first, total)
            substitute(graph, {result: final})
            if first is result:
                final.op.inputs = [result, total]


def _keeps_last(op):
    """Whether a sum is over other axes than the last."""
    have, want = op.inputs[0].spec.shape, op.outputs[0].spec.shape
    return bool(have and want) and have[-1] == want[-1] is not None


def _stacked(found):
    return dict.fromkeys(t for each in found for term in each.moved for t in term.stacked)


def _is_zero(tensor):
    op = origin(tensor).op
    value = op.inputs[1].op if op.record is FILL else op
    return value.record is CONSTANT and not np.any(value.attrs["value"])
