"""Functions that travel take their source along: file, line and text arrive where no file is."""

import copy
import linecache
import os
import pickle
import subprocess
import sys
import traceback
import types
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
from numba import njit

import nbta
from nbta.frontend import pickling, source
from nbta.structure import leaves

TEXT = '''\
"""A program that a user runs."""
from __future__ import annotations

import numba
import numpy as np


@numba.njit
def weighted(v):
    total = 0.0
    for k in range(3):
        total += v * k
    return total


def branches(x):
    total = 0.0
    for v in x:
        if v > 1:
            total += weighted(v)
        else:
            total += v ** 2
    return total


def closure(scale):
    def inside(x: Unknown):
        total = 0.0
        for v in x:
            total += scale * v
        return total + branches(x)

    return inside


lambdas = [lambda x: sum(v * 2 for v in x), lambda x: sum(v * 3 for v in x)]


def makes(x):
    def square(v):
        while v > 1.5:
            v = v / 2
        return v * v
    return sum(square(v) for v in x)


class Model:
    def __init__(self, slope):
        self.slope = slope

    def loss(self, x):
        total = 0.0
        for v in x:
            total += self.slope * v * v
        return total


def wrong(x):
    total = 0.0
    for v in x:
        total += v
    return total + x[
        7]
'''
FUNCTIONS = {
    "njit helper": "branches",
    "closure": "closure(2.0)",
    "first lambda": "lambdas[0]",
    "second lambda": "lambdas[1]",
    "functions in it": "makes",
    "method": "Model(3.0).loss",
}
X = np.array([0.5, 1.0, 2.0, 3.5])


@pytest.fixture
def program(tmp_path):
    """Names of a script that runs as ``__main__``, and its file."""
    file = tmp_path / "script.py"
    file.write_text(TEXT)
    names = {"__name__": "__main__", "__file__": str(file)}
    exec(compile(TEXT, str(file), "exec"), names)
    return types.SimpleNamespace(names=names, file=file)


def arrive(body, file):
    """What is in a pickle, opened where the file is not."""
    file.rename(file.with_suffix(".gone"))
    linecache.cache.pop(str(file), None)
    return pickle.loads(body)


@pytest.mark.parametrize("which", FUNCTIONS)
def test_functions_arrive_where_their_file_is_not(program, which):
    function = eval(FUNCTIONS[which], program.names)
    expected = nbta.value_and_grad(function, compiled=False)(X)
    arrived = arrive(pickling.dumps(function), program.file)
    found = nbta.value_and_grad(arrived, compiled=False)(X)
    for one, other in zip(leaves(found), leaves(expected), strict=True):
        np.testing.assert_array_equal(one, other)


def test_errors_name_file_and_line_and_show_the_text(program):
    arrived = arrive(pickling.dumps(program.names["wrong"]), program.file)
    with pytest.raises(nbta.InvalidArgumentError, match="there is no index 7") as caught:
        nbta.grad(arrived)(X)
    line = TEXT.splitlines().index("        7]")  # where the statement begins
    assert f"{program.file}:{line}" in "".join(caught.value.__notes__)
    with pytest.raises(IndexError) as caught:
        arrived(X)
    text = "".join(traceback.format_exception(caught.value))
    assert f'File "{program.file}", line {line}, in wrong' in text
    assert "return total + x[" in text


def test_what_has_arrived_travels_on(program):
    body = pickling.dumps(program.names["closure"](2.0))
    arrived = arrive(body, program.file)
    again = pickle.loads(pickling.dumps(arrived))
    np.testing.assert_array_equal(nbta.grad(again)(X), nbta.grad(arrived)(X))


def test_a_text_that_changed_before_is_refused_on_arrival(program):
    file = program.file
    file.write_text(TEXT.replace("total += scale * v", "total += scale + v"))
    arrived = arrive(pickling.dumps(program.names["closure"](2.0)), file)
    with pytest.raises(nbta.InvalidArgumentError, match="changed since it was imported"):
        nbta.grad(arrived)(X)


def test_only_the_statement_and_the_imports_travel(program):
    body = pickling.dumps(program.names["closure"](2.0))
    assert b"import numba" in body
    assert b"total += scale * v" in body
    assert b"self.slope" not in body


def test_equal_functions_have_equal_pickles(program):
    function = program.names["closure"](2.0)
    assert pickling.dumps(function) == pickling.dumps(function)


def test_functions_without_a_source_travel_without():
    names = {}
    exec("def f(x):\n    return x * x", names)
    arrived = pickle.loads(pickling.dumps(names["f"]))
    assert nbta.grad(arrived)(3.0) == 6.0


def test_what_cloudpickle_sends_alone_is_found_by_the_file_of_its_module(program):
    """The file must be there; the text must be that of the code."""
    arrived = pickle.loads(cloudpickle.dumps(program.names["closure"](2.0)))
    np.testing.assert_array_equal(
        nbta.grad(arrived)(X), nbta.grad(program.names["closure"](2.0))(X)
    )
    program.file.write_text(TEXT.replace("total += scale * v", "total += scale + v"))
    linecache.checkcache()
    arrived = pickle.loads(cloudpickle.dumps(program.names["closure"](2.0)))
    with pytest.raises(source.NoSourceError, match=r"send nbta\.function of it"):
        nbta.grad(arrived)(X)


def test_codes_are_known_by_identity():
    one, other = (compile("lambda x: x", name, "eval").co_consts[0] for name in ("a", "b"))
    assert one == other
    table = source.CodeTable()
    table[one], table[other] = 1, 2
    assert (table.get(one), table.get(other)) == (1, 2)
    del one
    assert table.get(other) == 2


# What nbta makes of functions pickles itself.

MADE = {
    "function": lambda f: nbta.function(f),
    "value and gradient": lambda f: nbta.value_and_grad(f, compiled=False),
    "gradient": lambda f: nbta.grad(f),
    "gradient of a gradient": lambda f: nbta.grad(lambda x: nbta.sum(nbta.grad(f)(x))),
    "jacobian": lambda f: nbta.jacobian(f),
    "hessian": lambda f: nbta.hessian(f),
    "batch": lambda f: nbta.grad(lambda w, x: f(w * x), batch_axis=0),
    "custom": lambda f: nbta.grad(lambda x: clipped(f(x))),
}


@nbta.custom_gradient
def clipped(x):
    return np.clip(x, -1.0, 1.0)


@clipped.backward
def clipped_backward(dy, x, y):
    return 2 * dy


@nbta.function
def decorated(x):
    return nbta.sum(x * x)


class Decorated:
    @nbta.function
    def loss(self, x):
        return nbta.sum(x)


@pytest.mark.parametrize("pickler", [pickle, cloudpickle], ids=lambda p: p.__name__)
@pytest.mark.parametrize("kind", MADE)
def test_what_is_made_of_functions_travels(program, kind, pickler):
    made = MADE[kind](program.names["closure"](2.0))
    arguments = (X, np.ones((2, 4))) if kind == "batch" else (X,)
    expected = made(*arguments)
    arrived = arrive(pickler.dumps(made), program.file)
    assert arrived is not made
    for one, other in zip(leaves(arrived(*arguments)), leaves(expected), strict=True):
        np.testing.assert_array_equal(one, other)


@njit
def compiled_loss(x):
    return np.sum(x * x)


@pytest.mark.parametrize("pickler", [pickle, cloudpickle], ids=lambda p: p.__name__)
@pytest.mark.parametrize("kind", [*MADE, "opaque"])
def test_what_is_made_of_compiled_functions_travels(kind, pickler):
    """Their dispatchers have attributes that cannot be pickled."""
    made = nbta.opaque(compiled_loss) if kind == "opaque" else MADE[kind](compiled_loss)
    arguments = (X, np.ones((2, 4))) if kind == "batch" else (X,)
    arrived = pickle.loads(pickler.dumps(made))
    for one, other in zip(leaves(arrived(*arguments)), leaves(made(*arguments)), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "made", [decorated, Decorated.loss, clipped], ids=["function", "method", "gradient"]
)
def test_what_is_imported_by_its_name_is_pickled_by_that(made):
    for pickler in (pickle, cloudpickle):
        body = pickler.dumps(made)
        assert len(body) < 100
        assert pickle.loads(body) is made
    assert copy.copy(made) is made
    assert copy.deepcopy([made])[0] is made


def test_modules_that_are_registered_by_value_are_sent_by_value():
    module = types.ModuleType("registered")
    exec("import nbta\n@nbta.function\ndef f(x):\n    return x * x", vars(module))
    sys.modules["registered"] = module
    cloudpickle.register_pickle_by_value(module)
    try:
        body = cloudpickle.dumps(module.f)
    finally:
        cloudpickle.unregister_pickle_by_value(module)
        del sys.modules["registered"]
    assert pickle.loads(body)(3.0) == 9.0


def test_functions_that_refer_to_themselves_travel():
    @nbta.function
    def factorial(n, x):
        return x if n <= 1 else n * factorial(n - 1, x)

    arrived = pickle.loads(pickle.dumps(nbta.grad(lambda x: factorial(4, x))))
    assert arrived(2.0) == 24.0


def test_options_travel():
    made = nbta.function(lambda x, k: x * k, static_argnums=1, compiled=False)
    arrived = pickle.loads(pickle.dumps(made))
    assert [arrived(2.0, 3), arrived(2.0, 4), arrived.traces] == [6.0, 8.0, 2]


def test_without_cloudpickle_numbas_serves(monkeypatch, program):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    pickling._pickler.cache_clear()
    try:
        body = pickle.dumps(nbta.grad(program.names["closure"](2.0)))
    finally:
        pickling._pickler.cache_clear()
    assert b"numba.cloudpickle" in body
    np.testing.assert_array_equal(
        arrive(body, program.file)(X), nbta.grad(program.names["closure"](2.0))(X)
    )


WORKER = """
import multiprocessing
import numpy as np
import nbta

def make(scale):
    def loss(x):
        total = 0.0
        for v in x:
            total += scale * v * v
        return total
    return nbta.value_and_grad(loss, compiled=False)

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        value, gradient = pool.apply(make(2.0), (np.array([1.0, 3.0]),))
    assert (value, gradient.tolist()) == (20.0, [4.0, 12.0])
"""


POOLS = """
import concurrent.futures
import multiprocessing
import numpy as np
import nbta

def loss(x):
    total = 0.0
    for v in x:
        total += v * v
    return total

slope = nbta.grad(loss, compiled=False)
shifted = (lambda s: nbta.grad(lambda x: loss(x - s), compiled=False))(1.0)
X = np.array([1.0, 3.0])

if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn) as pool:
        results = [list(pool.map(slope, [X, X + 1.0]))[0], pool.submit(shifted, X + 1.0).result()]
    import dask
    results += dask.compute(dask.delayed(slope)(X), scheduler="threads")
    try:
        from joblib import Parallel, delayed
    except ModuleNotFoundError:
        pass
    else:
        results += Parallel(2)(delayed(f)(x) for f, x in ((slope, X), (shifted, X + 1.0)))
    for found in results:
        assert found.tolist() == [2.0, 6.0], found
"""


@pytest.mark.slow
def test_pools_of_other_libraries_take_functions_of_a_script(tmp_path):
    script = tmp_path / "pools.py"
    script.write_text(POOLS)
    environment = {**os.environ, "PYTHONPATH": str(Path(nbta.__file__).parents[1])}
    subprocess.run([sys.executable, str(script)], env=environment, check=True, timeout=300)


@pytest.mark.slow
def test_pools_of_multiprocessing_take_local_functions(tmp_path):
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    environment = {**os.environ, "PYTHONPATH": str(Path(nbta.__file__).parents[1])}
    subprocess.run([sys.executable, str(script)], env=environment, check=True, timeout=300)
