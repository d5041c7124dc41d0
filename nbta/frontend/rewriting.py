"""The syntax tree of a function, rewritten so that control flow asks what its values are.

`if`, loops, `and`, subscripts and calls, which Python does not let arrays overload, become calls of
`nbta.frontend.runtime`, under the one name `jumps.PREFIX`. All else stays as it is. A block that
may become the body of a loop or a branch is a function in the function; the variables that it
assigns are ``nonlocal`` there, and a pair of functions gets and sets them.
"""

import ast
import builtins
import copy
import inspect
import itertools
import types

from nbta.errors import UnimplementedError
from nbta.frontend import source
from nbta.frontend.definedness import with_checks
from nbta.frontend.jumps import EMIT, ITEM, PREFIX, Lowering, Yields, binds, blocks, jumps, name
from nbta.frontend.liveness import (
    Liveness,
    bound_by,
    bound_by_head,
    bound_in,
    captured_names,
    own_nodes,
    parts_of,
    root_of,
)

#: Functions that look at the frame they are called in.
_FRAMES = {"locals", "globals", "vars", "dir", "eval", "exec", "super"}
#: Functions that go along what they are given at once.
_AT_ONCE = {
    "sum",
    "any",
    "all",
    "min",
    "max",
    "list",
    "tuple",
    "sorted",
    "set",
    "dict",
    "frozenset",
}
#: Classes that what only the run knows is of, though Python does not see that.
_NUMBERS = {"bool", "int", "float", "complex"}
#: Flags of the code of generators and of what is asynchronous.
_YIELDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_SAFE = (
    ast.Name, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Attribute,
    ast.Add, ast.Sub, ast.Mult, ast.cmpop, ast.boolop, ast.unaryop, ast.expr_context,
)  # fmt: skip


#: By codes: the names of variables that have a type for Numba, with the names of these types.
declared_variables = source.CodeTable()


def converted_code(function):
    """The code of a function that asks its values where to go.

    Raises
    ------
    NoSourceError
        Where its text is not to be found.
    UnimplementedError
        For a generator that is sent values, and for what is asynchronous.
    """
    tree = source.tree_of(function)
    code = function.__code__
    definition = _rewritten(tree, code)
    definition.lineno = code.co_firstlineno  # of its decorators, which are not compiled again
    module = _factory(definition, code, _class_of(code))
    made = compile(module, code.co_filename, "exec", code.co_flags & source.FUTURES, True)
    return _renamed(_code_named(made, definition.name), code)


def _renamed(made, code):
    """A code with the user's names: blocks have that of the function, functions in it their own."""
    consts = tuple(
        _renamed(const, code) if isinstance(const, types.CodeType) else const
        for const in made.co_consts
    )
    if made.co_name.startswith(PREFIX):
        name, qualified = code.co_name, code.co_qualname
    else:
        name, inner = made.co_name, made.co_qualname.rpartition(f"{PREFIX}function.")[2]
        qualified = f"{code.co_qualname}.{inner}"
    found = made.replace(co_consts=consts, co_name=name, co_qualname=qualified)
    if not made.co_name.startswith(PREFIX):
        source.trusted[found] = True
    return found


def converted_text(function) -> str:
    """The rewritten function as Python, for reading."""
    return ast.unparse(_placed_all(_rewritten(source.tree_of(function), function.__code__)))


def _without_yields(definition, code):
    """A generator as a function of another one more, to which it gives its items."""
    yields = Yields()
    definition.body = [yields.visit(statement) for statement in definition.body]
    if not yields.all:
        raise UnimplementedError(
            f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno}) is a generator that "
            f"is sent values, or asynchronous, which nbta cannot run; return a list or an "
            f"array"
        )
    definition.args.posonlyargs.insert(0, ast.arg(EMIT))
    return definition


def _rewritten(tree, code):
    """The definition of a rewritten function."""
    definition = _definition(tree)
    if code.co_flags & _YIELDS:
        definition = _without_yields(definition, code)
    _check_finally(definition.body, code)
    scope = _Scope(definition, code)
    lowered = Lowering(definition.body)
    body = lowered.function(definition.body)
    body = with_checks(body, scope.own, scope.arguments, scope.shared_with_inner)
    definition.body = body
    Liveness(captured_names(definition) | scope.shared).block(body, set())
    definition.body = _Rewriter(scope).function(body)
    return definition


def _check_finally(body, code):
    """Refuse jumps out of `finally`, for which Python forgets errors and other jumps."""
    for node in own_nodes(ast.Module(body, [])):
        found = jumps(getattr(node, "finalbody", ()))
        if found:
            place = f"{code.co_filename}:{node.finalbody[0].lineno}"
            raise UnimplementedError(
                f"{place}: `{min(found)}` leads out of a finally block, which nbta cannot follow; "
                f"put it after the try statement"
            )


def _definition(tree):
    """A function as a definition of its own, without what Python evaluates around it."""
    if isinstance(tree, ast.Lambda):
        body = [ast.copy_location(ast.Return(tree.body), tree.body)]
        definition = ast.FunctionDef(f"{PREFIX}lambda", tree.args, body, [])
        definition = ast.copy_location(definition, tree)
    else:
        definition = ast.FunctionDef(f"{PREFIX}function", tree.args, tree.body, [])
        definition = ast.copy_location(definition, tree)
    definition = _copied(definition)
    _without_annotations(definition.args)
    return definition


def _copied(node):
    """A tree of its own; `copy.deepcopy` takes eight times as long.

    Nodes without fields and place, such as ``ast.Load()``, are shared by all trees of a process.
    Debuggers and notebooks mark nodes with their parents: a shared one leads to another tree.
    """
    if isinstance(node, list):
        return [_copied(part) for part in node]
    if not isinstance(node, ast.AST) or not (node._fields or node._attributes):
        return node
    made = type(node).__new__(type(node))
    made.__dict__.update({field: _copied(part) for field, part in node.__dict__.items()})
    return made


def _without_annotations(arguments):
    """Annotations and defaults belong to the function that is made, not to its code."""
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for argument in (*given, arguments.vararg, arguments.kwarg):
        if argument is not None:
            argument.annotation = None
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [
        None if default is None else ast.Constant(None) for default in arguments.kw_defaults
    ]


class _Scope:
    """The names of a function: its own, and those that it declares to be others'."""

    def __init__(self, definition, code):
        nodes = list(own_nodes(ast.Module(definition.body, [])))
        self.globals = {n for node in nodes if isinstance(node, ast.Global) for n in node.names}
        outer = {n for node in nodes if isinstance(node, ast.Nonlocal) for n in node.names}
        given = definition.args
        arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        self.in_order = [a.arg for a in arguments if a is not None]
        self.arguments = set(self.in_order)
        bound = bound_in(ast.Module(definition.body, [])) - self.globals - outer
        self.cells, self.owner = set(code.co_freevars), _class_of(code)
        self.own = bound | self.arguments
        self.declared = declared_variables.get(code, {})
        self.outer = outer
        self.shared_with_inner = self.own & {
            each
            for node in ast.walk(definition)
            if isinstance(node, ast.Nonlocal)
            for each in node.names
        }
        #: Variables that several functions assign: places, which blocks forward like attributes.
        self.shared = self.outer | self.shared_with_inner


def _class_of(code):
    """The class in whose text a method stands, whose name Python puts before private names."""
    parts = code.co_qualname.split(".")
    return parts[-2] if len(parts) > 1 and parts[-2] != "<locals>" else None


def _factory(definition, code, owner):
    """A module with the function in one that has the names that it takes from around it."""
    inner = [definition]
    if owner is not None:
        inner = [ast.ClassDef(owner, [], [], [definition], [])]
        inner = inner if owner in code.co_freevars else [ast.Global([owner]), *inner]
    names = [*code.co_freevars, PREFIX]
    arguments = ast.arguments([], [ast.arg(each) for each in names], None, [], [], None, [])
    factory = ast.FunctionDef(f"{PREFIX}factory", arguments, inner, [])
    return _placed_all(ast.Module([ast.copy_location(factory, definition)], []))


_PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")


def _placed_all(tree):
    """A tree in which nodes without a place have that of the node that they are in."""
    waiting = [(tree, {})]
    while waiting:
        node, place = waiting.pop()
        have = node.__dict__
        if "lineno" in have:
            place = {field: have[field] for field in _PLACE}
        elif node._attributes:
            have.update(place)
            if isinstance(node, ast.Attribute):  # Python puts a call at the end of its attribute
                have["end_lineno"], have["end_col_offset"] = have["lineno"], have["col_offset"]
        waiting += [(part, place) for part in parts_of(node)]
    return tree


def _code_named(code, wanted):
    """The code of a function somewhere in another."""
    todo = [code]
    while todo:
        found = todo.pop(0)
        if found.co_name == wanted:
            return found
        todo += [const for const in found.co_consts if hasattr(const, "co_name")]
    raise AssertionError(f"{wanted} was compiled")


def _runtime(function, *arguments):
    """A call of the runtime."""
    called = ast.Attribute(name(PREFIX), function, ast.Load())
    return ast.Call(called, list(arguments), [])


def _names(idents):
    return ast.Tuple([ast.Constant(each) for each in idents], ast.Load())


def _lambda(body, *arguments):
    given = ast.arguments([], [ast.arg(each) for each in arguments], None, [], [], None, [])
    return ast.Lambda(given, body)


def _mark_texts(expression):
    """Mark what may be a text of an error that only the run decides to raise."""
    for node in () if expression is None else ast.walk(expression):
        node.in_message = True


def _is_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


#: Python's own classes of errors, whose text is that of what they are given.
_ERRORS = {
    name
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, BaseException)
}


def _is_format(call):
    """Whether a call gives an error, or a part of its text."""
    function = call.func
    if not hasattr(call, "in_message"):
        return False
    if isinstance(function, ast.Name):
        return function.id in {"str", "repr", "format"} | _ERRORS
    named = isinstance(function, ast.Attribute) and function.attr == "format"
    return named and _is_text(function.value)


def _is_safe(expression):
    """Whether an expression can be computed where it is not wanted."""
    return all(isinstance(node, _SAFE) for node in ast.walk(expression))


class _Rewriter(ast.NodeTransformer):
    """Rewrites the lowered body of a function."""

    def __init__(self, scope):
        self._rows = set()  # comprehensions in those of lists, which are tables
        self._scope = scope
        self._numbers = itertools.count(1)
        self._shared = set()  # names that functions in the function bind

    def function(self, body):
        """The body, with a mark for each variable that may not have a value yet."""
        rewritten = self._block(body)
        unbound = sorted(self._shared - self._scope.arguments - self._scope.outer)
        marks = [
            ast.Assign([name(each, True)], _runtime("undefined", ast.Constant(each)))
            for each in unbound
        ]
        text = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
        place = 1 if text else 0
        declared = [s for s in rewritten if isinstance(s, ast.Global | ast.Nonlocal)]
        rest = [s for s in rewritten[place:] if s not in declared]
        if self._scope.shared_with_inner:
            idents = sorted(self._scope.shared_with_inner)
            inner = _lambda(ast.Tuple([name(each) for each in idents], ast.Load()))
            marks.append(ast.Expr(_runtime("own_cells", inner)))
        for each in marks:
            ast.copy_location(each, body[0])
        return [*rewritten[:place], *declared, *marks, *rest]

    def _block(self, statements):
        found = []
        for statement in statements:
            before, after = self._about_shared(statement)
            new = self.visit(statement)
            new = new if isinstance(new, list) else [new] if new is not None else []
            after += self._unused(statement)
            found += self._placed(statement, [*before, *new, *after]) if before or after else new
        return found

    def _unused(self, statement):
        """What sees to it that variables are computed which a statement gives for nobody."""
        idents = [each for each in getattr(statement, "unused", ()) if each in self._scope.own]
        gets = [_lambda(name(each)) for each in idents]
        called = "unused_after" if any(True for _ in blocks(statement)) else "unused"
        return [ast.Expr(_runtime(called, *gets))] if gets else []

    def visit_Expr(self, node):
        value = self.visit(node.value)
        if isinstance(value, ast.Constant):
            return node
        node.value = _runtime("compute", value)
        return node

    def _about_shared(self, statement):
        """What is noted of variables that others assign too, where a statement gives them values.

        Of what stands in its blocks that is noted there.
        """
        if not (self._scope.shared or self._scope.globals):
            return [], []
        bound = bound_by_head(statement)
        places, shared = sorted(bound & self._scope.shared), sorted(bound & self._scope.globals)
        before = []
        if places:
            inner = _lambda(ast.Tuple([name(each) for each in places], ast.Load()))
            before = [ast.Expr(_runtime("cells", inner))]
        after = []
        for each in shared:
            kept, text = f"{PREFIX}old_{each}", ast.Constant(each)
            old = _runtime("global_before", text, _lambda(name(each)))
            before.append(ast.Assign([name(kept, True)], old))
            refuse = ast.Expr(_runtime("refuse_global", text))
            back = ast.Assign([name(each, True)], name(kept))
            after.append(ast.If(_runtime("is_run_value", name(each)), [back, refuse], []))
        return before, after

    # Blocks as functions.

    def _define(self, ident, statements, arguments=()):
        """A function in the function, of statements of it."""
        bound = set().union(*map(bound_by, statements))
        body = self._declarations(bound) + self._block(statements)
        given = ast.arguments([], [ast.arg(each) for each in arguments], None, [], [], None, [])
        return ast.FunctionDef(ident, given, body or [ast.Pass()], [])

    def _declarations(self, bound):
        shared = bound & self._scope.globals
        made = [ast.Global(sorted(shared))] if shared else []
        others = sorted(bound - self._scope.globals)
        self._shared |= set(others)
        return made + ([ast.Nonlocal(others)] if others else [])

    def _state(self, idents, number):
        """Functions that get and set variables: statements, and how the runtime is told."""
        get = _lambda(ast.Tuple([name(each) for each in idents], ast.Load()))
        if not idents:
            return [], [_names(()), get, ast.Constant(None)]
        ident, values = f"{PREFIX}set_{number}", f"{PREFIX}values"
        target = ast.Tuple([name(each, True) for each in idents], ast.Store())
        body = [*self._declarations(set(idents)), ast.Assign([target], name(values))]
        given = ast.arguments([], [ast.arg(values)], None, [], [], None, [])
        setter = ast.FunctionDef(ident, given, body, [])
        return [setter], [_names(idents), get, name(ident)]

    def _state_of(self, node, blocks):
        bound = set()
        for statement in itertools.chain(*blocks):
            bound |= bound_by(statement)
        return sorted((bound & node.live) - self._scope.globals - self._scope.shared)

    def _changed_in(self, statements):
        """The variables whose arrays statements may change, for a first guess."""
        found = set()
        for node in own_nodes(ast.Module(statements, [])):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                found |= root_of(node)
            elif isinstance(node, ast.AugAssign):
                found |= root_of(node.target)
            elif isinstance(node, ast.Call):
                found |= root_of(node.func) if isinstance(node.func, ast.Attribute) else set()
                found |= {arg.id for arg in node.args if isinstance(arg, ast.Name)}
        idents = sorted(found & self._scope.own)
        self._shared |= {each for each in idents if each not in self._scope.arguments}
        return _lambda(ast.Tuple([name(each) for each in idents], ast.Load()))

    def _placed(self, node, statements):
        for each in statements:
            ast.copy_location(each, node)  # what is in it gets its place in the end
        return statements

    def visit_If(self, node):
        number = next(self._numbers)
        else_raises = _ends_in_raise(node.orelse) and not _ends_in_raise(node.body)
        idents = self._state_of(node, [node.body, node.orelse])
        handed = [each for each in idents if each in node.after]
        idents = handed + [each for each in idents if each not in node.after]
        setter, state = self._state(idents, number)
        state[0] = _names(handed)
        then, orelse = f"{PREFIX}then_{number}", f"{PREFIX}else_{number}"
        made = [self._define(then, node.body), self._define(orelse, node.orelse), *setter]
        test = self._test(node.test)
        state += [ast.Constant(True)] if else_raises else []
        call = ast.Expr(_runtime("if_", test, name(then), name(orelse), *state))
        return self._placed(node, [*made, call])

    def visit_For(self, node):
        number, item = next(self._numbers), ITEM
        if isinstance(node.target, ast.Name):
            item += f"_{node.target.id}"  # of which `control.counted_loop` takes the name
        take = ast.copy_location(ast.Assign([node.target], name(item)), node.target)
        statements = [take, *node.body]
        ident, changed = f"{PREFIX}body_{number}", self._changed_in(node.body)
        setter, state = self._state(self._state_of(node, [statements]), number)
        body = self._define(ident, statements, [item])
        around = [self._flags(node.flags), *state, changed]
        call = ast.Expr(_runtime("for_", self.visit(node.iter), name(ident), *around))
        return self._placed(node, [body, *setter, call])

    def visit_While(self, node):
        number = next(self._numbers)
        ident, changed = f"{PREFIX}body_{number}", self._changed_in(node.body)
        setter, state = self._state(self._state_of(node, [node.body]), number)
        body = self._define(ident, node.body)
        test = _lambda(self._test(node.test))
        around = [self._flags(node.flags), *state, changed]
        call = ast.Expr(_runtime("while_", test, name(ident), *around))
        return self._placed(node, [body, *setter, call])

    def _flags(self, flags):
        self._shared |= set(flags)
        return _lambda(ast.Tuple([name(flag) for flag in flags], ast.Load()))

    # Statements.

    def visit_FunctionDef(self, node):
        """Its defaults are computed here; the rest is converted when it is called."""
        given = node.args
        given.defaults = [self.visit(default) for default in given.defaults]
        given.kw_defaults = [each and self.visit(each) for each in given.kw_defaults]
        return node

    visit_Lambda = visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        return node

    def visit_Nonlocal(self, node):
        return node

    def visit_AnnAssign(self, node):
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        plain = ast.copy_location(ast.Assign([node.target], node.value), node)
        return self.visit(plain)

    def visit_Assign(self, node):
        value = self.visit(node.value)
        if any(isinstance(target, ast.Tuple | ast.List) for target in node.targets):
            value = value if isinstance(value, ast.Tuple) else _runtime("unpacked", value)
        stores = []
        targets = [self._target(target, stores) for target in node.targets]
        if len(targets) == 1 and len(stores) == 1 and isinstance(node.targets[0], ast.Subscript):
            stores[0].value.args[0] = value
            return self._placed(node, stores)
        made = ast.Assign(targets, value)
        idents = sorted(bound_in(node) & set(self._scope.declared))
        casts = [ast.Assign([name(each, True)], self._cast(each, name(each))) for each in idents]
        return self._placed(node, [made, *stores, *casts])

    def _cast(self, ident, value):
        """What is assigned to a variable, cast where it has a type for Numba."""
        kind = self._scope.declared.get(ident)
        return value if kind is None else _runtime("declared", ast.Constant(kind), value)

    def _target(self, target, stores):
        """What a value is assigned to; items of arrays get theirs after."""
        if isinstance(target, ast.Subscript):
            kept = f"{PREFIX}kept_{next(self._numbers)}"
            array, key = self._asked(target.value), self._key(target.slice)
            call = ast.copy_location(_runtime("set_item", name(kept), array, key), target)
            stores.append(ast.copy_location(ast.Expr(call), target))
            return name(kept, True)
        if isinstance(target, ast.Attribute):
            return self._attribute(target, stores)
        if isinstance(target, ast.Name) and _is_asked_in(stores, target.id):
            return self._in_turn(target, stores)
        if isinstance(target, ast.Tuple | ast.List):
            target.elts = [self._target(part, stores) for part in target.elts]
        elif isinstance(target, ast.Starred):
            target.value = self._target(target.value, stores)
        return target

    def _in_turn(self, target, stores):
        """A variable that items before it are stored by, as in ``a[i] = i = 0``: it comes after."""
        kept = f"{PREFIX}kept_{next(self._numbers)}"
        stores.append(ast.copy_location(ast.Assign([target], name(kept)), target))
        return name(kept, True)

    def _attribute(self, target, stores):
        """An attribute of an object, which a loop may have to forward."""
        target.value = self.visit(target.value)
        if target.attr.startswith("__"):  # a name that Python changes
            return target
        kept = f"{PREFIX}kept_{next(self._numbers)}"
        text = ast.Constant(target.attr)
        store = ast.Expr(_runtime("set_attribute", name(kept), target.value, text))
        stores.append(ast.copy_location(store, target))
        return name(kept, True)

    def visit_AugAssign(self, node):
        operator = ast.Constant(type(node.op).__name__)
        later = not isinstance(node.target, ast.Name) and _may_change(node.value)
        value = self.visit(node.value)
        value = _runtime("later", _lambda(value)) if later else value
        target = node.target
        if isinstance(target, ast.Subscript):
            array, key = self._asked(target.value), self._key(target.slice)
            call = ast.copy_location(_runtime("change", operator, array, key, value), target)
            return self._placed(node, [ast.Expr(call)])
        if isinstance(target, ast.Attribute):
            owner = self.visit(target.value)
            text = ast.Constant(target.attr)
            call = _runtime("change_attribute", operator, owner, text, value)
            return self._placed(node, [ast.Expr(call)])
        old = ast.copy_location(node.old, target)
        new = self._cast(target.id, _runtime("in_place", operator, old, value))
        made = ast.Assign([target], new)
        return self._placed(node, [made])

    def visit_Delete(self, node):
        made = [ast.Expr(self.visit(each)) for each in node.old]
        for target in node.targets:
            if isinstance(target, ast.Name):
                mark = _runtime("undefined", ast.Constant(target.id))
                made.append(ast.Assign([name(target.id, True)], mark))
            elif isinstance(target, ast.Subscript):
                owner, key = self._asked(target.value), self._key(target.slice)
                made.append(ast.Expr(_runtime("delete_item", owner, key)))
            elif isinstance(target, ast.Attribute) and not target.attr.startswith("__"):
                owner, text = self.visit(target.value), ast.Constant(target.attr)
                made.append(ast.Expr(_runtime("delete_attribute", owner, text)))
            else:
                made.append(ast.Delete([target]))
        return self._placed(node, made)

    def visit_Assert(self, node):
        _mark_texts(node.msg)
        message = ast.Constant(None) if node.msg is None else self._shown(node.msg)
        call = _runtime("assert_", self._test(node.test), _lambda(message))
        return self._placed(node, [ast.Expr(call)])

    def visit_With(self, node):
        for item in node.items:
            item.context_expr = _runtime("managed", self.visit(item.context_expr))
        node.body = self._block(node.body)
        return self._placed(node, [node])

    def visit_Match(self, node):
        """A `match` that Python decides; what patterns are made of stays as it is."""
        numbers = any(map(_asks_for_numbers, node.cases))
        node.subject = _runtime("matched", self.visit(node.subject), ast.Constant(numbers))
        for case in node.cases:
            case.pattern = _Texts().visit(case.pattern)
            case.guard = None if case.guard is None else self.visit(case.guard)
            case.body = self._block(case.body)
        return node

    def visit_Raise(self, node):
        if node.exc is not None:
            _mark_texts(node.exc)
            node.exc = _runtime("raised", self.visit(node.exc))
            node.cause = None if node.cause is None else self.visit(node.cause)
        return node

    def visit_Try(self, node):
        for block in blocks(node):
            block[:] = self._block(block)
        for handler in node.handlers:
            handler.type = None if handler.type is None else self.visit(handler.type)
        kinds = [handler.type or ast.Constant(None) for handler in node.handlers]
        caught = _lambda(ast.Tuple(_copied(kinds), ast.Load()))
        if node.handlers:
            again = ast.ExceptHandler(_runtime("refusals"), None, [ast.Raise()])
            node.handlers.insert(0, again)
        enter = self._placed(node, [ast.Expr(_runtime("enter_try", caught))])
        leave = self._placed(node, [ast.Expr(_runtime("leave_try"))])
        return self._placed(node, [*enter, ast.Try([node], [], [], leave)])

    visit_TryStar = visit_Try

    # Expressions.

    def visit_Name(self, node):
        return self._outer(node)

    def _outer(self, node, *whole):
        """A value from outside, where the name is none of the function's own."""
        found = self._free(node)
        if found is node:
            return node
        return ast.copy_location(_runtime("outer", found, ast.Constant(node.id), *whole), node)

    def _free(self, node):
        """A name that is read, of which a trace notes what it holds outside of the function."""
        known = node.id in self._scope.own or node.id.startswith(PREFIX)
        if known or not isinstance(node.ctx, ast.Load):
            return node
        text = ast.Constant(node.id)
        if node.id in self._scope.cells:
            return ast.copy_location(_runtime("cell", _lambda(node), text), node)
        return ast.copy_location(_runtime("free", node, text), node)

    def visit_Attribute(self, node):
        return self._attribute_outer(node)

    def _attribute_outer(self, node, *whole):
        taken = self._attribute_of(self._base(node.value), node)
        return ast.copy_location(_runtime("outer", taken, ast.Constant(node.attr), *whole), node)

    def _attribute_of(self, owner, node, function="attribute"):
        """An attribute: a property of the user's is a function that is called."""
        attribute = node.attr
        if attribute.startswith("__") and attribute not in ("__class__", "__dict__"):
            if attribute.endswith("__") or self._scope.owner is None:
                node.value = owner
                return node
            attribute = f"_{self._scope.owner.lstrip('_')}{attribute}"  # as Python has it
        return ast.copy_location(_runtime(function, owner, ast.Constant(attribute)), node)

    def _base(self, node):
        """What an attribute is taken of, or what is called: nobody changes it by that."""
        if isinstance(node, ast.Name):
            return self._free(node)
        if isinstance(node, ast.Attribute):
            return self._attribute_of(self._owner(node.value), node, "method")
        return self.visit(node)

    def _asked(self, node):
        """What an item is taken of, or put into: nobody sees more of it by that."""
        part = ast.Constant(False)
        if isinstance(node, ast.Name):
            return self._outer(node, part)
        if isinstance(node, ast.Attribute):
            return self._attribute_outer(node, part)
        if isinstance(node, ast.Subscript):
            return self._item(node, part)
        return self.visit(node)

    def _owner(self, node):
        """What has a method, or a function of a module."""
        own = next(iter(root_of(node)), None) in self._scope.own
        if not isinstance(node, ast.Attribute) or not own:
            return self._base(node)
        return self._attribute_of(self._owner(node.value), node)

    def visit_Call(self, node):
        named = node.func.id if isinstance(node.func, ast.Name) else None
        if named in _FRAMES and not (named == "vars" and node.args):
            return self._about_frame(node)
        if _takes_all(node.func):
            for argument in node.args:
                argument.at_once, argument.is_searched = True, named in ("any", "all")
        function = self._base(node.func)
        visit = self._shown if _is_format(node) else self.visit
        is_method = isinstance(node.func, ast.Attribute)
        arguments = [self._items_of(each) if is_method and _is_lazy(each) else visit(each)
                     for each in node.args]  # fmt: skip
        keywords = [ast.keyword(k.arg, _part(k.arg, visit(k.value))) for k in node.keywords]
        taken = _is_lazy(node) and getattr(node, "at_once", False) and not node.is_searched
        kind = "call_of_items" if is_method and any(map(_is_lazy, node.args)) else "call"
        call = _runtime("filtered" if taken else kind, function, *arguments)
        call.keywords = keywords
        return ast.copy_location(call, node)

    def _items_of(self, node):
        """What a method is given of items: a list of all, of which a user's takes one by one."""
        return _runtime("Items", self.visit(node))

    def _about_frame(self, node):
        if node.func.id == "super" and not node.args:
            first = next(iter(self._scope.in_order), None)
            node.args = [name("__class__"), name(first)] if first else []
        return node

    def visit_Subscript(self, node):
        return self._item(node)

    def _item(self, node, *whole):
        call = _runtime("item", self._asked(node.value), self._key(node.slice), *whole)
        return ast.copy_location(call, node)

    def _key(self, key):
        """What stands between brackets, as a value."""
        if isinstance(key, ast.Slice):
            parts = (key.lower, key.upper, key.step)
            bounds = [ast.Constant(None) if n is None else self.visit(n) for n in parts]
            return ast.copy_location(_runtime("slice", *bounds), key)
        if isinstance(key, ast.Tuple):
            made = ast.Tuple([self._key(part) for part in key.elts], ast.Load())
            return ast.copy_location(made, key)
        return self.visit(key)

    def visit_IfExp(self, node):
        if binds(node.body) or binds(node.orelse):  # in a function it would be a variable of that
            found = self.generic_visit(node)
            found.test = _runtime("of_python", found.test, ast.Constant("a conditional expression"))
            return found
        parts = [_lambda(self.visit(part)) for part in (node.body, node.orelse)]
        return ast.copy_location(_runtime("either", self._test(node.test), *parts), node)

    def visit_BoolOp(self, node):
        first, *others = node.values
        if any(map(binds, others)):
            found, sign = self.generic_visit(node), "and" if isinstance(node.op, ast.And) else "or"
            what = ast.Constant(f"an operand after `{sign}`")
            found.values[:-1] = [_runtime("of_python", each, what) for each in found.values[:-1]]
            return found
        safe = ast.Constant(all(map(_is_safe, others)))
        visit = self._truth if getattr(node, "is_test", False) else self.visit
        parts = [visit(first), *(_lambda(visit(part)) for part in others)]
        function = "both" if isinstance(node.op, ast.And) else "any_of"
        return ast.copy_location(_runtime(function, safe, *parts), node)

    def visit_BinOp(self, node):
        if _is_constant(node):
            return node
        if _is_text(node.left) and isinstance(node.op, ast.Mod) and hasattr(node, "in_message"):
            return ast.copy_location(_runtime("filled", node.left, self._filling(node.right)), node)
        sign = ast.Constant(type(node.op).__name__)
        call = _runtime("binary", sign, self.visit(node.left), self.visit(node.right))
        return ast.copy_location(call, node)

    # Texts of errors.

    def visit_JoinedStr(self, node):
        """A text that is none of an error: one of values that only the run knows is for `print`."""
        if hasattr(node, "in_message") or all(map(_is_text, node.values)):
            return self.generic_visit(node)
        parts = [part if _is_text(part) else self._field(part) for part in node.values]
        return ast.copy_location(_runtime("joined_text", *parts), node)

    def _field(self, part):
        spec = ast.Constant("") if part.format_spec is None else self.visit(part.format_spec)
        fields = [self.visit(part.value), ast.Constant(part.conversion), spec]
        return ast.Tuple(fields, ast.Load())

    def visit_FormattedValue(self, node):
        """A field of the text of an error."""
        node.value = self._shown(node.value)
        node.format_spec = None if node.format_spec is None else self.visit(node.format_spec)
        return node

    def _shown(self, node):
        """A value of a text, by its source where only the run knows it."""
        if isinstance(node, ast.Starred):
            return self.visit(node)
        source = ast.Constant(ast.unparse(node))
        return ast.copy_location(_runtime("shown", self.visit(node), source), node)

    def _filling(self, node):
        """The values after a text's ``%``."""
        if isinstance(node, ast.Dict) and None not in node.keys:
            return ast.Dict([*map(self.visit, node.keys)], [*map(self._shown, node.values)])
        if not isinstance(node, ast.Tuple):
            return self._shown(node)
        return ast.copy_location(ast.Tuple([*map(self._shown, node.elts)], ast.Load()), node)

    def visit_UnaryOp(self, node):
        if isinstance(node.operand, ast.Constant) and not isinstance(node.op, ast.Not):
            return node
        if not isinstance(node.op, ast.Not):
            sign = ast.Constant(type(node.op).__name__)
            return ast.copy_location(_runtime("unary", sign, self.visit(node.operand)), node)
        return ast.copy_location(_runtime("negated", self._test(node.operand)), node)

    def _test(self, node):
        """What is asked for its truth alone: of `and` and `or` the truth of each part is enough."""
        node.is_test = True
        return self.visit(node)

    def _truth(self, node):
        """A part of `and` or `or` that is asked for its truth."""
        if isinstance(node, ast.Compare):
            return self.visit(node)
        return ast.copy_location(_runtime("as_truth", self._test(node)), node)

    def visit_Compare(self, node):
        if any(map(binds, node.comparators)) and len(node.ops) > 1:
            return self.generic_visit(node)
        kinds = ast.In | ast.NotIn | ast.Is | ast.IsNot
        plain = not any(isinstance(op, kinds) for op in node.ops)
        if len(node.ops) == 1 and (plain or binds(node.comparators[0])):
            sign = ast.Constant(type(node.ops[0]).__name__)
            parts = self.visit(node.left), self.visit(node.comparators[0])
            return ast.copy_location(_runtime("compared_once", sign, *parts), node)
        signs = [ast.Constant(type(op).__name__) for op in node.ops]
        parts = [self.visit(node.left), *(_lambda(self.visit(n)) for n in node.comparators)]
        call = _runtime("compared", ast.Tuple(signs, ast.Load()), *parts)
        return ast.copy_location(call, node)

    def visit_List(self, node):
        node = self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        return ast.copy_location(_runtime("listing", node), node)

    def visit_Starred(self, node):
        """Items that are taken apart, where it is no variable that takes what is left."""
        value = self.visit(node.value)
        node.value = _runtime("unpacked", value) if isinstance(node.ctx, ast.Load) else value
        return node

    def visit_Dict(self, node):
        node = self.generic_visit(node)
        node.values = list(map(_part, node.keys, node.values))
        return ast.copy_location(_runtime("owned", node), node)

    def visit_Set(self, node):
        return ast.copy_location(_runtime("owned", self.generic_visit(node)), node)

    def visit_ListComp(self, node):
        """A list by a loop, which may be one of the graph, or by loops in one another."""
        bound = any(isinstance(part, ast.NamedExpr) for part in ast.walk(node))
        if bound or _has_late(node) or any(part.is_async for part in node.generators):
            return ast.copy_location(_runtime("listing", self._comprehension(node)), node)
        if len(node.generators) == 1:
            return ast.copy_location(self._by_loops(node, node.generators), node)
        same = copy.deepcopy(node)
        by_loops = self._by_loops(same, same.generators, "nested")
        ways = _runtime("listing", self._comprehension(node)), by_loops
        return ast.copy_location(_runtime("comprehension_by", *map(_lambda, ways)), node)

    def _by_loops(self, node, generators, kind="comprehension"):
        """A list comprehension as a loop, an item of which may be a loop again."""
        generator, *inner = generators
        items, made = self.visit(generator.iter), []
        if kind == "nested" and getattr(node, "is_searched", False):
            items = _runtime("searched", items)
        if inner:
            value = self._by_loops(node, inner, "Inner")
        else:
            if kind == "comprehension" and _is_only_read(node.elt) and node not in self._rows:
                made = [ast.Constant(True)]
            self._rows.update(part for part in ast.walk(node.elt) if isinstance(part, ast.ListComp))
            value = self.visit(node.elt)
        item = self._of_target(generator.target, value)
        test = ast.Constant(None)
        if generator.ifs:
            tests = ast.BoolOp(ast.And(), generator.ifs)
            tests = generator.ifs[0] if len(generator.ifs) == 1 else tests
            test = self._of_target(generator.target, self.visit(tests))
        return _runtime(kind, item, test, items, *made)

    def visit_GeneratorExp(self, node):
        """A list where a call takes all items at once, else items that are made when asked for."""
        if getattr(node, "at_once", False):
            found = self.visit_ListComp(node)
            if getattr(node, "is_searched", False) and found.func.attr == "comprehension":
                found.args[2] = _runtime("searched", found.args[2])
            is_searched = getattr(node, "is_searched", False)
            return _runtime("items_of_search", _lambda(found)) if is_searched else found
        if len(node.generators) > 1 or not node.generators[0].ifs:
            found = self._comprehension(node, "one_by_one")
            return ast.copy_location(_runtime("owned", found), node)
        call = self.visit_ListComp(node)
        if call.func.attr == "comprehension":  # else a list that Python makes
            call.func.attr, call.args = "generator", call.args[:3]
        return call

    def _of_target(self, target, body):
        """A function of what a comprehension goes along."""
        if isinstance(target, ast.Name):
            return _lambda(body, target.id)
        idents = [part.id for part in target.elts if isinstance(part, ast.Name)]
        if len(set(idents)) < len(target.elts):  # parts in parts, or `_` twice: Python does it
            whole = ast.ListComp(body, [ast.comprehension(target, self._alone(), [], 0)])
            first = ast.Subscript(whole, ast.Constant(0), ast.Load())
            return _lambda(first, f"{PREFIX}whole")
        inner = _lambda(body, *idents)
        call = ast.Call(inner, [ast.Starred(name(f"{PREFIX}whole"), ast.Load())], [])
        return _lambda(call, f"{PREFIX}whole")

    def _alone(self):
        return ast.List([name(f"{PREFIX}whole")], ast.Load())

    def _comprehension(self, node, along="elements"):
        for generator in node.generators:
            generator.iter = _runtime(along, self.visit(generator.iter))
            generator.ifs = [_runtime("known_test", self.visit(test)) for test in generator.ifs]
        for field in ("elt", "key", "value"):
            if hasattr(node, field):
                setattr(node, field, self.visit(getattr(node, field)))
        return node

    def visit_DictComp(self, node):
        return ast.copy_location(_runtime("owned", self._comprehension(node)), node)

    visit_SetComp = visit_DictComp


class _Texts(ast.NodeTransformer):
    """Lets patterns that are texts ask for a text first, which no number of a run is."""

    def visit_MatchValue(self, node):
        if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)):
            return node
        kind = ast.copy_location(ast.Attribute(name(PREFIX), "text", ast.Load()), node)
        return ast.copy_location(ast.MatchClass(kind, [node], [], []), node)


def _part(key, value):
    """A value of a call or a dict: without a key it is a dict of several."""
    return _runtime("unpacked", value, ast.Constant(True)) if key is None else value


def _is_constant(node):
    """Whether Python computes an expression when it compiles it."""
    if isinstance(node, ast.BinOp):
        return _is_constant(node.left) and _is_constant(node.right)
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)


def _is_only_read(node):
    """Whether an expression is a constant or a variable, so that computing it has no effect."""
    return isinstance(node, ast.Constant | ast.Name)


def _has_late(node):
    """Whether items of a comprehension are computed later, with what its variables hold then."""
    parts = [part for each in ast.iter_child_nodes(node) for part in ast.walk(each)]
    calls = [part for part in parts if isinstance(part, ast.Call) and _takes_all(part.func)]
    at_once = {id(argument) for call in calls for argument in call.args}
    late = ast.Lambda | ast.GeneratorExp
    return any(isinstance(part, late) and id(part) not in at_once for part in parts)


def _asks_for_numbers(case):
    """Whether a pattern asks, in Python's own way, whether a part is a number, or true or false."""
    kinds = ast.MatchSequence | ast.MatchMapping | ast.MatchClass
    around = [part for part in ast.walk(case.pattern) if isinstance(part, kinds)]
    inner = [part for each in around for part in ast.walk(each) if part is not each]
    classes = [part.cls for part in inner if isinstance(part, ast.MatchClass)]
    if any(isinstance(part, ast.MatchSingleton) and part.value is not None for part in inner):
        return True
    return any(not isinstance(c, ast.Name) or c.id in _NUMBERS for c in classes)


def _ends_in_raise(statements):
    """Whether all ways through statements that come to the last one end in an error."""
    last = statements[-1] if statements else None
    if isinstance(last, ast.If):
        return _ends_in_raise(last.body) and _ends_in_raise(last.orelse)
    return isinstance(last, ast.Raise)


def _is_asked_in(stores, ident):
    """Whether storing items or attributes may ask for a variable, or functions in it may."""
    for store in stores:
        for node in ast.walk(store):
            if isinstance(node, ast.Name) and node.id == ident:
                return True
            if isinstance(node, ast.Attribute) and node.attr == "call":
                return True
    return False


def _may_change(value):
    """Whether an expression may change what ``a[i] += value`` has read before it.

    Functions of modules, such as ``np.sin``, do not, nor those of Python's own.
    """
    calls = [part.func for part in ast.walk(value) if isinstance(part, ast.Call)]
    unknown = any(not isinstance(f, ast.Name) or not hasattr(builtins, f.id) for f in calls
                  if not _is_of_module(f))  # fmt: skip
    return unknown and not binds(value)


def _is_of_module(function):
    return isinstance(function, ast.Attribute) and root_of(function) <= {"np", "numpy", "math"}


def _is_lazy(node):
    """Whether an expression makes an iterator that a rewritten call may take all items of."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "filter"
    return isinstance(node, ast.GeneratorExp) and not binds(node)


def _takes_all(function):
    """Whether what is called goes along its arguments before anything else happens."""
    if isinstance(function, ast.Attribute):  # such as np.array, math.fsum, list.extend
        return True
    return isinstance(function, ast.Name) and function.id in _AT_ONCE
