"""Methods and modes that fail because nbta differs, each with the test of its row.

The rows are in docs/tensorflow.md.
"""

#: By method and mode ("eager", or "graph" for both executors).
DIFFERENCES = {
    ("testScatterIntoExistingList", "eager"): "test_a_write_behind_a_read_of_zeros",
    ("testSplitShape", "graph"): "test_pieces_of_several_lengths",
    ("testTensorArrayConcatFailsWhenMissingStepContainer", "eager"): "test_a_handle_of_strings",
    ("testTensorArrayConcatFailsWhenMissingStepContainer", "graph"): "test_a_handle_of_strings",
    (
        "testTensorArrayReadOrPackNotAllValuesAvailableFillsZeros",
        "eager",
    ): "test_a_write_behind_a_read_of_zeros",
    (
        "testTensorArrayReadOrPackNotAllValuesAvailableInferShapeFillsZeros",
        "eager",
    ): "test_eager_slots_are_written_once",
    ("testTensorArrayReadTwice", "eager"): "test_eager_arrays_keep_what_is_read",
    ("testTensorArrayUnpackRead", "eager"): "test_eager_slots_are_written_once",
    (
        "testTensorArrayWriteGatherAndGradients",
        "eager",
    ): "test_an_array_from_outside_of_a_function",
    ("testUnpackShape", "eager"): "test_eager_arrays_keep_what_is_read",
}
