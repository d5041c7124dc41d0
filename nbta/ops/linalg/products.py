"""Products of matrices and vectors, and sums of products over named axes."""

from __future__ import annotations

import itertools
import math
import operator
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nbta import shapes
from nbta.codegen.fusion import broadcast, joined
from nbta.codegen.small_products import is_small, small_product
from nbta.codegen.values import Block, Scalar, product, times, total, typed
from nbta.codegen.windows import Window, added, bind_reshaped, move, strides_of, window
from nbta.errors import NbtaError, invalid, located
from nbta.graph.operation import Spec
from nbta.loops import Binary, Expression, assign, call, do, over, several, when
from nbta.loops.nodes import ONE, ZERO
from nbta.ops.axes.diagonals import diagonal
from nbta.ops.core.arithmetic import emit_product, equal
from nbta.ops.core.axis_arguments import operand
from nbta.ops.core.checks import checked
from nbta.ops.core.dispatch import apply, data_spec, define, exported
from nbta.ops.core.elementwise import conjugate, narrow, promoted, wide, widened
from nbta.ops.core.shaping import broadcast_to, cast, reshape, shape_of, unbroadcast
from nbta.ops.core.strong_zeros import define_product, matrix_product, sum_of_products
from nbta.ops.indexing.joining import expand_dims, squeeze
from nbta.ops.indexing.transposing import swapaxes, transpose
from nbta.runtime.intrinsics import LEFT, RIGHT

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike


def _misfit(a, b, message):
    texts = f"shapes {shapes.text(a.shape)} and {shapes.text(b.shape)}"
    return invalid("matmul", f"{texts} {message}")


def _infer_matmul(a, b):
    if 0 in (a.rank, b.rank):
        raise _misfit(a, b, "are not both matrices or vectors; multiply scalars with *")
    if a.shape is None or b.shape is None:
        return Spec(a.dtype, None)
    inner = a.shape[-1], b.shape[-2:][0]
    if all(type(dimension) is int for dimension in inner) and inner[0] != inner[1]:
        message = f"do not multiply: the inner lengths {inner[0]} and {inner[1]} must be equal"
        raise _misfit(a, b, message)
    columns = b.shape[-1:] if b.rank > 1 else ()
    return Spec(a.dtype, (*_batch(a, b), *a.shape[-2:-1], *columns))


def _batch(a, b):
    """The axes before the matrices, broadcast."""
    try:
        return shapes.broadcast(a.shape[:-2], b.shape[:-2])
    except ValueError:
        message = "do not broadcast together in the axes before the last two"
        raise _misfit(a, b, message) from None


def _evaluate_matmul(a, b, *, multiplied=np.matmul):
    return narrow(multiplied(widened(a), widened(b)), a.dtype)


def _matmul_gradient(op, dy):
    a, b = op.inputs
    ranks = a.spec.rank, b.spec.rank
    if None in ranks:
        return _unranked_gradient(a, b, dy)
    if ranks[0] > 2 or ranks[1] > 2:
        return _batched_gradient(a, b, dy)
    x, y = conjugate(a), conjugate(b)
    if ranks == (2, 2):
        return [matmul(dy, transpose(y)), matmul(transpose(x), dy)]
    if ranks == (1, 2):
        return [matmul(y, dy), outer(x, dy)]
    if ranks == (2, 1):
        return [outer(dy, y), matmul(transpose(x), dy)]
    return [dy * y, dy * x]


def _unranked_gradient(a, b, dy):
    """The gradient where only the run knows whether an operand is a vector."""
    x, y = as_matrix(conjugate(a), "row"), as_matrix(conjugate(b), "column")
    dy = reshape(dy, shape_of(matmul(x, y)))
    dx = unbroadcast(matmul(dy, swapaxes(y, -1, -2)), x)
    dy = unbroadcast(matmul(swapaxes(x, -1, -2), dy), y)
    return [reshape(dx, shape_of(a)), reshape(dy, shape_of(b))]


def _batched_gradient(a, b, dy):
    """Vectors become matrices of one row or column; sums go over batch axes that broadcast."""
    x, y = conjugate(a), conjugate(b)
    if a.spec.rank == 1:
        x, dy = expand_dims(x, 0), expand_dims(dy, -2)
    if b.spec.rank == 1:
        y, dy = expand_dims(y, 1), expand_dims(dy, -1)
    dx = unbroadcast(matmul(dy, swapaxes(y, -1, -2)), x)
    if y.spec.rank == 2 and _positive(y.spec.shape):
        # One product of matrices in place of a batch of them and its sum.
        rows = reshape(x, (-1, y.spec.shape[0])), reshape(dy, (-1, y.spec.shape[1]))
        dy = matmul(transpose(rows[0]), rows[1])
    else:
        dy = unbroadcast(matmul(swapaxes(x, -1, -2), dy), y)
    return [
        reshape(dx, shape_of(a)) if a.spec.rank == 1 else dx,
        reshape(dy, shape_of(b)) if b.spec.rank == 1 else dy,
    ]


def _positive(shape):
    return shapes.is_known(shape) and math.prod(shape) > 0


def _emit_as_matrix(code, op) -> None:
    """A vector as a row or a column."""
    value = code.kept(op.inputs[0])
    if len(value.dimensions) != 1:
        return code.bind(op.outputs[0], value)
    is_row = op.attrs["side"] == "row"
    value = code.value(op.inputs[0])
    dimensions = (ONE, *value.dimensions) if is_row else (*value.dimensions, ONE)
    return bind_reshaped(code, op, value, dimensions)


AS_MATRIX = define(
    "AsMatrix",
    lambda spec, *, side: Spec(spec.dtype, _matrix_shape(spec.shape, side)),
    lambda x, *, side: np.reshape(x, _matrix_shape(x.shape, side)),
    lambda op, dy: [reshape(dy, shape_of(op.inputs[0]))],
    emit=_emit_as_matrix,
    total=True,
    linear=(0,),
    moves=True,
)


def _matrix_shape(shape, side):
    if shape is None or len(shape) != 1:
        return shape
    return (1, *shape) if side == "row" else (*shape, 1)


@exported
def as_matrix(x: ArrayLike, side: Literal["row", "column"], *, name: str | None = None) -> Array:
    """A vector as a matrix of one row or one column; other tensors unchanged.

    Parameters
    ----------
    x : array-like or Tensor
        A vector, or a tensor of another rank.
    side : {"row", "column"}
        What a vector becomes.

    Returns
    -------
    Tensor or numpy.ndarray
        Of shape ``(1, n)`` or ``(n, 1)`` for a vector of length n, else ``x``.

    Examples
    --------
    >>> nbta.as_matrix([1, 2], "row")
    array([[1, 2]])
    """
    return apply(AS_MATRIX, [operand(x)], {"side": side}, name)


@dataclass
class _Operands:
    """What one product is of: addresses or offsets, sizes, and which side is transposed."""

    left: Block
    right: Block
    target: Block
    sizes: tuple[Expression, Expression, Expression]  # rows, inner, columns
    flags: int


def _emit_matmul(code, op) -> None:
    """One product where the right side is one matrix for all; else one for each of a batch."""
    if op.inputs[1].spec.rank > 2:
        return _batched(code, op)
    a, b = op.inputs
    (left, left_turned), (right, right_turned) = code.matrix(a), code.matrix(b)
    a_dimensions, b_dimensions = code.dimensions(a), code.dimensions(b)
    inner = a_dimensions[-1]
    code.equate(inner, b_dimensions[0])
    rows, columns = a_dimensions[:-1], b_dimensions[1:]
    flags = RIGHT * right_turned + LEFT * left_turned
    if b.spec.rank == 1 and op.outputs[0].dtype.kind in "fc":
        flags |= RIGHT  # a column is a row, transposed
    target = _target(code, op, (*rows, *columns))
    sizes = product(rows), inner, product(columns)
    _multiply(code, op, _Operands(left, right, target, sizes, flags))
    if not op.outputs[0].spec.rank:
        code.bind(op.outputs[0], code.local(target.at(0), op.outputs[0].dtype))
    return None


def _target(code, op, dimensions):
    if dimensions:
        return code.result(op, dimensions=dimensions)
    return code.new(op.outputs[0].dtype, (ONE,))


def _batched(code, op):
    a, b = op.inputs
    left, right = code.value(a), code.value(b)
    of_a, of_b = left.dimensions[:-2], right.dimensions[:-2]
    inner = left.dimensions[-1]
    code.equate(inner, right.dimensions[-2])
    batch = broadcast(code, [(of_a, a.spec.shape[:-2]), (of_b, b.spec.shape[:-2])])
    rows, columns = left.dimensions[-2:-1], right.dimensions[-1]
    target = code.result(op, dimensions=(*batch, *rows, columns))
    indices = [code.name("i") for _ in batch]
    around = code.lines
    for index, dimension in zip(indices, batch, strict=True):
        code.lines = code.lines.nest(over(index, dimension))
    ranks = 1 + len(rows), 2, 1 + len(rows)
    parts = [
        _matrix(code, block, indices, batch, rank)
        for block, rank in zip((left, right, target), ranks, strict=True)
    ]
    _multiply(code, op, _Operands(*parts, (product(rows), inner, columns), 0))
    code.lines = around


def _matrix(code, block, indices, batch, rank):
    """The matrix of a block, with so many axes, for indices of a batch."""
    own = block.dimensions[: len(block.dimensions) - rank]
    terms = [block.offset]
    for axis, dimension in enumerate(own):
        place = len(batch) - len(own) + axis
        stride = product(block.dimensions[axis + 1 :])
        if dimension == ONE:
            continue
        if not code.same(dimension, batch[place]):
            stride = times(call("int64", dimension.differs(1)), stride)
        terms.append(times(indices[place], stride))
    return Block(block.base, block.dimensions[len(own) :], code.variable(total(*terms), "o"))


def _multiply(code, op, operands, adjoints=None):
    """A product; of adjoints it is computed again with their zeros where there is a NaN in it."""
    dtype = operands.target.dtype
    adjoints = op.attrs.get("adjoints", _ORDINARY) if adjoints is None else adjoints
    if is_small(dtype, operands.sizes):
        small_product(code, **vars(operands))
    elif dtype.kind in "fc":
        _by_call(code, operands)
    else:
        _by_loops(code, op, operands, adjoints)
    if any(adjoints):
        target, (rows, _, columns) = operands.target, operands.sizes
        count = product((rows, columns))
        with code.nest(when(call("has_nan", target.base.name, target.offset, count))):
            _by_loops(code, op, operands, adjoints)


#: Which factors are adjoints in an ordinary product.
_ORDINARY = (False, False)


def _by_call(code, the):
    dtype = the.target.dtype.name
    gemm, places = code.helper(f"gemm_{dtype}"), (the.left, the.right, the.target)
    given = (*(place.address for place in places), *the.sizes, the.flags)
    given = *given, code.helper(f"blas_{dtype}")
    code.add(do("call", gemm, several(*given)))


def _by_loops(code, op, the, adjoints):
    """Integers add up modulo their size; of truth values, whether any pair is true."""
    rows, inner, columns = the.sizes
    i, j, k = (code.name(stem) for stem in "ijk")
    x = total(times(k, rows), i) if the.flags & LEFT else total(times(i, inner), k)
    y = total(times(j, inner), k) if the.flags & RIGHT else total(times(k, columns), j)
    z = the.target.at(total(times(i, columns), j))
    term = emit_product(op, (the.left.at(x), the.right.at(y)), adjoints)
    size = product((rows, columns))
    code.add(do("clear", the.target.base.name, the.target.offset, size))
    headers = [over(n, e) for n, e in ((i, rows), (k, inner), (j, columns))]
    code.nested(headers, assign(z, typed(added(z, term, the.target.dtype), the.target.dtype)))


MATMUL = define_product(
    "MatMul",
    _infer_matmul,
    _evaluate_matmul,
    _matmul_gradient,
    emit=_emit_matmul,
    total=True,
)


@exported(also="linalg.matmul", numpy=2)
def matmul(a: ArrayLike, b: ArrayLike, *, name: str | None = None) -> Array:
    """Matrix product, as `numpy.matmul`.

    Parameters
    ----------
    a, b : array-like or Tensor
        Matrices ``(..., n, k)`` and ``(..., k, m)``, whose first axes broadcast. A vector counts as
        a row on the left and as a column on the right, and its axis is left out of the result.

    Returns
    -------
    Tensor or numpy.ndarray
        Of shape ``(..., n, m)``, in the promoted dtype.

    Raises
    ------
    InvalidArgumentError
        For scalars, and for inner lengths that differ.

    Examples
    --------
    >>> nbta.matmul([[1, 2], [3, 4]], [10, 1])
    array([12, 34])
    """
    return sum_of_products(MATMUL, promoted(a, b), name=name)


def _emit_outer(code, op) -> None:
    """Each item of one by each of the other, in the loop that waits for the result's shape."""
    result = op.outputs[0]
    if any(tensor.spec.rank != 1 for tensor in op.inputs):
        return code.call_python(op)
    a, b = map(code.value, op.inputs)
    dimensions = *a.dimensions, *b.dimensions
    group = joined(code, [], dimensions)
    items = [
        value.item if isinstance(value, Scalar) else
        group.load(code, Block(value.base, shape, value.offset))
        for value, shape in ((a, (*a.dimensions, ONE)), (b, b.dimensions))
    ]  # fmt: skip
    item = emit_product(op, items, op.attrs.get("adjoints", _ORDINARY))
    return group.step(code, typed(item, result.dtype), result)


def _evaluate_outer(a, b, *, multiplied=np.multiply):
    return multiplied(a.reshape(-1, 1), b.reshape(1, -1))


OUTER = define_product(
    "Outer",
    lambda a, b: Spec(a.dtype, (*a.shape, *b.shape)),
    _evaluate_outer,
    lambda op, dy: [
        matmul(dy, conjugate(op.inputs[1])),
        matmul(conjugate(op.inputs[0]), dy),
    ],
    emit=_emit_outer,
    total=True,
)


@exported(numpy=2)
def outer(a: ArrayLike, b: ArrayLike, *, name: str | None = None) -> Array:
    """Outer product of two vectors, as `numpy.outer`.

    Parameters
    ----------
    a, b : array-like or Tensor
        Numbers; tensors of higher rank are flattened.

    Returns
    -------
    Tensor or numpy.ndarray
        A matrix of the products of each element of ``a`` and each of ``b``.

    Examples
    --------
    >>> nbta.outer([1, 2], [10, 1])
    array([[10,  1],
           [20,  2]])
    """
    vectors = [x if x.ndim == 1 else reshape(x, -1) for x in promoted(a, b)]
    return sum_of_products(OUTER, vectors, name=name)


#: What a length counts as that only the run tells, where operands are put in order.
_USUAL = 64


@exported(numpy=math.inf)
def einsum(spec: str, *operands: ArrayLike, optimize: Any = None, name: str | None = None) -> Array:
    """Sum of products by Einstein's convention, with one letter an axis.

    Parameters
    ----------
    spec : str
        Such as ``"ij,jk->ik"``: the axes of each operand, and those of the result. Without
        ``->`` the result has the letters that occur once, in alphabetical order. ``...`` stands
        for axes without letters, which broadcast and come first in a result that is not given. A
        letter twice in one operand takes the diagonal. NumPy's other form, in which each operand is
        followed by a list of numbers of its axes, is taken as well.
    *operands : array-like or Tensor
        Any number. Of three and more the two that cost least are multiplied first; lengths that
        only the run knows count as equal then.
    optimize : optional
        As NumPy has it; the order is found here in any case.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the dtype that the operands have in common.

    Raises
    ------
    InvalidArgumentError
        For operands of another rank, lengths of one letter that differ, and an ellipsis for axes
        of an unknown rank, or with lengths of which only the run knows whether they broadcast.

    Examples
    --------
    >>> nbta.einsum("ij,j->i", [[1, 2], [3, 4]], [10, 1])
    array([12, 34])
    >>> nbta.einsum("i,ij,j->", [1, 1], [[1, 2], [3, 4]], [10, 1])
    np.int64(46)
    >>> nbta.einsum("...ii->...", [[1, 2], [3, 4]])
    np.int64(5)
    """
    if not isinstance(spec, str) and operands:
        spec, operands = _lettered(spec, *operands)
    letters, result, inputs = _plain(spec, promoted(*operands) if operands else [])
    if len(inputs) < 3:
        return sum_of_products(EINSUM, inputs, {"operands": letters, "result": result}, name)
    return _in_pairs(inputs, list(letters), result, name)


def _in_pairs(inputs, letters, result, name):
    """Of three and more operands, in pairs; half precision is rounded at the end."""
    dimensions, dtype = _checked_dimensions(inputs, letters), inputs[0].dtype
    inputs = [cast(x, wide(dtype)) for x in inputs] if wide(dtype) != dtype else inputs
    lengths = {key: n if type(n) is int else _USUAL for key, n in dimensions.items()}
    while len(inputs) > 2:
        pair, kept = _cheapest(letters, result, lengths)
        attrs = {"operands": tuple(letters[i] for i in pair), "result": kept}
        made = sum_of_products(EINSUM, [inputs[i] for i in pair], attrs)
        inputs, letters = (
            [*(part for i, part in enumerate(parts) if i not in pair), new]
            for parts, new in ((inputs, made), (letters, kept))
        )
    attrs = {"operands": tuple(letters), "result": result}
    if wide(dtype) == dtype:
        return sum_of_products(EINSUM, inputs, attrs, name)
    return cast(sum_of_products(EINSUM, inputs, attrs), dtype, name=name)


def _checked_dimensions(inputs, letters):
    try:
        return _dimensions([data_spec(x).shape for x in inputs], letters)
    except NbtaError as error:
        raise located(error, "Einsum") from None


def _cheapest(letters, result, lengths):
    """The pair that is quickest to multiply, and gives least, with what is left of its letters."""

    def cost(pair):
        both = letters[pair[0]] + letters[pair[1]]
        return (
            math.prod(lengths[letter] for letter in set(both)),
            math.prod(lengths[letter] for letter in _left(letters, pair, result)),
        )

    pair = min(itertools.combinations(range(len(letters)), 2), key=cost)
    return pair, _left(letters, pair, result)


def _left(letters, pair, result):
    """Letters of a pair that others name too, or the result."""
    needed = result + "".join(part for i, part in enumerate(letters) if i not in pair)
    both = dict.fromkeys(letters[pair[0]] + letters[pair[1]])
    return "".join(letter for letter in both if letter in needed)


def _lettered(*parts):
    """The text, and the operands, of operands that are each followed by a list of their axes."""
    lists = [*parts[1::2], *([parts[-1]] if len(parts) % 2 else [])]
    try:
        texts = ["".join(map(_letter, axes)) for axes in lists]
    except (TypeError, ValueError, IndexError):
        raise _wrong(parts[0], "is not a string; give one such as 'ij,jk->ik'") from None
    count = len(parts) // 2
    return ",".join(texts[:count]) + "".join("->" + text for text in texts[count:]), parts[:-1:2]


def _letter(axis):
    """Of the number of an axis, such that letters are in the order of numbers."""
    if axis is Ellipsis:
        return "..."
    place = operator.index(axis)
    if place < 0:
        raise IndexError
    return (string.ascii_uppercase + string.ascii_lowercase)[place]


def _plain(spec, inputs):
    """Letters of operands and of the result, without ``...`` and repetitions; the operands."""
    operands, result = _parse(spec, len(inputs))
    if "." in spec:
        operands, result, inputs = _spelled(spec, operands, result, inputs)
    if result is None:
        letters = "".join(operands)
        result = "".join(sorted(one for one in set(letters) if letters.count(one) == 1))
    if len(set(result)) < len(result) or set(result) - set("".join(operands)):
        raise _wrong(
            spec, f"asks for {result!r}; the result has letters of the operands, each once"
        )
    if any(len(set(letters)) < len(letters) for letters in operands):
        once = [_once(x, letters) for x, letters in zip(inputs, operands, strict=True)]
        inputs, operands = (list(several) for several in zip(*once, strict=True))
    return tuple(operands), result, inputs


def _parse(spec, count):
    """The letters of each operand and of the result; None for that where it is not given."""
    if not isinstance(spec, str):
        raise _wrong(spec, "is not a string; give one such as 'ij,jk->ik'")
    left, arrow, result = "".join(spec.split()).partition("->")
    operands = left.split(",")
    parts = [*operands, result]
    if set("".join(parts)) - set(string.ascii_letters + ".") or any(
        part.count(".") not in (0, 3) or part.count("...") != part.count(".") // 3 for part in parts
    ):
        raise _wrong(spec, "may hold letters, '...', ',' and '->' only")
    if len(operands) != count:
        raise _wrong(spec, f"is for {len(operands)} operands, and there are {count}")
    return operands, result if arrow else None


def _spelled(spec, operands, result, inputs):
    """With letters for the axes of an ellipsis; operands without those that broadcast."""
    counts = [_hidden(spec, x, letters) for x, letters in zip(inputs, operands, strict=True)]
    used, most = set("".join([*operands, result or ""])), max(counts)
    fresh = "".join(c for c in string.ascii_letters if c not in used)[:most]
    if len(fresh) < most:
        raise _wrong(spec, "leaves no letters for the axes of its '...'")
    texts = [t.replace("...", fresh[most - n :]) for t, n in zip(operands, counts, strict=True)]
    if result is None:
        named = "".join(operands).replace(".", "")
        result = fresh + "".join(sorted(one for one in set(named) if named.count(one) == 1))
    elif most and "..." not in result:
        raise _wrong(spec, "has '...' in operands and none in the result; sum over letters")
    pairs = zip(inputs, texts, strict=True)
    given = [_stretched(spec, x, text, fresh, inputs, texts) for x, text in pairs]
    inputs, texts = (list(several) for several in zip(*given, strict=True))
    return texts, result.replace("...", fresh), inputs


def _hidden(spec, x, letters):
    """How many axes an ellipsis stands for."""
    rank = data_spec(x).rank
    if "..." not in letters:
        return 0
    if rank is None or rank < len(letters) - 3:
        what = "an unknown rank" if rank is None else f"rank {rank}"
        raise _wrong(spec, f"has '{letters}' for an operand of {what}")
    return rank - len(letters) + 3


def _stretched(spec, x, text, fresh, inputs, texts):
    """An operand without axes of length 1 that stand for longer ones, and its letters."""
    gone = []
    for axis, letter in enumerate(text):
        if letter not in fresh:
            continue
        lengths = [
            data_spec(other).shape[where.index(letter)]
            for other, where in zip(inputs, texts, strict=True)
            if letter in where
        ]
        if None in lengths and len(lengths) > 1:
            raise _wrong(
                spec, "has '...' for axes whose lengths are known only in the run; use letters"
            )
        if data_spec(x).shape[axis] == 1 and any(n != 1 for n in lengths):
            gone.append(axis)
    if not gone:
        return x, text
    return squeeze(x, tuple(gone)), "".join(c for k, c in enumerate(text) if k not in gone)


def _once(x, letters):
    """The diagonal of axes that have one letter, after the others."""
    twice = next((one for one in letters if letters.count(one) > 1), None)
    if twice is None:
        return x, letters
    first = letters.index(twice)
    second = letters.index(twice, first + 1)
    left = letters[:first] + letters[first + 1 : second] + letters[second + 1 :]
    return _once(_diagonal(x, letters, first, second), left + twice)


def _diagonal(x, letters, first, second):
    """Of two axes that must be of one length."""
    _checked_dimensions([x], [letters])
    one, other = (x.shape[axis] for axis in (first, second))
    known = data_spec(x).shape
    if known[first] is None or known[first] != known[second]:
        message = f"einsum: {letters[first]!r} has two lengths in {letters!r}"
        x = checked(x, equal(one, other), message)
    return diagonal(x, 0, first, second)


def _wrong(spec, message):
    return invalid("einsum", f"spec: {spec!r} {message}")


def _dimensions(known, operands):
    """Length by letter."""
    found = {}
    for shape, letters in zip(known, operands, strict=True):
        if shape is not None and len(shape) != len(letters):
            message = f"{letters!r} names {len(letters)} axes of shape {shapes.text(shape)}"
            raise invalid("rank", f"{message}; give one letter an axis")
        for letter, dimension in zip(letters, shape or (None,) * len(letters), strict=True):
            try:
                found[letter] = shapes.merge((found.get(letter),), (dimension,))[0]
            except ValueError:
                texts = " and ".join(shapes.text(shape) for shape in known)
                message = f"{letter!r} has the lengths {found[letter]} and {dimension} in {texts}"
                raise invalid("shape", message) from None
    return found


def _infer_einsum(*specs, operands, result):
    dimensions = _dimensions([spec.shape for spec in specs], operands)
    return Spec(specs[0].dtype, tuple(dimensions[letter] for letter in result))


def _evaluate_einsum(*arrays, operands, result, multiplied=matrix_product):
    dimensions = _dimensions([array.shape for array in arrays], operands)
    dtype = arrays[0].dtype
    if len(arrays) == 1:
        return _arranged(arrays[0], operands[0], result)
    found = _product(*map(widened, arrays), *operands, result, dimensions, multiplied)
    return narrow(found, dtype)[()]


def _arranged(x, letters, result):
    """Axes in the order of the result, after the sum over those that are not in it."""
    gone = tuple(i for i, letter in enumerate(letters) if letter not in result)
    if gone:
        x = narrow(np.sum(x, axis=gone, dtype=wide(x.dtype)), x.dtype)
    left = [letter for letter in letters if letter in result]
    return np.transpose(x, [left.index(letter) for letter in result])


def _product(a, b, of_a, of_b, result, dimensions, multiplied):
    """By one product of matrices, with the letters in groups."""
    batch = [letter for letter in of_a if letter in of_b and letter in result]
    inner = [letter for letter in of_a if letter in of_b and letter not in result]
    rows = [letter for letter in of_a if letter not in of_b and letter in result]
    columns = [letter for letter in of_b if letter not in of_a and letter in result]

    def lengths(letters):
        return tuple(dimensions[letter] for letter in letters)

    around, depth = lengths(batch), math.prod(lengths(inner))
    left = _arranged(a, of_a, batch + rows + inner)
    left = left.reshape(*around, math.prod(lengths(rows)), depth)
    right = _arranged(b, of_b, batch + inner + columns)
    right = right.reshape(*around, depth, math.prod(lengths(columns)))
    order = batch + rows + columns
    return _arranged(multiplied(left, right).reshape(lengths(order)), order, result)


def _einsum_gradient(op, dy):
    operands, result = op.attrs["operands"], op.attrs["result"]
    if len(operands) == 1:
        return [_toward(op.inputs[0], operands[0], [dy], (result,))]
    a, b = op.inputs
    of_a, of_b = operands
    return [
        _toward(a, of_a, [dy, conjugate(b)], (result, of_b)),
        _toward(b, of_b, [dy, conjugate(a)], (result, of_a)),
    ]


def _toward(x, letters, inputs, operands):
    """The gradient of one operand; letters of it alone that were summed come back."""
    kept = "".join(letter for letter in letters if letter in "".join(operands))
    part = sum_of_products(EINSUM, inputs, {"operands": operands, "result": kept})
    for place, letter in enumerate(letters):
        if letter not in kept:
            part = expand_dims(part, place)
    return part if kept == letters else broadcast_to(part, shape_of(x))


def _emit_einsum(code, op) -> None:
    """One tensor rearranged; two by products of matrices, or by loops where there are none."""
    operands, result = op.attrs["operands"], op.attrs["result"]
    values = [code.value(tensor) for tensor in op.inputs]
    lengths = _lengths(code, values, operands)
    if len(values) == 1:
        return _sum_of(code, op, values[0], operands[0], lengths)
    terms = [
        _summed(code, op, value, letters, {*operands[1 - i], *result}, lengths)
        for i, (value, letters) in enumerate(zip(values, operands, strict=True))
    ]
    if op.outputs[0].dtype.kind in "fc" and _is_matrix_product(*(t[1] for t in terms), result):
        return _multiply_matrices(code, op, terms, result, lengths)
    if result and len(result) == len({*terms[0][1], *terms[1][1]}):
        return _each_by_each(code, op, terms, result, lengths)
    return _loop(code, op, terms, result, lengths)


def _each_by_each(code, op, terms, result, lengths):
    """Products that are not added up, in the loop that waits for the result's shape."""
    dtype = op.outputs[0].dtype
    group = joined(code, [], _emit_dimensions(result, lengths))
    items = [_spread_item(code, group, *term, result) for term in terms]
    item = emit_product(op, items, op.attrs.get("adjoints", _ORDINARY))
    group.step(code, typed(item, dtype), op.outputs[0])


def _spread_item(code, group, value, letters, result):
    """An item of a factor in a loop over all letters, along some of which it is repeated."""
    if isinstance(value, Scalar):
        return value.item
    order = "".join(letter for letter in result if letter in letters)
    if order != letters:
        dimensions = dict(zip(letters, value.dimensions, strict=True))
        block = code.new(value.dtype, tuple(dimensions[letter] for letter in order))
        _arrange(code, block, value, letters, order)
        value, letters = block, order
    dimensions = iter(value.dimensions)
    shape = tuple(next(dimensions) if letter in letters else ONE for letter in result)
    return group.load(code, Block(value.base, shape, value.offset))


def _lengths(code, values, operands):
    """Dimension by letter."""
    found = {}
    for value, letters in zip(values, operands, strict=True):
        for letter, dimension in zip(letters, value.dimensions, strict=True):
            code.equate(found.setdefault(letter, dimension), dimension)
    return {letter: code.canonical(dimension) for letter, dimension in found.items()}


def _summed(code, op, value, letters, needed, lengths):
    """A tensor without the axes that nothing else names, and the letters that it has then."""
    left = "".join(letter for letter in letters if letter in needed)
    if left == letters:
        return value, letters
    if not left:
        name = code.name("s")
        _add_up(code, op, name, [(value, letters)], letters, lengths)
        return Scalar(name, value.dtype), left
    block = code.new(value.dtype, _emit_dimensions(left, lengths))
    _into(code, op, block, [(value, letters)], left, lengths)
    return block, left


def _emit_dimensions(letters, lengths):
    return tuple(lengths[letter] for letter in letters)


def _sum_of(code, op, value, letters, lengths):
    result = op.attrs["result"]
    if result == letters:
        return code.bind(op.outputs[0], value)
    if len(result) < len(letters):
        return _loop(code, op, [(value, letters)], result, lengths)
    target = code.result(op, dimensions=_emit_dimensions(result, lengths))
    return _arrange(code, target, value, letters, result)


def _loop(code, op, terms, result, lengths):
    """An item of the result after the other."""
    dtype = op.outputs[0].dtype
    if result:
        block = code.result(op, dimensions=_emit_dimensions(result, lengths))
        return _into(code, op, block, terms, result, lengths)
    name = code.name("s")
    inner = "".join(dict.fromkeys("".join(letters for _, letters in terms)))
    _add_up(code, op, name, terms, inner, lengths)
    return code.bind(op.outputs[0], Scalar(name, dtype))


def _into(code, op, block, terms, result, lengths):
    letters = "".join(dict.fromkeys("".join(letters for _, letters in terms)))
    inner = "".join(letter for letter in letters if letter not in result)
    names, around = {letter: code.name("i") for letter in result}, code.lines
    for letter in result:
        code.lines = code.lines.nest(over(names[letter], lengths[letter]))
    target = window(code, block).at(*names.values())
    if inner:
        name = code.name("s")
        _add_up(code, op, name, terms, inner, lengths, names)
        code.add(assign(target, name))
    else:
        code.add(assign(target, _emit_product(code, op, terms, names)))
    code.lines = around


def _add_up(code, op, name, terms, inner, lengths, outer=()):
    """Let a variable be the sum of products over the inner letters."""
    dtype = op.outputs[0].dtype
    names = dict(outer) | {letter: code.name("i") for letter in inner}
    code.add(assign(name, typed(0, dtype)))
    term = _emit_product(code, op, terms, names)
    if dtype.kind == "f":
        sum_ = call("fast_add", name, term)
    else:
        sum_ = typed(added(name, term, dtype), dtype)
    headers = [over(names[letter], lengths[letter]) for letter in inner]
    code.nested(headers, assign(name, sum_))


def _emit_product(code, op, terms, names):
    """An item, or the product of two."""
    items = [_item(code, *term, names) for term in terms]
    item = items[0]
    if len(items) == 2:
        item = emit_product(op, items, op.attrs.get("adjoints", _ORDINARY))
    return typed(item, op.outputs[0].dtype)


def _item(code, value, letters, names):
    if isinstance(value, Scalar):
        return value.item
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


def _multiply_matrices(code, op, terms, result, lengths):
    (a, of_a), (b, of_b) = terms
    adjoints = op.attrs.get("adjoints", _ORDINARY)
    batch, rows, columns, inner = _groups(of_a, of_b, result)
    if result == batch + columns + rows and rows and columns:
        a, of_a, b, of_b, rows, columns = b, of_b, a, of_a, columns, rows
        adjoints = adjoints[::-1]
    left, is_left = _ordered(code, a, of_a, batch, rows, inner)
    right, is_right = _ordered(code, b, of_b, batch, inner, columns)
    order = batch + rows + columns
    target = _ordered_target(code, op, order, lengths)
    sizes = [product(_emit_dimensions(letters, lengths)) for letters in (rows, inner, columns)]
    flags = (not is_right) + 2 * (not is_left)
    count = product(_emit_dimensions(batch, lengths))
    _call(code, op, [left, right, target], sizes, flags, count, adjoints)
    if not result:
        return code.bind(op.outputs[0], code.local(target.at(0), target.dtype))
    if order == result:
        return code.bind(op.outputs[0], target)
    block = code.result(op, dimensions=_emit_dimensions(result, lengths))
    _arrange(code, block, target, order, result)
    return code.release(target.base)


def _ordered_target(code, op, order, lengths):
    dimensions = _emit_dimensions(order, lengths)
    if order and order == op.attrs["result"]:
        return code.result(op, dimensions=dimensions)
    return code.new(op.outputs[0].dtype, dimensions or (ONE,))


def _ordered(code, value, letters, batch, one, other):
    """A tensor as matrices, and whether they are so in memory, not the transposed ones."""
    if letters == batch + one + other:
        return value, True
    if letters == batch + other + one:
        return value, False
    order = batch + one + other
    dimensions = dict(zip(letters, value.dimensions, strict=True))
    block = code.new(value.dtype, tuple(dimensions[letter] for letter in order))
    _arrange(code, block, value, letters, order)
    return block, True


def _arrange(code, target, value, letters, order):
    """Put axes into another order."""
    steps = dict(zip(letters, strides_of(code, value.dimensions), strict=True))
    source = Window(value.base, value.offset, tuple(steps[letter] for letter in order))
    move(code, target.dimensions, window(code, target), source)


def _call(code, op, blocks, sizes, flags, count, adjoints):
    """A product for each of the batch."""
    rows, inner, columns = sizes
    lengths = ((rows, inner), (inner, columns), (rows, columns))
    i, around = (code.name("i") if count != ONE else ZERO), code.lines
    parts = [
        Block(block.base, (), total(block.offset, times(i, product(_factors(pair)))))
        for block, pair in zip(blocks, lengths, strict=True)
    ]
    if count != ONE:
        code.lines = code.lines.nest(over(i, count))
    _multiply(code, op, _Operands(*parts, tuple(sizes), flags), adjoints)
    code.lines = around


def _factors(sizes):
    found = []
    for size in sizes:
        last = []
        while type(size) is Binary:
            last.append(size.right)
            size = size.left
        found += [size, *reversed(last)]
    return found


EINSUM = define_product(
    "Einsum",
    _infer_einsum,
    _evaluate_einsum,
    _einsum_gradient,
    emit=_emit_einsum,
)
