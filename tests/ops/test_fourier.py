"""Fourier transforms by NumPy's and SciPy's names, in unmodified functions, against these."""

import numpy as np
import pytest
import scipy.fft

import nbta
from nbta.testing import check_grads

RNG = np.random.default_rng(9)
X = RNG.normal(size=(3, 4, 5))
Z = X + 1j * RNG.normal(size=X.shape)
NORMS = ("backward", "ortho", "forward")


def agrees(function, *args, rtol=1e-12):
    """That both executors give what NumPy does, with dtypes and shapes."""
    expected = function(*args)
    for compiled in (False, True):
        for one, other in zip(
            nbta.function(function, compiled=compiled)(*args), expected, strict=True
        ):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            np.testing.assert_allclose(one, other, rtol, rtol * np.max(np.abs(other)))


def transforms(x, z):
    return (
        np.fft.fft(x), np.fft.fft(z, axis=1), np.fft.ifft(z), np.fft.ifft(x, axis=0),
        np.fft.rfft(x), np.fft.rfft(x, axis=-2), np.fft.irfft(z), np.fft.irfft(z, axis=1),
        np.fft.fft(z, 3), np.fft.fft(z, 8, 0), np.fft.rfft(x, n=7), np.fft.irfft(z, n=7),
        np.fft.irfft(z, 4, axis=1), np.fft.irfft(x, 13), np.fft.fft(z[0, 0]), np.fft.rfft(x[0, 0]),
    )  # fmt: skip


def normed(x, z):
    found = []
    for norm in NORMS:
        found += [np.fft.fft(z, norm=norm), np.fft.ifft(z, norm=norm)]
        found += [np.fft.rfft(x, norm=norm), np.fft.irfft(z, norm=norm)]
    return tuple(found)


@pytest.mark.parametrize(("real", "rtol"), [("float64", 1e-12), ("float32", 1e-5)])
def test_transforms(real, rtol):
    x, z = X.astype(real), Z.astype(np.result_type(real, np.complex64))
    agrees(transforms, x, z, rtol=rtol)
    agrees(normed, x, z, rtol=rtol)


def test_transforms_of_scipys_name_and_of_integers():
    agrees(lambda x: (scipy.fft.fft(x), scipy.fft.irfft(x), scipy.fft.rfft(x, 4)), X)
    agrees(lambda x: (np.fft.fft(x), np.fft.rfft(x)), np.arange(6))


@pytest.mark.parametrize("n", [1, 2, 3, 16, 30, 97])
def test_one_program_serves_all_lengths(n):
    run = nbta.function(lambda x: (np.fft.fft(x), np.fft.rfft(x)), compiled=True)
    for length in (n, n + 1):
        x = RNG.normal(size=length)
        for one, other in zip(run(x), (np.fft.fft(x), np.fft.rfft(x)), strict=True):
            np.testing.assert_allclose(one, other, 0, 1e-12 * length)


@pytest.mark.smoke
def test_gradients():
    check_grads(lambda z: np.fft.fft(z, axis=1) * np.fft.ifft(z, axis=1), (Z[0],))
    check_grads(lambda x: np.fft.irfft(np.fft.rfft(x) ** 2, 4), (X[0],))
    check_grads(lambda x: nbta.real(np.fft.fft(x, 7, norm="ortho")) ** 2, (X[0, 0],))


def test_a_convolution_is_native():
    def convolved(x, y):
        n = 16
        return np.fft.irfft(np.fft.rfft(x, n) * np.fft.rfft(y, n), n)

    x, y = RNG.normal(size=(2, 8))
    run = nbta.value_and_grad(lambda x, y: np.sum(convolved(x, y) ** 2), compiled=True)
    value, _ = run(x, y)
    np.testing.assert_allclose(value, np.sum(np.convolve(x, y) ** 2))
    assert "run in Python" not in run.explain()


@pytest.mark.parametrize(
    ("reason", "match", "function"),
    [
        ("axis", "no axis -1 in rank 0", lambda: nbta.fft(1.0)),
        ("axis", "no axis 2 in rank 1", lambda: nbta.fft(X[0, 0], axis=2)),
        ("empty", "nothing along the axis", lambda: nbta.fft(np.zeros((2, 0)))),
        ("size", "0 points", lambda: nbta.fft(X, 0)),
        ("size", "0 points", lambda: nbta.irfft(X[..., :1])),
        ("dtype", "for real numbers", lambda: nbta.rfft(Z)),
        ("value", "or 'forward', not 'both'", lambda: nbta.ifft(Z, norm="both")),
    ],
)
def test_what_is_not_transformed(reason, match, function):
    with pytest.raises(nbta.InvalidArgumentError, match=match) as caught:
        function()
    assert caught.value.reason == reason


def test_no_points_in_a_run_and_no_rank():
    for compiled in (False, True):
        with pytest.raises(nbta.InvalidArgumentError, match="nothing along the axis"):
            nbta.function(np.fft.fft, compiled=compiled)(np.zeros(0))
    with nbta.Graph().as_default(), pytest.raises(nbta.InvalidArgumentError, match="rank must"):
        nbta.fft(nbta.placeholder("float64"))


def of_many_axes(x, z):
    return (
        np.fft.fft2(x), np.fft.ifft2(z, axes=(0, 1)), np.fft.fft2(z, s=(3, 8), norm="ortho"),
        np.fft.fftn(x), np.fft.ifftn(z, axes=(2, 0)), np.fft.fftn(z, (2, 6), axes=(0, 1)),
        scipy.fft.fft2(x), scipy.fft.ifftn(z), scipy.fft.fftn(z, axes=(0,)),
    )  # fmt: skip


def of_real_numbers(x, z):
    return (
        np.fft.rfft2(x), np.fft.rfftn(x), np.fft.rfftn(x, (2, 7), axes=(1, 0), norm="ortho"),
        np.fft.irfft2(z), np.fft.irfftn(z, norm="forward"), np.fft.irfft2(z, s=(3, 9)),
        np.fft.hfft(z, axis=1), np.fft.hfft(x, 6, norm="ortho"), np.fft.hfft(z, norm="forward"),
        np.fft.ihfft(x), np.fft.ihfft(x, axis=0, norm="forward"), scipy.fft.rfftn(x),
    )  # fmt: skip


def frequencies(x):
    return (
        np.fft.fftfreq(x.shape[1]), np.fft.fftfreq(x.shape[2], x[0, 0, 0]),
        np.fft.rfftfreq(x.shape[1], 0.25), np.fft.rfftfreq(7, x[0, 0, 0]),
    )  # fmt: skip


def test_real_numbers_along_several_axes():
    agrees(of_real_numbers, X, Z)
    agrees(of_real_numbers, X.astype(np.float32), Z.astype(np.complex64), rtol=1e-5)
    check_grads(lambda x: (np.fft.rfft2(x[0]), np.fft.hfft(x[0])), (X,))
    check_grads(lambda z: (np.fft.irfftn(z[0, :2]), np.fft.hfft(z[0, 0])), (Z,))
    with pytest.raises(nbta.InvalidArgumentError, match="1 lengths do not fit 2 axes"):
        nbta.function(lambda x: np.fft.rfft2(x, (3,)))(X)


def test_frequencies():
    agrees(frequencies, X[:, :, :1] + 2.0)
    check_grads(lambda d: np.fft.fftfreq(5, d), (np.float64(0.3),))
    with pytest.raises(nbta.InvalidArgumentError, match="0 points"):
        nbta.function(lambda d: np.fft.fftfreq(0, d))(0.3)


def shifts(x):
    return (
        np.fft.fftshift(x), np.fft.ifftshift(x), np.fft.fftshift(x, axes=-1),
        np.fft.ifftshift(x, (0, 2)), scipy.fft.fftshift(x, axes=[1]), scipy.fft.ifftshift(x),
    )  # fmt: skip


def test_axes_one_after_another():
    agrees(of_many_axes, X, Z)
    agrees(of_many_axes, X.astype(np.float32), Z.astype(np.complex64), rtol=1e-5)
    agrees(shifts, X)
    agrees(shifts, np.arange(24).reshape(2, 3, 4))
    check_grads(lambda x: np.abs(np.fft.fftn(x[:2, :2])) ** 2, (X,))
    check_grads(lambda x: np.fft.fftshift(x[0]) ** 3, (X,))
    with pytest.raises(nbta.InvalidArgumentError, match="1 lengths do not fit 2 axes"):
        nbta.function(lambda x: np.fft.fft2(x, (3,)))(X)
    with pytest.raises(nbta.InvalidArgumentError, match="no axis 3 in rank 3"):
        nbta.function(lambda x: np.fft.fftshift(x, 3))(X)
