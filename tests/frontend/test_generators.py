"""Generators of users: what Python gives, or a clear error."""

import frontend_checks as checks
import frontend_generators as generators
import pytest

import nbta

#: Programs that are refused, with words of the error. One that begins to work fails here.
NOT_YET = {
    "of_before_the_loop": "a generator that was made before it",
    "asked_for_the_next": r"next\(\) of a generator",
    "sent_values": "a generator that is sent values",
    "as_a_tuple": "only the run knows how many items this tuple has",
}
EACH = [f for f in generators.PROGRAMS if f.__name__ not in NOT_YET]


@pytest.mark.parametrize("f", EACH, ids=lambda f: f.__name__)
def test_right(f):
    checks.check_of_an_array(f, generators.X, compiled=False)


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize("f", EACH, ids=lambda f: f.__name__)
def test_right_in_generated_code(f):
    checks.check_of_an_array(f, generators.X, compiled=True)


@pytest.mark.usefixtures("long_loops")
@pytest.mark.parametrize("name", NOT_YET)
def test_refused(name):
    checks.check_refused(getattr(generators, name), generators.X, NOT_YET[name])


def test_a_generator_itself_is_no_function_of_a_graph():
    with pytest.raises(nbta.UnimplementedError, match="is a generator; return a list"):
        nbta.function(generators.running)(generators.X)


def test_a_list_of_a_generator_without_an_end_ends():
    def without_an_end(x):
        def halves(v):
            while True:
                yield v
                v = v * 0.5

        return sum(list(halves(1.0))) * x[0]

    with pytest.raises(nbta.UnimplementedError, match="of more than 100000 items"):
        nbta.function(without_an_end)(generators.X)


def test_a_generator_without_a_source_is_gone_along_as_it_is():
    names = {}
    exec("def twice(x):\n    yield x\n    yield x * 2.0", names)  # no source

    def both(x):
        return sum(each.sum() for each in names["twice"](x))

    assert nbta.function(both)(generators.X) == pytest.approx(3.0 * generators.X.sum())
