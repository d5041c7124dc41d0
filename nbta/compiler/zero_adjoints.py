"""Adjoint iterations that have nothing to do, as the adjoints that they start from are zero.

A table of smallest costs, such as that of dynamic time warping, gives the adjoint of an item to the
neighbour that was chosen, so that adjoints of the other items are zero: of n squared items, 2 n
are on the path. And ``peak = max(peak, x)`` rarely replaces its number, so that most iterations
leave all adjoints unchanged. Such an adjoint iteration becomes a branch, which is taken where an
adjoint that it starts from is not zero, or where a number is replaced.

This follows from the body alone: what its results are is found for zeros, and for truth values, and
they must be the variables themselves. An adjoint that is exactly zero stays zero, whatever factors
it meets (`docs/design_notes/strong_zeros.md`), so that nothing is lost.
"""

from functools import partial
from itertools import product
from operator import is_
from typing import NamedTuple

from nbta.compiler.access_sets import (
    is_item_read,
    is_movable,
    is_same_item,
    moved,
    place_of,
    reads_in_any_case,
)
from nbta.compiler.induction import Counts
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.program import Program, changes
from nbta.compiler.promoted_items import promotable
from nbta.compiler.sums import goes_in_vectors, is_free_of_loops
from nbta.graph.copying import Copy, copied, keep_shapes
from nbta.graph.graph import SubGraph, at_line, everything, keep_live, running, subgraphs
from nbta.graph.operation import DATA, Facts, Operation, Tensor, is_inexact
from nbta.graph.order import ordered
from nbta.graph.views import Branch, Loop, is_body_of_branch, is_loop
from nbta.ops.arrays.tensor_arrays import READ, WRITE
from nbta.ops.core.arithmetic import (
    ADD_N,
    SCALE,
    SCALE_BACK,
    WHERE,
    add,
    divide,
    logical_not,
    logical_or,
    multiply,
    not_equal,
    subtract,
)
from nbta.ops.core.dispatch import CONSTANT, as_tensor
from nbta.ops.core.shaping import IDENTITY
from nbta.ops.indexing.items import ADD_ITEM, GETITEM, SET_ITEM
from nbta.ops.loops.branch import CASE, add_case
from nbta.ops.loops.selections import COMPARISONS
from nbta.tuning import SKIPPED_ADJOINTS, SKIPPED_TRUTHS


class _Nothing:
    """A value that is known to be zero."""


#: An adjoint that is zero, and the number zero of the program.
ZERO, NUMBER = _Nothing(), _Nothing()


class _Given(NamedTuple):
    """What results are found for.

    Attributes
    ----------
    truths : dict
        Truth values, by tensor.
    taken : dict
        Reads of items that are zero as an iteration finds them, and what sets those to zero, each
        with the array as the iteration finds it.
    """

    truths: dict[Tensor, bool]
    taken: dict[Operation, Tensor]


@contract(requires=[Fact.RANKS])
@changes
def skip_zero_adjoints(program: Program) -> Program:
    """Let adjoint iterations be branches where most of them change nothing."""
    counts, writes = analysis(Counts, program), _writes(program)
    found = []
    for op in running(program):
        if is_loop(op) and op.facts.runs_adjoints and not op.facts.has_adjoint:
            loop = Loop(op)
            in_vectors = goes_in_vectors(loop, counts) or promotable(loop, counts)
            if is_free_of_loops(loop) and not in_vectors:
                found += _plan(loop, writes, counts)
    for loop, states, starts in found:
        _branch(loop, states, starts)
    return program


def _writes(program):
    """By array, all that is written to it."""
    found: dict[Tensor, list[Operation]] = {}
    for op in running(program):
        if op.record is WRITE:
            found.setdefault(_array(op.inputs[0]), []).append(op)
    return found


def _plan(loop, writes, counts):
    """A loop whose iterations may be skipped, with its adjoints and what they start from."""
    states = [v for v in loop.variables() if is_inexact(v.parameter.dtype) and _is_data(v)]
    taken = _taken(loop, states)
    if not states or (taken and not _moves(loop.body, states, taken)):
        return []
    items, replacing = _items(counts, loop.body, taken), _replacing(loop, writes)
    starts = None if items is None else _starts(states, taken, items, list(replacing))
    if starts is None:
        return []
    for tensor, value in starts:
        if not value and tensor in replacing and _is_of_numbers(replacing[tensor].graph):
            replacing[tensor].know(is_rare=True)
    return [(loop, states, starts)]


def _is_of_numbers(body):
    """Whether a loop carries numbers alone.

    Where iterations store and load items, a branch costs more than to store all truth values.
    """
    variables = filter(_is_data, Loop(body.owner).variables())
    return all(variable.parameter.spec.rank == 0 for variable in variables)


def _is_data(variable):
    return variable.parameter.spec.kind == DATA


def _branch(loop, states, starts):
    """Let a body do what floats need where one of its starts is not as it is found to be."""
    body, states = loop.body, [v for v in states if not v.is_kept]
    places = {v.place for v in states}
    others = [t for place, t in enumerate(body.outputs) if place not in places]
    with body.as_default(), body.control_dependencies(None), at_line(loop.op.location):
        found = [_is_otherwise(_at_start(body, tensor), value) for tensor, value in starts]
        taken = found[0]
        for other in found[1:]:
            taken = logical_or(taken, other)
        outside = ordered({tensor.op for tensor in (*others, taken)})
        with body.name_scope("skip") as scope:
            branches = [SubGraph(body, f"{scope}adjoint"), SubGraph(body, f"{scope}nothing")]
            copy = Copy(branches[0], "", copied)
            copy.tensors = _Around(branches[0])
            given = [*body.inputs, *(tensor for op in outside for tensor in op.outputs)]
            branches[0].outputs, _ = copy.fill(given, [v.following for v in states])
            branches[1].outputs = [branches[1].resolve(v.parameter) for v in states]
            case = add_case(taken, branches, scope, facts=Facts(skips_adjoints=True))
    keep_shapes([v.following for v in states], case.outputs)
    for variable, tensor in zip(states, case.outputs, strict=True):
        body.outputs[variable.place] = tensor
    keep_live(body, ordered({tensor.op for tensor in body.outputs}))


class _Around(dict):
    """New tensor by old one of the graph around a branch, which captures what it has not made."""

    def __init__(self, branch):
        super().__init__()
        self._branch = branch

    def __missing__(self, tensor):
        self[tensor] = self._branch.resolve(tensor)
        return self[tensor]


def _at_start(body, tensor):
    """An item as an iteration finds it, where it is taken after changes or in a branch.

    The changes before it are none where the iteration has nothing to do, so that the branch can
    make them. If they were made before it, an iteration would need the array from before them,
    too: one that copied tables of 200 by 200 numbers took 6,000 functions.
    """
    op = tensor.op
    if op.record is not GETITEM or (tensor.graph is body and _first(op.inputs[0]) is op.inputs[0]):
        return tensor
    indices = [moved(body, index) for index in op.inputs[1:]]
    read = body.create(GETITEM, [_first(op.inputs[0]), *indices], dict(op.attrs))
    keep_shapes(op.outputs, read.outputs)
    return read.outputs[0]


def _is_otherwise(tensor, value):
    if tensor.dtype.kind != "b":
        return not_equal(tensor, as_tensor(tensor.dtype.type(0)))
    return logical_not(tensor) if value else tensor


# What an adjoint iteration starts from.


def _starts(states, taken, items, truths):
    """What leaves all adjoints unchanged where it is as it mostly is: ``(tensor, value)``.

    Adjoints are zero then, and truth values are what they are in iterations that replace nothing.
    None where there is nothing of that kind.
    """
    for values in product((False, True), repeat=len(truths)):
        given = _Given(dict(zip(truths, values, strict=True)), taken)
        if (taken or truths) and _are_unchanged(states, {}, given):
            return [*((tensor, False) for tensor in items), *given.truths.items()]
    scalars = [v.parameter for v in states if v.parameter.spec.rank == 0]
    given = _Given({}, taken)
    if not taken or not _are_unchanged(states, dict.fromkeys(scalars, ZERO), given):
        return None
    for scalar in scalars.copy():
        fewer = [other for other in scalars if other is not scalar]
        if _are_unchanged(states, dict.fromkeys(fewer, ZERO), given):
            scalars = fewer
    found = (*items, *scalars)
    return [(tensor, False) for tensor in found] if len(found) <= SKIPPED_ADJOINTS else None


def _are_unchanged(states, known, given):
    """Whether an iteration leaves all of its variables as they are."""
    wanted = [known.get(v.parameter, v.parameter) for v in states]
    return _are(_results([v.following for v in states], known, given), wanted)


def _taken(loop, states):
    """Reads of adjoints, in a body and its branches, and what sets the same items to zero then.

    By operation, the array as an iteration finds it.
    """
    parameters, found = {v.parameter for v in states}, {}
    operations = list(everything(loop.body))
    cleared = [op for op in operations if op.record is SET_ITEM and _is_zero(op.inputs[1])]
    for op in filter(is_item_read, operations):
        first = _first(op.inputs[0])
        changes = [c for c in cleared if c.inputs[0] is op.inputs[0] and is_same_item(op, c)]
        if changes and first in parameters:
            found |= dict.fromkeys((op, *changes), first)
    return found


def _items(counts, body, taken) -> list[Tensor] | None:
    """The items that an iteration takes, each once; None where it may be without one of them.

    An item that the iteration reads in any case is there at its start, too.
    """
    found = {}
    for op in (op for op in taken if op.record is GETITEM):
        place = _place(counts, op)
        if place is None or op.graph is body:
            found[place or op] = op.outputs[0]
        else:
            found.setdefault(place, op.outputs[0])
    if all(tensor.graph is body for tensor in found.values()):
        return list(found.values())
    always = reads_in_any_case(body, partial(_place, counts))
    known = (
        tensor.graph is body
        or (place in always and all(is_movable(body, index) for index in tensor.op.inputs[1:]))
        for place, tensor in found.items()
    )
    return list(found.values()) if all(known) else None


def _place(counts, op):
    """What tells an item from others, in whichever version of its array."""
    place = place_of(counts, op)
    return place and (_first(op.inputs[0]), *place[1:])


def _first(version):
    """The array that a version is one of, as the loop around has it."""
    while True:
        if version.op.record in (SET_ITEM, ADD_ITEM):
            version = version.op.inputs[0]
        elif version.op.record is CASE:
            version = Branch(version.op).branches[0].outputs[version.index]
        elif is_body_of_branch(version.graph) and version in version.graph.sources:
            version = version.graph.sources[version]
        else:
            return version


def _moves(body, states, taken):
    """Whether an adjoint that is taken goes to one item alone, which is chosen among some."""
    sources = set(taken.values())
    moved = [_moved(v.following) for v in states if v.parameter in sources]
    number = 1 + sum(each.others for each in moved)
    return any(each.is_choice for each in moved) and number <= _most_taken(body, taken)


class _Moved(NamedTuple):
    """To which items of an array an iteration adds.

    Attributes
    ----------
    is_choice : bool
        Whether a truth value, or a branch, chooses one among some.
    others : int
        How many more there are.
    before : Tensor or None
        The version that they are added to, around a branch.
    """

    is_choice: bool
    others: int
    before: Tensor | None


def _moved(version) -> _Moved:
    is_choice, others, chosen = False, 0, set()
    while version is not None and version.op.record in (SET_ITEM, ADD_ITEM, CASE):
        op = version.op
        if op.record is CASE:
            ways = [_moved(branch.outputs[version.index]) for branch in Branch(op).branches]
            is_choice = is_choice or any(way.is_choice or way.others for way in ways)
            others += max(0, *(way.others - (not way.is_choice) for way in ways))
            version = ways[0].before
        else:
            if op.record is ADD_ITEM:
                choice = _choice(op.inputs[1])
                is_choice = is_choice or choice is not None
                others += choice is None or choice in chosen  # that one goes to several items
                chosen.add(choice)
            version = op.inputs[0]
    before = None if version is None else getattr(version.graph, "sources", {}).get(version)
    return _Moved(is_choice, others, before)


def _most_taken(graph, taken):
    """How many items a body takes at most, in any of its branches."""
    own = sum(op in taken and op.record is GETITEM for op in graph.operations)
    cases = (op for op in graph.operations if op.record is CASE)
    return own + sum(max(_most_taken(way, taken) for way in subgraphs(op)) for op in cases)


def _choice(value) -> Tensor | None:
    """What chooses between an adjoint and zero, where a value is a multiple of that; or None."""
    op = value.op
    if op.record is WHERE:
        return value if any(map(_is_zero, op.inputs[1:])) or _any_choice(op.inputs[1:]) else None
    if op.record is CASE:
        ends = (branch.outputs[value.index] for branch in Branch(op).branches)
        return value if _any_choice(ends) else None
    source = getattr(value.graph, "sources", {}).get(value)
    if source is not None and source.graph.owner is not None and not is_loop(value.graph.owner):
        return _choice(source)
    linear = op.record in (multiply.record, SCALE, SCALE_BACK, IDENTITY) or op.record.linear
    choices = map(_choice, op.inputs if linear and op.record is not GETITEM else ())
    return next((choice for choice in choices if choice is not None), None)


def _any_choice(values):
    return any(_choice(value) is not None for value in values)


def _is_zero(tensor):
    value = tensor.op.attrs["value"] if tensor.op.record is CONSTANT else None
    return value is not None and value.dtype.kind in "fc" and not value.any()


def _replacing(loop, writes):
    """What wrote truth values, by which a loop replaced a largest or smallest number."""
    found = {}
    for op in loop.body.operations:
        write = _replacement(op.inputs[0], writes) if op.record is WHERE else None
        if write is not None:
            found[op.inputs[0]] = write
    return found if len(found) <= SKIPPED_TRUTHS else {}


def _replacement(truth, writes):
    """What wrote a truth value that says whether an iteration replaced an extreme; or None."""
    read = truth.op.record is READ and truth.spec.rank == 0 and truth.dtype.kind == "b"
    saved = writes.get(_array(truth.op.inputs[0])) if read else None
    if saved is None or len(saved) != 1:
        return None
    value = saved[0].inputs[2]
    owner = getattr(value.graph, "owner", None)
    if owner is None or not is_loop(owner):
        return None
    truths = (each for variable in Loop(owner).variables() for each in _replacements(variable))
    return saved[0] if any(value is each for each in truths) else None


def _replacements(variable):
    """Truth values by which an iteration replaces a number with larger, or smaller, ones."""
    found, number = [], variable.following
    while number.op.record is WHERE:
        truth, *ways = number.op.inputs
        compared = truth.op.inputs if truth.op.record in COMPARISONS else ()
        if not (_are(compared, ways) or _are(compared, ways[::-1])) or len(compared) != 2:
            return []
        found.append(truth)
        number = next((way for way in ways if way is variable.parameter), ways[1])
    return found if number is variable.parameter else []


def _array(handle):
    """The tensor that a handle comes from, around bodies and before loops."""
    while True:
        graph = handle.graph
        source = getattr(graph, "sources", {}).get(handle)
        if source is None:
            return handle
        handle = source


# What the results of a body are where something is known.


def _are(results, others):
    return len(results) == len(others) and all(map(is_, results, others))


def _results(ends, known, given):
    """What tensors are: zero, or a tensor that they are equal to."""
    values = dict(known)
    for op in ordered({tensor.op for tensor in ends}):
        inputs = [values.get(tensor, tensor) for tensor in op.inputs]
        found = _RULES.get(op.record, _linear)(op, inputs, given)
        for tensor, value in zip(op.outputs, found or (), strict=False):
            if value is not None:
                values.setdefault(tensor, value)
    return [values.get(tensor, tensor) for tensor in ends]


def _zero_of(inputs):
    """Zero, if all inputs are that."""
    if not all(isinstance(each, _Nothing) for each in inputs):
        return None
    return [ZERO if _has_zero(inputs) else NUMBER]


def _has_zero(inputs):
    """Whether an adjoint that is zero is among inputs."""
    return any(each is ZERO for each in inputs)


def _constant(op, inputs, given):
    return [NUMBER] if _is_zero(op.outputs[0]) else None


def _linear(op, inputs, given):
    places = op.record.linear or ()
    if places is True:
        places = [place for place, x in enumerate(op.inputs) if x.spec.differentiable]
    one = len(op.outputs) == 1 and op.outputs[0].spec.rank == 0 and op.record.selects is False
    return _zero_of([inputs[place] for place in places]) if one and places else None


def _scaled(op, inputs, given):
    return [ZERO] if inputs[0] is ZERO else None


def _same(op, inputs, given):
    return [inputs[0]]


def _product(op, inputs, given):
    """An adjoint that is zero stays zero; the number zero makes NaN of an infinite one."""
    return [ZERO] if _has_zero(inputs) else None


def _sum(op, inputs, given):
    left = [value for value in inputs if not isinstance(value, _Nothing)]
    if not left:
        return _zero_of(inputs)
    return left if len(left) == 1 and left[0].spec == op.outputs[0].spec else None


def _difference(op, inputs, given):
    one, other = inputs
    if isinstance(other, _Nothing):
        return _zero_of(inputs) if isinstance(one, _Nothing) else [one]
    return None


def _added_item(op, inputs, given):
    return [inputs[0]] if isinstance(inputs[1], _Nothing) else None


def _item(op, inputs, given):
    """An item that is zero, of an array that nothing has changed."""
    return [ZERO] if given.taken.get(op) is inputs[0] else _linear(op, inputs, given)


def _set_item(op, inputs, given):
    """A zero where an item was zero."""
    is_cleared = given.taken.get(op) is inputs[0] and isinstance(inputs[1], _Nothing)
    return [inputs[0]] if is_cleared else None


def _chosen(op, inputs, given):
    if op.inputs[0] in given.truths:
        return [inputs[1 if given.truths[op.inputs[0]] else 2]]
    return _zero_of(inputs[1:]) or ([inputs[1]] if inputs[1] is inputs[2] else None)


def _either(op, inputs, given):
    """What all branches agree on."""
    ways = []
    for branch in Branch(op).branches:
        known = dict(zip(branch.inputs, inputs[1:], strict=True))
        ways.append(_results(branch.outputs, known, given))
    return [_agreed(results) for results in zip(*ways, strict=True)]


def _agreed(results):
    if all(isinstance(each, _Nothing) for each in results):
        return _zero_of(results)[0]
    return results[0] if all(each is results[0] for each in results) else None


_RULES = {
    CONSTANT: _constant,
    IDENTITY: _same,
    multiply.record: _product,
    add.record: _sum,
    subtract.record: _difference,
    ADD_N: _sum,
    GETITEM: _item,
    ADD_ITEM: _added_item,
    SET_ITEM: _set_item,
    WHERE: _chosen,
    CASE: _either,
    divide.record: _scaled,
    SCALE: _scaled,
    SCALE_BACK: _scaled,
}
