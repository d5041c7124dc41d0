"""`Function.source`: the user's names and lines in what the compiler writes."""

import ast
import re

import numpy as np
import pytest
from fuzz.ways import in_python

import nbta
from nbta.inspect.named_source import named_source


def helper(w, y):
    z = np.tanh(w * y)
    return z + 1


def recurrence(x, c):
    y = x[0] * c
    s = 0.0
    for t in range(1, len(x)):
        y = helper(c, y) + x[t]
        if y > 3:
            y = y - 1.0
        s += y * y
    return s + np.sum(np.exp(x))


def net(x, W):  # noqa: N803
    h = np.zeros(3)
    out = 0.0
    for t in range(len(x)):
        h = np.tanh(W @ h + x[t])
        out = out + np.sum(h)
    return out


def nested(a, b):
    total = 0.0
    for row in range(a.shape[0]):
        inner = 0.0
        for col in range(a.shape[1]):
            inner = inner * 0.5 + a[row, col] * b[col]
        total = total + np.sin(inner)
    return total


def branches(x, limit):
    level = np.sum(x)
    if level > limit:
        level = level * 2.0
    elif level < 0.0:
        level = -level
    while level > 10.0:
        level = level / 3.0
    return level


def clashes(n0, W, float64, t1):  # noqa: N803
    v0 = n0 * W
    K0 = 0.0  # noqa: N806
    for _ in range(5000):
        K0 = K0 + np.cos(v0 * K0) * float64  # noqa: N806
    return K0 + t1[0] * t1[1] + np.sum(np.exp(t1))


def filled(x):
    kept = np.zeros(len(x))
    for i in range(1, len(x)):
        kept[i] = np.sin(kept[i - 1]) + x[i]
    return np.sum(kept * kept)


def of_parts(params, x):
    hidden = np.tanh(params["w"] * x + params["b"])
    return np.sum(hidden)


def carried(x):
    return nbta.while_loop(lambda i, acc: i < 50, lambda i, acc: (i + 1, np.sin(acc) * x), (0, x))[
        1
    ]


def early(x, bound):
    found = 0.0
    for k in range(len(x)):
        found = found + x[k]
        if found > bound:
            break
    return found


X, Y = np.linspace(0.5, 1.5, 7), np.linspace(-1.0, 1.0, 12).reshape(4, 3)
PROGRAMS = {
    "recurrence": (recurrence, (X, 2.0)),
    "net": (net, (Y, np.eye(3))),
    "nested": (nested, (Y, np.ones(3))),
    "branches": (branches, (X, 1.0)),
    "clashes": (clashes, (0.5, 0.25, 2.0, X)),
    "filled": (filled, (X,)),
    "of_parts": (of_parts, ({"w": X, "b": X + 1}, X)),
    "carried": (carried, (0.3,)),
    "early": (early, (X, 3.0)),
}


def second(f):
    return nbta.grad(lambda *args: nbta.grad(f)(*args) * 1.5)


WAYS = {
    "value": nbta.function,
    "gradient": nbta.value_and_grad,
}


def called(made, args):
    made(*args)
    return made


def names_of(text):
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def compact(made):
    return made._compiled_program().generated.source


def code_of(text):
    """Lines of code, without comments."""
    return [line for line in text.split("\n") if not line.lstrip().startswith("#")]


def shape_of(text):
    """Code with a number in place of each name, by its first use."""
    numbers = {}
    rename = lambda found: str(numbers.setdefault(found[0], len(numbers)))  # noqa: E731
    return re.sub(r"(?<![\w.])[A-Za-z_]\w*", rename, "\n".join(code_of(text)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_shown_is_what_is_compiled_but_for_names_and_comments(name, way):
    f, args = PROGRAMS[name]
    made = called(WAYS[way](f), args)
    shown = made.source
    ast.parse(shown)
    assert shown != compact(made)
    assert shape_of(shown) == shape_of(compact(made))


def line(f, text):
    """A comment for a line of a function."""
    lines, first = __import__("inspect").getsourcelines(f)
    (found,) = [k for k, each in enumerate(lines) if text in each]
    return f"test_named_source.py:{first + found}  {lines[found].strip()}"


def test_names_and_lines_of_a_recurrence():
    text = called(nbta.value_and_grad(recurrence, argnums=(0, 1)), (X, 2.0)).source
    assert {"x", "c", "y", "s", "t", "z", "d_y", "d_s", "d_c", "d_x", "len_x"} <= names_of(text)
    assert {"iteration", "iterations", "saved_y", "x_i"} <= names_of(text)
    assert "# x: float64 (?,)\n" in text
    assert "# c: float64 ()\n" in text
    loop = line(recurrence, "for t in")
    assert f"\n    # {loop}\n" in text
    assert f"\n    # gradient of {loop}\n" in text
    assert f"# {line(helper, 'np.tanh')}\n" in text
    assert f"# gradient of {line(helper, 'np.tanh')}\n" in text
    assert f"# {line(recurrence, 'if y > 3')}  -> where this holds\n" in text
    assert re.search(r"\n +y = float64\(y_\d\)", text)
    assert not re.search(r"argument|while_grad|gradients/", text)


def test_loops_are_headed_by_their_statements():
    text = called(nbta.function(nested), (Y, np.ones(3))).source
    lines = text.split("\n")
    for header in ("for row in", "for col in"):
        (place,) = [
            k for k, each in enumerate(lines) if each.strip() == f"# {line(nested, header)}"
        ][:1]
        assert any(each.lstrip().startswith("for ") for each in lines[place:])
    assert {"a", "b", "total", "inner", "row", "col"} <= names_of(text)


def test_second_derivatives_have_adjoints_of_adjoints():
    f = called(nbta.grad(nbta.grad(lambda x: np.sin(x) * x * x)), (0.5,))
    ast.parse(f.source)
    assert "x" in names_of(f.source)
    g = called(nbta.grad(lambda x: nbta.grad(sum_of_sines)(x) * 2.0), (0.5,))
    assert {"x", "total", "d_total"} <= names_of(g.source)
    assert any(name.startswith("d_d_") for name in names_of(g.source))


def sum_of_sines(x):
    total = 0.0
    for _ in range(3000):
        total = np.sin(total * x)
    return total


def test_names_that_code_has_already_are_others():
    made = called(nbta.value_and_grad(clashes), (0.5, 0.25, 2.0, X))
    text = made.source
    assert {"W_1", "float64_1", "t1", "v0", "n0", "K0_1"} <= names_of(text)
    assert re.search(r"\n    W = pointer\(int64", text)
    assert re.search(r"\n    n0 = float64\(x\d\[0\]\)", text)
    assert re.search(r"\n    t1 = array_in\(", text)
    assert "# W: float64 ()\n" in text


def test_arrays_that_are_filled_have_one_name():
    text = called(nbta.value_and_grad(filled), (X,)).source
    assert {"kept", "i", "x", "d_kept"} <= names_of(text)


def test_parts_of_arguments_are_distinguished():
    text = called(nbta.value_and_grad(of_parts), ({"w": X, "b": X + 1}, X)).source
    assert {"params_w", "params_b", "hidden_i", "x"} <= names_of(text) | {"hidden_i"}
    assert "# params['w']: float64 (?,)\n" in text


def test_functions_that_differ_in_names_share_what_is_compiled():
    def other(points, factor):
        state = points[0] * factor
        loss = 0.0
        for k in range(1, len(points)):
            state = helper(factor, state) + points[k]
            if state > 3:
                state = state - 1.0
            loss += state * state
        return loss + np.sum(np.exp(points))

    one = called(nbta.value_and_grad(recurrence), (X, 2.0))
    two = called(nbta.value_and_grad(other), (X, 2.0))
    assert compact(one) == compact(two)
    assert {"points", "factor", "state", "loss", "k", "d_state"} <= names_of(two.source)
    assert {"points", "factor", "state"}.isdisjoint(names_of(one.source))


def test_source_from_the_disk_has_names_too(monkeypatch):
    one = called(nbta.value_and_grad(recurrence, compiled=True), (X, 2.0))
    two = called(nbta.value_and_grad(recurrence, compiled=True), (X, 2.0))
    assert one.source == two.source


def test_what_was_compiled_is_shown_where_its_program_gives_other_code():
    made = called(nbta.function(recurrence), (X, 2.0))
    compiled = made._compiled_program()
    compiled.generated.source += "# other\n"
    assert named_source(compiled) == compiled.generated.source


def test_results_and_explain_are_as_without_source():
    made = nbta.value_and_grad(recurrence, compiled=True)
    before = made(X, 2.0)
    told = made.explain()
    assert made.source
    assert made.explain() == told
    after = made(X, 2.0)
    assert before[0] == after[0]
    np.testing.assert_array_equal(before[1], after[1])


def rows(name):
    """A loop in which one of nbta's functions of a vector is used."""
    function = getattr(nbta, name)

    def f(x):
        total = 0.0
        for t in range(len(x)):
            total += nbta.sum(nbta.cast(function(x[t]), np.float64) * 0.5)
        return total

    return f


#: Those whose code is made in several parts, too.
OF_VECTORS = [
    "logsumexp", "softmax", "log_softmax", "sum", "mean", "var", "std", "prod", "max", "argmax",
    "median", "cumsum", "cumprod", "cummax", "sort", "argsort", "diff", "flip", "norm", "square",
    "sigmoid", "erf", "gammaln", "digamma", "logcumsumexp", "ptp", "any", "trapezoid", "sinc",
]  # fmt: skip


@pytest.mark.parametrize("name", [name for name in OF_VECTORS if hasattr(nbta, name)])
def test_each_function_has_source(name):
    """The source of `logsumexp` was an AttributeError, as its rule binds parts of a result."""
    x = np.random.default_rng(0).uniform(0.1, 1.0, (4, 5))
    f = nbta.function(rows(name), compiled=True)
    with in_python():
        f(x)
        assert "total" in f.source
