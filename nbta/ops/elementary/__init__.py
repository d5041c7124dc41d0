"""Elementary functions: powers and waves, rounding, bits of integers."""
