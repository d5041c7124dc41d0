"""Phases of making a compiled function, for whoever listens.

They are told through a context variable: a phase is many calls below whoever wants to know of it,
and takes milliseconds at least, so that asking for a listener costs nothing.
"""

import time
from contextlib import contextmanager
from contextvars import ContextVar

_listener = ContextVar("nbta phases", default=None)


@contextmanager
def phase(name: str):
    """A phase; gives a dict for facts about it.

    Examples
    --------
    >>> from nbta.compiler.phases import listening, phase
    >>> heard = []
    >>> with listening(lambda name, begin, end, facts: heard.append((name, facts))):
    ...     with phase("source") as facts:
    ...         facts["lines"] = 12
    >>> heard
    [('source', {'lines': 12})]
    """
    listener, facts = _listener.get(), {}
    if listener is None:
        yield facts
        return
    begin = time.perf_counter_ns()
    try:
        yield facts
    finally:
        listener(name, begin, time.perf_counter_ns(), facts)


def is_heard() -> bool:
    """Whether somebody listens, who may compare what a phase begins with and what it makes."""
    return _listener.get() is not None


@contextmanager
def listening(listener):
    """Within it, ``listener(name, begin, end, facts)`` hears of phases of this thread that end.

    Times are those of `time.perf_counter_ns`.
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
