"""Recurrent nets, compiled: value and gradient by all parameters; float32."""

from asv_bench.peers import cases

from . import common, workloads

#: Steps x batch x inputs x states.
SIZES = {"x".join(map(str, size)): size for size in cases.SIZES}


class Net:
    """A `scan` over the cells of the peers' comparison."""

    params = (tuple(cases.CELLS), tuple(SIZES))
    param_names = ("cell", "steps_batch_inputs_states")

    def setup(self, cell, size):
        self.work = workloads.recurrence(cell, SIZES[size])
        self.work.run()

    def time_value_and_grad(self, cell, size):
        """One call."""
        self.work.run()

    def peakmem_value_and_grad(self, cell, size):
        """The process at its largest, Numba and all."""
        self.work.run()

    def track_buffers(self, cell, size):
        """Bytes that the compiled function keeps for its next call; tapes are most of them."""
        return common.buffer_bytes(self.work.function)

    track_buffers.unit = "bytes"


class OneByOne:
    """The same operation by operation, as before compiling pays."""

    params = (tuple(cases.CELLS),)
    param_names = ("cell",)

    def setup(self, cell):
        self.work = workloads.recurrence(cell, compiled=False)
        self.work.run()

    def time_value_and_grad(self, cell):
        """One call, 200 steps."""
        self.work.run()
