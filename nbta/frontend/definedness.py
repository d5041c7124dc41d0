"""Variables that may have no value where they are read, of which the run then asks.

A forward analysis of definite assignment over a body without jumps. A variable that some way leaves
without a value gets a truth value beside it, which each assignment sets, and a read that such a way
leads to is a call that checks it: in a trace, as an assertion of the run.
"""

import ast

from nbta.frontend.jumps import PREFIX, assign, blocks, name
from nbta.frontend.liveness import bound_in, free_in, own_nodes, read_in

_SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef


def with_checks(body, own, arguments, given_by_others):
    """A body that checks variables of its own where they may have no value.

    Functions in the function see them too, and are told by `runtime.unproven`: but for those that
    such functions give values, as nobody notes that.
    """
    analysis = _Analysis(own)
    analysis.block(body, set(arguments))
    seen = analysis.seen - given_by_others
    idents = analysis.maybe | seen
    if not idents:
        return body
    first = [assign(flag_of(each), ast.Constant(each in arguments)) for each in sorted(idents)]
    for each in sorted(seen):
        first.append(ast.Expr(_call("unproven", _thunk(each), _thunk(flag_of(each)))))
    for each in first:
        ast.fix_missing_locations(ast.copy_location(each, body[0]))
    return [*first, *_noted(body, idents)]


def _call(function, *arguments):
    """A call of the runtime."""
    return ast.Call(ast.Attribute(name(PREFIX), function, ast.Load()), list(arguments), [])


def _thunk(ident):
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), name(ident))


def flag_of(ident) -> str:
    """The name that says whether a variable has a value."""
    return f"{PREFIX}has_{ident}"


class _Analysis:
    """Finds reads of variables that may have no value.

    Attributes
    ----------
    maybe : set of str
        Their names.
    seen : set of str
        Those that functions in the function read, which had no value when these were made.
    """

    def __init__(self, own):
        self._own, self.maybe, self.seen = own, set(), set()

    def block(self, statements, known):
        """What has a value after statements, from what has one before."""
        for statement in statements:
            known = self._statement(statement, known)
        return known

    def _statement(self, statement, known):
        if isinstance(statement, ast.If):
            statement.test = self._read(statement.test, known)
            known = known | bound_in(statement.test)  # by :=
            then = self.block(statement.body, set(known))
            return then & self.block(statement.orelse, set(known))
        if isinstance(statement, ast.For):
            statement.iter = self._read(statement.iter, known)
            known = (known | bound_in(statement.iter)) - _deleted_in(statement)
            self.block(statement.body, known | bound_in(statement.target))
            return known
        if isinstance(statement, ast.While):
            known = known - _deleted_in(statement)
            statement.test = self._read(statement.test, known)
            self.block(statement.body, set(known))
            return known
        if isinstance(statement, ast.With):
            for item in statement.items:
                item.context_expr = self._read(item.context_expr, known)
            bound = set().union(*(bound_in(item) for item in statement.items))
            return self.block(statement.body, known | bound)
        if isinstance(statement, ast.Match | ast.Try | ast.TryStar):
            self._ways_of_python(statement, known)
            return (known | bound_in(statement)) - _deleted_in(statement)
        return self._plain(statement, known)

    def _ways_of_python(self, statement, known):
        """The blocks of a `try` or a `match`: which of them are gone through, Python decides."""
        if isinstance(statement, ast.Match):
            statement.subject = self._read(statement.subject, known)
        for case in getattr(statement, "cases", ()):
            self.block(case.body, known | bound_in(case.pattern))
        for handler in getattr(statement, "handlers", ()):
            self.block(handler.body, known | {handler.name})
        ahead = set(known)
        for field in ("body", "orelse", "finalbody"):
            ahead = self.block(getattr(statement, field, ()), ahead)

    def _plain(self, statement, known):
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            statement.old = self._read(name(statement.target.id), known)
        if isinstance(statement, ast.FunctionDef):
            self.note_seen(statement, known | {statement.name})
        for field, value in () if isinstance(statement, _SCOPES) else ast.iter_fields(statement):
            if isinstance(value, ast.expr):
                setattr(statement, field, self._read(value, known))
            elif field == "targets":
                value[:] = [self._read(target, known) for target in value]
        if isinstance(statement, ast.Delete):
            return self._deleted(statement, known)
        return known | bound_in(statement)

    def _deleted(self, statement, known):
        """What has a value after a `del`, which asks for that of each variable before."""
        statement.old = []
        for target in statement.targets:
            if isinstance(target, ast.Name):
                if self.is_open(target.id, known):
                    old = ast.copy_location(name(target.id), target)
                    statement.old.append(self._read(old, known))
                known = known - {target.id}
        return known

    def note_seen(self, function, known):
        """Note what a function in the function reads that may have no value."""
        self.seen |= {ident for ident in free_in(function) if self.is_open(ident, known)}

    def _read(self, expression, known):
        """An expression with checks of what may have no value."""
        if not any(self.is_open(ident, known) for ident in read_in(expression)):
            return expression
        late = {n.target.id for n in own_nodes(expression) if isinstance(n, ast.NamedExpr)}
        return _Checks(self, known | late).visit(expression)

    def is_open(self, ident, known) -> bool:
        """Whether a name is a variable that may have no value."""
        return ident in self._own and ident not in known and not ident.startswith(PREFIX)


def _deleted_in(statement) -> set:
    """The names that `del` statements in a loop or a `try` delete."""
    found = [part for part in own_nodes(statement) if isinstance(part, ast.Delete)]
    return set().union(*map(bound_in, found))


class _Checks(ast.NodeTransformer):
    """Puts checks around reads."""

    def __init__(self, analysis, known):
        self._analysis, self._known = analysis, known

    def visit_Name(self, node):
        if not isinstance(node.ctx, ast.Load) or not self._analysis.is_open(node.id, self._known):
            return node
        self._analysis.maybe.add(node.id)
        call = _call("checked", node, name(flag_of(node.id)), ast.Constant(node.id))
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def visit_Lambda(self, node):
        self._analysis.note_seen(node, self._known)
        return node

    def visit_ListComp(self, node):
        own = set().union(*(bound_in(part.target) for part in node.generators))
        return _Checks(self._analysis, self._known | own).generic_visit(node)

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp


def _noted(statements, idents):
    """Statements, with a note after each that gives one of some variables a value."""
    found = []
    for statement in statements:
        bound = bound_in(statement) & idents
        found += _notes(statement, _bound_by_head(statement) & idents)
        if isinstance(statement, ast.For):
            statement.body = [*_notes(statement, bound_in(statement.target) & idents),
                              *_noted(statement.body, idents)]  # fmt: skip
        elif not isinstance(statement, _SCOPES):
            for block in blocks(statement):
                block[:] = _noted(block, idents)
        found.append(statement)
        if not list(blocks(statement)) or isinstance(statement, _SCOPES | ast.Try | ast.Match):
            found += _notes(statement, bound, not isinstance(statement, ast.Delete))
    return found


def _bound_by_head(statement):
    """The names that get values as often as control comes to a branch, a loop or a `with`."""
    heads = {ast.If: "test", ast.For: "iter", ast.With: "items"}
    head = getattr(statement, heads.get(type(statement), ""), [])
    return set().union(*map(bound_in, head if isinstance(head, list) else [head]))


def _notes(statement, bound, has=True):
    made = [assign(flag_of(each), ast.Constant(has)) for each in sorted(bound)]
    return [ast.fix_missing_locations(ast.copy_location(each, statement)) for each in made]
