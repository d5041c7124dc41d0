"""The pages beside arrays that nobody may touch, which `fenced` puts there."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[1] / "support"
PROGRAM = """
import ctypes, fenced, numpy as np
a = np.arange(5.0)
b = np.arange(1000.0)
b.resize(3, refcheck=False)
assert (a.sum(), b.tolist()) == (10.0, [0.0, 1.0, 2.0])
ctypes.c_double.from_address(a.ctypes.data + {offset}).value
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
@pytest.mark.parametrize(("fenced", "outside"), [("after", 48), ("before", -8)])
def test_what_reads_outside_of_an_array_ends(fenced, outside):
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT), "FENCED": fenced}
    ends = [
        subprocess.run([sys.executable, "-c", PROGRAM.format(offset=offset)], env=environment)
        for offset in (32, outside)
    ]
    assert [end.returncode for end in ends] == [0, -signal.SIGSEGV]
