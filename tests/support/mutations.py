"""Plants faults in a copy of the package, one at a time; the quick tests must find them.

``python tests/support/mutations.py`` plants all, ``-k batch`` those whose subject or description
has that in it; ``--list`` shows them. To be quick, each is held against the few test files that are
about its subject, not against all. A fault that these do not find is tried on the slow tests of the
same files. The end says what only those find, and what nothing finds; the code is 1 where quick
tests find fewer than 28 of 30. Faults in kernels come last: these are compiled anew for each.

``--smoke`` asks the same of the smoke suite, which must find nine of ten: of its tests in the files
about the fault's subject, and of all of it where these find nothing.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
#: What share of the faults the quick tests must find, or the smoke suite.
WANTED = {"quick": 28 / 30, "smoke": 9 / 10}
#: Tests that are tried on a fault, one choice after the other: a mark, its name, and whether the
#: files about the fault's subject are enough.
CHOICES = {
    "quick": [("not slow", "quick", True), ("slow", "slow", True)],
    "smoke": [("smoke", "smoke", True), ("smoke", "smoke", False)],
}
#: Seconds; a fault that makes tests hang is found.
LIMIT = 1800
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".pytest_cache", "__pycache__", ".hypothesis", ".asv", "_build", "*.egg-info"
)


class Fault(NamedTuple):
    """A piece of the package's source and what takes its place.

    It is found by its text, wherever that is, and must be there once.
    """

    subject: str
    what: str
    old: str
    new: str
    tests: str

    def file(self, root=ROOT):
        """The one file that has the piece."""
        found = [path for path in sorted(root.glob("nbta/**/*.py")) if self.old in path.read_text()]
        if len(found) != 1 or found[0].read_text().count(self.old) != 1:
            raise LookupError(f"{self.old!r} is in {list(map(str, found))}, and must be there once")
        return found[0]

    def changed(self, root=ROOT):
        """The source of that file with the fault."""
        return self.file(root).read_text().replace(self.old, self.new)


FAULTS = [
    Fault(
        "gradients",
        "the sign of a quotient's second argument",
        "return dx, lambda: -dx * conjugate(z)",
        "return dx, dx * conjugate(z)",
        "ops_elementwise",
    ),
    Fault(
        "gradients",
        "the derivative of tanh",
        "np.tanh,\n    lambda x, y: 1 - square(y)",
        "np.tanh,\n    lambda x, y: 1 - y",
        "ops_elementwise",
    ),
    Fault(
        "gradients",
        "equal arguments of a maximum each get all",
        "where(equal(x, y), 0.5 * dz, 0.0)",
        "where(equal(x, y), 1.0 * dz, 0.0)",
        "ops_elementwise",
    ),
    Fault(
        "gradients",
        "the sign of a remainder's divisor",
        "(dz, -dz * floor_divide(x, y))",
        "(dz, dz * floor_divide(x, y))",
        "ops_elementwise",
    ),
    Fault(
        "gradients",
        "a mean that forgets to divide",
        "spread(dy * cast(1.0 / count, dy.dtype), op)",
        "spread(dy, op)",
        "ops_reductions_linalg",
    ),
    Fault(
        "gradients",
        "a softmax whose items do not know of each other",
        "y * (dy - sum(dy * y, axis, keepdims=True))",
        "y * dy",
        "ops_reductions_linalg",
    ),
    Fault(
        "gradients",
        "of several uses of a tensor the first alone",
        "whole[0] if len(whole) == 1 else add_n(whole)",
        "whole[0]",
        "gradients",
    ),
    Fault(
        "gradients",
        "gradients that pass what is to be constant",
        "return None if tensor in self._stop else grad",
        "return grad",
        "gradients",
    ),
    Fault(
        "gradients",
        "iterations that share their accumulators",
        "if isinstance(self._home, SubGraph) and not self._iteration:",
        "if self._iteration:",
        "gradients silent_gradients",
    ),
    Fault(
        "gradients",
        "the derivative of a power by its base",
        "y * power(base, y - 1)",
        "y * power(base, y)",
        "ops_elementwise",
    ),
    Fault(
        "passes",
        "operations of other attributes are taken for equal",
        "key = (op.record, tuple(inputs), attrs, after)",
        "key = (op.record, tuple(inputs), after)",
        "passes",
    ),
    Fault(
        "passes",
        "operations with effects are done once for several",
        "return not (self.effects or self.foreign)",
        "return not self.foreign",
        "passes golden_graph",
    ),
    Fault(
        "passes",
        "variables that a condition asks for are left out",
        "results | 1 | self.of(loop.cond)[0]",
        "results | 1",
        "passes golden_graph",
    ),
    Fault(
        "passes",
        "a slot that is cleared is read again from the tensor",
        "return len(loops) == 1 and found is not None and found[1] != 0",
        "return True",
        "array_passes",
    ),
    Fault(
        "passes",
        "a counter that does not begin at 0",
        "return self._outside(record, [first, iteration])",
        "return iteration",
        "tape_passes checkpoint loops",
    ),
    Fault(
        "passes",
        "a counter with steps of more than 1",
        "if constant_of(step) != 1:",
        "if constant_of(step) is None:",
        "tape_passes checkpoint loops",
    ),
    Fault(
        "codegen",
        "lengths that cannot be broadcast",
        "code.fail_if(both(other.differs(1), other.differs(merged)))",
        "pass",
        "both_executors emit_numbers compiled_graphs emit_structure",
    ),
    Fault(
        "codegen",
        "a mean that divides by all items",
        "count = typed(product(gone(code, op)), dtype)",
        "count = typed(product(code.dimensions(op.inputs[0])), dtype)",
        "emit_numbers",
    ),
    Fault(
        "codegen",
        "a minimum that is the maximum",
        "extreme_of(op.outputs[0].dtype, sign)",
        "extreme_of(op.outputs[0].dtype, 1)",
        "emit_numbers",
    ),
    Fault(
        "codegen",
        "a block that begins elsewhere where it reaches over the edge",
        'call("min", call("max", start, 0), dimension - length), "k"',
        'call("max", dimension - length - call("max", start, 0), 0), "k"',
        "emit_structure",
    ),
    Fault(
        "codegen",
        "loop variables that are not assigned at once",
        "code.local(value.item, value.dtype) if value.item in names else value",
        "value",
        "both_executors emit_structure",
    ),
    Fault(
        "codegen",
        "the greatest of nothing",
        "if not is_known(dimension) or dimension == ZERO:",
        "if dimension == ZERO:",
        "emit_numbers",
    ),
    Fault(
        "passes",
        "items at the place of a loop between, kept at that of the loop",
        "if source.graph is not self._loop.body or step_of(source) is None:",
        "if step_of(source) is None:",
        "hoisted_saves",
    ),
    Fault(
        "passes",
        "as many iterations where the loop between makes none",
        "count = multiply(count, one)",
        "count = multiply(count, maximum(one, ONE))",
        "hoisted_saves",
    ),
    Fault(
        "passes",
        "the iteration of a loop between in place of that of the loop around",
        "reads = [(op, iterations[: len(iterations) - len(between)]) for op, iterations in "
        "leaf.reads]",
        "reads = [(op, iterations[len(between) :]) for op, iterations in leaf.reads]",
        "hoisted_saves",
    ),
    Fault(
        "passes",
        "values of an inner loop that begin where those of the first iteration do",
        "index = add(graph.resolve(ahead), as_long(index))",
        "index = as_long(index)",
        "nested_tapes",
    ),
    Fault(
        "gradients",
        "a tape that takes its gradient from nobody",
        "return [dy, None, restore(dy, index, value.spec) if value.spec.differentiable else None]",
        "return [dy, None, None]",
        "forward_mode nested_tapes",
    ),
    Fault(
        "passes",
        "rows of several lengths that all begin at the first item",
        "return subtract(cumsum(lengths), lengths)",
        "return subtract(lengths, lengths)",
        "saved_arrays",
    ),
    Fault(
        "passes",
        "a slot that nobody filled, read where an array is kept as a tensor",
        "if not told and shapes.is_known(shape):",
        "if told and shapes.is_known(shape):",
        "saved_arrays",
    ),
    Fault(
        "passes",
        "a later loop that forgets what an earlier one added to a gradient array",
        "written = sums.scatter(arange(getitem(shape_of(begun), 0)), begun)",
        "written = sums.scatter(arange(0 * getitem(shape_of(begun), 0)), begun[:0])",
        "saved_arrays",
    ),
    Fault(
        "stencils",
        "items that get their sums in the order of items",
        "key=lambda a: (-step * a.place, a.number)",
        "key=lambda a: (step * a.place, a.number)",
        "stencils",
    ),
    Fault(
        "stencils",
        "rows whose ends turn zeros",
        "row.dtype.type(-0.0)",
        "row.dtype.type(0.0)",
        "stencils",
    ),
    Fault(
        "stencils",
        "ends of rows that are left as they were",
        "self._count + (self._room + k)",
        "self._count + (self._room + 0)",
        "stencils",
    ),
    Fault(
        "stencils",
        "lines that are one for some lengths alone",
        "return False if all(each == Linear(0) for each in differences) else None",
        "return not all(each == Linear(0) for each in differences)",
        "stencils",
    ),
    Fault(
        "stencils",
        "indices of which only the first is looked at",
        "ends = [first, first + form[1] * (iterations - 1)] if form[1] else [first]",
        "ends = [first]",
        "stencils",
    ),
    Fault(
        "stencils",
        "arrays that have changed places once",
        "0).differs(homes[0])",
        "0).equals(homes[0])",
        "stencils",
    ),
    Fault(
        "stencils",
        "arrays that change places, of which a third one takes what it finds",
        "zip([blocks[-1], *blocks[:-1]], blocks, strict=True)",
        "zip(blocks, blocks, strict=True)",
        "turned_buffers",
    ),
    Fault(
        "stencils",
        "lengths that become each other's one after the other",
        "if theirs in lengths:",
        "if False:",
        "turned_buffers",
    ),
    Fault(
        "stencils",
        "three arrays that change places the other way round",
        "[*(base.name for base in bases[1:]), kept]",
        "[kept, *(base.name for base in bases[:-1])]",
        "turned_buffers",
    ),
    Fault(
        "joint iterations",
        "adjoint iterations that need what all iterations leave",
        "return not any(_origin(tensor).op in after for tensor in tensors)",
        "return True",
        "adjoint_loop_fusion",
    ),
    Fault(
        "joint iterations",
        "sums that iterations look at",
        "    while start is not None and len(users[start]) == 1:\n        (op,) = users[start]\n",
        "    while start is not None and users[start]:\n        op = users[start][-1]\n",
        "adjoint_loop_fusion",
    ),
    Fault(
        "tiles",
        "sums of which each tile begins anew",
        "return add(parameter, _cast(part, self.dtype))",
        "return _cast(part, self.dtype)",
        "tiles",
    ),
    Fault(
        "tiles",
        "the rest of the items after the last whole tile",
        "stop = where(less(after, self._count), share, graph.resolve(self._n))",
        "stop = share - 1",
        "tiles",
    ),
    Fault(
        "tiles",
        "sums of all tiles that an iteration looks at",
        "if not (linear and scalar and inexact):",
        "if not (scalar and inexact):",
        "tiles",
    ),
    Fault(
        "tiles",
        "tapes that are read when all tiles are done",
        "tapes = {t for t in self._ends if t.kind == FLOW or made(t) is Kind.TAPE}",
        "tapes = set()",
        "tiles",
    ),
    Fault(
        "batches",
        "other results are divided for a mean too",
        "[1 if k in aux else count for k in range(results)]",
        "[count for k in range(results)]",
        "batches",
    ),
    Fault(
        "batches",
        "sums of parts that go on from what was there",
        "is_first = item == self.starts[part]",
        "is_first = item == 0",
        "batches",
    ),
    Fault(
        "batches",
        "of several items that fail the last is named",
        "item = min(table.errors)",
        "item = max(table.errors)",
        "batches",
    ),
    Fault(
        "store",
        "a write one past the end of a fixed array",
        "index >= s._size and not s._dynamic",
        "index > s._size and not s._dynamic",
        "against_model golden_raw",
    ),
    Fault(
        "store",
        "a second write to a slot",
        "if state & (WRITTEN | PENDING) and not gradient:",
        "if state & PENDING and not gradient:",
        "against_model golden_raw",
    ),
    Fault(
        "store",
        "gradient slots that keep the last value",
        "return state & (WRITTEN | ZERO) == WRITTEN",
        "return state & (WRITTEN | ZERO) == ZERO",
        "against_model golden_raw",
    ),
    Fault(
        "store",
        "reads that leave no mark",
        "mem.store_byte(s._states + index, s._read_state)",
        "mem.store_byte(s._states + index, state_of(s, index))",
        "against_model golden_raw",
    ),
    Fault(
        "store",
        "gradient arrays that end where they were made",
        "index < 0 or (index >= s._size and not s._gradient)",
        "index < 0 or index >= s._size",
        "against_model golden_raw",
    ),
]


@contextmanager
def planted(fault, root):
    """A tree with a fault, and without it again."""
    path = fault.file(root)
    before = path.read_text()
    path.write_text(fault.changed(root))
    try:
        yield
    finally:
        path.write_text(before)


def passes(root, tests, mark):
    """Whether tests of some files, or of all, pass in a tree; None where none has the mark."""
    names = [file for name in tests.split() for file in root.glob(f"tests/**/test_{name}.py")]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", mark]
    caches = {"NUMBA_CACHE_DIR": root / "compiled", "NBTA_CACHE_DIR": root / "graphs"}
    given = {name: str(path) for name, path in {"PYTHONPATH": root, **caches}.items()}
    try:
        result = subprocess.run(
            [*command, *names],
            cwd=root, env={**os.environ, **given, "CI": "1"}, capture_output=True, timeout=LIMIT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False
    return None if result.returncode == 5 else result.returncode == 0


def found_by(fault, root, suite="quick"):
    """Which tests find a fault: those of a choice, by its name, or "nothing"."""
    with planted(fault, root):
        for mark, name, few in CHOICES[suite]:
            if passes(root, fault.tests if few else "", mark) is False:
                return name
    return "nothing"


def check(faults, root, suite):
    """What finds each fault, by fault."""
    for tests in sorted({fault.tests for fault in faults}):
        if not passes(root, tests, CHOICES[suite][0][0]):
            sys.exit(f"without a fault, tests fail already, or there are none: {tests}")
    found = {}
    for fault in faults:
        start = time.monotonic()
        found[fault] = found_by(fault, root, suite)
        took = f"{time.monotonic() - start:4.0f} s"
        print(f"{found[fault]:8}{took}  {fault.subject}: {fault.what}", flush=True)
    return found


def main(arguments=None):
    """The command; its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-k", default="", help="those with this in their subject or description")
    parser.add_argument("--list", action="store_true", help="show the faults only")
    parser.add_argument("--smoke", action="store_true", help="try the smoke suite alone")
    options = parser.parse_args(arguments)
    suite = "smoke" if options.smoke else "quick"
    faults = [fault for fault in FAULTS if options.k in f"{fault.subject}: {fault.what}"]
    if options.list:
        print(*(f"{fault.subject}: {fault.what} ({fault.tests})" for fault in faults), sep="\n")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "nbta")
        shutil.copytree(ROOT, root, ignore=LEFT_OUT)
        found = check(faults, root, suite)
    for by, title in (("slow", "only slow tests find"), ("nothing", "nothing finds")):
        names = [fault.what for fault in faults if found[fault] == by]
        print(f"{title}: {'; '.join(names) or 'none'}")
    count = list(found.values()).count(suite)
    print(f"{suite} tests find {count} of {len(faults)}")
    return int(count < WANTED[suite] * len(faults))


if __name__ == "__main__":
    sys.exit(main())
