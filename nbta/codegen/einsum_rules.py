"""Code of sums of products over named axes."""

from nbta.codegen.moving import Window, move, strides_of, window
from nbta.codegen.names import cast
from nbta.codegen.values import Block, Scalar, product, times, total


def einsum(code, op) -> None:
    """One tensor rearranged; two by products of matrices, or by loops where there are none."""
    operands, result = op.attrs["operands"], op.attrs["result"]
    values = [code.value(tensor) for tensor in op.inputs]
    lengths = _lengths(code, values, operands)
    if len(values) == 1:
        return _sum_of(code, op, values[0], operands[0], lengths)
    terms = [
        _summed(code, value, letters, {*operands[1 - i], *result}, lengths)
        for i, (value, letters) in enumerate(zip(values, operands, strict=True))
    ]
    if op.outputs[0].dtype.kind in "fc" and _is_matrix_product(*(t[1] for t in terms), result):
        return _multiply(code, op, terms, result, lengths)
    return _loop(code, op, terms, result, lengths)


def _lengths(code, values, operands):
    """Extent by letter."""
    found = {}
    for value, letters in zip(values, operands, strict=True):
        for letter, extent in zip(letters, value.extents, strict=True):
            code.equate(found.setdefault(letter, extent), extent)
    return {letter: code.canonical(extent) for letter, extent in found.items()}


def _summed(code, value, letters, needed, lengths):
    """A tensor without the axes that nothing else names, and the letters that it has then."""
    left = "".join(letter for letter in letters if letter in needed)
    if left == letters:
        return value, letters
    if not left:
        name = code.name("s")
        _add_up(code, name, value.dtype, [(value, letters)], letters, lengths)
        return Scalar(name, value.dtype), left
    block = code.new(value.dtype, _extents(left, lengths))
    _into(code, block, [(value, letters)], left, lengths)
    return block, left


def _extents(letters, lengths):
    return tuple(lengths[letter] for letter in letters)


def _sum_of(code, op, value, letters, lengths):
    result = op.attrs["result"]
    if result == letters:
        return code.bind(op.outputs[0], value)
    if len(result) < len(letters):
        return _loop(code, op, [(value, letters)], result, lengths)
    target = code.result(op, extents=_extents(result, lengths))
    return _arrange(code, target, value, letters, result)


def _loop(code, op, terms, result, lengths):
    """An item of the result after the other."""
    dtype = op.outputs[0].dtype
    if result:
        block = code.result(op, extents=_extents(result, lengths))
        return _into(code, block, terms, result, lengths)
    name = code.name("s")
    inner = "".join(dict.fromkeys("".join(letters for _, letters in terms)))
    _add_up(code, name, dtype, terms, inner, lengths)
    return code.bind(op.outputs[0], Scalar(name, dtype))


def _into(code, block, terms, result, lengths):
    letters = "".join(dict.fromkeys("".join(letters for _, letters in terms)))
    inner = "".join(letter for letter in letters if letter not in result)
    names, around = {letter: code.name("i") for letter in result}, code.lines
    for letter in result:
        code.lines = code.lines.nest(f"for {names[letter]} in range({lengths[letter]}):")
    target = window(code, block).at(*names.values())
    if inner:
        name = code.name("s")
        _add_up(code, name, block.dtype, terms, inner, lengths, names)
        code.add(f"{target} = {name}")
    else:
        code.add(f"{target} = {_product(code, block.dtype, terms, names)}")
    code.lines = around


def _add_up(code, name, dtype, terms, inner, lengths, outer=()):
    """Let a variable be the sum of products over the inner letters."""
    names = dict(outer) | {letter: code.name("i") for letter in inner}
    code.add(f"{name} = {cast('0', dtype)}")
    term = _product(code, dtype, terms, names)
    if dtype.kind == "f":
        text = f"fast_add({name}, {term})"
    else:
        text = cast(f"{name} {'|' if dtype.kind == 'b' else '+'} {term}", dtype)
    headers = [f"for {names[letter]} in range({lengths[letter]}):" for letter in inner]
    code.nested(headers, f"{name} = {text}")


def _product(code, dtype, terms, names):
    texts = [_item(code, *term, names) for term in terms]
    return cast((" & " if dtype.kind == "b" else " * ").join(texts), dtype)


def _item(code, value, letters, names):
    if isinstance(value, Scalar):
        return value.text
    return window(code, value).at(*(names[letter] for letter in letters))


# By products of matrices.


def _groups(of_a, of_b, result):
    """Letters of the batch, rows, columns, and of what is summed over."""
    batch = "".join(letter for letter in of_a if letter in of_b and letter in result)
    inner = "".join(letter for letter in of_a if letter in of_b and letter not in result)
    rows = "".join(letter for letter in of_a if letter not in of_b)
    columns = "".join(letter for letter in of_b if letter not in of_a)
    return batch, rows, columns, inner


def _is_matrix_product(of_a, of_b, result):
    _, rows, columns, inner = _groups(of_a, of_b, result)
    return bool(inner and (rows or columns))


def _multiply(code, op, terms, result, lengths):
    (a, of_a), (b, of_b) = terms
    batch, rows, columns, inner = _groups(of_a, of_b, result)
    if result == batch + columns + rows and rows and columns:
        a, of_a, b, of_b, rows, columns = b, of_b, a, of_a, columns, rows
    left, is_left = _ordered(code, a, of_a, batch, rows, inner)
    right, is_right = _ordered(code, b, of_b, batch, inner, columns)
    order = batch + rows + columns
    target = _target(code, op, order, lengths)
    sizes = [product(_extents(letters, lengths)) for letters in (rows, inner, columns)]
    flags = (not is_right) + 2 * (not is_left)
    _call(code, op, [left, right, target], sizes, flags, product(_extents(batch, lengths)))
    if not result:
        return code.bind(op.outputs[0], code.local(target.at("0"), target.dtype))
    if order == result:
        return code.bind(op.outputs[0], target)
    block = code.result(op, extents=_extents(result, lengths))
    _arrange(code, block, target, order, result)
    return code.release(target.base)


def _target(code, op, order, lengths):
    extents = _extents(order, lengths)
    if order and order == op.attrs["result"]:
        return code.result(op, extents=extents)
    return code.new(op.outputs[0].dtype, extents or ("1",))


def _ordered(code, value, letters, batch, one, other):
    """A tensor as matrices, and whether they are so in memory, not the transposed ones."""
    if letters == batch + one + other:
        return value, True
    if letters == batch + other + one:
        return value, False
    order = batch + one + other
    extents = dict(zip(letters, value.extents, strict=True))
    block = code.new(value.dtype, tuple(extents[letter] for letter in order))
    _arrange(code, block, value, letters, order)
    return block, True


def _arrange(code, target, value, letters, order):
    """Put axes into another order."""
    steps = dict(zip(letters, strides_of(code, value.extents), strict=True))
    source = Window(value.base, value.offset, tuple(steps[letter] for letter in order))
    move(code, target.extents, window(code, target), source)


def _call(code, op, blocks, sizes, flags, count):
    """A product for each of the batch."""
    dtype, (rows, inner, columns) = op.outputs[0].dtype.name, sizes
    lengths = ((rows, inner), (inner, columns), (rows, columns))
    i = code.name("i") if count != "1" else "0"
    places = [
        Block(block.base, (), total(block.offset, times(i, product(_factors(pair))))).address
        for block, pair in zip(blocks, lengths, strict=True)
    ]
    helper, blas = code.helper(f"gemm_{dtype}"), code.helper(f"blas_{dtype}")
    line = f"call({helper}, ({', '.join(places)}, {', '.join(sizes)}, {flags}, {blas}))"
    return code.nested([f"for {i} in range({count}):"] if count != "1" else [], line)


def _factors(sizes):
    return [factor for size in sizes for factor in size.split(" * ")]
