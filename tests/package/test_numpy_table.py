"""The page that lists what of NumPy and SciPy takes traced values says what is so."""

import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))
import numpy_table  # noqa: E402 - it stands beside the page


def written(namespace):
    """The status of each function, by the page."""
    section = numpy_table.PAGE.read_text(encoding="utf-8").split(f"\n## {namespace}\n")[1]
    rows = [line.strip("| ").split(" | ") for line in section.split("\n## ")[0].splitlines()]
    kinds = (numpy_table.GRADIENT, numpy_table.VALUE, numpy_table.REFUSED)
    return {
        name: row[0] for row in rows if row[0] in kinds for part in row[1:] for name in part.split()
    }


@pytest.mark.parametrize("namespace", numpy_table.NAMESPACES)
def test_the_page_says_what_is_so(namespace):
    """Of another version's functions, too; those that the page has not may be refused."""
    page = written(namespace)
    for name, function in numpy_table.functions(namespace).items():
        expected = page.get(name, numpy_table.REFUSED)
        assert numpy_table.status(name, function) == expected, f"{name}: docs/numpy_table.py"


def test_wrong_values_and_gradients_do_not_pass():
    x = numpy_table.X
    with pytest.raises(AssertionError):
        numpy_table._compare(x * 1.001, x)
    with pytest.raises(AssertionError):
        numpy_table._has_gradient(abs, x, lambda f, v: f(v) * numpy_table.nbta.stop_gradient(v))
