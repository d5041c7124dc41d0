"""nbta.plot: a graph as a picture."""

import shutil

from nbta.errors import FailedPreconditionError, invalid
from nbta.graph.graph import Graph, all_bodies, current
from nbta.graph.operation import Operation
from nbta.inspect.diagram import diagram_of
from nbta.inspect.picture import (
    Picture,
    by_graphviz,
    by_matplotlib,
    format_of,
    is_there,
    missing_packages,
    need_matplotlib,
)


def plot(graph=None, file=None, *, depth: int | None = None, engine: str | None = None) -> Picture:
    """Draw a graph.

    Boxes are operations, with the dtypes and shapes of what they give; drums are arrays. Solid
    arrows are data, dashed blue ones flows, which only say what comes after what; thin grey ones
    say on which array an operation works, and dotted ones are control edges. A loop or a branch is
    a frame around what it runs: the bar at its top shows its variables and the tensors that it
    captures, the bar at its bottom what it gives. What a call of `gradients` made has a colour of
    its own, also where it is part of a forward loop. A write that may never run has a thick border,
    and two operations that race are joined (see `check_flow`). Scalar constants stand where they
    are used.

    Parameters
    ----------
    graph : Graph, function or Operation, optional
        A graph; the body of a loop or branch; an operation that has bodies; a function made by
        `nbta.function`, `grad` or `value_and_grad`, of which the last call's graph is drawn as it
        was traced; or ``function.graph``, what became of that in all passes. By default the graph
        that is being built.
    file : path, optional
        Where to write the picture: its name ends in ``.svg``, ``.png`` or ``.pdf``.
    depth : int, optional
        How many frames within frames are drawn; what is deeper becomes one box. 0 folds all.
    engine : {None, "graphviz", "matplotlib"}
        By default graphviz where it is installed (the package and its program ``dot``), else
        matplotlib, with a simpler layout.

    Returns
    -------
    Picture
        Notebooks show it; ``picture.svg`` and ``picture.save(file)``.

    Raises
    ------
    InvalidArgumentError
        For what is no graph, and for a depth, an engine or a file name that cannot be.
    FailedPreconditionError
        Where the engine is not installed, and for a function that was not called yet.

    Examples
    --------
    >>> with nbta.Graph().as_default() as g:
    ...     x = nbta.placeholder("float64", (), name="x")
    ...     ta = nbta.TensorArray("float64", size=1).write(0, x)
    ...     dx, = nbta.gradients(ta.read(0) ** 2, [x])
    >>> nbta.plot(g)
    <nbta picture by ...>
    """
    if file is not None:
        format_of(file)
    _check(depth, engine)
    picture = _drawn(diagram_of(*_graph_of(graph), depth), engine)
    if file is not None:
        picture.save(file)
    return picture


def _check(depth, engine):
    if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int) or depth < 0):
        raise invalid("depth", f"plot: depth must be None or an int from 0 on, not {depth!r}")
    if engine not in (None, "graphviz", "matplotlib"):
        message = f'plot: engine must be "graphviz", "matplotlib" or None, not {engine!r}'
        raise invalid("engine", message)


def _graph_of(graph):
    """What to draw, and the results of a function."""
    graph = current() if graph is None else graph
    if hasattr(graph, "traced"):  # a function made by nbta.function
        return graph.traced()
    if isinstance(graph, Graph) or (isinstance(graph, Operation) and all_bodies(graph)):
        return graph, ()
    message = (
        f"plot: {graph!r} is no graph; give a Graph, a function made by nbta.function that was "
        f"called, or a loop or branch (an Operation with bodies)"
    )
    raise invalid("graph", message)


def _drawn(diagram, engine):
    if engine is None:
        engine = next((name for name in _LACKS if not _LACKS[name]()), None)
        if engine is None:
            raise missing_packages("plot needs graphviz (with its program dot) or matplotlib")
    lacking = _LACKS[engine]()
    if lacking:
        raise lacking
    if engine == "graphviz":
        from nbta.inspect.dot import digraph

        return by_graphviz(digraph(diagram))
    from nbta.inspect.figure import figure_of

    return by_matplotlib(figure_of(diagram))


def _lacks_graphviz():
    """The error that says what graphviz lacks; None where it is there."""
    if not is_there("graphviz"):
        return missing_packages('plot(engine="graphviz") needs the package graphviz')
    if shutil.which("dot") is None:
        message = (
            'plot(engine="graphviz") needs the program dot of Graphviz, which is not on the path; '
            'install Graphviz (graphviz.org), or use engine="matplotlib"'
        )
        error = FailedPreconditionError(message)
        error.reason = "missing_dot"
        return error
    return None


def _lacks_matplotlib():
    return need_matplotlib('plot(engine="matplotlib")')


_LACKS = {"graphviz": _lacks_graphviz, "matplotlib": _lacks_matplotlib}
