"""Golden programs: array operations recorded from TensorFlow 2.21, and their replay on nbta."""

import gzip
import json
from pathlib import Path

import numpy as np

import nbta
from nbta import raw_ops

DATA = Path(__file__).parent / "data"


def programs(family):
    """All programs of a family."""
    (path,) = DATA.glob(f"{family}*.jsonl.gz")
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def tensor(spec):
    """A recorded tensor as an array."""
    dtype = np.dtype(spec["dtype"])
    if dtype.kind == "c":
        data = [complex(float(re), float(im)) for re, im in spec["data"]]
    elif dtype.kind == "f":
        data = [float(x) for x in spec["data"]]
    else:
        data = spec["data"]
    return np.array(data, dtype).reshape(spec["shape"])


class Replay:
    """Runs the steps of a raw program on eager arrays."""

    def __init__(self):
        self.arrays = {}

    def step(self, step):
        """The result of one step, in the form that it was recorded in."""
        arguments = {k: v for k, v in step.items() if k not in ("op", "array")}
        result = getattr(self, step["op"])(step["array"], **arguments)
        return {"ok": True} if result is None else result

    def create(self, label, dtype, identical_element_shapes, name, **rest):
        self.arrays[label] = nbta.TensorArray(
            dtype, infer_shape=identical_element_shapes, tensor_array_name=name, **rest
        )

    def write(self, label, index, value):
        self.arrays[label].write(index, tensor(value))

    def read(self, label, index, dtype):
        return {"value": self.arrays[label].read(index, dtype=dtype)}

    def gather(self, label, indices, dtype, element_shape):
        array = self.arrays[label]
        return {"value": array.gather(indices, element_shape=element_shape, dtype=dtype)}

    def scatter(self, label, indices, value):
        self.arrays[label].scatter(indices, tensor(value))

    def concat(self, label, dtype, element_shape_except0):
        array = self.arrays[label]
        value, lengths = array.concat(element_shape_except0=element_shape_except0, dtype=dtype)
        return {"value": value, "lengths": lengths}

    def split(self, label, value, lengths):
        self.arrays[label].split(tensor(value), lengths)

    def size(self, label):
        return {"value": self.arrays[label].size()}

    def close(self, label):
        self.arrays[label].close()

    def grad(self, label, of, source):
        self.arrays[label] = self.arrays[of].grad(source)

    def grad_with_shape(self, label, of, source, prepend):
        self.arrays[label] = self.arrays[of].grad_with_shape(source, prepend)


class RawReplay(Replay):
    """The same through `nbta.raw_ops`, outside of graphs."""

    def __init__(self):
        super().__init__()
        self.handles, self.flows = {}, {}

    def _made(self, label, made):
        self.handles[label], self.flows[label] = made
        self.arrays[label] = self.handles[label].array

    def create(self, label, size, name, **rest):
        self._made(label, raw_ops.TensorArrayV3(size, tensor_array_name=name, **rest))

    def write(self, label, index, value):
        flow = self.flows[label]
        self.flows[label] = raw_ops.TensorArrayWriteV3(
            self.handles[label], index, tensor(value), flow
        )

    def read(self, label, index, dtype):
        handle, flow = self.handles[label], self.flows[label]
        return {"value": raw_ops.TensorArrayReadV3(handle, index, flow, dtype)}

    def gather(self, label, indices, dtype, element_shape):
        handle, flow = self.handles[label], self.flows[label]
        return {"value": raw_ops.TensorArrayGatherV3(handle, indices, flow, dtype, element_shape)}

    def scatter(self, label, indices, value):
        handle, flow = self.handles[label], self.flows[label]
        self.flows[label] = raw_ops.TensorArrayScatterV3(handle, indices, tensor(value), flow)

    def concat(self, label, dtype, element_shape_except0):
        handle, flow = self.handles[label], self.flows[label]
        joined = raw_ops.TensorArrayConcatV3(handle, flow, dtype, element_shape_except0)
        return dict(zip(("value", "lengths"), joined, strict=True))

    def split(self, label, value, lengths):
        handle, flow = self.handles[label], self.flows[label]
        self.flows[label] = raw_ops.TensorArraySplitV3(handle, tensor(value), lengths, flow)

    def size(self, label):
        return {"value": raw_ops.TensorArraySizeV3(self.handles[label], self.flows[label])}

    def close(self, label):
        raw_ops.TensorArrayCloseV3(self.handles[label])

    def grad(self, label, of, source):
        made = raw_ops.TensorArrayGradV3(self.handles[of], self.flows[of], source)
        self._made(label, made)

    def grad_with_shape(self, label, of, source, prepend):
        handle, flow = self.handles[of], self.flows[of]
        self._made(label, raw_ops.TensorArrayGradWithShape(handle, flow, prepend, source))


#: Programs of corners, by what they are about.
CORNERS = {}
for _program in programs("corners"):
    _kind = _program["id"].split("-")[1]
    _shape = str(_program["steps"][0]["element_shape"])
    CORNERS.setdefault(f"{_kind} {_shape}", []).append(_program)


def check_result(result, expected):
    """The same dtype, shape and bits (NaN equals NaN, 0.0 equals -0.0)."""
    assert result.keys() == expected.keys()
    for key in result.keys() - {"ok"}:
        want, got = tensor(expected[key]), result[key]
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        np.testing.assert_array_equal(got, want)
