"""The Trace Event Format as a JSON schema, and what a viewer takes for granted beyond it.

Written from the Chromium project's document "Trace Event Format": the JSON object format, and of
its events those that nbta writes.
"""

import jsonschema

_NUMBER, _TEXT, _COUNT = {"type": "number"}, {"type": "string"}, {"type": "integer", "minimum": 0}
_COMMON = {"name": _TEXT, "pid": _COUNT, "tid": _COUNT}


def _event(phase, required, **properties):
    known = {"ph": {"const": phase}, **_COMMON, **properties}
    return {
        "type": "object",
        "properties": known,
        "required": ["ph", "name", "pid", "tid", *required],
        "additionalProperties": False,
    }


_TIMED = {"ts": {**_NUMBER, "minimum": 0}, "cat": _TEXT, "args": {"type": "object"}}
_ARROW = {"ts": _TIMED["ts"], "cat": _TEXT, "id": _COUNT}
_NAMED = {
    "type": "object",
    "properties": {"name": _TEXT, "sort_index": {"type": "integer"}},
    "additionalProperties": False,
}
_COUNTERS = {"type": "object", "additionalProperties": _NUMBER, "minProperties": 1}
SCHEMA = {
    "type": "object",
    "properties": {
        "traceEvents": {
            "type": "array",
            "items": {
                "oneOf": [
                    _event("X", ["ts", "dur"], dur={**_NUMBER, "minimum": 0}, **_TIMED),
                    _event("i", ["ts"], s={"enum": ["g", "p", "t"]}, **_TIMED),
                    _event("C", ["ts", "args"], ts=_TIMED["ts"], args=_COUNTERS),
                    _event("M", ["args"], args=_NAMED),
                    _event("s", ["ts", "id", "cat"], **_ARROW),
                    _event("f", ["ts", "id", "cat"], bp={"const": "e"}, **_ARROW),
                ]
            },
        },
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "otherData": {"type": "object"},
    },
    "required": ["traceEvents"],
    "additionalProperties": False,
}


class Slice:
    """A complete event, in nanoseconds, and what is inside of it."""

    def __init__(self, event):
        self.name, self.args, self.category = event["name"], event["args"], event["cat"]
        self.begin = round(1000 * event["ts"])
        self.end = self.begin + round(1000 * event["dur"])
        self.children = []

    def inside(self, name):
        """All slices of a name in here, at any depth."""
        found = [child for child in self.children if child.name == name]
        return found + [each for child in self.children for each in child.inside(name)]

    def only(self, name):
        """The one slice of a name in here, at any depth."""
        (found,) = self.inside(name)
        return found


def checked(trace) -> dict:
    """The outermost slices of a trace by thread, where it is one.

    It fits the schema; slices of a thread are apart or one is in the other; arrows go forward in
    time, from one slice to another; threads have names.
    """
    jsonschema.validate(trace, SCHEMA)
    events = trace["traceEvents"]
    threads = {}
    for event in events:
        if event["ph"] == "X":
            threads.setdefault(event["tid"], []).append(Slice(event))
    named = {event["tid"] for event in events if event["name"] == "thread_name"}
    assert named == set(threads)
    roots = {thread: _nested(slices) for thread, slices in threads.items()}
    _check_arrows(events, threads)
    return roots


def _nested(slices):
    """The outermost ones; others become children."""
    roots, around = [], []
    # Of two with the same times either may be in the other.
    order = sorted(enumerate(slices), key=lambda pair: (pair[1].begin, -pair[1].end, pair[0]))
    for _, each in order:
        while around and around[-1].end <= each.begin and around[-1].end < each.end:
            around.pop()
        if around:
            assert each.end <= around[-1].end, f"{each.name} ends after {around[-1].name}"
        (around[-1].children if around else roots).append(each)
        around.append(each)
    return roots


def _check_arrows(events, threads):
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert starts.keys() == ends.keys()
    for number, start in starts.items():
        end = ends[number]
        assert start["ts"] <= end["ts"]
        for event in (start, end):
            at = round(1000 * event["ts"])
            assert any(each.begin <= at <= each.end for each in threads[event["tid"]])
