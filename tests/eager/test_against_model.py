"""Random programs run the same on nbta as on the slow model, and leave the same array behind."""

from functools import partial

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from model import MAX_RANK, ModelArray, ModelError, known
from random_values import (
    DIMENSIONS,
    DTYPES,
    FORMS,
    HARD_DTYPES,
    SEEDS,
    SHAPES,
    as_given,
    assert_same,
    make_value,
    pattern_of,
    scramble,
)

import nbta
from nbta.runtime import python_calls, settings

SOURCES = ["gradients", "gradients_1", "skôp/gradients"]
LIMITS = [settings.FIRST_CAPACITY, settings.MAP_THRESHOLD, settings.RELEASE_THRESHOLD]
MOST_ARRAYS = 8


def undecided(model):
    """Whether the first value written may still choose its shape."""
    return not known(model.element_shape) and not any(slot.written for slot in model.slots)


class Pair:
    """An array of nbta and its model."""

    def __init__(self, real, model, shape):
        self.real, self.model, self.shape = real, model, shape[-MAX_RANK:]

    def __repr__(self):
        return repr(self.real)

    def fitting_shape(self):
        """A shape that the array takes, if it takes any."""
        pattern = self.model.element_shape
        if pattern is None:
            return st.one_of(st.just(self.shape), SHAPES)
        if self.model.infer_shape:
            fallback = self.shape if len(self.shape) == len(pattern) else (1,) * len(pattern)
            pairs = zip(pattern, fallback, strict=True)
            return st.just(tuple(b if a is None else a for a, b in pairs))
        return st.tuples(
            *(DIMENSIONS if dimension is None else st.just(dimension) for dimension in pattern)
        )

    def element_shape(self):
        """Mostly a shape that the array takes."""
        fitting = self.fitting_shape()
        return st.one_of(fitting, fitting, fitting, fitting, SHAPES)

    def slot_shape(self, index):
        """Mostly the shape of a slot, for adding to it."""
        slots = self.model.slots
        if 0 <= index < len(slots) and slots[index].written:
            return st.one_of(st.just(slots[index].shape), self.element_shape())
        return self.element_shape()

    def writable_slot(self):
        """Mostly a slot that takes a value."""
        slots, adds = self.model.slots, self.model.is_gradient
        free = [k for k, slot in enumerate(slots) if not slot.read and (adds or not slot.written)]
        anywhere = st.integers(-1, len(slots) + 2)
        return (
            st.one_of(st.sampled_from(free), st.sampled_from(free), anywhere) if free else anywhere
        )

    def snapshot(self):
        """All that an operation could change and a caller could see."""
        array = self.real
        states = [] if array.closed else array._states().tolist()
        flags = array.dynamic_size, array.closed, array.clear_after_read, array.infer_shape
        return repr(array), states, array.element_shape, flags

    def check(self):
        """The array is what the model says, and nothing was written beside its buffers."""
        real, model = self.real, self.model
        assert real.closed == model.closed
        assert real.element_shape == model.element_shape
        assert real.dynamic_size == model.dynamic_size
        assert real.is_gradient == model.is_gradient
        if not real.closed:
            assert real._states().tolist() == model.states()
            assert real.size() == len(model.slots)
        assert python_calls.native(python_calls.guards_intact)(real._address)


def reason_of(operation, array):
    """The result of an operation and the reason why it failed, one of them None."""
    try:
        return operation(array), None
    except (nbta.NbtaError, ModelError) as error:
        return None, error.reason


class Programs(RuleBasedStateMachine):
    """Does the same to arrays of nbta and to their models."""

    def __init__(self):
        super().__init__()
        self.pairs, self.kept = [], []
        self.limits = [settings.get(field) for field in LIMITS]
        settings.put(settings.FIRST_CAPACITY, 1)

    @initialize(mapped=st.booleans())
    def where_buffers_lie(self, mapped):
        """In some programs every buffer is mapped, and every clearing read gives pages back."""
        if mapped:
            settings.put(settings.MAP_THRESHOLD, 1)
            settings.put(settings.RELEASE_THRESHOLD, 1)

    def teardown(self):
        try:
            for pair in self.pairs:
                for index in range(len(pair.model.slots)):
                    self.run(pair, lambda array, index=index: array.read(index))
                self.run(pair, lambda array: array.close())
            self.check_kept()
            self.pairs.clear()
            self.check_kept()
        finally:
            for field, value in zip(LIMITS, self.limits, strict=True):
                settings.put(field, value)

    def check_kept(self):
        """Values read earlier are what they were, whatever happened to their arrays."""
        for value, copy in self.kept:
            assert_same(value, copy)

    def keep(self, value):
        value = value if isinstance(value, np.ndarray) else np.asarray(value)
        self.kept.append((value, value.copy()))

    def run(self, pair, operation, real_operation=None):
        """Do something to both; the reason why it failed, if it did."""
        before = pair.snapshot()
        want, expected = reason_of(operation, pair.model)
        got, reason = reason_of(real_operation or operation, pair.real)
        assert reason == expected
        if reason:
            assert pair.snapshot() == before
        elif isinstance(want, tuple):
            for part, wanted in zip(got, want, strict=True):
                assert_same(part, wanted)
            self.keep(got[0])
        elif isinstance(want, np.ndarray):
            assert_same(got, want)
            assert not isinstance(got, np.ndarray) or not got.flags.writeable
            self.keep(got)
        pair.check()
        return reason

    def run_with(self, pair, value, form, operation):
        """`run` for an operation that is given a value."""
        given = as_given(value, form)
        self.run(pair, partial(operation, value=value), partial(operation, value=given))
        scramble(given)

    def pick(self, data, suits=lambda model: model.is_gradient):
        """Any array, and half of the time an open one that suits, by default a gradient array."""
        suitable = [p for p in self.pairs if suits(p.model) and not p.model.closed] or self.pairs
        return data.draw(st.one_of(st.sampled_from(suitable), st.sampled_from(self.pairs)))

    def add(self, real, model, shape):
        if all(pair.model is not model for pair in self.pairs):
            self.pairs.append(Pair(real, model, shape))
            self.pairs[-1].check()

    @rule(
        data=st.data(),
        dtype=st.sampled_from(DTYPES + HARD_DTYPES),
        size=st.integers(0, 4),
        shape=SHAPES,
        flags=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    )
    @precondition(lambda self: len(self.pairs) < MOST_ARRAYS)
    def create(self, data, dtype, size, shape, flags):
        pattern = data.draw(pattern_of(shape))
        dynamic, clears, infers = flags
        options = {
            "dynamic_size": dynamic,
            "clear_after_read": clears,
            "infer_shape": infers,
            "element_shape": pattern,
        }
        real = nbta.TensorArray(dtype, size, **options)
        self.add(real, ModelArray(dtype, size, **options), shape)

    @rule(data=st.data(), form=FORMS, seed=SEEDS, add=st.booleans())
    @precondition(lambda self: self.pairs)
    def write(self, data, form, seed, add):
        pair = self.pick(data)
        index = data.draw(pair.writable_slot())
        value = make_value(pair.model.dtype, data.draw(pair.slot_shape(index)), seed)
        if add and pair.model.is_gradient:
            self.run_with(pair, value, form, lambda a, value: a.accumulate(index, value))
        else:
            self.run_with(pair, value, form, lambda a, value: a.write(index, value))

    @rule(data=st.data(), form=FORMS, seed=SEEDS, count=st.integers(1, 4))
    @precondition(lambda self: any(pair.model.is_gradient for pair in self.pairs))
    def add_up(self, data, form, seed, count):
        """Several values into one slot, by writes and scatters that may name it twice."""
        pair = self.pick(data)
        index = data.draw(pair.writable_slot())
        shape = data.draw(pair.slot_shape(index))
        for k in range(count):
            value = make_value(pair.model.dtype, shape, seed + k)
            self.run_with(pair, value, form, lambda a, value: a.write(index, value))
            rows = make_value(pair.model.dtype, (k, *shape), seed)
            self.run_with(pair, rows, form, lambda a, value, k=k: a.scatter([index] * k, value))

    @rule(data=st.data(), form=FORMS, seed=SEEDS, count=st.integers(1, 5))
    @precondition(lambda self: self.pairs)
    def append(self, data, form, seed, count):
        pair = self.pick(data, suits=lambda model: model.dynamic_size)
        for k in range(count):
            value = make_value(pair.model.dtype, data.draw(pair.element_shape()), seed + k)
            self.run_with(pair, value, form, lambda a, value: a.append(value))

    @rule(data=st.data(), dtype=st.sampled_from(DTYPES), index=st.sampled_from([-2, 0, 2**62]))
    @precondition(lambda self: self.pairs)
    def misuse(self, data, dtype, index):
        """Other dtypes, slots that nobody has, ranks that nothing has."""
        pair = self.pick(data)
        shape = data.draw(st.sampled_from([(), (2,), (1,) * MAX_RANK, (1,) * (MAX_RANK + 1)]))
        dtype = data.draw(st.sampled_from([dtype, pair.model.dtype]))
        value = make_value(dtype, shape, index % 7)
        uses = [
            lambda array: array.write(index, value),
            lambda array: array.accumulate(index, value),
            lambda array: array.scatter([index], value),
            lambda array: array.unstack(value),
            lambda array: array.split(value, [1]),
            lambda array: array.concat(dtype=dtype),
            lambda array: array.grad_with_shape("gradients", [min(index, 1)]),
        ]
        if index < 0 or not pair.model.is_gradient:
            uses.append(lambda array: array.read(index, dtype=dtype))
            uses.append(lambda array: array.gather([0, index], dtype=dtype))
        self.run(pair, data.draw(st.sampled_from(uses)))

    @rule(data=st.data())
    @precondition(lambda self: self.pairs)
    def read(self, data):
        pair = self.pick(data)
        size = len(pair.model.slots)
        index = data.draw(st.one_of(st.integers(-1, size + 1), st.integers(0, max(size - 1, 0))))
        self.run(pair, lambda array: array.read(index))

    @rule(data=st.data(), shape=SHAPES)
    @precondition(lambda self: self.pairs)
    def gather(self, data, shape):
        pair = self.pick(data)
        indices = data.draw(self.indices(pair))
        pattern = data.draw(st.one_of(st.none(), pair.element_shape().flatmap(pattern_of)))
        self.run(pair, lambda array: array.gather(indices, element_shape=pattern))

    def indices(self, pair):
        """Slots in any order, or in a row, sometimes one that is not there."""
        size = len(pair.model.slots)
        inside = st.integers(0, max(size - 1, 0))
        row = st.tuples(inside, inside).map(lambda ends: list(range(min(ends), max(ends) + 1)))
        anywhere = st.lists(st.integers(-1, size + 2), max_size=3)
        listed = st.lists(inside, max_size=4)
        distinct = st.lists(inside, max_size=4, unique=True)
        return st.one_of(row, listed, distinct, anywhere)

    @rule(data=st.data())
    @precondition(lambda self: self.pairs)
    def stack(self, data):
        self.run(self.pick(data), lambda array: array.stack())

    @rule(data=st.data(), asks=st.booleans(), shape=SHAPES)
    @precondition(lambda self: self.pairs)
    def concat(self, data, asks, shape):
        pair = self.pick(data)
        after = data.draw(pair.fitting_shape())[1:]
        pattern = data.draw(st.one_of(pattern_of(after), st.just(shape))) if asks else None
        self.run(pair, lambda array: array.concat(element_shape_except0=pattern))

    @rule(data=st.data(), form=FORMS, seed=SEEDS, error=st.sampled_from([0, 0, 0, 0, 1]))
    @precondition(lambda self: self.pairs)
    def scatter(self, data, form, seed, error):
        pair = self.pick(data, suits=undecided)
        indices = data.draw(self.indices(pair))
        shape = (len(indices) + error, *data.draw(pair.element_shape()))
        value = make_value(pair.model.dtype, shape, seed)
        self.run_with(pair, value, form, lambda a, value: a.scatter(indices, value))

    @rule(data=st.data(), form=FORMS, seed=SEEDS)
    @precondition(lambda self: self.pairs)
    def unstack(self, data, form, seed):
        pair = self.pick(data)
        rows = data.draw(st.sampled_from([0, 1, len(pair.model.slots), len(pair.model.slots) + 2]))
        shape = (rows, *data.draw(pair.element_shape()))[data.draw(st.sampled_from([0, 0, 0, 1])) :]
        value = make_value(pair.model.dtype, shape, seed)
        self.run_with(pair, value, form, lambda a, value: a.unstack(value))

    @rule(data=st.data(), form=FORMS, seed=SEEDS, error=st.sampled_from([0, 0, 0, 0, 1]))
    @precondition(lambda self: self.pairs)
    def split(self, data, form, seed, error):
        pair = self.pick(data, suits=undecided)
        count = max(len(pair.model.slots) + data.draw(st.sampled_from([0, 0, 0, 2, -1])), 0)
        shapes = [data.draw(pair.slot_shape(index)) or (1,) for index in range(count)]
        lengths = [shape[0] for shape in shapes]
        if error and lengths:
            lengths[0] -= data.draw(st.sampled_from([1, 2]))
        after = shapes[0][1:] if shapes else ()
        rows = sum(lengths) + error * data.draw(st.integers(0, 1))
        value = make_value(pair.model.dtype, (max(rows, 0), *after), seed)
        self.run_with(pair, value, form, lambda a, value: a.split(value, lengths))

    @rule(data=st.data(), source=st.sampled_from(SOURCES), prefix=st.one_of(st.none(), SHAPES))
    @precondition(lambda self: len(self.pairs) < MOST_ARRAYS)
    @precondition(lambda self: self.pairs)
    def grad(self, data, source, prefix):
        pair, clears = self.pick(data), data.draw(st.booleans())
        made = []

        def find(array):
            if prefix is None:
                made.append(array.grad(source, clear_after_read=clears))
            else:
                made.append(array.grad_with_shape(source, prefix, clear_after_read=clears))

        if self.run(pair, find) is None:
            model, real = made
            self.add(real, model, (prefix or ()) + pair.shape)

    @rule(data=st.data())
    @precondition(lambda self: len(self.pairs) > 3)
    def close(self, data):
        self.run(self.pick(data), lambda array: array.close())

    @rule(data=st.data())
    @precondition(lambda self: len(self.pairs) > 3)
    def forget(self, data):
        """Drop the only reference from here; values that were read stay."""
        self.pairs.remove(self.pick(data))

    @invariant()
    def every_array_is_as_its_model(self):
        for pair in self.pairs:
            pair.check()


class ManyPrograms(Programs):
    """As many as make every rule meet every other."""


TestPrograms = Programs.TestCase
TestPrograms.settings = hypothesis_settings(max_examples=25, stateful_step_count=40)
TestManyPrograms = pytest.mark.slow(ManyPrograms.TestCase)
TestManyPrograms.settings = hypothesis_settings(max_examples=200, stateful_step_count=40)
