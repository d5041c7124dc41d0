"""Which tests run: the quick ones, unless slow ones are asked for or named."""

from itertools import count
from zlib import crc32

import pytest

#: Pages of the documentation whose examples compile for half a minute.
SLOW_PAGES = {"parallel.md"}


def pytest_addoption(parser):
    """``--part 2/8`` runs the second eighth of all tests, drawn by their names."""
    parser.addoption("--part", default="1/1", metavar="K/N", help="run one of N parts of the tests")


def pytest_configure(config):
    """A test that is named runs, slow or not."""
    if config.option.markexpr == "not slow" and any("::" in name for name in config.args):
        config.option.markexpr = ""


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(config, items):
    """Choose marks, and tests by their part."""
    _mark(items)
    part, parts = map(int, config.option.part.split("/"))
    rest = [item for item in items if crc32(item.nodeid.encode()) % parts != part - 1]
    if rest:
        config.hook.pytest_deselected(items=rest)
        items[:] = [item for item in items if crc32(item.nodeid.encode()) % parts == part - 1]


def _mark(items):
    """Of the cases of a test with ``slow_but_every(n)`` mark all but one of n as slow."""
    numbers = {}
    for item in items:
        if item.path.name in SLOW_PAGES:
            item.add_marker("slow")
        mark = item.get_closest_marker("slow_but_every")
        if mark is not None:
            number = next(numbers.setdefault((item.path, item.originalname), count()))
            if not _is_quick(number, mark.args[0]):
                item.add_marker("slow")


def _is_quick(number, n):
    """Of n neighbours one, in another place each time: else a parameter may always be the same."""
    return number % n == number // n % n
