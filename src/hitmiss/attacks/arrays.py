"""Types of arrays that attacks share."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Array = NDArray[np.floating]
Number = TypeVar("Number", bound=np.generic)
