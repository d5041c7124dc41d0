"""Random programs of operations on arrays that are mostly allowed, by the state of a model."""

import random

from model import MAX_RANK, ModelArray
from random_values import DTYPES

from .raw import LOOKS, WRITES, Op, Program, Value, as_value, attempt

SOURCES = ("gradients", "gradients_1", "deep/gradients")
DIMENSIONS = (0, 1, 1, 2, 3)
MOST_ARRAYS = 10


class Maker:
    """Draws operations that are mostly allowed, by the state of a model."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.arrays, self.ops = [], []
        self.names = [str(d) for d in self.random.sample(DTYPES, 3)] + ["float64"]

    def shape(self):
        return tuple(
            self.random.choice(DIMENSIONS) for _ in range(self.random.choice((0, 0, 1, 2, 3)))
        )

    def pattern(self, shape):
        hidden = tuple(n if self.random.random() < 0.7 else None for n in shape)
        return self.random.choice([None, shape, shape, hidden])

    def value(self, array, shape):
        dtype = array.dtype.name if array.dtype.name == "bfloat16" else str(array.dtype)
        if self.random.random() < 0.03:
            dtype = self.random.choice(self.names)
        return Value(dtype, tuple(shape), self.random.randrange(1 << 16))

    def fitting(self, array):
        """Mostly a shape that an array takes."""
        if self.random.random() < 0.06:
            return self.random.choice([self.shape(), (1,) * (MAX_RANK - 1)])
        if array.element_shape is None:
            return self.shape()
        return tuple(
            self.random.choice(DIMENSIONS) if n is None else n for n in array.element_shape
        )

    def slot_shape(self, array, index):
        slot = array.slots[index] if 0 <= index < len(array.slots) else None
        if (
            slot is not None
            and slot.written
            and slot.shape is not None
            and self.random.random() < 0.9
        ):
            return slot.shape
        return self.fitting(array)

    def slot(self, array, good):
        """Mostly a slot for which something holds."""
        suitable = [k for k, slot in enumerate(array.slots) if good(slot)]
        if suitable and self.random.random() < 0.9:
            return self.random.choice(suitable)
        return self.random.choice([len(array.slots), self.random.randint(-1, len(array.slots) + 2)])

    def slots(self, array):
        count = self.random.randint(0, 4)
        reads = lambda slot: slot.written and not slot.cleared  # noqa: E731
        return tuple(self.slot(array, reads) for _ in range(count))

    def create(self):
        shape, flag = self.shape(), lambda: self.random.random() < 0.5
        options = {
            "dynamic_size": flag(), "clear_after_read": flag(), "infer_shape": flag(),
            "element_shape": self.pattern(shape),
        }  # fmt: skip
        size = self.random.randint(0, 4)
        return Op("create", None, (self.random.choice(self.names), size), tuple(options.items()))

    def draw(self):
        """The next operation."""
        if not self.arrays or (len(self.arrays) < MOST_ARRAYS and self.random.random() < 0.06):
            return self.create()
        number = self.random.randrange(len(self.arrays))
        array = self.arrays[number]
        kinds = ["write", "append", "accumulate", "read", "read", "gather", "stack", "concat"]
        kinds += ["size", *sorted(WRITES), *sorted(LOOKS)]  # sets vary by process
        if len(self.arrays) < MOST_ARRAYS:
            kinds += ["grad", "grad_with_shape"]
        if self.random.random() < 0.02:
            kinds = ["close"]
        kind = self.random.choice(kinds)
        args, options = getattr(self, f"_{kind}")(array)
        return Op(kind, number, args, tuple(options.items()))

    def _write(self, array):
        free = lambda s: not s.read and (array.is_gradient or not s.written)  # noqa: E731
        index = self.slot(array, free)
        return (index, self.value(array, self.slot_shape(array, index))), {}

    _accumulate = _write

    def _append(self, array):
        return (self.value(array, self.fitting(array)),), {}

    def _scatter(self, array):
        indices = self.slots(array)
        rows = len(indices) + (self.random.random() < 0.05)
        return (indices, self.value(array, (rows, *self.fitting(array)))), {}

    def _unstack(self, array):
        rows = self.random.choice([0, 1, len(array.slots), len(array.slots) + 1])
        return (self.value(array, (rows, *self.fitting(array))),), {}

    def _split(self, array):
        shapes = [self.slot_shape(array, k) or (1,) for k in range(len(array.slots))]
        lengths = tuple(shape[0] for shape in shapes)
        after = shapes[0][1:] if shapes else ()
        if lengths and self.random.random() < 0.1:
            lengths = (lengths[0] - 1, *lengths[1:])
        return (self.value(array, (max(0, sum(lengths)), *after)), lengths), {}

    def _read(self, array):
        return (self.slot(array, lambda slot: slot.written and not slot.cleared),), {}

    def _gather(self, array):
        shape = self.pattern(self.fitting(array)) if self.random.random() < 0.2 else None
        return (self.slots(array),), {"element_shape": shape}

    def _stack(self, array):
        return (), {}

    _size = _close = _items = _asarray = _length = _stack

    def _item(self, array):
        index = self.slot(array, lambda slot: not slot.cleared)
        return (index - len(array.slots) if self.random.random() < 0.3 else index,), {}

    def _concat(self, array):
        shape = self.pattern(self.fitting(array)[1:]) if self.random.random() < 0.3 else None
        return (), {"element_shape_except0": shape}

    def _grad(self, array):
        return (self.random.choice(SOURCES),), {"clear_after_read": self.random.random() < 0.7}

    def _grad_with_shape(self, array):
        args = self.random.choice(SOURCES), self.shape()
        return args, {"clear_after_read": self.random.random() < 0.7}


def program(seed, length=120):
    """Operations of all kinds."""
    return _made(Maker(seed), length)


class OfConditions(Maker):
    """Few operations on an array of one dtype and its gradient array, which often may not be."""

    def __init__(self, seed):
        super().__init__(seed)
        self.names = [self.random.choice(["bool", "bool", "int32", "float64", "complex64"])]

    def draw(self):
        if len(self.ops) == 1:
            return Op("grad", 0, ("gradients",), (("clear_after_read", False),))
        op = super().draw()
        while op.method in LOOKS or (len(self.ops) > 1 and op.method in ("create", "close")):
            op = super().draw()
        return op


def conditions(seed, length=14):
    """A short program whose failing operations all count."""
    return _made(OfConditions(seed), length)


def _made(maker, length):
    """A program; the maker needs to know how it goes."""
    for _ in range(length):
        op = maker.draw()
        maker.ops.append(op)
        attempt(op, maker.arrays, ModelArray, as_value)
    return Program(maker.ops, maker.random.random() < 0.3)
