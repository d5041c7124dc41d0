"""Which variables' values something may still read, at each branch and loop.

Classical backward analysis over a body without jumps (`nbta.frontend.jumps`). A branch or a loop
hands on the variables that it assigns and that are live behind it or, for a loop, at its head.
What a function in the function reads is live everywhere, as nobody knows when it is called.
"""

import ast

from nbta.frontend.jumps import blocks

_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef


def own_nodes(tree):
    """The nodes of a function's own scope, without those of functions and classes in it."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if not isinstance(node, _SCOPES):
            yield from own_nodes(node)
        else:
            for part in _outside(node):
                yield part
                yield from own_nodes(part)


def _outside(scope):
    """Parts of an inner function that are evaluated where it is made."""
    parts = [*getattr(scope, "decorator_list", ()), *getattr(scope, "bases", ())]
    given = getattr(scope, "args", None)
    if given is not None:
        parts += [*given.defaults, *(d for d in given.kw_defaults if d is not None)]
    return parts


def bound_in(node) -> set:
    """The names that a node of a scope binds, itself and in all its parts."""
    found = set()
    for part in (node, *own_nodes(node)):
        found |= _bound_by(part)
    return found - _comprehension_names(node)


def _bound_by(part):
    if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
        return {part.id}
    if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {part.name}
    if isinstance(part, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in part.names}
    if isinstance(part, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and part.name:
        return {part.name}
    return set()


def _comprehension_names(node):
    """Names that only comprehensions in a node bind, which have scopes of their own."""
    inner, elsewhere = set(), set()
    for part in (node, *own_nodes(node)):
        if isinstance(part, _COMPREHENSIONS):
            for generator in part.generators:
                inner |= {n.id for n in ast.walk(generator.target) if isinstance(n, ast.Name)}
    if inner:
        elsewhere = _bound_outside(node)
    return inner - elsewhere


def _bound_outside(node):
    if isinstance(node, _COMPREHENSIONS):
        walrus = (n for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
        return {n.target.id for n in walrus}
    found = _bound_by(node)
    parts = _outside(node) if isinstance(node, _SCOPES) else ast.iter_child_nodes(node)
    for part in parts:
        found |= _bound_outside(part)
    return found


def read_in(node) -> set:
    """The names that a node reads, also in functions in it."""
    return {
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
    }


def captured_names(tree) -> set:
    """Names that functions and classes in a function use."""
    found = set()
    for node in own_nodes(tree):
        if isinstance(node, _SCOPES):
            found |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            for part in ast.walk(node):
                if isinstance(part, ast.Nonlocal):
                    found |= set(part.names)
    return found


class Liveness:
    """Annotates branches and loops with ``live``: names that are live at their start or behind.

    Branches have those that are live behind them as ``behind`` too.

    Parameters
    ----------
    always : set
        Names that are live everywhere.
    """

    def __init__(self, always):
        self._always = always

    def block(self, statements, behind):
        """What is live before statements."""
        for statement in reversed(statements):
            behind = self._statement(statement, behind | self._always)
        return behind

    def _statement(self, statement, behind):
        if isinstance(statement, ast.If):
            return self._if(statement, behind)
        if isinstance(statement, ast.For):
            return self._for(statement, behind)
        if isinstance(statement, ast.While):
            return self._while(statement, behind)
        if isinstance(statement, ast.With):
            inner = self.block(statement.body, behind)
            return inner | set().union(*(read_in(item) for item in statement.items))
        inner = list(blocks(statement))
        if inner and not isinstance(statement, _SCOPES):  # try and match: nothing is sure to run
            reads = read_in(statement)
            for block in inner:
                self.block(block, behind | reads)
            return behind | reads
        return self._plain(statement, behind)

    def _plain(self, statement, behind):
        reads = read_in(statement)
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            reads = reads | {statement.target.id}
        conditional = any(isinstance(n, ast.NamedExpr) for n in own_nodes(statement))
        kills = set() if conditional else bound_in(statement)
        return (behind - kills) | reads

    def _if(self, statement, behind):
        statement.behind = behind
        branches = self.block(statement.body, behind) | self.block(statement.orelse, behind)
        statement.live = branches | behind
        return branches | read_in(statement.test)

    def _for(self, statement, behind):
        target = bound_in(statement.target)
        reads = read_in(statement.target) | set(statement.flags)
        head = behind | reads
        while True:
            before = (self.block(statement.body, head) - target) | head
            if before == head:
                break
            head = before
        statement.live = head
        return head | read_in(statement.iter)

    def _while(self, statement, behind):
        head = behind | read_in(statement.test) | set(statement.flags)
        while True:
            before = self.block(statement.body, head) | head
            if before == head:
                break
            head = before
        statement.live = head
        return head
