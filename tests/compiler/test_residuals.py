"""What `explain()` says of values that loops save for their gradients."""

import inspect
import re

import numpy as np

import nbta

X = np.linspace(0.1, 1.0, 8)


def carried(w, x):
    h = np.zeros(3)
    total = 0.0
    for t in range(x.shape[0]):
        h = np.tanh(w * h + x[t])
        total = total + h.sum()
    return total


def single(x):
    h = np.float32(0.5)
    for t in range(x.shape[0]):
        h = np.sin(h) * x[t]
    return h


def replaced(x):
    w = x * 2.0
    for i in range(1, x.shape[0]):
        w[i - 1] = np.sin(w[i - 1]) * w[i]
        w[i] = np.cos(w[i])
    return w.sum()


def added(x):
    total = 0.0
    for i in range(x.shape[0]):
        y = np.exp(x[i])
        total = total + y * y
    return total


def open_length(x):
    h = x * 0.5
    for _ in range(x.shape[0]):
        h = np.tanh(h) * h
    return h.sum()


def notes(function, *arguments):
    """The lines of the section."""
    both = nbta.value_and_grad(function, compiled=True)
    both(*arguments)
    lines = both.explain().splitlines()
    title = "values saved for gradients:"
    if title not in lines:
        return []
    found = []
    for line in lines[lines.index(title) + 1 :]:
        if not line.startswith("  "):
            break
        found.append(line.strip())
    return found


def line_of(function, text):
    """The line of a file where some text of a function is."""
    lines, first = inspect.getsourcelines(function)
    return first + next(k for k, line in enumerate(lines) if text in line)


def test_a_variable_is_named_with_line_bytes_and_reason():
    (note,) = notes(carried, np.full(3, 0.5), np.ones((4, 3)))
    line = line_of(carried, "h = np.tanh")
    assert re.fullmatch(
        rf"h \(\S+\), test_residuals\.py:{line}: 24 bytes an iteration of the loop "
        rf"`for t in range\(x\.shape\[0\]\)` at test_residuals\.py:{line - 1}, for the gradient of "
        rf"test_residuals\.py:{line}; it follows from the iteration before",
        note,
    )


def test_bytes_are_those_of_the_dtype():
    found = notes(single, np.ones(5, np.float32))
    assert found
    assert all(": 4 bytes an iteration of " in note for note in found)


def test_a_value_without_a_name_is_an_expression():
    found = notes(single, np.ones(5, np.float32))
    assert any(note.startswith("`np.sin(h)` (") for note in found)


def test_items_that_are_replaced_later_are_the_reason():
    found = notes(replaced, X)
    assert any(note.endswith("items that it is computed from are replaced later") for note in found)


def test_an_open_length_is_named():
    found = notes(open_length, X)
    assert any("8 bytes times the open lengths of float64 (" in note for note in found)


def test_a_loop_that_only_adds_saves_nothing():
    assert notes(added, X) == []


def test_a_function_without_gradient_saves_nothing():
    function = nbta.function(carried, compiled=True)
    function(np.full(3, 0.5), np.ones((4, 3)))
    assert "values saved" not in function.explain()
