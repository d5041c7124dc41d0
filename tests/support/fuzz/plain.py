"""nbta's functions in plain NumPy and Python, as far as random programs use them.

Nothing here is nbta's: loops are Python's, arrays are the slow model's.
"""

import functools

import numpy as np
from model import ModelArray
from numpy import (  # noqa: F401
    abs,
    arange,
    arcsinh,
    arctan,
    argmax,
    broadcast_to,
    cbrt,
    clip,
    concatenate,
    conj,
    cos,
    cosh,
    cumsum,
    dot,
    equal,
    exp,
    exp2,
    expand_dims,
    expm1,
    flip,
    floor,
    floor_divide,
    greater,
    hypot,
    imag,
    isfinite,
    less,
    log,
    log1p,
    log10,
    logical_and,
    logical_not,
    logical_or,
    matmul,
    max,
    maximum,
    mean,
    min,
    minimum,
    mod,
    multiply,
    negative,
    not_equal,
    ones_like,
    outer,
    pad,
    power,
    prod,
    real,
    reshape,
    sign,
    sin,
    size,
    split,
    sqrt,
    square,
    squeeze,
    stack,
    sum,
    swapaxes,
    take,
    tanh,
    transpose,
    where,
    zeros_like,
)  # fmt: skip
from scipy import linalg, special

from nbta.structure import leaves, map_leaves, pack


def cast(x, dtype):
    return np.asarray(x).astype(dtype)[()]


def shape(x):
    return np.array(np.shape(x), np.int64)


def _same(function):
    """A function that keeps the dtype of what it is given."""
    return lambda x: np.asarray(function(x)).astype(np.asarray(x).dtype)[()]


sigmoid, erf = _same(special.expit), _same(special.erf)
softplus = _same(lambda x: np.logaddexp(x, np.zeros((), np.asarray(x).dtype)))
relu = _same(lambda x: np.maximum(x, 0))
rsqrt = _same(lambda x: 1 / np.sqrt(x))


def add_n(values):
    return functools.reduce(np.add, values)


def logsumexp(x, axis=None, keepdims=False):
    most = np.max(x, axis, keepdims=True, initial=-1e300)
    most = np.where(np.isinf(most), 0, most).astype(np.asarray(x).dtype)
    found = most + np.log(np.sum(np.exp(x - most), axis, keepdims=True))
    return found if keepdims else np.squeeze(found, axis)[()]


def log_softmax(x, axis=-1):
    return x - logsumexp(x, axis, True) if np.size(x) else x


def softmax(x, axis=-1):
    return np.exp(log_softmax(x, axis))


def getitem(x, key):
    return x[key]


def set_item(x, key, value):
    result = np.array(x)
    result[key] = value
    return result


def add_item(x, key, value):
    result = np.array(x)
    np.add.at(result, key, value)
    return result


def gather(x, indices, axis=0):
    return np.take(x, indices, axis)


def one_hot(indices, depth):
    return (np.asarray(indices)[..., None] == np.arange(depth)).astype(np.float64)


def tril(x, k=0):
    """NumPy makes a matrix of a vector."""
    if np.ndim(x) < 2:
        raise ValueError("no matrix")
    return np.tril(x, k)


def einsum(spec, *values):
    """NumPy takes a length of 1 for any other one."""
    lengths = {}
    for axes, value in zip(spec.split("->")[0].split(","), values, strict=True):
        for axis, length in zip(axes, np.shape(value), strict=True):
            if lengths.setdefault(axis, length) != length:
                raise ValueError(f"{axis} has two lengths")
    return np.einsum(spec, *values)


def scatter_add(x, indices, updates, axis=0):
    result = np.moveaxis(np.array(x), axis, 0)
    rows = np.moveaxis(np.asarray(updates), axis, 0)
    for index, row in zip(indices, rows, strict=True):
        result[index] += row
    return np.moveaxis(result, 0, axis)


def _block(x, starts, sizes):
    """Where a block lies, moved so that it is inside."""
    free = np.array(np.shape(x)) - sizes
    if (free < 0).any():
        raise ValueError("the block does not fit")
    starts = np.clip(starts, 0, free)
    return tuple(slice(a, a + n) for a, n in zip(starts, sizes, strict=True))


def dynamic_slice(x, starts, sizes):
    return x[_block(x, starts, np.array(sizes))]


def dynamic_update_slice(x, update, starts):
    result = np.array(x)
    result[_block(x, starts, np.array(np.shape(update)))] = update
    return result


def exclusive_cumprod(x, axis=-1, reverse=False):
    return _along(axis, reverse, lambda rows: np.cumprod([np.ones_like(rows[0]), *rows[:-1]], 0), x)


def linear_recurrence(a, b, axis=-1, reverse=False):
    def run(steps, pushes):
        states = [np.zeros_like(pushes[0])]
        for step, push in zip(steps[:-1], pushes[:-1], strict=True):
            states.append(step * states[-1] + push)
        return np.stack(states)

    return _along(axis, reverse, run, a, b)


def _along(axis, reverse, run, *values):
    way = slice(None, None, -1 if reverse else 1)
    rows = [np.moveaxis(value, axis, 0)[way] for value in values]
    result = run(*rows) if len(rows[0]) else rows[0]
    return np.moveaxis(result[way], 0, axis)


def cholesky(a):
    return np.linalg.cholesky(a)


def triangular_solve(a, b, lower=True, transposed=False):
    rows = np.shape(b)[-1 if np.ndim(b) == 1 else -2]
    if rows != len(a):
        raise ValueError("the matrix and the right side have other lengths")
    if not np.size(b):
        return np.broadcast_to(b, (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]))
    return linalg.solve_triangular(a, b, trans=int(transposed), lower=lower, check_finite=False)


def identity(x):
    return x


stop_gradient = identity


# Loops and branches.


class NoRowsError(ValueError):
    """What a loop without iterations gives cannot be found out in this way."""


def cond(pred, true_fn, false_fn, *operands):
    return true_fn(*operands) if pred else false_fn(*operands)


def switch_case(branch_index, branch_fns, *operands):
    inside = 0 <= branch_index < len(branch_fns)
    return branch_fns[int(branch_index) if inside else -1](*operands)


def while_loop(cond, body, loop_vars, maximum_iterations=None, checkpoint=None):
    iterations = 0
    while cond(*loop_vars) and (maximum_iterations is None or iterations < maximum_iterations):
        loop_vars = tuple(body(*loop_vars))
        iterations += 1
    return loop_vars


def scan(f, init, xs, reverse=False, checkpoint=None):
    count = len(leaves(xs)[0])
    carry, results = init, []
    for t in reversed(range(count)) if reverse else range(count):
        carry, y = f(carry, map_leaves(lambda x, t=t: x[t], xs))
        results.append(y)
    results = results[::-1] if reverse else results
    if not results:  # the shapes of results that are not there: those of a step on zeros
        try:
            _, y = f(init, map_leaves(lambda x: np.zeros(x.shape[1:], x.dtype)[()], xs))
        except Exception as error:
            raise NoRowsError("a step on zeros fails") from error
        return carry, map_leaves(lambda v: np.zeros((0, *np.shape(v)), np.asarray(v).dtype), y)
    rows = zip(*map(leaves, results), strict=True)
    return carry, pack(results[0], [np.stack(column) for column in rows])


def map_fn(fn, elems, parallel_iterations=None, checkpoint=None):
    return scan(lambda _, x: (0, fn(x)), 0, elems)[1]


def foldl(fn, elems, initializer, checkpoint=None):
    return scan(lambda a, x: (fn(a, x), ()), initializer, elems)[0]


def foldr(fn, elems, initializer, checkpoint=None):
    return scan(lambda a, x: (fn(a, x), ()), initializer, elems, reverse=True)[0]


class TensorArray(ModelArray):
    """The slow model, with the results and scalars of nbta."""

    def read(self, index):
        return super().read(index)[()]
