"""A determinant by expansion by minors, each of which is computed once.

An expansion that computes each minor where it is needed takes ``n!`` products in place of
``n * 2**n``: times compare with those of tools that do so only as ratios.
"""

from itertools import combinations

import numpy as np
from numba import njit

import nbta

from ..programs.program import rng
from .evaluation import Eval, compiled, floats, gradient


@njit(cache=True)
def determinant(a):
    """By the minors of the last rows for each set of columns, a bit for each column."""
    n = len(a)
    minors, sizes = np.zeros(2**n), np.zeros(2**n, np.int64)
    minors[0] = 1.0
    for columns in range(1, 2**n):
        sizes[columns] = sizes[columns // 2] + columns % 2
        row, sign, total = n - sizes[columns], 1.0, 0.0
        for j in range(n):
            if columns >> j & 1:
                total += sign * a[row, j] * minors[columns - (1 << j)]
                sign = -sign
        minors[columns] = total
    return minors[2**n - 1]


def minors_of(n):
    """For each size and each set of so many columns: its columns, and the sets without each."""
    found = []
    for size in nbta.unroll(range(1, n + 1)):
        sets = list(combinations(range(n), size))
        smaller = {each: place for place, each in enumerate(combinations(range(n), size - 1))}
        without = [
            [smaller[each[:k] + each[k + 1 :]] for k in nbta.unroll(range(size))] for each in sets
        ]
        found.append((np.array(sets), np.array(without)))
    return found


def determinant_in_numpy(a):
    """The same, for all sets of as many columns at once."""
    n, minors = len(a), np.ones(1)
    for columns, without in minors_of(n):
        size = columns.shape[1]
        signs = (-1.0) ** np.arange(size)
        minors = np.sum(signs * a[n - size][columns] * minors[without], axis=1)
    return minors[0]


def functions(determinant):
    return {"primal": compiled(determinant), "gradient": gradient(determinant)}


EVAL = Eval(
    objectives={"loops": determinant, "numpy": determinant_in_numpy},
    arguments=lambda data: (floats(data["A"])[0].reshape(data["ell"], data["ell"]),),
    functions=functions,
    outputs={"gradient": lambda found: found.ravel().tolist()},
    generate=lambda n: {"A": rng(n).random(n * n).tolist(), "ell": n},
    sizes=((7,), (9,), (11,)),
    small=(4,),
    pair=("primal", "gradient"),
)
