"""Tangents of each record that has a gradient, held against its gradient rule, transposed."""

from functools import partial

import numpy as np
import pytest
import scipy
import scipy.linalg
import transposed
from test_traits import applicable

import nbta
import nbta.namespace  # with the records of all operations
from nbta.graph.graph import current, everything
from nbta.graph.operation import TABLE, NotDifferentiable
from nbta.ops.core.checks import checked
from nbta.ops.core.dispatch import as_tensor
from nbta.structure import leaves

#: Records that hold values or have effects, and those whose second derivatives are refused.
OTHERS = {
    "Constant", "Parameter", "Placeholder", "Fixed", "GammaVariateSlope", "GammaIncSlope",
    "While", "Case", "Map", "Implicit", "Custom",
    "TensorArrayGradV3", "TensorArrayGradWithShape", "TensorArrayWriteV3", "TensorArrayScatterV3",
    "TensorArraySplitV3", "TensorArrayReadV3", "TensorArrayGatherV3", "TensorArrayConcatV3",
}  # fmt: skip
RECORDS = [
    record
    for record in TABLE.values()
    if not isinstance(record.gradient, NotDifferentiable) and record.name not in OTHERS
]
RNG = np.random.default_rng(5)
A, B, V = RNG.normal(size=(3, 3)), RNG.normal(size=(3, 3)), RNG.normal(size=3)
SPD, T4 = A @ A.T + 3 * np.eye(3), RNG.normal(size=(2, 3, 3))
Z = A + 1j * B
#: Functions by the record that they are for.
CASES = {
    "Reshape": [(lambda x: nbta.reshape(x, (9,)), [A])],
    "BroadcastTo": [(lambda x: nbta.broadcast_to(x, (2, 3, 3)), [A])],
    "SumTo": [(lambda x: nbta.sum_to(x, (1, 3)), [A])],
    "Fill": [(lambda x: nbta.fill((2, 2), x[0]), [V])],
    "Take": [(lambda x: nbta.take(x, np.array([2, 0, 0]), axis=0), [A])],
    "ScatterAdd": [(lambda x, u: nbta.scatter_add(x, np.array([2, 2, 0]), u), [A, B])],
    "ScatterSet": [(lambda x, u: nbta.at(x)[np.array([2, 2, 0])].set(u), [A, B])],
    "Slice": [(lambda x: nbta.slice(x, (1, 0), (2, 2)), [A])],
    "DynamicUpdateSlice": [(lambda x, u: nbta.dynamic_update_slice(x, u, (1, 0)), [A, B[:2, :2]])],
    "GetItem": [(lambda x: x[1:, 0], [A]), (lambda x: x[0, 1], [Z])],
    "SetItem": [(lambda x, u: nbta.set_item(x, 1, u), [A, V]),
                (lambda x, u: nbta.set_item(x, (1, slice(None)), u[0]), [A, V])],
    "AddItem": [(lambda x, u: nbta.add_item(x, 1, u), [A, V])],
    "Pad": [(lambda x, v: nbta.pad(x, 1, v[0]), [A, V])],
    "Squeeze": [(lambda x: nbta.squeeze(x[:1], 0), [A])],
    "ExpandDims": [(lambda x: nbta.expand_dims(x, 0), [A])],
    "Concatenate": [(lambda x, y: nbta.concatenate([x, y, A]), [A, B])],
    "Stack": [(lambda x, y: nbta.stack([x, A, y], axis=1), [A, B])],
    "Split": [(lambda x: nbta.split(x, 3), [A])],
    "MatMul": [(nbta.matmul, [A, B]), (nbta.matmul, [V, A]), (nbta.matmul, [A, V]),
               (nbta.matmul, [V, V]), (nbta.matmul, [T4, A]), (nbta.matmul, [Z, A + 0j])],
    "Outer": [(nbta.outer, [V, V * 2])],
    "Transpose": [(nbta.transpose, [A])],
    "SwapAxes": [(lambda x: nbta.swapaxes(x, 0, 2), [T4])],
    "Einsum": [(lambda x, y: nbta.einsum("bij,jk->bik", x, y), [T4, A]),
               (lambda x: nbta.einsum("bii->b", x), [T4])],
    "ExclusiveCumProd": [(lambda x: nbta.grad(lambda y: nbta.prod(y))(x), [V])],
    "Sum": [(lambda x: nbta.sum(x, axis=1), [A]), (nbta.sum, [Z])],
    "Mean": [(lambda x: nbta.mean(x, axis=0, keepdims=True), [A])],
    "Max": [(lambda x: nbta.max(x, axis=0), [A])],
    "Min": [(lambda x: nbta.min(x), [A])],
    "Prod": [(lambda x: nbta.prod(x, axis=0), [A])],
    "CumSum": [(lambda x: nbta.cumsum(x, axis=1), [A])],
    "RunningExtreme": [(lambda x: np.maximum.accumulate(x), [V])],
    "Roll": [(lambda x: nbta.roll(x, 1, axis=0), [A])],
    "Tril": [(nbta.tril, [A])],
    "Cholesky": [(nbta.cholesky, [SPD])],
    "CholeskyGradient": [(nbta.grad(lambda x: nbta.sum(nbta.cholesky(x) ** 2)), [SPD])],
    "CholeskyTangent": [(lambda a, w: nbta.jvp(nbta.cholesky, (a,), (w,))[1], [SPD, A])],
    "Mirror": [(np.linalg.cholesky, [SPD])],
    "Fold": [(nbta.grad(lambda x: nbta.sum(np.linalg.cholesky(x) ** 2)), [SPD])],
    "TriangularSolve": [
        (partial(nbta.triangular_solve, lower=lower, transpose=transpose), [SPD, A])
        for lower in (False, True)
        for transpose in (False, True)
    ],
    "LogSumExp": [(lambda x: nbta.logsumexp(x, axis=0), [A])],
    "Softmax": [(nbta.softmax, [A])],
    "LogSoftmax": [(nbta.log_softmax, [A])],
    "Sort": [(nbta.sort, [A])],
    "LU": [(nbta.inv, [A])],
    "LUSolve": [(nbta.solve, [A, B])],
    "Det": [(nbta.det, [A])],
    "SLogDet": [(nbta.slogdet, [A])],
    "Eigh": [(nbta.eigh, [SPD])],
    "SVD": [(lambda a: np.linalg.svd(a, full_matrices=False)[1], [A])],
    "PseudoInverse": [(nbta.pinv, [A])],
    "QR": [(nbta.qr, [A])],
    "MatrixExponential": [(nbta.expm, [A])],
    "Correlate": [(lambda a, v: nbta.correlate(a, v, "full"), [A[0], V[:2]])],
    "Fourier": [(lambda z: np.fft.fft(z), [Z]), (lambda x: np.fft.rfft(x), [A])],
    "After": [(lambda x: checked(x, x[0, 0] < 9.0, "it is too large"), [A])],
}  # fmt: skip


def _steps(x):
    return nbta.sum(nbta.fori_loop(0, 3, lambda i, y: nbta.sin(y * x), x))


def _power(x):
    return nbta.sum(nbta.scan(lambda y, _: (y * x, None), x, None, 4, checkpoint=2)[0])


def _slope(f):
    return nbta.grad(lambda x: nbta.sum(f(x)))


@nbta.custom_jvp
def _squared(x):
    return x * x


@_squared.tangent
def _along(dx, x, y):
    return 2.0 * x * dx


CASES |= {
    "CustomJvp": [(_squared, [A])],
    "ScatterSlice": [(nbta.grad(lambda x: nbta.sum(x[1:] ** 3)), [A])],
    "DynamicAddSlice": [
        (
            nbta.grad(
                lambda x: nbta.sum(nbta.dynamic_slice(x, (1, 0), (2, 2)) ** 3) + nbta.sum(x**3)
            ),
            [A],
        )
    ],
    "LinearRecurrence": [(nbta.grad(lambda x: nbta.sum(nbta.cumprod(x) ** 2)), [V])],
    "LUPacked": [(lambda a: scipy.linalg.lu_factor(a)[0], [A])],
    "FullSVD": [(lambda a: np.linalg.svd(a[:2])[1], [A])],
    "AddN": [(lambda x, y: nbta.add_n([x, y, x]), [A, B])],
    "AsMatrix": [(lambda x: nbta.as_matrix(x, "row"), [V])],
    "RandomGamma": [(lambda a: nbta.random.gamma(nbta.random.key(1), a, (3,)), [abs(V)])],
    "AddSaved": [(nbta.grad(lambda x: nbta.sum(nbta.grad(_steps)(x) ** 2)), [V])],
    "AddShadows": [(_slope(_slope(_slope(_slope(_power)))), [V])],
    "ByEigenvalues": [(_slope(lambda a: nbta.sum(np.linalg.eigvalsh(a) ** 3)), [SPD])],
    "BySingularValues": [(_slope(lambda a: nbta.sum(np.linalg.svdvals(a) ** 3)), [A])],
    "ReducedResolventOfPairs": [(_slope(lambda a: nbta.sum(nbta.svd(a)[0] ** 3)), [A])],
    "ReducedResolvent": [(lambda a: nbta.grad(lambda b: nbta.sum(nbta.eigh(b)[1] ** 3))(a), [SPD])],
}


def held_names():
    """Records in the graphs of the cases, and in their gradients."""
    found = set()
    for several in CASES.values():
        for f, arrays in several:
            with nbta.Graph().as_default() as graph:
                xs = [nbta.identity(as_tensor(a)) for a in arrays]
                nbta.jvp(f, tuple(xs), tuple(xs))
            found |= {op.type for op in everything(graph)}
    return found


@pytest.mark.smoke
def test_all_records_are_tried():
    assert {r.name for r in RECORDS if not r.elementwise} - held_names() == set()


def close(found, expected):
    assert len(leaves(found)) == len(leaves(expected))
    for one, other in zip(leaves(found), leaves(expected), strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-11)


def held(f, arrays):
    """Forward mode against the oracle, both executors, along all arrays and along each alone."""
    directions = [
        np.cos(np.arange(np.size(a))).reshape(np.shape(a)).astype(a.dtype) for a in arrays
    ]
    if any(a.dtype.kind == "c" for a in arrays):
        directions = [d * (1 - 0.5j) if d.dtype.kind == "c" else d for d in directions]
    chosen = [range(len(arrays))] + ([[k] for k in range(len(arrays))] if len(arrays) > 1 else [])
    for k, places in enumerate(chosen):

        def of_chosen(*given, places=places):
            values = [as_tensor(a) for a in arrays]
            for place, value in zip(places, given, strict=True):
                values[place] = value
            return f(*values)

        given, along = ([all_[k] for k in places] for all_ in (arrays, directions))
        expected = transposed.jvp(of_chosen, given, along)
        for compiled in (False,) if k else (False, True):
            run = nbta.function(
                lambda x, t, of_chosen=of_chosen: nbta.jvp(of_chosen, x, t), compiled=compiled
            )
            close(run(tuple(given), tuple(along)), expected)


def elementwise(record, attrs):
    def f(*given):
        return current().create(record, list(given), attrs).outputs[0]

    return f


@pytest.mark.smoke
@pytest.mark.parametrize(
    "record",
    [r for r in RECORDS if r.elementwise and r.name not in CASES],
    ids=lambda r: r.name,
)
def test_elementwise_tangents_are_those_of_reverse_mode(record):
    tried = 0
    for dtypes, attrs, op in applicable(record):
        if not op.outputs[0].spec.differentiable or not all(
            d in (np.float64, np.complex128, bool, np.int64) for d in dtypes
        ):
            continue
        shapes = [(2, 3), (3,), (2, 1)] if len(dtypes) > 1 else [(2, 3)]
        arrays = [
            np.random.default_rng(k).uniform(0.3, 0.7, shape).astype(dtype)
            for k, (dtype, shape) in enumerate(zip(dtypes, shapes, strict=False))
        ]
        places = [k for k, a in enumerate(arrays) if a.dtype.kind in "fc"]
        if not places or (op.outputs[0].dtype.itemsize < 8):
            continue

        def f(*given, arrays=arrays, places=places, attrs=attrs):
            values = [as_tensor(a) for a in arrays]
            for place, value in zip(places, given, strict=True):
                values[place] = value
            return elementwise(record, attrs)(*values)

        try:
            with np.errstate(all="ignore"):
                record.evaluate(*arrays, **attrs)
        except TypeError:  # NumPy has none for complex numbers
            continue
        held(f, [arrays[k] for k in places])
        tried += 1
    assert tried


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("name", "case"),
    [
        pytest.param(name, case, marks=[pytest.mark.slow] * (name == "AddShadows"))
        for name, several in CASES.items()
        for case in several
    ],
    ids=[f"{name}-{k}" for name, several in CASES.items() for k in range(len(several))],
)
def test_tangents_are_those_of_reverse_mode(name, case):
    held(*case)
