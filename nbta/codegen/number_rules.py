"""Code of elementwise numbers."""

from nbta.codegen.elementwise import Elementwise


def _by_kind(truth: str, number: str):
    """A rule with other source for truth values."""
    return lambda op, *texts: (truth if op.inputs[0].dtype.kind == "b" else number).format(*texts)


add = _by_kind("{0} | {1}", "{0} + {1}")
multiply = _by_kind("{0} & {1}", "{0} * {1}")
square = _by_kind("{0}", "{0} * {0}")


def _pick(sign):
    """The one of two by a comparison, or NaN where there is one."""

    def rule(op, one, other):
        nan = f" or {one} != {one}" if op.inputs[0].dtype.kind == "f" else ""
        return f"({one} if {one} {sign} {other}{nan} else {other})"

    return Elementwise(rule, "biuf")


minimum, maximum = _pick("<="), _pick(">=")


def elementary(name: str) -> Elementwise:
    """A function of `nbta.runtime.vector_math`, or of Numba's own."""
    return Elementwise(f"{name}({{}})", "f")


class _AddN(Elementwise):
    """A sum of values of one shape, which are not broadcast."""

    def __init__(self):
        super().__init__(lambda op, *texts: (" | " if _is_truth(op) else " + ").join(texts))

    def __call__(self, code, op):
        first, *others = map(code.extents, op.inputs)
        for extents in others:
            for mine, theirs in zip(first, extents, strict=True):
                code.equate(mine, theirs)
        super().__call__(code, op)


def _is_truth(op):
    return op.inputs[0].dtype.kind == "b"


ADD_N = _AddN()
