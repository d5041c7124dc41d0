"""What Python and NumPy can ask of a length, each as a function of it that gives a number."""

import math
import operator

import numpy as np


def _matched(n):
    match n:
        case 0:
            return 5.0
        case 2 | 3:
            return 6.0
    return 7.0


def _looped(n):
    total = 0.0
    for i in range(n):
        total += 0.5 * i
    return total


def _caught(n):
    try:
        return [1.0, 2.0, 3.0][n]
    except IndexError:
        return -1.0


#: Those that Python decides: a graph for any length cannot do them.
DECIDING = {
    "==": lambda n: 1.0 if n == 3 else -1.0,
    "== a float": lambda n: 1.0 if n == 2.0 else -1.0,
    "== 1": lambda n: 1.0 if n == 1 else -1.0,
    "!=": lambda n: 1.0 if n != 3 else -1.0,
    "reflected !=": lambda n: 1.0 if 2 != n else -1.0,  # noqa: SIM300
    "<": lambda n: 1.0 if n < 3 else -1.0,
    "<=": lambda n: 1.0 if n <= 2 else -1.0,
    "> a float": lambda n: 1.0 if n > 2.5 else -1.0,
    ">=": lambda n: 1.0 if n >= 2 else -1.0,
    "> 0": lambda n: 1.0 if n > 0 else -1.0,
    "chain": lambda n: 1.0 if 1 < n < 5 else -1.0,
    "both": lambda n: 1.0 if n > 2 and n < 5 else -1.0,
    "either": lambda n: 1.0 if n == 2 or n == 5 else -1.0,
    "& of truths": lambda n: 1.0 if (n > 2) & (n < 5) else -1.0,
    "| of truths": lambda n: 1.0 if (n < 2) | (n == 5) else -1.0,
    "not of a truth": lambda n: 1.0 if not n > 2 else -1.0,
    "bool": lambda n: 1.0 if n else -1.0,
    "not": lambda n: 1.0 if not n else -1.0,
    "or": lambda n: n or 7,
    "and": lambda n: n and 7,
    "any": lambda n: float(any([n, 0])),
    "hash": lambda n: hash(n) % 7,
    "dict": lambda n: {2: 1.0, 3: 2.0}.get(n, 3.0),
    "in a tuple": lambda n: 1.0 if n in (2, 5) else -1.0,
    "in a set": lambda n: 1.0 if n in {2, 5} else -1.0,
    "in a range": lambda n: 1.0 if n in range(2, 4) else -1.0,
    "index of": lambda n: [0, 1, 2, 3, 5].index(n),
    "match": _matched,
    "for": _looped,
    "len of a list": lambda n: len([0] * n),
    "len of a reflected list": lambda n: len(n * [0]),
    "a list's slice": lambda n: sum([1.0, 2.0, 4.0, 8.0][:n]),
    "a list's item": _caught,
    "text's slice": lambda n: float("12345678"[: n + 1]),
    "int": lambda n: int(n) * 2,
    "float": lambda n: float(n) * 0.5,
    "complex": lambda n: complex(n).real,
    "operator.index": lambda n: operator.index(n),
    "round": lambda n: round(n),
    "f-string": lambda n: float(f"{n}.5"),
    "format": lambda n: float(f"1{n:03d}"),
    "str": lambda n: float(str(n)),
    "text %": lambda n: float("%d" % n),  # noqa: UP031
    "min": lambda n: min(n, 3),
    "max": lambda n: max(3, n),
    "sorted": lambda n: sorted((n, 3, 1))[1],
    "bits": lambda n: (n & 1) + (n | 4) + (n ^ 3) + (n << 1) + (n >> 1) + ~n,
    "even": lambda n: 1.0 if n % 2 == 0 else -1.0,
    "floor": lambda n: math.floor(n / 2) + math.ceil(n / 2) + math.trunc(n / 2),
    "math.sqrt": lambda n: math.sqrt(n),
    "gcd": lambda n: math.gcd(n, 4),
    "large power": lambda n: n**5 % 1000,
    "power of 2": lambda n: 2**n,
    "large product": lambda n: n * 10**18 * 10 % 1000 + n * 3**60 % 7,
    "inverse": lambda n: n**-1,
    "truth as a number": lambda n: (n > 2) * 3 + True,
    "np.zeros": lambda n: np.zeros(n).size + np.zeros((n, 2)).size,
    "np.ones": lambda n: np.ones((2, n)).sum(),
    "np.full": lambda n: np.full(n, 1.5).sum(),
    "np.empty": lambda n: np.empty(n).shape[0],
    "np.eye": lambda n: np.eye(n).sum(),
    "np.arange": lambda n: np.arange(n).sum(),
    "np.linspace": lambda n: np.linspace(0.0, 1.0, n).sum(),
    "np.broadcast_to": lambda n: np.broadcast_to(1.0, (n,)).sum(),
    "np.reshape": lambda n: np.reshape(np.zeros(2 * 3 * 5 * 0), (n, 0)).shape[0],
    "np.array": lambda n: np.array([n, 2]).sum(),
    "np.asarray": lambda n: np.asarray(n) * 2.0,
    "np.prod": lambda n: np.prod((n, 2)),
    "np.random": lambda n: np.random.default_rng(n).normal(),
    "np.int64": lambda n: float(np.int64(n)),
}
#: Those that are arithmetic: one graph does them for all lengths.
COMPUTING = {
    "itself": lambda n: n,
    "+": lambda n: n + 1,
    "reflected +": lambda n: 1 + n,
    "-": lambda n: n - 1,
    "reflected -": lambda n: 7 - n,
    "*": lambda n: 2 * n * 3,
    "* a float": lambda n: n * 0.5,
    "/": lambda n: n / 4,
    "//": lambda n: n // 2,
    "%": lambda n: n % 3,
    "divmod": lambda n: sum(divmod(n, 3)),
    "negative": lambda n: -n,
    "positive": lambda n: +n,
    "abs": lambda n: abs(n - 3),
    "** 2": lambda n: n**2,
    "math.prod": lambda n: math.prod((n, 2)),
    "sum": lambda n: sum((n, 2)),
    "polynomial": lambda n: (n - 1) * (n + 1) + n * 2,
    "less than 0": lambda n: 1.0 if n < 0 else -1.0,
    "is None": lambda n: 1.0 if n is None else -1.0,
    "with itself": lambda n: 1.0 if n == n and n <= n else -1.0,
}
#: One graph too, as arrays without elements have their own, in which Python says what 0 gives.
DIVIDING = {
    "1 /": lambda n: 1 / n,
    "1.5 /": lambda n: 1.5 / n,
    "7 //": lambda n: 7 // n,
    "7 %": lambda n: 7 % n,
    "/ itself less 1": lambda n: n / (n - 1),
    "/ root": lambda n: 1 / n**0.5,
    "** -0.5": lambda n: n**-0.5,
    "mean or nothing": lambda n: 1.0 / n if n else 0.0,
    "where": lambda n: 1.0 if n > 0 else -1.0,
}
ALL = {**DECIDING, **COMPUTING, **DIVIDING}
#: Asked of arrays.
OF_ARRAYS = {
    "shape ==": lambda x, y: 1.0 if x.shape == y.shape else -1.0,
    "shape !=": lambda x, y: 1.0 if x.shape != y.shape else -1.0,
    "shape == a tuple": lambda x, y: 1.0 if x.shape == (3,) else -1.0,
    "its own shape": lambda x, y: 1.0 if x.shape == (x * 2).shape else -1.0,
    "shape in": lambda x, y: 1.0 if x.shape in [(2,), (5,)] else -1.0,
    "a dict by shape": lambda x, y: {(2,): 1.0, (3,): 2.0}.get(x.shape, 3.0),
    "shape's text": lambda x, y: len(f"{x.shape}") + len(str(x.shape)) + hash(f"{x.shape}") % 5,
    "part of a shape": lambda x, y: 1.0 if (*x.shape, 2)[0:1] == (3,) else -1.0,
    "order": lambda x, y: 1.0 if x.shape < y.shape else -1.0,
    "lengths": lambda x, y: 1.0 if len(x) == len(y) else -1.0,
    "length": lambda x, y: len(x) * 2.0,
    "sizes": lambda x, y: 1.0 if x.size > y.size else -1.0,
    "size": lambda x, y: x.size * 0.5,
    "rank": lambda x, y: x.ndim + len(x.shape),
    "np.zeros": lambda x, y: np.zeros(x.shape).size + np.ones(x.shape + y.shape).size,
    "product": lambda x, y: math.prod(x.shape + y.shape),
    "range": lambda x, y: sum(0.5 * i for i in range(len(x))),
    "minimum": lambda x, y: min(x.shape[0], y.shape[0]),
}
