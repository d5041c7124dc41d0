"""Docstrings of public functions have the sections of the numpydoc standard that they need."""

import ast
import inspect
import re
import textwrap
import zlib
from pathlib import Path

import numpy as np
import pytest

import nbta
import nbta.distributed
import nbta.interop
from nbta.graph.operation import TABLE
from nbta.ops.core.elementwise import unary

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
    yield from functions_of(nbta.interop)
    for name in MODULES:
        yield from functions_of(getattr(nbta, name))
    for kind in (nbta.interface.ArrayInterface, nbta.Lanes):
        for name, value in vars(kind).items():
            if inspect.isfunction(value) and name[0] != "_":
                yield f"{kind.__name__}.{name}", value


PUBLIC = dict(public())


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


@pytest.mark.parametrize("name", PUBLIC)
def test_sections(name):
    assert missing(PUBLIC[name]) == []


def generated(name):
    """Whether a docstring says of operands and results what `nbta.ops.core.descriptions` does."""
    said = sections(PUBLIC[name])
    operands = re.search(r", of (any shape|shapes that broadcast)\.", said.get("Parameters", ""))
    result = re.search(r"(Of|Booleans, of) the (shape|broadcast shape)\b", said.get("Returns", ""))
    return name.startswith("nbta.") and operands and result and "dtype" in said["Returns"]


def expected(returns, dtype):
    """The dtype of a result, by what a docstring says of it."""
    if "Booleans" in returns:
        return np.bool_
    if dtype.kind == "b" and "int8" in returns:
        return np.int8
    if dtype.kind in "bi" and "float64 for integers" in returns:
        return np.float64
    if dtype.kind == "c" and "float64 for complex128" in returns:
        return np.float64
    return dtype


@pytest.mark.parametrize("name", [name for name in PUBLIC if generated(name)])
def test_families(name):
    function, said = PUBLIC[name], sections(PUBLIC[name])
    parameters = inspect.signature(function).parameters.values()
    needed = [one for one in parameters if one.default is one.empty]
    if {one.annotation for one in needed} != {"ArrayLike"}:
        pytest.skip("it needs other parameters than operands")
    for kind, value in (("complex numbers", 1j), ("floats", 0.5), ("booleans", True), ("", 1)):
        given = [np.array([value])] * len(needed)
        if kind and re.search(rf"\b{kind}\b", said.get("Raises", "")):
            with pytest.raises(nbta.InvalidArgumentError):
                function(*given)
        else:
            found = np.asarray(function(*given)).dtype
            assert found == expected(said["Returns"], given[0].dtype)


def test_functions_without_annotations_are_of_a_family_too():
    """Those that users define by its decorators, as the page on adding an operation does."""

    @unary("Unannotated", lambda x: x / 2.0, lambda x, y: 0.5)
    def half(x, *, name=None):
        """The half."""

    assert sections(half)["Parameters"].startswith("x : ")
    TABLE.pop("Unannotated")


def test_the_kept_inventory_has_all_names_of_numpy():
    """Builds of the pages without a network take addresses from it: docs/inventories/make.py."""
    root = Path(__file__).parents[2]
    packed = (root / "docs" / "inventories" / "numpy.inv").read_bytes()
    lines = zlib.decompress(packed.split(b"zlib.\n", 1)[1]).decode().splitlines()
    texts = [path.read_text(encoding="utf-8") for path in (root / "nbta").rglob("*.py")]
    named = {name for text in texts for name in re.findall(r"(?<!`)`(numpy\.[\w.]+)`", text)}
    assert named <= {line.split()[0] for line in lines}
