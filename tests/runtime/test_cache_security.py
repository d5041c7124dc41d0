"""Whose code a process runs from the cache: the user's own, and the administrator's."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from numba import types

import nbta
from nbta.runtime import machine_code
from nbta.runtime.machine_code import Routine

pytestmark = pytest.mark.skipif(os.name != "posix", reason="files have no modes here")


def tripled(x):
    return 3 * x


ROUTINE = Routine(tripled, types.int64(types.int64), {})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    place = tmp_path / "cache"
    monkeypatch.setenv("NBTA_CACHE_DIR", str(place))
    monkeypatch.setattr(machine_code, "_told_of", set())
    return place


def made():
    """Whether the routine was compiled, not loaded."""
    compiled = []

    def compile_now():
        compiled.append(True)
        return ROUTINE.compiled()

    found = machine_code.kept(ROUTINE.text, ROUTINE.options, compile_now)
    assert found.function(14) == 42
    return bool(compiled)


def entry(folder):
    (path,) = folder.glob("*.graph")
    return path


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o720, 0o1777])
def test_a_folder_that_others_write_to_is_not_used(folder, mode):
    assert made()
    folder.chmod(mode)
    with pytest.warns(nbta.PerformanceWarning, match=f"mode {mode:o}.*chmod go-w {folder}"):
        assert made()
    assert made()  # and says nothing any more
    entry(folder).unlink()
    assert made()
    assert list(folder.iterdir()) == []
    folder.chmod(0o755)  # which others may read
    assert [made(), made()] == [True, False]


@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_a_file_that_others_write_to_is_made_again(folder, mode):
    assert made()
    entry(folder).chmod(mode)
    assert [made(), made()] == [True, False]
    assert entry(folder).stat().st_mode & 0o777 == 0o600


def link(path):
    path.rename(path.with_suffix(".elsewhere"))
    path.symlink_to(path.with_suffix(".elsewhere"))


def pipe(path):
    path.unlink()
    os.mkfifo(path)


def endless(path):
    os.truncate(path, machine_code.CODE_FILE + 1)


@pytest.mark.parametrize("damage", [link, pipe, endless])
def test_only_regular_files_of_a_bounded_size_are_read(folder, damage):
    assert made()
    damage(entry(folder))
    assert [made(), made()] == [True, False]
    assert entry(folder).is_file()
    assert not entry(folder).is_symlink()


def test_a_pipe_in_place_of_the_folder(folder):
    os.mkfifo(folder)
    assert [made(), made()] == [True, True]


def test_a_folder_whose_name_is_too_long(folder, monkeypatch):
    for name in ("n" * 300, "/".join(["n" * 200] * 30)):
        monkeypatch.setenv("NBTA_CACHE_DIR", str(folder / name))
        assert not machine_code.is_kept(ROUTINE.text, ROUTINE.options)
        assert [made(), made()] == [True, True]


def test_a_working_directory_that_is_gone(folder, monkeypatch):
    monkeypatch.setenv("NBTA_CACHE_DIR", "relative")
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert machine_code.folder() is None
    assert not machine_code.is_kept(ROUTINE.text, ROUTINE.options)
    assert [made(), made()] == [True, True]


@pytest.mark.parametrize("mode", [0o000, 0o200, 0o400, 0o600])
def test_a_folder_that_cannot_be_searched(folder, mode, monkeypatch):
    assert made()

    def refused(path, *args, **kwargs):  # the administrator, who runs tests in containers, is not
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "stat", refused)
    monkeypatch.setattr(os, "open", refused)
    folder.chmod(mode)
    try:
        assert not machine_code.is_kept(ROUTINE.text, ROUTINE.options)
        assert machine_code.reach_of_others(folder) == ""
        assert [made(), made()] == [True, True]
    finally:
        monkeypatch.undo()
        folder.chmod(0o700)


def test_folders_around_the_cache_are_private_too(folder, monkeypatch):
    monkeypatch.setenv("NBTA_CACHE_DIR", str(folder / "a" / "b"))
    before = os.umask(0)
    try:
        assert made()
    finally:
        os.umask(before)
    assert [each.stat().st_mode & 0o777 for each in (folder, folder / "a", folder / "a" / "b")] == [
        0o700
    ] * 3


def test_the_folder_of_another_user_needs_another_cure(folder, monkeypatch):
    assert made()
    monkeypatch.setattr(machine_code, "_is_ours", lambda facts: False)
    with pytest.warns(nbta.PerformanceWarning, match="belongs to user .* again; set NBTA_CACHE"):
        assert made()


def test_a_home_without_a_name_is_not_the_root(monkeypatch):
    for name in ("NBTA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    expected = machine_code.folder()
    for home in ("", "relative"):
        monkeypatch.setenv("HOME", home)
        found = machine_code.folder()
        assert found is None or found.parts[:2] != ("/", ".cache")
        assert found is None or found.is_absolute()
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    assert machine_code.folder() is None
    monkeypatch.delenv("HOME")
    assert expected is None or expected.name == "nbta"


def test_files_from_the_future_do_not_stay(folder, monkeypatch):
    """A clock that went wrong, or another machine's."""
    assert made()
    path = entry(folder)
    ahead = time.time() + 10 * machine_code.LEFT_OVER_SECONDS
    left = folder / f"{path.stem}.x1.tmp"
    left.write_text("half")
    for each in (path, left):
        os.utime(each, (ahead, ahead))
    assert not made()  # it is used now, by this clock
    assert path.stat().st_mtime <= time.time() + 1
    machine_code._shrink(folder)
    assert list(folder.iterdir()) == [path]


#: Where a process is killed, in the order of a write.
STEPS = ["tempfile.mkstemp", "before write", "half written", "os.replace", "after"]
KILLED = """
import os, signal, sys, tempfile
from numba import types
from nbta.runtime import machine_code
from nbta.runtime.machine_code import Routine
def tripled(x):
    return 3 * x
step = sys.argv[1]
def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)
if step == "tempfile.mkstemp": tempfile.mkstemp = die
if step == "os.replace": os.replace = die
if step == "after": machine_code._shrink = die
class Dying:
    def __init__(self, file): self.file = file
    def __enter__(self): return self
    def __exit__(self, *args): self.file.close()
    def write(self, data):
        if step == "half written":
            self.file.write(data[: len(data) // 2])
            self.file.flush()
        die()
def opened(file, mode="r"):
    found = open(file, mode)
    return Dying(found) if mode == "wb" and step in ("before write", "half written") else found
machine_code.open = opened
routine = Routine(tripled, types.int64(types.int64), {})
machine_code.kept(routine.text, routine.options, routine.compiled)
"""


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_process_that_is_killed_while_it_writes(folder, step):
    environment = {**os.environ, "PYTHONPATH": str(Path(nbta.__file__).parents[1])}
    command = [sys.executable, "-c", KILLED, step]
    done = subprocess.run(command, env=environment, check=False, timeout=300)
    assert done.returncode == -signal.SIGKILL
    whole = list(folder.glob("*.graph"))
    assert len(whole) == (step == "after")
    assert made() is (step != "after")
    assert not made()
    for path in folder.glob("*.tmp"):
        os.utime(path, (0, 0))
    machine_code._shrink(folder)
    assert list(folder.iterdir()) == [entry(folder)]


EXITS = """
import sys, threading, time
import numpy as np, nbta
def loop(x):
    total = 0.0
    for v in x:
        total += v * v
    return total
gradient = nbta.value_and_grad(loop, compiled=True)
batch = nbta.value_and_grad(lambda w, x: nbta.sum(w * x), batch_axis=0, compiled=True)
def eager():
    nbta.TensorArray("float64", dynamic_size=True).unstack(np.ones(1 << 16)).stack()
kinds = {
    "eager": eager,
    "gradient": lambda: gradient(np.ones(100)),
    "batch": lambda: batch(np.ones(3), np.ones((64, 3))),
    "compiling": lambda: nbta.grad(lambda x: nbta.sum(x * time.time()), compiled=True)(np.ones(3)),
}
def run():
    while True:
        kinds[sys.argv[1]]()
for _ in range(3):
    threading.Thread(target=run, daemon=True).start()
time.sleep(float(sys.argv[2]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("kind", ["eager", "gradient", "batch", "compiling"])
def test_a_process_that_ends_while_threads_run(kind, seconds, tmp_path):
    script = tmp_path / "ends.py"  # whose functions have a source
    script.write_text(EXITS)
    environment = {**os.environ, "PYTHONPATH": str(Path(nbta.__file__).parents[1])}
    command = [sys.executable, str(script), kind, str(seconds)]
    done = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, b"")
