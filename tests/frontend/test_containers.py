"""Lists, dicts, deques, iterators and objects that change: what Python gives, or a clear error."""

import copy
import operator

import frontend_checks as checks
import frontend_containers as containers
import numpy as np
import pytest

import nbta

#: Programs that are refused, with words of the error. One that begins to work fails here.
NOT_YET = {
    "counter_that_begins_empty": r"dict\['a'\] is given a value, or deleted",
    "order_that_iterations_change": "a loop keeps the number of items, the keys and their order",
    "set_that_loses_and_finds": "a loop keeps the number of items, the keys and their order",
    "userlist_that_grows": "a loop keeps the number of items",
    "chained_maps": r"dict\['a'\] is given a value, or deleted",
    "bytes_that_count": "the items of a bytearray are",
    "set_joined_in_place": "a value that only the run knows is looked up in a set",
    "list_of_an_object_replaced_and_changed": r"list\[0\] is assigned, and only the run",
    "dict_filled_by_setdefault": r"dict\['n'\] is given a value, or deleted",
    "list_changed_and_replaced": r"change a copy, such as list\(items\)",
    "two_lists_swapped": r"change a copy, such as list\(items\)",
    "list_under_two_names_replaced": r"change a copy, such as list\(items\)",
    "rows_in_another_order": r"change a copy, such as list\(items\)",
    "best_list_so_far": r"change a copy, such as list\(items\)",
    "best_dict_so_far": r"dict\['a'\] is assigned, and only the run",
    "order_by_pop": "a loop keeps the number of items, the keys and their order",
    "order_by_del": "a loop keeps the number of items, the keys and their order",
    "iterator_of_before": "advances an iterator that was made before it",
    "zip_of_before": "advances an iterator that was made before it",
    "map_of_before": "advances an iterator that was made before it",
    "generator_expression_of_before": "advances an iterator that was made before it",
    "iterator_made_a_list": "advances an iterator that was made before it",
    "enumerate_of_before": "advances an iterator that was made before it",
    "iterator_in_a_branch": "advances an iterator that was made before it",
    "iterator_of_a_class_of_before": "advances an iterator that was made before it",
    "iterator_of_a_class_that_the_run_ends": "only the run knows where this iterator ends",
}
EACH = [f for f in containers.CONTAINERS if f.__name__ not in NOT_YET]


@pytest.mark.parametrize("f", EACH, ids=lambda f: f.__name__)
def test_right(f):
    checks.check_of_an_array(f, containers.X, compiled=False)


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize("f", EACH, ids=lambda f: f.__name__)
def test_right_in_generated_code(f):
    checks.check_of_an_array(f, containers.X, compiled=True)


@pytest.mark.usefixtures("long_loops")
@pytest.mark.parametrize("name", NOT_YET)
def test_refused(name):
    checks.check_refused(getattr(containers, name), containers.X, NOT_YET[name])


@pytest.mark.parametrize("name", NOT_YET)
def test_right_or_refused_in_short_loops(name):
    """Where Python makes the iterations, what it gives is right."""
    f = getattr(containers, name)
    try:
        nbta.function(f, compiled=False)(containers.X.copy())
    except nbta.NbtaError:
        return checks.check_refused(f, containers.X, NOT_YET[name])
    return checks.check_of_an_array(f, containers.X, False)


def test_what_a_function_is_given_stays_as_it_is_if_that_does_not_change_it():
    class Kept(dict):
        def clear(self):
            raise AssertionError("others may use it")

    kept = {"names": Kept(a=1)}

    def f(x):
        return x.sum() * len(copy.copy(kept)) + operator.length_hint(kept["names"])

    names = kept["names"]
    assert nbta.function(f)(containers.X) == f(containers.X)
    assert kept["names"] is names
    assert names == {"a": 1}


def test_an_array_from_outside_is_not_changed_by_a_function():
    outside = np.arange(4.0)

    def f(x):
        np.random.default_rng(0).shuffle(outside)
        return x.sum() * outside[0]

    with pytest.raises(nbta.InvalidArgumentError, match="outside is from outside of the function"):
        nbta.function(f)(containers.X)
    assert np.array_equal(outside, np.arange(4.0))
