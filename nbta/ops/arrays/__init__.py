"""Tensor arrays in graphs."""
