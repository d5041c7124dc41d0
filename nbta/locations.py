"""Lines of users' code, for what is said about it later."""

import ast
import dis
import functools
import linecache
import os
import re
import sys
import sysconfig
import types
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from nbta.errors import NbtaError

#: Where all modules of nbta are.
OWN = str(Path(__file__).parent) + os.sep
#: Where Python's own modules are, and those that were installed.
LIBRARIES = tuple(
    {sysconfig.get_paths()[k] for k in ("stdlib", "platstdlib", "purelib", "platlib")}
)


class Location(NamedTuple):
    """A line.

    Attributes
    ----------
    filename : str
    line : int
    module : str
        Name of the module it is in.
    """

    filename: str
    line: int
    module: str

    def __str__(self):
        return f"{self.filename}:{self.line}"

    @property
    def is_gradient(self) -> bool:
        """Whether it is the gradient of the line that something comes from."""
        return False

    @property
    def of_gradient(self) -> "Location":
        """The same line, for what comes from its gradient."""
        return self


class Spot(Location):
    """A line, and where in it, by the instruction that Python was at.

    Which expression that is, is found when somebody asks: only errors do.
    """

    code: types.CodeType
    instruction: int

    @classmethod
    def of(cls, frame) -> "Spot":
        """Where a frame is."""
        code = frame.f_code
        made = cls(code.co_filename, frame.f_lineno, frame.f_globals.get("__name__", ""))
        made.code, made.instruction = code, frame.f_lasti
        return made

    def __reduce__(self):
        return Location, tuple(self)

    is_gradient = False

    @property
    def of_gradient(self) -> "Spot":
        """The same line, for what comes from its gradient."""
        if self.is_gradient:
            return self
        found = self.__dict__.get("_of_gradient")
        if found is None:
            found = self._of_gradient = Spot(*self)
            found.code, found.instruction, found.is_gradient = self.code, self.instruction, True
        return found

    @property
    def function_line(self) -> int:
        """The first line of the function that it is in."""
        return self.code.co_firstlineno

    @property
    def positions(self) -> tuple:
        """First and last line, and columns, as in a code; None each where it does not say."""
        found, place = _positions(self.code), self.instruction // 2
        return found[place] if place < len(found) else (None,) * 4

    @property
    def text(self) -> str:
        """The line unmodified in its file, if there is one."""
        return linecache.getline(self.filename, self.line).strip()

    @property
    def item(self) -> str | None:
        """What the user wrote, such as ``path[t + 1]``; None where that is no item of an array."""
        tree = self._tree()
        return _short(ast.unparse(tree)) if isinstance(tree, ast.Subscript) else None

    @property
    def expression(self) -> str:
        """What the user wrote that Python was at, or the line where that is no expression."""
        tree = self._tree()
        return _short(self.text if tree is None else ast.unparse(tree))

    @property
    def assigned(self) -> str | None:
        """The variable that what the user wrote there is assigned to; None where it is to none."""
        return _assigned(self.filename).get(self.positions)

    def _tree(self):
        """The expression that Python was at; None where it is none."""
        line, last, begin, end = self.positions
        if None in (line, last, begin, end):
            return None
        found = [linecache.getline(self.filename, k).encode() for k in range(line, last + 1)]
        found[-1] = found[-1][:end]  # before what is before it goes, where it is one line
        found[0] = found[0][begin:]
        try:
            return ast.parse(b"".join(found).decode(), mode="eval").body
        except (SyntaxError, ValueError):
            return None


#: Codes and texts of which what follows is kept, as all operations of a graph ask for it.
_KEPT = 64


class _Of:
    """What follows from an object, by which object it is: a code's hash takes time by its length.

    Parameters
    ----------
    compute : callable
        Of the object.
    """

    def __init__(self, compute):
        self._compute, self._found = compute, {}

    def __call__(self, value):
        """What follows, computed once as long as few others are asked for."""
        held = self._found.get(id(value))
        if held is None:
            if len(self._found) >= _KEPT:
                self._found.clear()
            held = self._found[id(value)] = value, self._compute(value)  # whose id stays its own
        return held[1]


_positions = _Of(lambda code: tuple(code.co_positions()))


def _assigned(filename):
    """Variables of a file by the range of what is assigned to them alone."""
    return _assigned_in(linecache.getlines(filename))  # one list, until the file changes


@_Of
def _assigned_in(lines):
    """The same of lines: by first line, last, and columns."""
    found = {}
    try:
        nodes = ast.walk(ast.parse("".join(lines)))
    except (SyntaxError, ValueError):
        return found
    for node in nodes:
        target, ranges = None, ()
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, ranges = node.targets[0], (node.value,)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            target, ranges = node.target, (node.value,)
        elif isinstance(node, ast.AugAssign):
            target, ranges = node.target, (node,)
        if isinstance(target, ast.Name):
            for each in ranges:
                where = each.lineno, each.end_lineno, each.col_offset, each.end_col_offset
                found[where] = target.id
    return found


def _short(text, most=60):
    return text if len(text) <= most else f"{text[: most - 4]} ..."


@dataclass(frozen=True)
class Origin:
    """What the user wrote that something in a graph comes from.

    Attributes
    ----------
    name : str
        In the graph.
    location : Location or None
    is_told : bool
        Whether somebody was warned of it.
    """

    name: str
    location: Location | None = None
    is_told: bool = field(default=False, compare=False, repr=False)

    @property
    def header(self) -> str | None:
        """The statement of the loop, where the user wrote one and gave it no name."""
        if self.location is None or not _UNNAMED.fullmatch(self.name.rpartition("/")[2]):
            return None
        text = linecache.getline(self.location.filename, self.location.line).strip()
        found = _HEADER.match(text)
        return _short(found[1].rstrip()) if found else None

    def __str__(self):
        if self.location is None:
            return repr(self.name)
        place = f"{os.path.basename(self.location.filename)}:{self.location.line}"
        header = self.header
        return f"{self.name!r} ({place})" if header is None else f"`{header}` at {place}"


#: What loops are called that were given no name, and how a statement of one begins.
_UNNAMED, _HEADER = (
    re.compile(r"while(_\d+)?"),
    re.compile(r"((?:for|while)\b[^#]*?):?\s*(?:#.*)?$"),
)


_SCIPY = f"{os.sep}site-packages{os.sep}scipy{os.sep}"
_PYTHONS = tuple(sysconfig.get_paths()[k] + os.sep for k in ("stdlib", "platstdlib"))


@functools.cache
def _is_library(filename) -> bool:
    """Whether a file is of Python's own modules, or NumPy's, SciPy's or Numba's.

    Users do not look into these.
    """
    if f"{os.sep}site-packages{os.sep}" in filename:
        return f"{os.sep}site-packages{os.sep}num" in filename or _SCIPY in filename
    return filename.startswith(_PYTHONS)


def _is_users(filename) -> bool:
    return not filename.startswith(OWN) and not _is_library(filename)


def of_caller() -> Location | None:
    """The innermost line of the user's that led here; None where there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        if _is_users(filename):
            return Spot.of(frame)
        frame = frame.f_back
    return None


def of_error(error) -> Location | None:
    """The innermost line of the user's that an error came by."""
    return after_users(error)[0]


def is_raised_here(error) -> bool:
    """Whether an error is one that a `raise` statement of this package raises."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not trace.tb_frame.f_code.co_filename.startswith(OWN):
        return False
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def after_users(error) -> tuple[Spot | None, list[str]]:
    """The innermost line of the user's that an error came by, and the files of what that called."""
    found, files, trace = None, [], error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        files.append(code.co_filename)
        if _is_users(code.co_filename):
            module = trace.tb_frame.f_globals.get("__name__", "")
            found, files = Spot(code.co_filename, trace.tb_lineno, module), []
            found.code, found.instruction = code, trace.tb_lasti
        trace = trace.tb_next
    return found, files


def raise_at(error, place, name) -> None:
    """Raise an error with a frame in its traceback that is at a line of the user's.

    Parameters
    ----------
    error : Exception
    place : Location
    name : str
        Of the function that the line is in.
    """
    first, last, begin, end = _range_of(place)
    where = {"lineno": first, "end_lineno": last, "col_offset": begin, "end_col_offset": end}
    top = where | {"lineno": min(first, getattr(place, "function_line", first))}
    raising = ast.Raise(ast.Name("error", ast.Load(), **where), None, **where)
    nothing = ast.arguments([], [], None, [], [], None, [])
    tree = ast.Module([ast.FunctionDef("raising", nothing, [raising], [], **top)], [])
    ast.fix_missing_locations(tree)
    names = {"__name__": place.module, "error": error}
    exec(compile(tree, place.filename, "exec"), names)
    function = names["raising"]
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=name)
    function()


def _range_of(place):
    """First and last line, and columns, of what the user wrote at a place."""
    code = getattr(place, "code", None)
    if code is not None:
        found = place.positions
        if None not in found and found[0] == place.line:
            return found
    text = linecache.getline(place.filename, place.line).rstrip().encode()
    return place.line, place.line, len(text) - len(text.lstrip()), max(len(text), 1)


class _MarkerError(Exception):
    """Raised for the frame that it is raised in."""


def _frame_at(place):
    """Frame, instruction and line for a traceback that ends at a line of the user's."""
    try:
        raise_at(_MarkerError(), place, place.code.co_name)
    except _MarkerError as error:
        trace = error.__traceback__
        while trace.tb_next is not None:
            trace = trace.tb_next
        return trace.tb_frame, trace.tb_lasti, trace.tb_lineno


def hide_own_frames(error) -> None:
    """Let an error that goes to users have a traceback of their own lines.

    The frames of this package and of the libraries that it calls are left out. Where a run failed,
    the last frame is at the line that the operation comes from. Errors that only tell how this
    package came to what it raises are no causes any more. With ``NBTA_FULL_TRACEBACK=1`` in the
    environment all stays as it is.
    """
    if os.environ.get("NBTA_FULL_TRACEBACK") == "1":
        return
    waiting, seen = [error], set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        for attribute in ("__context__", "__cause__"):
            other = getattr(one, attribute)
            if other is not None and _is_internal(other):
                setattr(one, attribute, None)
            elif other is not None:
                waiting.append(other)
        frames = list(_users_frames(one))
        place = getattr(one, "nbta_from", None)
        if isinstance(place, Spot) and not any(
            (frame.f_code.co_filename, line) == place[:2] for frame, _, line in frames
        ):
            frames.append(_frame_at(place))
        trace = None
        for frame in reversed(frames):
            trace = types.TracebackType(trace, *frame)
        one.__traceback__ = trace


def _users_frames(error):
    """Frames of the user's in a traceback, and of libraries that these call."""
    trace, is_called = error.__traceback__, False
    while trace is not None:
        filename = trace.tb_frame.f_code.co_filename
        if filename.startswith(OWN):
            is_called = True
        elif _is_users(filename) or not is_called:
            is_called = is_called and not _is_users(filename)
            yield trace.tb_frame, trace.tb_lasti, trace.tb_lineno
        trace = trace.tb_next


def _is_internal(error) -> bool:
    """Whether an error came up in this package, or in what it called, and is not its own."""
    if isinstance(error, NbtaError):
        return False
    is_called, trace = False, error.__traceback__
    while trace is not None:
        filename = trace.tb_frame.f_code.co_filename
        is_called = filename.startswith(OWN) or (is_called and not _is_users(filename))
        trace = trace.tb_next
    return is_called


def warn_caller(message, category) -> None:
    """Warn at the innermost line outside of nbta, once for each such line."""
    location = of_caller()
    if location is None:
        warnings.warn(message, category, stacklevel=2)
    else:
        registry = sys.modules[location.module].__dict__ if location.module in sys.modules else {}
        registry = registry.setdefault("__warningregistry__", {})
        warnings.warn_explicit(message, category, *location, registry=registry)
