"""Programs as source of one function that Numba compiles."""
