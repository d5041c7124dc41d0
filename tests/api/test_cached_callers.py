"""Functions with ``cache=True`` that call derivatives, in this process and later ones."""

import json
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.errors import NumbaWarning

import nbta
from nbta.api import cached_callers

LOSSES = """
import numba
import numpy as np
import nbta

def loss(x, k):
    return np.sum(x * x) * k

@numba.njit
def cubes(x):
    return np.sum(x ** 3)

vg = nbta.value_and_grad(loss)
cubed = nbta.function(cubes)
"""
CALLERS = """
import numba
import numpy as np
import losses
import nbta
from losses import cubed, vg

@numba.njit(cache=True)
def step(x, k):
    return vg(x, k)

@numba.njit(cache=True)
def outer(x, k):
    return step(x, k)[1] + 1.0

@numba.njit(cache=True)
def given(f, x, k):
    return losses.vg(x, k)[0] + f(x, k)[0]

@numba.njit(cache=True)
def products(x):
    return nbta.jvp(cubed, x, x), nbta.hvp(cubed, x, x)

@numba.njit(cache=True)
def made(x, k):
    slope = nbta.grad(nbta.function(losses.loss), argnums=1)
    value, pullback = nbta.vjp(losses.loss, x, 2.0)
    at_x, at_k = pullback(k)
    return value * k, slope(x, k), at_x, at_k
"""
LOOPS = """
@numba.njit(cache=True, parallel=True)
def rows(x, k):
    out = np.empty(len(x))
    for i in numba.prange(len(x)):
        # Rows without items need a program of their own, in the middle of the loop.
        out[i] = step(x[i, : i % 3], k)[0] + vg(x[i], k)[0]
    return out

@numba.guvectorize(["void(f8[:], f8, f8[:])"], "(n),()->(n)", cache=True)
def each(x, k, out):
    out[0] = vg(x, k)[0]
"""
RUN = """
import json
import sys
import callers
import losses
import numpy as np

x = np.arange(4.0)
calls = {"step": (x, 2.0), "outer": (x, 2.0), "rows": (np.ones((4, 4)), 2.0)}
calls |= {"given": (losses.vg, x, 2.0), "products": (x,), "each": (x, 2.0)}
calls["made"] = x, 2.0
found = {}
for name in sys.argv[1:]:
    args = calls[name]
    f = getattr(callers, name)
    result = f(*args)
    flat = [float(v) for part in np.atleast_1d(result) for v in np.ravel(part)] \\
        if isinstance(result, np.ndarray) else [float(v) for p in result for v in np.ravel(p)] \\
        if isinstance(result, tuple) else [float(result)]
    hits = sum(f.stats.cache_hits.values()) if name != "each" else None
    found[name] = hits, flat[:1] if name == "each" else flat
print(json.dumps(found))
"""


def in_a_process(folder, *names):
    """By the names of callers how often each came from the disk, and the numbers of its results."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), str(Path(nbta.__file__).parents[1])]),
    }
    done = subprocess.run(
        [sys.executable, "-c", RUN, *names],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    hits = {name: count for name, (count, _) in found.items() if count is not None}
    return hits, {name: values for name, (_, values) in found.items()}


def expected(k, names):
    """The results of callers, for a loss of ``k`` times the sum of squares."""
    x = np.arange(4.0)
    row = [k * (4.0 + i % 3) for i in range(4)]
    results = {
        "step": [k * 14.0, *(2 * k * x)],
        "outer": list(2 * k * x + 1),
        "rows": row,
        "given": [2 * k * 14.0],
        "products": [36.0, 3 * 36.0, *(6 * x * x)],
        "each": [k * 14.0],
        "made": [2 * k * 14.0, k / 2 * 14.0, *(4 * k * x), k * 14.0],
    }
    return {name: results[name] for name in names}


QUICK = "step", "outer", "given", "products", "made"


def test_callers_come_from_the_disk_and_call_what_there_is_now(tmp_path):
    losses = tmp_path / "losses.py"
    losses.write_text(LOSSES)
    (tmp_path / "callers.py").write_text(CALLERS)
    hits, found = in_a_process(tmp_path, *QUICK)
    assert set(hits.values()) == {0}
    assert found == expected(2.0, QUICK)
    # Another loss: the callers' file has not changed.
    losses.write_text(LOSSES.replace("x * x) * k", "x * x) * k * 10.0"))
    hits, found = in_a_process(tmp_path, *QUICK)
    assert set(hits.values()) == {1}
    assert found == expected(20.0, QUICK)
    # Other types: callers of this function are compiled again.
    losses.write_text(LOSSES.replace("np.sum(x * x) * k", "(np.sum(x * x) * k).astype('f4')"))
    hits, found = in_a_process(tmp_path, "step", "products")
    assert hits == {"step": 0, "products": 1}
    assert found == expected(2.0, ("step", "products"))


@pytest.mark.slow
def test_loops_and_universal_functions_come_from_the_disk(tmp_path):
    losses = tmp_path / "losses.py"
    losses.write_text(LOSSES)
    (tmp_path / "callers.py").write_text(CALLERS + LOOPS)
    names = "rows", "each"
    for hit in (0, 1):
        hits, found = in_a_process(tmp_path, *names)
        assert hits == {"rows": hit}
        assert found == expected(2.0, names)


def module_of(folder, name, text):
    """A module of a file, imported by its name."""
    (folder / f"{name}.py").write_text(textwrap.dedent(text))
    sys.path.insert(0, str(folder))
    try:
        return __import__(name)
    finally:
        sys.path.remove(str(folder))


def test_a_variable_that_is_assigned_to_again(tmp_path):
    text = """
    import numba
    import nbta

    g = nbta.grad(lambda x: x * x)
    @numba.njit(cache=True)
    def first(x):
        return g(x)
    """
    module = module_of(tmp_path, "assigned_callers", text)
    assert module.first(3.0) == 6.0
    module.g = nbta.grad(lambda x: x**3)
    second = numba.njit(lambda x: module.g(x))
    assert (first_kind := numba.typeof(module.g)) is not None
    assert second(3.0) == 27.0
    assert module.first(3.0) == 6.0
    assert first_kind.symbols == {}  # the name is that of the other function's callers


def test_what_was_saved_is_refused_where_anything_is_another(tmp_path):
    text = """
    import nbta

    def loss(x):
        return x * x

    g = nbta.grad(loss)
    h = g
    """
    module = module_of(tmp_path, "refused_callers", text)
    kind = numba.typeof(module.g)
    assert numba.njit(lambda x: module.g(x))(2.0) == 4.0
    ((symbol, call),) = kind.symbols.items()
    names = cached_callers.names_of(kind)
    assert names == (("refused_callers", "g", ()), ("refused_callers", "h", ()))
    saved = pickle.dumps(cached_callers.Dependency(kind, names, {symbol: call}))
    assert pickle.loads(saved).kind is kind
    assert pickle.loads(pickle.dumps(kind)) is kind

    other = pickle.dumps(cached_callers.Dependency(kind, names, {"no_symbol": (*call[:2], "")}))
    with pytest.raises(OSError, match="must be compiled again"):
        pickle.loads(other)
    module.pair = module.g, None
    assert cached_callers.names_of(kind) == ()  # which of a tuple's items it is may change
    del module.pair
    module.h = nbta.grad(lambda x: x**3)
    with pytest.raises(OSError, match="must be compiled again"):
        pickle.loads(saved)
    module.g = module.h = None
    with pytest.raises(OSError, match="must be compiled again"):
        pickle.loads(saved)
    assert isinstance(pickle.loads(pickle.dumps(kind)), numba.types.Opaque)


def test_a_function_without_a_name_is_told_of():
    g = nbta.grad(lambda x: x * x)

    @numba.njit(cache=True)
    def compiled(x):
        return g(x)

    sentence = r"compiled has cache=True .* which no variable of a module is, or which a tuple has"
    with (
        pytest.warns(NumbaWarning, match='Cannot cache compiled function "compiled"'),
        pytest.warns(NumbaWarning, match=sentence),
    ):
        assert compiled(2.0) == 4.0
