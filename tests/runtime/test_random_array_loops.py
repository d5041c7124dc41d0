"""Random loops over arrays by several names: compiled code gives what Python does."""

import pytest
from array_loop_programs import Program, arguments, functions, outcome

from nbta.runtime import python_calls
from nbta.runtime.fields import PromotedType


def promoted(function):
    """How many arrays of a compiled function have their fields in local variables."""
    (result,) = function.overloads.values()
    kinds = result.type_annotation.typemap.items()
    return sum(isinstance(kind, PromotedType) for name, kind in kinds if "nbta_fields" in name)


@pytest.mark.slow_but_every(32)
@pytest.mark.parametrize("seed", range(96))
def test_random_loops(seed):
    program = Program(seed)
    plain, compiled = functions(program.text, nogil=seed % 7 == 6)
    for variant in range(6):
        given = [arguments(f"{seed} {variant}", program.shape) for _ in range(2)]
        expected, found = outcome(plain, given[0]), outcome(compiled, given[1])
        assert repr(found) == repr(expected), program.text
        for array in given[1][:3]:
            assert python_calls.native(python_calls.guards_intact)(array._address)
    assert promoted(compiled), program.text
