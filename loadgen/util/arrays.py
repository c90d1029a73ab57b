"""Type aliases of NumPy arrays."""

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]
