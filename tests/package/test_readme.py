"""The README: its programs print what it says, and its excerpts are those of the examples."""

import re
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
PROGRAMS = {found[1]: block for block in BLOCKS if (found := re.match(r"# (\w+\.py)\n", block))}
EXCERPTS = [block for block in BLOCKS if not block.startswith("# ")]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_what_the_page_says(name, tmp_path):
    block = PROGRAMS[name]
    (tmp_path / name).write_text(block, encoding="utf-8")
    done = subprocess.run([sys.executable, name], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    printed = re.findall(r"^# (.*)\n", block.partition("\n")[2], re.MULTILINE)
    assert done.stdout.splitlines() == printed


def test_excerpts_are_of_the_example():
    example = (ROOT / "examples" / "predator_prey.py").read_text(encoding="utf-8")
    assert EXCERPTS
    assert [block for block in EXCERPTS if block not in example] == []


def test_the_first_line_says_what_it_is_for():
    assert TEXT.startswith("# nbta\n\n**Gradients of your Numba loops, on the CPU")


def test_links_lead_somewhere():
    links = re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", TEXT)
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_figures_on_the_page_are_those_of_the_samples():
    from asv_bench import figures

    found = {
        name: version
        for row in figures.read(figures.PEERS)
        for peer in row["peers"]
        for name, version in peer.get("versions", {}).items()
        if peer["peer"] != "pytensor"  # which asks for an older Numba
    }
    names = {"JAX": "jax", "diffrax": "diffrax", "TensorFlow": "tensorflow", "PyTorch": "torch"}
    for library, name in (names | {"Numba": "numba"}).items():
        version = found[name].partition("+")[0]
        assert re.search(rf"{library}\s+{re.escape(version)}", TEXT), (library, version)


def test_what_a_gradient_costs_is_what_the_table_says():
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    costs = page.partition("\n## What a gradient costs\n")[2].partition("\n## ")[0]
    row = re.compile(r"^\| [^|]+ \| [\d,]+ \| [\d.]+ \| [\d.]+ \| ([\d.]+) \|", re.MULTILINE)
    ratios = [float(ratio) for ratio in row.findall(costs)]
    told = (
        f"Value and gradient of a loop take {median(ratios):.1f} times as long as the loop itself "
        f"(median of {len(ratios)} programs; {max(ratios):.1f} at most)."
    )
    for text in (TEXT, page):
        assert told in " ".join(text.split())
