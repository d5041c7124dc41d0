"""Kernels that came with the package: object files for levels of processors.

`nbta.kernels.ahead` makes them when a wheel is built, and a manifest that says what they are made
for, with a digest of each. Whatever does not fit is not taken, and a lower level or the compiler
serves: code that was made for something else would show it by a crash.
"""

import hashlib
import json
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm
import numba
import numpy as np

from nbta.runtime.compiled import compiler_settings, runtime_stamp
from nbta.runtime.numba_private import processor_features
from nbta.runtime.object_files import Code, decoded

FOLDER = Path(__file__).parents[1] / "objects"
MANIFEST = "manifest.json"
_V1 = "64bit cmov cx8 fxsr mmx sse sse2"
_V2 = f"{_V1} cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3"
_V3 = f"{_V2} avx avx2 bmi bmi2 f16c fma lzcnt movbe"
_V4 = f"{_V3} avx512bw avx512cd avx512dq avx512f avx512vl"
#: Names of processors for LLVM, from the most able, and what they must have. The levels of the
#: x86-64 ABI (https://gitlab.com/x86-psABIs/x86-64-ABI, table 3.1), by LLVM's names of features.
_LEVELS = {"x86_64": {"x86-64-v4": _V4, "x86-64-v3": _V3, "x86-64-v2": _V2}}


def levels() -> dict[str, tuple[str, ...]]:
    """Features of each level of this kind of processor, from the highest."""
    found = _LEVELS.get(llvm.get_process_triple().partition("-")[0], {"generic": ""})
    return {level: tuple(features.split()) for level, features in found.items()}


def made_for() -> dict:
    """What must be here as it was where kernels were made."""
    return {
        "numba": ".".join(numba.__version__.split(".")[:2]),
        "python": sysconfig.get_config_var("EXT_SUFFIX"),
        "numpy": np.__version__.partition(".")[0],
        "settings": compiler_settings(),
        "sources": runtime_stamp(),
    }


#: How a difference is told.
_REASONS = {
    "numba": "they were built for Numba {}, this is {}",
    "python": "they were built for Python {}, this is {}",
    "numpy": "they were built for NumPy {}, this is {}",
    "settings": "Numba's settings are {1}, they were built with {0}",
    "sources": "they were built from other sources",
}


def manifest() -> dict[str, dict[str, str]]:
    """Digests of the files by level, as far as all fits here; empty, with `reason`, where not."""
    return read_manifest()[0]


def reason() -> str:
    """Why no kernel that came with the package is used; empty where some are."""
    return read_manifest()[1]


@cache
def read_manifest() -> tuple[dict, str]:
    """`manifest` and `reason`."""
    try:
        found = json.loads((FOLDER / MANIFEST).read_bytes())
        differing = _difference(found["made_for"])
        digests = {level: dict(found["levels"].get(level, {})) for level in levels()}
    except FileNotFoundError:
        return {}, "none came with this installation"
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}, "their manifest cannot be read"
    return ({}, differing) if differing else _for_this_processor(digests)


def _difference(expected):
    """What is not as it was, in words."""
    for name, here in made_for().items():
        if expected[name] != here:
            return _REASONS[name].format(expected[name], here)
    return ""


def _for_this_processor(digests):
    """The levels that this processor, or the one that Numba compiles for, has."""
    has, lacking = processor_features(), ""
    usable = {}
    for level, features in levels().items():
        missing = [feature for feature in features if feature not in has]
        if not missing and digests[level]:
            usable[level] = digests[level]
        elif missing:
            lacking = f"the processor has no {missing[-1]}, which {level} needs"
    return usable, "" if usable else lacking or "there are none for this processor"


def codes(name: str) -> Iterator[Code]:
    """A kernel's code, from the highest level whose file is whole."""
    for level, digests in manifest().items():
        try:
            yield _read(level, name, digests[name])
        except (OSError, ValueError, KeyError):
            continue


def _read(level, name, digest):
    data = (FOLDER / level / f"{name}.code").read_bytes()
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError("another file than the manifest knows")
    return decoded(name, data)


def summary() -> str:
    """Which kernels are used, and why, in a line."""
    if reason():
        return f"compiled here: {reason()}"
    level, digests = next(iter(manifest().items()))
    damaged = [name for name in digests if not _is_whole(level, name)]
    note = f"; damaged, and not used: {', '.join(damaged)}" if damaged else ""
    return f"shipped, for {level}{note}"


def _is_whole(level, name):
    try:
        return bool(_read(level, name, manifest()[level][name]))
    except (OSError, ValueError):
        return False
