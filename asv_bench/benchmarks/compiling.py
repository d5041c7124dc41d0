"""From a Python function to machine code: what it takes, stage by stage, and how much code it is.

Whole compilations run in new processes whose cache folders are empty.
"""

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbta
from nbta.compiler import pipeline
from nbta.compiler.generate import generate
from nbta.compiler.program import extract
from nbta.compiler.specialising import specialise
from nbta.graph.graph import Analysis, within
from nbta.structure import leaves

from . import PLACES
from .workloads import WORKS, traced

#: Works that are compiled here: each figure takes asv a process.
SOME = ("tanh net", "adaptive ODE", "small matrices")
#: From a program to one that the generator takes.
STEPS = pipeline.passes()
STAGES = ("trace", *dict.fromkeys(step.__name__ for step in STEPS), "generate")


class _Figures:
    def setup_cache(self):
        """Of each work: milliseconds by stage, and what comes out."""
        return {name: figures(WORKS[name]()) for name in SOME}

    setup_cache.timeout = 600


class Stages(_Figures):
    """Python's part of compiling, in its order; a pass counts wherever it stands in the list."""

    params = (SOME, STAGES)
    param_names = ("work", "stage")

    def track_stage(self, found, name, stage):
        """Least of three compilations, which an idle machine would take."""
        return found[name][stage]

    track_stage.unit = "ms"


class Size(_Figures):
    """What the passes and the generator make; counts, always the same."""

    params = (SOME,)
    param_names = ("work",)

    def track_lines(self, found, name):
        """Of source."""
        return found[name]["lines"]

    def track_operations(self, found, name):
        """After all passes, with those in bodies of loops and branches."""
        return found[name]["operations"]

    def track_stages(self, found, name):
        """All stages together."""
        return sum(found[name][stage] for stage in STAGES)

    def track_analyses(self, found, name):
        """Analyses of the program that passes and the generator compute."""
        return found[name]["analyses"]

    track_lines.unit, track_operations.unit, track_stages.unit = "lines", "operations", "ms"
    track_analyses.unit = "analyses"


def figures(work, repeats=3):
    """Milliseconds by stage, lines of source and operations, of a work."""
    runs = [Compilation(work) for _ in range(repeats)]
    least = {stage: min(run.seconds[stage] for run in runs) * 1e3 for stage in STAGES}
    counts = {"lines": runs[0].lines, "operations": runs[0].operations}
    return {**least, **counts, "analyses": analyses(work)}


def analyses(work):
    """How many analyses a compilation computes, `ArrayUses` of `Tapes` among them."""
    made, begin = [], Analysis.__init__

    def noted(self, graph):
        begin(self, graph)
        made.append(type(self))

    graph, arrays = traced(work)
    Analysis.__init__ = noted
    try:
        program = pipeline.optimised(graph.inputs, leaves(graph.result))
        generate(pipeline.lowered(program, [array.shape for array in arrays]))
    finally:
        Analysis.__init__ = begin
    return len(made)


class Compilation:
    """A work's function compiled once, but for its machine code; seconds by stage.

    Garbage is not collected, as `Compiled` has it.
    """

    def __init__(self, work):
        self.seconds = dict.fromkeys(STAGES, 0.0)
        gc.collect()
        gc.disable()
        try:
            graph, arrays = self.timed("trace", traced, work)
            program = extract(graph.inputs, leaves(graph.result), ())
            for step in STEPS:
                shapes = ([array.shape for array in arrays], True) if step is specialise else ()
                program = self.timed(step.__name__, step, program, *shapes)
            source = self.timed("generate", generate, program).source
        finally:
            gc.enable()
        self.lines, self.operations = len(source.splitlines()), len(within(program.operations))

    def timed(self, stage, step, *arguments):
        """What a step gives."""
        began = time.perf_counter()
        made = step(*arguments)
        self.seconds[stage] += time.perf_counter() - began
        return made


class NewProcess:
    """A process that finds nothing compiled, and the next one, which finds what that one kept."""

    params = (SOME,)
    param_names = ("work",)

    def setup_cache(self):
        """Both processes, for each work."""
        return {name: self.processes(name) for name in SOME}

    setup_cache.timeout = 900

    def processes(self, name):
        """Seconds of the first process and of the second, and bytes that were kept."""
        with tempfile.TemporaryDirectory(prefix="nbta-compiling-") as folder:
            first, again = new_process(name, folder), new_process(name, folder)
            kept = Path(folder, "NBTA_CACHE_DIR").rglob("*.graph")
            size = sum(path.stat().st_size for path in kept)
            return {**first, "again": again["seconds"], "bytes": size}

    def track_first(self, found, name):
        """From a process's start to the first value and gradient, kernels and helpers compiled."""
        return found[name]["seconds"]

    def track_again(self, found, name):
        """The same when all is in the caches."""
        return found[name]["again"]

    def track_machine_code(self, found, name):
        """Numba's and LLVM's part of the graph's one function."""
        return found[name]["machine_code"]

    def track_bytes(self, found, name):
        """Object files in the cache of graphs, those of helpers among them."""
        return found[name]["bytes"]

    track_first.unit = track_again.unit = track_machine_code.unit = "seconds"
    track_bytes.unit = "bytes"


def new_process(name, folder):
    """What `main` tells, from a process with these caches, and its seconds in all."""
    package = str(Path(nbta.__file__).parents[1])
    places = {kind: f"{folder}/{kind}" for kind in ("NUMBA_CACHE_DIR", "NBTA_CACHE_DIR")}
    kept = {key: value for key, value in os.environ.items() if key != "NBTA_DEBUG"}
    environment = {**kept, **places, "PYTHONPATH": os.pathsep.join((package, *PLACES))}
    command = [sys.executable, "-m", "asv_bench.benchmarks.compiling", name]
    began = time.perf_counter()
    answer = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    return {"seconds": time.perf_counter() - began, **json.loads(answer.stdout)}


def main(name):
    """Compile and run a work, and print seconds in machine code."""
    work = WORKS[name]()
    graph, arrays = traced(work)
    compiled = graph.runner.function(tuple(array.shape for array in arrays))
    began = time.perf_counter()
    compiled.build()
    seconds = time.perf_counter() - began
    compiled(arrays)
    print(json.dumps({"machine_code": seconds}))


if __name__ == "__main__":
    main(sys.argv[1])
