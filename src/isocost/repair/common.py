"""What every repair says about where it comes from."""

from __future__ import annotations

from typing import Any

from isocost.groups import to_json
from isocost.measure.rates import base_rate
from isocost.tallies import Tally

__all__ = ["summary_of"]


def summary_of(tally: Tally) -> dict[str, Any]:
    """What a rule says about the tally it was made from."""
    mu = base_rate(tally.totals)
    return {
        "columns": dict(tally.columns),
        "n": tally.n,
        "groups": [
            {
                "group": to_json(group),
                "n": float(tally.totals.n[place].sum()),
                "base_rate": float(mu[place]),
            }
            for place, group in enumerate(tally.groups)
        ],
    }
