"""Golden programs: array operations recorded from TensorFlow 2.21, and their replay on nbta."""

import gzip
import json
from pathlib import Path

import numpy as np

import nbta

DATA = Path(__file__).parent / "data"


def programs(family):
    """All programs of a family."""
    with gzip.open(DATA / f"{family}-seed1.jsonl.gz", "rt") as lines:
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
