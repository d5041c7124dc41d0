"""What became of a program, in words; and a warning of loops that call Python in each iteration.

A call takes tens of microseconds, compiled operations nanoseconds: such a loop takes up to some
thousand times as long as one that is compiled whole. Operations outside of loops are called once,
and nobody is warned of them.
"""

import math
import os
import warnings
from collections import Counter

from nbta.codegen.values import NUMBERS, Scalar, uncast
from nbta.compiler.emitter import Call
from nbta.compiler.residuals import residual_notes
from nbta.errors import PerformanceWarning
from nbta.graph.graph import subgraphs
from nbta.graph.labels import Labels
from nbta.graph.views import Loop, is_branch, is_loop, owners
from nbta.locations import Origin
from nbta.loops import Constant
from nbta.ops.arrays.tensor_arrays import CREATE
from nbta.ops.core.checks import PRINT
from nbta.ops.core.dispatch import CONSTANT, PARAMETER
from nbta.ops.loops.iteration_counts import constant_of, limit_before
from nbta.ops.loops.loop import WHILE
from nbta.ops.loops.mapping import MAP
from nbta.ops.random.draws import DRAW
from nbta.tuning import UNWARNED_COPY


def explained(compiled, runs_note) -> str:
    """A report on a `Compiled`: passes, loops, buffers, arrays, and what is left to Python."""
    found = compiled.generated
    lines = [f"one function of {len(found.source.splitlines())} lines{runs_note}"]
    passes = _section("passes that changed something (operations, those in loops)", compiled.log)
    lines += passes
    lines += _section("loops over items, each with the operations that it does", found.loops)
    lines += _section("loops over long rows", found.tiles)
    lines += _section("loops whose adjoint iterations run right after their own", found.joint)
    lines += _section("buffers made ahead, or at their place", found.buffers)
    lines += _section("arrays", found.arrays)
    lines += _section("values saved for gradients", residual_notes(compiled.program))
    lines += _section("copies of whole tensors in loops", [row[0] for row in found.copies])
    labels = Labels(compiled.program.operations)
    lines = [*lines[: 1 + len(passes)], *map(labels.put, lines[1 + len(passes) :])]
    left = Counter(call.op.type for call in found.calls if isinstance(call, Call))
    lines += _section("operations that run in Python", [f"{n} x {c}" for n, c in left.items()])
    return "\n".join(lines)


def _section(title, rows):
    return [f"{title}:", *(f"  {row}" for row in rows)] if rows else []


class Log:
    """Notes of what each pass did.

    Attributes
    ----------
    rows : list of str
    """

    def __init__(self, program):
        self.rows: list[str] = []
        self._last, self._seen = _counted(program), _as_seen(program)

    def note(self, step, program) -> None:
        """What a pass changed, by what went into loops and out of them."""
        if self._seen == (seen := _as_seen(program)):
            return
        now = _counted(program)
        if now != self._last:
            everywhere, inside = (sum(part.values()) for part in now)
            before, inside_before = (sum(part.values()) for part in self._last)
            gone, come = self._last[1] - now[1], now[1] - self._last[1]
            text = f"{step.__name__}: {before} to {everywhere}, {inside_before} to {inside}"
            text += _listed("; out of loops: ", gone) + _listed("; into loops: ", come)
            self.rows.append(text)
        self._last, self._seen = now, seen


def _listed(title, types):
    return title + ", ".join(f"{n} {name}" for name, n in sorted(types.items())) if types else ""


def _as_seen(program):
    """What is another one once the program has changed."""
    return program, program.root.version


def _counted(program):
    """How many operations of each type there are, everywhere and in loops."""
    everywhere, loops, todo = [], [], [(program, False)]
    while todo:
        graph, inside = todo.pop()
        for op in graph.operations:
            if op.record is PARAMETER or op.record is CONSTANT:
                continue
            everywhere.append(op.record.name)
            if inside:
                loops.append(op.record.name)
            todo += [(body, inside or op.record is WHILE) for body in subgraphs(op)]
    return Counter(everywhere), Counter(loops)


_NEST = (
    "A gradient saves values of an inner loop for each iteration of an outer one, in separate "
    "arrays, as it does not know which loop they belong to; make one loop of the two."
)
_INNER = (
    "Each iteration makes an array that the compiler cannot follow, as {}; append or write to it "
    "in the loop or branch that makes and reads it, stack values with nbta.stack, or make one "
    "array before the outermost loop and carry it."
)
_MAP = (
    "map_fn starts its threads anew in each iteration; leave parallel_iterations= out, or put the "
    "threads around the loop, by batch_axis=."
)
_FOREIGN = (
    "custom_gradient or custom_jvp has a Python function there; give it one that @njit compiled."
)
_DRAW = (
    "NumPy's and Python's generators draw in Python; a function that @njit compiles has Numba's, "
    "which draws in machine code, and so does nbta.random."
)
_DTYPE = "Numba does not compute with {}; cast to a wider dtype before the loop."
_OTHER = "Some have no compiled form; do them before the loop or after it."


def warn_of(generated) -> None:
    """Warn of each nest of loops that calls Python, at the line of the user's outermost loop."""
    for origin, calls in _nests(generated).items():
        if origin.is_told:  # by the code of the loop, of which this is that of its gradient
            continue
        message = _message(origin, calls, generated)
        if origin.location is None:
            warnings.warn(message, PerformanceWarning, stacklevel=2)
        else:
            filename, line, module = origin.location
            warnings.warn_explicit(message, PerformanceWarning, filename, line, module)
        object.__setattr__(origin, "is_told", True)  # unless the warning was an error


def warn_of_copies(generated, shapes) -> None:
    """Warn of large arrays that a loop copies whole, at the user's line.

    Parameters
    ----------
    generated : Generated
    shapes : list of tuple of int
        Of the arguments.
    """

    def count(lengths):  # of items, as far as lengths are those of arguments
        return math.prod(map(known, lengths))

    def known(length):
        place, axis = generated.lengths.get(length, (None, None))
        return int(length) if length.isdigit() else 1 if place is None else shapes[place][axis]

    largest = {}
    for _, place, lengths, size, beside in generated.copies:
        items = count(lengths)
        if any(count(each) >= items for each in beside):
            continue  # beside which a copy costs little
        size *= items
        if place is not None and size >= UNWARNED_COPY:
            largest[tuple(place)] = max(size, largest.get(tuple(place), 0))
    for (filename, line, module), size in largest.items():
        message = (
            f"a loop or its gradient copies a whole array of {size:,} bytes in each iteration, for "
            f"what is assigned here ({os.path.basename(filename)}:{line}): something needs the old "
            f"items later. Assign each item once, by a value that a variable holds before; make "
            f"views and copies of the array before the loop. explain() of the function says "
            f"more; to silence this: warnings.simplefilter('ignore', nbta.PerformanceWarning)"
        )
        warnings.warn_explicit(message, PerformanceWarning, filename, line, module)


def work(code, body) -> list:
    """Lengths of what an iteration goes through in which a body runs, beside what it copies.

    Those are arrays of items that it computes, and inner loops.
    """
    found = [_gone_through(code, op) for op in body.operations]
    while body.owner is not None and is_branch(body.owner):
        body = body.owner.graph
        found += [_gone_through(code, op) for op in body.operations]
    return [each for each in found if each]


def _gone_through(code, op):
    """The lengths that an operation goes through, as texts; none where they are not known."""
    if is_loop(op):
        limit = limit_before(Loop(op))
        if limit is None or constant_of(limit.low) not in (0, 1):
            return []
        count, high = constant_of(limit.high), code.values.get(limit.high)
        if count is not None or not isinstance(high, Scalar):
            return [] if count is None else [str(max(count, 0))]
        return [str(code.canonical(uncast(high.item)))]
    shape = op.outputs[0].spec.shape if op.record.elementwise else None
    known = [Constant(n) if type(n) is int else code.dims.get(n) for n in shape or ()]
    return [] if None in known else [str(code.canonical(length)) for length in known]


def place_of(op):
    """File, line and module of the user's that an operation, or a loop around it, comes from."""
    for one in (op, *loops_around(op)):
        location = one.location or (_origin(one).location if is_loop(one) else None)
        if location is not None:
            return list(location)
    return None


def loops_around(op) -> list:
    """The loops that an operation is in, from the inside."""
    return [owner for owner in owners(op) if is_loop(owner)]


def _nests(generated):
    """Operations that run in Python in loops, with these, by origin of the outermost loop.

    But prints, which take longer than the call.
    """
    found = {}
    for call in generated.calls:
        costly = isinstance(call, Call) and call.op.record is not PRINT
        loops = loops_around(call.op) if costly else ()
        if loops:
            found.setdefault(_origin(loops[-1]), []).append((call.op, loops))
    return found


def _origin(loop):
    return Loop(loop).origin or Origin(loop.name)


def _message(origin, calls, generated):
    inner = dict.fromkeys(_origin(loop) for _, loops in calls for loop in reversed(loops))
    inner.pop(origin, None)
    types = Counter(op.type for op, _ in calls)
    causes = dict.fromkeys(_cause(op, generated) for op, _ in calls)
    within = f", with {', '.join(map(str, inner))} in it," if inner else ""
    return (
        f"the loop {origin}{within} is compiled, but it or its gradient calls "
        f"Python in each iteration, which takes tens of microseconds a call: "
        f"{', '.join(f'{kind} x {count}' for kind, count in types.items())}. "
        f"{' '.join(causes)} explain() of the function says more; to silence this: "
        f"warnings.simplefilter('ignore', nbta.PerformanceWarning)"
    )


def _cause(op, generated):
    """Why an operation runs in Python, and what helps."""
    maker = op if op.record is CREATE else generated.makers.get(op)
    if maker is not None:
        return _cause_of_array(maker, generated.kept[maker])
    if op.record is MAP:
        return _MAP
    if op.record is DRAW:
        return _DRAW
    if op.record.foreign:
        return _FOREIGN
    odd = (t.dtype for t in [*op.inputs, *op.outputs] if t.dtype.char not in NUMBERS)
    return next((_DTYPE.format(dtype) for dtype in odd), _OTHER)


def _cause_of_array(maker, reason):
    if not loops_around(maker):
        return f"The array {maker.name!r} is kept by Python, as {reason}."
    return _NEST if maker.facts.is_saved else _INNER.format(reason)
