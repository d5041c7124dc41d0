"""Functions of numbers, vectors and matrices that generated code calls, compiled by Numba."""
