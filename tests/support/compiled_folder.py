"""Where what tests compile is kept, so that a second run compiles nothing again.

All workers of a run share the folder: kernels and graphs are compiled by one process while the
others wait for it (`nbta/runtime/compiled.py`), and a file of tests has one worker.
"""

import hashlib
import os
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: A folder for each state of the sources that kernels are compiled from.
FOLDERS = ROOT / ".pytest_cache" / "compiled"
#: As many of them stay: going to another branch and back compiles nothing.
KEPT = 3
PARTS = {"NUMBA_CACHE_DIR": "numba", "NBTA_CACHE_DIR": "graphs"}


def environment(given=os.environ):
    """Variables to set, where neither the user nor the process that starts workers did."""
    missing = {name: part for name, part in PARTS.items() if not given.get(name)}
    folder = FOLDERS / stamp()
    try:
        for part in missing.values():
            (folder / part).mkdir(mode=0o700, parents=True, exist_ok=True)
        if missing:
            os.utime(folder)  # used last
            remove_old()
    except OSError:  # nothing can be written here: Numba knows other places
        return {}
    return {name: str(folder / part) for name, part in missing.items()}


def stamp():
    """Of the sources, without importing them: Numba must know the folder before."""
    sources = sorted([*ROOT.glob("nbta/runtime/*.py"), *ROOT.glob("nbta/kernels/*.py")])
    assert sources, "the kernels have moved"
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]


def remove_old():
    """Remove all folders but those used last."""
    for old in sorted(FOLDERS.iterdir(), key=lambda path: -path.stat().st_mtime)[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
