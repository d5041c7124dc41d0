"""The same checked work on nbta and on its peers: ``python -m asv_bench.peers``.

``cases.py`` says what the work is and makes its numbers; each ``with_*.py`` does it with one
library, in a process of its own (``worker.py``); ``crew.py`` starts those processes, holds their
results against one another and lets them work in turn; ``startup.py`` measures new processes.
A peer that is not installed is left out with a note.
"""
