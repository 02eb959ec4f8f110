"""Types of arrays, named once for all modules."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]

Ints: TypeAlias = npt.NDArray[np.intp]

Bools: TypeAlias = npt.NDArray[np.bool_]
