"""Source of loops and branches."""

from nbta.codegen.names import cast
from nbta.codegen.values import Block, Scalar, Turned
from nbta.compiler import array_code, python_calls
from nbta.graph.order import ordered
from nbta.graph.spec import FLOW
from nbta.graph.views import Branch, Loop, place_of
from nbta.ops.dispatch import CONSTANT
from nbta.ops.trip_counts import plain_limit
from nbta.runtime.plain import HINT
from nbta.runtime.slots import WATCH


def operations(body) -> list:
    """What a body needs, in order."""
    return ordered({tensor.op for tensor in body.outputs})


def emit_while(code, op) -> None:
    """A loop: variables have places of their own, which each trip's end fills again."""
    loop = Loop(op)
    cond, body = loop.cond, loop.body
    code.flush()
    captured = [_captured(code, tensor) for tensor in loop.captured]
    variables = [_Variable(code, variable) for variable in loop.variables()]
    code.add(f"# {op.name}")
    _expect(code, loop, variables, captured)
    with python_calls.progress(code, op) as counter, code.loop("while True:"):
        for variable in variables:
            variable.enter()
        _bind(code, cond, variables, captured)
        code.body(operations(cond), cond.outputs)
        code.add(f"if not {code.scalar(cond.outputs[0])}: break")
        code.flush()
        _bind(code, body, variables, captured)
        for variable, tensor in zip(variables, body.outputs, strict=True):
            variable.offer(tensor)
        code.body(operations(body), body.outputs)
        _assign(code, variables, body)
        code.add(f"watch(w, {_watch_word(code)}, {variables[0].value.text})")
        if counter is not None:
            code.add(f"tick({counter})")
    for variable, tensor in zip(variables, op.outputs, strict=True):
        code.bind(tensor, variable.value)


def _expect(code, loop, variables, captured):
    """Tell arrays that the loop fills how many slots that will be, where its trips can be told."""
    limit = plain_limit(loop.cond, loop.body, loop.count)
    records = array_code.filled(code, loop.body)
    if limit is None or not records:
        return
    given = [*(variable.value for variable in variables), *captured]
    low, high = (_on_entry(end, given) for end in (limit.low, limit.high))
    expected = code.variable(f"max(0, int64({high}) - int64({low})) + {1 + limit.more}")
    code.add(*(f"W[{record + HINT}] = {expected}" for record in records))


def _on_entry(end, given):
    known = end.op.record is CONSTANT
    return str(int(end.op.attrs["value"])) if known else given[place_of(end)].text


def _watch_word(code):
    """The first of the words with what a loop needs to see signals."""
    if code.watch_word is None:
        code.watch_word = code.word(len(WATCH))
        code.initial += [(code.watch_word + k, name) for k, name in enumerate(WATCH)]
    return code.watch_word


def _captured(code, tensor):
    """What a loop captures; a transpose is made once, in front of it."""
    if isinstance(code.values[tensor], Turned):
        return code.value(tensor)
    return code.kept(tensor)


def _bind(code, body, variables, captured):
    values = [variable.value for variable in variables] + captured
    for parameter, value in zip(body.inputs, values, strict=True):
        code.bind(parameter, value)


def _assign(code, variables, body):
    """The next values take the places of the old ones, all at once."""
    code.flush()
    pairs = [
        (variable, code.value(tensor))
        for variable, tensor in zip(variables, body.outputs, strict=True)
    ]
    pairs = [(variable, value) for variable, value in pairs if not variable.holds(value)]
    saved = [variable.saved(value, [v for v, _ in pairs]) for variable, value in pairs]
    for (variable, _), value in sorted(
        zip(pairs, saved, strict=True), key=lambda item: item[0][0].is_view
    ):
        variable.take(value)


class _Variable:
    """A variable of a loop, in a local variable or in a buffer of its own."""

    def __init__(self, code, variable):
        parameter, following, first = variable.parameter, variable.following, variable.first
        self._code, spec = code, parameter.spec
        self._is_flow, self._array = spec.kind == FLOW, None
        value = code.value(first)
        if self._is_flow:
            self.value = value
            return
        if isinstance(value, Scalar):
            self.value = code.local(value.text, spec.dtype, "v")
            return
        self._fixed = _is_fixed(spec.shape) and spec.shape == following.spec.shape
        found = array_code.kept_in_slots(code, parameter.graph, following, first)
        if found is not None and self._fixed:
            self._array, place = found
            self._following = following
            self.value = Block(self._array.data, value.extents, code.variable(place, "v"))
            return
        extents = value.extents
        if not self._fixed:
            extents = tuple(code.variable(e) for e in extents)
        if self._fixed and code.is_last(first, value):
            self.value = value
            return
        block = code.new(spec.dtype, value.extents, "v")
        code.copy_to(block, value)
        self.value = Block(block.base, extents)

    @property
    def is_view(self):
        """Whether it is a slot of an array: others may still be copied from its old place."""
        return self._array is not None

    def enter(self):
        """At the beginning of a trip."""
        for extent in self.value.extents if not getattr(self, "_fixed", True) else ():
            if not extent.isdigit():
                self._code.note_variable(extent)

    def offer(self, tensor):
        """Let the next value be computed where the old one is, once nobody needs that."""
        if not isinstance(self.value, Block) or self._array is not None:
            return
        block, code = self.value, self._code

        def place(extents):
            same = all(map(code.same, extents, block.extents))
            return block if same and self._fixed and code.is_free(block.base) else None

        code.destinations[tensor] = place

    def holds(self, value):
        """Whether a value is in its place already."""
        if isinstance(value, Scalar):
            return self._is_flow or value.text == self.value.text
        same = value.base is self.value.base and value.offset == self.value.offset
        return same and self._fixed

    def saved(self, value, others):
        """A value that stays when other variables change."""
        code = self._code
        if isinstance(value, Scalar):
            names = {other.value.text for other in others if isinstance(other.value, Scalar)}
            return code.local(value.text, value.dtype) if value.text in names else value
        bases = {other.value.base for other in others if isinstance(other.value, Block)}
        if value.base not in bases:
            return value
        kept = code.new(value.dtype, value.extents)
        code.copy_to(kept, value)
        return kept

    def take(self, value):
        """The value for the next trip."""
        code = self._code
        if isinstance(value, Scalar):
            code.add(f"{self.value.text} = {cast(value.text, value.dtype)}")
            return
        if self._array is not None:
            place = code.arrays.stored[self._array, self._following]
            code.add(f"{self.value.offset} = {place}")
            return
        if not self._fixed:
            code.room(self.value.base, value.extents)
        code.copy_to(self.value, value)
        if not self._fixed:
            pairs = zip(self.value.extents, value.extents, strict=True)
            code.add(*(f"{mine} = {theirs}" for mine, theirs in pairs if mine != theirs))


def _is_fixed(shape):
    return None not in shape


def emit_case(code, op) -> None:
    """A branch: each branch puts its results into the same places."""
    code.flush()
    case = Branch(op)
    captured = [code.kept(tensor) for tensor in case.captured]
    branches, index = case.branches, case.index
    results = [_Result(code, tensor) for tensor in op.outputs]
    text = code.scalar(index)
    for number, branch in enumerate(branches):
        with code.branch(_header(text, index.dtype, number, len(branches))):
            code.add(f"# {op.name}: branch {number}")
            for parameter, value in zip(branch.inputs, captured, strict=True):
                code.bind(parameter, value)
            code.body(operations(branch), branch.outputs)
            code.flush()
            for result, tensor in zip(results, branch.outputs, strict=True):
                result.take(code.value(tensor))
    for result, tensor in zip(results, op.outputs, strict=True):
        code.bind(tensor, result.value)


def _header(text, dtype, number, count):
    if count == 1:
        return "if True:"
    if number == count - 1:
        return "else:"
    test = text if dtype.kind == "b" else f"{text} == {number}"
    return f"{'el' * (number > 0)}if {test}:"


class _Result:
    """Where the branches put one result."""

    def __init__(self, code, tensor):
        self._code, spec = code, tensor.spec
        self._is_flow = spec.kind == FLOW
        if spec.rank == 0 and code.is_number(spec.dtype):
            zero = "False" if spec.dtype.kind == "b" else "0"
            self.value = code.local(zero, spec.dtype, "r")
            return
        extents = tuple(str(e) if type(e) is int else code.variable("0") for e in spec.shape)
        self.value = Block(code.base(spec.dtype, "r", code.word(2)), extents)
        code.add(code.pointer(self.value.base, f"W[{self.value.base.word}]"))

    def take(self, value):
        """A branch's result."""
        code = self._code
        if isinstance(value, Scalar):
            code.add(f"{self.value.text} = {cast(value.text, value.dtype)}")
            return
        code.room(self.value.base, value.extents)
        code.copy_to(self.value, value)
        pairs = zip(self.value.extents, value.extents, strict=True)
        code.add(*(f"{mine} = {theirs}" for mine, theirs in pairs if not mine.isdigit()))
