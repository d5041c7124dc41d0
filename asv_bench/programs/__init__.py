"""Ordinary loop programs: each as nbta's, as Numba's and as JAX's, and some differentiated by hand.

``python -m asv_bench.programs`` measures what a gradient costs beside its function.
"""

from . import (
    cameras,
    estimation,
    learning,
    matrices,
    motion,
    nests,
    paths,
    recurrences,
    slices,
    tables,
)

FAMILIES = (
    recurrences, nests, matrices, slices, tables, motion, learning, cameras, estimation, paths,
)  # fmt: skip
#: All programs, by name.
PROGRAMS = {program.name: program for family in FAMILIES for program in family.PROGRAMS}
