"""Functions of SciPy's and Python's modules in plain Python, followed as users' functions are.

They take what those of the same name take; `FUNCTIONS` and `OF_PYTHON` say which these are.
`interpolated` is for SciPy's objects that interpolate between fixed points. `int` asks for a length
that is open.
"""

# ruff: noqa: RUF046, SIM113 (enumerate is among them)

from __future__ import annotations

import bisect
import heapq
import itertools
import math
import statistics

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


def correlate(in1, in2, mode="full", method="auto"):
    """`scipy.signal.correlate` of two rows, of which the second is no longer than the first."""
    if int(len(in2)) > int(len(in1)):
        raise NotImplementedError("correlate with a second row that is longer than the first")
    return convolve(in1, np.conj(in2)[::-1], mode)


def detrend(data, axis=-1, type="linear"):
    """`scipy.signal.detrend` by one straight line, or by the mean."""
    y = np.moveaxis(np.asarray(data) * 1.0, axis, -1)
    rest = y - np.mean(y, axis=-1, keepdims=True)
    if type in ("linear", "l"):
        times = np.arange(y.shape[-1]) - (y.shape[-1] - 1) / 2.0
        rest = rest - times * (np.sum(rest * times, axis=-1, keepdims=True) / np.sum(times * times))
    elif type not in ("constant", "c"):
        raise ValueError("Trend type must be 'linear' or 'constant'.")
    return np.moveaxis(rest, -1, axis)


def hilbert(x, N=None, axis=-1):  # noqa: N803 - SciPy's name
    """`scipy.signal.hilbert`: the analytic signal, without negative frequencies."""
    count = int(x.shape[axis]) if N is None else N
    factors = np.zeros(count)
    factors[0], factors[1 : (count + 1) // 2] = 1.0, 2.0
    if count % 2 == 0:
        factors[count // 2] = 1.0
    found = np.moveaxis(np.fft.fft(np.asarray(x), count, axis), axis, -1) * factors
    return np.moveaxis(np.fft.ifft(found), -1, axis)


def fft(x, n=None, axis=-1):
    """`scipy.fftpack.fft`."""
    return np.fft.fft(x, n, axis)


def ifft(x, n=None, axis=-1):
    """`scipy.fftpack.ifft`."""
    return np.fft.ifft(x, n, axis)


def gmean(a, axis=0, weights=None):
    """`scipy.stats.gmean`."""
    return np.exp(np.average(np.log(a), axis, weights))


def hmean(a, axis=0, weights=None):
    """`scipy.stats.hmean`: NaN where a number is negative."""
    a = np.asarray(a) * 1.0
    found = 1.0 / np.average(1.0 / a, axis, weights)
    return np.where(np.any(a < 0.0, axis=axis), np.nan, found)


def sem(a, axis=0, ddof=1):
    """`scipy.stats.sem`: the standard error of the mean."""
    a = np.asarray(a)
    count = a.size if axis is None else a.shape[axis]
    return np.std(a, axis=axis, ddof=ddof) / np.sqrt(count)


def zscore(a, axis=0, ddof=0):
    """`scipy.stats.zscore`: NaN where all numbers are one."""
    a = np.asarray(a) * 1.0
    from_mean = a - np.mean(a, axis=axis, keepdims=True)
    deviation = np.std(a, axis=axis, ddof=ddof, keepdims=True)
    is_one = np.max(a, axis=axis, keepdims=True) == np.min(a, axis=axis, keepdims=True)
    return np.where(is_one, np.nan, from_mean / np.where(is_one, 1.0, deviation))


def _moments(a, axis, order):
    """How many numbers there are, and a central moment over the deviation to its power."""
    a = np.asarray(a) * 1.0
    mean = np.mean(a, axis=axis, keepdims=True)
    square = np.mean((a - mean) ** 2, axis=axis)
    epsilon = np.finfo(a.dtype).eps
    is_none = square <= (epsilon * np.mean(a, axis=axis)) ** 2
    moment = np.mean((a - mean) ** order, axis=axis)
    count = a.size if axis is None else a.shape[axis]
    return count, np.where(is_none, np.nan, moment / np.where(is_none, 1.0, square) ** (order / 2))


def skew(a, axis=0, bias=True):
    """`scipy.stats.skew`."""
    count, found = _moments(a, axis, 3)
    if not bias and count > 2:
        found = found * np.sqrt((count - 1.0) * count) / (count - 2.0)
    return found


def kurtosis(a, axis=0, fisher=True, bias=True):
    """`scipy.stats.kurtosis`."""
    count, found = _moments(a, axis, 4)
    if not bias and count > 3:
        part = (count**2 - 1.0) * found - 3.0 * (count - 1.0) ** 2
        found = part / (count - 2.0) / (count - 3.0) + 3.0
    return found - 3.0 if fisher else found


FUNCTIONS = {
    "scipy.integrate.simpson": simpson,
    "scipy.integrate.cumulative_trapezoid": cumulative_trapezoid,
    "scipy.signal.convolve": convolve,
    "scipy.signal.fftconvolve": fftconvolve,
    "scipy.signal.lfilter": lfilter,
    "scipy.signal.correlate": correlate,
    "scipy.signal.detrend": detrend,
    "scipy.signal.hilbert": hilbert,
    "scipy.fftpack.fft": fft,
    "scipy.fftpack.ifft": ifft,
    "scipy.stats.gmean": gmean,
    "scipy.stats.hmean": hmean,
    "scipy.stats.sem": sem,
    "scipy.stats.zscore": zscore,
    "scipy.stats.skew": skew,
    "scipy.stats.kurtosis": kurtosis,
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


# Functions of NumPy's whose results are as long as only the run knows.


def unique(ar, return_index, return_inverse, return_counts, equal_nan):
    """``np.unique`` of all items; the gradient is that of the first one of equal items."""
    items = np.ravel(ar)
    order = np.argsort(items, kind="stable")
    found = items[order]
    before = np.concatenate((found[:1], found[:-1]))
    differs = found != before
    if equal_nan and found.dtype.kind == "f":
        differs &= ~(np.isnan(found) & np.isnan(before))
    differs |= np.arange(found.size) == 0
    results = (found[differs],)
    if return_index:
        results += (order[differs],)
    if return_inverse:
        inverse = np.zeros(found.size, np.int64)
        inverse[order] = np.cumsum(differs) - 1
        results += (inverse.reshape(np.shape(ar)),)
    if return_counts:
        results += (np.diff(np.append(np.flatnonzero(differs), found.size)),)
    return results if len(results) > 1 else results[0]


# Functions of Python's modules, of which C's are what Python calls.


class Relative:
    """An array as the kernel of a stencil has it: its indices count from the kernel's item."""

    def __init__(self, array, place):
        self.array, self.place = array, place

    def __getitem__(self, key):
        keys = key if isinstance(key, tuple) else (key,)
        return self.array[tuple(map(_from_place, self.place, keys))]


def _from_place(place, key):
    if isinstance(key, slice):
        return slice(place + key.start, place + key.stop)
    return place + key


def stencil(kernel, args, relative, border, cval, dtype, out):
    """A call of a function of `numba.stencil`; see `nbta.frontend.stencils`."""
    first = args[0]
    found = np.full(first.shape, cval, dtype) if out is None else out
    if out is not None and cval is not None:
        out[...] = cval

    def along(axis, place):
        if axis == len(border):
            pairs = zip(args, relative, strict=True)
            found[place] = kernel(*[Relative(a, place) if moves else a for a, moves in pairs])
            return
        before, after = border[axis]
        for k in range(before, first.shape[axis] - after):
            along(axis + 1, (*place, k))

    along(0, ())
    return found


def heappush(heap, item):
    """`heapq.heappush`."""
    heap.append(item)
    _rise(heap, len(heap) - 1, 0)


def heappop(heap):
    """`heapq.heappop`."""
    last = heap.pop()
    if len(heap) == 0:
        return last
    return heapreplace(heap, last)


def heapreplace(heap, item):
    """`heapq.heapreplace`."""
    least = heap[0]
    heap[0] = item
    _sink(heap, 0)
    return least


def heappushpop(heap, item):
    """`heapq.heappushpop`."""
    if len(heap) > 0 and heap[0] < item:
        item = heapreplace(heap, item)
    return item


def heapify(heap):
    """`heapq.heapify`."""
    for place in range(len(heap) // 2 - 1, -1, -1):
        _sink(heap, place)


def _rise(heap, place, top):
    """Let an item take the place of those above it that are larger."""
    item = heap[place]
    while place > top and item < heap[(place - 1) // 2]:
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = item


def _sink(heap, place):
    """Let the smaller ones of the items below take a place down to a leaf, and rise from there."""
    top, count, item = place, len(heap), heap[place]
    below = 2 * place + 1
    while below < count:
        if below + 1 < count and not heap[below] < heap[below + 1]:
            below += 1
        heap[place] = heap[below]
        place = below
        below = 2 * place + 1
    heap[place] = item
    _rise(heap, place, top)


def nlargest(n, iterable, key=None):
    """`heapq.nlargest`."""
    return sorted(iterable, key=key, reverse=True)[:n]


def nsmallest(n, iterable, key=None):
    """`heapq.nsmallest`."""
    return sorted(iterable, key=key)[:n]


def bisect_left(a, x, lo=0, hi=None, *, key=None):
    """`bisect.bisect_left`."""
    last = len(a) if hi is None else hi
    while lo < last:
        middle = (lo + last) // 2
        if (a[middle] if key is None else key(a[middle])) < x:
            lo = middle + 1
        else:
            last = middle
    return lo


def bisect_right(a, x, lo=0, hi=None, *, key=None):
    """`bisect.bisect_right`."""
    last = len(a) if hi is None else hi
    while lo < last:
        middle = (lo + last) // 2
        if x < (a[middle] if key is None else key(a[middle])):
            last = middle
        else:
            lo = middle + 1
    return lo


def insort_left(a, x, lo=0, hi=None, *, key=None):
    """`bisect.insort_left`."""
    a.insert(bisect_left(a, x if key is None else key(x), lo, hi, key=key), x)


def insort_right(a, x, lo=0, hi=None, *, key=None):
    """`bisect.insort_right`."""
    a.insert(bisect_right(a, x if key is None else key(x), lo, hi, key=key), x)


def mean(data):
    """`statistics.mean`, of which the sum is rounded."""
    data = list(data)
    return _total(data, "mean") / len(data)


def fmean(data, weights=None):
    """`statistics.fmean`."""
    if weights is None:
        return mean(data)
    data, weights = list(data), list(weights)
    if len(weights) != len(data):
        raise statistics.StatisticsError("data and weights must be the same length")
    total = sum(weights)
    if total == 0:
        raise statistics.StatisticsError("sum of weights must be non-zero")
    return sum([v * w for v, w in zip(data, weights, strict=True)]) / total


def geometric_mean(data):
    """`statistics.geometric_mean` of positive numbers."""
    logarithms = []
    for v in data:
        if v <= 0:
            raise statistics.StatisticsError("geometric mean requires positive numbers")
        logarithms.append(math.log(v))
    return math.exp(mean(logarithms))


def harmonic_mean(data, weights=None):
    """`statistics.harmonic_mean`."""
    data = list(data)
    weights = [1] * len(data) if weights is None else list(weights)
    if len(weights) != len(data):
        raise statistics.StatisticsError("Number of weights does not match data size")
    total, parts = _total(weights, "harmonic_mean"), 0.0
    for v, w in zip(data, weights, strict=True):
        if v < 0 or w < 0:
            raise statistics.StatisticsError("harmonic mean does not support negative values")
        parts += w / v
    return total / parts


def median(data):
    """`statistics.median`."""
    data = sorted(data)
    count = len(data)
    if count < 1:
        raise statistics.StatisticsError("no median for empty data")
    if count % 2 == 1:
        return data[count // 2]
    return (data[count // 2 - 1] + data[count // 2]) / 2


def pvariance(data, mu=None):
    """`statistics.pvariance`, of which the sum is rounded."""
    data = list(data)
    if len(data) < 1:
        raise statistics.StatisticsError("pvariance requires at least one data point")
    middle = mean(data) if mu is None else mu
    return sum([(v - middle) ** 2 for v in data]) / len(data)


def variance(data, xbar=None):
    """`statistics.variance`, of which the sum is rounded."""
    data = list(data)
    if len(data) < 2:
        raise statistics.StatisticsError("variance requires at least two data points")
    middle = mean(data) if xbar is None else xbar
    return sum([(v - middle) ** 2 for v in data]) / (len(data) - 1)


def median_low(data):
    """`statistics.median_low`."""
    data = sorted(data)
    if len(data) < 1:
        raise statistics.StatisticsError("no median for empty data")
    return data[(len(data) - 1) // 2]


def median_high(data):
    """`statistics.median_high`."""
    data = sorted(data)
    if len(data) < 1:
        raise statistics.StatisticsError("no median for empty data")
    return data[len(data) // 2]


def quantiles(data, *, n=4, method="exclusive"):
    """`statistics.quantiles`."""
    if n < 1:
        raise statistics.StatisticsError("n must be at least 1")
    data, found = sorted(data), []
    last = len(data) - 1
    if last < 1:
        raise statistics.StatisticsError("must have at least two data points")
    if method not in ("inclusive", "exclusive"):
        raise ValueError(f"Unknown method: {method!r}")
    for i in range(1, n):
        whole = i * last if method == "inclusive" else i * (last + 2) - n
        low = min(max(whole // n, 0), last - 1)
        beyond = whole - low * n
        found.append((data[low] * (n - beyond) + data[low + 1] * beyond) / n)
    return found


def covariance(x, y):
    """`statistics.covariance`, of which the sums are rounded."""
    _check_pairs(x, y, "covariance")
    return _products(x, y) / (len(x) - 1)


def correlation(x, y):
    """`statistics.correlation` of Pearson's, of which the sums are rounded."""
    _check_pairs(x, y, "correlation")
    squares = _products(x, x) * _products(y, y)
    if squares == 0:
        raise statistics.StatisticsError("at least one of the inputs is constant")
    return _products(x, y) / math.sqrt(squares)


def linear_regression(x, y, *, proportional=False):
    """`statistics.linear_regression`, of which the sums are rounded."""
    _check_pairs(x, y, "linear regression")
    if proportional:
        both, square = sum([v * w for v, w in zip(x, y, strict=True)]), sum([v * v for v in x])
    else:
        both, square = _products(x, y), _products(x, x)
    if square == 0:
        raise statistics.StatisticsError("x is constant")
    slope = both / square
    intercept = 0.0 if proportional else mean(y) - slope * mean(x)
    return statistics.LinearRegression(slope=slope, intercept=intercept)


def _total(numbers, what):
    if len(numbers) < 1:
        raise statistics.StatisticsError(f"{what} requires at least one data point")
    return sum(numbers)


def _check_pairs(x, y, what):
    if len(x) != len(y):
        raise statistics.StatisticsError(
            f"{what} requires that both inputs have same number of data points"
        )
    if len(x) < 2:
        raise statistics.StatisticsError(f"{what} requires at least two data points")


def _products(x, y):
    """The sum of the products of what two rows have beyond their means."""
    first, other = mean(x), mean(y)
    return sum([(v - first) * (w - other) for v, w in zip(x, y, strict=True)])


def pstdev(data, mu=None):
    """`statistics.pstdev`."""
    return math.sqrt(pvariance(data, mu))


def stdev(data, xbar=None):
    """`statistics.stdev`."""
    return math.sqrt(variance(data, xbar))


# Of generators, which may go on for ever.


def islice(items, *bounds):
    """`itertools.islice`: of items until the larger of ``start`` and ``stop``, and no more."""
    start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    start, step = 0 if start is None else start, 1 if step is None else step
    if start < 0 or (stop is not None and stop < 0):
        raise ValueError("Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize.")
    if step < 1:
        raise ValueError("Step for islice() must be a positive integer or None.")
    place, end = 0, None if stop is None else max(start, stop)
    if end is None or end > 0:
        for item in items:
            if place >= start and (place - start) % step == 0 and (stop is None or place < stop):
                yield item
            place += 1
            if end is not None and place >= end:
                break


def takewhile(predicate, items):
    """`itertools.takewhile`."""
    for item in items:
        if not predicate(item):
            break
        yield item


def count(start, step):
    """`itertools.count`."""
    while True:
        yield start
        start += step


def counted(items, start=0):
    """`enumerate`."""
    place = start
    for item in items:
        yield place, item
        place += 1


def zip_first(items, *after):
    """`zip` of a generator before other columns: it takes an item more than the shortest has."""
    place = 0
    for item in items:
        if place >= _shortest(after):  # which may grow meanwhile
            break
        yield (item, *[column[place] for column in after])
        place += 1


def zip_last(*columns):
    """`zip` of a generator after other columns."""
    *before, items = columns
    place = 0
    if _shortest(before) > 0:
        for item in items:
            yield (*[column[place] for column in before], item)
            place += 1
            if place >= _shortest(before):
                break


def _shortest(columns):
    count = len(columns[0])
    for column in columns[1:]:
        count = min(count, len(column))
    return count


#: What goes along an iterator, and what is followed where that is a user's generator.
OF_GENERATORS = {
    itertools.islice: islice, itertools.takewhile: takewhile, enumerate: counted,
}  # fmt: skip
#: Functions of Python's modules, and what is followed where they are given what a run knows.
OF_PYTHON = {
    heapq.heappush: heappush, heapq.heappop: heappop, heapq.heapreplace: heapreplace,
    heapq.heappushpop: heappushpop, heapq.heapify: heapify, heapq.nlargest: nlargest,
    heapq.nsmallest: nsmallest, bisect.bisect_left: bisect_left,
    bisect.bisect_right: bisect_right, bisect.insort_left: insort_left,
    bisect.insort_right: insort_right,
    **{getattr(statistics, each.__name__): each for each in (
        mean, fmean, geometric_mean, harmonic_mean, median, median_low, median_high, quantiles,
        variance, pvariance, stdev, pstdev, covariance, correlation, linear_regression,
    )},
}  # fmt: skip
