"""All functions on tensors that users call: those that the families export."""

from nbta.ops import numbers, tensor_methods
from nbta.ops.axes.counting import *
from nbta.ops.axes.diagonals import *
from nbta.ops.axes.differences import *
from nbta.ops.axes.places import *
from nbta.ops.axes.ranges import *
from nbta.ops.axes.reductions import *
from nbta.ops.axes.sorting import *
from nbta.ops.axes.truths import *
from nbta.ops.core.arithmetic import *
from nbta.ops.core.dispatch import FUNCTIONS
from nbta.ops.core.filling import *
from nbta.ops.core.shaping import *
from nbta.ops.elementary.basic import *
from nbta.ops.elementary.integers import *
from nbta.ops.elementary.rounding import *
from nbta.ops.elementary.trigonometry import *
from nbta.ops.fourier import padding, polynomials
from nbta.ops.fourier.samples import *
from nbta.ops.fourier.transforms import *
from nbta.ops.indexing.arranging import *
from nbta.ops.indexing.changes import *
from nbta.ops.indexing.gathering import *
from nbta.ops.indexing.items import *
from nbta.ops.indexing.joining import *
from nbta.ops.indexing.transposing import *
from nbta.ops.linalg import equations
from nbta.ops.linalg.contractions import *
from nbta.ops.linalg.lu import *
from nbta.ops.linalg.norms import *
from nbta.ops.linalg.products import *
from nbta.ops.linalg.spectra import *
from nbta.ops.linalg.structured import *
from nbta.ops.linalg.triangular import *
from nbta.ops.special.bessel import *
from nbta.ops.special.gammas import *
from nbta.ops.special.information import *
from nbta.ops.special.normal import *
from nbta.ops.special.powers import *
from nbta.ops.special.softmax import *
from nbta.ops.statistics.moments import *
from nbta.ops.statistics.quantiles import *

__all__ = sorted(FUNCTIONS)
globals().update(FUNCTIONS)  # whatever else the families may call so
_INSTALLED = tensor_methods, numbers, padding, polynomials, equations
