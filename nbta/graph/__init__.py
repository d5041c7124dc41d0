"""Graphs of operations: what users build, differentiate and run."""

from nbta.graph import printer

_INSTALLED = printer  # the text of graphs
