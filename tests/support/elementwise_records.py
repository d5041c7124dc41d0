"""Operations of single elements, of which each is tried."""

import inspect

import numpy as np

from nbta.errors import NbtaError
from nbta.graph.operation import NotDifferentiable, Spec
from nbta.ops import functions  # all records

assert functions.__all__


def arity(record):
    """How many float64 vectors an elementwise operation takes; None if it takes anything else."""
    if not record.elementwise or isinstance(record.gradient, NotDifferentiable):
        return None
    evaluate = record.evaluate
    if isinstance(evaluate, np.ufunc):
        count = evaluate.nin
    else:
        parameters = inspect.signature(evaluate).parameters.values()
        count = sum(each.kind is not inspect.Parameter.KEYWORD_ONLY for each in parameters)
    try:
        found = record.infer(*[Spec(np.dtype(np.float64), (4,))] * count)
    except (NbtaError, TypeError):
        return None
    return count if found.dtype == np.float64 else None
