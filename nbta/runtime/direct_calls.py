"""Method calls on tensor arrays become function calls, which count no references.

For ``ta.write(i, v)`` Numba first makes a bound method, which takes a reference to the array and
gives it back after the call. The error exit in between keeps LLVM from removing the pair, two
atomic operations or 12 ns. An argument of a function stays alive without one. Calls of a method
that was stored in a variable first, and calls with ``*arguments``, are left as they are: right,
and slower.
"""

from nbta.runtime.extension import TensorArrayType
from nbta.runtime.numba_private import Rewrite, ir, register_rewrite

_functions = {}


def direct_function(name):
    """The function that takes the place of a method; its overload does the work."""

    def method(*args):
        raise NotImplementedError(f"{name}: compiled code only")

    method.__name__ = name
    _functions[name] = method
    return method


@register_rewrite("after-inference")
class _DirectMethodCalls(Rewrite):
    """Turn ``m = array.name; r = m(...)`` into ``m = function; r = m(array, ...)``."""

    def match(self, func_ir, block, typemap, calltypes):
        if not any(isinstance(kind, TensorArrayType) for kind in typemap.values()):
            return False
        self.block, self.typemap, self.calltypes = block, typemap, calltypes
        self.calls = [pair for pair in _method_calls(block) if self._is_ours(pair[0].value)]
        return bool(self.calls)

    def _is_ours(self, getattr_expr):
        kind = self.typemap.get(getattr_expr.value.name)
        return isinstance(kind, TensorArrayType) and getattr_expr.attr in _functions

    def apply(self):
        replaced = {}
        for lookup, call in self.calls:
            function = _functions[lookup.value.attr]
            self._retype(lookup, call.value, function)
            name = ir.Global(function.__name__, function, lookup.loc)
            replaced[lookup] = ir.Assign(name, lookup.target, lookup.loc)
        block = self.block.copy()
        block.body = [replaced.get(statement, statement) for statement in self.block.body]
        return block

    def _retype(self, lookup, call, function):
        """Give the call its first argument and the types that go with it."""
        array = lookup.value.value
        old = self.calltypes.pop(call)
        context = self.typingctx
        kind = context.resolve_value_type(function)
        call.args = [array, *call.args]
        count = len(call.args) - 1
        keywords = {name: self.typemap[var.name] for name, var in call.kws}
        positional = (self.typemap[array.name], *old.args[:count])
        self.calltypes[call] = kind.get_call_type(context, positional, keywords)
        del self.typemap[lookup.target.name]
        self.typemap[lookup.target.name] = kind

    def __init__(self, state):
        super().__init__(state)
        self.typingctx = state.typingctx


def _method_calls(block):
    """Pairs of a method's lookup and its one call, both in this block."""
    lookups = {}
    for statement in block.find_insts(ir.Assign):
        value = statement.value
        if not isinstance(value, ir.Expr):
            continue
        if value.op == "getattr" and statement.target.name.startswith("$"):
            lookups[statement.target.name] = statement
        elif value.op == "call" and value.func.name in lookups and value.vararg is None:
            yield lookups.pop(value.func.name), statement
