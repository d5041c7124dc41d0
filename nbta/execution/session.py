"""Session: runs a graph."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, Self

import numpy as np

from nbta import shapes
from nbta.dtypes import as_dtype, as_value, check_plain
from nbta.errors import NbtaError, invalid, located
from nbta.execution.runner import Runner, Runners, check_compiled
from nbta.graph.graph import Graph, current
from nbta.graph.operation import HANDLE, Operation, Tensor, is_inexact
from nbta.locations import hide_own_frames
from nbta.structure import leaves, pack
from nbta.symbolic import SymbolicTensorArray

if TYPE_CHECKING:
    import os

    from nbta.typing import Compiled


class Session:
    """Run a graph, or parts of it.

    Parameters
    ----------
    graph : Graph, optional
        By default, the graph that is being built.

    Attributes
    ----------
    graph : Graph
        The graph.
    last : Runner or None
        The last run; ``last.explain()`` describes it.

    Raises
    ------
    InvalidArgumentError
        If there is no graph.

    Examples
    --------
    >>> with nbta.Graph().as_default() as g:
    ...     x = nbta.placeholder("float64", (None,), name="x")
    ...     total = nbta.sum(x)
    >>> with nbta.Session(g) as session:
    ...     session.run({"total": total, "x": x}, {x: [1.0, 2.0]})
    {'total': np.float64(3.0), 'x': array([1., 2.])}
    """

    def __init__(self, graph: Graph | None = None) -> None:
        graph = graph or current()
        if not isinstance(graph, Graph) or graph.root is not graph:
            message = "Session: give a Graph, or make the session while one is being built"
            raise invalid("graph", message)
        self.graph = graph
        self._runners = Runners(graph)
        self.last: Runner | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        return None

    def run(
        self,
        fetches: Any,
        feed_dict: dict[Any, Any] | None = None,
        compiled: Compiled = "auto",
        trace: str | os.PathLike[str] | IO[str] | None = None,
    ) -> Any:
        """Compute the values of fetches.

        Parameters
        ----------
        fetches : Tensor, TensorArray, Operation, name, or nested lists, tuples and dicts of these
            A name is that of an operation, or ``operation:index`` for a tensor.
        feed_dict : dict, optional
            Values by tensor, or by the tensor's name; any tensor may be fed. Arrays are cast within
            their kind (float64 to float32) if no integer changes and no float overflows.
        compiled : {"auto", True, False}
            Whether to run the graph as one compiled function. With False, operations run one by
            one. With "auto", they do so until runs of the same fetches have taken as long as
            compiling is estimated to take, in CPU seconds; then the graph is compiled if possible.
            Compiled code may add terms in a different order, so the last digits may differ.
        trace : path or text file, optional
            Where to write a timeline, in the Trace Event Format of Perfetto and chrome://tracing; a
            file whose name ends in ``.gz`` is compressed. It changes neither the way in which the
            graph runs nor the results. See the notes.

        Returns
        -------
        structure like ``fetches``
            Arrays, and scalars for rank 0; eager arrays for TensorArrays; None for operations.

        Raises
        ------
        InvalidArgumentError
            If a fetch or a feed belongs to another graph, if a value does not fit its tensor, and
            for errors of operations; the message names the operation, and the iteration of a loop.
        FailedPreconditionError
            If a placeholder is not fed.
        UnimplementedError
            With ``compiled=True``, if the graph cannot be compiled.
        OSError
            If the trace cannot be written; nothing was run then.

        Notes
        -----
        A trace contains one event for each operation that runs by itself, with the type, shapes,
        dtypes and bytes of its results, and the array and slots that it uses. Operations in loops,
        branches and rows of `map_fn` are nested in them, by iteration. Arrows follow the flows, and
        a counter shows the bytes of all arrays of the process. A trace is therefore most detailed
        with ``compiled=False``. A compiled function is one event, after those of the passes and of
        the compiler, if these had to run. The function then runs once more, in a separate build
        that reads a clock after each part of its code; these parts are shown in their own row. That
        build has to be compiled (once, as it is saved on disk), and is left out if the graph calls
        users' functions.

        A file contains at most 200,000 events of loops and branches, and 50,000 of compiled code;
        if there are more, it says so at its end, under ``otherData``. If a run fails, the file is
        still complete, with the error in the events that it interrupted.

        Examples
        --------
        >>> import io, json
        >>> with nbta.Graph().as_default():
        ...     doubled = nbta.add(1.0, 1.0, name="doubled")
        ...     file = io.StringIO()
        ...     nbta.Session().run(doubled, trace=file)
        np.float64(2.0)
        >>> events = json.loads(file.getvalue())["traceEvents"]
        >>> [event["name"] for event in events if event["ph"] == "X"]
        ['doubled', 'run']
        """
        try:
            check_compiled(compiled)
            asked = [self._fetched(fetch) for fetch in leaves(fetches)]
            feeds = self._feeds({} if feed_dict is None else feed_dict)
            given = [_fed(tensor, value) for tensor, value in feeds.items()]
            return pack(fetches, self.runner(asked, list(feeds))(given, compiled, trace))
        except Exception as error:
            hide_own_frames(error)
            raise

    def runner(self, asked: list[Any], given: list[Tensor]) -> Runner:
        """Return what computes fetches from the values of tensors; it becomes ``last``.

        Parameters
        ----------
        asked : list of Tensor or Operation
            What to compute.
        given : list of Tensor
            What is fed.

        Returns
        -------
        Runner
            What runs the operations.
        """
        self.last = found = self._runners.of(asked, given)
        return found  # ``last`` may be that of another thread by now

    def _feeds(self, feed_dict):
        """Value by tensor."""
        if not isinstance(feed_dict, dict):
            message = f"run: feed_dict must be a dict, value by tensor, not {feed_dict!r}"
            raise invalid("feed", message)
        feeds = {}
        for key, value in feed_dict.items():
            tensor = self._tensor("feed_dict", key)
            if tensor in feeds:
                message = f"run: feed_dict: {tensor.name!r} is there twice; give it one value"
                raise invalid("feed", message)
            feeds[tensor] = value
        return feeds

    def _fetched(self, fetch):
        if isinstance(fetch, SymbolicTensorArray):
            self._tensor("fetches", fetch.flow)
            return fetch
        if isinstance(fetch, Operation):
            return self._owned("fetches", fetch, fetch.graph)
        if isinstance(fetch, str) and ":" not in fetch:
            return self._operation("fetches", fetch)
        return self._tensor("fetches", fetch)

    def _tensor(self, argument, item):
        if isinstance(item, str):
            name, _, index = item.partition(":")
            outputs = self._operation(argument, name).outputs
            if (index or "0") not in map(str, range(len(outputs))):
                message = f"run: {argument}: {item!r}: {name!r} has {len(outputs)} results, from 0"
                raise invalid("name", message)
            return outputs[int(index or "0")]
        if not isinstance(item, Tensor):
            message = (
                f"run: {argument}: {item!r} is not a tensor of a graph; give {_KEYS[argument]}"
            )
            raise invalid("fetch", message)
        return self._owned(argument, item, item.graph)

    def _operation(self, argument, name):
        try:
            return self.graph.operation(name)
        except NbtaError as error:
            raise located(error, f"run: {argument}") from None

    def _owned(self, argument, item, graph):
        if graph is not self.graph:
            inside = graph.root is self.graph
            message = f"run: {argument}: {item.name!r} " + (
                "belongs to the body of a loop or branch; return it from there"
                if inside
                else "belongs to another graph; give what this session's graph has"
            )
            raise invalid("graph", message)
        return item.itself if getattr(item, "weak", None) is not None else item


_KEYS = {
    "fetches": "tensors, TensorArrays, operations, or names of them",
    "feed_dict": "tensors or names of them",
}


def _fed(tensor, value):
    """A value in the form of the tensor that it is given for."""
    if tensor.kind == HANDLE:
        message = f"run: feed_dict: {tensor.name!r} is a handle, which only a run can make"
        raise invalid("feed", message)
    check_plain(f"run: feed_dict: {tensor.name!r}", value)
    try:
        array = _as_fed_array(tensor, value)
    except NbtaError as error:
        raise _unfit(tensor, value, error) from None
    if not fits(tensor.spec.shape, array.shape):
        message = (
            f"run: feed_dict: {tensor.name!r} takes shape {shapes.text(tensor.spec.shape)}, and "
            f"the value has shape {array.shape}; reshape it"
        )
        raise invalid("feed_shape", message)
    return array[()]


def _as_fed_array(tensor, value):
    return as_value("feed", repr(tensor.name), within_kind(value, tensor.dtype), tensor.dtype)


def within_kind(value, dtype):
    """An array in another dtype of its kind, where no integer changes and no float overflows.

    All other values as they are.
    """
    if isinstance(value, Tensor) or getattr(value, "dtype", dtype) == dtype:
        return value
    array = np.asarray(value)
    exact = not is_inexact(as_dtype(array.dtype))
    same_kind = np.can_cast(array.dtype, dtype, "same_kind")
    complex_to_real = array.dtype.kind == "c" != dtype.kind
    if complex_to_real or not (same_kind or (not exact and is_inexact(dtype))):
        return array
    with np.errstate(all="ignore"):
        cast = array.astype(dtype)
    kept = cast.astype(array.dtype) == array if exact else np.isfinite(cast) == np.isfinite(array)
    return cast if kept.all() else array


def _unfit(tensor, value, error):
    """The error for a value that is no array of the tensor's dtype."""
    text = str(error).removeprefix(f"feed on {tensor.name!r}: ").removeprefix("dtype: ")
    text, loss, remedy = text.replace("the array holds", "it takes").partition("; where the loss")
    if isinstance(value, Tensor | SymbolicTensorArray):
        text = f"the value is symbolic itself, {value!r}; run that first, and feed the result"
    elif loss and np.asarray(value).dtype.kind in "OSU":
        text += "; give numbers"
    else:
        text += loss + remedy
    return invalid("feed_dtype", f"run: feed_dict: {tensor.name!r}: {text}")


def fits(pattern, shape):
    """Whether a value of a shape may be fed."""
    if pattern is None:
        return True
    return len(pattern) == len(shape) and all(
        type(known) is not int or known == dimension
        for known, dimension in zip(pattern, shape, strict=True)
    )
