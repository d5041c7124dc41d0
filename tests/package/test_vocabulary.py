"""Words of the field, which pages, messages and public docstrings use in place of our own."""

import ast
import re
from pathlib import Path

import pytest

import nbta

ROOT = Path(__file__).parents[2]
#: A retired word, and what to say.
RETIRED = {
    r"trips?": "iteration",
    r"trips? back": "adjoint iteration",
    r"extents?": "dimension, or length",
    r"behind": "after, or below",
    r"in front of": "before",
    r"seconds of a processor": "CPU seconds",
    r"as (it|they) stands?": "unmodified",
    r"the same bits": "bitwise identical",
    r"beside peers": "compared with other libraries",
    r"stand-ins?": "placeholder, or shadow array",
    r"gone? along": "iterated over",
    r"gives? back": "returns",
    r"the run tells": "only the run knows",
    r"decides? about": "decides",
}
WORDS = re.compile(rf"\b(?:{'|'.join(RETIRED)})\b", re.IGNORECASE)
PAGES = [
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "generated" not in path.parts and "_build" not in path.parts
]
#: Pages for developers, which name parts of the code.
CODE = {"performance.md", "adding_an_op.md", "changelog.md"}

#: Retired in names and comments, too.
OF_CODE = re.compile(
    r"(?<![a-zA-Z])(?:(?:trip|extent|entrance|stand_?in)s?|whereabouts|in_front_of)(?![a-z])"
    r"|in front of|the same bits|hand(?:s|ed)? on\b",
    re.IGNORECASE,
)
#: A reason of errors, which programs compare, a journey there and back, and a former name.
FORMER = re.compile(r"negative_extent|round trips?|def gradient_behind.*?trip\)", re.DOTALL)


def found(text):
    """Retired words of a text, without its code."""
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    return [match[0] for match in WORDS.finditer(text)]


@pytest.mark.parametrize("path", [p for p in PAGES if p.name not in CODE], ids=lambda p: p.stem)
def test_pages(path):
    assert found(path.read_text(encoding="utf-8")) == []


def public():
    """Public docstrings, by name."""
    for name in nbta.__all__:
        value = getattr(nbta, name)
        yield name, value.__doc__ or ""
        if isinstance(value, type) and value.__module__.startswith("nbta"):
            for member, method in vars(value).items():
                if not member.startswith("_"):
                    yield f"{name}.{member}", getattr(method, "__doc__", None) or ""


def test_public_docstrings():
    wrong = {name: words for name, text in public() if (words := found(text))}
    assert wrong == {}


def messages(path):
    """Texts of a module with a blank in them that are no docstrings, with their lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and " " in text and id(node) not in docstrings:
            yield f"{path.relative_to(ROOT)}:{node.lineno}", text


def test_messages():
    texts = [text for path in (ROOT / "nbta").rglob("*.py") for text in messages(path)]
    assert len(texts) > 2000
    assert {place: words for place, text in texts if (words := found(text))} == {}


def test_a_retired_word_is_found():
    assert found("the trips behind a loop, `trip`") == ["trips", "behind"]


def test_code():
    wrong = {}
    for path in sorted((ROOT / "nbta").rglob("*.py*")):
        if path.suffix in {".py", ".pyi"}:
            text = FORMER.sub("", path.read_text(encoding="utf-8"))
            if words := OF_CODE.findall(text):
                wrong[str(path.relative_to(ROOT))] = words
    assert wrong == {}
