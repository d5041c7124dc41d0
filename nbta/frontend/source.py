"""The syntax tree of a function, found by its code."""

import ast
import functools
import linecache
import types
import weakref

from nbta.errors import UnimplementedError, invalid

#: Codes of functions in converted functions, which were compiled from the text that is converted.
trusted: weakref.WeakSet = weakref.WeakSet()
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class NoSourceError(UnimplementedError):
    """There is no text of a function to convert."""


def no_source(function) -> NoSourceError:
    """The error for a function whose loops cannot be converted."""
    code = function.__code__
    return NoSourceError(
        f"{function.__qualname__} ({code.co_filename}:{code.co_firstlineno}): its source is not to "
        f"be found, so that its loops, branches and item assignments cannot be converted; put it "
        f"into a file, or write it with nbta.while_loop, nbta.cond, nbta.scan and nbta.set_item, "
        f"which need no source"
    )


def too_deep(function) -> UnimplementedError:
    """The error for a function whose syntax tree is deeper than Python lets anybody go."""
    code = function.__code__
    return UnimplementedError(
        f"{function.__qualname__} ({code.co_filename}:{code.co_firstlineno}): an expression is too "
        f"deep to be converted, as a sum of hundreds of terms in one statement is; add them up in "
        f"several statements, or by a loop"
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
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    try:
        by_line, module = _tree(tuple(lines))
    except SyntaxError:
        by_line, module = {}, None
    nodes = by_line.get(code.co_firstlineno, ())
    found = [node for node in nodes if _fits(node, code)]
    if len(found) > 1:
        found = _by_column(found, code)
    if len(found) != 1:
        raise no_source(function)
    _check_text(function, module, found[0])
    return found[0]


def _check_text(function, module, node):
    """Refuse a text that is not the one that a function was compiled from.

    The statement of the module that it is in is compiled once more, behind the module's imports, by
    which Python's compiler goes, and without them, as IPython compiles a cell's statements.
    """
    code = function.__code__
    if code in trusted:
        return
    if any(each.startswith("@py_") for each in (*code.co_names, *code.co_varnames)):
        return  # pytest puts its own text for assertions
    body = [each for each in module.body if not _is_future(each)]
    own = [each for each in body if _first_line(each) <= node.lineno <= each.end_lineno]
    imports = [each for each in body if isinstance(each, ast.Import | ast.ImportFrom)]
    if not (_gives([*imports, *own], code) or _gives(own, code)):
        message = (
            f"{function.__qualname__}: its text in {code.co_filename} changed since it was "
            f"imported; import it again, such as with importlib.reload"
        )
        raise invalid("source", message)


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
