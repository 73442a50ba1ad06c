"""Names for the arrays that travel between rooms."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

ObjectArray: TypeAlias = NDArray[Any]
"""An array of Python integers, for values that 64 bits might not hold."""
