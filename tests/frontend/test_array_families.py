"""An array and its gradient arrays in unmodified functions: what one name does, all see."""

import numpy as np
import pytest
from fuzz.ways import in_python

import nbta

X, H = 2.0, 1e-5


def new(size=1):
    return nbta.TensorArray("float64", size, element_shape=(), clear_after_read=False)


def growing(shape=None):
    return nbta.TensorArray(
        "float64", 0, dynamic_size=True, clear_after_read=False, element_shape=shape
    )


def second_lookup(x):
    ta = new(1)
    ta.grad("s").accumulate(0, x)
    ta.grad("s").accumulate(0, x)
    return ta.grad("s").read(0)


def lookup_in_a_loop(x):
    ta = new(1)
    for i in range(20):
        ta.grad("s").accumulate(0, x * i)
    return ta.grad("s").read(0)


def held_from_before(x):
    ta = new(1)
    g = ta.grad("s")
    for i in range(20):
        ta.grad("s").accumulate(0, x * i)
    return g.read(0)


def lookups_in_branches(x):
    ta = new(1)
    if x > 1:
        ta.grad("s").accumulate(0, x * 3)
    else:
        ta.grad("s").accumulate(0, x * 5)
    return ta.grad("s").read(0)


def lookup_with_shape(x):
    ta = new(1)
    ta.grad_with_shape("s", [2]).accumulate(0, np.ones(2) * x)
    ta.grad_with_shape("s", [2]).accumulate(0, np.ones(2) * x)
    return ta.grad_with_shape("s", [2]).read(0).sum()


def nested_sources(x):
    ta = new(1)
    ta.grad("s").grad("t").accumulate(0, x)
    ta.grad("s").grad("t").accumulate(0, x)
    return ta.grad("s").grad("t").read(0)


def an_array_chosen_by_a_branch(x):
    a = new(1)
    b = new(1)
    t = a if x > 1 else b
    t.write(0, x)
    return a.read(0) + 2 * b.read(0)


def a_gradient_array_chosen_by_a_branch(x):
    a = new(1)
    b = new(1)
    t = a.grad("s") if x > 1 else b.grad("s")
    t.accumulate(0, x)
    return a.grad("s").read(0) + 2 * b.grad("s").read(0)


def assigned_in_a_loop(x):
    ta = new(4)
    g = ta.grad("s")
    for i in range(20):
        g = ta.grad("s").accumulate(i % 4, x)
    return g.stack().sum()


def another_array_from_some_iteration_on(x):
    ta = growing()
    for i in range(20):
        ta.append(x * i)
        if i == 10:
            ta = growing()
    return ta.stack().sum()


def another_array_in_each_iteration(x):
    ta = new(2)
    for i in range(20):
        ta = new(2)
        ta.write(0, x * i)
    ta.write(1, x)
    return ta.stack().sum()


def an_array_that_a_loop_of_nbta_carries(x):
    ta = new(4)

    def body(i, ta):
        ta.grad("s").accumulate(i, x * 2)
        ta.grad("s").accumulate(i, x * 2)
        return (i + 1, ta)

    _, ta = nbta.while_loop(lambda i, ta: i < 4, body, (0, ta))
    return ta.grad("s").stack().sum()


def in_an_attribute(x):

    class C:
        pass

    c = C()
    c.a = new(1)
    for _i in range(20):
        c.a.grad("s").accumulate(0, x)
    return c.a.grad("s").read(0)


def two_sources_in_turn(x):
    ta = new(1)
    for i in range(20):
        if i % 2:
            ta.grad("a").accumulate(0, x)
        else:
            ta.grad("b").accumulate(0, x * x)
    return ta.grad("a").read(0) * ta.grad("b").read(0)


def names_that_change_places(x):
    a = new(1)
    b = new(1)
    a.write(0, x)
    b.write(0, x * x)
    for _i in range(21):
        a, b = (b, a)
    a.grad("s").accumulate(0, x)
    return a.read(0) + 2 * b.read(0) + 3 * b.grad("s").read(0) + 5 * a.grad("s").read(0)


def reads_between(x):
    ta = new(20)
    for i in range(20):
        ta.write(i, x * i)
        ta.grad("s").accumulate(i, ta.read(i))
    return (ta.grad("s").stack() * ta.stack()).sum()


def in_a_generator(x):
    ta = new(1)

    def it():
        for i in range(20):
            ta.grad("s").accumulate(0, x * i)
            yield i

    t = 0.0
    for k in it():
        t += k * x
    return t + ta.grad("s").read(0)


def in_a_list(x):
    arrs = [new(3) for _ in range(2)]

    def add(k, v):
        arrs[k].grad("g").accumulate(k, v)

    for i in range(15):
        for k in range(2):
            add(k, x * i * (k + 1))
    s = 0.0
    for a in arrs:
        s = s + (a.grad("g").stack() ** 2).sum()
    return s


def vectors(x):
    ta = nbta.TensorArray("float64", size=4, element_shape=(3,))
    v = np.arange(3.0) * x
    for i in range(4):
        for j in range(12):
            ta.grad("k").accumulate(i, v * j)
    m = ta.grad("k").stack()
    return (m @ m.T).sum()


def in_nested_loops(x):
    ta = new(6)
    for i in range(9):
        for j in range(9):
            for k in range(9):
                if (i + j + k) % 2:
                    ta.grad("n").accumulate(i * j % 6, x * k)
                else:
                    ta.grad("n").grad("m").accumulate(j % 6, x * x)
    return ta.grad("n").stack().sum() + ta.grad("n").grad("m").stack().sum()


def after_iterations_that_are_given_up(x):
    ta = new(6)
    i = 0
    while True:
        ta.grad("w").accumulate(i % 6, x * x)
        i += 1
        if i * x > 37:
            break
        if i % 4 == 1:
            continue
        ta.grad("w").accumulate(0, x)
    return ta.grad("w").stack().sum()


def given_by_a_cond(x):
    ta = new(1)
    g = ta.grad("s")
    g = nbta.cond(x > 1, lambda: g.accumulate(0, x), lambda: g.accumulate(0, x * x))
    g.accumulate(0, x)
    return ta.grad("s").read(0)


def given_by_a_scan(x):
    ta = new(8)

    def step(c, v):
        i, t = c
        return ((i + 1, t.write(i, v * x)), v)

    (_, t), _ = nbta.scan(step, (0, ta), np.arange(8.0))
    t.grad("g").accumulate(0, x)
    return t.stack().sum() + ta.grad("g").read(0)


def of_one_array_or_another(x):
    ta = new(2)
    tb = new(2)
    g = ta.grad("s")
    for i in range(20):
        g.accumulate(0, x)
        g = tb.grad("s") if i % 2 else ta.grad("s")
    return ta.grad("s").read(0) + 10 * tb.grad("s").read(0)


def of_one_source_or_another(x):
    ta = new(1)
    if x > 1:
        g = ta.grad("a")
    else:
        g = ta.grad("b")
    g.accumulate(0, x)
    return ta.grad("a").read(0) + 3 * ta.grad("b").read(0)


def looked_up_in_both_branches(x):
    ta = new(1)
    if x > 1:
        g = ta.grad("a").accumulate(0, x * x)
    else:
        g = ta.grad("a")
    g.accumulate(0, x)
    return ta.grad("a").read(0)


def arrays_that_grow_in_turn(x):
    a, b = (growing(()), growing(()))
    for i in range(12):
        a.append(x * i)
        a, b = (b, a)
    return (a.stack() ** 2).sum() + b.stack().sum()


def in_a_recursion(x):
    ta = new(1)

    def f(n):
        if n == 0:
            return
        ta.grad("r").accumulate(0, x * n)
        f(n - 1)

    f(5)
    return ta.grad("r").read(0)


def chosen_twice(x):
    a = new(1)
    b = new(1)
    c = new(1)
    t = a if x > 1 else b
    u = t if x < 5 else c
    for i in range(10):
        u.grad("z").accumulate(0, x * i)
        t.grad("z").accumulate(0, 1.0 * x)
    return a.grad("z").read(0) + 2 * b.grad("z").read(0) + c.grad("z").read(0)


def closed_in_a_branch_not_taken(x):
    ta = new(1)
    if x > 3:
        ta.close()
        ta.grad("s")
    return ta.read(0) + x


EACH = (
    second_lookup, lookup_in_a_loop, held_from_before, lookups_in_branches, lookup_with_shape,
    nested_sources, an_array_chosen_by_a_branch, a_gradient_array_chosen_by_a_branch,
    assigned_in_a_loop, another_array_from_some_iteration_on, another_array_in_each_iteration,
    an_array_that_a_loop_of_nbta_carries, in_an_attribute, two_sources_in_turn,
    names_that_change_places, reads_between, in_a_generator, in_a_list, vectors,
    in_nested_loops, after_iterations_that_are_given_up, given_by_a_cond, given_by_a_scan,
    of_one_array_or_another, of_one_source_or_another, looked_up_in_both_branches,
    arrays_that_grow_in_turn, in_a_recursion, chosen_twice, closed_in_a_branch_not_taken,
)  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", EACH)
def test_a_lookup_sees_what_was_added_before(f, compiled):
    """As in eager arrays, which Python runs the function on."""
    with in_python():
        value, slope = nbta.value_and_grad(f, compiled=compiled)(X)
    assert value == pytest.approx(f(X), rel=1e-12)
    assert slope == pytest.approx((f(X + H) - f(X - H)) / (2 * H), rel=1e-6)


@pytest.mark.parametrize(
    "f", [lookups_in_branches, lookup_in_a_loop, reads_between, in_nested_loops]
)
def test_second_derivatives(f):
    h = 2.0**-7
    expected = (f(X + h) - 2 * f(X) + f(X - h)) / h**2
    with in_python():
        assert nbta.grad(nbta.grad(f))(X) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def lookup_that_nobody_uses(x):
    ta = growing()
    ta.append(x)
    ta.grad("s")
    ta.append(x)
    return ta.stack().sum()


def lookup_in_a_branch(x):
    ta = growing()
    ta.append(x)
    if x > 1.0:
        ta.grad("s")
    ta.append(x)
    return ta.stack().sum()


def lookup_of_a_closed_array(x):
    ta = new()
    ta.close()
    ta.grad("s")
    return x


def lookup_of_an_array_closed_in_a_branch(x):
    ta = new()
    if x > 1.0:
        ta.close()
    ta.grad("s").accumulate(0, x)
    return ta.grad("s").read(0)


def closed_and_looked_up_in_a_branch(x):
    ta = new()
    if x > 1.0:
        ta.close()
        ta.grad("s")
    return x * x


def read_of_a_closed_array(x):
    ta = new()
    ta.write(0, x)
    ta.close()
    return ta.read(0)


REFUSED = {
    lookup_that_nobody_uses: "there is no slot 1",
    lookup_in_a_branch: "there is no slot 1",
    lookup_of_a_closed_array: "is closed",
    lookup_of_an_array_closed_in_a_branch: "is closed",
    closed_and_looked_up_in_a_branch: "is closed",
    read_of_a_closed_array: "is closed",
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("f", "text"), REFUSED.items())
def test_errors_of_eager_arrays(f, text, compiled):
    with pytest.raises(nbta.InvalidArgumentError, match=text):
        f(X)
    with pytest.raises(nbta.InvalidArgumentError, match=text):
        nbta.function(f, compiled=compiled)(X)


def gradient_arrays_live_on(x):
    ta = new()
    g = ta.grad("s")
    ta.close()
    g.accumulate(0, x)
    return g.read(0)


def test_gradient_arrays_of_closed_arrays_live_on():
    assert nbta.value_and_grad(gradient_arrays_live_on)(X) == (X, 1.0)


def dropped_in_a_body(x):
    ta = new(4)

    def body(i):
        ta.grad("s").accumulate(i, x)
        return i + 1

    nbta.while_loop(lambda i: i < 4, body, 0)
    return ta.grad("s").stack().sum()


def test_functions_given_to_loops_of_nbta_give_back_what_they_add_to():
    with pytest.raises(nbta.InvalidArgumentError, match="assign the result"):
        nbta.function(dropped_in_a_body)(X)


@pytest.mark.parametrize("convert", [False, True])
def test_a_dropped_addition(convert):
    """Without conversion the second lookup would miss it, so that it is refused."""
    if convert:
        assert nbta.function(second_lookup, convert=True)(X) == 4.0
        return
    with pytest.raises(nbta.InvalidArgumentError, match="assign the result"):
        nbta.function(second_lookup, convert=False)(X)
