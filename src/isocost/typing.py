"""Types of arrays, named once for all modules, and masked arrays told from others."""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.intp]
Bools: TypeAlias = npt.NDArray[np.bool_]


def is_masked(values: Any) -> bool:
    """True for a masked array; as long as there are none, ``numpy.ma`` is not loaded."""
    masked = sys.modules.get("numpy.ma")
    return masked is not None and isinstance(values, masked.MaskedArray)
