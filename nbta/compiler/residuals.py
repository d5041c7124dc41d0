"""What loops save for their gradients after all passes, in words: how much, of which line, and why.

Such values are *residuals*. Reverse mode saves each value that an adjoint iteration needs on a
tape; passes leave out those that follow from the number of the iteration, from arguments or from
other residuals. What is said here is of those that are left.
"""

import math
import os

from nbta.compiler.manager import analysis
from nbta.graph.graph import running
from nbta.graph.labels import shown_loop
from nbta.graph.operation import DATA, label_of
from nbta.graph.views import Loop, Variable, is_loop, owners, variable_of
from nbta.ops.arrays.tensor_arrays import CREATE, GATHER, READ, WRITE
from nbta.ops.core.dispatch import PARAMETER
from nbta.ops.indexing.items import GETITEM
from nbta.ops.loops.aliases import ArrayUses
from nbta.tuning import RESIDUAL_LINES


def residual_notes(program) -> list[str]:
    """A line for each residual of a program: its name, bytes, loop, readers, and why it is saved.

    Values are called by their names in the graph, for `nbta.graph.labels.Labels.put`.
    """
    uses = analysis(ArrayUses, program)
    made = [op for op in running(program) if op.record is CREATE and op.facts.is_saved]
    notes = (_note(uses.users.get((op,), ())) for op in made)
    return [note for note in notes if note is not None]


def _note(users):
    """What is said of one tape; None where no iteration writes to it, or nothing reads it."""
    writes = [op for op in users if op.record is WRITE and _loop_around(op) is not None]
    reads = [op for op in users if op.record in (READ, GATHER)]
    if not writes or not reads:
        return None
    # before a loop one value may be saved, of the first iteration
    write = max(writes, key=lambda op: sum(map(is_loop, owners(op))))
    value, loop = write.inputs[2], _loop_around(write)
    needed = _places(reads)
    purpose = f", for {needed}" if needed else ""
    return (
        f"{_called(value)}: {_size(value.spec)} an iteration of {shown_loop(loop)}{purpose}; "
        f"{_why(value, Loop(loop))}"
    )


def _loop_around(op):
    return next((owner for owner in owners(op) if is_loop(owner)), None)


def _called(value):
    """The name of a value, or its expression, and its line; a variable's are of its next value."""
    if is_loop(value.op) and value.index == 0:
        return f"the number of iterations of {shown_loop(value.op)}"
    variable = variable_of(value)
    following = value if variable is None else variable.following
    expression = getattr(following.op.location, "expression", None)
    name = following.name
    if label_of(following) is None and expression:
        name = f"`{expression}` ({name})"
    line = _line(following.op)
    where = "" if line is None else f", {line}"
    return f"{name}{where}" + (", before the iteration" if variable is not None else "")


def _line(op):
    place = op.location
    return None if place is None else f"{os.path.basename(place.filename)}:{place.line}"


def _size(spec):
    """Bytes of a value, as far as its shape is known."""
    if spec.kind != DATA:
        return "8 bytes"
    shape = spec.shape
    known = [n for n in shape or () if type(n) is int]
    size = math.prod(known) * spec.dtype.itemsize
    if shape is not None and len(known) == len(shape):
        return f"{size} bytes"
    return f"{size} bytes times the open lengths of {spec}"


def _places(reads):
    """The lines whose gradient takes what reads of a tape give."""
    found = {}
    for read in reads:
        for op in read.graph.operations:
            if any(tensor is read.outputs[0] for tensor in op.inputs):
                found.update(dict.fromkeys(filter(None, [_line(op)])))
    lines = list(found)
    more = f" and {len(lines) - RESIDUAL_LINES} more lines" if len(lines) > RESIDUAL_LINES else ""
    return f"the gradient of {', '.join(lines[:RESIDUAL_LINES])}{more}" if lines else ""


def _why(value, loop):
    """Why a value is saved and not computed again."""
    if value.kind != DATA:
        return "an adjoint iteration needs the array that the iteration has made"
    variable = variable_of(value)
    if variable is not None and variable.loop == loop:
        return "the next iteration replaces it"
    needed, reads_items = _origins(value, loop)
    if reads_items:
        return "items that it is computed from are replaced later"
    if needed:
        return "it follows from the iteration before"
    return "to compute it again takes longer than to read it"


def _origins(value, loop):
    """Variables of a loop that a value is computed from, and whether items of arrays are among it.

    Bodies of loops and branches in the iteration are taken as a whole.
    """
    seen, todo, found, reads_items = set(), [value], [], False
    changing = {v.parameter for v in loop.variables()[1:] if not v.is_kept and not _counts(v)}
    while todo:
        tensor = todo.pop()
        if tensor in seen:
            continue
        seen.add(tensor)
        if tensor in changing:
            found.append(tensor)
        elif tensor.op.record is PARAMETER:
            around = tensor.graph.sources.get(tensor) if tensor.graph is not loop.body else None
            todo += [] if around is None else [around]
        else:
            source = tensor.op.inputs[0] if tensor.op.record is GETITEM else None
            reads_items |= source in changing
            todo += tensor.op.inputs
    return found, reads_items


def _counts(variable: Variable):
    """Whether a variable is a counter, or the flow of an array."""
    spec = variable.parameter.spec
    return spec.kind != DATA or (spec.dtype.kind in "iu" and spec.rank == 0)
