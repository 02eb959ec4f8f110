"""How far a number differs between groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.groups import Group, to_json

__all__ = ["Disparity", "disparity"]


@dataclass(frozen=True)
class Disparity:
    """The largest difference of a number between two groups.

    Attributes
    ----------
    difference : float
        Highest minus lowest; NaN if fewer than two groups have the number.
    ratio : float
        Lowest over highest; NaN when both are 0.  For selection rates this is the
        four-fifths ratio.
    highest, lowest : group
        The groups it is between.
    """

    difference: float
    ratio: float
    highest: Group
    lowest: Group

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; an undefined ratio becomes null."""
        return {
            "difference": None if math.isnan(self.difference) else self.difference,
            "ratio": None if math.isnan(self.ratio) else self.ratio,
            "highest": to_json(self.highest),
            "lowest": to_json(self.lowest),
        }


def disparity(groups: Sequence[Group], values: npt.NDArray[np.float64]) -> Disparity:
    """The disparity of one number per group; groups for which it is NaN are left out.

    Examples
    --------
    >>> disparity(["a", "b"], np.array([0.2, 0.25]))
    Disparity(difference=0.04999999999999999, ratio=0.8, highest='b', lowest='a')
    """
    if np.isnan(values).sum() > len(values) - 2:
        return Disparity(math.nan, math.nan, groups[0], groups[-1])
    top, bottom = int(np.nanargmax(values)), int(np.nanargmin(values))
    high, low = float(values[top]), float(values[bottom])
    ratio = low / high if high > 0 else math.nan
    return Disparity(high - low, ratio, groups[top], groups[bottom])
