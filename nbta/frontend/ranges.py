"""Items that are found by their number, and ranges whose bounds the run may tell."""

import operator

from nbta.errors import invalid
from nbta.frontend import python_numbers
from nbta.frontend.array_wrappers import wrapped
from nbta.frontend.problems import here
from nbta.graph.operation import Tensor
from nbta.ops.core.arithmetic import floor_divide, maximum
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.core.filling import arange
from nbta.ops.numbers import Number


class Indexed:
    """Items that are found by their number.

    Attributes
    ----------
    count : int or Tensor
        How many there are.
    item : callable
        Of the number.
    count_now : callable or None
        Gives in each iteration how many there are, where an iteration may change that.
    """

    count_now = None

    def __init__(self, count, item, count_now=None):
        self.count, self.item, self.count_now = count, item, count_now

    @property
    def is_countable(self):
        """Whether Python can know how many there are, if in a trace for this length alone."""
        return _is_countable(self.count)

    def __iter__(self):
        return (self.item(k) for k in range(known_count(self)))

    def __len__(self):
        return known_count(self)


class Once:
    """An iterator over such items, as `enumerate` or `zip` gives it: each item is given once.

    Attributes
    ----------
    items : Indexed
        What is left, where Python has not begun to take item after item.
    begun : iterator or None
        What gives the others, where it has.
    """

    begun = None

    def __init__(self, items):
        self.items = items

    def __iter__(self):
        if self.begun is None:
            self.begun = iter(self.items)
        return self

    def __next__(self):
        return next(iter(self).begun)


def _is_countable(number):
    return isinstance(number, Number) or not isinstance(number, Tensor)


def known_count(items) -> int:
    """The number of items, which Python must know."""
    count = items.count
    if isinstance(count, Number):
        return count.ask("the number of iterations")
    if isinstance(count, Tensor):
        message = (
            f"{here()}: the number of items is known only when the function runs; write a "
            f"for loop over them that fills an array"
        )
        raise invalid("symbolic", message)
    return count


class Range(Indexed):
    """A `range` whose bounds may be known only when the function runs."""

    is_range = True  # for branches that choose one

    def __init__(self, start, stop, step):
        self.start, self.stop, self.step = start, stop, step

    def __getitem__(self, k):
        if isinstance(k, slice):
            return self._after(k)
        return self.item(k if not isinstance(k, int) or k >= 0 else self.count + k)

    def _after(self, part):
        """The range without its first ones."""
        first = part.start or 0
        if (
            part.stop is not None
            or part.step not in (None, 1)
            or not (isinstance(first, int) and first >= 0)
        ):
            message = (
                f"{here()}: a slice of a range whose bounds only the run knows; give range() the "
                "bounds of the slice"
            )
            raise invalid("symbolic", message)
        return Range(self.start + first * self.step, self.stop, self.step)

    def __iter__(self):
        if not self.is_countable:
            message = (
                f"{here()}: Python iterates over a range whose bounds are known only when the "
                f"function runs; name the argument in static_argnums, or write a for loop that "
                f"fills an array"
            )
            raise invalid("symbolic", message)
        return iter(range(*map(operator.index, (self.start, self.stop, self.step))))

    @property
    def is_countable(self):
        """Whether Python can know how many integers there are."""
        return all(map(_is_countable, (self.start, self.stop, self.step)))

    @property
    def count(self):
        """How many integers there are."""
        left = self.stop - self.start if self.step > 0 else self.start - self.stop
        size = abs(self.step)
        left = left if size == 1 else floor_divide(as_tensor(left) + (size - 1), size)
        return maximum(as_tensor(left), 0)

    def as_array(self):
        """All integers as an array."""
        return wrapped(arange(self.count) * self.step + self.start)

    def item(self, k):
        """The integer of a number."""
        found = self.start + k * self.step
        python_numbers.note(found)
        return found
