"""Programs that nbta refuses: where the error points to, what it names and what it advises."""

import heapq
import inspect
import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import typed, types


def name_of(function):
    """Name of its file."""
    return os.path.basename(inspect.getsourcefile(inspect.unwrap(function)))


def said(error):
    """The message of an error with its notes."""
    return "\n".join([str(error), *getattr(error, "__notes__", [])])


def lines_of(function, mark):
    """Numbers of the lines with a mark in them."""
    lines, first = inspect.getsourcelines(inspect.unwrap(function))
    return [first + k for k, line in enumerate(lines) if mark in line]


@dataclass(frozen=True)
class Case:
    """A program.

    Attributes
    ----------
    function : callable
        Lines that are to blame have the comment ``# here``.
    names : str
        Pattern of the variable or construct that the message must name.
    remedy : str
        Pattern of what it says to do.
    arguments : tuple
    within : callable
        Which function the line is in, where it is not this one.
    wrong : type or None
        What Python raises; None where it gives a number.
    """

    function: Callable
    names: str
    remedy: str
    arguments: tuple
    within: Callable
    wrong: type | None

    @property
    def places(self):
        """What the message may say where it is."""
        return [f"{name_of(self.within)}:{k}" for k in lines_of(self.within, "# here")]

    def __repr__(self):
        return self.function.__name__


CASES = []
X = np.linspace(0.2, 1.4, 12)


def case(names, remedy, *arguments, within=None, wrong=None):
    """Note the function below."""

    def noted(function):
        CASES.append(Case(function, names, remedy, arguments or (X,), within or function, wrong))
        return function

    return noted


def squares(x):  # here
    for v in x:
        _ = yield v * v  # here


def generator(x):
    s = 0.0
    for v in squares(x):
        s += v
    return s


case("squares|generator|yield", "list|append|array|loop", within=squares)(generator)


COUNT = 0.0


def global_that_is_written(x):
    global COUNT
    for v in x:
        COUNT = COUNT + v  # here
    return COUNT * 1.0


case("COUNT", "argument|return|pass|give it back")(global_that_is_written)


def depth_by_value(v):
    if v > 4.0:
        return v
    return depth_by_value(v * 1.5)  # here


def recursion(x):
    return depth_by_value(x[0])


case("depth_by_value", "loop|while", within=depth_by_value)(recursion)


def heap_of_tuples_that_grows(x):
    waiting = [(0.0, 0) for _ in range(0)]
    heapq.heapify(waiting)
    for i in range(len(x)):  # here
        heapq.heappush(waiting, (x[i], i))
    return waiting[0][0]


case("tuple", "a list of its own")(heap_of_tuples_that_grows)


def object_array(x):
    a = np.empty(3, dtype=object)  # here
    for i in range(3):
        a[i] = x[i]  # here
    return a[0] * a[1]


case("object", "float64|dtype|list")(object_array)


def along_memory(x):
    total = 0.0
    for v in np.nditer(x):  # here
        total += v * v
    return total


case("nditer", "array.flat")(along_memory)


def typed_dict(x):
    d = typed.Dict.empty(types.int64, types.float32)  # here
    for i in range(len(x)):
        d[i % 3] = np.float32(x[i])
    return d[0]


case("float32", "float64|array")(typed_dict)


def other_rank(x):
    s = 0.0
    for i in range(len(x)):  # here
        s = s + x * x[i]
    return s[0]


case("s", "start with")(other_rank)


def other_kind(x):
    s = 0.0
    for v in x:
        s = [v, s] if v > 0.5 else s  # here
    return s[0]


case("s|the value", "before the loop|keep|array")(other_kind)


def text_of_a_value(x):
    s = 0.0
    words = {"0.2": 1.0}
    for v in x:
        s += v * words.get(str(v), 2.0)  # here
    return s


case("str|v|text", "number|array|compare|print")(text_of_a_value)


def key_by_a_value(x):
    s = 0.0
    table = {0: 1.0, 1: 2.0}
    for v in x:
        table[int(v)] = 3.0  # here
        s += v * table[1]
    return s


case("table|dict", "array|if|list")(key_by_a_value)


def out_of_range(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * x[i + 1]  # here
    return s


case("x", "range|bounds|12", wrong=IndexError)(out_of_range)


def library_function(x):
    s = 0.0
    for v in x:
        s += np.interp(v, X, X**2, period=None) + float(np.format_float_positional(v))  # here
    return s


case("interp|format_float_positional", "nbta|opaque|concrete|argument")(library_function)


def mean_of_another_library(x):
    s = 0.0
    for i in range(len(x)):
        s += statistics.median_grouped([x[i], x[0]])  # here
    return s


case("median_grouped", "write it with other functions")(mean_of_another_library)


def one_object_of_two(x):
    box = Holder(x[0])
    if x[1] > 0:  # here
        box = Holder(x[1])  # here
    return box.value


class Holder:
    """An object of a class that nbta does not know."""

    def __init__(self, value):
        self.value = value


case("box", "attributes|register_structure")(one_object_of_two)
