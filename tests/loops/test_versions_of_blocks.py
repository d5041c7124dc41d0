"""Two versions of a block: with guards, and with truth values known."""

import read_code

from nbta.loops import Block, assign


def versions(*lines, names=("u",)):
    block = Block()
    inner = block.versions(*names)
    for line in lines:
        header, *below = line if isinstance(line, tuple) else (line,)
        source = "\n        ".join([f"    {header}", *below])
        inner.add(*read_code.function(f"def run(w):\n{source}\n").body)
    return "\n".join(map(str, block))


def test_a_block_in_which_nothing_asks_is_there_once():
    assert versions("x = 1", "y = v + uu") == "x = 1\ny = v + uu"


def test_guards_are_left_out_where_they_do_not_hold():
    found = versions("refuse(u and (i < 0 or i >= n), 33)", "k = i + n if u and i < 0 else i")
    assert found == (
        "if u:\n"
        "    refuse(True and (i < 0 or i >= n), 33)\n"
        "    k = i + n if True and i < 0 else i\n"
        "else:\n"
        "    k = i"
    )


def test_blocks_under_a_truth_value_are_there_or_not():
    found = versions(("if u:", "x[i] += 1"), ("if not u:", "r[i] = 1"), "y = 2")
    assert found == "if u:\n    x[i] += 1\n    y = 2\nelse:\n    r[i] = 1\n    y = 2"


def test_where_several_may_hold_the_first_version_asks():
    found = versions("refuse(u and i < 0, 1)", "refuse(v and i > n, 2)", names=("u", "v", "s"))
    assert found == "if u or v:\n    refuse(u and i < 0, 1)\n    refuse(v and i > n, 2)"


def test_in_the_second_version_none_holds():
    lines = "refuse(u and i > 3, 5)", "k = i + n if v and i < 0 else i", "x[k] = 1"
    assert versions(("for i in range(n):", *lines), names=("u", "v")) == (
        "if u or v:\n    for i in range(n):\n"
        "        refuse(u and i > 3, 5)\n"
        "        k = i + n if v and i < 0 else i\n"
        "        x[k] = 1\n"
        "else:\n    for i in range(n):\n        k = i\n        x[k] = 1"
    )


def test_other_uses_are_constants():
    found = versions("t = boolean(t and u)", ("for i in range(n):", "x[i] = u"))
    assert found == (
        "if u:\n    t = boolean(t and True)\n    for i in range(n):\n        x[i] = True\n"
        "else:\n    t = boolean(t and False)\n    for i in range(n):\n        x[i] = False"
    )


def test_statements_that_ask_nothing_are_shared():
    block = Block()
    block.versions("u").add(assign("y", 2), assign("x", "u"))
    (branch,) = block
    assert next(iter(branch.body)) is next(iter(branch.otherwise))


def test_versions_within_versions():
    block = Block()
    outer = block.versions("u")
    outer.add(assign("a", "u"))
    outer.versions("v").add(assign("b", "v"))
    (branch,) = block
    assert str(branch) == (
        "if u:\n    a = True\n    if v:\n        b = True\n    else:\n        b = False\n"
        "else:\n    a = False\n    if v:\n        b = True\n    else:\n        b = False"
    )
