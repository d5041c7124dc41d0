"""Each block of Python on a page is run: by the page's build, as a doctest, or here.

Code cells run when the documentation is built. Pages of doctests are those that pytest is told of.
"""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    )
    if not {"generated", "_build"} & set(path.parts)
}
#: Pages with blocks that the tests of a file run.
ELSEWHERE = {
    "README.md": "test_readme.py",
    "docs/coming_from/jax.md": "test_coming_from.py",
    "docs/coming_from/pytensor.md": "test_coming_from.py",
    "docs/coming_from/tensorflow1.md": "test_coming_from.py",
}
#: What pages take for granted before their blocks.
BEFORE = {
    "docs/reference/types.md": "params, x = {'w': 0.5}, 2.0\n",
    "docs/tensorflow.md": (
        "from nbta import Graph, Session, TensorArray, gradients, name_scope, placeholder\n"
        "graph = Graph()\n"
    ),
}
#: What blocks are to have left, as an expression.
AFTER = {
    "docs/reference/types.md": "abs(gradient['w'] - 2.0 / nbta.cosh(1.0) ** 2) < 1e-12",
    "docs/tensorflow.md": "Session(graph).run(slope, {x: 3.0}) == 6.0",
}


def blocks(text):
    """The blocks of Python of a page that are no cells."""
    found = re.findall(r"^```(?:python|\{code-block\} python)\n(.*?)^```$", text, re.M | re.S)
    return [block for block in found if ">>>" not in block]


def prompts(text):
    return re.findall(r"^```\w*\n([^`]*?^>>> .*?)^```$", text, re.M | re.S)


def test_no_block_is_left_out():
    named = {page for page, text in PAGES.items() if blocks(text)}
    others = {"docs/comparison.md", "docs/index.md"}  # below
    assert named == ELSEWHERE.keys() | BEFORE.keys() | others
    assert all((Path(__file__).parent / name).exists() for name in ELSEWHERE.values())


@pytest.mark.parametrize("page", BEFORE)
def test_a_block_does_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = blocks(PAGES[page])
    (tmp_path / "page.py").write_text(BEFORE[page] + block, encoding="utf-8")
    assert eval(AFTER[page], runpy.run_path("page.py"))


def test_the_block_of_the_landing_page_is_the_readmes():
    (block,) = blocks(PAGES["docs/index.md"])
    assert block in PAGES["README.md"]


def test_the_block_of_another_library_prints_what_the_page_says(capsys, tmp_path):
    pytest.importorskip("torch")
    (block,) = blocks(PAGES["docs/comparison.md"])
    (tmp_path / "page.py").write_text(block, encoding="utf-8")
    runpy.run_path(str(tmp_path / "page.py"))
    assert capsys.readouterr().out.splitlines() == re.findall(r"^# (.*)$", block, re.MULTILINE)


def test_pages_of_prompts_are_doctests():
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    told = re.findall(r"--doctest-glob=(\S+)", options["tool"]["pytest"]["ini_options"]["addopts"])
    shown = {Path(page).name for page, text in PAGES.items() if prompts(text)}
    assert shown <= set(told)
