"""Integers as Numba has them in its functions, and Python's, which have no end, in others."""

import itertools
import linecache
import operator
import random

import numpy as np
import pytest
from numba import njit

import nbta

DTYPES = ["bool", "int8", "uint8", "int32", "uint32", "int64", "uint64"]


@njit
def operators(a, b):
    p, q = a[0], b[0]
    return (
        1.0 * (p + q),
        1.0 * (p - q),
        1.0 * (p * q),
        1.0 * (p / q),
        1.0 * (p // q),
        1.0 * (p % q),
        1.0 * (p & q),
        1.0 * (p | q),
        1.0 * (p ^ q),
        1.0 * (p << 3),
        1.0 * (p >> 1),
    )


@njit
def signs(a):
    p = a[0]
    return float(-p), float(~p), float(+p)


@njit
def sums(a, k):
    total = 0
    for v in a:
        total += v - k
    return float(total)


@pytest.mark.parametrize(("one", "other"), [*itertools.product(DTYPES, DTYPES)])
@pytest.mark.slow_but_every(6)
def test_operators_are_numbas(one, other):
    a = np.array([100]).astype(one)
    for divisor in (7, 3):
        b = np.array([divisor]).astype(other)
        expected = operators(a, b)
        for compiled in (False, True):
            found = nbta.function(operators, compiled=compiled)(a, b)
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_signs_and_sums_are_numbas(dtype):
    a = np.array([100, 3, 120], dtype)
    for compiled in (False, True):
        found = nbta.function(signs, compiled=compiled)(a)
        np.testing.assert_array_equal(found, signs(a))
        found = nbta.function(sums, compiled=compiled)(a, a[0])
        assert found == sums(a, a[0])


@njit
def of_pixels(image, x):
    total = 0.0
    for i in range(1, len(image)):
        total += (image[i] - image[i - 1]) * x
    return total


def test_differences_of_pixels_do_not_wrap_in_numbas_functions():
    image = np.array([200, 3, 250, 7], np.uint8)
    value, slope = nbta.value_and_grad(of_pixels, argnums=1)(image, 0.5)
    assert value == of_pixels(image, 0.5)
    assert slope == 2 * value
    assert value != nbta.function(of_pixels.py_func)(image, 0.5)  # where they do, as NumPy's


@njit
def shifted(image, x):
    return np.sum((image + 100) * x)


def test_an_array_does_not_give_its_dtype_to_a_number():
    image = np.array([200, 3], np.uint8)
    assert nbta.function(shifted)(image, 0.5) == shifted(image, 0.5) == 201.5


def counters(a):
    """Counters, sums that begin with 0, choices among them, and integers of Python's otherwise."""
    total, count, whole, top, most, row = 0, 0, 0, 1000, 0, 0 * a
    for i, v in enumerate(a):
        whole += int(v)
        if v > 50:
            count += 1
        if v == 7:
            continue
        for j in range(i, -1, -2):
            total = total + a[j] * j - count
        top, most = v if v < top else top, max(most, v)
        row = np.maximum(row, i) + a * (whole % 3)
    i = 0
    while i < len(a):
        total += a[i] * i
        i += 2
    parts = sum(a), sum(v * i for i, v in enumerate(a))
    return total, count, whole, row, a[0] - most, parts[0], parts[1], top * 1.0


@pytest.mark.parametrize("dtype", ["uint8", "uint64"])
def test_pythons_integers_take_the_dtype_of_numpys(dtype):
    a = np.array([100, 120, 90, 7, 100]).astype(dtype)
    with np.errstate(over="ignore"):
        expected = counters(a)
    for compiled in (False, True):
        found = nbta.function(counters, compiled=compiled)(a)
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == np.asarray(other).dtype
            np.testing.assert_array_equal(one, other)


def beside_narrow_dtypes(a, f, n):
    """A counter in functions and operators with integers and floats of few bits."""
    i = 0
    while i < n:
        i += 1
    mask = a > 20
    return (
        np.where(mask, a, i), np.clip(a, 0, i), a.clip(i, 1000), np.hypot(a, i), divmod(a, i)[0],
        np.gcd(a, i), np.select([mask], [a], i), a + abs(-i), np.r_[a, i], np.r_[a, 7],
        a * pow(i, 2), a + max(i, 3) * len(a), i / f, f**i, sum(f, i), np.where(mask, f, i),
    )  # fmt: skip


def test_counters_take_narrow_dtypes():
    args = np.array([1, 2, 250], np.uint8), np.array([0.5, 2.0, -3.0], np.float32), 3
    with np.errstate(over="ignore"):
        expected = beside_narrow_dtypes(*args)
    for compiled in (False, True):
        found = nbta.function(beside_narrow_dtypes, compiled=compiled)(*args)
        for place, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert one.dtype == np.asarray(other).dtype, place
            np.testing.assert_allclose(one, other, 1e-3 if one.dtype == np.float16 else 1e-6)


def put(a, i):
    np.put(a, [0], i)


def put_whole(a, i):
    a[:] = i


STORING = [
    put, put_whole, lambda a, i: a.__setitem__(0, -i), lambda a, i: a.__setitem__(i % 3, i),
    lambda a, i: a.__setitem__(slice(1, 3), [1, i]), operator.iadd,
    lambda a, i: a.fill(i), lambda a, i: a.__setitem__(slice(None), np.full(3, i, np.uint8)),
    lambda a, i: a.__setitem__(0, np.uint8(i)), lambda a, i: a.__setitem__(0, a[0] | i),
    lambda a, i: a.__setitem__(slice(2), np.array([i, 1], np.uint8)),
    lambda a, i: a.__setitem__(slice(None), np.insert(a, 0, i)[:3]),
]  # fmt: skip


def stored(a, n, known):
    i = 0
    while i < n:
        i += 1
    STORING[known](a, i)
    return a * 1


@pytest.mark.parametrize("known", range(len(STORING)))
def test_an_item_that_does_not_fit_is_an_error(known):
    a = np.array([1, 2, 100], np.uint8)
    function = nbta.function(stored, compiled=False, static_argnums=2)
    with pytest.raises(OverflowError):
        stored(a.copy(), 300, known)
    with pytest.raises(OverflowError):
        function(a.copy(), 300, known)


@njit
def widened(a):
    total = 0
    for i, v in enumerate(a):
        total += v * i
    return total


def test_counters_are_as_wide_in_numbas_functions():
    a = np.array([100, 120, 90], np.uint8)
    assert nbta.function(widened)(a) == widened(a) == 300


def scaled(a, n):
    last, part = a[0], 0.0
    for i in range(n):
        last = a[0] * i
        part += a[0] / (i + 200)  # of floats, which fit
    return last


def lowered(a, n):
    last, k = a[0], 0
    for _ in range(n):
        last, k = a[0] + k, k - 1
    return last


@pytest.mark.parametrize(("program", "most"), [(scaled, 257), (lowered, 2)])
def test_a_pythons_integer_that_does_not_fit_is_an_error(program, most):
    a = np.array([1], np.uint8)
    expected = program(a, most - 1)
    for compiled in (False, True):
        function = nbta.function(program, compiled=compiled)
        assert function(a, most - 1) == expected
        with pytest.raises(OverflowError, match="does not fit uint8"):
            function(a, most)


def chosen(a, n):
    kept = -1
    for v in a:
        if v > n:
            kept = v
    return kept, a[0] if a[0] > n else -1


def test_a_number_does_not_wrap_where_a_choice_gives_it():
    for compiled in (False, True):
        function = nbta.function(chosen, compiled=compiled)
        assert function(np.array([3, 7], np.uint8), np.uint8(9)) == (-1, -1)
        assert function(np.array([3, 7], np.uint8), np.uint8(2)) == (7, 3)


@njit
def negative_power(n, x):
    k = -1
    return n**k * x


@njit
def too_many_bits(x):
    p = 1
    for _ in range(5):
        p *= 10**5
    return p * x


@njit
def cut_off(x):
    b = [0, 1, 2]
    b[1] = x * 3
    return b[1] * x


@njit
def cut_off_in_an_array(x):
    b = [0 for _ in range(100)]
    for i in range(100):
        b[i] = x * i
    return float(sum(b))


@pytest.mark.parametrize(
    ("f", "arguments", "message"),
    [
        (negative_power, (3, 2.0), "negative exponent"),
        (too_many_bits, (2.0,), "more than 64 bits"),
        (cut_off, (0.5,), "floats is assigned to an item of a list of integers"),
        (cut_off_in_an_array, (0.5,), "floats is assigned to an item of a list of integers"),
    ],
)
def test_other_numbers_than_the_code_says_are_refused(f, arguments, message):
    assert f(*arguments) != f.py_func(*arguments)
    with pytest.raises(nbta.errors.UnimplementedError, match=message) as told:
        nbta.function(f)(*arguments)
    assert "test_integers_of_languages.py" in str(told.value)


@njit
def constants(x):
    return x * (10**-2 + 2 ** (-1) + 7 // -2 + (1 << 63) % 10)


def test_constants_are_computed_by_python():
    assert nbta.function(constants)(2.0) == constants(2.0)


# Python's.


def factorials(x):
    fact, total = 1, 0.0
    for i in range(len(x)):
        fact *= i + 1
        total += x[i] ** 2 / fact
    return total


def fibonacci(x):
    a, b, total = 0, 1, 0.0
    for v in x:
        total += v**2 * a
        a, b = b, a + b
    return total


def differences(x):
    a, b, total = 0, 1, 0.0
    for v in x:
        total += v**2 * a
        a, b = b, a - b * 2
    return total


def through_a_float(x):
    n, total = 3, 0.0
    for v in x:
        total += v / n
        n = int((n * n + 7) * 0.9)
    return total


def doubled(x):
    b, total = 1, 0.0
    for v in x:
        total += v**2 / b
        b <<= 1
    return total


def in_a_while(x):
    i, k, total = 0, 1, 0.0
    while i < len(x):
        k = (k + 1) * 3
        total += x[i] * k
        i += 1
    return total


def in_two_loops(x):
    f, total = 1, 0.0
    for v in x:
        for _ in range(9):
            f *= 3
        total += v / f
    return total


def squared(x):
    f, total = 2, 0.0
    for k in range(len(x)):
        if k % 10 == 9:
            f = f**2
        total += x[k] / f
    return total


def of_numpy(x):
    """Compiled code takes products that wrap to be undefined: `% 5` of these was 0."""
    h, total = np.int64(3), 0.0
    for v in x:
        h = h * np.int64(15)
        total += v * (h % 7)
    return total


@pytest.mark.parametrize(
    ("f", "most", "over"),
    [
        (factorials, 20, 22),
        (fibonacci, 90, 95),
        (differences, 45, 60),
        (through_a_float, 5, 7),
        (doubled, 62, 64),
        (in_a_while, 36, 42),
        (in_two_loops, 4, 5),
        (squared, 59, 60),
        (of_numpy, 15, 17),
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_an_integer_that_outgrows_the_graph_is_an_error(f, most, over, compiled):
    """Both graphs and Python have those of 64 bits; larger ones must be no other number."""
    gradient = nbta.value_and_grad(f, compiled=compiled)
    x = np.linspace(0.5, 1.0, most)
    assert gradient(x)[0] == pytest.approx(f(x))
    with pytest.raises(nbta.errors.InvalidArgumentError, match="more than 64 bits") as told:
        gradient(np.linspace(0.5, 1.0, over))
    assert "test_integers_of_languages.py" in str(told.value)


def counted(x):
    """Sums of counters, products that are indices, and remainders stay small."""
    n, i, t, h, total = len(x) // 4, 0, 0, 1, 0.0
    while i < 4:
        j = 0
        while j < n:
            t += i * j
            h = (h * 1103515245 + 12345) % 2**31
            total += x[i * n + j] ** 2 * (t + h % 7)
            j += 1
        i += 1
    return total


def float_products(x):
    """What is an item by an integer of a loop, or a float of it, is as large as it is."""
    y, p, n, total = np.ones(4), 0, 1, 0.0
    for j in range(4):
        for i in range(3):
            y[i] += x[p] * x[j] * 1e20
            total += p * x[j] * 1e20
            p += 2
        n = int(n * 1e30 % 7) + 1
    return total + np.sum(y * y) * n


def wrapping(x):
    """NumPy's integers wrap."""
    h, total = np.uint64(3), 0.0
    for v in x:
        h = h * np.uint64(12345)
        total += v**2 * (h % np.uint64(7))
    return total


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("f", [counted, float_products, wrapping])
@pytest.mark.parametrize("compiled", [False, True])
def test_others_are_as_they_were(f, compiled):
    x = np.linspace(0.5, 1.0, 40)
    assert nbta.value_and_grad(f, compiled=compiled)(x)[0] == pytest.approx(f(x))


class Writer:
    """Writes loops over integers of Python's, which may grow beyond those of graphs."""

    def __init__(self, seed):
        self._random = random.Random(seed)
        self._lines = ["def program(x):", "    a, b, c, total = 1, 2, 3, 0.0"]
        self._loops = 0

    def program(self):
        """The function."""
        self._loop(1)
        text = "\n".join(
            [*self._lines, "    return total + x[0] ** 2 * (a % 1001 + b % 7 - c % 13)"]
        )
        name, names = f"<integers of {id(self)}>", {}
        linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
        exec(compile(text, name, "exec"), names)
        return names["program"], text

    def _loop(self, depth):
        self._loops += 1
        count = self._random.choice([9, 12, 30])
        self._add(depth, f"for i{depth} in range({count}):")
        for _ in range(self._random.randint(1, 3)):
            self._statement(depth + 1)
        self._add(depth + 1, "total += x[1] * (a % 5 + b % 3)")

    def _statement(self, depth):
        kind = self._random.random()
        if kind < 0.2 and depth < 3 and self._loops < 3:
            return self._loop(depth)
        if kind < 0.45:
            test = self._random.choice([f"i{depth - 1 if depth < 3 else 1} % 3 == 1", "x[2] > 0.5"])
            self._add(depth, f"if {test}:")
            depth += 1
        return self._add(depth, self._assignment())

    def _assignment(self):
        name, one, other = (self._random.choice("abc") for _ in range(3))
        number = self._random.choice([1, 2, 3, 7, 1000003])
        if self._random.random() < 0.15:
            return f"total += x[{one} % 3] * {other} * 1e20"
        texts = ["{0} * {2}", "{0} + {1}", "{0} * {1} % 1009", "{0} // {2} + {1}", "{0} << 2",
                 "{0} - {1} * {2}", "{0} ** 2 % 10007", "{0} + {2}", "{1} * {1}", "{0} - {1}",
                 "int({0} * 0.5) + {1}", "int({0} * 1e20 % 7) + {2}"]  # fmt: skip
        return f"{name} = " + self._random.choice(texts).format(one, other, number)

    def _add(self, depth, line):
        self._lines.append("    " * depth + line)


class Seen(int):
    """An integer whose results say how large they were."""

    largest = 0


def _seen(name):
    def compute(self, *others):
        found = getattr(int, name)(self, *others)
        if found is NotImplemented:  # of a float
            found = getattr(float, name)(float(self), *others)
        if not isinstance(found, int):
            return found
        Seen.largest = max(Seen.largest, abs(found))
        if found.bit_length() > 2000:
            raise OverflowError
        return Seen(found)

    return compute


for _name in ("add", "sub", "mul", "floordiv", "mod", "lshift", "pow"):
    setattr(Seen, f"__{_name}__", _seen(f"__{_name}__"))


def largest(text):
    """The largest integer that a program of a `Writer` makes, by Python."""
    names, Seen.largest = {"Seen": Seen, "int": Seen}, 0
    exec(text.replace("1, 2, 3, 0.0", "Seen(1), Seen(2), Seen(3), 0.0"), names)
    try:
        names["program"]([0.3, 0.7, 0.6])
    except OverflowError:  # also of a float
        return float("inf")
    return Seen.largest


@pytest.mark.parametrize("seed", range(48))
@pytest.mark.slow_but_every(6)
def test_random_integers_are_pythons_or_an_error(seed):
    program, text = Writer(seed).program()
    x, most = np.array([0.3, 0.7, 0.6]), largest(text)
    for compiled in (False, True):
        try:
            found = nbta.value_and_grad(program, compiled=compiled)(x)[0]
        except nbta.errors.InvalidArgumentError as refusal:
            found = str(refusal)
        if isinstance(found, str):
            assert "more than 64 bits" in found or "too large for int64" in found, text
            assert most > 0.99 * 2**63, f"{found}\n{text}"
        else:
            assert most < float("inf"), text
            assert found == pytest.approx(program([0.3, 0.7, 0.6]), rel=1e-9), text
