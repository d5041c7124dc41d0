"""The parts of docstrings that many functions share: said once, and written into each of them.

A function's own docstring has its summary, its examples and the parameters that are its own;
`describe` adds the rest. What a docstring says itself stays.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from dataclasses import dataclass

#: Before each line of a docstring; Python takes it away from 3.13 on.
_IN = "" if sys.version_info >= (3, 13) else "    "
_SECTION = re.compile(rf"\n\n{_IN}(\w[\w ]*)\n{_IN}-+\n")
_ENTRY = re.compile(rf"\n(?={_IN}\S)")


@dataclass(frozen=True, eq=False)
class Family:
    """What the docstrings of a family of functions share.

    Attributes
    ----------
    operands : str
        What arrays among the arguments hold, where functions take them element by element.
    dtype : str
        Of the results of such functions, where it is not that of the operands.
    refused : str
        What they raise for.
    parameters : str
        Entries of other parameters.
    returns : str
        Of functions that do not go element by element.
    """

    operands: str = ""
    dtype: str = ""
    refused: str = ""
    parameters: str = ""
    returns: str = ""


_AS_FLOATS = " Integers and booleans become float64."
_OWN_OR_FLOAT = "float64 for integers and booleans"

#: Of all functions.
_NAME = "name : str, optional\n    Name of the operation in a graph; ignored outside graphs."

OTHER = Family()
#: Functions of floats, to which integers are cast: of any numbers, and of real ones alone.
FLOATS = Family("Real or complex numbers", _OWN_OR_FLOAT)
REAL_FLOATS = Family("Real numbers", _OWN_OR_FLOAT, "complex numbers")
#: Functions whose results have the dtype of their operands.
NUMBERS = Family("Numbers or booleans")
SIGNED = Family("Numbers", "", "booleans")
REAL = Family("Real numbers or booleans", "", "complex numbers")
COUNTED = Family("Real numbers or booleans", "int8 for booleans", "complex numbers")
POWERS = Family("Numbers or booleans", "int8 for booleans")
BITS = Family("Integers or booleans", "", "floats and complex numbers")
WHOLE = Family("Integers or booleans", "int8 for booleans", "floats and complex numbers")
DIVISIBLE = Family("Integers", "", "floats, complex numbers and booleans")
#: Questions.
TRUTHS = Family("Numbers or booleans", "bool")
REAL_TRUTHS = Family("Real numbers or booleans", "bool", "complex numbers")


_ARRAY = "array-like or Tensor"
_AXES = f"""\
x : {_ARRAY}
    Numbers or booleans, of any shape.
axis : int, tuple of int or None, default None
    The axes to reduce: all of them for None. Negative numbers count from the last axis.
keepdims : bool, default False
    Whether the reduced axes stay in the result, with length 1."""
#: Functions that take the elements along axes together.
REDUCED = Family(
    refused="an axis that ``x`` does not have",
    parameters=f"""{_AXES}
ddof : float, default 0
    What is subtracted from the number of elements before the sum of squares is divided by it.
dtype : dtype-like, optional
    Dtype to compute in, and of the result.
initial : scalar or Tensor, optional
    Value to start from, as one more element.
where : {_ARRAY} of bool, optional
    Which elements to include, of a shape that broadcasts to that of ``x``; all by default.
correction : float, optional
    Another name of ``ddof``.
mean : {_ARRAY}, optional
    The mean, if it is known, with the reduced axes at length 1.""",
    returns="Of the shape of ``x`` without the reduced axes.",
)
#: Functions of the elements up to each one.
CUMULATED = Family(
    refused="an axis that ``x`` does not have",
    parameters=f"""\
x : {_ARRAY}
    Numbers or booleans, of any shape.
axis : int, optional
    Axis to go along; by default ``x`` is flattened first.
dtype : dtype-like, optional
    Dtype to compute in, and of the result.""",
    returns="Of the shape of ``x``, or a vector of all elements without an axis.",
)
#: Functions of sorted elements.
QUANTILES = Family(
    refused="an axis that ``x`` does not have",
    parameters=f"""{_AXES.replace("Numbers or booleans", "Real numbers")}
method : str, default "linear"
    One of NumPy's methods. Between two elements they interpolate ("linear", "hazen", "weibull",
    "median_unbiased", ...), choose one ("lower", "higher", "nearest", "inverted_cdf", ...) or take
    the mean ("midpoint").
weights : {_ARRAY}, optional
    Weights, for ``method="inverted_cdf"``: of the shape of ``x``, or a vector along the one axis.
    They have no gradient.""",
    returns="""\
Of the shape of ``x`` without the reduced axes, and with a new first axis if ``q`` is a vector.
    Gradients go to the elements on either side (of equal ones, to those that `nbta.sort` puts
    there) and to ``q`` if it is a tensor.""",
)


def describe(function, family: Family = OTHER) -> None:
    """Write into a docstring what it does not say itself, of its family and of all functions."""
    if function.__doc__ is None:  # Python runs without docstrings
        return
    code = function.__code__
    places, named = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    names, kinds = code.co_varnames[:named], function.__annotations__
    if code.co_flags & inspect.CO_VARARGS:
        names = (*names[:places], f"*{code.co_varnames[named]}", *names[places:])
    operands = ()
    if family.operands:
        said = {name: str(kinds.get(name, "ArrayLike")) for name in names[:places]}
        operands = tuple([name for name, kind in said.items() if kind.startswith("ArrayLike")])
    head, *rest = _SECTION.split(function.__doc__)
    own = dict(zip(rest[::2], rest[1::2], strict=True))
    shared = _shared(names, operands, family)
    sections = shared | own
    if "Parameters" in own:
        sections["Parameters"] = _parameters(own["Parameters"], names, operands, family)
    if "Raises" in shared and "InvalidArgumentError" not in sections["Raises"]:
        sections["Raises"] = f"{shared['Raises']}\n{own['Raises']}"
    parts = [head]
    for title, text in sections.items():
        parts += "\n\n", _IN, title, "\n", _IN, "-" * len(title), "\n", text
    function.__doc__ = "".join(parts)


@functools.cache
def _shared(names, operands, family):
    """The sections that functions with these arguments share."""
    found = {"Parameters": _parameters("", names, operands, family)}
    if operands or family.returns:
        text = family.returns or _result(operands, family.dtype)
        found["Returns"] = _indented(f"Tensor or numpy.ndarray\n    {text}")
    refused = [family.refused] if family.refused else []
    if len(operands) > 1:
        refused.append("shapes that do not broadcast")
    if refused:
        text = ", and for ".join(refused)
        found["Raises"] = _indented(f"InvalidArgumentError\n    For {text}.")
    return found


def _parameters(own, names, operands, family):
    """Entries in the order of the arguments: a function's own, and those that it shares."""
    entries = {}
    shared = _indented(f"{family.parameters}\n{_NAME}" if family.parameters else _NAME)
    for entry in [*_ENTRY.split(shared), *_ENTRY.split(own)]:
        described = entry.partition("\n")[0].partition(" :")[0]
        entries |= dict.fromkeys(described.strip().split(", "), entry)
    missing = [name for name in operands if name not in entries]
    if missing:
        shapes = "any shape" if len(operands) == 1 else "shapes that broadcast"
        text = f"{family.operands}, of {shapes}.{_AS_FLOATS * (family.dtype == _OWN_OR_FLOAT)}"
        entry = f"{', '.join(missing)} : {_ARRAY}\n    {text}"
        entries |= dict.fromkeys(missing, _indented(entry))
    return "\n".join(dict.fromkeys([entries[name] for name in names if name in entries]))


def _result(operands, dtype):
    """What is said of the results of functions that go element by element."""
    of, shape, own = "", "the broadcast shape", "the promoted dtype"
    if len(operands) == 1:
        of, shape, own = f" of ``{operands[0]}``", "the shape", "dtype"
    if dtype == "bool":
        return f"Booleans, of {shape}{of}."
    return f"Of {shape} and {own}{of}{dtype and '; '}{dtype}."


def _indented(text):
    return _IN + text.replace("\n", f"\n{_IN}")
