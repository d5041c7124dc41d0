"""Code of elementwise numbers."""

from nbta.codegen.elementwise import Elementwise
from nbta.codegen.names import cast
from nbta.codegen.values import Scalar, product


def _by_kind(truth: str, number: str):
    """A rule with other source for truth values."""
    return lambda op, *texts: (truth if op.inputs[0].dtype.kind == "b" else number).format(*texts)


add = _by_kind("{0} | {1}", "{0} + {1}")
multiply = _by_kind("{0} & {1}", "{0} * {1}")
square = _by_kind("{0}", "{0} * {0}")


minimum = Elementwise("minimum({}, {})", "biuf")
maximum = Elementwise("maximum({}, {})", "biuf")
floor_divide = Elementwise("floor_divide({}, {})", "iuf")
modulo = Elementwise("modulo({}, {})", "iuf")
sign = Elementwise("sign({})", "iuf")
floor = Elementwise("floor({})", "f")
absolute = _by_kind("{}", "abs({})")


def divide(op, one, other):
    """Quotients; Numba's own of complex numbers raises for 0."""
    kind = op.inputs[0].dtype.kind
    return f"complex_divide({one}, {other})" if kind == "c" else f"{one} / {other}"


def _relu(op, text):
    return f"maximum({text}, {cast('0', op.inputs[0].dtype)})"


def _rsqrt(op, text):
    return f"{cast('1', op.inputs[0].dtype)} / sqrt({text})"


def _is_finite(op, text):
    """What is not, less itself is NaN."""
    parts = (f"{text}.real", f"{text}.imag") if op.inputs[0].dtype.kind == "c" else (text,)
    return " & ".join(f"({part} - {part} == 0)" for part in parts)


def _complex_only(rule, other, kinds="biufc"):
    """A rule with other source for real numbers."""
    return Elementwise(lambda op, text: (rule if _is_complex(op) else other).format(text), kinds)


def _is_complex(op):
    return op.inputs[0].dtype.kind == "c"


relu, rsqrt = Elementwise(_relu, "biuf"), Elementwise(_rsqrt, "f")
is_finite = Elementwise(_is_finite, "fc")
conjugate = _complex_only("{}.conjugate()", "{}")
real, imag = _complex_only("{}.real", "{}"), _complex_only("{}.imag", "0")


class Elementary(Elementwise):
    """Calls a function of floats, for which records say what it is in NumPy.

    Parameters
    ----------
    name : str
        What it is called in source: a name in `nbta.runtime.vector_math`, where ``compiled`` is
        None.
    of_complex : str, optional
        The name of one for complex numbers. Numba's functions of complex numbers that give other
        values than NumPy's for NaN and infinities, or lose digits, are not used.
    compiled : callable, optional
        A function that Numba compiles.
    arity : int, optional
    """

    def __init__(self, name, of_complex=None, *, compiled=None, arity=1):
        items = ", ".join(["{}"] * arity)
        super().__init__(f"{name}({items})", "f" if of_complex is None else "fc")
        self.name, self.compiled = name, compiled
        self._of_complex = None if of_complex is None else f"{of_complex}({items})"
        # Those of `vector_math` give the dtype of their argument.
        self.is_plain = compiled is None and of_complex is None

    def text(self, op, texts):
        """Source of an item."""
        rule = self._of_complex if _is_complex(op) else self._rule
        return rule.format(*texts)


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


#: Exponents for which NumPy multiplies complex numbers, too.
FACTORS = (1, 2, 3)


class _Power(Elementwise):
    """Small constant exponents are products; integers have no negative ones."""

    def __init__(self):
        super().__init__(_power, "iufc")

    def __call__(self, code, op):
        exponents = op.inputs[1]
        if exponents.dtype.kind == "c" and _constant(exponents) not in FACTORS:
            return code.call_python(op)
        if exponents.dtype.kind == "i" and _constant(exponents) is None:
            _refuse_negative(code, code.value(exponents))
        elif exponents.dtype.kind == "i" and _constant(exponents) < 0:
            code.fail_if("True")
        return super().__call__(code, op)


def _power(op, base, exponent):
    factors = _constant(op.inputs[1])
    if factors in FACTORS:
        return " * ".join([base] * int(factors.real))
    if op.inputs[0].dtype.kind == "f":
        return f"{base} ** {exponent}"
    return f"integer_power(int64({base}), uint64({exponent}))"


def _constant(tensor):
    """The number that all items of a constant are; None for others."""
    if tensor.op.type != "Constant":
        return None
    values = tensor.op.attrs["value"]
    first = values.flat[0] if values.size else 0
    return first if (values == first).all() else None


def _refuse_negative(code, value):
    if isinstance(value, Scalar):
        return code.fail_if(f"{value.text} < 0")
    found, index = code.name("q"), code.name("i")
    code.add(f"{found} = False")
    with code.nest(f"for {index} in range({product(value.extents)}):"):
        code.add(f"{found} |= {value.at(index)} < 0")
    return code.fail_if(found)


power = _Power()
