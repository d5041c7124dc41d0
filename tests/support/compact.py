"""The source that is compiled, as it is: without the user's names and lines."""


def compact_source(function):
    """Source of a traced function's last call, by which its machine code is found."""
    return function._compiled_program().generated.source
