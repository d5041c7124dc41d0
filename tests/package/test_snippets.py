"""Each block of Python on a page is run: by the page's build, as a doctest, or here.

Code cells run when the documentation is built. Pages of doctests are those that pytest is told of,
and what is shown at a prompt is also typed at one, where functions have no source.
"""

import doctest
import importlib
import io
import re
import runpy
import sys
import tomllib
import traceback
from contextlib import redirect_stdout
from pathlib import Path

import numba
import numpy as np
import pytest

import nbta

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
    "docs/other_libraries.md": "test_other_libraries_page.py",
}
#: Pages with a block of a program of the README, which Numba takes ten seconds to compile.
OF_THE_README = ["docs/coming_from_numba.md", "docs/index.md"]
#: What pages take for granted before their blocks.
BEFORE = {
    "docs/call_in_njit.md": (
        "import numba\nimport numpy as np\nimport nbta\n"
        "def energy(q, data):\n    return np.sum((q - data) ** 2)\n"
    ),
    "docs/reference/types.md": "params, x = {'w': 0.5}, 2.0\n",
    "docs/tensorflow.md": (
        "from nbta import Graph, Session, TensorArray, gradients, name_scope, placeholder\n"
        "graph = Graph()\n"
    ),
}
#: What blocks are to have left, as an expression.
AFTER = {
    "docs/call_in_njit.md": "np.allclose(step(np.ones(2), np.zeros(2)), 0.8)",
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
    others = {"docs/comparison.md", *OF_THE_README}  # below
    assert named == ELSEWHERE.keys() | BEFORE.keys() | others
    assert all((Path(__file__).parent / name).exists() for name in ELSEWHERE.values())


@pytest.mark.parametrize("page", BEFORE)
def test_a_block_does_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = blocks(PAGES[page])
    (tmp_path / "page.py").write_text(BEFORE[page] + block, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "page", raising=False)
    assert eval(AFTER[page], vars(importlib.import_module("page")))


@pytest.mark.parametrize("page", OF_THE_README)
def test_the_block_is_one_of_the_readme(page):
    (block,) = blocks(PAGES[page])
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


FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def typed(examples):
    """Examples that say or raise something else at a prompt, as their source and what they do."""
    names, matches = {"np": np, "nbta": nbta, "numba": numba}, doctest.OutputChecker().check_output
    for example in examples:
        out, wanted = io.StringIO(), example.want
        try:
            with redirect_stdout(out):
                exec(compile(example.source, "<stdin>", "single"), names)
            said = out.getvalue()
        except Exception as error:
            wanted = example.exc_msg or ""
            said = "".join(traceback.format_exception_only(error))
        if not matches(wanted, said, FLAGS):
            yield example.source, said


@pytest.mark.slow
@pytest.mark.parametrize("page", ["docs/errors.md", "docs/parallel.md"])
def test_a_page_of_prompts_can_be_typed(page):
    examples = doctest.DocTestParser().get_examples(PAGES[page])
    assert len(examples) > 20
    assert list(typed(examples)) == []


@pytest.mark.slow
def test_examples_of_docstrings_can_be_typed():
    """But those of functions whose loops need a source, which say so."""
    modules = nbta, nbta.debug, nbta.implicit, nbta.random, nbta.testing
    found = [vars(m)[name] for m in modules for name in getattr(m, "__all__", None) or vars(m)]
    found = [each for each in found if getattr(each, "__module__", "").startswith("nbta")]
    texts = {id(value): value.__doc__ for value in found}.values()
    texts = [re.split(r"prompt of\s+Python 3.13", text)[0] for text in texts if text]
    examples = [doctest.DocTestParser().get_examples(text) for text in texts]
    assert sum(map(bool, examples)) > 300
    assert [wrong for each in examples for wrong in typed(each)] == []
