"""docs/errors.md, whose examples are doctests, has each reason of an error."""

import ast
import re
from pathlib import Path

import pytest

import nbta
from nbta.errors import REASONS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (\w+)$\n(.*?)(?=^##|\Z)", PAGE, flags=re.M | re.S))
WORDS = set(re.findall(r"^\| `([a-z_]+)` \|", PAGE, flags=re.M)) | {row.reason for row in REASONS}
#: Functions that refuse an argument, and the place of the reason among their arguments.
REFUSING = {"invalid": 0, "as_vector": 1, "as_integer": 1}


def refusals():
    """Reasons that are written down where an argument is refused."""
    for file in Path(nbta.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
                reason = node.args[REFUSING[called] :][:1] if called in REFUSING else []
                yield from (arg.value for arg in reason if isinstance(arg, ast.Constant))


def test_each_word_of_a_refusal_is_in_a_table():
    found = set(refusals())
    assert len(found) > 60
    assert found - WORDS == set()


def test_no_word_is_left_over():
    built = {"xs", "ys"}  # by the name of the argument
    assert WORDS - {row.reason for row in REASONS} - set(refusals()) - built == set()


@pytest.mark.parametrize("row", REASONS[1:], ids=lambda row: row.reason)
def test_each_reason_has_a_section_that_shows_its_message(row):
    section = SECTIONS[row.reason]
    assert section.lstrip().startswith(f"`{row.error.__name__}`.")
    assert "*Cure:* " in section
    words = re.split(r"\s+", row.message)
    message = r"\s+".join(re.sub(r"\\\{\w+\\\}", ".+", re.escape(word)) for word in words)
    assert re.search(message, section, flags=re.S)
