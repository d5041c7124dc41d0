"""PyTorch, eager: Python's loops, and the graph that they leave."""

import torch

from . import cases

MATHS = cases.Maths(
    torch.tanh, torch.sigmoid, lambda value, parts: torch.chunk(value, parts, dim=-1), torch.stack
)


def _value_and_grad(loss, sources):
    """A function without arguments that gives the loss and its gradients."""
    sources = [source.requires_grad_() for source in sources]

    def run():
        value = loss(*sources)
        return [value.detach(), *torch.autograd.grad(value, sources)]

    return run


def recurrent(cell, size):
    """A function that gives the loss and its gradients."""
    return _value_and_grad(*_net(cell, size))


def _net(cell, size):
    """A loss and its parameters."""
    x, params = cases.network(cell, tuple(size))
    step, x = cases.CELLS[cell], torch.from_numpy(x)

    def loss(w_in, w_rec, b, *state):
        states = []
        for row in x:
            state = step(MATHS, row @ w_in + b, state, w_rec)
            states.append(state[0])
        return torch.stack(states).square().sum()

    return loss, list(map(torch.from_numpy, params.values()))


def second(cell, size):
    """A function that gives the product of second derivatives with a direction."""
    loss, params = _net(cell, size)
    params = [param.requires_grad_() for param in params]
    _, numbers = cases.network(cell, tuple(size))
    direction = tuple(map(torch.from_numpy, cases.direction(numbers).values()))

    def run():
        slopes = torch.autograd.grad(loss(*params), params, create_graph=True)
        return torch.autograd.grad(slopes, params, direction)

    return run


def dense():
    """A function that gives the loss and its gradients by weights."""
    x, *params = map(torch.from_numpy, cases.dense())
    return _value_and_grad(lambda *p: cases.dense_net(MATHS, x, *p).square().sum(), params)


def elementwise():
    """A function that gives the loss and its gradients by all vectors."""
    vectors = map(torch.from_numpy, cases.elementwise())
    return _value_and_grad(lambda *v: cases.elementwise_chain(MATHS, *v).square().sum(), vectors)


def ragged(way):
    """A function that gives the sum of losses and its gradients; sorted ones are packed.

    ``nn.RNN`` takes as long as the loop over steps of a padded batch, and longer than the loop
    over items.
    """
    sequences, params = cases.ragged()
    w_in, w_rec, b = map(torch.from_numpy, params.values())
    if way == "sorted":
        return _packed(map(torch.from_numpy, sequences), w_in, w_rec, b)
    if way == "padded":
        batches = [tuple(map(torch.from_numpy, cases.padded(sequences)))]
    else:
        batches = [(torch.from_numpy(x)[:, None], 1.0) for x in sequences]

    def states(x, w_in, w_rec, b):
        found = [x.new_zeros(x.shape[1], len(w_rec))]
        for drive in x @ w_in + b:
            found.append(torch.tanh(torch.addmm(drive, found[-1], w_rec)))
        return torch.stack(found[1:])

    def loss(*sources):
        return sum((real * states(x, *sources).square()).sum() for x, real in batches)

    return _value_and_grad(loss, [w_in, w_rec, b])


def _packed(sequences, w_in, w_rec, b):
    """A function that does it by ``nn.RNN``, whose weights are transposed and whose biases two."""
    x = torch.nn.utils.rnn.pack_sequence(list(sequences), enforce_sorted=False)
    net = torch.nn.RNN(*w_in.shape)
    net.bias_hh_l0.requires_grad_(False).zero_()
    sources = [net.weight_ih_l0, net.weight_hh_l0, net.bias_ih_l0]
    with torch.no_grad():
        for source, value in zip(sources, (w_in.T, w_rec.T, b), strict=True):
            source.copy_(value)

    def run():
        value = net(x)[0].data.square().sum()
        of_in, of_rec, of_b = torch.autograd.grad(value, sources)
        return [value.detach(), of_in.T, of_rec.T, of_b]

    return run


def adaptive(problem):
    """A function that gives the loss on the end state, and its gradients."""
    given = cases.PROBLEMS[problem]

    def loss(y, rates):
        def slope(y):
            return given.slope(MATHS, rates, y)

        t, step, k1 = 0.0, cases.FIRST_STEP, slope(y)
        while t < cases.END:
            step = min(step, cases.END - t)
            moved, k7, off = cases.dormand_prince(slope, y, k1, step)
            error = _error(y, moved, off)
            least, most = cases.ACCEPTED if error < 1.0 else cases.REJECTED
            if error < 1.0:
                t, y, k1 = t + step, moved, k7
            step *= min(max(cases.SAFETY * error**-0.2, least), most)
        return y.square().sum()

    sources = [torch.tensor(value, dtype=torch.float64) for value in (given.start, given.rates)]
    return _value_and_grad(loss, sources)


@torch.no_grad()
def _error(y, moved, off):
    """Root mean square of the error over what is tolerated, a number."""
    scale = cases.TOLERANCE * (1.0 + torch.maximum(y.abs(), moved.abs()))
    return (off / scale).square().mean().sqrt().item()


def writes(iterations):
    """A function that gives the numbers that a loop has put into a list."""
    start = torch.tensor(1.0)

    def fill():
        x, written = start, []
        for _ in range(iterations):
            written.append(x)
            x = 0.999 * x + 0.01
        return [torch.stack(written)]

    return fill
