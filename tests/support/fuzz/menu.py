"""What a statement of a random program may be: expressions of nbta's functions.

Each entry adds one statement to a scope and says how many it added, 0 or 1.
"""

import numpy as np

UNARY = [
    "nbta.tanh({x})", "nbta.sin({x})", "nbta.cos({x})", "nbta.sigmoid({x})", "nbta.erf({x})",
    "nbta.softplus({x})", "nbta.exp(0.3 * {x})", "nbta.expm1(0.2 * {x})", "nbta.relu({x})",
    "nbta.log(nbta.abs({x}) + 0.5)", "nbta.log1p(nbta.square({x}))", "-{x}", "{x} * 0.7 - 0.2",
    "nbta.sqrt(nbta.abs({x}) + 0.1)", "nbta.rsqrt({x} * {x} + 0.5)", "nbta.square({x})",
    "nbta.clip({x}, -0.71, 0.83)", "nbta.sign({x})", "nbta.floor({x} * 1.7)", "{x} ** 2",
    "{x} ** 3", "1.0 / ({x} * {x} + 1.0)", "nbta.identity({x})", "abs({x}) ** 1.5",
    "nbta.arctan({x}) - nbta.arcsinh({x})", "nbta.cbrt(nbta.abs({x}) + 0.3)",
    "nbta.log10(nbta.cosh(nbta.tanh({x})))", "nbta.exp2(0.4 * {x})",
]  # fmt: skip
BINARY = [
    "{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} * {y}", "{x} / (1.5 + nbta.abs({y}))",
    "nbta.maximum({x}, {y})", "nbta.minimum({x}, {y})", "nbta.where({x} > 0.137, {y}, {x})",
    "nbta.where({x} < {y} - 0.113, {x} * 2.0, 0.3)", "nbta.tanh({x}) * nbta.sin({y})",
    "nbta.power(nbta.abs({x}) + 0.5, nbta.tanh({y}))", "nbta.add_n([{x}, {x}, {x} * 0.5])",
    "{x} % (nbta.abs({y}) + 0.77)", "nbta.floor_divide({x}, nbta.abs({y}) + 0.77)",
    "nbta.hypot({x}, nbta.abs({y}) + 0.7)",
]  # fmt: skip
REDUCE = [
    "nbta.sum({x}, {axis}, keepdims={keep})", "nbta.mean({x}, {axis}, keepdims={keep})",
    "nbta.prod({x} * 0.5, {axis}, keepdims={keep})", "nbta.max({x}, {axis}, keepdims={keep})",
    "nbta.min({x}, {axis}, keepdims={keep})", "nbta.logsumexp({x}, {axis}, keepdims={keep})",
    "nbta.sum({x} * {x}, {axis}, keepdims={keep})",
    "nbta.sum(nbta.sin({x}), {axis}, keepdims={keep})",
]  # fmt: skip
ALONG = [
    "nbta.cumsum({x}, {axis})", "nbta.softmax({x}, {axis})", "nbta.log_softmax({x}, {axis})",
    "nbta.flip({x}, {axis})", "nbta.exclusive_cumprod({x}, {axis})",
    "nbta.exclusive_cumprod({x}, {axis}, True)",
    "nbta.linear_recurrence(nbta.tanh({x}), nbta.sin({x}), {axis})",
    "nbta.linear_recurrence(nbta.tanh({x}), nbta.sin({x}), {axis}, True)",
    "nbta.concatenate([{x}, {x} * 0.5], {axis})", "nbta.stack([{x}, nbta.tanh({x})], {axis})",
    "nbta.expand_dims({x}, {axis})", "nbta.argmax({x}, {axis})",
    "nbta.take({x}, nbta.argmax({x}, {axis}), {axis})",
    "nbta.split(nbta.concatenate([{x}, {x} * 2.0], {axis}), 2, {axis})[1]",
    "nbta.gather({x}, np.array([0, 1, 0]), {axis})", "nbta.take({x}, [1, 0, -1], {axis})",
    "nbta.scatter_add({x}, np.array([1, 0, 1]), nbta.take({x}, [0, 1, 1], {axis}), {axis})",
]  # fmt: skip
INDEX = [
    "{x}[0]", "{x}[-1]", "{x}[1:]", "{x}[:-1]", "{x}[::-1]", "{x}[::2]", "{x}[..., 0]",
    "{x}[..., None]", "{x}[None]", "{x}[..., 1:]", "{x}[..., ::-1]", "{x}[np.array([0, 1, 0])]",
    "{x}[1:0:-1]", "{x}[:, 0]", "{x}[:, 1:]", "{x}[None, ..., -1]",
    "nbta.set_item({x}, 0, {x}[-1] * 0.5)", "nbta.set_item({x}, np.s_[1:], {x}[:-1])",
    "nbta.add_item({x}, -1, {x}[0])", "nbta.add_item({x}, np.s_[::-1], {x})",
    "nbta.set_item({x}, np.s_[..., 0], 0.7)", "nbta.add_item({x}, np.s_[..., 1:], {x}[..., :1])",
    "nbta.add_item({x}, [0, 1, 0], 0.5)", "nbta.set_item({x}, [1, 0, 1], {x}[0])",
]  # fmt: skip
SHAPE = [
    "nbta.reshape({x}, (-1,))", "nbta.transpose({x})", "nbta.swapaxes({x}, 0, -1)",
    "nbta.reshape({x}, (nbta.shape({x})[0], -1))", "nbta.expand_dims({x}, 0)",
    "nbta.broadcast_to({x}, nbta.shape({x}[None]))", "nbta.squeeze({x}[None, ...], 0)",
    "nbta.pad({x}, 1)[1:]", "nbta.tril({x})", "nbta.tril({x}, 1)", "nbta.zeros_like({x}) + 0.3",
    "nbta.ones_like({x}) * nbta.sum({x})", "nbta.cast({x}, 'float32') * np.float32(1.0)",
    "nbta.stop_gradient({x}) * {x}", "nbta.cast(nbta.shape({x})[0], '{dtype}') * 0.1 + {x}",
    "nbta.reshape({x}, nbta.shape(nbta.transpose({x})))",
    "nbta.dynamic_update_slice({x}, {x}[1:] * 0.5, [{i}, 0, 0][:{rank}])",
    "nbta.dynamic_slice({x}, [{i}, 0, 1][:{rank}], [1, 1, 1][:{rank}])",
]  # fmt: skip
PRODUCTS = [
    "{x} @ {y}", "nbta.matmul({x}, nbta.transpose({y}))", "nbta.outer({x}, {y})",
    "nbta.dot({x}, {y})", "nbta.einsum('ij,jk->ik', {x}, {y})",
    "nbta.einsum('ij,kj->ki', {x}, {y})",
    "nbta.einsum('i,i->', {x}, {y})", "nbta.einsum('i,j->ij', {x}, {y})",
    "nbta.einsum('aij,jk->aik', {x}, {y})", "nbta.einsum('ij,ij->j', {x}, {y})",
    "nbta.einsum('ij->ji', {x})", "nbta.einsum('ij,jk,ij->k', {x}, {y}, {x})",
    "nbta.matmul(nbta.swapaxes({x}, -1, -2), {y})",
]  # fmt: skip
INTEGERS = [
    "nbta.argmax({x})", "nbta.cast({x} > 0.137, 'int64')", "{i} + 1", "{i} * 2 - 1", "{i} // 2",
    "{i} % 3", "nbta.shape({x})[-1]", "nbta.sum({k})", "{k} + {i}", "{k}[::-1]",
    "nbta.cumsum({k})", "nbta.max({k})", "nbta.size({x})",
    "nbta.cast(nbta.floor({x} * 1.3), 'int32')",
    "nbta.where({k} > 0, {k}, {i})", "nbta.cast({k}, 'float64')",
    "nbta.one_hot({k}, 3)", "nbta.cast(nbta.arange({i} % 4), '{dtype}') * 0.3",
    "nbta.take({x}, {k})", "nbta.getitem({x}, {i} % nbta.shape({x})[0])", "{x}[{k}]",
    "nbta.set_item({x}, {i} % nbta.shape({x})[0], 0.3)", "nbta.add_item({x}, {i}, {x}[{i}])",
    "nbta.add_item({x}, np.s_[{i} : {i} + 2], 0.5)", "nbta.set_item({k}, {i}, {i})",
]  # fmt: skip
COMPLEX = [
    "nbta.conj({x})", "nbta.real({x}) * {y}", "nbta.imag({x}) + {y}", "{x} * {y}", "{x} + {y}",
    "nbta.exp(0.3 * {x})", "nbta.tanh(0.3 * {x})", "nbta.sin(0.4 * {x})",
    "{x} / (nbta.abs({y}) + 1.0)",
    "nbta.square({x})", "{x} / (3.0 + {y})", "nbta.abs({x}) + {y}", "1j * {x}",
]  # fmt: skip
#: Of complex numbers, which have no order.
ORDERLESS = [t for t in (*ALONG, *REDUCE) if not any(w in t for w in ("max", "min", "exp("))]


def _of(templates, rank=None, least=0):
    def add(g, scope):
        x = g.number(scope, rank, least)
        if x is None:
            return 0
        value = np.asarray(scope.values[x])
        axis = g.random.randrange(-value.ndim, value.ndim) if value.ndim else 0
        fields = {
            "x": x, "y": g.partner(scope, x), "axis": axis, "i": g.integer(scope),
            "k": g.integer(scope, 1), "dtype": g.dtype, "rank": value.ndim,
            "keep": g.among(True, False),
        }  # fmt: skip
        if templates is REDUCE and (not value.ndim or g.chance(0.3)):
            fields["axis"] = None
        elif templates is REDUCE and value.ndim > 1 and g.chance(0.2):
            fields["axis"] = (0, -1)
        elif templates is PRODUCTS:
            fields["y"] = g.number(scope, least=1)
        template = g.among(*templates)
        if any(
            f"{{{name}}}" in template and found is None
            for name, found in fields.items()
            if name != "axis"
        ):
            return 0
        return int(g.expression(scope, template.format(**fields)))

    return add


def solve(g, scope):
    """A triangular system with a well-conditioned matrix."""
    x = g.number(scope, 2)
    y = g.number(scope, least=1)
    if x is None or y is None:
        return 0
    lower, transposed = g.among(True, False), g.among(True, False)
    square = f"{x} @ nbta.transpose({x})"
    eye = (
        f"nbta.cast(nbta.one_hot(nbta.arange(nbta.shape({x})[0]), nbta.shape({x})[0]), {g.dtype!r})"
    )
    matrix = f"nbta.cholesky({square} + 2.0 * {eye})"
    if g.chance(0.4):
        return int(g.expression(scope, matrix))
    if not lower:
        matrix = f"nbta.transpose({matrix})"
    return int(g.expression(scope, f"nbta.triangular_solve({matrix}, {y}, {lower}, {transposed})"))


unary, binary, reduce, along = _of(UNARY), _of(BINARY), _of(REDUCE), _of(ALONG, least=1)
index, shape, products = _of(INDEX, least=1), _of(SHAPE), _of(PRODUCTS, least=1)
integers, complexes = _of(INTEGERS), _of(COMPLEX)

GRAPH = [
    *(unary, binary, binary, reduce, along, index, shape, products, products) * 2,
    *(integers, integers, solve),
]
OF_COMPLEX = [complexes, complexes, products, index, shape, _of(ORDERLESS, least=1)]
