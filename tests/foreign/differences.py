"""Methods and modes that fail because nbta differs, each with the test of its row.

The rows are in docs/tensorflow.md.
"""

#: By method and mode ("eager", or "graph" for both executors).
DIFFERENCES = {}
