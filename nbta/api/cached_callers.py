"""Callers of traced functions in Numba's disk cache.

With ``@njit(cache=True)`` a caller's machine code goes to the disk, and code of the next process
must find what it calls. So it has no address of this process: it refers to a symbol, and what
Numba saves with the code is a `Dependency`, which Numba unpickles before it links the code. That
looks the function up by the variable of a module that it is, traces it by the sources of now, and
gives LLVM the address of the symbol. Where anything that the caller's code counts on is another,
the code is as if it were not there, and Numba compiles the caller again.
"""

from __future__ import annotations

import hashlib
import sys
import warnings
import weakref
from types import ModuleType
from typing import Any

from llvmlite import binding, ir

from nbta.api import derivatives, sequences, tracing
from nbta.compiler.graph_cache import sources
from nbta.runtime.intrinsics import INT64
from nbta.runtime.numba_private import NumbaWarning, being_compiled, cpu_target

Names = tuple[tuple[str, str, tuple[Any, ...]], ...]


def names_of(kind: Any, caller: str = "") -> Names:
    """By what another process finds a function.

    Parameters
    ----------
    kind : NativeFunction
        Its type.
    caller : str
        The module of a caller, if known.

    Returns
    -------
    tuple of (module, variable, steps)
        All variables that it is, of the caller's module and its own; of any where these have none.
        What compiled code made of a function has the names of that, with the steps from there.
        None where a tuple has it, by whose place a caller may count on it.
    """
    steps: list[Any] = []
    base = kind.function
    while kind is not None and kind.made_of is not None:
        steps.insert(0, kind.made_of[0])
        base = kind.made_of[1]()
        kind = getattr(base, "__dict__", {}).get("_native")
    if base is None:
        return ()
    how = tuple(steps)
    places = [caller, getattr(base, "__module__", None)]
    around = list(getattr(sys.modules.get(caller), "__dict__", {}).values())
    modules = [each.__name__ for each in around if isinstance(each, ModuleType)]
    if _is_in_tuple(base, [*places, *modules]):
        return ()
    found = _variables(base, places) or _variables(base, list(sys.modules))
    return tuple((module, variable, how) for module, variable in found)


def _is_in_tuple(value: Any, modules: Any) -> bool:
    names = {str(name): getattr(sys.modules.get(name), "__dict__", {}) for name in modules}
    tuples = (v for d in names.values() for v in list(d.values()) if isinstance(v, tuple))
    return any(item is value for each in tuples for item in each)


def _variables(value: Any, modules: Any) -> list[tuple[str, str]]:
    names = {str(name): getattr(sys.modules.get(name), "__dict__", {}) for name in modules}
    return sorted(
        (module, variable)
        for module, variables in names.items()
        for variable, each in list(variables.items())
        if each is value
    )


def found(names: Names) -> Any:
    """The type of what is found by names.

    Raises
    ------
    LookupError
        Where nothing is, or not one and the same.
    """
    each_by_id: dict[int, Any] = {}
    for module, variable, how in names:
        each = getattr(sys.modules.get(module), variable, None)
        if each is not None:
            each_by_id[id(each)] = each, how
    if len(each_by_id) != 1:
        raise LookupError(names)
    ((value, steps),) = each_by_id.values()
    if steps and not callable(value):
        raise LookupError(names)
    kind = None
    for step in steps:
        kind = derived(step, value)
        value = kind.function
    kind = kind or _type_of(value)
    if not hasattr(kind, "made_of"):
        raise LookupError(names)
    return kind


def _type_of(function: Any) -> Any:
    return cpu_target.typing_context.resolve_value_type(function)


_DERIVATIVES = {
    "jvp": derivatives.jvp_of,
    "hvp": derivatives.hvp_of,
    "vjp": derivatives.vjp_of,
    "linear map": derivatives.linear_of,
    "value": derivatives.value_of,
}
#: What makes a function of one, by name.
MAKERS: dict[str, Any] = {
    "function": tracing.function,
    "grad": derivatives.grad,
    "value_and_grad": derivatives.value_and_grad,
    "jacobian": derivatives.jacobian,
    "jacfwd": derivatives.jacfwd,
    "hessian": derivatives.hessian,
    "vmap": sequences.vmap,
}
#: What was made in compiled code, by the identity of the function, which it keeps alive.
_made: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()


def made_of(function: Any, how: Any) -> Any:
    """What a call of one of `MAKERS` in compiled code makes, the same for all calls alike.

    Parameters
    ----------
    function : callable
    how : tuple
        The maker's name, further arguments by position, and those by name, as pairs.
    """
    key = id(function), repr(how)
    found = _made.get(key)
    if found is None:
        name, args, kwargs = how
        found = _made[key] = MAKERS[name](function, *args, **dict(kwargs))
    _note(_type_of(found), how, function)
    return found


def derived(how: Any, function: Any) -> Any:
    """The type of what is made of a function: a key of `_DERIVATIVES`, or as for `made_of`."""
    if isinstance(how, tuple):
        return _type_of(made_of(function, how))
    return _note(_type_of(_DERIVATIVES[how](function, True)), how, function)


def _note(kind: Any, how: Any, function: Any) -> Any:
    """Note of which function something is made."""
    if kind.made_of is None:
        try:
            kind.made_of = how, weakref.ref(function)
        except TypeError:  # as for NumPy's functions, which stay anyway
            kind.made_of = how, lambda: function
    return kind


# Symbols.

#: By symbol: what has the address. Machine code that refers to it stays, and so does this.
_holders: dict[str, Any] = {}


def _symbol(names: Names, what: Any) -> str:
    text = repr((names, sources(), what))
    return f"nbta_call_{hashlib.sha256(text.encode()).hexdigest()}"


def _register(symbol: str, holder: Any) -> bool:
    """Tell LLVM of a symbol; False where it is another function's, as a variable was assigned to.

    Parameters
    ----------
    symbol : str
    holder : object
        Has ``words``, an array at whose address the symbol is.
    """
    if _holders.setdefault(symbol, holder) is not holder:
        if not isinstance(_holders[symbol], Missing):
            return False
        _holders[symbol] = holder
    binding.add_symbol(symbol, holder.words.ctypes.data)
    return True


class Missing:
    """Stands for what a caller's code was compiled against and is no more.

    Numba has caches of their own for what calls a compiled function, as of ``guvectorize``: they
    are linked though that function was compiled again. Every call raises an error.

    Attributes
    ----------
    words : ndarray
        Those of an entry that has no programs, and answers all calls with an error; those of loops
        that nobody is told of.
    """

    #: Makes the words: for calls, or for parallel loops.
    make: Any

    def __init__(self, is_call: bool) -> None:
        self.words = type(self).make(is_call)


class Dependency:
    """Goes to the disk with a caller's code; see above.

    Parameters
    ----------
    kind : NativeFunction
        What is called.
    names : tuple
        By what it is found.
    symbols : dict
        What is called by each symbol: types of arguments, and the form of the call; None for what
        parallel loops call. It may still grow.
    """

    def __init__(self, kind: Any, names: Names, symbols: dict[str, Any]) -> None:
        self.kind = kind
        self._names, self._symbols = names, symbols

    def __reduce__(self) -> Any:
        return _again, (self._names, sources(), dict(self._symbols))


def _again(names: Names, made_by: str | None, symbols: dict[str, Any]) -> Dependency:
    """What was saved with a caller's code, as this process has it.

    Raises
    ------
    OSError
        Where there is no such thing. Numba takes that for a missing file, and compiles again.
    """
    try:
        if made_by is None or made_by != sources():
            raise LookupError("another version of nbta")
        kind = found(names)
        for symbol, call in symbols.items():
            holder = kind.entry(call[0], dict(call[1])) if call else kind.loop_words
            if (call and holder.form != call[2]) or not _register(symbol, holder):
                raise LookupError(symbol)
            kind.symbols[symbol] = call
    except Exception as error:
        for symbol, call in symbols.items():
            if symbol not in _holders:
                _register(symbol, Missing(call is not None))
        raise OSError(f"a caller of {names} must be compiled again") from error
    return Dependency(kind, names, symbols)


def address(context: Any, builder: Any, kind: Any, call: Any, holder: Any) -> Any:
    """The address of the words of a holder, in a caller's code.

    Parameters
    ----------
    context, builder : object
        Those of the function that is lowered.
    kind : NativeFunction
        What is called.
    call : tuple or None
        Types of arguments, by position and by name, and the form of the call; see `Dependency`.
    holder : object
        Has ``words``.

    Returns
    -------
    ir.Value
        An int64.
    """
    names = names_of(kind, context.fndesc.modname)
    symbol = _symbol(names, call and (str(call[0]), str(call[1]), call[2]))
    environment = context.environment
    # Numba saves no environment of the body of a parallel loop; that of its calls around it has
    # all that is called there.
    in_loop = context.fndesc.qualname.startswith("__numba_parfor_gufunc")
    may_save = bool(names) and sources() is not None and (in_loop or environment.can_cache())
    if may_save and _register(symbol, holder):
        kind.symbols[symbol] = call
        symbols = {symbol: call} if call else kind.symbols
        environment.consts.append(Dependency(kind, names, symbols))
        place = builder.module.globals.get(symbol)
        if place is None:
            place = ir.GlobalVariable(builder.module, INT64, symbol)
    else:
        _warn(kind, names)
        info = f"a function of nbta, {kind}"
        place = context.add_dynamic_addr(builder, holder.words.ctypes.data, info=info)
    return builder.ptrtoint(place, INT64)


def _warn(kind: Any, names: Names) -> None:
    """Say why callers with ``cache=True`` are compiled in each process."""
    why = (
        "that variable was something else when another function was compiled"
        if names
        else "which no variable of a module is, or which a tuple has; let it be a variable alone, "
        "by which other processes find it"
    )
    for dispatcher in being_compiled():
        code = dispatcher.py_func.__code__
        message = (
            f"{dispatcher.py_func.__qualname__} has cache=True and is compiled in each process: it "
            f"calls {kind.function._title}, {why}"
        )
        warnings.warn_explicit(message, NumbaWarning, code.co_filename, code.co_firstlineno)
