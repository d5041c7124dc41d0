"""All functions on tensors that users call."""

from nbta.ops import numbers, tensor_methods
from nbta.ops.arithmetic import (
    add,
    add_n,
    clip,
    conj,
    divide,
    floor_divide,
    imag,
    maximum,
    minimum,
    mod,
    multiply,
    negative,
    real,
    square,
    subtract,
    where,
)
from nbta.ops.comparison import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
)
from nbta.ops.contraction import einsum
from nbta.ops.elementary import (
    abs,
    cos,
    erf,
    exp,
    expm1,
    floor,
    isfinite,
    log,
    log1p,
    power,
    relu,
    rsqrt,
    sigmoid,
    sign,
    sin,
    softplus,
    sqrt,
    tanh,
)
from nbta.ops.filling import fill, ones, ones_like, zeros, zeros_like
from nbta.ops.gathering import gather, one_hot, scatter_add, take
from nbta.ops.indexing import getitem
from nbta.ops.joining import concatenate, split, stack
from nbta.ops.linalg import cholesky, dot, triangular_solve, tril
from nbta.ops.placeholder import constant, placeholder
from nbta.ops.products import as_matrix, matmul, outer, swapaxes, transpose
from nbta.ops.rearranging import arange, expand_dims, flip, pad, squeeze
from nbta.ops.recurrences import exclusive_cumprod, linear_recurrence
from nbta.ops.reductions import argmax, cumsum, max, mean, min, prod, sum
from nbta.ops.shaping import (
    broadcast_to,
    cast,
    identity,
    reshape,
    shape,
    size,
    stop_gradient,
    sum_to,
)
from nbta.ops.slicing import dynamic_slice, dynamic_update_slice, slice
from nbta.ops.softmax import log_softmax, logsumexp, softmax

__all__ = [
    "abs", "add", "add_n", "arange", "argmax", "as_matrix", "broadcast_to", "cast", "cholesky",
    "clip", "concatenate", "conj", "constant", "cos", "cumsum", "divide", "dot", "dynamic_slice",
    "dynamic_update_slice", "einsum", "equal", "erf", "exclusive_cumprod", "exp", "expand_dims",
    "expm1", "fill", "flip", "floor", "floor_divide", "gather", "getitem", "greater",
    "greater_equal", "identity", "imag", "isfinite", "less", "less_equal", "linear_recurrence",
    "log", "log1p", "log_softmax", "logical_and", "logical_not", "logical_or", "logsumexp",
    "matmul", "max", "maximum", "mean", "min", "minimum", "mod", "multiply", "negative",
    "not_equal", "one_hot", "ones", "ones_like", "outer", "pad", "placeholder", "power", "prod",
    "real", "relu", "reshape", "rsqrt", "scatter_add", "shape", "sigmoid", "sign", "sin", "size",
    "slice", "softmax", "softplus", "split", "sqrt", "square", "squeeze", "stack",
    "stop_gradient", "subtract", "sum", "sum_to", "swapaxes", "take", "tanh", "transpose",
    "triangular_solve", "tril", "where", "zeros", "zeros_like",
]  # fmt: skip
_INSTALLED = tensor_methods, numbers
