"""TensorFlow's own tests, run unchanged on nbta.

`modules` puts stand-ins for the modules that such a test imports into ``sys.modules``, built on top
of nbta: `values` has tensors, shapes and dtypes, `arrays` the TensorArray, `calls` loops, branches
and gradients, `cases` the test case and its modes, `messages` which of nbta's reasons each of
TensorFlow's messages is. `running` loads a test file and runs each method in each mode.

What is checked is nbta's: a stand-in passes arguments on, and gives results TensorFlow's names. It
mends nothing.
"""
