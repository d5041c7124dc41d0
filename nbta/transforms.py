"""Derivatives of Python functions: grad, value_and_grad, jvp, hvp."""

import functools

from nbta import shapes
from nbta.batching import Batched, places_of
from nbta.captured import guarded
from nbta.errors import invalid
from nbta.graph.spec import FLOW
from nbta.loop_variables import leaf_spec, taken
from nbta.ops.arithmetic import add_n, multiply
from nbta.ops.dispatch import as_tensor
from nbta.ops.filling import zeros_like
from nbta.ops.reductions import sum as sum_
from nbta.ops.shaping import identity, reshape
from nbta.reverse_mode import gradients
from nbta.structure import describe, layout, leaves, map_leaves, pack, paths
from nbta.tracing import Function, once, weakly


def value_and_grad(
    f, argnums=0, has_aux=False, compiled="auto", *, batch_axis=None, reduction="sum"
):
    """A function that gives the value of ``f`` and its gradient.

    Parameters
    ----------
    f : callable
        Gives a scalar; with ``has_aux``, a pair of a scalar and anything else.
    argnums : int or tuple of int
        With respect to which positional arguments, each an array or a structure of arrays.
    has_aux : bool
    compiled : {"auto", True, False}
        As for `Session.run`.
    batch_axis : int or tuple of (int or None), optional
        ``f`` is of one item, and is run for all items of a batch, on as many threads as Numba uses
        (`numba.set_num_threads`). Arguments are cut into items along this axis, other than those of
        ``argnums``, which all items share; a tuple says it for each argument, with None for what is
        shared. A list is a batch as it is: its elements are the items, which may have other
        lengths each. Tuples and dicts are structures of these. Keyword arguments are shared. Items
        run one by one where Python has a part in them (see
        `nbta.tracing.Function.explain`), and where a batch of another thread has Numba's threads.
        (Numba's workqueue layer ends the process where a user's own parallel loop meets one: its
        threads serve one caller at a time.)
    reduction : {"sum", "mean"}
        How the values of all items become one.

    Returns
    -------
    callable
        Of the arguments of ``f``; gives ``(value, gradient)`` or ``((value, aux), gradient)``. The
        gradient has the structure of the argument; for a tuple of ``argnums`` it is a tuple.
        Where the value does not depend on something, zeros. Of a batch, ``aux`` has the values of
        all items, stacked where they have one shape. Sums are taken in an order that depends on the
        number of items alone: the number of threads changes no bit.

    Raises
    ------
    InvalidArgumentError
        When called: for an argument of integers, for an ``f`` that gives no scalar, and for a batch
        whose arguments have other numbers of items.
    Exception
        What ``f`` raises; for a batch the first item's that fails, with its number.

    See Also
    --------
    flatten, unflatten : for optimisers that want one vector.

    Examples
    --------
    >>> loss = nbta.value_and_grad(lambda p, x: nbta.sum((p["w"] * x) ** 2))
    >>> loss({"w": np.array([1.0, 2.0])}, np.array([3.0, 1.0]))
    (np.float64(13.0), {'w': array([18.,  4.])})

    >>> from scipy.optimize import minimize
    >>> start = {"a": np.array([3.0, 4.0]), "b": 1.0}
    >>> def loss(vector):
    ...     p = nbta.unflatten(vector, start)
    ...     return nbta.sum((p["a"] - p["b"]) ** 2) + p["b"] ** 2
    >>> found = minimize(nbta.value_and_grad(loss), nbta.flatten(start), jac=True)
    >>> bool(found.fun < 1e-9)
    True

    >>> def loss(w, x):
    ...     return nbta.sum(w * x) ** 2
    >>> ragged = [np.array([1.0]), np.array([1.0, 2.0]), np.array([0.5, 0.5, 0.5])]
    >>> nbta.value_and_grad(loss, batch_axis=0)(1.0, ragged)
    (np.float64(12.25), np.float64(24.5))
    """
    both = _both(f, argnums, has_aux, compiled)
    if batch_axis is None:
        return both
    return Batched(f, both, batch_axis, argnums, reduction, compiled)


def _both(f, argnums, has_aux, compiled, pick=None):
    @functools.wraps(f)
    def both(*args, **kwargs):
        return _value_and_grad(f, argnums, has_aux, args, kwargs)

    return Function(both, compiled, pick)


def grad(f, argnums=0, has_aux=False, compiled="auto", *, batch_axis=None, reduction="sum"):
    """A function that gives the gradient of ``f``; see `value_and_grad`.

    With ``has_aux`` it gives ``(gradient, aux)``. The value is computed too, so that what is wrong
    on the way to it raises an error even where the gradient does not need it.

    Examples
    --------
    >>> nbta.grad(lambda x: x ** 3)(2.0)
    np.float64(12.0)
    >>> nbta.grad(nbta.grad(lambda x: x ** 3))(2.0)
    np.float64(12.0)
    """

    def pick(result):
        value, found = result
        return (found, value[1]) if has_aux else found

    if batch_axis is None:
        return _both(f, argnums, has_aux, compiled, pick)
    both = _both(f, argnums, has_aux, compiled)
    return Batched(f, both, batch_axis, argnums, reduction, compiled, pick)


def _value_and_grad(f, argnums, has_aux, args, kwargs):
    args, places = list(args), places_of(argnums, len(args))
    for place in places:
        args[place] = _free(f"args[{place}]", args[place])
    result = guarded(f, "the function")(*args, **kwargs)
    value, aux = _parted(result) if has_aux else (result, None)
    value = _scalar(value)
    chosen = tuple(args[place] for place in places)
    found = pack(chosen, gradients([value], leaves(chosen), unconnected="zero"))
    return ((value, aux) if has_aux else value), (found if isinstance(argnums, tuple) else found[0])


def _free(path, structure):
    """The tensors of an argument under new names, so that nothing else depends on them."""
    for where, value in zip(paths(structure, path), leaves(structure), strict=True):
        spec = leaf_spec(value)
        if not spec.differentiable or spec.kind == FLOW:
            message = (
                f"{where} is {spec}, and gradients exist for floats and complex numbers only; give "
                f"a float, or choose other arguments with argnums="
            )
            raise invalid("integer", message)
    return map_leaves(lambda value: identity(as_tensor(value)), structure)


def _parted(result):
    if not isinstance(result, tuple) or len(result) != 2:
        message = f"has_aux: f must give a pair (value, aux), and gives {describe(result)}"
        raise invalid("has_aux", message)
    return result


def _scalar(value):
    if len(leaves(value)) != 1 or leaves(value)[0] is not value:
        message = (
            f"f must give one scalar to differentiate, and gives {describe(value)}; add up what "
            f"counts, and pass the rest on with has_aux=True"
        )
        raise invalid("scalar", message)
    value = as_tensor(value)
    if value.ndim not in (0, None) or not value.spec.differentiable:
        message = (
            f"f must give a scalar of floats to differentiate, and gives {value.spec}; reduce it, "
            f"as with nbta.sum"
        )
        raise invalid("scalar", message)
    return value if value.ndim == 0 else reshape(value, ())


def _tuples(primals, tangents):
    """Arguments and directions as tuples of the same structure."""
    if not isinstance(primals, tuple):
        primals, tangents = (primals,), (tangents,)
    if layout(primals) != layout(tangents):
        message = (
            f"tangents must have the structure of primals, {describe(primals)}, and are "
            f"{describe(tangents)}"
        )
        raise invalid("tangents", message)
    names = paths(primals, "primals")
    pairs = zip(names, leaves(primals), leaves(tangents), strict=True)
    return primals, pack(tangents, [_like_primal(*pair) for pair in pairs])


def _like_primal(name, primal, tangent):
    """A tangent of the dtype and shape of its primal; Python's numbers take the dtype."""
    want = leaf_spec(primal)
    if not want.differentiable:
        return tangent  # the primal will be refused
    tangent = taken(tangent, want.dtype)
    have = leaf_spec(tangent)
    if have.dtype != want.dtype or not shapes.compatible(have.shape, want.shape):
        message = (
            f"tangents{name.removeprefix('primals')} is {have}, and {name} is {want}; they must be "
            f"alike"
        )
        raise invalid("tangents", message)
    return tangent


def jvp(f, primals, tangents):
    """The value of a function, and its derivative in a direction.

    Parameters
    ----------
    f : callable
        Gives any structure.
    primals : tuple
        Arguments; what is no tuple counts as the only one.
    tangents : tuple
        The direction, of the structure, shapes and dtypes of ``primals``.

    Returns
    -------
    value : structure
        What ``f`` gives.
    derivative : structure
        Of the same structure.

    Raises
    ------
    InvalidArgumentError
        For tangents unlike the primals, and for integers.

    Notes
    -----
    Computed as the gradient of the gradient with respect to its own seed, which it depends on
    linearly (J. Townsend, "A new trick for calculating Jacobian vector products", 2017).

    Examples
    --------
    >>> nbta.jvp(lambda x: x ** 2, np.array([1.0, 2.0]), np.array([1.0, 0.5]))
    (array([1., 4.]), array([2., 2.]))
    """
    primals, tangents = _tuples(primals, tangents)
    traced = once(f, "jvp", lambda: Function(weakly(_jvp, f)))
    return traced(primals, tangents)


def _jvp(f, primals, tangents):
    primals = tuple(_free(f"primals[{i}]", p) for i, p in enumerate(primals))
    value = map_leaves(as_tensor, guarded(f, "the function")(*primals))
    xs, directions = leaves(primals), [as_tensor(t) for t in leaves(tangents)]
    ys = [y for y in leaves(value) if y.spec.differentiable]
    seeds = [identity(zeros_like(y)) for y in ys]
    found = gradients(ys, xs, seeds) if ys else [None] * len(xs)
    pairs = [(g, d) for g, d in zip(found, directions, strict=True) if g is not None]
    if pairs:
        derivatives = gradients(
            [g for g, _ in pairs], seeds, [d for _, d in pairs], unconnected="zero"
        )
    else:
        derivatives = [zeros_like(y) for y in ys]
    given = iter(derivatives)
    return value, map_leaves(
        lambda y: next(given) if y.spec.differentiable else zeros_like(y), value
    )


def hvp(f, primals, tangents):
    """The product of the matrix of second derivatives of a scalar function with a direction.

    Parameters
    ----------
    f : callable
        Gives a scalar.
    primals, tangents : tuple
        As for `jvp`.

    Returns
    -------
    structure like ``primals``

    Examples
    --------
    >>> nbta.hvp(lambda x: nbta.sum(x ** 3), np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([ 6., 12.])
    """
    alone = not isinstance(primals, tuple)
    primals, tangents = _tuples(primals, tangents)
    # All is computed, so that arguments of a wrong shape are refused.
    traced = once(f, "hvp", lambda: Function(weakly(_hvp, f), pick=lambda result: result[-1]))
    found = traced(primals, tangents)
    return found[0] if alone else found


def _hvp(f, primals, tangents):
    primals = tuple(_free(f"primals[{i}]", p) for i, p in enumerate(primals))
    xs = leaves(primals)
    value = _scalar(guarded(f, "the function")(*primals))
    first = gradients([value], xs, unconnected="zero")
    slope = add_n([sum_(multiply(g, t)) for g, t in zip(first, leaves(tangents), strict=True)])
    return value, first, pack(primals, gradients([slope], xs, unconnected="zero"))
