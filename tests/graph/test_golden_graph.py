"""Every recorded TensorFlow program as a graph: values, failures, gradients, sources."""

import numpy as np
import pytest
from golden import CORNERS, check_result, programs, tensor
from golden_graph import Expressions, RawGraph
from many import chunks, each

import nbta
from nbta.structure import leaves

RAW, GRADIENTS, LOOPS = (programs(family) for family in ("raw", "gradients", "loops"))


def identify(program):
    return program["id"]


def test_there_are_as_many_programs_as_were_recorded():
    assert (len(RAW), len(GRADIENTS), len(LOOPS)) == (600, 200, 120)


#: As the graph is, and, in a second run of the same fetches, after all passes.
BOTH = (False, "auto")


@pytest.mark.smoke_every(3)
@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("some", chunks(RAW))
def test_raw(some):
    each(some, check_raw)


def check_raw(program):
    built = RawGraph()
    fetches = [built.step(step) for step in program["steps"]]
    session = nbta.Session(built.graph)
    expected = program["expect"]
    failing = "error" in expected[-1] and expected[-1]["error"]
    if failing and failing["reason"] != "gradient_of_gradient":
        for compiled in BOTH:
            check_failure(lambda c=compiled: session.run(fetches, built.feeds, c), failing, built)
        fetches, expected = fetches[:-1], expected[:-1]
    for compiled in BOTH:
        results = session.run(fetches, built.feeds, compiled)
        for fetch, result, want in zip(fetches, results, expected, strict=True):
            if isinstance(fetch, dict):
                check_result(result, want)


@pytest.mark.slow_but_every(7)
@pytest.mark.parametrize("corner", CORNERS)
def test_corners(corner):
    each(CORNERS[corner], check_raw)


def check_failure(run, expected, built):
    with pytest.raises(nbta.NbtaError) as caught:
        run()
    assert (caught.value.code, caught.value.reason) == (expected["code"], expected["reason"])
    assert repr(built.last.name) in str(caught.value)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("program", GRADIENTS + LOOPS, ids=identify)
def test_gradients(program):
    built = Expressions(program)
    expected = program["expect"]
    sources = [built.differentiate(call) for call in program["gradients"]]
    session = nbta.Session(built.graph)
    fetches = ([built.names[ref] for ref in program["fetch"]], built.calls)
    for compiled in BOTH:
        values, grads = session.run(fetches, built.feeds, compiled)
        if "error" not in expected:
            check_expected(program, values, grads)
            assert sources == [call["sources"] for call in expected["gradients"]]
    if "error" in expected:
        check_against_differences(program, built, session)


def check_expected(program, values, grads):
    expected = program["expect"]
    for ref, value in zip(program["fetch"], values, strict=True):
        check_tensor(value, expected["values"][ref])
    for found, call in zip(grads, expected["gradients"], strict=True):
        assert [g is None for g in found] == [g is None for g in call["grads"]]
        for grad, want in zip(leaves(found), leaves_of(call["grads"]), strict=True):
            check_tensor(grad, want)


def leaves_of(specs):
    return [spec for spec in specs if spec is not None]


def check_tensor(found, spec):
    want = tensor(spec)
    assert found.dtype == want.dtype
    assert found.shape == want.shape
    np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-12)


def check_against_differences(program, built, session):
    """What TensorFlow refuses runs here, and its gradients are those of central differences."""
    for call, grads in zip(program["gradients"], built.calls, strict=True):
        ys = [built.names[ref] for ref in call["ys"]]
        weights = call["grad_ys"] or [None] * len(ys)
        weights = [1.0 if w is None else tensor(w) for w in weights]

        def total(feeds, ys=ys, weights=weights):
            values = session.run(ys, feeds)
            return sum(np.sum(w * y) for w, y in zip(weights, values, strict=True))

        for ref, grad in zip(call["xs"], grads, strict=True):
            x = built.names[ref]
            at = session.run(x, built.feeds)
            found = np.zeros_like(at) if grad is None else session.run(grad, built.feeds)
            np.testing.assert_allclose(
                found, differences(total, built.feeds, x, at), rtol=1e-6, atol=1e-6
            )


def differences(total, feeds, x, at, step=1e-5):
    """Central differences of a run's total by each element of a tensor, which is fed."""
    result = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        shift = np.zeros_like(at)
        shift[index] = step
        above, below = (total({**feeds, x: at + sign * shift}) for sign in (1, -1))
        result[index] = (above - below) / (2 * step)
    return result
