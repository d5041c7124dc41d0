"""What nbta uses of Numba, Python and NumPy beyond their documented interfaces."""

import ctypes
import random
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from nbta.runtime import memory, numba_private
from nbta.runtime.memory import HEAD

HIDDEN = {
    "a module": ("numba.core.cgutils", "import numba.core; del numba.core.cgutils; "
                 "import sys; sys.modules['numba.core.cgutils'] = None"),
    "a function of a module": ("numba.core.cgutils.pack_array",
                               "import numba.core.cgutils as m; del m.pack_array"),
    "a class": ("numba.core.dispatcher._FunctionCompiler",
                "import numba.core.dispatcher as m; del m._FunctionCompiler"),
    "a method": ("numba.core.codegen.JITCodeLibrary.get_pointer_to_function",
                 "import numba.core.codegen as m; del m.JITCodeLibrary.get_pointer_to_function"),
}  # fmt: skip


@pytest.mark.parametrize("kind", HIDDEN)
def test_a_numba_that_lacks_something_is_told_of_at_the_import(kind):
    path, hide = HIDDEN[kind]
    code = f"import numba; {hide}; import nbta"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    use = numba_private.USES.get(path) or numba_private.USES[path.rpartition(".")[0]]
    assert last.startswith(f"ImportError: nbta uses {path}, which Numba ")
    assert use.why in last
    oldest, newest = numba_private.OLDEST, numba_private.NEWEST
    assert f"Numba {oldest} to {newest}; install one of these" in last


def test_the_oldest_numba_is_the_one_that_may_be_installed():
    file = Path(__file__).parents[2] / "pyproject.toml"
    needed = tomllib.loads(file.read_text())["project"]["dependencies"]
    assert f"numba>={numba_private.OLDEST}" in needed


NEWER = {"numba": "0.69.0dev0+12.gabc", "numpy": "2.5.0rc1", "llvmlite": "1.0.0"}


@pytest.mark.parametrize("package", NEWER)
def test_versions_above_the_tested_ones_are_told_of_at_the_import(package):
    version, newest = NEWER[package], numba_private.TESTED[package]
    code = (
        f"import numba, {package}; {package}.__version__ = {version!r}; import nbta, nbta.namespace"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    (line,) = [each for each in done.stderr.splitlines() if "RuntimeWarning" in each]
    assert f"not tested with {package} {version} (tested up to {newest}.*), and results" in line
    assert f'pip install "numba=={numba_private.NEWEST}.*"' in line


def test_tested_versions_are_silent_and_written_down():
    for version in ("2.4", "2.4.99", "2.0.1", "1.26.4"):
        assert numba_private.number(version) <= numba_private.number("2.4")
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    for package, newest in numba_private.TESTED.items():
        assert re.search(rf"{package} {re.escape(newest)}\b", readme, re.IGNORECASE), package


def test_every_use_has_a_reason_and_a_loss():
    assert len(numba_private.USES) > 30
    for path, use in numba_private.USES.items():
        assert path.startswith("numba."), path
        assert min(len(use.why), len(use.without)) > 5, path


EAGER = """
import numba
from numba.core.event import trigger_event

@numba.njit("float64(float64)")
def twice(x):
    return 2.0 * x

with trigger_event("numba:compile", data={"dispatcher": twice}):
    import nbta.runtime.extension

    @numba.njit("float64(float64)")
    def thrice(x):
        return 3.0 * x

from nbta.runtime.numba_private import being_compiled
print(twice(1.0) + thrice(1.0), being_compiled())
"""


def test_numba_may_import_nbta_while_it_compiles_a_function():
    # Numba imports its extensions for the first function that it compiles, here by a signature:
    # nbta then hears the end of a compilation, but not its start.
    done = subprocess.run(
        [sys.executable, "-c", EAGER], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("5.0 []\n", "")


def test_every_private_name_is_used():
    """Somewhere in the package: what falls out of use is to be taken out."""
    own = Path(numba_private.__file__)
    texts = [f.read_text() for f in own.parent.parent.rglob("*.py") if f != own]
    used = set(re.findall(r"\w+", "\n".join(texts)))
    only_here = {
        "USES",
        "OLDEST",
        "NEWEST",
        "TESTED",
        "PASSES",
        "Use",
        "CompilerBase",
        "PassManager",
    }
    made = {name for name in vars(numba_private) if not name.startswith("_")}
    assert made - used <= only_here


def word(address):
    return ctypes.c_int64.from_address(address).value


def int_at(address):
    return ctypes.c_int32.from_address(address).value


def test_python_keeps_types_and_values_where_compiled_code_looks():
    value = 1.5
    assert word(id(value) + HEAD - 8) == id(float)
    assert ctypes.c_double.from_address(id(value) + HEAD).value == 1.5
    scalar = np.float64(2.5)
    assert ctypes.c_double.from_address(id(scalar) + HEAD).value == 2.5


def test_numpy_keeps_fields_where_compiled_code_looks():
    array = np.zeros((3, 5), np.float32)
    fields = id(array) + HEAD
    assert word(fields + memory.ARRAY_DATA) == array.ctypes.data
    assert int_at(fields + memory.ARRAY_RANK) == 2
    dimensions = word(fields + memory.ARRAY_DIMENSIONS)
    assert [word(dimensions), word(dimensions + 8)] == [3, 5]
    assert word(fields + memory.ARRAY_DTYPE) == id(array.dtype)


@pytest.mark.parametrize(
    ("array", "ready"),
    [
        (np.zeros((3, 5)), True),
        (np.zeros((3, 5)).T, False),
        (np.zeros(9, np.uint8)[1:].view(np.float64), False),
    ],
    ids=["C order", "not C order", "not aligned"],
)
def test_flags_say_which_arrays_may_be_taken_as_they_are(array, ready):
    flags = int_at(id(array) + HEAD + memory.ARRAY_FLAGS)
    assert (flags & memory.ARRAY_READY == memory.ARRAY_READY) is ready


FIRST_PROGRAM = """
import sys
import numpy as np
import nbta
def loss(w, x):
    h = np.zeros(w.shape[0])
    for t in range(x.shape[0]):
        h = np.tanh(h @ w + x[t]) if t % 2 else np.exp(h) / (1 + abs(x[t]) ** 3)
    return np.sum(h * {number})
nbta.value_and_grad(loss, compiled=True)(np.eye(3), np.ones((4, 3)))
print(sorted({{"scipy.linalg", "numba.np.arraymath"}} & set(sys.modules)))
"""


def test_a_first_program_waits_for_no_tables_that_it_has_no_use_for():
    # Those take half a second.
    def modules():
        code = FIRST_PROGRAM.format(number=random.random())  # not in the cache
        command = [sys.executable, "-c", code]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    modules()  # which may have to compile what programs call
    assert modules() == "[]\n"
