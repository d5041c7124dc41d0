"""Loading a test file and running its methods."""

import importlib.util
import traceback
import unittest
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import nbta
from foreign import cases, modules
from foreign.values import EXECUTOR, OutOfScope

PASSED, FAILED, OUTSIDE = "passed", "failed", "out of scope"


class Outcome(NamedTuple):
    """What became of a method in a mode: "eager", "graph", or "compiled" (a graph, compiled)."""

    case: str
    method: str
    mode: str
    state: str
    why: str = ""
    trace: str = ""


def load(path):
    """A test file as a module, with stand-ins for what it imports."""
    path = Path(path)
    spec = importlib.util.spec_from_file_location(f"foreign_file_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def outcomes(path, compiled=False, only=""):
    """What becomes of each method in each mode, one after another."""
    with modules.installed():
        module = load(path)
        for cls in vars(module).values():
            if isinstance(cls, type) and issubclass(cls, cases.TestCase):
                yield from _of_class(cls, compiled, only)


def _of_class(cls, compiled, only):
    cls.setUpClass()
    for name in unittest.defaultTestLoader.getTestCaseNames(cls):
        for mode in cases.modes(cls, name):
            shown = "compiled" if compiled and mode == "graph" else mode
            if name.startswith("test_session") or only not in name:
                continue
            yield Outcome(cls.__name__, name, shown, *_tried(cls, name, shown))
    cls.tearDownClass()


def _tried(cls, name, mode):
    """State, reason and trace of one try; what skips itself for old arrays is tried for new ones.

    TensorFlow has two kinds of arrays, and nbta takes from both.
    """
    found = _attempt(cls, name, mode)
    flags = modules.sys.modules["tensorflow.python.ops.control_flow_util"]
    if found[0] is None:
        flags.ENABLE_CONTROL_FLOW_V2 = True
        found = _attempt(cls, name, mode)
        flags.ENABLE_CONTROL_FLOW_V2 = False
    return found if found[0] else (OUTSIDE, *found[1:])


def _attempt(cls, name, mode):
    case = cls(name)
    EXECUTOR.update(compiled=mode == "compiled", refused=[])
    graph = nullcontext() if mode == "eager" else nbta.Graph().as_default()
    try:
        with graph:
            case.setUp()
            try:
                getattr(case, name)()
            finally:
                case.tearDown()
                case.doCleanups()
    except OutOfScope as outside:
        return OUTSIDE, str(outside), ""
    except unittest.SkipTest as skipped:
        return None, str(skipped), ""
    except Exception as error:
        return FAILED, _said(error), traceback.format_exc()
    refused = EXECUTOR["refused"]
    return PASSED, f"{len(refused)} runs not compiled: {refused[0]}" if refused else "", ""


def _said(error):
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"
