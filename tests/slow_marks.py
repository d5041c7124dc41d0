"""Which tests run: the quick ones, unless slow ones are asked for or named."""

from itertools import count

import pytest


def pytest_configure(config):
    """A test that is named runs, slow or not."""
    if config.option.markexpr == "not slow" and any("::" in name for name in config.args):
        config.option.markexpr = ""


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items):
    """Of the cases of a test with ``slow_but_every(n)`` mark all but one of n as slow."""
    numbers = {}
    for item in items:
        mark = item.get_closest_marker("slow_but_every")
        if mark is not None:
            number = next(numbers.setdefault((item.path, item.originalname), count()))
            if not _is_quick(number, mark.args[0]):
                item.add_marker("slow")


def _is_quick(number, n):
    """Of n neighbours one, in another place each time: else a parameter may always be the same."""
    return number % n == number // n % n
