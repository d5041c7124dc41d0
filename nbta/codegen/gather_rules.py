"""Code of operations with arrays of indices."""

from nbta.codegen.index_rules import offset_of, position
from nbta.codegen.moving import clear, held, integer, move, strides_of, window
from nbta.codegen.names import cast
from nbta.codegen.values import Block, Scalar, product, times, total


def take(code, op) -> None:
    """Rows that indices name; a single one along the first axis is a view."""
    x, indices = map(code.value, op.inputs)
    axis = op.attrs["axis"] % len(x.extents)
    before, behind = x.extents[:axis], x.extents[axis + 1 :]
    if isinstance(indices, Scalar):
        return _take_one(code, op, x, axis)
    block = code.result(op, extents=(*before, *indices.extents, *behind))
    rows = _Rows(code, x.extents, axis, indices)
    with rows.each(code) as (outer, place, row):
        target = total(block.offset, times(rows.index_of(outer, row), rows.length))
        source = total(x.offset, times(rows.place_of(outer, place), rows.length))
        code.add(_copy_row(block.base, target, x.base, source, rows.length))
    return None


def _copy_row(target, to, source, of, length):
    if length == "1":
        return f"{target.name}[{to}] = {source.name}[{of}]"
    return f"copy({target.name}, {to}, {source.name}, {of}, {length})"


def _take_one(code, op, x, axis):
    index = code.variable(_as_int(op.inputs[1].dtype, code.scalar(op.inputs[1])), "k")
    place = position(code, index, x.extents[axis])
    around = window(code, x)
    found = around.moved(*("0",) * axis, place, *("0",) * (len(x.extents) - axis - 1))
    extents = x.extents[:axis] + x.extents[axis + 1 :]
    if not extents:
        return code.bind(op.outputs[0], code.local(f"{x.base.name}[{found.offset}]", x.dtype))
    if all(extent == "1" for extent in x.extents[:axis]):
        return code.bind(op.outputs[0], Block(x.base, extents, offset_of(code, found)))
    block = code.result(op, extents=extents)
    strides = around.strides[:axis] + around.strides[axis + 1 :]
    source = type(around)(x.base, found.offset, strides)
    return move(code, extents, window(code, block), source)


def _as_int(dtype, text):
    return text if dtype == "int64" else f"int64({text})"


class _Rows:
    """The rows along an axis that indices name, in loops over the axes before it and over them."""

    def __init__(self, code, extents, axis, indices):
        self.before, self.length = product(extents[:axis]), product(extents[axis + 1 :])
        self.extent, self._indices = extents[axis], indices
        self.count = "1" if isinstance(indices, Scalar) else product(indices.extents)

    def each(self, code):
        """A block in which the number before, the index and the row's number have names."""
        return _Nested(code, self)

    def place_of(self, outer, place):
        """Source of which row of the tensor one is, all axes before taken as one."""
        return place if outer == "0" else total(times(outer, self.extent), place)

    def index_of(self, outer, row):
        """Source of which row one is of those that the indices name."""
        return row if outer == "0" else total(times(outer, self.count), row)

    def item(self, row):
        """Source of an index."""
        indices = self._indices
        text = indices.text if isinstance(indices, Scalar) else indices.at(row)
        return _as_int(indices.dtype, text)


class _Nested:
    """The loops of `_Rows`."""

    def __init__(self, code, rows):
        self._code, self._rows, self._around = code, rows, code.lines

    def __enter__(self):
        code, rows = self._code, self._rows
        outer, row, place = "0", code.name("j"), code.name("k")
        header = f"for {row} in range({rows.count}):"
        if rows.before != "1":  # there may be none, and indices are to be right all the same
            with code.nest(header):
                self._check(rows.item(row))
            outer = code.name("i")
            code.lines = code.lines.nest(f"for {outer} in range({rows.before}):")
        code.lines = code.lines.nest(header)
        code.add(f"{place} = {rows.item(row)}")
        if rows.before == "1":
            self._check(place)
        code.add(f"{place} = {place} + {rows.extent} if {place} < 0 else {place}")
        return outer, place, row

    def _check(self, index):
        extent = self._rows.extent
        self._code.fail_if(f"{index} < -{extent} or {index} >= {extent}")

    def __exit__(self, *_):
        self._code.lines = self._around


def scatter_add(code, op) -> None:
    """A tensor with updates added to the rows that indices name, one after the other."""
    x, indices, updates = op.inputs
    extents = code.extents(x)
    axis = op.attrs["axis"] % len(extents)
    index, added = code.value(indices), code.value(updates)
    rows = _Rows(code, extents, axis, index)
    groups = extents[:axis], index.extents, extents[axis + 1 :]
    steps = spread(code, added.extents, sum(map(len, groups)), sum(groups, ()))
    block = code.changed(op)
    with rows.each(code) as (outer, place, row):
        start = total(block.offset, times(rows.place_of(outer, place), rows.length))
        numbers = _numbers(code, groups, (outer, row))
        names = [code.name("i") for _ in groups[2]]
        target = total(start, *map(times, names, strides_of(code, groups[2])))
        source = total("", *map(times, [*numbers, *names], steps))
        item = added.text if isinstance(added, Scalar) else added.at(source)
        at = f"{block.base.name}[{target}]"
        sign = "|" if block.dtype.kind == "b" else "+"
        headers = [f"for {i} in range({e}):" for i, e in zip(names, groups[2], strict=True)]
        code.nested(headers, f"{at} = {cast(f'{at} {sign} {item}', block.dtype)}")


def _numbers(code, groups, counters):
    """Source of indices along the axes of groups that are walked as one."""
    found = []
    for extents, counter in zip(groups[:2], counters, strict=True):
        for axis, step in enumerate(strides_of(code, extents)):
            text = counter if step == "1" else f"({counter} // ({step}))"
            found.append(f"({text} % {extents[axis]})" if axis else text)
    return found


def spread(code, extents, rank, wanted) -> list[str]:
    """How far apart items are along axes that broadcasting may repeat."""
    padded = ("1",) * (rank - len(extents)) + tuple(extents)
    steps = strides_of(code, padded)
    return [_step(code, *pair, step) for *pair, step in zip(padded, wanted, steps, strict=True)]


def _step(code, extent, wanted, step):
    if extent == "1":
        return "0"
    if code.same(extent, wanted):
        return step
    if extent.isdigit():
        code.equate(extent, wanted)
        return step
    code.fail_if(f"{extent} != 1 and {extent} != {wanted}")
    return code.derived(f"{step} if {extent} != 1 else 0", "k")


def one_hot(code, op) -> None:
    """Zeros, and a one where each index says."""
    indices, depth = code.value(op.inputs[0]), code.variable(integer(code, op.inputs[1]), "k")
    length = held(code, code.derived(f"max(0, {depth})"), op.outputs[0].spec.shape[-1])
    block = code.result(op, extents=(*indices.extents, length))
    clear(code, block)
    j, k = code.name("j"), code.name("k")
    scalar = isinstance(indices, Scalar)
    text = _as_int(indices.dtype, indices.text if scalar else indices.at(j))
    with code.nest(f"for {j} in range({product(indices.extents)}):"):
        code.add(f"{k} = {text}")
        with code.nest(f"if {k} >= 0 and {k} < {length}:"):
            code.add(f"{block.at(total(times(j, length), k))} = {cast('1', block.dtype)}")
