"""Random programs of branches and loops that name arrays and let them change places."""

import branch_programs
import pytest
from array_programs import check


def hold(seeds, machine_code=False):
    for seed in seeds:
        program = branch_programs.program(seed)
        try:
            check(program, machine_code, second=True, alone=True, calls=3)
        except Exception as error:
            error.add_note(f"branch_programs.program({seed})\n{program!r}")
            raise


def test_random_programs():
    hold([1, 6, 1023])


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 200, 50))
def test_many_random_programs(first):
    hold(range(2000 + first, 2050 + first))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 20, 10))
def test_random_programs_as_machine_code(first):
    hold(range(first, first + 10), machine_code=True)
