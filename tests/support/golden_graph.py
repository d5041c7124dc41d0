"""Replay of golden programs as graphs: raw operations, and expression graphs with gradients."""

import numpy as np
from golden import tensor

import nbta
from nbta import raw_ops
from nbta.graph.graph import subgraphs


class RawGraph:
    """Builds the steps of a raw program as operations that run one after another."""

    def __init__(self):
        self.graph = nbta.Graph()
        self.arrays, self.flows = {}, {}
        self.feeds = {}
        self.last = None

    def step(self, step):
        """Add a step; what to fetch for its result."""
        arguments = {k: v for k, v in step.items() if k not in ("op", "array")}
        before = [] if self.last is None else [self.last]
        with self.graph.as_default(), nbta.control_dependencies(before):
            fetch = getattr(self, step["op"])(step["array"], **arguments)
        self.last = self.graph.operations[-1]
        return fetch

    def _fed(self, value):
        """A value that is known at run time only, without a static shape."""
        value = np.asarray(value)
        name = f"fed_{len(self.feeds)}"
        placeholder = nbta.placeholder(value.dtype, None, name=name)
        self.feeds[placeholder] = value
        return placeholder

    def _int32(self, value):
        return self._fed(np.array(value, np.int32))

    def _on(self, label):
        return self.arrays[label], self.flows[label]

    def create(self, label, size, name, **rest):
        self.arrays[label], self.flows[label] = raw_ops.TensorArrayV3(
            self._int32(size), tensor_array_name=name, **rest
        )
        return self.flows[label]

    def write(self, label, index, value):
        handle, flow = self._on(label)
        index, value = self._int32(index), self._fed(tensor(value))
        self.flows[label] = raw_ops.TensorArrayWriteV3(handle, index, value, flow)
        return self.flows[label]

    def read(self, label, index, dtype):
        handle, flow = self._on(label)
        return {"value": raw_ops.TensorArrayReadV3(handle, self._int32(index), flow, dtype)}

    def gather(self, label, indices, dtype, element_shape):
        handle, flow = self._on(label)
        indices = self._int32(indices)
        return {"value": raw_ops.TensorArrayGatherV3(handle, indices, flow, dtype, element_shape)}

    def scatter(self, label, indices, value):
        handle, flow = self._on(label)
        indices, value = self._int32(indices), self._fed(tensor(value))
        self.flows[label] = raw_ops.TensorArrayScatterV3(handle, indices, value, flow)
        return self.flows[label]

    def concat(self, label, dtype, element_shape_except0):
        handle, flow = self._on(label)
        value, lengths = raw_ops.TensorArrayConcatV3(handle, flow, dtype, element_shape_except0)
        return {"value": value, "lengths": lengths}

    def split(self, label, value, lengths):
        handle, flow = self._on(label)
        value, lengths = self._fed(tensor(value)), self._fed(np.array(lengths, np.int64))
        self.flows[label] = raw_ops.TensorArraySplitV3(handle, value, lengths, flow)
        return self.flows[label]

    def size(self, label):
        handle, flow = self._on(label)
        return {"value": raw_ops.TensorArraySizeV3(handle, flow)}

    def close(self, label):
        return raw_ops.TensorArrayCloseV3(self.arrays[label])

    def grad(self, label, of, source):
        handle, flow = self._on(of)
        made = raw_ops.TensorArrayGradV3(handle, flow, source)
        self.arrays[label], self.flows[label] = made
        return made

    def grad_with_shape(self, label, of, source, prepend):
        handle, flow = self._on(of)
        prepend = self._int32(prepend)
        made = raw_ops.TensorArrayGradWithShape(handle, flow, prepend, source)
        self.arrays[label], self.flows[label] = made
        return made


class Expressions:
    """Builds the graph of a program of the families gradients and loops."""

    def __init__(self, program):
        self.program = program
        self.graph = nbta.Graph()
        self.names = {}
        self.calls = []
        with self.graph.as_default():
            self.nodes(program["nodes"], self.names)

    @property
    def feeds(self):
        """What the run is given."""
        return {self.names[n]: tensor(spec) for n, spec in self.program["feeds"].items()}

    def nodes(self, nodes, names):
        for node in nodes:
            inputs = [names[ref] for ref in node["inputs"]]
            result = getattr(self, node["op"])(names, *inputs, **node["attrs"])
            if node["op"] in ("while", "cond"):
                names.update({f"{node['name']}:{i}": r for i, r in enumerate(result)})
            else:
                names[node["name"]] = result

    def differentiate(self, call):
        """Add a call of gradients; sources of the gradient arrays that it made."""
        before = {op for op in all_operations(self.graph) if op.type == "TensorArrayGradV3"}
        ys, xs = ([self.names[ref] for ref in call[key]] for key in ("ys", "xs"))
        grad_ys = call["grad_ys"] and [g and tensor(g) for g in call["grad_ys"]]
        options = {} if call["name"] is None else {"name": call["name"]}
        with self.graph.as_default():
            if call["name_scope"] is None:
                grads = nbta.gradients(ys, xs, grad_ys, **options)
            else:
                with nbta.name_scope(call["name_scope"]):
                    grads = nbta.gradients(ys, xs, grad_ys, **options)
        self.names.update({f"grad{len(self.calls)}:{i}": g for i, g in enumerate(grads)})
        self.calls.append(grads)
        made = [op for op in all_operations(self.graph) if op.type == "TensorArrayGradV3"]
        return sorted({op.attrs["source"] for op in made if op not in before})

    # The operations of a node.

    def placeholder(self, names, dtype, shape):
        return nbta.placeholder(dtype, shape)

    def const(self, names, value):
        return nbta.constant(tensor(value))

    def add(self, names, a, b):
        return a + b

    def sub(self, names, a, b):
        return a - b

    def mul(self, names, a, b):
        return a * b

    def matmul(self, names, a, b):
        return a @ b

    def tanh(self, names, a):
        return np.tanh(a)

    def square(self, names, a):
        return np.square(a)

    def reduce_sum(self, names, a, axis, keepdims):
        return nbta.sum(a, axis=None if axis is None else tuple(axis), keepdims=keepdims)

    def slice(self, names, a, begin, size):
        return nbta.slice(a, begin, size)

    def floormod(self, names, a, b):
        return a % b

    def less(self, names, a, b):
        return a < b

    def equal(self, names, a, b):
        return a == b

    def logical_and(self, names, a, b):
        return a & b

    def ta(self, names, **attrs):
        return nbta.TensorArray(**attrs)

    def ta_write(self, names, array, *inputs, index=None):
        index, value = inputs if len(inputs) == 2 else (index, *inputs)
        return array.write(index, value)

    def ta_read(self, names, array, *inputs, index=None):
        return array.read(*inputs) if inputs else array.read(index)

    def ta_stack(self, names, array):
        return array.stack()

    def ta_unstack(self, names, array, value):
        return array.unstack(value)

    def ta_gather(self, names, array, indices):
        return array.gather(indices)

    def ta_scatter(self, names, array, value, indices):
        return array.scatter(indices, value)

    def ta_concat(self, names, array):
        return array.concat().value

    def ta_split(self, names, array, value, lengths):
        return array.split(value, lengths)

    def ta_size(self, names, array):
        return array.size()

    def _while(self, names, *first, vars, cond, body, parallel_iterations):
        def inner(graph, values):
            inside = {**names, **dict(zip(vars, values, strict=True))}
            self.nodes(graph["nodes"], inside)
            return inside

        def goes_on(*values):
            return inner(cond, values)[cond["output"]]

        def advance(*values):
            inside = inner(body, values)
            return tuple(inside[ref] for ref in body["outputs"])

        return nbta.while_loop(goes_on, advance, first, parallel_iterations=parallel_iterations)

    def cond(self, names, predicate, **branches):
        def branch(graph):
            def run():
                inside = dict(names)
                self.nodes(graph["nodes"], inside)
                return tuple(inside[ref] for ref in graph["outputs"])

            return run

        return nbta.cond(predicate, branch(branches["then"]), branch(branches["else"]))


setattr(Expressions, "while", Expressions._while)


def all_operations(graph):
    """Operations of a graph and of all bodies in it."""
    for op in graph.operations:
        yield op
        for body in subgraphs(op):
            yield from all_operations(body)


def with_gradients(program):
    """Feeds of a recorded program, and its results with all gradients that there are."""
    expressions = Expressions(program)
    for call in program["gradients"]:
        expressions.differentiate(call)
    wanted = [expressions.names[ref] for ref in program["fetch"]]
    wanted += [g for grads in expressions.calls for g in grads if g is not None]
    return expressions.feeds, wanted
