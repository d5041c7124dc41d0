"""Arrays of NumPy's with a page beside each that nobody may touch: ``pytest -p fenced FILES``.

Compiled code that reads or writes an item outside of an array then ends the process there and
then; otherwise it meets whatever lies there, mostly without a trace. Each array ends at such a
page, up to 16 bytes; with ``FENCED=before`` it begins after one. These are arrays that a program
makes after this module is imported, on the thread that does; NumPy takes functions that allocate as
NEP 49 says.
"""

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

_SOURCE = Path(__file__).with_suffix(".c")
#: The place of `PyDataMem_SetHandler` in the table of NumPy's C functions.
_SET_HANDLER = 304
_POINTER = ctypes.c_void_p


class _Handler(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", _POINTER),
        *[(name, _POINTER) for name in ("malloc", "calloc", "realloc", "free")],
    ]


def _library():
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/fenced.so"
        subprocess.run(["cc", "-O1", "-fPIC", "-shared", _SOURCE, "-o", file], check=True)
        return ctypes.CDLL(file)


def install():
    """Let NumPy allocate so from now on; what it was given stays for ever."""
    library = _library()
    ctypes.c_int.in_dll(library, "fence_before").value = os.environ.get("FENCED") == "before"
    names = ("fenced_malloc", "fenced_calloc", "fenced_realloc", "fenced_free")
    functions = [ctypes.cast(getattr(library, name), _POINTER) for name in names]
    handler = _Handler(b"fenced", 1, None, *functions)
    python = ctypes.pythonapi
    python.PyCapsule_GetPointer.restype = _POINTER
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    python.PyCapsule_New.restype = ctypes.py_object
    python.PyCapsule_New.argtypes = [_POINTER, ctypes.c_char_p, _POINTER]
    table = python.PyCapsule_GetPointer(np._core._multiarray_umath._ARRAY_API, None)
    set_handler = ctypes.cast(table, ctypes.POINTER(_POINTER))[_SET_HANDLER]
    capsule = python.PyCapsule_New(ctypes.addressof(handler), b"mem_handler", None)
    ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(set_handler)(capsule)
    return handler, library


_KEPT = install()
