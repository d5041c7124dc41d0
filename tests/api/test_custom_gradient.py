"""custom_gradient, and check_grads, which tells right gradients from wrong ones."""

import ctypes
import ctypes.util
import math
import re

import numpy as np
import pytest
from numba import cfunc, njit, typeof

import nbta

X = np.array([0.5, -1.0, 2.0])


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-12)


libm = ctypes.CDLL(ctypes.util.find_library("m"))
libm.sin.argtypes, libm.sin.restype = [ctypes.c_double], ctypes.c_double
libm.hypot.argtypes, libm.hypot.restype = [ctypes.c_double] * 2, ctypes.c_double


@cfunc("f8(f8)")
def decay(x):
    return math.exp(-x)


@njit
def turned(x):
    return np.sin(x)


FUNCTIONS = {
    "ctypes": (libm.sin, njit(lambda dy, x, y: dy * np.cos(x)), 1),
    "two numbers": (
        libm.hypot,
        njit(lambda dy, x, y, z: (dy * x / z, dy * y / z)),
        2,
    ),
    "cfunc": (decay, njit(lambda dy, x, y: -dy * y), 1),
    "njit": (turned, njit(lambda dy, x, y: dy * np.cos(x)), 1),
}


def clipped(backward=lambda dy, x, y: dy):
    return nbta.custom_gradient(lambda x: np.clip(x, -0.75, 0.75), backward=backward)


# Functions and their backward functions.


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_functions_in_machine_code_are_called_without_python(kind):
    forward, backward, count = FUNCTIONS[kind]
    f = nbta.custom_gradient(forward, backward)

    def loop(x):
        total = 0.5
        for i in range(len(x)):
            total = f(*[total + x[i]] * count) * 0.5 + x[i]
        return total

    x = np.linspace(0.2, 1.0, 9)
    nbta.testing.check_grads(loop, (x,), order=1, modes=("reverse",))
    vg = nbta.value_and_grad(loop, compiled=True)
    compiled = njit(lambda x: vg(x))
    found, expected = compiled(x), nbta.value_and_grad(loop, compiled=False)(x)
    close(found[0], expected[0])
    close(found[1], expected[1])
    before = sum(entry.asked for entry in typeof(vg).entries)
    compiled(x)
    assert sum(entry.asked for entry in typeof(vg).entries) == before


def test_a_backward_function_of_the_users():
    f = clipped()
    assert f(X).tolist() == [0.5, -0.75, 0.75]
    close(nbta.grad(lambda x: nbta.sum(3.0 * f(x)))(X), [3.0, 3.0, 3.0])

    @nbta.custom_gradient
    def g(x):
        return x * 2.0

    @g.backward
    def halved(dy, x, y):
        np.testing.assert_array_equal(y, x * 2.0)
        return dy * 0.5

    assert callable(halved)
    close(nbta.grad(lambda x: nbta.sum(g(x) * x))(X), 0.5 * X + 2.0 * X)


def test_compiled_functions():
    @njit
    def forward(x):
        result = np.empty_like(x)
        for i in range(len(x)):
            result[i] = np.sin(x[i])
        return result

    @njit
    def backward(dy, x, y):
        return dy * np.cos(x)

    f = nbta.custom_gradient(forward, backward=backward)
    close(f(X), np.sin(X))
    close(nbta.function(f)(X), np.sin(X))
    close(nbta.grad(lambda x: nbta.sum(f(x)))(X), np.cos(X))
    nbta.testing.check_grads(f, (X,), order=1, modes=("reverse",))
    assert len(forward.signatures) == 1


def test_compiled_functions_of_scalars():
    f = nbta.custom_gradient(njit(lambda x: x * x if x > 0 else -x))
    f.backward(njit(lambda dy, x, y: dy * (2.0 * x if x > 0 else -1.0)))
    assert [f(3.0), nbta.function(f)(3.0), f(-3.0)] == [9.0, 9.0, 3.0]
    assert [nbta.grad(f)(3.0), nbta.grad(f)(-3.0)] == [6.0, -1.0]


def two_results():
    def forward(x, n):
        return x * x, x**n, np.int64(n + 1)

    def backward(dsquare, dpower, dnumber, x, n, square, power, number):
        assert number == n + 1
        assert dnumber == 0
        return dsquare * 2 * x + dpower * n * x ** (n - 1), None

    return nbta.custom_gradient(
        forward, backward=backward, result=lambda x, n: (x, x, nbta.Spec(np.dtype(np.int64), ()))
    )


def test_several_results_and_an_integer():
    f = two_results()
    square, power, number = f(X, 3)
    close(square, X**2)
    close(power, X**3)
    assert number == 4
    close(nbta.grad(lambda x: nbta.sum(f(x, 3)[0]))(X), 2 * X)
    close(nbta.grad(lambda x: nbta.sum(f(x, 3)[1] * f(x, 3)[0]))(X), 5 * X**4)
    close(nbta.grad(lambda x: nbta.sum(f(x, 3)[2] * x))(X), [4, 4, 4])
    nbta.testing.check_grads(lambda x: f(x, 2)[:2], (X,), order=1, modes=("reverse",))


def test_an_integer_before_a_float():
    f = nbta.custom_gradient(
        lambda n, x: x * n, backward=lambda dy, n, x, y: (None, dy * n), result=lambda n, x: x
    )
    close(nbta.grad(lambda x: nbta.sum(f(3, x)))(X), [3, 3, 3])


def test_a_result_of_another_shape():
    def result(x):
        return nbta.Spec(x.dtype, (*x.shape, 2))

    f = nbta.custom_gradient(
        lambda x: np.stack([x, x * x], -1),
        backward=lambda dy, x, y: dy[..., 0] + dy[..., 1] * 2 * x,
        result=result,
    )
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", (None, 3), name="x")
        assert f(x).shape == (None, 3, 2)
    nbta.testing.check_grads(f, (X,), order=1, modes=("reverse",))


def test_in_loops_and_branches():
    sine = nbta.custom_gradient(np.sin, backward=lambda dy, x, y: dy * np.cos(x))

    def f(x):
        _, last = nbta.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, sine(x) + x), (0, x))
        return nbta.cond(last[0] > 0, lambda: nbta.sum(sine(last)), lambda: nbta.sum(last))

    for x in (X, -X):
        nbta.testing.check_grads(f, (x,), order=1, modes=("reverse",))


def test_names_in_the_graph():
    with nbta.Graph().as_default():
        f = clipped()
        tensor = f(nbta.constant(1.0))
        assert (tensor.op.type, tensor.op.name) == ("Custom", "lambda_")
        assert f(nbta.constant(1.0), name="cut").op.name == "cut"


def test_the_backward_function_by_place_or_by_name():
    backward = lambda dy, x, y: dy * np.cos(x)  # noqa: E731
    for f in (
        nbta.custom_gradient(np.sin, backward),
        nbta.custom_gradient(backward=backward)(np.sin),
    ):
        close(nbta.grad(lambda x, f=f: nbta.sum(f(x)))(X), np.cos(X))


def test_second_derivatives_through_a_custom_backward():
    slope = nbta.custom_gradient(lambda dy, x, y: dy * np.cos(x), result=lambda dy, x, y: x)
    f = nbta.custom_gradient(np.sin, backward=slope)
    close(nbta.grad(f)(0.5), np.cos(0.5))
    slope.backward(lambda ddx, dy, x, y, dx: (ddx * np.cos(x), -ddx * dy * np.sin(x), 0.0 * y))
    close(nbta.grad(nbta.grad(f))(0.5), -np.sin(0.5))
    close(nbta.hvp(lambda x: nbta.sum(f(x)), X, np.ones(3)), -np.sin(X))
    close(nbta.jvp(f, X, np.ones(3))[1], np.cos(X))
    nbta.testing.check_grads(f, (X,), modes=("reverse",))
    nbta.testing.check_grads(f, (X,), order=1)


# Mistakes.


def failing(action, *words, error=nbta.InvalidArgumentError):
    with pytest.raises(error) as caught:
        action()
    for word in words:
        assert word in str(caught.value)
    return caught.value


def test_no_backward_function():
    @nbta.custom_gradient
    def forward_only(x):
        return x

    failing(
        lambda: nbta.grad(forward_only)(1.0),
        "'forward_only': forward_only has no backward function",
        "@forward_only.backward",
        error=nbta.UnimplementedError,
    )
    assert nbta.grad(lambda x: x + nbta.stop_gradient(forward_only(x)))(1.0) == 1.0


def test_a_plain_backward_function_is_not_differentiated():
    f = clipped()
    words = (
        "the backward function of <lambda> is not an operation itself",
        "with custom_gradient too",
    )
    failing(lambda: nbta.grad(nbta.grad(f))(1.0), *words, error=nbta.UnimplementedError)
    failing(lambda: nbta.jvp(f, 1.0, 1.0), *words, error=nbta.UnimplementedError)


FORWARD_MISTAKES = {
    "gave float32 (), and float64 () was announced, like the first argument": lambda x: np.float32(
        x
    ),
    "gave float64 (2,), and float64 () was announced": lambda x: np.stack([x, x]),
    "gave 2 results, and 1 were announced; say with result=": lambda x: (x, x),
    "gave None, and float64 () was announced": lambda x: None,
}


@pytest.mark.parametrize("words", FORWARD_MISTAKES)
def test_results_that_were_not_announced(words):
    f = nbta.custom_gradient(FORWARD_MISTAKES[words])
    failing(lambda: f(1.0), f"<lambda> {words}")
    failing(lambda: nbta.function(f)(1.0), f"<lambda> {words}", "'lambda_', Custom")


BACKWARD_MISTAKES = {
    "gave 2 gradients, and <lambda> has 1 arguments; give one for each": lambda dy, x, y: (dy, dy),
    "gave float64 (3,) for argument 0 of <lambda>, which is float64 ()": lambda dy, x, y: np.ones(
        3
    ),
    "gave float32 () for argument 0": lambda dy, x, y: np.float32(dy),
    "gave None for argument 0 of <lambda>": lambda dy, x, y: None,
}


@pytest.mark.parametrize("words", BACKWARD_MISTAKES)
def test_gradients_unlike_their_arguments(words):
    f = clipped(BACKWARD_MISTAKES[words])
    failing(lambda: nbta.grad(f)(1.0), f"<lambda>_backward {words}", "_backward', Custom")


def test_gradients_of_a_custom_backward_unlike_their_arguments():
    wide = nbta.custom_gradient(lambda dy, x, y: dy, result=lambda *s: nbta.Spec(s[0].dtype, (7,)))
    several = nbta.custom_gradient(lambda dy, x, y: (dy, dy), result=lambda *specs: specs[:2])
    for backward, words in (
        (wide, "announces float64 (7,) for argument 0 of <lambda>, which is float64 ()"),
        (several, "announces 2 gradients, and <lambda> has 1 arguments of floats"),
    ):
        failing(lambda b=backward: nbta.grad(clipped(b))(1.0), words)


@pytest.mark.parametrize("result", ["abc", None, np.float64, (1, 2)])
def test_a_result_that_is_no_spec(result):
    f = nbta.custom_gradient(lambda x: x, result=lambda x: result)
    failing(lambda: f(1.0), "result= of <lambda> must give a Spec or a tuple of Spec", repr(result))


def test_a_function_without_arguments():
    with nbta.Graph().as_default():
        f = nbta.custom_gradient(lambda: np.ones(2))
        failing(f, "'lambda_'", "no arguments; say what it gives with result=")
        f = nbta.custom_gradient(
            lambda: np.ones(2), result=lambda: nbta.Spec(np.dtype(float), (2,))
        )
        assert nbta.Session().run(f()).tolist() == [1, 1]


def test_arguments_are_read_only():
    @nbta.custom_gradient
    def greedy(x):
        x[0] = 9.0
        return x

    given = X.copy()
    for call in (greedy, nbta.function(greedy)):
        with pytest.raises(ValueError):  # noqa: PT011 - its words are NumPy's
            call(given)
    assert given.tolist() == X.tolist()


class OwnError(Exception):
    pass


@pytest.mark.parametrize("kind", [OwnError, ValueError, IndexError, KeyError, MemoryError])
def test_an_error_of_the_users_keeps_its_class(kind):
    @nbta.custom_gradient
    def picky(x):
        if x > 2:
            raise kind("mine", 3)
        return x

    loop = lambda x: nbta.while_loop(  # noqa: E731
        lambda i, x: i < 5, lambda i, x: (i + 1, picky(x) + 1.0), (0, x), name="loop"
    )
    branch = lambda x: nbta.cond(x > 0, lambda: picky(x), lambda: x, name="pick")  # noqa: E731
    places = {
        picky: ["(operation 'picky', Custom)"],
        loop: ["(operation 'loop/body/picky', Custom)", "(iteration 2 of the loop 'loop')"],
        branch: ["(operation 'pick/true_fn/picky', Custom)"],
    }
    for f, notes in places.items():
        with pytest.raises(kind) as caught:
            nbta.function(f)(3.0 if f is not loop else 0.5)
        assert type(caught.value) is kind
        assert caught.value.args == ("mine", 3)
        assert caught.value.__notes__ == notes
    with pytest.raises(kind):
        picky(3.0)


def test_an_error_in_a_backward_function():
    def backward(dy, x, y):
        raise OwnError("mine")

    with pytest.raises(OwnError) as caught:
        nbta.grad(clipped(backward))(1.0)
    assert re.fullmatch(r"\(operation 'gradients/.*_backward', Custom\)", caught.value.__notes__[0])


def test_an_error_in_a_compiled_function():
    @njit
    def division(x):
        return 1 // int(x)

    with pytest.raises(ZeroDivisionError) as caught:
        nbta.function(
            nbta.custom_gradient(division, result=lambda x: nbta.Spec(np.dtype("i8"), ()))
        )(0.0)
    assert caught.value.__notes__ == ["(operation 'division', Custom)"]


# check_grads accepts what is right.


def test_right_gradients_are_accepted():
    def f(p, n, z):
        w = nbta.tanh(p["w"]) * nbta.cast(n, "float64")
        return {"a": nbta.matmul(w[None], p["m"]), "b": nbta.sum(nbta.real(z * z)) * w[0], "n": n}

    args = ({"w": X, "m": np.arange(6.0).reshape(3, 2)}, np.array([1, 2, 3]), np.array([1 + 2j]))
    nbta.testing.check_grads(f, args)
    nbta.testing.check_grads(nbta.sin, (np.float32(0.5),), order=3)
    nbta.testing.check_grads(lambda x: x * 1e6, (np.array([1e-3, 1e3]),))
    nbta.testing.check_grads(lambda x: x * x, (np.zeros((0, 2)),))


# And rejects what is wrong.


def planted(factor=1.0, second=1.0):
    """x * x, whose first and second derivative are multiplied with something."""

    def backward(dy, x, y):
        return dy * 2.0 * x * factor

    def backward_of_backward(ddx, dy, x, y, dx):
        return ddx * 2.0 * x * factor, ddx * 2.0 * dy * factor * second, np.zeros_like(y)

    slope = nbta.custom_gradient(backward, backward=backward_of_backward, result=lambda dy, x, y: x)
    return nbta.custom_gradient(np.square, backward=slope)


def rejected(f, *args, order=2, modes=("reverse",)):
    with pytest.raises(AssertionError) as caught:
        nbta.testing.check_grads(f, args, order=order, modes=modes)
    return str(caught.value)


def test_the_planted_function_is_right_without_a_mistake():
    nbta.testing.check_grads(planted(), (X,), modes=("reverse",))
    nbta.testing.check_grads(planted(), (X,), order=1)


ONE_ELEMENT = np.array([1.0, 1.0, 1.00001])
PLANTED = {
    "a factor": (1.01, "at (0,)", "3 of 3"),
    "a small factor": (1.00001, "at (0,)", "3 of 3"),
    "the sign": (-1.0, "at (0,)", "3 of 3"),
    "one element": (ONE_ELEMENT, "at (2,)", "1 of 3"),
    "nothing": (0.0, "at (0,)", "3 of 3"),
    "the order": (X[::-1] / X, "at (0,)", "2 of 3"),
    "not a number": (np.array([1.0, np.nan, 1.0]), "at (1,)", "1 of 3"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_gradient_is_found(name):
    factor, place, count = PLANTED[name]
    f = planted(factor)
    message = rejected(lambda a, p: f(p["w"]) * a, 1.5, {"w": X}, order=1)
    assert message.startswith(f"reverse gradient of args[1]['w'] {place}: np.float64(")
    assert "and central differences give np.float64(" in message
    assert f"({count} elements differ)" in message


@pytest.mark.parametrize("second", [-1.0, 0.0, 1.001, ONE_ELEMENT**100])
def test_a_wrong_second_derivative_is_found(second):
    f = planted(second=second)
    nbta.testing.check_grads(f, (X,), order=1)
    message = rejected(f, X)
    assert message.startswith("reverse gradient of args[0] at (")


def test_a_wrong_gradient_is_found_forwards():
    message = rejected(planted(1.01), X, order=1, modes=("forward",))
    assert message.startswith("forward gradient of args along a direction at ():")


def test_a_missing_term_is_found():
    f = nbta.custom_gradient(
        lambda x, w: x * w + w * w, backward=lambda dy, x, w, y: (dy * w, dy * x)
    )
    message = rejected(f, X, np.ones(3), order=1)
    assert message.startswith("reverse gradient of args[1] at (0,)")


def test_a_gradient_that_is_cut_off_is_found():
    message = rejected(lambda x: nbta.sum(x * nbta.stop_gradient(x)), X)
    assert "args[0]" in message
    assert "reverse gradient" in rejected(lambda x: nbta.sin(nbta.stop_gradient(x)), X, order=1)


def test_a_wrong_complex_gradient_is_found():
    z = np.array([1 + 2j, 3 - 1j])
    right = nbta.custom_gradient(np.square, backward=lambda dy, z, y: dy * np.conj(2 * z))
    wrong = nbta.custom_gradient(np.square, backward=lambda dy, z, y: dy * 2 * z)
    nbta.testing.check_grads(right, (z,), order=1, modes=("reverse",))
    assert "np.complex128(" in rejected(wrong, z, order=1)
