"""Functions that travel to other processes: their source goes with them, with file and line.

Pickle sends functions by name, and cloudpickle sends what has no name there by value: its code
without the text it was compiled from, since version 3.1.3 also without the name of its file. What
is converted needs the text.

What nbta makes of functions (`Sent`) pickles itself in this way, whoever asks: pickle,
multiprocessing and joblib too.
"""

import functools
import io
import linecache
import pickle
import sys
import types
from typing import Any, Self

from nbta.frontend import source
from nbta.locations import OWN
from nbta.runtime.numba_private import (
    NumbasPickler,
    is_pickled_by_numba,
    put_together,
    taken_apart,
)


def dumps(content, protocol=None, buffer_callback=None) -> bytes:
    """A pickle, as cloudpickle makes it, in which codes have their files and excerpts of these."""
    with io.BytesIO() as file:
        _pickler()(file, protocol, buffer_callback).dump(content)
        return file.getvalue()


@functools.cache
def _pickler():
    """The class of picklers: of the user's cloudpickle, in which modules may be registered."""
    try:
        import cloudpickle

        general = cloudpickle.Pickler
    except ModuleNotFoundError:
        general = NumbasPickler

    class Pickler(general):
        """Reduces codes with their sources."""

        def reducer_override(self, obj):
            if isinstance(obj, types.CodeType):
                make, args = self.dispatch_table[types.CodeType](obj)
                name = obj.co_filename
                excerpt = None if name.startswith(OWN) else source.excerpt_of(obj)
                return _code, (make, args, name, excerpt)
            if isinstance(obj, Sent):  # whose function may refer to it
                made = (object.__new__, (type(obj),), obj._recipe(), None, None, _fill)
                return _name_of(obj) or made
            if isinstance(obj, types.FunctionType):  # whose file may be in an archive
                linecache.lazycache(obj.__code__.co_filename, obj.__globals__)
            if is_pickled_by_numba(obj):
                return put_together, taken_apart(obj)
            return super().reducer_override(obj)

    return Pickler


def _code(make, args, filename, excerpt):
    """A code that has arrived."""
    code = make(*args).replace(co_filename=filename)
    if excerpt is not None:
        source.keep_excerpt(code, excerpt)
    return code


class Sent:
    """What is made of a function, and is pickled as that is.

    By its name where it is imported by that, as what a decorator made is; else by value, which
    is that of all that the function refers to. To be traced and compiled again where it arrives.
    """

    def _recipe(self) -> tuple:
        """The arguments that make one like it."""
        raise NotImplementedError

    def __reduce__(self):
        return _name_of(self) or (pickle.loads, (dumps(self),))

    def __copy__(self) -> Self:  # as functions are copied
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def _fill(made, recipe):
    made.__init__(*recipe)


def _name_of(made) -> str | None:
    """By which its module has it; None where it has not, or is sent by value itself."""
    module, name = getattr(made, "__module__", None), getattr(made, "__qualname__", None)
    if module is None or name is None or module == "__main__" or _is_sent_by_value(module):
        return None
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is made else None


def _is_sent_by_value(module):
    """Whether the user has registered a module, or a package of it, with cloudpickle."""
    registered = getattr(sys.modules.get("cloudpickle"), "list_registry_pickle_by_value", set)()
    return any(module == name or module.startswith(f"{name}.") for name in registered)
