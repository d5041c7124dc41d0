"""Pictures of graphs and of arrays, for people; matplotlib and graphviz are imported when asked."""
