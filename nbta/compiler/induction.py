"""What loops count: indices as multiples of the iteration, their counts, and equal lengths.

Integers are written as linear forms in what only the run tells, so that two of them can be compared
before it: lengths of axes, counts of iterations, and the number of the current iteration. Integers
of 32 and of 64 bits count as the same, as nothing has 2**31 rows.
"""

import copy
import functools
from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple

from nbta import shapes
from nbta.graph.graph import Analysis, Graph, SubGraph, lies_in
from nbta.graph.operation import Tensor
from nbta.graph.views import Branch, Loop, is_branch, is_loop, origin, variable_of
from nbta.ops.arrays.tensor_arrays import CREATE, GATHER, SIZE
from nbta.ops.core.arithmetic import add, maximum, mod, multiply, subtract
from nbta.ops.core.dispatch import CONSTANT, PARAMETER
from nbta.ops.core.filling import RANGE
from nbta.ops.core.shaping import CAST, IDENTITY, SHAPE
from nbta.ops.indexing.gathering import TAKE
from nbta.ops.indexing.items import GETITEM
from nbta.ops.indexing.joining import STACK
from nbta.ops.loops.iteration_counts import compared, constant_of, is_integer, step_of, tests_of
from nbta.ops.loops.loop import WHILE

ADD, SUB, MUL, MAXIMUM = (f.record for f in (add, subtract, multiply, maximum))


class Order(Enum):
    """In which iteration of a loop an access is, as seen by another one; in its body, in any."""

    #: The same.
    SAME = "same"
    #: A later one.
    LATER = "later"
    #: Any.
    ANY = "any"


class Iteration(NamedTuple):
    """The number of the current iteration, from 0, in the loop of a body."""

    body: SubGraph


class Length(NamedTuple):
    """The length of an axis that nothing else is known of."""

    tensor: Tensor
    axis: int


class Clamped(NamedTuple):
    """A linear form, or 0 where that is negative: the iterations that a loop runs.

    The form is a constant and pairs of other terms with their factors.
    """

    constant: int
    terms: frozenset

    @property
    def inner(self) -> "Linear":
        """The form itself."""
        return Linear(self.constant, self.terms)


class Linear:
    """An integer: a constant, and multiples of what only the run tells."""

    __slots__ = ("constant", "terms")

    def __init__(self, constant=0, terms=()):
        self.constant = constant
        self.terms = {atom: n for atom, n in dict(terms).items() if n}

    def __add__(self, other):
        if isinstance(other, int):
            return Linear(self.constant + other, self.terms)
        terms = dict(self.terms)
        for atom, n in other.terms.items():
            terms[atom] = terms.get(atom, 0) + n
        return Linear(self.constant + other.constant, terms)

    def __mul__(self, factor: int):
        return Linear(self.constant * factor, {a: n * factor for a, n in self.terms.items()})

    def __sub__(self, other):
        return self + other * -1

    def __eq__(self, other):
        if not isinstance(other, Linear):
            return NotImplemented
        return (self.constant, self.terms) == (other.constant, other.terms)

    __hash__ = None

    @property
    def key(self) -> tuple:
        """What is equal for equal forms, and can be hashed."""
        return self.constant, frozenset(self.terms.items())

    def __repr__(self):
        return " + ".join([str(self.constant), *(f"{n}*{a}" for a, n in self.terms.items())])

    def is_natural(self) -> bool:
        """Whether it is proven not to be negative."""
        return self.constant >= 0 and all(
            n > 0 and _is_natural(atom) for atom, n in self.terms.items()
        )


def _computed_from(tensor):
    """The integers that an integer is computed from at once."""
    source = origin(tensor)
    if source is not tensor:
        return [source]
    op = tensor.op
    if op.record not in _COMPUTED or not is_integer(tensor):
        return []
    return [t for t in op.inputs if is_integer(t)]


def _is_there(tensor):
    """Whether a graph still has the operation of a tensor, and that the tensor."""
    op = tensor.op
    found = op.number < len(op.graph.operations) and op.graph.operations[op.number] is op
    return found and any(each is tensor for each in op.outputs)


def _is_natural(atom):
    if isinstance(atom, Tensor):  # a counter of iterations, the size of an array, a remainder
        op = atom.op
        if op.record is mod.record:
            return (constant_of(op.inputs[1]) or 0) > 0
        return op.record is SIZE or (op.record is WHILE and atom.index == 0)
    return True


class Counts(Analysis):
    """Integers and lengths of one program as linear forms; made again when the program changes."""

    def __init__(self, graph: Graph):
        super().__init__(graph)
        self._numbers = {}

    def differences(self, fresh: "Counts") -> dict[str, tuple]:
        """Integers of other forms in a new analysis."""
        pairs = ((t, form, fresh.number(t)) for t, form in self._numbers.items() if _is_there(t))
        return {f"the integer {t.name!r}": (a, b) for t, a, b in pairs if a != b}

    def number(self, tensor: Tensor | int) -> Linear:
        """An integer scalar as a linear form, in the worst case of itself."""
        if type(tensor) is int:
            return Linear(tensor)
        self.hold()
        if tensor not in self._numbers:
            self._find(tensor)
        return self._numbers[tensor]

    def apart(self) -> "Counts":
        """The same of some iterations, in which more may be assumed: forms are found anew."""
        other = copy.copy(self)
        other._numbers = {}
        return other

    def assume(self, tensor: Tensor, form: Linear) -> None:
        """Take an integer for a form, which it has in the iterations that are looked at."""
        self._numbers[tensor] = form

    def _find(self, tensor):
        """Note a form, after those of what it is computed from: as many as the program writes."""
        todo = [tensor]
        while todo:
            missing = [t for t in _computed_from(todo[-1]) if t not in self._numbers]
            todo += missing
            if not missing:
                found = todo.pop()
                self._numbers[found] = self._number(found)

    def _number(self, tensor):
        source = origin(tensor)
        if source is not tensor:
            return self.number(source)
        if not is_integer(tensor):
            return Linear(0, {tensor: 1})
        found = self._computed(tensor)
        return Linear(0, {tensor: 1}) if found is None else found

    def _computed(self, tensor):
        op = tensor.op
        rule = _NUMBERS.get(op.record)
        return None if rule is None else rule(self, op, tensor)

    def _constant(self, op, _):
        return Linear(int(op.attrs["value"]))

    def _sum(self, op, _):
        one, other = map(self.number, op.inputs)
        return one + other if op.record is ADD else one - other

    def _product(self, op, _):
        for factor, other in (op.inputs, op.inputs[::-1]):
            number = constant_of(factor)
            if number is not None:
                return self.number(other) * number
        return None

    def _maximum(self, op, _):
        for zero, other in (op.inputs, op.inputs[::-1]):
            if constant_of(zero) == 0:
                return self._or_none(self.number(other))
        return None

    def _same(self, op, _):
        return self.number(op.inputs[0]) if is_integer(op.inputs[0]) else None

    def _picked(self, op, _):
        (place, *rest) = op.attrs["key"]
        return self.element(op.inputs[0], place) if type(place) is int and not rest else None

    def _size(self, op, _):
        made = origin(op.inputs[0]).op
        if made.record is not CREATE or made.attrs["dynamic_size"]:
            return None
        return self.number(made.inputs[0])

    def _variable(self, op, tensor):
        step = step_of(tensor)
        if step is None:
            return None
        variable = variable_of(tensor)
        return self.number(variable.first) + Linear(0, {Iteration(variable.loop.body): step})

    def _last(self, op, tensor):
        variable = Loop(op).variable(tensor.index)
        step = step_of(variable.parameter)
        if step is None:
            return None
        return self.number(variable.first) + self.iterations(op) * step

    def element(self, vector: Tensor, place: int) -> Linear | None:
        """One entry of a vector of integers; None where nothing is known of it."""
        vector = origin(vector)
        op = vector.op
        if op.record is CONSTANT:
            values = op.attrs["value"]
            return Linear(int(values[place])) if place < len(values) else None
        if op.record is SHAPE:
            return self.length(op.inputs[0], place)
        if op.record is STACK:
            return self.number(op.inputs[place]) if place < len(op.inputs) else None
        if op.record is CAST:
            return self.element(op.inputs[0], place)
        if op.record is GETITEM and op.attrs["key"] == (slice(1, None),):
            return self.element(op.inputs[0], place + 1)
        return None

    def length(self, tensor: Tensor, axis: int = 0) -> Linear | None:
        """The length of an axis; None for an axis that the tensor is not known to have."""
        self.hold()
        tensor = origin(tensor)
        if tensor.spec.rank is None or not -tensor.spec.rank <= axis < tensor.spec.rank:
            return None
        axis %= tensor.spec.rank
        dimension = tensor.spec.shape[axis]
        if type(dimension) is int:
            return Linear(dimension)
        if isinstance(dimension, shapes.Dim):
            return Linear(0, {dimension: 1})
        found = self._length(tensor.op, axis, tensor)
        return Linear(0, {Length(tensor, axis): 1}) if found is None else found

    def _length(self, op, axis, tensor):
        if op.record.elementwise:
            return self._common_length(op, axis - tensor.spec.rank)
        if op.record.shape_input is not None:
            found = self.element(op.inputs[op.record.shape_input], axis)
            return found if found is not None and found.is_natural() else None
        if op.record is RANGE:
            return self._range_length(op)
        if axis == 0 and (op.record is GATHER or (op.record is TAKE and op.attrs["axis"] == 0)):
            return self.length(op.inputs[1])
        return None

    def _common_length(self, op, axis):
        """The length of an axis, counted from the last, that inputs have or repeat."""
        lengths = [self.length(tensor, axis) for tensor in op.inputs]
        if any(tensor.spec.rank is None for tensor in op.inputs):
            return None
        long = [length for length in lengths if length is not None and length != Linear(1)]
        return long[0] if long and all(length == long[0] for length in long) else None

    def _range_length(self, op):
        stop = self.number(op.inputs[1])
        plain = (constant_of(op.inputs[0]), constant_of(op.inputs[2])) == (0, 1)
        return stop if plain and stop.is_natural() else None

    def iterations(self, op) -> Linear:
        """How many iterations a loop runs: what its condition counts to, or its own counter."""
        left = self._left(Loop(op), compared(Loop(op).condition))
        return Linear(0, {op.outputs[0]: 1}) if left is None else self._or_none(left)

    def _or_none(self, form):
        if self.is_natural(form):
            return form
        return Linear(0, {Clamped(*form.key): 1})

    def bound(self, body: SubGraph) -> Linear | None:
        """A form that the number of the current iteration is below, in the body of a loop."""
        loop = Loop(body.owner)
        forms = (self._left(loop, compared(test)) for test in tests_of(loop.condition))
        return next((form for form in forms if form is not None), None)

    def _left(self, loop, limit):
        """How many iterations a test admits on entry; negative ones too."""
        if limit is None or not (is_integer(limit.low) and is_integer(limit.high)):
            return None
        left = limit.iterations(self.number)
        if left.terms.pop(Iteration(loop.body), 0) != -1:
            return None
        outside = is_outside(left, loop.cond) and is_outside(left, loop.body)
        return left if outside else None

    def iterates(self, op) -> bool:
        """Whether a loop is proven to run an iteration where its graph runs.

        In a body there is one iteration left at least, so what makes as many or more makes one,
        too.
        """
        left, bodies = self._left(Loop(op), compared(Loop(op).condition)), list(around(op.graph))
        if left is None or any(body is Loop(body.owner).cond for body in bodies):
            return False
        bounds = [bound for bound in map(self.bound, bodies) if bound is not None]
        return self._is_natural_in(left - Linear(1), op.graph) or any(
            self.is_natural(left - bound) for bound in bounds
        )

    def affine(self, index: Tensor | int, body: SubGraph) -> tuple[Linear, int] | None:
        """An index in a body as ``start + step * iteration``, where the start stays."""
        return self.affine_form(self.number(index), body)

    def affine_form(self, number: Linear, body: SubGraph) -> tuple[Linear, int] | None:
        """`affine`, of a form."""
        start = Linear(number.constant, number.terms)
        step = start.terms.pop(Iteration(body), 0)
        return (start, step) if is_outside(start, body) else None

    def unwrapped(self, index: Tensor | int | slice) -> Linear | None:
        """The form of an index that is not negative, as such wrap around; None where unknown."""
        form = None if isinstance(index, slice) else self.number(index)
        return form if form is not None and self.is_natural(form) else None

    def direction(self, index: Tensor, op, count: Linear) -> int | None:
        """How an index in a loop's body goes through ``0 .. count - 1``, each once.

        1 is forwards, -1 is backwards; None is for everything else, and for another number of
        iterations.
        """
        found = self.affine(index, Loop(op).body)
        if found is None or self.iterations(op) != count:
            return None
        start, step = found
        if step == 1 and start == Linear(0):
            return 1
        return -1 if step == -1 and start == count - Linear(1) else None

    def is_index(self, index: Tensor) -> bool:
        """Whether an integer is proven not to be negative in all iterations around it."""
        return self.is_natural(self.number(index))

    def is_natural(self, number: Linear) -> bool:
        """Whether a form is proven not to be negative in all iterations that it names."""
        return self._least(number).is_natural()

    def is_natural_after(
        self, number: Linear, graph: Graph | None, body: SubGraph, order: Order
    ) -> bool:
        """Whether a form is proven not to be negative once a graph has run.

        Each loop around the graph has run an iteration then. Where that is counted by what has
        another value in such iterations of a body, it says nothing.
        """
        if self.is_natural(number):
            return True
        ran = [b for b in map(self.bound, around(graph)) if b is not None]
        ran = [b for b in ran if not _varies(b.terms, body, order)]
        for bound in ran:
            number = positive(number, bound)
        left = [number - (positive(bound, bound) - Linear(1)) for bound in ran]
        return any(map(self.is_natural, (number, *left)))

    def is_above(
        self,
        one: Linear,
        other: Linear,
        body: SubGraph,
        order: Order,
        after: Graph | None = None,
    ) -> bool:
        """Whether a form is proven to be greater than another one, each at a time of its own.

        What a body computes has another value in each of its iterations, so that it says nothing
        of the difference of two forms that both have it: as ``t`` of ``a[t]`` and ``a[t + 1]``.

        Parameters
        ----------
        one, other : Linear
        body : SubGraph
            Of a loop.
        order : Order
            The iterations of that loop in which the forms are.
        after : Graph, optional
            Has been run before.
        """
        if not (one.terms or other.terms):
            return one.constant > other.constant
        own = functools.partial(_is_own, body=body, order=order)
        low, high = (
            self._least(form, lambda b: own(b) and (b is not body or order is Order.ANY))
            for form in (one, other * -1)
        )
        shared = low.terms.keys() & high.terms.keys() - {Iteration(body)}
        if _varies(shared, body, order):
            return False
        step = low.terms.get(Iteration(body), 0) if order is Order.LATER else 0
        return step >= 0 and self.is_natural_after(low + high + (step - 1), after, body, order)

    def _least(self, number: Linear, varies: Callable = lambda graph: True) -> Linear:
        """What a form is not below in any of the iterations of some bodies: those that vary.

        Where there is such an iteration, its loop had one left on entry.
        """
        while iterations := [a for a in number.terms if type(a) is Iteration and varies(a.body)]:
            # its count may name the others
            inner = max(iterations, key=lambda iteration: depth(iteration.body))
            n, bound = number.terms[inner], self.bound(inner.body)
            number = number - Linear(0, {inner: n})
            if bound is None:
                bound = self.iterations(inner.body.owner)
            last = (bound - Linear(1)) * n if n < 0 else Linear(0)
            number = positive(number + last, bound)
        return number

    def is_within(self, index: Tensor | int, length: Linear | None, graph) -> bool:
        """Whether an index is proven to be from 0 to before a length, where a graph runs."""
        bodies = list(around(graph))
        if type(index) is int:
            return length is not None and index >= 0 and (length - Linear(index + 1)).is_natural()
        if length is None or not is_integer(index):
            return False
        if any(body is Loop(body.owner).cond for body in bodies):
            return False  # there may be no iteration any more
        low, high = self.number(index), length - Linear(1) - self.number(index)
        return self._is_natural_in(low, graph) and self._is_natural_in(high, graph)

    def is_index_in(self, index: Tensor, graph) -> bool:
        """Whether an integer is proven not to be negative where a graph runs.

        At most one of its terms is of unknown size, so that a number which is too large for an
        index of 64 bits wraps around to far below 0.
        """
        form = self.number(index)
        unknown = [n for atom, n in form.terms.items() if not _is_natural(atom)]
        return unknown in ([], [1], [-1]) and self._is_natural_in(form, graph)

    def _is_natural_in(self, number, graph):
        """Whether a form is proven not to be negative where a graph runs.

        Where it runs, so does each loop around it, and each branch is the one that was taken: in
        ``if c >= w: best[c - w]`` the index is no less than 0.
        """
        for bound in map(self.bound, around(graph)):
            if bound is not None:
                number = positive(number, bound)
        return self.is_natural(number) or any(
            self.is_natural(number - known) for known in self._taken_for(graph)
        )

    def _taken_for(self, graph) -> Iterator[Linear]:
        """Forms that are not negative, as the branches that a graph lies in would not run else."""
        for branch in branches_around(graph):
            case = Branch(branch.owner)
            if case.index.dtype.kind != "b":
                continue
            holds = branch is case.branches[0]
            for limit in map(compared, tests_of(case.index) if holds else [case.index]):
                if limit is not None and is_integer(limit.low) and is_integer(limit.high):
                    left = self.number(limit.high) - self.number(limit.low) + limit.more
                    yield left - Linear(1) if holds else left * -1


def positive(number: Linear, bound: Linear) -> Linear:
    """A form where a bound is proven to be 1 at least: iterations are what was left then."""
    atoms = [atom for atom in bound.terms if type(atom) is Clamped]
    if len(bound.terms) != 1 or not atoms or bound.constant > 0 or bound.terms[atoms[0]] != 1:
        return number
    n = number.terms.get(atoms[0], 0)
    return number + (atoms[0].inner - Linear(0, {atoms[0]: 1})) * n if n else number


def around(graph) -> Iterator[SubGraph]:
    """The bodies and conditions of loops that a graph is, or lies in, from the inside."""
    while isinstance(graph, SubGraph) and graph.owner is not None:
        if is_loop(graph.owner):
            yield graph
        graph = graph.outer


def branches_around(graph) -> Iterator[SubGraph]:
    """The branches that a graph is, or lies in, from the inside."""
    while isinstance(graph, SubGraph) and graph.owner is not None:
        if is_branch(graph.owner):
            yield graph
        graph = graph.outer


def depth(graph) -> int:
    """How many graphs lie around one."""
    count = 0
    while isinstance(graph, SubGraph) and graph.outer is not None:
        graph, count = graph.outer, count + 1
    return count


_NUMBERS = {
    CONSTANT: Counts._constant,
    ADD: Counts._sum,
    SUB: Counts._sum,
    MUL: Counts._product,
    MAXIMUM: Counts._maximum,
    CAST: Counts._same,
    IDENTITY: Counts._same,
    GETITEM: Counts._picked,
    SIZE: Counts._size,
    PARAMETER: Counts._variable,
    WHILE: Counts._last,
}


#: What is computed from integers alone.
_COMPUTED = frozenset((ADD, SUB, MUL, MAXIMUM, CAST, IDENTITY))


def is_outside(form: Linear, body: SubGraph) -> bool:
    """Whether a form has nothing that belongs to a body or to what lies in it."""
    return not any(lies_in(graph, body) for graph in _graphs_of(form.terms))


def _graphs_of(atoms) -> Iterator[Graph]:
    """The graphs that compute what linear forms are made of."""
    for atom in atoms:
        if type(atom) is Clamped:
            yield from _graphs_of(atom.inner.terms)
        elif type(atom) is Iteration:
            yield atom.body
        elif not isinstance(atom, shapes.Dim):
            yield atom.tensor.graph if type(atom) is Length else atom.graph


def _varies(atoms, body, order):
    """Whether two accesses in a body, in such iterations, see two values of any of some atoms."""
    return any(_is_own(b, body, order) for g in _graphs_of(atoms) for b in around(g))


def _is_own(graph, body, order):
    """Whether two accesses in a body, in such iterations, see two values of what a graph has."""
    return lies_in(graph, body) and (graph is not body or order is not Order.SAME)
