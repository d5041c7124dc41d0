"""The ``nbta`` command: ``nbta demo``, ``nbta info``, ``nbta doctor``, ``nbta cache``."""

import argparse
import contextlib
import platform
import sys
from importlib import metadata
from pathlib import Path

from nbta import __version__

FAILED, INTERRUPTED = 2, 130


def main(argv=None) -> int:
    """Run the command; the answer is its exit code.

    Parameters
    ----------
    argv : list of str, optional
        Arguments; by default the process's own.
    """
    parser = _parser()
    options = parser.parse_args(argv)
    if options.command is None:
        parser.print_help()
        return 0
    try:
        return options.run(options) or 0
    except KeyboardInterrupt:
        print("nbta: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (OSError, Failure) as error:
        line = " ".join(str(error).split())
        print(f"nbta {options.command}: {line}", file=sys.stderr)
        return FAILED


class Failure(Exception):  # noqa: N818 - it ends the command, with one line for the user
    """What the user can mend."""


def _parser():
    parser = argparse.ArgumentParser(
        prog="nbta",
        description="Gradients of unmodified Numba loops, and arrays that grow inside @njit.",
    )
    parser.add_argument("--version", action="version", version=f"nbta {__version__}")
    commands = parser.add_subparsers(dest="command")

    demo = commands.add_parser("demo", help="forecast atmospheric CO2 with a recurrent network")
    demo.add_argument("--data", metavar="FILE.csv", help="weekly values, dates in the first column")
    demo.add_argument("--column", metavar="NAME", help="name of the value column")
    demo.add_argument("--epochs", type=_count, metavar="N", help="iterations of training")
    demo.add_argument("--out", default="nbta-demo", metavar="DIR", help="folder for the picture")
    demo.add_argument("--quick", action="store_true", help="train for a few epochs only")
    demo.add_argument("--workers", type=_count, metavar="N", help="processes of a Dask cluster")
    demo.set_defaults(run=_demo)

    info = commands.add_parser("info", help="versions, threads, cache")
    info.set_defaults(run=_info)

    doctor = commands.add_parser("doctor", help="whether nbta works here, and what to do if not")
    doctor.set_defaults(run=_doctor)

    cache = commands.add_parser("cache", help="the disk cache of compiled code")
    action = cache.add_mutually_exclusive_group()
    action.add_argument("--dir", action="store_true", help="print the folder of compiled graphs")
    action.add_argument("--clear", action="store_true", help="remove what nbta has compiled")
    cache.set_defaults(run=_cache)
    return parser


def _count(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


_count.__name__ = "integer"  # argparse names the type in its message


def _demo(options):
    from nbta import FailedPreconditionError, demo
    from nbta.runtime import entry_points

    try:
        demo.run(
            options.data,
            options.column,
            options.epochs,
            options.out,
            options.quick,
            options.workers,
        )
    except (demo.DataError, demo.MissingExtraError) as error:
        raise Failure(str(error)) from None
    except FailedPreconditionError:
        # Compiled code that waits for a kernel can only say that the kernel did not come.
        if any(isinstance(error, KeyboardInterrupt) for error in entry_points._failures):
            raise KeyboardInterrupt from None
        raise


def _doctor(options):
    from nbta import doctor

    return doctor.run()


def _info(options):
    import numba

    import nbta
    from nbta.runtime.numba_private import untested

    print(f"nbta      {nbta.__version__}")
    newer = untested()
    for package in ("numba", "llvmlite", "numpy", "scipy"):
        print(f"{package:9} {newer.get(package) or _version(package)}")
    print(f"Python    {platform.python_version()} ({sys.executable})")
    print(f"threads   {numba.config.NUMBA_NUM_THREADS}, layer: {_threading_layer()}")
    _show_caches()


def _version(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _threading_layer():
    """Its name, or that of the one Numba would start; asking must not start it."""
    import numba

    try:
        return numba.threading_layer()
    except ValueError:
        return f"{_next_threading_layer()}, not started"


#: What Numba tries for each way to ask for a layer by what it must stand.
_SAFE_LAYERS = {
    "safe": ["tbb"],
    "threadsafe": ["tbb", "omp"],
    "forksafe": ["tbb", *([] if sys.platform == "linux" else ["omp"]), "workqueue"],
}


def _next_threading_layer():
    """The first that is installed of those that Numba tries."""
    from numba import config

    from nbta.runtime.numba_private import layer_is_installed

    wanted = str(config.THREADING_LAYER).lower()
    tried = _SAFE_LAYERS | {"default": config.THREADING_LAYER_PRIORITY}
    installed = filter(layer_is_installed, tried.get(wanted, [wanted]))
    return next(installed, f"{wanted}, which is not installed")


def _cache_folders():
    """Where Numba keeps what it compiled from each folder of nbta's sources."""
    from nbta.runtime.compiled import cache_folder

    package = Path(__file__).parent
    sources = sorted({file.parent for file in package.rglob("*.py")})
    folders = (cache_folder(source) for source in sources)
    return [folder for folder in folders if folder is not None]


def _cache_files(folder):
    """Numba's files in a folder: an index a function and its machine code."""
    return sorted(file for kind in ("*.nbi", "*.nbc") for file in folder.glob(kind))


def _cache(options):
    from nbta.runtime import machine_code

    if options.clear:
        files = [
            *machine_code.files(),
            *(f for folder in _cache_folders() for f in _cache_files(folder)),
        ]
        for file in files:
            file.unlink(missing_ok=True)
        print(f"removed {len(files)} files")
    elif not options.dir:
        _show_caches()
    elif machine_code.folder() is None:
        raise Failure("there is no home folder; set NBTA_CACHE_DIR to a folder")
    else:
        print(machine_code.folder())


def _show_caches():
    """Which kernels are used, and where what was compiled here is kept, and how much.

    Graphs, and kernels where the shipped ones do not fit, are in our cache; what users' functions
    link, in Numba's.
    """
    from nbta.runtime import machine_code, shipped
    from nbta.runtime.compiled import cache_folder

    files = machine_code.files()
    print(f"kernels   {shipped.summary()}")
    print(f"cache     {machine_code.folder() or 'no folder'} ({_amount(files, 'entries')})")
    numbas = [(folder, _cache_files(folder)) for folder in _cache_folders()]
    nowhere = (cache_folder() or "no folder can be written", [])
    for folder, files in [pair for pair in numbas if pair[1]] or [nowhere]:
        print(f"Numba's   {folder} ({_amount(files, 'files')})")


def _amount(files, noun):
    size = 0
    for file in files:
        with contextlib.suppress(OSError):  # another process may remove it
            size += file.stat().st_size
    return f"{len(files)} {noun}, {size / 2**20:.1f} MiB" if files else f"no {noun}"
