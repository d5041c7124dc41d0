"""Arrays whose elements turn out to be of several shapes, in compiled code: tapes and users'."""

import tracemalloc

import numpy as np
import pytest
import ragged_programs
from frontend_random import built
from fuzz.ways import DisagreementError, in_python
from generated_source import outcome, tensors
from running import run

import nbta


def products(a, x):
    s = 0.0
    for i in range(1, x.shape[0]):
        v = a[:i, :i] @ x[:i]
        s += v @ v
    return s


def inner_loop(a, x):
    s = 0.0
    for i in range(1, x.shape[0]):
        v = np.exp(-a[i, :i]) * x[:i]
        for k in range(3):
            v = np.tanh(v * x[k])
        s += np.sum(v)
    return s


def kernels(a, x):
    s = 1.0
    for i in range(1, x.shape[0]):
        d = x[:i] - x[i]
        k = np.exp(-0.5 * d**2)
        s += np.sum(k * s * 0.01)
    return s


def in_place(a, x):
    y = x.copy()
    for i in range(1, x.shape[0]):
        y[:i] = np.sin(y[:i]) * y[i]
    return np.sum(y)


def householder(a, x):
    q = a.copy()
    for j in range(x.shape[0] - 1):
        v = q[j:, j].copy()
        v[0] += np.sign(v[0]) * np.sqrt(np.sum(v * v))
        v = v / np.sqrt(v @ v)
        q[j:, j:] -= 2.0 * np.outer(v, v @ q[j:, j:])
    return np.sum(np.sin(q)) + x[0]


def scratch(a, x):
    s = 0.0
    for i in range(1, x.shape[0]):
        w = np.zeros(i)
        for k in range(i):
            w[k] = x[k] * x[i]
        s += np.sum(w * w)
    return s


def sorted_sums(a, x):
    s = 0.0
    for i in range(1, x.shape[0]):
        w = np.cumsum(np.sin(x[:i]))
        s += np.max(w) + np.sort(w)[0]
    return s


def cholesky(a, x):
    n = x.shape[0]
    m = a @ a.T + n * np.eye(n)
    b = np.zeros((n, n))
    for j in range(n):
        b[j:, j] = (m[j:, j] - b[j:, :j] @ b[j, :j]) / np.sqrt(m[j, j] - b[j, :j] @ b[j, :j])
    return np.sum(np.sin(b)) + np.sum(x * x)


def one_meets_many(a, x):
    """Lengths that the run compares are 1 in some iterations."""
    y = x.copy()
    for i in range(1, x.shape[0]):
        for j in range(1, 4):
            part = np.tanh(x[:i]) * a[i, : max(1, i - j * i)]
            y[:i] += 0.1 * part * y[i]
    return np.sum(y * y)


PROGRAMS = {
    f.__name__: f
    for f in (products, inner_loop, kernels, in_place, householder, scratch, sorted_sums, cholesky,
              one_meets_many)
}  # fmt: skip


def arguments(n, dtype="float64"):
    rng = np.random.default_rng(n)
    return rng.uniform(0.2, 1.0, (n, n)).astype(dtype), rng.uniform(0.2, 1.0, n).astype(dtype)


def left_to_python(function):
    """What `explain` says that Python runs or keeps."""
    text = str(function.explain())
    found = [line for line in text.splitlines() if "Python keeps it" in line]
    return found + text.partition("operations that run in Python:")[2].splitlines()[1:]


def fallbacks(function):
    return sum(trace.runner.fallbacks for trace in function.every_trace() if trace.runner)


def held(f, n, order=1):
    """Derivatives compiled against those one by one, with nothing left to Python."""
    given = arguments(n)
    both = {kind: nbta.value_and_grad(f, argnums=(0, 1), compiled=kind) for kind in (True, False)}
    (value, slopes), (same, expected) = both[True](*given), both[False](*given)
    np.testing.assert_allclose(value, f(*given), rtol=1e-10)
    np.testing.assert_allclose(same, value, rtol=1e-12)
    for slope, other in zip(slopes, expected, strict=True):
        np.testing.assert_allclose(slope, other, rtol=1e-9, atol=1e-11)
    assert not left_to_python(both[True])
    assert not fallbacks(both[True])
    nbta.testing.check_grads(f, given, order=order, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_gradient_leaves_anything_to_python(name):
    with in_python():
        held(PROGRAMS[name], 5)


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_in_machine_code(name):
    held(PROGRAMS[name], 11)


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives(name):
    f, given = PROGRAMS[name], arguments(4)
    nbta.testing.check_grads(f, given, order=2, rtol=1e-4, atol=1e-5)

    def bend(a, x):
        return np.sum(np.sin(nbta.grad(f, argnums=1)(a, x)))

    both = [nbta.grad(bend, argnums=(0, 1), compiled=kind) for kind in (True, False)]
    with in_python():
        found = both[0](*given)
    for one, other in zip(found, both[1](*given), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)
    assert not left_to_python(both[0])
    assert not fallbacks(both[0])


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_other_dtypes(dtype):
    def f(a, x):
        s = a[0, 0] * 0
        for i in range(1, x.shape[0]):
            v = np.exp(-a[i, :i]) * x[:i]
            s += np.sum(v * v)
        return np.real(s * s)

    given = arguments(6, dtype)
    both = [nbta.grad(f, argnums=(0, 1), compiled=kind) for kind in (True, False)]
    with in_python():
        found = both[0](*given)
    for one, other in zip(found, both[1](*given), strict=True):
        assert one.dtype == dtype
        np.testing.assert_allclose(one, other, rtol=1e-5)
    assert not left_to_python(both[0])


#: Of a vector ``v`` and a square matrix ``m`` whose length ``i`` is another one in each iteration.
OF_PARTS = [
    "np.diff(v)",
    "np.prod(v)",
    "np.var(v)",
    "np.std(v)",
    "np.mean(v)",
    "np.max(v)",
    "np.cumprod(v)",
    "np.sort(v)",
    "v[np.argsort(v)]",
    "np.flip(v)",
    "np.roll(v,1)",
    "np.pad(v,1)",
    "np.repeat(v,2)",
    "np.tile(v,2)",
    "np.outer(v,v)",
    "np.convolve(v,v)",
    "np.linalg.solve(m,v)",
    "np.linalg.inv(m)",
    "np.linalg.det(m)",
    "np.linalg.cholesky(m@m.T+np.eye(i))",
    "np.linalg.norm(v)",
    "v@m@v",
    "np.einsum('i,ij,j->',v,m,v)",
    "np.stack([v,v])",
    "np.concatenate([v,v*2])",
    "np.clip(v,0.2,0.5)",
    "np.abs(v)",
    "np.logaddexp(v,0.3)",
    "np.median(v)",
    "np.gradient(np.concatenate([v,v]))",
    "np.sum(m,axis=0)",
    "np.mean(m,axis=1)",
    "np.max(m,axis=1)",
    "m-np.mean(m,axis=0)",
    "m/np.sum(m,axis=1,keepdims=True)",
    "np.trace(m)",
    "np.diag(m)",
    "np.diag(v)",
    "np.tril(m)",
    "m.T@v",
    "m.reshape(-1)",
    "v[:,None]*v[None,:]",
    "v[::2]",
    "v[::-1]",
    "np.cumsum(m,axis=1)",
    "np.dot(m,m)",
    "np.vstack([m,v])",
    "np.hstack([v,v])",
    "np.append(v,1.0)",
    "np.full(i,0.3)*v",
    "np.ones(i)+v",
    "np.arange(i)*v",
    "np.zeros((i,i))+v",
    "np.eye(i)+m",
    "np.minimum(v,0.4)",
    "np.where(v>0.5,v,0.1*v)",
    "np.exp(v-np.max(v))/np.sum(np.exp(v-np.max(v)))",
    "np.interp(0.3, np.sort(v), v)",
    "v**2",
    "v.mean()",
    "np.searchsorted(np.sort(v),0.5)*v",
    "np.argmax(v)*v",
    "np.linalg.eigvalsh(m+m.T)",
    "np.linalg.slogdet(m)[1]",
    "np.polyval(v,0.5)",
    "np.average(v,weights=v)",
    "np.triu(m,1)",
    "np.kron(v,v)",
    "np.trapezoid(v)",
    "np.take(v,[0])",
    "np.insert(v,0,1.0)",
    "np.delete(v,0)",
    "np.array_split(v,2)[0]",
    "np.quantile(v,0.3)",
    "np.nansum(v)",
    "np.count_nonzero(v>0.4)*v",
    "np.linalg.lstsq(m,v)[0]",
    "np.linalg.pinv(m)",
    "np.linalg.qr(m)[1]",
    "np.cov(m)",
    "np.squeeze(v[None])",
    "np.swapaxes(m,0,1)",
    "np.broadcast_to(v,(3,i))",
    "np.atleast_2d(v)",
    "np.inner(v,v)",
    "np.tensordot(m,v,1)",
    "np.add.outer(v,v)",
    "np.sinc(v)",
    "np.hypot(v,0.3)",
    "np.ptp(v)",
]
PARTS = """
import numpy as np

def f(a, x):
    s = 0.5
    for i in range(2, x.shape[0]):
        v = np.sin(x[:i] * s)
        m = np.tanh(a[:i, :i] * 0.3) + np.eye(x.shape[0])[:i, :i] * s
        s += 0.1 * np.sum(np.sin({}))
    return s
"""


def hold_along(f, n):
    """A gradient along a direction against a central difference, with nothing left to Python."""
    given, by = arguments(n), 1e-6
    given[0][...] += 3 * np.eye(n)
    along = [np.cos(np.arange(part.size)).reshape(part.shape) for part in given]
    ends = [f(*(g + h * d for g, d in zip(given, along, strict=True))) for h in (by, -by)]
    slope = nbta.value_and_grad(f, argnums=(0, 1), compiled=True)
    value, found = slope(*given)
    np.testing.assert_allclose(value, f(*given), rtol=1e-10)
    total = sum(np.sum(g * d) for g, d in zip(found, along, strict=True))
    np.testing.assert_allclose(total, (ends[0] - ends[1]) / (2 * by), rtol=1e-5, atol=1e-7)
    assert not left_to_python(slope)
    assert not fallbacks(slope)


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize("text", OF_PARTS)
def test_operations_on_parts(text):
    f, _ = built(PARTS.format(text))
    with in_python():
        hold_along(f, 5)


@pytest.mark.parametrize("checkpoint", ["sqrt", 3])
def test_iterations_that_run_again(checkpoint):
    def f(x):
        def iteration(i, s):
            v = nbta.tanh(x[:i] * s)
            return i + 1, s + 0.1 * nbta.sum(v * v * v)

        n = x.shape[0]
        return nbta.while_loop(lambda i, _: i < n, iteration, (1, 0.5), checkpoint=checkpoint)[1]

    x, both = np.linspace(0.2, 0.9, 9), []
    for kind in (True, False):
        both.append(nbta.grad(f, compiled=kind))
    with in_python():
        found = both[0](x)
    np.testing.assert_allclose(found, both[1](x), rtol=1e-10)
    assert not left_to_python(both[0])
    assert not fallbacks(both[0])


@pytest.mark.slow
def test_items_of_a_batch():
    def f(w, x):
        s = 0.0
        for i in range(1, x.shape[0]):
            v = np.sin(w * x[:i])
            s += np.sum(v * v * v)
        return s

    xs = np.random.default_rng(0).uniform(size=(9, 12))
    value, slope = nbta.value_and_grad(f, batch_axis=(None, 0), compiled=True)(0.7, xs)
    each = [nbta.value_and_grad(f)(0.7, x) for x in xs]
    np.testing.assert_allclose([value, slope], np.sum(each, axis=0), rtol=1e-12)


def test_tapes_of_an_iteration_share_their_lengths():
    """What the inner iterations need is computed back in one loop."""
    slope = nbta.grad(inner_loop, argnums=(0, 1), compiled=True)
    with in_python():
        slope(*arguments(5))
    rows = str(slope.explain()).splitlines()
    assert any(row.count("Square") == 3 for row in rows), rows


# Users' own arrays.


def vectors(**options):
    return nbta.TensorArray(
        "float64", **{"infer_shape": False, "clear_after_read": False} | options
    )


def filled(x, lengths, **options):
    """An array with the begins of a vector, of some lengths, by a loop."""
    ta = vectors(size=len(lengths), **options)
    counts = nbta.constant(np.array(lengths))

    def body(i, ta):
        return i + 1, ta.write(i, nbta.sin(x[: counts[i]]))

    return nbta.while_loop(lambda i, ta: i < len(lengths), body, (0, ta))[1]


def totals(x, ta, count):
    """Sums of squares of what is read from an array, from the last slot to the first."""

    def body(i, s):
        v = ta.read(count - 1 - i)
        return i + 1, 0.5 * s + nbta.sum(v * v)

    return nbta.while_loop(lambda i, s: i < count, body, (0, 0.0))[1]


def reads(x):
    return totals(x, filled(x, [2, 0, 3, 1]), 4)


def grown(x):
    return totals(x, filled(x, [2, 2, 3, 1], dynamic_size=True), 4)


def last_first(x):
    """The first write is to the last slot, so that the others are before it."""
    ta = vectors(size=3).write(2, x[:2]).write(0, nbta.sin(x)).write(1, x[:1])
    return totals(x, ta, 3)


def matrices(x):
    ta = vectors(size=3)
    for k in range(3):
        ta = ta.write(k, nbta.outer(nbta.sin(x[: k + 1]), x[: 3 - k]))
    return totals(x, ta, 3)


def rows_and_more(x):
    """Rows are written at once, and then a shorter one."""
    ta = vectors(dynamic_size=True).unstack(nbta.stack([x, nbta.sin(x)]))
    return totals(x, ta.append(x[:1]), 3)


def rows_after(x):
    """Rows are written at once to an array that has other elements."""
    ta = vectors(size=5).write(4, x[:1]).write(3, x[:2])
    return totals(x, ta.scatter([0, 1], nbta.stack([x, nbta.sin(x)])).write(2, x), 5)


def alike_apart(x):
    """Elements of one shape are gathered from between others, and stacked where they lie."""
    ta = filled(x, [2, 1, 2, 3, 3])
    return nbta.sum(ta.gather([2, 0]) ** 2) + nbta.sum(nbta.sin(ta.gather([3, 4])))


def all_alike_again(x):
    """After a mismatch all slots are gathered one by one."""
    ta = filled(x, [3, 1, 3])
    picked = ta.gather(nbta.constant(np.array([0, 2, 0])))
    return nbta.sum(picked * picked * x)


def twice(x):
    """Gradient arrays of gradient arrays."""
    y = reads(x) + grown(x)
    (slope,) = nbta.gradients([y], [x])
    return nbta.sum(nbta.sin(slope))


def accumulated(x):
    """An array's gradient array, written to by hand."""
    ta = filled(x, [2, 1, 3])
    slopes = ta.grad("mine")
    slopes = slopes.write(0, x[:2]).write(2, x).write(0, nbta.sin(x[1:]))
    return nbta.sum(slopes.read(0)) + nbta.sum(slopes.read(1)) + nbta.sum(slopes.read(2) ** 2)


def emptied(x):
    """The second iteration of a loop finds the array as new."""

    def body(i, s):
        return i + 1, s + totals(x, filled(x[i:], [1, 2, 1]), 3)

    return nbta.while_loop(lambda i, s: i < 2, body, (0, 0.0))[1]


OF_ARRAYS = [
    reads, grown, last_first, matrices, rows_and_more, rows_after, alike_apart, all_alike_again,
    twice, accumulated, emptied,
]  # fmt: skip
X = np.array([0.7, -0.4, 0.9])


def compiled_and_not(program):
    """What becomes of a program and its gradient in both executors."""
    with nbta.Graph().as_default():
        fed = {nbta.placeholder("float64", (None,)): X}
        (x,) = fed
        y = program(x)
        slopes = nbta.gradients([y], [x])
    return outcome(tensors([y, *slopes]), fed)


@pytest.mark.parametrize("program", OF_ARRAYS, ids=lambda f: f.__name__)
def test_arrays_in_both_executors(program):
    assert compiled_and_not(program) == "agreed"


WITH_GRADIENTS = {twice, accumulated}  # of their own


@pytest.mark.parametrize(
    "program", [f for f in OF_ARRAYS if f not in WITH_GRADIENTS], ids=lambda f: f.__name__
)
def test_gradients_of_arrays(program):
    nbta.testing.check_grads(program, (X,), order=2, rtol=1e-5, atol=1e-6)


# What is an error is one.


def another_width(x):
    """An element that the element shape does not allow."""
    ta = vectors(size=2, element_shape=(None, 2))
    ta = ta.write(0, nbta.outer(x, x[:2])).write(1, nbta.outer(x[:1], x[: nbta.size(x)]))
    return nbta.sum(ta.read(1))


def unwritten(x):
    ta = vectors(size=3).write(0, x).write(2, x[:1])
    return nbta.sum(ta.read(1))


def written_twice(x):
    return totals(x, vectors(size=2).write(0, x).write(1, x[:1]).write(1, x[:1]), 2)


def cleared(x):
    ta = vectors(size=2, clear_after_read=True).write(0, x).write(1, x[:1])
    return nbta.sum(ta.read(1)) + nbta.sum(ta.read(1))


def unlike_rows(x):
    return nbta.sum(filled(x, [3, 1]).stack())


def unlike_gathered(x):
    return nbta.sum(filled(x, [3, 1, 3]).gather(nbta.constant(np.array([2, 1]))))


def outside(x):
    return nbta.sum(filled(x, [3, 1]).gather(nbta.constant(np.array([1, 2]))))


def unlike_sums(x):
    slopes = filled(x, [3, 1]).grad("mine")
    return nbta.sum(slopes.write(0, x[:2]).read(0))


ERRORS = [
    another_width, unwritten, written_twice, cleared, unlike_rows, unlike_gathered, outside,
    unlike_sums,
]  # fmt: skip


@pytest.mark.parametrize("program", ERRORS, ids=lambda f: f.__name__)
def test_errors_are_those_of_the_operations(program):
    with nbta.Graph().as_default():
        fed = {nbta.placeholder("float64", (None,)): X}
        wanted = tensors([program(*fed)])
    assert outcome(wanted, fed) == "failed"
    with pytest.raises(nbta.NbtaError):
        run(program, X)


# What it costs.


def buffers(function):
    """Bytes of the buffers of a function's last run."""
    (compiled,) = [c for t in function.every_trace() if t.runner for c in t.runner.compiled]
    work = compiled.executable.borrow()
    compiled.executable.give_back(work)
    return sum(buffer.nbytes for buffer in work._buffers.values())


def steps(x):
    s = 0.0
    for i in range(1, x.shape[0]):
        v = np.sin(x[:i])
        s += np.sum(v * v * v)
    return s


@pytest.mark.parametrize("backwards", [False, True])
def test_an_iteration_takes_the_bytes_of_its_values(backwards):
    def shrinking(x):
        s = 0.0
        for i in range(x.shape[0] - 1, 0, -1):
            v = np.sin(x[:i])
            s += np.sum(v * v * v)
        return s

    n = 1500
    function = nbta.value_and_grad(shrinking if backwards else steps, compiled=True)
    x = np.linspace(0.1, 1.0, n)
    tracemalloc.start()
    function(x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    values = 8 * n * (n - 1) // 2
    some = 200 * n + 2**20  # tables, vectors, and what compiling takes
    assert buffers(function) <= 2 * values + some  # a buffer that is full is doubled
    assert peak <= 3 * values + 64 * 2**20


def test_an_array_of_equal_elements_has_no_table():
    def f(x, t):
        for _ in range(t):
            x = np.sin(x)
        return np.sum(x)

    function = nbta.grad(f, compiled=True)
    function(np.ones(1000), 50)
    assert buffers(function) <= 8 * 1000 * (50 + 6) + 4096


def test_the_first_run_is_by_the_same_code(monkeypatch):
    from nbta.compiler import executable

    made = []

    def counting(*args):
        made.append(args)
        return generate(*args)

    generate = executable.generate
    monkeypatch.setattr(executable, "generate", counting)
    function = nbta.value_and_grad(lambda x: steps(x), compiled=True)
    for n in (9, 20, 5):
        function(np.ones(n))
    assert len(made) == 1
    assert not fallbacks(function)


# Random programs.

QUICK, ALL = 6, 126


def run_random(seeds, machine_code=False):
    for seed in seeds:
        program = ragged_programs.program(seed)
        try:
            ragged_programs.check(program, machine_code)
        except (DisagreementError, AssertionError) as error:
            error.add_note(f"ragged_programs.program({seed})\n{program!r}")
            raise


def test_some_random_programs():
    run_random(range(QUICK))


def test_values_that_are_kept_once_for_all_iterations_of_the_only_loop_around():
    """Their array is one, whose handle no iteration keeps, where nothing else of the nest is."""
    run_random([106])


@pytest.mark.slow
@pytest.mark.parametrize("first", range(QUICK, ALL, 20))
def test_more_random_programs(first):
    run_random(range(first, first + 20))


@pytest.mark.slow
def test_random_programs_in_machine_code():
    run_random(range(1000, 1005), machine_code=True)
