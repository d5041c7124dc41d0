"""Data-parallel gradients past one machine, by Dask.

A batch is cut into shards, workers compute the sums of losses and gradients over them, and a tree
of additions makes one sum of these. `nbta.TensorArray` objects may be sent by Dask like any other
data: their pickles hand out the arrays' own memory.

This needs the package ``distributed``: ``pip install "nbta[distributed]"``.
"""

try:
    from nbta.distributed.client import value_and_grad
except ModuleNotFoundError as error:
    if error.name not in ("cloudpickle", "dask", "distributed"):
        raise
    raise ImportError('nbta.distributed needs Dask: pip install "nbta[distributed]"') from None

__all__ = ["value_and_grad"]
