"""What traced functions tell: `print`, `logging`, warnings, and text that they write to a file.

A run tells it, where it comes to it and with the values that it has.
"""

from __future__ import annotations

import io
import logging
import sys
import types
import warnings

from nbta.errors import UnimplementedError
from nbta.frontend import effects, native
from nbta.frontend.array_wrappers import in_trace
from nbta.frontend.constants import Chosen
from nbta.frontend.control import is_traced
from nbta.frontend.outside import reading
from nbta.frontend.problems import here
from nbta.frontend.texts import Text
from nbta.locations import of_caller

#: Methods of loggers, and functions of `logging`: the level of what they log; None for an argument.
_LEVELS = {
    "debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING,
    "warn": logging.WARNING, "error": logging.ERROR, "exception": logging.ERROR,
    "critical": logging.CRITICAL, "fatal": logging.CRITICAL, "log": None,
}  # fmt: skip
_NAMES = {*_LEVELS, "write", "flush"}
_LOGGERS = logging.Logger | logging.LoggerAdapter
#: What a message may hold as it is; of others it is the text.
_PLAIN = bool | int | float | complex | str | type(None) | type | Warning


def print_(*values, **options):
    """``print``."""
    if _is_told_now(values):
        return print(*map(native.plain, values), **options)
    _check_file(options.get("file"))
    return _tell(print, values, options, str)


def teller(function):
    """What stands for a function that logs, warns or writes to the terminal; None for others."""
    if function is warnings.warn:
        return _warn
    if getattr(function, "__name__", None) not in _NAMES:
        return None
    owner = getattr(function, "__self__", None)
    is_logging = isinstance(function, types.FunctionType) and function.__module__ == "logging"
    if is_logging or isinstance(owner, _LOGGERS):
        return _log
    return _write if isinstance(owner, io.TextIOBase) and _is_terminal(owner) else None


def _log(function, *args, **options):
    """A call of a logger's method; one for which the logger does not look is nothing."""
    logger, level = getattr(function, "__self__", logging.root), _LEVELS[function.__name__]
    level = args[0] if level is None else level
    if native.is_known(level) and not logger.isEnabledFor(native.plain(level)):
        if (outside := reading()) is not None:
            outside.read_call(logger, f".isEnabledFor({native.plain(level)})", False)
        return
    if _is_told_now(args):
        function(*map(native.plain, args), **options)
    else:
        _tell(function, args, options)


def _warn(_, message, category=UserWarning, *_others, **_options):
    """``warnings.warn``, with the line that warns, whichever ``stacklevel`` is asked for."""
    place, registry = of_caller(), {}

    def warn(message):
        warnings.warn_explicit(message, category or UserWarning, *place, registry=registry)

    if _is_told_now([message]):
        warn(message)
    else:
        _tell(warn, (message,), {})


def _write(function, *texts):
    """Text that is written to the terminal."""
    if _is_told_now(texts):
        return function(*texts)
    return _tell(function, texts, {})


def _is_told_now(values):
    """Whether a trace tells something itself, as it is the same in each run, and unconditional."""
    of_run = any(isinstance(value, Text | Chosen) for value in values)
    return not of_run and native.is_known(values) and not in_trace()


def _tell(function, values, options, known=None):
    """Let the run call a function with values of the run, and what is known of others now."""
    parts = []
    for value in values:
        is_picked = isinstance(value, Chosen)
        if isinstance(value, Text) or is_picked:
            parts.append(Text([(value, -1, "")]) if is_picked else value)
        elif is_traced(value):
            parts.append(None)
        else:
            parts.append(_Known(value, known))
    given = [
        each
        for value, part in zip(values, parts, strict=True)
        for each in ([native.plain(value)] if part is None else part.values())
    ]
    effects.show(parts, given, options, function)


class _Known:
    """A value in a message that Python knows."""

    def __init__(self, value, as_text):
        plain = native.plain(value)
        self._value = plain if as_text is None and isinstance(plain, _PLAIN) else str(plain)

    def values(self):
        """Nothing that a run brings."""
        return ()

    def __call__(self, _):
        return self._value


def _is_terminal(file):
    return any(file is each for each in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__))


def _check_file(file):
    """Refuse files that the function itself makes, and reads or closes when it is traced."""
    outside = reading()
    if file is None or _is_terminal(file) or outside is None or outside.holds(file):
        return
    raise UnimplementedError(
        f"{here()}: print() to a file that the function opens or makes itself, of what only the "
        f"run knows; open it outside of the function"
    )
