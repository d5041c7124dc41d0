"""For programs that tests start: which functions Numba compiles in them."""

#: Goes in front of such a program; ``counting.compiled`` has the names of the functions.
COUNTING = """
from numba.core import event


class Counting(event.Listener):
    def __init__(self):
        self.compiled = []

    def on_start(self, happened):
        self.compiled.append(happened.data["dispatcher"].py_func.__name__)

    def on_end(self, happened):
        pass


counting = Counting()
event.register("numba:compile", counting)
"""
