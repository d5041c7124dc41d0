"""Programs by the reference executor, and by their generated source, which Python runs."""

import numpy as np
from both_executors import compare
from hypothesis import HealthCheck, Phase
from interpreted import exits, interpreted

import nbta
from nbta.codegen.code import NotCompiledError
from nbta.compiler.executable import Compiled, Executable, FailedError
from nbta.compiler.pipeline import optimised
from nbta.execution.reference import Plan, Step
from nbta.graph.operation import Tensor
from nbta.structure import leaves

#: Without looking for smaller examples, which takes minutes.
BOUNDED = {
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
    "phases": [Phase.explicit, Phase.reuse, Phase.generate],
}


class Interpreted(Compiled):
    """A program whose generated source Python runs."""

    def _built(self, generated):
        return Executable(generated, interpreted(generated.source, generated.globals), Step)


def outcome(wanted, feeds):
    """What became of a program: "agreed", "failed", or why there is nothing to compare.

    "failed" where both did.
    """
    given, values = list(feeds), [np.asarray(value) for value in feeds.values()]
    with np.errstate(all="ignore"):
        try:
            expected = Plan(given, wanted, ())(Step(), values)
        except nbta.NbtaError as error:
            expected = error
        try:
            program = optimised(given, wanted)
            function = Interpreted(lambda: program, list(map(np.shape, values)), Step)
        except NotCompiledError as reason:
            return f"not compiled: {reason}"
        return called(function, values, wanted, expected)


def called(function, values, wanted, expected):
    """What becomes of two calls, as results go into arrays like those of the call before."""
    for _ in range(2):
        exits.clear()
        try:
            found, _ = function([value.copy() for value in values])
        except FailedError:
            return "failed" if isinstance(expected, Exception) else f"gave up at {exits}"
        assert not isinstance(expected, Exception), expected
        for mine, theirs, tensor in zip(found, expected, wanted, strict=True):
            if tensor.kind == "data":
                compare(mine, theirs, tensor)
    return "agreed"


def tensors(fetches):
    """The tensors that are asked for."""
    return [fetch for fetch in leaves(fetches) if isinstance(fetch, Tensor)]
