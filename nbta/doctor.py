"""``nbta doctor``: whether nbta works here, and what to do where something does not.

Each check gives findings and never raises: what a check itself meets is a finding, too.
"""

import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

OK, WARNING, BROKEN = "ok", "warning", "broken"
#: Oldest versions that nbta takes, and the newest tested ones (of Numba's, `numba_private` knows).
_OLDEST = {"numpy": "2.0"}
#: What each extra is for, by the module that it brings.
_EXTRAS = {
    "matplotlib": ("plot", "pictures"),
    "graphviz": ("plot", "pictures of graphs by Graphviz"),
    "tqdm": ("progress", "progress bars"),
    "distributed": ("distributed", "Dask clusters"),
}
#: Seconds after which the self-test counts as hanging; kernels may have to be compiled.
_PATIENCE = 600


class Finding(NamedTuple):
    """What a check says.

    Attributes
    ----------
    state : str
        `OK`, `WARNING` or `BROKEN`.
    subject, text : str
        What was looked at, and how it is.
    cure : str
        What to do; empty where nothing is wrong.
    """

    state: str
    subject: str
    text: str
    cure: str = ""


def run() -> int:
    """Print all findings; 1 where something is broken, else 0."""
    states = []
    for check in (_versions, _extras, _kernels, _caches, _threads, _self_test):
        for finding in _guarded(check):
            states.append(finding.state)
            print(f"{finding.state:8} {finding.subject:10} {finding.text}", flush=True)
            if finding.cure:
                print(f"{'':19} -> {finding.cure}", flush=True)
    broken, warned = states.count(BROKEN), states.count(WARNING)
    print(
        f"nbta works here, {_count(warned, 'warning')}"
        if not broken
        else f"nbta does not work here: {_count(broken, 'finding')}, {_count(warned, 'warning')}"
    )
    return int(broken > 0)


def _count(number, noun):
    return f"{number} {noun}{'s' * (number != 1)}"


def _guarded(check):
    """The findings of a check; an error of its own is one of them."""
    try:
        yield from check()
    except Exception as error:
        subject = check.__name__.strip("_")
        yield Finding(BROKEN, subject, f"{type(error).__name__}: {error}", "report this line")


def _versions():
    from nbta.runtime.numba_private import OLDEST, TESTED, number

    yield Finding(OK, "Python", f"{platform.python_version()} ({sys.executable})")
    oldest = _OLDEST | {"numba": OLDEST}
    for package in ("numba", "llvmlite", "numpy", "scipy"):
        try:
            found = metadata.version(package)
        except metadata.PackageNotFoundError:
            yield Finding(BROKEN, package, "is not installed", f"pip install {package}")
            continue
        first, last = oldest.get(package), TESTED.get(package)
        tested = f", tested {f'from {first} ' * bool(first)}up to {last}.*" * bool(last)
        if last and number(found) > number(last):
            cure = f'install a newer nbta, or pip install "{package}=={last}.*"'
            yield Finding(WARNING, package, f"{found} is newer than what was tested{tested}", cure)
        elif first and number(found) < number(first):
            cure = f'pip install "{package}>={first}"'
            yield Finding(BROKEN, package, f"{found} is too old{tested}", cure)
        else:
            yield Finding(OK, package, found + tested)


def _extras():
    missing = {}
    for module, (extra, use) in _EXTRAS.items():
        if find_spec(module) is None:
            missing.setdefault(extra, []).append(use)
    if not missing:
        yield Finding(OK, "extras", "all are installed")
    for extra, uses in missing.items():
        text = f"without {', '.join(uses)}: the extra {extra!r} is not installed"
        yield Finding(OK, "extras", text, f'pip install "nbta[{extra}]", if you want it')


def _kernels():
    from nbta.runtime import shipped

    summary = shipped.summary()
    if summary.startswith("shipped"):
        yield Finding(OK, "kernels", summary)
        return
    cure = (
        "the first use takes about 20 s; install a wheel of nbta that was built for these versions"
    )
    yield Finding(WARNING, "kernels", summary, cure)


def _caches():
    from nbta.runtime import machine_code
    from nbta.runtime.compiled import cache_folder

    yield _folder("cache", machine_code.folder(), "NBTA_CACHE_DIR")
    yield _folder("Numba's", cache_folder(), "NUMBA_CACHE_DIR")


def _folder(subject, folder, variable):
    """Whether compiled code can be kept in a folder, and whether what is there is trusted."""
    slow = "each process compiles again"
    elsewhere = f"set {variable} to a folder of your own on a disk with space"
    if folder is None:
        return Finding(WARNING, subject, f"no folder can be written; {slow}", elsewhere)
    from nbta.runtime.machine_code import reach_of_others

    try:
        reason = reach_of_others(folder) if subject == "cache" else ""
        if reason:
            cure = f"chmod go-w {folder} if it is yours, or {elsewhere}"
            return Finding(WARNING, subject, f"{folder} {reason}; {slow}", cure)
        _write_into(folder)
    except OSError as error:
        text = f"{folder} cannot be written ({error.strerror or error}); {slow}"
        return Finding(WARNING, subject, text, elsewhere)
    return Finding(OK, subject, str(folder))


def _write_into(folder):
    """Write a file of a page to a folder, or to the first one above it that there is."""
    there = next(each for each in (folder, *Path(folder).parents) if each.exists())
    with tempfile.TemporaryFile(dir=there) as file:
        file.write(bytes(4096))
        file.flush()
        os.fsync(file.fileno())


def _threads():
    import numba
    from numba import config

    from nbta.runtime.numba_private import layer_is_installed

    text = f"{numba.config.NUMBA_NUM_THREADS} of {os.cpu_count()} processors"
    layers = [layer for layer in ("tbb", "omp", "workqueue") if layer_is_installed(layer)]
    wanted = str(config.THREADING_LAYER).lower()
    if wanted in ("tbb", "omp", "workqueue") and wanted not in layers:
        cure = f"unset NUMBA_THREADING_LAYER, or install the library of {wanted}"
        yield Finding(BROKEN, "threads", f"{text}, layer {wanted}: it is not installed", cure)
    else:
        yield Finding(OK, "threads", f"{text}, layers: {', '.join(layers) or 'none'}")


#: The self-test's programs run at once, each in a process of its own, as a crash there ends
#: that process alone. A program prints the name of each of its steps, a colon and a word. Its text
#: is put where Python looks for that of files, as functions with loops are converted from it; no
#: file is written. The array is made and stacked in Python, where nothing is compiled for that.
_START = """
import linecache, sys
text = sys.stdin.read()
linecache.cache["<self-test>"] = (len(text), None, text.splitlines(True), "<self-test>")
exec(compile(text, "<self-test>", "exec"))
"""
_OF_ARRAYS = """
import numpy as np, numba, nbta

@numba.njit
def squares(ta, x):
    for v in x:
        ta.append(v * v)

x = np.arange(1.0, 5.0)
array = nbta.TensorArray(np.float64, dynamic_size=True, element_shape=())
squares(array, x)
assert np.array_equal(array.stack(), x * x), array
print("array in @njit: right", flush=True)
"""
_OF_GRADIENTS = """
import numpy as np, nbta

def loss(x):
    total = 0.0
    for v in x:
        total = total + np.sin(v) * v
    return total

x = np.arange(1.0, 5.0)
slope = nbta.grad(loss, compiled=True)(x)
step = 1e-6
differences = [(loss(x + step * e) - loss(x - step * e)) / (2 * step) for e in np.eye(4)]
assert np.allclose(slope, differences, rtol=1e-6), (slope, differences)
print("compiled gradient: as differences", flush=True)

def item(w, row):
    return loss(w * row)

rows = np.arange(32.0).reshape(8, 4)
value, slope = nbta.value_and_grad(item, batch_axis=(None, 0), compiled=True)(0.5, rows)
assert np.isclose(value, np.sum([item(0.5, row) for row in rows])), value
print("batch on threads: right", flush=True)
"""
#: The steps of each program.
_PROGRAMS = {
    _OF_ARRAYS: ("array in @njit",),
    _OF_GRADIENTS: ("compiled gradient", "batch on threads"),
}


def _self_test():
    """Each program in a process of its own."""
    began = time.perf_counter()
    given = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    started = []
    for program in _PROGRAMS:
        process = subprocess.Popen([sys.executable, "-c", _START], text=True, **given)
        process.stdin.write(program)
        process.stdin.close()
        process.stdin = None
        started.append(process)
    for process, steps in zip(started, _PROGRAMS.values(), strict=True):
        yield from _steps(process, steps)
    yield Finding(OK, "self-test", f"took {time.perf_counter() - began:.1f} s")


def _steps(process, steps):
    """The findings of one program, up to its first step that fails."""
    try:
        out, said = process.communicate(timeout=_PATIENCE)
        code, said = process.returncode, said.strip()
    except subprocess.TimeoutExpired:
        process.kill()
        code, (out, said) = "a time limit", (process.communicate()[0], "")
    done = dict(re.findall(r"^(.+): (.+)$", out, flags=re.M))
    for step in steps:
        if step in done:
            yield Finding(OK, "self-test", f"{step}: {done[step]}")
        else:
            last = said.splitlines()[-1] if said else f"it ended with {code}"
            cure = "reinstall nbta and Numba; if that does not help, report all of this output"
            yield Finding(BROKEN, "self-test", f"{step}: {last}", cure)
            return
