"""Which operations touch which array, told from how handles are passed on."""

from collections import defaultdict

from nbta.compiler.induction import origin
from nbta.graph.graph import subgraphs
from nbta.graph.order import ordered
from nbta.graph.spec import HANDLE
from nbta.ops.arrays import CLOSE, CREATE, LOOKUP, LOOKUPS, READS, SIZE, WRITES
from nbta.ops.loop import WHILE

_TOUCHING = WRITES | READS | LOOKUPS | {SIZE, CLOSE}


def array_of(handle):
    """What an array is known by: its first handle, and sources behind that of its gradients.

    None where only the run tells which array it is.
    """
    handle = origin(handle)
    op = handle.op
    if op.record is CREATE:
        return (handle,)
    if op.record is not LOOKUP or len(op.inputs) != 2:
        return None
    forward = array_of(op.inputs[0])
    return None if forward is None else (*forward, op.attrs["source"])


def live(graph) -> list:
    """Operations of a graph that a run of it runs."""
    targets = getattr(graph, "targets", ())
    return ordered([*dict.fromkeys(tensor.op for tensor in graph.outputs), *targets])


def everything(graph):
    """All operations that may run, those in bodies too."""
    for op in live(graph):
        yield op
        for body in subgraphs(op):
            yield from everything(body)


class Handles:
    """The users of each array of a program.

    Attributes
    ----------
    users : dict
        Operations by array, each in running order.
    shown : set
        Arrays whose handle is a value, so that others than their users may touch them.
    waited : set of Operation
        What control edges lead from.
    """

    def __init__(self, program):
        self.users = defaultdict(list)
        self.shown = set()
        self.waited = set()
        self._look(program)

    def _look(self, graph):
        self.shown |= {array_of(t) for t in graph.outputs if t.kind == HANDLE}
        for op in live(graph):
            self.waited.update(op.control_inputs)
            self._note(op)
            for body in subgraphs(op):
                self._look(body)

    def _note(self, op):
        given = op.inputs
        if op.record in _TOUCHING:
            self.users[array_of(given[0])].append(op)
            given = given[1:]
        elif subgraphs(op):
            given = given[: op.attrs["count"]] if op.record is WHILE else ()
        self.shown |= {array_of(tensor) for tensor in given if tensor.kind == HANDLE}

    def plain(self, array) -> bool:
        """Whether all that touch an array are known, and no control edge leads to or from them."""
        ops = self.users[array]
        return (
            array not in self.shown
            and not any(op.control_inputs or op in self.waited for op in ops)
            and not any(op.record is CLOSE for op in ops)
            and not any(op.record in LOOKUPS and array_of(op.outputs[0]) is None for op in ops)
        )
