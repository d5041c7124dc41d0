"""`nbta.print`: what a run prints, in order, in both executors."""

import io
import logging
import sys
import warnings

import numpy as np
import pytest

import nbta

BOTH = pytest.mark.parametrize("compiled", [False, True])


def printed(capsys, function, *args):
    """What a call prints, of a function that was called before."""
    function(*args)
    capsys.readouterr()
    function(*args)
    return capsys.readouterr().out


@BOTH
@pytest.mark.parametrize("convert", [False, True])
def test_each_run_prints_in_order(capsys, compiled, convert):
    def shown(x):
        nbta.print("begin")
        total, _ = nbta.scan(lambda s, row: (nbta.print("row", row, s), (s + row, None))[1], 0.0, x)
        nbta.print("end", total, sep=": ", end=".\n")
        return total

    taken = nbta.function(shown, compiled=compiled, convert=convert)
    found = printed(capsys, taken, np.arange(3.0))
    assert found == "begin\nrow 0.0 0.0\nrow 1.0 0.0\nrow 2.0 1.0\nend: 3.0.\n"
    shown(np.arange(3.0))
    assert capsys.readouterr().out == found


@BOTH
def test_loops_and_branches_of_python(capsys, compiled):
    def shown(x):
        for i in range(x.shape[0]):
            if x[i] > 1.0:
                nbta.print("many")
            else:
                nbta.print(i, "few", x[i])
        return x

    taken = nbta.function(shown, compiled=compiled)
    assert printed(capsys, taken, np.arange(4.0)) == "0 few 0.0\n1 few 1.0\nmany\nmany\n"
    shown(np.arange(4.0))
    assert capsys.readouterr().out == "0 few 0.0\n1 few 1.0\nmany\nmany\n"


@BOTH
@pytest.mark.parametrize("convert", [False, True])
def test_loops_and_branches_of_nbta(capsys, compiled, convert):
    def iteration(i, y):
        nbta.print("iteration", i)
        y = nbta.cond(y < 3.0, lambda: (nbta.print("low", y), y * 2)[1], lambda: y + 1)
        nbta.switch_case(i, [lambda: (nbta.print("zero"), 0.0)[1], lambda: 1.0])
        return i + 1, y

    def shown(x):
        nbta.while_loop(lambda i, y: (nbta.print("test", i), i < 2)[1], iteration, (0, x))
        nbta.print("after")
        nbta.fori_loop(0, 2, lambda i, s: (nbta.print("fori", i), s)[1], x)
        nbta.map_fn(lambda r: (nbta.print("map", r), r)[1], np.arange(2), parallel_iterations=2)
        return x

    taken = nbta.function(shown, compiled=compiled, convert=convert)
    found = printed(capsys, taken, 2.0).splitlines()
    assert found == [
        "test 0", "iteration 0", "low 2.0", "zero", "test 1", "iteration 1", "test 2", "after",
        "fori 0", "fori 1", "map 0", "map 1",
    ]  # fmt: skip


@BOTH
def test_derivatives_pass_by(capsys, compiled):
    def f(x):
        nbta.print("x", x)
        y = nbta.fori_loop(0, 3, lambda i, y: (nbta.print(i, y), y * x)[1], 1.0)
        nbta.print("y", y)
        return y

    lines = "x 2.0\n0 1.0\n1 2.0\n2 4.0\ny 8.0\n"
    slope = nbta.value_and_grad(f, compiled=compiled)
    assert printed(capsys, slope, 2.0) == lines
    assert slope(2.0) == (8.0, 12.0)
    second = nbta.grad(nbta.grad(f), compiled=compiled)
    assert printed(capsys, second, 2.0) == lines
    assert second(2.0) == 12.0
    capsys.readouterr()
    assert nbta.jvp(f, (2.0,), (1.0,)) == (8.0, 12.0)
    assert capsys.readouterr().out == lines
    assert nbta.hvp(f, (2.0,), (1.0,)) == (12.0,)
    nbta.testing.check_grads(f, [1.5])


@pytest.mark.parametrize("checkpoint", [1, 2, "sqrt", "online"])
def test_iterations_that_run_again_print_nothing(capsys, checkpoint):
    def f(x):
        def iteration(i, y):
            nbta.print(i)
            return i + 1, y * x

        return nbta.while_loop(lambda i, y: i < 4, iteration, (0, 1.0), checkpoint=checkpoint)[1]

    slope = nbta.grad(f, compiled=True)
    assert printed(capsys, slope, 2.0) == "0\n1\n2\n3\n"
    assert slope(2.0) == 32.0


@BOTH
def test_batches(capsys, compiled):
    def f(x):
        nbta.print(x, fmt="<{:.1f}>")
        return x * x

    assert (
        printed(capsys, nbta.vmap(f, compiled=compiled), np.arange(3.0)) == "<0.0>\n<1.0>\n<2.0>\n"
    )
    slope = nbta.value_and_grad(lambda p, x: p * f(x), batch_axis=(None, 0), compiled=compiled)
    found = printed(capsys, slope, 2.0, np.array([1.0, 2.0]))
    assert sorted(found.splitlines()) == ["<1.0>", "<2.0>"]
    assert slope(2.0, np.array([1.0, 2.0])) == (10.0, 5.0)


@BOTH
def test_structures_and_texts(capsys, compiled):
    def shown(x, n):
        nbta.print({"x": x, "n": [n, None, 2]}, (x,), None, True, np.arange(2), x < 1, sep="; ")
        nbta.print(x, n, "text", fmt="{0:>6.2f}|{1}|{2!r}|{0}")
        return x

    taken = nbta.function(shown, compiled=compiled)
    found = printed(capsys, taken, 1.5, np.array([1, 2]))
    assert found == (
        "{'x': np.float64(1.5), 'n': [array([1, 2]), None, 2]}; (np.float64(1.5),); None; True; "
        "[0 1]; False\n  1.50|[1 2]|'text'|1.5\n"
    )


@BOTH
@pytest.mark.parametrize("dtype", ["float32", "complex128", "bool", "int8", "uint64"])
def test_dtypes(capsys, compiled, dtype):
    value = np.array([0, 1]).astype(dtype)

    def shown(x):
        nbta.print(x, x[1])
        return x

    found = printed(capsys, nbta.function(shown, compiled=compiled), value)
    assert found == f"{value} {value[1]}\n"


@BOTH
def test_a_function_without_results(capsys, compiled):
    taken = nbta.function(lambda x: nbta.print("only", x), compiled=compiled)
    assert printed(capsys, taken, np.arange(2.0)) == "only [0. 1.]\n"
    assert printed(capsys, taken, np.arange(3.0)) == "only [0. 1. 2.]\n"


def test_files():
    file = io.StringIO()
    taken = nbta.function(lambda x: (nbta.print(x, file=file, flush=True), x)[1])
    for value in (1.0, 2.0):
        taken(value)
    nbta.print(3.0, file=file)
    assert file.getvalue() == "1.0\n2.0\n3.0\n"


@BOTH
def test_python_s_print_to_a_file(compiled):
    file = io.StringIO()

    def taken(x):
        print(f"x {x:.1f}", file=file)
        for i in range(20):
            if i * x > 17.0:
                print("i", i, sep="=", file=file)
        return x * x

    made = nbta.value_and_grad(taken, compiled=compiled)
    for x, shown in ((1.0, "x 1.0\ni=18\ni=19\n"), (-2.0, "x -2.0\n")):
        file.seek(0)
        file.truncate()
        assert made(x) == (x * x, 2 * x)
        assert file.getvalue() == shown


@BOTH
def test_graphs_built_by_hand(capsys, compiled):
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", ())
        shown = nbta.print("x is", x)
        with nbta.control_dependencies([shown]):
            y = x * 2
        z = nbta.while_loop(lambda i: i < 2, lambda i: (nbta.print("iteration", i), i + 1)[1], 0)
    session = nbta.Session(graph)
    assert session.run(y, {x: 3.0}, compiled=compiled) == 6.0
    assert capsys.readouterr().out == "x is 3.0\n"
    session.run(shown, {x: 4.0}, compiled=compiled)
    assert capsys.readouterr().out == "x is 4.0\n"
    assert session.run(z, compiled=compiled) == 2
    assert capsys.readouterr().out == "iteration 0\niteration 1\n"


def watched(i, y, x):
    print("iteration", i)
    assert y < 100.0, "too much"
    return i + 1, y * x, x


@BOTH
def test_assertions_and_prints_of_python_in_functions_given_to_loops(capsys, compiled):
    taken = nbta.function(
        lambda x: nbta.while_loop(lambda i, *_: i < 4, watched, (0, x, x))[1], compiled=compiled
    )
    assert printed(capsys, taken, 2.0) == "iteration 0\niteration 1\niteration 2\niteration 3\n"
    with pytest.raises(AssertionError, match="too much"):
        taken(20.0)


def test_outside_of_graphs(capsys):
    nbta.print("a", [1.0], sep="-", end="!\n")
    nbta.print(0.5, fmt="{:.3f}")
    nbta.while_loop(lambda i: i < 2, lambda i: (nbta.print("i", i), i + 1)[1], 0)
    assert capsys.readouterr().out == "a-[1.0]!\n0.500\ni 0\ni 1\n"


@pytest.mark.parametrize("fmt", ["{} {}", "{1}", "{name}", "{0.real} {2[0]}"])
def test_fields_without_values(fmt):
    with pytest.raises(nbta.InvalidArgumentError, match="print: fmt has the field") as caught:
        nbta.function(lambda x: nbta.print(x, fmt=fmt))(1.0)
    assert caught.value.reason == "print"


LOGGER = logging.getLogger("nbta.tests.printing")


def logs(x):
    LOGGER.info("begin %.1f of %s", x, "all")
    for i in range(12):
        x = 1.5 * x
        if x > 20.0:
            LOGGER.warning(f"iteration {i}: {x:.2f}")
            break
        LOGGER.debug("%d: %s", i, x)
    if x < 0.0:
        logging.getLogger(LOGGER.name).log(logging.ERROR, "negative")
    LOGGER.info("end", stacklevel=1)
    return x


@BOTH
def test_each_run_logs_what_it_comes_to(caplog, compiled):
    """The level that a logger has when it runs decides."""
    gradient = nbta.value_and_grad(logs, compiled=compiled)
    for level in (logging.INFO, logging.DEBUG, logging.WARNING, logging.INFO):
        caplog.set_level(level, logger=LOGGER.name)
        for x in (1.0, 8.0, -3.0, 1.0):
            gradient(x)
            caplog.clear()
            found = gradient(x)
            told = caplog.messages.copy()
            caplog.clear()
            assert found[0] == pytest.approx(logs(x), rel=1e-14)
            plain = [line for line in caplog.messages if line != "end"]  # the trace's own
            assert [line for line in told if line != "end"] == plain


def warns(x):
    if x < 0.0:
        warnings.warn("negative", RuntimeWarning, stacklevel=2)
    if x > 5.0:
        warnings.warn(f"{x} is large", stacklevel=1)
    return x * x


@BOTH
def test_each_run_warns_where_it_comes_to_it(compiled):
    gradient = nbta.grad(warns, compiled=compiled)
    gradient(1.0)
    with pytest.warns(RuntimeWarning, match="^negative$") as found:
        assert gradient(-1.0) == -2.0
    assert found[0].filename == __file__
    with pytest.warns(UserWarning, match=r"^7\.0 is large$"):
        gradient(7.0)
    with pytest.warns(UserWarning, match=r"^8\.0 is large$"):
        gradient(8.0)


@BOTH
def test_text_that_is_written_to_the_terminal(capsys, compiled):
    def writes(x):
        for i in range(10):
            if i % 4 == 1:
                sys.stdout.write(f"{i}: {x}\n")
                sys.stderr.write("odd\n")
            x = 0.5 * x
        sys.stdout.flush()
        return x

    taken = nbta.function(writes, compiled=compiled)
    assert printed(capsys, taken, 8.0) == "1: 4.0\n5: 0.25\n9: 0.015625\n"
    taken(8.0)
    assert capsys.readouterr().err == "odd\n" * 3


def test_files_that_a_function_makes():
    """What it prints to them is there when it reads them."""

    def counted(x):
        file = io.StringIO()
        for i in range(20):
            print(i, file=file)
        return x * len(file.getvalue())

    def of_the_run(x):
        file = io.StringIO()
        print(x, file=file)
        return x * len(file.getvalue())

    assert nbta.value_and_grad(counted)(2.0) == (counted(2.0), 50.0)
    with pytest.raises(nbta.UnimplementedError, match="a file that the function opens or makes"):
        nbta.grad(of_the_run)(2.0)


@BOTH
def test_a_run_that_fails_prints_once(capsys, compiled):
    """Attempts that leave an error or NaN to a more careful one, which repeats nothing."""

    def f(x, w):
        total = 0.0
        for i in range(len(x)):
            print("at", i)
            total += np.sum(w * x[i])
        if x[0] > 0.0:
            raise ValueError("above")
        print("end", total)
        return total

    taken = nbta.value_and_grad(f, compiled=compiled)
    x, w = np.array([-1.0, 2.0]), np.array([1.0, np.inf])
    assert printed(capsys, taken, x, w) == "at 0\nat 1\nend nan\n"
    assert printed(capsys, taken, x * 3.0, w) == "at 0\nat 1\nend nan\n"
    with pytest.raises(ValueError, match="above"):
        taken(-x, w)
    assert capsys.readouterr().out == "at 0\nat 1\n"


@BOTH
def test_a_run_within_a_print_of_one_that_fails(capsys, compiled):
    class Shown(io.StringIO):
        def write(self, text):
            if text.strip():
                count(np.array([float(text)]))

    @nbta.function(compiled=compiled)
    def count(x):
        print("got", x[0])
        if x[0] > 1.0:
            print("much")
            assert x[0] < 2.0
        return x

    @nbta.function(compiled=compiled)
    def f(x):
        for i in range(len(x)):
            print(x[i], file=shown)
        if x[0] < 1.0:
            raise ValueError("below")
        return np.sum(x)

    shown = Shown()
    for _ in range(2):
        with pytest.raises(ValueError, match="below"):
            f(np.array([0.5, 1.5, 0.25]))
        assert capsys.readouterr().out == "got 0.5\ngot 1.5\nmuch\ngot 0.25\n"
        with pytest.raises(AssertionError):
            f(np.array([0.5, 2.5]))
        assert capsys.readouterr().out.startswith("got 0.5\ngot 2.5\nmuch\n")
