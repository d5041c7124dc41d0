"""Which statements are equal but for names and numbers."""

import read_code

from nbta.loops import Block, Load, Name, assign, comment, over
from nbta.loops.structure import Replaced, Role, height, outline, shape, without_remarks

KNOWN = frozenset(("pointer", "room", "float64", "address", "call", "refuse", "copy", "W", "w"))


def statement(source):
    (found,) = read_code.function(f"def run(w):\n    {source}\n").body
    return found


def taken(source):
    found = outline(statement(source), KNOWN)
    return list(zip(found.leaves, (role.name for role in found.roles), strict=True))


def test_leaves_have_roles():
    assert taken("b0 = room(float64, w, 17, (3, n0), 5)") == [
        ("b0", "GIVEN"), (17, "FREE"), ("n0", "NAMED"), (5, "CLASS"),
    ]  # fmt: skip
    assert taken("p = pointer(float64, address(b0, 3), 4)") == [
        ("p", "GIVEN"), ("b0", "FORWARDED"), (4, "CLASS"),
    ]  # fmt: skip
    assert taken("refuse(n1 != 7, 130)") == [("n1", "NAMED"), (130, "FREE")]
    assert taken("W[3] = call(W[8], (x, 5))") == [
        (3, "FREE"), (8, "FREE"), ("x", "NAMED"), (5, "FREE"),
    ]  # fmt: skip


def test_integers_that_must_be_known_tell_statements_apart():
    one, other = (outline(statement(f"n = m + {k}"), KNOWN) for k in (3, 4))
    assert one.shape != other.shape
    one, other = (outline(statement(f"n = W[{k}] + m{k}"), KNOWN) for k in (3, 4))
    assert one.shape == other.shape


def test_kinds_of_statements_and_signs_tell_them_apart():
    texts = ["x = a + b", "x = a - b", "x += a", "x -= a", "x = a < b", "x = a <= b", "x = -a",
             "x = a", "x = a.real", "x = a.imag", "x = a and b", "x = a or b", "x = a if b else c",
             "x[0] = a", "x = True", "x = 1", "x = 1.0"]  # fmt: skip
    assert len({outline(statement(each), KNOWN).shape for each in texts}) == len(texts)
    assert len({shape(statement(each), lambda _: 0) for each in texts}) == len(texts)


def test_where_a_block_ends_tells_them_apart():
    source = "if a:\n        x = 1\n        if x:\n            y = 2\n        {}z = 3"
    one, other = (statement(source.format(indent)) for indent in ("", "    "))
    assert outline(one, KNOWN).shape != outline(other, KNOWN).shape


def test_shapes_are_equal_for_equal_names():
    def numbered(source):
        order = {}
        return shape(statement(source), lambda name: order.setdefault(name, len(order)))

    assert numbered("x = a + a") == numbered("y = b + b")
    assert numbered("x = a + a") != numbered("y = b + c")


def test_leaves_are_replaced_by_their_numbers():
    one = statement("for i in range(n):\n        x[i] = W[5] + (a if b else c) * 2")
    number = next(k for k, leaf in enumerate(outline(one, KNOWN).leaves) if leaf == 5)
    found = Replaced(KNOWN, {number: Name("_5"), number + 2: Name("d")}, Block)([one])
    (loop,) = found
    assert str(loop) == "for i in range(n):\n    x[i] = W[_5] + (a if d else c) * 2"
    assert outline(loop, KNOWN).roles.count(Role.FREE) == 0


def test_remarks_are_left_out():
    block = Block()
    block.add(comment("a remark"))
    loop = block.nest(over("i", "n"))
    loop.add(comment("another"), assign(Load(Name("x"), Name("i")), 1))
    (found,) = without_remarks(block, Block)
    assert str(found) == "for i in range(n):\n    x[i] = 1"
    assert height(block) == 4
    assert height([found]) == 2
