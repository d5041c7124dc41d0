"""Gradient arrays by their sources: made and found, of many sources with long names."""

import nbta


class Sources:
    """Sources with a common beginning, as nested scopes make them, in one array."""

    params = ((2_500, 5_000, 10_000), (0, 800))
    param_names = ("sources", "characters in common")
    number, warmup_time = 1, 0  # a run uses its array up

    def setup(self, count, beginning):
        """Names of all sources, an array without any and one that has them all."""
        self.sources = ["g" * beginning + str(k) for k in range(count)]
        self.empty, self.full = (nbta.TensorArray("float64", 1, element_shape=()) for _ in range(2))
        self.look_up(self.full)

    def look_up(self, array):
        """Ask for each gradient array once."""
        for source in self.sources:
            array.grad(source)

    def time_make(self, count, beginning):
        """Each is made."""
        self.look_up(self.empty)

    def time_find(self, count, beginning):
        """Each is there."""
        self.look_up(self.full)
