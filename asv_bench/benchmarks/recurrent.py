"""Recurrent nets, compiled: value and gradient by all parameters; float32."""

from asv_bench.peers import cases

from . import common, workloads

#: Steps x batch x inputs x states.
SIZES = {"x".join(map(str, size)): size for size in cases.SIZES}


class _Net:
    param_names = ("cell", "steps_batch_inputs_states")

    def setup(self, cell, size):
        self.work = workloads.recurrence(cell, SIZES[size])
        self.work.run()


class Net(_Net):
    """A `scan` over the cells of the peers' comparison."""

    params = (tuple(cases.CELLS), tuple(SIZES))

    def time_value_and_grad(self, cell, size):
        """One call."""
        self.work.run()


class Memory(_Net):
    """What a call takes."""

    params = (tuple(cases.CELLS), tuple(SIZES)[1::2])

    def peakmem_value_and_grad(self, cell, size):
        """The process at its largest, Numba and all."""
        self.work.run()

    def track_buffers(self, cell, size):
        """What the compiled function keeps for its next call; tapes are most of it."""
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
