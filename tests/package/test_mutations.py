"""The faults that `tests/support/mutations.py` plants: each is one, and goes again."""

import ast
from collections import Counter

import mutations
import pytest
from mutations import FAULTS, ROOT, Fault


def test_each_fault_is_one_change_of_what_is_there():
    """Where one is not: choose another piece that would break the same."""
    for fault in FAULTS:
        before, after = fault.file().read_text(), fault.changed()
        assert ast.dump(ast.parse(before)) != ast.dump(ast.parse(after)), fault


def test_each_subject_has_several_and_their_tests_are_there():
    assert len(FAULTS) == len({fault.what for fault in FAULTS}) == 53
    assert set(Counter(fault.subject for fault in FAULTS)) == {
        "store", "gradients", "passes", "codegen", "stencils", "tiles", "joint iterations",
        "batches",
    }  # fmt: skip
    for fault in FAULTS:
        assert all(list(ROOT.glob(f"tests/*/test_{name}.py")) for name in fault.tests.split())


TESTS = """
import pytest
import sums

@pytest.mark.smoke
def test_of_none():
    assert sums.total([]) == 0

def test_of_one():
    assert sums.total([3]) == 3

@pytest.mark.slow
def test_of_two():
    assert sums.total([3, 4]) == 7
"""


@pytest.fixture
def tree(tmp_path):
    """A package of one function, with two quick tests and a slow one."""
    (tmp_path / "nbta").mkdir()
    (tmp_path / "nbta" / "sums.py").write_text("def total(x):\n    return sum(x, start=0)\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_sums.py").write_text(TESTS)
    options = "pythonpath = nbta\nmarkers =\n  slow\n  smoke"
    (tmp_path / "pytest.ini").write_text(f"[pytest]\n{options}")
    return tmp_path


@pytest.mark.parametrize(
    ("new", "found", "suite"),
    [
        ("start=1", "quick", "quick"),
        ("start=0) if len(x) < 2 else x[0] - (0", "slow", "quick"),
        ("start=False", "nothing", "quick"),
        ("start=1", "smoke", "smoke"),
        ("start=0) if len(x) < 1 else 1 + sum(x", "nothing", "smoke"),
    ],
)
def test_what_finds_a_fault_is_told(new, found, suite, tree):
    fault = Fault("sums", "a wrong total", "start=0", new, "sums")
    before = fault.file(tree).read_text()
    assert mutations.found_by(fault, tree, suite) == found
    assert fault.file(tree).read_text() == before


def test_a_piece_that_is_not_there_once_is_refused(tree):
    for old in ("product", "t"):
        with pytest.raises(LookupError, match="must be there once"):
            Fault("sums", "none", old, "", "sums").file(tree)


def test_all_can_be_listed(capsys):
    assert mutations.main(["--list", "-k", "batches: "]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
