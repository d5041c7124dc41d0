"""The line that says what takes so long."""

import io
import time
from types import SimpleNamespace

import numpy as np
import pytest

import nbta
from nbta.runtime import waiting
from nbta.runtime.waiting import told


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def impatient(monkeypatch):
    """Nobody waits longer than 10 ms; gives what stands for standard error."""
    monkeypatch.setattr(waiting, "TOLD_SECONDS", 0.01)
    monkeypatch.setattr(waiting, "sys", SimpleNamespace(stderr=Terminal(), modules={}))
    monkeypatch.delenv("NBTA_VERBOSE", raising=False)
    return waiting.sys.stderr


def wait():
    with told("counting sheep"), told("sheep number one"):
        time.sleep(0.3)


def test_one_line_says_what_takes_so_long(impatient):
    wait()
    assert impatient.getvalue() == "nbta: counting sheep (NBTA_VERBOSE=0 leaves this out)\n"


def test_what_is_fast_is_not_spoken_of(impatient, monkeypatch):
    monkeypatch.setattr(waiting, "TOLD_SECONDS", 60.0)
    wait()
    assert impatient.getvalue() == ""


@pytest.mark.parametrize(("choice", "is_terminal", "lines"), [("0", True, 0), ("1", False, 1)])
def test_the_variable_decides(impatient, monkeypatch, choice, is_terminal, lines):
    monkeypatch.setenv("NBTA_VERBOSE", choice)
    monkeypatch.setattr(impatient, "isatty", lambda: is_terminal)
    wait()
    assert impatient.getvalue().count("\n") == lines


@pytest.mark.parametrize(("modules", "lines"), [((), 0), (("ipykernel",), 1)])
def test_a_file_is_told_nothing_and_a_notebook_is(impatient, monkeypatch, modules, lines):
    monkeypatch.setattr(impatient, "isatty", lambda: False)
    waiting.sys.modules.update(dict.fromkeys(modules))
    wait()
    assert impatient.getvalue().count("\n") == lines


@pytest.mark.parametrize("stream", [None, "closed"])
def test_a_stream_that_is_gone_harms_nobody(impatient, monkeypatch, stream):
    monkeypatch.setenv("NBTA_VERBOSE", "1")
    impatient.close()
    waiting.sys.stderr = impatient if stream else None
    wait()


def test_an_error_ends_it(impatient):
    with pytest.raises(ValueError, match="wolf"), told("counting sheep"):
        raise ValueError("wolf")
    time.sleep(0.1)
    assert impatient.getvalue() == ""


def test_a_graph_says_so(impatient, monkeypatch):
    monkeypatch.setattr(waiting, "TOLD_SECONDS", 1e-9)
    number = np.random.default_rng().random()  # not in the cache
    f = nbta.function(lambda x: nbta.sum(nbta.tanh(x) * number), compiled=True)
    f(np.ones(3))
    (line,) = [each for each in impatient.getvalue().splitlines() if "lines of a graph" in each]
    assert "a call with compiled=True does so ahead" in line
    assert line.endswith(" (NBTA_VERBOSE=0 leaves this out)")
    told_of = impatient.getvalue()
    f(np.ones(4))
    assert impatient.getvalue() == told_of
