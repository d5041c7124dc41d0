"""Every allocation of every kind of job fails once: a library before libc sees to that."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nbta

HERE = Path(__file__).parents[1] / "support"
COMPILER = shutil.which("cc") or shutil.which("gcc")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """What `failing_allocations.py` found."""
    library = tmp_path_factory.mktemp("library") / "failing.so"
    source = HERE / "failing_allocations.c"
    flags = ["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, source, "-ldl"]
    subprocess.run([COMPILER, *flags], check=True)
    paths = [str(Path(nbta.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": os.pathsep.join(paths),
    }  # fmt: skip
    program = [sys.executable, HERE / "failing_allocations.py", library]
    done = subprocess.run(
        program, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return dict(map(json.loads, done.stdout.splitlines()))


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="libraries are preloaded under Linux"),
    pytest.mark.skipif(COMPILER is None, reason="there is no C compiler"),
]


def test_each_failure_is_a_clear_error_and_leaks_nothing(rows):
    assert {job: row["wrong"] for job, row in rows.items() if row["wrong"]} == {}


def test_allocations_of_each_kind_are_reached(rows):
    for job, row in rows.items():
        if "from then on" in job or job in ("lookup", "made inside", "pickle", "in lanes"):
            assert row["failures"] > 0, job  # others may do with less
        assert job == "save" or sum(row["reached"]) > 0, job  # which copies nothing
    compiled, runtime, numpy = np.sum([row["reached"] for row in rows.values()], axis=0)
    assert min(compiled, runtime, numpy) > 20
