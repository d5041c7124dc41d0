"""Code of users' own functions: those that Numba compiled are called as they are."""

import numba
from numba import types

from nbta.codegen.moving import window
from nbta.codegen.names import cast
from nbta.codegen.values import Scalar
from nbta.graph.spec import Spec
from nbta.runtime.numba_private import Dispatcher, cpu_target
from nbta.shapes import Dim


def custom(code, op, function, wanted) -> None:
    """Call a function with read-only arrays and scalars, and copy what it gives.

    Where anything about its results cannot be told in advance, it runs in Python.

    Parameters
    ----------
    function : object
    wanted : list of bool or None
        Which of its results are those of the operation; all where it is None.
    """
    found = _returned(function, op) if isinstance(function, Dispatcher) else None
    kinds = None if found is None else _chosen(op, found, wanted)
    extents = None if kinds is None else _announced(code, op)
    if extents is None:
        return code.call_python(op)
    arguments = [_argument(code, tensor) for tensor in op.inputs]
    name = code.foreign(function)
    code.add(f"# {op.name}")
    names = [code.name("r") for _ in (found if isinstance(found, types.BaseTuple) else (0,))]
    targets = _tuple(names) if isinstance(found, types.BaseTuple) else names[0]
    code.add(f"{targets} = attempt({name}, {_tuple(arguments)})")
    kept = [one for k, one in enumerate(names) if wanted is None or wanted[k]]
    for result, one, kind, lengths in zip(op.outputs, kept, kinds, extents, strict=True):
        _take(code, op, result, one, kind, lengths)
    return None


def _returned(function, op):
    """The type of what a function gives for the inputs; None where it does not take them."""
    kinds = tuple(_kind(tensor) for tensor in op.inputs)
    try:
        found = types.Dispatcher(function).get_call_type(cpu_target.typing_context, kinds, {})
    except Exception:  # whatever it is, the call from Python shows it
        return None
    return found.return_type if found.args == kinds else None


def _kind(tensor):
    item = numba.from_dtype(tensor.dtype)
    rank = tensor.spec.rank
    return types.Array(item, rank, "C", readonly=True) if rank else item


def _chosen(op, found, wanted):
    """Types of the results; None where they are not as announced."""
    kinds = list(found) if isinstance(found, types.BaseTuple) else [found]
    if wanted is not None:
        if len(kinds) != len(wanted):
            return None
        kinds = [kind for kind, is_wanted in zip(kinds, wanted, strict=True) if is_wanted]
    fits = len(kinds) == len(op.outputs)
    return kinds if fits and all(map(_is_announced, kinds, op.outputs)) else None


def _is_announced(kind, tensor):
    item, rank = numba.from_dtype(tensor.dtype), tensor.spec.rank
    if isinstance(kind, types.Array):
        return (kind.dtype, kind.ndim) == (item, rank)
    return rank == 0 and types.unliteral(kind) == item


def _announced(code, op):
    """For each result what its extents must be: source, or None for any.

    What the user's rule says of shapes is tried out with lengths that stand for those of the run
    and with numbers. None where the two do not tell.
    """
    names = {e for tensor in op.inputs for e in map(code.canonical, code.extents(tensor))}
    dims = {name: int(name) if name.isdigit() else Dim() for name in names}
    numbers = {n: int(n) if n.isdigit() else 1009 + 7 * k for k, n in enumerate(sorted(names))}
    source = {dim: name for name, dim in dims.items()}
    try:
        general, special = (_inferred(code, op, lengths) for lengths in (dims, numbers))
        found = [
            [_rule(a, b, source, numbers) for a, b in zip(one.shape, other.shape, strict=True)]
            for one, other in zip(general, special, strict=True)
        ]
    except Exception:  # a rule that computes with lengths, or that knows of few of them
        return None
    return found


def _inferred(code, op, lengths):
    specs = [
        Spec(tensor.dtype, tuple(lengths[code.canonical(e)] for e in code.extents(tensor)))
        for tensor in op.inputs
    ]
    found = op.record.infer(*specs, **op.attrs)
    for spec, tensor in zip(found, op.outputs, strict=True):
        if spec.dtype != tensor.dtype:
            raise TypeError(spec)
    return found


def _rule(general, special, source, numbers):
    if general is None and special is None:
        return None
    is_name = isinstance(general, Dim)
    if special != (numbers[source[general]] if is_name else general):
        raise ValueError(general, special)
    return source[general] if is_name else str(general)


def _argument(code, tensor):
    value = code.value(tensor)
    if isinstance(value, Scalar):
        return cast(value.text, value.dtype)
    return f"frozen({value.base.name}, {value.offset or 0}, {_tuple(value.extents)})"


def _tuple(texts):
    return f"({', '.join(texts)}{',' * (len(texts) == 1)})"


def _take(code, op, result, name, kind, lengths):
    """Put a result where it belongs."""
    if not result.spec.rank:
        text = f"{name}[()]" if isinstance(kind, types.Array) else name
        return code.bind(result, code.local(text, result.dtype))
    extents = []
    for axis, length in enumerate(lengths):
        have = f"{name}.shape[{axis}]"
        if length is not None:
            code.fail_if(f"{have} != {length}")
        extents.append(code.variable(have) if length is None else length)
    block = code.result(op, extents=tuple(extents), index=result.index)
    indices = [code.name("i") for _ in extents]
    return code.nested(
        [f"for {i} in range({extent}):" for i, extent in zip(indices, extents, strict=True)],
        f"{window(code, block).at(*indices)} = {name}[{', '.join(indices)}]",
    )
