"""Test sessions for each Python, and for the oldest and newest packages: ``nox -l`` lists them.

A session has an environment and cache folders of its own, so kernels are compiled anew in each.
What follows ``--`` goes to pytest, as in ``nox -s oldest -- tests/eager/test_eager.py``.
"""

import re
import tomllib
from pathlib import Path

import nox

PYTHONS = ("3.11", "3.12", "3.13")
PROJECT = tomllib.loads(Path("pyproject.toml").read_text())["project"]
#: Numba and NumPy decide what machine code there is; the rest may be of any version.
DECIDING = ("numba", "numpy")

nox.options.sessions = ["tests", "oldest", "newest"]


def bound(name):
    """The least version of a dependency that pyproject.toml admits, with any last number."""
    found = next(line for line in PROJECT["dependencies"] if re.match(rf"{name}\b", line))
    version = found.partition(">=")[2]
    return f"{name}=={version if version.count('.') else f'{version}.0'}.*"


def run(session, *pins, options=()):
    """The test suite in this session's environment, after saying what is in it."""
    session.install(*options, "-e", ".[test]", *pins)
    caches = Path(session.create_tmp())
    session.env["NUMBA_CACHE_DIR"] = str(caches / "numba")
    session.env["NBTA_CACHE_DIR"] = str(caches / "graphs")
    session.run("nbta", "info")
    session.run("pytest", "-m", "", *session.posargs)


@nox.session(python=PYTHONS)
def tests(session):
    """What pip picks by itself."""
    run(session)


@nox.session(python=PYTHONS[0])
def oldest(session):
    """The oldest Numba and NumPy that the package admits, on the oldest Python."""
    run(session, *map(bound, DECIDING))


@nox.session(python=PYTHONS[-1])
def newest(session):
    """The newest of everything, on the newest Python."""
    run(session, options=["--upgrade", "--upgrade-strategy", "eager"])


@nox.session(python=PYTHONS[0])
def interop(session):
    """What other libraries get and give, with all of these; elsewhere its tests are skipped."""
    libraries = (
        "optax",
        "blackjax",
        "diffrax",
        "optimistix",
        "numpyro",
        "pymc",
        "pandas",
        "xarray",
        "scikit-learn",
        "joblib",
        "pyarrow",
    )
    session.install("-e", ".[test,awkward,jax,pytensor,torch]", *libraries)
    places = ("tests/interop", "tests/package/test_other_libraries_page.py")
    session.run("pytest", "-m", "", *places, *session.posargs)
