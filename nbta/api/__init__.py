"""Functions that take users' functions: traced, differentiated, run over sequences and batches."""
