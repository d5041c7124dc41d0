"""Special functions, as SciPy has them."""
