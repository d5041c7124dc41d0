"""What every operation must have: a shape rule, an evaluation, a gradient or a no, a doctest."""

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

import nbta
from nbta.graph.graph import Graph
from nbta.graph.operation import TABLE, NotDifferentiable
from nbta.ops.core import dispatch
from nbta.ops.functions import __all__ as functions

#: Parts of other operations: they have no function of their own, and are shown where those are.
PARTS = {
    "AddSaved", "AddShadows", "After", "AlongEigenvalues", "AlongSingularValues", "Assert", "Await",
    "ByEigenvalues", "BySingularValues", "CholeskyTangent", "Complex", "CorrelateOfAdjoints",
    "DynamicAddSlice", "EinsumOfAdjoints", "FillAround", "Fold", "GradientIteration",
    "MatMulOfAdjoints", "Mirror", "OuterOfAdjoints", "Parameter", "Print", "ReducedResolvent",
    "ReducedResolventOfPairs", "RestoreRows", "Separation", "Shadow", "TruePlaces",
}  # fmt: skip
MODULES = [
    importlib.import_module(info.name)
    for info in pkgutil.walk_packages(nbta.__path__, "nbta.")
    if not info.name.startswith(
        ("nbta.runtime", "nbta.eager", "nbta.interop", "nbta.demo", "nbta.__main__")
    )
]


@pytest.mark.smoke
@pytest.mark.parametrize("record", TABLE.values(), ids=lambda record: record.name)
def test_a_record_is_whole(record):
    assert callable(record.infer)
    assert callable(record.evaluate)
    if isinstance(record.gradient, NotDifferentiable):
        assert record.gradient.reason
    else:
        assert callable(record.gradient)


@pytest.fixture(scope="module")
def shown():
    """Names of the operations that the doctests of the package run or build."""
    names = set()
    run_now, create = dispatch.run_now, Graph.create

    def recording_run(record, *args):
        names.add(record.name)
        return run_now(record, *args)

    def recording_create(self, record, *args, **kwargs):
        names.add(record.name)
        return create(self, record, *args, **kwargs)

    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(verbose=False, optionflags=flags)
    patch = pytest.MonkeyPatch()
    patch.setattr(dispatch, "run_now", recording_run)
    patch.setattr(Graph, "create", recording_create)
    for test in examples():
        runner.run(test, out=lambda text: None)
    patch.undo()
    return names | {name for name in TABLE if f"raw_ops.{name}(" in raw_example(name)}


def raw_example(name):
    """The example of a raw operation, which runs on an eager array."""
    return (inspect.getdoc(getattr(nbta.raw_ops, name, None)) or "").partition("Examples")[2]


def examples():
    finder = doctest.DocTestFinder()
    for module in MODULES:
        globs = {"np": np, "nbta": nbta}
        yield from (t for t in finder.find(module, extraglobs=globs) if t.examples)


def test_parts_of_operations_have_no_function():
    public = {name.replace("_", "").lower() for name in (*functions, *vars(nbta.raw_ops))}
    assert public.isdisjoint(map(str.lower, PARTS))
    assert set(TABLE) >= PARTS


def test_every_operation_is_shown_in_a_doctest(shown):
    assert set(TABLE) - shown - PARTS == set()


@pytest.mark.parametrize("name", functions)
def test_a_function_says_what_it_is_and_shows_it(name):
    text = inspect.getdoc(getattr(nbta, name))
    assert text.splitlines()[0].endswith(".")
    assert f">>> nbta.{name}(" in text or f"nbta.{name}(" in text.partition("Examples")[2]


@pytest.mark.parametrize("name", functions)
def test_a_function_takes_a_name_last(name):
    parameters = list(inspect.signature(getattr(nbta, name)).parameters)
    assert parameters[-1] == "name"


def test_no_two_records_have_one_name():
    with pytest.raises(ValueError, match="already"):
        dispatch.define("Add", None, None, None)


def test_the_package_lists_what_it_has():
    for name in nbta.__all__:
        assert getattr(nbta, name) is not None
    assert set(nbta.__all__) <= set(dir(nbta))
    with pytest.raises(AttributeError, match="has no attribute 'no_such_thing'"):
        nbta.no_such_thing  # noqa: B018


def test_arrays_alone_do_not_wait_for_the_graph_front_end():
    program = "import sys, nbta; nbta.TensorArray; print('nbta.namespace' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.stdout == "False\n"


def test_no_module_hides_a_function():
    modules = {info.name for info in pkgutil.iter_modules(nbta.__path__)}
    assert modules & set(nbta.__all__) <= {"debug", "implicit", "random", "raw_ops", "testing"}
