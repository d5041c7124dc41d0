"""The cache of compiled graphs: a second process compiles nothing, and nothing can break it."""

import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np
import pytest
import read_code
from compilations import COUNTING, copy_kernels
from numba.core import event

import nbta
from nbta.compiler import build
from nbta.compiler.phases import listening
from nbta.kernels import matrices
from nbta.runtime import machine_code, object_files

SOURCE = "def run(w):\n    W = pointer(int64, w, 0)\n    return W[0] * W[1] + {}\n"

PROGRAM = (
    COUNTING
    + """
import json
import sys
import numba
import numpy as np
from numba.core.registry import cpu_target
import nbta


def loss(w, x):
    def step(h, row):
        h = nbta.tanh(row @ w + h)
        return h, h
    return nbta.sum(nbta.scan(step, nbta.zeros(2), x)[1])

rng = np.random.default_rng(0)
value, slope = nbta.value_and_grad(loss, compiled=True)(rng.random((3, 2)), rng.random((4, 3)))
table, compiled = cpu_target.typing_context._functions, list(counting.compiled)
filled = len(table)
numba.njit(lambda x: x + 1)(1)  # which does fill it
print(json.dumps([float(value), slope.tolist(), compiled, filled, len(table) > 0]))
"""
)


def environment(folder, **others):
    support = Path(read_code.__file__).parent
    paths = [str(Path(nbta.__file__).parents[1]), str(support), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ, "NBTA_CACHE_DIR": str(folder), "PYTHONPATH": os.pathsep.join(paths), **others,
    }  # fmt: skip


def start(program, *arguments, **settings):
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program, *map(str, arguments)],
        env=environment(**settings), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def answer(process):
    out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, "")
    return json.loads(out)


class Counting(event.Listener):
    def __init__(self):
        self.count = 0

    def on_start(self, happened):
        self.count += 1

    def on_end(self, happened):
        pass


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache that is not there yet."""
    place = tmp_path / "made" / "here"
    monkeypatch.setenv("NBTA_CACHE_DIR", str(place))
    return place


def run(addend=1, **arguments):
    """Build and run the source; how many functions were compiled for it."""
    words, compiled = np.array([6, 7]), []
    with listening(lambda name, begin, end, facts: compiled.append(facts.get("compiled", False))):
        function = read_code.built(SOURCE.format(addend), **arguments).function
    assert function(words.ctypes.data) == 42 + addend
    return sum(compiled)


def entry(folder):
    (path,) = folder.iterdir()
    return path


# Hits.


@pytest.mark.slow
def test_a_second_process_compiles_nothing(tmp_path):
    """Nor does it fill Numba's tables, which would take longer than everything else."""
    copy_kernels(tmp_path)
    first = answer(start(PROGRAM, folder=tmp_path, PYTHONHASHSEED="1"))
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    second = answer(start(PROGRAM, folder=tmp_path, PYTHONHASHSEED="2"))
    assert "run" in first[2]
    assert second == [*first[:2], [], 0, True]
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files


def test_a_hit_and_a_miss(folder):
    assert run(1) == 1
    assert run(1) == 0
    assert run(2) == 1
    assert len(list(folder.iterdir())) == 2


def test_what_depends_on_users_functions_is_not_kept(folder):
    assert run(1, extra={"unused": len}) == 1
    assert run(1, extra={"unused": len}) == 1
    assert not folder.exists()
    assert run(1, extra={}) == 1
    assert run(1) == 0


def test_helpers_are_kept(folder):
    find = build.address.__wrapped__
    for compiles in (True, False):
        with event.install_listener("numba:compile", Counting()) as counting:
            assert find("gemm_float32") > 0
        assert (counting.count > 0) == compiles


def test_errors_pass_through_code_that_was_loaded(folder):
    def refusing(number):
        if number == 1:
            raise ValueError("one", number)
        return number

    def compiled():
        dispatcher = numba.njit(refusing)
        dispatcher.compile((numba.int64,))
        (overload,) = dispatcher.overloads.values()
        return overload

    for _ in range(2):
        function = machine_code.kept("refusing", {}, compiled).function
        assert function(2) == 2
        with pytest.raises(ValueError, match="'one', 1"):
            function(1)
        compiled = None
    assert entry(folder)


def test_everything_that_sources_refer_to_is_in_the_key():
    """The key covers Numba, NumPy, the runtime and two files: namespaces have nothing else."""
    files = build.special, build.philox, build.gammas, build.positive_gammas, build.prefetching
    assert all(Path(module.__file__).read_bytes() in build._SOURCES for module in files)
    others = (module.__name__ for module in files)
    allowed = (*others, "nbta.kernels.", "nbta.runtime.", "numba.", "numpy", "math", "builtins")
    for name, value in build.namespace().items():
        module = getattr(value, "__module__", None) or type(value).__module__
        assert module.startswith(allowed), name
    for routine in matrices.FUNCTIONS.values():
        assert routine.function.__module__.startswith(("nbta.kernels.", "nbta.runtime.")), routine


# Keys.


def change_runtime(monkeypatch):
    monkeypatch.setattr(machine_code, "runtime_stamp", lambda: "another")


def change_numba(monkeypatch):
    monkeypatch.setattr("numba.__version__", "9.9")


def change_llvmlite(monkeypatch):
    monkeypatch.setattr("llvmlite.__version__", "9.9")


def change_numpy(monkeypatch):
    monkeypatch.setattr(machine_code.np, "__version__", "9.9.9")


def change_python(monkeypatch):
    monkeypatch.setattr("sys.version", "9.9")


def change_processor(monkeypatch):
    codegen = type(machine_code.cpu_target.target_context.codegen())
    monkeypatch.setattr(codegen, "magic_tuple", lambda self: ("triple", "processor", "features"))


def change_options(monkeypatch):
    monkeypatch.setitem(build.OPTIONS, "fastmath", {"contract", "nsz"})


def change_level(monkeypatch):
    monkeypatch.setattr("numba.core.config.LOOP_VECTORIZE", 0)


@pytest.mark.parametrize(
    "change",
    [
        change_runtime, change_numba, change_llvmlite, change_numpy, change_python,
        change_processor, change_options, change_level,
    ],
)  # fmt: skip
def test_other_versions_have_other_entries(change, monkeypatch):
    before = machine_code.key("source", build.OPTIONS)
    assert machine_code.key("source", build.OPTIONS) == before
    change(monkeypatch)
    machine_code._versions.cache_clear()
    after = machine_code.key("source", build.OPTIONS)
    monkeypatch.undo()
    machine_code._versions.cache_clear()
    assert after != before
    assert machine_code.key("source", build.OPTIONS) == before
    assert machine_code.key("another source", build.OPTIONS) != before


# Files that are not what was written.


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


DAMAGES = {
    "empty": lambda data: b"",
    "short": lambda data: data[:20],
    "truncated": lambda data: data[:-1],
    "longer": lambda data: data + b"\0",
    "foreign": lambda data: b"\x80\x04N." * 999,
    "another layout": lambda data: data.replace(b"code 1", b"code 2", 1),
    "a bit of the checksum": lambda data: flipped(data, len(object_files.HEAD) + 5),
    "a bit of the names": lambda data: flipped(data, len(object_files.HEAD) + 40),
    "a bit of the code": lambda data: flipped(data, len(data) // 2),
    "the last bit": lambda data: flipped(data, len(data) - 1),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_entries_are_made_again(damage, folder):
    run()
    whole = entry(folder).read_bytes()
    entry(folder).write_bytes(DAMAGES[damage](whole))
    assert run() == 1
    assert run() == 0


def test_an_entry_under_another_name_is_not_taken(folder):
    run(1)
    first = entry(folder)
    run(2)
    (second,) = set(folder.iterdir()) - {first}
    second.write_bytes(first.read_bytes())
    assert run(2) == 1
    assert run(2) == 0


def test_an_entry_that_needs_what_is_not_there_is_not_loaded(folder):
    """LLVM would end the process."""
    run()
    name = entry(folder).stem
    code = machine_code.read(name)
    lacking = machine_code.Code(
        code.wrapper, code.pointer, code.environment, [*code.needed, "no_such_symbol"], code.binary
    )
    with pytest.raises(LookupError, match="no_such_symbol"):
        machine_code.Loaded(lacking)
    machine_code.write(name, lacking)
    assert run() == 1
    assert run() == 0


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")
def test_another_users_entry_is_not_taken(folder, monkeypatch):
    run()
    owner = os.stat(entry(folder)).st_uid
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    assert run() == (1 if owner else 0)  # the administrator may fill a cache for all


def test_code_with_pythons_objects_in_it_is_not_kept(folder, monkeypatch):
    made = []

    def compiled():
        made.append(numba.njit("int64(int64)")(lambda x: x + 1))
        return object_files.only_overload(made[-1])

    monkeypatch.setattr(object_files, "constants_of", lambda *args: None)
    for count in (1, 2):
        assert machine_code.kept("one more", {}, compiled).function(2) == 3
        assert len(made) == count
    assert machine_code.files() == []


# Folders.


def test_folders_are_the_users_alone(folder):
    run()
    if os.name == "posix":
        assert folder.stat().st_mode & 0o777 == 0o700
        assert entry(folder).stat().st_mode & 0o777 == 0o600


def test_a_folder_that_cannot_be_made(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("mine")
    monkeypatch.setenv("NBTA_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert run() == 1
    assert run() == 1
    monkeypatch.setenv("NBTA_CACHE_DIR", str(tmp_path / "file"))
    assert run() == 1
    assert machine_code.files() == []
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_that_cannot_be_written(folder, monkeypatch):
    run(1)
    folder.chmod(0o500)
    monkeypatch.setattr("tempfile.mkstemp", refuse(errno.EROFS))  # root may write everywhere
    monkeypatch.setattr("os.utime", refuse(errno.EROFS))
    assert run(1) == 0
    assert run(2) == 1
    folder.chmod(0o700)
    assert len(list(folder.iterdir())) == 1


def refuse(number):
    def refused(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    return refused


@pytest.mark.parametrize("function", ["os.replace", "nbta.runtime.machine_code.open", "os.unlink"])
def test_a_full_disk(function, folder, monkeypatch):
    full = refuse(errno.ENOSPC)

    def full_if_written(file, mode):
        return full() if mode == "wb" else open(file, mode)

    failing = full_if_written if function.endswith("open") else full
    monkeypatch.setattr(function, failing, raising=False)
    if function == "os.unlink":
        monkeypatch.setattr("os.replace", full)
    assert run() == 1
    monkeypatch.undo()
    monkeypatch.setenv("NBTA_CACHE_DIR", str(folder))
    left = list(folder.iterdir())
    assert [path.suffix for path in left] == ([".tmp"] if function == "os.unlink" else [])
    assert run() == 1
    assert run() == 0


def test_interruption_leaves_nothing(folder, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run()
    assert list(folder.iterdir()) == []


def test_where_the_folder_is(tmp_path, monkeypatch):
    home = str(tmp_path)
    for name in ("NBTA_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path.replace("~", home, 1))
    monkeypatch.setattr("sys.platform", "linux")
    assert machine_code.folder() == tmp_path / ".cache" / "nbta"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert machine_code.folder() == tmp_path / "xdg" / "nbta"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert machine_code.folder() == tmp_path / ".cache" / "nbta"
    monkeypatch.setattr("sys.platform", "darwin")
    assert machine_code.folder() == tmp_path / "Library" / "Caches" / "nbta"
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert machine_code.folder() == tmp_path / "local" / "nbta"
    monkeypatch.setenv("NBTA_CACHE_DIR", str(tmp_path / "own"))
    assert machine_code.folder() == tmp_path / "own"
    monkeypatch.setenv("NBTA_CACHE_DIR", "own")
    assert machine_code.folder() == Path.cwd() / "own"


def test_without_a_home(tmp_path, monkeypatch):
    for name in ("NBTA_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    monkeypatch.chdir(tmp_path)
    assert machine_code.folder() is None
    assert run() == 1
    assert run() == 1
    assert machine_code.files() == []
    assert list(tmp_path.iterdir()) == []


# How much is kept.


def test_what_was_not_used_for_longest_is_removed(folder, monkeypatch):
    for addend in (1, 2, 3):
        run(addend)
        for path in folder.iterdir():  # an hour passes
            facts = path.stat()
            os.utime(path, (facts.st_atime, facts.st_mtime - 3600))
    assert run(1) == 0  # is used again
    size = sum(path.stat().st_size for path in folder.iterdir())
    monkeypatch.setattr(machine_code, "CODE_FOLDER", size + 100)
    assert run(4) == 1
    assert len(list(folder.iterdir())) == 3
    assert [run(addend) for addend in (1, 3, 4)] == [0, 0, 0]
    assert run(2) == 1


def test_left_over_files_are_removed_and_those_of_others_are_not(folder, monkeypatch):
    run(1)
    name = entry(folder).stem
    old, new, other = folder / f"{name}.x1.tmp", folder / f"{name}.x2.tmp", folder / "mine.tmp"
    for path in (old, new, other):
        path.write_text("half")
    for path in (old, other):
        os.utime(path, (0, time.time() - 2 * machine_code.LEFT_OVER_SECONDS))
    monkeypatch.setattr(machine_code, "CODE_FOLDER", 0)
    run(2)
    assert set(folder.iterdir()) == {new, other}


def test_files_that_vanish_do_not_matter(folder, monkeypatch):
    run(1)
    gone = folder / f"{'0' * 64}.graph"
    found = machine_code.files
    monkeypatch.setattr(machine_code, "files", lambda place=None: [*found(place), gone])
    monkeypatch.setattr(machine_code, "CODE_FOLDER", 0)
    assert run(2) == 1
    assert list(folder.iterdir()) == []


# Many at once.

MANY = """
import json
import sys
import time
import numpy as np
import read_code

words = np.array([6, 7])
time.sleep(max(0.0, float(sys.argv[2]) - time.time()))
print(json.dumps([read_code.built(sys.argv[1]).function(words.ctypes.data) for _ in range(3)]))
"""


@pytest.mark.slow
def test_many_processes_on_an_empty_folder(folder):
    """Two sources, four processes each."""
    together = time.time() + 2
    processes = [start(MANY, SOURCE.format(k % 2), together, folder=folder) for k in range(8)]
    answers = [answer(process) for process in processes]
    assert answers == [[42] * 3, [43] * 3] * 4
    assert [path.suffix for path in folder.iterdir()] == [".graph"] * 2
    assert [run(0), run(1)] == [0, 0]


# What else helpers load.


def test_blas_is_found_without_its_package_and_the_package_still_works(tmp_path):
    program = """
import json
import sys
import nbta
from nbta.compiler import build
from nbta.kernels import matrices

found = build.address("blas_float64")
alone = "scipy.linalg" not in sys.modules and "scipy.linalg.cython_blas" not in sys.modules
import scipy.linalg.cython_blas
import scipy.linalg
usual = matrices.blas_address("float64")
solved = scipy.linalg.solve([[2.0]], [1.0]).tolist()
attribute = scipy.linalg.cython_blas.__name__
print(json.dumps([alone, found == usual, solved, attribute]))
"""
    expected = [True, True, [0.5], "scipy.linalg.cython_blas"]
    assert answer(start(program, folder=tmp_path)) == expected


def test_blas_is_found_the_usual_way_where_its_file_is_not(monkeypatch):
    monkeypatch.delitem(sys.modules, "scipy.linalg.cython_blas", raising=False)
    monkeypatch.setattr(build, "PathFinder", None)
    assert not build._load("scipy.linalg.cython_blas")
    assert build.address.__wrapped__("blas_float64") == matrices.blas_address("float64")
