"""Functions unmodified: plain Python with loops, branches and item assignment, traced."""
