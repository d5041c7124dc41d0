"""A short run of `python -m fuzz`, planted faults that it must find, and what it once found."""

import re
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from compiled_pairs import Pair
from fuzz import (
    derivatives,
    families,
    item_nests,
    lengths,
    loops,
    menu,
    program,
    raw,
    raw_maker,
    ways,
)
from fuzz.__main__ import main, run
from item_by_item import OF_ONE, OF_TWO

import nbta
from nbta.api import tracing
from nbta.codegen.fusion import Elementary
from nbta.compiler.executable import Workspace
from nbta.control.control_flow import Variables
from nbta.execution.runner import Runner
from nbta.graph.lengths import Look
from nbta.graph.operation import TABLE
from nbta.ops.functions import __all__ as functions
from nbta.structure import pack

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NaN and empty means are meant


@pytest.mark.slow_but_every(10)
@pytest.mark.parametrize(
    ("family", "seed", "programs"),
    [
        ("graph", 3, 6),
        ("loop", 1, 3),
        ("gradient", 2, 1),
        ("raw", 41, 3),
        ("mutation", 1, 1),
        ("empty", 2, 2),
        ("empty gradient", 1, 1),
        ("accumulator", 1, 2),
        ("lookup", 0, 4),
        ("conditions", 1, 6),
        ("filling", 1, 2),
        ("nest", 1, 1),
        ("item nest", 1, 1),
        ("lengths", 10, 4),
        ("surface", 1, 40),
        ("caller", 14, 4),
    ],
)
def test_random_programs(family, seed, programs):
    lines = []
    found = run(family, 1e9, seed, programs, machine_code=0, report=lines.append)
    assert not found, "\n".join(lines)


@pytest.mark.slow
def test_some_in_machine_code():
    counts = {}
    ways.check(families.graph(21), True, counts)
    assert counts["agreed"] > 0
    raw.check(raw_maker.program(9, 30), True, counts)
    assert counts["compiled methods"] == counts["eager"] == 30


def test_each_family_is_described():
    page = Path(__file__).parents[2] / "CONTRIBUTING.md"
    assert [name for name in families.FAMILIES if f"`{name}`" not in page.read_text()] == []


def test_a_program_is_the_same_for_its_seed():
    assert repr(families.loop(5)) == repr(families.loop(5)) != repr(families.loop(6))
    assert repr(raw_maker.program(5)) == repr(raw_maker.program(5))


# Planted faults.


def test_a_graph_for_another_length_is_found(monkeypatch):
    family = families.FAMILIES["lengths"]
    programs = [lengths.program(seed) for seed in range(10, 16)]
    monkeypatch.setattr(Look, "__call__", lambda look, values: 2)
    errors = [families.failure(family, given) for given in programs]
    assert any(isinstance(error, ways.DisagreementError) for error in errors)


STEEP = """def f(c, w):
    total = 0.0
    for i in range(3):
        for j in range(3):
            total = math.sin({} * (total + c[i, j]))
    return total"""


def test_differences_that_disagree_are_skipped_and_counted():
    counts = {}
    nest = item_nests.Program(tuple(STEEP.format(100.0).splitlines()), "hvp")
    item_nests.check(nest, counts=counts)
    assert counts["gradient: differences disagree"] == counts["agreed"] == 1
    assert counts["hvp: differences disagree"] == 1


@pytest.mark.parametrize("compiled", [False, True])
def test_a_wrong_second_derivative_of_a_nest_is_found(monkeypatch, compiled):
    right = item_nests._ways

    def wrong(f, second, way):
        first, plain = right(f, second, way)
        factor = 1.0 + 1e-5 * (compiled == way)
        return first, lambda *given: tuple(factor * part for part in plain(*given))

    monkeypatch.setattr(item_nests, "_ways", wrong)
    nest = item_nests.Program(tuple(STEEP.format(0.9).splitlines()), "hvp")
    with pytest.raises(ways.DisagreementError, match="compiled hvp" if compiled else "differences"):
        item_nests.check(nest)


@pytest.fixture
def plant():
    """Give an operation's record another field, until the test ends."""
    kept = []

    def put(name, field, value):
        kept.append((TABLE[name], field, getattr(TABLE[name], field)))
        object.__setattr__(TABLE[name], field, value)

    yield put
    for record, field, value in kept:
        object.__setattr__(record, field, value)


def small(text, check=ways.check, **inputs):
    """A program of one expression among others that have nothing to do with it."""
    made = [
        program.Statement((f"v{k}",), (line,), (np.float64(0.5),))
        for k, line in enumerate(["v0 = nbta.sin(x1)", f"v1 = {text}", "v2 = nbta.tanh(v1)"])
    ]
    given = inputs or {"x1": np.array([0.3, -0.7, 1.1])}
    return families.Family(None, check), program.Program(given, made, ("v0", "v1", "v2"))


def stage_of(family, made):
    error = families.failure(family, made)
    return None if error is None else families.word(error)


def test_a_wrong_evaluation_is_found_and_cut_down(plant, capsys):
    family, made = small("nbta.cumsum(x1) + 0.0 * v0")
    assert stage_of(family, made) is None
    plant("CumSum", "evaluate", lambda x, **attrs: np.cumsum(x)[::-1].copy())
    error = families.failure(family, made)
    assert error.stage == "eager and model: values"
    cut = families.cut_down(family, made, False, error)
    assert capsys.readouterr().out == ""
    exec(repr(cut), {})  # prints what the ways give
    assert len(capsys.readouterr().out.splitlines()) == len(cut.given())
    assert "cumsum" in cut.source()
    assert len(cut.source().splitlines()) == 4  # with a constant in place of the sine
    assert cut.outputs == ("v1",)


def test_a_wrong_gradient_is_found(plant):
    family, made = small("nbta.erf(x1)", derivatives.check)
    assert stage_of(family, made) is None
    plant("Erf", "gradient", lambda op, dy: [dy * 1.1])
    assert stage_of(family, made) == "gradient and differences"


def test_wrong_generated_code_is_found(monkeypatch):
    family, made = small("nbta.sum(x1)")
    assert stage_of(family, made) is None
    whole = Runner.run

    def off_by_one(self, given, compiled):
        values, step = whole(self, given, compiled)
        return ([v + 1.0 for v in values] if compiled is True else values), step

    monkeypatch.setattr(Runner, "run", off_by_one)
    assert stage_of(family, made) == "compiled and reference: values"


@pytest.mark.slow
def test_a_lost_write_is_found_and_cut_down(monkeypatch):
    whole = nbta.TensorArray.append
    lossy = lambda ta, value: ta if len(ta) == 3 else whole(ta, value)  # noqa: E731
    monkeypatch.setattr(nbta.TensorArray, "append", lossy)
    family = families.FAMILIES["raw"]
    tried = map(raw_maker.program, range(20))
    made, error = next((m, e) for m in tried if (e := families.failure(family, m)) is not None)
    cut = families.cut_down(family, made, False, error, 20)
    assert 2 <= len(cut.ops) <= 6
    assert "append" in {op.method for op in cut.ops}
    with pytest.raises(type(error)):
        exec(repr(cut), {})


@pytest.mark.slow
def test_a_dtype_object_that_was_freed_is_found(monkeypatch):
    """The store noted the address of a dtype object, by which writes then knew the dtype."""
    noted, made = {}, nbta.TensorArray.__init__

    def note(ta, *args, **options):
        made(ta, *args, **options)
        noted[ta._address] = id(ta._dtype)

    def by_address(ta, index, value, **options):
        dtype = ta._dtype
        if isinstance(value, np.ndarray) and id(value.dtype) == noted.get(ta._address):
            ta._dtype = value.dtype
        try:
            return write(ta, index, value, **options)
        finally:
            ta._dtype = dtype

    def found(seed):
        ops = [
            raw.Op("create", None, (name, 40), (("element_shape", ()), ("clear_after_read", True)))
            for name in ("<U3", "datetime64[s]")
        ]
        ops += [
            raw.Op("write", array, (slot, raw.Value(name, (), seed + slot)))
            for slot in range(40)
            for array, name in enumerate(("<U3", "datetime64[s]"))
        ]
        ops += [raw.Op("stack", array, ()) for array in range(2)]
        error = families.failure(families.FAMILIES["raw"], raw.Program(ops, False))
        return None if error is None else families.word(error)

    assert {found(seed) for seed in range(3)} == {None}
    monkeypatch.setattr(nbta.TensorArray, "__init__", note)
    write = nbta.TensorArray.write  # in machine code, after the first array
    monkeypatch.setattr(nbta.TensorArray, "write", by_address)
    assert "passed on: values" in {found(seed) for seed in range(3)}


def mutating():
    """A loop whose body changes what it got, and looks at it by its old name."""
    lines = ("v2 = h1", "v3 = v2", "v2 += 0.25")
    inner = program.Statement(("v2", "v3"), lines, (None, None))
    body = program.Body("f1", ("i1", "h1"), [inner], "i1 + 1, v2 * 0.5 + v3")
    call = "v8, v9 = nbta.while_loop(lambda i1, h1: i1 < 3, f1, (np.int64(0), x1))"
    loop = program.Statement(("v9",), (call,), (None,), [body])
    return program.Program({"x1": np.array([0.3, -0.7])}, [loop], ("v9",))


def test_arrays_that_bodies_change_are_found(monkeypatch):
    family = families.FAMILIES["mutation"]
    assert stage_of(family, mutating()) is None
    bare = lambda self, values: pack(self._structure, values)  # noqa: E731
    monkeypatch.setattr(Variables, "handed", bare)
    assert stage_of(family, mutating()) in ("eager and model: values", "arguments changed")


def test_programs_change_arrays_in_place():
    sources = [families.FAMILIES["mutation"].make(seed).source() for seed in range(4)]
    changes = re.compile(r"^ +\w+ [-+*/]= ", re.M)
    assert sum(len(changes.findall(source)) for source in sources) > 4
    assert not any(changes.findall(program.rebound(source)) for source in sources)


@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("family", ["empty", "empty gradient"])
def test_an_error_for_no_rows_is_found(family, plant, monkeypatch):
    family = families.FAMILIES[family]
    inner = "nbta.map_fn(lambda r1: nbta.map_fn(lambda r2: r2 * nbta.sin(r2), r1), x1)"
    _, made = small(inner, x1=np.zeros((0, 3)))
    made = program.Program(made.inputs, made.statements, ("v1",))
    assert stage_of(family, made) is None

    def forgetful(step, handle, indices, flow, *, dtype, **attrs):
        return step.array(handle).gather(indices, dtype=dtype)

    plant("TensorArrayGatherV3", "evaluate", forgetful)
    # Else it is told when the graph is made.
    monkeypatch.setattr(tracing, "any_empty", lambda values: False)
    assert stage_of(family, made) is not None


def test_programs_nest_loops_over_no_rows():
    made = [families.FAMILIES["empty"].make(seed) for seed in range(4)]
    loops_in_loops = [body for m in made for s in m.statements for body in s.bodies]
    assert any(inner.bodies for body in loops_in_loops for inner in body.statements)
    assert all(any(not v.size for row in m.given()[1:] for v in row) for m in made)


def test_an_error_that_code_forgets_is_found(monkeypatch):
    """Compiled code may leave out what no result depends on, and nothing else."""
    family, made = small("x1[k1]", x1=np.array([0.3, 0.7]), k1=np.array([5]))
    made = program.Program(made.inputs, made.statements, ("v1",))
    assert stage_of(family, made) is None
    whole = Runner.run

    def silent(self, given, compiled):
        try:
            return whole(self, given, compiled)
        except nbta.NbtaError:
            if compiled is not True:
                raise
            return [np.zeros(1)], None

    monkeypatch.setattr(Runner, "run", silent)
    assert stage_of(family, made) == "compiled and reference: one fails"


def test_the_command(capsys, monkeypatch, plant):
    arguments = ["--family", "graph", "--seed", "3", "--programs", "1", "--machine-code", "0"]
    assert main(arguments) == 0
    assert "graph, seeds 3 to 3: programs: 1" in capsys.readouterr().out
    plant("Tanh", "evaluate", lambda x: np.tanh(x) + 1)
    monkeypatch.setitem(
        families.FAMILIES, "graph",
        families.Family(lambda seed: small("nbta.tanh(x1)")[1], ways.check),
    )  # fmt: skip
    assert main(arguments) == 1
    printed = capsys.readouterr().out
    assert "# python -m fuzz --family graph --seed 3 --programs 1" in printed
    assert "nbta.tanh(" in printed


#: Functions that programs have under another name or as an operator, or that give no new value.
NOT_OFFERED = {
    "add", "as_matrix", "constant", "divide", "equal", "fill", "greater",
    "greater_equal", "less", "less_equal", "logical_not", "logical_or", "mod", "multiply",
    "negative", "not_equal", "ones", "placeholder", "slice", "subtract", "sum_to", "zeros",
    "isfinite", "isinf", "isnan", "bitwise_and", "bitwise_or", "bitwise_xor", "ceil", "gcd",
    "invert", "lcm", "left_shift", "right_shift", "trunc", "polygamma", "cummin", "log_sigmoid",
}  # fmt: skip


#: Tests whose tables hold functions to NumPy and SciPy one by one, with their derivatives.
TABLES = [
    path
    for pattern in (
        "frontend/test_numpy_*.py",
        "frontend/test_special*.py",
        "ops/test_linear*.py",
        "ops/test_fourier.py",
        "ops/test_at.py",
    )
    for path in Path(__file__).parents[1].glob(pattern)
]


def test_programs_use_every_other_function():
    source = "".join(Path(module.__file__).read_text() for module in (menu, loops))
    missing = {name for name in functions if f"nbta.{name}(" not in source}
    # Elementary functions have one rule for their code, and the menu has most of them.
    alike = [f for f in (OF_ONE | OF_TWO).values() if isinstance(f.record.emit, Elementary)]
    missed = missing & {function.__name__ for function in alike}
    tables = "".join(path.read_text() for path in TABLES)
    tabled = {name for name in missing if re.search(rf"[.\"]{name}[(\",]", tables)}
    assert missing - missed - tabled == NOT_OFFERED - tabled
    assert 2 * len(missed) < len(alike)


# What it found.


@pytest.mark.parametrize("clear", [True, False])
def test_clear_after_read_of_a_shaped_gradient_in_a_graph(clear):
    """`grad_with_shape` took the argument and did not hand it on, so that slots were cleared."""
    with nbta.Graph().as_default() as graph:
        ta = nbta.TensorArray("float64", 1, element_shape=())
        made = ta.grad_with_shape("gradients", [2], clear_after_read=clear)
        made = made.write(0, np.ones(2))
        reads = [made.read(0), made.read(0)]
    session = nbta.Session(graph)
    if clear:
        with pytest.raises(nbta.InvalidArgumentError, match="was cleared"):
            session.run(reads)
    else:
        np.testing.assert_array_equal(session.run(reads), np.ones((2, 2)))


def test_a_shaped_gradient_that_an_earlier_lookup_made():
    """The first lookup decides on the prefix; the second one's was held against values."""
    with nbta.Graph().as_default() as graph:
        ta = nbta.TensorArray("float64", 1, element_shape=(2,))
        first = ta.grad_with_shape("gradients", [3])
        second = ta.grad_with_shape("gradients", [1, 1])
        plain = ta.grad("gradients")
        second = second.write(0, np.ones((3, 2)))
        value = plain.read(0)
    sums, _, _ = nbta.Session(graph).run([value, first, second])
    np.testing.assert_array_equal(sums, np.ones((3, 2)))


@pytest.mark.parametrize("way", ["in machine code", "in Python"])
def test_a_result_after_a_call_that_failed(way):
    """A failed call left the room it had grown for a result, and a later call gave that out.

    The later call wrote the result into the array it was given, as that was large enough, but
    another result was not, so that the room of the failed call was taken for this one.
    """

    def f(x, k):
        return nbta.one_hot(k, 3), x - nbta.max(x)

    calls = [([2.0, 1.0], [0, 1]), ([], [2, 2, 2, 2]), ([4.0, 6.0, 5.0], [1, 0])]
    with ways.in_python() if way == "in Python" else nullcontext():
        pair = Pair(f, may_fall_back=True)
        for x, k in calls:
            run_it = pair if x else pair.fails
            run_it(np.array(x), np.array(k))


def test_a_second_item_after_one_that_a_function_gave_up(monkeypatch):
    """The same room, in a batch, where a thread goes on after an item that has no result."""
    calls = []
    for name in ("forget_results", "clean"):
        own = getattr(Workspace, name)
        recorded = lambda work, name=name, own=own: (calls.append(name), own(work))[1]  # noqa: E731
        monkeypatch.setattr(Workspace, name, recorded)
    pick = lambda w, x: nbta.sum(w * x[nbta.cast(x[0], np.int64)])  # noqa: E731
    f = nbta.grad(pick, batch_axis=(None, 0), compiled=True)
    with pytest.raises(nbta.InvalidArgumentError, match="5"):
        f(1.0, [np.ones(2), np.full(4, 5.0), np.ones(3)])
    assert calls.count("forget_results") > calls.count("clean")  # which calls it too


@pytest.mark.parametrize("indices", [[2, 4, 2], [2, 3, 2], [2, 2], [4, 2, 4], [0, 9, 0]])
def test_a_gather_past_the_end_reads_a_clearing_slot_once(indices):
    """Room was made slot by slot, and what was noted of slots past the end was lost with it."""
    gradients = nbta.TensorArray("float64", 2, element_shape=(3,)).grad("gradients")
    with pytest.raises(nbta.InvalidArgumentError, match="was cleared"):
        gradients.gather(indices)
    assert (gradients.size(), gradients._states().tolist()) == (2, [0, 0])


@pytest.mark.parametrize("indices", [[2, 4], [2, 3, 9, 40], [7]])
def test_a_gather_past_the_end_of_ragged_gradients(indices):
    """The zeros made there were lost where the room grew on, and reading them was no access."""
    ta = nbta.TensorArray("float64", 2, infer_shape=False, element_shape=(None,))
    gradients = ta.write(0, np.ones(1)).write(1, np.ones(2)).grad("gradients")
    gradients = gradients.write(0, np.ones(1)).write(1, np.ones(2))
    found = gradients.gather(indices, element_shape=(3,))
    np.testing.assert_array_equal(found, np.zeros((len(indices), 3)))
    assert gradients.size() == max(indices) + 1
    np.testing.assert_array_equal(gradients.read(1), np.ones(2))


@pytest.mark.parametrize("rows", [0, 3])
def test_what_is_left_over_of_nothing(rows):
    """Compiled code knew the dimension -1 stands for, and did not refuse where NumPy cannot say."""
    pair = Pair(lambda v: nbta.sum(nbta.reshape(v, (nbta.shape(v)[0], -1))), may_fall_back=True)
    assert pair(np.ones(5)) == 5.0
    if rows:
        assert pair(np.ones(rows)) == rows
    else:
        assert "cannot reshape" in pair.fails(np.ones(0))


def test_a_scatter_of_no_rows_decides_no_shape():
    """A graph took the shape of rows that were not there for that of all elements."""
    with nbta.Graph().as_default() as graph:
        ta = nbta.TensorArray("float64", 3)
        ta = ta.scatter(np.zeros(0, np.int32), np.zeros((0, 1))).write(1, np.ones(3))
        value = ta.read(1)
    np.testing.assert_array_equal(nbta.Session(graph).run(value), np.ones(3))
