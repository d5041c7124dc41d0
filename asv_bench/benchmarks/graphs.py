"""Building graphs, differentiating them, and running them operation by operation."""

import numpy as np

import nbta


def chain(length):
    """A graph of twice as many operations, one behind the other."""
    with nbta.Graph().as_default() as graph:
        x = y = nbta.placeholder("float64", (3,))
        for _ in range(length):
            y = nbta.tanh(y) + 0.1
    return graph, x, y


def recurrence(steps, params):
    """States of a tanh network in an array, and their sum of squares."""

    def loss(params, inputs):
        drive = nbta.TensorArray("float32", size=steps).unstack(inputs @ params["w_in"])

        def step(t, state, states):
            state = nbta.tanh(drive.read(t) + state @ params["w_rec"])
            return t + 1, state, states.write(t, state)

        states = nbta.TensorArray("float32", size=steps)
        start = np.zeros((16, 32), np.float32)
        _, _, states = nbta.while_loop(lambda t, *_: t < steps, step, (0, start, states))
        return nbta.sum(nbta.square(states.stack()))

    return nbta.value_and_grad(loss)


class Building:
    """Seconds for 10,000 operations."""

    def time_build(self):
        """Without a gradient."""
        chain(5000)

    def time_gradient(self):
        """With one, of 25,000 operations more."""
        graph, x, y = chain(5000)
        with graph.as_default():
            nbta.gradients(nbta.sum(y), [x])


class Running:
    """Seconds a call, when all is built."""

    def setup(self):
        rng = np.random.default_rng(0)
        self.params = {
            "w_in": rng.normal(0, 0.1, (32, 32)).astype(np.float32),
            "w_rec": rng.normal(0, 0.1, (32, 32)).astype(np.float32),
        }
        self.inputs = rng.normal(size=(200, 16, 32)).astype(np.float32)
        self.network = recurrence(200, self.params)
        self.network(self.params, self.inputs)
        self.graph, self.x, self.y = chain(5000)
        self.session = nbta.Session(self.graph)
        self.session.run(self.y, {self.x: np.ones(3)})

    def time_chain(self):
        """10,000 operations on three numbers."""
        self.session.run(self.y, {self.x: np.ones(3)})

    def time_recurrent_network(self):
        """Value and gradient over 200 steps, about 6,000 operations."""
        self.network(self.params, self.inputs)
