"""Sparse Jacobians and Hessians: sparse_jacobian, sparse_hessian."""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from nbta.api.derivatives import calls_users, directional, free, gradient_of
from nbta.api.differentiated import Differentiated, places_of
from nbta.api.sequences import map_fn
from nbta.api.static import Static
from nbta.api.tracing import CONVERT, Function, P, any_tensor, as_leaf
from nbta.control.reverse_mode import gradients
from nbta.errors import PerformanceWarning, invalid
from nbta.frontend.arguments import taken_apart
from nbta.frontend.entry import prepared
from nbta.frontend.pickling import Sent
from nbta.graph.graph import current, leaving
from nbta.graph.operation import Tensor
from nbta.locations import warn_caller
from nbta.ops.core.arithmetic import equal
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.core.filling import arange
from nbta.ops.core.shaping import cast, reshape, shape_of
from nbta.structure import describe, leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import scipy.sparse

    from nbta.typing import ArrayLike, Compiled

#: Patterns and colours of so many kinds of arguments are saved.
_SAVED = 8


class SparseJacobian(Sent, Generic[P]):
    """A function of the arguments of ``f`` that returns its Jacobian as a sparse array.

    Parameters
    ----------
    f : callable
        The user's function.
    argnums : int
        The argument to differentiate with respect to.
    pattern : sparse array or numpy.ndarray, optional
        Where items may be that are not zero.
    compiled, convert
        As for `nbta.sparse_jacobian`.
    static : Static
        Which arguments are static.
    what : {"sparse_jacobian", "sparse_hessian"}
        The public function that made it: the Hessian is the Jacobian of the gradient.
    """

    __wrapped__: Callable[..., Any]

    def __init__(
        self,
        f: Callable[..., Any],
        argnums: int,
        pattern: Any,
        compiled: Compiled,
        convert: bool,
        static: Static,
        what: str,
    ) -> None:
        functools.update_wrapper(self, f, updated=())
        self._argnums, self._compiled, self._convert = argnums, compiled, convert
        self._static, self._what = static, what
        if isinstance(argnums, bool) or not isinstance(argnums, int):
            raise invalid("argnums", f"argnums: {argnums!r} is not an int; {what} has one argument")
        self._pattern = None if pattern is None else _checked_pattern(what, pattern)
        self._plans: dict[Any, _Plan] = {}
        self._last: Any = None, None, None

        chosen = Differentiated(f, argnums)

        def function(f: Any) -> Any:
            inner = prepared(f, "the function", convert)
            return gradient_of(inner, chosen) if what == "sparse_hessian" else inner

        def values(*args: Any, **kwargs: Any) -> Any:
            return function(f)(*args, **kwargs)

        def columns(colours: Any, count: Any, /, *args: Any, **kwargs: Any) -> Any:
            return _columns(function(f), way, argnums, colours, count, args, kwargs)

        def rows(colours: Any, count: Any, /, *args: Any, **kwargs: Any) -> Any:
            return _rows(function(f), argnums, colours, count, args, kwargs)

        def product(direction: Any, /, *args: Any, **kwargs: Any) -> Any:
            return _product(function(f), way, argnums, direction, args, kwargs)

        way = _along_symmetric if what == "sparse_hessian" else directional

        self._values = Function(values, False, convert=False, what=what)
        self._columns = Function(columns, compiled, convert=False, what=what)
        self._rows = Function(rows, compiled, convert=False, what=what)
        self._product = Function(product, False, convert=False, what=what)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> scipy.sparse.csr_array:
        """The Jacobian."""
        try:
            if current() is not None or any_tensor(args, kwargs):
                message = (
                    f"{self._what}: this runs outside of graphs, which have no sparse arrays; in a "
                    f"graph, use nbta.jacobian or nbta.jvp"
                )
                raise invalid("jacobian", message)
            args, kwargs = self._static.wrapped((args, kwargs)) if self._static else (args, kwargs)
            return self._plan(args, kwargs)(args, kwargs)
        except Exception as error:
            leaving(error)
            raise

    def _plan(self, args: Any, kwargs: Any) -> _Plan:
        """What computes the Jacobian for such arguments."""
        kinds, (last, looking, plan) = _kinds(args, kwargs), self._last
        if kinds is not None and last == kinds and looking.now(list(args)) is not None:
            return plan
        trace, arrays = self._values.bound((args, kwargs))
        (place,) = places_of(self._argnums, len(args))
        before = [as_leaf("args", v) for arg in taken_apart(args[:place]) for v in leaves(arg)]
        place = sum(isinstance(value, np.ndarray) for value in before)
        fixed = [
            value if k >= trace.arguments or value.dtype.kind in "biu" else value.shape
            for k, value in enumerate(arrays)
        ]
        known = [v.tobytes() if isinstance(v, np.ndarray) else None for v in fixed]
        key = trace, tuple(array.shape for array in arrays), tuple(known)
        if key not in self._plans:
            if len(self._plans) == _SAVED:
                del self._plans[next(iter(self._plans))]
            self._plans[key] = self._new_plan(trace, arrays, fixed, place, args, kwargs)
        if len(trace.inputs) == trace.arguments:  # no values from outside decide
            self._last = kinds, trace.looking, self._plans[key]
        return self._plans[key]

    def _new_plan(
        self, trace: Any, arrays: Any, fixed: Any, place: int, args: Any, kwargs: Any
    ) -> Any:
        given = taken_apart(args[self._argnums])
        alone = [value for value in leaves(given) if value is given]
        if not (alone and isinstance(as_leaf("args", given), np.ndarray)):
            self._refuse(f"the argument is {describe(given)}")
        x = trace.inputs[place]
        if not isinstance(trace.result, Tensor):
            self._refuse(f"f returns {describe(trace.result)}")
        for name, tensor in (("the argument", x), ("f's result", trace.result)):
            if tensor.dtype not in (np.float32, np.float64):
                self._refuse(f"{name} is {tensor.spec}")
        count = arrays[place].size
        pattern = self._pattern
        if pattern is None:
            pattern = self._found(trace, arrays, fixed, place)
        else:
            found = np.size(trace.run(arrays, False)), count
            if pattern.shape != found:
                message = (
                    f"{self._what}: pattern has shape {pattern.shape}, and the matrix has shape "
                    f"{found}: a row for each item of the result, a column for each of the argument"
                )
                raise invalid("jacobian", message)
        both_ways = self._what == "sparse_jacobian"
        plan = _Plan(pattern, self._columns, self._rows, both_ways, x.dtype)
        self._check(plan, arrays[place], args, kwargs)
        return plan

    def _refuse(self, what: str) -> None:
        message = (
            f"{self._what}: {what}; the argument and the result must be one array of float32 or "
            f"float64 each"
        )
        raise invalid("jacobian", message)

    def _found(self, trace: Any, arrays: Any, fixed: Any, place: int) -> Any:
        """The pattern that follows from the graph."""
        from scipy.sparse import csr_array  # which takes 0.1 s to import, and few need

        from nbta.control.sparsity import UnclearError, pattern_of

        count = arrays[place].size
        try:
            ends, items = pattern_of(trace.result, trace.inputs, fixed, place)
        except UnclearError as error:
            message = (
                f"{self._what}: the pattern does not follow from the function, as {error}; each "
                f"item of the result is taken to depend on all of the argument. Give pattern="
            )
            warn_caller(message, PerformanceWarning)
            size = np.size(trace.run(arrays, False))
            return csr_array(np.ones((size, count), bool))
        pattern = csr_array((np.ones(len(items), bool), items, ends), (len(ends) - 1, count))
        if self._what == "sparse_hessian":  # zero wherever its transpose is
            pattern = csr_array(pattern.multiply(pattern.T))
            pattern.sort_indices()
        return pattern

    def _check(self, plan: Any, x: Any, args: Any, kwargs: Any) -> None:
        """Compare a product with the derivative along a direction: a pattern may miss items."""
        direction = np.random.default_rng(0).uniform(0.5, 1.5, x.size).astype(x.dtype)
        want = np.ravel(self._product(direction, *args, **kwargs))
        found = plan(args, kwargs)
        have = found @ direction
        scale = abs(found) @ direction + abs(want)
        wrong = ~(abs(have - want) <= np.sqrt(np.finfo(x.dtype).eps) * scale)
        wrong &= np.isfinite(have) & np.isfinite(want)
        if wrong.any():
            row = int(wrong.argmax())
            message = (
                f"{self._what}: pattern misses items of row {row}: along a direction the "
                f"derivative is {want[row]}, and by the matrix {have[row]}; add the items that "
                f"item {row} of the result depends on"
            )
            raise invalid("jacobian", message)

    def _recipe(self) -> tuple[Any, ...]:
        """The arguments that make one like it."""
        options = self._argnums, self._pattern, self._compiled, self._convert
        return self.__wrapped__, *options, self._static, self._what

    def __repr__(self) -> str:
        return f"<{self._values._title}>"


def _kinds(args: Any, kwargs: Any) -> Any:
    """What tells which plan arrays of floats need; None for other arguments."""
    if kwargs or not all(type(a) is np.ndarray and a.dtype.kind == "f" for a in args):
        return None
    return [(a.dtype, a.shape, a.flags.c_contiguous) for a in args]


def _checked_pattern(what: str, pattern: Any) -> scipy.sparse.csr_array:
    """A pattern in compressed rows, of truth values."""
    from scipy.sparse import csr_array, issparse

    if not issparse(pattern):
        pattern = np.asarray(pattern)
        if pattern.dtype != bool or pattern.ndim != 2:
            message = (
                f"{what}: pattern has dtype {pattern.dtype} and {pattern.ndim} axes; give a sparse "
                f"array, or a matrix of truth values"
            )
            raise invalid("jacobian", message)
    found = csr_array(pattern, copy=True)
    found.sum_duplicates()
    found.data = np.ones(found.nnz, bool)
    return found


# In the graph.


def _argument(argnums: int, args: Any) -> Any:
    """The arguments with the chosen one where nothing else depends on it, and that one."""
    args, (place,) = list(args), places_of(argnums, len(args))
    args[place] = free(f"args[{place}]", args[place])
    return args, args[place]


def _columns(
    f: Any, way: Any, argnums: int, colours: Any, count: Any, args: Any, kwargs: Any
) -> Any:
    """For each colour the sum of the columns that have it.

    One after another: colours are few and arrays long, and three of eight lanes took three times as
    long.
    """

    def column(colour: Any) -> Any:
        given, x = _argument(argnums, args)
        y = as_tensor(f(*given, **kwargs))
        direction = reshape(cast(equal(colours, colour), x.dtype), shape_of(x))
        return cast(reshape(way([y], [x], [direction])[0], -1), x.dtype)

    return map_fn(column, arange(count))


def _rows(f: Any, argnums: int, colours: Any, count: Any, args: Any, kwargs: Any) -> Any:
    """For each colour the sum of the rows that have it."""

    def row(colour: Any) -> Any:
        given, x = _argument(argnums, args)
        y = as_tensor(f(*given, **kwargs))
        seed = reshape(cast(equal(colours, colour), y.dtype), shape_of(y))
        return reshape(gradients([y], [x], [seed], unconnected="zero")[0], -1)

    return map_fn(row, arange(count))


def _product(f: Any, way: Any, argnums: int, direction: Any, args: Any, kwargs: Any) -> Any:
    """The derivative along a direction."""
    given, x = _argument(argnums, args)
    y = as_tensor(f(*given, **kwargs))
    return reshape(way([y], [x], [reshape(direction, shape_of(x))])[0], -1)


def _along_symmetric(ys: Any, xs: Any, directions: Any) -> list:
    """The same of gradients, which users' own operations have by reverse mode alone."""
    if calls_users(ys):
        return gradients(ys, xs, directions, unconnected="zero")
    return directional(ys, xs, directions)


# Colours.


class _Plan:
    """A pattern with colours: how the items of the matrix are computed.

    Columns that have no row in common are computed together, as the derivative along the sum of
    their directions; or rows, as one gradient, which takes about twice as long.
    """

    def __init__(self, pattern: Any, columns: Any, rows: Any, both_ways: bool, dtype: Any) -> None:
        self._pattern, self._dtype = pattern, dtype
        height, width = pattern.shape
        lines = np.repeat(np.arange(height), np.diff(pattern.indptr))
        by_column = _colours(pattern.T.tocsr())
        self._run, self._colours, length = columns, by_column, height
        self._index = by_column[pattern.indices] * height + lines
        if both_ways:
            by_row = _colours(pattern)
            if 2 * _count(by_row) < _count(by_column):
                self._run, self._colours, length = rows, by_row, width
                self._index = by_row[lines] * width + pattern.indices
        self._number = np.int64(_count(self._colours))
        self._sums = int(self._number), length

    def __call__(self, args: Any, kwargs: Any) -> Any:
        found = copy.copy(self._pattern)  # a tenth of the time of making another one
        found.indices, found.indptr = found.indices.copy(), found.indptr.copy()
        if self._number:
            sums = self._run(self._colours, self._number, *args, **kwargs)
            if sums.shape != self._sums:  # places in them would be others
                message = (
                    f"sparse_jacobian: colours have sums of shape {sums.shape}, and the pattern is "
                    f"for {self._sums}: how many items f returns depends on values; return as many "
                    f"in each call"
                )
                raise invalid("jacobian", message)
            found.data = sums.ravel().take(self._index, mode="clip")
        else:
            found.data = np.zeros(0, self._dtype)
        return found


def _count(colours: Any) -> Any:
    return colours.max(initial=-1) + 1


def _colours(pattern: Any) -> Any:
    """Colours for the rows of a pattern, so that no two with a common column have the same.

    The rows with most neighbours come first; where all have a common column, each has a colour.
    """
    from nbta.kernels.sparse_patterns import colours, neighbours

    back = pattern.T.tocsr()
    used = np.flatnonzero(np.diff(pattern.indptr))
    if len(used) and np.diff(back.indptr).max(initial=0) == len(used):
        found = np.full(pattern.shape[0], -1)
        found[used] = np.arange(len(used))
        return found
    given = [part.astype(np.int64) for m in (pattern, back) for part in (m.indptr, m.indices)]
    order = np.argsort(-neighbours(*given), kind="stable")
    found = colours(order, *given)
    found[np.diff(pattern.indptr) == 0] = -1
    return found


# The functions.


def sparse_jacobian(
    f: Callable[P, Any],
    argnums: int = 0,
    pattern: scipy.sparse.sparray | ArrayLike | None = None,
    compiled: Compiled = "auto",
    *,
    convert: bool = CONVERT,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> SparseJacobian[P]:
    """Make a function that returns the first derivatives of ``f`` as a sparse array.

    Parameters
    ----------
    f : callable
        Returns an array of float32 or float64, of any rank.
    argnums : int
        The positional argument to differentiate with respect to: an array of float32 or float64,
        of any rank.
    pattern : sparse array or numpy.ndarray, optional
        Which derivatives may be nonzero: the stored items of a sparse array, or a matrix of truth
        values. By default it is found from the operations of ``f``.
    compiled : {"auto", True, False}
        As for `Session.run`.
    convert : bool
        As for `function`.
    static_argnums, static_argnames : int or str, or a sequence of these
        As for `function`. They must not be among ``argnums``.

    Returns
    -------
    callable
        A function of the arguments of ``f`` that returns a ``scipy.sparse.csr_array`` with a row
        for each item of the result and a column for each item of the argument, both in C order. A
        scalar has one item. The dtype is that of the argument. All items of the pattern are stored,
        zero or not, so that the structure is the same in all calls.

    Raises
    ------
    InvalidArgumentError
        If ``pattern`` is neither sparse nor a matrix of truth values. When called: if the argument
        or the result is not one array of float32 or float64; if ``pattern`` has another shape than
        the Jacobian, or misses a derivative that is nonzero; in a graph.

    Warns
    -----
    PerformanceWarning
        If no pattern can be found, so that all derivatives are computed.

    See Also
    --------
    sparse_hessian : second derivatives.
    jacobian : all derivatives, as a dense array.
    jvp : the product of the Jacobian with a direction.

    Notes
    -----
    Columns that have no row in common are computed together, as one derivative in forward mode
    [1]_; or rows that have no column in common, as one gradient, if that takes less time. Which
    columns or rows go together is decided by colouring a graph, vertices of largest degree first
    [2]_ [3]_. So a Jacobian with three nonzero diagonals takes three derivatives, whatever its
    size. Rows and columns are not combined: a Jacobian with a dense row and a dense column is
    computed as a dense one.

    The pattern is that of the operations, for all values of floats: it has the items of both ways
    of a branch that depends on a float, and all items of an array that is indexed with a value
    that does. Integers, truth values and arrays that ``f`` reads from outside count with their
    values: if they change, the pattern is found again, so a number that differs in each call, such
    as that of a step, had better be a float. To find a pattern takes about as long as to run ``f``
    a few times in Python.

    The first call with a pattern compares the product of the Jacobian and a vector with the
    derivative in that direction. It refuses a pattern that misses derivatives, unless these are
    zero at the arguments of that call.

    References
    ----------
    .. [1] A. R. Curtis, M. J. D. Powell and J. K. Reid, "On the estimation of sparse Jacobian
       matrices", IMA Journal of Applied Mathematics 13, 1974.
    .. [2] T. F. Coleman and J. J. More, "Estimation of sparse Jacobian matrices and graph coloring
       problems", SIAM Journal on Numerical Analysis 20, 1983.
    .. [3] A. H. Gebremedhin, F. Manne and A. Pothen, "What color is your Jacobian? Graph coloring
       for computing derivatives", SIAM Review 47, 2005.

    Examples
    --------
    >>> def steps(x):
    ...     return x[1:] ** 2 - x[:-1]
    >>> found = nbta.sparse_jacobian(steps)(np.array([1.0, 2.0, 3.0]))
    >>> found.nnz, found.toarray()
    (4, array([[-1.,  4.,  0.],
           [ 0., -1.,  6.]]))
    """
    static = Static(f, static_argnums, static_argnames, Differentiated(f, argnums))
    return SparseJacobian(f, argnums, pattern, compiled, convert, static, "sparse_jacobian")


def sparse_hessian(
    f: Callable[P, Any],
    argnums: int = 0,
    pattern: scipy.sparse.sparray | ArrayLike | None = None,
    compiled: Compiled = "auto",
    *,
    convert: bool = CONVERT,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> SparseJacobian[P]:
    """Make a function that returns the second derivatives of ``f`` as a sparse array.

    Parameters
    ----------
    f : callable
        Returns a real scalar.
    argnums, pattern, compiled, convert, static_argnums, static_argnames
        As for `sparse_jacobian`.

    Returns
    -------
    callable
        A function of the arguments of ``f`` that returns a ``scipy.sparse.csr_array`` with a row
        and a column for each item of the argument, in C order.

    Raises
    ------
    InvalidArgumentError
        When called: if ``f`` does not return a scalar, and as for `sparse_jacobian`.

    See Also
    --------
    sparse_jacobian : first derivatives, with notes on patterns.
    hessian : all derivatives, as a dense array.
    hvp : the product of the Hessian with a direction.

    Notes
    -----
    This is the sparse Jacobian of the gradient, in forward mode. Colours are those of a Jacobian:
    that the matrix is symmetric makes the pattern smaller, but does not save directions.
    The gradient of a loop whose length depends on floats reads what the loop saved in an unknown
    number of iterations, so its pattern is not found: give ``pattern``.

    Examples
    --------
    >>> def energy(x):
    ...     return np.sum((x[1:] - x[:-1] ** 2) ** 2)
    >>> nbta.sparse_hessian(energy)(np.array([1.0, 2.0, 3.0])).toarray()
    array([[ 4., -4.,  0.],
           [-4., 38., -8.],
           [ 0., -8.,  2.]])
    """
    static = Static(f, static_argnums, static_argnames, Differentiated(f, argnums))
    return SparseJacobian(f, argnums, pattern, compiled, convert, static, "sparse_hessian")
