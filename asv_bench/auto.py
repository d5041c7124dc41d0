"""What ``compiled="auto"`` costs beside always and never compiling, after any number of calls.

``python -m asv_bench.auto`` calls each program until it was compiled, adds up CPU seconds, and
prints the worst ratio to the better of the two others and after how many calls that was: for the
gradients of `asv_bench.programs`, second derivatives of some of them, and programs without loops of
up to 5,000 operations. Files that are made for a program are removed again, so that nothing is
found on disk, and what operations call is compiled before. A call that never compiles follows each
one with auto, as on a machine where others work an operation takes up to twice as long a minute
later. The median of the ratios, the third quartile, the ninth decile and the greatest come last.
"""

import argparse
import contextlib
import time
import warnings
from functools import partial
from typing import NamedTuple

import numpy as np

import nbta
from nbta.runtime import machine_code

from . import unrolled
from .programs import PROGRAMS

#: Programs whose second derivatives are measured; the largest size; calls after the compiled one.
SECOND = (
    "recurrence", "updates", "hmm forward", "tridiagonal", "lu", "cholesky", "heat", "ode",
    "lstm", "mixture of 25", "soft-dtw", "least squares", "n-body",
)  # fmt: skip
LARGEST, MORE = 60, 3
#: Programs without loops, with their sizes.
UNROLLED = {"layers": (5, 20, 80, 320), "steps": (50, 100, 300), "parameters": (50, 200),
            "lstm": (1, 2, 4)}  # fmt: skip
#: CPU seconds after which a program that was not compiled is left alone, and those of a side.
ENOUGH, SIDE = 60.0, 0.3


def programs() -> dict:
    """By name what makes a function, for a way of compiling, and its arguments."""
    found = {}
    for name, program in PROGRAMS.items():
        arguments = program.arguments(max(program.small, min(program.n, LARGEST)))
        found[name] = program.value_and_grad, arguments
        if name in SECOND:
            found[f"{name}, second"] = partial(second, program), arguments
    for name, sizes in UNROLLED.items():
        for n in sizes:
            loss, arguments = getattr(unrolled, name)(nbta, lambda n: nbta.unroll(range(n)), n)
            made = partial(
                lambda loss, compiled: nbta.value_and_grad(loss, compiled=compiled), loss
            )
            found[f"{name}, {n} written out"] = made, arguments
    return found


def first(loss, compiled):
    """Value and gradient."""
    return nbta.value_and_grad(loss, compiled=compiled)


def second(program, compiled):
    """The product of second derivatives with a direction of ones."""
    place = program.argnums[0]

    def product(*arguments):
        def loss(x):
            return program.loss(*arguments[:place], x, *arguments[place + 1 :])

        x = arguments[place]
        return nbta.hvp(loss, (x,), (nbta.ones_like(x),))

    return nbta.function(product, compiled=compiled)


class Found(NamedTuple):
    """CPU seconds of calls that never compile, of calls with auto, and of two that always do.

    The first two take turns; the others are the first call and a later one.
    """

    never: list
    always: tuple
    auto: list

    def worst(self):
        """The worst ratio of auto to the better of the others, and after how many calls."""
        first, later = self.always
        always = first + later * np.arange(len(self.auto))
        ratios = np.cumsum(self.auto) / np.minimum(np.cumsum(self.never), always)
        return ratios.max(), int(ratios.argmax()) + 1


def measure(make, arguments) -> Found:
    """All sides of a program."""
    before = set(machine_code.files())
    with removed(before):
        for compiled in (False, True):
            make(compiled)(*arguments)
    always = side(make(True), arguments, before)
    with removed(before):
        function, plain, never, auto, ran = make("auto"), make(False), [], [], 0
        while ran < MORE and sum(auto) < ENOUGH:
            auto.append(seconds(function, arguments))
            never.append(seconds(plain, arguments))
            ran += function._last.runner.ran is not None
    return Found(never, always, auto)


def side(function, arguments, before):
    """CPU seconds of a first call and of a later one."""
    with removed(before):
        first, later = seconds(function, arguments), []
        while not later or sum(later) < SIDE:
            later.append(seconds(function, arguments))
    return first, float(np.median(later))


@contextlib.contextmanager
def removed(before):
    """Remove the files that are made within it."""
    yield
    for path in set(machine_code.files()) - before:
        path.unlink(missing_ok=True)


def seconds(function, arguments):
    """CPU seconds of a call."""
    begin = time.thread_time()
    function(*arguments)
    return time.thread_time() - begin


def main():
    """Measure, and print a line as soon as there is one."""
    parser = argparse.ArgumentParser(prog="asv_bench.auto", description=__doc__)
    parser.add_argument("-k", action="append", metavar="NAME", help="only programs so named")
    asked = parser.parse_args().k
    warnings.simplefilter("ignore", nbta.PerformanceWarning)
    nbta.value_and_grad(lambda x: nbta.sum(nbta.tanh(x @ x)), compiled=True)(np.eye(3))
    print("| program | one by one ms | compiling s | calls | worst ratio | after |")
    print("| --- | --- | --- | --- | --- | --- |", flush=True)
    ratios = []
    for name, (make, arguments) in programs().items():
        if asked and not any(part in name for part in asked):
            continue
        found = measure(make, arguments)
        worst, calls = found.worst()
        ratios.append(worst)
        one = float(np.median(found.never))
        compiling = found.always[0] - found.never[0] + one
        row = (f"{one * 1e3:.3g}", f"{compiling:.2f}", len(found.auto) - MORE + 1)
        print(f"| {name} | {' | '.join(map(str, row))} | {worst:.2f} | {calls} |", flush=True)
    quantiles = np.quantile(ratios, (0.5, 0.75, 0.9, 1.0))
    print(f"\n{len(ratios)} programs: " + ", ".join(f"{q:.2f}" for q in quantiles))


if __name__ == "__main__":
    main()
