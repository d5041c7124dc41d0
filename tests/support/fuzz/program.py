"""Programs as Python source that can be cut down: statements, and functions that these call."""

import re
import time
from dataclasses import dataclass, field, replace

import numpy as np

_HEAD = "import nbta\nimport numpy as np"
_WAYS = "ways = f, nbta.function(f, compiled=False), nbta.function(f, compiled=True)"
NAME = re.compile(r"\b[a-z]+\d+\b")


@dataclass(eq=False)
class Body:
    """A function that a statement hands to a loop or a branch."""

    name: str
    params: tuple
    statements: list
    result: str

    def lines(self):
        below = [f"    {line}" for s in self.statements for line in s.source()]
        head = f"def {self.name}({', '.join(self.params)}):"
        return [head, *below, f"    return {self.result}"]

    def uses(self):
        return set(NAME.findall("\n".join(self.lines())))


@dataclass(eq=False)
class Statement:
    """Lines that give values to names; ``samples`` are values that they had when it was made."""

    names: tuple
    lines: tuple
    samples: tuple
    bodies: list = field(default_factory=list)

    def source(self):
        return [line for body in self.bodies for line in body.lines()] + list(self.lines)

    def uses(self):
        return set(NAME.findall("\n".join(self.source())))


@dataclass(eq=False)
class Program:
    """A function of named arrays; ``others`` are further arguments, of other lengths."""

    inputs: dict
    statements: list
    outputs: tuple
    others: list = field(default_factory=list)

    def __post_init__(self):
        self.statements = needed(self.statements, set(self.outputs))

    def source(self):
        lines = [f"    {line}" for s in self.statements for line in s.source()]
        result = f"    return [{', '.join(self.outputs)}]"
        return "\n".join([f"def f({', '.join(self.inputs)}):", *lines, result])

    def function(self, nbta, rebinding=False):
        """The function, of a module with nbta's functions.

        With ``rebinding`` an operator in place is written as what it stands for with tensors.
        """
        names = {"nbta": nbta, "np": np}
        exec(rebound(self.source()) if rebinding else self.source(), names)
        return names["f"]

    def given(self):
        return [list(self.inputs.values()), *(list(other.values()) for other in self.others)]

    def operations(self):
        """How many statements, those in bodies too."""
        return sum(map(_size, self.statements))

    def __repr__(self):
        """Source that runs by itself and prints what each way gives."""
        calls = [
            line
            for values in self.given()
            for line in (f"given = {_argument_list(values)}", "print(*(g(*given) for g in ways))")
        ]
        return "\n".join([_HEAD, "", "", self.source(), "", "", _WAYS, *calls])


def rebound(source):
    """Source with ``a = a + (b)`` for ``a += b``, and so on."""
    return re.sub(r"^( *)(\w+) ([-+*/%@]{1,2})= (.*)$", r"\1\2 = \2 \3 (\4)", source, flags=re.M)


def _size(statement):
    return 1 + sum(_size(inner) for body in statement.bodies for inner in body.statements)


def needed(statements, wanted):
    """Statements without those whose results nobody uses; bodies are cut down too."""
    kept = []
    for statement in reversed(statements):
        if wanted.isdisjoint(statement.names):
            continue
        bodies = [_cut(body) for body in statement.bodies]
        kept.append(replace(statement, bodies=bodies))
        wanted |= kept[-1].uses()
    return kept[::-1]


def _cut(body):
    inner = set(NAME.findall(body.result))
    return replace(body, statements=needed(body.statements, inner))


def literal(value):
    """An array or scalar as source."""
    value = np.asarray(value)
    if value.dtype.kind == "c" or not np.isfinite(value).all():
        numbers = str(value.ravel().tolist()).replace("nan", "np.nan").replace("inf", "np.inf")
    else:
        numbers = str(value.ravel().tolist())
    if value.ndim == 0:
        return f"np.{value.dtype.name if value.dtype.kind != 'b' else 'bool'}({numbers[1:-1]})"
    shape = "" if value.ndim == 1 and value.size else f".reshape({value.shape})"
    return f"np.array({numbers}, {value.dtype.name!r}){shape}"


def _argument_list(values):
    return "[" + ", ".join(map(literal, values)) + "]"


def constant(statement):
    """The statement with constants in place of what it computes, where they are known."""
    if any(sample is None for sample in statement.samples):
        return statement
    pairs = zip(statement.names, statement.samples, strict=True)
    lines = tuple(f"{name} = {literal(sample)}" for name, sample in pairs)
    return Statement(statement.names, lines, statement.samples)


def shrunk(program, fails, seconds=120.0):
    """A small program that still fails, found within some time."""
    end = time.monotonic() + seconds
    cuts = [_fewer_outputs, _fewer_calls, _fewer_statements, _fewer_inputs]
    before = None
    while before != repr(program) and time.monotonic() < end:
        before = repr(program)
        for cut in cuts:
            for change in cut(program):
                candidate = change(program)
                if candidate is None or time.monotonic() > end:
                    continue
                if fails(candidate):
                    program = candidate
    return program


def _fewer_outputs(program):
    for name in program.outputs:
        yield lambda program, name=name: replace(program, outputs=(name,))
    for name in program.outputs:
        yield lambda program, name=name: _without_output(program, name)


def _without_output(program, name):
    kept = tuple(output for output in program.outputs if output != name)
    return replace(program, outputs=kept) if kept and kept != program.outputs else None


def _fewer_calls(program):
    if program.others:
        yield lambda program: replace(program, others=[])
        yield _second_call


def _second_call(program):
    if not program.others:
        return None
    return replace(program, inputs=program.others[0], others=program.others[1:])


def _fewer_statements(program):
    for statement in _all(program.statements):
        yield lambda program, name=statement.names[0]: _with_constant(program, name)


def _all(statements):
    """Statements from the last to the first, each before those in its bodies."""
    for statement in reversed(statements):
        yield statement
        for body in statement.bodies:
            yield from _all(body.statements)


def _with_constant(program, name):
    made = replace(program, statements=_constant_at(program.statements, name))
    return None if made.source() == program.source() else made


def _constant_at(statements, name):
    """Statements with constants in place of the one that gives a name its value."""
    return [constant(s) if name in s.names else _below(s, name) for s in statements]


def _below(statement, name):
    bodies = [replace(b, statements=_constant_at(b.statements, name)) for b in statement.bodies]
    return replace(statement, bodies=bodies)


def _fewer_inputs(program):
    used = set(program.outputs).union(*(s.uses() for s in program.statements))
    yield lambda program: replace(
        program,
        inputs=_only(program.inputs, used),
        others=[_only(other, used) for other in program.others],
    )


def _only(values, names):
    return {name: value for name, value in values.items() if name in names}
