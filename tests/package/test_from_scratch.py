"""The page that builds a small nbta: how long its code is, that it runs, and what it names."""

import re
import runpy
from pathlib import Path

import pytest
from peer_pages import blocks

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "from_scratch.md").read_text(encoding="utf-8")
#: Lines that are not blank.
MOST = 400


def cells(page):
    return [block.code for block in blocks(page) if block.ours]


def written(page, folder):
    """A file of the cells of a page: nbta takes the text of functions from files."""
    path = folder / "page.py"
    path.write_text("\n".join(cells(page)), encoding="utf-8")
    return str(path)


def test_the_code_is_short():
    lines = [line for cell in cells(PAGE) for line in cell.splitlines() if line.strip()]
    assert len(cells(PAGE)) > 20
    assert len(lines) <= MOST
    assert max(map(len, lines)) <= 100


def test_cells_before_numba_run(tmp_path, capsys):
    """Their assertions compare with NumPy and with central differences."""
    names = runpy.run_path(written(PAGE.split("\n## 8")[0], tmp_path))
    assert names["tapes"](names["gradient"]) == 1
    assert "t3.append(f5)" in capsys.readouterr().out


@pytest.mark.slow  # Numba and nbta compile for seconds
def test_all_cells_run(tmp_path, capsys):
    runpy.run_path(written(PAGE, tmp_path))
    assert "machine code" in capsys.readouterr().out


def test_modules_that_the_page_names_are_there():
    named = set(re.findall(r"`((?:nbta|tests)/[\w/.]*)`", PAGE))
    assert len(named) > 25
    assert {name for name in named if not (ROOT / name).exists()} == set()
