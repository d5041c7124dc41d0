"""Ordinary loop programs: each as nbta's, as Numba's and as JAX's, and some differentiated by hand.

``python -m asv_bench.programs`` measures what a gradient costs beside its function.
"""

from . import cameras, estimation, learning, matrices, motion, nests, recurrences, tables

FAMILIES = (recurrences, nests, matrices, tables, motion, learning, cameras, estimation)
#: All programs, by name.
PROGRAMS = {program.name: program for family in FAMILIES for program in family.PROGRAMS}
