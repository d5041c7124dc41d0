"""The printer: Python that says what nodes say, with no more parentheses than it takes."""

import ast

import numpy as np
import pytest
import read_code
from hypothesis import given
from hypothesis import strategies as st

from nbta.loops import (
    Attribute,
    Binary,
    Block,
    Call,
    Compare,
    Constant,
    Function,
    Load,
    Logical,
    Name,
    Select,
    Tuple,
    Unary,
    assign,
    comment,
    saving,
)
from nbta.loops.printing import Printer, literal, printed_function

_LEAVES = st.one_of(
    st.sampled_from("abc").map(Name),
    st.one_of(st.integers(0, 9), st.booleans(), st.sampled_from([0.5, 1e-05, 1e300])).map(Constant),
)
_SIGNS = ("+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>")
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


def _larger(inner):
    pairs, several = st.tuples(inner, inner), st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(lambda p, s: Binary(p[0], s, p[1]), pairs, st.sampled_from(_SIGNS)),
        st.builds(Unary, st.sampled_from(["-", "+", "~", "not"]), inner),
        st.builds(lambda p, s: Compare(p, (s,)), pairs, st.sampled_from(_COMPARISONS)),
        st.builds(lambda a, b, c: Compare((a, b, c), ("<", "<=")), inner, inner, inner),
        st.builds(Logical, st.sampled_from(["and", "or"]), several),
        st.builds(Select, inner, inner, inner),
        st.builds(lambda p: Load(Name("x"), p), inner),
        st.builds(lambda p: Call(Name("f"), p), several),
        st.builds(lambda p: Call(Attribute(Load(Name("x"), p), "conjugate"), ()), inner),
        st.builds(lambda p: Call(Name("f"), (Tuple(p), Tuple(p[:1]), Tuple(()))), several),
    )


@given(st.recursive(_LEAVES, _larger, max_leaves=12))
def test_what_is_printed_reads_as_what_it_was(node):
    assert read_code.expression(str(node)) == node
    function = Function((assign("a", node),))
    (found,) = saving.decoded(saving.encoded(function)).body
    assert found.value == node


@given(st.recursive(_LEAVES, _larger, max_leaves=12))
def test_parentheses_are_those_of_python(node):
    """`ast.unparse` writes tuples in subscripts in its own way, of which there are none.

    It also writes some that are not needed, as in ``a or (b and c)``.
    """
    found, pythons = str(node), ast.unparse(ast.parse(str(node)))
    assert found.count("(") <= pythons.count("(")
    none = str.maketrans("", "", "()")
    assert found.translate(none) == pythons.translate(none)


def test_long_sums_are_printed_and_saved():
    long = Name("a")
    for _ in range(20_000):
        long = long + 1
    assert str(long).count("+") == 20_000
    function = Function((assign("b", long),), {"K0": np.complex64(1 + 2j)})
    assert str(saving.decoded(saving.encoded(function))) == str(function)


SOURCE = """K0 = np.float64(0.5)
def run(w):
    W = pointer(int64, w, 99)
    # x: float64
    for i in range(3, W[0], 2):
        if i == 5: break
        if i > 7:
            W[1] += i
        elif i > 8:
            pass
        else:
            refuse(i < 0, 33)
    x, y = attempt(F0, (i,))
    while True:
        if not W[1] < 3: break
        tick(W)
    return 0
"""


def test_functions_are_printed_as_they_were_read():
    found = read_code.function(SOURCE)
    assert found.constants == {"K0": 0.5}
    again = str(found)
    assert str(saving.decoded(saving.encoded(found))) == again
    assert again == SOURCE.replace("    # x: float64\n", "")  # Python's parser drops comments
    assert str(read_code.function(again)) == again


def test_other_names_and_remarks():
    block = Block()
    block.add(comment("x: float64"), assign("y", Load(Name("x"), Name("i"))))
    printer = Printer({"x": "weights", "y": "weight"}, lambda remark: [remark.text.upper(), ""])
    assert list(printer.lines(block)) == ["# X: FLOAT64", "", "weight = weights[i]"]


def test_constants_are_printed_as_numbers_of_numpy():
    assert literal(np.float32(0.5)) == "np.float32(0.5)"
    assert (
        literal(np.complex128(complex(np.inf, -np.inf)))
        == "np.complex128(complex(np.inf, -np.inf))"
    )
    assert literal(np.uint8(3)) == "np.uint8(3)"
    assert literal(np.float64(np.nan)) == "np.float64(np.nan)"
    function = read_code.function("def run(w):\n    return K0\n")
    function.constants["K0"] = np.float64(-2.0)
    assert printed_function(function).startswith("K0 = np.float64(-2.0)\ndef run(w):\n")


@pytest.mark.parametrize(
    "wrong", ["x, y[0] = z", "del x", "x = 'text'", "x: int = 3", "for x, y in range(3): pass",
              "x = [1]", "x[0][1], y = 1, 2", "x = [1, 2][0]", "with x: pass",
              "while x:\n        pass\n    else:\n        pass"],
)  # fmt: skip
def test_other_python_is_refused(wrong):
    with pytest.raises(read_code.TextError, match="is not of the loop IR"):
        read_code.function(f"def run(w):\n    {wrong}\n")
