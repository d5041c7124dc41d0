"""What a program computes item by item along one long axis, and what it adds up along it.

Tiling (`nbta.compiler.tiles`) asks for each tensor which `Kind` it is of. Loops and branches are
looked into: a variable of a loop that gets such sums, or rows at places of its own, is a total of
all tiles, which nothing in the loop may look at.
"""

from enum import Enum

import numpy as np

from nbta.codegen.fusion import Elementwise
from nbta.codegen.values import NUMBERS
from nbta.graph.graph import live, subgraphs
from nbta.graph.operation import HANDLE
from nbta.graph.views import Branch, Loop, is_branch, is_loop, variable_of
from nbta.ops.arrays.tensor_arrays import CREATE, READ, WRITE
from nbta.ops.axes.reductions import MEAN, SUM
from nbta.ops.core.arithmetic import ADD_N, NEGATIVE, add, divide, multiply, subtract
from nbta.ops.core.dispatch import CONSTANT, PARAMETER
from nbta.ops.core.filling import FILL
from nbta.ops.core.shaping import BROADCAST_TO, CAST, IDENTITY, RESHAPE, SUM_TO
from nbta.ops.indexing.items import ADD_ITEM, SET_ITEM, SYMBOLIC
from nbta.ops.linalg.products import MATMUL
from nbta.tuning import UNTILED_ITEMS

FLOATS = frozenset(map(np.dtype, (np.float32, np.float64, np.complex64, np.complex128)))
_ADDING = {add.record, subtract.record, ADD_N}
_LINEAR = {NEGATIVE, IDENTITY, CAST, RESHAPE, BROADCAST_TO, SUM_TO}
_SCALED = {multiply.record, divide.record}


class Kind(Enum):
    """What a tensor is for a tile."""

    #: The same for all tiles.
    FREE = "free"
    #: The tile's items.
    ROW = "row"
    #: What the tile adds to a sum.
    PART = "part"
    #: A sum, or sums at several places, of all tiles so far.
    TOTAL = "total"
    #: An array of which each tile replaces its items, or adds to them, row by row.
    TABLE = "table"
    #: The handle of an array that a tile makes for itself.
    TAPE = "tape"


class RefusedError(Exception):
    """What keeps a loop from being tiled."""


class _FoundError(Exception):
    """A variable of a loop is of another kind than was thought."""

    def __init__(self, variable, kind):
        super().__init__()
        self.loop, self.place, self.kind = variable.loop.op, variable.place, kind


def same_dimension(one, other) -> bool:
    """Whether two dimensions are proven to be one length."""
    return one is other or (type(one) is int and one == other)


class Kinds:
    """The kinds of tensors for tiles along an axis.

    Parameters
    ----------
    dimension : Dim or int
        Of the axis.

    Attributes
    ----------
    of : dict
        Kind by tensor; what is not there is `Kind.FREE`.
    """

    def __init__(self, dimension):
        self.dimension, self.of, self._roots = dimension, {}, {}
        self._around = []  # the loops that are gone through

    def is_long(self, tensor) -> bool:
        """Whether a tensor has one item for each place along the axis."""
        shape = tensor.spec.shape
        return shape is not None and len(shape) == 1 and same_dimension(shape[0], self.dimension)

    def kind(self, tensor) -> Kind:
        """The kind of a tensor."""
        return self.of.get(tensor, Kind.FREE)

    def is_row(self, tensor) -> bool:
        """Whether tiles have a part each of a tensor, that they compute or that is there."""
        kind = self.kind(tensor)
        return kind is Kind.ROW or (kind is Kind.FREE and self.is_long(tensor))

    def visit(self, op, inside=True) -> None:
        """Find the kinds of an operation's results.

        ``inside`` says that each tile runs it whatever its kind is.

        Raises
        ------
        RefusedError
            For an operation that no tile can run by itself.
        """
        found = self._kinds(op, inside)
        for tensor, kind in zip(op.outputs, found, strict=True):
            self.of[tensor] = kind

    def _kinds(self, op, inside):
        if op.control_inputs:
            raise RefusedError(f"{op.name} waits for other operations")
        if is_loop(op):
            return self._of_loop(op, inside)
        if is_branch(op):
            return self._of_branch(op)
        if op.record is CREATE:
            return [Kind.TAPE, Kind.FREE]
        if op.record in (WRITE, READ):
            return self._of_tape(op)
        given = {self.kind(tensor) for tensor in op.inputs}
        if Kind.TOTAL in given or Kind.TABLE in given or op.record in (ADD_ITEM, SET_ITEM):
            kind = self._changed(op)
        elif Kind.PART in given:
            kind = self._part(op)
        else:
            kind = self._made(op, given, inside)
        if kind is None:
            raise RefusedError(f"{op.name} is no elementwise operation, and no sum")
        return [kind] * len(op.outputs)

    def _made(self, op, given, inside):
        """Of an operation on rows and on what is the same for all tiles."""
        if Kind.TAPE in given or not op.record.pure:
            return None
        rows = [tensor for tensor in op.inputs if self.is_row(tensor)]
        if len(op.outputs) == 1 and self.is_long(op.outputs[0]):
            if self._is_row_of(op, rows):
                return Kind.ROW
        elif self._is_sum(op, inside):
            return Kind.PART
        if given <= {Kind.FREE} and (not inside or all(map(self._is_cheap, op.outputs))):
            return Kind.FREE
        return None

    def _is_sum(self, op, inside):
        """Whether an operation sums a row up, or products of two; a mean is one of all tiles."""
        count = {SUM: 1, SUM_TO: 1, MATMUL: 2, MEAN: int(not inside)}.get(op.record, 0)
        result = op.outputs[0] if len(op.outputs) == 1 else None
        whole = count and result.spec.shape == () and result.dtype in FLOATS
        return whole and all(map(self.is_row, op.inputs[:count]))

    def _is_row_of(self, op, rows):
        if op.record in (FILL, BROADCAST_TO):
            value = op.inputs[1 if op.record is FILL else 0]
            return value.spec.rank == 0 or self.is_row(value)
        rest = [tensor for tensor in op.inputs if not self.is_row(tensor)]
        return rows and _is_compiled(op) and all(t.spec.shape == () for t in rest)

    def _is_cheap(self, tensor):
        """Whether tiles may compute a tensor, each for itself: numbers, and views."""
        shape, op = tensor.spec.shape, tensor.op
        if op.record is CONSTANT or tensor.spec.rank == 0 or op.record.selects:
            return True
        known = shape is not None and all(type(dimension) is int for dimension in shape)
        return known and int(np.prod(shape, dtype=object)) <= UNTILED_ITEMS

    # Sums.

    def _part(self, op):
        """Of an operation on what a tile adds to a sum: it must be linear."""
        parts = [self.kind(tensor) is Kind.PART for tensor in op.inputs]
        inexact = all(t.dtype in FLOATS for t in (op.inputs[0], *op.outputs))
        scalar = all(tensor.spec.shape == () for tensor in op.outputs)
        if op.record in _ADDING:
            return self._added(op, parts)
        linear = op.record in _LINEAR and parts[0]
        if op.record is CAST:
            linear = linear and op.inputs[0].dtype.kind == op.outputs[0].dtype.kind
        elif op.record in _SCALED:
            rest = [t for t, part in zip(op.inputs, parts, strict=True) if not part]
            first = parts[0] or op.record is multiply.record
            linear = first and len(rest) == 1 and self.kind(rest[0]) is Kind.FREE
        if not (linear and scalar and inexact):
            raise RefusedError(f"{op.name} needs a sum of all tiles before the next iteration")
        return Kind.PART

    def _added(self, op, parts):
        if all(parts):
            return Kind.PART
        place = parts.index(False)
        if parts.count(False) == 1 and not (place and op.record is subtract.record):
            self._becomes(op.inputs[place], Kind.TOTAL)
        raise RefusedError(f"{op.name} adds a sum of all tiles to something else")

    def _becomes(self, tensor, kind):
        """Try again with another kind of a variable, if a tensor is one."""
        variable = variable_of(tensor)
        inside = variable is not None and variable.loop.op in self._around
        if inside and self.kind(tensor) is Kind.FREE:
            raise _FoundError(variable, kind)

    def _changed(self, op):
        """Of an operation on what all tiles add to, or fill."""
        if op.record in (ADD_ITEM, SET_ITEM):
            return self._changed_item(op)
        kinds = list(map(self.kind, op.inputs))
        fits = kinds.count(Kind.TOTAL) == 1 and kinds.count(Kind.PART) == len(kinds) - 1
        place = kinds.index(Kind.TOTAL) if fits else 0
        if not fits or op.record not in _ADDING or (place and op.record is subtract.record):
            raise RefusedError(f"{op.name} needs what all tiles add up, or fill, in an iteration")
        self._roots[op.outputs[0]] = self._roots[op.inputs[place]]
        return Kind.TOTAL

    def _changed_item(self, op):
        x, value, *indices = op.inputs
        wanted = None
        if self.is_row(value) and self._is_row_place(op):
            wanted = Kind.TABLE
        elif op.record is ADD_ITEM and self.kind(value) is Kind.PART:
            wanted = Kind.TOTAL if x.dtype in FLOATS else None
        free = all(self.kind(i) is Kind.FREE and i.spec.rank == 0 for i in indices)
        if wanted is None or not free:
            raise RefusedError(f"{op.name} changes an array that tiles would change each")
        self._becomes(x, wanted)
        if self.kind(x) is not wanted:
            raise RefusedError(f"{op.name} changes an array that each iteration makes")
        self._roots[op.outputs[0]] = self._roots[x]
        return wanted

    def _is_row_place(self, op):
        """Whether a key names one row along the axis, which is the last one."""
        x, key = op.inputs[0], op.attrs["key"]
        rank = x.spec.rank or 0
        if rank < 2 or not same_dimension(x.spec.shape[-1], self.dimension):
            return False
        after = key[rank - 1 :]
        numbers = all(part is SYMBOLIC or type(part) is int for part in key[: rank - 1])
        return numbers and len(key) >= rank - 1 and after in ((), (slice(None),))

    def begin(self, tensor, kind) -> None:
        """Say of what kind a tensor is that nothing computes."""
        self.of[tensor], self._roots[tensor] = kind, tensor

    # Tapes, loops and branches.

    def _of_tape(self, op):
        handle, index = op.inputs[:2]
        if self.kind(handle) is not Kind.TAPE or self.kind(index) is not Kind.FREE:
            raise RefusedError(f"{op.name} is for an array that there is without tiles")
        if op.record is READ:
            long = self.is_long(op.outputs[0])
            if not long and op.outputs[0].spec.rank != 0:
                raise RefusedError(f"{op.name} gives something else than a row or a number")
            return [Kind.ROW if long else Kind.FREE]
        value = op.inputs[2]
        number = self.kind(value) is Kind.FREE and value.spec.rank == 0 and value.kind != HANDLE
        if not (self.is_row(value) or number):
            raise RefusedError(f"{op.name} keeps something else than a row or a number")
        return [Kind.FREE]

    def _of_loop(self, op, inside):
        loop = Loop(op)
        if loop.progress is not None or loop.checkpoint is not None:
            raise RefusedError(f"{op.name} has a bar, or checkpoints")
        marks = {v.place: kind for v in loop.variables() if (kind := self._begun(v)) is not None}
        while True:
            self._around.append(op)
            try:
                self._run(loop, marks)
                break
            except _FoundError as found:
                if found.loop is not op:
                    raise
                marks[found.place] = found.kind
            finally:
                self._around.pop()
        if inside and not marks:
            raise RefusedError(f"{op.name} is the same for all tiles")
        return [self._result(variable, marks, inside) for variable in loop.variables()]

    def _begun(self, variable):
        """The kind that a variable has by its first value; None where iterations tell it."""
        kind = self.kind(variable.first)
        if kind in (Kind.TOTAL, Kind.TABLE):
            return kind
        if self.is_row(variable.first) and self.is_long(variable.parameter):
            return Kind.ROW
        if kind is not Kind.FREE or variable.parameter.kind == HANDLE:
            raise RefusedError(f"{variable.loop.op.name} begins with a sum of all tiles")
        return None

    def _run(self, loop, marks):
        """Go through an iteration, and see that it leaves variables of the same kinds."""
        for place, tensor in enumerate(loop.op.inputs):
            parameter = loop.body.inputs[place]
            if place < loop.count:
                kind = marks.get(place, Kind.FREE)
            else:
                kind = self.kind(tensor)
            self.of[parameter], self._roots[parameter] = kind, parameter
            self.of[loop.cond.inputs[place]] = kind
            if place >= loop.count and kind in (Kind.PART, Kind.TOTAL, Kind.TABLE):
                raise RefusedError(f"{loop.op.name} needs a sum of all tiles")
        for op in live(loop.cond):
            if subgraphs(op) or any(self.kind(t) is not Kind.FREE for t in op.inputs):
                raise RefusedError(f"{loop.op.name} ends by what tiles compute")
            self._visit_below(op)
        for op in live(loop.body):
            self._visit_below(op)
        for variable in loop.variables():
            self._check_following(variable, marks.get(variable.place, Kind.FREE))

    def _visit_below(self, op):
        if op.record is not PARAMETER:
            self.visit(op)

    def _check_following(self, variable, kind):
        following = variable.following
        fits = self.kind(following) is kind or (kind is Kind.ROW and self.is_row(following))
        if kind in (Kind.TOTAL, Kind.TABLE):
            fits = fits and self._roots[following] is variable.parameter
        elif kind is Kind.FREE:
            fits = fits and (variable.is_kept or following.spec.rank == 0)
        if not fits:
            name = variable.loop.op.name
            raise RefusedError(f"{name} gives a variable another kind of value in each iteration")

    def _result(self, variable, marks, inside):
        kind = marks.get(variable.place, Kind.FREE)
        first = variable.first
        if kind not in (Kind.TOTAL, Kind.TABLE) or not inside:
            return kind
        if self.kind(first) is kind:
            self._roots[variable.last] = self._roots[first]
            return kind
        if kind is Kind.TOTAL and variable.parameter.spec.rank == 0 and _is_zero(first):
            return Kind.PART
        self._becomes(first, kind)
        raise RefusedError(f"{variable.loop.op.name} adds up, or fills, an array in each iteration")

    def _of_branch(self, op):
        case = Branch(op)
        if self.kind(case.index) is not Kind.FREE:
            raise RefusedError(f"{op.name} is decided by what tiles compute")
        if not {Kind.FREE, Kind.ROW, Kind.TAPE}.issuperset(map(self.kind, case.captured)):
            raise RefusedError(f"{op.name} needs a sum of all tiles")
        for branch in case.branches:
            for parameter, tensor in zip(branch.inputs, case.captured, strict=True):
                self.of[parameter] = self.kind(tensor)
            for inner in live(branch):
                self._visit_below(inner)
        return [self._of_ends(op, case.ends(place)) for place in range(len(op.outputs))]

    def _of_ends(self, op, ends):
        if all(map(self.is_row, ends)):
            return Kind.ROW
        if all(self.kind(tensor) is Kind.FREE and tensor.spec.rank == 0 for tensor in ends):
            return Kind.FREE
        raise RefusedError(f"{op.name} gives sums, or arrays")


def _is_compiled(op):
    """Whether there is code for the items of an operation: Python would be called for each tile."""
    rule, numbers = op.record.emit, all(t.dtype.char in NUMBERS for t in (*op.inputs, *op.outputs))
    takes = not isinstance(rule, Elementwise) or rule.takes(op)
    return op.record.elementwise and rule is not None and numbers and takes


def _is_zero(tensor):
    return tensor.op.record is CONSTANT and not np.any(tensor.op.attrs["value"])
