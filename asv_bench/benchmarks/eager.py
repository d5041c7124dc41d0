"""The array's operations from Python: one element a call, and many."""

from functools import partial

import numpy as np

import nbta

from . import common


def assign(values, n, value):
    """NumPy's own."""
    for i in range(n):
        values[i] = value


def write(array, n, value):
    """nbta's."""
    for i in range(n):
        array.write(i, value)


def read(array, n):
    """nbta's."""
    for i in range(n):
        array.read(i)


class EagerWrite(common.Pair):
    """``array.write(i, v)`` against ``a[i] = v``."""

    label = "eager write against a[i] = v"
    params = (("scalar", 8),)
    param_names = ("element",)
    reach = common.Reach("ratio", 8.0)

    def count(self, *params):
        """Calls."""
        return 20_000

    def make_nbta(self, count, element):
        """A fresh array."""
        return partial(
            write, common.touched_array(count, element), count, common.value_for(element)
        )

    def make_peer(self, count, element, *params):
        """A NumPy array."""
        values, _ = common.touched_numpy(count, element)
        return partial(assign, values, count, common.value_for(element))


class EagerRead(EagerWrite):
    """``array.read(i)`` against ``a[i] = v``."""

    label = "eager read against a[i] = v"
    params = (("scalar", 8), (True, False))
    param_names = ("element", "clear_after_read")

    def make_nbta(self, count, element, clear):
        """An array with all slots written."""
        array = common.touched_array(count, element, clear)
        write(array, count, common.value_for(element))
        return partial(read, array, count)


class Create:
    """A new array: nanoseconds."""

    params = ((0, 1000, 1_000_000),)
    param_names = ("size",)

    def setup(self, size):
        self.make(size).write(0, 1.0)

    @staticmethod
    def make(size):
        """An empty array, which is freed when nobody has it."""
        return nbta.TensorArray("float64", size=size, dynamic_size=True, element_shape=())

    def track_create(self, size):
        """With its end."""
        return common.median_seconds(lambda: self.make(size)) * 1e9

    track_create.unit = "ns"


class Bulk:
    """Operations on many slots at once: 8 MB as 1000 vectors, or as so many numbers."""

    params = (("numbers", "vectors"),)
    param_names = ("elements",)
    number, repeat, rounds, warmup_time = 1, 15, 1, 0

    def setup(self, kind):
        """Fresh arrays: an operation uses one up."""
        self.values = np.ones(1 << 20 if kind == "numbers" else (1000, 1024))
        self.order = np.random.default_rng(0).permutation(len(self.values))
        self.empty, self.full = self.new(), self.new().unstack(self.values)
        self.gradients = self.full.grad("gradients")
        for run in (self.empty.size, self.few().stack, lambda: self.few().gather([1, 0])):
            run()
        self.few().grad("gradients").unstack(self.values[:2])

    def new(self):
        """With a slot for each element."""
        return nbta.TensorArray("float64", size=len(self.values), element_shape=self.shape())

    def shape(self):
        """Of an element."""
        return self.values.shape[1:]

    def few(self):
        """An array of two elements, to load kernels with."""
        array = nbta.TensorArray("float64", size=2, element_shape=self.shape())
        return array.unstack(self.values[:2])

    def time_unstack(self, kind):
        """A value's rows into slots that were not touched."""
        self.empty.unstack(self.values)

    def time_stack(self, kind):
        """All slots: a view of them."""
        self.full.stack()

    def time_gather(self, kind):
        """All slots in another order."""
        self.full.gather(self.order)

    def time_scatter(self, kind):
        """Rows into slots in another order."""
        self.empty.scatter(self.order, self.values)

    def time_accumulate(self, kind):
        """Rows into a gradient array whose slots are zeros that take no memory yet."""
        self.gradients.unstack(self.values)
