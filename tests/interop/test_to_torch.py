"""Functions as operations of PyTorch, with its checkers of gradients, and in torch.func."""

import warnings

import numpy as np
import pytest
from interop_programs import NOISE, WEIGHTS, X, energy, newton, several, squared

import nbta
from nbta.interop import to_torch

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own
torch = pytest.importorskip("torch")
gradcheck, gradgradcheck = torch.autograd.gradcheck, torch.autograd.gradgradcheck


def needing(value):
    """A tensor whose gradient is wanted."""
    return torch.tensor(np.asarray(value), requires_grad=True)


@pytest.mark.parametrize("compiled", [False, True])
def test_values_and_gradients_are_nbtas(compiled):
    rate, noise = needing(0.5), needing(NOISE)
    value = to_torch(energy, compiled)(rate, noise)
    value.backward()
    want, slopes = nbta.value_and_grad(energy, argnums=(0, 1))(0.5, NOISE)
    assert value.item() == want
    np.testing.assert_allclose(rate.grad, slopes[0], rtol=1e-14)
    np.testing.assert_allclose(noise.grad, slopes[1], rtol=1e-14)


def test_torchs_checkers_agree():
    f = to_torch(energy)
    for args in (needing(0.5), needing(NOISE)), (torch.tensor(0.5).double(), needing(NOISE)):
        assert gradcheck(f, args, check_forward_ad=True)
        assert gradgradcheck(f, args)
    assert gradcheck(to_torch(newton), (needing(3.0),))
    assert gradgradcheck(to_torch(newton), (needing(3.0),))
    assert gradcheck(to_torch(squared), (needing(1.5 - 0.5j),))
    assert gradgradcheck(to_torch(squared), (needing(1.5 - 0.5j),))


def test_structures_integers_and_options():
    p, x, f = {k: needing(v) for k, v in WEIGHTS.items()}, needing(X), to_torch(several)
    found, want = f(p, x), several(WEIGHTS, X)
    for key, value in want.items():
        np.testing.assert_allclose(found[key].detach(), value, rtol=1e-14)
    assert found["largest"].dtype == torch.int64
    assert not found["largest"].requires_grad
    flat = lambda w, b, x: [*f({"w": w, "b": b}, x, power=3).values()][:2]  # noqa: E731
    assert gradcheck(flat, (p["w"], p["b"], x))
    assert gradgradcheck(flat, (p["w"], p["b"], x))
    slope = torch.autograd.grad(to_torch(lambda x, k: x**k)(needing(3.0), 2), x, allow_unused=True)
    assert slope == (None,)


def test_torch_func():
    f, rates = to_torch(energy), torch.tensor([0.5, 0.7, 1.1], dtype=torch.float64)
    noise = torch.tensor(NOISE)
    each = [nbta.grad(energy)(rate, NOISE) for rate in rates.numpy()]
    per_item = torch.func.vmap(torch.func.grad(f), in_dims=(0, None))(rates, noise)
    np.testing.assert_allclose(per_item, each, rtol=1e-14)
    noises = torch.stack([noise, noise.flip(0)], 1)
    many = torch.func.vmap(f, in_dims=(None, 1))(rates[0], noises)
    np.testing.assert_allclose(many, [energy(0.5, NOISE), energy(0.5, NOISE[::-1])], rtol=1e-14)
    want = nbta.hessian(energy, 1)(0.5, NOISE)
    for way in (torch.func.hessian(f, 1), torch.func.jacrev(torch.func.jacrev(f, 1), 1)):
        np.testing.assert_allclose(way(rates[0], noise), want, rtol=1e-12)
    value, along = torch.func.jvp(lambda n: f(rates[0], n), (noise,), (torch.ones_like(noise),))
    np.testing.assert_allclose(along, nbta.grad(energy, 1)(0.5, NOISE).sum(), rtol=1e-14)
    assert value == energy(0.5, NOISE)


def test_single_precision_and_strides():
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4).T.requires_grad_()
    found = to_torch(lambda x: np.sum(x[1:] ** 2))(x)
    found.backward()
    assert (found.dtype, x.grad.dtype) == (torch.float32, torch.float32)
    want = 2 * x.detach()
    want[0] = 0
    np.testing.assert_array_equal(x.grad, want)


def test_a_module_is_trained():
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.tensor(0.1, dtype=torch.float64))
            self.loss = to_torch(energy)

        def forward(self, noise):
            return self.loss(self.w, noise)

    layer = Layer()
    optimiser = torch.optim.SGD(layer.parameters(), lr=0.01)
    losses = []
    for _ in range(10):
        optimiser.zero_grad()
        loss = layer(torch.tensor(NOISE))
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)


def test_errors():
    with pytest.raises(nbta.InvalidArgumentError, match=r"args\[0\] is .*object.*; give arrays"):
        to_torch(energy)(object(), torch.tensor(NOISE))
    with pytest.raises(nbta.InvalidArgumentError, match="there is no index 3"):
        to_torch(lambda x: x[3])(needing(X))
    with pytest.raises(nbta.InvalidArgumentError, match=r"a tensor is on meta; give tensor\.cpu"):
        to_torch(energy)(0.5, torch.ones(3, device="meta"))
    half, sparse = torch.ones(3, dtype=torch.bfloat16), torch.ones(3).to_sparse()
    with pytest.raises(nbta.InvalidArgumentError, match=r"bfloat16, which .*; give tensor\.float"):
        to_torch(energy)(0.5, half)
    with pytest.raises(nbta.InvalidArgumentError, match=r"sparse.*; give tensor\.to_dense"):
        to_torch(energy)(0.5, sparse)
    with warnings.catch_warnings():  # that they will go
        warnings.simplefilter("ignore")
        quantized = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)
    with pytest.raises(nbta.InvalidArgumentError, match=r"qint8; give tensor\.dequantize"):
        to_torch(energy)(0.5, quantized)
