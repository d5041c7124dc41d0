"""Kernels compiled ahead, when a wheel is built: ``python -m nbta.kernels.ahead FOLDER``.

Types and LLVM's code are found once, by one process, and one process a level makes machine code of
that: Numba's front end takes three quarters of the time. Products of matrices choose their vectors
while they are lowered, so each level lowers these itself.

The same sources, Numba and LLVM give the same bytes, wherever and whenever this runs: what counts
is in the environment of those processes. No address, name of a folder or order of a set gets in.
"""

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import llvmlite
import numba
import numpy as np

from nbta.kernels import exponential, factors, fourier, matrices
from nbta.runtime import entry_points, parallel, python_calls, python_methods, shipped
from nbta.runtime.machine_code import Routine
from nbta.runtime.numba_private import bitcode_of, lowered, optimised
from nbta.runtime.object_files import Code, constants_of, declared, encoded

#: Modules of what compiled graphs call.
HELPERS = (matrices, factors, exponential, fourier)
#: The role of the process that lowers for all levels.
LOWER = "lower"


def routines() -> list[Routine]:
    """All of the runtime that is compiled by itself."""
    kernels = map(entry_points.routine, entry_points.ENTRIES)
    helpers = [r for m in HELPERS for r in m.FUNCTIONS.values()]
    return [
        *kernels,
        *python_calls.ROUTINES.values(),
        *python_methods.ROUTINES.values(),
        parallel.WORK,
        *helpers,
    ]


def make(folder: Path, chosen: str = ""):
    """Make all object files and the manifest in a folder.

    Parameters
    ----------
    folder : Path
        It is not there yet, or is empty.
    chosen : str
        Names of levels, with commas between; empty: all of this kind of processor.

    Raises
    ------
    RuntimeError
        If there is no such level, or a process failed, which has told why.
    """
    levels = chosen.split(",") if chosen else list(shipped.levels())
    if unknown := set(levels) - set(shipped.levels()):
        known = ", ".join(shipped.levels())
        raise RuntimeError(f"NBTA_BUILD_KERNELS names {unknown.pop()!r}; here there are {known}")
    _say(f"compiling kernels for {', '.join(levels)} (NBTA_BUILD_KERNELS=0 skips this)")
    for level in levels:
        (folder / level).mkdir(parents=True)
    with tempfile.TemporaryDirectory() as work:
        lower = _start(folder, LOWER, work, stdout=subprocess.PIPE)
        makers = [_start(folder, level, work, stdin=subprocess.PIPE) for level in levels]
        _hand_on(lower, makers)
        if [process for process in (lower, *makers) if process.wait()]:
            raise RuntimeError("kernels could not be compiled; NBTA_BUILD_KERNELS=0 skips them")
    manifest = json.dumps(_manifest(folder, levels), indent=1) + "\n"
    (folder / shipped.MANIFEST).write_text(manifest, newline="\n")


def _say(text):
    print(f"nbta: {text}", file=sys.stderr, flush=True)


def _start(folder, role, work, **pipes):
    command = [sys.executable, "-m", "nbta.kernels.ahead", str(folder.absolute()), role]
    return subprocess.Popen(command, cwd=work, env=_environment(role, work), text=True, **pipes)


def _environment(role, work):
    """Variables for a process: nothing of the user's or the machine's gets into the code."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "NBTA_"))}
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    level = list(shipped.levels())[-1] if role == LOWER else role
    return kept | {
        "NUMBA_CPU_NAME": level,
        "NUMBA_CPU_FEATURES": ",".join(f"+{f}" for f in shipped.levels()[level]),
        "NUMBA_CACHE_DIR": work,
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }


def _hand_on(lower, makers):
    """Tell each maker of what is lowered, until all is."""
    count = sum(not routine.by_processor for routine in routines())
    with contextlib.suppress(BrokenPipeError):  # a maker that failed ends with a code of its own
        for number, line in enumerate(lower.stdout, 1):
            _say(f"{number}/{count} {json.loads(line)['name']}")
            for maker in makers:
                maker.stdin.write(line)
                maker.stdin.flush()
    lower.stdout.close()
    for maker in makers:
        with contextlib.suppress(BrokenPipeError):
            maker.stdin.close()


def _manifest(folder, levels):
    """What the kernels are made for and by, and a digest of each file."""
    digests = {
        level: {
            path.stem: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted((folder / level).iterdir())
        }
        for level in levels
    }
    modules = {"numba": numba, "llvmlite": llvmlite, "numpy": np}
    versions = {name: module.__version__ for name, module in modules.items()}
    return {"made_for": shipped.made_for(), "made_with": versions, "levels": digests}


def lower_all():
    """Lower what is the same for all levels, and tell of each on standard output."""
    matrices.Machine.__init__ = _refused
    for routine in routines():
        if not routine.by_processor:
            place = Path(f"{routine.name}.bc").absolute()
            facts, bitcode = _lowered(routine)
            place.write_bytes(bitcode)
            print(json.dumps({**facts, "bitcode": str(place)}), flush=True)


def _refused(self, context):
    raise TypeError("this code depends on the processor: say so in its Routine")


def _lowered(routine):
    """What is known of a routine, and LLVM's code for it, not optimised."""
    library, names = lowered(numba.njit(**routine.options)(routine.function), routine.signature)
    constants = constants_of(library, names.env_name)
    if constants is None:
        raise TypeError(f"{routine.name} refers to objects of this process")
    facts = {
        "name": routine.name,
        "wrapper": names.llvm_cpython_wrapper_name,
        "pointer": names.llvm_cfunc_wrapper_name,
        "environment": names.env_name,
        "constants": constants,
    }
    return facts, bitcode_of(library)


def make_level(folder: Path):
    """Make the object files of this process's level, as standard input tells of what is lowered."""
    for routine in routines():
        if routine.by_processor:
            _make_file(folder, *_lowered(routine))
    for line in sys.stdin:
        facts = json.loads(line)
        _make_file(folder, facts, Path(facts.pop("bitcode")).read_bytes())


def _make_file(folder, facts, bitcode):
    module, binary = optimised(bitcode)
    name = facts.pop("name")
    code = Code(**facts, needed=declared(module), binary=binary)
    (folder / f"{name}.code").write_bytes(encoded(name, code))


def main(folder: str, role: str = ""):
    """Do one process's work."""
    if role == LOWER:
        lower_all()
    elif role:
        make_level(Path(folder, role))
    else:
        wanted = os.environ.get("NBTA_BUILD_KERNELS", "")
        make(Path(folder), "" if wanted == "1" else wanted)


if __name__ == "__main__":
    main(*sys.argv[1:])
