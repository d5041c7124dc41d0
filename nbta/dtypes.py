"""The dtypes an array may have, and the codes that kernels know them by."""

import functools

import numpy as np

from nbta.errors import invalid

#: Codes of the dtypes that kernels compute with; all others are moved as bytes.
CODES = {
    name: code
    for code, name in enumerate(
        (
            "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
            "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
        ),
        start=1,
    )
}  # fmt: skip
OTHER = 0
BOOL, FLOAT16, BFLOAT16 = CODES["bool"], CODES["float16"], CODES["bfloat16"]
FLOAT64 = CODES["float64"]
#: The largest size of an array that the op `size` can give, whose results are int32.
INT32_MAX = 2**31 - 1


def as_dtype(dtype) -> np.dtype:
    """A dtype that arrays can have, in native byte order.

    Raises
    ------
    InvalidArgumentError
        For what NumPy does not know as a dtype, for object dtypes, and for dtypes whose items
        take no memory (such as ``"S0"``).
    """
    try:
        dtype = np.dtype(dtype)
    except TypeError as error:
        raise invalid("dtype", f"dtype: {dtype!r} is not a dtype ({error})") from None
    if dtype.hasobject:
        raise invalid(
            "dtype",
            f"dtype: arrays hold plain numbers, strings of fixed width, dates and records of "
            f"these, not Python objects ({dtype}); convert the values, or keep them in a list",
        )
    if dtype.itemsize == 0 or dtype.subdtype:
        raise invalid("dtype", f"dtype: {dtype} has no items of a fixed size; give its width")
    return usual(dtype if dtype.isnative else dtype.newbyteorder("="))


def usual(dtype: np.dtype) -> np.dtype:
    """The dtype object that arrays of numbers have, for one that stands for the same.

    Unpickling and turning bytes round make others. Fast paths know a dtype by its object.
    """
    return np.dtype(dtype.type) if dtype.kind in "biufc" and not dtype.metadata else dtype


def own(dtype: np.dtype) -> np.dtype:
    """A dtype object for one array out of many: names of fields can be changed in place."""
    return usual(dtype) if dtype.names is None else dtype.newbyteorder("=")


@functools.cache  # NumPy puts a dtype's name together each time: 4 us
def code_of(dtype: np.dtype) -> int:
    """The kernels' code of a dtype; 0 for those that are only moved."""
    return CODES.get(dtype.name, OTHER) if dtype.names is None else OTHER


#: Subclasses of arrays, of this package, whose items are all they mean.
PLAIN = {np.ndarray}


@functools.cache
def _loses(kind):
    """What an array of a class means besides its items, and how to leave that; None for nothing.

    A class that has its own way with NumPy's functions, such as one of units, is among these.
    """
    names = ((base.__module__[:8], base.__name__) for base in kind.__mro__)
    if ("numpy.ma", "MaskedArray") in names:  # importing it takes 10 ms
        return "a mask, which would be lost", "use .filled(...) or .compressed()"
    if issubclass(kind, np.matrix):
        return "another product, which would be lost", "use np.asarray(value)"
    own = ("__array_ufunc__", "__array_function__")
    if any(getattr(kind, name) is not getattr(np.ndarray, name) for name in own):
        return "a meaning of its own, which would be lost", "use np.asarray(value) where none is"
    return None


#: Classes of other libraries, and what nbta does about them.
_FOREIGN = {
    ("jax", "Tracer"): "to_jax",
    ("torch", "Tensor"): "to_torch",
    ("pytensor", "Variable"): "to_pytensor",
    ("pandas", "Series"): "labels, by which pandas aligns",
    ("pandas", "DataFrame"): "labels, by which pandas aligns",
    ("xarray", "DataArray"): "names of axes, by which xarray aligns",
    ("xarray", "Dataset"): "names of axes, by which xarray aligns",
}


@functools.cache
def _foreign(kind):
    """What `_FOREIGN` has of a class or one that it is derived from, None for most."""
    names = ((base.__module__.partition(".")[0], base.__name__) for base in kind.__mro__)
    return next((_FOREIGN[name] for name in names if name in _FOREIGN), None)


def _check_foreign(argument, value) -> None:
    """Refuse what another library differentiates, and arrays whose labels count."""
    what, kind = _foreign(type(value)), type(value).__name__
    if what is None:
        return
    if not what.startswith("to_"):
        message = (
            f"{argument}: a {kind} has {what}, and these would be lost; use .to_numpy(), or call "
            f"a gradient by nbta.interop.with_labels"
        )
        raise invalid("other_library", message)
    if what == "to_torch" and _has_items(value):
        return
    message = (
        f"{argument}: {value!r} is differentiated or traced by another library; give that the "
        f"function by nbta.interop.{what}(f)"
    )
    raise invalid("other_library", message)


def _has_items(tensor):
    """Whether a tensor of torch is no more than its items: torch refuses to lose gradients."""
    try:
        np.asarray(tensor)
    except (RuntimeError, TypeError):
        return False
    return True


def check_plain(argument: str, value) -> None:
    """Refuse arrays of which more than the items counts, and lists that have some.

    Raises
    ------
    InvalidArgumentError
        For masked arrays, `numpy.matrix`, and subclasses of arrays that override what NumPy does;
        for tracers and tensors of other libraries, and for arrays with labels.
    """
    if isinstance(value, np.ndarray):
        kind = type(value)
        if kind not in PLAIN and _loses(kind) is not None:
            has, remedy = _loses(kind)
            message = f"{argument}: a {kind.__module__}.{kind.__name__} has {has}; {remedy}"
            raise invalid("subclass", message)
    elif isinstance(value, list | tuple) and any(map(_has_parts, set(map(type, value)))):
        for i, part in enumerate(value):
            check_plain(f"{argument}[{i}]", part)
    else:
        _check_foreign(argument, value)


def _has_parts(kind):
    return issubclass(kind, np.ndarray | list | tuple)


def as_plain(argument: str, value) -> np.ndarray:
    """`numpy.asarray` of what is no more than its items."""
    check_plain(argument, value)
    return np.asarray(value)


def without_loss(value, dtype):
    """A Python scalar or nested list as an array of ``dtype``, or None where that loses."""
    given = np.asarray(value)
    if given.dtype == dtype:
        return given
    if given.size == 0:  # an empty list has no values that could be lost
        return np.empty(given.shape, dtype)
    if given.dtype.kind == "O" or not _takes(given.dtype.kind, dtype):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            cast = np.asarray(value, dtype)
        except (OverflowError, TypeError, ValueError):
            return None
    return cast if _kept(given, cast) else None


def _takes(kind, dtype):
    """Whether Python values of a NumPy kind may become ``dtype``."""
    order = "biufc"
    if dtype.name == "bfloat16":
        return kind in "iuf"
    if kind not in order or dtype.kind not in order:
        return kind == dtype.kind or (kind in "USb" and dtype.kind in "USV")
    if kind == "b" or dtype.kind == "b":
        return kind == dtype.kind
    return order.index(kind) <= order.index(dtype.kind) or (kind in "iu" and dtype.kind in "iu")


def _kept(given, cast):
    """Whether integers kept their value, strings their length, and no float became infinite."""
    if given.dtype.kind in "iu":
        back = cast.real.astype(given.dtype)
        return bool(np.all(cast == given) and np.all(back == given))
    if given.dtype.kind in "fc" and cast.dtype.kind in "fcV":
        wide = cast if cast.dtype.kind == "c" else cast.astype(given.dtype)
        return bool(np.all(np.isfinite(wide) == np.isfinite(given)))
    return bool(np.all(cast.astype(given.dtype) == given))


def as_value(operation: str, array: str, value, dtype: np.dtype) -> np.ndarray:
    """A value to write, C-contiguous, aligned and in native byte order.

    Python numbers and nested lists take the array's dtype where nothing is lost; NumPy arrays
    and scalars must have it.
    """
    check_plain(f"{operation} on {array}: value", value)
    if isinstance(value, str | bytes):  # NumPy's string scalars too: they are as wide as they are
        given, cast = np.asarray(value), without_loss(value, dtype)
    elif isinstance(value, np.ndarray | np.generic) or hasattr(value, "__array_interface__"):
        given = np.asarray(value)
        cast = given if given.dtype.newbyteorder("=") == dtype else None
    elif hasattr(value, "__dlpack__"):
        given = np.from_dlpack(value)
        cast = given if given.dtype == dtype else None
    elif isinstance(value, bool | int | float | complex | list | tuple):
        given = _as_given(operation, array, value)
        cast = without_loss(value, dtype)
    else:
        given = np.asarray(value)
        cast = given if given.dtype == dtype else None
    if cast is None:
        raise invalid(
            "write_dtype",
            f"{operation} on {array}: the array holds {dtype}, and the value is {given.dtype}"
            f"{_sample(value)}; {_remedy(value, dtype)}",
        )
    return np.asarray(np.require(cast, dtype, ["C", "A"]))


def _as_given(operation, array, value):
    try:
        return np.asarray(value)
    except ValueError as error:
        message = (
            f"{operation} on {array}: the nested list is no array, its rows must have one length "
            f"({error})"
        )
        raise invalid("write_dtype", message) from None


def _remedy(value, dtype):
    """How a value gets the dtype of the array."""
    if isinstance(value, np.ndarray | np.generic):
        return f"cast it with .astype({str(dtype)!r})"
    return f"where the loss is meant, cast it with np.asarray(value).astype({str(dtype)!r})"


def _sample(value):
    """The value itself, where it is short enough to help."""
    text = repr(value)
    return f" ({text})" if isinstance(value, int | float | complex) and len(text) < 30 else ""
