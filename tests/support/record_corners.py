"""Records what TensorFlow says of corners of the raw operations: see tests/support/data/FORMAT.md.

Needs TensorFlow 2.21, and nothing of nbta: ``python tests/support/record_corners.py``.
"""

import gzip
import itertools
import json
import math
import os
from pathlib import Path

FILE = Path(__file__).parent / "data" / "corners.jsonl.gz"
#: Messages of TensorFlow's kernels, and the word for each; the first piece found counts.
REASONS = [
    ("which does not match the Tensor at index", "gather_element_shape"),
    ("TensorArray has inconsistent shapes", "inconsistent_shapes"),
    ("has size zero, but element_shape_except0", "empty_concat"),
    ("has size zero, but element shape", "empty_gather"),
    ("Concat saw a scalar shape", "concat_scalar"),
    ("but index 0 has (excepting dimension 0) shape", "concat_except0"),
    ("has already been written to", "already_written"),
    ("because it has already been read", "already_read"),
    ("was cleared after a previous read", "cleared"),
    ("Could not read from TensorArray index", "unknown_element_shape"),
    ("value shape is", "incompatible_element_shape"),
    ("Could not write to TensorArray index", "incompatible_element_shape"),
    ("Input value for unpack must be at least a vector", "scatter_scalar"),
    ("Expected value to be at least a vector", "split_scalar"),
    ("Expected sum of lengths", "split_sum"),
    ("TensorArray's size is not equal to the size of lengths", "split_count"),
    ("Max scatter index", "scatter_out_of_range"),
    ("Tried to write to index", "write_out_of_range"),
    ("Tried to read from index", "read_out_of_range"),
    ("Expected len(indices) == values.shape[0]", "scatter_length"),
    ("PartialTensorShape: Incompatible", "gather_element_shape"),
]
CODES = {"InvalidArgumentError": "INVALID_ARGUMENT", "UnimplementedError": "UNIMPLEMENTED"}


# The programs.


def value(shape, first=1.0):
    """A tensor of a shape, with elements that count up."""
    data = [first + k for k in range(math.prod(shape))]
    return {"dtype": "float32", "shape": list(shape), "data": data}


def create(element_shape, size=2, dynamic=False, identical=False, clear=False):
    """The step that makes the array."""
    return {
        "op": "create", "array": "a0", "dtype": "float32", "size": size, "dynamic_size": dynamic,
        "clear_after_read": clear, "identical_element_shapes": identical,
        "element_shape": element_shape, "name": "corner",
    }  # fmt: skip


def step(op, array="a0", **fields):
    """A step on an array."""
    asks = {"dtype": "float32"} if op in ("read", "gather", "concat") else {}
    return {"op": op, "array": array, **asks, **fields}


ELEMENTS = [None, [], [0], [2], [None], [0, None], [None, 2]]
WRITTEN = [
    [], [[]], [[0]], [[2]], [[0], [0]], [[0], [2]], [[2], [0]], [[2], [2]], [[2], [3]], [[0, 2]],
    [[0, 2], [0, 3]], [[2, 0], [3, 0]], [[1, 2], [3, 2]], [[0], []],
]  # fmt: skip
ASKED = [None, [], [0], [2], [None], [0, 2], [None, None]]


def _writes(shapes):
    return [step("write", index=k, value=value(shape)) for k, shape in enumerate(shapes)]


def gathers():
    """What is asked of a gather, and what the array knows; then what it knows."""
    for element, written, asked, indices in itertools.product(
        ELEMENTS, WRITTEN, ASKED, [[], [0], [0, 1]]
    ):
        first = step("gather", indices=indices, element_shape=asked)
        again = step("gather", indices=indices[::-1], element_shape=None)
        yield [create(element), *_writes(written), first, again]


def concats():
    """The same for a concat."""
    for element, written, asked, size in itertools.product(ELEMENTS, WRITTEN, ASKED, [0, 2]):
        if len(written) <= size:
            joined = step("concat", element_shape_except0=asked)
            yield [create(element, size), *_writes(written), joined, joined]


def stores():
    """Rows and pieces, of which there may be none; then what the array knows."""
    rows = [[], [0], [2], [0, 2], [2, 0]]
    sizes = [(0, False), (0, True), (2, False)]
    for element, shape, (size, dynamic) in itertools.product(ELEMENTS, rows, sizes):
        made = create(element, size, dynamic, identical=True)
        after = [step("size"), step("gather", indices=[0], element_shape=None)]
        for count in (0, 1, 2):
            indices = list(range(count))
            yield [made, step("scatter", indices=indices, value=value(shape)), *after]
            for lengths in ([0] * count, [1] * count, [2] + [0] * (count - 1) if count else []):
                yield [made, step("split", lengths=lengths, value=value(shape)), *after]


def gradient_arrays():
    """Gradient arrays of elements without data."""
    for element, written in itertools.product(ELEMENTS, WRITTEN):
        made = [create(element, identical=True), *_writes(written)]
        made.append({"op": "grad", "array": "g0", "of": "a0", "source": "gradients"})
        for asked, indices in itertools.product([None, [0]], [[], [0], [0, 1]]):
            yield [*made, step("gather", "g0", indices=indices, element_shape=asked)]


def programs():
    """All programs, by their ids."""
    families = {"gather": gathers, "concat": concats, "store": stores, "gradient": gradient_arrays}
    for name, family in families.items():
        seen = set()
        for steps in family():
            text = json.dumps(steps)
            if text not in seen:
                yield f"corner-{name}-{len(seen)}", steps
            seen.add(text)


# TensorFlow's answers.


class Recorder:
    """Builds the steps of a program as operations that run one after another."""

    def __init__(self, tf):
        self.tf, self.raw = tf, tf.raw_ops
        self.arrays, self.flows, self.fetches, self.feeds, self.last = {}, {}, [], {}, None

    def add(self, step):
        """Add a step."""
        tf = self.tf
        before = [] if self.last is None else [self.last]
        with tf.control_dependencies(before):
            fetch = getattr(self, step["op"])(**{k: v for k, v in step.items() if k != "op"})
        self.fetches.append(fetch)
        self.last = next(iter(fetch.values())) if isinstance(fetch, dict) else fetch

    def _fed(self, data, dtype):
        with self.tf.control_dependencies(None):  # else what it feeds would wait for it alone
            placeholder = self.tf.compat.v1.placeholder(dtype)
        self.feeds[placeholder] = data
        return placeholder

    def _value(self, spec):
        import numpy as np

        return self._fed(
            np.array(spec["data"], spec["dtype"]).reshape(spec["shape"]), spec["dtype"]
        )

    def create(self, array, size, name, **rest):
        rest["element_shape"] = self.tf.TensorShape(rest["element_shape"])
        made = self.raw.TensorArrayV3(size=self._fed(size, "int32"), tensor_array_name=name, **rest)
        self.arrays[array], self.flows[array] = made
        return made[1]

    def _stored(self, array, operation, **rest):
        handle, flow = self.arrays[array], self.flows[array]
        self.flows[array] = operation(handle=handle, flow_in=flow, **rest)
        return self.flows[array]

    def write(self, array, index, value):
        operation = self.raw.TensorArrayWriteV3
        return self._stored(
            array, operation, index=self._fed(index, "int32"), value=self._value(value)
        )

    def scatter(self, array, indices, value):
        operation = self.raw.TensorArrayScatterV3
        return self._stored(
            array, operation, indices=self._fed(indices, "int32"), value=self._value(value)
        )

    def split(self, array, lengths, value):
        operation = self.raw.TensorArraySplitV3
        return self._stored(
            array, operation, lengths=self._fed(lengths, "int64"), value=self._value(value)
        )

    def _on(self, array):
        return {"handle": self.arrays[array], "flow_in": self.flows[array]}

    def size(self, array):
        return {"value": self.raw.TensorArraySizeV3(**self._on(array))}

    def gather(self, array, indices, dtype, element_shape):
        shape, indices = self.tf.TensorShape(element_shape), self._fed(indices, "int32")
        operation = self.raw.TensorArrayGatherV3
        found = operation(**self._on(array), indices=indices, dtype=dtype, element_shape=shape)
        return {"value": found}

    def concat(self, array, dtype, element_shape_except0):
        shape = self.tf.TensorShape(element_shape_except0)
        operation = self.raw.TensorArrayConcatV3
        found = operation(**self._on(array), dtype=dtype, element_shape_except0=shape)
        return {"value": found[0], "lengths": found[1]}

    def grad(self, array, of, source):
        made = self.raw.TensorArrayGradV3(**self._on(of), source=source)
        self.arrays[array], self.flows[array] = made
        return made[1]


def answer(tf, steps):
    """The result of each step, up to the first that fails."""
    failed = []
    for count in range(len(steps), -1, -1):
        with tf.Graph().as_default():
            recorder = Recorder(tf)
            for step in steps[:count]:
                recorder.add(step)
            try:
                with tf.compat.v1.Session(config=_plain(tf)) as session:
                    found = session.run(recorder.fetches, recorder.feeds)
            except tf.errors.OpError as error:
                failed = [{"error": _error(error)}]
            else:
                return [*map(_result, found), *failed]
    raise AssertionError("a program of no steps failed")


def _plain(tf):
    """Each operation as it is, on one thread: most of the time would go to getting ready."""
    config = tf.compat.v1.ConfigProto(
        inter_op_parallelism_threads=1, intra_op_parallelism_threads=1, use_per_session_threads=True
    )
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return config


def _error(error):
    word = next((word for piece, word in REASONS if piece in error.message), None)
    if word is None:
        raise ValueError(f"no word for {error.message}")
    return {"code": CODES[type(error).__name__], "reason": word}


def _result(result):
    if not isinstance(result, dict):
        return {"ok": True}
    return {key: _tensor(value) for key, value in result.items()}


def _tensor(value):
    return {"dtype": value.dtype.name, "shape": list(value.shape), "data": value.ravel().tolist()}


def main():
    """Write the file."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    tf.compat.v1.disable_eager_execution()
    tf.compat.v1.disable_control_flow_v2()
    lines = []
    for name, steps in programs():
        expect = answer(tf, steps)
        lines.append({"id": name, "steps": steps[: len(expect)], "expect": expect})
    unique = {json.dumps(line["steps"]): line for line in lines}
    with FILE.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as file:
        file.write("".join(json.dumps(line) + "\n" for line in unique.values()).encode())
    print(len(unique), "programs")


if __name__ == "__main__":
    main()
