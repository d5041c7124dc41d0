"""Random numbers by key and counter: reproducible, also in loops and in compiled code.

A key is a number that determines all random numbers: a function that is called twice with the same
key returns the same numbers. `split` and `fold_in` make new keys from a key. The bits are those of
Philox 4x32-10, and identical eagerly, operation by operation and compiled, on any number of
threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nbta.dtypes import as_dtype
from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.ops.axes.reductions import prod
from nbta.ops.axes.sorting import argsort
from nbta.ops.core.arithmetic import negative
from nbta.ops.core.dimensions import as_shape
from nbta.ops.core.dispatch import as_array
from nbta.ops.core.filling import arange
from nbta.ops.core.shaping import broadcast_to, cast, reshape, shape, shape_of
from nbta.ops.indexing.gathering import take
from nbta.ops.random.random_bits import BITS, below, gamma_of, log1p_of_scipy, philox_bits, unit_of
from nbta.ops.special.normal import ndtri

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike, DTypeLike, Integer, ShapeLike

_NUMBERS, _KEYS = 0, 1  # streams: what one draws with a key, and the keys made of it


def key(seed: Integer) -> Array:
    """Make the key of a seed.

    Parameters
    ----------
    seed : int or Tensor
        Only its lowest 64 bits are used.

    Returns
    -------
    uint64 scalar
        The key.

    Raises
    ------
    InvalidArgumentError
        If the seed is not an integer.

    Examples
    --------
    >>> nbta.random.normal(nbta.random.key(0), (2,)).shape
    (2,)
    """
    if isinstance(seed, Tensor):
        return cast(seed, BITS)
    if not hasattr(seed, "__index__"):
        raise invalid("random", f"random.key: {seed!r} is not an integer; give one as the seed")
    return np.uint64(seed.__index__() % 2**64)


def fold_in(key: ArrayLike, data: Integer) -> Array:
    """Make a new key from a key and a number, such as that of an iteration.

    Parameters
    ----------
    key : uint64 scalar or Tensor
        A key.
    data : int or Tensor
        Only its lowest 64 bits are used.

    Returns
    -------
    uint64 scalar
        The new key.

    Examples
    --------
    >>> key = nbta.random.key(0)
    >>> step = lambda x, t: (x + nbta.random.normal(nbta.random.fold_in(key, t)), None)
    >>> walk = nbta.scan(step, 0.0, np.arange(100))[0]
    """
    counter = cast(data, BITS) if isinstance(data, Tensor) else _lowest_bits(data)
    return philox_bits(_checked(key), counter, _KEYS)


def _lowest_bits(data):
    array = as_array(data)
    if array.dtype.kind not in "iu":
        raise invalid("random", f"random.fold_in: {data!r} is not an integer; give one")
    return array.astype(BITS)


def split(key: ArrayLike, n: Integer = 2) -> Array:
    """Make several keys from a key, which should not be used again.

    Parameters
    ----------
    key : uint64 scalar or Tensor
        A key.
    n : int or Tensor
        The number of new keys.

    Returns
    -------
    uint64, shape (n,)
        The new keys.

    Examples
    --------
    >>> one, other = nbta.random.split(nbta.random.key(0))
    >>> bool(one == other)
    False
    """
    return philox_bits(_checked(key), cast(arange(n), BITS), _KEYS)


def _checked(key):
    key = key if isinstance(key, Tensor) else as_array(key)
    if key.dtype != BITS or key.ndim not in (0, None):
        message = (
            f"random: a key is one uint64, and this is {key!r}; use random.key or random.split"
        )
        raise invalid("random", message)
    return key


def _bits(key, dimensions):
    wanted = as_shape(dimensions)
    counters = reshape(cast(arange(_count(wanted)), BITS), wanted)
    return philox_bits(_checked(key), counters, _NUMBERS)


def _dimensions(a):
    return shape_of(a) if isinstance(a, Tensor) else np.array(np.shape(a), np.int64)


def _count(wanted):
    return prod(wanted) if isinstance(wanted, Tensor) else int(np.prod(wanted))


def _float(dtype):
    dtype = as_dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise invalid("random", f"random: {dtype} is not drawn; give float32 or float64, and cast")
    return dtype


def uniform(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike = np.float64,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
) -> Array:
    """Draw numbers from a uniform distribution.

    Parameters
    ----------
    key : uint64 scalar or Tensor
        A key.
    shape : int, tuple of int or Tensor, or Tensor
        Shape of the result.
    dtype : {float64, float32}
        Of the result.
    minval, maxval : array-like or Tensor
        The bounds. Gradients pass to both. Compiled code may round once where NumPy rounds twice,
        so the last bit may differ, unless the bounds are 0 and 1.

    Returns
    -------
    ndarray or Tensor
        Numbers between ``minval`` and ``maxval``.

    Examples
    --------
    >>> x = nbta.random.uniform(nbta.random.key(3), (1000,))
    >>> bool((0 < x).all() and (x < 1).all())
    True
    """
    drawn = unit_of(_bits(key, shape), _float(dtype))
    plain = [type(bound) in (int, float) for bound in (minval, maxval)]
    if all(plain) and (minval, maxval) == (0, 1):
        return drawn
    return minval + drawn * (maxval - minval)


def normal(key: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike = np.float64) -> Array:
    """Draw numbers from the standard normal distribution, by its inverse distribution function.

    Parameters
    ----------
    key : uint64 scalar or Tensor
        A key.
    shape : int, tuple of int or Tensor, or Tensor
        Shape of the result.
    dtype : {float64, float32}
        Of the result.

    Returns
    -------
    ndarray or Tensor
        Numbers with mean 0 and variance 1.

    Examples
    --------
    A gradient along paths: the noise is the same at every call.

    >>> def terminal(vol):
    ...     noise = nbta.random.normal(nbta.random.key(7), (1000,))
    ...     return nbta.mean(nbta.exp(vol * noise - vol ** 2 / 2))
    >>> abs(nbta.grad(terminal)(0.2)) < 0.1
    np.True_
    """
    return ndtri(unit_of(_bits(key, shape), _float(dtype)))


def exponential(key: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike = np.float64) -> Array:
    """Draw numbers from the exponential distribution with mean 1.

    Parameters
    ----------
    key : uint64 scalar or Tensor
        A key.
    shape : int, tuple of int or Tensor, or Tensor
        Shape of the result.
    dtype : {float64, float32}
        Of the result.

    Returns
    -------
    ndarray or Tensor
        Numbers of 0 or more.

    Examples
    --------
    >>> bool((nbta.random.exponential(nbta.random.key(1), (9,)) > 0).all())
    True
    """
    return negative(log1p_of_scipy(negative(unit_of(_bits(key, shape), _float(dtype)))))


def gamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = np.float64,
) -> Array:
    """Draw numbers from the gamma distribution of order ``a`` and scale 1, with gradients by ``a``.

    Parameters
    ----------
    key : uint64 scalar or Tensor
        A key.
    a : array-like or Tensor
        The order, also called shape parameter or concentration. For order 0 the number is 0; for
        negative orders and NaN it is NaN.
    shape : int, tuple of int or Tensor, or Tensor, optional
        The shape to which ``a`` is broadcast; by default, that of ``a``.
    dtype : {float64, float32}
        Of the result.

    Returns
    -------
    ndarray or Tensor
        Gamma variates of scale 1; multiply by another scale. For small orders, many numbers are too
        small for the dtype, and therefore 0.

    Raises
    ------
    InvalidArgumentError
        If ``a`` does not broadcast to ``shape``, or for other dtypes.
    UnimplementedError
        For third derivatives with respect to ``a``.

    See Also
    --------
    nbta.gammainc : the distribution function.

    Notes
    -----
    Numbers are drawn by rejection (Marsaglia and Tsang), in float64, and are bitwise identical
    eagerly, operation by operation and compiled. The derivative of a number x with respect to the
    order keeps the value of the distribution function F constant: it is ``-(dF/da) / (dF/dx)``
    (Figurnov, Mohamed and Mnih, "Implicit reparameterization gradients", 2018), so gradients of
    means are those of expectations. Its relative error is at most 1e-11 for orders from 1e-3 to
    1e7.

    Examples
    --------
    The mean is ``a``, and so the mean of the derivatives is 1:

    >>> def mean(a):
    ...     return nbta.mean(nbta.random.gamma(nbta.random.key(0), a, (10000,)))
    >>> value, slope = nbta.value_and_grad(mean)(3.0)
    >>> abs(value - 3.0) < 0.05, abs(slope - 1.0) < 0.05
    (np.True_, np.True_)

    That of squares is ``a (a + 1)``, with the second derivative 2:

    >>> squares = lambda a: nbta.mean(nbta.random.gamma(nbta.random.key(0), a, (10000,)) ** 2)
    >>> abs(nbta.hessian(squares)(3.0) - 2.0) < 0.1
    np.True_
    """
    a = cast(a if isinstance(a, Tensor) else as_array(a), _float(dtype))
    wanted = _dimensions(a) if shape is None else as_shape(shape)
    counters = reshape(cast(arange(_count(wanted)), BITS), wanted)
    return gamma_of(_checked(key), counters, broadcast_to(a, wanted))


def integers(key: ArrayLike, shape: ShapeLike, minval: int, maxval: int) -> Array:
    """Draw integers from ``minval`` to ``maxval - 1``, as int64.

    Parameters
    ----------
    key : uint64 scalar or Tensor
        A key.
    shape : int, tuple of int or Tensor, or Tensor
        Shape of the result.
    minval, maxval : int
        The lower bound, and the upper bound, which is not drawn.

    Returns
    -------
    ndarray of int64 or Tensor
        Integers.

    Raises
    ------
    InvalidArgumentError
        If the bounds are not integers, or if there is none between them.

    Notes
    -----
    Among n integers, the probabilities of any two differ by a factor of at most 1 + n / 2**64.

    Examples
    --------
    >>> die = nbta.random.integers(nbta.random.key(5), (100,), 1, 7)
    >>> int(die.min()), int(die.max())
    (1, 6)
    """
    fits = all(type(n) is int and -(2**63) <= n < 2**63 for n in (minval, maxval - 1))
    if not fits or minval >= maxval:
        message = f"random.integers: no integer is in [{minval!r}, {maxval!r}); give ints"
        raise invalid("random", message)
    drawn = cast(below(_bits(key, shape), np.uint64(maxval - minval)), np.int64)
    return drawn + np.int64(minval)


def permutation(key: ArrayLike, x: ArrayLike | int) -> Array:
    """Permute the rows of an array, or the integers below a number.

    Parameters
    ----------
    key : uint64 scalar or Tensor
        A key.
    x : array-like or Tensor, or int
        The rows; an integer ``n`` stands for ``np.arange(n)``.

    Returns
    -------
    ndarray or Tensor
        The rows in random order.

    Examples
    --------
    >>> sorted(nbta.random.permutation(nbta.random.key(2), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    count = x if type(x) is int else shape(x)[0]
    order = argsort(unit_of(_bits(key, [count]), np.float64))
    return order if type(x) is int else take(x, order, 0)
