"""Functions of arrays, traced once per kind of arguments and run as graphs."""

from __future__ import annotations

import array
import functools
import inspect
import os
import warnings
import weakref
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import is_dataclass
from typing import IO, TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

import numpy as np
from numba import types

from nbta import shapes
from nbta.api.filling import fill, takes_out
from nbta.api.launching import Launcher
from nbta.api.static import Static, is_constant, unfixed
from nbta.classes import node_of, not_rebuilt
from nbta.compiler.executable import no_collection
from nbta.compiler.phases import phase
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
from nbta.execution.non_finite import watching
from nbta.execution.runner import Runners, check_compiled
from nbta.execution.session import fits, within_kind
from nbta.frontend import control, recursion, tries
from nbta.frontend.arguments import taken_apart
from nbta.frontend.array_wrappers import check_apart
from nbta.frontend.awaited import compute_lines, missed_lines
from nbta.frontend.entry import (
    APART,
    arguments_of,
    changes_objects,
    origin,
    prepared,
    source_of,
)
from nbta.frontend.outside import ArrayLook, Outside, reading
from nbta.frontend.pickling import Sent
from nbta.frontend.source import described
from nbta.graph.graph import Graph, building, current, everything, leaving
from nbta.graph.lengths import Asked, Lengths, ValueLook
from nbta.graph.operation import DATA, Spec, Tensor
from nbta.immutable import anywhere, computed, in_body, own_numpy
from nbta.inspect.flow_check import lost_write
from nbta.locations import of_error, warn_caller
from nbta.ops.core.checks import left_over
from nbta.ops.core.dispatch import as_array, as_tensor
from nbta.ops.core.filling import PLACEHOLDER
from nbta.runtime.numba_private import as_dtype as numpy_dtype
from nbta.shapes import Dim
from nbta.structure import (
    describe,
    dict_like,
    kind_of_dict,
    layout,
    leaves,
    map_leaves,
    pack,
    paths,
)
from nbta.symbolic import SymbolicTensorArray
from nbta.tensor_array import TensorArray

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from nbta.inspect.profiling import Profile
    from nbta.typing import Compiled, Q, T

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F")

#: Whether functions are converted where nobody says.
CONVERT = True

# Arguments: how they are named, distinguished, and stood in for.


def any_tensor(args: Any, kwargs: Any) -> Any:
    """Whether a tensor of a graph is among arguments."""
    return any(isinstance(value, Tensor) for value in leaves((args, kwargs)))


def named(structure: Any) -> Any:
    """Leaves of arguments, each with how a message names it."""
    args, kwargs = structure
    found = [(f"args[{i}]{p}", v) for i, arg in enumerate(args) for p, v in _named_leaves(arg)]
    return found + [
        (f"{k}{p}", v) for k in sorted(kwargs, key=repr) for p, v in _named_leaves(kwargs[k])
    ]


def _named_leaves(value: Any) -> Any:
    return zip(paths(value, ""), leaves(value), strict=True)


def as_leaf(path: str, value: Any) -> Any:
    """Arrays and numbers as arrays; truth values and texts as they are."""
    if isinstance(value, TensorArray):
        message = f"{path}: a TensorArray cannot be passed to a traced function; give its stack()"
        raise invalid("tensor_array", message)
    if is_constant(value):
        return value
    check_plain(path, value)
    try:
        if _is_joined(value):
            raise invalid("argument", "its + and * are not those of arrays")
        return as_array(value)
    except InvalidArgumentError as error:
        reason = not_rebuilt(value) if is_dataclass(value) else ""
        message = (
            f"{path}: {value!r} is no argument of a traced function{f': {reason}' * bool(reason)}; "
            f"give arrays, numbers, and lists, tuples, dicts and dataclasses of these, or make its "
            f"class a structure with nbta.register_structure"
        )
        raise invalid("argument", message) from error


def _is_joined(value: Any) -> bool:
    """Whether + joins a sequence with others, as deques, which NumPy makes arrays of."""
    known = isinstance(value, list | tuple | str | bytes | array.array)
    return isinstance(value, Sequence) and not known and hasattr(value, "__add__")


def order_of(structure: Any) -> Any:
    """The kinds of dicts, and in which order they were filled, as a function may go by that."""
    if isinstance(structure, dict):
        parts = tuple(map(order_of, dict.values(structure)))
        return (kind_of_dict(structure), tuple(structure), parts)
    if (node := node_of(structure)) is not None:
        structure = node.parts
    return tuple(map(order_of, structure)) if isinstance(structure, list | tuple) else None


def _is_final(error: BaseException, lengths: Lengths) -> bool:
    """Whether an error is none that another trace could avoid."""
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return True
    if getattr(error, "nbta_raised", False) and not lengths.asked:
        return True  # by a statement of the user's
    return isinstance(error, Asked) and error.lengths is not lengths


def any_empty(values: Any) -> Any:
    """Whether any value is an array without elements."""
    return any(isinstance(value, np.ndarray) and not value.size for value in values)


def kinds_of(values: Any, exact: bool = False) -> Any:
    """What decides whether a graph fits values.

    Lengths other than 1 do not, but where an array has no elements: loops that make no iteration
    give results of shapes that no iteration tells, and so all lengths count. ``exact`` says that
    there is such an array besides.
    """
    exact = exact or any_empty(values)
    return tuple(_kind_of(value, exact) for value in values)


def _kind_of(value: Any, exact: bool) -> Any:
    if isinstance(value, np.ndarray):
        shape = value.shape if exact else tuple(n if n == 1 else None for n in value.shape)
        return value.dtype, shape, exact, lies_apart(value)
    return value


def _types_of(kinds: Any) -> Any:
    """What kinds say besides lengths."""
    return tuple((k[0], len(k[1]), k[3]) if isinstance(k, tuple) else k for k in kinds)


def _numbers(values: Any) -> list[ValueLook]:
    """What looks at the whole numbers among values."""
    whole = (isinstance(v, np.ndarray) and not v.ndim and _is_whole(v) for v in values)
    return [ValueLook(leaf) for leaf, is_whole in enumerate(whole) if is_whole]


def lies_apart(value: Any) -> bool:
    """Whether the items of an array lie in another order than C's, so that a vector is a copy."""
    return isinstance(value, np.ndarray) and value.ndim > 1 and not value.flags.c_contiguous


def _general_spec(value: Any, exact: bool) -> Any:
    """What a graph may count on for all values of the same kind; None for what is no array."""
    if not isinstance(value, np.ndarray):
        return None
    return Spec(value.dtype, tuple(n if exact or n == 1 else Dim() for n in value.shape))


class _Leaf:
    """Stands for a `Spec` in a structure, as that is a tuple itself."""

    def __init__(self, spec: Any) -> None:
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

    def __init__(self, given: Any) -> None:
        if not isinstance(given, list | tuple) or isinstance(given, Spec):
            raise _no_signature(given)
        self._like = tuple(map(_wrapped, given))
        self.specs = [leaf.spec for leaf in leaves(self._like)]

    def check(self, structure: Any) -> Any:
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

    def values(self, structure: Any) -> Any:
        """The arguments as arrays of the dtypes that it says."""
        return [_fitted(*each) for each in self.check(structure)]


def _wrapped(part: Any) -> Any:
    if isinstance(part, Spec):
        return _Leaf(part)
    if isinstance(part, dict):
        return {key: _wrapped(value) for key, value in part.items()}
    if isinstance(part, list | tuple) and not hasattr(part, "_fields"):
        return type(part)(map(_wrapped, part))
    if (node := node_of(part)) is not None:
        return node.packed(map(_wrapped, node.parts))
    raise _no_signature(part)


#: The length of arrays that stand for those of any, where a `Spec` does not tell it.
_ANY_LENGTH = 2


def as_examples(part: Any) -> Any:
    """A structure with arrays in place of Specs and of Numba's types."""
    if isinstance(part, types.Type):
        return _example_of_type(part)
    if isinstance(part, Spec):
        spec = _Leaf(part).spec  # which has a shape
        shape = [_ANY_LENGTH if n is None else n for n in spec.shape or ()]
        return np.zeros(shape, spec.dtype)[()]
    if isinstance(part, dict):
        return dict_like(part, {key: as_examples(value) for key, value in dict.items(part)})
    if isinstance(part, list | tuple):
        parts = map(as_examples, part)
        return type(part)(*parts) if hasattr(part, "_fields") else type(part)(parts)
    if (node := node_of(part)) is not None:
        return node.packed(map(as_examples, node.parts))
    return part


def _example_of_type(kind: Any) -> Any:
    """A value of a type of Numba's."""
    if isinstance(kind, types.BaseTuple):
        parts = map(_example_of_type, kind)
        made = getattr(kind, "instance_class", None)
        return made(*parts) if made else tuple(parts)
    item = kind.dtype if isinstance(kind, types.Array) else kind
    if not isinstance(item, types.Number | types.Boolean | types.Record):
        return kind  # which is refused as other objects are
    found = np.zeros((_ANY_LENGTH,) * getattr(kind, "ndim", 0), numpy_dtype(item))[()]
    return bool(found) if kind is types.boolean else found


def _no_signature(given: Any) -> Any:
    message = (
        f"input_signature: {given!r} is not one; give a list with a Spec for each argument, or "
        "lists, tuples and dicts of Specs"
    )
    return invalid("input_signature", message)


def _fitted(path: str, value: Any, spec: Any) -> Any:
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


def placeholders(structure: Any, values: Any, specs: Any) -> Any:
    """Placeholders for arrays in the graph that is being built; other values as they are.

    ``specs`` are those of an ``input_signature``, or None.
    """
    exact = any_empty(values)
    if exact or specs is None:
        specs = [_general_spec(value, exact) for value in values]
    named_values = zip(named(structure), values, specs, strict=True)
    graph = current()
    return [_placeholder(graph, i, path, v, s) for i, ((path, _), v, s) in enumerate(named_values)]


def _placeholder(graph: Any, leaf: int, path: str, value: Any, spec: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    lengths = graph.lengths
    dimensions = zip(value.shape, spec.shape, strict=True)
    shape = tuple(lengths.dimension(leaf, axis, n, m) for axis, (n, m) in enumerate(dimensions))
    attrs = {"spec": spec._replace(shape=shape), "label": path}
    tensor = graph.create(PLACEHOLDER, [], attrs, name="argument").outputs[0]
    lengths.stands_for(tensor, leaf)
    if lies_apart(value):
        graph.cache.setdefault(APART, set()).add(tensor)
    return tensor


# Functions.


class _Remedies:
    """What another trace does of that at which one failed."""

    def __init__(self) -> None:
        self._endless: set[Any] = set()
        self._runs_fail = False

    def apply(self, graph: Any) -> None:
        """Let a trace do so."""
        recursion.cut(graph, self._endless)
        if self._runs_fail:
            tries.let_runs_fail(graph)

    def learn(self, error: BaseException) -> bool:
        """Whether there is another way after an error."""
        if isinstance(error, recursion.EndlessError) and error.code not in self._endless:
            self._endless.add(error.code)
            return True
        if isinstance(error, tries.AwaitedError) and not self._runs_fail:
            self._runs_fail = True
            return True
        return False


class Function(Sent, Generic[P, R]):
    """A Python function of arrays that is traced and runs as a graph; see `nbta.function`."""

    def __init__(
        self,
        f: Callable[P, R],
        compiled: Compiled = "auto",
        pick: Callable[[Any], Any] | None = None,
        signature: Sequence[Any] | None = None,
        convert: bool = CONVERT,
        outputs: Sequence[str] = (),
        static: Static | None = None,
        what: str = "function",
    ) -> None:
        functools.update_wrapper(self, f)
        self.__dict__.pop("_fills", None)  # of a function that this one is made of
        self._what = what  # of the public functions has made it
        self._f, self._compiled, self._pick = f, compiled, pick
        self._static = static or None
        if self._static and signature is not None:
            message = "static_argnums: an input_signature has arrays only; give one of the two"
            raise invalid("static", message)
        self._convert, self._outputs = convert, tuple(outputs)
        self._given_signature = signature
        self._signature = None if signature is None else Signature(signature)
        self._traces: dict[Any, Any] = {}
        #: The graph of the last call, and the shapes of its inputs where a launcher ran it.
        self._called: Any = None, None
        #: Each with what is called by it.
        self._launchers: list[tuple[Launcher, Any]] = []

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run, tracing first where no graph fits the arguments."""
        try:
            if kwargs and "out" in kwargs and self._fills:
                return self._filled(args, dict(kwargs))
            structure = (args, kwargs) if self._static is None else self.with_static((args, kwargs))
            # Questions that are asked without a call: each call would take 0.1 us.
            if (not building or current() is None) and watching() is None:
                for launcher, called in self._launchers:
                    result = launcher.call(*structure)
                    if result is not None:
                        self._called = called
                        return result if self._pick is None and not anywhere else self._of(result)
            if current() is not None or any_tensor(args, kwargs):
                self._check_tensors(structure)
                result = self._prepared()(*args, **kwargs)
                return result if self._pick is None else self._pick(result)
            with no_collection():  # a new graph has many objects that stay
                trace, arrays = self.bound(structure)
            result = trace.run(arrays, self._compiled)
            self._launchers = trace.launcher(structure, self._launchers)
            return self._of(result)
        except Exception as error:
            leaving(error)
            raise

    @functools.cached_property
    def _fills(self) -> bool:
        return takes_out(self)

    def _filled(self, args: Any, kwargs: Any) -> Any:
        """The result of a call with ``out=``."""
        out = kwargs.pop("out")
        is_free = (not building or current() is None) and watching() is None and not anywhere
        if is_free and out is not None:
            structure = (args, kwargs) if self._static is None else self.with_static((args, kwargs))
            for launcher, called in self._launchers:
                found = launcher.fill(*structure, out)
                if found is not None:
                    self._called = called
                    return found if self._pick is None else self._pick(found)
        if current() is not None or any_tensor(args, (kwargs, out)):
            message = "out: a function that is traced fills no arrays; assign the gradient"
            raise invalid("out", message)
        result: Any = self(*args, **kwargs)
        return result if out is None else fill(result, self._pick, out)

    def _of(self, result: Any) -> Any:
        """What of a run's results is given to the caller; in a body, arrays that do not change."""
        result = map_leaves(computed, result) if in_body() else result
        return result if self._pick is None else self._pick(result)

    def _prepared(self, for_run: bool = False) -> Any:
        return prepared(self._f, "the function", self._convert, self._outputs, for_run=for_run)

    def with_static(self, structure: Any) -> Any:
        """Arguments and keyword arguments, with static ones as leaves that are no arrays.

        Parameters
        ----------
        structure : tuple
            Arguments and keyword arguments.

        Returns
        -------
        tuple
            The same with static arguments wrapped.
        """
        return structure if self._static is None else self._static.wrapped(structure)

    def bound(self, structure: Any) -> Any:
        """The graph for a pair of arguments and keyword arguments, and the arrays among these.

        Parameters
        ----------
        structure : tuple
            Arguments and keyword arguments.

        Returns
        -------
        trace : object
            The graph that fits them.
        arrays : list of numpy.ndarray
            Its inputs.
        """
        structure = taken_apart(self.with_static(structure))
        if self._signature is not None:
            values = self._signature.values(structure)
            special = any_empty(values) or any(map(lies_apart, values))
            kinds = kinds_of(values) if special else None
        else:
            values = [as_leaf(path, v) for path, v in named(structure)]
            kinds = kinds_of(values)
        key = (layout(structure), order_of(structure), kinds)
        arrays = [value for value in values if isinstance(value, np.ndarray)]
        node = self._traces.get(key)
        while isinstance(node, _Branch):
            node = node.found.get(node.seen(values))
        # Other threads may call it with other kinds of arguments meanwhile.
        found = None if node is None else node.fitting(values, arrays)
        trace, hidden = found or self._traced(key, structure, values, arrays)
        self._called = trace, None
        trace.check(structure)
        return trace, [*arrays, *hidden]

    def _check_tensors(self, structure: Any) -> None:
        """Hold tensors against the signature, if there is one."""
        for path, value, spec in self._signature.check(structure) if self._signature else ():
            have = leaf_spec(value)
            if have.dtype != spec.dtype or not shapes.compatible(have.shape, spec.shape):
                message = f"{path} is {have}, and input_signature says {spec}; cast or reshape it"
                raise invalid("input_signature", message)

    def _traced(self, key: Any, structure: Any, values: Any, arrays: Any) -> Any:
        """A new graph, and the arrays from outside that are its inputs.

        It is for the lengths that Python asks for while it is made, and for what is outside now.
        """
        known: dict[Any, int] = {}
        branch, place = None, self._traces
        while True:
            node = place.get(key)
            if isinstance(node, _Branch):
                branch, key, place = node, node.seen(values), node.found
                known = {**known, **dict(zip(node.looks, key, strict=True))}
                continue
            made, asked = self._attempt_by_numbers(structure, values, known)
            known = {**known, **{look: look(values) for look in asked}}
            if asked and node is None:
                branch = place[key] = _Branch(self._title, structure, asked)
                key, place = branch.seen(values), branch.found
            if isinstance(made, _Trace):
                if node is None:
                    node = place[key] = _Versions(self)
                    if branch is not None:
                        branch.warn_of_many()
                return made, node.add(made, arrays)
            if node is None:
                place[key] = made
            else:  # of what is outside now it depends which lengths Python asks for
                known = {**known, **{look: look(values) for look in made.looks}}

    def _attempt_by_numbers(self, structure: Any, values: Any, known: Any) -> Any:
        """An attempt, with the values of whole numbers where there is no graph without these.

        Besides, by `ValueLook` of these numbers, the line that could do nothing without.
        """
        try:
            return self._attempt(structure, values, known), {}
        except Exception as error:
            numbers = {look: look(values) for look in _numbers(values)}
            if numbers.keys() <= known.keys() or getattr(error, "nbta_raised", False):
                raise
            # What a dtype does not go with is refused whatever its values are.
            if getattr(error, "reason", None) in ("dtype", "integer"):
                raise
            line = of_error(error)
        asked = dict.fromkeys(numbers, "Python" if line is None else str(line))
        return self._attempt(structure, values, {**known, **numbers}), asked

    def _attempt(self, structure: Any, values: Any, known: Any) -> Any:
        """A graph, or what Python had to know for one."""
        specs = None if self._signature is None else self._signature.specs
        exact: set[int] = set()
        lines: set[Any] = set()
        remedies = _Remedies()
        found: dict[Any, Any] = {}
        ways = iter(_FIXED)
        fixed = next(ways)
        while True:
            lengths = Lengths(known)
            outside = functools.partial(Outside, fixed=fixed, exact=exact)
            trace = _Trace(structure, values, lengths, specs, outside)
            compute_lines(trace.graph, lines)
            remedies.apply(trace.graph)
            control.assume_found(trace.graph, found)
            try:
                trace.make(self._prepared(for_run=True))
            except BaseException as error:
                self._place(error)
                # Whatever a user's code made of it: what it did is not what NumPy would do.
                if _is_final(error, lengths):
                    raise
                if remedies.learn(error):
                    continue
                if not lengths.asked:
                    # Arrays from outside that the trace took as values of a run: Python may need
                    # these, first of all whole numbers and truth values, by which it goes.
                    fixed = next(ways, None) if trace.outside.hidden else None
                    if fixed is None:
                        raise
                    continue
            finally:
                learnt, found = control.taken_found(trace.graph), {}
            asked = {look for look in lengths.asked if isinstance(look, ArrayLook)}
            exact |= {look.leaf for look in asked}
            missed = missed_lines(trace.graph) - lines
            lines |= missed
            if not (lengths.asked or missed):
                trace.warn_of_length()
                return trace
            if not lengths.asked:  # of the same arguments, the next trace finds the same
                found = learnt
            if not (asked or missed):
                return _Branch(self._title, structure, lengths.asked)

    def _place(self, error: BaseException) -> None:
        """Say in an error that came up in no line of the user's which function it is of."""
        code = getattr(inspect.unwrap(self._f), "__code__", None)
        if not isinstance(error, NbtaError) or code is None or of_error(error) is not None:
            return
        if not any(code.co_filename in text for text in (str(error), *_notes(error))):
            error.add_note(f"({code.co_filename}:{code.co_firstlineno})")

    @property
    def source(self) -> str:
        """The source of the function to which its last call was compiled, or would be compiled.

        Variables have the names of the arguments and variables that they stand for, with ``d_``
        before those that are adjoints, and comments say which lines the code comes from. What is
        compiled has other names and no such comments.

        Raises
        ------
        FailedPreconditionError
            Before the first call.
        UnimplementedError
            If it cannot be compiled.
        """
        from nbta.inspect.named_source import named_source  # what few need

        return named_source(self._compiled_program())

    @property
    def convert_source(self) -> str | None:
        """The source after Python's control flow was rewritten; None if nothing was rewritten."""
        return source_of(self._f) if self._convert else None

    @property
    def graph(self) -> Graph:
        """The graph of the last call after all passes, as it is compiled; see `source`."""
        return self._compiled_program().program

    def traced(self) -> tuple[Graph, list[Tensor]]:
        """The graph of the last call as it was traced, before all passes, and its results.

        Returns
        -------
        graph : Graph
            The graph.
        results : list of Tensor
            Its results.

        Raises
        ------
        FailedPreconditionError
            Before the first call.
        """
        self._runner()
        results = leaves(self._last.result)
        return self._last.graph, [r if isinstance(r, Tensor) else r.flow for r in results]

    def explain(self) -> str:
        """Describe how the last call runs, or will run once it is compiled.

        The text lists what the passes did, which operations share a loop, which buffers there are,
        which arrays became plain buffers and why others did not, and which operations run in
        Python.

        Returns
        -------
        str
            The description, as several lines.

        Raises
        ------
        FailedPreconditionError
            Before the first call.

        Examples
        --------
        >>> norm = nbta.function(lambda x: nbta.sqrt(nbta.sum(x * x)), compiled=True)
        >>> norm(np.array([3.0, 4.0]))
        np.float64(5.0)
        >>> "Mul, Sum" in norm.explain()  # one loop does both
        True
        """
        return self._runner().explain()

    def profile(
        self,
        *args: Any,
        file: str | os.PathLike[str] | IO[str] | None = None,
        repeats: int = 10,
        **kwargs: Any,
    ) -> Profile:
        """Measure where the time of a call goes.

        The function is traced and compiled once more, separately from its ordinary calls, even if
        these would not compile yet. It is then called several times, and once more in a separate
        build with clocks between its parts. If it cannot be compiled, operations run one by one.

        Parameters
        ----------
        *args
            The arguments of the call, including any that the function itself calls ``file`` or
            ``repeats``.
        file : path or text file, optional
            Where to write a timeline of the calls, as for ``trace`` of `nbta.Session.run`.
        repeats : int
            The number of calls to time.
        **kwargs
            The keyword arguments of the call.

        Returns
        -------
        Profile
            Prints as a table of phases, calls, lines and operations with their times.

        Raises
        ------
        InvalidArgumentError
            If ``repeats`` is less than one.
        OSError
            If the file cannot be written; nothing was run then.
        Exception
            Any exception that the call raises.

        Examples
        --------
        >>> norm = nbta.function(lambda x: nbta.sqrt(nbta.sum(x * x)))
        >>> found = norm.profile(np.ones(1000))
        >>> [row.types for row in found.operations if "Sum" in row.types]  # one loop does both
        [('Mul', 'Sum')]
        """
        from nbta.inspect.profiling import profile  # what few need

        alone = self.apart()
        try:
            return profile(self._title, alone, (args, kwargs), alone, (args, kwargs), file, repeats)
        except Exception as error:
            leaving(error)
            raise

    def apart(self, compiled: Compiled | None = None) -> Function[P, R]:
        """The same function, which nothing was traced of yet.

        Parameters
        ----------
        compiled : bool or "auto", optional
            As for `nbta.function`; that of this function by default.

        Returns
        -------
        Function
            The same function without any graphs.
        """
        f, own, *others = self._recipe()
        return Function(f, own if compiled is None else compiled, *others)

    def prepared(self, structure: Any) -> Any:
        """What runs it for arguments; its function or the reason for having none; and inputs.

        Parameters
        ----------
        structure : tuple
            Arguments and keyword arguments.

        Returns
        -------
        runner : Runner
            What runs the graph that fits them.
        function : callable or str
            The compiled function, or the reason why there is none.
        arrays : list of numpy.ndarray
            Its inputs.
        """
        trace, arrays = self.bound(structure)
        runner = trace.runner
        return runner, runner.prepared(arrays, self._compiled), arrays

    def warm(self, *args: Any, **kwargs: Any) -> Self:
        """Trace and compile for arguments of some kinds now, without running the function.

        The machine code is saved on disk, so that later processes compile nothing for such
        arguments.

        Parameters
        ----------
        *args, **kwargs
            Arguments like those of the calls to come. Of arrays and numbers only dtypes and shapes
            count, and a `nbta.Spec` or a type of Numba's, as ``numba.float64[:]``, may stand for
            each; a length that it does not tell is any but 0 and 1. With an ``input_signature``,
            no arguments are needed.

        Returns
        -------
        Function
            The function itself.

        Raises
        ------
        UnimplementedError
            If the function cannot be compiled for such arguments, or has ``compiled=False``.
        Exception
            Any exception that tracing the function raises.

        Examples
        --------
        >>> slope = nbta.grad(lambda x: nbta.sum(x**2)).warm(nbta.Spec("float64", (None,)))
        >>> slope.traces
        1
        >>> slope(np.array([1.0, 2.0]))  # runs machine code
        array([2., 4.])
        """
        if self._signature is not None and not args and not kwargs:
            args = tuple(self._given_signature or ())
        try:
            with no_collection():
                _, found, _ = self.prepared(as_examples(self.with_static((args, kwargs))))
        except Exception as error:
            leaving(error)
            raise
        if isinstance(found, str):
            raise UnimplementedError(f"{self._title} cannot be compiled: {found}")
        return self

    def prefer_compiled(self) -> None:
        """Compile at the next call, without waiting until compiling pays off."""
        self._compiled = True

    def _runner(self) -> Any:
        if self._last is None:
            message = (
                f"{self._title} was not called yet; call it, so that the kind of arguments is known"
            )
            raise FailedPreconditionError(message)
        return self._last.runner

    @property
    def _last(self) -> Any:
        """The graph of the last call, whose runner knows the shapes; None before it."""
        trace, shapes = self._called
        if shapes is not None:
            trace.runner.shapes = shapes
        return trace

    def _compiled_program(self) -> Any:
        found = self._runner().last()
        if isinstance(found, str):
            raise UnimplementedError(f"{self._title} cannot be compiled: {found}")
        return found

    @property
    def traces(self) -> int:
        """The number of graphs made so far."""
        return len(self.every_trace())

    def every_trace(self) -> list[Any]:
        """What holds the graphs that were made so far.

        Returns
        -------
        list
            One for each graph.
        """
        return [trace for node in self._traces.values() for trace in _below(node)]

    def trace_like(self, structure: Any) -> tuple[Any, bool]:
        """A graph that was made for arguments of such types, whatever their lengths.

        Parameters
        ----------
        structure : tuple
            Arguments and keyword arguments.

        Returns
        -------
        trace : object
            The graph; None where there is none.
        goes_by_lengths : bool
            Whether Python went by lengths for arguments of such types.
        """
        structure = taken_apart(self.with_static(structure))
        values = [as_leaf(path, v) for path, v in named(structure)]
        like, kinds = (layout(structure), order_of(structure)), _types_of(kinds_of(values))
        nodes = [
            node
            for (*parts, found), node in list(self._traces.items())
            if tuple(parts) == like and (found is None or _types_of(found) == kinds)
        ]
        traces = [trace for node in nodes for trace in _below(node)]
        return next(iter(traces), None), any(isinstance(node, _Branch) for node in nodes)

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(
        self: Function[Concatenate[T, Q], R], instance: object, owner: Any = None
    ) -> Callable[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        traced = once(
            instance,
            self,
            lambda: Function(
                weakly(_call_on, instance, self._f, self._convert, self._outputs),
                self._compiled,
                self._pick,
                self._given_signature,
                convert=False,
                static=self._static and self._static.of_method(),
            ),
        )

        @functools.wraps(self._f)
        def method(*args: Any, **kwargs: Any) -> Any:
            try:
                return traced(*args, **kwargs)
            except Exception as error:
                leaving(error)
                raise

        method.__self__ = instance  # type: ignore[attr-defined] # which is kept alive by this alone
        return method

    def _recipe(self) -> tuple[Any, ...]:
        """The arguments that make one like it."""
        options = self._given_signature, self._convert, self._outputs, self._static, self._what
        return self._f, self._compiled, self._pick, *options

    @property
    def _title(self) -> str:
        """What it is, of which function, and where that is."""
        return f"nbta.{self._what} of {described(self._f)}"

    def __repr__(self) -> str:
        traces = self.every_trace()
        if not traces:
            return f"<{self._title}, not called yet>"
        is_compiled = any(getattr(trace.runner, "has_code", False) for trace in traces)
        graphs = "1 graph" if len(traces) == 1 else f"{len(traces)} graphs"
        return f"<{self._title}, {graphs}, {'compiled' if is_compiled else 'not compiled'}>"


@overload
def function(
    f: Callable[P, R],
    *,
    compiled: Compiled = "auto",
    input_signature: Sequence[Any] | None = None,
    convert: bool = CONVERT,
    outputs: Sequence[str] = (),
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Function[P, R]: ...
@overload
def function(
    f: None = None,
    *,
    compiled: Compiled = "auto",
    input_signature: Sequence[Any] | None = None,
    convert: bool = CONVERT,
    outputs: Sequence[str] = (),
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Callable[[Callable[P, R]], Function[P, R]]: ...
def function(
    f: Callable[..., Any] | None = None,
    *,
    compiled: Compiled = "auto",
    input_signature: Sequence[Any] | None = None,
    convert: bool = CONVERT,
    outputs: Sequence[str] = (),
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Any:
    """Make a Python function of arrays run as a graph.

    Parameters
    ----------
    f : callable
        A function of arrays, numbers, and nested lists, tuples, dicts and dataclasses of these (and
        of other classes, see `register_structure`) that returns such a structure.
        It is called with symbolic tensors, once for each combination of dtypes, ranks and axes of
        length 1, but not for each length (except for arrays without elements, for which it is
        called once per shape). Truth values, strings, functions and None are part of the
        combination. Each call sees the current values of everything that ``f`` reads from outside;
        see Notes. Lengths (``x.shape[0]``, ``x.size``) are symbolic integers; see Notes. A write to
        a TensorArray returns the array to use from then on.
    compiled : {"auto", True, False}
        As for `Session.run`.
    input_signature : list, optional
        The specification of the arguments, which are then given by position: for each a `Spec`, or
        nested lists, tuples and dicts of these, such as ``nbta.Spec("float64", (None, 3))``. One
        graph then serves all arguments, and length 1 is not special. Arrays are cast within their
        kind, as `Session.run` casts fed values.
    convert : bool
        Whether Python's loops, branches and item assignments in ``f``, and in the functions that it
        calls, become loops, branches and assignments of the graph; see Notes.
    outputs : sequence of str
        Names of arguments that the function fills. Their final values are returned after the
        function's own results. The caller's arrays do not change.
    static_argnums, static_argnames : int or str, or a sequence of these
        Positions or names of arguments that are passed to the function as they are: numbers that
        Python itself needs, or any other object that has a hash. There is one graph for each value.

    Returns
    -------
    callable
        Returns arrays, and scalars for rank 0. If it is called with tensors, or while a graph is
        being built, it adds its operations to that graph.

    Raises
    ------
    InvalidArgumentError
        If a static argument does not exist. When called: if arguments are not arrays or do not fit
        ``input_signature``, if a static argument has no hash, if the same array is given twice and
        the function changes it, or if the result of a write to a TensorArray is dropped and a later
        operation may need the written value.

    Notes
    -----
    Control flow depends on what is known: a condition that is known while tracing is evaluated by
    Python; a condition that is known only when the graph runs becomes a branch; and a loop over a
    range of more than eight numbers, or of a length that is known only when the graph runs, becomes
    a loop. `nbta.unroll` makes Python run each iteration. Arrays change in place as in NumPy,
    except that the caller's arrays do not change. Functions without source, such as those of
    ``python -c``, are traced without conversion.

    Each call uses the current values of everything that the function, and the functions that it
    calls, read from outside (variables of modules and enclosing functions, defaults, attributes,
    items of containers); checking them takes 20 to 60 ns each. Arrays are inputs of the graph, so a
    change of their items, or another array of the same dtype and rank, does not need a new trace,
    unless Python itself uses the items, as in ``np.zeros(shape)``. A change of a number, string,
    truth value, None, function, class, object or container causes a new trace; after 16 of them, a
    `PerformanceWarning` is given. `nbta.constant` promises that an array does not change, so that
    its values are compiled in, like numbers. Changes that the function itself makes outside, such
    as appending to a list, happen when it is traced. Attributes that are read by libraries in
    machine code are not tracked. In a graph that is built by hand (`Graph`), arrays are constants.

    Arithmetic with lengths, comparisons that are given to `cond` or `where`, slices, ``size=n``,
    numbers of iterations and ``nbta.zeros((n, 2))`` keep one graph for all lengths. If Python
    itself must know a length (``if``, ``and``, ``in``, ``len(x)``, ``range``, ``int``,
    ``np.zeros(x.shape)``, a key of a dict), the function is called again with that length as an
    int, and the graph is for this length only. The same holds for arrays without elements, so
    results are always those of Python, and for whole numbers among the arguments where Python
    needs their values, as in ``np.linspace(0.0, 1.0, n)``. A function with graphs for 16 lengths
    or values gives a `PerformanceWarning` that names the line. A length that the arguments do not
    determine, such as that of a growing variable of a loop, raises an error in such places.

    Examples
    --------
    >>> @nbta.function
    ... def norm(x):
    ...     return nbta.sqrt(nbta.sum(x * x))
    >>> norm(np.array([3.0, 4.0]))
    np.float64(5.0)

    Loops and branches are read from the source of a function: in a file, in a notebook, or at the
    prompt of Python 3.13 and newer.

    >>> @nbta.function
    ... def smooth(x, rate):
    ...     y = x.copy()
    ...     for i in range(1, len(x)):
    ...         if x[i] < 0.0:
    ...             break
    ...         y[i] = rate * y[i - 1] + (1.0 - rate) * x[i]
    ...     return y
    >>> smooth(np.array([1.0, 2.0, 4.0, -1.0, 8.0]), 0.5)
    array([ 1.  ,  1.5 ,  2.75, -1.  ,  8.  ])

    >>> @nbta.function(static_argnames="order")
    ... def power(x, order):
    ...     return x * power(x, order - 1) if order else 1.0
    >>> power(2.0, order=10), power.traces
    (np.float64(1024.0), 1)

    >>> def running(x, out):
    ...     out[0] = x[0]
    ...     for i in range(1, len(x)):
    ...         out[i] = out[i - 1] + x[i]
    >>> nbta.function(running, outputs=("out",))(np.array([1.0, 2.0, 4.0]), np.zeros(3))
    array([1., 3., 7.])

    >>> @nbta.function
    ... def mean(x):
    ...     return nbta.sum(x) / x.shape[0] if x.shape[0] else 0.0
    >>> mean(np.array([1.0, 2.0, 3.0])), mean(np.zeros(0)), mean.traces
    (np.float64(2.0), np.float64(0.0), 2)
    """
    if f is None:
        options = {"compiled": compiled, "input_signature": input_signature, "convert": convert}
        static = {"static_argnums": static_argnums, "static_argnames": static_argnames}
        return functools.partial(function, **options, **static, outputs=outputs)
    return Function(
        f,
        compiled,
        signature=input_signature,
        convert=convert,
        outputs=outputs,
        static=Static(f, static_argnums, static_argnames),
    )


def warm(*args: Any, **kwargs: Any) -> Callable[[F], F]:
    """Compile a function where it is defined, for arguments of some kinds.

    Parameters
    ----------
    *args, **kwargs
        Arrays, numbers, `nbta.Spec` or types of Numba's, as of ``warm`` of what is decorated.

    Returns
    -------
    callable
        A decorator for what `nbta.function`, `grad`, `value_and_grad`, ... return. It returns that
        itself, so that several of them compile for several kinds.

    Raises
    ------
    InvalidArgumentError
        If what is decorated is no such function.
    UnimplementedError
        If the function cannot be compiled for such arguments, or has ``compiled=False``.
    Exception
        Any exception that tracing the function raises: names that it uses must be defined before
        it.

    Examples
    --------
    >>> @nbta.warm(nbta.Spec("float64", (None,)), 0.5)
    ... @nbta.value_and_grad
    ... def energy(x, k):
    ...     return k * np.sum(x**2)
    >>> energy(np.array([1.0, 2.0]), 0.5)  # runs machine code
    (np.float64(2.5), array([1., 2.]))
    """

    def decorate(f: F) -> F:
        compile_for = getattr(f, "warm", None)
        if compile_for is None:
            name = getattr(f, "__qualname__", repr(f))
            message = (
                f"warm: {name} is not a function of nbta's; decorate it with nbta.function, "
                "nbta.grad or nbta.value_and_grad first, below nbta.warm"
            )
            raise invalid("warm", message)
        compile_for(*args, **kwargs)
        return f

    return decorate


def _is_whole(array: np.ndarray) -> bool:
    return array.dtype.kind in "biu"


#: Of which arrays from outside a trace goes by the values, in the order in which this is tried.
_FIXED = (None, _is_whole, lambda array: True)


class _Versions:
    """The graphs for one kind of arguments, of which each is for what was outside at its trace."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.traces: list[Any] = []
        self._made = 0

    def fitting(self, values: Any, arrays: Any) -> Any:
        """A graph that fits what is outside now, with the arrays that it takes from there."""
        for trace in self.traces:
            if all(look(values) == seen for look, seen in trace.lengths.known.items()):
                hidden = trace.looking.now(arrays)
                if hidden is not None:
                    return trace, hidden
        return None

    def add(self, trace: Any, arrays: Any) -> Any:
        """Put a graph first, and forget old ones; the arrays that it takes from outside."""
        if self._made == MANY_LENGTHS:
            message = (
                f"{self._function} is traced again and again, {self._made} times so far, as what "
                f"it reads from outside changes: {self.traces[0].looking.missed}; make it an "
                f"argument, or an array, whose changes need no new graph"
            )
            warn_caller(message, PerformanceWarning)
        self._made += 1
        self.traces = [trace, *self.traces[: MANY_LENGTHS - 1]]
        hidden, traced = trace.looking.now(arrays), trace.looking.arrays
        trace.looking.arrays = None  # others keep them alive, or nobody
        return traced if hidden is None else hidden


class _Trace:
    """The graph of a function for one kind of arguments."""

    def __init__(self, structure: Any, values: Any, lengths: Any, specs: Any, outside: Any) -> None:
        self.graph, self.lengths, self._signed = Graph(), lengths, specs is not None
        self.graph.lengths = lengths
        self._exact = any_empty(values)
        self._structure = structure
        with self.graph.as_default(), own_numpy():
            self._given = placeholders(structure, values, specs)
        self._passed = list(map(unfixed, self._given))
        for leaf in lengths.values:
            self._passed[leaf] = values[leaf].item()  # divided by 0 it is an error, as Python's
        arguments = [tensor for tensor in self._given if isinstance(tensor, Tensor)]
        arrays = [value for value in values if isinstance(value, np.ndarray)]
        pairs = enumerate(zip(arrays, arguments, strict=True))
        numbers = {id(array): (k, tensor) for k, (array, tensor) in pairs}
        self.outside = self.graph.outside = outside(numbers)
        self.arguments = len(arguments)
        self._refused_kinds: set[Any] = set()  # of arguments for which there is no short way
        self._lying_apart = {k for k, array in enumerate(arrays) if lies_apart(array)}

    def make(self, f: Any) -> None:
        """Trace a function."""
        given = self._given
        with phase("tracing"), self.graph.as_default(), own_numpy():
            for leaf in self._passed:
                self.outside.given(leaf)
            args, kwargs = pack(self._structure, self._passed)
            try:
                result = f(*args, **kwargs)
            except TypeError as error:
                if "NoneType" in str(error):
                    error.add_note(_UNKNOWN_RANK)
                raise
            self.result = map_leaves(_as_result, result)
        computed = [leaf for leaf in leaves(self.result) if not is_text(leaf)]
        check_writes(self.graph, computed)
        self.inputs = [tensor for tensor in given if isinstance(tensor, Tensor)]
        self.inputs += self.outside.inputs
        self.looking = self.outside.looking([each.spec for each in self.inputs[: self.arguments]])
        self.apart = self._pairs()
        self._results = [*computed, *left_over(self.graph)]
        self._runners, self._changes = Runners(self.graph), changes_objects(self.graph)
        self.outside = self.graph.outside = self._structure = self._given = None
        del self._passed

    def warn_of_length(self) -> None:
        """Warn of loops that are written out operation by operation, if recursion was not told."""
        if recursion.is_told(self.graph):
            return
        located: list[Any] = [op.location for op in everything(self.graph)]
        count = len(located)
        places = Counter(place for place in located if place is not None)
        if count < WRITTEN_OUT or not places:
            return
        (place, often), *_ = places.most_common(1)
        message = (
            f"tracing gave {count:,} operations, {often:,} of them by this line "
            f"({os.path.basename(place.filename)}:{place.line}): a recursion, or a loop that "
            f"Python runs, is written out, and takes about a millisecond an operation to compile. "
            f"Let a loop over a range, or over an array, do it; to silence this: "
            f"warnings.simplefilter('ignore', nbta.PerformanceWarning)"
        )
        warnings.warn_explicit(message, PerformanceWarning, *place)

    def check(self, structure: Any) -> None:
        """Refuse arguments that are one object, where the function changes one of them."""
        if self._changes:
            check_apart(structure)

    def run(self, arrays: Any, compiled: Compiled) -> Any:
        """The result for arguments."""
        check_compiled(compiled)
        for one, other in self.apart:
            if _share(arrays[one], arrays[other]):
                raise self._one_array(one, other)
        values = iter(self.runner([array[()] for array in arrays], compiled))
        return map_leaves(lambda leaf: leaf if is_text(leaf) else next(values), self.result)

    def _pairs(self) -> list[tuple[int, int]]:
        """Which inputs may not be one array, as the function changes one of them."""
        places = {tensor: k for k, tensor in enumerate(self.inputs)}
        given = arguments_of(self.graph)
        changed = {places.get(origin(tensor)) for tensor, _, changed in given if changed}
        arrays = [k for k, tensor in enumerate(self.inputs) if tensor.ndim]
        return [(i, j) for i in arrays for j in arrays if i < j and {i, j} & changed]

    def _one_array(self, *places: int) -> InvalidArgumentError:
        names = {origin(tensor): name for tensor, name, _ in arguments_of(self.graph)}
        inputs = [self.inputs[place] for place in places]
        one, other = (names.get(each) or each.op.attrs["label"] for each in inputs)
        message = (
            f"{one} and {other} are one array, or share items, and the function changes one of "
            f"them; give a copy"
        )
        return invalid("aliased", message)

    @property
    def runner(self) -> Any:
        """What computes all results from the arguments."""
        return self._runners.of(self._results, self.inputs)

    def launcher(self, structure: Any, others: Any) -> list:
        """Short ways to call compiled functions: one for such arguments first, and some others."""
        compiled = self.runner.ran
        outputs = leaves(self.result)
        truths = any(isinstance(value, bool) for value in leaves(structure))
        if (
            compiled is None
            or self._exact
            or self.runner.generators  # they go back to where they were where it gives up
            or self.runner.prints  # once, although it may give up
            or (self._signed and truths)  # which are arrays by the signature
            or not all(isinstance(result, Tensor) for result in outputs)
            or len(outputs) < len(self._results)
        ):
            return others
        same = (other for other, _ in others if other.executable is compiled.executable)
        if any(other.fits(*structure) for other in same):
            return others  # it knows them, but refused where they are in memory, or their result
        kinds = tuple((type(leaf), getattr(leaf, "dtype", None)) for leaf in leaves(structure))
        if kinds in self._refused_kinds:
            return others
        whole, structure = structure, taken_apart(structure)
        specs = [tensor.spec for tensor in self.inputs[: self.arguments]]
        looks, now = self.lengths.known, None if self.looking.is_empty else self.looking.at_launch
        made = Launcher(
            compiled.executable,
            structure,
            specs,
            self.result,
            looks,
            self.apart,
            self._lying_apart,
            now,
            self._changes,
            None if structure is whole else taken_apart,
        )
        if not made.fits(*whole):
            self._refused_kinds.add(kinds)
            return others
        return [(made, (self, self.runner.shapes)), *others[: _LAUNCHERS - 1]]


def _call_on(
    instance: Any, f: Any, convert: Any, outputs: Any, /, *args: Any, **options: Any
) -> Any:
    """A method of an object, while it is traced."""
    if (outside := reading()) is not None:
        outside.given(instance)
    return prepared(f, "the function", convert, outputs)(instance, *args, **options)


def _share(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether arrays have items in common."""
    return np.may_share_memory(one, other) and np.shares_memory(one, other)


#: Operations of a function that were traced one by one, of which its user is warned.
WRITTEN_OUT = 5000
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

    def __init__(self, function: Any, structure: Any, asked: Any) -> None:
        self.looks = tuple(sorted(asked, key=repr))
        self.found: dict[Any, Any] = {}
        self._function, self._asked = function, asked
        self._names = [path for path, _ in named(structure)]

    def seen(self, values: Any) -> Any:
        """What decides which graph fits."""
        return tuple([look(values) for look in self.looks])

    def warn_of_many(self) -> None:
        """Say so, once, where there is a graph for each of many lengths."""
        if len(self.found) != MANY_LENGTHS:
            return
        look = self.looks[0]
        name, line = self._names[look.leaf], self._asked[look]
        if isinstance(look, ValueLook):
            what, remedy = (
                f"value of {name}",
                "give few of them, or write a loop over a range of it",
            )
        else:
            what = f"length of axis {look.axis} of {name}"
            remedy = "nbta.cond, nbta.where, nbta.scan, nbta.zeros and their kin take all lengths"
        message = (
            f"{self._function} is traced for each {what}, {MANY_LENGTHS} so far, as {line} needs "
            f"it in Python; {remedy}"
        )
        warn_caller(message, PerformanceWarning)


def _below(node: Any) -> Any:
    if isinstance(node, _Versions):
        return node.traces
    return [trace for other in node.found.values() for trace in _below(other)]


#: Graphs of one function for as many lengths are worth a warning.
MANY_LENGTHS = 16


def check_writes(graph: Any, results: Any) -> None:
    """Refuse a write whose result nobody uses where a later operation counts on it."""
    used = {result.flow for result in results if isinstance(result, SymbolicTensorArray)}
    lost = lost_write(graph, used)
    if lost is not None:
        write, later = lost
        message = (
            f"the result of {write.name!r} ({write.type}) is dropped, so the write would not run, "
            f"but {later.name!r} ({later.type}) may depend on it; assign the result, as in "
            f"ta = ta.write(i, value)"
        )
        raise invalid("lost_write", message)


def _notes(error: BaseException) -> Any:
    return getattr(error, "__notes__", ())


def is_text(value: Any) -> bool:
    """Whether a part of a result is a text, which a trace knows and no run computes."""
    return type(value) in (str, bytes)


def _as_result(value: Any) -> Any:
    """A tensor or an array of the graph that is being built, and of no other; texts as they are."""
    if is_text(value):
        return value
    if not isinstance(value, SymbolicTensorArray):
        return as_tensor(value)
    graph: Any = current()
    graph.resolve(value.flow)
    return value


#: By the identity of a function or an object, as others may be equal to it: it, and what was made.
_made: dict[int, tuple[weakref.ref[Any], dict[Any, Any]]] = {}


def _forget(key: int, _: Any) -> None:
    _made.pop(key, None)


def weakly(function: Any, owner: Any, *more: Any) -> Any:
    """The function with first arguments, of which the first is not kept alive by that."""
    try:
        owner = weakref.ref(owner)
    except TypeError:
        return functools.partial(function, owner, *more)
    return lambda *args, **kwargs: function(owner(), *more, *args, **kwargs)


def once(f: Any, kind: Any, make: Any) -> Any:
    """What was made from a function or an object before, so that it is traced once.

    What is made must hold ``f`` by `weakly`, or both will stay for ever.
    """
    key = id(f)
    owner, found = _made.get(key, (None, {}))
    if owner is None or owner() is not f:
        try:
            owner, found = weakref.ref(f, functools.partial(_forget, key)), {}
            _made[key] = owner, found
        except TypeError:  # no weak references to it
            return make()
    if kind not in found:
        found[kind] = make()
    return found[kind]
