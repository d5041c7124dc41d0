"""Iterators: what is left of one after items were taken.

Each item of an iterator is given once. Python itself remembers what it took of its own iterators.
A loop that only the run ends goes along all items, and how many it took nobody knows while
tracing: the iterator is then refused to whoever asks for the rest.
"""

from collections.abc import Iterator

from nbta.errors import UnimplementedError
from nbta.frontend.array_wrappers import is_taken_in_branches, spend, take_in_branches
from nbta.frontend.problems import here
from nbta.frontend.ranges import Once
from nbta.graph.graph import current
from nbta.graph.operation import Tensor

_LEFT = "iterators of which items may be left"
_SOURCES = "iterators that others take their items of"


def note_sources(items, sources) -> None:
    """Note of what an iterator takes its items, as `zip` and generator expressions do."""
    sources = [each for each in sources if isinstance(each, Iterator) and each is not items]
    if sources and current() is not None:
        current().root.cache.setdefault(_SOURCES, {})[id(items)] = items, sources


def _sources(items):
    return current().root.cache.get(_SOURCES, {}).get(id(items), (None, ()))[1]


def _may_lack(items) -> bool:
    """Whether a loop may have left items of an iterator, or of what it takes its own of."""
    left = current().root.cache.get(_LEFT, ())
    return id(items) in left or any(map(_may_lack, _sources(items)))


def advance(items) -> None:
    """Look whether an iterator's items can be taken, and note that they are."""
    if current() is None or not isinstance(items, Iterator):
        return
    if _may_lack(items):
        message = (
            f"{here()}: what is left of an iterator after a loop that may end before the last "
            "item, which only the run knows; make a list of the items before that loop, and take "
            "the others by their index"
        )
        raise UnimplementedError(message)
    what = "takes items of a generator" if _is_generator(items) else "advances an iterator"
    reason = (
        f"{here()}: a data-dependent loop or branch {what} that was made before it; make a list of "
        "it before, or the iterator in there"
    )
    if isinstance(items, Once) and items.begun is None and take_in_branches(items, reason):
        return
    spend(items, reason)


def note_taken(items, ended, by_python=False) -> None:
    """Note what a loop took of an iterator.

    Parameters
    ----------
    items : object
        What was gone along.
    ended : bool or Tensor
        Whether the loop ended before the last item.
    by_python : bool
        Whether Python took item after item, and so knows which are left.
    """
    if current() is None or not isinstance(items, Iterator) or is_taken_in_branches(items):
        return
    if isinstance(ended, Tensor) or (ended and not by_python):
        current().root.cache.setdefault(_LEFT, {})[id(items)] = items
        leave_sources(items)
    elif not ended and isinstance(items, Once):
        items.begun = iter(())


def leave_sources(items) -> None:
    """Note that an iterator may have taken more of others than it would in Python."""
    for source in _sources(items):
        note_taken(source, True)


def note_searched(items, found) -> None:
    """Note what a search took, which ends at what it finds; of generators it takes all items."""
    note_taken(items, found, by_python=not _is_generator(items))


def _is_generator(items):
    """Whether it is one of `nbta.frontend.iteration`, of which all items are taken together."""
    return hasattr(items, "rest")
