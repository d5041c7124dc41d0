"""Which variables' values something may still read, at each branch and loop, and which nobody does.

Classical backward analysis over a body without jumps (`nbta.frontend.jumps`). A branch or a loop
forwards the variables that it assigns and that are live after it or, for a loop, at its head.
What a function in the function reads is live everywhere, as nobody knows when it is called.
"""

import ast

from nbta.frontend.jumps import blocks

_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_SCOPES = _FUNCTIONS | ast.ClassDef


def own_nodes(tree):
    """The nodes of a function's own scope, without those of functions and classes in it."""
    waiting = parts_of(tree)
    while waiting:
        node = waiting.pop()
        yield node
        waiting += _outside(node) if isinstance(node, _SCOPES) else parts_of(node)


def parts_of(node) -> list:
    """The nodes in a node's fields, without those that say nothing more, such as ``ast.Load()``."""
    found, have = [], node.__dict__
    for field in node._fields:
        value = have.get(field)
        if isinstance(value, list):
            found += [part for part in value if isinstance(part, ast.AST)]
        elif isinstance(value, ast.AST) and (value._fields or value._attributes):
            found.append(value)
    return found


def _outside(scope):
    """Parts of an inner function that are evaluated where it is made."""
    parts = [*getattr(scope, "decorator_list", ()), *getattr(scope, "bases", ())]
    given = getattr(scope, "args", None)
    if given is not None:
        parts += [*given.defaults, *(d for d in given.kw_defaults if d is not None)]
    return parts


def bound_in(node) -> set:
    """The names that a node of a scope binds, itself and in all its parts.

    Names that only comprehensions bind are in scopes of their own; those of `:=` in them are not.
    """
    found, waiting = set(), [node]
    while waiting:
        part = waiting.pop()
        kind = type(part)
        if kind is ast.Name:
            if not isinstance(part.ctx, ast.Load):
                found.add(part.id)
        elif kind is ast.comprehension:
            waiting += [part.iter, *part.ifs]
        else:
            found |= _bound_by(part)
            waiting += _outside(part) if isinstance(part, _SCOPES) else parts_of(part)
    return found


def _bound_by(part):
    if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {part.name}
    if isinstance(part, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in part.names}
    if isinstance(part, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and part.name:
        return {part.name}
    return set()


def bound_by(statement) -> set:
    """`bound_in` of a statement of a body that no pass changes any more, kept with it.

    Statements in it keep theirs: a chain of ``elif`` has each of its branches in the one before.
    """
    if not hasattr(statement, "bound"):
        if isinstance(statement, ast.stmt) and not isinstance(statement, _SCOPES):
            parts = (bound_by(p) if isinstance(p, ast.stmt) else bound_in(p)
                     for p in parts_of(statement))  # fmt: skip
            statement.bound = _bound_by(statement).union(*parts)
        else:
            statement.bound = bound_in(statement)
    return statement.bound


def bound_by_head(statement) -> set:
    """The names that a statement binds itself, without those of statements in it."""
    if isinstance(statement, _SCOPES) or not any(True for _ in blocks(statement)):
        return bound_by(statement)
    heads = [part for part in parts_of(statement) if not isinstance(part, ast.stmt)]
    return _bound_by(statement).union(*map(bound_by_head, heads))


def read_in(node) -> set:
    """The names from around a node that it reads, also in functions and comprehensions in it."""
    found, waiting = set(), [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Name):
            found |= {part.id} if isinstance(part.ctx, ast.Load) else set()
        elif isinstance(part, _FUNCTIONS):
            found |= free_in(part)
            waiting += _outside(part)
        elif hasattr(part, "generators"):
            found |= _read_in_comprehension(part)
        else:
            waiting += parts_of(part)
    return found


def _read_in_comprehension(node):
    """Without the names that it binds itself, but for what the first part goes along."""
    bound = {name for part in node.generators for name in bound_in(part.target)}
    first = node.generators[0].iter
    rest = [part for part in ast.iter_child_nodes(node) if not isinstance(part, ast.comprehension)]
    rest += [each for part in node.generators for each in (part.iter, *part.ifs, part.target)]
    inner = set().union(*(read_in(part) for part in rest if part is not first))
    return read_in(first) | (inner - bound)


def free_in(function):
    """The names from around a function that it reads or, as ``nonlocal``, assigns."""
    body = function.body if isinstance(function.body, list) else [function.body]
    given = function.args
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    own = bound_in(ast.Module(body, [])) | {each.arg for each in arguments if each is not None}
    shared = {
        name
        for node in own_nodes(ast.Module(body, []))
        if isinstance(node, ast.Nonlocal)
        for name in node.names
    }
    return (set().union(*map(read_in, body)) - own) | shared


def captured_names(tree) -> set:
    """Names that functions and classes in a function use."""
    return set().union(*(
        free_in(node) if isinstance(node, _FUNCTIONS) else read_in(node)
        for node in own_nodes(tree)
        if isinstance(node, _SCOPES)
    ))  # fmt: skip


def root_of(target) -> set:
    """The variable that an assigned item or attribute is of."""
    while isinstance(target, ast.Subscript | ast.Attribute):
        target = target.value
    return {target.id} if isinstance(target, ast.Name) else set()


class Liveness:
    """Annotates branches and loops with ``live``: names that are live at their start or after.

    Branches have those that are live after them as ``after`` too. Statements have, as ``unused``,
    the variables that they assign or change, by items or by a method, and that nobody reads
    afterwards.

    Parameters
    ----------
    always : set
        Names that are live everywhere.
    """

    def __init__(self, always):
        self._always = always

    def block(self, statements, after):
        """What is live before statements."""
        for statement in reversed(statements):
            after = self._statement(statement, after | self._always)
        return after

    def _statement(self, statement, after):
        statement.unused = sorted(_puts(statement) - after)
        if isinstance(statement, ast.If):
            return self._if(statement, after)
        if isinstance(statement, ast.For):
            return self._for(statement, after)
        if isinstance(statement, ast.While):
            return self._while(statement, after)
        if isinstance(statement, ast.With):
            inner = self.block(statement.body, after)
            return inner | set().union(*(read_in(item) for item in statement.items))
        inner = list(blocks(statement))
        if inner and not isinstance(statement, _SCOPES):  # try and match: nothing is proven to run
            reads = read_in(statement)
            for block in inner:
                self.block(block, after | reads)
            return after | reads
        return self._plain(statement, after)

    def _plain(self, statement, after):
        if not hasattr(statement, "reads"):
            statement.reads, statement.kills = _reads_and_kills(statement)
        return (after - statement.kills) | statement.reads

    def _if(self, statement, after):
        statement.after = after
        branches = self.block(statement.body, after) | self.block(statement.orelse, after)
        statement.live = branches | after
        return branches | self._read(statement.test)

    def _for(self, statement, after):
        target = bound_by(statement.target)
        reads = read_in(statement.target) | set(statement.flags)
        self._loop(statement, after | reads, target)
        return statement.live | self._read(statement.iter)

    def _while(self, statement, after):
        self._loop(statement, after | self._read(statement.test) | set(statement.flags), set())
        return statement.live

    def _loop(self, statement, head, target):
        """Annotate a loop, of which an iteration needs what it reads ahead of giving it a value.

        That does not depend on what is live after it: twice is enough, and in nests the first one
        is done once for all.
        """
        if not hasattr(statement, "needs"):
            statement.needs = self.block(statement.body, set())
        statement.live = (statement.needs - target) | head
        self.block(statement.body, statement.live)

    def _read(self, expression):
        if not hasattr(expression, "reads"):
            expression.reads = read_in(expression)
        return expression.reads


def _reads_and_kills(statement):
    """The names that a statement reads, and those whose values nobody reads after it."""
    reads = read_in(statement)
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        reads = reads | read_in(statement.old)
    if isinstance(statement, ast.Delete):
        reads = reads.union(*map(read_in, statement.old))
    conditional = any(isinstance(n, ast.NamedExpr) for n in own_nodes(statement))
    return reads, set() if conditional else bound_by(statement)


def _puts(statement):
    """The variables that a statement gives values, and those whose items it changes."""
    if isinstance(statement, _SCOPES):
        return set()
    if not hasattr(statement, "puts"):
        parts = parts_of(statement)
        heads = [part for part in parts if not isinstance(part, ast.stmt)]
        inner = (_puts(part) for part in parts if isinstance(part, ast.stmt))
        statement.puts = bound_by(statement).union(*inner)
        for node in own_nodes(ast.Tuple(heads, ast.Load())):
            if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
                statement.puts |= root_of(node)
        called = getattr(getattr(statement, "value", None), "func", None)
        if isinstance(statement, ast.Expr) and isinstance(called, ast.Attribute):
            statement.puts |= root_of(called)  # a method may change it, such as append
    return statement.puts
