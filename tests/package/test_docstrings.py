"""Docstrings of public functions have the sections of the numpydoc standard that they need."""

import ast
import inspect
import re
import textwrap

import pytest

import nbta
import nbta.distributed

#: Its sections are in the docstring of another function, which it names.
SEE = re.compile(r"see `[\w.]+`")
MODULES = ("debug", "implicit", "random", "raw_ops", "testing")


def functions_of(module):
    """The public functions that a module defines, by their full names; ``main`` is a command's."""
    for name, value in vars(module).items():
        if (
            inspect.isfunction(value)
            and value.__module__ == module.__name__
            and name[0] != "_"
            and name != "main"
        ):
            yield f"{module.__name__}.{name}", value


def public():
    """Public functions, and methods of arrays and lanes."""
    for name in nbta.__all__:
        if inspect.isfunction(getattr(nbta, name)):
            yield f"nbta.{name}", getattr(nbta, name)
    yield "nbta.distributed.value_and_grad", nbta.distributed.value_and_grad
    for name in MODULES:
        yield from functions_of(getattr(nbta, name))
    for kind in (nbta.interface.ArrayInterface, nbta.Lanes):
        for name, value in vars(kind).items():
            if inspect.isfunction(value) and name[0] != "_":
                yield f"{kind.__name__}.{name}", value


PUBLIC = dict(public())
#: All but functions of tensors that are NumPy's and do not go element by element.
OWN = {
    name: value
    for name, value in PUBLIC.items()
    if not value.__module__.startswith("nbta.ops") or hasattr(value, "record")
}


def sections(function):
    """The text of each section of a docstring, by its title."""
    found = re.split(r"^(\w[\w ]*)\n-+\n", inspect.getdoc(function), flags=re.MULTILINE)
    return {"": found[0], **dict(zip(found[1::2], found[2::2], strict=True))}


def raises(function):
    """Whether the function itself has a raise statement."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    named = [
        node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None
    ]
    return any("NotImplementedError" not in ast.unparse(error) for error in named)


def missing(function):
    """What a docstring lacks."""
    found = sections(function)
    parameters = [name for name in inspect.signature(function).parameters if name != "self"]
    entries = found.get("Parameters", "")
    described = " ".join(re.findall(r"^\S[^:\n]*", entries, flags=re.MULTILINE))
    given = str(inspect.signature(function).return_annotation)
    returns = given not in ("None", "Iterator[None]") and "Context" not in given
    wanted = {
        "Parameters": not set(parameters) <= {*re.findall(r"\w+", described)},
        "Returns": returns and not {"Returns", "Yields"} & set(found),
        "Raises": raises(function) and "Raises" not in found,
        "Examples": "Examples" not in found,
    }
    return [title for title, lacks in wanted.items() if lacks]


@pytest.mark.parametrize("name", OWN)
def test_sections(name):
    function = OWN[name]
    lacks = missing(function)
    if SEE.search(sections(function)[""]):
        lacks = [title for title in lacks if title == "Examples"]
    assert lacks == []


@pytest.mark.parametrize("name", PUBLIC)
def test_examples(name):
    assert "Examples" in sections(PUBLIC[name])


@pytest.mark.parametrize("name", PUBLIC)
def test_errors(name):
    assert "Raises" not in missing(PUBLIC[name])
