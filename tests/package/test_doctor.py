"""``nbta doctor``: what it finds, what it advises, and its exit code."""

import importlib.util
import os
import re
import sys
from itertools import chain

import numba
import pytest

import nbta
from nbta import cli, doctor
from nbta.runtime import machine_code, numba_private, shipped


def only(check):
    """The findings of a check that has something to say."""
    return [finding for finding in doctor._guarded(check) if finding.cure]


def test_version(capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"nbta {nbta.__version__}\n"


def test_without_a_command_the_help_is_printed(capsys):
    assert cli.main([]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("usage: nbta ")
    assert all(command in out for command in ("demo", "info", "doctor", "cache"))
    assert err == ""


def test_a_working_installation(capsys):
    assert cli.main(["doctor"]) == 0
    out, err = capsys.readouterr()
    assert "broken" not in out
    assert err == ""
    for said in (
        *chain(*doctor._PROGRAMS.values()),
        "Python",
        "numba",
        "kernels",
        "cache",
        "threads",
    ):
        assert said in out
    assert re.search(r"^ok       self-test  took \d+\.\d s$", out, re.MULTILINE)
    assert out.splitlines()[-1].startswith("nbta works here, ")


def test_a_crash_is_a_broken_finding(capsys, monkeypatch):
    program = doctor._OF_ARRAYS.partition("x = np.arange")[0] + "raise SystemError('no such luck')"
    steps = doctor._PROGRAMS[doctor._OF_ARRAYS]
    monkeypatch.setattr(doctor, "_PROGRAMS", {program: steps})
    assert cli.main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "broken   self-test  array in @njit: SystemError: no such luck" in out
    assert out.splitlines()[-1].startswith("nbta does not work here: 1 finding, ")


def test_a_process_that_dies_is_told_of(monkeypatch):
    monkeypatch.setattr(doctor, "_PROGRAMS", {"import os; os._exit(3)": ("array in @njit",)})
    (finding,) = only(doctor._self_test)
    assert finding.state == "broken"
    assert finding.text == "array in @njit: it ended with 3"


def test_a_process_that_hangs_is_ended(monkeypatch):
    monkeypatch.setattr(doctor, "_PATIENCE", 0.3)
    monkeypatch.setattr(doctor, "_PROGRAMS", {"import time; time.sleep(60)": ("array in @njit",)})
    (finding,) = only(doctor._self_test)
    assert finding.text == "array in @njit: it ended with a time limit"


def test_an_error_of_a_check_is_a_finding(monkeypatch):
    def summary():
        raise OSError("gone")

    monkeypatch.setattr(shipped, "summary", summary)
    (finding,) = only(doctor._kernels)
    assert finding[:3] == ("broken", "kernels", "OSError: gone")


@pytest.mark.parametrize(
    ("version", "state", "words", "cure"),
    [
        ("1.26.4", "broken", "1.26.4 is too old", 'pip install "numpy>=2.0"'),
        ("3.0.0", "warning", "is newer than what was tested", 'pip install "numpy=='),
    ],
)
def test_versions(version, state, words, cure, monkeypatch):
    known = doctor.metadata.version
    monkeypatch.setattr(
        doctor.metadata, "version", lambda name: version if name == "numpy" else known(name)
    )
    finding = next(each for each in only(doctor._versions) if each.subject == "numpy")
    assert finding.state == state
    assert words in finding.text
    assert cure in finding.cure


def test_what_is_not_installed(monkeypatch):
    def version(name):
        raise doctor.metadata.PackageNotFoundError

    monkeypatch.setattr(doctor.metadata, "version", version)
    found = only(doctor._versions)
    assert {each.subject for each in found} == {"numba", "llvmlite", "numpy", "scipy"}
    assert {each.state for each in found} == {"broken"}


def test_without_the_extras(monkeypatch):
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    found = only(doctor._extras)
    assert {each.state for each in found} == {"ok"}
    assert [each.cure.partition(",")[0] for each in found] == [
        f'pip install "nbta[{extra}]"' for extra in ("plot", "progress", "distributed")
    ]
    monkeypatch.setattr(doctor, "find_spec", importlib.util.find_spec)


def test_kernels_that_did_not_come_with_the_package(monkeypatch):
    monkeypatch.setattr(shipped, "summary", lambda: "compiled here: none came")
    (finding,) = only(doctor._kernels)
    assert finding.state == "warning"
    assert "install a wheel" in finding.cure
    monkeypatch.setattr(shipped, "summary", lambda: "shipped, for x86-64-v3")
    assert only(doctor._kernels) == []


def test_no_home(monkeypatch):
    monkeypatch.setattr(machine_code, "folder", lambda: None)
    finding = only(doctor._caches)[0]
    assert finding.state == "warning"
    assert "no folder can be written" in finding.text
    assert finding.cure.startswith("set NBTA_CACHE_DIR to a folder")


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NBTA_CACHE_DIR", str(tmp_path / "file" / "cache"))
    finding = only(doctor._caches)[0]
    assert finding.state == "warning"
    assert "cannot be written" in finding.text


def test_a_full_disk(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(doctor.os, "fsync", full)
    monkeypatch.setenv("NBTA_CACHE_DIR", str(tmp_path))
    finding = only(doctor._caches)[0]
    assert f"{tmp_path} cannot be written (No space left on device)" in finding.text


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no owners there")
def test_a_cache_of_others(tmp_path, monkeypatch):
    monkeypatch.setenv("NBTA_CACHE_DIR", str(tmp_path))
    tmp_path.chmod(0o777)
    finding = only(doctor._caches)[0]
    assert "can be written by others (mode 777)" in finding.text
    assert finding.cure.startswith(f"chmod go-w {tmp_path} if it is yours")
    tmp_path.chmod(0o755)
    monkeypatch.setattr(machine_code.os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    found = only(doctor._caches)
    assert bool(found) == bool(tmp_path.stat().st_uid)  # those of the administrator are trusted
    assert all(f"belongs to user {tmp_path.stat().st_uid}" in each.text for each in found[:1])


def test_a_layer_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(numba_private, "layer_is_installed", lambda name: name == "workqueue")
    monkeypatch.setattr(numba.config, "THREADING_LAYER", "tbb")
    (finding,) = only(doctor._threads)
    assert finding.state == "broken"
    assert "layer tbb: it is not installed" in finding.text
