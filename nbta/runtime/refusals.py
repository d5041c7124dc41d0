"""Errors of typing, whose last line says what is wrong, and where.

Numba puts what an overload raises into the middle of some twenty lines of its own. It tells
listeners when it has compiled a function, or failed to: there the sentence is put at the end once
more, behind the line of the user's that asked for what there is not.
"""

import re
import sys
from pathlib import Path

import numba

from nbta.runtime.numba_private import TypingError, event

#: What was refused so far, each once; Numba keeps of an overload's error no more than its text.
_said = {}
_LIBRARIES = tuple(str(Path(file).parent) for file in (numba.__file__, __file__))


def refusal(sentence: str) -> TypingError:
    """The error to raise for what compiled code cannot do."""
    _said[sentence] = True
    return TypingError(sentence)


def _place(error):
    """File and line of the user's code that an error is about; None where there is none."""
    found = None
    while error is not None:
        loc = getattr(error, "loc", None)
        if loc is not None and not loc.filename.startswith(_LIBRARIES):
            found = f"{loc.filename}:{loc.line}"
        error = error.__cause__
    return found


def _repeat_at_the_end(error):
    text = str(error).rstrip()
    said = [sentence for sentence in _said if sentence in text]
    if not said:
        return
    first = min(said, key=lambda sentence: (text.index(sentence), -len(sentence)))
    inside = re.search(rf"^\s*(\S.*:\d+): {re.escape(first)}$", text, flags=re.M)
    place = inside[1] if inside else _place(error)  # the line of a function that was called
    if place is None:
        return
    last = f"{place}: {first}"
    if not text.endswith(last):
        error.patch_message(f"{text}\n\n{last}")


class _Compiled(event.Listener):
    def on_start(self, event):
        """Nothing is known yet."""

    def on_end(self, event):
        """Put what was refused at the end of the error, if that is why compiling failed.

        The event has the error too, but no public name for it.
        """
        error = sys.exception()
        if isinstance(error, TypingError):
            _repeat_at_the_end(error)


event.register("numba:compile", _Compiled())
