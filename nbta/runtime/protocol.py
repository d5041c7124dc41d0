"""What generated code, the helpers that it calls and those who call it agree on."""

#: What a generated function returns; above the lowest four bits is the number of the exit.
OK, FAILED, RAGGED, LAYOUT, MEMORY, RESIZED, INTERRUPTED = range(7)
STATUSES = 16
#: No array has more: processes have 47 bits of addresses.
MOST_ITEMS = 2**47
#: Words that every table begins with: addresses of what any function may call; and the status of
#: a call of Python. What such a call returns says nothing where a signal's handler raises ahead of
#: its first line: ctypes prints the exception, and gives what it finds on the stack.
ENSURE, GROW, PYTHON, PLAIN, ANSWER, FIRST_WORD = range(6)
#: How operands of a product are taken: each transposed or not, the product added to what is there.
RIGHT, LEFT, ADD = 1, 2, 4
