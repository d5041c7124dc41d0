"""Elements that a function looks at while their array lives: views that count no references.

A view of an array's elements holds a reference to their memory. Where the function itself keeps
the array for as long as it uses the view, none is needed, and counting one takes longer than the
look: the slow path of a look gives memory of its own, so LLVM cannot remove the pair. A view is
*borrowed* if, wherever it may still be used,

* it goes nowhere but into items, numbers, other such views, and functions of Numba's and NumPy's;
* its array is used later on, so that Numba has not given it back;
* nothing runs that may close an array.

A borrowed look is *steady* if no operation that changes a slot of an array of this dtype runs
meanwhile, so that it may be a view of a slot that others could change.

Both are found in three passes over the function: what views flow into, what happens while each
variable is live, and, from there back to the looks, what is true of all that they flow into.
"""

from collections import defaultdict

from numba import types

from nbta.runtime.numba_private import ir

#: How a look or a read gives a view.
COUNTED, BORROWED, STEADY = range(3)
#: Names of one look's views that are followed, so that many looks take time in proportion.
MOST_NAMES = 64
#: Expressions whose result may hold what they are given.
_HOLDING = {
    "cast", "getattr", "getitem", "getiter", "iternext", "pair_first", "pair_second",
    "static_getitem",
}  # fmt: skip
#: Expressions whose result is an array of its own.
_COMPUTING = {"arrayexpr", "binop", "unary"}
#: Operations that copy their argument.
_PUTS = {"write", "append", "accumulate"}
#: Types that may hold a view, and are followed; and those that hold none.
_HOLDERS = (types.Array, types.ArrayIterator, types.BoundFunction, types.Pair)
_PLAIN = (types.Boolean, types.DType, types.NoneType, types.Number, types.SliceType)


def _is_plain(kind):
    if isinstance(kind, types.BaseTuple):
        return all(map(_is_plain, kind))
    return isinstance(kind, _PLAIN)


class Views:
    """How the looks and reads of a function give their views.

    ``found`` are pairs of the assignment of a view and the group of arrays that it is of.
    ``is_inert`` tells of a type that what is done with its values runs nobody's code, and
    ``used(statement)`` are the names that a statement uses.
    """

    def __init__(self, function, found, is_inert, used):
        self.function, self.found, self.is_inert, self.used = function, found, is_inert, used
        self.flows, self.groups, self.escaping = defaultdict(set), defaultdict(set), set()
        self.follow()

    @property
    def names(self):
        """All variables that may hold a view, or what holds one."""
        return frozenset(self.groups)

    def follow(self):
        """Find what the views flow into, and who lets them go elsewhere."""
        work = [(statement.target.name, group) for statement, group in self.found]
        while work:
            name, group = work.pop()
            if group in self.groups[name]:
                continue
            if not self.groups[name]:
                for statement in self.function.users[name]:
                    self.pass_on(name, statement)
            self.groups[name].add(group)
            work += [(other, group) for other in self.flows[name]]

    def pass_on(self, name, statement):
        """Note what a statement does with a variable that holds a view."""
        typemap = self.function.typemap
        if isinstance(statement, ir.SetItem | ir.StaticSetItem):
            into = isinstance(typemap[statement.target.name], types.Array)
            if statement.target.name == name or not into:
                self.escaping.add(name)
            return
        value = statement.value if isinstance(statement, ir.Assign) else None
        if isinstance(value, ir.Var):
            self.flows[name].add(statement.target.name)
            return
        op = value.op if isinstance(value, ir.Expr) else None
        if op in _COMPUTING or (op == "inplace_binop" and value.lhs.name != name):
            return
        if op in ("getitem", "static_getitem") and value.value.name != name:
            return  # an index: the result has copies
        if op == "call" and self.copies(name, statement):
            return
        kind = typemap[statement.target.name] if op else None
        known = op in _HOLDING or (op == "call" and self.keeps_nothing(value))
        if known and isinstance(kind, _HOLDERS):
            self.flows[name].add(statement.target.name)
        elif not (known and _is_plain(kind)):
            self.escaping.add(name)

    def copies(self, name, statement):
        """Whether a statement puts a view into a slot."""
        found = self.function.operation(statement, self.function.groups_found)
        return found is not None and found[0] in _PUTS and statement.value.args[0].name != name

    def keeps_nothing(self, call):
        """Whether a call is of a function or method that has arguments in its result at most."""
        typemap = self.function.typemap
        kind = typemap[call.func.name]
        if isinstance(kind, types.BoundFunction):
            return isinstance(kind.this, types.Array)
        given = [*call.args, *(variable for _, variable in call.kws)]
        kinds = [typemap[variable.name] for variable in given]
        simple = all(isinstance(k, types.Array) or _is_plain(k) for k in kinds)
        return simple and isinstance(kind, types.Function) and self.is_inert(kind)

    def decided(self, live):
        """By the identity of the assignment, how each view is given."""
        most = self.most_while_live(live)
        back = defaultdict(set)
        for name, others in self.flows.items():
            for other in others:
                back[other].add(name)
        work = [key for key, way in most.items() if way < STEADY]
        while work:
            name, group = work.pop()
            for earlier in back[name]:
                key = (earlier, group)
                if group in self.groups[earlier] and most[key] > most[name, group]:
                    most[key] = most[name, group]
                    work.append(key)
        return {id(found): most[found.target.name, group] for found, group in self.found}

    def replaces(self, statement, live):
        """Whether no earlier view of a look is in use when it gives another one.

        ``live`` are the names that are live after each. False for a view of very many names.
        """
        target = statement.target.name
        names, work = set(), [target]
        while work and len(names) < MOST_NAMES:
            name = work.pop()
            if name not in names:
                names.add(name)
                work += self.flows[name]
        before = (live[id(statement)] - {target}) | self.used(statement)
        return not work and names.isdisjoint(before)

    def most_while_live(self, live):
        """What is true of each variable by itself, for each group whose views it may hold."""
        most = {
            (name, group): COUNTED if name in self.escaping else STEADY
            for name, groups in self.groups.items()
            for group in groups
        }
        function, names = self.function, self.names
        for block in function.blocks.values():
            for statement in block.body:
                after = live[id(statement)]
                used = names & self.used(statement)
                target = statement.target.name if isinstance(statement, ir.Assign) else None
                for name in (names & after - {target}) | used:
                    for group in self.groups[name]:
                        way = self.allowed(statement, group, after)
                        most[name, group] = min(most[name, group], way)
        return most

    def allowed(self, statement, group, after):
        """How a view may be held while a statement runs."""
        if statement is group.assignment or not group.is_in(after):
            return COUNTED
        found = self.function.operation(statement, self.function.groups_found)
        if found is None:
            return COUNTED if self.function.may_change(statement, group) else STEADY
        name, other = found
        return STEADY if name == "getitem" or other.dtype != group.dtype else BORROWED
