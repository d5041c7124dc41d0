"""The versions that all tests passed with, and what is said where only newer ones fail."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import nbta

ROOT = Path(nbta.__file__).parents[1]
TOOL = ROOT / "packaging" / "versions.py"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def versions():
    spec = importlib.util.spec_from_file_location("versions", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def needed(extra):
    """Names of the packages of an extra, with those of others that it names."""
    for line in PROJECT["optional-dependencies"][extra]:
        if found := re.fullmatch(r"nbta\[(.*)\]", line):
            for other in found[1].split(","):
                yield from needed(other)
        else:
            yield re.match(r"[\w.-]+", line)[0]


def test_all_that_the_tests_need_is_recorded(versions):
    recorded = versions.recorded(versions.FILE.read_text())
    names = [re.match(r"[\w.-]+", line)[0] for line in PROJECT["dependencies"]]
    for name in [*names, *needed("test")]:
        assert versions.normal(name) in recorded, f"{name}: python packaging/versions.py --write"


def test_what_moved_is_named(versions):
    before = versions.recorded("# a comment\nscipy==1.17.1\nml_dtypes==0.6.0\nzict==3.0.0\n")
    now = {"ml-dtypes": "0.6.0", "scipy": "1.18.0", "tblib": "3.2.2"}
    assert versions.moved(before, now) == ["scipy 1.17.1 -> 1.18.0", "tblib (not there) -> 3.2.2"]
    assert versions.moved(now, now) == []


def test_what_is_installed_is_compared(versions, tmp_path):
    copy = tmp_path / TOOL.name
    copy.write_text(TOOL.read_text())
    (tmp_path / "constraints.txt").write_text("numba==0.0.1\n")
    command = [sys.executable, str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"numba 0.0.1 -> {versions.installed()['numba']}\n" in done.stdout
    subprocess.run([*command, "--write"], check=True)
    assert versions.recorded((tmp_path / "constraints.txt").read_text()) == versions.installed()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "all packages are of the recorded versions\n"
