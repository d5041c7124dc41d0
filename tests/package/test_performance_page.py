"""The benchmarks beside peers refuse wrong results, and the page says what the samples say."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

from asv_bench import bars, figures, page, scale
from asv_bench.peers import __main__ as command
from asv_bench.peers import cases, crew, plot, startup, table

PEERS, BARS = figures.read(figures.PEERS), figures.read(figures.BARS)
TEXT = page.PAGE.read_text(encoding="utf-8")


def case_row(title, **samples):
    """A case with these samples of each peer."""
    peers = [{"peer": name, "samples": found} for name, found in samples.items()]
    return {"title": title, "subject": "Subject", "peers": peers}


class Stub:
    """A worker's process whose results are its peer's options."""

    asked: tuple = ()

    def __init__(self, peer, **_):
        self.peer = peer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def make(self, case):
        return {"import_seconds": 1.0, "first_seconds": 2.0, "versions": {}}

    def results(self):
        return [np.array(self.peer.options["result"])]

    def ask(self, do, times):
        Stub.asked += ((self.peer.name, do),)
        return {"seconds": 1.0}


@pytest.fixture
def stubs(monkeypatch):
    """Peers without processes: nbta's result is [1, 2], the others' are given."""
    monkeypatch.setattr(Stub, "asked", ())
    for module in (crew, startup):
        monkeypatch.setattr(module, "Process", Stub)
    return lambda *results: [
        crew.Peer(name, "", {"result": result}, "")
        for name, result in zip(("nbta", "other"), ([1.0, 2.0], *results), strict=True)
    ]


WRONG = [[1.0, 2.1], [1.0, float("nan")], [1.0, 2.0, 3.0]]


def test_equal_results_are_timed(stubs):
    rows = crew.measure(cases.cases("writes")[0], stubs([1.0, 2.00001]), 2)
    assert [len(row["samples"]) for row in rows] == [2, 2]
    assert ("other", "run") in Stub.asked


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_results_are_refused_before_anything_is_timed(stubs, wrong):
    mine, other = crew.measure(cases.cases("writes")[0], stubs(wrong), 2)
    assert "samples" in mine
    assert "samples" not in other
    assert other["note"].startswith("results differ by ")
    assert {name for name, _ in Stub.asked} == {"nbta"}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_start_with_wrong_results_gives_no_figures(stubs, wrong):
    for mine, other in startup.measure(stubs(wrong), 2).values():
        assert len(mine["samples"]) == 2
        assert other["note"].startswith("results differ by ")
        assert "samples" not in other


@pytest.mark.slow
def test_a_worker_that_appends_once_too_often_is_refused():
    """With real processes."""
    case = cases.Case("", "appends", "appends", {"count": 3, "width": 1}, 0.0, ())
    name, module, options = next(peer for peer in command.PEERS if peer[0] == "doubling")
    python = command.sys.executable
    right = crew.Peer(name, module, options, python)
    wrong = crew.Peer("wrong", module, {**options, "count": 4}, python)
    mine, other = crew.measure(case, [right, wrong], 1)
    assert mine["difference"] == 0.0
    assert mine["versions"].keys() >= {"python", "numpy", "numba"}
    assert other["note"] == "results differ by inf"


def test_a_worker_that_takes_too_long_is_ended():
    peer = crew.Peer("nbta", "with_nbta", {}, command.sys.executable)
    with (
        crew.Process(peer, patience=0.01) as process,
        pytest.raises(crew.PeerError, match="took longer than 0 s"),
    ):
        process.make(cases.cases("writes")[0])


def test_rounds_end_when_the_time_is_over(stubs):
    rows = crew.measure(cases.cases("writes")[0], stubs([1.0, 2.0]), 9, until=-1.0)
    assert [len(row["samples"]) for row in rows] == [crew.FEW, crew.FEW]


def test_each_peer_of_a_case_has_a_way_to_do_its_work_and_a_mark_in_the_plot():
    modules = {name: module for name, module, _ in command.PEERS}
    assert plot.STYLES.keys() == modules.keys() - {"nbta"}
    for case in [*cases.cases(), startup.CASE]:
        for peer in ("nbta", *case.peers):
            tree = ast.parse(Path(crew.__file__).with_name(f"{modules[peer]}.py").read_text())
            assert case.work in {getattr(node, "name", "") for node in tree.body}, (case, peer)


def test_titles_differ():
    titles = [*(case.title for case in cases.cases()), *startup.TITLES.values()]
    assert len(set(titles)) == len(titles)


def test_a_case_is_chosen_by_subject_and_title():
    assert {case.subject for case in cases.cases("no loop")} == {"No loop"}
    assert [case.title for case in cases.cases("nets: gru net 200x16")] == ["gru net 200x16x32x32"]


def test_new_rows_take_the_place_of_old_ones(tmp_path):
    path = tmp_path / "rows.json"
    figures.keep(path, [{"title": "b", "n": 1}, {"title": "gone"}, {"title": "a", "n": 1}])
    figures.keep(path, [{"title": "b", "n": 2}], ["a", "b"])
    assert figures.read(path) == [{"title": "a", "n": 1}, {"title": "b", "n": 2}]


def test_a_ratio_is_of_samples_of_one_round():
    row = case_row("case", nbta=[1.0, 2.0, 4.0], jax=[2.0, 2.0, 2.0], torch=[10.0])
    assert table.compared(row) == (2.0, {"jax": (1.0, 0.5, 2.0), "torch": (10.0, 10.0, 10.0)})


def test_a_peer_that_is_ahead_is_bold_and_one_that_failed_says_why():
    row = case_row("case", nbta=[1.0, 1.0], jax=[0.5, 0.8], torch=[])
    row["peers"][2] = {"peer": "torch", "note": "one\nNo module named 'torch'"}
    assert table.table([row]).splitlines()[-1] == (
        "| case | 1.0 s | **0.65 (0.50 to 0.80)** | No module named 'torch' |"
    )


@pytest.mark.slow
def test_the_plot_of_the_same_samples_is_the_same_file(tmp_path):
    rows = [case_row("case", nbta=[1.0, 1.0], jax=[0.5, 0.8], torch=[30.0, 40.0])]
    paths = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for path in paths:
        plot.draw(rows, path)
    first, second = (path.read_text() for path in paths)
    assert first == second
    assert plot.digest(rows) in first


def test_generated_parts_of_the_page_are_what_the_samples_give():
    assert page.filled(TEXT, page.sections()) == TEXT


def test_the_plot_was_made_from_these_samples():
    assert plot.digest(PEERS) in figures.PLOT.read_text()


def test_the_chart_of_the_readme_was_made_from_these_samples():
    rows = list(plot.chart(PEERS))
    assert plot.digest(rows) in figures.CHART.read_text()
    names = {peer["peer"] for row in rows for peer in row["peers"]} - {"nbta"}
    assert names == set(plot.LIBRARIES)
    assert len(rows) <= 8


def test_a_page_without_markers_is_refused():
    with pytest.raises(ValueError, match="needs one <!-- bars: begin -->"):
        page.filled("text", {"bars": "table"})


def entries(title):
    """A row of a table on the page."""
    found = re.findall(rf"^\| {re.escape(title)} \| (.*) \|$", TEXT, re.MULTILINE)
    assert len(found) == 1, title
    return found[0].split(" | ")


def close(told, exact):
    """Whether a number on the page is the exact one, rounded."""
    return abs(float(told) - exact) <= max(0.5 if exact >= 9.9 else 0.0, 0.051 * exact)


@pytest.mark.parametrize("row", PEERS, ids=lambda row: row["title"])
def test_ratios_beside_peers_follow_from_samples(row):
    base, *others = (peer for peer in row["peers"] if "samples" in peer)
    told = [re.findall(r"[\d.]+", entry) for entry in entries(row["title"])[1:] if "(" in entry]
    assert len(told) == len(others)
    for numbers, other in zip(told, others, strict=True):
        count = min(len(base["samples"]), len(other["samples"]))
        ratios = np.divide(other["samples"][:count], base["samples"][:count])
        exact = (np.median(ratios), ratios.min(), ratios.max())
        assert all(map(close, numbers, exact)), (other["peer"], numbers, exact)


@pytest.mark.parametrize("row", BARS, ids=lambda row: row["title"])
def test_ratios_to_the_bars_follow_from_samples(row):
    mine, other = np.transpose(row["samples"])
    _, _, ratio, between, bar, met = entries(row["title"])
    exact = (np.median(mine / other), *np.sort(mine / other)[[0, -1]])
    assert all(map(close, (ratio, *between.split(" to ")), exact))
    if not bar:
        assert met == ""
    else:
        limit, unit = bar.split()
        reached = {
            "ratio": exact[0],
            "s": np.median(mine),
            "ns": np.median(mine) / row["count"] * 1e9,
        }
        assert met == ("yes" if reached[unit] <= float(limit) else "no")
        assert bars.met(row) == (met == "yes")


def test_a_scale_job_checks_its_result_and_says_what_it_took():
    job = scale.JOBS[0]
    run = scale.measure(job, 1000)
    assert (run["size"], run["cpu"] > 0, run["peak"] > 1 << 20) == (1000, True, True)
    lines = page.scale([{"title": job.title, "runs": [run]}]).splitlines()
    assert lines[2].startswith(f"| {job.title} | 1,000 | ")
