"""All functions on tensors that users call: those that the families export."""

from nbta.ops import equations, numbers, padding, polynomials, tensor_methods
from nbta.ops.arithmetic import *
from nbta.ops.arranging import *
from nbta.ops.bessel import *
from nbta.ops.changes import *
from nbta.ops.contractions import *
from nbta.ops.counting import *
from nbta.ops.diagonals import *
from nbta.ops.differences import *
from nbta.ops.dispatch import FUNCTIONS
from nbta.ops.elementary import *
from nbta.ops.filling import *
from nbta.ops.fourier import *
from nbta.ops.gammas import *
from nbta.ops.gathering import *
from nbta.ops.indexing import *
from nbta.ops.information import *
from nbta.ops.integers import *
from nbta.ops.joining import *
from nbta.ops.linalg import *
from nbta.ops.lu import *
from nbta.ops.normal import *
from nbta.ops.norms import *
from nbta.ops.places import *
from nbta.ops.powers import *
from nbta.ops.products import *
from nbta.ops.quantiles import *
from nbta.ops.ranges import *
from nbta.ops.reductions import *
from nbta.ops.rounding import *
from nbta.ops.samples import *
from nbta.ops.shaping import *
from nbta.ops.softmax import *
from nbta.ops.sorting import *
from nbta.ops.spectra import *
from nbta.ops.statistics import *
from nbta.ops.structured import *
from nbta.ops.transposing import *
from nbta.ops.trigonometry import *
from nbta.ops.truths import *

__all__ = sorted(FUNCTIONS)
globals().update(FUNCTIONS)  # whatever else the families may call so
_INSTALLED = tensor_methods, numbers, padding, polynomials, equations
