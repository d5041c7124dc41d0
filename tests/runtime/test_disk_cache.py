"""The disk cache: a second process compiles nothing, and no state of the folder stops anybody."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from compilations import COUNTING, copy_kernels

import nbta
from nbta.runtime import python_methods

USERS_MODULE = """
import numpy as np
from numba import njit

import nbta


@njit(cache=True)
def passed(ta, values):
    for k in range(len(values)):
        ta.append(values[k])
    ta = ta.write(len(values) + 1, values[0])
    gradient = ta.grad("gradients")
    gradient.accumulate(0, values[1])
    return ta.read(0), gradient.read(0), len(ta), ta.size(), ta.stack()


@njit(cache=True)
def made(count):
    ta = nbta.TensorArray(np.float64, dynamic_size=True, element_shape=())
    for k in range(count):
        ta.append(float(k))
    return ta.read(count - 1)


@njit(cache=True)
def handed_back(ta):
    return ta
"""

EAGER = """
import numpy as np

import nbta

rows = np.arange(6.0).reshape(3, 2)
ta = nbta.TensorArray("float64", dynamic_size=True, clear_after_read=False)
total = ta.unstack(rows).write(3, rows[0]).append(rows[1]).scatter([5], rows[2:]).stack().sum()
total += ta.read(1).sum() + ta.gather([2, 0]).sum() + ta.concat().value.sum() + len(repr(ta)) * 0
total += len(nbta.TensorArray("float64", 2, infer_shape=False).split(rows, [1, 2]).read(1))
total += ta.grad("gradients").accumulate(0, rows[0]).write(0, rows[1]).stack().sum()
ta.close()
"""

COMPILED = """
from users_module import made, passed

ta = nbta.TensorArray("float64", dynamic_size=True, element_shape=(2,), clear_after_read=False)
first, sums, count, size, everything = passed(ta, rows)
total += first.sum() + sums.sum() + count + size + everything.sum() + made(5)
"""

REPORT = """
import json
print(json.dumps({"total": float(total), "compiled": counting.compiled}))
"""

SMALL = """
import numpy as np

import nbta

total = nbta.TensorArray("float64", 2).write(0, 1.5).write(1, 2.0).read(0)
"""

WHOLE = COUNTING + EAGER + COMPILED + REPORT
#: What each operation of the programs adds, in their order.
TOTAL = 30.0 + 5 + 10 + 30 + 2 + 6 + (1 + 5 + 5 + 5 + 16 + 4)


def run(program, folder, cache):
    """Run a program in a new process, with its own cache folder."""
    script = folder / "program.py"
    script.write_text(program)
    paths = [str(Path(nbta.__file__).parents[1]), str(folder)]
    environment = {
        **os.environ, "NUMBA_CACHE_DIR": str(cache), "NBTA_CACHE_DIR": str(cache / "nbta"),
        "PYTHONPATH": os.pathsep.join(paths),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def files_of(cache):
    """What is written anew is another file; ours are marked as used, too."""
    return {path: path.stat().st_ino for path in cache.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a user's module."""
    place = tmp_path_factory.mktemp("user")
    (place / "users_module.py").write_text(USERS_MODULE)
    return place


@pytest.fixture(scope="module")
def warm(folder):
    """A cache folder that one process filled, and what that process said.

    It starts from the kernels that this process has cached, which saves compiling them again.
    """
    cache = folder / "cache"
    cache.mkdir()
    copy_kernels(cache / "nbta")
    return cache, run(WHOLE, folder, cache)


@pytest.fixture
def copied(warm, tmp_path):
    """A copy of the filled cache, to be damaged."""
    return Path(shutil.copytree(warm[0], tmp_path / "cache"))


@pytest.mark.slow
def test_a_second_process_compiles_nothing(folder, warm):
    cache, first = warm
    before = files_of(cache)
    second = run(WHOLE, folder, cache)
    assert first["compiled"] != []
    assert second == {"total": first["total"], "compiled": []}
    assert files_of(cache) == before


@pytest.mark.slow
def test_cached_code_computes_the_same(folder, warm):
    assert warm[1]["total"] == TOTAL


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["junk", "truncated", "empty"])
def test_damaged_files_are_made_again(damage, folder, copied):
    """Files of our own functions; those of users' functions are Numba's business."""
    for routine in (python_methods.write_method, python_methods.read_method):
        (path,) = (
            p for p in copied.rglob("*.graph") if routine.__name__.encode() in p.read_bytes()
        )
        data = path.read_bytes()
        half = data[: len(data) // 2]
        path.write_bytes({"junk": b"junk" * 99, "truncated": half, "empty": b""}[damage])
    result = run(COUNTING + SMALL + REPORT, folder, copied)
    assert result["total"] == 1.5
    assert {"write_method", "read_method"} <= set(result["compiled"])
    again = run(COUNTING + SMALL + REPORT, folder, copied)
    assert again == {"total": 1.5, "compiled": []}


@pytest.mark.slow
def test_a_folder_that_cannot_be_written(folder, tmp_path):
    regular = tmp_path / "file"
    regular.write_text("a regular file")
    result = run(COUNTING + SMALL + REPORT, folder, regular / "below")
    assert result["total"] == 1.5
    assert regular.read_text() == "a regular file"


NO_FOLDER = """
from numba.core.caching import CacheImpl

CacheImpl._locator_classes = []
from nbta.runtime import machine_code

machine_code.folder = lambda: None
"""


@pytest.mark.slow
def test_no_folder_at_all(folder, tmp_path):
    result = run(COUNTING + NO_FOLDER + SMALL + REPORT, folder, tmp_path)
    assert result["total"] == 1.5
    assert result["compiled"] != []
    assert files_of(tmp_path) == {}


#: Another class name and other sources, as another version of the package has them.
OTHER_VERSION = """
import importlib.util
import sys
import types

package = types.ModuleType("nbta")
package.__path__ = importlib.util.find_spec("nbta").submodule_search_locations
sys.modules["nbta"] = package
from numba.types import ClassType

initialise = ClassType.__init__


def named_otherwise(self, class_def, *args):
    class_def.__qualname__ += " of another version"
    initialise(self, class_def, *args)


ClassType.__init__ = named_otherwise
from nbta.runtime import compiled

compiled.runtime_stamp = lambda: "another version"
del sys.modules["nbta"]
"""
USERS = """
import nbta
from users_module import handed_back, made

total = made(5) + handed_back(nbta.TensorArray("float64", 1)).size()
"""


@pytest.mark.slow
def test_files_of_another_version_are_made_again(folder, copied):
    """Also a user's function that only makes an array, whose signature says nothing of nbta.

    And one that only hands an array back, which finds functions of nbta by their names.
    """
    other = run(COUNTING + OTHER_VERSION + USERS + REPORT, folder, copied)
    assert other["total"] == 5.0
    assert {"made", "handed_back"} <= set(other["compiled"])
    result = run(COUNTING + USERS + REPORT, folder, copied)
    assert result["total"] == 5.0
    assert {"made", "handed_back"} <= set(result["compiled"])
    again = run(COUNTING + USERS + REPORT, folder, copied)
    assert again == {"total": 5.0, "compiled": []}
