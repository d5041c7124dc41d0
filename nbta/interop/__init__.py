"""Functions as operations of other libraries, with gradients.

Other libraries differentiate, batch and sample their own programs. These functions give them an
nbta function as one operation, with its derivatives:

`to_jax`
    for JAX, with Optax, Diffrax, Optimistix, BlackJAX and NumPyro;
`to_torch`
    for PyTorch;
`to_pytensor`
    for PyTensor and PyMC.

Each needs its library, as in ``pip install "nbta[jax]"``.

`to_awkward`, `from_awkward`
    are for arrays themselves, whose elements may have several lengths.

`with_labels`
    gives gradients the labels of pandas or xarray that arguments have.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbta.tensor_array import TensorArray
    from nbta.typing import Compiled

__all__ = ["from_awkward", "to_awkward", "to_jax", "to_pytensor", "to_torch", "with_labels"]


def to_jax(f: Callable[..., Any], compiled: Compiled = "auto") -> Callable[..., Any]:
    """Make a function of JAX's arrays that may be differentiated, batched and compiled by JAX.

    Parameters
    ----------
    f : callable
        A function of arrays and numbers, plain Python, compiled by ``@njit``, or made by nbta, with
        any loops. It returns an array or a structure of arrays, whose shapes follow from those of
        the arguments.
    compiled : {"auto", True, False}
        As for `nbta.function`.

    Returns
    -------
    callable
        A function of the arguments of ``f``: arrays of JAX or NumPy, numbers, and lists, tuples and
        dicts of these. ``jax.jit``, ``jax.grad``, ``jax.jvp``, ``jax.vmap``, ``jax.hessian`` and
        all others apply to it, in any order and to any order of derivatives.

    Raises
    ------
    ImportError
        If JAX is not installed.
    UnimplementedError
        When called: if the shape of a result is known only when the function runs.

    Notes
    -----
    Arguments have JAX's dtypes, which are float32 unless ``jax_enable_x64`` is set, and results are
    cast to these. A compiled program of JAX calls back to Python, once for each evaluation, which
    takes about twice as long as an empty ``jax.pure_callback``. A gradient computes the function
    again. ``jax.vmap`` becomes `nbta.vmap`, one compiled loop over the items.

    Examples
    --------
    >>> import jax  # doctest: +SKIP
    >>> cube = nbta.interop.to_jax(lambda x: x**3)  # doctest: +SKIP
    >>> jax.jit(jax.grad(cube))(2.0)  # doctest: +SKIP
    Array(12., dtype=float32)
    """
    return _door("jax", "to_jax", "JAX").operation(f, compiled)


def to_torch(f: Callable[..., Any], compiled: Compiled = "auto") -> Callable[..., Any]:
    """Make a function of PyTorch's tensors that is differentiated by PyTorch.

    Parameters
    ----------
    f : callable
        As for `to_jax`, but that shapes of results may depend on values.
    compiled : {"auto", True, False}
        As for `nbta.function`.

    Returns
    -------
    callable
        A function of the arguments of ``f``: tensors on the CPU, arrays of NumPy, numbers, and
        lists, tuples and dicts of these. ``backward``, ``torch.autograd.grad`` to any order,
        forward mode, and ``torch.func``'s ``grad``, ``jvp``, ``vmap``, ``jacrev`` and ``hessian``
        apply to it.

    Raises
    ------
    ImportError
        If PyTorch is not installed.
    InvalidArgumentError
        When called: if a tensor is not on the CPU, not dense, quantized, or of a dtype that NumPy
        does not have, as bfloat16.

    Notes
    -----
    Tensors are passed without a copy. A gradient computes the function again. Results have the
    dtypes that ``f`` gives for arrays of those of the arguments: float32 tensors give float32
    results unless ``f`` itself makes arrays of float64.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> cube = nbta.interop.to_torch(lambda x: x**3)  # doctest: +SKIP
    >>> x = torch.tensor(2.0, requires_grad=True)  # doctest: +SKIP
    >>> torch.autograd.grad(cube(x), x)  # doctest: +SKIP
    (tensor(12.),)
    """
    return _door("torch", "to_torch", "PyTorch").operation(f, compiled)


def to_pytensor(f: Callable[..., Any], compiled: Compiled = "auto") -> Callable[..., Any]:
    """Make a function of PyTensor's variables, so that PyMC's models may use it.

    Parameters
    ----------
    f : callable
        As for `to_jax`; the ranks of results must be known.
    compiled : {"auto", True, False}
        As for `nbta.function`.

    Returns
    -------
    callable
        A function of the arguments of ``f``: variables, arrays of NumPy, numbers, and lists, tuples
        and dicts of these. ``pytensor.grad``, ``Rop`` and derivatives of any order apply to it, so
        that PyMC's samplers with gradients, such as NUTS, do.

    Raises
    ------
    ImportError
        If PyTensor is not installed.
    UnimplementedError
        When called: if the rank of a result is known only when the function runs.

    Notes
    -----
    The operation runs in Python, which calls the compiled function; PyTensor's own modes, Numba's
    too, call it so.

    Examples
    --------
    >>> import pytensor  # doctest: +SKIP
    >>> x = pytensor.tensor.dscalar()  # doctest: +SKIP
    >>> cube = nbta.interop.to_pytensor(lambda x: x**3)(x)  # doctest: +SKIP
    >>> pytensor.function([x], pytensor.grad(cube, x))(2.0)  # doctest: +SKIP
    array(12.)
    """
    return _door("pytensor", "to_pytensor", "PyTensor").operation(f, compiled)


def to_awkward(array: TensorArray) -> Any:
    """Look at an array as one of awkward's, with elements of several lengths as lists.

    Parameters
    ----------
    array : TensorArray
        An eager array. Its elements have one shape; or, where they were not promised to, all have
        at least one dimension, and one shape after the first.

    Returns
    -------
    awkward.Array
        ``n * float64``, or ``n * var * float64`` where elements may differ in length. No slot is
        marked as read.

    Raises
    ------
    ImportError
        If awkward is not installed.
    InvalidArgumentError
        For elements without a dimension among others, or whose shapes differ after the first axis;
        for strings, records and bfloat16; for slots that are cleared, or unwritten without a known
        shape.

    Notes
    -----
    Elements in one buffer are not copied if all are written and reads do not clear them. Elements
    of several lengths are copied once, one after the other. Awkward passes what it has on to Arrow,
    ``awkward.to_arrow``, without a copy.

    Examples
    --------
    >>> ta = nbta.TensorArray("float64", 2, infer_shape=False)  # doctest: +SKIP
    >>> ta = ta.write(0, np.ones(2)).write(1, np.zeros(0))  # doctest: +SKIP
    >>> nbta.interop.to_awkward(ta)  # doctest: +SKIP
    <Array [[1, 1], []] type='2 * var * float64'>
    """
    return _door("awkward", "to_awkward", "awkward").from_array(array)


def from_awkward(array: Any, dynamic_size: bool = False) -> TensorArray:
    """Make an array of one of awkward's: a slot for each item, with a number or a list of numbers.

    Parameters
    ----------
    array : awkward.Array
        Numbers, arrays of one shape, or lists of several lengths of these; without missing values.
    dynamic_size : bool
        Whether writes past the end make the array grow.

    Returns
    -------
    TensorArray
        Of the same dtype, with all slots written. Where items are lists, the first dimension of
        the element shape is unknown.

    Raises
    ------
    ImportError
        If awkward is not installed.
    InvalidArgumentError
        For missing values, strings, records, unions, and lists of lists of several lengths.

    Notes
    -----
    Numbers are copied once, to memory that belongs to the array. Arrow's arrays come by
    ``awkward.from_arrow``, without a copy.

    Examples
    --------
    >>> import awkward  # doctest: +SKIP
    >>> ta = nbta.interop.from_awkward(awkward.Array([[1.0, 2.0], []]))  # doctest: +SKIP
    >>> [element.shape for element in ta]  # doctest: +SKIP
    [(2,), (0,)]
    """
    return _door("awkward", "from_awkward", "awkward").to_array(array, dynamic_size)


def with_labels(g: Callable[..., Any]) -> Callable[..., Any]:
    """Make a gradient take arrays with labels of pandas or xarray, and give these labels back.

    The differentiated function sees values alone, and no labels: operands meet by their places.

    Parameters
    ----------
    g : callable
        What `nbta.grad` or `nbta.value_and_grad` makes, without ``batch_axis``.

    Returns
    -------
    callable
        The same, of Series, DataFrames and DataArrays, also in lists, tuples and dicts. The
        gradient of one has its index, its columns, or its dimensions and coordinates, and its name,
        but no attributes, such as units. All other results are arrays.

    Raises
    ------
    InvalidArgumentError
        For anything else than such a gradient. When called: for columns of several dtypes, and
        dtypes that are not numbers of NumPy's; for two arguments whose labels would be aligned
        otherwise than their items are (the same labels in other places; dimensions in another
        order); for arguments of both libraries.

    Notes
    -----
    Values are not copied on the way in, as far as the library itself does not copy them, and
    results share no memory with arguments. Of pandas' axes two agree if they are equal or have no
    label in common; numbers from 0 are no labels for an axis of another length.

    Examples
    --------
    >>> import pandas as pd  # doctest: +SKIP
    >>> g = nbta.interop.with_labels(nbta.grad(lambda x: np.sum(x**2)))  # doctest: +SKIP
    >>> g(pd.Series([1.0, 2.0], ["a", "b"]))  # doctest: +SKIP
    a    2.0
    b    4.0
    dtype: float64
    """
    from nbta.interop.labels import labelled

    return labelled(g)


def _door(module: str, name: str, library: str) -> Any:
    try:
        return importlib.import_module(f"nbta.interop.{module}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module:
            raise
        message = f'nbta.interop.{name} needs {library}: pip install "nbta[{module}]"'
        raise ImportError(message) from None
