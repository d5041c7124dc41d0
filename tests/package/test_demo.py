"""The demo: honest windows, a right gradient, a forecast that beats last year repeated."""

import datetime
import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import nbta
from nbta import cli
from nbta.demo import data, network

EXAMPLE = Path(__file__).parents[2] / "examples" / "handwritten_rnn.py"


@pytest.fixture(scope="module")
def record():
    return data.read_record()


@pytest.fixture(scope="module")
def handwritten():
    spec = importlib.util.spec_from_file_location(EXAMPLE.stem, EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Numba looks there for the module of what it cached
    spec.loader.exec_module(module)
    return module


def test_the_shipped_record(record):
    assert record.start == datetime.date(1958, 3, 29)
    assert np.isnan(record.values).sum() == 59
    assert str(record.dates()[-1]) == "2001-12-29"
    assert (record.values[0], record.values[-1]) == (316.1, 371.5)


def test_weeks_without_a_row_are_missing(tmp_path):
    lines = [
        f"{datetime.date(1990, 1, 6) + datetime.timedelta(7 * week)},{week},0"
        for week in range(data.SHORTEST + 1)
        if week not in (10, 11)
    ]
    file = tmp_path / "record.csv"
    file.write_text("\n".join(["date, a ,b", *lines]))
    read = data.read_record(file, "a")
    assert np.flatnonzero(np.isnan(read.values)).tolist() == [10, 11]
    assert read.values[12] == 12.0
    np.testing.assert_array_equal(data.filled(read.values)[9:13], [9, 10, 11, 12])


def test_gaps_at_the_end_carry_the_last_value():
    values = np.array([1.0, np.nan, 3.0, np.nan, np.nan])
    np.testing.assert_array_equal(data.filled(values), [1, 2, 3, 3, 3])


def test_inputs_do_not_look_ahead(record):
    origin = 1000
    changed = record._replace(values=record.values.copy())
    changed.values[origin:] += 1e6
    before = data.make_windows(record, [origin], 4.0)
    after = data.make_windows(changed, [origin], 4.0)
    np.testing.assert_array_equal(after.inputs, before.inputs)
    np.testing.assert_array_equal(after.levels, before.levels)
    np.testing.assert_array_equal(
        data.seasonal_naive(changed, origin), data.seasonal_naive(record, origin)
    )
    assert (after.targets != before.targets).any()


def test_training_never_sees_the_held_out_weeks(record):
    task = network.prepare(record)
    changed = record._replace(values=record.values.copy())
    changed.values[-data.HORIZON :] = -1e6
    again = network.prepare(changed)
    assert again.scale == task.scale
    for part, other in zip(task.windows, again.windows, strict=True):
        np.testing.assert_array_equal(part, other)


def test_missing_weeks_weigh_nothing(record):
    origin = int(np.flatnonzero(np.isnan(record.values[200:]))[0]) + 200
    windows = data.make_windows(record, [origin], 4.0)
    assert windows.weights[0, 0] == 0.0
    start = network.initial(windows.inputs.shape[-1], 4, seed=1)
    loss, gradient = network.loss_and_gradient(start, windows)
    windows.targets[0, 0] = 1e3
    again, same = network.loss_and_gradient(start, windows)
    assert again == loss
    np.testing.assert_array_equal(nbta.flatten(same), nbta.flatten(gradient))


@pytest.mark.parametrize("run", [network.outputs, nbta.function(network.outputs)])
def test_forward_follows_the_recurrence(record, run):
    windows = data.make_windows(record, [300, 700], 4.0)
    parameters = network.initial(windows.inputs.shape[-1], 5, seed=2)
    expected, state = np.empty((data.HORIZON, 2)), np.zeros((2, 5))
    for t in range(data.HORIZON):
        drive = windows.inputs[t] @ parameters.w_in + state @ parameters.w_rec + parameters.bias
        state = np.tanh(drive)
        expected[t] = state @ parameters.w_out + parameters.offset
    np.testing.assert_allclose(run(parameters, windows.inputs), expected, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_gradient_agrees_with_central_differences(record, seed):
    windows = data.make_windows(record, [300, 700, 1500], 4.0)
    start = network.initial(windows.inputs.shape[-1], 4, seed)
    assert network.check_gradient(start, windows) < 1e-6


def test_the_check_finds_a_wrong_gradient(record, monkeypatch):
    windows = data.make_windows(record, [300], 4.0)
    start = network.initial(windows.inputs.shape[-1], 3, seed=0)
    right = network.loss_and_gradient

    def wrong(*args):
        loss, gradient = right(*args)
        return loss, gradient._replace(bias=gradient.bias * 1.01)

    monkeypatch.setattr(network, "loss_and_gradient", wrong)
    assert network.check_gradient(start, windows) > 1e-4


@pytest.mark.slow
def test_the_handwritten_example_agrees(record, handwritten):
    windows = data.make_windows(record, [300, 700, 1500, 1900], data.scale_of(record, 2000))
    assert windows.weights.min() == 0.0  # a week without a value is among them
    start = network.initial(windows.inputs.shape[-1], network.HIDDEN, network.SEED)
    loss, gradient = network.loss_and_gradient(start, windows)
    by_hand = handwritten.loss_and_gradient(start, *windows[:3])
    np.testing.assert_allclose(loss, by_hand[0], rtol=1e-13)
    np.testing.assert_allclose(network.value(start, windows), loss, rtol=1e-15)
    for name, part, other in zip(start._fields, gradient, by_hand[1], strict=True):
        size = np.abs(other).max()
        np.testing.assert_allclose(part, other, rtol=1e-9, atol=1e-12 * size, err_msg=name)


@pytest.mark.slow
def test_the_handwritten_example_is_right(handwritten):
    problem = handwritten.made_up_problem(steps=12, hidden=3)
    _, gradient = handwritten.loss_and_gradient(*problem)
    numeric = handwritten.central_differences(*problem)
    for part, other in zip(gradient, numeric, strict=True):
        np.testing.assert_allclose(part, other, rtol=1e-6, atol=1e-8)


def test_one_graph_serves_all_windows(record):
    traced = nbta.value_and_grad(network.loss)
    for origins in ([300, 700], [300, 700, 1500]):
        windows = data.make_windows(record, origins, 4.0)
        traced(network.initial(windows.inputs.shape[-1], 4, seed=0), windows)
    assert traced.traces == 1


def test_scores_leave_missing_weeks_out(record):
    values = np.array(record.values)
    origin = len(values) - data.HORIZON
    values[origin] = np.nan
    forecast = np.nan_to_num(values[origin:], nan=1e9) + 0.5
    score = network.score(record._replace(values=values), origin, forecast)
    assert score.rmse == pytest.approx(0.5)
    assert score.mae == pytest.approx(0.5)


@pytest.mark.slow
def test_the_quick_demo(tmp_path, capsys):
    assert cli.main(["demo", "--quick", "--out", str(tmp_path / "a" / "b")]) == 0
    out, err = capsys.readouterr()
    assert "training" in err
    found = re.findall(r"RMSE +([\d.]+) +MAE +([\d.]+)", out)
    (rmse, mae), (naive_rmse, naive_mae) = (tuple(map(float, pair)) for pair in found)
    assert 0 < rmse < naive_rmse / 2
    assert 0 < mae < naive_mae / 2
    assert float(re.search(r"differences: ([\d.e-]+)", out)[1]) < 1e-6
    picture = tmp_path / "a" / "b" / "co2_forecast.png"
    assert out.splitlines()[-1] == f"picture: {picture}"
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_another_record(tmp_path, capsys):
    weeks = np.arange(data.SHORTEST)
    values = 10 + weeks / 50 + np.sin(2 * np.pi * weeks * 7 / 365.2425)
    days = np.datetime64("1990-01-06") + 7 * weeks
    lines = [f"{day},{value:.6f},0" for day, value in zip(days, values, strict=True)]
    (tmp_path / "tide.csv").write_text("\n".join(["date,sea level,other", *lines]))
    arguments = ["--data", str(tmp_path / "tide.csv"), "--column", "sea level", "--epochs", "3"]
    assert cli.main(["demo", *arguments, "--out", str(tmp_path)]) == 0
    assert "sea level: 572 weeks" in capsys.readouterr().out
    assert (tmp_path / "sea_level_forecast.png").exists()


@pytest.mark.slow
def test_results_are_the_same_bits_each_time(record):
    task = network.prepare(record)
    first, second = (network.train(task, 3, lambda loss: None) for _ in range(2))
    for part, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(part, other)


@pytest.mark.slow
def test_workers_give_the_same_forecast(tmp_path, capsys):
    """The same picture for any number of processes, and the same numbers as without them."""
    reports, pictures = [], []
    for options in ([], ["--workers", "1"], ["--workers", "2"]):
        folder = tmp_path / str(len(reports))
        assert cli.main(["demo", "--epochs", "3", "--out", str(folder), *options]) == 0
        reports.append(capsys.readouterr().out)
        pictures.append((folder / "co2_forecast.png").read_bytes())
    assert "worker processes that compute the gradient: 2\n" in reports[2]
    scores = [re.findall(r"RMSE +([\d.]+) +MAE +([\d.]+)", report) for report in reports]
    assert len(scores[0]) == 2
    assert scores[0] == scores[1] == scores[2]
    assert pictures[1] == pictures[2]


@pytest.mark.parametrize("count", [1, 3, 8, 20])
def test_groups_of_windows_are_all_windows(record, count):
    windows = data.make_windows(record, range(300, 300 + count), 4.0)
    groups = network._groups(windows)
    assert len(groups) == min(count, network.GROUPS)
    for whole, *parts in zip(windows, *groups, strict=True):
        np.testing.assert_array_equal(np.concatenate(parts, axis=min(whole.ndim - 1, 1)), whole)


@pytest.mark.slow
def test_the_loss_of_workers_is_the_loss(record):
    """Bitwise identical results for any number of them, and the same numbers as without."""
    task = network.prepare(record)
    found = []
    for count in (1, 2):
        with network.computing(count) as loss_and_gradient:
            found.append(nbta.flatten(loss_and_gradient(task.start, task.windows)))
    np.testing.assert_array_equal(*found)
    expected = nbta.flatten(network.loss_and_gradient(task.start, task.windows))
    np.testing.assert_allclose(found[0], expected, rtol=1e-9, atol=1e-12)
