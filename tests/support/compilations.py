"""For programs that tests start: which functions are compiled in them, and which need not be."""

import shutil

from nbta.kernels import ahead
from nbta.runtime import machine_code

#: Goes before such a program; ``counting.compiled`` has the names of the functions.
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


def hear(name, begin, end, facts):
    if facts.get("compiled"):  # a graph, for which Numba is not called
        counting.compiled.append("run")


from nbta.compiler import phases

phases._listener.set(hear)
"""


def copy_kernels(folder):
    """Give an empty cache what this process's own has of the runtime, a minute of compiling."""
    folder.mkdir(exist_ok=True)
    for routine in ahead.routines():
        file = f"{machine_code.key(routine.text, routine.options)}.graph"
        if (machine_code.folder() / file).exists():
            shutil.copy2(machine_code.folder() / file, folder)
