"""Where objects of Python and arrays of NumPy hold what compiled code looks for.

NumPy's binary interface fixes the order of an array's fields (``PyArrayObject_fields``). They begin
behind the head of an object, which is longer in some builds of Python: cached code reads its length
from the settings.
"""

#: Bytes of the head of a Python object; its last word is the address of the object's type. Behind
#: it, a float holds its value.
HEAD = object.__basicsize__

#: Behind the head of an array: the addresses of its items, its rank (an int), the addresses of its
#: extents, strides and base, then those of its dtype object, and flags (an int).
ARRAY_DATA, ARRAY_RANK, ARRAY_EXTENTS, ARRAY_DTYPE, ARRAY_FLAGS = 0, 8, 16, 40, 48
#: Of the flags: in C order, and aligned.
ARRAY_READY = 0x1 | 0x100
