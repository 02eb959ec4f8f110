"""What the repairs share: where a rule comes from, why a goal is out of reach."""

from __future__ import annotations

from typing import Any

from isocost.errors import Problem
from isocost.groups import names_of, to_json
from isocost.measure.feasibility import Feasibility, round_down, round_up
from isocost.measure.rates import base_rate
from isocost.tallies import Tally

__all__ = ["not_feasible", "summary_of"]


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


def not_feasible(asked: Feasibility) -> Problem:
    """Why equal cost cannot be had, and what would make it possible."""
    names = names_of(asked.costs)
    short = ", ".join(names[group] for group in asked.unreachable)
    goal = asked.target_cost - asked.tolerance
    return Problem(
        "equal cost with calibration",
        f"is possible only if every group can be raised to {goal:.4f}",
        f"{short} cannot. {str(asked).splitlines()[0]}",
        f"accept tolerance={round_up(asked.smallest_tolerance)} or more; or improve the scores of "
        f"{names[asked.target_group]} until they cost at most {round_down(asked.required_cost)}; "
        'or pass infeasible="closest"',
    )
