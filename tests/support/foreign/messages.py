"""Which of nbta's reasons each of TensorFlow's messages is."""

import nbta

#: A piece of what a test expects to be said, and the reasons that this may be. The first row whose
#: piece is in the expected text counts.
REASONS = [
    ("wrong_type_scalar", {"write_dtype", "value"}),
    ("index -1", {"read_out_of_range", "write_out_of_range"}),
    ("Tried to write to index", {"write_out_of_range"}),
    ("Tried to read from index", {"read_out_of_range"}),
    ("Op requested dtype", {"read_dtype"}),
    ("already been written to", {"already_written"}),
    ("cleared after a previous read", {"cleared"}),
    ("Concat saw a scalar", {"concat_scalar"}),
    ("Expected lengths to be a vector", {"split_lengths_rank"}),
    ("Expected sum of lengths", {"split_sum"}),
    ("Expected value to be at least a vector", {"split_scalar"}),
    ("size of lengths", {"split_count"}),
    ("Could not aggregate", {"aggregate_shape"}),
    ("Could not write to TensorArray", {"incompatible_element_shape"}),
    ("has size zero, but element shape", {"empty_gather"}),
    ("Container", {"container"}),
]
#: Texts of one word, which may be part of others.
WORDS = {"shape": {"inconsistent_shapes"}}


def reasons(text):
    """The reasons that an expected text may be.

    Raises
    ------
    AssertionError
        For a text that no row has, so that nothing passes unread.
    """
    if text in WORDS:
        return WORDS[text]
    plain = text.replace("\\", "")
    for piece, found in REASONS:
        if piece in plain:
            return found
    raise AssertionError(f"no row in foreign/messages.py says which reason {text!r} is")


def check(error, text):
    """Hold an error against the text that a test expects of it."""
    expected = reasons(text)
    if not isinstance(error, nbta.NbtaError) or error.reason not in expected:
        reason = getattr(error, "reason", None)
        raise AssertionError(
            f"expected a reason of {sorted(expected)}, for {text!r}; got {reason!r}, of "
            f"{type(error).__name__}: {error}"
        ) from error
