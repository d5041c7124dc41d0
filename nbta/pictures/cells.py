"""What a picture of an array shows: its slots as cells, in so many words.

Looking changes nothing: state bytes and elements are taken from memory as they are. It takes as
long as the cells that are shown, however many slots there are.
"""

from dataclasses import dataclass, field

import numpy as np

from nbta import contents, shapes
from nbta.pictures.text import clean, shortened
from nbta.runtime import python_calls
from nbta.runtime.store import (
    BLOCK_RANK,
    BLOCK_SHAPE,
    CLEARED,
    FIELD,
    RAGGED,
    READ,
    WRITTEN,
    ZERO,
)

#: States of slots, and what each means.
STATES = {
    "unwritten": "unwritten",
    "written": "written",
    "zeros": "zeros: nothing was added yet",
    "sum": "sum: added to at least once",
    "read": "read, and kept",
    "cleared": "cleared: read, and given up",
}
#: What a cell says besides its colour.
MARKS = {
    "unwritten": "·", "written": "written", "zeros": "zeros", "sum": "sum", "read": "✓ read",
    "cleared": "cleared",
}  # fmt: skip
_SHOWN, _LAST = 47, 7  # cells at most, and how many of them are of the last slots
_COUNTED = 1 << 16  # slots up to which those in each state are counted
_ITEMS = 6  # an element of more is shown by its shape


@dataclass(frozen=True)
class Slot:
    """A cell."""

    number: int
    state: str
    lines: tuple[str, ...]  # the value, or its shape where it is not small
    tooltip: str


@dataclass
class View:
    """An array, and its gradient arrays."""

    title: str
    facts: list[str]
    slots: list[Slot]
    left_out: int = 0  # slots between the first and the last that are shown
    counts: dict[str, int] = field(default_factory=dict)
    below: list["View"] = field(default_factory=list)

    @property
    def states(self) -> list[str]:
        """States of the cells here and below."""
        there = {slot.state for slot in self.slots} | {s for v in self.below for s in v.states}
        return [state for state in STATES if state in there]


def view_of(array, title: str | None = None) -> View:
    """What a picture of an array shows."""
    facts = _facts(array)
    below = [_below(array, gradient) for gradient in contents.gradients_of(array)]
    title = array.handle.name if title is None else title
    if array.closed:
        return View(title, [*facts, "closed"], [], below=below)
    size = len(array)
    states = python_calls.native(python_calls.state_bytes)(array._address)[:size]
    shown = range(size)
    numbers = [*shown[: _SHOWN - _LAST], *shown[max(_SHOWN, size) - _LAST :]]
    slots = [_slot(array, number, int(states[number])) for number in numbers]
    return View(title, facts, slots, size - len(numbers), _counts(array, states), below)


def _below(array, gradient):
    source = contents.source_of(gradient)
    return view_of(gradient, f"gradient array of source {source!r}")


def _facts(array):
    shape = array.element_shape
    facts = [str(array.dtype), elements_text(shape)]
    if not array.closed:
        facts.append("1 slot" if len(array) == 1 else f"{len(array):,} slots")
    if array.dynamic_size:
        facts.append("grows")
    if array.is_gradient:
        facts.append("writes add")
    facts.append("clears after a read" if array.clear_after_read else "keeps what is read")
    return facts


def elements_text(shape) -> str:
    """What is known of an array's elements."""
    if shape is None:
        return "elements of any shape"
    return f"elements {shapes.text(shape)}" if shape else "scalars"


def _counts(array, states):
    """How many slots are in each state; nothing for more slots than are worth counting."""
    if len(states) > _COUNTED:
        return {}
    bits, counts = np.unique(np.asarray(states), return_counts=True)
    found = dict.fromkeys(STATES, 0)
    for state, count in zip(bits.tolist(), counts.tolist(), strict=True):
        found[_state(state, array.is_gradient)] += count
    return {state: count for state, count in found.items() if count}


def _state(bits, gradient):
    if bits & CLEARED:
        return "cleared"
    if bits & READ:
        return "read"
    if not bits & WRITTEN:
        return "unwritten"
    if not gradient:
        return "written"
    return "zeros" if bits & ZERO else "sum"


def _slot(array, number, bits):
    state = _state(bits, array.is_gradient)
    if not bits & WRITTEN or bits & CLEARED:
        return Slot(number, state, (), f"slot {number}: {STATES[state]}")
    if bits & ZERO:
        return Slot(number, state, ("0",), f"slot {number}: {STATES[state]}")
    value = _element(array, number)
    lines = _lines(value)
    whole = shortened(_plain(np.array2string(value, threshold=40)), 400)
    return Slot(number, state, lines, f"slot {number}: {STATES[state]}\n{whole}")


def _element(array, number):
    """A slot's element as it lies in memory."""
    dtype = contents.dtype_in_memory(array.dtype, array.is_gradient)
    if array._fields[FIELD.layout] == RAGGED:
        head, data = contents.block_of(array, number)
        rank = int(head[BLOCK_RANK])
        shape = tuple(head[BLOCK_SHAPE : BLOCK_SHAPE + rank].tolist())
        data = data[: int(np.prod(shape, dtype=np.int64)) * dtype.itemsize]
    else:
        data, shape = contents.uniform_bytes(array)[number], array.element_shape
    return data.view(dtype).reshape(shape)


def _lines(value):
    """A small value on few lines, else its shape."""
    if value.ndim == 0:
        return (shortened(_plain(_scalar(value[()])), 14),)
    rows = [] if value.size > _ITEMS or value.ndim > 2 else np.atleast_2d(value)
    texts = tuple(" ".join(shortened(_plain(_scalar(x)), 8) for x in row) for row in rows)
    if texts and len(texts) <= 3 and all(0 < len(text) <= 22 for text in texts):
        return texts
    return (shapes.text(value.shape),)


def _scalar(value):
    kind = np.asarray(value).dtype
    if kind.kind in "fc" or kind.name == "bfloat16":
        return f"{complex(value):.4g}" if kind.kind == "c" else f"{float(value):.4g}"
    return str(value) if kind.kind in "biumM" else repr(value.item())


def _plain(text):
    return clean(text.replace("\n", " "))
