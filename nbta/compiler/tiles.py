"""Tiling: loops over few iterations of long rows, run for some items of the rows after the others.

A loop such as ``off -= c[j] * powers; powers *= points`` goes through all items of its rows in each
iteration, and its tapes keep a row per iteration. Where rows are computed item by item along one
axis, and all else is sums along it, the loop, what is around it, and the loop of its gradient are
run for a tile of the items: all forward and adjoint iterations, so that the tile's rows and tapes
stay in the cache. Sums go on from tile to tile, rows that something else needs are put together.
That is strip mining and loop interchange (Wolfe, More iteration space tiling, SC 1989), over loops
that a gradient has in between.

A region is what can run for a tile: connected operations of one graph, of which none needs a sum
that another one adds up. Sums are of a tile first, so that they are taken in another order; how
long tiles are depends on shapes and iteration counts alone.
"""

from collections import defaultdict

import numpy as np

from nbta.compiler.manager import Fact, contract
from nbta.compiler.passes import prune
from nbta.compiler.program import Program, changes
from nbta.compiler.tiling_legality import Kind, Kinds, RefusedError, same_dimension
from nbta.graph.copying import Copy, copied
from nbta.graph.graph import live, running, subgraphs, substitute
from nbta.graph.operation import FLOW, Operation
from nbta.graph.views import Loop, is_branch, is_loop
from nbta.ops.arrays.tensor_arrays import CREATE, WRITE
from nbta.ops.axes.reductions import MEAN, SUM
from nbta.ops.core.arithmetic import add, divide, floor_divide, less, maximum, multiply, where
from nbta.ops.core.dispatch import CONSTANT, PARAMETER, as_tensor
from nbta.ops.core.filling import FILL
from nbta.ops.core.shaping import CAST, SHAPE, cast
from nbta.ops.indexing.items import ADD_ITEM, GETITEM, SET_ITEM, SLICE, SYMBOLIC
from nbta.ops.indexing.joining import stack
from nbta.ops.loops.bodies import trace
from nbta.ops.loops.iteration_counts import limit_before
from nbta.ops.loops.loop import ONE, add_while
from nbta.shapes import Dim, IterationDim
from nbta.tuning import ASSUMED_ITERATIONS, TILE_ALIGNMENT, TILE_BYTES, TILE_ITEMS

#: In what sums go on from tile to tile.
_WIDE = {
    np.dtype(np.float32): np.dtype(np.float64),
    np.dtype(np.complex64): np.dtype(np.complex128),
}


@contract(requires=[Fact.RANKS, Fact.WHOLE_AXES], breaks=[Fact.WHOLE_AXES], reorders=True)
@changes
def tile(program: Program) -> Program:
    """Run loops over long rows tile by tile, with what is around them."""
    inner = [op for op in running(program) if op.graph is not program]
    if not _long_axes(inner):
        return program
    for op in reversed([op for op in running(program) if is_loop(op)]):  # inner ones first
        _forget_kept(Loop(op))
    return prune.in_place(program) if _tile_all(program) else program


def _forget_kept(loop):
    """Take what a loop begins with in place of a variable that no iteration changes.

    That may need the sums of all tiles.
    """
    kept = [variable for variable in loop.variables()[1:] if variable.is_kept]
    if not kept:
        return
    substitute(loop.op.graph, {variable.last: variable.first for variable in kept})
    used = {t for graph in (loop.body, loop.cond) for op in live(graph) for t in op.inputs}
    used.update(loop.cond.outputs, (v.following for v in loop.variables() if not v.is_kept))
    idle = {v.place for v in kept if v.parameter not in used and v.tested not in used}
    loop.keep([place for place in range(len(loop.op.inputs)) if place not in idle])


def _tile_all(graph) -> bool:
    """Tile what can be in a graph, and in bodies of what cannot; whether there was any."""
    loops = [op for op in live(graph) if is_loop(op)]
    axes = _long_axes(o for op in loops for o in running(Loop(op).body))
    found = [region for dimension in axes for region in _Regions(graph, dimension).tiled()]
    tiled = {region.made for region in found}
    inner = [body for op in live(graph) if op not in tiled for body in subgraphs(op)]
    return any([*found, *map(_tile_all, inner)])


def _long_axes(operations):
    """The lengths of vectors that operations compute item by item."""
    made = (op.outputs[0].spec.shape for op in operations if op.record.elementwise)
    dimensions = dict.fromkeys(shape[0] for shape in made if shape is not None and len(shape) == 1)
    return [e for e in dimensions if isinstance(e, Dim) or (e or 0) >= 2 * TILE_ITEMS]


class _Regions:
    """The parts of a graph that can be run tile by tile along an axis.

    Attributes
    ----------
    found : list of _Region
    """

    def __init__(self, graph, dimension):
        self.graph, self.dimension, self.found = graph, dimension, []
        self._operations = [op for op in live(graph) if op.record is not PARAMETER]
        self._waited = {before for op in self._operations for before in op.control_inputs}
        self._refused: dict[Operation, str] = {}
        while not self._find():
            pass

    def tiled(self):
        """Tile all of them, and say of other loops why they are not."""
        for op, reason in self._refused.items():
            if is_loop(op) and any(map(self._is_long_row, Loop(op).body.operations)):
                said = op.facts.tiling or f"{op.name}: not tile by tile, as {reason}"
                op.know(tiling=said)
        for region in self.found:
            region.tile()
        return self.found

    def _is_long_row(self, op):
        return op.record.elementwise and self._kinds.is_long(op.outputs[0])

    def _find(self):
        """Regions; False if a loop of one turns out to be none of it."""
        self._kinds, self._made = Kinds(self.dimension), {}
        self._stages, self._free = {}, {}  # of operations; of tensors, for those that only take it
        for op in self._operations:
            self._visit(op)
        groups = [ops for ops in self._grouped() if any(map(self._is_seed, ops))]
        groups.sort(key=lambda ops: -self._stages[ops[0]])  # what is after others comes first
        found = [_Region(self, ops) for ops in groups]
        lost = {op: why for region in found for op, why in region.lost().items()}
        self._refused |= lost
        self.found = [region for region in found if region.length is not None]
        return not lost

    def _visit(self, op):
        """The kind of an operation's results, and in which stage it runs."""
        stage = max((self._free.get(tensor, 0) for tensor in op.inputs), default=0)
        try:
            if op in self._refused or op in self._waited:
                raise RefusedError(self._refused.get(op, "others wait for it"))
            self._kinds.visit(op, inside=False)
        except RefusedError as error:
            self._refused.setdefault(op, str(error))
            kinds = None
        else:
            kinds = [self._kinds.kind(tensor) for tensor in op.outputs]
            if set(kinds) == {Kind.FREE} and not self._goes_along(op):
                kinds = None
        self._note(op, kinds, stage)

    def _goes_along(self, op):
        """Whether a number is computed from what loops give, in each tile."""
        free = all(t.spec.rank == 0 and t.kind != FLOW for t in (*op.inputs, *op.outputs))
        return free and op.record.pure and any(t.op in self._stages for t in op.inputs)

    def _note(self, op, kinds, stage):
        inner = kinds is not None
        if not inner:  # what it gives is there after all tiles that it needs
            after = [self._stages[t.op] + 1 for t in op.inputs if t.op in self._stages]
            stage = max([stage, *after])
            kinds = [Kind.FREE] * len(op.outputs)
        elif op.record is not CREATE:
            self._stages[op] = stage
        for tensor, kind in zip(op.outputs, kinds, strict=True):
            self._made[tensor] = kind if inner else Kind.FREE
            ends = kind in (Kind.PART, Kind.TOTAL, Kind.TABLE)
            self._free[tensor] = stage + ends
            self._kinds.of[tensor] = Kind.FREE if ends else kind

    def _is_seed(self, op):
        return is_loop(op) and any(
            self._made[tensor] in (Kind.ROW, Kind.TOTAL, Kind.TABLE) for tensor in op.outputs
        )

    def _grouped(self):
        """Operations of one stage that pass rows, or numbers, on to one another."""
        group = {op: op for op in self._stages}

        def first(op):
            while group[op] is not op:
                group[op] = op = group[group[op]]
            return op

        for op, stage in self._stages.items():
            for tensor in op.inputs:
                if self._stages.get(tensor.op) == stage and not self._is_end(tensor):
                    group[first(op)] = first(tensor.op)
        for ops in self._sharing():
            for op in ops:
                group[first(op)] = first(ops[0])
        found = defaultdict(list)
        for op in self._stages:
            found[first(op)].append(op)
        return list(found.values())

    def _sharing(self):
        """Loops that share a tape, where they run in one stage."""
        users = defaultdict(list)
        for op in self._stages:
            for tensor in op.inputs:
                if self._made.get(tensor) is Kind.TAPE:
                    users[tensor, self._stages[op]].append(op)
        return list(users.values())

    def _is_end(self, tensor):
        return self._made[tensor] in (Kind.PART, Kind.TOTAL, Kind.TABLE)

    def goes_on(self, tensor):
        """Whether each tile begins with what the one before has left."""
        return self.made(tensor) in (Kind.TOTAL, Kind.TABLE)

    def made(self, tensor):
        """The kind of a tensor, for what makes it."""
        return self._made.get(tensor, Kind.FREE)

    @property
    def operations(self):
        """What the graph runs."""
        return self._operations


class _Region:
    """Operations that run together for a tile.

    Attributes
    ----------
    length : callable or None
        Gives the length of the axis, as a tensor; None where nothing outside tells it.
    made : Operation
        The loop over tiles, once it is there.
    """

    def __init__(self, regions, operations):
        self._regions, self._graph, self._dimension = regions, regions.graph, regions.dimension
        handles = [t for op in operations for t in op.inputs if regions.made(t) is Kind.TAPE]
        self._tapes = list(dict.fromkeys(tensor.op for tensor in handles))
        self._operations = dict.fromkeys([*self._tapes, *operations])
        users = defaultdict(list)
        for op in regions.operations:
            for tensor in op.inputs:
                users[tensor].append(op)
        self._users = users
        results = set(self._graph.outputs)
        made = [tensor for op in self._operations for tensor in op.outputs]
        begun = {t.op.inputs[t.index] for t in made if regions.goes_on(t)}
        self._ends = [
            t for t in made
            if t in results or regions.goes_on(t) or t in begun
            or any(map(self._is_outside, users[t]))
        ]  # fmt: skip
        self._given = dict.fromkeys(
            t for op in self._operations for t in op.inputs if self._is_outside(t.op)
        )
        self.length = self._length()

    def _is_outside(self, op):
        return op not in self._operations

    def makes(self, tensor) -> bool:
        """Whether tiles compute a tensor."""
        return not self._is_outside(tensor.op)

    def lost(self):
        """What cannot be run tile by tile, as something else needs its tapes."""
        made = self._regions.made
        tapes = {t for t in self._ends if t.kind == FLOW or made(t) is Kind.TAPE}
        found = [op for op in self._operations if op.record is not CREATE]
        found = [op for op in found if not tapes.isdisjoint((*op.inputs, *op.outputs))]
        return dict.fromkeys(found, "what it keeps is needed when all tiles are done")

    def _length(self):
        """What tells how long the axis is."""
        if type(self._dimension) is int:
            return lambda: as_tensor(np.int64(self._dimension), self._graph)
        for tensor in self._given:
            shape = tensor.spec.shape or ()
            axis = next((k for k, e in enumerate(shape) if e is self._dimension), None)
            if axis is not None:
                return lambda: _item(self._graph.create(SHAPE, [tensor]).outputs[0], axis)
        for op in self._operations:
            place, spec = op.record.shape_input, op.outputs[0].spec
            fits = place is not None and spec.shape == (self._dimension,)
            if fits and op.inputs[place] in self._given:
                return lambda op=op, place=place: _item(op.inputs[place], 0)
        return None

    # The loop over tiles.

    def tile(self) -> None:
        """Put a loop over tiles in place of the operations."""
        graph, loops = self._graph, [op for op in self._operations if is_loop(op)]
        self._scope = graph.scope
        name = f"{loops[0].name.rpartition('/')[2]}_tiles"
        with graph.as_default(), graph.control_dependencies(None), graph.name_scope(name) as scope:
            self._n = self.length()
            self._count = maximum(floor_divide(self._n, self._size(loops)), ONE)
            ends = [self._end(tensor) for tensor in self._ends]
            first = [as_tensor(np.int64(0), graph)] * 2 + [end.first() for end in ends]
            specs = [tensor.spec for tensor in first]
            cond = trace(graph, f"{scope}cond", specs, lambda k, *_: [less(k, self._count)])
            body = trace(graph, f"{scope}body", specs, lambda *now: self._iteration(ends, *now))
            made = add_while(cond, body, first, scope, origin=Loop(loops[0]).origin)
            names = ", ".join(op.name for op in loops)
            made.know(tiling=f"{names}: tile by tile")
            self.made = made
            pairs = zip(ends, made.outputs[2:], strict=True)
            new = {end.tensor: end.last(tensor, self._n) for end, tensor in pairs}
        substitute(graph, new)

    def _size(self, loops):
        """How many items a tile has at least, as a tensor."""
        rows, tapes = 1, []
        for op in loops:
            inner = [o for body in (Loop(op).body,) for o in running(body)]
            rows += sum(t.spec.rank == 1 for t in Loop(op).parameters)
            kept = [o for o in inner if o.record is WRITE and o.inputs[2].spec.rank]
            tapes += [self._iterations(op)] * len(kept)
        total = as_tensor(np.int64(rows), self._graph)
        for iterations in tapes:
            total = add(total, iterations)
        most = np.int64(TILE_BYTES // 8)
        return maximum(floor_divide(most, maximum(total, ONE)), np.int64(TILE_ITEMS))

    def _iterations(self, op):
        limit = limit_before(Loop(op))
        ends = () if limit is None else (limit.low, limit.high)
        if not ends or any(self._is_late(end) for end in ends):
            return as_tensor(np.int64(ASSUMED_ITERATIONS), self._graph)
        low, high = (_constant_or(end, self._graph) for end in ends)
        return maximum(add(high - low, np.int64(limit.more)), np.int64(0))

    def _is_late(self, end):
        return end.op.record is not CONSTANT and not self._is_outside(end.op)

    def _end(self, tensor):
        kind = self._regions.made(tensor)
        how = {Kind.PART: _Sum, Kind.TOTAL: _Total, Kind.TABLE: _Total, Kind.ROW: _Row}
        return how.get(kind, _Number)(self, tensor, kind)

    def _iteration(self, ends, k, start, *now):
        """A tile: the operations, with parts of rows in place of rows."""
        graph = k.graph
        after = add(k, ONE)
        share = floor_divide(multiply(after, graph.resolve(self._n)), graph.resolve(self._count))
        if TILE_ITEMS >= TILE_ALIGNMENT * TILE_ALIGNMENT:
            share = multiply(
                floor_divide(share, np.int64(TILE_ALIGNMENT)), np.int64(TILE_ALIGNMENT)
            )
        stop = where(less(after, self._count), share, graph.resolve(self._n))
        operations = self._copied(graph)
        tiled = _Tile(graph, self._dimension, (start, stop))
        for end, parameter in zip(ends, now, strict=True):
            end.begin(tiled, self._copy, parameter)
        tiled.run(operations)
        following = [
            end.following(tiled, self._copy.tensors[end.tensor], parameter)
            for end, parameter in zip(ends, now, strict=True)
        ]
        return [after, stop, *following]

    def _copied(self, body):
        """The operations in a body, as they are."""
        self._copy = Copy(body, self._scope, copied, _Captured(body))
        known = (tensor.op for tensor in self._given if tensor.op.record is not CONSTANT)
        given = {tensor for op in known for tensor in op.outputs}
        before = set(body.operations)
        self._copy.fill(given, self._ends)
        return [op for op in body.operations if op not in before and op.record is not PARAMETER]


class _Captured(dict):
    """New tensor by old one: what is not built again is captured."""

    def __init__(self, body):
        super().__init__()
        self._body = body

    def __missing__(self, tensor):
        self[tensor] = self._body.capture(tensor)
        return self[tensor]


def _item(vector, place):
    """A dimension of a shape, which may be one number."""
    if vector.spec.rank == 0:
        return _cast(vector, np.dtype(np.int64))
    return vector.graph.create(GETITEM, [vector], {"key": (place,)}).outputs[0]


def _constant_or(end, graph):
    number = end.op.record is CONSTANT
    return as_tensor(np.int64(end.op.attrs["value"]), graph) if number else cast(end, np.int64)


# What tiles leave.


class _End:
    """A result of a region that something else needs.

    Attributes
    ----------
    tensor : Tensor
        In the graph that is tiled.
    """

    def __init__(self, region, tensor, kind):
        self.region, self.tensor, self.kind = region, tensor, kind
        self.dtype = _WIDE.get(tensor.dtype, tensor.dtype)

    def begin(self, tiled, copy, parameter):
        """Let the copy of the region begin with what earlier tiles have left."""

    def last(self, tensor, n):
        """What takes the place of the tensor, after the loop over tiles."""
        return _cast(tensor, self.tensor.dtype)


class _Sum(_End):
    """A sum of a row, or a mean."""

    def first(self):
        return as_tensor(np.zeros((), self.dtype), self.tensor.graph)

    def following(self, tiled, part, parameter):
        return add(parameter, _cast(part, self.dtype))

    def last(self, tensor, n):
        if self.tensor.op.record is MEAN:
            tensor = divide(tensor, cast(n, self.dtype))
        return super().last(tensor, n)


class _Total(_End):
    """A variable of a loop to which iterations add, or rows of a table that they fill."""

    def _before(self):
        return self.tensor.op.inputs[self.tensor.index]

    def first(self):
        if self.kind is Kind.TABLE:
            self.dtype = self.tensor.dtype
        if self.region.makes(self._before()):  # a number, which is there after all tiles
            return as_tensor(np.zeros((), self.dtype), self.tensor.graph)
        return _cast(self._before(), self.dtype)

    def last(self, tensor, n):
        before = self._before()
        if self.region.makes(before):
            tensor = add(tensor, _cast(before, self.dtype))
        return super().last(tensor, n)

    def begin(self, tiled, copy, parameter):
        made = copy.tensors[self.tensor].op
        made.inputs[self.tensor.index] = parameter
        tiled.kinds.begin(parameter, self.kind)

    def following(self, tiled, part, parameter):
        return part


class _Row(_End):
    """A row that is put together from tiles."""

    def first(self):
        graph = self.tensor.graph
        inputs = [stack([self.region._n]), as_tensor(np.zeros((), self.tensor.dtype), graph)]
        attrs = {"pattern": self.tensor.spec.shape}
        return graph.create(FILL, inputs, attrs).outputs[0]

    def following(self, tiled, part, parameter):
        attrs = {"key": (slice(SYMBOLIC, SYMBOLIC),)}
        inputs = [parameter, part, *tiled.bounds]
        return parameter.graph.create(SET_ITEM, inputs, attrs).outputs[0]

    def last(self, tensor, n):
        return tensor


class _Number(_End):
    """A number that is the same for all tiles."""

    def first(self):
        self.dtype = self.tensor.dtype
        return as_tensor(np.zeros((), self.dtype), self.tensor.graph)

    def following(self, tiled, part, parameter):
        return part


def _cast(tensor, dtype):
    return tensor if tensor.dtype == dtype else cast(tensor, dtype)


class _Tile:
    """A body that holds a copy of a region, on its way to be one of a tile.

    Attributes
    ----------
    kinds : Kinds
    bounds : tuple of Tensor
        Where the tile begins and ends.
    """

    def __init__(self, body, dimension, bounds):
        self.body, self.bounds, self.kinds = body, bounds, Kinds(dimension)
        self._dimension, self._length = dimension, IterationDim()
        size = stack([bounds[1] - bounds[0]])
        zero = as_tensor(np.float64(0.0), body)
        anchor = body.create(FILL, [size, zero], {"pattern": (self._length,)}).outputs[0]
        self._shape = body.create(SHAPE, [anchor]).outputs[0]
        self._begin = stack([bounds[0]])
        self._parts: dict = {}

    def run(self, operations):
        """Make all of them operations on a tile's items."""
        for op in operations:
            if op.record is MEAN:
                op.record = SUM
        for op in operations:
            self.kinds.visit(op)
        self._shorten(self.body, operations)

    def _shorten(self, graph, operations):
        for op in operations:
            for body in subgraphs(op):
                inner = [o for o in body.operations if o.record is not PARAMETER]
                self._shorten_parameters(body)
                self._shorten(body, inner)
            self._take_parts(op)
            if is_loop(op):
                self._shorten_results(op)
                self._widen_sums(graph, op)
            else:
                self._shorten_op(graph, op)
        for place, tensor in enumerate(graph.outputs if graph is not self.body else ()):
            if self._is_result_row(graph, place) and self._is_whole(tensor):
                graph.outputs[place] = self._part(graph, tensor)

    def _is_result_row(self, graph, place):
        owner = graph.owner
        if is_loop(owner):
            is_body = graph is Loop(owner).body
            return is_body and self.kinds.kind(Loop(owner).parameters[place]) is Kind.ROW
        return self.kinds.kind(owner.outputs[place]) is Kind.ROW

    def _is_whole(self, tensor):
        """Whether a tensor has the items of all tiles."""
        return self.kinds.kind(tensor) is Kind.FREE and self.kinds.is_long(tensor)

    def _shorten_parameters(self, body):
        for parameter in body.inputs:
            self._set(parameter)
            parameter.op.attrs["spec"] = parameter.spec

    def _set(self, tensor):
        """Say of a tensor what it is of a tile."""
        kind, spec = self.kinds.kind(tensor), tensor.spec
        if kind is Kind.ROW:
            tensor.spec = spec._replace(shape=(self._length,))
        elif kind is Kind.TOTAL:
            tensor.spec = spec._replace(dtype=_WIDE.get(spec.dtype, spec.dtype))

    def _shorten_results(self, op):
        for tensor in op.outputs:
            self._set(tensor)

    def _take_parts(self, op):
        """Let an operation take parts of what is there as a whole."""
        kind = self.kinds.kind
        if is_loop(op):
            places = [v.place for v in Loop(op).variables() if kind(v.parameter) is Kind.ROW]
        elif is_branch(op) or not op.outputs:
            places = []
        elif op.record is WRITE or op.record in (ADD_ITEM, SET_ITEM):
            places = [2 if op.record is WRITE else 1]
        elif kind(op.outputs[0]) in (Kind.ROW, Kind.PART):
            places = [k for k in range(len(op.inputs)) if k != op.record.shape_input]
        else:
            places = []
        for place in places:
            if self._is_whole(op.inputs[place]):
                op.inputs[place] = self._part(op.graph, op.inputs[place])

    def _part(self, graph, tensor):
        """The tile's items of a row."""
        if (graph, tensor) not in self._parts:
            self._parts[graph, tensor] = self._new_part(graph, tensor)
        return self._parts[graph, tensor]

    def _new_part(self, graph, tensor):
        source = graph.sources.get(tensor) if graph is not self.body else None
        if source is not None:
            part = self._part(source.graph, source)
            found = graph.capture(part)
            self.kinds.of[found] = Kind.ROW
            return found
        inputs = [tensor, graph.resolve(self._begin), graph.resolve(self._shape)]
        attrs = {"pattern": (self._length,), "clamp": True}
        found = graph.create(SLICE, inputs, attrs).outputs[0]
        self.kinds.of[found] = Kind.ROW
        return found

    def _shorten_op(self, graph, op):
        kinds = [self.kinds.kind(tensor) for tensor in op.outputs]
        if Kind.ROW in kinds:
            if op.record.shape_input is not None:
                op.inputs[op.record.shape_input] = graph.resolve(self._shape)
            self._shorten_attrs(op)
        elif op.record in (CREATE, WRITE):
            self._shorten_attrs(op)
        if Kind.TABLE in kinds:
            rank = op.inputs[0].spec.rank
            op.inputs += [graph.resolve(bound) for bound in self.bounds]
            key = (*op.attrs["key"][: rank - 1], slice(SYMBOLIC, SYMBOLIC))
            op.attrs = {**op.attrs, "key": key}
        if Kind.TOTAL in kinds:
            self._widen(graph, op)
        for tensor in op.outputs:
            self._set(tensor)

    def _shorten_attrs(self, op):
        short = {
            name: (self._length,)
            for name in ("pattern", "element_shape")
            if self._is_shape(op.attrs.get(name))
        }
        op.attrs = {**op.attrs, **short}

    def _is_shape(self, pattern):
        return (
            pattern is not None
            and len(pattern) == 1
            and same_dimension(pattern[0], self._dimension)
        )

    def _widen_sums(self, graph, op):
        """Let a loop in a tile sum up in the dtype of totals what it gives as a part."""
        for variable in Loop(op).variables():
            last, dtype = variable.last, variable.parameter.spec.dtype
            if self.kinds.kind(last) is Kind.PART and last.dtype != dtype:
                first = graph.create(CAST, [variable.first], {"dtype": dtype})
                op.inputs[variable.place] = first.outputs[0]
                made = graph.create(CAST, [last], {"dtype": last.dtype})
                substitute(graph, {last: made.outputs[0]})
                made.inputs, last.spec = [last], variable.parameter.spec
                self.kinds.of[made.outputs[0]] = Kind.PART
                graph.changed()

    def _widen(self, graph, op):
        """Let what goes into a sum of all tiles have its dtype."""
        dtype = _WIDE.get(op.outputs[0].dtype)
        places = [1] if op.record is ADD_ITEM else range(len(op.inputs))
        for place in places if dtype is not None else ():
            tensor = op.inputs[place]
            if self.kinds.kind(tensor) is not Kind.TOTAL:
                made = graph.create(CAST, [tensor], {"dtype": dtype})
                op.inputs[place] = made.outputs[0]
