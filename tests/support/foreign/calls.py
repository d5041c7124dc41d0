"""Functions on tensors, loops, branches and gradients under TensorFlow's names."""

import numpy as np

import nbta
from foreign.values import OutOfScope, Shape, Value, constant, run, unwrap, wrap


def passed_on(function):
    """A function of nbta's that takes and gives what a test has."""

    def call(*args, **kwargs):
        return wrap(function(*unwrap(args), **unwrap(kwargs)))

    return call


def inward(function):
    """A test's function as nbta calls it."""
    return lambda *args: unwrap(function(*wrap(args)))


def identity(value):
    """The same value; Python's numbers are of 32 bits, as in TensorFlow."""
    return wrap(nbta.identity(unwrap(value if hasattr(value, "dtype") else constant(value))))


def squeeze(value):
    """Without axes of length 1."""
    return wrap(nbta.squeeze(unwrap(value)))


def filled(function):
    """`zeros` and `ones`, of float32 by default."""

    def call(shape, dtype=np.float32):
        return wrap(function(tuple(shape), unwrap(dtype)))

    return call


def placeholder(dtype, shape=None, name=None):
    """A tensor whose value each run is given."""
    return wrap(nbta.placeholder(unwrap(dtype), Shape(shape).dims, name=name))


def while_loop(
    cond, body, loop_vars, shape_invariants=None, parallel_iterations=10, name=None, **options
):
    """`nbta.while_loop`."""
    invariants = None if shape_invariants is None else unwrap(shape_invariants)
    found = nbta.while_loop(
        inward(cond),
        inward(body),
        unwrap(loop_vars),
        shape_invariants=invariants,
        parallel_iterations=parallel_iterations,
        name=name,
        **options,
    )
    return wrap(found)


def cond(pred, true_fn, false_fn, name=None):
    """`nbta.cond`."""
    return wrap(nbta.cond(unwrap(pred), inward(true_fn), inward(false_fn), name=name))


def gradients(ys, xs, grad_ys=None, name="gradients"):
    """`nbta.gradients`."""
    ys, xs, grad_ys = _flat(unwrap(ys)), _flat(unwrap(xs)), grad_ys and unwrap(grad_ys)
    if grad_ys is not None:
        grad_ys = [_like(grad, y) for grad, y in zip(grad_ys, ys, strict=True)]
    return wrap(list(nbta.gradients(ys, xs, grad_ys, name=name)))


def _flat(values):
    if not isinstance(values, (list, tuple)):
        return [values]
    return [leaf for value in values for leaf in _flat(value)]


def _like(grad, y):
    """Python's numbers in the dtype of what they weigh."""
    return grad if grad is None or hasattr(grad, "dtype") else np.asarray(grad, y.dtype)


def gradients_function(f):
    """A function that gives the gradients of ``f`` by all arguments."""

    def gradients_of(*args, dy=None):
        def loss(*inner):
            y = unwrap(f(*wrap(inner)))
            return nbta.sum(y if dy is None else y * unwrap(dy))

        return wrap(list(nbta.grad(loss, argnums=tuple(range(len(args))))(*unwrap(args))))

    return gradients_of


def function(f=None, input_signature=None, jit_compile=None):
    """`nbta.function`. Python's numbers are constants, unless a signature makes tensors of them."""
    if f is None:
        return lambda f: function(f, input_signature, jit_compile)
    if input_signature is None:
        return lambda *args: _call(f, args, jit_compile)
    signature = [nbta.Spec(spec.dtype, spec.shape) for spec in input_signature]
    traced = nbta.function(inward(f), input_signature=signature)

    def call(*args):
        pairs = zip(args, signature, strict=True)
        return wrap(traced(*[np.asarray(unwrap(arg), spec.dtype) for arg, spec in pairs]))

    return call


def _call(f, args, jit_compile):
    tensors = [unwrap(arg) for arg in args if isinstance(arg, Value)]

    def of_tensors(*values):
        values = iter(values)
        return unwrap(f(*[wrap(next(values)) if isinstance(a, Value) else a for a in args]))

    options = {"compiled": True} if jit_compile else {}
    return wrap(nbta.function(of_tensors, **options)(*tensors))


class TensorSpec:
    """Shape and dtype of an argument."""

    def __init__(self, shape, dtype=np.float32, name=None):
        self.shape, self.dtype = Shape(shape).dims, unwrap(dtype)


class Variable(Value):
    """Its first value. Outside of graphs it can be added to."""

    def assign_add(self, value):
        """Add now; graphs of nbta have no variables."""
        if isinstance(self.inner, nbta.Tensor):
            raise OutOfScope("variables in graphs")
        self.inner = self.inner + self.inner.dtype.type(value)
        return Value(self.inner)


def get_variable(name, shape=None, dtype=np.float32, initializer=None):
    """A variable with its first value."""
    return Variable(nbta.identity(initializer(tuple(shape), unwrap(dtype))))


def constant_initializer(value):
    """A first value."""
    return lambda shape, dtype: np.broadcast_to(np.asarray(value, dtype), shape)


def zeros_initializer():
    """Zeros as first value."""
    return np.zeros


class Session:
    """Runs the graph that is being built."""

    def __init__(self, target="", **options):
        if target:
            raise OutOfScope("distributed sessions")

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        """The values of fetches."""
        return run(fetches, feed_dict)

    @staticmethod
    def reset(target):
        """There is no cluster to reset."""


def device(name):
    """nbta runs on one processor."""
    raise OutOfScope("devices")


def control_dependencies(values):
    """`nbta.control_dependencies`."""
    return nbta.control_dependencies(unwrap(values))


def grad_source(tensor):
    """A private function, on names that TensorFlow gives."""
    raise OutOfScope("TensorFlow's names of gradient scopes")
