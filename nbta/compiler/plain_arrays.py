"""Which arrays of a program become plain buffers of its function, and why the others do not."""

from nbta.codegen.names import NUMBERS
from nbta.graph.graph import subgraphs
from nbta.graph.order import ordered
from nbta.graph.spec import HANDLE
from nbta.graph.views import arguments, variables_in
from nbta.ops.arrays import CREATE, GATHER, LOOKUP, READ, SCATTER, SIZE, WRITE

_PLAIN = {WRITE, READ, GATHER, SCATTER, SIZE, LOOKUP}


class PlainArrays:
    """The arrays whose handles a program only uses directly, with elements of one rank.

    Attributes
    ----------
    reasons : dict
        By the operation that makes an array, why it is none.
    """

    def __init__(self, program, ragged=False):
        self._ragged = ragged  # whether elements may be of several shapes
        self._array = {}  # key of an array by handle: (creation, source, ...)
        self._ranks = {}
        self._places = {}  # the bodies that are around what makes an array
        self._held = {}  # keys of the arrays whose handles an array has
        self.reasons = {}
        self._walk(program, ())
        self._check_held()
        self._check_ranks()
        self._check_keepers()

    def key(self, handle):
        """The array of a handle: what made it, and the sources of gradients; None otherwise."""
        key = self._array.get(handle)
        return None if key is None or key[0] in self.reasons else key

    def maker(self, handle):
        """The operation that makes the array of a handle; None where that is not known."""
        return self._array.get(handle, (None,))[0]

    def notes(self) -> list[str]:
        """For each array, whether it is a plain buffer, and why not."""
        return [
            f"{op.name}: {self.reasons.get(op) or 'a plain buffer'}"
            + (", so that Python keeps it" if op in self.reasons else "")
            for op in self._ranks
        ]

    def descendants(self, op):
        """Gradient arrays of the array that an operation makes: a handle of each."""
        found = {key: handle for handle, key in self._array.items() if key[0] is op}
        return [handle for key, handle in found.items() if len(key) > 1]

    def rank(self, key) -> int:
        """Rank of an array's elements."""
        return next(iter(self._ranks[key[0]]))

    def _walk(self, graph, around):
        for op in ordered([*{t.op: None for t in graph.outputs}, *getattr(graph, "targets", ())]):
            own = len(variables_in(op))
            for body in subgraphs(op):
                pairs = list(zip(body.inputs, arguments(op, body), strict=True))
                for parameter, outer in pairs[own:]:
                    if parameter.kind == HANDLE and outer in self._array:
                        self._array[parameter] = self._array[outer]
                self._walk(body, (*around, body))
            if op.record is CREATE:
                self._places[op] = around
            self._visit(op)
        for tensor in graph.outputs:
            self._refuse(tensor, "its handle is a result")

    def _visit(self, op):
        if op.record is CREATE:
            self._create(op)
        elif op.record is LOOKUP and op.inputs[0] in self._array:
            self._look_up(op)
        elif op.record in _PLAIN:
            self._note_rank(op)
        elif subgraphs(op):
            for tensor in variables_in(op):
                self._refuse(tensor, "its handle changes in a loop")
        else:
            for tensor in op.inputs:
                self._refuse(tensor, f"{op.type} uses it")

    def _create(self, op):
        handle, key = op.outputs[0], (op,)
        self._array[handle] = key
        self._ranks[op] = set()
        shape = op.attrs.get("element_shape")
        if shape is not None:
            self._ranks[op].add(len(shape))
        if op.attrs["dtype"].char not in NUMBERS:
            self._refuse(handle, f"it is of {op.attrs['dtype']}")
        if op.inputs[0].spec.rank != 0:
            self._refuse(handle, f"{op.name} has a size that is no number")
        if self._ragged and not op.attrs.get("infer_shape", True):
            self._refuse(handle, "its elements were of several shapes")

    def _look_up(self, op):
        key = self._array[op.inputs[0]]
        self._array[op.outputs[0]] = (*key, op.attrs["source"])
        if len(op.inputs) > 2:
            self._refuse(op.inputs[0], "each trip of a loop has gradient arrays of its own")

    def _note_rank(self, op):
        key = self._array.get(op.inputs[0])
        if key is None and op.record is WRITE:
            self._refuse(op.inputs[2], f"{op.name} hands its handle to Python")
        if key is None or op.record is SIZE:
            return
        if op.record in (WRITE, READ):
            self._note_held(op, key)
        rows = op.record in (SCATTER, GATHER)
        if op.record in (WRITE, SCATTER):
            shape, dtype, verb = op.inputs[2].spec.shape, op.inputs[2].dtype, "writes"
        else:
            shape, dtype, verb = op.outputs[0].spec.shape, op.attrs["dtype"], "reads"
        rank = None if shape is None else len(shape) - rows
        if rank is None:
            self._refuse(op.inputs[0], f"the rank of an element of {op.name} is not known")
        else:
            self._ranks[key[0]].add(rank)
        if dtype != key[0].attrs["dtype"]:
            self._refuse(op.inputs[0], f"{op.name} {verb} {dtype}")
        self._check_index(op, op.inputs[1].spec, rows)
        asked = op.attrs.get("element_shape")
        if None not in (asked, rank) and len(asked) != rank:
            self._refuse(op.inputs[0], f"{op.name} asks for elements of another rank")

    def _check_index(self, op, spec, rows):
        if spec.dtype.kind not in "iu":
            self._refuse(op.inputs[0], f"{op.name} has an index of {spec.dtype}")
        if spec.rank != rows:
            self._refuse(op.inputs[0], f"{op.name} has an index of rank {spec.rank}")

    def _note_held(self, op, key):
        """Follow a handle through the array that keeps it, such as a tape."""
        held = self._held.setdefault(key, set())
        if op.record is WRITE and op.inputs[2] in self._array:
            held.add(self._array[op.inputs[2]])
        elif op.record is READ and op.outputs[0].kind == HANDLE and len(held) == 1:
            self._array[op.outputs[0]] = next(iter(held))

    def _check_held(self):
        """What is read must be the array that was written, not that of another trip."""
        for keeper, held in self._held.items():
            place = self._places[keeper[0]]
            for key in held:
                inner = self._places[key[0]]
                if len(held) > 1 or place[: len(inner)] != inner:
                    reason = f"{keeper[0].name} keeps its handle"
                    self.reasons.setdefault(key[0], reason)

    def _check_keepers(self):
        """Where Python keeps an array of handles, it gets to see those; it may hold keepers too."""
        found = {op for op in self._places if op in self.reasons}
        while found:
            held = {key[0] for keeper in self._held if keeper[0] in found
                    for key in self._held[keeper]}  # fmt: skip
            found = {op for op in held if op not in self.reasons}
            self.reasons |= dict.fromkeys(found, "Python keeps an array with its handle")

    def _check_ranks(self):
        for op, ranks in self._ranks.items():
            if len(ranks) != 1:
                self.reasons.setdefault(op, "the rank of its elements is not known")

    def _refuse(self, tensor, reason):
        key = self._array.get(tensor)
        if key is not None:
            self.reasons.setdefault(key[0], reason)
