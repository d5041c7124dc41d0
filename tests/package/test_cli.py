"""The command: exit codes, its one line on stderr, and nothing written on bad input."""

import datetime
import importlib.util
import runpy
import sys

import numba
import numpy as np
import pytest

import nbta
from nbta import cli
from nbta.demo import data
from nbta.runtime import compiled, numba_private, shipped

START = datetime.date(1990, 1, 6)


def rows(count, value="{:.1f}", step=7, form="%Y%m%d"):
    """Lines of a weekly record."""
    days = (START + datetime.timedelta(step * week) for week in range(count))
    return [f"{day.strftime(form)},{value.format(week)}" for week, day in enumerate(days)]


GOOD = rows(data.SHORTEST)
BAD = {
    "no values": (rows(data.SHORTEST, ""), "column 'x' has no values"),
    "too short": (GOOD[:-1], f"{data.SHORTEST - 1} weeks are too short"),
    "no rows": ([], "has no values"),
    "text": ([*GOOD[:5], "19900210,high", *GOOD[6:]], "row 7: 'high' is not a number"),
    "infinite": ([*GOOD[:5], "19900210,inf", *GOOD[6:]], "row 7: 'inf' is not a finite number"),
    "no date": (["yesterday,1.0", *GOOD], "row 2: 'yesterday' is not a date"),
    "impossible date": (["19900230,1.0", *GOOD], "row 2: '19900230' is not a date"),
    "out of order": ([GOOD[1], GOOD[0], *GOOD[2:]], "row 3: the date is not after"),
    "twice": ([GOOD[0], *GOOD], "row 3: the date is not after"),
    "daily": (rows(data.SHORTEST, step=1), "a second value for one week"),
    "monthly": (rows(data.SHORTEST, step=28), "more than half of the weeks have no value"),
}


def run_demo(tmp_path, *arguments):
    return cli.main(["demo", "--out", str(tmp_path / "out"), *arguments])


def assert_one_line(capsys, tmp_path, word):
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("nbta demo: ")
    assert err.count("\n") == 1
    assert word in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("case", BAD)
def test_bad_records(case, tmp_path, capsys):
    lines, word = BAD[case]
    file = tmp_path / "record.csv"
    file.write_text("\n".join(["date,x", *lines, ""]))
    assert run_demo(tmp_path, "--data", str(file)) == 2
    assert_one_line(capsys, tmp_path, word)


def test_no_such_file(tmp_path, capsys):
    assert run_demo(tmp_path, "--data", str(tmp_path / "none.csv")) == 2
    assert_one_line(capsys, tmp_path, "none.csv: there is no such file")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--column", "y"], "no column 'y'; its value columns are x, z"),
        ([], "say which with --column; its value columns are x, z"),
    ],
)
def test_no_such_column(arguments, word, tmp_path, capsys):
    file = tmp_path / "record.csv"
    file.write_text("\n".join(["date,x,z", *GOOD]))
    assert run_demo(tmp_path, "--data", str(file), *arguments) == 2
    assert_one_line(capsys, tmp_path, word)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00\x01\x80"])
def test_files_that_are_no_text(content, tmp_path, capsys):
    (tmp_path / "record.csv").write_bytes(content)
    assert run_demo(tmp_path, "--data", str(tmp_path / "record.csv")) == 2
    assert_one_line(capsys, tmp_path, "cannot be read as text" if content else "is empty")


def test_out_is_a_file(tmp_path, capsys):
    (tmp_path / "taken").write_text("mine")
    assert cli.main(["demo", "--out", str(tmp_path / "taken")]) == 2
    assert_one_line(capsys, tmp_path, "no folder that can be written")
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.parametrize(
    ("package", "arguments", "extra"),
    [
        ("tqdm", [], "demo"),
        ("matplotlib", [], "demo"),
        ("distributed", ["--workers", "2"], "distributed"),
    ],
)
def test_without_the_extras(package, arguments, extra, tmp_path, capsys, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else find(name)
    )
    assert run_demo(tmp_path, *arguments) == 2
    assert_one_line(capsys, tmp_path, f'needs {package}: pip install "nbta[{extra}]"')


def test_interrupted(tmp_path, capsys, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("nbta.demo.read_record", interrupt)
    assert run_demo(tmp_path) == 130
    assert capsys.readouterr().err == "nbta: interrupted\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["cache", "clear"],
        ["cache", "--dir", "--clear"],
        ["demo", "--epochs", "0"],
        ["demo", "--workers", "0"],
    ],
)
def test_usage_errors(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    assert "usage: nbta" in capsys.readouterr().err


def test_info(capsys):
    assert cli.main(["info"]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["nbta"] == nbta.__version__
    assert lines["numpy"] == np.__version__
    assert {"numba", "llvmlite", "scipy", "Python", "threads", "cache", "kernels"} <= lines.keys()


@pytest.mark.parametrize(
    ("wanted", "installed", "told"),
    [
        ("default", {"omp", "workqueue"}, "omp"),
        ("default", {"workqueue"}, "workqueue"),
        ("omp", {"omp"}, "omp"),
        ("threadsafe", {"omp", "workqueue"}, "omp"),
        ("safe", {"omp", "workqueue"}, "safe, which is not installed"),
    ],
)
def test_the_threading_layer_that_would_start(wanted, installed, told, monkeypatch):
    monkeypatch.setattr(numba.config, "THREADING_LAYER", wanted)
    monkeypatch.setattr(numba.config, "THREADING_LAYER_PRIORITY", ["tbb", "omp", "workqueue"])
    monkeypatch.setattr(numba_private, "layer_is_installed", installed.__contains__)
    assert cli._next_threading_layer() == told


@pytest.fixture
def caches(tmp_path, monkeypatch):
    """Folders of compiled graphs and of Numba's files, with others' files in them."""
    graphs, kernels = tmp_path / "graphs", tmp_path / "kernels"
    name = "0123456789abcdef" * 4
    for folder, names in [
        (graphs, [f"{name}.graph", f"{name}.a1b2.tmp", "mine.graph", f"{name}.txt"]),
        (kernels, ["kernel.nbi", "kernel.1.nbc", "kernel.pyc"]),
    ]:
        folder.mkdir()
        for file in names:
            (folder / file).write_text("x" * 2**20)
    monkeypatch.setenv("NBTA_CACHE_DIR", str(graphs))
    monkeypatch.setattr(compiled, "cache_folder", lambda *args: kernels)
    monkeypatch.setattr(cli, "_cache_folders", lambda: [kernels])
    return graphs, kernels


@pytest.mark.parametrize("command", ["info", "cache"])
def test_caches_are_shown(command, caches, capsys):
    assert cli.main([command]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3:] == [
        f"kernels   {shipped.summary()}",
        f"cache     {caches[0]} (2 entries, 2.0 MiB)",
        f"Numba's   {caches[1]} (2 files, 2.0 MiB)",
    ]


def test_cache_clear_removes_compiled_code_only(caches, capsys):
    assert cli.main(["cache", "--clear"]) == 0
    assert capsys.readouterr().out == "removed 4 files\n"
    left = [sorted(file.name.split(".")[-1] for file in folder.iterdir()) for folder in caches]
    assert left == [["graph", "txt"], ["pyc"]]
    assert (caches[0] / "mine.graph").exists()
    assert cli.main(["cache"]) == 0
    assert "(no entries)" in capsys.readouterr().out


def test_cache_clear_says_what_it_cannot_remove(caches, capsys, monkeypatch):
    def refuse(self, missing_ok):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.unlink", refuse)
    assert cli.main(["cache", "--clear"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("nbta cache: [Errno 13] Permission denied: ")
    assert err.count("\n") == 1


def test_cache_dir(caches, capsys):
    assert cli.main(["cache", "--dir"]) == 0
    assert capsys.readouterr().out == f"{caches[0]}\n"


def test_cache_dir_without_a_home(capsys, monkeypatch):
    monkeypatch.setattr("nbta.runtime.machine_code.folder", lambda: None)
    assert cli.main(["cache", "--dir"]) == 2
    assert capsys.readouterr().err == (
        "nbta cache: there is no home folder; set NBTA_CACHE_DIR to a folder\n"
    )
    assert cli.main(["info"]) == 0
    assert "cache     no folder (no entries)" in capsys.readouterr().out


def test_cache_folders_are_where_numba_writes():
    dispatcher = compiled.cacheable(compiled.cacheable)
    assert str(compiled.cache_folder()) == dispatcher._cache.cache_path
    assert compiled.cache_folder() in cli._cache_folders()


def test_no_folder_can_be_written(capsys, monkeypatch):
    def refuse(function):
        raise RuntimeError("cannot cache function")

    monkeypatch.setattr(compiled, "FunctionCache", refuse)
    assert compiled.cache_folder() is None
    assert cli.main(["info"]) == 0
    assert "no folder can be written" in capsys.readouterr().out


def test_as_a_module(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["nbta", "info"])
    with pytest.raises(SystemExit) as caught:
        runpy.run_module("nbta", run_name="__main__")
    assert caught.value.code == 0
    assert "numba" in capsys.readouterr().out
