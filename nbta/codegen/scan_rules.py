"""Code of what goes along an axis item by item: cumulative sums, recurrences, places."""

from nbta.codegen.names import cast
from nbta.codegen.reduction_rules import kept_axes, refuse_empty
from nbta.codegen.values import Scalar, product, times, total


class _Along:
    """Loops over all runs along an axis: items before it, along it, behind it."""

    def __init__(self, code, extents, axis, reverse=False):
        self._code = code
        self.count, self._reverse = extents[axis], reverse
        self._outer, self._rest = product(extents[:axis]), product(extents[axis + 1 :])
        self.outer, self.rest, self.step = (code.name(stem) for stem in "orj")

    def runs(self):
        """Headers of the loops over runs."""
        pairs = ((self.outer, self._outer), (self.rest, self._rest))
        return [f"for {name} in range({extent}):" for name, extent in pairs]

    def steps(self):
        """The header of the loop along a run."""
        return f"for {self.step} in range({self.count}):"

    def place(self):
        """Source of where in a run a step is."""
        return f"{self.count} - 1 - {self.step}" if self._reverse else self.step

    def at(self, block, place):
        """Source of the item of a block in the run."""
        run = total(times(self.outer, times(self.count, self._rest)), self.rest)
        return block.at(total(run, times(f"({place})", self._rest)))

    def result(self):
        """Source of an item's place in what has one item for each run."""
        return total(times(self.outer, self._rest), self.rest)


def _scan(code, op, start, follow, exclusive):
    """A state for each item: ``follow(state, *items)`` gives the next one."""
    result = op.outputs[0]
    extents = code.extents(op.inputs[0])
    for tensor in op.inputs[1:]:
        for mine, theirs in zip(extents, code.extents(tensor), strict=True):
            code.equate(mine, theirs)
    blocks = [code.value(tensor) for tensor in op.inputs]
    target = code.new(result.dtype, extents)
    code.bind(result, target)
    axis = op.attrs["axis"] % len(extents)
    along = _Along(code, extents, axis, op.attrs["reverse"])
    state = code.name("s")
    outer, rest = along.runs()
    with code.nest(outer), code.nest(rest):
        code.add(f"{state} = {cast(start, result.dtype)}")
        with code.nest(along.steps()):
            items = [along.at(block, along.place()) for block in blocks]
            lines = [
                f"{along.at(target, along.place())} = {state}",
                f"{state} = {cast(follow(state, *items), result.dtype)}",
            ]
            code.add(*(lines if exclusive else lines[::-1]))


def _truth(op):
    return op.outputs[0].dtype.kind == "b"


def cumsum(code, op) -> None:
    """Sums up to each item, in order."""
    _scan(code, op, "0", "{} + {}".format, exclusive=False)


def exclusive_cumprod(code, op) -> None:
    """Products of the items before each."""
    sign = "&" if _truth(op) else "*"
    _scan(code, op, "1", lambda state, item: f"{state} {sign} {item}", exclusive=True)


def recurrence(code, op) -> None:
    """Each state is a multiple of the one before, and something more."""
    times, plus = ("&", "|") if _truth(op) else ("*", "+")

    def follow(state, factor, push):
        return f"{factor} {times} {state} {plus} {push}"

    _scan(code, op, "0", follow, exclusive=True)


def argmax(code, op) -> None:
    """The place of the first of the greatest items, or of the first NaN."""
    x, result = code.value(op.inputs[0]), op.outputs[0]
    if isinstance(x, Scalar):
        return code.bind(result, code.local("0", result.dtype))
    kept = kept_axes(op)
    refuse_empty(code, [e for e, k in zip(x.extents, kept, strict=True) if not k])
    if any(kept):
        extents, axis = x.extents, kept.index(False)
    else:
        extents, axis = (code.extent(product(x.extents)),), 0
    along = _Along(code, extents, axis)
    target = code.result(op, extents=extents[:axis] + extents[axis + 1 :]) if any(kept) else None
    found = code.name("k")
    outer, rest = along.runs()
    with code.nest(outer), code.nest(rest):
        _find(code, along, x, found)
        if target is not None:
            code.add(f"{target.at(along.result())} = {found}")
    if target is None:
        code.bind(result, Scalar(found, result.dtype))
    return None


def _find(code, along, x, found):
    best, item = code.name("s"), code.name("x")
    code.add(f"{found} = 0", f"{best} = {along.at(x, '0')}")
    better = f"{item} > {best}"
    if x.dtype.kind == "f":
        better = f"({better} or {item} != {item}) and {best} == {best}"
    with code.nest(along.steps()):
        code.add(f"{item} = {along.at(x, along.step)}")
        with code.nest(f"if {better}:"):
            code.add(f"{best} = {item}", f"{found} = {along.step}")
