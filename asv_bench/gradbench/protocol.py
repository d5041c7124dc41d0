"""GradBench's protocol: a message of JSON a line from the eval, and a response for each.

The eval starts, defines one module and then has functions of it evaluated; other kinds of messages
need no more than the number of the message.
"""

import contextlib
import json
import sys
import time
import traceback

from . import EVALS, find, functions

TOOL = "nbta"


def converse(lines, write, style):
    """Answer each message; ``write`` is called with a line for each."""
    for line in lines:
        if line.strip():
            write(json.dumps(respond(json.loads(line), style)))


def respond(message, style):
    """The response to a message."""
    answer = _ANSWERS.get(message["kind"], lambda message, style: {})
    try:
        # What functions print must not come between the lines of the protocol.
        with contextlib.redirect_stdout(sys.stderr):
            answered = answer(message, style)
    except _Unknown as unknown:
        answered = {"success": False, "error": str(unknown)}
    except Exception:  # the next message is answered all the same
        answered = {"success": False, "error": traceback.format_exc()}
    return {"id": message["id"], **answered}


class _Unknown(Exception):  # noqa: N818
    """A module or function that is not there."""


def _start(message, style):
    return {"tool": TOOL, "config": {"style": style}}


def _define(message, style):
    start = time.perf_counter_ns()
    _eval(message)
    functions(message["module"], style)
    return {"success": True, "timings": [_timing("define", start)]}


def _evaluate(message, style):
    """The output, and the time of each run; the first one, which compiles, has another name."""
    given, name = _eval(message), message["function"]
    known = functions(message["module"], style)
    if name not in known:
        raise _Unknown(
            f"module {message['module']!r} has no function {name!r}; it has {', '.join(known)}"
        )
    data, function = message["input"], known[name]
    arguments = given.arguments(data)
    runs, seconds = _least_runs(data)
    start = time.perf_counter_ns()
    result = function(*arguments)
    timings, total = [_timing("compile", start)], 0
    while len(timings) <= runs or total < seconds * 1e9:
        start = time.perf_counter_ns()
        result = function(*arguments)
        timings.append(_timing("evaluate", start))
        total += timings[-1]["nanoseconds"]
    return {"success": True, "output": given.output(name, result), "timings": timings}


def _least_runs(data):
    """How often to run at least, and for how many seconds; the eval hello does not say."""
    return (data["min_runs"], data["min_seconds"]) if isinstance(data, dict) else (1, 0.0)


def _timing(name, start):
    return {"name": name, "nanoseconds": time.perf_counter_ns() - start}


def _eval(message):
    found = find(message["module"])
    if found is None:
        raise _Unknown(f"there is no module {message['module']!r}; nbta has {', '.join(EVALS)}")
    return found


_ANSWERS = {"start": _start, "define": _define, "evaluate": _evaluate}
