"""Sums of products over named axes."""

import itertools
import math
import string

import numpy as np

from nbta import shapes
from nbta.codegen import einsum_rules
from nbta.errors import NbtaError, invalid, located
from nbta.graph.spec import Spec
from nbta.ops.dispatch import apply, data_spec, define, exported
from nbta.ops.elementwise import conjugate, meet
from nbta.ops.half import narrow, wide, widened
from nbta.ops.shaping import broadcast_to, cast, shape_of

#: What a length counts as that only the run tells, where operands are put in order.
_USUAL = 64


@exported(numpy=math.inf)
def einsum(spec, *operands, name=None):
    """Sum of products by Einstein's convention, with one letter an axis.

    Parameters
    ----------
    spec : str
        Such as ``"ij,jk->ik"``: the axes of each operand, and those of the result. Without
        ``->`` the result has the letters that occur once, in alphabetical order.
    *operands : array-like or Tensor
        Any number. Of three and more the two that cost least are multiplied first; lengths that
        only the run tells count as equal then.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the dtype that the operands have in common.

    Raises
    ------
    InvalidArgumentError
        For an ellipsis, a letter twice in one operand, operands of another rank, and lengths of
        one letter that differ.

    Examples
    --------
    >>> nbta.einsum("ij,j->i", [[1, 2], [3, 4]], [10, 1])
    array([12, 34])
    >>> nbta.einsum("i,ij,j->", [1, 1], [[1, 2], [3, 4]], [10, 1])
    np.int64(46)
    """
    letters, result = _parse(spec, len(operands))
    inputs = meet(*operands)
    if len(inputs) < 3:
        return apply(EINSUM, inputs, {"operands": letters, "result": result}, name)
    return _in_pairs(inputs, list(letters), result, name)


def _in_pairs(inputs, letters, result, name):
    """Of three and more operands, in pairs; half precision is rounded at the end."""
    extents, dtype = _checked_extents(inputs, letters), inputs[0].dtype
    inputs = [cast(x, wide(dtype)) for x in inputs] if wide(dtype) != dtype else inputs
    lengths = {key: n if type(n) is int else _USUAL for key, n in extents.items()}
    while len(inputs) > 2:
        pair, kept = _cheapest(letters, result, lengths)
        attrs = {"operands": tuple(letters[i] for i in pair), "result": kept}
        made = apply(EINSUM, [inputs[i] for i in pair], attrs)
        inputs, letters = (
            [*(part for i, part in enumerate(parts) if i not in pair), new]
            for parts, new in ((inputs, made), (letters, kept))
        )
    attrs = {"operands": tuple(letters), "result": result}
    if wide(dtype) == dtype:
        return apply(EINSUM, inputs, attrs, name)
    return cast(apply(EINSUM, inputs, attrs), dtype, name=name)


def _checked_extents(inputs, letters):
    try:
        return _extents([data_spec(x).shape for x in inputs], letters)
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


def _parse(spec, count):
    """The letters of each operand and of the result."""
    if not isinstance(spec, str):
        raise _wrong(spec, "is no text; give one such as 'ij,jk->ik'")
    text = "".join(spec.split())
    left, arrow, result = text.partition("->")
    operands = tuple(left.split(","))
    if set(left) - set(string.ascii_letters + ",") or set(result) - set(string.ascii_letters):
        raise _wrong(spec, "may hold letters, ',' and '->' only; name all axes, without '...'")
    if len(operands) != count:
        raise _wrong(spec, f"is for {len(operands)} operands, and there are {count}")
    letters = "".join(operands)
    for operand in operands:
        if len(set(operand)) < len(operand):
            raise _wrong(spec, f"has a letter twice in {operand!r}; give each axis its own")
    if not arrow:
        result = "".join(sorted(one for one in set(letters) if letters.count(one) == 1))
    if len(set(result)) < len(result) or set(result) - set(letters):
        raise _wrong(
            spec, f"asks for {result!r}; the result has letters of the operands, each once"
        )
    return operands, result


def _wrong(spec, message):
    return invalid("einsum", f"spec: {spec!r} {message}")


def _extents(known, operands):
    """Length by letter."""
    found = {}
    for shape, letters in zip(known, operands, strict=True):
        if shape is not None and len(shape) != len(letters):
            message = f"{letters!r} names {len(letters)} axes of shape {shapes.text(shape)}"
            raise invalid("rank", f"{message}; give one letter an axis")
        for letter, extent in zip(letters, shape or (None,) * len(letters), strict=True):
            try:
                found[letter] = shapes.merge((found.get(letter),), (extent,))[0]
            except ValueError:
                texts = " and ".join(shapes.text(shape) for shape in known)
                message = f"{letter!r} has the lengths {found[letter]} and {extent} in {texts}"
                raise invalid("shape", message) from None
    return found


def _infer_einsum(*specs, operands, result):
    extents = _extents([spec.shape for spec in specs], operands)
    return Spec(specs[0].dtype, tuple(extents[letter] for letter in result))


def _evaluate_einsum(*arrays, operands, result):
    extents = _extents([array.shape for array in arrays], operands)
    dtype = arrays[0].dtype
    if len(arrays) == 1:
        return _arranged(arrays[0], operands[0], result)
    return narrow(_product(*map(widened, arrays), *operands, result, extents), dtype)[()]


def _arranged(x, letters, result):
    """Axes in the order of the result, after the sum over those that are not in it."""
    gone = tuple(i for i, letter in enumerate(letters) if letter not in result)
    if gone:
        x = narrow(np.sum(x, axis=gone, dtype=wide(x.dtype)), x.dtype)
    left = [letter for letter in letters if letter in result]
    return np.transpose(x, [left.index(letter) for letter in result])


def _product(a, b, of_a, of_b, result, extents):
    """By one product of matrices, with the letters in groups."""
    batch = [letter for letter in of_a if letter in of_b and letter in result]
    inner = [letter for letter in of_a if letter in of_b and letter not in result]
    rows = [letter for letter in of_a if letter not in of_b and letter in result]
    columns = [letter for letter in of_b if letter not in of_a and letter in result]

    def lengths(letters):
        return tuple(extents[letter] for letter in letters)

    around, depth = lengths(batch), math.prod(lengths(inner))
    left = _arranged(a, of_a, batch + rows + inner)
    left = left.reshape(*around, math.prod(lengths(rows)), depth)
    right = _arranged(b, of_b, batch + inner + columns)
    right = right.reshape(*around, depth, math.prod(lengths(columns)))
    product = left @ right if inner else left * right
    order = batch + rows + columns
    return _arranged(product.reshape(lengths(order)), order, result)


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
    from nbta.ops.joining import expand_dims

    kept = "".join(letter for letter in letters if letter in "".join(operands))
    part = apply(EINSUM, inputs, {"operands": operands, "result": kept})
    for place, letter in enumerate(letters):
        if letter not in kept:
            part = expand_dims(part, place)
    return part if kept == letters else broadcast_to(part, shape_of(x))


EINSUM = define(
    "Einsum", _infer_einsum, _evaluate_einsum, _einsum_gradient, emit=einsum_rules.einsum
)
