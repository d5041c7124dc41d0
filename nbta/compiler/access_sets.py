"""What an iteration of a loop does with the items of an array that the loop carries.

Two accesses touch different items where along some axis one index is proven to be greater, by
`Counts.is_above`, as for `overwrite_analysis`.
"""

from collections import defaultdict
from collections.abc import Callable
from itertools import chain
from typing import NamedTuple

from nbta.compiler.induction import Counts, Order
from nbta.compiler.manager import analysis
from nbta.graph.graph import Analysis, Graph, SubGraph, live, subgraphs
from nbta.graph.operation import Operation, Tensor
from nbta.graph.views import Branch, Loop, Variable, origin
from nbta.ops.core.arithmetic import add, multiply, subtract
from nbta.ops.core.dispatch import CONSTANT, PARAMETER, constant_in
from nbta.ops.indexing.items import ADD_ITEM, GETITEM, SET_ITEM, indexes_of
from nbta.ops.loops.branch import CASE
from nbta.ops.loops.iteration_counts import is_integer

#: Records of operations that read or change an item, or a part, of an array.
OF_ITEMS = frozenset((GETITEM, SET_ITEM, ADD_ITEM))
_OF_INDICES = frozenset((add.record, subtract.record, multiply.record))


class Touched(NamedTuple):
    """The changes an iteration makes to items of an array, from the last one on, and its reads."""

    changes: list[Operation]
    reads: list[Operation]


class AccessSets(Analysis):
    """Who uses the tensors of bodies, and what loops do with arrays; made again with each change.

    Parameters
    ----------
    graph : Graph
    """

    def __init__(self, graph: Graph):
        super().__init__(graph)
        self._users: dict[tuple, dict] = {}
        self._touched: dict[tuple, Touched | None] = {}
        self._readers: dict[Operation, dict] = {}

    def differences(self, fresh: "AccessSets") -> dict[str, tuple]:
        """Users and accesses that a new analysis finds otherwise."""
        users = ((graphs, found, fresh.users(*graphs)) for graphs, found in self._users.items())
        found = {
            f"users in {graphs[0].name!r}": (a, b) for graphs, a, b in users if _used(a) != _used(b)
        }
        for (loop, place), use in self._touched.items():
            new = fresh.touched(Loop(loop).variable(place))
            if use != new:
                found[f"accesses of variable {place} of {loop.name!r}"] = (use, new)
        return found

    def users(self, *graphs: Graph) -> dict:
        """The users of each tensor, once for each time; None stands for a result.

        Those of an operation are what waits for it.
        """
        self.hold()
        if graphs not in self._users:
            self._users[graphs] = _users_of(graphs)
        return self._users[graphs]

    def users_in(self, loop: Loop) -> dict:
        """Those in a loop, and in branches in it."""
        return self.users(loop.cond, *_with_branches(loop.body))

    def touched(self, variable: Variable) -> Touched | None:
        """What an iteration does with an array; None for more than reading and changing items."""
        self.hold()
        place = variable.loop.op, variable.place
        if place not in self._touched:
            self._touched[place] = _touched(variable, self.users_in(variable.loop))
        return self._touched[place]

    def readers(self, loop: Loop) -> dict[Operation, Variable]:
        """Operations that read an array that a loop carries, and does no more with: the array."""
        self.hold()
        if loop.op not in self._readers:
            uses = ((variable, self.touched(variable)) for variable in loop.variables())
            found = {op: variable for variable, use in uses if use for op in use.reads}
            self._readers[loop.op] = found
        return self._readers[loop.op]


def _users_of(graphs):
    users = defaultdict(list)
    for graph in graphs:
        for op in live(graph):
            for used in (*op.inputs, *op.control_inputs):
                users[used].append(op)
        for tensor in graph.outputs:
            users[tensor].append(None)
    return users


def _used(users):
    return {used: found for used, found in users.items() if found}


def users_of(graph: Graph) -> dict:
    """The users of each tensor in a graph: see `AccessSets.users`."""
    return analysis(AccessSets, graph).users(graph)


def users_in(loop: Loop) -> dict:
    """Those in a loop, and in branches in it: see `AccessSets.users_in`."""
    return analysis(AccessSets, loop.body).users_in(loop)


def _with_branches(body):
    waiting = [body]
    while waiting:
        body = waiting.pop()
        yield body
        cases = (Branch(op).branches for op in body.operations if op.record is CASE)
        waiting += list(chain.from_iterable(cases))[::-1]


def touched(variable: Variable) -> Touched | None:
    """What an iteration of a loop does with an array that it carries: see `AccessSets.touched`."""
    return analysis(AccessSets, variable.loop.body).touched(variable)


def readers(loop: Loop) -> dict[Operation, Variable]:
    """Operations that read an array that a loop carries: see `AccessSets.readers`."""
    return analysis(AccessSets, loop.body).readers(loop)


def _touched(variable, users):
    found = Touched([], [])
    if variable.parameter.spec.rank == 0 or users.get(variable.tested):
        return None
    return found if _followed(variable.following, users, found) is variable.parameter else None


def _followed(version, users, found) -> Tensor | None:
    """The parameter of a body that the last version of an array was; None where that is unknown.

    What is done to it on the way, by branches too, is noted.
    """
    after = None
    while True:
        others = [op for op in users[version] if op is not after]
        known = all(_note(op, version, users, found) for op in others)
        if len(others) != len(users[version]) - 1 or not known:
            return None
        after = version.op
        if after.record is PARAMETER:
            return version
        if after.record in (ADD_ITEM, SET_ITEM):
            found.changes.append(after)
            version = after.inputs[0]
        elif after.record is CASE:
            firsts = set()
            for branch in Branch(after).branches:
                first = _followed(branch.outputs[version.index], users, found)
                firsts.add(None if first is None else branch.sources.get(first))
            version = firsts.pop() if len(firsts) == 1 else None
            if version is None:
                return None
        else:
            return None


def _note(op, version, users, found) -> bool:
    """Note what an operation, or its branches, read of an array; whether they do nothing else."""
    if op is None:
        return False
    if op.record is GETITEM:
        found.reads.append(op)
        return True
    if op.record is not CASE:
        return False
    inner = [b.captures[version] for b in Branch(op).branches if version in b.captures]
    return all(_note(each, tensor, users, found) for tensor in inner for each in users[tensor])


def differ(
    counts: Counts, one: Operation, other: Operation, body: SubGraph, order: Order = Order.ANY
) -> bool:
    """Whether two accesses touch different items, in whatever iterations of a body, or ``order``.

    The second one may be in a later iteration than the first, or both in the same one.
    """
    return any(
        counts.is_above(*pair, body, order)
        for forms in _forms(counts, one, other) if None not in forms
        for pair in (forms, forms[::-1])
    )  # fmt: skip


def is_of_its_iteration(counts: Counts, one: Operation, other: Operation, body: SubGraph) -> bool:
    """Whether two accesses touch the same item only in the same iteration of a body."""
    for index, another in _forms(counts, one, other):
        found = None if index is None else counts.affine_form(index, body)
        if found is not None and found[1] and index == another:
            return True
    return False


def comes_before(
    counts: Counts, access: Operation, change: Operation, use: Touched, body: SubGraph
) -> bool:
    """Whether an access to an item comes before all that another operation does to that item.

    Parameters
    ----------
    counts : Counts
    access, change : Operation
        Of one array.
    use : Touched
        All that an iteration does with the array.
    body : SubGraph
        That of the loop.
    """
    gap = iterations_apart(counts, access, change, body)
    if gap is None:
        return False
    return gap < 0 or (gap == 0 and is_earlier(access, change, use, body))


def iterations_apart(
    counts: Counts, access: Operation, change: Operation, body: SubGraph
) -> int | None:
    """After how many iterations of a body an operation comes to the item that another one changes.

    None where that is not known, or not the same for all iterations.
    """
    found = [place_in_sweep(counts, op, body) for op in (access, change)]
    if None in found or found[0].sweep != found[1].sweep:
        return None
    return found[1].number - found[0].number


class Place(NamedTuple):
    """Which item of a row an iteration comes to that goes along it, item by item.

    Attributes
    ----------
    sweep : tuple
        Equal for accesses to one array that go along one row in the same direction.
    number : int
        The difference of two is that of the iterations that come to one item.
    """

    sweep: tuple
    number: int

    def next(self) -> "Place":
        """That of the next iteration."""
        return self._replace(number=self.number + 1)

    def before(self) -> "Place":
        """That of the iteration before."""
        return self._replace(number=self.number - 1)


def place_in_sweep(counts: Counts, op: Operation, body: SubGraph) -> Place | None:
    """Where an operation is in a sweep of a body's iterations, which move its last index by one."""
    forms = [_affine(counts, index, body) for index in indices_of(op)]
    if None in forms:
        return None
    *around, (start, step) = forms
    if abs(step) != 1 or any(step for _, step in around):
        return None
    row = tuple(form.key for form, _ in around)
    return Place((row, frozenset(start.terms.items()), step), start.constant * step)


def _affine(counts, index, body):
    form = counts.unwrapped(index)
    return None if form is None else counts.affine_form(form, body)


def is_earlier(access: Operation, change: Operation, use: Touched, body: SubGraph) -> bool:
    """Whether an access comes before a change in each iteration."""
    if any(op.graph is not body for op in (*use.reads, *use.changes)):
        return False
    later = {op.outputs[0] for op in use.changes[: use.changes.index(change) + 1]}
    return access.outputs[0] not in later and access.inputs[0] not in later


def indices_of(op: Operation) -> list:
    """By axis what an operation reads or changes of an array: integers, tensors and slices."""
    x, *rest = op.inputs
    scalars = rest if op.record is GETITEM else rest[1:]
    return indexes_of(op.attrs["key"], scalars, x.spec.shape)


def is_within(counts: Counts, op: Operation, graph: SubGraph | None = None) -> bool:
    """Whether an item that an operation reads or changes is known to be one of the array's.

    It is where a graph runs: that of the operation, or one around it.
    """
    x, graph = op.inputs[0], graph or op.graph
    return all(
        counts.is_within(index, counts.length(x, axis), graph)
        for axis, index in enumerate(indices_of(op))
        if not isinstance(index, slice)
    )


def ends_outside(counts: Counts, op: Operation, body: SubGraph, apart: int = 0) -> bool:
    """Whether an operation's item is outside of the array in a body's first or last iteration.

    With ``apart``, the first and the last but so many at each end.
    """
    if op.record not in OF_ITEMS:
        return False
    for axis, index in enumerate(indices_of(op)):
        form = counts.affine(index, body) if isinstance(index, Tensor) else None
        length = counts.length(op.inputs[0], axis)
        if form is not None and length is not None:
            start, step = form
            last = start + (counts.iterations(body.owner) + (-1 - apart)) * step
            start = start + step * apart
            gaps = (gap for end in (start, last) for gap in (end * -1 + -1, end - length))
            if any(map(counts.is_natural, gaps)):
                return True
    return False


def _forms(counts, *accesses):
    """By axis, the index of each access as `Counts.unwrapped` has it."""
    return zip(*(map(counts.unwrapped, indices_of(op)) for op in accesses), strict=True)


def is_same_item(read: Operation, change: Operation) -> bool:
    """Whether two operations are certainly of the same item, each of its version of an array."""
    if read.attrs["key"] != change.attrs["key"]:
        return False
    pairs = zip(indices_of(read), indices_of(change), strict=True)
    return all(one is other or (type(one) is int and one == other) for one, other in pairs)


def is_item_read(op: Operation) -> bool:
    """Whether an operation reads an item that is a number."""
    return op.record is GETITEM and op.outputs[0].spec.rank == 0 and not op.control_inputs


def reads_in_any_case(graph: Graph, place: Callable) -> set:
    """The places, of operations that read items, that a body or a branch reads whenever it runs."""
    found = {place(op) for op in graph.operations if is_item_read(op)} - {None}
    for op in graph.operations:
        if op.record is CASE:
            found |= set.intersection(*(reads_in_any_case(each, place) for each in subgraphs(op)))
    return found


def place_of(counts: Counts, op: Operation) -> tuple | None:
    """What tells an item from others: its array, and its indices as linear forms."""
    if not all(map(is_integer, op.inputs[1:])):
        return None
    forms = (counts.number(index) for index in op.inputs[1:])
    return origin(op.inputs[0]), op.attrs["key"], tuple(form.key for form in forms)


def is_movable(body: SubGraph, tensor: Tensor) -> bool:
    """Whether a body around a branch has a tensor of it, or can compute it: an index."""
    tensor = _captured_from(body, tensor)
    op = tensor.op
    if tensor.graph is body or op.record is CONSTANT:
        return True
    known = op.record in _OF_INDICES and is_integer(tensor) and not op.control_inputs
    return known and all(is_movable(body, each) for each in op.inputs)


def _captured_from(body, tensor):
    while tensor in tensor.graph.sources and tensor.graph is not body:
        tensor = tensor.graph.sources[tensor]
    return tensor


def moved(body: SubGraph, tensor: Tensor) -> Tensor:
    """A movable tensor of a branch in the body around it."""
    tensor = _captured_from(body, tensor)
    op = tensor.op
    if tensor.graph is body:
        return tensor
    if op.record is CONSTANT:
        return constant_in(body, op.attrs["value"])
    inputs = [moved(body, each) for each in op.inputs]
    with body.control_dependencies(None):
        return body.create(op.record, inputs, dict(op.attrs)).outputs[0]
