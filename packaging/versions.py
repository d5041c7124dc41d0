"""Which packages are of other versions than those that all tests passed with.

``python packaging/versions.py`` names them, and ``--write`` takes what is installed as the new
constraints (`constraints.txt`, beside this), which is for after a green run.
"""

import argparse
import re
import sys
from importlib.metadata import distributions
from pathlib import Path

FILE = Path(__file__).with_name("constraints.txt")
#: Of every environment, whatever is tested.
BASE = {"nbta", "pip", "setuptools", "wheel"}
_HEAD = """\
# What all tests passed with, for `pip install -c packaging/constraints.txt`.
# Made by `python packaging/versions.py --write`.
"""


def normal(name: str) -> str:
    """A package's name in the one spelling that pip compares."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed() -> dict[str, str]:
    """Versions by name, of this environment."""
    found = {normal(each.metadata["Name"]): each.version for each in distributions()}
    return {name: found[name] for name in sorted(found) if name not in BASE}


def recorded(text: str) -> dict[str, str]:
    """Versions by name, of the lines of a file of constraints."""
    pins = [line.partition("==") for line in text.splitlines() if "==" in line]
    return {normal(name): version.strip() for name, _, version in pins}


def moved(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """A line for each package whose version differs; packages that are gone are in nobody's way."""
    return [
        f"{name} {before.get(name, '(not there)')} -> {version}"
        for name, version in now.items()
        if before.get(name) != version
    ]


def main() -> int:
    """Exit code: whether anything moved."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="record what is installed")
    if parser.parse_args().write:
        lines = [f"{name}=={version}\n" for name, version in installed().items()]
        FILE.write_text(_HEAD + "".join(lines))
        return 0
    found = moved(recorded(FILE.read_text()), installed())
    print("\n".join(found) or "all packages are of the recorded versions")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
