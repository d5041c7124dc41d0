"""The folder that keeps what tests compile, and which tests are slow."""

import os
import subprocess
import sys
from pathlib import Path

import compiled_folder
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled_folder, "FOLDERS", tmp_path / "compiled")
    return tmp_path / "compiled"


def test_what_was_set_stays(folders):
    given = {"NUMBA_CACHE_DIR": "here", "NBTA_CACHE_DIR": "there"}
    assert compiled_folder.environment(given) == {}
    assert not folders.exists()


def test_what_was_not_set_is_a_folder_for_this_state_of_the_sources(folders):
    found = compiled_folder.environment({"NBTA_CACHE_DIR": "", "NUMBA_CACHE_DIR": "here"})
    assert found == {"NBTA_CACHE_DIR": str(folders / compiled_folder.stamp() / "graphs")}
    assert Path(found["NBTA_CACHE_DIR"]).is_dir()


def test_where_nothing_can_be_written_nothing_is_set(folders):
    folders.write_text("a file")
    assert compiled_folder.environment({}) == {}


def test_folders_of_three_states_stay(folders):
    for k, name in enumerate("abcd"):
        (folders / name).mkdir(parents=True)
        os.utime(folders / name, (k, k))
    compiled_folder.environment({})
    assert sorted(path.name for path in folders.iterdir()) == sorted(
        ["c", "d", compiled_folder.stamp()]
    )


TESTS = """
import pytest
from nbta.compiler import executable
from nbta.compiler.build import build

@pytest.mark.slow
@pytest.mark.smoke
def test_exhaustive():
    pass

@pytest.mark.smoke_every(2)
@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("k", range(6))
def test_cases(k):
    assert executable.build is not build

@pytest.mark.smoke
@pytest.mark.machine_code
def test_quick():
    assert executable.build is build
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("marks") / "test_marks.py"
    path.write_text(TESTS)
    return path


def run(*options):
    """Pytest with the project's options, but not its conftest.py."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "slow_marks"]
    command += ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), *options]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


@pytest.mark.parametrize(
    ("options", "name", "chosen"),
    [
        ([], "", ["cases[0]", "cases[5]", "quick"]),
        (["-m", "slow"], "", ["exhaustive", *(f"cases[{k}]" for k in (1, 2, 3, 4))]),
        (["-m", ""], "", ["exhaustive", *(f"cases[{k}]" for k in range(6)), "quick"]),
        ([], "::test_exhaustive", ["exhaustive"]),
        ([], "::test_cases[3]", ["cases[3]"]),
        (["-m", "smoke"], "", ["cases[0]", "quick"]),
    ],
)
def test_which_tests_are_chosen(options, name, chosen, file):
    result = run("--collect-only", *options, f"{file}{name}")
    found = [line.split("::test_")[1] for line in result.stdout.splitlines() if "::test_" in line]
    assert found == chosen, result.stdout + result.stderr


def test_python_runs_what_the_smoke_suite_generates_where_it_is_not_about_machine_code(file):
    result = run("-m", "smoke", str(file))
    assert result.returncode == 0, result.stdout + result.stderr
