"""Code of numbers in even steps."""

import numpy as np

from nbta.codegen.moving import number_in
from nbta.codegen.names import cast


def arange(code, op) -> None:
    """By integers where all are; floats with the rounding of NumPy."""
    kinds = {tensor.dtype.kind for tensor in op.inputs}
    dtype = op.outputs[0].dtype
    if any(tensor.dtype == np.uint64 for tensor in op.inputs) or dtype.kind in "bc":
        return code.call_python(op)
    if kinds <= {"i", "u"} and dtype.kind in "iu":
        return _integers(code, op)
    return _floats(code, op) if dtype.kind == "f" else code.call_python(op)


def _fill(code, op, count, item):
    """The result, with ``item`` of a place's number."""
    block = code.result(op, extents=(count,))
    i = code.name("i")
    code.nested([f"for {i} in range({count}):"], f"{block.at(i)} = {item(i)}")


def _integers(code, op):
    start, stop, step = (code.integer(tensor) for tensor in op.inputs)
    dtype, known = op.outputs[0].dtype, op.outputs[0].spec.shape[0]
    for number in dict.fromkeys((start, stop, step)):
        if number_in(number) is None:  # so that differences are exact
            code.fail_if(f"{number} < {-(2**61)} or {number} > {2**61}")
    if step == "1":
        text = f"max(0, {stop} - {start})"
    else:
        code.fail_if(f"{step} == 0")
        text = f"max(0, ({stop} - {start} + {step} - (1 if {step} > 0 else -1)) // {step})"
    count = str(known) if type(known) is int else code.variable(text)
    if dtype != np.int64:  # NumPy refuses the first two numbers where they do not fit
        for number in (start, f"{start} + {step}"):
            code.fail_if(f"{number} < {np.iinfo(dtype).min} or {number} > {min(_most(dtype))}")
    _fill(code, op, count, lambda i: cast(f"{start} + {i} * {step}", dtype))


def _most(dtype):
    return np.iinfo(dtype).max, np.iinfo(np.int64).max


def _floats(code, op):
    """The step is rounded as the difference of the first two numbers."""
    dtype = op.outputs[0].dtype
    start, stop, step = (
        code.local(f"float64({code.scalar(tensor)})", "float64").text for tensor in op.inputs
    )
    code.fail_if(f"{step} == 0")
    count = code.local(f"({stop} - {start}) / {step}", "float64").text
    # Not finite, too many, or so few that the quotient is no measure.
    code.fail_if(f"not ({count} - {count} == 0) or {count} > {2.0**61}")
    code.fail_if(f"{count} == 0 and {stop} != {start}")
    known = op.outputs[0].spec.shape[0]
    whole = f"int64(max({count}, 0.0))"
    text = f"{whole} + int64({count} > {whole} and {count} > 0)"
    extent = str(known) if type(known) is int else code.variable(text)
    first = code.local(start, dtype).text
    delta = code.local(f"{cast(f'{start} + {step}', dtype)} - {first}", dtype).text
    _fill(code, op, extent, lambda i: f"{first} + {cast(i, dtype)} * {delta}")
