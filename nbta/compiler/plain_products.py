"""Products of adjoints without a look at zeros, where results show what is not finite.

An adjoint of zero stays zero, whatever it is multiplied by (`nbta.ops.core.arithmetic.SCALE`). Only
with a factor that is infinite or NaN does that differ from an ordinary product, which then is NaN.
What is computed of gradients is linear in the adjoints, so that such a NaN arrives in a result, or
is left out as the right value would be: by a choice, a slice, an assignment. So products in loops,
and those of matrices, may be ordinary ones, and code says where a result has a NaN
(`NOT_A_NUMBER`), from when on the program with looks runs.

That is wrong where a value of an adjoint decides: in a comparison, an index, the condition of a
loop, a function that is finite for NaN, what the user's Python gets. Products that lead there look
at zeros. So do those of items outside loops: a mask costs nothing beside the memory that arrays of
results take, of which another look would cost as much as half the gradient.
"""

from nbta.compiler.program import Program
from nbta.graph.graph import all_bodies, live, within
from nbta.graph.operation import DATA, FLOW, HANDLE
from nbta.graph.views import Branch, Loop, is_branch, is_loop, origin
from nbta.ops.arrays.tensor_arrays import CREATE, LOOKUPS
from nbta.ops.core.arithmetic import SCALE, SCALE_BACK, divide, multiply
from nbta.ops.core.strong_zeros import ORDINARY

_OF_ITEMS = {SCALE: multiply.record, SCALE_BACK: divide.record}


def use_plain_products(program: Program) -> None:
    """Make products of adjoints ordinary ones, where a result shows each NaN of theirs."""
    in_loops = (op for body in _loop_bodies(program) for op in body.operations)
    looks = [op for op in in_loops if op.record in _OF_ITEMS]
    looks += [op for op in within(program.operations) if op.record in ORDINARY]
    if not looks or not all(map(_is_seen, program.outputs)):
        return
    if any(op.record.foreign for op in within(program.operations)):  # it may not run twice
        return
    decisive = _Decisive(program).tensors
    for op in looks:
        if op.outputs[0] not in decisive:
            op.record = _OF_ITEMS.get(op.record) or ORDINARY[op.record]
            program.is_plain = True
            op.attrs = {key: op.attrs[key] for key in op.attrs if key not in _OF_ADJOINTS}


#: Attributes that say which factors are adjoints.
_OF_ADJOINTS = ("both", "adjoints")


def _loop_bodies(graph):
    """The bodies of all loops, and all bodies in these."""
    for op in within(graph.operations):
        if is_loop(op):
            yield from _bodies(Loop(op).body)


def _bodies(body):
    yield body
    for op in body.operations:
        if is_branch(op):
            for each in Branch(op).branches:
                yield from _bodies(each)


def _is_seen(tensor):
    """Whether code can look whether a result is NaN."""
    return tensor.kind == DATA and (tensor.dtype.kind not in "fcV" or tensor.dtype.char in "fdFD")


class _Decisive:
    """What a result may depend on in such a way that it does not show a NaN.

    Attributes
    ----------
    tensors : set of Tensor
    """

    def __init__(self, program):
        self.tensors, self._arrays = set(), set()
        self._settled = {}  # by loop: how much was known when its last repetition found nothing
        self._orders = {}  # by body: its operations in running order
        self._seen, self._done = set(), set()  # operations: looked at; of which all inputs decide
        for op in program.targets:
            self.tensors.update(op.inputs)
        self._repeat(lambda: self._go_back(live(program)))

    def _repeat(self, step):
        """Do a step until it finds nothing more."""
        before = None
        while before != (before := self._known()):
            step()

    def _known(self):
        return len(self.tensors), len(self._arrays)

    def _go_back(self, operations):
        """From results of operations to their inputs."""
        for op in reversed(operations):
            if is_loop(op):
                if self._settled.get(op) != self._known():
                    self._repeat(lambda op=op: self._go_through_loop(op))
                    self._settled[op] = self._known()
            elif is_branch(op):
                self._go_through_branch(op)
            else:
                self._go_to_inputs(op)

    def _live(self, body):
        if body not in self._orders:
            self._orders[body] = live(body)
        return self._orders[body]

    def _go_to_inputs(self, op):
        decides = not self.tensors.isdisjoint(op.outputs)
        uses_array = bool(op.inputs) and op.inputs[0].kind == HANDLE
        if op in self._done or (op in self._seen and not decides and not uses_array):
            return
        self._seen.add(op)
        if decides and not uses_array:
            self._done.add(op)
        if all_bodies(op):
            decides = True
            for inner in within([op]):
                self.tensors.update(inner.outputs)
        elif uses_array:
            array = _array(op.inputs[0])
            if decides:
                self._arrays.add(array)
            decides = bool(self._arrays if array is None else self._arrays & {None, array})
        for place, tensor in enumerate(op.inputs):
            if tensor.kind == FLOW:  # which has no value; `_arrays` says what goes through arrays
                continue
            if decides or (tensor.spec.differentiable and not _shows(op, place)):
                self.tensors.add(tensor)

    def _go_through_loop(self, op):
        loop = Loop(op)
        self.tensors.update(loop.cond.outputs)
        for variable, last, following in zip(
            loop.parameters, op.outputs, loop.following, strict=True
        ):
            if last in self.tensors or variable in self.tensors:
                self.tensors.add(following)
        for body in (loop.cond, loop.body):
            self._go_back(self._live(body))
        for place, tensor in enumerate(op.inputs):
            if any(body.inputs[place] in self.tensors for body in (loop.cond, loop.body)):
                self.tensors.add(tensor)
                if place < loop.count:
                    self.tensors.add(loop.parameters[place])

    def _go_through_branch(self, op):
        case = Branch(op)
        self.tensors.add(case.index)
        for body in case.branches:
            for tensor, result in zip(op.outputs, body.outputs, strict=True):
                if tensor in self.tensors:
                    self.tensors.add(result)
            self._go_back(self._live(body))
            for parameter, tensor in zip(body.inputs, case.captured, strict=True):
                if parameter in self.tensors:
                    self.tensors.add(tensor)


def _array(handle):
    """What tells an array from others; gradient arrays are all one, and None may be any."""
    made = origin(handle).op
    return LOOKUPS if made.record in LOOKUPS else made if made.record is CREATE else None


def _shows(op, place):
    """Whether results are NaN where an input is, or leave it out whatever its value is."""
    if op.record.selects:
        return True
    return op.record.spreads_from(op, place) and all(t.spec.differentiable for t in op.outputs)
