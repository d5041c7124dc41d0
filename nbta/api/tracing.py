"""Functions of arrays, traced once per kind of arguments and run as graphs."""

import functools
import weakref
from contextlib import suppress

import numpy as np

from nbta import shapes
from nbta.compiler.phases import phase
from nbta.control.captured import guarded
from nbta.control.control_flow import leaf_spec
from nbta.dtypes import as_dtype, as_value, check_plain
from nbta.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NbtaError,
    PerformanceWarning,
    UnimplementedError,
    invalid,
)
from nbta.execution.launcher import Launcher
from nbta.execution.session import Session, fits, within_kind
from nbta.graph.graph import Graph, current
from nbta.graph.lengths import Asked, Lengths
from nbta.graph.operation import Tensor
from nbta.graph.spec import DATA, Spec
from nbta.immutable import computed, in_body, own_numpy
from nbta.inspect.flow_check import lost_write
from nbta.locations import warn_caller
from nbta.ops.dispatch import as_array, as_tensor
from nbta.ops.placeholder import PLACEHOLDER
from nbta.shapes import Dim
from nbta.structure import describe, layout, leaves, map_leaves, pack, paths
from nbta.symbolic import SymbolicTensorArray
from nbta.tensor_array import TensorArray

# Arguments: how they are named, told apart, and stood in for.


def any_tensor(args, kwargs):
    """Whether a tensor of a graph is among arguments."""
    return any(isinstance(value, Tensor) for value in leaves((args, kwargs)))


def named(structure):
    """Leaves of arguments, each with how a message names it."""
    args, kwargs = structure
    found = [(f"args[{i}]{p}", v) for i, arg in enumerate(args) for p, v in _named_leaves(arg)]
    return found + [
        (f"{k}{p}", v) for k in sorted(kwargs, key=repr) for p, v in _named_leaves(kwargs[k])
    ]


def _named_leaves(value):
    return zip(paths(value, ""), leaves(value), strict=True)


def as_leaf(path, value):
    """Arrays and numbers as arrays; truth values and strings as they are."""
    if isinstance(value, bool | str):
        return value
    if isinstance(value, TensorArray):
        message = f"{path}: a TensorArray is no argument of a traced function; give its stack()"
        raise invalid("tensor_array", message)
    if callable(value) or value is Ellipsis:
        return value
    check_plain(path, value)
    try:
        return as_array(value)
    except InvalidArgumentError as error:
        message = (
            f"{path}: {value!r} is no argument of a traced function; give arrays, numbers, and "
            f"lists, tuples and dicts of these"
        )
        raise invalid("argument", message) from error


def order_of(structure):
    """In which order dicts were filled, as a function may go by that."""
    if isinstance(structure, dict):
        return (tuple(structure), tuple(map(order_of, structure.values())))
    return tuple(map(order_of, structure)) if isinstance(structure, list | tuple) else None


def any_empty(values):
    """Whether any value is an array without elements."""
    return any(isinstance(value, np.ndarray) and not value.size for value in values)


def kinds_of(values, exact=False):
    """What decides whether a graph fits values.

    Lengths other than 1 do not, but where an array has no elements: loops that make no trip give
    results of shapes that no trip tells, and so all lengths count. ``exact`` says that there is
    such an array besides.
    """
    exact = exact or any_empty(values)
    return tuple(_kind_of(value, exact) for value in values)


def _kind_of(value, exact):
    if isinstance(value, np.ndarray):
        shape = value.shape if exact else tuple(n if n == 1 else None for n in value.shape)
        return value.dtype, shape, exact
    return value


def _general_spec(value, exact):
    """What a graph may count on for all values of the same kind; None for what is no array."""
    if not isinstance(value, np.ndarray):
        return None
    return Spec(value.dtype, tuple(n if exact or n == 1 else Dim() for n in value.shape))


class _Leaf:
    """Stands for a `Spec` in a structure, as that is a tuple itself."""

    def __init__(self, spec):
        pattern = shapes.as_pattern("input_signature", spec.shape)
        self.spec = Spec(as_dtype(spec.dtype), pattern)
        if pattern is None or spec.kind != DATA:
            message = f"input_signature: {self.spec} does not tell the rank; give a shape"
            raise invalid("input_signature", message)


class Signature:
    """What the arguments of a function are by its ``input_signature``.

    Parameters
    ----------
    given : list or tuple
        For each argument a `Spec`, or a structure of them.

    Raises
    ------
    InvalidArgumentError
        For anything else.
    """

    def __init__(self, given):
        if not isinstance(given, list | tuple) or isinstance(given, Spec):
            raise _no_signature(given)
        self._like = tuple(map(_boxed, given))
        self.specs = [leaf.spec for leaf in leaves(self._like)]

    def check(self, structure):
        """Refuse arguments of another structure; how each is named, what it is and should be."""
        args, kwargs = structure
        if kwargs or layout(args) != layout(self._like):
            have = describe(args) if not kwargs else f"{describe(args)} and {describe(kwargs)}"
            message = (
                f"the arguments are {have}, and input_signature has {describe(self._like)}; give "
                f"them by position, in its structure"
            )
            raise invalid("input_signature", message)
        return [(*pair, spec) for pair, spec in zip(named(structure), self.specs, strict=True)]

    def values(self, structure):
        """The arguments as arrays of the dtypes that it says."""
        return [_fitted(*each) for each in self.check(structure)]


def _boxed(part):
    if isinstance(part, Spec):
        return _Leaf(part)
    if isinstance(part, dict):
        return {key: _boxed(value) for key, value in part.items()}
    if isinstance(part, list | tuple) and not hasattr(part, "_fields"):
        return type(part)(map(_boxed, part))
    raise _no_signature(part)


def _no_signature(given):
    message = (
        f"input_signature: {given!r} is none; give a list with a Spec for each argument, or lists, "
        f"tuples and dicts of Specs"
    )
    return invalid("input_signature", message)


def _fitted(path, value, spec):
    """An argument in the dtype of its spec."""
    found = np.asarray(value) if isinstance(value, bool) else as_leaf(path, value)
    array = None
    if isinstance(found, np.ndarray) and fits(spec.shape, found.shape):
        with suppress(NbtaError):
            array = as_value("call", path, within_kind(value, spec.dtype), spec.dtype)
    if array is None:
        have = Spec(found.dtype, found.shape) if isinstance(found, np.ndarray) else repr(value)
        message = f"{path} is {have}, and input_signature says {spec}; cast or reshape it"
        raise invalid("input_signature", message)
    return array


def stand_ins(structure, values, specs):
    """Placeholders for arrays in the graph that is being built; other values as they are.

    ``specs`` are those of an ``input_signature``, or None.
    """
    exact = any_empty(values)
    if exact or specs is None:
        specs = [_general_spec(value, exact) for value in values]
    named_values = zip(named(structure), values, specs, strict=True)
    return [_stand_in(i, path, v, s) for i, ((path, _), v, s) in enumerate(named_values)]


def _stand_in(leaf, path, value, spec):
    if not isinstance(value, np.ndarray):
        return value
    lengths = current().lengths
    extents = zip(value.shape, spec.shape, strict=True)
    shape = tuple(lengths.extent(leaf, axis, n, m) for axis, (n, m) in enumerate(extents))
    attrs = {"spec": spec._replace(shape=shape), "label": path}
    tensor = current().create(PLACEHOLDER, [], attrs, name="argument").outputs[0]
    lengths.stands_for(tensor, leaf)
    return tensor


# Functions.


class Function:
    """A Python function of arrays that is traced into a graph; see `nbta.function`."""

    def __init__(self, f, compiled="auto", pick=None, signature=None):
        functools.update_wrapper(self, f)
        self._f, self._compiled, self._pick = f, compiled, pick or _all
        self._given_signature = signature
        self._signature = None if signature is None else Signature(signature)
        self._traces: dict = {}
        self._last, self._launchers = None, []

    def __call__(self, *args, **kwargs):
        """Run, tracing first where no graph fits the arguments."""
        structure = (args, kwargs)
        if current() is None:
            for launcher in self._launchers:
                result = launcher(structure)
                if result is not None:
                    return self._pick(map_leaves(computed, result) if in_body() else result)
        if current() is not None or any_tensor(args, kwargs):
            self._check_tensors(structure)
            return self._pick(guarded(self._f, "the function")(*args, **kwargs))
        trace, arrays = self.bound(structure)
        result = trace.run(arrays, self._compiled)
        self._launchers = trace.launcher(structure, self._launchers)
        return self._pick(map_leaves(computed, result) if in_body() else result)

    def bound(self, structure):
        """The graph for a pair of arguments and keyword arguments, and the arrays among these."""
        if self._signature is not None:
            values = self._signature.values(structure)
            kinds = kinds_of(values) if any_empty(values) else None
        else:
            values = [as_leaf(path, v) for path, v in named(structure)]
            kinds = kinds_of(values)
        key = (layout(structure), order_of(structure), kinds)
        node = self._traces.get(key)
        while isinstance(node, _Branch):
            node = node.found.get(node.seen(values))
        self._last = node or self._traced(key, structure, values)
        return self._last, [value for value in values if isinstance(value, np.ndarray)]

    def _check_tensors(self, structure):
        """Hold tensors against the signature, if there is one."""
        for path, value, spec in self._signature.check(structure) if self._signature else ():
            have = leaf_spec(value)
            if have.dtype != spec.dtype or not shapes.compatible(have.shape, spec.shape):
                message = f"{path} is {have}, and input_signature says {spec}; cast or reshape it"
                raise invalid("input_signature", message)

    def _traced(self, key, structure, values):
        """A new graph, for the lengths that Python asks for while it is made."""
        known, branch, place = {}, None, self._traces
        while True:
            node = place.get(key)
            if node is None:
                node = place[key] = self._attempt(structure, values, Lengths(known))
                if branch is not None:
                    branch.warn_of_many()
            if isinstance(node, _Trace):
                return node
            branch, key, place = node, node.seen(values), node.found
            known = {**known, **dict(zip(node.looks, key, strict=True))}

    def _attempt(self, structure, values, lengths):
        """A graph, or what Python had to know for one."""
        try:
            specs = None if self._signature is None else self._signature.specs
            trace = _Trace(self._f, structure, values, lengths, specs)
        except BaseException as error:
            # Whatever a user's code made of it: what it did is not what NumPy would do.
            if not lengths.asked or isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            if isinstance(error, Asked) and error.lengths is not lengths:
                raise
        if lengths.asked:
            return _Branch(repr(self), structure, lengths.asked)
        return trace

    @property
    def source(self) -> str:
        """Source of the function that its last call was compiled to, or would be.

        Raises
        ------
        FailedPreconditionError
            Before it was called.
        UnimplementedError
            If it cannot be compiled.
        """
        return self._compiled_program().generated.source

    @property
    def graph(self):
        """The program of its last call behind all passes, as it is compiled; see `source`."""
        return self._compiled_program().program

    def traced(self) -> tuple[Graph, list]:
        """The graph of its last call as it was traced, ahead of all passes, and its results.

        Raises
        ------
        FailedPreconditionError
            Before it was called.
        """
        self._runner()
        results = leaves(self._last.result)
        return self._last.graph, [r if isinstance(r, Tensor) else r.flow for r in results]

    def explain(self) -> str:
        """How its last call runs, or will once it is compiled.

        What the passes did, which operations share a loop, which buffers there are, which arrays
        became plain buffers and why others did not, and what runs in Python.

        Raises
        ------
        FailedPreconditionError
            Before it was called.

        Examples
        --------
        >>> norm = nbta.function(lambda x: nbta.sqrt(nbta.sum(x * x)), compiled=True)
        >>> norm(np.array([3.0, 4.0]))
        np.float64(5.0)
        >>> "Mul, Sum" in norm.explain()  # one loop does both
        True
        """
        return self._runner().explain()

    def profile(self, *args, file=None, repeats=10, **kwargs):
        """Where the time of a call goes.

        The function is traced and compiled once more, apart from what its calls use, even where
        these would wait with that. Then it is called several times, and in a build of its own with
        clocks between its parts. Where it cannot be compiled, operations run one by one.

        Parameters
        ----------
        *args
            As for a call; what the function itself calls ``file`` or ``repeats``, too.
        file : path or text file, optional
            Where to write what happened when: as for ``trace`` of `nbta.Session.run`.
        repeats : int
            How many calls are timed.
        **kwargs
            As for a call.

        Returns
        -------
        Profile
            It prints as a table: phases, calls, and operations by their time.

        Raises
        ------
        InvalidArgumentError
            For fewer repeats than one.
        OSError
            Where the file cannot be written; nothing was run then.
        Exception
            What a call raises.

        Examples
        --------
        >>> norm = nbta.function(lambda x: nbta.sqrt(nbta.sum(x * x)))
        >>> found = norm.profile(np.ones(1000))
        >>> [row.types for row in found.operations if "Sum" in row.types]  # one loop does both
        [('Mul', 'Sum')]
        """
        from nbta.inspect.profiling import profile  # what few need

        alone = self.apart()
        return profile(repr(self), alone, (args, kwargs), alone, (args, kwargs), file, repeats)

    def apart(self, compiled=None) -> "Function":
        """The same function, which nothing was traced of yet."""
        return Function(
            self._f,
            self._compiled if compiled is None else compiled,
            self._pick,
            self._given_signature,
        )

    def prepared(self, structure):
        """What runs it for arguments; its function or the reason for having none; and inputs."""
        trace, arrays = self.bound(structure)
        runner = trace.runner_of_results()
        return runner, runner.prepared(arrays, self._compiled), arrays

    def prefer_compiled(self) -> None:
        """Run compiled from now on, without waiting until that pays."""
        self._compiled = True

    def _runner(self):
        if self._last is None:
            message = (
                f"{self!r} was not called yet; call it, so that the kind of arguments is known"
            )
            raise FailedPreconditionError(message)
        return self._last.runner

    def _compiled_program(self):
        found = self._runner().last()
        if isinstance(found, str):
            raise UnimplementedError(f"{self!r} cannot be compiled: {found}")
        return found

    @property
    def traces(self) -> int:
        """How many graphs were made so far."""
        return len(self.every_trace())

    def every_trace(self) -> list:
        """What holds the graphs that were made so far."""
        return [trace for node in self._traces.values() for trace in _below(node)]

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        traced = once(
            instance,
            self,
            lambda: Function(
                weakly(self._f, instance), self._compiled, self._pick, self._given_signature
            ),
        )

        @functools.wraps(self._f)
        def method(*args, **kwargs):
            return traced(*args, **kwargs)

        method.__self__ = instance  # which is kept alive by this alone
        return method

    def __reduce__(self):  # traced again where it arrives
        return Function, (self._f, self._compiled, self._pick, self._given_signature)

    def __repr__(self):
        return f"<nbta.function {getattr(self._f, '__qualname__', self._f)!r}>"


def function(f=None, *, compiled="auto", input_signature=None):
    """Make a Python function of arrays run as a graph.

    Parameters
    ----------
    f : callable
        Of arrays, numbers, and nested lists, tuples and dicts of these; gives such a structure.
        It is called with symbolic tensors, once for each combination of dtypes, ranks and axes of
        length 1, not for each length; but for each shape where an array has no elements. Truth
        values, strings and None are part of the combination. Arrays that it uses from outside are
        constants, as they were at that call. Lengths (``x.shape[0]``, ``x.size``) are numbers to
        compute with; see Notes. A write to a TensorArray gives the array to go on with.
    compiled : {"auto", True, False}
        As for `Session.run`.
    input_signature : list, optional
        What the arguments are, which are then given by position: for each a `Spec`, or nested
        lists, tuples and dicts of these. There is one graph for all of them, and length 1 is like
        any other: ``nbta.Spec("float64", (None, 3))``. Arrays are cast within their kind, as
        `Session.run` does with what is fed.

    Returns
    -------
    callable
        Gives arrays, and scalars for rank 0. Called with tensors, or while a graph is being built,
        it adds its operations to that graph.

    Raises
    ------
    InvalidArgumentError
        When it is called: for arguments that are no arrays or do not fit ``input_signature``, and
        for a write to a TensorArray whose result is not used, where a later operation may look for
        what it wrote.

    Notes
    -----
    Arithmetic with lengths, comparisons given to `cond` or `where`, slices, ``size=n``, trip counts
    and ``nbta.zeros((n, 2))`` keep one graph for all lengths. Where Python itself must know a
    length (``if``, ``and``, ``in``, ``len(x)``, ``range``, ``int``, ``np.zeros(x.shape)``, a key of
    a dict), the function is called again with that length as an int, and the graph is for that
    length alone: other lengths have graphs of their own. So do arguments without elements: ``if n``
    and ``1 / n`` ask for nothing more. So results are those of Python. A function with graphs for
    16 lengths gives a `PerformanceWarning` that names the line. A length that arguments do not
    decide, such as that of a growing variable of a loop, is an error there.

    Examples
    --------
    >>> @nbta.function
    ... def norm(x):
    ...     return nbta.sqrt(nbta.sum(x * x))
    >>> norm(np.array([3.0, 4.0]))
    np.float64(5.0)

    >>> @nbta.function
    ... def mean(x):
    ...     return nbta.sum(x) / x.shape[0] if x.shape[0] else 0.0
    >>> mean(np.array([1.0, 2.0, 3.0])), mean(np.zeros(0)), mean.traces
    (np.float64(2.0), np.float64(0.0), 2)
    """
    if f is None:
        return functools.partial(function, compiled=compiled, input_signature=input_signature)
    return Function(f, compiled, signature=input_signature)


class _Trace:
    """The graph of a function for one kind of arguments."""

    def __init__(self, f, structure, values, lengths, specs):
        self.graph, self.lengths, self._signed = Graph(), lengths, specs is not None
        self.graph.lengths = lengths
        with phase("tracing"), self.graph.as_default(), own_numpy():
            self._exact = any_empty(values)
            given = stand_ins(structure, values, specs)
            args, kwargs = pack(structure, given)
            try:
                result = guarded(f, "the function")(*args, **kwargs)
            except TypeError as error:
                if "NoneType" in str(error):
                    error.add_note(_UNKNOWN_RANK)
                raise
            self.result = map_leaves(_as_result, result)
        check_writes(self.graph, leaves(self.result))
        self.inputs = [tensor for tensor in given if isinstance(tensor, Tensor)]
        self._session = Session(self.graph)

    def run(self, arrays, compiled):
        """Feed the arguments and fetch the result."""
        feeds = dict(zip(self.inputs, arrays, strict=True))
        return self._session.run(self.result, feeds, compiled)

    @property
    def runner(self):
        """What runs it."""
        return self._session.last

    def runner_of_results(self):
        """What gives the values of all results for arrays, of which there must be no others."""
        return self._session.runner(leaves(self.result), self.inputs)

    def launcher(self, structure, others) -> list:
        """Short ways to call compiled functions: one for such arguments first, and some others."""
        compiled = self.runner.ran
        outputs = leaves(self.result)
        truths = any(isinstance(value, bool) for value in leaves(structure))
        if (
            compiled is None
            or self._exact
            or (self._signed and truths)  # which are arrays by the signature
            or not all(isinstance(result, Tensor) for result in outputs)
        ):
            return others
        same = (other for other in others if other.executable is compiled.executable)
        if any(other.inputs(structure) is not None for other in same):
            return others  # it knows them, but refused where they are in memory, or their result
        dtypes = [tensor.dtype for tensor in self.inputs]
        looks = self.lengths.known
        made = Launcher(compiled.executable, structure, dtypes, self.result, looks)
        return [made, *others[: _LAUNCHERS - 1]]


#: Kinds of arguments that a function is called with in a short way.
_LAUNCHERS = 4

_UNKNOWN_RANK = (
    "x.shape is None for a tensor whose number of axes is not known while nbta traces a function; "
    "nbta.reshape gives it one."
)


class _Branch:
    """Stands where a graph would, if Python had not asked for lengths: there is one for each.

    Attributes
    ----------
    looks : tuple of Look
    found : dict
        By what they see a graph, or a further branch.
    """

    def __init__(self, function, structure, asked):
        self.looks, self.found = tuple(sorted(asked)), {}
        self._function, self._asked = function, asked
        self._names = [path for path, _ in named(structure)]

    def seen(self, values):
        """What decides which graph fits."""
        return tuple([look(values) for look in self.looks])

    def warn_of_many(self):
        """Say so, once, where there is a graph for each of many lengths."""
        if len(self.found) != MANY_LENGTHS:
            return
        look = self.looks[0]
        message = (
            f"{self._function} is traced for each length of axis {look.axis} of "
            f"{self._names[look.leaf]}, {MANY_LENGTHS} so far, as {self._asked[look]} needs it in "
            f"Python; nbta.cond, nbta.where, nbta.scan, nbta.zeros and their kin take all lengths"
        )
        warn_caller(message, PerformanceWarning)


def _below(node):
    if not isinstance(node, _Branch):
        return [node]
    return [trace for other in node.found.values() for trace in _below(other)]


#: Graphs of one function for as many lengths are worth a warning.
MANY_LENGTHS = 16


def check_writes(graph, results):
    """Refuse a write whose result nobody uses where a later operation counts on it."""
    used = {result.flow for result in results if isinstance(result, SymbolicTensorArray)}
    lost = lost_write(graph, used)
    if lost is not None:
        write, later = lost
        message = (
            f"the result of {write.name!r} ({write.type}) is not used, so that it would not run, "
            f"and {later.name!r} ({later.type}) may count on it; go on with what the write gives, "
            f"as in ta = ta.write(i, value)"
        )
        raise invalid("lost_write", message)


def _all(result):
    return result


def _as_result(value):
    return value if isinstance(value, SymbolicTensorArray) else as_tensor(value)


_made = weakref.WeakKeyDictionary()


def weakly(function, owner):
    """The function with a first argument, which is not kept alive by that."""
    try:
        owner = weakref.ref(owner)
    except TypeError:
        return functools.partial(function, owner)
    return lambda *args, **kwargs: function(owner(), *args, **kwargs)


def once(f, kind, make):
    """What was made from a function or an object before, so that it is traced once.

    What is made must hold ``f`` by `weakly`, or both will stay for ever.
    """
    try:
        kept = _made.setdefault(f, {})
    except TypeError:  # no weak references to it
        return make()
    if kind not in kept:
        kept[kind] = make()
    return kept[kind]
