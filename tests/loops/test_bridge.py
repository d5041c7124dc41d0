"""Code is parsed in one place: where a source is read back whose nodes are gone."""

import ast
from pathlib import Path

import pytest

import nbta
from nbta.loops import expression, text

PACKAGE = Path(nbta.__file__).parent
#: The only module that parses.
READERS = {"loops/text.py": {"ast"}}


def imported(path):
    """Which of the modules that read text a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module)
    return names & {"ast", "re", "tokenize"}


def test_one_module_reads_code():
    rooms = (PACKAGE / name for name in ("loops", "codegen", "compiler"))
    files = [path for room in rooms for path in room.glob("*.py")]
    found = {str(path.relative_to(PACKAGE)): imported(path) for path in files}
    assert {name: modules for name, modules in found.items() if modules} == READERS


def test_several_expressions_are_not_one():
    with pytest.raises(text.TextError, match="several expressions, not one: b0, 3"):
        text.expression("b0, 3")
    assert str(text.expression("(b0, 3)")) == "(b0, 3)"


@pytest.mark.parametrize("code", ["a + b", "x[i]", "3", "-1", "(b0, 3)", ""])
def test_no_rule_hands_text_over(code):
    with pytest.raises(TypeError, match="expressions are made of nodes"):
        expression(code)
    assert str(expression("b0")) == "b0"
