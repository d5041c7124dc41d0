"""Benchmarks, one file a subject; CONTRIBUTING.md says how to run them.

What is compiled for them is kept, in a folder for each state of nbta's sources: users' loops hold
parts of nbta's code, and Numba only looks at the file that they stand in.
"""

import hashlib
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import numba

ROOT = Path(__file__).parents[2]
#: Where `asv_bench.peers` and the examples are, and an nbta, which an installed one goes before.
PLACES = (str(ROOT), str(ROOT / "examples"))
sys.path += [place for place in PLACES if place not in sys.path]


def sources_stamp():
    """A short hash of all sources of the nbta that is measured."""
    package = Path(find_spec("nbta").origin).parent
    sources = sorted(package.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]


def keep_compiled():
    """Let Numba and nbta, here and in new processes, keep what they compile in folders of ours."""
    stamp, ours = sources_stamp(), ROOT / "asv_bench" / ".asv" / "compiled"
    for variable in ("NUMBA_CACHE_DIR", "NBTA_CACHE_DIR"):
        given = Path(os.environ.get(variable) or ours / variable)
        if given.name != stamp:
            os.environ[variable] = str(given / stamp)
    numba.config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"]


keep_compiled()
