"""Run the storage kernels under Valgrind's memcheck: ``python tests/support/memcheck.py``.

The kernels are compiled once without Valgrind, for a processor that it knows, into cache folders of
their own, and are then loaded and run under it. All buffers come from `malloc`, so that memcheck
has a red zone on each side of every one and knows which bytes were written. A second run reads and
writes past a buffer on purpose, and must be found out; otherwise the first proves nothing.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: Valgrind 3.19 has no AVX-512, and needs none.
MACHINE = {
    "NUMBA_CPU_NAME": "x86-64-v2",
    "NUMBA_CPU_FEATURES": "",
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL",
    "OPENBLAS_CORETYPE": "Haswell",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "2",
    "PYTHONMALLOC": "malloc",
    "PYTHONHASHSEED": "0",
}
VALGRIND = [
    "valgrind", "--tool=memcheck", "--smc-check=all-non-file", "--num-callers=20",
    "--error-limit=no", "--keep-stacktraces=alloc-and-free", "--track-origins=no",
    "--error-exitcode=0",
]  # fmt: skip
#: Kinds of errors that `plant` makes.
PLANTED = {"Invalid write", "Invalid read", "Conditional jump"}
#: A frame of compiled code, which comes from no file, or of the allocator that it calls. Valgrind's
#: own replacements of `memcpy` and `malloc` stand before it.
_OURS = re.compile(r"(at|by) 0x[0-9A-F]+: (\?\?\?$|NRT_)")
_REPLACED = ("vg_replace", "(in /usr/libexec/valgrind")


def environment(folder):
    """Folders of their own, which no other processor's code is in."""
    paths = [
        str(HERE.parents[1]),
        str(HERE),
        str(HERE.with_name("runtime")),
        os.environ.get("PYTHONPATH", ""),
    ]
    others = {
        "NUMBA_CACHE_DIR": f"{folder}/numba", "NBTA_CACHE_DIR": f"{folder}/nbta",
        "PYTHONPATH": os.pathsep.join(paths),
    }  # fmt: skip
    return {**os.environ, **MACHINE, **others}


def run(job, folder, valgrind=()):
    """Run a job in a process of its own, under Valgrind or not; gives Valgrind's report."""
    report = Path(folder, f"{job}.txt")
    command = [*valgrind, *([f"--log-file={report}"] if valgrind else []), sys.executable]
    subprocess.run([*command, __file__, job], env=environment(folder), check=True)
    return report.read_text() if valgrind else ""


def errors_of(report):
    """The errors in a report that kernels, or readers of their memory, made.

    Python, NumPy and LLVM have hundreds of their own. An error is the kernels' where the place of
    the error, or the place that allocated the memory beside it, is in compiled code.
    """
    plain = re.sub(r"^==\d+== ?", "", report, flags=re.MULTILINE)
    blocks = [block.strip() for block in re.split(r"\n\s*\n", plain)]
    return [block for block in blocks if any(map(_is_ours, _stacks(block)))]


def _stacks(block):
    """Lines of each stack in a block of a report: they begin with an ``at``."""
    return re.findall(r"^ +at 0x.*(?:\n +by 0x.*)*", block, flags=re.MULTILINE)


def _is_ours(stack):
    frames = [line.strip() for line in stack.splitlines()]
    first = next((f for f in frames if not any(word in f for word in _REPLACED)), "")
    return _OURS.match(first) is not None


def main():
    """Compile, check, and check the check."""
    if shutil.which("valgrind") is None:
        sys.exit("memcheck: install valgrind")
    folder = os.environ.get("MEMCHECK_DIR") or tempfile.mkdtemp(prefix="memcheck-")
    run("work", folder)
    run("plant", folder)
    errors = errors_of(run("work", folder, VALGRIND))
    planted = errors_of(run("plant", folder, VALGRIND))
    print(*errors, sep="\n\n")
    missed = {kind for kind in PLANTED if not any(error.startswith(kind) for error in planted)}
    print(f"memcheck: {len(errors)} errors in the kernels; planted and missed: {missed or 'none'}")
    sys.exit(bool(errors or missed))


def work():
    """Every operation of the storage kernels, eager, failing ones and compiled callers' too."""
    import numpy as np
    import test_memory
    from numba import njit

    import nbta
    from nbta.runtime import settings

    settings.put(settings.MAP_THRESHOLD, settings.NEVER)
    settings.put(settings.POOL_LIMIT, 0)  # what is dropped is freed, so that later uses are seen
    settings.put(settings.FIRST_CAPACITY, 1)
    for workload in test_memory.WORKLOADS:
        for k in range(6):
            workload(k)
    for make, operation in test_memory.SITES.values():
        operation(make())

    @njit(cache=True)
    def compiled(count):
        ta = nbta.TensorArray(np.float64, dynamic_size=True, element_shape=(3,))
        for k in range(count):
            ta.append(np.full(3, float(k)))
        gradient = ta.grad("gradients")
        gradient.accumulate(0, np.ones(3))
        return ta.stack().sum() + gradient.read(0).sum()

    assert compiled(9) == 3 * 36 + 3
    lanes()
    for dtype in ("int8", "float16", "complex128", "S3", "M8[s]"):
        array = nbta.TensorArray(dtype, dynamic_size=True, infer_shape=False)
        for k in range(5):
            array.append(np.zeros((k, 2), dtype))
        assert nbta.TensorArray(dtype, 3).unstack(np.zeros((3, 2), dtype)).stack().shape == (3, 2)
    files()


def lanes():
    """Lanes of growing arrays and of gradient arrays, joined."""
    import numpy as np

    import nbta

    for options in ({"element_shape": (2,)}, {"infer_shape": False}):
        array = nbta.TensorArray("float64", dynamic_size=True, **options)
        parts = array.lanes(3)
        for k in range(3):
            lane = parts.take(k)
            for _ in range(k + 2):
                lane.append(np.full(2, float(k)))
        assert parts.join().size() == 9
    array = nbta.TensorArray("float16", 4).unstack(np.ones((4, 2), np.float16)).grad("g")
    parts = array.lanes(2)
    for k in range(2):
        parts.take(k).accumulate(k, np.ones(2, np.float16))
    parts.join()
    assert array.read(1).tolist() == [1, 1]


def files():
    """A file there and back."""
    import numpy as np

    import nbta

    with tempfile.TemporaryDirectory() as folder:
        for options in ({}, {"infer_shape": False}):
            array = nbta.TensorArray("float64", 3, **options).unstack(np.ones((3, 2)))
            array.grad("gradients").write(0, np.ones(2))
            nbta.save(f"{folder}/array.npz", array)
            assert nbta.load(f"{folder}/array.npz").stack().sum() == 6


def plant():
    """One byte written and one read past a buffer, and a decision by what nobody wrote."""
    import numpy as np
    from numba import njit

    import nbta
    from nbta.runtime import memory as mem
    from nbta.runtime import settings
    from nbta.runtime.buffers import new_buffer

    settings.put(settings.MAP_THRESHOLD, settings.NEVER)
    settings.put(settings.POOL_LIMIT, 0)  # what is dropped is freed, so that later uses are seen
    nbta.TensorArray("float64", 1).write(0, 1.0).read(0)

    @njit
    def beyond(count):
        buffer, fresh = new_buffer(count, False), np.empty(count, np.uint8)
        mem.store_byte(mem.address_of(buffer) + count, 7)
        last = mem.load_byte(mem.address_of(buffer) - 1)
        if fresh[count // 2]:
            mem.store_byte(mem.address_of(buffer), 1)
        mem.keep_alive(buffer)
        return last

    beyond(100)


if __name__ == "__main__":
    {"work": work, "plant": plant}.get("".join(sys.argv[1:]), main)()
