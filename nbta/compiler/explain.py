"""What became of a program, in words."""

from collections import Counter

from nbta.compiler.python_calls import Call
from nbta.graph.graph import subgraphs
from nbta.ops.dispatch import CONSTANT, PARAMETER
from nbta.ops.loop import WHILE


def explained(compiled, runs_note="") -> str:
    """A report on a `Compiled`: passes, loops, buffers, arrays, and what is left to Python."""
    found = compiled.generated
    lines = [f"one function of {len(found.source.splitlines())} lines{runs_note}"]
    lines += _section("passes that changed something (operations, those in loops)", compiled.log)
    lines += _section("loops over items, each with the operations that it does", found.loops)
    lines += _section("buffers made ahead, or at their place", found.buffers)
    lines += _section("arrays", found.arrays)
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
        self._last = _counted(program)

    def note(self, step, program) -> None:
        """What a pass changed, by what went into loops and out of them."""
        now = _counted(program)
        if now != self._last:
            everywhere, inside = (sum(part.values()) for part in now)
            before, inside_before = (sum(part.values()) for part in self._last)
            gone, come = self._last[1] - now[1], now[1] - self._last[1]
            text = f"{step.__name__}: {before} to {everywhere}, {inside_before} to {inside}"
            text += _listed("; out of loops: ", gone) + _listed("; into loops: ", come)
            self.rows.append(text)
        self._last = now


def _listed(title, types):
    return title + ", ".join(f"{n} {name}" for name, n in sorted(types.items())) if types else ""


def _counted(graph, inside=False):
    """How many operations of each type there are, everywhere and in loops."""
    everywhere, loops = Counter(), Counter()
    for op in graph.operations:
        if op.record in (PARAMETER, CONSTANT):
            continue
        everywhere[op.type] += 1
        loops[op.type] += inside
        for body in subgraphs(op):
            below = _counted(body, inside or op.record is WHILE)
            everywhere += below[0]
            loops += below[1]
    return everywhere, +loops
