"""The programs of the page on other libraries run, each where its libraries are installed."""

import re
import runpy
import warnings
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "other_libraries.md").read_text(encoding="utf-8")
FIRST, *SECTIONS = re.split(r"^## ", PAGE, flags=re.M)
SECTIONS = {text.partition("\n")[0]: text for text in SECTIONS}
#: By section: the libraries that it needs, and what it is to have left.
PROGRAMS = {
    "SciPy": (
        [],
        "all(abs(f.x - fit.x).max() < 1e-4 for f in (by_gradient, by_hessian, by_product))"
        " and abs(found - fit.x).max() < 1e-6 and abs(fit.x[0] - 0.7) < 0.05"
        " and path.success and path.njev > 0 and abs(path.y[:, -1].sum() - 1.0) < 1e-9"
        " and profile.success and abs(profile.sol(0.5)[0] - 0.1405392) < 1e-6",
    ),
    "scikit-learn": (["sklearn"], "scores.min() > 0.99"),
    "JAX": (
        ["jax", "optax", "blackjax"],
        "abs(params[0] - 0.7) < 0.05 and abs(draws[:, 0].mean() - 0.7) < 0.05"
        " and 0.001 < draws[:, 0].std() < 0.05",
    ),
    "PyTorch": (["torch"], "abs(weights[0].item() - 0.7) < 0.05"),
    "PyTensor and PyMC": (
        ["pytensor", "pymc"],
        "abs(trace.posterior['rate'].values.mean() - 0.7) < 0.05",
    ),
    "Awkward and Arrow": (
        ["awkward", "pyarrow"],
        "longest == 3 and [len(x) for x in again] == [3, 0, 2]"
        " and str(column.type) == 'large_list<item: double>'",
    ),
    "pandas and xarray": (["pandas"], "by_day.shape == (60,) and abs(by_day).max() > 0.0"),
}


def test_each_section_is_run():
    assert SECTIONS.keys() == PROGRAMS.keys()


@pytest.mark.parametrize("section", PROGRAMS)
def test_its_programs_run(section, tmp_path, monkeypatch):
    libraries, expected = PROGRAMS[section]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of other libraries
        for library in libraries:
            pytest.importorskip(library)
        blocks = re.findall(r"^```python\n(.*?)^```$", FIRST + SECTIONS[section], re.M | re.S)
        program = tmp_path / "program.py"
        program.write_text("\n".join(blocks), encoding="utf-8")
        assert eval(expected, runpy.run_path(str(program)))
