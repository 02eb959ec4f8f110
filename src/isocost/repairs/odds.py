"""Equalized odds from finished scores: flip some of them until the error rates agree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from isocost.checks import check_word
from isocost.errors import Problem, UsageError, listing, setting, spoken
from isocost.groups import group_names
from isocost.measures.rates import base_rate, mean_score
from isocost.measures.table import MEASURES
from isocost.question import Question
from isocost.repairs.base import repairs
from isocost.rules import DEFAULT_SALT, Promise, Row, Rule
from isocost.tallies import Tally
from isocost.typing import Floats

RATES = ("generalized_fpr", "generalized_fnr", "fpr", "fnr")

GENERALIZED, HARD = slice(0, 2), slice(2, 4)
"""The two pairs of rates in :data:`RATES`."""

NOISE = 1e-14
"""Below this a probability, or an effect on a rate, is rounding."""

TOLERANCE = 1e-10
"""By how much the solver may miss an equation; the least it accepts."""

MAGNIFIED = 1e4
"""Factor of the equations: the solver takes a coefficient below 1e-9 for 0."""

AT_BOUND = 1e-9
"""A variable this near its bound is at it, and a price beyond this is not 0."""


@repairs("threshold")
def equalize_odds(
    tally: Tally,
    question: Question,
    *,
    rates: Literal["generalized", "hard"] = "generalized",
    salt: str = DEFAULT_SALT,
) -> Rule:
    """Give every group the same false-positive and false-negative rate by flipping scores.

    In each group a score h at or above the threshold becomes 1 - h with probability p2n, one
    below it with probability n2p.  The linear program (EO-Derived)

        minimize    sum over groups of FPR + FNR at the threshold
        subject to  c_fp equal over all groups, c_fn equal over all groups, 0 <= p2n, n2p <= 1

    decides them.  Of several optima it takes one that flips few scores.

    Parameters
    ----------
    tally : Tally, or data
        Of a holdout part; any number of groups, each with positives and negatives.
    threshold : float
        As in :class:`isocost.Question`.  It and 1 - threshold must be edges of the tally.
    rates : {"generalized", "hard"}
        Make the generalized rates c_fp and c_fn equal, as the paper does, or the shares FPR and
        FNR at the threshold, as Hardt et al. do for decisions.
    salt : str
        The coin's salt; see :func:`isocost.withhold`.
    **reading
        With data: the keywords of :func:`isocost.tally`, such as ``score``, ``label``, ``group``.

    Returns
    -------
    Rule
        Mirror rows, at most two per group; ``rule.notes`` say what it gives up.

    Notes
    -----
    For decisions at a threshold consider :func:`isocost.reconcile`: on people not seen it keeps
    more decisions right on three of four data sets (on halves of COMPAS 63.8 % against 62.0 % with
    ``rates="hard"``, where rates differ by .039 against .032), and scores stay calibrated.  With 92
    people it does not.  docs/decisions.md has the table, with fairlearn.

    Flipped scores are not calibrated.  A solution always exists, since flips can send every
    group to a constant score, where c_fp + c_fn = 1.  One group whose scores say next to nothing
    keeps all groups near that line, however many there are; a note says so.

    A score of exactly 1/2 stays 1/2 and its decision does not change.  A tally knows scores by bin,
    and ties only when they have a bin of their own: where many scores are exactly 1/2 make it with
    ``edges=(0.5, np.nextafter(0.5, 1))``.  The equal c_fp and c_fn do not depend on bins.

    References
    ----------
    Hardt, Price, Srebro: Equality of Opportunity in Supervised Learning, NeurIPS 2016.  Pleiss et
    al.: On Fairness and Calibration, NeurIPS 2017, supplement, which prints the constraints as
    c_fp = c_fn within a group; meant are equal rates across groups.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> rule = ic.equalize_odds(compas())
    >>> [(row.group, row.lo, row.hi, round(row.probability, 4)) for row in rule.rows]
    [('African-American', 0.5, 1.0, 0.2635), ('Caucasian', 0.0, 0.5, 0.194)]
    >>> after = ic.audit(rule.expected(compas()), confidence=None).groups.values()
    >>> [(round(one.generalized_fpr, 4), round(one.generalized_fnr, 4)) for one in after]
    [(0.4217, 0.4929), (0.4217, 0.4929)]
    """
    step = 'use "generalized" for mean scores, as the paper does, or "hard" for decisions'
    check_word("rates", rates, ("generalized", "hard"), step)
    threshold = question.threshold
    _require_edges(tally, threshold)
    equal = GENERALIZED if rates == "generalized" else HARD
    selected = MEASURES["selection_rate"].of(tally.kinds(threshold))
    shares = np.stack([selected, 1.0 - selected], axis=-1)
    flips = _solve(_program(tally, threshold, equal), shares)
    rows = tuple(
        Row(group, lo, hi, "mirror", None, float(probability))
        for group, (p2n, n2p) in zip(tally.groups, flips, strict=True)
        for lo, hi, probability in ((threshold, 1.0, p2n), (0.0, threshold, n2p))
        if probability > 0
    )
    goals = dict.fromkeys(RATES[equal], 0.0)
    rule = Rule(
        groups=tally.groups,
        rows=rows,
        method="odds",
        settings={"threshold": threshold, "rates": rates},
        salt=salt,
        promise=Promise.of(rows, goals, calibrated=False, threshold=threshold),
    )
    return replace(rule, notes=_notes(tally, rule, threshold, equal))


def _require_edges(tally: Tally, threshold: float) -> None:
    """Raise if the threshold or 1 - threshold lies inside a bin."""
    mirror = 1.0 - threshold
    inside = [] if threshold in tally.grid.index_of_cut else [threshold]
    # 1 - 0.7 is not the double 0.3.
    if np.abs(tally.grid.cuts - mirror).min() > 1e-12:
        inside.append(mirror)
    if inside:
        # Twelve digits, for people: 0.33 rather than 0.32999999999999996.
        wanted = sorted({*tally.edges, threshold, float(f"{mirror:.12g}")})
        rule = (
            "and 1 - threshold must be edges of the tally, so that no bin lies on both sides "
            "before or after its scores are flipped"
        )
        got = f"{threshold!r}, and {' and '.join(f'{x:.12g}' for x in inside)} inside a bin"
        step = f"make the tally with {setting('edges', tuple(wanted))}"
        raise UsageError(Problem("threshold", rule, got, step))


@dataclass(frozen=True)
class _Program:
    """Minimize cost @ x subject to matrix @ x = right and lower <= x <= upper.

    x holds p2n and n2p of each group in turn, then the common false-positive and false-negative
    rate, which are free.  ``start`` is an x that meets the constraints: a constant score.
    """

    cost: Floats
    matrix: Floats
    right: Floats
    lower: Floats
    upper: Floats
    start: Floats

    def residual(self, x: Floats) -> float:
        """By how much the rates of the groups miss the common ones."""
        return float(np.abs(self.matrix @ x - self.right).max())


def _rates(tally: Tally, threshold: float) -> Floats:
    """The rates c_fp, c_fn, FPR and FNR of each group, as columns."""
    kinds = tally.kinds(threshold)
    return np.stack([MEASURES[name].of(kinds) for name in RATES], axis=-1)


def _program(tally: Tally, threshold: float, equal: slice) -> _Program:
    """Write down the linear program.

    Rates are linear in the flips, so their slopes are the effect of flipping everybody on one side.
    It comes from Rule.expected, so that the program and the closed form place mirrored scores,
    ties among them, on the same side.
    """
    now, effects = _rates(tally, threshold), []
    for lo, hi in ((threshold, 1.0), (0.0, threshold)):
        rows = tuple(Row(group, lo, hi, "mirror", None, 1.0) for group in tally.groups)
        flipped = Rule(tally.groups, rows, "odds").expected(tally)
        effects.append(_rates(flipped, threshold) - now)
    slopes = np.stack(effects, axis=-1)
    slopes[np.abs(slopes) < NOISE] = 0.0
    count = len(tally.groups)
    matrix = np.zeros((count, 2, 2 * count + 2))
    for group in range(count):
        matrix[group, :, 2 * group : 2 * group + 2] = slopes[group, equal]
    matrix[:, :, -2:] = -np.eye(2)
    effective = slopes.any(axis=1).ravel()
    # Start where every group has the rates of a constant score.  For decisions everybody ends on
    # one side: below a threshold above 1/2, or else above it, ties included.
    flips, common = [0.5, 0.5], [0.5, 0.5]
    if equal == HARD:
        above = float(threshold <= 0.5)
        flips, common = [1.0 - above, above], [above, 1.0 - above]
    return _Program(
        cost=np.append(slopes[:, HARD].sum(axis=1).ravel(), [0.0, 0.0]),
        matrix=matrix.reshape(2 * count, -1),
        right=-now[:, equal].ravel(),
        lower=np.append(np.zeros(2 * count), [-np.inf, -np.inf]),
        upper=np.append(effective.astype(np.float64), [np.inf, np.inf]),
        start=np.append(np.tile(flips, count) * effective, common),
    )


def _solve(program: _Program, shares: Floats) -> Floats:
    """The flips of each group, as columns p2n and n2p."""
    best, prices = _linprog(program)
    # A variable with a price other than 0 has the same value in every optimum.  Holding those
    # leaves exactly the optima, and of these the fewest flips are wanted.
    held = np.abs(prices) > AT_BOUND
    among = replace(
        program,
        cost=np.append(shares.ravel(), [0.0, 0.0]),
        lower=np.where(held, best, program.lower),
        upper=np.where(held, best, program.upper),
        start=best,
    )
    fewest, _ = _linprog(among)
    flips = np.where(fewest < NOISE, 0.0, fewest)[:-2]
    return flips.reshape(-1, 2)


def _linprog(program: _Program) -> tuple[Floats, Floats]:
    """The best x, and what moving each variable off its bound would cost.

    Solved for the step from the start, which is feasible: if it is the only solution, the solver
    might otherwise miss it by rounding.
    """
    from scipy.optimize import linprog

    start = program.start
    miss = program.right - program.matrix @ start
    result = linprog(
        program.cost,
        A_eq=MAGNIFIED * program.matrix,
        b_eq=MAGNIFIED * np.where(np.abs(miss) < TOLERANCE, 0.0, miss),
        bounds=np.stack([program.lower - start, program.upper - start], axis=-1),
        method="highs",
        options={f"{side}_feasibility_tolerance": TOLERANCE for side in ("primal", "dual")},
    )
    if result.status != 0:
        raise UsageError(
            Problem(
                "equalized odds",
                "has a solution, and the solver must find it",
                str(result.message),
                f"make the tally with other {setting('edges')} or {setting('bins')}, or leave out "
                "groups whose scores are all but constant with "
                f"{spoken('tally.drop', '--drop-group')}",
            )
        )
    return _polished(start + result.x, program), result.lower.marginals + result.upper.marginals


def _polished(x: Floats, program: _Program) -> Floats:
    """The solver's answer, made exact: it stops at 1e-10, or earlier after its own scaling.

    Which variables lie at a bound is right; the others then follow from the equations.
    """
    lower, upper = program.lower, program.upper
    held = np.where(x - lower < AT_BOUND, lower, np.where(upper - x < AT_BOUND, upper, x))
    free = (held > lower) & (held < upper)
    exact = held.copy()
    miss = program.right - program.matrix @ held
    exact[free] += np.linalg.lstsq(program.matrix[:, free], miss, rcond=None)[0]
    inside = bool((exact >= lower).all() and (exact <= upper).all())
    if inside and program.residual(exact) <= program.residual(x):
        return exact
    return np.clip(x, lower, upper)


def _notes(tally: Tally, rule: Rule, threshold: float, equal: slice) -> tuple[str, ...]:
    """Notes on calibration, which is given up, and on scores that are of no use any more."""
    after = rule.expected(tally)
    notes = []
    touched = {row.group for row in rule.rows}
    changed = [index for index, group in enumerate(tally.groups) if group in touched]
    if changed:
        # The distance |mu c_fn - (1 - mu) c_fp| from the line is |mu - E[h]|, identically.
        before, now = (np.abs(base_rate(t.totals) - mean_score(t.totals)) for t in (tally, after))
        names = group_names(tally.groups)
        worst = sorted(changed, key=lambda index: -now[index])
        distances = [f"{now[i]:.4f} for {names[i]} (before {before[i]:.4f})" for i in worst]
        notes.append(
            "Equalized odds gives up calibration. Distance from the calibrated line, "
            f"|mu c_fn - (1 - mu) c_fp|: {listing(distances, 10)}."
        )
    total = float(_rates(after, threshold)[:, equal].sum(axis=-1).mean())
    if total >= 1.0 - 1e-6:
        notes.append(
            f"The two common rates add up to {total:.4f}: giving everybody one and the same "
            "score is no worse. Nothing is left of what the scores knew."
        )
    return tuple(notes)
