"""Random nests of loops and arrays, of whose gradients nothing but threads is started by Python."""

import faulthandler

import native_programs
import numpy as np
import pytest
from compiled_pairs import compare
from fuzz.ways import in_python
from native_programs import S, X
from test_in_place import section

import nbta


def hold(seeds, depth):
    for seed in seeds:
        program = native_programs.program(seed, depth)
        try:
            check(program)
        except Exception as error:
            error.add_note(f"native_programs.program({seed}, {depth})\n{program!r}")
            raise


def check(program):
    """Both executors agree, on what differences say, and Python runs nothing of it."""
    slow, fast = (nbta.value_and_grad(program, (0, 1), compiled=k) for k in (False, True))
    try:
        expected = slow(X, S)
    except nbta.InvalidArgumentError as error:
        if "computes iterations again" not in str(error):
            raise
        return  # a loop with checkpoints reads what is cleared
    with in_python():
        compare(fast(X, S), expected)
    left = section(fast.explain(), "operations that run in Python")
    assert [row for row in left if not row.startswith("Map x ")] == []
    if "parallel" not in repr(program):  # threads call machine code only
        assert [trace.runner.fallbacks for trace in fast.every_trace()] == [0]
    _, (dx, ds) = expected
    along, h = np.sin(np.arange(X.size) + 1.0), 1e-6
    plain = nbta.function(program, compiled=False)
    ends = [plain(X + k * h * along, S + k * h * 0.7) for k in (1, -1)]
    slope = dx @ along + ds * 0.7
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * h), rtol=1e-5, atol=1e-6)


def test_random_programs():
    hold([2, 6, 11], depth=1)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 60, 15))
def test_many_random_programs(first):
    hold(range(first, first + 15), depth=1)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 130, 10))
def test_deeper_random_programs(first):
    hold(range(first, first + 10), depth=2)


def test_a_tape_that_is_read_again_in_vain_ends():
    """Compiling never ended, as tries to make a value again revived a read of another tape."""
    faulthandler.dump_traceback_later(120, exit=True)
    hold([0], depth=1)
    faulthandler.cancel_dump_traceback_later()


def pieces(x, lengths, size=3, **options):
    options = {"infer_shape": False, "dynamic_size": False} | options
    ta = nbta.TensorArray("float64", size, clear_after_read=False, **options)
    return ta.split(nbta.sin(x), lengths)


def joined(x, lengths, **options):
    value, lengths = pieces(x, lengths, **options).concat()
    return nbta.sum(value * value) * nbta.cast(nbta.sum(lengths * lengths), "float64")


@pytest.mark.parametrize(
    ("lengths", "options"),
    [
        ([1, 2, 3], {}),
        ([0, 6, 0], {}),
        ([2, 2, 2], {"infer_shape": True}),
        ([3, 3], {"size": 0, "dynamic_size": True}),
        ([2, 3, 2], {}),
        ([4, -1, 3], {}),
        ([3, 3], {}),
        ([1, 1, 1, 3], {}),
        ([1, 2, 3], {"infer_shape": True}),
        ([1, 2, 3], {"element_shape": (2,)}),
    ],
)
def test_lengths_of_pieces(lengths, options):
    """Both executors give the same, or refuse it for the same reason."""
    f = lambda x, lengths: joined(x, lengths, **options)  # noqa: E731
    slow, fast = (nbta.value_and_grad(f, compiled=k) for k in (False, True))
    x, lengths = np.linspace(-0.7, 1.1, 6), np.array(lengths)

    def outcome(run):
        try:
            return run(x, lengths)
        except nbta.NbtaError as error:
            return error.reason

    with in_python():
        expected, found = outcome(slow), outcome(fast)
    assert isinstance(expected, str) == isinstance(found, str)
    if isinstance(expected, str):
        assert found == expected
        return
    compare(found, expected)
    assert [trace.runner.fallbacks for trace in fast.every_trace()] == [0]
    assert section(fast.explain(), "operations that run in Python") == []


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int64"])
def test_pieces_of_other_dtypes(dtype):
    def f(x):
        ta = nbta.TensorArray(dtype, 2, infer_shape=False, element_shape=(None, 2))
        value, lengths = ta.split(x, [1, 2]).concat()
        return value * 2, lengths

    x = np.arange(6).reshape(3, 2).astype(dtype)
    with in_python():
        compare(nbta.function(f, compiled=True)(x), nbta.function(f, compiled=False)(x))


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_no_pieces(rows):
    """As many as there are rows, of arrays that know what they hold."""

    def f(x):
        ta = nbta.TensorArray(
            "float64", 0, dynamic_size=True, infer_shape=False, element_shape=(None, 2)
        )
        ta = ta.split(x, nbta.ones(nbta.shape(x)[:1], "int64"))
        value, lengths = ta.concat(element_shape_except0=(2,))
        return nbta.sum(nbta.sin(value)) + nbta.cast(nbta.sum(lengths), "float64")

    x = np.linspace(-1.0, 1.0, 2 * rows).reshape(rows, 2)
    slow, fast = (nbta.value_and_grad(f, compiled=k) for k in (False, True))
    with in_python():
        compare(fast(x), slow(x))
    assert [trace.runner.fallbacks for trace in fast.every_trace()] == [0]


def test_no_pieces_of_unknown_shape():
    def f(x):
        ta = nbta.TensorArray(
            "float64", 0, dynamic_size=True, infer_shape=False, element_shape=(None, 2)
        )
        return ta.split(x, nbta.ones(nbta.shape(x)[:1], "int64")).concat().value

    for compiled in (False, True):
        with in_python(), pytest.raises(nbta.UnimplementedError, match="nothing to concatenate"):
            nbta.function(f, compiled=compiled)(np.zeros((0, 2)))
