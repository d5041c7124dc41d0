"""Nothing reads code as text."""

import ast
from pathlib import Path

import pytest

import nbta
from nbta.loops import expression

PACKAGE = Path(nbta.__file__).parent


def imported(path):
    """Which of the modules that read text a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module)
    return names & {"ast", "re", "tokenize"}


def test_no_module_reads_code():
    rooms = (PACKAGE / name for name in ("loops", "codegen", "compiler"))
    files = [path for room in rooms for path in room.glob("*.py")]
    assert not [path for path in files if imported(path)]


@pytest.mark.parametrize("code", ["a + b", "x[i]", "3", "-1", "(b0, 3)", ""])
def test_no_rule_hands_text_over(code):
    with pytest.raises(TypeError, match="expressions are made of nodes"):
        expression(code)
    assert str(expression("b0")) == "b0"
