"""Parallel loops tell the arrays that they use when they begin and when they have ended.

Numba makes a parallel loop of a ``prange`` loop after the rewrites; here it is a plain loop yet.
Before it go calls of `enter`, on the way out of it `leave` and then `report`, for every array
that its body uses. An iteration cannot get past these: what it raises ends its part of the loop and
no more. Numba drops it, so a failure is kept in its array and raised when all iterations have
ended.

Each of the three is overloaded by type; a type whose values hold arrays says so with an attribute
``used_in_loops``.

Functions whose calls may need Python say so, too: a type without a value, whose ``function`` is
what a variable of it stands for. A compiled function that calls such a one counts as one.
"""

import importlib
import sys
from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from nbta.runtime import memory as mem
from nbta.runtime import request as rq
from nbta.runtime import settings
from nbta.runtime.compiled import out_of_line, stay_out_of_line
from nbta.runtime.extension import (
    HandleType,
    LanesType,
    TensorArrayType,
    new_request,
    store_fields,
)
from nbta.runtime.failures import raise_failure
from nbta.runtime.numba_private import (
    ConvertLoopPass,
    Rewrite,
    compute_cfg_from_blocks,
    compute_live_map,
    compute_use_defs,
    cpu_target,
    environments_of,
    get_call_table,
    ir,
    mk_unique_var,
    register_rewrite,
)
from nbta.runtime.settings import add_to_setting, change_setting, setting
from nbta.runtime.sharing import (
    forget_python_error,
    hold_python,
    kept_failure,
    let_python_go,
    python_held,
    stray_failure,
)
from nbta.runtime.slots import put_by_claim, seen_by_claim, take_by_claim
from nbta.runtime.store import store_at

# The calls, and claims from inside of loops.


def used_in_loops(kind) -> bool:
    """Whether values of a type must be told of the parallel loops that use them."""
    if isinstance(kind, types.BaseTuple):
        return any(used_in_loops(member) for member in kind)
    return getattr(kind, "used_in_loops", False) or bool(functions_of(kind))


def functions_of(kind, seen=None) -> dict:
    """Types of functions that a value of a type calls and loops must tell, by name."""
    if getattr(kind, "used_in_loops", False) and isinstance(kind, types.Callable):
        return {str(kind): kind}
    if isinstance(kind, types.FunctionType):
        return {str(each): each for each in FIRST_CLASS}
    seen, found = set() if seen is None else seen, {}
    if kind in seen:
        return {}
    seen.add(kind)
    for inner in _members(kind):
        found |= functions_of(inner, seen)
    for dispatcher in _dispatchers(kind):
        for version in list(dispatcher.overloads.values()):
            for inner in _types_in(version):
                found |= functions_of(inner, seen)
    return found


#: Types that stand for all functions which values of first-class function types may be.
FIRST_CLASS = []


def _members(kind):
    """Types of what a value holds, or of what its calls call."""
    if isinstance(kind, types.BaseTuple):
        return kind
    if isinstance(kind, types.ClassInstanceType):
        return list(kind.struct.values())
    return getattr(kind, "calls", ())


def _dispatchers(kind):
    """The compiled functions that calls of a type may lead to."""
    if isinstance(kind, types.Dispatcher):
        return [kind.dispatcher]
    own = getattr(_key(kind), "_dispatcher", None)  # of what `vectorize` makes
    if own is not None:
        return [own]
    templates = kind.templates if isinstance(kind, types.Function) else ()
    if isinstance(kind, types.BoundFunction):
        templates = (kind.template,)
    chosen = [c for t in templates for c in getattr(t, "_impl_cache", {}).values()]
    found = (each[0] for each in chosen if isinstance(each, tuple))
    return [each for each in found if hasattr(each, "overloads")]


#: By functions whose overloads call others: what gives the types of these, of those of arguments.
CALLED_BEHIND = {}


def _key(kind):
    """The function of a type of Numba's own functions; None for other types."""
    return kind.typing_key if isinstance(kind, types.Function) else None


def _behind(expression, typemap, calltypes) -> list:
    """Types of what a call of such a function calls."""
    if not (isinstance(expression, ir.Expr) and expression.op == "call"):
        return []
    # Numba has given what the function's own loops call another name; these loops tell of it.
    kinds = CALLED_BEHIND.get(_key(typemap.get(expression.func.name)))
    return [] if kinds is None else kinds(calltypes[expression].args)


def _types_in(version) -> list:
    """Types of what a compiled function calls, among others.

    Of a function from Numba's disk cache there are those that a process must have for its code.
    """
    note = version.type_annotation
    typemap = getattr(note, "typemap", None)
    if typemap is not None:
        behind = [
            kind for each in note.calltypes for kind in _behind(each, typemap, note.calltypes)
        ]
        return [*typemap.values(), *behind]
    constants = [each for env in environments_of(version) for each in env.consts]
    return [each.kind for each in constants if hasattr(each, "kind")]


@out_of_line
def change_use(operation, store):
    """Tell a store, if any, that a parallel loop begins or has ended.

    This happens with the interpreter's lock held.
    """
    stay_out_of_line()
    words = new_request()
    mem.store_int(words + 8 * rq.INDEX, 1 - python_held())
    python = hold_python()
    begins = operation == rq.ENTER
    if begins and setting(settings.LOOPS) == 0:
        change_setting(settings.STRAY, 0)
    add_to_setting(settings.LOOPS, 1 if begins else -1)
    if store:
        mem.call_entry(setting(settings.STORAGE_ENTRY), operation, store, words)
    let_python_go(python)


@out_of_line
def raise_kept(store):
    """Raise the failure that a loop left in a store, if any, or one of its iterations' arrays."""
    stay_out_of_line()
    words = new_request()
    r = mem.array_at(words, rq.WORDS, np.int64)
    status, operation = stray_failure(r)
    failed = np.int64(0)
    if store and status == 0:
        status, operation, failed = kept_failure(store_at(store), r)
    if status:
        python = hold_python()
        forget_python_error()  # this thread's own iterations may have left one after
        let_python_go(python)
        raise_failure(status, operation, failed, words)


@out_of_line
def write_in_loop(store, slot, source):
    """Write an element in a parallel loop; False where the kernels must see to it."""
    stay_out_of_line()
    return put_by_claim(store, slot, source)


@out_of_line
def read_in_loop(store, slot):
    """Mark a slot as read in a parallel loop; False where the kernels must see to it."""
    stay_out_of_line()
    return take_by_claim(store, slot)


@out_of_line
def look_in_loop(store, slot):
    """Look at a slot in a parallel loop; False where the kernels must see to it."""
    stay_out_of_line()
    return seen_by_claim(store, slot)


def _around_loops(name, act, act_alone):
    """A function for all types that are `used_in_loops`; tuples pass it on to their members.

    None stands for a loop that only uses arrays of its iterations; so do lanes, each of which is
    one iteration's.
    """

    def function(value):
        raise NotImplementedError(f"{name}: compiled code only")

    function.__name__ = name

    @overload(function)
    def implement(value):
        if isinstance(value, TensorArrayType | HandleType):
            return act
        if isinstance(value, types.NoneType | LanesType):
            return act_alone
        if not isinstance(value, types.BaseTuple):
            return None
        if len(value) == 0 or not used_in_loops(value):
            return lambda value: None

        def members(value):
            function(value[0])
            function(value[1:])

        return members if used_in_loops(value[0]) else lambda value: function(value[1:])

    return function


enter = _around_loops(
    "enter",
    lambda value: change_use(rq.ENTER, store_fields(value)),
    lambda value: change_use(rq.ENTER, 0),
)
leave = _around_loops(
    "leave",
    lambda value: change_use(rq.LEAVE, store_fields(value)),
    lambda value: change_use(rq.LEAVE, 0),
)
report = _around_loops(
    "report",
    lambda value: raise_kept(store_fields(value)),
    lambda value: raise_kept(0),
)


# Where they go.


@register_rewrite("before-inference")
class _Namespace(Rewrite):
    """Import what compiled code calls by its name in nbta, which is imported when first used."""

    #: Whether Numba looked for new functions after that. It does when a compilation begins, and the
    #: import may come later in one, as what looks at nbta's attributes imports it, too.
    _is_known = False

    def match(self, func_ir, block, typemap, calltypes):
        """Look for a variable that is nbta."""
        whole = sys.modules.get("nbta")
        named = [s.value for s in block.find_insts(ir.Assign)]
        named = [each.value for each in named if isinstance(each, ir.Global | ir.FreeVar)]
        if not _Namespace._is_known and any(each is whole for each in named):
            importlib.import_module("nbta.namespace")
            cpu_target.typing_context.refresh()
            cpu_target.target_context.refresh()
            _Namespace._is_known = True
        return False


# The rewrite in `extension` is registered, and so runs, before this one: it replaces blocks.
@register_rewrite("after-inference")
class _ParallelLoops(Rewrite):
    """Put calls around the parallel loops of a function, all at once."""

    def __init__(self, state):
        super().__init__(state)
        options = state.flags.auto_parallel
        parallel = options.enabled and options.prange
        behind = (each in CALLED_BEHIND for each in map(_key, state.typemap.values()))
        if parallel and (any(map(used_in_loops, state.typemap.values())) or any(behind)):
            _Function(state).mark_loops()

    def match(self, func_ir, block, typemap, calltypes):
        return False


class _Loop(NamedTuple):
    """A loop that Numba will run in parallel: labels of its blocks, and what it uses."""

    entry: int
    header: int
    body: set
    exit: int
    outer: list  # variables of arrays that are there before it
    arrays: bool  # whether it uses any, also of its own
    functions: list  # types of functions that it calls


class _Function:
    """A function whose types are inferred."""

    def __init__(self, state):
        self.func_ir, self.typemap = state.func_ir, state.typemap
        self.calltypes, self.context = state.calltypes, state.typingctx
        # A rewrite may replace blocks and not add any: Numba compares with those it had before.
        self.blocks = state.func_ir.blocks = dict(state.func_ir.blocks)

    def mark_loops(self):
        """Put calls around all parallel loops that use arrays."""
        for loop in self.parallel_loops():
            if loop.arrays or loop.functions:
                arrays = loop.outer or [self.none(loop)] * loop.arrays
                functions = [self.function(loop, kind) for kind in loop.functions]
                self.insert_calls(loop, arrays, functions)

    def parallel_loops(self):
        """The outermost loops that Numba will run in parallel; it serialises those inside."""
        cfg = compute_cfg_from_blocks(self.blocks)
        use_defs = compute_use_defs(self.blocks)
        live = compute_live_map(cfg, self.blocks, use_defs.usemap, use_defs.defmap)
        calls, _ = get_call_table(self.blocks)
        found = []
        for loop in sorted(cfg.loops().values(), key=lambda loop: -len(loop.body)):
            if len(loop.entries) != 1 or len(loop.exits) != 1:
                continue
            (entry,), (end,) = loop.entries, loop.exits
            inside = any(loop.header in outer.body for outer in found)
            if not inside and self.makes_range(entry, calls):
                body = set(loop.body)
                used, functions = self.used(body)
                outer = [used[name] for name in sorted(live[loop.header] & set(used))]
                arrays = bool(used)
                found.append(_Loop(entry, loop.header, body, end, outer, arrays, functions))
        return found

    def makes_range(self, label, calls):
        """Whether a block calls ``prange``, in one of the ways that Numba knows."""
        criterion = ConvertLoopPass(None)
        return any(
            isinstance(statement.value, ir.Expr)
            and statement.value.op == "call"
            and criterion._is_parallel_loop(statement.value.func.name, calls)
            for statement in self.blocks[label].find_insts(ir.Assign)
        )

    def used(self, body):
        """Variables in a loop that hold arrays, by name; and types of functions that it calls."""
        arrays, functions = {}, {}
        for label in sorted(body):
            for statement in self.blocks[label].body:
                value = getattr(statement, "value", None)
                for kind in _behind(value, self.typemap, self.calltypes):
                    functions |= functions_of(kind)
                for variable in statement.list_vars():
                    kind = self.typemap[variable.name]
                    calls = functions_of(kind)
                    functions |= calls
                    if not calls and used_in_loops(kind):
                        arrays[variable.name] = variable
        return arrays, [functions[name] for name in sorted(functions)]

    def none(self, loop):
        """A variable that is None, before a loop."""
        return self.assigned(loop, types.none, ir.Const(None, self.blocks[loop.entry].loc))

    def function(self, loop, kind):
        """A variable that is a function, before a loop."""
        value = ir.Global(str(kind), kind.function, self.blocks[loop.entry].loc)
        return self.assigned(loop, kind, value)

    def assigned(self, loop, kind, value):
        """A variable of a type, before a loop."""
        entry = self.blocks[loop.entry]
        variable = self.variable(entry.scope, kind, entry.loc)
        entry.body.insert(-1, ir.Assign(value, variable, entry.loc))
        self.func_ir._definitions[variable.name].append(value)
        return variable

    def insert_calls(self, loop, arrays, functions):
        """Enter before a loop; leave and report on the way out.

        Functions let go of the interpreter's lock, which those of arrays are called with.
        """
        entry = self.blocks[loop.entry]
        before = [part for each in (*arrays, *functions) for part in self.call(enter, each)]
        entry.body[-1:-1] = before
        end = ir.Block(entry.scope, entry.loc)
        for function in (leave, report):  # all are left before one may raise
            end.body += [p for each in (*functions, *arrays) for p in self.call(function, each)]
        end.body.append(ir.Jump(loop.exit, entry.loc))
        label = max(self.blocks) + 1
        for inside in loop.body:
            _redirect(self.blocks[inside].terminator, loop.exit, label)
        self.blocks[label] = end

    def call(self, function, array):
        """Statements that call a function with an array."""
        kind = self.context.resolve_value_type(function)
        signature = kind.get_call_type(self.context, (self.typemap[array.name],), {})
        loc, name = array.loc, ir.Global(function.__name__, function, array.loc)
        callee = self.variable(array.scope, kind, loc)
        result = self.variable(array.scope, types.none, loc)
        expression = ir.Expr.call(callee, [array], (), loc)
        self.calltypes[expression] = signature
        self.func_ir._definitions[callee.name].append(name)
        self.func_ir._definitions[result.name].append(expression)
        return [ir.Assign(name, callee, loc), ir.Assign(expression, result, loc)]

    def variable(self, scope, kind, loc):
        """A new variable of a type."""
        name = mk_unique_var("$nbta_loop")
        self.typemap[name] = kind
        return scope.define(name, loc)


def _redirect(terminator, old, new):
    """Let a jump or branch that leads to a label lead to another."""
    for target in ("target", "truebr", "falsebr"):
        if getattr(terminator, target, None) == old:
            setattr(terminator, target, new)
