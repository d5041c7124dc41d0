"""Reverse mode: gradients as operations of the same graph."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Literal

from nbta import shapes
from nbta.errors import InvalidArgumentError, invalid, located
from nbta.graph.dependence import connections, outside_ways
from nbta.graph.graph import SubGraph, all_bodies, current, gradient_of
from nbta.graph.labels import ADJOINT, call_after
from nbta.graph.operation import DATA, FLOW, Addend, Spec, Tensor, made_gradient
from nbta.graph.order import ordered
from nbta.graph.verifier import verify_change
from nbta.graph.views import Loop, is_loop
from nbta.ops.arrays.tensor_arrays import CLOSE, CREATE, ITERATION, LOOKUP, LOOKUPS, Access, build
from nbta.ops.core.arithmetic import add_n
from nbta.ops.core.dimensions import outside
from nbta.ops.core.dispatch import as_tensor, special
from nbta.ops.core.filling import ones_like, zeros_like
from nbta.ops.core.shaping import stop_gradient
from nbta.ops.loops.aliases import check_writes, origins, own_source
from nbta.ops.loops.residuals import sum_of_shadows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbta.tensor_array import TensorArray
    from nbta.typing import Array, ArrayLike


class Computation:
    """One call of `gradients`: its source, and how rules get at gradient arrays.

    Parameters
    ----------
    name : str
        Its source, if no lookup of the program has that.

    Attributes
    ----------
    transient : bool
        Whether the iterations that are being differentiated are run for this alone.
    """

    def __init__(self, name: str, stop=(), keep=False):
        self._name, self.transient = name, False
        self._stop = frozenset(stop)
        self._clear = False if keep else None
        self._reached: list[set[Tensor]] = []
        self._sums: list[_Sums] = []
        self._home = current()
        self._iteration = ()

    def run(self, ys, grads, xs, first=()) -> list:
        """Gradients with respect to ``xs``, None where no path leads to one.

        ``first`` may have tensors, by x, that the gradients are added to.
        """
        self._reached.append(self._between(ys, xs))
        self._sums.append(_Sums(dict(first)))
        try:
            return self._walk(ys, grads, xs)
        finally:
            self._reached.pop()
            self._sums.pop()

    def wants(self, tensor) -> bool:
        """Whether a gradient of a tensor is of use."""
        return tensor in self._reached[-1]

    def _between(self, ys, xs):
        """Tensors that depend on ``xs``, as far as gradients pass."""
        reached = {x for x in xs if x.spec.differentiable}
        operations = ordered({y.op for y in ys})
        for op in operations:
            for output, inputs in zip(op.outputs, connections(op), strict=True):
                if output not in self._stop and not reached.isdisjoint(inputs):
                    reached.add(output)
        check_writes(operations, reached)
        return reached

    def so_far(self, tensor):
        """What has arrived at a tensor, for a rule that adds to it and gives the sum.

        None where nothing has: the rule must then begin with zeros.
        """
        return self._sums[-1].take(tensor)

    def _walk(self, ys, grads, xs):
        sums = self._sums[-1]
        for y, grad in zip(ys, grads, strict=True):
            if self.wants(y):
                sums.add(y, grad)
        found = {}
        for op in reversed(ordered({y.op for y in ys})):
            if op.record is CLOSE:
                self._look_up_before(op)
            for tensor in op.outputs:
                found[tensor] = sums.take(tensor)
                if found[tensor] is not None:
                    call_after(found[tensor], tensor, ADJOINT)
            given = [self._passing(found[t], t) for t in op.outputs]
            if any(grad is not None for grad in given) and self._goes_on(op):
                for tensor, grad in self._apply(op, given):
                    if grad is not None and self.wants(tensor):
                        sums.add(tensor, _checked(op, tensor, grad))
        return [found.get(x) for x in xs]

    def _passing(self, grad, tensor):
        """What goes on from a tensor: nothing where it is to be constant, though it may be an x."""
        return None if tensor in self._stop else grad

    def _goes_on(self, op):
        return any(self.wants(t) for inputs in connections(op) for t in inputs)

    def _apply(self, op, given):
        graph, inputs = current(), list(op.inputs)  # a rule may give a loop more variables
        with graph.control_dependencies(None):
            if op.record.effects:
                with gradient_of(op, ()):
                    found = op.record.gradient(self, op, *given)
                return zip(inputs, found, strict=True)
            with gradient_of(op, [grad for grad in given if grad is not None]):
                found = zip(inputs, op.record.gradient(op, *given), strict=True)
                return [(t, made_gradient(grad)) for t, grad in found if self.wants(t)]

    # What the rules of array operations use.

    @functools.cached_property
    def source(self) -> str:
        """Names the gradient arrays that belong to this computation, and to nothing else.

        It is found when the first one is looked up, as few computations have any.
        """
        with self._home.as_default():
            return own_source(self._name)

    def _look_up_before(self, close):
        """Look the gradient array up before the program closes an array of numbers.

        It lives on, and the rules of all that the program did with the array look it up later.
        """
        waits = [tensor for op in close.control_inputs for tensor in op.outputs]
        if close.facts.only_frees or not any(map(self.wants, waits)):
            return
        if not all(map(_may_have_gradient, origins(close.inputs[0]))):
            return
        graph = close.graph
        with graph.as_default(), graph.control_dependencies(None):
            inputs = [close.inputs[0], special(FLOW), *self.iteration()]
            attrs = {"source": self.source, "clear_after_read": self._clear, "stays": True}
            with graph.control_dependencies(close.control_inputs):
                made = graph.create(LOOKUP, inputs, attrs)
        close.add_control_input(made)

    def lookup(self, handle, flow) -> Access:
        """The gradient array of an array for this computation's source."""
        grows = any(maker.op.record in LOOKUPS for maker in origins(handle))
        return Access(handle, flow).gradient(self.source, self._clear, self.iteration(), grows)

    def iteration(self) -> tuple:
        """What tells iterations apart, as each has its own accumulators: in a body, a number."""
        if isinstance(self._home, SubGraph) and not self._iteration:
            with self._home.as_default(), self._home.control_dependencies(None):
                self._iteration = tuple(build(ITERATION, []))
        return self._iteration

    def accumulate(self, handle, flow, add):
        """Add to the gradient array what was read from the forward array; the flow after it.

        The lookup comes after what the forward array has seen, as that decides its size. No
        gradient passes this way: what is added does not depend on what the array holds.
        """
        return add(self.lookup(handle, _only_order(flow)))

    def stored(self, op, value, flow, read):
        """The gradient of a value that was stored: what its slots have got."""
        return read(self.lookup(op.inputs[0], flow)) if self.wants(value) else None


def _may_have_gradient(handle):
    """Whether an array may have elements that have gradients."""
    made = handle.op
    while made.record in LOOKUPS:
        made = outside(made.inputs[0]).op
    return made.record is not CREATE or Spec(made.attrs["dtype"], ()).differentiable


def _only_order(flow):
    """The flow; none where it lies in a forward body, which has run as a whole before."""
    graph = current()
    while graph is not flow.graph:
        if not isinstance(graph, SubGraph):
            return special(flow.kind)
        graph = graph.outer
    return stop_gradient(flow)


class _Sums:
    """What arrives at tensors.

    Parameters
    ----------
    first : dict
        By tensor, what all that arrives is added to.
    """

    def __init__(self, first):
        self._first, self._arrived = first, {}

    def add(self, tensor, grad) -> None:
        """Let a gradient arrive: a tensor or an `Addend`."""
        self._arrived.setdefault(tensor, []).append(grad)

    def take(self, tensor):
        """The sum of what has arrived, which counts as not arrived any more; None of nothing."""
        parts, total = self._arrived.pop(tensor, []), self._first.pop(tensor, None)
        whole = [part for part in parts if not isinstance(part, Addend)]
        added = _joined([part for part in parts if isinstance(part, Addend)])
        if tensor.spec.is_tape and whole:
            total = functools.reduce(sum_of_shadows, whole if total is None else [total, *whole])
        elif whole:
            more = whole[0] if len(whole) == 1 else add_n(whole)
            total = more if total is None else add_n([total, more])
        elif total is None and added:
            part = added.pop(0)
            total = part.alone(part.value)
        for part in added:
            total = part.onto(total, part.value)
        return total


def _joined(addends):
    """One addend for all of a place."""
    places = {}
    for addend in addends:
        places.setdefault(addend.place, []).append(addend)
    return [
        same[0]._replace(value=add_n([each.value for each in same])) if len(same) > 1 else same[0]
        for same in places.values()
    ]


def _checked(op, tensor, grad):
    """A gradient with the dtype and a compatible shape, or the rule is wrong."""
    want = tensor.spec
    shape = want.shape if isinstance(grad, Addend) else grad.spec.shape
    if grad.dtype != want.dtype or not shapes.compatible(shape, want.shape):
        raise AssertionError(f"the gradient rule of {op!r} gave {grad} for {tensor!r}")
    return grad


def gradients(
    ys: Array | Sequence[Array],
    xs: Array | TensorArray | Sequence[Array | TensorArray],
    grad_ys: ArrayLike | Sequence[ArrayLike | None] | None = None,
    *,
    name: str = "gradients",
    stop_gradients: Sequence[Array | TensorArray] | None = None,
    unconnected: Literal["none", "zero"] = "none",
) -> list[Any]:
    """Return derivatives of the sum of ``ys`` with respect to each of ``xs``, as tensors.

    Parameters
    ----------
    ys : Tensor or list of Tensor
        The tensors to differentiate.
    xs : Tensor, TensorArray, or list of these
        The tensors to differentiate with respect to. An ``x`` may itself be computed; it is then
        treated as an independent variable. For an array, the result is its gradient array, whose
        slots can be read.
    grad_ys : list of array-like or Tensor, optional
        A factor for each ``y``, of the same shape. None stands for ones.
    name : str
        The scope of the new operations, made unique. It is the *source* of the gradient arrays that
        this call uses, so that several calls in one graph have separate accumulators; if the
        graph has a lookup of this source already, a number is added. A name that ends in ``/``
        enters that scope again; the source is then ``name/source``.
    stop_gradients : list of Tensor or TensorArray, optional
        Tensors to treat as constant.
    unconnected : {"none", "zero"}
        The result for an ``x`` on which no ``y`` depends.

    Returns
    -------
    list
        One gradient per ``x``, of its shape and dtype.

    Raises
    ------
    InvalidArgumentError
        For integers and tensors of other graphs; if ``grad_ys`` do not fit; if an array is read by
        an old name after it was written to, as no gradient would pass; and, in the body of a loop
        or branch, if ``ys`` depend on an ``x`` through operations outside the body.
    UnimplementedError
        If a path leads through an operation without a gradient.

    Notes
    -----
    This is TensorFlow's ``tf.compat.v1.gradients``, also for complex numbers: the gradient of a
    real ``y`` is its derivative with respect to the real part plus ``1j`` times that with respect
    to the imaginary part.

    In the body of a loop, the loop's variables are independent: dependencies of their initial
    values are ignored. Each iteration has its own accumulators.

    Examples
    --------
    >>> with nbta.Graph().as_default() as g:
    ...     x = nbta.placeholder("float64", (), name="x")
    ...     dx, = nbta.gradients(x ** 3, [x])
    ...     ddx, = nbta.gradients(dx, [x])
    >>> nbta.Session(g).run([dx, ddx], {x: 2.0})
    [np.float64(12.0), np.float64(12.0)]

    >>> def step(x):
    ...     ta = nbta.TensorArray("float64", size=1).write(0, x)
    ...     slope, = nbta.gradients(ta.read(0) ** 2, [x])
    ...     return x - 0.25 * slope
    >>> nbta.function(lambda x: nbta.while_loop(lambda x: x > 0.1, step, x))(1.0)
    np.float64(0.0625)
    """
    ys, xs = _listed(ys), _listed(xs)
    grad_ys = [None] * len(ys) if grad_ys is None else _listed(grad_ys)
    _check_arguments(ys, grad_ys, unconnected)
    graph = current() or ys[0].graph
    with graph.as_default(), graph.name_scope(name) as scope:
        graph.root.gradient_scopes.add(scope)
        ys = [_differentiable("ys", i, graph, y) for i, y in enumerate(ys)]
        points = [_free("xs", i, graph, x) for i, x in enumerate(xs)]
        seeds = [_seed(i, y, g) for i, (y, g) in enumerate(zip(ys, grad_ys, strict=True))]
        _check_arrays(xs, points)
        stopped = enumerate(_listed(stop_gradients))
        stop = [_point("stop_gradients", i, graph, t) for i, t in stopped]
        _check_around(graph, ys, points, stop)
        arrays = any(point.kind != DATA for point in points)
        source = graph.unique_name("source") if name.endswith("/") else scope[:-1]
        keep = arrays or _computes_again(ordered({y.op for y in ys}))
        computation = Computation(source, stop, keep)
        found = computation.run(ys, seeds, points)
        verify_change(graph)
        return [
            _answer(x, point, grad, computation, unconnected)
            for x, point, grad in zip(xs, points, found, strict=True)
        ]


def _computes_again(operations):
    """Whether a loop is among operations whose gradient may be computed more than once."""
    return any(
        (is_loop(op) and Loop(op).checkpoint is not None)
        or any(_computes_again(body.operations) for body in all_bodies(op))
        for op in operations
    )


def _listed(values):
    if values is None:
        return []
    return list(values) if isinstance(values, list | tuple) else [values]


def _check_arguments(ys, grad_ys, unconnected):
    if unconnected not in ("none", "zero"):
        message = f'gradients: unconnected must be "none" or "zero", not {unconnected!r}'
        raise invalid("unconnected", message)
    if len(grad_ys) != len(ys):
        message = f"gradients: there are {len(ys)} ys and {len(grad_ys)} grad_ys; give one a y"
        raise invalid("grad_ys", message)
    for i, y in enumerate(ys):
        if not isinstance(y, Tensor):
            hint = "stack it first" if hasattr(y, "flow") else "compute it in a graph"
            message = f"gradients: ys[{i}] must be a Tensor, not {type(y).__name__}; {hint}"
            raise invalid("ys", message)


def _resolved(argument, i, graph, tensor):
    try:
        return graph.resolve(tensor)
    except InvalidArgumentError as error:
        raise located(error, f"gradients: {argument}[{i}]") from None


def _differentiable(argument, i, graph, tensor):
    tensor = _resolved(argument, i, graph, tensor)
    if tensor.kind != DATA or not tensor.spec.differentiable:
        message = (
            f"gradients: {argument}[{i}], {tensor.name!r}, is {tensor.spec}, and only floats and "
            f"complex numbers can be differentiated; cast it where it is made"
        )
        raise invalid("integer", message)
    return tensor


def _free(argument, i, graph, x):
    """The tensor that stands for an x, which can be differentiated."""
    point = _point(argument, i, graph, x)
    return _differentiable(argument, i, graph, point) if isinstance(x, Tensor) else point


def _point(argument, i, graph, x):
    """The tensor that stands for a tensor or an array: of an array, its flow."""
    point = x if isinstance(x, Tensor) else getattr(x, "flow", None)
    if not isinstance(point, Tensor):
        message = (
            f"gradients: {argument}[{i}] must be a Tensor or a TensorArray of the graph, not "
            f"{type(x).__name__}"
        )
        raise invalid(argument, message)
    return _resolved(argument, i, graph, point)


def _check_arrays(xs, points):
    """Names of one array share a gradient array, which belongs to one of its states only."""
    seen = {}
    for i, (x, point) in enumerate(zip(xs, points, strict=True)):
        if point.kind == DATA:
            continue
        other, before = seen.setdefault(x.handle, (i, point))
        if before is not point:
            message = (
                f"gradients: xs[{other}] and xs[{i}] are one array at two points; ask for the "
                f"gradient at each in a call of its own"
            )
            raise invalid("xs", message)


def _check_around(graph, ys, points, stop):
    """In a body, refuse an x from around on which ys depend by what lies around as well."""
    for i, point in enumerate(points):
        ways = outside_ways(graph, ys, point, frozenset(stop))
        if ways:
            message = (
                f"gradients: ys depend on xs[{i}] by {ways[0].name!r} too, which is computed "
                f"outside of this body, where no gradient passes; compute it in the body, call "
                f"gradients outside, or take it as constant with stop_gradients"
            )
            raise invalid("outside", message)


def _seed(i, y, grad):
    if grad is None:
        return as_tensor(ones_like(y))
    weak = not isinstance(grad, Tensor) and not hasattr(grad, "dtype")
    seed = as_tensor(grad, dtype=y.dtype if weak else None)
    if seed.dtype != y.dtype or not shapes.compatible(seed.spec.shape, y.spec.shape):
        message = (
            f"gradients: grad_ys[{i}] is {seed.spec}, and {y.name!r} is {y.spec}; "
            f"they must be equal"
        )
        raise invalid("grad_ys", message)
    return seed


def _answer(x, point, grad, computation, unconnected):
    if point.kind != DATA:
        if grad is None:
            return None
        return x.gradient_after(computation.source, grad, computation.iteration())
    if grad is None and unconnected == "zero":
        return as_tensor(zeros_like(point))
    return grad
