"""docs/architecture.md and docs/design_notes: short, in one form, and as the pipeline is."""

import re
from pathlib import Path

import pytest

from nbta.compiler import pipeline

DOCS = Path(__file__).parents[2] / "docs"
NOTES = sorted((DOCS / "design_notes").glob("*.md"))
PAGES = [page for page in NOTES if page.stem != "index"]
#: Words of the page on the architecture, at most.
WORDS = 4000


def sections(page):
    return re.findall(r"^## (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_note_has_question_decision_measurements_and_alternatives(page):
    assert sections(page) == ["Question", "Decision", "Measurements", "Not taken"]


def test_the_index_lists_all_notes():
    listed = re.findall(r"^(\w+)$", (DOCS / "design_notes" / "index.md").read_text(), re.MULTILINE)
    assert sorted(listed) == [page.stem for page in PAGES]


def test_the_architecture_names_each_note():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\(design_notes/(\w+)\.md\)", text))
    assert named == {page.stem for page in NOTES}
    assert len(text.split()) <= WORDS


def test_the_table_of_passes_is_that_of_the_pipeline():
    text = (DOCS / "design_notes" / "passes.md").read_text(encoding="utf-8")
    table = text.split("| pass | what it does |")[1].split("\n\n")[0]
    listed = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert listed == list(dict.fromkeys(step.__name__ for step in pipeline.passes()))
