"""Algorithm 1: withhold information until errors cost every group the same."""

from __future__ import annotations

import warnings
from typing import Literal

from isocost.errors import InfeasibleError, InfeasibleWarning, Problem, setting
from isocost.groups import names_of
from isocost.measures.feasibility import Feasibility, reach_of
from isocost.measures.rates import base_rate
from isocost.question import Question
from isocost.repairs.base import closest_steps, repairs
from isocost.rules import DEFAULT_SALT, Promise, Row, Rule
from isocost.tables import round_down, round_up
from isocost.tallies import Tally


def not_feasible(verdict: Feasibility, closest: list[str], least: float) -> Problem:
    """Why equal cost is infeasible, what would make it feasible, and the closest to it."""
    names = names_of(verdict.costs)
    short = ", ".join(names[group] for group in verdict.unreachable)
    goal = verdict.target_cost - verdict.tolerance
    enough = setting("tolerance", float(round_up(least)))
    return Problem(
        "equal cost with calibration",
        f"is possible only if every group can be raised to {goal:.4f}",
        f"{short} cannot. {str(verdict).splitlines()[0]}",
        "; or ".join(
            [
                # Where the closest rule changes nothing, a tolerance would only hide that.
                *(f"accept {enough} or more" for _ in closest),
                f"improve the scores of {names[verdict.target_group]} until they cost at most "
                f"{round_down(verdict.required_cost)}",
                *closest,
            ]
        ),
    )


@repairs("cost", "tolerance", "infeasible")
def withhold(
    tally: Tally,
    question: Question,
    *,
    infeasible: Literal["raise", "closest"] = "raise",
    salt: str = DEFAULT_SALT,
) -> Rule:
    """Make errors cost every group the same by withholding scores at random.

    A share alpha of a group, chosen by a coin, gets the group's base rate mu instead of its score:

        g*      = max over groups of g
        alpha_t = (g* - tolerance - g_t) / (g_t(mu) - g_t), at least 0

    Scores stay calibrated (the gap shrinks by 1 - alpha) and costs become equal in expectation.

    Parameters
    ----------
    tally : Tally, or data
        Of a holdout part: not the data the scores were trained on.
    cost, tolerance
        What is asked: see :class:`isocost.Question`.
    infeasible : {"raise", "closest"}
        What to do when a group cannot reach the target: raise :class:`InfeasibleError`, or use the
        smallest tolerance that is feasible, with a warning and a note in the rule.
    salt : str
        The coin's salt.  With a fixed salt a person keeps the same coin when the rule is made
        again; use a secret one where people can choose their id.
    **reading
        With data: the keywords of :func:`isocost.tally`, such as ``score``, ``label``, ``group``.

    Returns
    -------
    Rule
        ``rule.alpha`` is {group: share withheld}.

    References
    ----------
    Pleiss, Raghavan, Wu, Kleinberg, Weinberger: On Fairness and Calibration, NeurIPS 2017,
    Algorithm 1.  There for two groups; here for any number, with a tolerance.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> rule = ic.withhold(compas(), cost="fnr", tolerance=0.06)
    >>> {group: round(share, 4) for group, share in rule.alpha.items()}
    {'African-American': 0.6043, 'Caucasian': 0.0}
    """
    verdict = reach_of(tally, question)
    notes = []
    reachable = verdict
    if not verdict.feasible:
        reachable = reach_of(tally, question.but(tolerance=verdict.smallest_tolerance))
        names = names_of(verdict.costs)
        blank = ", ".join(names[group] for group, share in reachable.alpha.items() if share == 1.0)
        price = f", and every score of {blank} becomes the group's base rate" if blank else ""
        notes.append(
            f"Equal cost ({verdict.cost}) within {verdict.tolerance:g} is not feasible. This is "
            f"the closest: costs differ by {round_up(verdict.smallest_tolerance)}{price}."
        )
    mu = base_rate(tally.totals)
    rows = tuple(
        Row(group, 0.0, 1.0, "set", float(mu[index]), reachable.alpha[group])
        for index, group in enumerate(tally.groups)
        if reachable.alpha[group] > 0
    )
    rule = Rule(
        groups=tally.groups,
        rows=rows,
        method="withhold",
        cost=question.cost,
        settings={"tolerance": question.tolerance, "infeasible": infeasible},
        notes=tuple(notes),
        salt=salt,
        promise=Promise.of(rows, {"cost": question.tolerance}, {"cost": reachable.tolerance}),
    )
    if not verdict.feasible:
        if infeasible == "raise":
            raise InfeasibleError(
                not_feasible(verdict, closest_steps(rule, tally), verdict.smallest_tolerance),
                verdict,
            )
        warnings.warn(notes[0], InfeasibleWarning, stacklevel=5)
    return rule
