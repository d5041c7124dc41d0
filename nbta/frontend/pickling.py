"""Functions that travel to other processes: their source goes with them, with file and line.

Pickle sends functions by name, and cloudpickle sends what has no name there by value: its code
without the text it was compiled from, since version 3.1.3 also without the name of its file. What
is converted needs the text.
"""

import functools
import io
import linecache
import types

from nbta.frontend import source
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
                return _code, (make, args, obj.co_filename, source.excerpt_of(obj))
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
