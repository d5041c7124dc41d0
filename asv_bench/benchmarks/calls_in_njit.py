"""Calls of a gradient in an ``@njit`` loop: of numbers, arrays, records and batches."""

import numba
import numpy as np

import nbta

CALLS = 10_000


def product(x, y):
    return x * x * y


def distance(q, data, scale):
    total = 0.0
    for i in range(len(q)):
        total += scale[i] * (q[i] - data[i]) ** 2
    return total


class CallsInNjit:
    """Seconds for ten thousand calls of a value and gradient, for two numbers and three arrays."""

    def setup(self):
        numbers = nbta.value_and_grad(product, argnums=(0, 1), compiled=True)
        arrays = nbta.value_and_grad(distance, compiled=True)

        @numba.njit
        def of_numbers(x, y, count):
            for _ in range(count):
                _, (dx, dy) = numbers(x, y)
                x += 1e-12 * dx + 1e-12 * dy
            return x

        @numba.njit
        def of_arrays(q, data, scale, count):
            total = 0.0
            for _ in range(count):
                value, g = arrays(q, data, scale)
                total += value + g[0]
            return total

        @numba.njit
        def into_an_array(q, data, scale, out, count):
            total = 0.0
            for _ in range(count):
                value, g = arrays(q, data, scale, out=out)
                total += value + g[0]
            return total

        self.numbers, self.arrays, self.into = of_numbers, of_arrays, into_an_array
        self.given = np.ones(4), np.zeros(4), np.ones(4)
        self.time_two_numbers()
        self.time_three_arrays()
        self.time_three_arrays_into_a_given_one()

    def time_two_numbers(self):
        self.numbers(1.0, 2.0, CALLS)

    def time_three_arrays(self):
        self.arrays(*self.given, CALLS)

    def time_three_arrays_into_a_given_one(self):
        self.into(*self.given, np.empty(4), CALLS)


def weighed(x, n):
    """A sum whose weights Python makes, for which it needs their number."""
    return np.sum(x) * np.sum(np.linspace(0.0, 1.0, n))


class WholeNumbersInNjit:
    """Seconds for 10,000 calls with four values of a whole number, one after another."""

    def setup(self):
        gradient = nbta.value_and_grad(weighed, compiled=True)

        @numba.njit
        def of_values(x, count):
            total = 0.0
            for k in range(count):
                total += gradient(x, 3 + k % 4)[0]
            return total

        self.of_values, self.x = of_values, np.ones(4)
        self.time_values()

    def time_values(self):
        self.of_values(self.x, CALLS)


PAIR = np.dtype([("x", np.float64), ("y", np.float64)])


class RecordsInNjit:
    """Seconds for ten thousand calls of a gradient, at a record and at an array of four."""

    def setup(self):
        one = nbta.grad(lambda r: r["x"] * r["x"] * r["y"], compiled=True)
        several = nbta.grad(lambda r: np.sum(r["x"] * r["y"]), compiled=True)

        @numba.njit
        def of_one(records, count):
            total = 0.0
            for k in range(count):
                total += one(records[k % len(records)]).x
            return total

        @numba.njit
        def of_several(records, count):
            total = 0.0
            for _ in range(count):
                total += several(records)[0].x
            return total

        self.one, self.several, self.records = of_one, of_several, np.ones(4, PAIR)
        self.time_a_record()
        self.time_four_records()

    def time_a_record(self):
        self.one(self.records, CALLS)

    def time_four_records(self):
        self.several(self.records, CALLS)


class BatchesInNjit:
    """Seconds for so many calls of a gradient over a batch that they have 10,000 items."""

    params = ((4, 64, 1000), (0, 1))
    param_names = ("items", "axis")

    def setup(self, items, axis):
        gradient = nbta.value_and_grad(distance, batch_axis=(None, axis, None), compiled=True)

        @numba.njit
        def of_batches(q, data, scale, count):
            total = 0.0
            for _ in range(count):
                value, g = gradient(q, data, scale)
                total += value + g[0]
            return total

        self.batches = of_batches
        data = np.zeros((4, items) if axis else (items, 4))
        self.given = np.ones(4), data, np.ones(4)
        self.time_batches(items, axis)

    def time_batches(self, items, axis):
        self.batches(*self.given, CALLS // items)
