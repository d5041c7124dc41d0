"""TensorFlow: ``tf.function`` with ``tf.while_loop`` and ``tf.TensorArray``."""

import tensorflow as tf

from . import cases

MATHS = cases.Maths(
    tf.tanh, tf.sigmoid, lambda value, parts: tf.split(value, parts, axis=-1), tf.stack
)


def _value_and_grad(loss, sources):
    """A function without arguments that gives the loss and its gradients."""
    sources = [tf.constant(value) for value in sources]

    @tf.function(autograph=False)
    def both(*sources):
        with tf.GradientTape() as tape:
            tape.watch(sources)
            value = loss(*sources)
        return [value, *tape.gradient(value, sources)]

    return lambda: both(*sources)


def recurrent(cell, size):
    """A function that gives the loss and its gradients."""
    return _value_and_grad(*_net(cell, size))


def _net(cell, size):
    """A loss and its parameters."""
    x, params = cases.network(cell, tuple(size))
    step, steps, x = cases.CELLS[cell], size[0], tf.constant(x)

    def loss(w_in, w_rec, b, *first):
        rows = tf.TensorArray(tf.float32, size=steps).unstack(x)

        def advance(t, state, states):
            state = step(MATHS, rows.read(t) @ w_in + b, state, w_rec)
            return t + 1, state, states.write(t, state[0])

        states = tf.TensorArray(tf.float32, size=steps)
        *_, states = tf.while_loop(lambda t, *_: t < steps, advance, (0, first, states))
        return tf.reduce_sum(tf.square(states.stack()))

    return loss, params.values()


def second(cell, size):
    """A function that gives the product of second derivatives with a direction."""
    loss, values = _net(cell, size)
    params = [tf.constant(value) for value in values]
    _, numbers = cases.network(cell, tuple(size))
    direction = [tf.constant(value) for value in cases.direction(numbers).values()]

    @tf.function(autograph=False)
    def product(params, direction):
        with tf.GradientTape() as outer:
            outer.watch(params)
            with tf.GradientTape() as inner:
                inner.watch(params)
                value = loss(*params)
            slopes = inner.gradient(value, params)
        return outer.gradient(slopes, params, output_gradients=direction)

    return lambda: product(params, direction)


def dense():
    """A function that gives the loss and its gradients by weights."""
    x, *params = map(tf.constant, cases.dense())

    def loss(*params):
        return tf.reduce_sum(tf.square(cases.dense_net(MATHS, x, *params)))

    return _value_and_grad(loss, params)


def elementwise():
    """A function that gives the loss and its gradients by all vectors."""

    def loss(*vectors):
        return tf.reduce_sum(tf.square(cases.elementwise_chain(MATHS, *vectors)))

    return _value_and_grad(loss, cases.elementwise())


def adaptive(problem):
    """A function that gives the loss on the end state, and its gradients."""
    given = cases.PROBLEMS[problem]
    after_accepted, after_rejected = (tf.constant(limits, tf.float64) for limits in
                                      (cases.ACCEPTED, cases.REJECTED))  # fmt: skip

    def loss(start, rates):
        def slope(y):
            return given.slope(MATHS, rates, y)

        def advance(t, y, k1, step):
            step = tf.stop_gradient(tf.minimum(step, cases.END - t))
            moved, k7, off = cases.dormand_prince(slope, y, k1, step)
            scale = cases.TOLERANCE * (1.0 + tf.maximum(tf.abs(y), tf.abs(moved)))
            error = tf.sqrt(tf.reduce_mean(tf.square(tf.stop_gradient(off / scale))))
            accepted = error < 1.0
            limits = tf.where(accepted, after_accepted, after_rejected)
            factor = tf.clip_by_value(cases.SAFETY * error**-0.2, limits[0], limits[1])
            chosen = [tf.where(accepted, *pair) for pair in ((t + step, t), (moved, y), (k7, k1))]
            return *chosen, step * factor

        first = tf.constant([0.0, cases.FIRST_STEP], tf.float64)
        first = (first[0], start, slope(start), first[1])
        y = tf.while_loop(lambda t, *_: t < cases.END, advance, first)[1]
        return tf.reduce_sum(tf.square(y))

    sources = [tf.constant(value, tf.float64) for value in (given.start, given.rates)]
    return _value_and_grad(loss, sources)


def writes(iterations):
    """A function that gives the numbers that a loop has written."""

    @tf.function(autograph=False)
    def fill(x):
        written = tf.TensorArray(tf.float32, size=iterations, element_shape=())
        *_, written = tf.while_loop(
            lambda i, x, written: i < iterations,
            lambda i, x, written: (i + 1, 0.999 * x + 0.01, written.write(i, x)),
            (0, x, written),
        )
        return written.stack()

    start = tf.constant(1.0)
    return lambda: [fill(start)]
