"""Benchmarks: each row runs nbta and a peer on equal terms."""

import sys
from importlib.util import find_spec
from pathlib import Path

if find_spec("nbta") is None:  # not installed: the repository's own, as it stands
    sys.path.append(str(Path(__file__).parents[2]))
