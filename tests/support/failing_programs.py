"""Programs of array operations whose arguments decide whether, and how, they fail.

A program brings an array into a state and then does one operation, and a second one. Size, slots,
rows and lengths are arguments, so that one compiled function meets every error condition.
"""

import re
from functools import partial
from itertools import product
from typing import NamedTuple

import numba
import numpy as np

import nbta
from nbta import raw_ops

#: An operation on an array `a`, as an expression; `k`, `rows` and `list` are arguments.
OPERATIONS = {
    "write": "a.write(k, rows[0])",
    "append": "a.append(rows[0])",
    "accumulate": "a.accumulate(k, rows[0])",
    "read": "a.read(k)",
    "gather": "a.gather(list)",
    "stack": "a.stack()",
    "scatter": "a.scatter(list, rows)",
    "unstack": "a.unstack(rows)",
    "split": "a.split(rows[0], list)",
    "concat": "a.concat()[0]",
    "size": "a.size()",
    "grad": "a.grad('late').size()",
    "close": "a.close()",
}
#: The same by raw operations on a handle `a` and a flow `f`.
RAW_OPERATIONS = {
    "write": "ops.TensorArrayWriteV3(a, k, rows[0], f)",
    "read": "ops.TensorArrayReadV3(a, k, f, dtype)",
    "gather": "ops.TensorArrayGatherV3(a, list, f, dtype)",
    "scatter": "ops.TensorArrayScatterV3(a, list, rows, f)",
    "split": "ops.TensorArraySplitV3(a, rows[0], list, f)",
    "concat": "ops.TensorArrayConcatV3(a, f, dtype)[0]",
    "size": "ops.TensorArraySizeV3(a, f)",
    "grad": "ops.TensorArraySizeV3(ops.TensorArrayGradV3(a, f, 'late')[0], f)",
    "grad with shape": (
        "ops.TensorArraySizeV3(ops.TensorArrayGradWithShape(a, f, list, 'late')[0], f)"
    ),
    "close": "ops.TensorArrayCloseV3(a)",
}
#: Those that give the array.
WRITES = {"write", "append", "accumulate", "scatter", "unstack", "split"}
#: What an array may be told of its elements.
ELEMENTS = {
    "numbers": "element_shape=()",
    "rows": "element_shape=(2,)",
    "partly": "element_shape=(None,)",
    "learnt": "element_shape=None",
    "ragged": "element_shape=None, infer_shape=False",
}


class Program(NamedTuple):
    """What a program fixes."""

    operation: str
    second: str
    elements: str = "rows"
    dtype: str = "float64"
    dynamic: bool = False
    clears: bool = True
    gradient: bool = False
    closed: bool = False
    raw: bool = False

    def __str__(self):
        parts = [self.operation, self.second, self.elements, self.dtype]
        flags = ("dynamic", "clears", "gradient", "closed", "raw")
        return " ".join(parts + [flag for flag in flags if getattr(self, flag)])

    @property
    def rank(self):
        """Of what is written, with the axis of rows."""
        return 1 if self.elements == "numbers" else 2

    @property
    def operations(self):
        """Expressions, by name."""
        return RAW_OPERATIONS if self.raw else OPERATIONS

    def source(self):
        """A function of `ARGUMENTS`."""
        make, scatter = self.of_handle() if self.raw else self.of_array()
        lines = [make, scatter.format("written", "filler")]
        if self.gradient:
            grad = "a, f = ops.TensorArrayGradV3(a, f, 'g')" if self.raw else "a = a.grad('g')"
            lines += [grad, scatter.format("added", "more")]
        # Numba does not know the rank of what was written to an array of unknown rank.
        whole = ", element_shape=(None,)" * (self.elements in ("learnt", "ragged"))
        gather = "ops.TensorArrayGatherV3(a, read, f, dtype" if self.raw else "a.gather(read"
        lines.append(f"seen = {gather}{whole})")
        results = ["seen"]
        if self.closed:
            lines.append(f"c = {self.operations['close']}")
            results.append("c")
        for number, operation in enumerate((self.operation, self.second)):
            expression = self.operations[operation]
            if operation in WRITES:
                lines.append(f"{'f' if self.raw else 'a'} = {expression}")
                results.append(self.operations["size"])
            else:
                lines.append(f"r{number} = {expression}")
                results.append(f"r{number}")
        lines.append(f"return ({', '.join(results)},)")
        head = "def program(size, written, filler, added, more, read, k, rows, list):\n"
        return head + "".join(f"    {line}\n" for line in lines)

    def of_array(self):
        """Statements that make the array, and that scatter to it."""
        make = (
            f"a = TensorArray(dtype, size, dynamic_size={self.dynamic}, "
            f"clear_after_read={self.clears}, {ELEMENTS[self.elements]})"
        )
        return make, "a = a.scatter({}, {})"

    def of_handle(self):
        """The same by raw operations."""
        elements = ELEMENTS[self.elements].split(", infer_shape")[0]
        make = (
            f"a, f = ops.TensorArrayV3(size, dtype, dynamic_size={self.dynamic}, "
            f"clear_after_read={self.clears}, {elements}, "
            f"identical_element_shapes={self.elements != 'ragged'})"
        )
        return make, "f = ops.TensorArrayScatterV3(a, {}, {}, f)"


ARGUMENTS = ("size", "written", "filler", "added", "more", "read", "k", "rows", "list")


def arguments(program):
    """Arguments of runs that meet the conditions of the operations."""
    uses = program.operations[program.operation] + program.operations[program.second]
    sizes = (0, 1, 3) if program.dynamic else (3, 0)
    written = [[], [1, 0], [0, 1, 2]]
    added = [[], [1, 1]] if program.gradient else [[]]
    ks = (-1, 0, 1, 2, 3) if "k" in uses else (0,)
    lists = ([], [2, 1], [1, 1], [0, 3], [-1], [0, 1, 1]) if "list" in uses else ([],)
    widths = (2, 3) if "rows" in uses and program.rank == 2 else (2,)
    counts = (0, 2, 3) if "rows)" in uses or "rows," in uses else (1,)
    if "rows[0]" in uses:
        counts = [count for count in counts if count]
    for size, some, sums, k, places, width, count in product(
        sizes, written, added, ks, lists, widths, counts
    ):
        for read in [], [0]:
            yield {
                "size": size,
                "written": np.array(some, np.int64),
                "filler": numbers(program, len(some), 2),
                "added": np.array(sums, np.int64),
                "more": numbers(program, len(sums), 2),
                "read": np.array(read, np.int64),
                "k": k,
                "rows": numbers(program, count, width),
                "list": np.array(places, np.int64),
            }


def numbers(program, count, width):
    """Rows of small numbers; of true values in place of bools."""
    shape = (count,) if program.rank == 1 else (count, width)
    values = np.arange(1, np.prod(shape) + 1).reshape(shape)
    return values.astype(program.dtype)


def functions(program):
    """Functions of `ARGUMENTS`, by name: each way to run a program.

    One that is refused when it is built fails with that error.
    """
    scope = {"TensorArray": nbta.TensorArray, "ops": raw_ops, "dtype": np.dtype(program.dtype)}
    exec(program.source(), scope)
    found = {"eager": scope["program"]}
    if numba_knows(program):
        found["njit"] = numba.njit(scope["program"])
    try:
        found |= of_graph(program, scope["program"])
    except nbta.NbtaError as error:
        found |= dict.fromkeys(("one by one", "compiled"), failing(error))
    return found


def of_graph(program, function):
    """Both executors."""
    with nbta.Graph().as_default() as graph:
        shape = (None,) * program.rank
        places = {
            name: nbta.placeholder("int64", (None,), name=name)
            for name in ("written", "added", "read", "list")
        }
        places |= {
            name: nbta.placeholder(program.dtype, shape, name=name)
            for name in ("filler", "more", "rows")
        }
        places |= {name: nbta.placeholder("int32", (), name=name) for name in ("size", "k")}
        fetches = function(**places)
    session = nbta.Session(graph)

    def run(compiled, *given):
        feeds = {places[name]: value for name, value in zip(ARGUMENTS, given, strict=True)}
        return session.run(fetches, feeds, compiled)

    return {"one by one": partial(run, False), "compiled": partial(run, True)}


def failing(error):
    """A function that fails with an error that was found before it ran."""

    def fail(*given):
        raise error

    fail.error = error
    return fail


def numba_knows(program):
    """Whether Numba has types for what the program computes."""
    if program.dtype in ("bfloat16", "float16"):
        return False
    of_known_rank = {"read", "stack", "concat", "gather"}
    unknown = program.elements in ("learnt", "ragged")
    return not unknown or not of_known_rank & {program.operation, program.second}


#: Operations in whose terms graphs do others, by these.
SAME = {"append": "write", "accumulate": "write", "stack": "gather", "unstack": "scatter"}


def outcome(function, given):
    """Results with dtypes, or the class and reason of the error, and its message without names.

    None where the program cannot be compiled.
    """
    try:
        results = function(*given)
    except nbta.NbtaError as error:
        message = re.sub(r"\s*\(operation .*\)$", "", str(error).splitlines()[0])
        message = re.sub(r"TensorArray(V3)?(_\d+)?(@\w+)*", "ARRAY", message)
        operation, _, rest = message.partition(" ")
        if "cannot be compiled" in message:
            return None
        if error.reason == "closed":  # graphs ask for the size first where they need it
            operation = "any"
        return type(error), error.reason, f"{SAME.get(operation, operation)} {rest}"
    return [plain(value) for value in results if value is not None]


def plain(value):
    """Items and dtype; of integers these alone, as Numba gives Python's."""
    value = np.asarray(value)
    return value.tolist() if value.dtype.kind == "i" else (value.dtype.name, value.tolist())
