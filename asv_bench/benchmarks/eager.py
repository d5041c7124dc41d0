"""Writes and reads from Python, one element a call."""

from functools import partial

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
