"""Graphs of operations: what users build, differentiate and run."""
