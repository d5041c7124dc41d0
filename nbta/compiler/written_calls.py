"""Calls of executables from Python, written out for the inputs and results that they have.

`Executable.run` takes arrays and makes lists: of what is given, of what is to be filled. For
functions of a few numbers that takes three times as long as the lines here, which put numbers into
arrays that a workspace keeps and name everything else.
"""

import numpy as np

from nbta.runtime.intrinsics import LAYOUT, OK, STATUSES


def is_inlined(executable):
    """Whether lines put results where they are wanted, and do not call `Executable.run`."""
    return not (executable.generated.calls or None in executable.shapes)


def written_out(executable, inputs, numbers, given=None):
    """Lines of a Python function that run an executable, for arguments like those of a call.

    They leave the function with None where anything is to be refused.

    Parameters
    ----------
    executable : Executable
        Which has run.
    inputs : list of str
        Names of variables with the inputs.
    numbers : dict
        The dtypes of those that are numbers and no arrays, by name.
    given : dict, optional
        By the numbers of results the names of variables with arrays that they are written to.

    Returns
    -------
    lines : list of str
    names : dict
        What these refer to.
    results : list of str
        Names of variables with the results.
    """
    results = [f"y{k}" for k in range(len(executable.shapes))]
    if not is_inlined(executable):
        return *_called(executable, inputs, numbers), [f"values[{k}]" for k in range(len(results))]
    return *_inlined(executable, inputs, numbers, results, given or {}), results


#: Whether a call was left, before it did anything, for how an array lies in memory.
_LIES_APART = f"status != {OK} and status % {STATUSES} == {LAYOUT}"


def _dense(arrays):
    """Arrays, with copies of vectors that have gaps; lines are not for matrices in other orders."""
    return [a.copy() if a.ndim == 1 and not a.flags.carray else a for a in arrays]


def _called(executable, inputs, numbers):
    """Lines that call `run`."""
    names = {"run": executable.run, "asarray": np.asarray, "dense": _dense}
    names |= {f"d_{name}": dtype for name, dtype in numbers.items()}
    given = "".join(f"{name}, " for name in inputs)
    made = [f"{name} = asarray({name}, d_{name})" for name in numbers]
    return [
        *made,
        f"status, values, _ = run(({given}))",
        f"if {_LIES_APART}: status, values, _ = run(dense(({given})))",
        f"if status != {OK}: return None",
    ], names


def _inlined(executable, inputs, numbers, results, given_results):
    """Lines that do the same as `run`, with some results in arrays that are given."""
    outputs = executable.generated.outputs
    shapes = executable.shapes
    found = {
        y: to.dtype for y, to, shape in zip(results, outputs, shapes, strict=True) if not shape
    }
    kept = {f"n_{name}": dtype for name, dtype in (numbers | found).items()}
    places = {f"y{k}": name for k, name in given_results.items()}
    arrays = [y for y in results if y not in found]
    made = [y for y in arrays if y not in places]
    given = [f"n_{name}" if name in numbers else name for name in inputs]
    filled = [f"n_{y}" if y in found else y for y in results]
    ids = ", ".join(f"i_{x[2:]}" if x in kept else f"id({x})" for x in given + filled)
    unpacked = "".join(f", {name}" for name in [*kept, *(f"i_{name[2:]}" for name in kept)])
    arrays_in = [name for name in given if name not in kept]
    lines = [
        "try: work = free.pop()",
        "except IndexError: work = borrow()",
        f"give, at{unpacked} = work.numbers.get(key) or work.with_numbers(key, dtypes)",
        *(f"n_{name}[()] = {name}" for name in numbers),
        *(f"{y} = empty(shapes[{y[1:]}], d_{y})" for y in made),
        *(f"{y} = {places[y]}" for y in arrays if y in places),
        "try:",
        f"    give({ids})",
        "    status = function(at)",
        f"    if {_LIES_APART}:",
        f"        [{listed(arrays_in)}] = dense(({listed(arrays_in)}))",
        f"        give({ids})",
        "        status = function(at)",
        "except BaseException as error: leave(work, error)",
        f"if status != {OK} or work.is_used:",
        f"    status, values = finish(work, status, ({listed(given)}), ({listed(filled)}))",
        f"    if status != {OK}: return None",
        f"    {listed(results) or 'values'} = values",
        # A run that found another result of another length may have left these elsewhere.
        *(f"    if not settle({places[y]}, {y}): return None" for y in arrays if y in places),
        "else:",
        *(f"    {y} = n_{y}[()]" for y in found),
        "    free.append(work)",
        *(f"{places[y]}[()] = {y}" for y in found if y in places),
    ]
    return lines, {
        "free": executable.free, "borrow": executable.borrow, "dtypes": list(kept.values()),
        "key": " ".join(dtype.str for dtype in kept.values()),  # whose hash is computed once
        "empty": np.empty, "shapes": shapes, "function": executable.function,
        "leave": executable.leave, "finish": executable.finish, "dense": _dense,
        **{f"d_{y}": outputs[int(y[1:])].dtype for y in made}, "settle": _settle,
    }  # fmt: skip


def _settle(array, found):
    """Put a result into the array that it is for, if it is not there; whether it fits."""
    if found.shape != array.shape:
        return False
    if found.ctypes.data != array.ctypes.data:
        array[...] = found
    return True


def listed(names):
    """The items of a tuple in Python."""
    return "".join(f"{name}, " for name in names)
