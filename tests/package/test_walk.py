"""The path of a call through the package, as docs/architecture.md tells it, and files of its pages.

``python tests/package/test_walk.py`` puts the line numbers right.
"""

import ast
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import nbta

SOURCES = Path(nbta.__file__).parent
ROOT = SOURCES.parent
PAGE = ROOT / "docs" / "architecture.md"
#: Pages on the design, which name files.
PAGES = [
    PAGE,
    *sorted((ROOT / "docs").glob("adding_*.md")),
    *sorted((ROOT / "docs" / "design_notes").glob("*.md")),
]
#: More than these nobody keeps in mind.
FILES = 14


_ROW = re.compile(r"`(nbta/[\w/]+\.py):(\d+)` `([\w.]+)` \|")
_FILE = re.compile(r"`([\w/]+(?:\.py|/))`")


def walk():
    """Rows of the page: file, line, and the function's name."""
    part = PAGE.read_text().split("## The path of a call")[1].split("\n## ")[0]
    return [(file, int(line), name) for file, line, name in _ROW.findall(part)]


def line_of(file, name):
    """Where a function or a method is defined, after its overloads."""
    body = ast.parse((ROOT / file).read_text()).body
    for part in name.split("."):
        *_, found = (node for node in body if getattr(node, "name", None) == part)
        body = found.body
    return found.lineno


def in_order(calls):
    """Functions of the package in the order in which they are first called."""
    found, root = {}, str(SOURCES)

    def note(frame, event, arg):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(root):
            place = Path(code.co_filename).relative_to(ROOT).as_posix(), code.co_qualname
            found.setdefault(place, len(found))

    sys.setprofile(note)
    try:
        calls()
    finally:
        sys.setprofile(None)
    return found


def loss(x):
    return nbta.sum(nbta.square(x * 3.0))


def calls():
    f = nbta.value_and_grad(loss)
    x = np.array([1.0, 2.0])
    one_by_one = f(x)
    f.prefer_compiled()
    for found in one_by_one, f(x), f(x):
        np.testing.assert_array_equal(found[0], 45.0)
        np.testing.assert_array_equal(found[1], [18.0, 36.0])


def test_lines_of_the_walk_are_right():
    assert walk() == [(file, line_of(file, name), name) for file, _, name in walk()]


def test_a_call_goes_that_way():
    found, rows = in_order(calls), walk()
    places = [(file, name) for file, _, name in rows]
    assert [place for place in places if place not in found] == []
    assert sorted(places, key=found.get) == places


def test_the_walk_is_short():
    files = {file for file, _, _ in walk()}
    assert 8 < len(files) <= FILES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_and_folders_that_a_page_names_are_there(page):
    named = set(_FILE.findall(page.read_text()))
    assert {name for name in named if not (ROOT / name).exists()} == set()


if __name__ == "__main__":
    PAGE.write_text(
        _ROW.sub(lambda m: f"`{m[1]}:{line_of(m[1], m[3])}` `{m[3]}` |", PAGE.read_text())
    )
