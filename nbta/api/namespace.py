"""All that users see of graphs; `nbta` imports it when something of it is first used."""

from nbta import raw_ops, testing
from nbta.api.custom import custom_gradient
from nbta.api.derivatives import grad, hvp, jvp, value_and_grad
from nbta.api.sequences import foldl, foldr, map_fn, scan
from nbta.api.tracing import function
from nbta.control.control_flow import cond, switch_case, while_loop
from nbta.control.reverse_mode import gradients
from nbta.execution.session import Session
from nbta.graph.graph import Graph, control_dependencies, name_scope
from nbta.graph.operation import Operation, Tensor
from nbta.graph.spec import Spec
from nbta.inspect.flow_check import check_flow
from nbta.inspect.plot import plot
from nbta.ops.functions import *  # noqa: F403
from nbta.ops.functions import __all__ as _functions
from nbta.structure import flatten, unflatten

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
    "flatten",
    "foldl",
    "foldr",
    "function",
    "grad",
    "gradients",
    "hvp",
    "jvp",
    "map_fn",
    "name_scope",
    "plot",
    "raw_ops",
    "scan",
    "switch_case",
    "testing",
    "unflatten",
    "value_and_grad",
    "while_loop",
]
__all__ += _functions
