"""What public functions take by place and what by name only."""

import inspect

import pytest

import nbta
from nbta import raw_ops, testing
from nbta.symbolic import SymbolicTensorArray

CLASSES = (nbta.Graph, nbta.Lanes, nbta.Session, nbta.Tensor, nbta.TensorArray, SymbolicTensorArray)


def functions():
    """All public functions, methods and classes, by their full names."""
    for module in (nbta, raw_ops, testing):
        for name in getattr(module, "__all__", dir(module)):
            value = getattr(module, name)
            ours = module is nbta or getattr(value, "__module__", None) == module.__name__
            if name[0] != "_" and ours and (inspect.isroutine(value) or inspect.isclass(value)):
                yield f"{module.__name__}.{name}", value
    for kind in CLASSES:
        for name, value in inspect.getmembers(kind, inspect.isroutine):
            if name[0] != "_" or name in ("__init__", "__call__", "__getitem__"):
                yield f"{kind.__name__}.{name}", value


def signature(value):
    try:
        return inspect.signature(value)
    except (TypeError, ValueError):  # of a built-in class
        return inspect.Signature()


FUNCTIONS = {name: signature(value) for name, value in functions()}


def optional_names(parameters):
    """Those called name; where one has no default it is what the function is about."""
    return [p for p in parameters.values() if p.name == "name" and p.default is not p.empty]


def test_the_walk_finds_all_families():
    having = {name for name, found in FUNCTIONS.items() if optional_names(found.parameters)}
    assert {
        "nbta.add", "nbta.while_loop", "nbta.gradients", "nbta.raw_ops.TensorArrayV3",
        "nbta.TensorArray", "TensorArray.write", "SymbolicTensorArray.__init__", "Tensor.sum",
        "Tensor.astype", "Graph.create",
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
    with pytest.raises(TypeError, match="positional"):
        nbta.tanh(1.0, "name")
    with pytest.raises(TypeError, match="positional"):
        nbta.TensorArray("float64", size=1).write(0, 1.0, "name")
