"""Functions of users that a loop calls with an array, put into the loop before fields are promoted.

A function that is called takes its arrays apart in each call, and counts a reference to each; then
the caller loads all fields again. So a call in a loop of another compiled function, with an array
that may be promoted, becomes the statements of that function, typed for the arguments that the call
had; calls in them do, too. A function stays one that is called if it is long, calls itself,
catches exceptions, is a generator, or was given other options than the caller.
"""

import inspect
from typing import NamedTuple

from numba import types

from nbta.runtime.extension import TensorArrayType
from nbta.runtime.numba_private import (
    Compiler,
    Dispatcher,
    Flags,
    InlineWorker,
    NumbaError,
    Rewrite,
    compute_cfg_from_blocks,
    ir,
    mark_try_block,
    register_rewrite,
)
from nbta.tuning import LONGEST_INLINED, MOST_INLINED

#: Notes in the state of Numba's passes that calls were inlined.
_DONE = "nbta_inlined"
#: Options that decide what a function's statements compute.
_OPTIONS = ("boundscheck", "error_model", "fastmath")


class _Call(NamedTuple):
    """A call: the label of its block, its statement, and the functions that it stands in."""

    label: int
    statement: object
    within: tuple


@register_rewrite("after-inference")
class Inlining(Rewrite):
    """Inline calls in all of a function at once.

    Numba's list of blocks takes no further ones while rewrites run. So all of them run on the
    new blocks at once, and then go on with none.
    """

    def __init__(self, state):
        super().__init__(state)
        kinds = state.typemap.values()
        arrays = any(isinstance(kind, TensorArrayType) and kind.uniform for kind in kinds)
        flags = state.flags
        left = state.func_ir.is_generator or flags.auto_parallel.enabled or flags.debuginfo
        if not arrays or left or state.get(_DONE) or _catches(state.func_ir):
            return
        state[_DONE] = True
        calls = _Calls(state)
        found = calls.in_loops()
        if found:
            before = state.func_ir.blocks
            state.func_ir.blocks = dict(before)
            if calls.inline(found):
                register_rewrite.__self__.apply("after-inference", state)
                before.clear()
            else:
                state.func_ir.blocks = before

    def match(self, func_ir, block, typemap, calltypes):
        """No block by itself."""
        return False


class _Calls:
    """Calls in a function whose types are inferred."""

    def __init__(self, state):
        self.state, self.func_ir = state, state.func_ir
        self.room, self.bodies = MOST_INLINED, {}
        self.worker = InlineWorker(
            state.typingctx,
            state.targetctx,
            state.locals,
            state.pipeline,
            state.flags.copy(),
            None,
            state.typemap,
            state.calltypes,
        )

    def in_loops(self):
        """Calls with arrays in loops."""
        blocks = self.func_ir.blocks
        loops = compute_cfg_from_blocks(blocks).loops().values()
        labels = set().union(*(loop.body for loop in loops))
        return list(self.within(sorted(labels), (self.func_ir.func_id.func,)))

    def within(self, labels, functions):
        """Calls with arrays in some blocks, which stand in some functions."""
        for label in labels:
            for statement in self.func_ir.blocks[label].body:
                if self.takes_array(statement):
                    yield _Call(label, statement, functions)

    def takes_array(self, statement):
        """Whether a statement calls a compiled function of a user's with an array."""
        value = statement.value if isinstance(statement, ir.Assign) else None
        if not isinstance(value, ir.Expr) or value.op != "call":
            return False
        function = self.state.typemap[value.func.name]
        return isinstance(function, types.Dispatcher) and any(
            isinstance(kind, TensorArrayType) and kind.uniform and kind.ndim is not None
            for kind in self.state.calltypes[value].args
        )

    def inline(self, calls):
        """Inline calls, and those in what they become; whether there were any.

        The last one of a block comes first: what is before it stays in that block.
        """
        done = False
        while calls:
            call = calls.pop()
            function = self.state.typemap[call.statement.value.func.name].dispatcher
            body = None if function.py_func in call.within else self.body_of(function)
            given = _positional(function.py_func, call.statement.value)
            if body is None or given is None:
                continue
            length = sum(len(block.body) for block in body.blocks.values())
            if length > min(LONGEST_INLINED, self.room):
                continue
            new = self.put(call, body, given)
            if new is not None:
                done, self.room = True, self.room - length
                calls += self.within(new, (*call.within, function.py_func))
        return done

    def put(self, call, body, given):
        """Put a function's statements in place of a call; their blocks' labels, None for none."""
        statement, block = call.statement, self.func_ir.blocks[call.label]
        signature = self.state.calltypes[statement.value]
        expression = ir.Expr.call(statement.value.func, given, (), statement.loc)
        place = next(k for k, other in enumerate(block.body) if other is statement)
        block.body[place] = ir.Assign(expression, statement.target, statement.loc)
        body.func_id = body.func_id.from_function(body.func_id.func)  # for other names each time
        free = body.func_id.func.__code__.co_freevars
        try:
            *_, new = self.worker.inline_ir(self.func_ir, block, place, body, free, signature.args)
        except NumbaError:  # statements that Numba compiles as a function of their own
            block.body[place] = statement
            return None
        _after, *inner = new
        return [label for label, _ in inner]

    def body_of(self, function):
        """The untyped statements of a compiled function; None where it is not inlined."""
        if function not in self.bodies:
            self.bodies[function] = self.new_body(function)
        return self.bodies[function]

    def new_body(self, function):
        code = function.py_func.__code__
        many = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR)
        if many or not self.has_same_options(function):
            return None
        body = self.worker.run_untyped_passes(function.py_func)
        return None if _catches(body) else body

    def has_same_options(self, function):
        """Whether a function's statements mean the same in this one."""
        if not isinstance(function, Dispatcher) or function.locals or not function._can_compile:
            return False
        compiler, flags = function._compiler, Flags()
        compiler.targetdescr.options.parse_as_flags(flags, compiler.targetoptions)
        same = all(getattr(flags, name) == getattr(self.state.flags, name) for name in _OPTIONS)
        return same and not flags.auto_parallel.enabled and compiler.pipeline_class is Compiler


def _catches(body):
    """Whether statements catch exceptions."""
    return any(
        isinstance(statement.value, ir.Global) and statement.value.value is mark_try_block
        for block in body.blocks.values()
        for statement in block.find_insts(ir.Assign)
    )


def _positional(function, call):
    """The arguments of a call in the order of parameters; None where some are not given."""
    if call.vararg is not None or call.varkwarg is not None:
        return None
    parameters = inspect.signature(function)
    given = parameters.bind(*call.args, **dict(call.kws)).arguments
    return list(given.values()) if len(given) == len(parameters.parameters) else None
