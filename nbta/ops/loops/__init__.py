"""Loops and branches, and what their gradients keep."""
