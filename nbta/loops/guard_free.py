"""Versions without guards of the inner loops that could be vector instructions.

Guards ask a truth value from before the loop first. LLVM makes a version for where that does not
hold (unswitching) of small loops only, and of fewer the more loops there are beside them. So both
versions are written down, after loops were jammed, which those with two versions are not. The
emitter does the same before for large loops, and for those with branches.
"""

from __future__ import annotations

from collections.abc import Iterable

from nbta.loops.building import Block
from nbta.loops.jamming import has_chain
from nbta.loops.nodes import (
    Accumulate,
    Assign,
    Comment,
    For,
    Guard,
    Logical,
    Mark,
    Name,
    Statement,
    Store,
    Versions,
    stored_by,
    with_blocks,
)
from nbta.loops.versions import versions_of


def guard_free(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """Statements with two versions of each inner loop that has guards.

    Parameters
    ----------
    statements : iterable of Statement
        The whole body of a function, after `nbta.loops.jamming.jammed`.
    """

    def changed(block):
        return Block(each for one in block for each in versions(one))

    def versions(statement):
        names = _guards_of(statement) if type(statement) is For else ()
        if names:
            return versions_of(Versions(Block([statement]), names), Block)
        return [with_blocks(statement, changed)]

    return tuple(changed(statements))


def _guards_of(loop: For) -> tuple[str, ...]:
    """Truth values from before a loop that its guards ask; none where it gets no versions.

    It gets none where another guard stays in it, and where a number goes from iteration to
    iteration otherwise than as a sum.
    """
    body = [each for each in loop.body if not isinstance(each, Comment | Mark)]
    plain = all(type(each) in (Assign, Store, Accumulate, Guard) for each in body)
    if not plain or has_chain(loop):
        return ()
    assigned = {name for each in body for name in stored_by(each)}
    found = []
    for each in (each for each in body if type(each) is Guard):
        match each.condition:
            case Logical("and", (Name(name), *_)) if name not in assigned:
                found.append(name)
            case _:
                return ()
    return tuple(dict.fromkeys(found))
