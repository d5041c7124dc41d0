"""How a function becomes an operation: arguments, dtypes, shapes, arithmetic, checks."""
