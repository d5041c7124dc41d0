"""The reference of docs/ lists all that is public, once each."""

import importlib
import inspect
import re
from pathlib import Path

import nbta

PAGES = sorted((Path(__file__).parents[2] / "docs" / "reference").glob("*.md"))
LISTS = re.compile(r"currentmodule:: (\S+)\n\n.. autosummary::\n   :toctree: generated\n\n([^`]*)")
LISTED = [
    f"{module}.{name}"
    for page in PAGES
    for module, names in LISTS.findall(page.read_text(encoding="utf-8"))
    for name in names.split()
]


def functions_of(module):
    """Full names of the public functions that a module defines."""
    for name, value in vars(module).items():
        if inspect.isfunction(value) and value.__module__ == module.__name__ and name[0] != "_":
            yield f"{module.__name__}.{name}"


def test_all_that_is_public_is_listed():
    names = ("debug", "implicit", "random", "raw_ops", "testing")
    modules = {name: getattr(nbta, name) for name in names}
    public = {f"nbta.{name}" for name in nbta.__all__ if name not in modules}
    public.update(name for module in modules.values() for name in functions_of(module))
    assert public - set(LISTED) == set()


def test_the_methods_of_arrays_are_in_a_table():
    page = next(page for page in PAGES if page.stem == "arrays").read_text(encoding="utf-8")
    listed = re.findall(r"^   TensorArray\.(\w+)$", page, re.MULTILINE)
    public = [name for name in dir(nbta.TensorArray("float64", 1)) if not name.startswith("_")]
    assert sorted(listed) == sorted(public)


def test_each_name_has_a_line_of_its_own():
    """Others would be missing from the page that Sphinx makes."""
    lists = [names for page in PAGES for _, names in LISTS.findall(page.read_text("utf-8"))]
    assert [line for names in lists for line in names.splitlines() if len(line.split()) > 1] == []


def test_nothing_is_listed_twice():
    assert sorted(set(LISTED)) == sorted(LISTED)


def described(name):
    """Whether a name leads to something that says what it is."""
    place, _, last = name.rpartition(".")
    return bool(inspect.getdoc(getattr(importlib.import_module(place), last)))


def test_what_is_listed_exists_and_says_what_it_is():
    assert [name for name in LISTED if not described(name)] == []


def test_each_page_is_in_the_index():
    index = next(page for page in PAGES if page.name == "index.md").read_text(encoding="utf-8")
    others = {page.stem for page in PAGES} - {"index"}
    assert others <= set(index.split())
