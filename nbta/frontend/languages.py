"""Which language what is traced is written in: Python, or what Numba compiles."""

from __future__ import annotations

import threading
from contextlib import contextmanager


class _Language(threading.local):
    """Whether what is traced is a function that Numba compiles, or is called by one."""

    numbas = False


_language = _Language()


@contextmanager
def as_numba():
    """Around a function that Numba compiles."""
    before, _language.numbas = _language.numbas, True
    try:
        yield
    finally:
        _language.numbas = before


def is_numbas() -> bool:
    """Whether a function is traced that Numba compiles."""
    return _language.numbas
