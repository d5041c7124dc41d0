"""The tool for GradBench: conversations over a pipe, values, gradients, and errors."""

import json
import subprocess
import sys
from functools import cache
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats
from scipy.spatial.transform import Rotation

from asv_bench.gradbench import EVALS, STYLES, find, functions
from asv_bench.gradbench.protocol import respond

ROOT = Path(__file__).parents[2]
RUNS = {"min_runs": 2, "min_seconds": 0.0}


def small(name):
    """An input for tests."""
    data = find(name).generate(*find(name).small)
    return data | RUNS if isinstance(data, dict) else data


def asked(name):
    """All messages of a session."""
    names = list(functions(name, STYLES[0]))
    rest = [
        {"kind": "evaluate", "module": name, "function": function, "input": small(name)}
        for function in names
    ]
    known = {"kind": "analysis", "of": 2, "valid": True}
    messages = [{"kind": "start", "eval": name}, {"kind": "define", "module": name}, *rest, known]
    return [{"id": k, **message} for k, message in enumerate(messages)]


def converse(messages, *options):
    """Answers over a pipe."""
    lines = "".join(json.dumps(message) + "\n" for message in messages)
    command = [sys.executable, "-m", "asv_bench.gradbench", *options]
    done = subprocess.run(
        command, input=lines, capture_output=True, text=True, cwd=ROOT, check=True, timeout=300
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


# What the evals are to give, from SciPy, closed forms or differences.


def differences(function, x, h=1e-5):
    """Central differences of numbers or arrays by each item of ``x``, along a new last axis."""
    x, found = np.array(x, np.float64), []
    for index in np.ndindex(x.shape):
        moved = np.zeros_like(x)
        moved[index] = h
        found.append((function(x + moved) - function(x - moved)) / (2.0 * h))
    return np.stack(found, axis=-1)


def hello(x):
    return {"square": x * x, "double": 2.0 * x}


def llsq(data):
    t = np.linspace(-1.0, 1.0, data["n"])
    off = np.sign(t) - np.polynomial.polynomial.polyval(t, data["x"])
    slopes = [-np.sum(off * t**j) for j in range(len(data["x"]))]
    return {"primal": 0.5 * np.sum(off**2), "gradient": slopes}


def lse(data):
    return {"primal": special.logsumexp(data["x"]), "gradient": special.softmax(data["x"])}


def posterior(data, alpha, mu, q, l):  # noqa: E741
    """By distributions of SciPy's."""
    d, total, likelihoods = data["d"], 0.0, []
    for weight, mean, logs, below in zip(special.softmax(alpha), mu, q, l, strict=True):
        factor = np.diag(np.exp(logs))
        factor[np.triu_indices(d, 1)[::-1]] = below
        precision = factor.T @ factor
        normal = stats.multivariate_normal(mean, np.linalg.inv(precision))
        likelihoods.append(weight * normal.pdf(data["x"]))
        scale = np.eye(d) / data["gamma"] ** 2
        total += stats.wishart(d + data["m"] + 1, scale).logpdf(precision)
    return np.sum(np.log(np.sum(likelihoods, axis=0))) + total


def gmm(data):
    names = ("alpha", "mu", "q", "l")
    given = {name: np.array(data[name]) for name in names}

    def by(name):
        slopes = differences(lambda x: posterior(data, **given | {name: x}), given[name])
        return slopes.reshape(given[name].shape)

    return {"objective": posterior(data, **given), "jacobian": {name: by(name) for name in names}}


def ode(data):
    """The method is exact for the first four, which are powers of the time, times products."""

    def last(x):
        return np.prod(x) * 2.0 ** len(x) / special.factorial(len(x))

    x = np.array(data["x"])
    return {
        "primal": [last(x[: k + 1]) for k in range(len(x))],
        "gradient": [last(x) / each for each in x],
    }


def sequence_loss(data, main, extra):
    """With a matrix of all gates of a layer."""
    layers, width = len(main) // 2, extra.shape[1]
    state, total = np.array(data["state"]).reshape(layers, 2, width), 0.0
    hidden, cell, x = state[:, 0], state[:, 1], np.array(data["sequence"], np.float64)
    weights, biases = main[0::2].reshape(layers, 4, width), main[1::2].reshape(layers, 4, width)
    for now, following in pairwise(x):
        value = now * extra[0]
        for k in range(layers):
            given = np.stack((value, hidden[k], value, hidden[k]))
            gates = weights[k] * given + biases[k]
            forget, let, out = special.expit(gates[:3])
            cell[k] = cell[k] * forget + let * np.tanh(gates[3])
            value = hidden[k] = out * np.tanh(cell[k])
        guess = value * extra[1] + extra[2]
        total += following @ (guess - np.log(2.0 + np.sum(np.exp(guess))))
    return -total / (len(x) - 1) / width


def lstm(data):
    main, extra = np.array(data["main_params"]), np.array(data["extra_params"])
    slopes = (
        differences(lambda x: sequence_loss(data, x, extra), main),
        differences(lambda x: sequence_loss(data, main, x), extra),
    )
    return {"objective": sequence_loss(data, main, extra), "jacobian": np.concatenate(slopes)}


def det(data):
    a = np.reshape(data["A"], (data["ell"],) * 2)
    value = np.linalg.det(a)
    return {"primal": value, "gradient": np.ravel(value * np.linalg.inv(a).T)}


def kmeans(data):
    points, centroids = np.array(data["points"]), np.array(data["centroids"])
    squares = np.sum((points[:, None] - centroids) ** 2, axis=2)
    nearest = np.argmin(squares, axis=1)
    means = [np.mean(points[nearest == j], axis=0) for j in range(len(centroids))]
    return {"cost": np.sum(np.min(squares, axis=1)), "dir": centroids - means}


def observed(data, numbers):
    """Errors of one observation of `ba` by a camera, a point and a weight."""
    camera, point, weight = numbers[:11], numbers[11:14], numbers[14]
    seen = Rotation.from_rotvec(camera[:3]).apply(point - camera[3:6])
    seen = seen[:2] / seen[2]
    square = seen @ seen
    seen = seen * (1.0 + camera[9] * square + camera[10] * square**2)
    return weight * (camera[6] * seen + camera[7:9] - data["feat"])


def ba(data):
    n, m, p, weight = data["n"], data["m"], data["p"], data["w"]
    numbers = np.array([*data["cam"], *data["x"], weight])
    slopes = differences(lambda x: observed(data, x), numbers)
    columns = [*range(11), *range(11 * n, 11 * n + 3), 11 * n + 3 * m]
    error = {"elements": observed(data, numbers), "repeated": p}
    rows = [*range(0, 30 * p, 15), *range(30 * p, 31 * p + 1)]
    return {
        "objective": {
            "reproj_error": error,
            "w_err": {"element": 1.0 - weight**2, "repeated": p},
        },
        "jacobian": {
            "rows": [*rows[:30], 31 * p],
            "cols": [*columns * 2, 11 * n + 3 * m + p - 1],
            "vals": [*slopes.ravel(), -2.0 * weight],
        },
    }


def hand(data, theta, us):
    """Errors of `ht` by a chain of SciPy's rotations."""
    model, correspondences = data["data"]["model"], data["data"]["correspondences"]
    absolutes, base = [], np.array(model["base_positions"])
    places = np.zeros((len(base), 4))
    for bone, parent in enumerate(model["parents"]):
        finger, joint = divmod(bone - 2, 4)
        bend, side = 0.0, 0.0
        if bone >= 2 and joint < 3:
            first = 6 + 4 * finger
            bend = theta[first + (0, 2, 3)[joint]]
            side = theta[first + 1] if joint == 0 else 0.0
        turn = np.eye(4)
        turn[:3, :3] = Rotation.from_euler("xz", [bend, side]).as_matrix()
        posed = np.array(model["base_relatives"][bone]) @ turn
        absolutes.append(posed if parent < 0 else absolutes[parent] @ posed)
        moved = base @ (absolutes[bone] @ model["inverse_base_absolutes"][bone]).T
        places += np.array(model["weights"])[:, bone, None] * moved
    vertices = Rotation.from_rotvec(theta[:3]).apply(places[:, :3]) + theta[3:6]
    corners = vertices[np.array(model["triangles"])[correspondences]]
    shares = np.c_[us, 1.0 - np.sum(us, axis=1)]
    return np.ravel(data["data"]["points"] - np.sum(shares[:, :, None] * corners, axis=1))


def ht(data):
    theta, us = np.array(data["theta"]), np.array(data["us"])
    by_us = differences(lambda step: hand(data, theta, us + step), np.zeros(2))
    by_theta = differences(lambda theta: hand(data, theta, us), theta)
    return {"objective": hand(data, theta, us), "jacobian": np.c_[by_us, by_theta]}


#: As GradBench gives them for its starting points.
PARTICLE, SADDLE = 0.2071918746486116, [8.246324826140356e-06] * 4


def particle(data):
    return dict.fromkeys(("ff", "fr", "rf", "rr"), PARTICLE)


def saddle(data):
    return dict.fromkeys(("ff", "fr", "rf", "rr"), SADDLE)


EXPECTED = {f.__name__: f for f in (
    hello, llsq, lse, gmm, ode, lstm, det, kmeans, ba, ht, particle, saddle
)}  # fmt: skip


def hold(found, expected):
    """An output, of lists and dicts, to what is expected."""
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for name, each in expected.items():
            hold(found[name], each)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_each_eval_is_tested():
    assert tuple(EXPECTED) == EVALS


def test_a_camera_that_does_not_turn():
    still = small("ba") | {"cam": [0.0, 0.0, 0.0, *small("ba")["cam"][3:]]}
    message = {"id": 1, "kind": "evaluate", "module": "ba", "function": "objective", "input": still}
    for style in STYLES:
        hold(respond(message, style)["output"], ba(still)["objective"])


@pytest.mark.slow
def test_a_hand_without_triangles():
    flat = find("ht").generate(4, 6, False) | RUNS
    whole = flat | {"us": [[1.0, 0.0]] * 4}
    triangles = [[place] * 3 for place in range(len(flat["data"]["model"]["base_positions"]))]
    whole = whole | {
        "data": flat["data"] | {"model": flat["data"]["model"] | {"triangles": triangles}}
    }
    for style in STYLES:
        message = {"id": 1, "kind": "evaluate", "module": "ht", "input": flat}
        answer = respond(message | {"function": "objective"}, style)
        hold(answer["output"], ht(whole)["objective"])
        answer = respond(message | {"function": "jacobian"}, style)
        hold(answer["output"], ht(whole)["jacobian"][:, 2:])


#: Derivatives of derivatives and 28 directions, which take long to compile.
LONG = ("ht", "particle", "saddle")
SHORT = tuple(name for name in EVALS if name not in LONG)
GROUPS = [
    *((style, name, SHORT) for style in STYLES for name in SHORT),
    ("numpy", "ht", ("ht",)),
    *(pytest.param(style, name, LONG, marks=pytest.mark.slow) for style in STYLES for name in LONG),
]


@cache
def session(style, names):
    """Evals over one pipe: for each name its messages and their answers."""
    messages = {name: asked(name) for name in names}
    answers = iter(converse(chain.from_iterable(messages.values()), "--style", style))
    found = {name: [(each, next(answers)) for each in given] for name, given in messages.items()}
    assert next(answers, None) is None
    return found


@pytest.mark.parametrize(("style", "name", "names"), GROUPS)
def test_conversation(style, name, names):
    expected, answered = EXPECTED[name](small(name)), session(style, names)[name]
    for message, answer in answered:
        assert answer["id"] == message["id"]
        match message["kind"]:
            case "start":
                assert answer == {"id": 0, "tool": "nbta", "config": {"style": style}}
            case "define":
                assert answer["success"]
            case "analysis":
                assert answer == {"id": message["id"]}
            case "evaluate":
                assert answer["success"], answer["error"]
                names = [timing["name"] for timing in answer["timings"]]
                runs = 2 if isinstance(message["input"], dict) else 1
                assert names == ["compile", *["evaluate"] * runs]
                assert all(type(timing["nanoseconds"]) is int for timing in answer["timings"])
                hold(answer["output"], expected[message["function"]])
    assert set(expected) == {each.get("function") for each, _ in answered} - {None}


def test_errors_and_messages_to_come():
    messages = [
        {"id": 0, "kind": "start"},
        {"id": 1, "kind": "define", "module": "nothing"},
        {"id": 2, "kind": "define", "module": "lse"},
        {"id": 3, "kind": "evaluate", "module": "lse", "function": "other", "input": {"x": []}},
        {"id": 4, "kind": "evaluate", "module": "lse", "function": "primal", "input": {}},
        {"id": 5, "kind": "evaluate", "module": "nothing", "function": "f", "input": 1},
        {"id": 6, "kind": "to come"},
        {"id": 7, "kind": "evaluate", "module": "hello", "function": "double", "input": 3.0},
    ]
    answers = converse(messages)
    assert [answer["id"] for answer in answers] == list(range(8))
    assert [answer.get("success") for answer in answers] == [
        None, False, True, False, False, False, None, True
    ]  # fmt: skip
    assert answers[1]["error"] == f"there is no module 'nothing'; nbta has {', '.join(EVALS)}"
    assert answers[3]["error"] == "module 'lse' has no function 'other'; it has primal, gradient"
    assert "KeyError: 'x'" in answers[4]["error"]
    assert answers[6] == {"id": 6}
    assert answers[7]["output"] == 6.0


def test_least_seconds():
    message = {"id": 1, "kind": "evaluate", "module": "lse", "function": "primal"}
    answer = respond(message | {"input": {"x": [1.0], "min_runs": 1, "min_seconds": 0.01}}, "loops")
    times = [each["nanoseconds"] for each in answer["timings"] if each["name"] == "evaluate"]
    assert sum(times) >= 1e7 > sum(times[:-1])
