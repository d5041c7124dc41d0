"""The rules by which operations become statements of the loop IR."""
