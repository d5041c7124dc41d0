"""Which tests run: the quick ones, unless slow ones or the smoke suite are asked for, or named.

In the smoke suite (``-m smoke``) Python runs generated source, as LLVM would take most of the time;
a test that is about machine code has ``@pytest.mark.machine_code``.
"""

import re
from collections import Counter
from itertools import count
from zlib import crc32

import pytest

#: What ``-m smoke`` means.
QUICK_SMOKE = "smoke and not slow"
#: Whether a run is of the smoke suite alone.
SMOKE = pytest.StashKey[bool]()
#: Pages of the documentation whose examples compile for half a minute.
SLOW_PAGES = {"parallel.md"}


def pytest_addoption(parser):
    """``--part 2/8`` runs the second eighth of all tests, drawn by their names."""
    parser.addoption("--part", default="1/1", metavar="K/N", help="run one of N parts of the tests")


def pytest_configure(config):
    """A test that is named runs, slow or not; no slow case is of the smoke suite."""
    if config.option.markexpr == "not slow" and any("::" in name for name in config.args):
        config.option.markexpr = ""
    if config.option.markexpr == "smoke":
        config.option.markexpr = QUICK_SMOKE  # which workers of pytest-xdist are given
    config.stash[SMOKE] = config.option.markexpr == QUICK_SMOKE


@pytest.fixture(autouse=True)
def _an_interpreter_for_the_smoke_suite(request):
    """Python runs what would be compiled, with the bounds of every access checked."""
    if not request.config.stash[SMOKE] or request.node.get_closest_marker("machine_code"):
        yield
        return
    from fuzz.ways import in_python  # which imports nbta

    with in_python():
        yield


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
    """Mark all but one of n cases as slow, and one of n quick ones as of the smoke suite.

    Of a case for each executor (``compiled=False`` and ``True``) one is quick, drawn by its name.
    """
    numbers, quick = {}, {}
    executors = Counter(case for item in items if (case := _case(item)) is not None)
    for item in items:
        case = _case(item)
        if (
            executors[case] == 2
            and crc32(str(case).encode()) % 2 == item.callspec.params["compiled"]
        ):
            item.add_marker("slow")
        if item.path.name in SLOW_PAGES:
            item.add_marker("slow")
        mark = item.get_closest_marker("slow_but_every")
        if mark is not None and not _is_chosen(_number(numbers, item), mark.args[0]):
            item.add_marker("slow")
        mark = item.get_closest_marker("smoke_every")
        if mark is None or item.get_closest_marker("slow") is not None:
            continue
        if _is_chosen(_number(quick, item), mark.args[0]):
            item.add_marker("smoke")


def _case(item):
    """What tests of one case by both executors have in common; None for other tests."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    if type(params.get("compiled")) is not bool:
        return None
    others = [v for name, v in params.items() if name != "compiled" and type(v) is bool]
    return re.sub(r"\b(False|True)\b", "", item.nodeid), *others


def _number(numbers, item):
    """How many cases of its test were counted before one."""
    return next(numbers.setdefault((item.path, item.originalname), count()))


def _is_chosen(number, n):
    """Of n neighbours one, in another place each time: else a parameter may always be the same."""
    return number % n == number // n % n
