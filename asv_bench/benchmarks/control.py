"""A fixed job for NumPy alone: what changes here is the machine, not nbta."""

import numpy as np


class Control:
    """Sort the same numbers again and again."""

    number, repeat, warmup_time = 1, 15, 0

    def setup(self):
        """The same numbers each time."""
        self.values = np.random.default_rng(1).random(300_000)

    def time_sort(self):
        """One sort of a copy."""
        np.sort(self.values)
