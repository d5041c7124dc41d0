"""Methods and modes that fail because nbta differs: how they fail, and the test of the row.

The rows are in docs/tensorflow.md.
"""

_ZEROS = "was read, so it takes no more writes", "test_a_write_after_a_read_of_zeros"
_ONCE = "slots of a forward array are written once", "test_eager_slots_are_written_once"
_KEPT = "NbtaError not raised", "test_eager_arrays_keep_what_is_read"
_STRINGS = "is not a handle; give what TensorArrayV3", "test_a_handle_of_strings"
_OUTSIDE = "make a TensorArray that takes it while", "test_an_array_from_outside_of_a_function"
_PIECES = "AssertionError: 2 != None", "test_pieces_of_several_lengths"
_INLINED = "[1, 3] != [None, 3]", "test_a_signature_in_a_graph"

_ROWS = [
    ("testGatherShape", "graph", _INLINED),
    ("testScatterIntoExistingList", "eager", _ZEROS),
    ("testSplitShape", "graph", _PIECES),
    ("testTensorArrayConcatFailsWhenMissingStepContainer", "eager", _STRINGS),
    ("testTensorArrayConcatFailsWhenMissingStepContainer", "graph", _STRINGS),
    ("testTensorArrayReadOrPackNotAllValuesAvailableFillsZeros", "eager", _ZEROS),
    ("testTensorArrayReadOrPackNotAllValuesAvailableInferShapeFillsZeros", "eager", _ONCE),
    ("testTensorArrayReadTwice", "eager", _KEPT),
    ("testTensorArrayUnpackRead", "eager", _ZEROS),  # all were read between the writes
    ("testTensorArrayWriteGatherAndGradients", "eager", _OUTSIDE),
    ("testUnpackShape", "eager", _KEPT),
]
#: By method and mode ("eager", or "graph" for both executors).
DIFFERENCES = {(method, mode): row for method, mode, row in _ROWS}
