"""The syntax tree of a function, found by its code."""

import ast
import functools
import inspect
import linecache
import types
import weakref
from dataclasses import dataclass
from pathlib import Path

from nbta.errors import InvalidArgumentError, UnimplementedError, invalid


class CodeTable:
    """Values by code objects: by identity, as equal codes may come from several texts."""

    def __init__(self):
        self._found: dict = {}

    def get(self, code, default=None):
        """The value of a code."""
        known = self._found.get(id(code))
        return default if known is None or known[0]() is not code else known[1]

    def __setitem__(self, code, value):
        key = id(code)
        forget = functools.partial(_forget, self._found, key)
        self._found[key] = weakref.ref(code, forget), value


def _forget(found, key, reference):
    if key in found and found[key][0] is reference:
        del found[key]


#: Codes of functions in converted functions, which were compiled from the text that is converted.
trusted = CodeTable()
#: Excerpts that came with codes from another process, whose files may not be here.
_excerpts = CodeTable()
#: Lines of such files, as `linecache` shows them.
_shown: dict[str, list[str]] = {}
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class NoSourceError(UnimplementedError):
    """There is no text of a function to convert."""


def no_source(function) -> NoSourceError:
    """The error for a function whose loops cannot be converted."""
    code = function.__code__
    return NoSourceError(
        f"{function.__qualname__} ({code.co_filename}:{code.co_firstlineno}): its source cannot be "
        "found, so that its loops, branches and item assignments cannot be converted; put it into "
        "a file, or write it with nbta.while_loop, nbta.cond, nbta.scan and nbta.set_item, which "
        "need no source; where it was sent by another process, send nbta.function of it, which "
        "takes its source along"
    )


def too_deep(function) -> UnimplementedError:
    """The error for a function whose syntax tree is deeper than Python lets anybody go."""
    code = function.__code__
    return UnimplementedError(
        f"{function.__qualname__} ({code.co_filename}:{code.co_firstlineno}): an expression is "
        "nested too deeply to be converted, such as a sum of hundreds of terms; split it into "
        "several statements, or write a loop"
    )


@functools.lru_cache(maxsize=64)
def _tree(lines: tuple):
    """The functions of a file, by the line where their code begins; and the file."""
    found, module = {}, ast.parse("".join(lines))
    for node in ast.walk(module):
        if isinstance(node, _FUNCTIONS):
            found.setdefault(_first_line(node), []).append(node)
    return found, module


def tree_of(function: types.FunctionType) -> ast.AST:
    """The definition of a function.

    Raises
    ------
    NoSourceError
        Where no file or cell has it.
    InvalidArgumentError
        Where the text has changed since the function was compiled.
    """
    try:
        return _tree_of(function)
    except (NoSourceError, InvalidArgumentError):  # perhaps the file was edited, and reloaded
        linecache.checkcache(function.__code__.co_filename)
        return _tree_of(function)


def _tree_of(function):
    code = function.__code__
    excerpt = _excerpts.get(code)
    lines = excerpt.lines if excerpt else linecache.getlines(code.co_filename, function.__globals__)
    if node := _definition_in(lines, code):
        if not _is_text_of(node, lines, code):
            message = (
                f"{function.__qualname__}: its text in {code.co_filename} changed since it was "
                f"imported; import it again, such as with importlib.reload"
            )
            raise invalid("source", message)
        return node
    if not lines:  # another process may have sent the function without the name of its file
        lines = linecache.getlines(function.__globals__.get("__file__") or "")
        node = _definition_in(lines, code)
        if node and _is_text_of(node, lines, code):
            return node
    raise no_source(function)


def _parsed(lines):
    """The functions of a file's lines, by the line where their code begins; and the file."""
    try:
        return _tree(tuple(lines))
    except SyntaxError:
        return {}, ast.Module([], [])


def _definition_in(lines, code):
    """The one definition that a code may be of; None where there is none, or several."""
    nodes = _parsed(lines)[0].get(code.co_firstlineno, ())
    found = [node for node in nodes if _fits(node, code)]
    if len(found) > 1:
        found = _by_column(found, code)
    return found[0] if len(found) == 1 else None


def _is_text_of(node, lines, code):
    """Whether a code was compiled from a definition.

    The statement of the module that it is in is compiled once more, after the module's imports, by
    which Python's compiler goes, and without them, as IPython compiles a cell's statements.
    """
    if trusted.get(code):
        return True
    if any(each.startswith("@py_") for each in (*code.co_names, *code.co_varnames)):
        return True  # pytest puts its own text for assertions
    own, imports = _context(_parsed(lines)[1], node.lineno)
    return _gives([*imports, *own], code) or _gives(own, code)


def _context(module, line):
    """The statements of a module that a line is in, and others that import to the module."""
    body = [each for each in module.body if not _is_future(each)]
    own = [each for each in body if _first_line(each) <= line <= each.end_lineno]
    return own, [each for each in body if each not in own and _imports(each)]


def _imports(statement):
    """Whether a statement imports to its own scope, also as a part: ``try: import numpy``."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return True
    if isinstance(statement, _FUNCTIONS | ast.ClassDef | ast.expr):
        return False
    return any(map(_imports, ast.iter_child_nodes(statement)))


@dataclass(frozen=True)
class Excerpt:
    """What of a file says how its functions were compiled.

    Attributes
    ----------
    parts : tuple of (int, str)
        Lines, each part with the number of its first, in order.
    """

    parts: tuple[tuple[int, str], ...]

    @functools.cached_property
    def lines(self) -> list[str]:
        """All lines of the file up to the last one here; others are empty."""
        found: list[str] = []
        for first, text in self.parts:
            found += ["\n"] * (first - 1 - len(found))
            found[first - 1 :] = text.splitlines(keepends=True)
        return found


def excerpt_of(code: types.CodeType) -> Excerpt | None:
    """The statement of a module that a code was compiled from, and the module's imports.

    None where there is no text. Whether the text is that of the code is for `tree_of` to see.
    """
    if found := _excerpts.get(code):
        return found
    return _excerpt(tuple(linecache.getlines(code.co_filename)), code.co_firstlineno)


@functools.lru_cache(maxsize=256)  # so that the functions of a statement share one
def _excerpt(lines, line):
    own, imports = _context(_parsed(lines)[1], line)
    if not own:
        return None
    places = sorted({(_first_line(each), each.end_lineno) for each in (*imports, *own)})
    return Excerpt(tuple((a, "".join(lines[a - 1 : b])) for a, b in places))


def keep_excerpt(code: types.CodeType, excerpt: Excerpt) -> None:
    """Save what came with a code; tracebacks show it where the file is not here."""
    _excerpts[code] = excerpt
    name = code.co_filename
    if name not in _shown and linecache.getlines(name):
        return
    lines = _shown.setdefault(name, [])
    lines += ["\n"] * (len(excerpt.lines) - len(lines))
    for k, line in enumerate(excerpt.lines):
        if line.strip():
            lines[k] = line
    linecache.cache[name] = sum(map(len, lines)), None, lines, name


def _gives(statements, code):
    """Whether Python makes a code of statements."""
    text = ast.Module(statements, [])
    made = compile(text, code.co_filename, "exec", code.co_flags & FUTURES, True)
    return any(_alike(each, code) for each in _codes(made, code))


#: Flags that `from __future__` sets for the compiler: annotations as strings.
FUTURES = 0x1000000


def _is_future(statement):
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _first_line(node):
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _codes(code, like):
    """The codes in a code that have the name and the first line of another one."""
    if code.co_name == like.co_name and code.co_firstlineno == like.co_firstlineno:
        yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _codes(const, like)


def _alike(one, other):
    """Whether two codes do the same."""
    if one.co_code != other.co_code or one.co_names != other.co_names:
        return False
    if len(one.co_consts) != len(other.co_consts):
        return False
    return all(map(_same_constant, one.co_consts, other.co_consts))


def _same_constant(one, other):
    if isinstance(one, types.CodeType) and isinstance(other, types.CodeType):
        return _alike(one, other)
    return isinstance(one, str) or (type(one) is type(other) and repr(one) == repr(other))


def _fits(node, code):
    name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
    given = node.args
    names = [arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    count = code.co_argcount + code.co_kwonlyargcount
    return name == code.co_name and _same(names, code.co_varnames[:count])


def _same(names, mangled):
    """Whether names are those of a code, where Python put a class's name before private ones."""
    return len(names) == len(mangled) and all(
        one == other or other.endswith(one) for one, other in zip(names, mangled, strict=True)
    )


def _by_column(nodes, code):
    """Of lambdas on a line, those in whose text all of the code's positions are."""
    places = [
        (line, column)
        for line, _, column, _ in code.co_positions()
        if line is not None and column is not None and (line, column) != (code.co_firstlineno, 0)
    ]
    within = [node for node in nodes if all(_contains(node.body, place) for place in places)]
    if len(within) > 1:  # one in another: the inner
        within = [n for n in within if not any(m is not n and _has(n, m) for m in within)]
    return within


def _contains(node, place):
    first, last = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    return first <= place <= last


def _has(node, other):
    return any(each is other for each in ast.walk(node))


def described(function) -> str:
    """The user's function by its name, with file and line."""
    inner = inspect.unwrap(function)
    inner = getattr(inner, "py_func", inner)
    code = getattr(inner, "__code__", None)
    where = "" if code is None else f" at {Path(code.co_filename).name}:{code.co_firstlineno}"
    return f"{getattr(inner, '__qualname__', inner)}{where}"
