"""The table of tuning constants: complete, explained, and the only place of such numbers."""

import ast
from pathlib import Path

import nbta
from nbta.tuning import TABLE

ROOT = Path(nbta.__file__).parent
ROOMS = ("compiler", "codegen", "execution")
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for room in ROOMS
    for path in sorted((ROOT / room).rglob("*.py"))
}
#: Numbers that are no choice: of published generators, of mathematics, of enumerations.
FIXED = {
    "codegen.gammas": {"_GAMMAS", "_ONE", "_REST", "_NEXT"},  # streams of draws
    "codegen.philox": {"_LOW", "_HALF", "_ONE", "_FACTOR0", "_FACTOR1", "_WEYL0", "_WEYL1"},
    "codegen.positive_gammas": {"_ZERO", "_ZERO_LOW", "_HALF_LOG_2_PI"},
    "execution.tracer": {"INSTRUMENTED_ROW"},  # a row of a picture
}

#: What makes a number, or a range of such, of numbers.
TYPES = {"range", "int", "float", "np.int64", "np.uint64", "np.float64"}


def is_number(node):
    """Whether an expression is a number, or a range of such."""
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float, complex)
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    typed = isinstance(node, ast.Call) and ast.unparse(node.func) in TYPES
    return typed and all(map(is_number, node.args))


def numbers_of(text):
    """Upper-case names that a module's text assigns numbers to, one by one or several."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            several = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            ends = target.elts if several else [target]
            values = node.value.elts if several else [node.value]
            pairs = zip(ends, values, strict=True)
            names = {e.id for e, v in pairs if isinstance(e, ast.Name) and is_number(v)}
            found |= {name for name in names if name.strip("_").isupper()}
    return found


def test_numbers_placeholder_the_table():
    found = {module: numbers_of(path.read_text()) for module, path in MODULES.items()}
    found = {module: names for module, names in found.items() if names}
    assert found == FIXED, "put them into nbta.tuning, with what set them"


def test_numbers_are_found():
    text = "A = 3\nB, _C = 1 << 4, -0.5\nD = range(2, 9)\nE: int = 7\nf = 1\nG, H = range(2)\n"
    assert numbers_of(text) == {"A", "B", "_C", "D", "E"}
    assert numbers_of("I = (1.5, 2)\nJ = {1}\nK = frozenset()\nL = other\n") == set()


def test_rows_say_what_they_count_and_what_set_them():
    short = {name for name, row in TABLE.items() if not row.unit or not row.reason.endswith(".")}
    assert short == set()


def test_modules_decide_by_the_rows_that_name_them():
    modules = {row.module for row in TABLE.values()}
    known = {module: constants_in(ROOT.joinpath(*module.split("."))) for module in modules}
    assert {name for name, row in TABLE.items() if name not in known[row.module]} == set()


def constants_in(path):
    """The rows that a module imports."""
    return {
        alias.name
        for node in ast.walk(ast.parse(path.with_suffix(".py").read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "nbta.tuning"
        for alias in node.names
    }
