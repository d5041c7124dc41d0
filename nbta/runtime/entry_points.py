"""The kernels' entry points: four functions in machine code, fetched when they are first called."""

import ctypes

from numba import types

from nbta.errors import STATUS
from nbta.runtime import settings
from nbta.runtime.compiled import loaded_once
from nbta.runtime.machine_code import Routine

_SIGNATURE = types.int64(types.int64, types.int64, types.int64)


def routine(field: int) -> Routine:
    """An entry point, as it is compiled."""
    from nbta.runtime import kernels, lanes

    module = lanes if field == settings.LANES_ENTRY else kernels
    return Routine(getattr(module, settings.NAMES[field]), _SIGNATURE, {"error_model": "numpy"})


@loaded_once
def entry(field: int):
    """An entry point of the kernels as a Python callable, loaded or compiled at its first use.

    It keeps the interpreter's lock, which operations that take no longer than letting go of it
    are better off with.
    """
    found = routine(field).load()
    settings.put(field, found.address)
    return found.function


@loaded_once
def releasing_entry(field: int):
    """`entry`, letting go of the interpreter's lock for the length of the call."""
    entry(field)
    return _C_ENTRY(settings.get(field))


def _placeholder(field):
    """What compiled code calls until an entry point is there: fetch it, then do as asked."""

    @_C_ENTRY
    def fetch(operation, store, request):
        try:
            return entry(field)(operation, store, request)
        except BaseException as error:
            _failures.append(error)
            return STATUS.not_loaded

    settings.put(field, ctypes.cast(fetch, ctypes.c_void_p).value)
    return fetch


#: Errors of the last attempts to fetch an entry point, for whoever looks into a `not_loaded`.
_failures = []
_C_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
ENTRIES = (
    settings.STORAGE_ENTRY,
    settings.BULK_ENTRY,
    settings.GRADIENT_ENTRY,
    settings.LANES_ENTRY,
)
_placeholders = [_placeholder(field) for field in ENTRIES]
