"""Iterators that are taken in parts: exact, or refused, as each item is given once."""

import itertools

import numpy as np
import pytest

import nbta
from nbta.errors import NbtaError

A = np.arange(1.0, 8.0)


def yielded(x):
    for k in range(7):
        yield x * (k + 1)


class Own:
    """A user's iterator."""

    def __init__(self, x):
        self.x, self.k = x, 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.k == 7:
            raise StopIteration
        self.k += 1
        return self.x * self.k


MAKERS = {
    "generator": yielded,
    "generator expression": lambda x: (x * a for a in A),
    "some of a generator expression": lambda x: (x * a for a in A if a * x > 3.0),
    "iter of a list": lambda x: iter([x * a for a in A]),
    "iter of an array": lambda x: iter(x * A),
    "enumerate": lambda x: enumerate(x * A),
    "zip": lambda x: zip(A, x * A, strict=True),
    "zip of lists": lambda x: zip(range(7), [x * a for a in A], strict=True),
    "map": lambda x: map(x.__mul__, A),
    "reversed": lambda x: reversed(x * A),
    "reversed range": lambda x: reversed(range(7)),
    "islice": lambda x: itertools.islice(yielded(x), 1, 6, 2),
    "ndenumerate": lambda x: np.ndenumerate(x * A),
    "a user's class": Own,
}
#: Those whose rest Python knows, so that a loop that Python ends may be gone on with.
PYTHONS = {
    "generator expression",
    "iter of a list",
    "iter of an array",
    "zip of lists",
    "map",
    "a user's class",
}


def last(item):
    return last(item[-1]) if isinstance(item, tuple) else item


def whole(items, x):
    total = 0.0 * x
    for item in items:
        total += last(item) * x
    for item in items:
        total += 100.0 * last(item)
    return total


def by_known_break(items, x):
    total, count = 0.0 * x, 3
    for item in items:
        total += last(item) * x
        count -= 1
        if count == 0:
            break
    for item in items:
        total += 100.0 * last(item)
    return total


def by_break(items, x):
    total = 0.0 * x
    for item in items:
        total += last(item) * x
        if total > 6.0:
            break
    for item in items:
        total += 100.0 * last(item)
    return total


def rest_as_list(items, x):
    total = 0.0 * x
    for item in items:
        total += last(item)
        if total > 6.0:
            break
    return total + sum([last(item) for item in items])


def after_the_first(items, x):
    total = last(next(items)) * x
    for item in items:
        total += 10.0 * last(item)
    return total


def in_branches(items, x):
    total = 0.0 * x
    if x > 1.0:
        for item in items:
            total += last(item)
    else:
        for item in items:
            total -= last(item)
    return total


def after_a_branch(items, x):
    total = in_branches(items, x)
    for item in items:
        total += 100.0 * last(item)
    return total


def in_each_iteration(items, x):
    total = 0.0 * x
    for _ in range(30):
        total += x
        for item in items:
            total += last(item)
    return total


def some(items, x):
    return sum(last(item) for item in itertools.islice(items, 3)) + sum(map(last, items))


def after_any(items, x):
    return any(last(item) > 3.0 for item in items) * x + sum(last(item) for item in items)


def after_a_search(items, x):
    return (5.0 * x in items) * x + sum(last(item) for item in items)


WAYS = [
    after_any, after_a_search, whole, by_known_break, by_break, rest_as_list, after_the_first,
    in_branches, after_a_branch, in_each_iteration, some,
]  # fmt: skip


def found(way, maker, x):
    """The value; None where it is refused."""
    try:
        return float(nbta.value_and_grad(lambda x: way(MAKERS[maker](x), x))(x)[0])
    except NbtaError:
        return None


@pytest.mark.parametrize("maker", MAKERS)
def test_exact_or_refused(maker):
    refused = set()
    for way in WAYS:
        value = found(way, maker, 1.5)
        if value is None:
            refused.add(way)
        else:
            assert value == pytest.approx(way(MAKERS[maker](1.5), 1.5), rel=1e-12), way
    assert by_break in refused
    assert rest_as_list in refused
    assert (by_known_break in refused) == (maker not in PYTHONS)
    assert whole not in refused or maker.startswith("some")


#: Iterators that take items of another one.
WRAPPERS = {
    "enumerate": enumerate,
    "zip": lambda items: zip(range(5), items),  # noqa: B905
    "zip before": lambda items: zip(items, range(5)),  # noqa: B905
    "twice": lambda items: zip(items, items, strict=False),
    "map": lambda items: map(last, items),
    "islice": lambda items: itertools.islice(items, 4),
    "chain": lambda items: itertools.chain(items, [1.0]),
    "takewhile": lambda items: itertools.takewhile(lambda _: True, items),
    "generator expression": lambda items: (last(item) for item in items),
    "some of them": lambda items: (last(item) for item in items if last(item) > 0.0),
    "iter": iter,
}


def whole_of(wrapper, items, x):
    total = 0.0 * x
    for item in wrapper(items):
        total += last(item) * x
    return total + 100.0 * sum(map(last, items))


def some_of(wrapper, items, x):
    total = 0.0 * x
    for item in wrapper(items):
        total += last(item) * x
        if total > 6.0:
            break
    return total + 100.0 * sum(map(last, items))


def first_of(wrapper, items, x):
    return last(next(wrapper(items))) * x + 100.0 * sum(map(last, items))


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("maker", ["generator", "generator expression", "iter of a list", "zip"])
def test_what_others_take_is_exact_or_refused(maker):
    exact = set()
    for name, wrapper in WRAPPERS.items():
        for way in (whole_of, some_of, first_of):
            value = found(lambda items, x, w=wrapper, way=way: way(w, items, x), maker, 1.5)
            if value is not None:
                expected = way(wrapper, MAKERS[maker](1.5), 1.5)
                assert value == pytest.approx(expected, rel=1e-12), (name, way)
                exact.add((name, way))
    assert not exact & {(name, some_of) for name in WRAPPERS}
    assert ("takewhile", whole_of) in exact


@pytest.mark.parametrize("maker", ["enumerate", "zip", "reversed", "ndenumerate"])
def test_branches_go_along_an_iterator_from_before(maker):
    for x in (1.5, 0.5):
        expected = in_branches(MAKERS[maker](x), x)
        assert found(in_branches, maker, x) == pytest.approx(expected, rel=1e-12)
    assert found(after_a_branch, maker, 1.5) is None


def test_what_is_left_is_named_in_the_error():
    with pytest.raises(nbta.UnimplementedError, match="what is left of an iterator after a loop"):
        nbta.value_and_grad(lambda x: by_break(yielded(x), x))(1.5)


def root(a):
    x = a
    for k in itertools.count(3, 2):
        step = (x * x - a) / (2.0 * x)
        x = x - step
        if abs(step) < 1e-13:
            return x * k
    return x


def test_count_goes_on_until_a_break():
    value, gradient = nbta.value_and_grad(root)(2.0)
    steps = root(2.0) / 2.0**0.5
    assert value == root(2.0)
    assert gradient == pytest.approx(steps / 2.0 / 2.0**0.5, rel=1e-9)


def test_a_cycle_without_end_is_refused():
    def total(x):
        found = x
        for sign in itertools.cycle([1.0, -2.0]):
            found += sign * x
            if found < -20.0:
                break
        return found

    with pytest.raises(nbta.UnimplementedError, match="a loop over itertools"):
        nbta.grad(total)(3.0)


@pytest.mark.parametrize("bounds", [(0, 5, 2), (5, 2), (None, 4, None), (0, 0), (2, 9, 3)])
def test_islice_takes_what_pythons_takes(bounds):
    def total(x):
        return sum(v * v for v in itertools.islice(yielded(x), *bounds)) + x

    assert nbta.grad(total)(1.5) == pytest.approx(2.0 * (total(1.5) - 1.5) / 1.5 + 1.0)


@pytest.mark.parametrize("bounds", [(-1, 4), (0, -4), (0, 4, 0)])
def test_islice_refuses_what_pythons_refuses(bounds):
    with pytest.raises(ValueError, match=r"islice\(\) must be"):
        nbta.grad(lambda x: sum(itertools.islice(yielded(x), *bounds)) + x)(1.5)


@pytest.mark.parametrize("first", [False, True])
def test_columns_grow_while_a_generator_is_zipped_with_them(first):
    def total(x):
        rows, found = [x], 0.0 * x
        for pair in zip(yielded(x), rows) if first else zip(rows, yielded(x)):  # noqa: B905
            found += pair[0] * pair[1]
            if len(rows) < 6:
                rows.append(pair[0] + pair[1])
        return found

    assert float(nbta.value_and_grad(total)(1.5)[0]) == pytest.approx(total(1.5))
