"""Loops and branches as operations that have bodies, and reverse mode through them."""
