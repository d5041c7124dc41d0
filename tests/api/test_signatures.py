"""What public functions take, by place or by name only, and what they say of it by types."""

import difflib
import inspect
import runpy
import subprocess
import sys

import pytest
from public_api import FILES, RECORD, callables, members, signature

import nbta
from nbta.immutable import METHODS
from nbta.interface import ArrayInterface
from nbta.symbolic import SymbolicTensorArray
from nbta.typing import Methods

#: Of a user, with types.
PROGRAM = RECORD.with_name("typed_program.py")
#: Without types, as `dataclasses` writes them.
WITHOUT_TYPES = {"Line.__eq__", "Phase.__eq__", "Row.__eq__"}
#: Tensors have these by themselves, for NumPy, or to refuse them.
OF_TENSOR = {
    "__array__", "__array_function__", "__array_ufunc__", "__bool__", "__complex__",
    "__deepcopy__", "__float__", "__format__", "__hash__", "__index__", "__int__", "__setitem__",
    "dtype", "flat", "graph", "index", "kind", "name", "ndim", "op", "spec", "weak", *METHODS,
}  # fmt: skip
FUNCTIONS = {name: signature(value) for name, value in callables()}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_public_names_and_their_parameters_are_those_recorded(file):
    recorded, found = file.read_text(encoding="utf-8").splitlines(), list(FILES[file]())
    text = "\n".join(difflib.unified_diff(recorded, found, "recorded", "found", "", "", 0, ""))
    assert not text, (
        f"{text}\nWhere that is meant: python tests/support/public_api.py, and CHANGELOG.md"
    )


def optional_names(parameters):
    """Those called name; where one has no default it is what the function is about."""
    return [p for p in parameters.values() if p.name == "name" and p.default is not p.empty]


def test_the_walk_finds_all_families():
    having = {name for name, found in FUNCTIONS.items() if optional_names(found.parameters)}
    assert {
        "nbta.add", "nbta.while_loop", "nbta.gradients", "nbta.raw_ops.TensorArrayV3",
        "nbta.TensorArray", "TensorArray.write", "SymbolicTensorArray", "SymbolicTensorArray.write",
        "Tensor.sum", "Tensor.astype", "Graph.create",
    } <= having  # fmt: skip
    assert len(having) > 160


def test_name_is_given_by_name_only():
    """So that an operand in its place is an error, not the operation's name."""
    others = [
        name
        for name, found in FUNCTIONS.items()
        for parameter in optional_names(found.parameters)
        if parameter.kind is not parameter.KEYWORD_ONLY
    ]
    assert others == []


def test_a_name_in_the_place_of_an_operand_is_refused():
    with pytest.raises(TypeError):
        nbta.tanh(1.0, "name")
    with pytest.raises(TypeError):
        nbta.TensorArray("float64", size=1).write(0, 1.0, "name")


def untyped(value):
    """Parameters that have no type, and whether the result has none."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):  # of a built-in class
        return []
    first, *others = found.parameters.values() if found.parameters else [None]
    checked = others if first is None or first.name in ("self", "cls", "_cls") else [first, *others]
    names = [p.name for p in checked if p.annotation is p.empty]
    whole = inspect.isclass(value) or found.return_annotation is not found.empty
    return names if whole else [*names, "return"]


def test_all_that_is_public_says_what_types_it_takes_and_gives():
    found = {name: untyped(value) for name, value in callables() if untyped(value)}
    assert set(found) == WITHOUT_TYPES


#: What graphs take otherwise.
OTHER_PARAMETERS = {"__dlpack__"}
OF_GRAPHS = {"gradient_after", "gradient_behind", "over"}


@pytest.mark.parametrize("kind", [nbta.TensorArray, SymbolicTensorArray])
def test_both_kinds_of_arrays_have_all_of_their_interface(kind):
    """Each by itself: a graph's array with an eager method would have nothing inside."""
    assert {name for name, _ in members(kind)} - set(dir(ArrayInterface)) <= OF_GRAPHS
    for name, value in members(ArrayInterface):
        owner = next(base for base in kind.__mro__ if name in vars(base))
        assert owner is kind or (kind, name) == (nbta.TensorArray, "dtype"), name
        own = vars(owner)[name]
        assert isinstance(own, property) == isinstance(value, property), name
        same = isinstance(own, property) or signature(own) == signature(value)
        assert same != (kind is SymbolicTensorArray and name in OTHER_PARAMETERS), name


def own_parameters(name, method):
    """Names and defaults of what a method takes; operators are given no name."""
    _, *found = signature(method).parameters.values()
    return [(p.name, p.default) for p in found if p.name != "name" or name[0] != "_"]


def test_what_checkers_see_of_tensors_is_what_they_have():
    """Operations put most methods into `Tensor`, so that checkers are told of them besides."""
    seen = vars(Methods)
    put = {name: value for name, value in members(nbta.Tensor) if name not in OF_TENSOR}
    assert [name for name in put if name not in seen] == []
    for name, value in put.items():
        assert isinstance(seen[name], property) == isinstance(value, property), name
        if callable(value):
            assert own_parameters(name, seen[name]) == own_parameters(name, value), name


def test_the_program_that_type_checkers_are_given_runs():
    runpy.run_path(str(PROGRAM))


def test_type_checkers_see_what_all_public_functions_take_and_give(tmp_path):
    """A decorator without types of its own hides those of the functions it is put on."""
    names = [name for name in FUNCTIONS if name.startswith("nbta.")]
    assert len(names) > 300
    asking = tmp_path / "asking.py"
    asking.write_text("\n".join(["import nbta", *(f"reveal_type({name})" for name in names)]))
    command = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={tmp_path}", PROGRAM, asking]
    told = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    assert [line for line in told if ": error: " in line] == []
    revealed = [line for line in told if "Revealed type is" in line]
    found = zip(names, revealed, strict=True)
    assert [name for name, line in found if line.endswith('is "Any"')] == []


def test_a_former_name_says_the_new_one():
    with nbta.Graph().as_default():
        array = nbta.TensorArray("float64", 2, element_shape=())
        array = array.write(0, 1.0)
        with pytest.warns(DeprecationWarning, match="gradient_after"):
            found = array.gradient_behind("gradients", array.flow, ())
        assert found.is_gradient
