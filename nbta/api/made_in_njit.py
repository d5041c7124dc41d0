"""Derivatives that are made in users' own ``@njit`` functions, as by ``nbta.grad(f)``.

Where all arguments are known when Numba compiles, as functions in variables and constants are, a
rewrite of the user's function puts what the call makes in place of the call: a function of a type
of its own, as one in a variable (`nbta.api.in_njit`). Where the function is an argument, its type
says which one it is, and an overload makes the derivative. What `nbta.vjp` and `nbta.linearize`
return is a value with copies of the arguments.
"""

from __future__ import annotations

import functools
import inspect
from types import ModuleType
from typing import Any

from numba import types
from numba.extending import intrinsic, models, overload, register_model, typeof_impl

from nbta.api import derivatives, tracing
from nbta.api.cached_callers import MAKERS, derived, made_of
from nbta.api.in_njit import NativeFunction, function_of
from nbta.errors import NbtaError
from nbta.runtime.failures import refusal
from nbta.runtime.numba_private import (
    Dispatcher,
    Rewrite,
    cgutils,
    cpu_target,
    ir,
    register_rewrite,
    signature,
)
from nbta.runtime.records import RecordType, value_of

#: What takes a function and values at once: its first argument must be of a type that Numba has.
_TAKERS = (derivatives.jvp, derivatives.hvp, derivatives.vjp, derivatives.linearize)


class Refused:
    """Stands for what could not be made; calls of it are refused with the reason."""

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence


class _RefusedType(types.Callable):
    def __init__(self, sentence: str) -> None:
        self._sentence = sentence
        super().__init__(f"nbta's refusal: {sentence}")

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        raise refusal(self._sentence)

    def get_call_signatures(self) -> Any:
        return (), True

    def get_impl_key(self, sig: Any) -> Any:
        return self, sig.args


@typeof_impl.register(Refused)
def _typeof(value: Any, _: Any) -> Any:
    return _RefusedType(value.sentence)


@register_model(_RefusedType)
class _RefusedModel(models.OpaqueModel):
    pass


# Calls with constants.


class _UnknownError(Exception):
    """Something is not known before types are."""


def _constant(func_ir: Any, value: Any) -> Any:
    """What an expression is before types are known: of variables, constants and calls of makers."""
    if isinstance(value, ir.Var):
        try:
            value = func_ir.get_definition(value)
        except KeyError:  # there are several
            raise _UnknownError from None
    if isinstance(value, ir.Global | ir.FreeVar | ir.Const):
        return value.value
    if isinstance(value, ir.Expr) and value.op == "build_tuple":
        return tuple(_constant(func_ir, item) for item in value.items)
    if isinstance(value, ir.Expr) and value.op == "getattr":
        owner = _constant(func_ir, value.value)
        if isinstance(owner, ModuleType) and hasattr(owner, value.attr):
            return getattr(owner, value.attr)
    if isinstance(value, ir.Expr) and value.op == "call":
        return _made(func_ir, value)
    raise _UnknownError


def _made(func_ir: Any, call: Any) -> Any:
    """What a call of a maker makes."""
    name = _maker(_constant(func_ir, call.func))
    if name is None or call.vararg is not None or not call.args:
        raise _UnknownError
    args = [_constant(func_ir, arg) for arg in call.args]
    kwargs = {key: _constant(func_ir, arg) for key, arg in call.kws}
    if not callable(args[0]):
        raise _UnknownError
    return made(name, args[0], tuple(args[1:]), tuple(kwargs.items()))


def _maker(function: Any) -> str | None:
    """The name of a maker; None for other functions."""
    return next((name for name, each in MAKERS.items() if each is function), None)


def made(name: str, function: Any, args: Any, kwargs: Any) -> Any:
    """What a maker makes of a function; what stands for it where that is an error."""
    try:
        return made_of(function, (name, args, kwargs))
    except Exception as error:
        kind = "" if isinstance(error, NbtaError) else f"{type(error).__name__}: "
        return Refused(f"nbta.{name}: {kind}{error}")


@register_rewrite("before-inference")
class _MadeFunctions(Rewrite):
    """Put functions in place of the calls that make them."""

    def match(self, func_ir: Any, block: Any, typemap: Any, calltypes: Any) -> bool:
        """Look for such calls in a block."""
        self._func_ir, self._block = func_ir, block
        self._new: dict[Any, list[Any]] = {}
        self._dropped: list[str] = []
        for statement in block.find_insts(ir.Assign):
            call = statement.value
            if isinstance(call, ir.Expr) and call.op == "call" and call.args:
                try:
                    self._look_at(statement, call)
                except _UnknownError:
                    continue
        return bool(self._new)

    def _look_at(self, statement: Any, call: Any) -> None:
        function = _constant(self._func_ir, call.func)
        if _maker(function) is not None:
            value = ir.Global(call.args[0].name, _made(self._func_ir, call), call.loc)
            self._new[statement] = [self._assigned(statement.target, value)]
        elif any(function is each for each in _TAKERS):
            given = _constant(self._func_ir, call.args[0])
            if not callable(given) or isinstance(given, Dispatcher | tracing.Function):
                return
            variable = statement.target.scope.redefine("$nbta_function", loc=call.loc)
            value = ir.Global(call.args[0].name, made("function", given, (), ()), call.loc)
            again = ir.Expr.call(call.func, [variable, *call.args[1:]], call.kws, call.loc)
            self._new[statement] = [
                self._assigned(variable, value),
                self._assigned(statement.target, again),
            ]
        else:
            return
        self._dropped.append(call.args[0].name)

    def _assigned(self, target: Any, value: Any) -> Any:
        self._func_ir._definitions[target.name] = [value]
        return ir.Assign(value, target, value.loc)

    def apply(self) -> Any:
        """The block with the functions."""
        found = self._block.copy()
        found.clear()
        for statement in self._block.body:
            for new in self._new.get(statement, [statement]):
                found.append(new)
        others = [block for block in self._func_ir.blocks.values() if block is not self._block]
        blocks = [*others, found]
        while self._dropped:
            self._drop(self._dropped.pop(), blocks)
        return found

    def _drop(self, name: str, blocks: Any) -> None:
        """Drop a variable that nothing names any more: Numba may have no type for its value."""
        pairs = [(block, statement) for block in blocks for statement in block.body]
        uses = [pair for pair in pairs if name in _named_in(pair[1])]
        if any(not isinstance(statement, ir.Del | ir.Assign) for _, statement in uses) or any(
            isinstance(statement, ir.Assign) and statement.target.name != name
            for _, statement in uses
        ):
            return
        values = [statement.value for _, statement in uses if isinstance(statement, ir.Assign)]
        if all(isinstance(value, ir.Var | ir.Global | ir.FreeVar) or _attribute(value)
               for value in values):  # fmt: skip
            for block, statement in uses:
                block.remove(statement)
            owners = [_attribute(value) or value for value in values]
            self._dropped += [owner.name for owner in owners if isinstance(owner, ir.Var)]


def _attribute(value: Any) -> Any:
    """Whose attribute an expression is; None for others."""
    return value.value if isinstance(value, ir.Expr) and value.op == "getattr" else None


def _named_in(statement: Any) -> list[str]:
    """The variables that a statement names."""
    if isinstance(statement, ir.Del):
        return [statement.value]
    return [variable.name for variable in statement.list_vars()]


# Calls with functions that types tell.


def _literal(name: str, kind: Any) -> Any:
    """The value of an option that a type tells."""
    if isinstance(kind, types.Omitted):
        return kind.value
    if isinstance(kind, types.NoneType):
        return None
    if isinstance(kind, types.Literal):
        return kind.literal_value
    if isinstance(kind, types.BaseTuple):
        return tuple(_literal(name, item) for item in kind)
    if isinstance(kind, type(None) | bool | int | str | tuple):
        return kind
    raise refusal(f"{name} is {kind}, whose value is not known here; give a constant")


def _overload_maker(name: str, maker: Any) -> None:
    parameters = list(inspect.signature(maker).parameters.values())
    keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD  # Numba takes no others
    texts = [str(p.replace(kind=keyword, annotation=p.empty)) for p in parameters]
    names = [p.name for p in parameters]

    def typed(function: Any, options: Any) -> Any:
        given = {
            own: value
            for own, kind, parameter in zip(names[1:], options, parameters[1:], strict=True)
            if (value := _literal(f"nbta.{name}: {own}", kind)) != parameter.default
        }
        found = made(name, _named(name, function), (), tuple(given.items()))
        return eval(f"lambda {', '.join(texts)}: found", {"found": found})

    source = f"lambda {', '.join(texts)}: typed({names[0]}, ({', '.join(names[1:])},))"
    overload(maker, prefer_literal=True)(eval(source, {"typed": typed}))


def _named(name: str, kind: Any) -> Any:
    """The function of a type."""
    function = function_of(kind)
    if function is None:
        message = (
            f"nbta.{name}: f is {kind}, which does not say which function it is; give a function "
            f"by the name of a variable, or an @njit function or one of nbta's as an argument"
        )
        raise refusal(message)
    return function


for _name, _each in MAKERS.items():
    _overload_maker(_name, _each)


# Values that are functions with arguments.


class Linear(types.Callable):
    """The Numba type of a derivative at some arguments, of which it has copies.

    Parameters
    ----------
    kind : NativeFunction
        Of the function of the arguments, and of what the derivative takes.
    value : NativeFunction
        Of the function of the arguments alone.
    primals : numba type
        Of the arguments.
    is_pullback : bool
        Whether it takes one cotangent, in place of a tangent for each argument.
    """

    def __init__(
        self, kind: NativeFunction, value: NativeFunction, primals: Any, is_pullback: bool
    ) -> None:
        self._kind, self.primals, self._is_pullback = kind, primals, is_pullback
        #: What parallel loops must tell.
        self.calls = (kind, value)
        self._signatures: list[Any] = []
        what = "pullback" if is_pullback else "linear map"
        super().__init__(f"{what} of {kind} at {primals}")

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """The signature of a call."""
        if kws or (self._is_pullback and len(args) != 1):
            what = "one cotangent" if self._is_pullback else "tangents by position"
            raise refusal(f"a derivative at a point takes {what}")
        args = tuple(map(types.unliteral, args))
        given = args[0] if self._is_pullback else types.BaseTuple.from_types(args)
        inner = self._kind.get_call_type(context, (self.primals, given), {})
        sig = signature(inner.return_type, *args, recvr=self)
        lowered = functools.partial(_lower_linear, self, given)
        made = functools.wraps(_lower_linear)(lambda c, b, s, a: lowered(c, b, s, a))
        del made.__wrapped__
        key = self, (self, *args)
        if key not in self._signatures:
            self._signatures.append(key)
            cpu_target.target_context.insert_func_defn([(made, key, (self, *args))])
        return sig

    def get_call_signatures(self) -> Any:
        """All signatures so far."""
        return [], True

    def get_impl_key(self, sig: Any) -> Any:
        """By which the code of a call is found."""
        return self, sig.args


def _lower_linear(kind: Linear, given: Any, context: Any, builder: Any, sig: Any, args: Any) -> Any:
    value, *rest = args
    primals = cgutils.create_struct_proxy(kind)(context, builder, value=value).primals
    traced = kind._kind.function
    last = rest[0] if kind._is_pullback else context.make_tuple(builder, given, rest)
    inner = signature(sig.return_type, kind.primals, given)
    return context.compile_internal(
        builder, lambda primals, given: traced(primals, given), inner, [primals, last]
    )


@register_model(Linear)
class _LinearModel(models.StructModel):
    def __init__(self, dmm: Any, kind: Any) -> None:
        super().__init__(dmm, kind, [("primals", kind.primals)])


def _making(kind: Linear) -> Any:
    """What makes a value of a type of arguments, in compiled code."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        found = cgutils.create_struct_proxy(kind)(context, builder)
        (found.primals,) = args
        context.nrt.incref(builder, kind.primals, args[0])
        return found._getvalue()

    @intrinsic
    def made_at(typingctx, primals):  # type: ignore[no-untyped-def] # as Numba asks
        return kind(kind.primals), codegen

    return made_at


def _copy(x: Any) -> Any:
    """Copies of arrays, for compiled code."""


@overload(_copy)
def _copied(x):  # type: ignore[no-untyped-def] # as the lambdas
    if isinstance(x, types.Array):
        return lambda x: x.copy()
    if isinstance(x, types.BaseTuple):
        items = "".join(f"copy(x[{k}]), " for k in range(len(x)))
        make = getattr(x, "instance_class", None)
        text = f"make({items})" if make else f"({items})"
        return eval(f"lambda x: {text}", {"copy": _copy, "make": make})
    if isinstance(x, types.Record):
        return lambda x: value_of(x)
    return lambda x: x


def _overload_linear(function: Any, value: str, linear: str, is_pullback: bool) -> None:
    name = function.__name__

    @overload(function)
    def typed(f, *primals):  # type: ignore[no-untyped-def] # as the lambdas
        owner = _named(name, f)
        given = types.BaseTuple.from_types([_copied_type(types.unliteral(k)) for k in primals])
        at = derived(value, owner).function
        kind = Linear(derived(linear, owner), derived(value, owner), given, is_pullback)
        made_at = _making(kind)

        def run(f, *primals):  # type: ignore[no-untyped-def] # as the lambdas
            own = _copy(primals)
            return at(*own), made_at(own)

        return run


def _copied_type(kind: Any) -> Any:
    """The type of a copy."""
    if isinstance(kind, types.Array):
        return types.Array(kind.dtype, kind.ndim, "C")
    if isinstance(kind, types.BaseTuple):
        parts = [_copied_type(part) for part in kind]
        return types.BaseTuple.from_types(parts, getattr(kind, "instance_class", None))
    return RecordType(kind) if isinstance(kind, types.Record) else kind


_overload_linear(derivatives.vjp, "value", "vjp", True)
_overload_linear(derivatives.linearize, "value", "linear map", False)
