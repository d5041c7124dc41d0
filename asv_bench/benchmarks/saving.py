"""Files and pickles of arrays."""

import pickle
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

import nbta

from . import common

#: Arrays by name: many numbers, or few large elements; 32 MB each. Ragged ones have 8 MB.
KINDS = ("numbers", "vectors", "ragged")
_BYTES = 32 << 20


@cache
def written(kind):
    """An array with all slots written."""
    if kind == "numbers":
        return nbta.TensorArray("float64", size=_BYTES // 8).unstack(np.ones(_BYTES // 8))
    if kind == "vectors":
        return nbta.TensorArray("float64", size=_BYTES >> 16).unstack(np.ones((_BYTES >> 16, 8192)))
    ragged = nbta.TensorArray("float64", size=1000, infer_shape=False)
    for k in range(1000):
        ragged = ragged.write(k, np.ones(24 + 2 * k))
    return ragged


def nbytes(kind):
    """Bytes of the elements."""
    return 8 * sum(24 + 2 * k for k in range(1000)) if kind == "ragged" else _BYTES


class Files:
    """`nbta.save` and `nbta.load`, in the folder for temporary files."""

    params = (KINDS,)
    param_names = ("elements",)

    def setup(self, kind):
        self.array = written(kind)
        self.folder = tempfile.TemporaryDirectory(prefix="nbta-saving-")
        self.path = Path(self.folder.name, "array.npz")
        nbta.save(self.path, self.array)
        nbta.load(self.path)

    def teardown(self, kind):
        self.folder.cleanup()

    def track_save(self, kind):
        """Of elements, to the disk, which is waited for."""
        return speed(lambda: nbta.save(self.path, self.array), kind)

    def track_load(self, kind):
        """Of elements, checked, into memory of nbta's."""
        return speed(lambda: nbta.load(self.path), kind)

    def track_size(self, kind):
        """Of the file over that of the elements."""
        return self.path.stat().st_size / nbytes(kind)

    track_save.unit = track_load.unit = "MB/s"
    track_size.unit = "ratio"


class Pickles:
    """Protocol 5, with buffers beside the pickle, as Dask sends arrays, and without."""

    params = (KINDS, (True, False))
    param_names = ("elements", "buffers_beside")

    def setup(self, kind, beside):
        self.array = written(kind)
        self.data, self.buffers = self.dumped(beside)
        self.loaded()

    def dumped(self, beside):
        """The pickle, and the buffers beside it."""
        buffers = []
        keep = buffers.append if beside else None
        return pickle.dumps(self.array, 5, buffer_callback=keep), buffers

    def loaded(self):
        """The array that a pickle holds."""
        return pickle.loads(self.data, buffers=self.buffers)

    def time_dump(self, kind, beside):
        """One pickle."""
        self.dumped(beside)

    def time_load(self, kind, beside):
        """One array from it."""
        self.loaded()


def speed(run, kind):
    """MB of elements a second."""
    return nbytes(kind) / common.median_seconds(run, samples=5, calls=1) / 1e6
