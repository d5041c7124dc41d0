"""Random numbers by key and counter: reproducible, in loops and in compiled code.

A key is a number that all else follows from; a function called twice with one key gives the same
numbers twice. `split` and `fold_in` make keys of a key. The bits are those of Philox 4x32-10, the
same eagerly, operation by operation and compiled, on any number of threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nbta.dtypes import as_dtype
from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.ops.arithmetic import negative
from nbta.ops.dispatch import as_array
from nbta.ops.extents import as_shape
from nbta.ops.gathering import take
from nbta.ops.joining import arange
from nbta.ops.normal import ndtri
from nbta.ops.random_bits import BITS, below, gamma_of, log1p_of_scipy, philox_bits, unit_of
from nbta.ops.reductions import prod
from nbta.ops.shaping import broadcast_to, cast, reshape, shape, shape_of
from nbta.ops.sorting import argsort

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike, DTypeLike, Integer, ShapeLike

_NUMBERS, _KEYS = 0, 1  # streams: what one draws with a key, and the keys made of it


def key(seed: Integer) -> Array:
    """The key for a seed.

    Parameters
    ----------
    seed : int or Tensor
        Its lowest 64 bits count.

    Returns
    -------
    uint64 scalar

    Examples
    --------
    >>> nbta.random.normal(nbta.random.key(0), (2,)).shape
    (2,)
    """
    if isinstance(seed, Tensor):
        return cast(seed, BITS)
    if not hasattr(seed, "__index__"):
        raise invalid("random", f"random.key: {seed!r} is no integer; give one as the seed")
    return np.uint64(seed.__index__() % 2**64)


def fold_in(key: ArrayLike, data: Integer) -> Array:
    """A key for a key and a number, such as that of an iteration.

    Parameters
    ----------
    key : uint64 scalar or Tensor
    data : int or Tensor
        Its lowest 64 bits count.

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
        raise invalid("random", f"random.fold_in: {data!r} is no integer; give one")
    return array.astype(BITS)


def split(key: ArrayLike, n: Integer = 2) -> Array:
    """Keys made of a key, which is not to be used any more.

    Parameters
    ----------
    key : uint64 scalar or Tensor
    n : int or Tensor

    Returns
    -------
    uint64, shape (n,)

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


def _bits(key, extents):
    wanted = as_shape(extents)
    counters = reshape(cast(arange(_count(wanted)), BITS), wanted)
    return philox_bits(_checked(key), counters, _NUMBERS)


def _extents(a):
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
    """Numbers between two others, each as likely.

    Parameters
    ----------
    key : uint64 scalar or Tensor
    shape : int, tuple of int or Tensor, or Tensor
    dtype : {float64, float32}
    minval, maxval : array-like or Tensor
        Gradients pass to both. Compiled code may round once where NumPy rounds twice, so that the
        last bit may differ between the two, but where they are 0 and 1.

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
    """Numbers of the standard normal distribution, by the inverse of its distribution function.

    Parameters
    ----------
    key : uint64 scalar or Tensor
    shape : int, tuple of int or Tensor, or Tensor
    dtype : {float64, float32}

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
    """Numbers of the exponential distribution of mean 1.

    Parameters
    ----------
    key : uint64 scalar or Tensor
    shape : int, tuple of int or Tensor, or Tensor
    dtype : {float64, float32}

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
    """Numbers of the gamma distribution of order ``a``, whose scale is 1, with gradients by ``a``.

    Parameters
    ----------
    key : uint64 scalar or Tensor
    a : array-like or Tensor
        The order, also called shape parameter or concentration. Of 0 the number is 0; negative
        ones and NaN give NaN.
    shape : int, tuple of int or Tensor, or Tensor, optional
        What ``a`` is broadcast to; by default it is that of ``a``.
    dtype : {float64, float32}

    Returns
    -------
    ndarray or Tensor
        Multiply by a scale for gamma variates of that scale. Of small orders many numbers are too
        small for the dtype, and so 0.

    Raises
    ------
    InvalidArgumentError
        For an ``a`` that does not broadcast to ``shape``, and other dtypes.
    UnimplementedError
        For third derivatives by ``a``.

    See Also
    --------
    nbta.gammainc : the distribution function.

    Notes
    -----
    Numbers are found by rejection (Marsaglia and Tsang), in float64, and are bitwise identical
    results in each way to run. With the order moves what has the same value of the distribution
    function, F: the derivative of a number x is ``-(dF/da) / (dF/dx)`` (Figurnov, Mohamed and Mnih,
    "Implicit reparameterization gradients", 2018), so that gradients of means are those of
    expectations. It is exact to 1e-11 of itself for orders from 1e-3 to 1e7.

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
    wanted = _extents(a) if shape is None else as_shape(shape)
    counters = reshape(cast(arange(_count(wanted)), BITS), wanted)
    return gamma_of(_checked(key), counters, broadcast_to(a, wanted))


def integers(key: ArrayLike, shape: ShapeLike, minval: int, maxval: int) -> Array:
    """Integers from ``minval`` on, below ``maxval``, as int64.

    Parameters
    ----------
    key : uint64 scalar or Tensor
    shape : int, tuple of int or Tensor, or Tensor
    minval, maxval : int

    Notes
    -----
    Of n integers one is more likely than another by n / 2**64 at most.

    Examples
    --------
    >>> die = nbta.random.integers(nbta.random.key(5), (100,), 1, 7)
    >>> int(die.min()), int(die.max())
    (1, 6)
    """
    fits = all(type(n) is int and -(2**63) <= n < 2**63 for n in (minval, maxval - 1))
    if not fits or minval >= maxval:
        message = f"random.integers: there are none from {minval!r} on below {maxval!r}; give ints"
        raise invalid("random", message)
    drawn = cast(below(_bits(key, shape), np.uint64(maxval - minval)), np.int64)
    return drawn + np.int64(minval)


def permutation(key: ArrayLike, x: ArrayLike | int) -> Array:
    """The rows of an array, or the integers below a number, in a random order.

    Parameters
    ----------
    key : uint64 scalar or Tensor
    x : array-like or Tensor, or int

    Examples
    --------
    >>> sorted(nbta.random.permutation(nbta.random.key(2), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    count = x if type(x) is int else shape(x)[0]
    order = argsort(unit_of(_bits(key, [count]), np.float64))
    return order if type(x) is int else take(x, order, 0)
