"""Nodes of the loop IR: what rules write by operators and in blocks."""

import pytest

from nbta import loops
from nbta.loops import (
    Block,
    Constant,
    For,
    If,
    Load,
    Logical,
    Name,
    Select,
    Unary,
    assign,
    between,
    both,
    call,
    either,
    negated,
    otherwise,
    over,
    select,
    when,
)
from nbta.loops.nodes import ONE, ZERO, expressions_in, names_in, names_of, statements_in

a, b, i, n, x = map(Name, "abinx")


def test_signs_make_nodes_of_nodes_and_numbers():
    assert str(a + b * 2 - (i + 1)) == "a + b * 2 - (i + 1)"
    assert str(-a % (b // 3) & ~i | n ^ i << 2) == "-a % (b // 3) & ~i | n ^ i << 2"
    assert str(1 - a / b) == "1 - a / b"
    assert str(a * -3) == "a * -3"
    assert str(a[i + 1]) == "a[i + 1]"


def test_comparisons_are_nodes_but_for_equality():
    both = Logical("and", (a <= b, a.differs(0), Unary("not", b > 1)))
    assert str(both) == "a <= b and a != 0 and not b > 1"
    assert str(Logical("or", (a.equals(b), a >= b))) == "a == b or a >= b"
    assert a == Name("a")
    assert a != b
    assert {a + b: 1}[Name("a") + Name("b")] == 1


def test_numbers_of_different_types_are_different():
    assert len({Constant(1), Constant(1.0), Constant(True)}) == 3
    assert Constant(0.0) != Constant(0)


def test_expressions_have_no_truth_value_before_a_run():
    with pytest.raises(TypeError, match="known in a run only"):
        bool(a < b)
    with pytest.raises(TypeError, match="is no expression"):
        a + "b"


def test_calls_and_choices():
    assert str(call("min", a, 3)) == "min(a, 3)"
    assert str(Select(a < 0, a + n, a)) == "a + n if a < 0 else a"
    assert loops.expression("x") == Name("x")
    assert x[i] == Load(x, i)
    assert str(either(a < 0, either(both(a >= n, both(a, i)), negated(n)))) == (
        "a < 0 or a >= n and a and i or not n"
    )
    assert str(select(between(0, "<=", i, "<", n), 2.0 / a**2, -1.0)) == (
        "2.0 / a ** 2 if 0 <= i < n else -1.0"
    )
    assert str(a.conjugate() * a.real + a.imag) == "a.conjugate() * a.real + a.imag"


def test_names_come_in_the_order_in_which_they_are_printed():
    assert list(names_in(Select(a, b, i), n)) == ["b", "a", "i", "n"]
    long = a
    for _ in range(20_000):  # a sum of lengths has as many terms as a program has lengths
        long = long + b
    assert len(list(names_in(long))) == 20_001
    assert sum(1 for _ in expressions_in(long)) == 40_001


def test_places_are_filled_later():
    block = Block()
    block.add(assign("a", 1))
    place = block.place()
    block.add(assign("c", 3))
    place.add(assign("b", 2))
    assert [str(each) for each in block] == ["a = 1", "b = 2", "c = 3"]
    assert (block.size, len(block)) == (3, 3)


def test_blocks_below_headers_and_statements():
    block = Block()
    block.nest(over("i", n)).add(assign(x[i], 0))
    block.nest(For("j", ZERO, n, ONE, Block())).add(assign(x[Name("j")], 1))
    loop, other = block
    assert (loop.variable, loop.stop, other.variable) == ("i", n, "j")
    assert list(names_of(loop)) == ["i", "n", "x", "i"]
    assert len(list(statements_in(block))) == 4


def test_branches_lie_as_deep_as_they_like():
    """A chain of ``elif`` has each branch in the one before; a walk takes no call for each."""
    block = Block([])
    for _ in range(2000):
        block = Block([If(Name("a"), Block([]), block)])
    assert len(list(statements_in(block))) == 2000


def test_branches_have_alternatives():
    block = Block()
    block.nest(when(a)).add(assign("x", 1))
    block.nest(otherwise(b)).add(assign("x", 2))
    block.nest(otherwise()).add(assign("x", 3))
    (branch,) = block
    (other,) = branch.otherwise
    assert isinstance(other, If)
    assert str(branch) == "if a:\n    x = 1\nelif b:\n    x = 2\nelse:\n    x = 3"
    with pytest.raises(ValueError, match="no branch"):
        Block().nest(otherwise())


def test_marks_before_an_alternative_go_into_it():
    block = Block()
    block.nest(when(a)).add(assign("x", 1))
    block.add(loops.Mark(7))
    block.nest(otherwise(b)).add(assign("x", 2))
    assert str(next(iter(block))) == "if a:\n    x = 1\nelif b:\n    # @7\n    x = 2"
