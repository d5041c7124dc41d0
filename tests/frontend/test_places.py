"""Wherever functions come from: files, cells, doctests, strings; and whatever kind they are."""

from __future__ import annotations

import ast
import doctest
import functools
import importlib.util
import itertools
import linecache
import math
import os
import py_compile
import re
import subprocess
import sys
import textwrap
import traceback
from pathlib import Path

import frontend_refused as refused
import numpy as np
import pytest
from numba import njit
from scipy.special import logsumexp

import nbta

value_and_grad = functools.partial(nbta.value_and_grad, convert=True, compiled=False)
X = np.linspace(0.2, 1.3, 12)
ROOT = Path(__file__).parents[2]

#: A function that cannot be traced as it is: the sum of its numbers above a limit, squared.
BODY = """
    s = 0.0
    for v in x:
        if v > 0.5:
            s += v * v
    return s
"""
EXPECTED = float(np.sum(X[X > 0.5] ** 2)), np.where(X > 0.5, 2 * X, 0.0)


def holds(f, expected=EXPECTED, *others):
    value, slope = value_and_grad(f)(X, *others)
    np.testing.assert_allclose(value, expected[0], rtol=1e-13)
    np.testing.assert_allclose(slope, expected[1], rtol=1e-13)


def times(factor):
    return EXPECTED[0] * factor, EXPECTED[1] * factor


def above(x):
    s = 0.0
    for v in x:
        if v > 0.5:
            s += v * v
    return s


# Where the source is.


def test_a_file():
    holds(above)


def executed(text, filename="<no source>", **names):
    exec(compile(text, filename, "exec"), names)
    return names


def test_text_that_a_shell_keeps():
    """Shells put the text of cells where tracebacks find it."""
    text = "def f(x):" + BODY
    linecache.cache["<cell 1>"] = (len(text), None, text.splitlines(True), "<cell 1>")
    holds(executed(text, "<cell 1>")["f"])


def test_a_second_cell_of_the_same_name_has_its_own_text():
    for factor in (2.0, 3.0):
        text = "def f(x):" + BODY.replace("v * v", f"v * v * {factor}")
        name = f"<cell of factor {factor}>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        holds(executed(text, name)["f"], times(factor))


DOCTEST = """
>>> import numpy as np
>>> import nbta
>>> def f(x):
...     s = 0.0
...     for v in x:
...         if v > 0.5:
...             s += v * v
...     return s
>>> nbta.grad(f, convert=True, compiled=False)(np.array([0.25, 1.0, 2.0]))
array([0., 2., 4.])
>>> nbta.grad(lambda x: x if x > 0 else -2 * x, convert=True, compiled=False)(-1.0)
np.float64(-2.0)
"""


def test_doctests():
    lines = []
    test = doctest.DocTestParser().get_doctest(DOCTEST, {}, "of a page", None, 0)
    found = doctest.DocTestRunner(verbose=False).run(test, out=lines.append)
    assert (found.failed, found.attempted) == (0, 5), "".join(lines)


def ran(*words, **options):
    """What a new process prints."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    found = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, env=environment, **options
    )
    assert not found.returncode, found.stderr
    return found.stdout


CELLS = [
    "import numpy as np, nbta",
    "def f(x):" + BODY,
    "print(nbta.grad(f, convert=True, compiled=False)(np.array([0.25, 1.0])))",
    "def f(x):" + BODY.replace("v * v", "v * v * v"),
    "print(nbta.grad(f, convert=True, compiled=False)(np.array([0.25, 1.0])))",
    "print(nbta.grad(lambda x: x if x > 0 else 2 * x, convert=True, compiled=False)(-1.0))",
    # IPython compiles each statement by itself: Python writes calls of imported names otherwise.
    "import math\nimport nbta\n\ndef g(x):\n    return x * nbta.sin(x) if x > 0 else math.pi * x",
    "print(nbta.grad(g, compiled=False)(-1.0))",
]


@pytest.mark.slow
def test_ipython():
    pytest.importorskip("IPython")
    shell = "from IPython.core.interactiveshell import InteractiveShell\n"
    shell += "shell = InteractiveShell()\n"
    shell += f"for cell in {CELLS!r}:\n    shell.run_cell(cell).raise_error()\n"
    printed = ran("-c", shell)
    assert printed.split("\n")[-5:] == ["[0. 2.]", "[0. 3.]", "2.0", f"{math.pi}", ""]


@pytest.mark.slow
def test_a_notebook(tmp_path):
    """Cells of Jupyter's kernel, which have names of files that are not there."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    texts = [output.text for cell in book.cells for output in cell.outputs if "text" in output]
    assert texts == ["[0. 2.]\n", "[0. 3.]\n", "2.0\n", f"{math.pi}\n"]


NO_SOURCE = r"(?s)source.*nbta\.while_loop|nbta\.while_loop.*source"


def test_no_source():
    f = executed("def lonely(x):" + BODY)["lonely"]
    with pytest.raises(nbta.NbtaError) as failed:
        value_and_grad(f)(X)
    text = refused.said(failed.value)
    assert re.search(NO_SOURCE, text)
    assert "lonely" in text


def test_no_source_and_none_needed():
    f = executed("def f(x):\n    return np.sum(x * x)\n", np=np)["f"]
    holds(f, (np.sum(X * X), 2 * X))


def test_no_source_and_loops_of_nbta():
    text = """
    def f(x):
        step = lambda i, s: (i + 1, nbta.cond(x[i] > 0.5, lambda: s + x[i] * x[i], lambda: s))
        return nbta.while_loop(lambda i, s: i < x.shape[0], step, (0, 0.0))[1]
    """
    holds(executed(textwrap.dedent(text), nbta=nbta)["f"])


def test_a_callee_without_source():
    helper = executed("def helper(v):\n    return v * v if v > 0.5 else 0.0 * v\n")["helper"]

    def f(x):
        s = 0.0
        for v in x:
            s += helper(v)
        return s

    with pytest.raises(nbta.NbtaError, match=r"(?s)helper.*nbta\.|nbta\..*helper"):
        value_and_grad(f)(X)


@pytest.mark.slow
def test_text_of_a_command_line():
    """Which Python keeps from 3.13 on."""
    text = "import numpy as np, nbta\ndef f(x):" + BODY
    text += "try:\n    print(nbta.grad(f, convert=True, compiled=False)(np.array([0.25, 1.0])))\n"
    text += "except nbta.NbtaError as error:\n    print('nbta.while_loop' in str(error))\n"
    assert ran("-c", text) in ("[0. 2.]\n", "True\n")


numbers = itertools.count()


def module(path, text):
    """Import text as a module of its own."""
    path.write_text(text)
    return imported(path)


def imported(path):
    name = f"{path.stem}_{next(numbers)}"
    spec = importlib.util.spec_from_file_location(name, path)
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found
    spec.loader.exec_module(found)
    return found


def test_a_module_without_source(tmp_path):
    path = tmp_path / "given.py"
    path.write_text("def f(x):" + BODY)
    bare = tmp_path / "bare.pyc"
    py_compile.compile(path, bare, dfile="given.py")
    path.unlink()
    with pytest.raises(nbta.NbtaError) as failed:
        value_and_grad(imported(bare).f)(X)
    assert re.search(NO_SOURCE, refused.said(failed.value))


def holds_or_says_that_it_changed(f):
    """What is differentiated is the function, not what the file says now."""
    linecache.checkcache()
    said = None
    try:
        holds(f)
    except nbta.NbtaError as error:
        said = refused.said(error)
    assert said is None or re.search("changed|source cannot be found", said)


@pytest.mark.parametrize("change", ["v * v", "v > 0.5", "for v in x:\n"])
def test_a_file_that_changed_since_it_was_imported(tmp_path, change):
    path = tmp_path / "changing.py"
    f = module(path, "def f(x):" + BODY).f
    other = {"v * v": "v * v * v", "v > 0.5": "v > 0.9", "for v in x:\n": "for v in x[9:]:\n"}
    path.write_text("def f(x):" + BODY.replace(change, other[change]))
    os.utime(path, (1, 1))
    holds_or_says_that_it_changed(f)


def test_lines_that_moved_since(tmp_path):
    path = tmp_path / "moving.py"
    f = module(path, "def f(x):" + BODY + "\n\ndef g(x):\n    return -3.0\n").f
    path.write_text("def other(x):\n    return x[0]\n\n\ndef f(x):" + BODY)
    holds_or_says_that_it_changed(f)


FUTURE = '''"""A module."""
from __future__ import annotations

def f(x: Vector, *, power: Unknown = 2) -> NotDefined:
    s: Sum = 0.0
    v: Item
    for v in x:
        if v > 0.5:
            s += v**power
    return s
'''


def test_annotations_of_the_future(tmp_path):
    holds(module(tmp_path / "future.py", FUTURE).f)


ODD = '''
import functools

class Outer:
    class Inner:
        def f(
            self, x,   # a comment
            factor=(
                1.0),
        ):
            """A text
that is not indented
  as the rest is.
            """
            text = """
for v in nothing:
            """; s = 0.0
            for v in x: \\
                s += v * v * factor if v > 0.5 and len(text) > 9 else 0.0
            return s

if True:
\tdef tabs(x):
\t\ttotal = 0.0
\t\tfor v in x:
\t\t\tif v > 0.5: total += v * v
\t\treturn total

function = functools.partial(lambda x, factor: functools.reduce(
    lambda s, i: s + (x[i] * x[i] * factor
                      if x[i] > 0.5
                      else 0.0),
    range(12),
    0.0), factor=1.0)
table = {"one": lambda x: x[0] if x[0] > 9.0 else x[1], "two": lambda x: x[0] if x[0] < 9 else x[1]}
'''


def test_texts_that_are_laid_out_otherwise(tmp_path):
    found = module(tmp_path / "odd.py", ODD)
    holds(found.Outer.Inner().f)
    holds(found.tabs)
    holds(found.function)
    for name, place in (("one", 1), ("two", 0)):
        holds(found.table[name], (X[place], np.eye(12)[place]))


# What kind they are.


class Above:
    """Kinds of methods."""

    limit = 0.5

    def __init__(self, factor):
        self.factor = factor
        self.__hidden = 1.0

    def method(self, x):
        s = 0.0
        for v in x:
            if v > self.limit:
                s += self.factor * self.square(v) * self.__hidden
        return s

    @property
    def doubled(self):
        return 2.0 * self.factor if self.factor > 0 else 0.0

    @staticmethod
    def square(v):
        return v * v if v > 0 else -v * v

    @staticmethod
    def static(x):
        s = 0.0
        for v in x:
            if v > 0.5:
                s += Above.square(v)
        return s

    @classmethod
    def of_class(cls, x):
        s = 0.0
        for v in x:
            if v > cls.limit:
                s += cls.square(v)
        return s

    def __call__(self, x):
        s = 0.0
        for v in x:
            if v > 0.5:
                s += self.doubled * v * v
        return s

    def between(self, x):
        return self.method(x) + self(x)


class Below(Above):
    def method(self, x):
        s = 0.0
        for _ in range(2):
            s += super().method(x)
        if s > 1e9:
            s = 0.0
        return s + __class__.limit - 0.5


def test_methods():
    holds(Above(3.0).method, times(3.0))
    holds(Above(3.0).static)
    holds(Above.static)
    holds(Above.of_class)
    holds(Above(1.5), times(3.0))
    holds(Above(1.5).between, times(4.5))


def test_methods_of_a_base_class():
    holds(Below(3.0).method, times(6.0))
    holds(Below.of_class)


def test_an_instance_that_changed_gives_what_it_is_now():
    one = Above(3.0)
    holds(one.method, times(3.0))
    one.factor = 4.0
    holds(one.method, times(4.0))


def doubling(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        found = f(*args, **kwargs)
        return 2.0 * found if found > -1e9 else found

    return wrapper


def scaling(factor):
    def decorator(f):
        @functools.wraps(f)
        def wrapper(x):
            return factor * f(x)

        return wrapper

    return decorator


@doubling
@scaling(1.5)
def decorated(x):
    s = 0.0
    for v in x:
        if v > 0.5:
            s += v * v
    return s


def test_decorators_are_part_of_a_function():
    holds(decorated, times(3.0))
    assert value_and_grad(decorated).__name__ == "decorated"


def of_many(x, /, factor=2.0, *others, power=2, **more):
    s = 0.0
    for v in x:
        if v > 0.5:
            s += factor * v**power
    for other in others:
        s *= other
    return s * more.get("last", 1.0)


def test_defaults_and_keywords():
    holds(of_many, times(2.0))
    holds(functools.partial(of_many, factor=3.0), times(3.0))
    holds(functools.partial(of_many, last=0.5), times(1.0))
    holds(functools.partial(functools.partial(of_many, power=2), factor=1.0))
    value, _ = value_and_grad(of_many)(X, 1.0, 2.0, 3.0, power=2, last=0.5)
    assert value == pytest.approx(3.0 * EXPECTED[0])
    flipped = functools.partial(lambda limit, x: above(x) if limit > 0 else 0.0 * x[0], 0.5)
    holds(flipped)


def test_defaults_are_those_of_the_definition():
    factor = 2.0

    def f(x, factor=factor):
        s = 0.0
        for v in x:
            if v > 0.5:
                s += factor * v * v
        return s

    factor = 5.0
    holds(f, times(2.0))


def test_functions_that_a_loop_defines():
    made = []
    for factor in (1.0, 2.0, 3.0):

        def f(x, factor=factor):
            s = 0.0
            for v in x:
                if v > 0.5:
                    s += factor * v * v
            return s

        made.append(f)
    for factor, f in zip((1.0, 2.0, 3.0), made, strict=True):
        holds(f, times(factor))


def test_functions_of_one_text_and_other_closures():
    def make(factor):
        def f(x):
            s = 0.0
            for v in x:
                if v > 0.5:
                    s += factor * v * v
            return s

        return f

    made = [make(factor) for factor in (1.0, 2.0)]
    for factor, f in zip((1.0, 2.0), made, strict=True):
        holds(f, times(factor))


def test_a_closure_that_is_rebound():
    factor = 1.0

    def f(x):
        s = 0.0
        for v in x:
            if v > 0.5:
                s += factor * v * v
        return s

    holds(f)
    factor = 2.0
    holds(f, times(2.0))


def test_a_closure_that_a_function_rebinds():
    def f(x):
        s, count = 0.0, 0

        def add(v):
            nonlocal s, count
            s = s + v * v
            count += 1

        for k in range(3):
            if k < 2:
                add(x[k])
        return s * count

    holds(f, (2 * np.sum(X[:2] ** 2), np.where(np.arange(12) < 2, 4 * X, 0.0)))


def test_two_lambdas_on_a_line():
    pair = [lambda x: x[0] if x[0] > 0 else x[1], lambda x: x[0] if x[0] < 0 else x[1]]
    holds(pair[0], (X[0], np.eye(12)[0]))
    holds(pair[1], (X[1], np.eye(12)[1]))
    same = [lambda x: x[0] * 2.0 if x[0] > 0 else x[1], lambda x: x[0] * 3.0 if x[0] > 0 else x[1]]
    holds(same[0], (2 * X[0], 2 * np.eye(12)[0]))
    holds(same[1], (3 * X[0], 3 * np.eye(12)[0]))


def test_lambdas_that_only_closures_tell_apart():
    one, two = (lambda k: lambda x: k * x[0] if x[0] > 0 else x[1])(2.0), lambda x: x[1]
    holds(one, (2 * X[0], 2 * np.eye(12)[0]))
    holds(two, (X[1], np.eye(12)[1]))


@njit
def square(v):
    return v * v if v > 0.0 else -v * v


@njit(inline="always")
def add(s, v):
    if v > 0.5:
        s += square(v)
    return s


@njit(cache=False, error_model="numpy", fastmath=True)
def compiled(x):
    s = 0.0
    for i in range(x.shape[0]):
        s = add(s, x[i])
    return s


def test_functions_of_numba():
    holds(compiled)
    holds(compiled.py_func)
    holds(functools.partial(compiled))
    assert not compiled.signatures


def test_functions_of_nbta_in_others():
    inner = nbta.function(above, convert=True, compiled=False)

    def f(x):
        s = 0.0
        for k in range(2):
            s += inner(x) if k == 0 else inner(2.0 * x) * 0.0
        return s

    holds(f)


# What is shown.


def failing(x):
    s = 0.0
    for v in x:
        s += v
        if s > 1.0:
            s = s + np.zeros(3) @ np.ones(4)  # here
    return s


def line_of(function, mark="# here"):
    first = function.__code__.co_firstlineno
    lines = Path(function.__code__.co_filename).read_text().splitlines()
    return next(k for k in range(first, len(lines)) if mark in lines[k - 1])


def test_tracebacks_show_the_line():
    try:
        value_and_grad(failing)(X)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
    assert (__file__, line_of(failing)) in [(f.filename, f.lineno) for f in frames]
    assert "# here" in next(f.line for f in frames if f.lineno == line_of(failing))


def watched(x):
    s = 0.0
    for v in x:
        s += v * v  # here
    return s


def test_lines_are_those_of_the_file_while_it_is_traced():
    """So breakpoints hold."""
    seen, before = set(), sys.gettrace()

    def trace(frame, event, _):
        if frame.f_code.co_filename == __file__:
            seen.add(frame.f_lineno)
        return trace

    sys.settrace(trace)
    try:
        value_and_grad(watched)(X)
    finally:
        sys.settrace(before)
    assert line_of(watched) in seen


def marked(f):
    f.mark = True
    return f


@marked
def below_one_line(x):
    """Not in a loop, whose lines are those of a function of its own."""
    return np.sum((x - 1.0) / (x - 1.0))  # here


@marked
@functools.wraps(
    marked,
    updated=(),
)
# A comment, and an empty line.

@marked
def below_many_lines(
    x,
    scale=1.0,
):
    y = scale * (x - 1.0) / (x - 1.0)  # here
    s = 0.0
    for v in y:
        s += v
    return s


@njit
def below_njit(x):
    """One of its items is 0 / 0."""
    return np.sum((x - 1.0) / (x - 1.0))  # here


@njit(
    fastmath=False,
    error_model="numpy",
)
def below_options(x):
    s = 0.0
    for v in x:
        s += (v - 1.0) / (v - 1.0)  # here
    return s


def around_a_marked_one(x):
    @marked
    @marked
    def inner(v):
        return (v - 1.0) / (v - 1.0)  # here

    s = 0.0
    for v in x:
        s += inner(v)
    return s


class Marked:
    @staticmethod
    @marked
    def method(x):
        y = (x - 1.0) / (x - 1.0)  # here
        return np.sum(y)


def calls_a_compiled_one(x):
    return 2.0 * below_njit(x)


@pytest.mark.parametrize(
    ("function", "place"),
    [
        (below_one_line, below_one_line),
        (below_many_lines, below_many_lines),
        (below_njit, below_njit.py_func),
        (below_options, below_options.py_func),
        (around_a_marked_one, around_a_marked_one),
        (Marked.method, Marked.method),
        (calls_a_compiled_one, below_njit.py_func),
    ],
)
def test_decorators_do_not_move_lines(function, place):
    with nbta.debug.nans(), pytest.raises(nbta.InvalidArgumentError) as caught:
        value_and_grad(function)(np.array([0.5, 1.0, 2.0]))
    assert f"{__file__}:{line_of(place)}: " in str(caught.value)
    assert "# here" in str(caught.value)
    code = nbta.frontend.rewriting.converted_code(getattr(function, "py_func", function))
    assert code.co_firstlineno == getattr(function, "py_func", function).__code__.co_firstlineno


def test_names_and_documentation_stay():
    found = nbta.function(of_many, convert=True)
    assert (found.__name__, found.__module__) == ("of_many", __name__)


@pytest.mark.parametrize("named", [np.tanh, np.concatenate, np.linalg.norm, logsumexp])
def test_a_function_that_goes_by_the_name_of_a_librarys(named):
    class Other:
        def __call__(self, x):
            return total(x)

    def total(x):
        s = 0.0
        for v in x:
            if v > 0.5:
                s += v * v
        return s

    @functools.wraps(named)
    def wrapper(x):
        s = 0.0
        for v in x:
            if v > 0.5:
                s += v * v
        return s

    other = functools.update_wrapper(Other(), named)
    holds(lambda x: wrapper(x))
    holds(lambda x: other(x))


@pytest.mark.parametrize("name", ["numpy_tools", "scipyish", "mathematics", "numbast"])
def test_a_module_called_nearly_as_a_library(tmp_path, name):
    text = "def g(x):" + BODY + "\n\ndef f(x):\n    return g(x)\n"
    holds(module(tmp_path / f"{name}.py", text).f)


def test_trees_whose_shared_nodes_another_library_has_marked():
    """As notebooks do when they show a traceback: each node of their tree gets its parent."""
    tree = ast.parse("try:\n    x = y + 1 if y and z else -y\nexcept E: x[0] < y")
    nodes = [(node, part) for node in ast.walk(tree) for part in ast.iter_child_nodes(node)]
    for node, part in nodes:
        part.parent = node

    def marked(x):
        try:
            total = 0.0
            for i in range(len(x)):
                total = total + x[i] ** 2 if x[i] > 0.0 and i < 3 else -total
        except KeyError:
            total = -1.0
        return total

    try:
        np.testing.assert_allclose(nbta.grad(marked)(np.array([1.0, 2.0])), [2.0, 4.0])
    finally:
        for _, part in nodes:
            vars(part).pop("parent", None)
