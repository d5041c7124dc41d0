"""The order in which operations run: creation order, as far as edges allow."""

import operator

from nbta.errors import invalid
from nbta.graph.operation import Operation


def before(op: Operation):
    """What must have run before an operation."""
    found = [tensor.op for tensor in op.inputs]
    return found + op.control_inputs if op.control_inputs else found


def ordered(targets, stop=frozenset()) -> list[Operation]:
    """Operations that the targets need, and they, in an order that they can run in.

    An operation runs as early as its place in creation order says; what it needs runs before it,
    wherever that was created. Operations in ``stop`` are left out, with what only they need.

    Raises
    ------
    InvalidArgumentError
        For operations that need each other in a circle.
    """
    needed, forwards = _needed(targets, stop)
    needed = sorted(needed, key=_number)
    if forwards:
        return needed
    done, result = set(), []
    for op in needed:
        _visit(op, done, result, stop)
    return result


_number = operator.attrgetter("number")


def _needed(targets, stop):
    """What the targets need, and whether creation order is an order to run in."""
    needed, forwards = {op for op in targets if op not in stop}, True
    todo = list(needed)
    while todo:
        op = todo.pop()
        number, others = op.number, [tensor.op for tensor in op.inputs]
        for other in [*others, *op.control_inputs] if op.control_inputs else others:
            if other.number >= number and other not in stop:
                forwards = False
            if other not in needed and other not in stop:
                needed.add(other)
                todo.append(other)
    return needed, forwards


def _visit(op, done, result, stop):
    """Depth first, without recursion: chains of operations may be long."""
    if op in done:
        return
    path, on_path = [(op, iter(_waits(op, done, stop)))], {op}
    while path:
        top, waiting = path[-1]
        other = next((other for other in waiting if other not in done), None)
        if other is None:
            path.pop()
            on_path.discard(top)
            done.add(top)
            result.append(top)
        elif other in on_path:
            raise _circle([step for step, _ in path], other)
        else:
            path.append((other, iter(_waits(other, done, stop))))
            on_path.add(other)


def _waits(op, done, stop):
    others = {other for other in before(op) if other not in done and other not in stop}
    return sorted(others, key=lambda other: other.number)


def _circle(path, start):
    names = [op.name for op in path[path.index(start) :]]
    message = (
        f"operations wait for each other in a circle: {' -> '.join([*names[::-1], names[-1]])}; "
        f"give one of them a flow or an input from before"
    )
    return invalid("cycle", message)
