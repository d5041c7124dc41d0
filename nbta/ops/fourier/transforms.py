"""Discrete Fourier transforms along an axis."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np

from nbta.codegen.values import product
from nbta.errors import invalid
from nbta.graph.operation import Spec
from nbta.loops import Constant, Evaluate, call_at
from nbta.ops.core.arithmetic import divide, multiply, real
from nbta.ops.core.axis_arguments import operand
from nbta.ops.core.dispatch import apply, define, exported, stands_for
from nbta.ops.core.elementwise import conjugate
from nbta.ops.core.shaping import cast
from nbta.ops.indexing.arranging import ranked, roll
from nbta.ops.indexing.items import getitem
from nbta.ops.indexing.joining import pad
from nbta.ops.indexing.transposing import swapaxes
from nbta.ops.linalg.triangular import address_of

if TYPE_CHECKING:
    from typing import Literal

    from nbta.typing import Array, ArrayLike

    Norm = Literal["backward", "ortho", "forward"] | None

#: Signs of the exponent.
FORWARD, BACKWARD = -1, 1


def _infer(x, *, sign):
    if x.shape is not None and x.shape[-1] == 0:
        raise invalid("empty", "there is nothing along the axis to transform")
    return Spec(x.dtype, x.shape)


def _evaluate(x, *, sign):
    _infer(Spec(x.dtype, x.shape), sign=sign)
    found = np.fft.fft(x) if sign == FORWARD else np.fft.ifft(x, norm="forward")
    return found.astype(x.dtype, copy=False)


def _emit(code, op) -> None:
    """Line by line, through a buffer of one more line."""
    x = code.value(op.inputs[0])
    *outer, n = map(code.canonical, x.dimensions)
    code.fail_if(n.equals(0))
    block = code.result(op, dimensions=x.dimensions)
    room = code.new(x.dtype, (Constant(2), n))
    places = [address_of(one, 0) for one in (x, block, room)]
    helper = code.helper(f"fourier_{x.dtype.name}")
    transformed = call_at(helper, *places, n, product(outer), op.attrs["sign"])
    code.add(Evaluate(transformed))


#: Along the last axis, and not divided by anything.
FOURIER = define(
    "Fourier",
    _infer,
    _evaluate,
    lambda op, dy: [apply(FOURIER, [dy], {"sign": -op.attrs["sign"]})],
    emit=_emit,
    linear=(0,),
)


def _complex(x):
    """In complex numbers of the precision that NumPy takes."""
    x = operand(x)
    narrow = (x.dtype.kind == "f" and x.dtype.itemsize <= 4) or x.dtype.name == "bfloat16"
    return x if x.dtype.kind == "c" else cast(x, np.complex64 if narrow else np.complex128)


def _last(x, axis):
    """With an axis after all others, which is where it came from."""
    if x.ndim is None:
        raise invalid("rank", "the rank must be known; reshape the operand first")
    if not -x.ndim <= axis < x.ndim:
        raise invalid("axis", f"axis: there is no axis {axis} in rank {x.ndim}")
    return x if axis in (-1, x.ndim - 1) else swapaxes(x, axis, -1)


def _back(x, axis, name):
    """With the last axis where it was."""
    return swapaxes(x, axis, -1, name=name)


def _sized(x, n):
    """With so many items in the last axis: cut, or zeros after."""
    have = operator.index(x.shape[-1])
    if n <= have:
        return x if n == have else getitem(x, (..., slice(0, n)))
    return pad(x, [*[(0, 0)] * (x.ndim - 1), (0, n - have)])


def _count(n):
    n = operator.index(n)
    if n < 1:
        raise invalid("size", f"n: {n} points cannot be transformed; give one or more")
    return n


def _factor(norm, sign, n):
    """What a transform of so many points is multiplied by; None for nothing."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise invalid("value", f"norm must be 'backward', 'ortho' or 'forward', not {norm!r}")
    if norm == "ortho":
        return n**-0.5
    return 1.0 / n if (norm == "forward") == (sign == FORWARD) else None


def _scaled(x, factor):
    return x if factor is None else multiply(x, factor)


def _transformed(x, n, axis, norm, sign, name=None):
    x = _last(_complex(x), axis)
    if n is not None:
        x = _sized(x, _count(n))
    found = _scaled(apply(FOURIER, [x], {"sign": sign}), _factor(norm, sign, x.shape[-1]))
    return _back(found, axis, name)


@exported(also=("fft.fft", "scipy.fft.fft"), numpy=4)
def fft(
    a: ArrayLike,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    *,
    name: str | None = None,
) -> Array:
    """The discrete Fourier transform along an axis.

    Parameters
    ----------
    a : array-like or Tensor
    n : int, optional
        How many points to transform: others are cut off, or zeros put after.
    axis : int
    norm : {"backward", "ortho", "forward"}, optional
        Whether nothing, the square root of ``n``, or ``n`` divides the result.

    Returns
    -------
    Tensor or numpy.ndarray
        Of complex numbers. Compiled code takes a pass for each prime factor of ``n``, which costs
        as much as the factor: lengths with a large one are slow.

    Raises
    ------
    InvalidArgumentError
        For no points, an axis that is not there, and an unknown rank.

    Examples
    --------
    >>> nbta.fft([1.0, 0.0, 0.0, 0.0])
    array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])
    """
    return _transformed(a, n, axis, norm, FORWARD, name)


@exported(also=("fft.ifft", "scipy.fft.ifft"), numpy=4)
def ifft(
    a: ArrayLike,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    *,
    name: str | None = None,
) -> Array:
    """Inverse of `nbta.fft`, as `numpy.fft.ifft`.

    Parameters
    ----------
    a, n, axis, norm
        As for `nbta.fft`.

    Returns
    -------
    Tensor or numpy.ndarray
        Complex numbers, of the shape of ``a`` with ``n`` points along the axis.

    Raises
    ------
    InvalidArgumentError
        For no points, for an axis that ``a`` does not have, and for an unknown rank.

    Examples
    --------
    >>> nbta.ifft([4.0, 0.0, 0.0, 0.0])
    array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])
    """
    return _transformed(a, n, axis, norm, BACKWARD, name)


@exported(also=("fft.rfft", "scipy.fft.rfft"), numpy=4)
def rfft(
    a: ArrayLike,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    *,
    name: str | None = None,
) -> Array:
    """Discrete Fourier transform of real numbers, as `numpy.fft.rfft`.

    The result is the first half of `nbta.fft`, which determines the other half.

    Parameters
    ----------
    a, n, axis, norm
        As for `nbta.fft`; ``a`` is real.

    Returns
    -------
    Tensor or numpy.ndarray
        Complex numbers, of the shape of ``a`` with ``n // 2 + 1`` points along the axis.

    Raises
    ------
    InvalidArgumentError
        For complex numbers, for no points, for an axis that ``a`` does not have, and for an unknown
        rank.

    Examples
    --------
    >>> nbta.rfft([1.0, 0.0, 0.0, 0.0])
    array([1.+0.j, 1.+0.j, 1.+0.j])
    """
    a = operand(a)
    if a.dtype.kind == "c":
        raise invalid("dtype", f"rfft is for real numbers, not {a.dtype}; use fft")
    found = _last(_transformed(a, n, axis, norm, FORWARD), axis)
    half = found.shape[-1] // 2 + 1
    return _back(getitem(found, (..., slice(None, half))), axis, name)


@exported(also=("fft.irfft", "scipy.fft.irfft"), numpy=4)
def irfft(
    a: ArrayLike,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    *,
    name: str | None = None,
) -> Array:
    """Inverse of `nbta.rfft`, as `numpy.fft.irfft`.

    Parameters
    ----------
    a : array-like or Tensor
        Complex numbers, the first half of a transform.
    n : int, optional
        Number of points of the result; by default ``2 * (m - 1)`` for m points of ``a``.
    axis, norm
        As for `nbta.fft`.

    Returns
    -------
    Tensor or numpy.ndarray
        Real numbers, of the shape of ``a`` with ``n`` points along the axis.

    Raises
    ------
    InvalidArgumentError
        For no points, for an axis that ``a`` does not have, for an unknown rank, and for lengths
        that are not known before the run.

    Examples
    --------
    >>> nbta.irfft([4.0, 0.0, 0.0])
    array([1., 1., 1., 1.])
    """
    x = _last(_complex(a), axis)
    n = _count(2 * (operator.index(x.shape[-1]) - 1) if n is None else n)
    weights = np.full(n // 2 + 1, 2, x.dtype)  # for each point and its conjugate, which is not here
    weights[0] = weights[n // 2 if n % 2 == 0 else 0] = 1
    x = _sized(multiply(_sized(x, n // 2 + 1), weights), n)
    found = _scaled(real(apply(FOURIER, [x], {"sign": BACKWARD})), _factor(norm, BACKWARD, n))
    return _back(found, axis, name)


def _along_axes(one, a, s, axes, norm):
    """A transform along each of some axes, the last one first."""
    a = operand(a)
    if axes is None:
        if a.ndim is None:
            raise invalid("rank", "the rank must be known; reshape the operand first")
        axes = range(a.ndim) if s is None else range(-len(s), 0)
    counts = [None] * len(axes) if s is None else s
    if len(counts) != len(axes):
        raise invalid(
            "axis", f"s: {len(counts)} lengths do not fit {len(axes)} axes; give one each"
        )
    if not len(axes):
        raise invalid("axis", "axes is empty; give at least one axis")
    a = _complex(a)
    for axis, n in reversed(list(zip(axes, counts, strict=True))):
        a = one(a, None if n == -1 else n, axis, norm)
    return a


@stands_for("fft.fft2", "scipy.fft.fft2", numpy=4)
def _fft2(a, s=None, axes=(-2, -1), norm=None):
    return _along_axes(fft, a, s, axes, norm)


@stands_for("fft.ifft2", "scipy.fft.ifft2", numpy=4)
def _ifft2(a, s=None, axes=(-2, -1), norm=None):
    return _along_axes(ifft, a, s, axes, norm)


@stands_for("fft.fftn", "scipy.fft.fftn", numpy=4)
def _fftn(a, s=None, axes=None, norm=None):
    return _along_axes(fft, a, s, axes, norm)


@stands_for("fft.ifftn", "scipy.fft.ifftn", numpy=4)
def _ifftn(a, s=None, axes=None, norm=None):
    return _along_axes(ifft, a, s, axes, norm)


def _shifted(x, axes, distance):
    """A tensor rolled along axes, by what is made of the length of each."""
    x = ranked(x)
    axes = range(x.ndim) if axes is None else (axes,) if isinstance(axes, int) else axes
    for axis in axes:
        if not -x.ndim <= axis < x.ndim:
            raise invalid("axis", f"axis: there is no axis {axis} in rank {x.ndim}")
        x = roll(x, distance(x.shape[axis]), axis)
    return x


@stands_for("fft.fftshift", "scipy.fft.fftshift", numpy=2)
def _fftshift(x, axes=None):
    """NumPy's: the point of frequency 0 comes into the middle."""
    return _shifted(x, axes, lambda n: n // 2)


@stands_for("fft.ifftshift", "scipy.fft.ifftshift", numpy=2)
def _ifftshift(x, axes=None):
    """NumPy's, the inverse of the other, which differs from it for odd lengths."""
    return _shifted(x, axes, lambda n: -(n // 2))


def _real_along_axes(of_last, of_others, a, s, axes, norm):
    """A transform of real numbers along the last of some axes, and one along the others."""
    a = operand(a)
    if axes is None:
        if a.ndim is None:
            raise invalid("rank", "the rank must be known; reshape the operand first")
        axes = range(a.ndim) if s is None else range(-len(s), 0)
    counts = [None] * len(axes) if s is None else [None if n == -1 else n for n in s]
    if not len(axes) or len(counts) != len(axes):
        message = f"s, axes: {len(counts)} lengths do not fit {len(axes)} axes; give one each"
        raise invalid("axis", message)
    if a.ndim is None or len({axis % max(a.ndim, 1) for axis in axes}) < len(axes):
        raise invalid("axis", f"axes: {tuple(axes)} names an axis twice; give each once")
    *others, last = zip(axes, counts, strict=True)
    if of_last is rfft:
        a = rfft(a, last[1], last[0], norm)
    for axis, n in reversed(others):
        a = of_others(a, n, axis, norm)
    return irfft(a, last[1], last[0], norm) if of_last is irfft else a


@stands_for("fft.rfft2", "scipy.fft.rfft2", numpy=4)
def _rfft2(a, s=None, axes=(-2, -1), norm=None):
    return _real_along_axes(rfft, fft, a, s, axes, norm)


@stands_for("fft.rfftn", "scipy.fft.rfftn", numpy=4)
def _rfftn(a, s=None, axes=None, norm=None):
    return _real_along_axes(rfft, fft, a, s, axes, norm)


@stands_for("fft.irfft2", "scipy.fft.irfft2", numpy=4)
def _irfft2(a, s=None, axes=(-2, -1), norm=None):
    return _real_along_axes(irfft, ifft, a, s, axes, norm)


@stands_for("fft.irfftn", "scipy.fft.irfftn", numpy=4)
def _irfftn(a, s=None, axes=None, norm=None):
    return _real_along_axes(irfft, ifft, a, s, axes, norm)


#: What a transform divides by where its inverse does not.
_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


@stands_for("fft.hfft", "scipy.fft.hfft", numpy=4)
def _hfft(a, n=None, axis=-1, norm=None):
    """NumPy's: of half of what has real transforms."""
    return irfft(conjugate(operand(a)), n, axis, _SWAPPED.get(norm, norm))


@stands_for("fft.ihfft", "scipy.fft.ihfft", numpy=4)
def _ihfft(a, n=None, axis=-1, norm=None):
    """NumPy's, the inverse of the other."""
    return conjugate(rfft(a, n, axis, _SWAPPED.get(norm, norm)))


@stands_for("fft.fftfreq", "scipy.fft.fftfreq", numpy=2)
def _fftfreq(n, d=1.0):
    """NumPy's: the frequencies of points, negative ones after."""
    n = _count(n)
    numbers = np.concatenate([np.arange((n + 1) // 2), np.arange(-(n // 2), 0)])
    return divide(numbers, multiply(d, n))


@stands_for("fft.rfftfreq", "scipy.fft.rfftfreq", numpy=2)
def _rfftfreq(n, d=1.0):
    """NumPy's: the frequencies that are not negative."""
    n = _count(n)
    return divide(np.arange(n // 2 + 1), multiply(d, n))
