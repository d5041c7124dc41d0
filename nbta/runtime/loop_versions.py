"""Versions of loops whose operations on arrays look at no slot by itself.

A checked operation costs a comparison of the index and one of the slot's state. In a loop over a
`range` that does one thing with one slot of an array in each iteration, by the range's own value or
by `append`, slots are adjacent. So the next ones are looked at together (`nbta.runtime.runs`), 32
states at once, and a copy of the loop goes through as many as may be acted on, without checks. An
iteration that is not that simple is one of the loop as it was, after which the next slots are
looked at. In the copy all operations leave the array as they would have: states and size at once,
as an exception may leave the loop, or a ``break``. An array that is appended to until the range
ends gets room for all of it.

An array is treated so in a loop if its block of fields (`nbta.runtime.promotion`) is used by that
one operation alone: nothing else then changes the array or loads its fields again.
"""

import copy
from collections import defaultdict
from typing import NamedTuple

from numba import types

from nbta.runtime.extension import TensorArrayType, unchecked_functions
from nbta.runtime.numba_private import ir
from nbta.runtime.runs import RUNS, RUNS_TO_THE_END, is_some, iterations_ahead, next_value, one_less
from nbta.tuning import LONGEST_VERSION

#: Operations that give an element, and not the array.
LOOKS = {"read", "getitem"}


class Site(NamedTuple):
    """An operation with promoted fields: its name, its statement, and the block of fields."""

    name: str
    statement: object
    fields: object


class _Counted(NamedTuple):
    """A loop over a range: what its header takes from the iterator, and where it goes on."""

    loop: object
    iterator: object
    pair: str
    value: object
    more: str
    first: int


def add_versions(function, sites, used):
    """Give the innermost loops of a function copies without checks.

    ``sites`` are its operations, by identity of the statement; ``used(statement)`` are the names
    that a statement uses. The function's dict of blocks is replaced, as labels are new.
    """
    versions = _Versions(function, sites, used)
    for loop in function.cfg.loops().values():
        versions.add(loop)


class _Versions:
    def __init__(self, function, sites, used):
        self.function, self.sites, self.used = function, sites, used
        self.blocks = function.blocks
        self.defined, self.uses = defaultdict(list), defaultdict(list)
        for label, block in self.blocks.items():
            for place, statement in enumerate(block.body):
                if isinstance(statement, ir.Assign):
                    self.defined[statement.target.name].append((label, place, statement))
                for name in used(statement):
                    self.uses[name].append((label, statement))

    def add(self, loop):
        """Copy a loop if it is innermost, over a range, and an operation in it needs no checks."""
        if any(other < loop.body for other in self.bodies()):
            return
        counted = self.counted(loop)
        if counted is None or sum(len(self.blocks[k].body) for k in loop.body) > LONGEST_VERSION:
            return
        sites = [
            self.sites[id(statement)]
            for label in loop.body
            for statement in self.blocks[label].body
            if id(statement) in self.sites and self.is_simple(statement, label, counted)
        ]
        if sites:
            self.copy(counted, sites)

    def bodies(self):
        """Labels of all loops."""
        return [set(loop.body) for loop in self.function.cfg.loops().values()]

    def counted(self, loop):
        """What a loop's header does, if it is over a range of int64; None for other loops."""
        body, typemap = self.blocks[loop.header].body, self.function.typemap
        values = {
            statement.value.op: statement
            for statement in body
            if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr)
        }
        if not {"iternext", "pair_first", "pair_second"} <= values.keys():
            return None
        pair, branch = values["iternext"].target, body[-1]
        iterator, more = values["iternext"].value.value, values["pair_second"].target
        if typemap[iterator.name] != types.range_iter64_type or not isinstance(branch, ir.Branch):
            return None
        goes_on = branch.truebr in loop.body and branch.falsebr not in loop.body
        if branch.cond.name != more.name or not goes_on:
            return None
        # Nobody else may take from the iterator, under whatever name.
        name = iterator.name
        while True:
            steps, taken = self.defined[name], self.uses[name]
            if len(steps) != 1 or len(taken) != 1 or steps[0][0] in loop.body:
                return None
            value = steps[0][2].value
            if not isinstance(value, ir.Var):
                break
            name = value.name
        if getattr(value, "op", None) != "getiter":
            return None
        return _Counted(
            loop, iterator, pair.name, values["pair_first"].target, more.name, branch.truebr
        )

    def is_simple(self, statement, label, counted):
        """Whether an operation is all that is done with an array, on its next slot, each time."""
        site, loop, typemap = self.sites[id(statement)], counted.loop, self.function.typemap
        users = [place for place, _ in self.uses[site.fields.name] if place in loop.body]
        ends = [end for end, _ in self.function.cfg.predecessors(loop.header) if end in loop.body]
        dominators = self.function.cfg.dominators()
        if len(users) != 1 or not all(label in dominators[end] for end in ends):
            return False
        call = statement.value
        _, array, *given = call.args
        kind = typemap[array.name]
        if call.kws or not isinstance(kind, TensorArrayType) or kind.ndim != 0:
            return False
        if not isinstance(kind.dtype, types.Number):
            return False
        if site.name != "append" and not self.is_value(given.pop(0), label, statement, counted):
            return False
        if site.name in LOOKS:
            return not given
        given_back = typemap[statement.target.name] == kind or not self.uses[statement.target.name]
        return (
            given_back
            and len(given) == 1
            and isinstance(types.unliteral(typemap[given[0].name]), types.Number | types.Boolean)
        )

    def is_value(self, variable, label, statement, counted):
        """Whether a variable surely holds the range's value of the same iteration."""
        place = self.blocks[label].body.index(statement)
        name, dominators = variable.name, self.function.cfg.dominators()
        while name != counted.value.name:
            steps = self.defined[name]
            if len(steps) != 1 or not isinstance(steps[0][2].value, ir.Var):
                return False
            where, at, step = steps[0]
            if where not in counted.loop.body or where not in dominators[label]:
                return False
            if where == label and at >= place:
                return False
            name, label, place = step.value.name, where, at
        return len(self.defined[name]) == 1

    # Copying.

    def copy(self, counted, sites):
        """Put a copy of a loop before it, which is taken as far as its operations are simple.

        Whoever enters the loop, or comes from an iteration of it, asks how many iterations may be
        looked ahead, and looks. Then the copy is entered, if there are some, or else the loop.
        """
        loop, function = counted.loop, self.function
        scope, loc = self.blocks[loop.header].scope, self.blocks[loop.header].loc
        ask, look, again, *others = range(
            max(self.blocks) + 1, max(self.blocks) + 4 + len(loop.body)
        )
        labels = dict(zip(sorted(loop.body), others, strict=True))
        left = function.variable(scope, types.int64, loc)
        unchecked = {id(site.statement): site for site in sites}
        copies = {
            labels[label]: self.copied(label, labels | {loop.header: again}, counted, unchecked)
            for label in loop.body
        }
        enter = labels[loop.header]
        one, statements = function.call(one_less, [left], loc)
        copies[enter].body[:0] = [*statements, ir.Assign(one, left, loc)]
        for block in self.blocks.values():
            block.body[-1] = _led(block.body[-1], {loop.header: ask})
        count, asking = function.call(iterations_ahead, [counted.iterator], loc)
        most, looking = count, []
        for site in sites:
            runs = RUNS if site.name != "append" or self.leaves_early(loop) else RUNS_TO_THE_END
            most, more = function.call(runs[site.name], [site.fields, counted.iterator, most], loc)
            looking += more
        looking.append(ir.Assign(most, left, loc))
        for label, statements, tested, some, none in (
            (ask, asking, count, look, loop.header),
            (look, looking, left, enter, loop.header),
            (again, [], left, enter, ask),
        ):
            condition, testing = function.call(is_some, [tested], loc)
            copies[label] = ir.Block(scope, loc)
            end = ir.Branch(condition, some, none, loc)
            copies[label].body = [*statements, *testing, end]
        self.blocks.update(copies)

    def leaves_early(self, loop):
        """Whether a loop may be left before its range ends, exceptions aside."""
        return any(
            end not in loop.body
            for label in loop.body - {loop.header}
            for end, _ in self.function.cfg.successors(label)
        )

    def copied(self, label, labels, counted, unchecked):
        """A copy of a block, with variables of its own where no other block uses them."""
        source = self.blocks[label]
        block, names = ir.Block(source.scope, source.loc), self.own_names(label)
        for statement in source.body:
            if isinstance(statement, ir.Del):  # Numba finds the places anew
                continue
            if label == counted.loop.header and self.takes(statement, counted):
                block.body += self.taken(statement, counted, names)
                continue
            if label == counted.loop.header and statement is source.body[-1]:
                block.body.append(ir.Jump(labels[counted.first], statement.loc))
                continue
            if id(statement) in unchecked:
                block.body += self.without_checks(unchecked[id(statement)], names)
                continue
            block.body.append(_led(self.renamed(statement, names), labels))
        return block

    def own_names(self, label):
        """New variables for those that only one block has."""
        found = {}
        for statement in self.blocks[label].body:
            if isinstance(statement, ir.Assign):
                name, target = statement.target.name, statement.target
                places = {where for where, *_ in self.defined[name] + self.uses[name]}
                if places == {label} and name not in found:
                    found[name] = self.function.variable(
                        target.scope, self.function.typemap[name], target.loc
                    )
        return found

    def takes(self, statement, counted):
        """Whether a statement of a header asks for the next value."""
        return isinstance(statement, ir.Assign) and statement.target.name in (
            counted.pair,
            counted.value.name,
            counted.more,
        )

    def taken(self, statement, counted, names):
        """The next value without asking."""
        if statement.target.name != counted.value.name:
            return []
        target = names.get(statement.target.name, statement.target)
        return self.function.call(next_value, [counted.iterator], statement.loc, result=target)[1]

    def without_checks(self, site, names):
        """The operation that takes slots as they are."""
        call, loc, own = site.statement.value, site.statement.loc, site.statement.target
        target = names.get(own.name, own)
        given = [names.get(argument.name, argument) for argument in call.args]
        function = unchecked_functions[site.name]
        if site.name in LOOKS:
            return self.function.call(function, given, loc, result=target)[1]
        # A write gives the array, which it need not count a reference for where nobody takes it.
        _, statements = self.function.call(function, given, loc)
        return statements + [ir.Assign(given[1], target, loc)] * bool(self.uses[own.name])

    def renamed(self, node, names):
        """A copy of a statement, an expression or what these hold, with other variables."""
        if isinstance(node, ir.Var):
            return names.get(node.name, node)
        if isinstance(node, list | tuple):
            return type(node)(self.renamed(part, names) for part in node)
        if isinstance(node, ir.Expr):
            parts = {name: self.renamed(part, names) for name, part in node._kws.items()}
            new = ir.Expr(node.op, node.loc, **parts)
        elif isinstance(node, ir.Stmt):
            new = copy.copy(node)
            for name, part in vars(node).items():
                setattr(new, name, self.renamed(part, names))
        else:
            return node
        if node in self.function.calltypes:
            self.function.calltypes[new] = self.function.calltypes[node]
        return new


def _led(statement, labels):
    """A statement; if it ends a block, one that leads to other labels."""
    if isinstance(statement, ir.Jump):
        return ir.Jump(labels.get(statement.target, statement.target), statement.loc)
    if isinstance(statement, ir.Branch):
        ends = (labels.get(end, end) for end in (statement.truebr, statement.falsebr))
        return ir.Branch(statement.cond, *ends, statement.loc)
    return statement
