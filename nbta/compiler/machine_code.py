"""Machine code of a compiled function: taken out of Numba, and loaded without it.

Numba's own cache keeps pickled descriptions and LLVM's bitcode beside the object code, and reading
them needs all of Numba's tables, which take half a second to fill. The object code alone is loaded
in 1 ms, and bytes that are no pickle cannot run anything while they are read.
"""

import ctypes
import sys
from dataclasses import dataclass
from functools import cached_property

import llvmlite.binding as llvm
from numba import config

from nbta.runtime.numba_private import (
    Environment,
    final_module,
    introduce_runtime,
    lookup_environment,
    make_function,
    object_code,
)


@dataclass(frozen=True)
class Code:
    """What remains of a function with one signature.

    Attributes
    ----------
    wrapper, pointer, environment : str
        Symbols of the function for Python, of that for C, and of a word that the former reads.
    needed : list of str
        Symbols that the code refers to.
    binary : bytes
        An object file.
    """

    wrapper: str
    pointer: str
    environment: str
    needed: list
    binary: bytes


def taken_from(dispatcher) -> Code | None:
    """The code of a compiled function; None where it does not stand for itself.

    That is code with addresses or Python's objects in it.
    """
    (overload,) = dispatcher.overloads.values()
    library, names = overload.library, overload.fndesc
    if library.has_dynamic_globals or _has_objects(final_module(library)):
        return None
    return Code(
        names.llvm_cpython_wrapper_name, names.llvm_cfunc_wrapper_name, names.env_name,
        _declared(final_module(library)), object_code(library),
    )  # fmt: skip


def _has_objects(module):
    found = (lookup_environment(variable.name) for variable in module.global_variables)
    return any(environment.consts for environment in found if environment is not None)


def _declared(module):
    """Symbols of others."""
    values = [*module.functions, *module.global_variables]
    return sorted(v.name for v in values if v.is_declaration and not v.name.startswith("llvm."))


class Loaded:
    """A function in memory, for as long as this or its ``function`` lives.

    Raises
    ------
    LookupError
        If a symbol that it refers to is not known in this process.

    Attributes
    ----------
    function : callable
        For Python; it keeps the interpreter lock.
    address : int
        Of the same for C.
    """

    def __init__(self, code: Code):
        if missing := introduce_runtime(code.needed):
            raise LookupError(*missing)
        self._code, self._engine = code, _engine()
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code.binary))
        self._engine.finalize_object()

    @cached_property
    def function(self):
        """The function for Python."""
        engine, code = self._engine, self._code
        environment = Environment({})
        word = engine.get_global_value_address(code.environment)
        ctypes.c_void_p.from_address(word).value = id(environment)
        start = engine.get_function_address(code.wrapper)
        module = sys.modules[__name__]
        return make_function(module, "run", "", start, environment, (engine,))

    @property
    def address(self):
        """Of the function for C."""
        return self._engine.get_function_address(self._code.pointer)


def _engine():
    """A place for code. Each function has its own: names cannot meet, and its memory is freed."""
    triple = llvm.get_process_triple()
    machine = llvm.Target.from_triple(triple).create_target_machine()
    module = llvm.parse_assembly(f'target triple = "{triple}"')
    manager = getattr(config, "USE_LLVMLITE_MEMORY_MANAGER", None)
    return llvm.create_mcjit_compiler(module, machine, use_lmm=manager)
