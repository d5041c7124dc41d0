"""The programs of the gallery find what is known otherwise; each has a page, picture and card."""

import importlib.util
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

import nbta

mpl.use("Agg")
ROOT = Path(__file__).parents[2]
EXAMPLES, PAGES, PICTURES = ROOT / "examples", ROOT / "docs/gallery", ROOT / "docs/figures/gallery"
LARGEST = 64_000  # bytes of a picture


def names():
    """Of the examples that draw a picture, which are those of the gallery."""
    drawn = (p for p in EXAMPLES.glob("*.py") if "def main(picture=None)" in p.read_text("utf-8"))
    return sorted(path.stem for path in drawn)


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run(tmp_path, capsys):
    """Runs an example by its name: its module, and what its main function returns."""

    def run(name):
        module, picture = load(name), tmp_path / "picture.svg"
        found = module.main(picture)
        assert capsys.readouterr().out.count("\n") >= 2
        text = picture.read_text("utf-8")
        assert "<svg" in text
        assert len(text) < LARGEST
        assert "<dc:date>" not in text  # the same picture each day
        return module, found

    return run


def differences(function, x, *rest, step=1e-6):
    """The gradient by central differences."""
    steps = step * np.maximum(1.0, np.abs(x))[:, None] * np.eye(len(x))
    rows = zip(steps, np.diagonal(steps), strict=True)
    return np.array([(function(x + h, *rest) - function(x - h, *rest)) / (2 * s) for h, s in rows])


# Pages.


def test_each_example_has_a_page_a_picture_and_a_card():
    index = (PAGES / "index.md").read_text("utf-8")
    contents = re.search(r"```\{toctree\}\n(?::.*\n)+\n((?:\w+\n)+)```", index)[1].split()
    cards = re.findall(
        r":link: (\w+)\n:link-type: doc\n:img-top: \S+/(\w+)\.svg\n:img-alt: .", index
    )
    assert [link for link, _ in cards] == [picture for _, picture in cards] == contents
    assert sorted(contents) == names()
    assert sorted(path.stem for path in PAGES.glob("*.md") if path.stem != "index") == names()
    assert sorted(path.stem for path in PICTURES.iterdir()) == names()


@pytest.mark.parametrize("name", names())
def test_a_page_shows_the_program_and_says_how_it_is_run(name):
    page = (PAGES / f"{name}.md").read_text("utf-8")
    assert f"`python examples/{name}.py picture.svg`" in page
    assert re.search(rf"^!\[[^]]+\]\(\.\./figures/gallery/{name}\.svg\)$", page, re.MULTILINE)
    assert f"{{literalinclude}} ../../examples/{name}.py" in page
    title = page.partition("\n")[0].removeprefix("# ")
    assert f":::{{grid-item-card}} {title}\n" in (PAGES / "index.md").read_text("utf-8")
    assert (PICTURES / f"{name}.svg").stat().st_size < LARGEST


# Programs.


def test_predator_prey(run):
    module, rates = run("predator_prey")
    true, times, nothing = (
        np.array([1.1, 0.4, 0.4, 0.1]),
        np.linspace(0.5, 12.0, 24),
        np.zeros((24, 2)),
    )

    def fitted(rates):
        path = np.zeros((24, 2))
        module.misfit(rates, times, nothing, path)
        return path.ravel()

    slopes = differences(fitted, true)  # of the exact solution, as far as the step allows
    errors = 0.3 * np.sqrt(np.diag(np.linalg.inv(slopes @ slopes.T)))
    assert np.all(np.abs(rates - true) < 3.0 * errors)
    assert np.all(errors < 0.1 * true)
    given = times, nothing, np.zeros((24, 2))
    found = nbta.grad(module.misfit)(true, *given)
    expected = differences(module.misfit, true, *given, step=1e-8)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
