"""The modules that TensorFlow's tests import."""

import sys
from contextlib import contextmanager
from types import ModuleType

import nbta
from foreign import arrays, calls, cases, values
from nbta import raw_ops

_RAW = {
    "tensor_array_read_v3": arrays.raw(raw_ops.TensorArrayReadV3),
    "tensor_array_grad_with_shape": arrays.raw(raw_ops.TensorArrayGradWithShape),
    "TensorArrayConcatV2": arrays.raw(raw_ops.TensorArrayConcatV2),
}

#: Names by module, below ``tensorflow``.
MODULES = {
    "core.protobuf.config_pb2": {},
    "python.client.session": {"Session": calls.Session},
    "python.data.ops.dataset_ops": {},
    "python.eager.backprop": {"gradients_function": calls.gradients_function},
    "python.eager.context": {"executing_eagerly": cases.executing_eagerly},
    "python.eager.def_function": {"function": calls.function},
    "python.framework.constant_op": {"constant": values.constant},
    "python.framework.dtypes": {**values.DTYPES, "as_dtype": values.as_dtype},
    "python.framework.errors": {
        "OpError": nbta.NbtaError,
        "InvalidArgumentError": nbta.InvalidArgumentError,
        "NotFoundError": nbta.NotFoundError,
        "UnimplementedError": nbta.UnimplementedError,
        "FailedPreconditionError": nbta.FailedPreconditionError,
        "ResourceExhaustedError": nbta.ResourceExhaustedError,
    },
    "python.framework.ops": {
        "control_dependencies": calls.control_dependencies,
        "device": calls.device,
    },
    "python.framework.tensor_shape": {
        "TensorShape": values.Shape,
        "unknown_shape": lambda: values.Shape(None),
    },
    "python.framework.tensor_spec": {"TensorSpec": calls.TensorSpec},
    "python.framework.test_util": {
        "run_all_in_graph_and_eager_modes": cases.run_in_both,
        "run_in_graph_and_eager_modes": cases.run_in_both,
        "deprecated_graph_mode_only": cases.graph_only,
        "run_deprecated_v1": cases.graph_only,
        "run_v1_only": cases.for_a_reason,
        "with_control_flow_v2": cases.as_it_is,
        "enable_control_flow_v2": cases.as_it_is,
        "disable_control_flow_v2": cases.for_a_reason,
    },
    "python.ops.array_ops": {
        "identity": calls.identity,
        "ones": calls.filled(nbta.ones),
        "placeholder": calls.placeholder,
        "slice": calls.passed_on(nbta.slice),
        "squeeze": calls.squeeze,
        "zeros": calls.filled(nbta.zeros),
    },
    "python.ops.array_ops_stack": {"stack": calls.passed_on(nbta.stack)},
    "python.ops.cond": {"cond": calls.cond},
    # nbta has the arrays that write once and clear what is read.
    "python.ops.control_flow_util": {"ENABLE_CONTROL_FLOW_V2": False},
    "python.ops.data_flow_ops": _RAW,
    "python.ops.gen_data_flow_ops": _RAW,
    "python.ops.gradients_impl": {"gradients": calls.gradients},
    "python.ops.init_ops": {
        "constant_initializer": calls.constant_initializer,
        "zeros_initializer": calls.zeros_initializer,
    },
    "python.ops.math_ops": {
        "equal": calls.passed_on(nbta.equal),
        "less": calls.passed_on(nbta.less),
        "multiply": calls.passed_on(nbta.multiply),
        "square": calls.passed_on(nbta.square),
    },
    "python.ops.nn_grad": {},
    "python.ops.tensor_array_grad": {"_GetGradSource": calls.grad_source},
    "python.ops.tensor_array_ops": {"TensorArray": arrays.Array},
    "python.ops.variable_scope": {"get_variable": calls.get_variable},
    "python.ops.variables": {"global_variables_initializer": lambda: None},
    "python.ops.while_loop": {"while_loop": calls.while_loop},
    "python.platform.test": {
        "Benchmark": cases.Benchmark,
        "TestCase": cases.TestCase,
        "create_local_cluster": cases.create_local_cluster,
        "is_gpu_available": cases.is_gpu_available,
    },
}


def made():
    """All modules by their names, packages among them."""
    found = {"tensorflow": _package("tensorflow")}
    for path, names in MODULES.items():
        parts = path.split(".")
        for end in range(1, len(parts) + 1):
            full = ".".join(["tensorflow", *parts[:end]])
            if full not in found:
                found[full] = _package(full)
                outer, _, name = full.rpartition(".")
                setattr(found[outer], name, found[full])
        vars(found[full]).update(names)
    return found


def _package(name):
    module = ModuleType(name)
    module.__path__ = []
    return module


@contextmanager
def installed():
    """A context in which these are TensorFlow."""
    new = made()
    before = {name: module for name, module in sys.modules.items() if _is_tensorflow(name)}
    for name in before:
        del sys.modules[name]
    sys.modules.update(new)
    try:
        yield new
    finally:
        for name in [name for name in sys.modules if _is_tensorflow(name)]:
            del sys.modules[name]
        sys.modules.update(before)


def _is_tensorflow(name):
    return name.partition(".")[0] == "tensorflow"
