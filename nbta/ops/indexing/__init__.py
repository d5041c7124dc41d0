"""Items, rows and blocks of tensors: taken, replaced, joined, in another order."""
