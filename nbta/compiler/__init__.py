"""Making a graph cheaper to run: passes from graph to graph."""
