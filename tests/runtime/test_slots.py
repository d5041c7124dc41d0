"""Each way to touch a slot follows one rule: all states, flags and operations, by the model."""

import itertools

import numpy as np
import pytest
from model import ModelArray, ModelError
from numba import njit, prange

import nbta
from nbta.compiler import build
from nbta.eager import Request
from nbta.runtime import intrinsics, plain, slots
from nbta.runtime import request as rq
from nbta.runtime.slots import CLEARED, PENDING, READ, WRITTEN, ZERO

OPERATIONS = ["write", "append", "accumulate", "read", "look"]
#: Dtype, element shape and infer_shape; then the shape of values.
KINDS = {
    "scalars": ("float64", (), True, ()),
    "integers": ("int64", (), True, ()),
    "inferred": ("float64", (None,), True, (1,)),
    "ragged": ("float64", (None,), False, (1,)),
}
#: What happened to slot 0 before.
HISTORIES = [
    (), ("write",), ("read",), ("write", "read"), ("write", "write"), ("write", "read", "read"),
    ("write", "close"),
]  # fmt: skip


def given(kind, number):
    dtype, _, _, shape = KINDS[kind]
    return np.full(shape, number, dtype)


def at_once(real, operation, index, value, _):
    """By the methods in Python, which do what is simple without a kernel."""
    if operation == "append":
        return real.append(value)
    if operation in ("write", "accumulate"):
        return getattr(real, operation)(index, value)
    return real.read(index) if operation == "read" else real[index]


def by_kernel(real, operation, index, value, _):
    """By the kernels alone."""
    numbers = {"write": rq.WRITE, "append": rq.APPEND, "accumulate": rq.ACCUMULATE}
    if operation in numbers:
        return real._write(numbers[operation], index, value)
    request = Request()
    request[rq.INDEX] = index
    return real._read_many(rq.READ if operation == "read" else rq.LOOK, request)


@njit(cache=True)
def _compiled(ta, operation, index, value, out):
    if operation == 0:
        ta.write(index, value)
    elif operation == 1:
        ta.append(value)
    elif operation == 2:
        ta.accumulate(index, value)
    elif operation == 3:
        out[:] = ta.read(index)
    else:
        out[:] = ta[index]


@njit(parallel=True, cache=True)
def _in_loop(ta, operation, index, value, out, iterations):
    for iteration in prange(iterations):
        # Numba does what is the same in each iteration ahead of the loop
        slot = index + iteration // iterations
        if operation == 0:
            ta.write(slot, value)
        elif operation == 1:
            ta.append(value)
        elif operation == 2:
            ta.accumulate(slot, value)
        elif operation == 3:
            out[:] = ta.read(slot)
        else:
            out[:] = ta[slot]


def _numba(run, real, operation, index, value, *iterations):
    out = np.full(1, 99, real.dtype)
    item = value[()] if value.ndim == 0 else value
    run(real, OPERATIONS.index(operation), index, item, out, *iterations)
    return out[0] if value.ndim == 0 else out


def compiled(real, operation, index, value, _):
    return _numba(_compiled, real, operation, index, value)


def in_loop(real, operation, index, value, iterations):
    return _numba(_in_loop, real, operation, index, value, iterations)


MODES = {"Python": at_once, "kernel": by_kernel, "compiled": compiled, "parallel loop": in_loop}


def on_model(model, operation, index, value):
    if operation == "append":
        return model.append(value)
    if operation in ("write", "accumulate"):
        return getattr(model, operation)(index, value)
    return model.read(index) if operation == "read" else model[index]


def outcome(call, *args):
    """The reason of a failure, or None, and the result."""
    try:
        return None, call(*args)
    except (nbta.NbtaError, ModelError) as error:
        return error.reason, None


def pairs(kind):
    """Arrays in all states with all flags, each with its model, and what it is."""
    dtype, shape, infer, _ = KINDS[kind]
    for dynamic, clears, gradient, history in itertools.product(
        (False, True), (False, True), (None, False, True), HISTORIES
    ):
        if gradient is None:  # a forward array
            made = (
                nbta.TensorArray(dtype, 2, dynamic, clears, element_shape=shape, infer_shape=infer),
                ModelArray(dtype, 2, dynamic, clears, shape, infer),
            )
        else:  # of a forward array whose slot was, or was not, written
            made = (
                nbta.TensorArray(dtype, 2, dynamic, False, element_shape=shape, infer_shape=infer),
                ModelArray(dtype, 2, dynamic, False, shape, infer),
            )
            if gradient:
                made = [array.write(0, given(kind, 5)) for array in made]
            made = [array.grad("s", clear_after_read=clears) for array in made]
        real, model = made
        for number, step in enumerate(history):
            if step == "close":
                real.close()
                model.close()
            else:
                args = step, 0, given(kind, 2 + number)
                found = outcome(at_once, real, *args, None)[0]
                assert found == outcome(on_model, model, *args)[0]
        yield real, model, (dynamic, clears, gradient, history)


def compare(kind, mode, operation, index, iterations=1):
    """One operation on arrays of all states; the states of slot 0 that there were."""
    seen = set()
    for real, model, about in pairs(kind):
        if operation == "look" and model.closed:
            continue  # whether there is such a slot is asked first
        if not model.closed:
            seen.add(model.states()[0])
        value = given(kind, 7)
        found, result = outcome(MODES[mode], real, operation, index, value, iterations)
        model.deposits = set() if mode == "parallel loop" else None
        for _ in range(iterations):
            wanted, expected = outcome(on_model, model, operation, index, value)
            if wanted is not None:
                break
        model.deposits = None
        about = (about, operation, index)
        assert found == wanted, about
        if wanted is None and operation in ("read", "look"):
            np.testing.assert_array_equal(result, expected, err_msg=str(about))
        if not model.closed:
            assert real._states().tolist() == model.states(), about
            assert real.element_shape == model.element_shape, about
            assert len(real) == len(model.slots), about
            for slot in range(len(model.slots)):
                sums = outcome(real.__getitem__, slot), outcome(model.__getitem__, slot)
                assert sums[0][0] == sums[1][0], about
                np.testing.assert_array_equal(sums[0][1], sums[1][1], err_msg=str(about))
    return seen


#: The others take half a minute each to compile.
QUICK = ("Python", "kernel")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "mode", [m if m in QUICK else pytest.param(m, marks=pytest.mark.slow) for m in MODES]
)
def test_every_way_to_a_slot_follows_the_model(kind, mode):
    seen = set()
    for operation, index in itertools.product(OPERATIONS, (0, 1, 2, -1)):
        seen |= compare(kind, mode, operation, index)
    written = {0, WRITTEN, WRITTEN | READ, WRITTEN | READ | CLEARED, WRITTEN | ZERO}
    assert seen == written


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("operation", ["write", "accumulate"])
def test_two_iterations_at_one_slot_follow_the_model(kind, operation):
    compare(kind, "parallel loop", operation, 0, iterations=2)


STATES = range(64)
RULES = {name: slots.in_python(getattr(slots, name)) for name in (
    "holds_value", "holds_sum", "write_status", "claim_status", "read_status", "look_status",
)}  # fmt: skip


def test_what_may_be_done_at_once_is_what_the_rules_allow():
    """Fast ways look at a state alone; they must not go on where a rule says no."""
    for state in STATES:
        if RULES["holds_value"](state):
            assert RULES["read_status"](state, False) == 0
            assert RULES["holds_sum"](state)
        if state == slots.FREE:
            assert RULES["write_status"](state, False) == RULES["write_status"](state, True) == 0
        if state == WRITTEN:
            assert RULES["write_status"](state, True) == 0
            assert RULES["holds_sum"](state)


def test_a_claim_leaves_a_state_that_no_other_claim_takes():
    for state, gradient in itertools.product(STATES, (False, True)):
        if RULES["claim_status"](state, gradient, True) == 0 and not state & PENDING:
            claimed = slots.in_python(slots.claimed)(state, gradient)
            assert claimed & PENDING
            assert RULES["claim_status"](claimed, gradient, True) != 0
            assert RULES["read_status"](claimed, True) != 0


def test_what_operations_leave_is_what_others_find():
    for clears in (False, True):
        read = slots.in_python(slots.after_read)(clears)
        assert all(RULES["write_status"](read, gradient) != 0 for gradient in (False, True))
        assert (RULES["read_status"](read, True) != 0) == clears
        assert RULES["holds_value"](read) == (not clears)
    written = slots.in_python(slots.after_write)(False, False)
    assert RULES["holds_value"](written)
    assert RULES["write_status"](written, False) != 0
    assert RULES["write_status"](written, True) == 0


# Arrays of compiled graphs.

ROOM = 4  # slots
#: Not elements of any shape: compiled graphs leave these to the operations. Only scalars at once.
KINDS_OF_GRAPHS = [
    (kind, mode)
    for kind, (_, shape, infers, _) in KINDS.items()
    for mode in ("calls", "at once")
    if infers and (mode == "calls" or shape == ())
]


def in_generated_code(flags):
    """What generated code does to write and to read a slot: by calls, and at once.

    These are functions of an int64, a status, which they give where they are left.
    """

    @njit(cache=True)
    def call(w, record, what, a, b, out):
        out[0] = plain.slot(w, record, what, a, b)
        return np.int64(0)

    @njit(cache=True)
    def put(w, record, _, index, __, out):
        out[0] = plain.write_item(w, record, index, 8)
        return np.int64(0)

    @njit(cache=True)
    def take(w, record, _, index, __, out):
        out[0] = plain.read_item(w, record, index, flags)
        return np.int64(0)

    return {"calls": (call, call), "at once": (call if flags & plain.ADDS else put, take)}


CODE = {flags: in_generated_code(flags) for flags in range(8)}


class Records:
    """An array, and its gradient array, as generated code has them."""

    def __init__(self, kind, dynamic, clears, mode):
        self.dtype, self.shape, _, self.value_shape = KINDS[kind]
        self.words = np.zeros(intrinsics.FIRST_WORD + 2 * plain.WORDS, np.int64)
        self.words[intrinsics.PLAIN] = build.address("plain")
        self.mode, self.buffers = mode, []
        self._begin(intrinsics.FIRST_WORD, plain.INFERS + plain.CLEARS * clears)
        self._give(self.shape)
        assert self._run(0, plain.CREATE, 2, int(dynamic))[0] == intrinsics.OK

    def grad(self, clears):
        """Go on with the gradient array."""
        parent = self.record
        self._begin(parent + plain.WORDS, plain.INFERS + plain.ADDS + plain.CLEARS * clears)
        assert self._run(0, plain.LOOK_UP, parent)[0] == intrinsics.OK
        return self

    def _begin(self, record, flags):
        self.record, self.flags = record, flags
        self.items, states = np.full(ROOM, 99, self.dtype), np.full(ROOM, 99, np.uint8)
        for word, buffer in ((plain.DATA, self.items), (plain.STATE, states)):
            self.buffers.append(buffer)
            self._set(word, buffer.ctypes.data)
            self._set(word + 1, buffer.nbytes)
        for word, value in (
            (plain.ITEM, 8), (plain.RANK, len(self.shape)), (plain.FLAGS, flags), (plain.THERE, 0)
        ):  # fmt: skip
            self._set(word, value)

    def _set(self, word, value):
        self.words[self.record + word] = value

    def _give(self, dimensions):
        for axis, dimension in enumerate(dimensions):
            self._set(plain.GIVEN + axis, -1 if dimension is None else dimension)

    def _run(self, number, what, a, b=0, mode="calls"):
        """The status of a call, and the place that it gives."""
        out = np.full(1, -99)
        run = CODE[self.flags][mode][number]
        return run(self.words.ctypes.data, self.record, what, a, b, out), int(out[0])

    def write(self, index, value):
        """Whether a value could be written."""
        self._give(value.shape)
        status, place = self._run(0, plain.WRITE_SLOT, index, mode=self.mode)
        if status == intrinsics.OK and self.flags & plain.ADDS:
            first, place = place & 1, place >> 1
            self.items[place] = value.item() + (0 if first else self.items[place])
        elif status == intrinsics.OK:
            self.items[place] = value.item()
        return status == intrinsics.OK

    def read(self, index):
        """Whether there was one, and which."""
        status, place = self._run(1, plain.READ_SLOT, index, mode=self.mode)
        done = status == intrinsics.OK
        return done, self.items[place].reshape(self.value_shape) if done else None

    def size(self):
        """How many slots there are."""
        return self.words[self.record + plain.SIZE]


def records(kind, mode):
    """`Records` in all states with all flags, each with its model, and what it is."""
    dtype, shape, infer, _ = KINDS[kind]
    for dynamic, clears, gradient, history in itertools.product(
        (False, True), (False, True), (None, False, True), HISTORIES
    ):
        of_forward = clears if gradient is None else False
        real = Records(kind, dynamic, of_forward, mode)
        model = ModelArray(dtype, 2, dynamic, of_forward, shape, infer)
        if gradient:
            real.write(0, given(kind, 5))
            model.write(0, given(kind, 5))
        if gradient is not None:
            real, model = real.grad(clears), model.grad("s", clear_after_read=clears)
        yield real, model, history, (dynamic, clears, gradient, history)


def step(real, model, operation, index, value):
    """One operation on both; whether it could be done."""
    reason, expected = outcome(on_model, model, operation, index, value)
    if operation == "write":
        done = real.write(index, value)
    else:
        done, found = real.read(index)
        if done:
            np.testing.assert_array_equal(found, expected)
    return done, reason is None


@pytest.mark.parametrize(("kind", "mode"), KINDS_OF_GRAPHS)
def test_arrays_of_compiled_graphs_follow_the_model(kind, mode):
    done_all = 0
    for operation, index in itertools.product(("write", "read"), (0, 1, 2, -1)):
        for real, model, history, about in records(kind, mode):
            if "close" in history:
                continue  # graphs do not close arrays as they run
            steps = [(name, 0) for name in history] + [(operation, index)]
            for number, (name, slot) in enumerate(steps):
                done, allowed = step(real, model, name, slot, given(kind, 2 + number))
                left = name == "read" and slot >= 2 and model.is_gradient
                assert done == (allowed and not left), (about, name, slot)
                if not done:
                    break  # the program is run again, operation by operation
                assert real.size() == len(model.slots), (about, name, slot)
            else:
                done_all += 1
    assert done_all > 100
