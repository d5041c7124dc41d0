"""Functions as they stand: plain Python with loops, branches and item assignment, traced."""
