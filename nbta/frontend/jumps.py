"""Loops and branches without jumps: break, continue and early returns as truth values.

What stands after a statement that may jump moves into the branch that does not, or is guarded by
the flags that the jump sets. What comes out has `if`, `while` and `for` alone, which name the flags
that end them in ``flags``.
"""

import ast
import itertools

#: What the names of flags begin with; no user's name does.
PREFIX = "_nbta_"
#: How the argument of a body of a `for` is called, before the variable of the loop.
ITEM = f"{PREFIX}item"
RESULT, DONE, GIVEN = PREFIX + "result", PREFIX + "returned", PREFIX + "given"
EARLY, GIVEN_EARLY = PREFIX + "early", PREFIX + "given_early"

BREAK, CONTINUE, RETURN = "break", "continue", "return"
_JUMPS = {ast.Break: BREAK, ast.Continue: CONTINUE, ast.Return: RETURN}
_SCOPES = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef,
)  # fmt: skip


def name(ident, store=False):
    """A name to read or to bind."""
    return ast.Name(ident, ast.Store() if store else ast.Load())


def assign(ident, value):
    """``ident = value``."""
    return ast.Assign([name(ident, True)], value)


def jumps(statements) -> set:
    """Which jumps lead out of statements."""
    found = set()
    for statement in statements:
        found |= _jumps_of(statement)
    return found


def _jumps_of(statement):
    kind = _JUMPS.get(type(statement))
    if kind is not None:
        return {kind}
    if isinstance(statement, _SCOPES):
        return set()
    if isinstance(statement, ast.For | ast.While):
        inner = jumps(statement.body) & {RETURN}
        return inner | jumps(statement.orelse)
    return set().union(*(jumps(block) for block in blocks(statement)))


def blocks(statement):
    """The lists of statements in a statement."""
    for field in ("body", "orelse", "finalbody"):
        if isinstance(getattr(statement, field, None), list):
            yield getattr(statement, field)
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def ends(statements) -> bool:
    """Whether each way through statements ends in a jump."""
    return any(_ends(statement) for statement in statements)


def _ends(statement):
    if type(statement) in _JUMPS:
        return True
    if isinstance(statement, ast.If):
        return bool(statement.orelse) and ends(statement.body) and ends(statement.orelse)
    return isinstance(statement, ast.With) and ends(statement.body)


def _leaves(statements) -> bool:
    """Whether no way through the statements of a function comes to their end."""
    return any(map(_is_left, statements))


def _is_left(statement):
    if isinstance(statement, ast.Return | ast.Raise):
        return True
    if isinstance(statement, ast.If):
        return _leaves(statement.body) and _leaves(statement.orelse)
    if isinstance(statement, ast.While):
        endless = isinstance(statement.test, ast.Constant) and bool(statement.test.value)
        return endless and not _breaks(statement.body)
    if isinstance(statement, ast.For):
        return _leaves(statement.orelse) and not _breaks(statement.body)
    if isinstance(statement, ast.Match):
        last = statement.cases[-1]
        total = last.guard is None and _takes_any(last.pattern)
        return total and all(_leaves(case.body) for case in statement.cases)
    if isinstance(statement, ast.Try | ast.TryStar):
        handled = all(_leaves(handler.body) for handler in statement.handlers)
        ended = _leaves(statement.body) or _leaves(statement.orelse)
        return (ended and handled) or _leaves(statement.finalbody)
    return isinstance(statement, ast.With) and _leaves(statement.body)


def _breaks(statements):
    """Whether a `break` leads out of the loop that statements are the body of."""
    return BREAK in jumps(statements)


def _takes_any(pattern):
    """Whether a pattern takes whatever there is: ``case _`` or ``case name``."""
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None


#: The argument that a generator gives its items to.
EMIT = PREFIX + "emit"


class Yields(ast.NodeTransformer):
    """Makes a generator a function that gives its items to another one, which may end it.

    Attributes
    ----------
    all : bool
        Whether none is left: those whose value the generator uses stay, and what is asynchronous.
    """

    all = True

    def visit(self, node):
        """A node without yields."""
        if isinstance(node, _SCOPES):
            return node
        if isinstance(node, ast.Return):  # of which nobody sees the value
            return ast.copy_location(ast.Return(), node)
        if isinstance(node, ast.Expr):
            return self._statement(node)
        kinds = ast.Yield | ast.YieldFrom | ast.Await | ast.AsyncFor | ast.AsyncWith
        self.all = self.all and not isinstance(node, kinds)
        return self.generic_visit(node)

    def _statement(self, node):
        if isinstance(node.value, ast.Yield) and not self._has_others(node.value):
            value = node.value.value or ast.Constant(None)
            return ast.copy_location(self._given(value, node), node)
        if isinstance(node.value, ast.YieldFrom) and not self._has_others(node.value):
            each = PREFIX + "each"
            given = self._given(name(each), node)
            made = ast.For(name(each, True), node.value.value, [given], [])
            return ast.copy_location(made, node)
        return self.generic_visit(node)

    def _given(self, value, node):
        test = _marker("emitted", name(EMIT), value)
        made = ast.If(test, [self.visit(ast.copy_location(ast.Return(), node))], [])
        return ast.copy_location(made, node)

    def _has_others(self, node):
        """Whether what is given has one in it."""
        kinds = ast.Yield | ast.YieldFrom
        return any(isinstance(part, kinds) for part in ast.walk(node) if part is not node)


def _returns(statements):
    """The `return` statements of a function, without those of functions in it."""
    for statement in statements:
        if isinstance(statement, ast.Return):
            yield statement
        elif not isinstance(statement, _SCOPES):
            for block in blocks(statement):
                yield from _returns(block)


def _is_bare(statement):
    """Whether a `return` gives None, as the end of a function does."""
    value = statement.value
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _made_lists(body) -> set:
    """Names that a function gives a list which it writes out, or that it appends to."""
    found = set()
    for node in itertools.chain.from_iterable(map(ast.walk, body)):
        if isinstance(node, ast.Assign):
            pairs = [pair for target in node.targets for pair in _pairs(target, node.value)]
        elif isinstance(node, ast.AnnAssign | ast.AugAssign):
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.Attribute) and node.attr == "append":
            pairs = [(node.value, ast.List())]
        else:
            continue
        made = [target for target, value in pairs if isinstance(value, ast.List | ast.ListComp)]
        found |= {target.id for target in made if isinstance(target, ast.Name)}
    return found


def _pairs(target, value):
    """What an assignment binds, with what to."""
    both = target, value
    if all(isinstance(each, ast.Tuple) for each in both) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [both]


def _elements(value):
    """The expressions that a `return` gives, one by one."""
    return value.elts if isinstance(value, ast.Tuple) else [value]


class ReadLast:
    """The lists that all returns of a function give under one name, in a tuple or from a loop.

    Nothing runs after a `return`, so that the end of the function finds the list there that the
    `return` would have given; a loop that fills a list, and returns it, has it once.

    Attributes
    ----------
    names : dict
        By the place in what the function gives.
    count : int
        Of places.
    is_tuple : bool
        Whether the function gives a tuple.
    early : list
        The returns before the first loop, which give what they like.
    """

    def __init__(self, body):
        first = next((k for k, each in enumerate(body) if _has_loop(each)), 0)
        self.early = list(_returns(body[:first]))
        values = [statement.value for statement in _returns(body[first:])]
        self.names, self.count, self.is_tuple = {}, 0, False
        if not values or None in values or not _leaves(body) or any(map(_runs_on, body)):
            return
        kinds = {(isinstance(value, ast.Tuple), len(_elements(value))) for value in values}
        if len(kinds) > 1 or any(isinstance(e, ast.Starred) for v in values for e in _elements(v)):
            return
        [(self.is_tuple, self.count)] = kinds
        if not any(map(_returns_in_loop, body)):
            return  # a branch gives lists, and tuples of them, but no loop carries both
        made = _made_lists(body)
        for place, column in enumerate(zip(*map(_elements, values), strict=True)):
            given = {each.id if isinstance(each, ast.Name) else None for each in column}
            if len(given) == 1 and given <= made:
                self.names[place] = given.pop()

    def rest(self, value):
        """What a `return` gives beside the lists; None where that is all."""
        parts = [part for k, part in enumerate(_elements(value)) if k not in self.names]
        return ast.Tuple(parts, ast.Load()) if parts else None

    def whole(self):
        """What the function gives, of the rest and the lists."""
        others = itertools.count()
        parts = [
            name(self.names[place])
            if place in self.names
            else ast.Subscript(name(RESULT), ast.Constant(next(others)), ast.Load())
            for place in range(self.count)
        ]
        return ast.Tuple(parts, ast.Load()) if self.is_tuple else parts[0]


def _has_loop(statement):
    return any(isinstance(node, ast.For | ast.While) for node in ast.walk(statement))


def _returns_in_loop(statement):
    """Whether a loop of a statement may end with a `return`."""
    if isinstance(statement, ast.For | ast.While):
        return RETURN in jumps([statement])
    if isinstance(statement, _SCOPES):
        return False
    return any(_returns_in_loop(inner) for block in blocks(statement) for inner in block)


def _runs_on(statement):
    """Whether something of a statement may run after a `return` in it."""
    kinds = ast.Try | ast.TryStar | ast.With
    return any(isinstance(node, kinds) for node in ast.walk(statement))


class Lowering:
    """Rewrites the body of one function.

    Attributes
    ----------
    returns : bool
        Whether its result is in a variable.
    """

    def __init__(self, body):
        self._numbers = itertools.count(1)
        self.returns = bool(jumps(body[:-1])) or (
            bool(jumps(body)) and not isinstance(body[-1], ast.Return)
        )
        bare = list(map(_is_bare, _returns(body)))
        # whether a flag says if the function gives something else than None
        self._asks = self.returns and not all(bare) and (any(bare) or not _leaves(body))
        self._last = ReadLast(body) if self.returns else None

    def function(self, body):
        """The body, with one return after it where it has several."""
        if not self.returns:
            return self._block(body, None)
        first = [assign(DONE, ast.Constant(False)), assign(RESULT, _marker("no_result"))]
        given = []
        if self._asks:
            first.append(assign(GIVEN, ast.Constant(False)))
            given = [name(GIVEN)]
        result = [ast.Return(_marker("returned", name(RESULT), *given))]
        if self._last.names:
            first.append(assign(EARLY, ast.Constant(False)))
            early = assign(RESULT, _marker("returned", name(GIVEN_EARLY), *given))
            late = assign(RESULT, self._last.whole())
            result = [ast.If(name(EARLY), [early], [late]), ast.Return(name(RESULT))]
        return [*first, *self._block(body, None), *result]

    def _block(self, statements, loop):
        """Statements without jumps; ``loop`` has the flags of the loop around them."""
        found = []
        for place, statement in enumerate(statements):
            rest = statements[place + 1 :]
            if type(statement) in _JUMPS:
                return found + self._jump(statement, loop)
            if isinstance(statement, ast.If) and jumps([statement]):
                return found + self._branch(statement, rest, loop)
            left = _jumps_of(statement)
            found += self._statement(statement, loop)
            if left and rest:
                return found + self._unless(self._flags_of(left, loop), rest, loop)
        return found

    def _jump(self, statement, loop):
        kind = _JUMPS[type(statement)]
        if kind is RETURN:
            if not self.returns:
                return [statement]
            made = [assign(DONE, ast.Constant(True))]
            value, result = statement.value, RESULT
            if self._last.names and statement in self._last.early:
                made.append(assign(EARLY, ast.Constant(True)))
                result = GIVEN_EARLY
            elif self._last.names:
                value = self._last.rest(value)
            if not _is_bare(statement) and value is not None:
                made.insert(0, assign(result, value))
                made += [assign(GIVEN, ast.Constant(True))] if self._asks else []
        else:
            made = [assign(loop[kind], ast.Constant(True))]
        return [ast.copy_location(each, statement) for each in made]

    def _branch(self, statement, rest, loop):
        """A branch that may jump, with what stands after it."""
        body, orelse = statement.body, statement.orelse
        if ends(body):
            orelse, rest = orelse + rest, []
        elif ends(orelse):
            body, rest = body + rest, []
        left = _jumps_of(statement)
        made = self._if(statement, statement.test, self._block(body, loop), orelse, loop)
        return [made, *self._unless(self._flags_of(left, loop), rest, loop)]

    def _if(self, around, test, body, orelse, loop):
        made = ast.If(test, body or [ast.Pass()], self._block(orelse, loop))
        return ast.copy_location(made, around)

    def _flags_of(self, left, loop):
        """The flags of jumps."""
        return [DONE if kind is RETURN else loop[kind] for kind in sorted(left)]

    def _unless(self, flags, statements, loop):
        """Statements without jumps, for runs that have not jumped."""
        if not (flags and statements):
            return self._block(statements, loop)
        return [self._if(statements[0], _any(flags), [ast.Pass()], statements, loop)]

    def _statement(self, statement, loop):
        if isinstance(statement, ast.For | ast.While):
            return self._loop(statement, loop)
        if isinstance(statement, ast.Match):
            lowered = _cases(statement, next(self._numbers))
            if lowered is not None:
                return self._block(lowered, loop)
        if isinstance(statement, _SCOPES):
            return [statement]
        flags = []
        if isinstance(statement, ast.Try | ast.TryStar):  # whose `else` comes at the body's end
            flags = self._flags_of(jumps(statement.body), loop)
        for block in blocks(statement):
            ahead = flags if block is getattr(statement, "orelse", None) else []
            block[:] = self._unless(ahead, block, loop) or ([ast.Pass()] if block else [])
        return [statement]

    def _loop(self, statement, around):
        number, orelse = next(self._numbers), statement.orelse
        over = f"{PREFIX}over_{number}"
        by_test = [over] * (isinstance(statement, ast.While) and binds(statement.test))
        if by_test:
            statement = _with_test_in_body(statement, over)
        inside = jumps(statement.body)
        own = {BREAK: f"{PREFIX}break_{number}", CONTINUE: f"{PREFIX}continue_{number}"}
        flags = [own[BREAK]] * (BREAK in inside) + [DONE] * (RETURN in inside)
        first = [assign(flag, _false()) for flag in (*by_test, *flags) if flag != DONE]
        body = self._block(statement.body, own)
        if CONTINUE in inside:
            body.insert(0, assign(own[CONTINUE], _false()))
        statement.body, statement.orelse = body or [ast.Pass()], []
        statement.flags = [*by_test, *flags]
        for each in (*first, *statement.body):
            if not hasattr(each, "lineno"):
                ast.copy_location(each, statement)
        return [*first, statement, *self._unless(flags, orelse, around)]


def _marker(function, *arguments):
    return ast.Call(ast.Attribute(name(PREFIX), function, ast.Load()), list(arguments), [])


def _any(flags):
    tests = [name(flag) for flag in flags]
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests)


def _with_test_in_body(loop, over):
    """A `while` whose test binds names, with the test in its body, which sets a flag at the end."""
    ended = ast.copy_location(assign(over, ast.Constant(True)), loop.test)
    tested = ast.copy_location(ast.If(loop.test, loop.body, [ended]), loop.test)
    made = ast.copy_location(ast.While(ast.Constant(True), [tested], []), loop)
    return ast.fix_missing_locations(made)


def binds(expression) -> bool:
    """Whether an expression gives a variable a value, by ``:=``."""
    return any(isinstance(node, ast.NamedExpr) for node in ast.walk(expression))


def _cases(statement, number):
    """A `match` of plain values as branches; None for others, whose subject Python must know."""
    subject, whole = f"{PREFIX}subject_{number}", statement.subject
    parts = []  # of ``match a, b``, which patterns of as many parts take one by one
    if isinstance(whole, ast.Tuple | ast.List):
        parts = [f"{subject}_{k}" for k, _ in enumerate(whole.elts)]
        if any(isinstance(each, ast.Starred) for each in whole.elts):
            return None
    tests = [_test(case.pattern, subject, parts) for case in statement.cases]
    if None in tests:
        return None
    made = []
    cases = list(enumerate(zip(statement.cases, tests, strict=True)))
    for k, (case, (test, bound)) in reversed(cases):
        body = [*bound, *case.body]
        if case.guard is not None and bound:  # the guard may ask for what the pattern binds
            taken = f"{PREFIX}taken_{number}_{k}"
            truth = ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), case.guard))
            asked = [*bound, assign(taken, truth)]
            asked = asked if test is None else [ast.If(test, asked, [assign(taken, _false())])]
            made = [*asked, ast.If(name(taken), case.body, made)]
        else:
            if case.guard is not None:
                test = case.guard if test is None else ast.BoolOp(ast.And(), [test, case.guard])
            made = body if test is None else [ast.If(test, body, made)]
        for each in (*bound, *made):
            ast.copy_location(each, case.body[0])
    if parts:
        first = [assign(part, each) for part, each in zip(parts, whole.elts, strict=True)]
        whole = type(whole)([name(part) for part in parts], ast.Load())
    else:
        first = []
    first.append(assign(subject, whole))
    made = [*(ast.copy_location(each, statement) for each in first), *made]
    return [ast.fix_missing_locations(each) for each in made]


def _false():
    return ast.Constant(False)


def _test(pattern, subject, parts=()):
    """A test for a pattern (None for any value) and what it binds; None for other patterns.

    ``parts`` are the names of the subject's parts, where they are written one by one.
    """
    if isinstance(pattern, ast.MatchValue):
        return ast.Compare(name(subject), [ast.Eq()], [pattern.value]), []
    if isinstance(pattern, ast.MatchSingleton):
        return ast.Compare(name(subject), [ast.Is()], [ast.Constant(pattern.value)]), []
    if isinstance(pattern, ast.MatchAs):
        bound = [] if pattern.name is None else [assign(pattern.name, name(subject))]
        if pattern.pattern is None:
            return None, bound
        inner = _test(pattern.pattern, subject, parts)
        return inner if inner is None else (inner[0], [*inner[1], *bound])
    if isinstance(pattern, ast.MatchClass):
        return _test_of_class(pattern, subject)
    if isinstance(pattern, ast.MatchOr):
        ways = [_test(part, subject, parts) for part in pattern.patterns]
        if all(way is not None and way[0] is not None and not way[1] for way in ways):
            return ast.BoolOp(ast.Or(), [test for test, _ in ways]), []
    if isinstance(pattern, ast.MatchSequence) and parts:
        return _test_of_parts(pattern, parts)
    return None


def _test_of_parts(pattern, parts):
    """A test for ``case a, b`` of as many parts as are written; None for others."""
    if len(pattern.patterns) != len(parts):
        stars = any(isinstance(each, ast.MatchStar) for each in pattern.patterns)
        return None if stars else (_false(), [])
    found = list(map(_test, pattern.patterns, parts))
    if None in found:
        return None
    tests = [test for test, _ in found if test is not None]
    bound = [each for _, own in found for each in own]
    if len(tests) < 2:
        return (tests[0] if tests else None), bound
    return ast.BoolOp(ast.And(), tests), bound


#: Classes of Python's whose pattern takes the whole subject, as in ``case float(x)``.
_WHOLE = {"bool", "bytes", "dict", "float", "int", "list", "set", "str", "tuple"}


def _test_of_class(pattern, subject):
    """A test for ``case float()`` or ``case float(x)``; None for a class with other patterns."""
    if pattern.kwd_patterns or len(pattern.patterns) > 1:
        return None
    bound = []
    if pattern.patterns:
        whole = isinstance(pattern.cls, ast.Name) and pattern.cls.id in _WHOLE
        inner = _test(pattern.patterns[0], subject) if whole else None
        if inner is None or inner[0] is not None:
            return None
        bound = inner[1]
    return ast.Call(name("isinstance"), [name(subject), pattern.cls], []), bound
