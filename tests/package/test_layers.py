"""Which module may import which, and how long functions may be."""

import ast
import functools
import inspect
import sys
from pathlib import Path

import nbta
import nbta.namespace
from nbta.graph.operation import TABLE

ROOT = Path(nbta.__file__).parent
FILES = {
    ".".join(["nbta", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(
        ".__init__"
    ): path
    for path in sorted(ROOT.rglob("*.py"))
}
#: From the bottom up; a module imports rows below its own, and its own row.
ROWS = [
    {
        "nbta.errors",
        "nbta.immutable",
        "nbta.bitwise",
        "nbta.classes",
        "nbta.dtypes",
        "nbta.shapes",
        "nbta.naming",
        "nbta.progress",
        "nbta.locations",
        "nbta.interface",
        "nbta.typing",
        "nbta.tuning",
    },
    {"nbta.runtime"},
    {"nbta.kernels"},
    {"nbta.eager"},
    {"nbta.array_memory", "nbta.arrow", "nbta.display"},
    {"nbta.tensor_array"},
    {"nbta.packing", "nbta.saving"},
    {"nbta.loops"},
    {"nbta.graph", "nbta.codegen"},
    {"nbta.ops.core"},
    {"nbta.ops.indexing"},
    {"nbta.ops.elementary"},
    {"nbta.ops.axes"},
    {"nbta.ops.arrays"},
    {"nbta.ops.linalg"},
    {"nbta.ops.special"},
    {"nbta.ops.random"},
    {"nbta.ops.statistics"},
    {"nbta.ops.loops"},
    {"nbta.ops.fourier"},
    {"nbta.ops"},
    {"nbta.structure", "nbta.symbolic"},
    {"nbta.control"},
    {"nbta.frontend"},
    {"nbta.compiler"},
    {"nbta.execution"},
    {"nbta.inspect"},
    {"nbta.raw_ops", "nbta.random"},
    {"nbta.api"},
    {"nbta.debug", "nbta.implicit", "nbta.testing"},
    {"nbta.namespace", "nbta"},
    {"nbta.distributed", "nbta.interop"},
    {"nbta.demo", "nbta.doctor"},
    {"nbta.cli"},
    {"nbta.__main__"},
]
#: What the runtime may import besides itself.
BELOW_RUNTIME = {
    "nbta.errors",
    "nbta.naming",
    "nbta.immutable",
    "nbta.dtypes",
    "nbta.shapes",
    "nbta.tuning",
}
THIRD_PARTY = {"llvmlite", "numba", "numpy", "scipy"}
OPTIONAL = {("ml_dtypes", True), ("cloudpickle", True)}  # only inside functions
#: What users import themselves, and what it may need beside.
EXTRAS = {
    "nbta.distributed": {"cloudpickle", "dask", "distributed"},
    "nbta.display": {"matplotlib"},
    "nbta.inspect": {"graphviz", "matplotlib"},
    "nbta.interop": {"awkward", "jax", "pytensor", "torch"},
}


def row_of(module):
    """Number of the row that a module stands in."""
    package = module
    while package:
        for number, row in enumerate(ROWS):
            if package in row and (package != "nbta" or module == "nbta"):
                return number
        package = package.rpartition(".")[0]
    raise AssertionError(f"{module} stands in no row; say in ROWS what it may import")


def modules_named(node):
    """The modules that an import statement names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    names = [f"{node.module}.{alias.name}" for alias in node.names]
    found = [name for name in names if name in FILES]
    return found if len(found) == len(names) else [*found, node.module]


@functools.cache  # several tests walk each
def tree_of(module):
    """The source of a module, parsed."""
    return ast.parse(FILES[module].read_text())


@functools.cache  # reachable() asks for each module a hundred times
def imports_of(module):
    """Pairs of an imported module and whether the import waits inside a function.

    What is there for type checkers is never imported.
    """
    tree = tree_of(module)
    kinds = ast.Import | ast.ImportFrom
    unseen = {
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for statement in block.body
        for node in ast.walk(statement)
    }
    late = {
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, kinds)
    }
    return [
        (name, node in late)
        for node in ast.walk(tree)
        if isinstance(node, kinds) and node not in unseen
        for name in modules_named(node)
    ]


def ours(module):
    """Modules of the package that a module imports, also inside functions."""
    return {name for name, _ in imports_of(module) if name in FILES}


def test_imports_go_down():
    pairs = {(module, name) for module in FILES for name in ours(module)}
    assert {(module, name) for module, name in pairs if not goes_down(module, name)} == set()


def goes_down(module, name):
    """Whether a module may import another; the runtime knows but a few of what stands below it."""
    if module.startswith("nbta.runtime") and not name.startswith("nbta.runtime"):
        return name in BELOW_RUNTIME
    return row_of(name) <= row_of(module)


@functools.cache
def reachable(module):
    """All modules that a module needs, directly or by way of others."""
    seen, todo = set(), [module]
    while todo:
        new = ours(todo.pop()) - seen
        seen |= new
        todo += new
    return seen


def test_no_module_imports_itself_by_way_of_others():
    assert [module for module in FILES if module in reachable(module)] == []


def test_only_what_is_always_installed_is_imported():
    checked = [module for module in FILES if row_of(module) < row_of("nbta.demo")]
    assert {m: names for m in checked if (names := packages_missing(m))} == {}


def packages_missing(module):
    """Packages that a module imports, and that need not be installed where it is."""
    names = imports_of(module)
    outside = {(name.partition(".")[0], late) for name, late in names} - {("nbta", False)}
    needed = {name for name, late in outside if (name, late) not in OPTIONAL} - {"nbta"}
    extra = next((names for top, names in EXTRAS.items() if module.startswith(top)), set())
    return needed - set(sys.stdlib_module_names) - THIRD_PARTY - extra


def test_functions_are_short():
    long = [
        (module, node.name)
        for module in FILES
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.FunctionDef) and length(node) >= 60
    ]
    assert long == []


#: Numba documents these modules, and these names of its own.
DOCUMENTED = {"numba", "numba.extending"}
NUMBAS = {"types", "njit", "prange", "config", "from_dtype"}


def test_only_one_module_knows_private_names_of_numba():
    others = [module for module in FILES if module != "nbta.runtime.numba_private"]
    found = {m: names for m in others if (names := private_names(m))}
    assert found == {}, "take it from nbta.runtime.numba_private"


def private_names(module):
    """What a module takes from Numba that Numba does not document."""
    found = []
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.startswith("numba.")]
        elif isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] == "numba":
            names = {alias.name for alias in node.names}
            if node.module not in DOCUMENTED or (node.module == "numba" and names - NUMBAS):
                found.append(f"{node.module}: {names}")
        elif isinstance(node, ast.Attribute) and ast.unparse(node).startswith("numba.core."):
            found.append(ast.unparse(node))
    return found


def length(function):
    """Lines of a function, from its first to its last statement after the docstring."""
    body = function.body
    if ast.get_docstring(function) is not None:
        body = body[1:] or body
    return body[-1].end_lineno - body[0].lineno + 1


def test_no_lock_that_forks_do_not_know_of():
    # Python 3.11 holds one lock for all objects of a class while it computes a cached_property:
    # a child forked by another thread meanwhile would wait for it for ever.
    made = ["cached_property", "Lock(", "RLock(", "Condition(", "Semaphore("]
    runtime = {
        m: path.read_text()
        for m, path in FILES.items()
        if m.startswith(("nbta.runtime", "nbta.kernels"))
    }
    assert [(m, name) for m, text in runtime.items() for name in made if name in text] == []


COMPILER = [m for m in FILES if m.startswith(("nbta.compiler.", "nbta.codegen."))]


def has_passes(module):
    """Whether a module has passes, which have contracts."""
    functions = [node for node in tree_of(module).body if isinstance(node, ast.FunctionDef)]
    return any(ast.unparse(d).startswith("contract(") for f in functions for d in f.decorator_list)


PASSES = [module for module in COMPILER if has_passes(module)]


def test_modules_of_passes_are_found():
    assert {"nbta.compiler.passes", "nbta.compiler.tape_passes"} < set(PASSES)
    assert not {"nbta.compiler.tapes", "nbta.compiler.manager"} & set(PASSES)


def test_passes_know_nothing_of_each_other():
    """Analyses and what builds programs are for all; after a change a pass may call `prune`."""
    found = {
        (module, f"{node.module}.{alias.name}")
        for module in PASSES
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.ImportFrom) and node.module in PASSES
        for alias in node.names
    }
    assert {(m, name) for m, name in found if name != "nbta.compiler.passes.prune"} == set()
    named = {(m, name) for m in PASSES for name in ours(m) if name in PASSES}
    assert {(m, name) for m, name in named if name != "nbta.compiler.passes"} == set()


def test_names_of_operations_tell_nothing():
    methods = {"startswith", "endswith", "removeprefix", "removesuffix", "find", "split"}
    asked = [
        (module, ast.unparse(node))
        for module in COMPILER
        for node in ast.walk(tree_of(module))
        if (isinstance(node, ast.Attribute) and node.attr in methods and is_name(node.value))
        or (isinstance(node, ast.Compare) and compares_text(node))
    ]
    assert asked == []


def is_name(node):
    """Whether an expression is the name or the scope of something."""
    return isinstance(node, ast.Attribute) and node.attr in ("name", "scope")


def compares_text(node):
    """Whether a comparison is of a name with a text."""
    texts = any(
        isinstance(n, ast.Constant) and isinstance(n.value, str)
        for n in (node.left, *node.comparators)
    )
    return texts and any(map(is_name, (node.left, *node.comparators)))


@functools.cache
def attributes_of_records():
    """What the rules of all operations are given."""
    rules = [rule for record in TABLE.values() for rule in (record.infer, record.evaluate)]
    names = {name for rule in rules for name in inspect.signature(rule).parameters}
    return names | set(inspect.signature(nbta.TensorArray).parameters)


def test_attributes_are_those_of_records():
    """What a pass knows of an operation besides is in `Facts`, not in an attribute of its own."""
    known = attributes_of_records()
    found = {(m, key) for m in COMPILER for node in ast.walk(tree_of(m)) for key in keys_of(node)}
    assert {(module, key) for module, key in found if key not in known} == set()


def keys_of(node):
    """The attributes of an operation that a part of an expression names."""
    if isinstance(node, ast.Subscript) and is_attrs(node.value):
        found = [node.slice]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        found = node.args[:1] if is_attrs(node.func.value) else []
    elif isinstance(node, ast.Compare) and any(map(is_attrs, node.comparators)):
        found = [node.left]
    else:
        found = []
    return [key.value for key in found if isinstance(key, ast.Constant)]


def is_attrs(node):
    """Whether an expression is an operation's attributes."""
    return isinstance(node, ast.Attribute) and node.attr == "attrs"
