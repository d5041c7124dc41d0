"""Programs in which a part that is masked, not taken or saturated has no finite derivative.

Each is written as people write it, with `np.where`, branches, `maximum` or infinite parameters, and
beside it the same with the part left out, or its derivative by hand.
"""

import numpy as np
import pytest

import nbta

INF = np.inf


def transmitted(angle, n):
    """Optics: Snell's law and Fresnel's coefficients; beyond the critical angle nothing passes."""
    s = n * np.sin(angle)
    inside = np.abs(s) <= 1.0
    beyond = np.sqrt(1.0 - s**2)
    r = (n * np.cos(angle) - beyond) / (n * np.cos(angle) + beyond)
    return np.sum(np.where(inside, 1.0 - r**2, 0.0))


def transmitted_plain(angle, n):
    angle = angle[np.array([0, 1])]
    s = n * np.sin(angle)
    beyond = np.sqrt(1.0 - s**2)
    r = (n * np.cos(angle) - beyond) / (n * np.cos(angle) + beyond)
    return np.sum(1.0 - r**2)


def epidemic(infected, days, contact):
    """Epidemiology: doubling times of the groups that have cases."""
    total = 0.0
    rates = np.log(infected) * contact
    for k in range(len(infected)):
        if infected[k] > 0.0:
            total += days[k] / (1.0 + rates[k] ** 2)
    return total


def epidemic_plain(infected, days, contact):
    total = 0.0
    for k in range(len(infected) - 1):
        total += days[k] / (1.0 + (np.log(infected[k]) * contact) ** 2)
    return total


def mixing(x, t):
    """Chemistry: the free energy of a mixture, some of whose components are not there."""
    return t * np.sum(np.where(x > 0.0, x * np.log(x), 0.0))


def mixing_plain(x, t):
    x = x[np.array([0, 2])]
    return t * np.sum(x * np.log(x))


def queue(arrivals, service):
    """Queueing: waiting times of the servers that are stable."""
    use = arrivals / service
    wait = use / (service * (1.0 - use))
    return np.sum(np.where(use < 1.0, wait, 0.0))


def queue_plain(arrivals, service):
    use = arrivals[:2] / service[:2]
    return np.sum(use / (service[:2] * (1.0 - use)))


def survival(t, shape, scale):
    """Reliability: Weibull's survival function, with parts that never wear."""
    return np.sum(np.exp(-((t / scale) ** shape)))


def survival_plain(t, shape, scale):
    return np.sum(np.exp(-((t / scale[:2]) ** shape))) + 1.0


def decay(gamma, times):
    """Physics: what is left after times of which one is infinite."""
    return np.sum(np.exp(-gamma * times))


def decay_plain(gamma, times):
    return np.sum(np.exp(-gamma * times[:2]))


def gap(y, mu):
    """Statistics: residuals of measurements, some of which are missing."""
    return np.sum(np.where(np.isnan(y), 0.0, (y - mu) ** 2))


def gap_plain(y, mu):
    return np.sum((y[:2] - mu[:2]) ** 2)


def field(x, y):
    """Electrostatics: potentials at points, without those at the charge itself."""
    r = np.sqrt(x**2 + y**2)
    return np.sum(np.where(r > 0.0, 1.0 / r, 0.0))


def field_plain(x, y):
    return np.sum(1.0 / np.sqrt(x[:2] ** 2 + y[:2] ** 2))


def great_circle(a, b):
    """Navigation: distances of places of which some are the same."""
    c = np.sum(a * b, axis=1)
    return np.sum(np.where(c < 1.0, np.arccos(c), 0.0))


def great_circle_plain(a, b):
    return np.sum(np.arccos(np.sum(a[:2] * b[:2], axis=1)))


def growth(c, k):
    """Ecology: a Holling response with an exponent that matters where there is prey."""
    return np.sum(np.where(c > 0.0, c**k / (1.0 + c**k), 0.0))


def growth_plain(c, k):
    return np.sum(c[:2] ** k / (1.0 + c[:2] ** k))


def flow(h):
    """Hydraulics: flow over a weir, for those whose crest is under water."""
    return np.sum(np.maximum(h, 0.0) ** 0.5 * np.where(h > 0.0, 1.0, 0.0))


def flow_plain(h):
    return np.sum(h[:2] ** 0.5)


def soil(theta, n):
    """Soil physics: van Genuchten's conductivity, of layers that are not saturated."""
    m = 1.0 - 1.0 / n
    root = (1.0 - theta ** (1.0 / m)) ** m
    return np.sum(np.where(theta < 1.0, np.sqrt(theta) * (1.0 - root) ** 2, 1.0))


def soil_plain(theta, n):
    m = 1.0 - 1.0 / n
    theta = theta[:2]
    root = (1.0 - theta ** (1.0 / m)) ** m
    return np.sum(np.sqrt(theta) * (1.0 - root) ** 2) + 1.0


def psychometric(p, hits, trials):
    """Psychophysics: a binomial likelihood whose empty cells say nothing."""
    misses = trials - hits
    first = np.where(hits > 0.0, hits * np.log(p), 0.0)
    return np.sum(first + np.where(misses > 0.0, misses * np.log(1.0 - p), 0.0))


def psychometric_plain(p, hits, trials):
    return hits[0] * np.log(p[0]) + (trials[0] - hits[0]) * np.log(1.0 - p[0])


def attention(scores, mask):
    """Learning: a softmax over what is not masked, in a loop."""
    total = 0.0
    for i in range(scores.shape[0]):
        row = scores[i] + mask[i]
        top = np.max(row)
        weights = np.exp(row - top)
        total += np.log(np.sum(weights)) + top + weights[0]
    return total


def attention_plain(scores, mask):
    total = 0.0
    for i in range(scores.shape[0]):
        row = scores[i, :2] + mask[i, :2]
        top = np.max(row)
        weights = np.exp(row - top)
        total += np.log(np.sum(weights)) + top + weights[0]
    return total


def astronomy(e, m):
    """Astronomy: true anomalies of orbits, of those that are ellipses."""
    total = 0.0
    for i in range(len(e)):
        ratio = np.sqrt((1.0 + e[i]) / (1.0 - e[i]))
        anomaly = 2.0 * np.arctan(ratio * np.tan(0.5 * m[i]))
        total += np.where(e[i] < 1.0, anomaly, m[i])
    return total


def astronomy_plain(e, m):
    return (
        np.sum(2.0 * np.arctan(np.sqrt((1.0 + e[:2]) / (1.0 - e[:2])) * np.tan(0.5 * m[:2])))
        + (m[2])
    )


def traffic(density, jam):
    """Transport: speeds by Greenberg's law, where there are cars."""
    speed = np.zeros(len(density))
    for k in range(len(density)):
        speed[k] = np.log(jam / density[k])
    return np.sum(np.where(density > 0.0, speed * density, 0.0))


def traffic_plain(density, jam):
    return np.sum(np.log(jam / density[:2]) * density[:2])


def phylogeny(d):
    """Biology: Jukes and Cantor's distances, saturated ones replaced."""
    far = -0.75 * np.log(1.0 - 4.0 / 3.0 * d)
    return np.sum(np.where(d < 0.75, far, 3.0))


def phylogeny_plain(d):
    return np.sum(-0.75 * np.log(1.0 - 4.0 / 3.0 * d[:2])) + 3.0


def power(v, rated):
    """Energy: a turbine's power, below the rated speed by a root, beyond constant."""
    below = np.sqrt(1.0 - (v / rated) ** 2)
    total = 0.0
    for i in range(len(v)):
        total += 1.0 - below[i] if v[i] < rated else 1.0
    return total


def power_plain(v, rated):
    return np.sum(1.0 - np.sqrt(1.0 - (v[:2] / rated) ** 2)) + 1.0


def shear(rate, n, limit):
    """Rheology: a power law's viscosity, with a plateau."""
    return np.sum(np.minimum(np.abs(rate) ** (n - 1.0), limit))


def shear_plain(rate, n, limit):
    return np.sum(rate[:2] ** (n - 1.0)) + limit


def spectrum(z, sigma):
    """Spectroscopy: lines of widths of which some are zero, as a mask of Gaussians."""
    width = np.where(sigma > 0.0, 1.0 / sigma, 0.0)
    return np.sum(np.where(sigma > 0.0, np.exp(-0.5 * (z * width) ** 2) * width, 0.0))


def spectrum_plain(z, sigma):
    return np.sum(np.exp(-0.5 * (z[:2] / sigma[:2]) ** 2) / sigma[:2])


def hops(rates):
    """Markov chains: times of the states that are left, the sum of several, by a recurrence."""
    time, total = 0.0, 0.0
    for k in range(len(rates)):
        stay = 1.0 / rates[k]
        time = np.where(rates[k] > 0.0, time * 0.5 + stay, time)
        total += time
    return total


def hops_plain(rates):
    time, total = 0.0, 0.0
    for k in range(len(rates)):
        if k != 1:
            time = time * 0.5 + 1.0 / rates[k]
        total += time
    return total


def v(*numbers):
    return np.array(numbers)


#: A program, the same without what is masked, and arguments.
PROGRAMS = [
    (transmitted, transmitted_plain, (v(0.2, 0.4, 1.2), 1.5)),
    (epidemic, epidemic_plain, (v(3.0, 8.0, 0.0), v(1.0, 2.0, 3.0), 0.7)),
    (mixing, mixing_plain, (v(0.3, 0.0, 0.7), 2.0)),
    (queue, queue_plain, (v(1.0, 2.0, 3.0), v(2.0, 3.0, 3.0))),
    (queue, queue_plain, (v(1.0, 2.0, 0.0), v(2.0, 3.0, 0.0))),
    (survival, survival_plain, (1.5, 2.0, v(1.0, 2.0, INF))),
    (decay, decay_plain, (0.3, v(1.0, 2.0, INF))),
    (gap, gap_plain, (v(1.0, 2.0, np.nan), v(0.5, 1.0, 1.5))),
    (field, field_plain, (v(1.0, 2.0, 0.0), v(-1.0, 0.5, 0.0))),
    (
        great_circle,
        great_circle_plain,
        (np.eye(3)[[0, 1, 2]], np.array([[0.6, 0.8, 0.0], [0.0, 0.6, 0.8], [0.0, 0.0, 1.0]])),
    ),
    (growth, growth_plain, (v(0.5, 2.0, 0.0), 1.5)),
    (growth, growth_plain, (v(0.5, 2.0, -1.0), 1.5)),
    (flow, flow_plain, (v(1.0, 4.0, -2.0),)),
    (soil, soil_plain, (v(0.3, 0.8, 1.0), 1.6)),
    (psychometric, psychometric_plain, (v(0.3, 0.0, 1.0), v(2.0, 0.0, 0.0), v(5.0, 0.0, 0.0))),
    (
        attention,
        attention_plain,
        (np.arange(6.0).reshape(2, 3) * 0.3, np.array([[0.0, 0.0, -INF]] * 2)),
    ),
    (astronomy, astronomy_plain, (v(0.1, 0.6, 1.0), v(0.5, 1.0, 2.0))),
    (traffic, traffic_plain, (v(10.0, 40.0, 0.0), 120.0)),
    (phylogeny, phylogeny_plain, (v(0.1, 0.3, 0.75),)),
    (power, power_plain, (v(3.0, 8.0, 12.0), 12.0)),
    (shear, shear_plain, (v(1.0, 2.0, 0.0), 0.4, 50.0)),
    (spectrum, spectrum_plain, (v(0.1, -0.4, 0.3), v(0.5, 1.5, 0.0))),
    (hops, hops_plain, (v(2.0, 0.0, 3.0, 0.5),)),
]


def named(program):
    return program[0].__name__


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("program", PROGRAMS, ids=named)
def test_gradients_are_those_without_the_masked_part(program, compiled):
    masked, plain, arguments = program
    places = tuple(range(len(arguments)))
    value, found = nbta.value_and_grad(masked, places, compiled=compiled)(*arguments)
    want, slopes = nbta.value_and_grad(plain, places, compiled=compiled)(*arguments)
    np.testing.assert_allclose(value, want, rtol=1e-12)
    for one, other in zip(found, slopes, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-14)


#: Of what a parameter saturates, tangents and adjoints of adjoints are infinite, and factors zero.
SMOOTH = [program for program in PROGRAMS if program[0] is not decay]


@pytest.mark.parametrize("program", SMOOTH, ids=named)
def test_second_derivatives_and_forward_mode_too(program):
    masked, plain, arguments = program
    finite = [np.isfinite(a) for a in arguments]
    pairs = zip(arguments, finite, strict=True)
    directions = tuple(np.cos(np.where(ok, a, 0.5 * np.pi)) * ok for a, ok in pairs)
    forward, other = (nbta.jvp(f, arguments, directions)[1] for f in (masked, plain))
    np.testing.assert_allclose(forward, other, rtol=1e-10)
    found, want = (nbta.hvp(f, arguments, directions) for f in (masked, plain))
    for one, other in zip(found, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-13)
