"""Which trips of a loop begin a segment.

A loop with ``checkpoint=`` keeps its variables at the start of each segment; its gradient runs one
segment after another again, from the last to the first. A segment runs once more and no oftener.

`Every` is the two-level scheme of A. Griewank and A. Walther, "Evaluating Derivatives" (2nd ed.,
SIAM 2008), chapter 12; with segments of about the square root of the trip count it is that of
T. Chen et al., "Training deep nets with sublinear memory cost" (2016). Of ``T`` trips it keeps
``T / k`` states, and the values of ``k`` trips.

`Growing` is for a trip count that is known at the end only. Schemes for that by P. Stumm and
A. Walther, "New algorithms for optimal online checkpointing", SIAM J. Sci. Comput. 32(2), 2010, and
by Q. Wang, P. Moin and G. Iaccarino, "Minimal repetition dynamic checkpointing algorithm for
unsteady adjoint calculation", SIAM J. Sci. Comput. 31(4), 2009, have a fixed number of checkpoints,
give up old ones for new ones, and run trips several times. A tensor array grows instead, and its
slots are written once: segments of 1, 2, 3, ... trips keep ``sqrt(2 T)`` states and the values of
``sqrt(2 T)`` trips, whatever ``T`` turns out to be, which is sqrt(2) times the least that a scheme
of two levels with known ``T`` needs.
"""

import operator

import numpy as np

from nbta.errors import invalid
from nbta.graph.views import Loop
from nbta.ops.arithmetic import add, floor_divide, maximum, multiply, subtract
from nbta.ops.comparison import equal, less
from nbta.ops.elementary import floor, sqrt
from nbta.ops.shaping import cast
from nbta.ops.trip_counts import trips_before

#: What a loop over segments has, whose trips are computed again for derivatives of the gradient.
AGAIN = "again"
WORDS = ("sqrt", "online")


def as_checkpoint(what, checkpoint):
    """The argument ``checkpoint`` as a plain int or str, or None.

    Raises
    ------
    InvalidArgumentError
        For anything else.
    """
    if checkpoint is None or (isinstance(checkpoint, str) and checkpoint in WORDS):
        return checkpoint
    if not isinstance(checkpoint, bool | np.bool_ | str):
        try:
            period = operator.index(checkpoint)
        except (TypeError, ValueError):  # of a symbolic tensor: an error that is a ValueError
            period = 0
        if period >= 1:
            return period
    message = (
        f"{what}: checkpoint must be None, an int of 1 or more (keep the state every so many "
        f"trips), 'sqrt' or 'online', not {checkpoint!r}"
    )
    raise invalid("checkpoint", message)


class Every:
    """Segments of ``period`` trips, the last one of what is left."""

    def __init__(self, period):
        self.period = period

    def segment(self, trip):
        """The number of the segment that a trip belongs to."""
        return floor_divide(trip, self.period)

    def start(self, segment):
        """The first trip of a segment."""
        return multiply(segment, self.period)


class Growing:
    """Segments of 1, 2, 3, ... trips."""

    def segment(self, trip):
        """The largest ``s`` with ``s (s + 1) / 2 <= trip``, exact below 2**50 trips."""
        root = sqrt(cast(add(multiply(trip, np.int64(8)), np.int64(1)), np.float64))
        return floor_divide(subtract(cast(floor(root), np.int64), np.int64(1)), np.int64(2))

    def start(self, segment):
        """The first trip of a segment."""
        return floor_divide(multiply(segment, add(segment, np.int64(1))), np.int64(2))


def begins(schedule, trip):
    """Whether a trip is the first of its segment."""
    return equal(schedule.start(schedule.segment(trip)), trip)


def number_of_segments(schedule, trips):
    """How many segments a number of trips has."""
    whole = schedule.segment(trips)
    return add(whole, cast(less(schedule.start(whole), trips), np.int64))


def schedule_of(op):
    """The schedule of a loop with an attribute ``checkpoint``."""
    checkpoint = Loop(op).checkpoint
    if checkpoint == "online":
        return Growing()
    if checkpoint == "sqrt":
        return Every(_root_of_trips(op))
    return Every(np.int64(1 if checkpoint == AGAIN else checkpoint))


def _root_of_trips(op):
    """The period of "sqrt", computed before the loop, where its body can capture it."""
    if "period" not in op.tapes:
        with op.graph.as_default(), op.graph.control_dependencies(None):
            trips = cast(maximum(trips_before(Loop(op)), 1), np.float64)
            up = cast(floor(sqrt(subtract(trips, 1.0))), np.int64)  # the root, rounded up
            op.tapes["period"] = add(up, np.int64(1))
    return op.tapes["period"]
