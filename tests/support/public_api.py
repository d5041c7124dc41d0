"""What users call: `python tests/support/public_api.py` records it anew.

As text, with the parameters, for reviewers; and as a stub, in which type checkers and editors find
the names that nbta itself puts together while it runs.
"""

import functools
import importlib
import inspect
import re
from pathlib import Path

import nbta

RECORD = Path(__file__).with_name("public_api.txt")
STUB = Path(nbta.__file__).with_suffix(".pyi")
#: Modules that users import, besides nbta itself and `nbta.errors`.
MODULES = (
    "nbta.debug", "nbta.distributed", "nbta.implicit", "nbta.interop", "nbta.random",
    "nbta.raw_ops", "nbta.testing",
)  # fmt: skip
#: Classes of what users are given and do not name, with the modules that have them.
GIVEN = {
    "ArrayHandle": "nbta.tensor_array",
    "Batched": "nbta.api.derivatives",
    "Concat": "nbta.runtime.request",
    "CustomGradient": "nbta.api.custom",
    "CustomJvp": "nbta.api.custom_tangents",
    "Flow": "nbta.naming",
    "Function": "nbta.api.tracing",
    "Handle": "nbta.naming",
    "Line": "nbta.inspect.lines",
    "Phase": "nbta.inspect.profiling",
    "Picture": "nbta.display.picture",
    "Profile": "nbta.inspect.profiling",
    "Row": "nbta.inspect.profiling",
    "SymbolicTensorArray": "nbta.symbolic",
    "TensorArrayGradV3Output": "nbta.runtime.raw_methods",
    "TensorArrayV3Output": "nbta.runtime.raw_methods",
}
#: Methods that all classes have, or that Python's versions write into some.
OF_PYTHON = {
    "__annotate__", "__annotate_func__", "__delattr__", "__dir__", "__getattr__", "__getnewargs__",
    "__getstate__", "__hash__", "__init__", "__init_subclass__", "__new__", "__reduce__",
    "__replace__", "__repr__", "__setattr__", "__setstate__", "__str__", "__subclasshook__",
}  # fmt: skip


def public():
    """Full name and value of each public function and class, in order."""
    for name in sorted(nbta.__all__):
        if not inspect.ismodule(getattr(nbta, name)):
            yield f"nbta.{name}", getattr(nbta, name)
    for module in map(importlib.import_module, MODULES):
        for name in sorted(getattr(module, "__all__", dir(module))):
            value = getattr(module, name)
            ours = hasattr(module, "__all__") or _module_of(value) == module.__name__
            if name[0] != "_" and ours:
                yield f"{module.__name__}.{name}", value
    for name, place in GIVEN.items():
        yield name, getattr(importlib.import_module(place), name)


def _module_of(value):
    return value.__module__ if callable(value) else None


def members(kind):
    """Name and value of what nbta put into a class and the classes after it, in order."""
    found = {}
    for base in reversed(kind.__mro__):
        if base.__module__.partition(".")[0] == "nbta":
            found.update(vars(base))
    for name in sorted(found):
        special = name.endswith("__") and name not in OF_PYTHON and inspect.isroutine(found[name])
        refused = isinstance(found[name], nbta.errors.NotOfArrays)
        if special or not (name[0] == "_" or refused):
            yield name, found[name]


def callables():
    """Full name and value of all that can be called, methods among it."""
    for name, value in public():
        if callable(value):
            yield name, value
        if inspect.isclass(value):
            short = name.removeprefix("nbta.")
            found = ((last, getattr(value, last)) for last, _ in members(value))
            yield from ((f"{short}.{last}", each) for last, each in found if callable(each))


def signature(value):
    """Parameters with kinds and defaults, without annotations; none where Python knows none."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):  # of a built-in class
        return inspect.Signature()
    plain = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    return found.replace(parameters=plain, return_annotation=found.empty)


def shown(value):
    """A signature as text that each process gives alike."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(signature(value)))


def _member(name, value):
    if isinstance(value, property | functools.cached_property):
        return f"{name}: property"
    if isinstance(value, staticmethod | classmethod):
        return f"{name}{shown(value.__func__)}: {type(value).__name__}"
    return f"{name}{shown(value)}" if inspect.isroutine(value) else f"{name}: attribute"


def lines():
    """The record: a line for each function, class and member."""
    for name, value in public():
        if not inspect.isclass(value):
            yield name + shown(value)
            continue
        caught = [base.__name__ for base in value.__mro__[1:-3] if issubclass(value, Exception)]
        yield f"class {name}{shown(value)}" + f" is {', '.join(caught)}" * bool(caught)
        yield from (f"{name}.{_member(*pair)}" for pair in members(value))
    for name, value in sorted(vars(nbta.errors).items()):
        if name[0] != "_" and inspect.isclass(value) and issubclass(value, Exception):
            yield f"nbta.errors.{name} is nbta.{value.__name__}"


def stub():
    """The stub: where each name of nbta comes from."""
    yield f'"""{nbta.__doc__.splitlines()[0]} (By ``public_api.py``.)"""'
    yield ""
    names = [*nbta.__all__, *nbta._DOORS]
    found = sorted(((_place(name), name) for name in names), key=_natural)
    yield from (f"from {place} import {name} as {name}" for place, name in found)
    yield ""
    yield "__version__: str"


def _natural(parts):
    """In the order in which ruff sorts imports: numbers in names by their values."""
    return [[(p.isdigit(), int(p) if p.isdigit() else p) for p in re.split(r"(\d+)", part)]
            for part in parts]  # fmt: skip


def _place(name):
    value = getattr(nbta, name)
    place = "nbta" if inspect.ismodule(value) else value.__module__
    assert getattr(importlib.import_module(place), name) is value
    return place


FILES = {RECORD: lines, STUB: stub}

if __name__ == "__main__":
    for file, content in FILES.items():
        file.write_text("".join(f"{line}\n" for line in content()), encoding="utf-8")
