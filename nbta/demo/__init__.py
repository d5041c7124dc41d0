"""The demo: a recurrent network, trained by gradients through its loop, forecasts CO2."""

import contextlib
import importlib.util
import os
import sys
from pathlib import Path

import numpy as np

from nbta.demo.data import DataError, read_record

__all__ = ["DataError", "MissingExtraError", "run"]

EPOCHS, QUICK_EPOCHS = 120, 15


class MissingExtraError(ImportError):
    """A package of the ``demo`` or the ``distributed`` extra is not installed."""


def run(file=None, column=None, epochs=None, out="nbta-demo", quick=False, workers=None) -> None:
    """Train, forecast, print how good the forecast is, and draw it.

    Parameters
    ----------
    file : path-like, optional
        A CSV of weekly values, dates in its first column; by default the record that is shipped.
    column : str, optional
        Name of the value column.
    epochs : int, optional
        Iterations of training.
    out : path-like
        Folder for the picture; made if need be, once there is something to put in it.
    quick : bool
        Train briefly.
    workers : int, optional
        How many processes of a Dask cluster compute the gradient; by default this one does.

    Raises
    ------
    DataError
        For a record that cannot be used.
    MissingExtraError
        Without tqdm or matplotlib, and with ``workers`` without Dask.
    """
    _check_extras(workers)
    record = read_record(file, column)
    folder = Path(out)
    _check_folder(folder)
    forecast, error = _train(record, epochs or (QUICK_EPOCHS if quick else EPOCHS), workers)

    from nbta.demo.network import draw

    picture = folder / f"{_file_name(record.name)}_forecast.png"
    folder.mkdir(parents=True, exist_ok=True)
    draw(picture, record, forecast)
    _report(record, forecast, error, picture)


def _check_extras(workers):
    needed = [("the demo", "tqdm", "demo"), ("the demo", "matplotlib", "demo")]
    if workers is not None:
        needed.append(("--workers", "distributed", "distributed"))
    for who, package, extra in needed:
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(f'{who} needs {package}: pip install "nbta[{extra}]"')


def _check_folder(folder):
    """Find out before the training whether there is a place for the picture."""
    place = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not (place.is_dir() and os.access(place, os.W_OK)):
        message = f"{folder}: no folder that can be written; give another one with --out"
        raise DataError(message)


def _file_name(name):
    return "".join(letter if letter.isalnum() else "_" for letter in name)


def _train(record, epochs, workers):
    """A forecast, and how far the gradient is from central differences."""
    from tqdm import tqdm

    from nbta.demo import network

    weeks, missing = len(record.values), int(np.isnan(record.values).sum())
    print(f"{record.name}: {weeks} weeks from {record.start}, {missing} without a value")
    print("compiling (the first time only) and checking the gradient", flush=True)
    task = network.prepare(record)
    error = network.check_gradient(task.start, task.windows.part(0, 3))
    with (
        _computing(workers) as options,
        tqdm(total=epochs, desc="training", unit="epoch", file=sys.stderr) as bar,
    ):

        def on_epoch(loss):
            bar.set_postfix(loss=f"{loss:.5f}", refresh=False)
            bar.update()

        parameters = network.train(task, epochs, on_epoch, **options)
    return network.forecast(task, parameters), error


@contextlib.contextmanager
def _computing(workers):
    """A context with options of `network.train`: what computes the gradient."""
    if workers is None:
        yield {}
        return
    from nbta.demo.network import computing

    print(f"worker processes that compute the gradient: {workers}", flush=True)
    with computing(workers) as loss_and_gradient:
        yield {"loss_and_gradient": loss_and_gradient}


def _report(record, forecast, error, picture):
    first = record.dates()[forecast.origin]
    print(f"forecast of the {len(forecast.values)} weeks from {first}, held out of training:")
    print(f"  recurrent network   RMSE {forecast.rmse:8.4f}   MAE {forecast.mae:8.4f}")
    print(f"  last year repeated  RMSE {forecast.naive_rmse:8.4f}   MAE {forecast.naive_mae:8.4f}")
    print(f"gradient against central differences: {error:.1e} at most (relative)")
    print(f"picture: {picture}")
