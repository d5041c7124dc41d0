"""Effects, views, copies and names: what Python gives, or a clear error; never another number."""

import copy

import frontend_checks as checks
import frontend_corners as corners
import numpy as np
import pytest
from frontend_checks import wrong_today

#: Programs that give another number today, or an exception that is not nbta's, and what they do.
WRONG = {}
#: Programs that are refused today, with words of the error. One that begins to work fails here.
NOT_YET = {
    "counted_by_an_iterator": r"next\(\) of an iterator",
    "counted_by_a_set": "a value that only the run knows is looked up in a set",
    "counted_by_a_dict": "a value that only the run knows is looked up in a dict",
    "counted_by_text": "the text of a value",
    "added_lists": "a list that each iteration of a loop makes anew is changed",
    "cleared_list": "the number of items of a list is",
    "caught": "this line raises ValueError in this run",
    "same_object": "whether two arrays are the same",
    "reshaped_copies": "make one of the two a copy",
    "view_that_a_loop_carries": "make one of the two a copy",
    "views_that_are_swapped": "make one of the two a copy",
    "functions_that_give_copies": "make one of the two a copy",
    "rows_of_computed_arrays_at_a_traced_place": "make one of the two a copy",
    "row_at_a_traced_place_that_is_written": "make one of the two a copy",
    "parts_that_are_written": "make one of the two a copy",
    "array_that_is_kept_and_changed": "an item of a list .*make one of the two a copy",
    "names_that_operands_bind": r":=. in an operand after .and., .* assign the name",
    "names_that_ways_bind": ":=. in a conditional expression",
    "chained_conditional_expressions": "make both numbers",
    "array_of_the_module_that_is_written": "give it as an argument",
    "a_class_of_numbers_in_a_dict": "use if and isinstance",
    "array_of_no_axes_under_two_names": "an array without axes, .* begin with a number",
    "array_of_no_axes_of_two": "an array without axes, .* begin with a number",
    "truth_values_added": r"the sum of two truth values .*int\(a\) \+ int\(b\)",
    "truth_values_added_to_one_of_python": "the sum of two truth values",
}
EACH = [
    pytest.param(f, id=f.__name__, marks=wrong_today(WRONG, f.__name__))
    for f in corners.CORNERS
    if f.__name__ not in NOT_YET
]


@pytest.fixture(autouse=True)
def _module_as_it_was():
    yield
    corners.BUFFER[:] = 0.0


@pytest.mark.parametrize("f", EACH)
def test_right(f):
    checks.check_of_an_array(f, corners.X, compiled=False)


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize("f", EACH)
def test_right_in_generated_code(f):
    checks.check_of_an_array(f, corners.X, compiled=True)


@pytest.mark.usefixtures("long_loops")
@pytest.mark.parametrize("name", NOT_YET)
def test_refused(name):
    checks.check_refused(getattr(corners, name), corners.X, NOT_YET[name])


def test_all_run_in_python():
    for f in corners.CORNERS:
        before = copy.deepcopy(corners.X)
        assert np.isfinite(f(before.copy())), f
