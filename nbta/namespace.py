"""All that users see of graphs; `nbta` imports it when something of it is first used."""

import nbta.api.made_in_njit  # noqa: F401 - tells Numba of functions
from nbta import debug, implicit, random, raw_ops, testing
from nbta.api.custom import custom_gradient
from nbta.api.custom_tangents import custom_jvp
from nbta.api.derivatives import (
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jvp,
    linearize,
    value_and_grad,
    vjp,
)
from nbta.api.printing import print
from nbta.api.sequences import foldl, foldr, fori_loop, map_fn, scan, vmap
from nbta.api.sparse import sparse_hessian, sparse_jacobian
from nbta.api.tracing import function, warm
from nbta.control.control_flow import cond, switch_case, while_loop
from nbta.control.reverse_mode import gradients
from nbta.execution.session import Session
from nbta.frontend.calls import opaque
from nbta.frontend.iteration import unroll
from nbta.graph.graph import Graph, control_dependencies, name_scope
from nbta.graph.operation import Operation, Spec, Tensor
from nbta.inspect.flow_check import check_flow
from nbta.inspect.plot import plot
from nbta.ops.functions import *  # noqa: F403
from nbta.ops.functions import __all__ as _functions
from nbta.structure import flatten, register_structure, tree_map, unflatten

__all__ = [
    "Graph",
    "Operation",
    "Session",
    "Spec",
    "Tensor",
    "check_flow",
    "cond",
    "control_dependencies",
    "custom_gradient",
    "custom_jvp",
    "debug",
    "flatten",
    "foldl",
    "foldr",
    "fori_loop",
    "function",
    "grad",
    "gradients",
    "hessian",
    "hvp",
    "implicit",
    "jacfwd",
    "jacobian",
    "jvp",
    "linearize",
    "map_fn",
    "name_scope",
    "opaque",
    "plot",
    "print",
    "random",
    "raw_ops",
    "register_structure",
    "scan",
    "sparse_hessian",
    "sparse_jacobian",
    "switch_case",
    "testing",
    "tree_map",
    "unflatten",
    "unroll",
    "value_and_grad",
    "vjp",
    "vmap",
    "warm",
    "while_loop",
]
__all__ += _functions
