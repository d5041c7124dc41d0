"""Which variables of loops keep their shape or share one, where the graph does not know lengths.

A length that an integer of the run gives, as in ``np.zeros(2 * n + 1)``, or that iterations change,
as that of ``v = p * v[1:] + q * v[:-1]``, is None in the graph. What gives it says more: arrays of
the same integers have one shape, and so have parts of the same number of items less.

The variables of a loop are taken to keep their shape until an iteration gives one another shape,
and those that do not to have one shape until an iteration tells them apart (as numbers of values
are found by partitions: Alpern, Wegman and Zadeck, 1988).
"""

from nbta.graph.graph import everything
from nbta.graph.operation import DATA
from nbta.graph.order import ordered
from nbta.graph.views import Branch, Loop, Variable, origin
from nbta.ops.core.dispatch import PARAMETER
from nbta.ops.core.shaping import SHAPE
from nbta.ops.indexing.items import GETITEM, SYMBOLIC
from nbta.ops.loops.branch import CASE
from nbta.ops.loops.loop import WHILE


class SameShapes:
    """What gives shapes that the graph does not know, for each tensor of a program.

    Parameters
    ----------
    program : Program
    """

    def __init__(self, program):
        self._given: dict = {}
        self._labels: dict = {}  # by body of a loop, what gives the shapes of its variables
        loops = (Loop(op) for op in everything(program) if op.record is WHILE)
        if any(_is_asked(variable.parameter) for loop in loops for variable in loop.variables()):
            self._walk(program)

    def keeps(self, variable: Variable) -> bool:
        """Whether a variable has the shape that it begins with in all iterations of a loop."""
        labels = self._labels.get(variable.loop.body)
        return labels is not None and labels[variable.place] == self._of(variable.first)

    def first_alike(self, variable: Variable) -> int:
        """The place of the first variable of a loop that has this one's shape in each iteration."""
        labels = self._labels.get(variable.loop.body)
        return variable.place if labels is None else labels.index(labels[variable.place])

    def _walk(self, graph):
        for op in ordered([*(t.op for t in graph.outputs), *getattr(graph, "targets", ())]):
            if op.record is WHILE:
                self._enter(op)
            elif op.record is CASE:
                for branch in Branch(op).branches:
                    self._walk(branch)
            for tensor in op.outputs:
                if _is_asked(tensor):
                    self._given[tensor] = self._made(op, tensor)

    def _enter(self, op):
        """Find what gives the shapes of a loop's variables, from those before it."""
        loop = Loop(op)
        if not any(map(_is_asked, loop.body.inputs[: loop.count])):
            return self._walk(loop.body)
        first = [self._of(variable.first) for variable in loop.variables()]
        labels = list(first)
        while True:
            self._given.update(zip(loop.body.inputs, labels, strict=False))
            self._walk(loop.body)
            ends = [self._of(variable.following) for variable in loop.variables()]
            found: dict = {}
            following = []
            for place, key in enumerate(zip(labels, first, ends, strict=True)):
                stays = key[0] == key[1] == key[2]
                following.append(key[0] if stays else (op, found.setdefault(key, place)))
            if following == labels:
                self._labels[loop.body] = labels
                return None
            labels = following

    def _of(self, tensor):
        """What gives the shape of a tensor: equal for those that certainly have one."""
        if not _is_asked(tensor):
            return tensor.spec.shape or _itself(tensor)
        source = origin(tensor)
        return self._given.get(source) or _itself(source)

    def _made(self, op, tensor):
        record = op.record
        if record is PARAMETER:
            return self._of(tensor)
        if record is WHILE:
            labels = self._labels.get(Loop(op).body)
            return _itself(tensor) if labels is None else labels[tensor.index]
        if record is CASE:
            return _only({self._of(end) for end in Branch(op).ends(tensor.index)}, tensor)
        if record.shape_input is not None:
            lengths = origin(op.inputs[record.shape_input])
            is_shape = lengths.op.record is SHAPE
            return self._of(lengths.op.inputs[0]) if is_shape else ("lengths", _itself(lengths))
        if record.changes:
            return self._of(op.inputs[0])
        if record.elementwise:
            ranked = [each for each in op.inputs if each.spec.rank]
            alike = all(each.spec.rank == tensor.spec.rank for each in ranked)
            return _only(set(map(self._of, ranked)) if alike else (), tensor)
        left = _left(op.attrs["key"]) if record is GETITEM else None
        return _itself(tensor) if left is None else (self._of(op.inputs[0]), left)


def _itself(tensor):
    """What stands for a tensor, which has another meaning of equality."""
    return "itself", tensor.op, tensor.index


def _is_asked(tensor):
    """Whether a tensor has lengths that the graph does not know."""
    return tensor.kind == DATA and tensor.spec.shape is not None and None in tensor.spec.shape


def _only(found, tensor):
    return found.pop() if len(found) == 1 else _itself(tensor)


def _left(key):
    """What a key leaves of each axis; None where only the run knows."""
    found = []
    for part in key:
        if not isinstance(part, slice):
            found.append("new" if part is None else "all" if part is Ellipsis else "one")
            continue
        bounds = start, stop, step = part.start, part.stop, part.step
        if any(bound is SYMBOLIC for bound in bounds):
            return None
        without = step in (None, 1) and (start or 0) >= 0 and (stop is None or stop < 0)
        found.append((start or 0) - (stop or 0) if without else bounds)
    return tuple(found)
