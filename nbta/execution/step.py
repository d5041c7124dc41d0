"""What belongs to one run: its arrays, by the numbers that handles are."""

import itertools

from nbta.errors import invalid
from nbta.execution.batch import Items, one_by_one
from nbta.execution.plan import body_function
from nbta.tensor_array import TensorArray

#: What errors call a row.
ROW = "row {} of map_fn"


class TooLongError(Exception):
    """A run takes so many operations that it pays to compile the program."""


class Step:
    """The container of a run.

    Parameters
    ----------
    limit : int, optional
        How many operations it may take.

    Attributes
    ----------
    operations : int
        How many it took.
    lengths : dict or None
        By `Dim`, those of what the run was given, once it began.
    """

    def __init__(self, limit=None):
        self.operations, self._limit = 0, limit
        self._arrays: list[TensorArray] = []
        self._gradients: dict[tuple[int, str], int] = {}
        self._functions = {}
        self.lengths = None
        self._numbers = itertools.count()

    def count(self, operations: int) -> None:
        """Count operations, and stop the run where there are too many to go on one by one.

        Raises
        ------
        TooLongError
        """
        self.operations += operations
        if self._limit is not None and self.operations > self._limit:
            raise TooLongError

    def add(self, array: TensorArray) -> int:
        """Keep an array; its handle's value."""
        self._arrays.append(array)
        return len(self._arrays) - 1

    def number(self) -> int:
        """One that this run has not given before."""
        return next(self._numbers)

    def array(self, handle) -> TensorArray:
        """The array of a handle.

        Raises
        ------
        InvalidArgumentError
            For the handle of another run.
        """
        if not 0 <= handle < len(self._arrays):
            raise invalid("handle", f"there is no array {handle} in this run; handles end with it")
        return self._arrays[handle]

    def gradient(self, handle, source: str, clear_after_read=None) -> int:
        """The handle of a gradient array, looked up or made."""
        key = (handle, source)
        array = self.array(handle)
        if key not in self._gradients or array.closed:
            clear = not array.is_gradient if clear_after_read is None else clear_after_read
            made = array.grad(source, clear_after_read=clear)
            self._gradients[key] = self.add(made)
        return self._gradients[key]

    def each(self, graph, shared, columns, sums, threads) -> list:
        """Results of a body for many inputs; see `nbta.execution.batch.run_batch`."""
        run, items = self.function(graph), Items(shared, columns, ROW)
        return one_by_one(items, lambda item: run(self, items.given(item)), sums, [1] * len(sums))

    def function(self, body):
        """What runs a sub-graph; found once a run, as a graph may grow between runs."""
        if body not in self._functions:
            self._functions[body] = body_function(body)
        return self._functions[body]
