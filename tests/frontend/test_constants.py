"""Variables that are one of several texts or members of an enumeration, as only the run knows."""

import contextlib
import enum
import io

import numpy as np
import pytest

import nbta
from nbta.testing import check_grads

X = np.array([0.3, 1.4, -0.2, 2.1, -1.3, 0.8, -2.2, 1.1, 0.4, -0.6, 1.9, -1.7])


class Phase(enum.Enum):
    COLD = 0.5
    WARM = 2.0


class Valve:
    """An object whose attribute is a text."""

    def __init__(self):
        self.state, self.total = "shut", 0.0

    def feed(self, v):
        if self.state == "shut" and v > 1.0:
            self.state = "open"
        elif self.state == "open" and v < 0.0:
            self.state = "shut"
        self.total += v * v if self.state == "open" else 0.1 * v


def by_equality(x):
    state, total = "idle", 0.0
    for v in x:
        if state == "idle":
            total += v
            if v > 1.0:
                state = "run"
        elif state == "run":
            total += v * v
            if v < -1.0:
                state = "idle"
    return 2.0 * total if state != "run" else total


def by_none(x):
    held, total, entry = None, 0.0, 0.0
    for v in x:
        if held is None:
            if abs(v) > 1.0:
                held, entry = ("long" if v > 0.0 else "short"), v
        elif held == "long" and v < entry:
            total, held = total + v * entry, None
        elif held == "short" and v > entry:
            total, held = total - v * entry, None
    return total if held is None else 1.5 * total


def by_attribute(x):
    valve = Valve()
    for v in x:
        valve.feed(v)
    return valve.total


def by_enumeration(x):
    phase, total = Phase.COLD, 0.0
    for v in x:
        total += phase.value * v * v
        if phase is Phase.COLD and v > 1.0:
            phase = Phase.WARM
        elif phase in (Phase.WARM,) and v < 0.0:
            phase = Phase.COLD
        total += v if phase.name == "WARM" else 0.0
    return total


def by_key(x):
    rates, state, total = {"a": 1.0, "b": 2.0, "c": x[0]}, "a", 0.0
    for v in x:
        for w in x[:4]:
            if v * w > 0.5:
                state = "b" if state == "a" else "c"
            elif v * w < -0.5:
                state = "a"
            total += rates[state] * v + rates.get(state, 0.0) * w
    return total


def by_condition(x):
    state, level, rounds = "start", x[0], 0
    while state != "done":
        level, rounds = 0.7 * level, rounds + 1
        if level < 0.01:
            state = "done"
    return level * rounds


def by_first_value(x):
    total = 0.0
    for v in x:
        if v > 1.0:
            mode = "up"
        elif v < -1.0:
            mode = "down"
        else:
            mode = "flat"
        match mode:
            case "up":
                total += v
            case "down":
                total += v * v
            case _:
                total -= v
    return total


def by_methods(x):
    before, total = "", 0.0
    for v in x:
        sign = "Buy" if v > 1.0 else "Sell" if v < -1.0 else ""
        if sign and sign != before:
            total += v * v
        before = sign or before
        if before.startswith("B") and "ell" not in before and before < "C":
            total += len(before.upper()) * v
        total += v if before.lower() in ("sell", "none") and isinstance(before, str) else 0.0
    return total


def by_assigned_key(x):
    sums, state = {"calm": x[0], "wild": 0.0, "other": 1.0}, "calm"
    for v in x:
        if abs(v) > 1.0:
            state = "wild" if state == "calm" else "calm"
        sums[state] += v * v
        sums[state] = sums[state] * (1.0 if v > 0.0 else 0.9)
    return sums["calm"] * sums["wild"] + sums["other"]


def by_index(x):
    names, total = ("low", "high", "low"), 0.0
    for k in range(len(x)):
        name = names[k % 3]
        total += x[k] * x[k] if name == "high" else x[k]
    return total


def by_parts(x):
    kind, total = "none", 0.0
    for v in x:
        if abs(v) > 1.0:
            kind = "up_wild" if v > 0.0 else "down_wild"
        whole = "is_" + kind + "!"
        total += v * v if kind[0] == "u" else v
        if kind[-4:] == "wild" and whole == "is_down_wild!":
            total *= 0.9
    return total + (1.0 if kind[::-1].startswith("dliw") else 0.0)


PROGRAMS = [
    by_equality, by_none, by_attribute, by_enumeration, by_key, by_condition, by_first_value,
    by_methods, by_assigned_key, by_index, by_parts,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_constants_that_branches_choose(f):
    for compiled in (False, True):
        value, _ = nbta.value_and_grad(f, compiled=compiled)(X)
        np.testing.assert_allclose(value, f(X), rtol=1e-13)
    check_grads(f, (X,), order=1)


def test_a_run_gives_and_prints_the_constant():
    def labelled(x):
        label, total = "low", 0.0
        for v in x:
            total += v * v
            if total > 10.0:
                label = "high"
        print(f"now {label:>5}", label)
        return total, label

    for x in (X, X[:4]):
        with contextlib.redirect_stdout(io.StringIO()) as expected:
            _, label = labelled(x)
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            assert nbta.function(labelled)(x)[1] == label
            assert nbta.value_and_grad(labelled, has_aux=True)(x)[0][1] == label
        assert shown.getvalue() == 2 * expected.getvalue()


@pytest.mark.usefixtures("long_loops")
def test_what_no_run_can_choose_is_refused():
    def summed(x):
        label = "a"
        for v in x:
            if v > 1.0:
                label = "b"
        return float(label + "1") * x[0]

    def filled(x):
        found, label = {}, "a"
        for v in x:
            label = "b" if v > 1.0 else label
            found[label] = v
        return found["a"]

    with pytest.raises(nbta.errors.InvalidArgumentError, match="only the run knows which of"):
        nbta.grad(summed)(X)
    with pytest.raises(nbta.errors.InvalidArgumentError, match="looked up in a dict"):
        nbta.grad(filled)(X)
