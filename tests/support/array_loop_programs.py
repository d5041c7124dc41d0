"""Random ``@njit`` functions whose loops use arrays by several names: how they are drawn and run.

Each is text: a function of two arrays, which may be one, a gradient array, and a count. It writes,
appends, reads, looks, adds and gives arrays other names, in loops in loops, and calls functions
that do so. Python and compiled code must give the same, errors and what arrays hold among it.
"""

import random
import re

import numpy as np
from numba import njit

import nbta
from nbta.errors import NbtaError

#: Of arrays; ``a``, ``b`` and ``g`` are arguments, and the others are assigned in the function.
NAMES = ("a", "b", "c", "d")
NAMESPACE = {"np": np, "nbta": nbta}
CALLEES = """
def grow(x, v, n):
    for _ in range(n):
        x.append(v)


def last(x):
    return x[-1] if x.size() else x[0]


def dig(x, v, depth):
    if depth == 0:
        return 0
    for k in range(2):
        x.append(v)
        if k == 0:
            dig(x, v, depth - 1)
    return x.size()


def give(x, y, k):
    return x if k % 2 else y
"""


class Program:
    """The text of a function, by a seed; ``shape`` is that of elements."""

    def __init__(self, seed):
        self.random = random.Random(f"loops over arrays {seed}")
        self.shape = self.random.choice([(), (), (3,)])
        self.lines, self.counters = [], []
        self.add(1, "c = nbta.TensorArray(np.float64, dynamic_size=True, clear_after_read=False, ")
        self.lines[-1] += f"element_shape={self.shape}, tensor_array_name='subject')"
        self.add(1, "d = a")
        self.add(1, "t = 0.0")
        self.add(1, "w = np.zeros(3)" if self.shape else "w = 0.0")
        for _ in range(2):
            self.loop(1)
        self.add(1, "return t + d.size() + 1000.0 * c.size()")
        self.text = "def program(a, b, g, n):\n" + "\n".join(self.lines) + "\n"

    def add(self, depth, line):
        self.lines.append("    " * depth + line)

    def value(self):
        """What is written."""
        number = self.random.choice(["t", "0.5", "1.0 * n", *self.counters])
        return f"np.full(3, 0.25 * {number})" if self.shape else f"0.25 * {number}"

    def item(self, element):
        """A number, of an element."""
        return f"{element}[1]" if self.shape else element

    def name(self):
        return self.random.choice(NAMES)

    def slot(self, array):
        """An index that is most often that of a slot."""
        counter = self.random.choice(self.counters)
        return self.random.choice([f"{counter} % max({array}.size(), 1)"] * 5 + [counter, "0"])

    def loop(self, depth):
        """A loop with some statements."""
        counter = f"i{len(self.counters)}"
        array = self.name()
        kinds = [f"for {counter} in range(n):"] * 3
        kinds += [f"for {counter} in range(min({array}.size(), 7)):"]
        self.add(depth, self.random.choice(kinds))
        self.counters.append(counter)
        for _ in range(self.random.randint(2, 5)):
            self.statement(depth + 1)
        self.counters.pop()

    def statement(self, depth):
        """One of many kinds."""
        x, y, draw = self.name(), self.name(), self.random
        slot, value, counter = self.slot(x), self.value(), self.counters[-1]
        simple = {
            f"{x}.append({value})": 6,
            f"{x} = {x}.append({value})": 2,
            f"{x}.write({x}.size() + {draw.randint(0, 1)}, {value})": 4,
            f"{x}.write({slot}, {value})": 0.3,
            f"t += 0.5 * {self.item(f'{x}.read({slot})')}": 6,
            f"t += 0.5 * {self.item(f'{x}[{slot}]')}": 4,
            f"w = {x}[{slot}]": 2,
            f"w = g[{counter} % 9]": 1,
            f"t += 0.25 * {self.item('w')}": 3,
            f"t -= {self.item(f'last({x})')}": 1,
            f"g.accumulate({counter} % 9, {value})": 3,
            f"g.accumulate({counter}, {value})": 0.5,
            f"t += {self.item(f'g[{counter} % 9]')}": 1,
            f"grow({x}, {value}, {draw.choice([1, 3, 40])})": 1,
            f"t += dig({x}, {value}, 3)": 0.5,
            f"{x} = {y}": 1,
            f"{x}, {y} = {y}, {x}": 1,
            f"{x} = {x} if {counter} % 3 else {y}": 1,
            f"{x} = give({x}, {y}, {counter})": 1,
            f"({x}, {y})[1].append({value})": 1,
            f"[{x}, {y}][{counter} % 2].append({value})": 1,
            f"t += len({x})": 1,
            f"t += {x}.stack().sum()": 0.5,
            f"{x}.scatter([{x}.size(), {x}.size() + 2], np.full({(2, *self.shape)}, 0.5))": 0.5,
            f"if {counter} == 5: {x}.close()": 0.1,
            f"if t > 1e6: {draw.choice(['break', 'continue', 'return t'])}": 1,
            f"if {counter} == {draw.randint(3, 9)}: {draw.choice(['break', 'return t'])}": 0.3,
            f"if {x}.size() > {draw.randint(20, 300)}: raise ValueError('many')": 0.3,
        }
        kinds = [*simple, "loop", "branch", "elements", "new"]
        weights = [*simple.values(), 3 if len(self.counters) < 3 else 0, 2, 1, 0.5]
        (kind,) = draw.choices(kinds, weights)
        if kind == "loop":
            self.loop(depth)
        elif kind == "branch":
            self.add(depth, f"if {counter} % {draw.randint(2, 4)} == 1:")
            self.statement(depth + 1)
        elif kind == "elements":
            self.add(depth, f"for v in {x}:")
            self.add(depth + 1, f"t += 0.125 * {self.item('v')}")
            self.add(depth + 1, f"if {x}.size() % 5: {y}.append({value})")
            self.add(depth + 1, f"if {y}.size() > 60: break")
        elif kind == "new":
            self.add(depth, f"{x} = nbta.TensorArray(np.float64, dynamic_size=True,")
            self.add(depth, f"    element_shape={self.shape}, clear_after_read=False,")
            self.add(depth, "    tensor_array_name='subject')")
        else:
            self.guarded(depth, x, kind)

    def guarded(self, depth, array, line):
        """A statement, where the array has not become too long for it, nor is empty."""
        if any(word in line for word in ("append", ".write(", "scatter", "grow(", "dig(")):
            self.add(depth, f"if {array}.size() < 400:")
            depth += 1
        elif any(word in line for word in ("read", f"{array}[", "last")):
            self.add(depth, f"if {array}.size() > 0:")
            depth += 1
        self.add(depth, line)


def arguments(seed, shape):
    """Two arrays, which are one for some seeds, a gradient array of nine slots, and a count."""
    draw = random.Random(f"arguments {seed}")
    options = {"element_shape": shape, "clear_after_read": False, "tensor_array_name": "subject"}
    a, b = (nbta.TensorArray(np.float64, dynamic_size=True, **options) for _ in range(2))
    for array in (a, b):
        for k in range(draw.choice([0, 3, 5, 70])):
            array.append(np.full(shape, 1.0 + k))
    forward = nbta.TensorArray(np.float64, size=9, **options).unstack(np.ones((9, *shape)))
    g = forward.grad("program", clear_after_read=False)
    return a, draw.choice([a, b, b]), g, draw.choice([3, 12, 12])


def contents(array):
    """States and elements, as far as they can be looked at."""
    found = []
    for k in range(int(array.size())):
        try:
            found.append(np.asarray(array[k]).tolist())
        except NbtaError as error:
            found.append(type(error).__name__)
    return found


def outcome(function, given):
    """What a function gives or raises, and what its arrays hold then."""
    try:
        result = float(function(*given))
    except (NbtaError, ValueError) as error:
        result = f"{type(error).__name__}: {re.sub('subject_[0-9]+', 'subject', str(error))}"
    arrays = []
    for array in given[:3]:
        try:
            arrays.append(contents(array))
        except NbtaError as error:
            arrays.append(type(error).__name__)
    return result, arrays


def functions(text, **options):
    """The function that a text defines, as Python runs it and compiled."""
    found = []
    for compiled in (lambda function: function, njit):
        names = dict(NAMESPACE)
        exec(CALLEES, names)
        for callee in re.findall(r"^def (\w+)", CALLEES, re.MULTILINE):
            names[callee] = compiled(names[callee])
        exec(text, names)
        found.append(names["program"])
    return found[0], njit(**options)(found[1])
