"""Code of what goes along an axis item by item: cumulative sums, recurrences, places."""

from nbta.codegen.folds import extreme_of
from nbta.codegen.names import cast
from nbta.codegen.reduction_rules import kept_axes, refuse_empty
from nbta.codegen.values import Scalar, product, times, total


class _Along:
    """Loops over all runs along an axis: items before it, along it, behind it."""

    def __init__(self, code, extents, axis, reverse=False):
        self._code = code
        self.count, self._reverse = extents[axis], reverse
        self.outer_extent = product(extents[:axis])
        self.rest_extent = product(extents[axis + 1 :])
        self.outer, self.rest, self.step = (code.name(stem) for stem in "orj")

    @property
    def is_dense(self):
        """Whether the items of a run lie together."""
        return self.rest_extent == "1"

    def runs(self):
        """Headers of the loops over runs."""
        pairs = ((self.outer, self.outer_extent), (self.rest, self.rest_extent))
        return [f"for {name} in range({extent}):" for name, extent in pairs]

    def steps(self):
        """The header of the loop along a run."""
        return f"for {self.step} in range({self.count}):"

    def place(self):
        """Source of where in a run a step is."""
        return f"{self.count} - 1 - {self.step}" if self._reverse else self.step

    def at(self, block, place):
        """Source of the item of a block in the run."""
        run = total(times(self.outer, times(self.count, self.rest_extent)), self.rest)
        return block.at(total(run, times(f"({place})", self.rest_extent)))

    def result(self):
        """Source of an item's place in what has one item for each run."""
        return total(times(self.outer, self.rest_extent), self.rest)


def _scan(code, op, start, follow, exclusive):
    """A state for each item: ``follow(state, *items)`` gives the next one."""
    result = op.outputs[0]
    extents = code.extents(op.inputs[0])
    for tensor in op.inputs[1:]:
        for mine, theirs in zip(extents, code.extents(tensor), strict=True):
            code.equate(mine, theirs)
    blocks = [code.value(tensor) for tensor in op.inputs]
    target = code.result(op, extents=extents)
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
    if not any(kept):
        along = _Along(code, (code.extent(product(x.extents)),), 0)
        return code.bind(result, Scalar(_place_in_run(code, along, x), result.dtype))
    axis = kept.index(False)
    target = code.result(op, extents=x.extents[:axis] + x.extents[axis + 1 :])
    along = _Along(code, x.extents, axis)
    if not along.is_dense:
        return _places_in_rows(code, along, x, target)
    with code.nest(along.runs()[0]):
        code.add(f"{target.at(along.outer)} = {_place_in_run(code, along, x)}")
    return None


def _place_in_run(code, along, x):
    """The greatest of items that lie together, and then the first that is like it."""
    fold = extreme_of(x.dtype, 1)
    best, found, item = code.name("s"), code.name("k"), code.name("x")
    run = times(along.outer, along.count) if along.outer_extent != "1" else "0"
    code.add(f"{best} = {fold.first}", f"{found} = 0")
    with code.nest(along.steps()):
        read = fold.item.format(x.at(total(run, along.step)))
        code.add(f"{best} = {fold.inner.format(best, read)}")
    greatest = code.local(fold.back.format(best), x.dtype).text
    same = f"{item} == {greatest}"
    if x.dtype.kind == "f":
        same += f" or ({item} != {item} and {greatest} != {greatest})"
    with code.nest(along.steps()):
        code.add(f"{item} = {x.at(total(run, along.step))}")
        code.add(f"if {same}:", f"    {found} = {along.step}", "    break")
    return found


def _places_in_rows(code, along, x, target):
    """Row by row, with the greatest so far of each column."""
    best = code.new(x.dtype, (code.extent(along.rest_extent),))
    around = code.lines
    outer, header = along.runs()
    code.lines = code.lines.nest(outer)
    item, last, better = (code.name(stem) for stem in "xsq")
    with code.nest(header):
        code.add(f"{best.at(along.rest)} = {along.at(x, '0')}",
                 f"{target.at(along.result())} = 0")  # fmt: skip
    text = f"{item} > {last}"
    if x.dtype.kind == "f":
        text = f"({text} or {item} != {item}) and {last} == {last}"
    with code.nest(along.steps()), code.nest(header):
        place = target.at(along.result())
        code.add(
            f"{item} = {along.at(x, along.step)}",
            f"{last} = {best.at(along.rest)}",
            f"{better} = {text}",
            f"{best.at(along.rest)} = {item} if {better} else {last}",
            f"{place} = {along.step} if {better} else {place}",
        )
    code.lines = around
    code.release(best.base)
