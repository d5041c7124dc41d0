"""Kernels that come with the package: what is taken, and what becomes of all that does not fit."""

import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import llvmlite.binding as llvm
import pytest
from numba import types
from numba.core import event

import nbta
from nbta import cli
from nbta.kernels import ahead, matrices
from nbta.runtime import object_files, python_calls, shipped
from nbta.runtime.machine_code import Routine

ROOT = Path(nbta.__file__).parents[1]
HIGH, LOW = "high", "low"


def tripled(x):
    return 3 * x


ROUTINE = Routine(tripled, types.int64(types.int64), {})


class Counting(event.Listener):
    def __init__(self):
        self.count = 0

    def on_start(self, happened):
        self.count += 1

    def on_end(self, happened):
        pass


def used():
    """Load the routine as a new process would; how many functions were compiled for that."""
    shipped.read_manifest.cache_clear()
    with event.install_listener("numba:compile", Counting()) as counting:
        found = ROUTINE.load()
    assert found.function(14) == 42
    return counting.count


@pytest.fixture(scope="module")
def code():
    """Of the routine."""
    return object_files.taken_from(ROUTINE.compiled())


@pytest.fixture
def folder(code, tmp_path, monkeypatch):
    """An installation with the routine for two levels, and empty caches."""
    monkeypatch.setattr(shipped, "levels", lambda: {HIGH: ("sse4.2", "wide"), LOW: ("sse4.2",)})
    monkeypatch.setattr(shipped, "processor_features", lambda: {"sse4.2", "wide"})
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "objects")
    monkeypatch.setenv("NBTA_CACHE_DIR", str(tmp_path / "cache"))
    digests = {}
    for level in (HIGH, LOW):
        path = file(level)
        path.parent.mkdir(parents=True)
        path.write_bytes(object_files.encoded("tripled", code))
        digests[level] = {"tripled": hashlib.sha256(path.read_bytes()).hexdigest()}
    write_manifest({"made_for": shipped.made_for(), "levels": digests})
    yield shipped.FOLDER
    monkeypatch.undo()
    shipped.read_manifest.cache_clear()


def file(level):
    return shipped.FOLDER / level / "tripled.code"


def write_manifest(facts):
    (shipped.FOLDER / shipped.MANIFEST).write_text(json.dumps(facts))


def changed(**made_for):
    facts = json.loads((shipped.FOLDER / shipped.MANIFEST).read_text())
    facts["made_for"].update(made_for)
    write_manifest(facts)


def test_nothing_is_compiled_and_nothing_written_where_all_fits(folder, tmp_path):
    assert used() == 0
    assert shipped.summary() == "shipped, for high"
    assert not (tmp_path / "cache").exists()


DAMAGES = {
    "gone": lambda path: path.unlink(),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "empty": lambda path: path.write_bytes(b""),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "a bit": lambda path: path.write_bytes(flipped(path.read_bytes())),
    "another file": lambda path: path.write_bytes(b"\x7fELF" * 999),
}


def flipped(data):
    return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_not_taken(damage, folder, tmp_path):
    DAMAGES[damage](file(HIGH))
    assert used() == 0  # the lower level's
    assert shipped.summary() == "shipped, for high; damaged, and not used: tripled"
    DAMAGES[damage](file(LOW))
    assert used() == 1
    assert list((tmp_path / "cache").glob("*.graph"))
    assert used() == 0  # as kept by the last


def test_an_altered_file_whose_own_checksum_is_right_is_not_taken(folder, code):
    """The manifest knows another one."""
    other = object_files.Code(code.wrapper, code.pointer, "other", code.needed, code.binary)
    for level in (HIGH, LOW):
        file(level).write_bytes(object_files.encoded("tripled", other))
    assert used() == 1


def test_what_needs_an_unknown_symbol_is_not_loaded(folder, code):
    """LLVM would end the process."""
    needed = [*code.needed, "no_such_symbol"]
    lacking = object_files.Code(code.wrapper, code.pointer, code.environment, needed, code.binary)
    data = object_files.encoded("tripled", lacking)
    digests = {level: {"tripled": hashlib.sha256(data).hexdigest()} for level in (HIGH, LOW)}
    for level in (HIGH, LOW):
        file(level).write_bytes(data)
    write_manifest({"made_for": shipped.made_for(), "levels": digests})
    assert used() == 1


REASONS = {
    "numba": "they were built for Numba 0.1, this is ",
    "python": "they were built for Python 0.1, this is ",
    "numpy": "they were built for NumPy 0.1, this is ",
    "settings": "Numba's settings are ",
    "sources": "they were built from other sources",
}


@pytest.mark.parametrize("what", REASONS)
def test_kernels_for_something_else_are_not_taken(what, folder, capsys):
    changed(**{what: "0.1"})
    assert used() == 1
    assert shipped.reason().startswith(REASONS[what])
    assert cli.main(["info"]) == 0
    assert f"kernels   compiled here: {REASONS[what]}" in capsys.readouterr().out


def test_all_that_must_fit_is_tested():
    assert set(REASONS) == set(shipped.made_for()) == set(shipped._REASONS)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"made_for": {}}', '{"made_for": 1, "levels": 2}', "\0" * 99]
)
def test_a_manifest_that_cannot_be_read(text, folder):
    (folder / shipped.MANIFEST).write_text(text)
    assert used() == 1
    assert shipped.reason() == "their manifest cannot be read"


def test_a_manifest_whose_levels_are_none(folder):
    for levels in ({}, {HIGH: {}}, {"unknown": {"tripled": "0"}}):
        write_manifest({"made_for": shipped.made_for(), "levels": levels})
        assert used() == (1 if levels == {} else 0)  # then as kept
        assert shipped.reason() == "there are none for this processor"
    write_manifest({"made_for": shipped.made_for(), "levels": {HIGH: 1}})
    used()
    assert shipped.reason() == "their manifest cannot be read"


def test_nothing_came(folder):
    shutil.rmtree(folder)
    assert used() == 1
    assert shipped.summary() == "compiled here: none came with this installation"


def test_the_level_goes_by_the_processor(folder, monkeypatch):
    monkeypatch.setattr(shipped, "processor_features", lambda: {"sse4.2"})
    file(HIGH).write_bytes(b"of no use here")
    assert used() == 0
    assert shipped.summary() == "shipped, for low"


def test_a_processor_below_the_lowest_level(folder, monkeypatch):
    monkeypatch.setattr(shipped, "processor_features", lambda: {"sse2"})
    assert used() == 1
    assert shipped.summary() == "compiled here: the processor has no sse4.2, which low needs"


def test_levels_hold_each_other():
    """What a level needs, the ones above need too; LLVM knows all of it by these names."""
    found = list(shipped.levels().values())
    assert all(set(low) < set(high) for high, low in itertools.pairwise(found))
    assert set(found[0]) <= set(llvm.get_host_cpu_features())


def test_dtypes_of_arrays_go_along():
    """Functions that make arrays for Python refer to dtypes, by name in our files."""
    code = object_files.taken_from(python_calls.ROUTINES[python_calls.take_bytes].compiled())
    assert code.constants == ["uint8"]
    again = object_files.decoded("x", object_files.encoded("x", code))
    assert again == code


def test_code_that_depends_on_the_processor_says_so(monkeypatch):
    monkeypatch.setattr(matrices.Machine, "__init__", ahead._refused)
    with pytest.raises(Exception, match="depends on the processor"):
        ahead._lowered(matrices.routines(8, matrices._gemm(types.float32))["gemm_float32"])


def test_names_of_routines_differ():
    names = [routine.name for routine in ahead.routines()]
    assert len(set(names)) == len(names) > 30


def test_a_level_that_there_is_not(tmp_path):
    with pytest.raises(RuntimeError, match="'x86-64-v9'; here there are "):
        ahead.make(tmp_path / "objects", "x86-64-v9")
    assert not (tmp_path / "objects").exists()


SOME = """
import sys
from pathlib import Path
from nbta.runtime import python_calls
from nbta.kernels import ahead, matrices

calls = python_calls.ROUTINES
some = calls[python_calls.take_bytes], calls[python_calls.share_store]
for routine in (*some, matrices.FUNCTIONS["gemm_float32"]):
    ahead._make_file(Path(sys.argv[1]), *ahead._lowered(routine))
"""


@pytest.mark.slow
def test_the_same_sources_give_the_same_bytes(tmp_path, monkeypatch):
    """In other folders, and with another order of sets asked for.

    In such an order Numba would name the options of a product.
    """
    level = next(iter(shipped.levels()))
    processes, folders = [], [tmp_path / "one", tmp_path / "an other"]
    for seed, folder in enumerate(folders, 1):
        shutil.copytree(ROOT / "nbta", folder / "nbta", ignore=shutil.ignore_patterns("objects"))
        (folder / "made").mkdir()
        monkeypatch.setenv("PYTHONHASHSEED", str(seed))
        environment = ahead._environment(level, str(folder)) | {"PYTHONPATH": str(folder)}
        command = [sys.executable, "-c", SOME, str(folder / "made")]
        processes.append(subprocess.Popen(command, env=environment, cwd=folder))
    assert [process.wait(timeout=300) for process in processes] == [0, 0]
    one, other = [{p.name: p.read_bytes() for p in (f / "made").iterdir()} for f in folders]
    assert len(one) == 3
    assert one == other


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder into which a wheel with the lowest level was unpacked, as pip does."""
    pytest.importorskip("hatchling")
    place = tmp_path_factory.mktemp("wheel")
    level = list(shipped.levels())[-1]
    environment = {**os.environ, "NBTA_BUILD_KERNELS": level}
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "-w", place, ROOT], env=environment, check=True, timeout=600)
    (wheel,) = place.glob("*.whl")
    assert not wheel.name.endswith("-any.whl")
    zipfile.ZipFile(wheel).extractall(place / "site")
    return place / "site"


def start(site, folder, *options):
    """A process that uses all kernels; it can write nowhere but in a folder of its own."""
    left = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "NBTA_"))}
    environment = {**left, "HOME": str(folder / "none"), "PYTHONPATH": str(site)}
    command = [sys.executable, "-W", "error", "installed_wheel.py", *options]
    return subprocess.Popen(
        command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


@pytest.mark.slow
def test_an_installed_wheel_compiles_no_kernel(site, tmp_path):
    """In many processes at once, from files that nobody may write."""
    for path in site.rglob("*"):
        path.chmod(path.stat().st_mode & ~0o222)
    before = sorted(site.rglob("*"))
    shutil.copy(ROOT / "tests" / "support" / "installed_wheel.py", tmp_path)
    processes = [start(site, tmp_path, *options) for options in [(), *[("--eager",)] * 3]]
    outputs = [process.communicate(timeout=300) for process in processes]
    assert [err for _, err in outputs] == [""] * 4
    assert [process.returncode for process in processes] == [0] * 4
    level = list(shipped.levels())[-1]
    expected = [f"shipped, for {level}; sum {x}; compiled: none\n" for x in (40.0, *[36.0] * 3)]
    assert [out for out, _ in outputs] == expected
    assert [p for p in sorted(site.rglob("*")) if "__pycache__" not in p.parts] == [
        p for p in before if "__pycache__" not in p.parts
    ]
    manifest = json.loads((site / "nbta" / "objects" / "manifest.json").read_text())
    assert set(manifest["levels"][level]) == {routine.name for routine in ahead.routines()}
