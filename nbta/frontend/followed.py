"""SciPy's functions of samples in plain Python, which the front end follows as users' functions.

They take what SciPy's of the same name take; `FUNCTIONS` says which these are. `interpolated` is
for SciPy's objects that interpolate between fixed points. `int` asks for a length that is open.
"""

# ruff: noqa: RUF046

from __future__ import annotations

import math

import numpy as np

from nbta.frontend.iteration import unroll


def simpson(y, x=None, *, dx=1.0, axis=-1):
    """`scipy.integrate.simpson`: for an even number of points with Cartwright's last interval."""
    y = np.moveaxis(np.asarray(y), axis, -1)
    count = int(y.shape[-1])
    if x is None:
        steps = np.full(count - 1, dx * 1.0)
    else:
        x = np.asarray(x)
        steps = np.diff(x if x.ndim == 1 else np.moveaxis(x, axis, -1))
        if steps.shape[-1] != count - 1:
            raise ValueError("If given, length of x along axis must be the same as y.")
    if count == 2:
        return 0.5 * steps[..., 0] * (y[..., 0] + y[..., 1])
    last = count if count % 2 else count - 1
    one, other = steps[..., : last - 1 : 2], steps[..., 1 : last - 1 : 2]
    both = one + other
    parts = both / 6.0 * (
        y[..., : last - 2 : 2] * (2.0 - other / one)
        + y[..., 1 : last - 1 : 2] * (both * both / (one * other))
        + y[..., 2:last:2] * (2.0 - one / other)
    )  # fmt: skip
    total = np.sum(parts, axis=-1)
    if count % 2 == 0:
        one, other = steps[..., -2], steps[..., -1]
        alpha = (2.0 * other**2 + 3.0 * one * other) / (6.0 * (other + one))
        beta = (other**2 + 3.0 * one * other) / (6.0 * one)
        eta = other**3 / (6.0 * one * (one + other))
        total = total + alpha * y[..., -1] + beta * y[..., -2] - eta * y[..., -3]
    return total


def cumulative_trapezoid(y, x=None, dx=1.0, axis=-1, initial=None):
    """`scipy.integrate.cumulative_trapezoid`."""
    y = np.moveaxis(np.asarray(y), axis, -1)
    steps = dx
    if x is not None:
        x = np.asarray(x)
        steps = np.diff(x if x.ndim == 1 else np.moveaxis(x, axis, -1))
    total = np.cumsum(steps * (y[..., 1:] + y[..., :-1]) / 2.0, axis=-1)
    if initial is not None:
        if initial != 0:
            raise ValueError("`initial` must be `None` or `0`.")
        total = np.concatenate([np.zeros_like(total[..., :1]), total], axis=-1)
    return np.moveaxis(total, -1, axis)


def convolve(in1, in2, mode="full", method="auto"):
    """`scipy.signal.convolve` of two rows."""
    if mode == "valid":
        return np.convolve(in1, in2, "valid")
    found = np.convolve(in1, in2)
    if mode == "same":
        first = (int(len(in2)) - 1) // 2
        found = found[first : first + int(len(in1))]
    elif mode != "full":
        raise ValueError("acceptable mode flags are 'valid', 'same', or 'full'")
    return found


def fftconvolve(in1, in2, mode="full"):
    """`scipy.signal.fftconvolve` of two rows, whose result is of floats."""
    return convolve(np.asarray(in1) * 1.0, np.asarray(in2), mode)


def lfilter(b, a, x, axis=-1):
    """`scipy.signal.lfilter` of a row, in the transposed direct form II."""
    b, a, x = np.atleast_1d(b), np.atleast_1d(a), np.asarray(x)
    if x.ndim != 1:
        raise NotImplementedError(
            "lfilter of several rows that only the run knows; filter them one by one"
        )
    order, dtype = max(int(len(a)), int(len(b))), np.result_type(b.dtype, a.dtype, x.dtype)
    dtype = np.result_type(dtype, np.float32)
    ahead, back = np.zeros(order, dtype), np.zeros(order, dtype)
    ahead[: len(b)], back[: len(a)] = b / a[0], a / a[0]
    state, found = np.zeros(order, dtype), np.zeros(len(x), dtype)
    for k in range(len(x)):
        given = x[k]
        new = ahead[0] * given + state[0]
        found[k] = new
        for j in range(order - 1):
            state[j] = ahead[j + 1] * given - back[j + 1] * new + state[j + 1]
    return found


def piecewise(x, breaks, c, extrapolate, nu):
    """A piecewise polynomial, or a derivative of it: ``c`` has its coefficients, highest first."""
    x = np.asarray(x) * 1.0
    first, last = breaks[0], breaks[-1]
    if extrapolate == "periodic":
        x = first + (x - first) % (last - first)
    place = np.clip(np.searchsorted(breaks, x, side="right") - 1, 0, len(breaks) - 2)
    step, degree = x - breaks[place], int(len(c)) - 1
    found = step * 0.0
    for j in unroll(range(degree + 1 - nu)):
        found = found * step + math.perm(degree - j, nu) * c[j][place]
    if not extrapolate:
        found = np.where((x < first) | (x > last), np.nan, found)
    return found


def linear(x, points, values, extrapolate, is_error, below, above):
    """`scipy.interpolate.interp1d` of one row, straight between its points."""
    x = np.asarray(x) * 1.0
    outside = (x < points[0]) | (x > points[-1])
    if is_error and np.any(outside):
        raise ValueError("A value in x_new is outside of the interpolation range.")
    place = np.clip(np.searchsorted(points, x), 1, len(points) - 1)
    low, high = points[place - 1], points[place]
    slope = (values[place] - values[place - 1]) / (high - low)
    found = slope * (x - low) + values[place - 1]
    if not extrapolate:
        found = np.where(outside, np.where(x < points[0], below, above), found)
    return found


FUNCTIONS = {
    "scipy.integrate.simpson": simpson,
    "scipy.integrate.cumulative_trapezoid": cumulative_trapezoid,
    "scipy.signal.convolve": convolve,
    "scipy.signal.fftconvolve": fftconvolve,
    "scipy.signal.lfilter": lfilter,
}


def interpolated(owner, attribute, call, x, nu=0, extrapolate=None):
    """A function and its arguments that give what an object of SciPy's that interpolates does.

    Parameters
    ----------
    owner : object
    attribute, call : callable
        Read an attribute of the object, and call a function, as the user's code would.
    x, nu, extrapolate
        As the object is called.

    Returns
    -------
    tuple or None
        None for objects of other kinds, of several values at a point, or of descending points.
    """
    if not type(owner).__module__.startswith("scipy.interpolate"):
        return None
    from scipy import interpolate

    if isinstance(owner, interpolate.BSpline):
        extrapolate = owner.extrapolate if extrapolate is None else extrapolate
        owner = call(interpolate.PPoly.from_spline, owner)
    if isinstance(owner, interpolate.interp1d) and np.ndim(owner.y) == 1 and nu == 0:
        if owner._kind != "linear":
            return None
        points, values = attribute(owner, "x"), attribute(owner, "y")
        fills = (getattr(owner, f"_fill_value_{side}", None) for side in ("below", "above"))
        below, above = (np.nan if each is None else float(np.ravel(each)[0]) for each in fills)
        return linear, (x, points, values, owner._extrapolate, owner.bounds_error, below, above)
    if isinstance(owner, interpolate.PPoly) and np.ndim(owner.c) == 2 and nu >= 0:
        if extrapolate is None:
            extrapolate = owner.extrapolate
        if owner.x[0] < owner.x[-1]:
            return piecewise, (x, attribute(owner, "x"), attribute(owner, "c"), extrapolate, nu)
    return None
