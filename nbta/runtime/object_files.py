"""Machine code as object files: taken out of Numba, loaded without it, and as bytes.

Numba's own cache keeps pickled descriptions and LLVM's bitcode beside the object code, and reading
them needs all of Numba's tables, which take half a second to fill. The object code alone is loaded
in 2 ms, and bytes that are no pickle cannot run anything while they are read.

The bytes are a head that says what they are, a checksum, names of symbols, and the object file.
"""

import ctypes
import hashlib
import json
import sys
from dataclasses import dataclass

import llvmlite.binding as llvm
import numpy as np
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
    constants : list of str
        Names of the dtypes that the function for Python gives to arrays that it makes.
    """

    wrapper: str
    pointer: str
    environment: str
    needed: list
    binary: bytes
    constants: list = ()


def only_overload(dispatcher):
    """What Numba has of a compiled function with one signature."""
    (overload,) = dispatcher.overloads.values()
    return overload


def taken_from(overload) -> Code | None:
    """The code of a compiled function; None where it does not stand for itself.

    That is code with addresses or Python's objects in it, other than dtypes.
    """
    library, names = overload.library, overload.fndesc
    constants = constants_of(library, names.env_name)
    if constants is None:
        return None
    return Code(
        names.llvm_cpython_wrapper_name, names.llvm_cfunc_wrapper_name, names.env_name,
        declared(final_module(library)), object_code(library), constants,
    )  # fmt: skip


def constants_of(library, environment) -> list | None:
    """Names of the dtypes that a function for Python refers to.

    None where code refers to other objects, or to addresses.
    """
    names = [variable.name for variable in final_module(library).global_variables]
    found = {name: lookup_environment(name) for name in names}
    objects = {name: list(e.consts) for name, e in found.items() if e is not None and e.consts}
    own = objects.pop(environment, [])
    plain = all(isinstance(x, np.dtype) and x.isbuiltin == 1 for x in own)
    return (
        [x.name for x in own] if plain and not objects and not library.has_dynamic_globals else None
    )


def declared(module) -> list:
    """Symbols of others."""
    values = [*module.functions, *module.global_variables]
    return sorted(v.name for v in values if v.is_declaration and not v.name.startswith("llvm."))


class Loaded:
    """A function in memory, for as long as this or its ``function`` lives.

    It is whole when it is made, which callers do while they hold the compiler's lock: what is put
    off until it is asked for is found half done by a process forked meanwhile.

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
        engine = _engine()
        engine.add_object_file(llvm.ObjectFileRef.from_data(code.binary))
        engine.finalize_object()
        self.function = _for_python(engine, code)
        self.address = engine.get_function_address(code.pointer)


def _for_python(engine, code):
    """The function for Python, which keeps its engine."""
    environment = Environment({})
    environment.consts.extend(map(np.dtype, code.constants))
    word = engine.get_global_value_address(code.environment)
    ctypes.c_void_p.from_address(word).value = id(environment)
    start = engine.get_function_address(code.wrapper)
    return make_function(sys.modules[__name__], "run", "", start, environment, (engine,))


def _engine():
    """A place for code. Each function has its own: names cannot meet, and its memory is freed."""
    triple = llvm.get_process_triple()
    machine = llvm.Target.from_triple(triple).create_target_machine()
    module = llvm.parse_assembly(f'target triple = "{triple}"')
    manager = getattr(config, "USE_LLVMLITE_MEMORY_MANAGER", None)
    return llvm.create_mcjit_compiler(module, machine, use_lmm=manager)


def pointer_of(dispatcher) -> int:
    """Address of the C function after a compiled function with one signature."""
    overload = only_overload(dispatcher)
    return overload.library.get_pointer_to_function(overload.fndesc.llvm_cfunc_wrapper_name)


class Compiled:
    """What `Loaded` is, for code that only the process that compiled it can run."""

    def __init__(self, overload):
        self.function, library = overload.entry_point, overload.library
        self.address = library.get_pointer_to_function(overload.fndesc.llvm_cfunc_wrapper_name)
        self._kept = overload


#: How the bytes are laid out; other layouts have other names.
HEAD = b"nbta code 1\n"


def encoded(name: str, code: Code) -> bytes:
    """The bytes of a file that holds code under a name."""
    symbols = [name, code.wrapper, code.pointer, code.environment, code.needed, code.constants]
    body = json.dumps(symbols).encode() + b"\n" + code.binary
    return sealed(HEAD, body)


def sealed(head: bytes, body: bytes) -> bytes:
    """The bytes of a file: a head that says what they are, a checksum, and the body."""
    return head + hashlib.sha256(body).digest() + body


def opened(head: bytes, data: bytes) -> bytes:
    """The body of what `sealed` gave.

    Raises
    ------
    ValueError
        If it did not give that.
    """
    start = len(head) + hashlib.sha256().digest_size
    body = data[start:]
    if data[:start] != head + hashlib.sha256(body).digest():
        raise ValueError("not what was written")
    return body


def decoded(name: str, data: bytes) -> Code:
    """The code of that name that a file's bytes hold.

    Raises
    ------
    ValueError
        If they do not.
    """
    symbols, _, binary = opened(HEAD, data).partition(b"\n")
    written, *symbols, constants = json.loads(symbols)
    if written != name:
        raise ValueError("another entry")
    return Code(*symbols, binary, constants)
