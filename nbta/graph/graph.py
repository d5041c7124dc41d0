"""Graphs: operations in creation order, names, scopes, and the graph that is being built."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import chain
from typing import TYPE_CHECKING, Any

from nbta.errors import NbtaError, invalid, located
from nbta.graph.operation import Operation, Record, Spec, Tensor
from nbta.graph.order import ordered
from nbta.immutable import in_body
from nbta.locations import hide_own_frames, of_caller

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from nbta.locations import Location
    from nbta.typing import Array


_VALID = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\-/]*")


def check(name: str) -> None:
    """Refuse what is no name of an operation or a scope."""
    if not isinstance(name, str) or not _VALID.fullmatch(name):
        message = (
            f"name: {name!r} is no name; use letters, digits and any of '_.-/', beginning with a "
            f"letter, a digit or '.'"
        )
        raise invalid("name", message)


class Names:
    """The names that a graph has given away, in any mixture of upper and lower case."""

    def __init__(self):
        self._used: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """The name, or the first of ``name_1``, ``name_2``, ... that is free."""
        key = name.lower()
        count = self._used.get(key, 0)
        if not count:
            self._used[key] = 1
            return name
        while f"{key}_{count}" in self._used:
            count += 1
        self._used[key] = count + 1
        self._used[f"{key}_{count}"] = 1
        return f"{name}_{count}"

    def copy(self) -> Names:
        """These names, for going back to them."""
        names = Names()
        names._used = dict(self._used)
        return names


_building = threading.local()
#: Something while any thread may be building a graph: asking a thread takes 0.1 us.
building: list[Any] = []


def current() -> Graph | None:
    """The graph that operations are added to; None where they run at once."""
    stack = getattr(_building, "stack", None)
    return stack[-1] if stack else None


@contextmanager
def locating():
    """A context in which operations note the user's line that they come from."""
    before = getattr(_building, "locating", False)
    _building.locating = True
    try:
        yield
    finally:
        _building.locating = before


@contextmanager
def gradient_of(op: Operation, given: Iterable[Tensor]) -> Iterator[None]:
    """A context for the gradient rule of an operation, whose line new operations come from.

    `is_adjoint` tells tensors that are computed from those that are given.
    """
    line = None if op.location is None else op.location.of_gradient
    with with_adjoints(given), at_line(line):
        yield


@contextmanager
def with_adjoints(given: Iterable[Tensor]) -> Iterator[None]:
    """A context for a rule that computes with adjoints; see `is_adjoint`."""
    before = getattr(_building, "adjoints", None)
    _building.adjoints = set(given)
    try:
        yield
    finally:
        _building.adjoints = before


def mark_adjoints(tensors: Iterable[Tensor]) -> None:
    """Let tensors be further adjoints for the rule that is running."""
    _building.adjoints.update(tensors)


@contextmanager
def at_line(location: Location | None) -> Iterator[None]:
    """A context whose new operations come from a line, as those do in whose place they are."""
    before = getattr(_building, "line", None)
    _building.line = location
    try:
        yield
    finally:
        _building.line = before


def is_of_gradient(op: Operation) -> bool:
    """Whether an operation is part of a gradient of what its line says."""
    if op.location is not None and op.location.is_gradient:
        return True
    return any(op.name.startswith(scope) for scope in op.graph.root.gradient_scopes)


def is_adjoint(value: Any) -> bool:
    """Whether a gradient rule that is running computed a value from what it was given."""
    found = getattr(_building, "adjoints", None)
    return bool(found) and isinstance(value, Tensor) and value in found


@contextmanager
def _entered(graph):
    """A context in which a graph is the current one."""
    stack = _building.__dict__.setdefault("stack", [])
    stack.append(graph)
    depth = len(stack)
    building.append(graph)
    try:
        yield graph
    finally:
        building.pop()
        del stack[depth - 1 :]


def leaving(error: BaseException) -> None:
    """Show users an error without this package's frames, where what they called raises it."""
    if current() is None and not in_body():
        hide_own_frames(error)


def at_once():
    """A context in which operations run at once, whatever graph is being built around it."""
    return _entered(None)


def name_scope(name: str) -> AbstractContextManager[str]:
    """Prefix the names of operations with ``name/`` in a context, which yields the scope's name.

    Outside graphs, it has no effect.

    Parameters
    ----------
    name : str
        Letters, digits and any of ``_.-/``.

    Returns
    -------
    context manager
        The context.

    Raises
    ------
    InvalidArgumentError
        If the name is invalid.

    Examples
    --------
    >>> with nbta.Graph().as_default():
    ...     with nbta.name_scope("layer"):
    ...         print(nbta.constant(1.0, name="weight").name)
    layer/weight:0
    """
    graph = current()
    check(name)
    return graph.name_scope(name) if graph is not None else _nowhere(name)


@contextmanager
def _nowhere(name):
    yield name + "/"


def control_dependencies(
    operations: Iterable[Operation | Array] | None,
) -> AbstractContextManager[Any]:
    """Let new operations of a context run after the given operations or tensors.

    Outside graphs, it has no effect, as operations run in the order of their calls.

    Parameters
    ----------
    operations : iterable of Operation, Tensor or array, or None
        The operations that must have run before; arrays are ignored. With None, new operations have
        no control inputs.

    Returns
    -------
    context manager
        The context.

    Raises
    ------
    InvalidArgumentError
        If an operation or tensor belongs to another graph.

    Examples
    --------
    >>> with nbta.Graph().as_default():
    ...     first = nbta.constant(1.0)
    ...     with nbta.control_dependencies([first]):
    ...         second = nbta.identity(2.0)
    ...     second.op.control_inputs == [first.op]
    True
    """
    operations = None if operations is None else list(operations)
    graphs = (item.graph for item in operations or () if isinstance(item, Operation | Tensor))
    graph = current() or next(graphs, None)
    return nullcontext() if graph is None else graph.control_dependencies(operations)


class Graph:
    """A computation: operations, and the tensors between them.

    Examples
    --------
    >>> with nbta.Graph().as_default() as g:
    ...     x = nbta.placeholder("float64", (2,), name="x")
    ...     y = nbta.tanh(x) * 2.0
    >>> nbta.Session(g).run(y, {x: [0.0, 1.0]})
    array([0.        , 1.52318831])
    """

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.version = 0  # counts changes, for what is derived from the graph
        self.losses = 0  # of a root: counts removals, for every `Analysis`
        self.cache = {}  # one tensor for many uses, such as constants
        self.labels: dict[Tensor, str] = {}  # what users call arguments and variables of loops
        self.roles: dict[Tensor, tuple[str, Tensor]] = {}  # see `labels.call_after`
        self.last_at_places: Any = None  # of `label_of`
        self.lengths = None  # of a root that a function is traced into: a `Lengths`
        self.outside: Any = None  # of such a root: what the trace reads from outside
        self.factors: set[Operation] = set()  # of gradients: derivatives that adjoints meet
        self.put_back: set[Operation] = set()  # what iterations made that a trace gave up
        self.gradient_scopes: set[str] = set()  # of a root: those that `gradients` opened in it
        self._names = Names()
        self._scope = ""
        self._after: list[Operation] = []
        self._by_name: dict[str, Operation] = {}

    def as_default(self) -> AbstractContextManager[Graph]:
        """Add the operations of a context to this graph.

        Returns
        -------
        context manager
            It returns the graph.
        """
        return _entered(self)

    @contextmanager
    def name_scope(self, name: str) -> Iterator[str]:
        """See `nbta.name_scope`; a name that ends in ``/`` enters that scope again.

        Parameters
        ----------
        name : str
            Name of the scope.
        """
        check(name)
        before = self._scope
        again = name.endswith("/")
        self._scope = name if again else self.unique_name(name) + "/"
        try:
            yield self._scope
        finally:
            self._scope = before

    @contextmanager
    def control_dependencies(
        self, operations: Iterable[Operation | Array] | None
    ) -> Iterator[None]:
        """See `nbta.control_dependencies`; with None, new operations have no control inputs.

        Parameters
        ----------
        operations : iterable of Operation or Tensor, or None
            What new operations of the context run after.
        """
        before = self._after
        added = [item.op if isinstance(item, Tensor) else item for item in operations or ()]
        for op in added:
            if not isinstance(op, Operation) or op.graph is not self:
                message = f"control_dependencies: {op!r} is not an operation of this graph"
                raise invalid("graph", message)
        self._after = [] if operations is None else before + added
        try:
            yield
        finally:
            self._after = before

    def unique_name(self, name: str) -> str:
        """Return an unused name in the current scope, and reserve it.

        Parameters
        ----------
        name : str
            The name that is wanted, to which a number is added if it is taken.

        Returns
        -------
        str
            The name, with the scope before it.
        """
        return self._names.unique(self._scope + name)

    @property
    def scope(self) -> str:
        """The prefix of the names of new operations."""
        return self._scope

    @property
    def root(self) -> Graph:
        """The outermost graph."""
        return self

    def create(
        self,
        record: Record,
        inputs: Iterable[Tensor],
        attrs: dict[str, Any] | None = None,
        *,
        name: str | None = None,
    ) -> Operation:
        """Add an operation.

        Parameters
        ----------
        record : Record
            The kind of operation.
        inputs : iterable of Tensor
            Its inputs.
        attrs : dict, optional
            What is fixed when the graph is built.
        name : str, optional
            Name of the operation; by default that of its kind, made unique.

        Returns
        -------
        Operation
            The operation.

        Raises
        ------
        InvalidArgumentError
            For inputs that the record refuses, or that belong to another graph.
        """
        attrs = attrs or {}
        inputs = [self.resolve(tensor) for tensor in inputs]
        if name is not None:
            check(name)
        again = name is not None and name.endswith("/")
        name = name[:-1] if again else self.unique_name(name or record.name)
        if name in self._by_name:
            message = (
                f"name: {name!r} is the name of another operation; without / at its end it is "
                f"made unique"
            )
            raise invalid("name", message)
        try:
            specs = record.infer(*(tensor.spec for tensor in inputs), **attrs)
        except NbtaError as error:
            raise located(error, f"{record.name} {name!r}") from None
        specs = (specs,) if isinstance(specs, Spec) else specs
        op = Operation(self, record, name, inputs, attrs, self._after, specs)
        op.location = getattr(_building, "line", None)
        if op.location is None and getattr(_building, "locating", False):
            op.location = of_caller()
        self.add(op)
        self.changed()
        found = getattr(_building, "adjoints", None)
        if found:
            if found.isdisjoint(inputs):
                self.factors.add(op)
            else:
                found.update(op.outputs)
        return op

    def add(self, op: Operation) -> None:
        """Add an operation that was made for this graph, with a name that is unique in it.

        Parameters
        ----------
        op : Operation
            An operation made for this graph.
        """
        self.operations.append(op)
        self._by_name[op.name] = op

    def changed(self) -> None:
        """Forget everything that was derived from the graph before a change."""
        self.version += 1

    def resolve(self, tensor: Tensor) -> Tensor:
        """Return the tensor that represents a tensor in this graph.

        Parameters
        ----------
        tensor : Tensor
            A tensor of this graph, or in the body of a loop or a branch one of a graph around it.

        Returns
        -------
        Tensor
            The tensor of this graph.
        """
        if tensor.graph is self:
            return tensor if type(tensor) is Tensor else tensor.itself
        if tensor.graph.root is self.root:
            message = (
                f"{tensor.name!r} belongs to the body of a loop or branch, outside of which it has "
                f"no value; return from the body what is needed elsewhere"
            )
        else:
            message = f"{tensor.name!r} belongs to another graph; build with tensors of one graph"
        raise invalid("graph", message)

    def operation(self, name: str) -> Operation:
        """Return the operation of a name.

        Parameters
        ----------
        name : str
            The name of an operation.

        Returns
        -------
        Operation
            The operation.

        Raises
        ------
        InvalidArgumentError
            If there is none.
        """
        if name not in self._by_name:
            raise invalid("name", f"there is no operation {name!r} in the graph")
        return self._by_name[name]


class SubGraph(Graph):
    """The body of a loop or a branch: a graph with parameters and results.

    Attributes
    ----------
    outer : Graph
        Around it; its tensors become parameters when they are used here.
    inputs : list of Tensor
        Parameters: those that the body was made with, and then the captured tensors.
    outputs : list of Tensor
    owner : Operation or None
        What runs it, once that is built.
    """

    def __init__(self, outer: Graph, name: str):
        super().__init__()
        self.outer = outer
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.captures: dict[Tensor, Tensor] = {}  # parameter by tensor around
        self.sources: dict[Tensor, Tensor] = {}  # tensor around by parameter
        self.owner: Operation | None = None
        self.forward: Graph | None = None  # whose values `recall` brings in, for a gradient
        self._places: dict[Tensor, int] = {}  # of parameters, as they were when last asked for
        self._scope = name + "/"

    @property
    def root(self) -> Graph:
        """The graph that all others are part of."""
        return self.outer.root

    def changed(self) -> None:
        """Forget what was derived from this graph, and from those around it."""
        graph: Graph = self
        while isinstance(graph, SubGraph):
            graph.version += 1
            graph = graph.outer
        graph.changed()

    def parameter(self, spec: Spec, name: str = "argument") -> Tensor:
        """A new parameter, after the others."""
        with self.control_dependencies(None):
            tensor = self.create(PARAMETER, [], {"spec": spec}, name=name).outputs[0]
        self.inputs.append(tensor)
        return tensor

    def place_of(self, parameter: Tensor) -> int:
        """The place of a parameter among the others."""
        place = self._places.get(parameter, len(self.inputs))
        if place >= len(self.inputs) or self.inputs[place] is not parameter:
            self._places = {tensor: place for place, tensor in enumerate(self.inputs)}
        return self._places[parameter]

    def resolve(self, tensor: Tensor) -> Tensor:
        """What stands for a tensor here: a parameter, where it belongs to a graph around."""
        tensor = tensor if type(tensor) is Tensor else tensor.itself
        if tensor.graph is self:
            return tensor
        if self.forward is not None and tensor.graph is self.forward:
            return self.recall(tensor)
        return self.capture(self.outer.resolve(tensor))

    def capture(self, tensor: Tensor) -> Tensor:
        """The parameter that stands for a tensor of the graph around."""
        if tensor in self.captures:
            return self.captures[tensor]
        if self.owner is None:
            self._capture(tensor)
        else:
            for body in subgraphs(self.owner):
                body._capture(tensor)
            self.owner.inputs.append(tensor)
        return self.captures[tensor]

    def _capture(self, tensor):
        parameter = self.parameter(tensor.spec, "captured")
        self.captures[tensor], self.sources[parameter] = parameter, tensor


class Analysis:
    """What is known of a graph, until that loses something.

    Passes change a graph to another one of the same values. So what is known of values stays true
    while operations are added and tensors take the place of equal ones. But where variables,
    parameters or operations are removed, places and users are others, and what is known is wrong.

    Parameters
    ----------
    graph : Graph
        The graph, or any of its bodies.
    """

    def __init__(self, graph: Graph):
        self._root = graph.root
        self._losses = self._root.losses

    def hold(self) -> None:
        """Refuse to answer for a graph that has lost something: a pass is to look again."""
        if self._root.losses != self._losses:
            raise AssertionError(f"{type(self).__name__} of a graph that has changed since")

    def differences(self, fresh: Any) -> dict[str, tuple]:
        """What a new analysis of the same graph says otherwise: by name, this one's and that."""
        return {}


def subgraphs(op: Operation) -> list[SubGraph]:
    """The bodies that an operation runs."""
    if not op.record.effects:
        return []
    found = []
    for value in op.attrs.values():
        if type(value) is tuple:
            found += [item for item in value if isinstance(item, SubGraph)]
        elif isinstance(value, SubGraph):
            found.append(value)
    return found


def lies_in(graph: Graph | None, body: Graph) -> bool:
    """Whether a graph is a body, or lies somewhere in it."""
    while graph is not None and graph is not body:
        graph = getattr(graph, "outer", None)
    return graph is not None


def everything(graph: Graph) -> Iterator[Operation]:
    """Operations of a graph and of all bodies in it."""
    return _walk(graph, lambda body: body.operations)


def _walk(graph, operations_of):
    """Operations of a graph, each before those of its bodies.

    Without recursion: chains of ``elif`` are branches in branches, and of a nest of generators each
    passes on what those in it give.
    """
    levels = [iter(operations_of(graph))]
    while levels:
        for op in levels[-1]:
            yield op
            if op.record.effects and (bodies := subgraphs(op)):
                levels.append(chain.from_iterable(map(operations_of, bodies)))
                break
        else:
            levels.pop()


def live(graph: Graph) -> list[Operation]:
    """Operations of a graph that a run of it runs."""
    targets = getattr(graph, "targets", ())
    return ordered([*dict.fromkeys(tensor.op for tensor in graph.outputs), *targets])


def running(graph: Graph) -> Iterator[Operation]:
    """Operations that a run of a graph may run, those in bodies too."""
    return _walk(graph, live)


class Closed:
    """A body that captures nothing: passes and gradients of what is around do not look into it.

    Attributes
    ----------
    graph : SubGraph
        Its parameters are all that it needs.
    """

    def __init__(self, graph: SubGraph):
        self.graph = graph

    def __repr__(self):
        return f"<body of {len(self.graph.operations)} operations>"


def all_bodies(op: Operation) -> list[SubGraph]:
    """The bodies that an operation runs, closed ones too, for whoever only looks."""
    found = subgraphs(op)
    for value in op.attrs.values():
        if type(value) is Closed:
            found.append(value.graph)
    return found


def within(operations) -> set[Operation]:
    """Operations, and those of their bodies, closed ones too."""
    todo = list(operations)
    found = set(todo)
    while todo:
        for body in all_bodies(todo.pop()):
            todo += body.operations
            found.update(body.operations)
    return found


def substitute(graph: SubGraph, new: dict[Tensor, Tensor]) -> None:
    """Use other tensors in place of some, in all operations and results of a body."""
    for op in graph.operations:
        if not new.keys().isdisjoint(op.inputs):
            op.inputs = [new.get(tensor, tensor) for tensor in op.inputs]
            for body in subgraphs(op):
                _rename_captures(body, new)
    graph.outputs = [new.get(tensor, tensor) for tensor in graph.outputs]
    graph.changed()


def _rename_captures(body, new):
    """Let parameters stand for other tensors: all of them, as several may stand for one."""
    renamed = {p: new[source] for p, source in body.sources.items() if source in new}
    for old in new.keys() & body.captures.keys():
        del body.captures[old]
    for parameter, source in renamed.items():
        body.sources[parameter] = source
        body.captures.setdefault(source, parameter)


def drop_unused(graph: SubGraph, live) -> None:
    """Keep only the given operations, and of the captured tensors those that they use."""
    used = {tensor for op in live for tensor in op.inputs} | set(graph.outputs)
    unused = {parameter for parameter in graph.sources if parameter not in used}
    graph.inputs = [tensor for tensor in graph.inputs if tensor not in unused]
    keep_live(graph, live)


def keep_live(graph: SubGraph, live) -> None:
    """Keep only the given operations, and the parameters that the body has."""
    parameters = set(graph.inputs)
    graph.captures = {k: v for k, v in graph.captures.items() if v in parameters}
    graph.sources = {k: v for k, v in graph.sources.items() if k in parameters}
    kept = {*live, *(tensor.op for tensor in graph.inputs)}
    graph.operations = [op for op in graph.operations if op in kept]
    for number, op in enumerate(graph.operations):
        op.number = number
    graph.root.losses += 1
    graph.cache.clear()
    graph.changed()


def sweep(graph: SubGraph) -> None:
    """Keep only what a run runs, in that order, in a graph and in all bodies in it."""
    order = live(graph)
    graph.operations = list(dict.fromkeys([*(tensor.op for tensor in graph.inputs), *order]))
    keep_live(graph, order)
    for op in order:
        for body in subgraphs(op):
            sweep(body)


def unify(bodies: list[SubGraph], count: int) -> list[Tensor]:
    """Give bodies the same parameters after the first ``count``; what those stand for."""
    union = list(dict.fromkeys(outer for body in bodies for outer in body.captures))
    for body in bodies:
        for outer in union:
            body.capture(outer)
        body.inputs[count:] = [body.captures[outer] for outer in union]
    return union


PARAMETER: Record = None  # given by nbta.ops, where all records are
