"""The ways in which a program runs, and what must be the same in all of them."""

from contextlib import contextmanager, nullcontext

import numpy as np
from compiled_pairs import compare
from interpreted import interpreted, watched
from model import ModelError

import nbta
from nbta.compiler import executable as compiling
from nbta.execution.reference import Plan, Step
from nbta.graph.graph import everything
from nbta.ops.core.dispatch import PARAMETER
from nbta.ops.core.filling import PLACEHOLDER

from . import plain


class DisagreementError(AssertionError):
    """Two ways that differ; ``stage`` says which ones, in a word that shrinking keeps."""

    def __init__(self, stage, call, what):
        super().__init__(f"{stage}, given[{call}]: {what}")
        self.stage = stage


@contextmanager
def in_python():
    """Generated source is run by Python, with bounds checked, in place of machine code."""
    build = compiling.build
    compiling.build = interpreted
    try:
        with watched():
            yield
    finally:
        compiling.build = build


def executed(machine_code):
    """A context in which generated source runs as machine code, or is run by Python."""
    return nullcontext() if machine_code else in_python()


def outcome(f, values):
    """What a call gives, or the error that it raises."""
    with np.errstate(all="ignore"):
        try:
            return f(*values)
        except (nbta.NbtaError, ModelError, IndexError, ValueError, ZeroDivisionError) as error:
            return error


def hold_compiled(f, values, machine_code, counts, rtol=1e-9):
    """What a function gives compiled is what it gives one by one, unless that is refused."""
    with executed(machine_code):
        found = outcome(nbta.function(f, compiled=True), values)
    if isinstance(found, nbta.UnimplementedError):
        count({} if counts is None else counts, "not compiled")
        return
    hold("compiled", 0, found, outcome(nbta.function(f, compiled=False), values), rtol)


def tolerance(program):
    """Relative to the largest element of a result: sums are taken in any order."""
    kinds = {np.asarray(value).dtype.name for value in program.inputs.values()}
    single = kinds & {"float32", "complex64"} or "'float32'" in program.source()
    return 2e-3 if single else 1e-8


def hold(stage, call, found, expected, rtol):
    """Two outcomes are the same: equal values, or errors for the same reason."""
    failed = [isinstance(value, Exception) for value in (found, expected)]
    if any(failed):
        if not all(failed):
            raise DisagreementError(f"{stage}: one fails", call, f"{found!r} and {expected!r}")
        if stage.startswith("compiled") and found.reason != expected.reason:
            raise DisagreementError(f"{stage}: reasons", call, f"{found!r} and {expected!r}")
        return
    try:
        compare(found, expected, rtol)
    except AssertionError as error:
        raise DisagreementError(f"{stage}: values", call, error) from error


def is_near_a_jump(model, values, expected):
    """Whether last digits decide something, as at a jump of some function."""
    moved = [v * (1 + 1e-9) if np.asarray(v).dtype.kind in "fc" else v for v in values]
    again = outcome(model, moved)
    failed = isinstance(expected, Exception)
    if failed or isinstance(again, Exception):
        return failed != isinstance(again, Exception)
    try:
        compare(again, expected, 1e-5)
    except AssertionError:
        return True
    return False


def check(program, machine_code=False, counts=None):
    """Run a program in all ways; `DisagreementError` where two of them differ."""
    counts = {} if counts is None else counts
    rtol = tolerance(program)
    model, own = program.function(plain, rebinding=True), program.function(nbta)
    reference = nbta.function(own, compiled=False)
    compiled = nbta.function(own, compiled=True)
    for call, values in enumerate(program.given()):
        plainly = outcome(model, values)
        if is_near_a_jump(model, values, plainly):
            count(counts, "near a jump")
            continue
        before = [np.asarray(value).tobytes() for value in values]
        eager, traced = outcome(own, values), outcome(reference, values)
        unknown = isinstance(plainly, plain.NoRowsError) and isinstance(eager, Exception)
        if "'abstract/" in str(eager) or unknown:
            count(counts, "an error in iterations that are never made")
            continue
        if isinstance(plainly, plain.NoRowsError):
            count(counts, "shapes of no rows unknown to the model")
        elif is_of_unknown_rows(own, eager, values):
            count(counts, "shapes of no rows known to no trace")
            continue
        else:
            hold("eager and model", call, eager, plainly, rtol)
        if is_of_unknown_rows(own, traced, values) and not isinstance(eager, Exception):
            count(counts, "shapes of no rows known to no trace")
            continue
        if is_of_no_iteration(traced, eager, values):
            count(counts, "an error in iterations that are never made")
            continue
        if is_of_the_unused(reference, traced, eager, values):
            count(counts, "an error in what nobody uses")
            continue
        hold("reference and eager", call, traced, eager, rtol)
        if before != [np.asarray(value).tobytes() for value in values]:
            raise DisagreementError("arguments changed", call, values)
        run_compiled(compiled, call, values, traced, rtol, machine_code, counts)
    return counts


def is_of_unknown_rows(own, found, values):
    """Whether there are no rows, whose shape is decided by values or iterations of an inner loop.

    Then even a trace that knows all lengths does not know it.
    """
    said = str(found)
    unknown = "nothing to stack" in said or "there are no rows" in said
    if not (isinstance(found, nbta.UnimplementedError) and unknown):
        return False
    with nbta.Graph().as_default() as graph:
        outcome(own, [nbta.placeholder(np.asarray(v).dtype, np.shape(v)) for v in values])
    stacking = ("TensorArrayGatherV3", "Map")
    stacked = (y for op in everything(graph) if op.type in stacking for y in op.outputs[:1])
    rows_are_known = all(None not in (tensor.shape or (0, None))[1:] for tensor in stacked)
    return not rows_are_known and not all(map(np.size, values))


#: What names of operations in a body have in them.
BODIES = ("/body/", "/branch_fns_", "/default/", "/true_fn/", "/false_fn/")


def is_of_no_iteration(traced, eager, values):
    """Whether shapes do not fit in a body that is not run, which is seen when it is traced.

    All lengths are known then, as an array is empty.
    """
    inside = any(part in str(traced).split(":")[0] for part in (*BODIES, "'abstract/"))
    seen = inside and isinstance(traced, nbta.InvalidArgumentError)
    return seen and not isinstance(eager, Exception) and not all(map(np.size, values))


def run_compiled(compiled, call, values, expected, rtol, machine_code, counts):
    """The compiled function, twice: results of the first call must stay as they are."""
    before = sum(trace.runner.fallbacks for trace in compiled.every_trace() if trace.runner)
    for _ in range(2):
        with executed(machine_code):
            found = outcome(compiled, values)
        if isinstance(found, nbta.UnimplementedError) and "cannot be compiled" in str(found):
            count(counts, "not compiled")
            return
        if isinstance(expected, Exception) and not isinstance(found, Exception):
            expected = without_the_unused(compiled, values)
            count(counts, "an error in what nobody uses")
        hold("compiled and reference", call, found, expected, rtol)
    after = sum(trace.runner.fallbacks for trace in compiled.every_trace() if trace.runner)
    failed = isinstance(expected, Exception)
    count(counts, "failed" if failed else "gave up" if after > before else "agreed")


def without_the_unused(compiled, values):
    """What the graph gives after all passes, which leave out what no result depends on."""
    program = compiled.graph
    arrays = [np.asarray(value) for value in values]
    return outcome(
        lambda: list(Plan(program.inputs, program.outputs, program.targets)(Step(), arrays)), []
    )


def is_of_the_unused(reference, traced, eager, values):
    """Whether a plain call fails at what no result depends on, as the trace does when asked for it.

    A run of a graph leaves such operations out.
    """
    if isinstance(traced, Exception) or not isinstance(eager, Exception):
        return False
    graph, results = reference.traced()
    inputs = [op.outputs[0] for op in graph.operations if op.record is PLACEHOLDER]
    arrays = [np.asarray(value) for value in values]

    class Whole(Step):
        def function(self, body):
            # not of variables that no iteration changes
            given = {tensor.op for tensor in body.inputs}
            kept = [op for op in body.operations if op.record is not PARAMETER or op in given]
            return Plan(body.inputs, body.outputs, kept)

    found = outcome(lambda: Plan(inputs, results, graph.operations)(Whole(), arrays), [])
    return isinstance(found, Exception)


def count(counts, what, number=1):
    counts[what] = counts.get(what, 0) + number
