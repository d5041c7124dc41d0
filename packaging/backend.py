"""hatchling, and what a wheel with kernels needs beside: an editable installation needs neither.

Numba compiles the kernels that go into a wheel (`hook.py`). Were it declared in
``build-system.requires``, it would be installed for ``pip install -e .`` too.
"""

import os
import tomllib
from pathlib import Path

from hatchling import build
from hatchling.build import *  # noqa: F403 - the hooks of PEP 517 and PEP 660

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def get_requires_for_build_wheel(config_settings=None):
    """What hatchling asks for, and what nbta itself is run by."""
    needed = build.get_requires_for_build_wheel(config_settings)
    if os.environ.get("NBTA_BUILD_KERNELS") == "0":
        return needed
    return [*needed, *tomllib.loads(PROJECT.read_text())["project"]["dependencies"]]
