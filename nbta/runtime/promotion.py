"""Which arrays a function takes apart, so that their fields lie in registers in its loops.

Numba's rewrites come after type inference. Variables that surely hold one array, by whatever names,
make a group: what is assigned, or given back by `write`, is the array that it was. The first of
them is the *root*, which has one assignment. A group is promoted if an operation with a fast path
is in a loop that the root is not in. Then (see `nbta.runtime.fields`):

* after the root its fields are loaded into a block, and compared with those of other groups that
  are live there, which may be of the same store;
* operations of the group take the block first, and so does each step of a loop over the array;
* whatever may change a store is followed by loads of the blocks of all groups that it may change
  and that are live after it.

What may change a store is any operation on an array of its dtype that is not promoted, calls of
the user's own functions, and all that might lead to Python or to a container of arrays
(`_Function.may_change`). An exception leaves the function: functions with ``try`` are left as they
are, and so are generators, whose blocks would not live through a ``yield``, and parallel ones.
"""

from collections import defaultdict
from collections.abc import Hashable
from typing import NamedTuple

from numba import types

from nbta.runtime.borrowing import COUNTED, Views
from nbta.runtime.extension import (
    TensorArrayType,
    methods,
    promoted_functions,
    store_fields,
)
from nbta.runtime.fields import (
    COUNTER,
    PROMOTERS,
    SCRATCH,
    PromotedType,
    empty,
    new_counter,
    new_scratch,
    part,
    reload,
)
from nbta.runtime.inlining import Inlining
from nbta.runtime.loop_versions import LOOKS, Site, add_versions
from nbta.runtime.numba_private import (
    Rewrite,
    RewriteArrayOfConsts,
    compute_cfg_from_blocks,
    ir,
    mark_try_block,
    mk_unique_var,
    register_rewrite,
)

#: Methods that give back the array that they were called on.
_SAME = {methods[name] for name in ("write", "append", "accumulate", "identity")}
#: Methods with a fast path, and their names.
_FAST = {methods[name]: name for name in ("write", "append", "accumulate", "read")}
#: Methods and functions that change no field and run no code of others.
_LOOKS = {methods["size"], methods["identity"], len}
#: Expressions that run no code of others, whatever they are of.
_MOVES = {"cast", "null", "undef", "build_tuple", "pair_first", "pair_second"}
#: Types whose values hold no arrays, and lead to no code but Numba's.
_INERT = (
    types.Array, types.Boolean, types.DType, types.Module, types.NoneType, types.NPDatetime,
    types.NPTimedelta, types.Number, types.NumberClass, types.Omitted, types.RangeIteratorType,
    types.RangeType, types.SliceType, types.StringLiteral, types.UnicodeType,
)  # fmt: skip
#: Packages whose functions call none of the user's.
_KNOWN_PACKAGES = {"_operator", "builtins", "cmath", "math", "numba", "numpy", "operator"}


def _is_inert(kind):
    """Whether nothing that is done with values of a type can change a store."""
    if isinstance(kind, types.BaseTuple):
        return all(map(_is_inert, kind))
    if isinstance(kind, types.List | types.ListType):
        return _is_inert(kind.dtype)
    if isinstance(kind, types.Function):
        function = kind.typing_key
        module = getattr(function, "__module__", None) or type(function).__module__
        return module.split(".")[0] in _KNOWN_PACKAGES
    if isinstance(kind, types.BoundFunction):
        return _is_inert(kind.this)
    return isinstance(kind, _INERT)


#: Rewrites that are registered when they are imported, and so before the one here.
_EARLIER_REWRITES = (RewriteArrayOfConsts, Inlining)


class _Group:
    """Variables that hold one array, and the assignment that it comes from, with its block's label.

    ``block`` is the variable with its promoted fields.
    """

    def __init__(self, names, label, assignment, kinds):
        self.names, self.label, self.assignment = frozenset(names), label, assignment
        self.others = self.names - {assignment.target.name}
        self.dtype = kinds[0].dtype
        self.ndim = max(kind.ndim or 0 for kind in kinds)
        self.block = None

    def is_in(self, names):
        """Whether one of the group's is among some names."""
        return not self.names.isdisjoint(names)


class _Iteration(NamedTuple):
    """A loop over the array of a group: what begins it, and takes an element in each iteration.

    ``names`` are those of the iterator. ``more`` is assigned whether there is an element.
    """

    group: _Group
    names: frozenset
    begin: object
    next: object
    element: object
    more: object


@register_rewrite("after-inference")
class _Promotion(Rewrite):
    """Promote fields in all of a function at once, after the rewrite of method calls."""

    def __init__(self, state):
        super().__init__(state)
        kinds = state.typemap.values()
        arrays = any(isinstance(kind, TensorArrayType) and kind.uniform for kind in kinds)
        left = state.func_ir.is_generator or state.flags.auto_parallel.enabled
        if arrays and not left:
            _Function(state).promote()

    def match(self, func_ir, block, typemap, calltypes):
        return False


class _Function:
    """A function whose types are inferred."""

    def __init__(self, state):
        self.func_ir, self.typemap = state.func_ir, state.typemap
        self.calltypes, self.context = state.calltypes, state.typingctx
        self.blocks, self.sites = state.func_ir.blocks, {}
        self.users, self.defined = defaultdict(list), defaultdict(list)
        for block in self.blocks.values():
            for statement in block.body:
                self.defined[_target(statement)].append(statement)
                for name in _used(statement):
                    self.users[name].append(statement)
        self.cfg = compute_cfg_from_blocks(self.blocks)
        self.callees = {
            statement.target.name: statement.value.value
            for _, statement in self.assignments()
            if isinstance(statement.value, ir.Global | ir.FreeVar)
            and isinstance(statement.value.value, Hashable)
        }

    def promote(self):
        """Promote the fields of all groups that it helps."""
        if any(value is mark_try_block for value in self.callees.values()):
            return
        groups = list(self.groups())
        found = [one for group in groups for one in self.iterations(group)]
        groups = [group for group in groups if self.is_used_in_loop(group, found)]
        self.groups_found = groups
        views = Views(self, list(self.views(groups, found)), _is_inert, _used)
        names = views.names.union(*(group.names for group in groups))
        held = {id(one.next): {one.begin.value.value.name} for one in found}
        live = self.live_after(names.union(*(one.names for one in found)), held)
        # Where a root makes an array anew, no other name of its group may hold an older one.
        groups = [group for group in groups if not group.others & live[id(group.assignment)]]
        self.begin_iterations(found, groups, live)
        self.ways, self.scratches = views.decided(live), []
        self.replacing = {
            id(statement)
            for statement, _ in views.found
            if self.ways[id(statement)] != COUNTED and views.replaces(statement, live)
        }
        for group in groups:
            target = group.assignment.target
            group.block = self.variable(target.scope, PromotedType(group.ndim), target.loc)
        for block in self.blocks.values():
            block.body = [
                new
                for statement in block.body
                for new in self.rewritten(statement, groups, live[id(statement)])
            ]
        self.keep_scratches()
        if self.sites and self.is_last:
            # Numba's list of blocks is that of before the rewrites, and takes no further ones.
            self.func_ir.blocks = self.blocks = dict(self.blocks)
            add_versions(self, self.sites, _used)

    @property
    def is_last(self):
        """Whether no other rewrite comes after this one, which would not see new blocks."""
        return register_rewrite.__self__.rewrites["after-inference"][-1] is _Promotion

    # Groups.

    def assignments(self):
        """All assignments, with the labels of their blocks."""
        for label, block in self.blocks.items():
            for statement in block.find_insts(ir.Assign):
                yield label, statement

    def is_array(self, variable):
        """Whether a variable holds an array."""
        return isinstance(variable, ir.Var) and isinstance(
            self.typemap.get(variable.name), TensorArrayType
        )

    def source(self, value):
        """The variable that an assigned value surely is; None where it may be another array."""
        if isinstance(value, ir.Var):
            return value.name
        if not isinstance(value, ir.Expr):
            return None
        if value.op == "cast":
            return value.value.name
        is_same = value.op == "call" and self.callees.get(value.func.name) in _SAME
        return value.args[0].name if is_same else None

    def groups(self):
        """Groups that hold one uniform array."""
        found, sources = {}, defaultdict(set)
        for label, statement in self.assignments():
            if self.is_array(statement.target):
                name = statement.target.name
                found[name] = None if name in found else (label, statement)
                sources[name].add(self.source(statement.value))
        members = defaultdict(list)
        for name, root in _roots(sources).items():
            members[root].append(name)
        for root, names in members.items():
            kinds = [self.typemap[name] for name in names]
            if found[root] is not None and all(kind.uniform for kind in kinds):
                yield _Group(names, *found[root], kinds)

    def is_used_in_loop(self, group, iterations):
        """Whether an operation has a fast path in a loop that the group's root is not in."""
        loops = [loop.body for loop in self.cfg.loops().values() if group.label not in loop.body]
        inside = set().union(*loops)
        nexts = {id(iteration.next) for iteration in iterations if iteration.group is group}
        return any(
            id(statement) in nexts or self.operation(statement, [group]) is not None
            for label, statement in self.assignments()
            if label in inside
        )

    def iterations(self, group):
        """Loops over the array of a group whose iterators nobody else uses."""
        for _, begin in self.assignments():
            value = begin.value
            is_begin = isinstance(value, ir.Expr) and value.op == "getiter"
            if not is_begin or value.value.name not in group.names:
                continue
            if self.typemap[value.value.name].ndim is None:
                continue
            names, steps, work = set(), [], [begin.target.name]
            while work:
                names.add(work[-1])
                for statement in self.users[work.pop()]:
                    if isinstance(statement.value, ir.Var):
                        work.append(statement.target.name)
                    else:
                        steps.append(statement)
            takers = [self.users[step.target.name] for step in steps]
            parts = {taker.value.op: taker for taker in takers[0]} if len(takers) == 1 else {}
            if parts.keys() != {"pair_first", "pair_second"}:
                continue
            ends = parts["pair_first"], parts["pair_second"]
            if all(len(self.defined[name]) == 1 for name in (*names, ends[1].target.name)):
                yield _Iteration(group, frozenset(names), begin, steps[0], *ends)

    def views(self, groups, iterations):
        """Pairs of an assignment of a view of an element, and the group that it is of."""
        for _, statement in self.assignments():
            operation = self.operation(statement, groups)
            is_view = isinstance(self.typemap[statement.target.name], types.Array)
            if operation is not None and operation[0] in LOOKS and is_view:
                yield statement, operation[1]
        for iteration in iterations:
            if isinstance(self.typemap[iteration.element.target.name], types.Array):
                yield iteration.element, iteration.group

    def begin_iterations(self, found, groups, live):
        """Note the loops over arrays that are promoted; their iterators become counters."""
        self.iterated = {}
        for iteration in found:
            group = iteration.group
            if group in groups and not iteration.names & live[id(group.assignment)]:
                for statement in iteration[2:]:
                    self.iterated[id(statement)] = iteration
                for name in iteration.names:
                    del self.typemap[name]
                    self.typemap[name] = COUNTER

    def live_after(self, names, held):
        """Those of some names that are live after each statement, by its identity.

        ``held`` are names that statements will use, or hold in another way, by the same.
        """
        live_in, after = dict.fromkeys(self.blocks, frozenset()), {}
        changed = True
        while changed:
            changed = False
            for label, block in self.blocks.items():
                live = frozenset().union(*(live_in[next] for next, _ in self.cfg.successors(label)))
                for statement in reversed(block.body):
                    after[id(statement)] = live
                    live = (live - {_target(statement)}) | (_used(statement) & names)
                    live |= held.get(id(statement), frozenset())
                changed = changed or live != live_in[label]
                live_in[label] = live
        return after

    # Operations.

    def operation(self, statement, groups):
        """The name and the group of an operation with a fast path; None where it is none."""
        value = statement.value if isinstance(statement, ir.Assign) else None
        op = value.op if isinstance(value, ir.Expr) else None
        if op == "call" and value.args:
            name, array = _FAST.get(self.callees.get(value.func.name)), value.args[0]
        elif op == "getitem" or (op == "static_getitem" and value.index_var is not None):
            name, array = "getitem", value.value
        else:
            return None
        if name is None or not self.is_array(array) or self.typemap[array.name].ndim is None:
            return None
        return next(((name, group) for group in groups if array.name in group.names), None)

    def may_change(self, statement, group):
        """Whether a statement may change the store of a group without having its block."""
        if isinstance(statement, ir.Del | ir.Terminator) or id(statement) in self.iterated:
            return False
        if not isinstance(statement, ir.Assign):  # what is printed goes by way of Python
            return isinstance(statement, ir.Print) or self.leads_to(_used(statement), group)
        value = statement.value
        if not isinstance(value, ir.Expr):
            return isinstance(value, ir.Yield)
        if value.op in _MOVES:
            return False
        used = _used(statement)
        if value.op == "call" and self.callees.get(value.func.name) in _LOOKS:
            used = {name for name in used if not isinstance(self.typemap[name], TensorArrayType)}
        return self.leads_to(used, group)

    def leads_to(self, names, group):
        """Whether what is done with some variables may change the store of a group."""
        kinds = [self.typemap[name] for name in names]
        return any(
            kind.dtype == group.dtype if isinstance(kind, TensorArrayType) else not _is_inert(kind)
            for kind in kinds
        )

    # Statements.

    def rewritten(self, statement, groups, live):
        """What a statement becomes, given the groups that are live after it."""
        found = self.operation(statement, groups)
        if found is not None:
            return self.promoted(statement, *found)
        if id(statement) in self.iterated:
            return self.iteration(statement, self.iterated[id(statement)])
        result = [statement]
        for group in groups:
            if statement is group.assignment:
                result += self.taken_apart(group, groups, live)
            elif group.is_in(live) and self.may_change(statement, group):
                result += self.call(reload, [group.block], statement.loc)[1]
        return result

    def taken_apart(self, group, groups, live):
        """Statements that promote the fields of a group, after its root."""
        array = group.assignment.target
        address, statements = self.call(store_fields, [array], array.loc)
        promote = PROMOTERS[group.ndim]
        statements += self.call(promote, [address], array.loc, result=group.block)[1]
        for other in groups:
            if other is not group and other.is_in(live) and other.dtype == group.dtype:
                statements += self.call(part, [group.block, other.block], array.loc)[1]
        return statements

    def promoted(self, statement, name, group):
        """An operation that takes the block of a group."""
        value, loc = statement.value, statement.loc
        old = self.calltypes.pop(value)
        if value.op == "call":
            given, keywords = [group.block, *value.args], value.kws
            kinds = (self.typemap[group.block.name], *old.args[: len(value.args)])
        else:
            index = value.index if value.op == "getitem" else value.index_var
            given, keywords = [group.block, value.value, index, *self.scratch(statement)], ()
            kinds = tuple(self.typemap[variable.name] for variable in given)
        key = (name, self.ways.get(id(statement), COUNTED)) if name in LOOKS else name
        function = promoted_functions[key]
        _, statements = self.call(function, given, loc, keywords, kinds, result=statement.target)
        self.sites[id(statements[-1])] = Site(name, statements[-1], group.block)
        return statements

    def iteration(self, statement, iteration):
        """What a statement of a loop over an array becomes: a counter goes through the slots."""
        begin, more = iteration.begin, iteration.more.target
        given = [iteration.group.block, begin.value.value, begin.target]
        self.calltypes.pop(statement.value, None)
        if statement is iteration.more:  # assigned by the statement that asks for the next one
            return []
        if statement is begin:
            function, given, result = new_counter, given[:1], begin.target
        elif statement is iteration.next:
            function, result = promoted_functions["more"], more
        else:
            way = self.ways.get(id(statement), COUNTED)
            function, result = promoted_functions["next", way], statement.target
            given += [more, *self.scratch(statement)]
        return self.call(function, given, statement.loc, result=result)[1]

    def scratch(self, statement):
        """The place for copies of a look whose views are borrowed one after another, if it is."""
        if id(statement) not in self.replacing:
            return []
        self.scratches.append(self.variable(statement.target.scope, SCRATCH, statement.loc))
        return self.scratches[-1:]

    def keep_scratches(self):
        """Make places for copies where the function begins, and give them back at its ends."""
        if not self.scratches:
            return
        entry = self.blocks[self.cfg.entry_point()]
        for scratch in self.scratches:
            entry.body[:0] = self.call(new_scratch, [], scratch.loc, result=scratch)[1]
        for block in self.blocks.values():
            if isinstance(block.body[-1], ir.Return):
                for scratch in self.scratches:
                    block.body[-1:-1] = self.call(empty, [scratch], scratch.loc)[1]

    def call(self, function, given, loc, keywords=(), kinds=None, result=None):
        """The variable of a call's result, and statements that call a function."""
        scope = (result or given[0]).scope
        kind = self.context.resolve_value_type(function)
        kinds = kinds or tuple(self.typemap[variable.name] for variable in given)
        named = {name: self.typemap[variable.name] for name, variable in keywords}
        signature = kind.get_call_type(self.context, kinds, named)
        callee = self.variable(scope, kind, loc)
        result = result or self.variable(scope, signature.return_type, loc)
        name = ir.Global(getattr(function, "__name__", "promote"), function, loc)
        expression = ir.Expr.call(callee, given, keywords, loc)
        self.calltypes[expression] = signature
        self.func_ir._definitions[callee.name] = [name]
        self.func_ir._definitions[result.name] = [expression]
        return result, [ir.Assign(name, callee, loc), ir.Assign(expression, result, loc)]

    def variable(self, scope, kind, loc):
        """A new variable of a type."""
        name = mk_unique_var("$nbta_fields")
        self.typemap[name] = kind
        return scope.define(name, loc)


def _roots(sources):
    """The variable that each one's array comes from, by the sources of what each is assigned.

    Itself for a variable that may hold one of several arrays, or another one.
    """
    own = {name for name, given in sources.items() if None in given}
    while True:
        roots = {name: name for name in own}
        conflict, changed = None, True
        while changed and conflict is None:
            changed = False
            for name in sources.keys() - own:
                given = {roots[source] for source in sources[name] if source in roots}
                if len(given) > 1:
                    conflict = name
                elif given - {roots.get(name)}:
                    (roots[name],) = given
                    changed = True
        if conflict is None:
            return roots
        own.add(conflict)


def _target(statement):
    """The name that a statement assigns; None for none."""
    return statement.target.name if isinstance(statement, ir.Assign) else None


def _used(statement):
    """Names that a statement uses."""
    if isinstance(statement, ir.Del):
        return set()
    if not isinstance(statement, ir.Assign):
        return {variable.name for variable in statement.list_vars()}
    if isinstance(statement.value, ir.Var):
        return {statement.value.name}
    is_expression = isinstance(statement.value, ir.Inst)
    return {variable.name for variable in statement.value.list_vars()} if is_expression else set()
