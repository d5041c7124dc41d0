"""check_flow: races that are there are found, and nothing else is."""

import numpy as np
import pytest

import nbta
from nbta import raw_ops
from nbta.inspect.flow_check import Race, UnusedWrite


@pytest.fixture
def graph():
    with nbta.Graph().as_default() as made:
        yield made


def array(size=3, clear_after_read=False, **options):
    options = {"element_shape": (), "name": "states", **options}
    return nbta.TensorArray("float64", size, clear_after_read=clear_after_read, **options)


def races():
    """Names and slots of all races; unused writes left out."""
    found = [finding for finding in nbta.check_flow() if isinstance(finding, Race)]
    return [(race.first.name, race.second.name, race.slots) for race in found]


def unused():
    return [f.op.name for f in nbta.check_flow() if isinstance(f, UnusedWrite)]


def index():
    return nbta.placeholder("int32", (), name="i")


# Races between two operations.


def test_a_read_that_does_not_know_of_a_write(graph):
    ta = array()
    ta.write(0, 1.0, name="write")
    ta.read(0, name="read")
    assert races() == [("write", "read", (0,))]
    race, lost = nbta.check_flow(graph)
    assert str(race) == (
        "'write' (TensorArrayWriteV3) and 'read' (TensorArrayReadV3) both touch slot 0, and no "
        "flow, data or control edge orders them"
    )
    assert str(lost) == ("nobody uses the flow of 'write' (TensorArrayWriteV3): it may never run")


PAIRS = {
    "write and write": (lambda t: t.write(0, 1.0), lambda t: t.write(0, 2.0), (0,)),
    "write and unknown write": (lambda t: t.write(0, 1.0), lambda t: t.write(index(), 2.0), None),
    "write and gather": (lambda t: t.write(1, 1.0), lambda t: t.gather([2, 1]), (1,)),
    "write and stack": (lambda t: t.write(1, 1.0), lambda t: t.stack(), None),
    "write and concat": (lambda t: t.write(1, 1.0), lambda t: t.concat(), None),
    "scatter and read": (lambda t: t.scatter([0, 2], [1.0, 2.0]), lambda t: t.read(2), (2,)),
    "scatter and scatter": (
        lambda t: t.scatter([0, 2, 1], [1.0, 2.0, 3.0]),
        lambda t: t.scatter([2, 1], [1.0, 2.0]),
        (1, 2),
    ),
    "unstack and read": (lambda t: t.unstack(np.ones(3)), lambda t: t.read(2), None),
    "write and lookup": (lambda t: t.write(1, 1.0), lambda t: t.grad("g"), None),
    "write and close": (lambda t: t.write(1, 1.0), lambda t: t.close(), None),
    "read and close": (lambda t: t.read(1), lambda t: t.close(), None),
    "lookup and close": (lambda t: t.grad("g"), lambda t: t.close(), None),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_two_operations_race(graph, pair):
    first, second, slots = PAIRS[pair]
    ta = array()
    first(ta), second(ta)
    found = [r for r in nbta.check_flow() if isinstance(r, Race)]
    assert [race.slots for race in found] == [slots]
    assert found[0].first.number < found[0].second.number
    assert ("may touch one slot" in str(found[0])) == (slots is None)


PEACEFUL = {
    "two slots": (lambda t: t.write(0, 1.0), lambda t: t.write(1, 2.0)),
    "disjoint scatters": (lambda t: t.scatter([0], [1.0]), lambda t: t.scatter([2, 1], [1.0, 2.0])),
    "a write and a gather of others": (lambda t: t.write(0, 1.0), lambda t: t.gather([2, 1])),
    "reads": (lambda t: t.read(0), lambda t: t.read(0)),
    "reads of unknown slots": (lambda t: t.read(index()), lambda t: t.stack()),
    "lookups": (lambda t: t.grad("g"), lambda t: t.grad("h")),
    "a lookup and a read": (lambda t: t.grad("g"), lambda t: t.read(0)),
    "size": (lambda t: t.size(), lambda t: t.read(0)),
}


@pytest.mark.parametrize("pair", PEACEFUL)
def test_two_operations_do_not_race(graph, pair):
    ta = array()
    for operation in PEACEFUL[pair]:
        operation(ta)
    assert races() == []


@pytest.mark.parametrize(("slots", "found"), [((0, 0), [("first", "second", (0,))]), ((0, 1), [])])
def test_reads_that_clear_race(graph, slots, found):
    ta = array(clear_after_read=True).unstack(np.ones(3))
    for slot, name in zip(slots, ("first", "second"), strict=True):
        ta.read(slot, name=name)
    assert races() == found


def test_two_arrays_do_not_race(graph):
    one, other = array(), array(name="others")
    one.write(0, 1.0), other.read(0), other.write(0, 1.0)
    assert len(races()) == 1


def test_gradients_of_older_names_look_up_what_an_earlier_lookup_made(graph):
    x = nbta.placeholder("float64", (), name="x")
    first = array().write(0, x)
    both = first.write(1, first.read(0) * x)
    nbta.gradients(both.read(0) + both.read(1), [x])
    assert nbta.check_flow() == []


def test_an_earlier_lookup_of_another_source_decides_nothing(graph):
    ta = array()
    ta.write(1, 1.0, name="write").grad("g")
    ta.grad("h")
    assert [pair[:2] for pair in races()] == [("write", "TensorArrayGradV3_1")]


# What orders two operations.


def test_flow_orders(graph):
    ta = array().write(0, 1.0).write(1, 2.0)
    ta.read(0)
    ta.identity().read(1)
    assert nbta.check_flow() == []


def test_data_orders(graph):
    ta = array()
    value = ta.read(0)
    ta.write(0, value * 2.0, name="write")
    assert races() == []
    assert unused() == ["write"]


def test_control_edges_order(graph):
    ta = array()
    write = ta.write(0, 1.0).flow
    with nbta.control_dependencies([nbta.identity(write)]):
        ta.read(0)
    assert nbta.check_flow() == []
    ta.read(0, name="late").op.add_control_input(write.op)
    assert nbta.check_flow() == []


def test_an_array_by_another_handle(graph):
    ta = array()
    raw_ops.TensorArrayWriteV3(nbta.identity(ta.handle), 0, 1.0, ta.flow, name="write")
    ta.read(0, name="read")
    assert races() == [("write", "read", (0,))]


# Gradient arrays.


def test_additions_commute(graph):
    sums = array().write(0, 1.0).grad("g")
    flows = [sums.write(0, 1.0).flow, sums.write(0, 2.0).flow, sums.scatter([0], [3.0]).flow]
    assert races() == []
    sums.read(0, name="read")
    assert [(b, s) for _, b, s in races()] == [("read", (0,))] * 3
    nbta.add_n(flows)
    assert unused() == []


def test_gradient_arrays_of_one_source_are_one(graph):
    ta = array().write(0, 1.0)
    ta.grad("g").write(0, 1.0, name="add")
    ta.grad("g").read(0, name="read")
    ta.grad("h").read(0, name="elsewhere")
    ta.read(0, name="forward")
    assert races() == [("add", "read", (0,))]


# Bodies.


def loop(body, *first, name="loop"):
    return nbta.while_loop(lambda i, *_: i < 3, body, (0, *first), name=name)


def test_a_race_in_a_body(graph):
    def body(i, ta):
        new = ta.write(i, 1.0, name="write")
        ta.read(i, name="read")
        return i + 1, new

    loop(body, array())
    assert races() == [("loop/body/write", "loop/body/read", None)]


def test_a_race_of_an_array_that_a_body_makes(graph):
    def body(i):
        ta = array()
        ta.write(0, 1.0, name="write")
        return i + 1, nbta.cast(ta.read(0, name="read"), "int64") + i

    nbta.while_loop(lambda i, _: i < 3, lambda i, _: body(i), (0, 0), name="loop")
    assert races() == [("loop/body/write", "loop/body/read", (0,))]


def test_a_race_in_a_branch(graph):
    ta = array()

    def true_fn():
        ta.write(0, 1.0, name="write")
        return ta.read(0, name="read")

    nbta.cond(nbta.placeholder("bool", ()), true_fn, lambda: 0.0, name="pick")
    assert races() == [("pick/true_fn/write", "pick/true_fn/read", (0,))]


def test_a_captured_array_is_touched_by_the_loop(graph):
    ta = array()
    loop(lambda i, s: (i + 1, s + ta.read(i)), 0.0)
    after = ta.write(0, 1.0, name="write")
    assert races() == [("loop", "write", None)]
    loop(lambda i, s: (i + 1, s + after.read(i)), 0.0, name="good")
    assert races() == [("loop", "write", None)]


def test_two_bodies_of_one_array(graph):
    ta = array()
    write = lambda i, t: (i + 1, t.write(i, 1.0))  # noqa: E731
    first = loop(write, ta, name="first")[1]
    loop(write, ta, name="second")
    loop(lambda i, s: (i + 1, s + first.read(i)), 0.0, name="third")
    assert races() == [("first", "second", None), ("second", "third", None)]


def test_a_body_in_a_body(graph):
    ta = array()

    def outer(i, s):
        return i + 1, s + loop(lambda j, r: (j + 1, r + ta.read(j)), 0.0, name="inner")[1]

    loop(outer, 0.0, name="outer")
    ta.write(0, 1.0, name="write")
    assert races() == [("outer", "write", None)]


def test_a_captured_gradient_array(graph):
    ta = array().write(0, 1.0)
    loop(lambda i, f: (i + 1, ta.grad("g").write(i, 1.0).flow), ta.flow, name="adds")
    ta.grad("g").write(0, 1.0, name="add")
    assert races() == []
    ta.grad("g").read(0, name="read")
    assert [pair[:2] for pair in races()] == [("adds", "read"), ("add", "read")]


# Unused writes.


def test_writes_that_nobody_waits_for(graph):
    ta = array()
    ta.write(0, 1.0, name="lost")
    kept = ta.write(1, 1.0, name="kept")
    waited = ta.write(2, 1.0, name="waited")
    kept.read(1)
    with nbta.control_dependencies([waited.flow]):
        nbta.identity(1.0)
    assert unused() == ["lost"]


def test_the_flow_that_a_body_gives_is_used(graph):
    loop(lambda i, t: (i + 1, t.write(i, 1.0)), array())
    nbta.cond(nbta.placeholder("bool", ()), array().unstack(np.ones(3)).stack, lambda: np.ones(3))
    assert nbta.check_flow() == []


def test_a_lost_write_in_a_body(graph):
    ta = array()

    def body(i):
        ta.write(i, 1.0, name="lost")
        return i + 1

    nbta.while_loop(lambda i: i < 3, body, 0 * index(), name="loop")
    assert unused() == ["loop/body/lost"]


# What nbta builds itself.


def rnn(x, w):
    def step(h, v):
        new = nbta.tanh(h * w + v)
        return new, new

    return nbta.scan(step, nbta.constant(0.0), x)


BUILT = {
    "scan": lambda x, w: nbta.sum(rnn(x, w)[1]),
    "reverse scan": lambda x, w: nbta.scan(lambda c, v: (c * v + w, c), 1.0, x, reverse=True)[0],
    "map_fn": lambda x, w: nbta.sum(nbta.map_fn(lambda v: nbta.sin(v * w), x)),
    "foldr": lambda x, w: nbta.foldr(lambda a, v: a * w + v, x),
    "array": lambda x, w: nbta.sum(array(clear_after_read=True).unstack(x).read(0) * w),
    "split": lambda x, w: nbta.sum(
        array(2, element_shape=(None,), infer_shape=False).split(x, [1, 2]).concat().value * w
    ),
    "loop over an array": lambda x, w: loop(
        lambda i, s, t: (i + 1, s + w * x[i], t.write(i, s * s)), 0.0, array()
    )[2].gather([2, 0, 0])[1],
    "captured array": lambda x, w: (
        lambda t: loop(lambda i, s: (i + 1, s * w + t.read(i)), 0.0)[1]
    )(array().unstack(x)),
    "branch": lambda x, w: nbta.cond(w > 0, lambda: rnn(x, w)[0], lambda: nbta.sum(x) * w),
    "branch with an array": lambda x, w: (
        lambda t: nbta.cond(w > 0, lambda: t.write(0, w), lambda: t.write(0, x[0])).read(0)
    )(array()),
    "loop in a loop": lambda x, w: nbta.foldl(
        lambda a, v: a + nbta.foldl(lambda b, u: b * w + u * v, x), x
    ),
}


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("name", BUILT)
def test_nothing_is_found_in_what_nbta_builds(graph, name, order):
    x = nbta.placeholder("float64", (3,), name="x")
    w = nbta.placeholder("float64", (), name="w")
    result = BUILT[name](x, w)
    for _ in range(order):
        grads = nbta.gradients(result, [x, w], unconnected="zero")
        result = nbta.add_n([nbta.sum(grad * grad) for grad in grads])
    assert nbta.check_flow(graph) == []
    assert np.isfinite(nbta.Session(graph).run(result, {x: [0.5, -0.25, 0.75], w: 0.5}))


def test_a_gradient_by_an_array_is_in_order(graph):
    ta = array().unstack(nbta.placeholder("float64", (3,), name="x"))
    (sums,) = nbta.gradients(nbta.sum(ta.stack()) * ta.read(0), [ta])
    sums.stack()
    assert nbta.check_flow() == []


def test_a_graph_is_needed():
    with pytest.raises(nbta.InvalidArgumentError, match="check_flow: no graph is being built"):
        nbta.check_flow()
