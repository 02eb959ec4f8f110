"""The people whom a rule hands over: who they are, and what whoever decides about them must reach.

Of a group, let d be the share of its negatives whom the rule decides and F their FPR, and x the FPR
of the reviewer among the others.  The FPR of the whole group is d F + (1 - d) x.  It is the same in
all groups at some value between the largest d F and the least d F + 1 - d, if these leave room; the
reviewer must then reach another x in each group.  If decisions of the rule have the same F in all
groups, there is one x that will do for all: F itself.  The same holds for FNR among positives.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Unpack

import numpy as np

from isocost.cells import Cells, Sums
from isocost.checks import check_threshold
from isocost.errors import Problem, UsageError, listing
from isocost.grid import TENTHS
from isocost.groups import Group, names_of
from isocost.measures.table import MEASURES
from isocost.repairs.composition import edges_of
from isocost.repairs.withhold import threshold_of
from isocost.result import Record, Result
from isocost.rules import Rule, check_rule
from isocost.tables import columns_from
from isocost.tallies import DataOptions, Tally, TallyLike, as_tally
from isocost.typing import Floats

EDGES = (0.0, *TENTHS, 1.0)
"""The tenths in which the scores of those handed over are counted."""

SAME = 1e-9
"""Rates that differ by no more are the same."""

REVIEWERS = ("perfect", "score", "coin")
"""Who might decide: somebody who is always right, the score itself, or a fair coin."""

UNEQUAL = 0.01
"""Groups of whom shares handed over differ by more bear it unequally."""

MATTER = 2.0 / 3.0
"""If more than this share of those selected before is handed over, the others are not those who
matter."""

KINDS_HANDED = {"selected so far": "of_selected", "who turned out positive": "of_positives"}
"""Whom a rule should not lose sight of, and the share of them that is handed over."""

Pair = tuple[float, float]


@dataclass(frozen=True)
class HandedOverGroup(Record):
    """The people of one group.

    Attributes
    ----------
    share : float
        The share of the group that is handed over.
    rows : float
        How many people that are.
    base_rate, decided_base_rate : float
        The share of positives among them, and among the decided.
    mean_score : float
        Their mean score before the rule.
    of_selected, of_positives, of_negatives : float
        The share that is handed over of those at or above the threshold before the rule, of those
        who turned out positive, and of those who turned out negative.
    decided : (float, float)
        FPR and FNR among the decided.
    by_score : (float, float)
        FPR and FNR among those handed over, if the old score decided about them.
    must_reach : (float, float)
        FPR and FNR that the reviewer must reach so that the whole of every group has ``target``.
    score_can : bool
        Whether decisions by the old score, with a threshold of their own and a coin, reach that.
    low, high : (float, float)
        The lowest and the highest FPR and FNR that the whole group can have, whoever decides.
    scores : tuple of float
        The share handed over of each tenth of the scores; NaN where nobody is.
    """

    share: float
    rows: float
    base_rate: float
    decided_base_rate: float
    mean_score: float
    of_selected: float
    of_positives: float
    of_negatives: float
    decided: Pair
    by_score: Pair
    must_reach: Pair
    score_can: bool
    low: Pair
    high: Pair
    scores: tuple[float, ...]


@dataclass(frozen=True, repr=False)
class HandedOver(Result):
    """What :func:`handed_over` found.

    Attributes
    ----------
    groups : {group: HandedOverGroup}
        The people of each group.
    share : float
        The share of everybody that is handed over.
    threshold : float
        The score from which people are selected.
    target : (float, float)
        The FPR and FNR that every group as a whole has if the reviewer reaches ``must_reach``.
    possible : (bool, bool)
        Whether a reviewer can make the FPR, and the FNR, of all groups as a whole equal.
    whole : {reviewer: {group: (float, float)}}
        FPR and FNR of each group as a whole if the reviewer is "perfect", is the old "score", or
        is a fair "coin".
    before : {group: (float, float)}
        FPR and FNR of each group before the rule.
    accuracy : (float, float)
        Before the rule, and among the decided.
    information : (float, float)
        The share of the variance of labels that scores explain, before and among the decided.
    edges : tuple of float
        The tenths of the scores.
    """

    format = "isocost-handed-over"
    also = ("notes",)
    unwritten = ("tally",)

    groups: Mapping[Group, HandedOverGroup]
    share: float
    threshold: float
    target: Pair
    possible: tuple[bool, bool]
    whole: Mapping[str, Mapping[Group, Pair]]
    before: Mapping[Group, Pair]
    accuracy: Pair
    information: Pair
    edges: tuple[float, ...]
    tally: Tally

    def differences(self, reviewer: str) -> Pair:
        """How far FPR and FNR of whole groups differ with a reviewer of :data:`REVIEWERS`."""
        return _apart(self.whole[reviewer].values())

    def headline(self) -> str:
        """Who is handed over, in a line."""
        return f"{self.share:.2%} of people are handed over; FPR and FNR at {self.threshold:g}"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the printed table: the decided, the handed over, the whole."""
        names = names_of(self.groups)
        rows: list[list[str]] = []
        shares = {
            "handed over": "share",
            "of those selected so far": "of_selected",
            "of those who turned out positive": "of_positives",
            "of those who turned out negative": "of_negatives",
        }
        for title, name in shares.items():
            rows.append([title, *(_percent(getattr(g, name)) for g in self.groups.values())])
        numbers = {
            "base rate, decided": "decided_base_rate",
            "base rate, handed over": "base_rate",
            "old mean score, handed over": "mean_score",
        }
        for title, name in numbers.items():
            rows.append([title, *(_number(getattr(g, name)) for g in self.groups.values())])
        pairs = {
            "FPR, FNR before": self.before,
            "FPR, FNR decided": {g: one.decided for g, one in self.groups.items()},
            "the reviewer must reach": {g: one.must_reach for g, one in self.groups.items()},
            "the old score reaches": {g: one.by_score for g, one in self.groups.items()},
            **{f"whole, reviewer: {name}": self.whole[name] for name in REVIEWERS},
        }
        for title, by_group in pairs.items():
            rows.append([title, *(", ".join(map(_number, by_group[g])) for g in self.groups)])
        return ["", *names.values()], rows

    def notes(self) -> list[str]:
        """What it means, in a few lines."""
        names = names_of(self.groups)
        lines = []
        for rate, target, possible in zip(("FPR", "FNR"), self.target, self.possible, strict=True):
            if not possible:
                lines.append(f"No reviewer can make the {rate} of all groups as a whole equal.")
            elif not math.isnan(target):
                lines.append(
                    f"All groups as a whole have {rate} {target:.4f} if the reviewer reaches what "
                    "the table says."
                )
        cannot = [names[g] for g, one in self.groups.items() if not one.score_can]
        if all(self.possible) and cannot:
            lines.append(f"For {' and '.join(cannot)} the old score alone cannot reach it.")
        for reviewer in REVIEWERS:
            fpr, fnr = self.differences(reviewer)
            lines.append(
                f"With the reviewer {reviewer!r}, whole groups differ by {_number(fpr)} in FPR and "
                f"{_number(fnr)} in FNR."
            )
        was = _apart(self.before.values())
        lines.append(f"Before the rule they differ by {_number(was[0])} and {_number(was[1])}.")
        lines.append(
            f"Accuracy among the decided is {self.accuracy[1]:.4f} ({self.accuracy[0]:.4f} among "
            f"all before); scores explain {self.information[1]:.2%} of the variance of labels "
            f"({self.information[0]:.2%})."
        )
        return [*lines, *self._missing()]

    def _missing(self) -> Iterator[str]:
        """Whether the decided are no longer those who matter; where most are gone first."""
        names = names_of(self.groups)
        for what, name in KINDS_HANDED.items():
            shares = self._shares(name)
            for group, share in sorted(shares.items(), key=lambda item: -item[1]):
                if share > max(MATTER, self.groups[group].share):
                    yield (
                        f"In the group {names[group]}, {share:.1%} of those {what} are handed "
                        "over: what is equal among the others says little about them."
                    )

    def warnings(self) -> Iterator[str]:
        """What nobody should overlook: who bears it, and whether the others still matter."""
        shares = [one.share for one in self.groups.values()]
        if np.ptp(shares) > UNEQUAL:
            yield (
                f"Groups bear it unequally: {self.share:.1%} of all people are handed over, "
                f"{self._of_each('share')}."
            )
        yield from islice(self._missing(), 1)

    def remarks(self) -> Iterator[str]:
        """What becomes of the decided, and of whom they are missing."""
        after, before = self.accuracy[1], self.accuracy[0]
        yield (
            f"{self.share:.2%} of people are handed over. Among the others accuracy at "
            f"{self.threshold:g} is {after:.4f} ({before:.4f} among all before), and scores "
            f"explain {self.information[1]:.2%} of the variance of labels "
            f"({self.information[0]:.2%})."
        )
        for what, name in KINDS_HANDED.items():
            if self._shares(name):
                yield f"Handed over, of those {what}: {self._of_each(name)}."

    def _shares(self, name: str) -> dict[Group, float]:
        """A share of each group, without groups in which it is a share of nobody."""
        shares = {group: getattr(one, name) for group, one in self.groups.items()}
        return {group: share for group, share in shares.items() if not math.isnan(share)}

    def _of_each(self, name: str) -> str:
        names, shares = names_of(self.groups), self._shares(name)
        return listing((f"{x:.1%} of {names[group]}" for group, x in shares.items()), most=6)

    def to_frame(self, *, backend: str | None = None) -> Any:
        """A row for each group, in the library of the data; pairs become two columns."""
        rows = []
        for group, one in self.groups.items():
            row: dict[str, Any] = {}
            for name, value in asdict(one).items():
                if name == "scores":
                    continue
                pair = isinstance(value, tuple)
                ends = ((f"{name}_fpr", f"{name}_fnr") if pair else (name,), value)
                row |= dict(zip(*ends, strict=True)) if pair else {name: value}
            for reviewer in REVIEWERS:
                whole = self.whole[reviewer][group]
                row |= dict(zip((f"{reviewer}_fpr", f"{reviewer}_fnr"), whole, strict=True))
            rows.append(row)
        return self.tally.frame_by_group(list(self.groups), columns_from(rows), backend)


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2%}"


def _apart(pairs: Any) -> Pair:
    fpr, fnr = zip(*pairs, strict=True)
    return float(np.ptp(fpr)), float(np.ptp(fnr))


def handed_over(
    rule: Rule, tally: TallyLike, threshold: float | None = None, **reading: Unpack[DataOptions]
) -> HandedOver:
    """Say who is handed over by a rule, and what whoever decides about them must reach.

    Parameters
    ----------
    rule : Rule
        Made by :func:`isocost.hand_over`, or any other that hands people over.
    tally : Tally, or data
        Of the scores before the rule.
    threshold : float, optional
        The score from which people are selected; by default that of the rule.
    **reading
        With data: the keywords of :func:`isocost.tally`, such as ``score``, ``label``, ``group``.

    Returns
    -------
    HandedOver
        Per group: share, base rate, old scores; FPR and FNR among the decided, what the reviewer
        must reach for all groups as a whole to have the same FPR and FNR, whether the old score
        can, and what the whole looks like if the reviewer is perfect, the old score, or a coin.

    Notes
    -----
    If the decided of all groups have the same FPR, the reviewer who has it too makes the whole
    equal, and that is the target.  Otherwise the target is the lowest that every group can
    have; where there is none, a reviewer cannot make up for the rule.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> result = ic.handed_over(ic.hand_over(compas(), share=0.25), compas())
    >>> [(round(g.share, 2), round(g.base_rate, 3)) for g in result.groups.values()]
    [(0.25, 0.691), (0.25, 0.209)]
    >>> [round(rate, 4) for rate in result.target], result.possible
    ([0.2191, 0.5609], (True, True))
    >>> [round(x, 3) for x in result.differences("score")]
    [0.196, 0.247]
    """
    check_rule(rule)
    if not rule.defers:
        step = "use a rule made by isocost.hand_over"
        raise UsageError(Problem("rule", "must hand people over", f"one by {rule.method}", step))
    at = check_threshold(threshold_of(rule) if threshold is None else threshold)
    return reviewed(rule, as_tally(tally, reading, at, *edges_of([rule])), at)


def reviewed(rule: Rule, tally: Tally, at: float) -> HandedOver:
    """The same for any rule, also one that hands over nobody."""
    after, gone, first = rule.expected(tally), rule.deferred(tally), tally.grid.first_bin(at)
    # A group that is handed over as a whole is not among those of the decided.
    decided_cells = after.cells.recoded([tally.index_of(group) for group in after.groups])
    before, decided, away = (
        _Kinds(cells.kinds(len(tally.groups), first))
        for cells in (tally.cells, decided_cells, gone)
    )
    targets, possible = zip(*(_target(decided, away, label) for label in (0, 1)), strict=True)
    groups = {
        group: _group(tally, index, (before, decided, away), gone, targets)
        for index, group in enumerate(tally.groups)
    }
    pairs = dict(enumerate(tally.groups))
    return HandedOver(
        groups=groups,
        share=float(away.sums.w.sum() / before.sums.w.sum()),
        threshold=at,
        target=(float(targets[0]), float(targets[1])),
        possible=(bool(possible[0]), bool(possible[1])),
        whole={
            name: {group: _whole(decided, away, index, name) for index, group in pairs.items()}
            for name in REVIEWERS
        },
        before={group: before.rates(index) for index, group in pairs.items()},
        accuracy=(_accuracy(before.sums), _accuracy(decided.sums)),
        information=(explained(tally), explained(after)),
        edges=EDGES,
        tally=tally,
    )


def _accuracy(sums: Sums) -> float:
    return float(MEASURES["accuracy"].of(sums.pooled())[0])


@dataclass(frozen=True)
class _Kinds:
    """Weights by group and kind: tn, fp, fn, tp."""

    sums: Sums

    def total(self, index: int, label: int) -> float:
        """The weight of a label in a group."""
        return float(self.sums.w[index, 2 * label : 2 * label + 2].sum())

    def wrong(self, index: int, label: int) -> float:
        """The weight of wrong decisions about a label in a group."""
        return float(self.sums.w[index, 1 if label == 0 else 2])

    def rates(self, index: int) -> Pair:
        """FPR and FNR of a group."""
        fpr, fnr = (_ratio(self.wrong(index, y), self.total(index, y)) for y in (0, 1))
        return fpr, fnr

    def base_rate(self, index: int) -> float:
        """The share of positives of a group."""
        positive = self.total(index, 1)
        return _ratio(positive, positive + self.total(index, 0))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0.0 else math.nan


def _reach(decided: _Kinds, away: _Kinds, index: int, label: int) -> Pair:
    """The lowest and the highest rate that a group as a whole can have, whoever decides."""
    wrong, open_ = decided.wrong(index, label), away.total(index, label)
    all_ = decided.total(index, label) + open_
    return _ratio(wrong, all_), _ratio(wrong + open_, all_)


def _target(decided: _Kinds, away: _Kinds, label: int) -> tuple[float, bool]:
    """The common rate of whole groups to aim at, and whether it can be had."""
    groups = range(len(decided.sums.w))
    ends = [_reach(decided, away, index, label) for index in groups]
    low, high = max(low for low, _ in ends), min(high for _, high in ends)
    own = np.array([_ratio(decided.wrong(i, label), decided.total(i, label)) for i in groups])
    if np.ptp(own) <= SAME and low - SAME <= own[0] <= high + SAME:
        return float(own[0]), True
    return (low, True) if low <= high + SAME else (math.nan, False)


def _whole(decided: _Kinds, away: _Kinds, index: int, reviewer: str) -> Pair:
    """FPR and FNR of a whole group if somebody decides about those handed over."""
    rates = []
    for label in (0, 1):
        open_ = away.total(index, label)
        wrong = {"perfect": 0.0, "coin": open_ / 2.0, "score": away.wrong(index, label)}[reviewer]
        rates.append(
            _ratio(decided.wrong(index, label) + wrong, decided.total(index, label) + open_)
        )
    return rates[0], rates[1]


def _group(
    tally: Tally,
    index: int,
    kinds: tuple[_Kinds, _Kinds, _Kinds],
    gone: Cells,
    targets: tuple[float, ...],
) -> HandedOverGroup:
    before, decided, away = kinds
    ends = [_reach(decided, away, index, label) for label in (0, 1)]
    must = []
    for label, target in enumerate(targets):
        all_, open_ = before.total(index, label), away.total(index, label)
        needed = _ratio(target * all_ - decided.wrong(index, label), open_)
        must.append(min(max(needed, 0.0), 1.0) if not math.isnan(needed) else math.nan)
    mine = gone.take(gone.of_group(index))
    weight = {name: k.sums.w[index] for name, k in (("before", before), ("away", away))}
    return HandedOverGroup(
        share=_ratio(float(weight["away"].sum()), float(weight["before"].sum())),
        rows=float(mine.n.sum()),
        base_rate=away.base_rate(index),
        decided_base_rate=decided.base_rate(index),
        mean_score=_ratio(float(mine.wh.sum()), float(mine.w.sum())),
        of_selected=_ratio(
            float(weight["away"][[1, 3]].sum()), float(weight["before"][[1, 3]].sum())
        ),
        of_positives=_ratio(away.total(index, 1), before.total(index, 1)),
        of_negatives=_ratio(away.total(index, 0), before.total(index, 0)),
        decided=decided.rates(index),
        by_score=away.rates(index),
        must_reach=(must[0], must[1]),
        score_can=_can_reach(mine, must),
        low=(ends[0][0], ends[1][0]),
        high=(ends[0][1], ends[1][1]),
        scores=_shares_by_tenth(tally, index, mine),
    )


def _can_reach(cells: Cells, point: list[float]) -> bool:
    """Whether thresholds of the old score, and coins between them, reach FPR and FNR.

    They reach all points between the lower convex hull of (FPR, FNR) over thresholds and its mirror
    image: a straight line through (fpr, fnr) of two thresholds is a coin between these.
    """
    if any(map(math.isnan, point)) or not len(cells):
        return all(map(math.isnan, point))
    order = np.argsort(-cells.bin, kind="stable")
    weights = [np.where(cells.label == y, cells.w, 0.0)[order] for y in (0, 1)]
    last = np.append(np.diff(cells.bin[order]) != 0, True)
    sums = [np.concatenate([[0.0], np.cumsum(w)[last]]) for w in weights]
    if not all(total[-1] > 0.0 for total in sums):
        return True
    fpr, fnr = sums[0] / sums[0][-1], 1.0 - sums[1] / sums[1][-1]
    x, y = point
    return _below(fpr, fnr, x) <= y + SAME and 1.0 - _below(fpr, fnr, 1.0 - x) >= y - SAME


def _below(fpr: Floats, fnr: Floats, x: float) -> float:
    """The lower convex hull of points, at x."""
    hull: list[int] = []
    for k in np.lexsort((fnr, fpr)):
        while len(hull) > 1:
            (x0, y0), (x1, y1) = ((fpr[i], fnr[i]) for i in hull[-2:])
            if (x1 - x0) * (fnr[k] - y0) > (fpr[k] - x0) * (y1 - y0):
                break
            hull.pop()
        hull.append(int(k))
    return float(np.interp(x, fpr[hull], fnr[hull]))


def _shares_by_tenth(tally: Tally, index: int, gone: Cells) -> tuple[float, ...]:
    """The share handed over of each tenth of the scores."""
    cells = tally.cells.take(tally.cells.of_group(index))
    firsts = [tally.grid.first_bin(edge, "tenth") for edge in EDGES[:-1]]
    before, away = (
        np.bincount(np.searchsorted(firsts, one.bin, side="right") - 1, one.w, len(firsts))
        for one in (cells, gone)
    )
    return tuple(_ratio(a, b) for a, b in zip(away.tolist(), before.tolist(), strict=True))


def explained(tally: Tally) -> float:
    """The share of the variance of labels within groups that calibrated scores explain.

    1 - E[(y - h)^2] / E[(y - mu)^2], with mu the base rate of the group: how much scores tell.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> round(explained(compas()), 4)
    0.1127
    """
    totals = tally.totals
    brier = float((totals.wh2.sum(axis=1) - 2.0 * totals.wh[:, 1] + totals.w[:, 1]).sum())
    spread = float((totals.w[:, 0] * totals.w[:, 1] / totals.weight).sum())
    return 1.0 - brier / spread
