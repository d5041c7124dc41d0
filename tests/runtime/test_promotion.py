"""Arrays whose fields lie in registers in a loop: what else touches the same array meanwhile.

Each program runs as Python with eager arrays, and compiled; both must give the same, errors and
their messages among it.
"""

import re

import numpy as np
import pytest
from numba import njit, objmode, prange
from numba.core.runtime import _nrt_python, rtsys

import nbta
from nbta.errors import NbtaError
from nbta.runtime import python_calls
from nbta.runtime.extension import unchecked_functions
from nbta.runtime.fields import PromotedType


def growing(dtype=np.float64, shape=(), **options):
    """An empty array that grows."""
    return nbta.TensorArray(
        dtype, dynamic_size=True, element_shape=shape, tensor_array_name="subject", **options
    )


def sized(count, shape=(), **options):
    """An array of so many slots."""
    return nbta.TensorArray(
        np.float64, size=count, element_shape=shape, tensor_array_name="subject", **options
    )


def promoted(function):
    """How many arrays of a compiled function have their fields in local variables."""
    (result,) = function.overloads.values()
    kinds = result.type_annotation.typemap.items()
    return sum(isinstance(kind, PromotedType) for name, kind in kinds if "nbta_fields" in name)


def outcome(function, arguments):
    """What a function gives or raises, and what its arrays hold then; names without numbers."""
    try:
        result = function(*arguments)
    except NbtaError as error:
        result = f"{type(error).__name__}: {re.sub(r'subject_[0-9]+', 'subject', str(error))}"
    arrays = [argument for argument in arguments if isinstance(argument, nbta.TensorArray)]
    for array in arrays:
        assert python_calls.native(python_calls.guards_intact)(array._address)
    result = result.item() if isinstance(result, np.generic) else result
    return result, [contents(array) for array in arrays]


def contents(array):
    """States and elements, as far as they can be looked at."""
    try:
        size = int(array.size())
    except NbtaError as error:
        return type(error).__name__
    return [look(array, k) for k in range(size)]


def look(array, slot):
    """An element, or that there is none."""
    try:
        return np.asarray(array[slot]).tolist()
    except NbtaError as error:
        return type(error).__name__


def same(function, make, arrays):
    """Hold a compiled function against Python; ``arrays`` of it are promoted."""
    expected = outcome(function.py_func, make())
    found = outcome(function, make())
    assert promoted(function) == arrays
    assert repr(found) == repr(expected)
    return found


@njit
def append_by_two_names(a, n):
    """The second name is known to be the first."""
    b = a
    for i in range(n):
        a.append(2.0 * i)
        b.append(2.0 * i + 1)
    return a.size()


@njit
def append_to_two(a, b, n):
    """Whether these are one array shows when it runs."""
    for i in range(n):
        a.append(2.0 * i)
        b.append(2.0 * i + 1)
        a.append(0.5)
    return a[-1] + b[-2] + a.size()


@njit
def write_and_read(a, b, n):
    """What one writes the other reads."""
    total = 0.0
    for i in range(n):
        a.write(i, 1.5 * i)
        total += b.read(i)
    return total


@njit
def write_once_each(a, b, n):
    """The second write of a slot is refused, through whichever name."""
    for i in range(n):
        a.write(i, 1.0)
        if i == 3:
            b.write(i, 2.0)
    return 0


def test_two_names_of_one_array():
    assert same(append_by_two_names, lambda: (growing(), 100), 1)[0] == 200


@pytest.mark.parametrize("program", [append_to_two, write_and_read, write_once_each])
@pytest.mark.parametrize("alike", [False, True])
def test_two_arguments(program, alike):
    def make():
        a = growing()
        b = a if alike else growing()
        if not alike and program is write_and_read:
            b = b.unstack(np.arange(40.0))
        return a, b, 40

    same(program, make, 2)


@njit
def flow_through(a, n):
    """The way of TensorFlow: each write gives the array to go on with."""
    for i in range(n):
        a = a.write(i, np.full(3, float(i)))
        a = a.identity()
    return a.size()


@njit
def anew(n, m):
    """An array for each iteration of an outer loop."""
    total = 0.0
    for k in range(m):
        a = nbta.TensorArray(np.float64, dynamic_size=True, element_shape=())
        for i in range(n):
            a = a.append(float(i * k))
        for i in range(n):
            total += a.read(i)
    return total


@njit
def with_older(n, m):
    """The array of the last iteration is written to after the new one was made."""
    older = nbta.TensorArray(np.float64, dynamic_size=True, element_shape=())
    total = 0
    for k in range(m):
        newer = nbta.TensorArray(np.float64, dynamic_size=True, element_shape=())
        for i in range(n):
            older.append(float(i))
            newer.append(float(k))
        total = 10 * total + older.size()
        older = newer
    return total + older.size()


@njit
def either(a, b, n):
    """A name that may hold one array or the other."""
    for i in range(n):
        c = a if i % 3 else b
        c.append(float(i))
        a.append(-1.0)
        b.append(-2.0)
    return a.size() - b.size()


@njit
def in_tuple(a, n):
    """The array is in a tuple too."""
    both = (a, a)
    for i in range(n):
        a.append(float(i))
        both[1].append(0.5)
    return a[-1]


def test_assigned_names():
    same(flow_through, lambda: (growing(shape=(3,)), 50), 1)
    same(flow_through, lambda: (sized(40, shape=(3,)), 50), 1)


def test_made_in_a_loop():
    assert anew(30, 4) == anew.py_func(30, 4)
    assert promoted(anew) == 1
    assert with_older(2, 4) == with_older.py_func(2, 4)
    assert promoted(with_older) == 1


def test_one_of_two_arrays():
    same(either, lambda: (growing(), growing(), 60), 2)


def test_in_a_tuple():
    same(in_tuple, lambda: (growing(), 60), 1)


# Callees.


@njit
def grow_it(a):
    """A callee that appends."""
    for _ in range(40):
        a.append(7.0)


@njit
def close_it(a):
    """A callee that closes."""
    a.close()


@njit
def clear_it(a):
    """A callee that reads, which clears."""
    a.read(0)


@njit
def lock_it(a):
    """A callee that ends growth."""
    a.grad("callee")


def calling(callee):
    """A loop that calls a function with its array once."""

    @njit
    def program(a, n):
        total = 0.0
        for i in range(n):
            a.append(float(i))
            if i == 5:
                callee(a)
            total += a[-1] + a[0]
        return total

    return program


@pytest.mark.parametrize(
    ("callee", "error"),
    [(grow_it, None), (close_it, "closed"), (clear_it, "cleared"), (lock_it, "append on")],
)
def test_callees(callee, error):
    result, _ = same(calling(callee), lambda: (growing(clear_after_read=True), 20), 1)
    assert error is None or error in result


@njit
def put(a, i, value=2.0):
    """Functions that loops call become part of them."""
    if i % 3 == 0:
        return 0.0
    for _ in range(i % 2):
        a.write(i, value + i)
    return -value


@njit
def put_and_look(a, i, value):
    """With an argument by name, and one of another type."""
    total = put(a, value=value, i=i)
    return total + (a[i] if i % 3 and i % 2 else 0)


@njit
def to_the_end(a, i):
    """A function that calls itself remains one."""
    return a[i] if i >= a.size() - 1 else to_the_end(a, i + 1)


@njit(error_model="numpy")
def quotient(a, i):
    """As does one with options of its own."""
    return a[1] / (i - i)


@njit
def is_refused(a, i):
    """And one that catches exceptions."""
    try:
        a.write(i, 0.0)
    except Exception:
        return 1.0
    return 0.0


def called_in_loop(a, n, again):
    """Calls of each of them; an error where the slots are written again."""
    total = 0.0
    for i in range(n):
        total += put_and_look(a, i, i + 1) + put(a, i + 3 * n, 1.5) + to_the_end(a, n)
        if a[1] != 0.0:
            total += (1.0 if quotient(a, i) > 1e300 else 0.0) + is_refused(a, i)
    for i in range(again):
        put_and_look(a, i, 1)
    return total


@pytest.mark.slow  # Numba takes a minute for it
def test_inlined_callees():
    program = njit(called_in_loop)
    same(program, lambda: (sized(40), 8, 0), 1)
    result, _ = same(program, lambda: (sized(40), 8, 8), 1)
    assert "slot 1 holds a value" in result


@njit
def lock_in_loop(a, n):
    """A gradient lookup in the loop ends growth."""
    for i in range(n):
        a.append(1.0)
        if i == 6:
            g = a.grad("here")
            g.accumulate(i, 2.0)
    return 0


@njit
def close_in_loop(a, n):
    """The array is closed in the loop."""
    for i in range(n):
        a.append(1.0)
        if i == 6:
            a.close()
    return 0


@njit
def stack_in_loop(a, n):
    """Reads of all slots, which are cleared then."""
    total = 0.0
    for i in range(n):
        a.append(1.0)
        if i == 6:
            total += a.stack().sum()
    return total + a[n - 1]


@njit
def scatter_in_loop(a, n):
    """A kernel writes many slots."""
    for i in range(n):
        a.append(float(i))
        if i == 6:
            a.scatter([20, 22], np.ones(2))
    return a.size()


def test_other_operations():
    assert "append on" in same(lock_in_loop, lambda: (growing(), 20), 1)[0]
    assert "closed" in same(close_in_loop, lambda: (growing(), 20), 1)[0]
    same(stack_in_loop, lambda: (growing(clear_after_read=True), 20), 1)
    assert same(scatter_in_loop, lambda: (growing(), 10), 1)[0] == 26


@njit
def from_python(a, n):
    """Python changes the array in the middle of the loop."""
    for i in range(n):
        a.append(float(i))
        if i == 4:
            with objmode():
                for _ in range(30):
                    a.append(9.0)
    return a.size()


def test_python_in_a_loop():
    a = growing()
    assert from_python(a, 10) == 40
    assert np.asarray(a).tolist() == [0, 1, 2, 3, 4] + 30 * [9.0] + [5, 6, 7, 8, 9]


# Gradient arrays.


@njit
def accumulate_in(a, n):
    """Forward values and their adjoints, in one loop."""
    g = a.grad("loop", clear_after_read=False)
    h = a.grad("loop", clear_after_read=False)
    for _ in range(3):
        for i in range(n):
            g.accumulate(i, a[i])
            h.write(i, 10.0)
    total = 0.0
    for i in range(n):
        total += g.read(i)
    return total


@njit
def accumulate_after_read(a, n):
    """A slot that was read takes no more terms."""
    g = a.grad("loop")
    for i in range(n):
        g.accumulate(i, 1.0)
        g.accumulate(i, 2.0)
        if i == 5:
            g.read(i)
            g.accumulate(i, 1.0)
    return 0


@njit
def accumulate_elements(a, n, term):
    """Elements with dimensions."""
    g = a.grad("loop", clear_after_read=False)
    for _ in range(2):
        for i in range(n):
            g.accumulate(i, term)
    total = np.zeros_like(term)
    for i in range(n):
        total += g.read(i)
    return total.sum()


def written(count, shape=()):
    """An array with all slots written."""
    return sized(count, shape, clear_after_read=False).unstack(
        np.arange(float(count * np.prod(shape, dtype=int))).reshape(count, *shape)
    )


def test_gradient_arrays():
    same(accumulate_in, lambda: (written(12), 12), 3)
    assert "read" in same(accumulate_after_read, lambda: (written(12), 12), 1)[0]
    same(accumulate_elements, lambda: (written(9, (2, 3)), 9, np.ones((2, 3))), 1)


# Views, iteration, shapes.


@njit
def views_while_growing(a, n):
    """A view that was read stays as it was when the array moves."""
    a.append(np.arange(5.0))
    first = a.read(0)
    total = 0.0
    for i in range(n):
        a.append(np.full(5, float(i)))
        total += first[4] + a.read(i + 1)[2]
    return total


@njit
def iterate_and_append(a, n):
    """The array grows while it is gone through."""
    total = 0.0
    for value in a:
        total += value
        if a.size() < n:
            a.append(value + 1)
    return total


@njit
def other_shapes(a, n):
    """An element of another shape is refused in the middle."""
    for i in range(n):
        a.append(np.ones(3 if i < 7 else 4))
    return 0


@njit
def learn_shape(a, n):
    """The first write tells the shape."""
    for i in range(n):
        a.append(np.full((2, 2), float(i)))
    total = 0.0
    for i in range(n):
        total += a.read(i)[1, 1]
    return total


def test_views():
    same(views_while_growing, lambda: (growing(shape=(5,), clear_after_read=False), 300), 1)


def test_iteration():
    def make():
        return growing().append(1.0), 50

    assert same(iterate_and_append, make, 1)[0] == sum(range(51))


def test_shapes():
    result, _ = same(other_shapes, lambda: (growing(shape=(None,)), 10), 0)
    assert "shape" in result

    def make():
        return growing(shape=(None, None)), 20

    same(learn_shape, make, 1)


# What is left as it was.


@njit
def catches(a, n):
    """Exceptions are caught in the loop."""
    failed = 0
    for i in range(n):
        try:
            a.write(i // 2, float(i))
        except Exception:
            failed += 1
    return failed


@njit
def yields(a, n):
    """Whoever takes the items appends too."""
    for i in range(n):
        a.append(float(i))
        yield a.size()


def test_caught_exceptions():
    assert same(catches, lambda: (sized(10), 20), 0)[0] == 10


def test_generators():
    a = growing()
    sizes = []
    for size in yields(a, 40):
        a.append(-1.0)
        sizes.append(int(size))
    assert sizes == list(range(1, 80, 2))
    assert a.size() == 80


@njit(nogil=True)
def without_lock(a, first, n):
    """Threads write slots of their own at once."""
    for i in range(first, first + n):
        a.write(i, float(i))


@njit
def fill_part(a, first, n):
    """A loop of its own, in an iteration of a parallel one."""
    for i in range(first, first + n):
        a.write(i, float(i))
    own = nbta.TensorArray(np.float64, dynamic_size=True, element_shape=())
    for i in range(n):
        own.append(a[first + i])
    return own.size()


@njit(parallel=True)
def fill_in_parallel(a, parts, n):
    """Parallel iterations that call loops."""
    total = 0
    for k in prange(parts):
        total += fill_part(a, k * n, n)
    return total


@njit
def around_parallel_loops(a, n):
    """A loop that calls a parallel one between its own operations."""
    total = 0
    for k in range(2):
        a.write(2 * n + k, -1.0)
        if k == 0:
            total += fill_in_parallel(a, 2, n)
        total += a.size()
    return total + a[1]


def test_parallel_callees():
    same(around_parallel_loops, lambda: (sized(402), 200), 1)
    (result,) = fill_part.overloads.values()
    assert any(isinstance(kind, PromotedType) for kind in result.type_annotation.typemap.values())


def test_threads():
    from concurrent.futures import ThreadPoolExecutor

    a = sized(4000)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda k: without_lock(a, 1000 * k, 1000), range(4)))
    assert np.asarray(a).tolist() == list(range(4000))


# Versions of loops that look at many slots ahead (`nbta.runtime.loop_versions`).


def looks_ahead(function):
    """How many operations of a compiled function have a version without checks."""
    (result,) = function.overloads.values()
    kinds = result.type_annotation.typemap.values()
    return sum(getattr(kind, "typing_key", None) in unchecked_functions.values() for kind in kinds)


@njit
def write_through(a, first, n):
    """A slot that holds a value is refused, and all before it are written."""
    for i in range(first, n):
        a.write(i, 0.5 * i)
    return 0


@njit
def leave_early(a, n, last):
    """An exception, and a break, between two operations."""
    for i in range(n):
        a.append(1.0 * i)
        if i == last:
            break
        if i == 2 * last:
            raise ValueError
    for i in range(n):
        a.append(2.0 * i)
        if i == 2 * last:
            raise IndexError
    return a.size()


@njit
def add_and_read(a, b, n):
    """Sums, some of virtual zeros; what is read by one name and added by another."""
    total = 0.0
    for i in range(n):
        a.accumulate(i, 2)
    for i in range(n):
        total += b.read(i)
        a.accumulate(i, 1.0 * i)
    return total


@njit
def in_steps(a, n, step):
    """Other slots, not each time, in an inner loop, of a name that was given before."""
    k, seen = 0, np.zeros(2 * n)
    for i in range(0, n, step):
        a.write(i, 1.0)
    for i in range(0, n, step):
        if i % 3:
            k = i
            a[i]
        a[k]
    for i in range(2):
        for j in range(n, n + 40):
            a.write(j + 40 * i, 3.0)
        for j in range(n, n + 40):
            seen[j] = a[j]
            k += a[j] == 3.0
    return k + seen.sum()


@pytest.mark.parametrize("taken", [20, 1030, 2999])
def test_slots_ahead_that_are_taken(taken):
    def make():
        return sized(3000).write(taken, 1.0), 0, 3000

    assert "already" in str(same(write_through, make, 1)) or looks_ahead(write_through) == 1
    same(write_through, lambda: (growing().unstack(np.zeros(7)), 7, 3000), 1)
    same(write_through, lambda: (sized(1100), 1, 1200), 1)
    same(write_through, lambda: (sized(3), -20, 40), 1)


@pytest.mark.parametrize("n", [15, 16, 2100])
@pytest.mark.parametrize("last", [10, 1030, 5000])
def test_loops_ahead_that_are_left(n, last):
    def outcome_of(function):
        array = growing()
        try:
            found = function(array, n, last)
        except (ValueError, IndexError) as error:
            found = type(error).__name__
        return int(found) if found != "IndexError" else found, contents(array)

    assert outcome_of(leave_early) == outcome_of(leave_early.py_func)
    assert looks_ahead(leave_early) == 2


@pytest.mark.parametrize("alike", [False, True])
def test_sums_ahead(alike):
    def make():
        forward = written(1200)
        a, b = forward.grad("a"), forward.grad("b")
        a.write(1100, 3.0)
        return a, a if alike else b.write(30, 1.0), 1200

    same(add_and_read, make, 2)
    assert looks_ahead(add_and_read) == 3


@pytest.mark.parametrize("step", [1, 2, 7])
def test_steps(step):
    same(in_steps, lambda: (growing(), 1050, step), 1)


# Views that count no references (`nbta.runtime.borrowing`).


@njit
def changed_meanwhile(a, n):
    """A slot is written, and the array cleared and closed, while its views are used."""
    total = 0.0
    for i in range(n):
        zeros = a[i]
        a.write(i, np.full(2, 1.0 + i))
        element = a[i]
        total += zeros[0] + 10.0 * element[1]
        for _ in range(2):
            total += a[i // 2][0]
    element = a[0]
    a.close()
    return total + element[0]


@njit
def summed_meanwhile(g, n):
    """Terms are added to a slot of a gradient array while its views are used."""
    total = 0.0
    for i in range(n):
        before = g[i % 3]
        g.accumulate(i % 3, before)
        g.write(i % 3, np.ones(2))
        g.write(i % 3, np.ones((2, 3))[:, 1])
        g.write(i % 3, (1.0, float(i)))
        total += before[0] + 10.0 * g[i % 3][1]
    for element in g:
        total += element.sum()
    return total


@njit
def compared(a, n):
    """Earlier views of a look are in use when it gives another one."""
    total, last, other = 0.0, a[0], a[1]
    for i in range(n):
        element, second = a[i], a[i // 2]
        for k in range(len(element)):
            total += (element[k] - last[k]) * (i + 1) + second[k] * other[k]
        other, last = last, element
    for element in a:
        total += element[0] * last[1]
        last = element
    return total


@njit
def handed_out(n):
    """Views that outlive the arrays that they are of."""
    kept = np.zeros(2)
    for k in range(n):
        a = nbta.TensorArray(np.float64, size=2, element_shape=(2,))
        for i in range(2):
            a.write(i, (float(k + i), 2.0))
        for element in a:
            kept = element
        last = a[0]
    return kept, last


@pytest.mark.slow  # Numba takes a minute for these methods
def test_borrowed_views():
    same(changed_meanwhile, lambda: (sized(6, shape=(2,)), 6), 1)
    same(changed_meanwhile, lambda: (sized(6, shape=(2,), clear_after_read=True), 6), 1)
    same(summed_meanwhile, lambda: (sized(3, shape=(2,)).grad("borrowed"), 7), 1)


@pytest.mark.slow  # Numba takes half a minute for it
def test_views_one_after_another():
    """Of slots that are not written too, whose zeros each look copies; no copy is left over."""

    def make():
        array = sized(9, shape=(2,), clear_after_read=True)
        for i in range(0, 9, 2):
            array.write(i, np.array([1.0 + i, 2.0 * i]))
        return array, 9

    same(compared, make, 1)
    arguments = make()
    compared(*arguments)
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats()
    compared(*arguments)
    after = rtsys.get_allocation_stats()
    _nrt_python.memsys_disable_stats()
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free > 0


def test_views_that_outlive_their_arrays():
    kept, last = handed_out(3)
    assert (kept.tolist(), last.tolist()) == ([3, 2], [2, 2])


@njit
def over_changing(a, n, close):
    """The array grows, or is closed, while a loop goes over it."""
    total = 0.0
    for x in a:
        total += x
        if close and total > n:
            a.close()
        elif total < n:
            a.append(total)
    return total


@pytest.mark.parametrize("close", [False, True])
def test_loops_over_arrays(close):
    same(over_changing, lambda: (growing().append(1.0).append(2.0), 40, close), 1)
