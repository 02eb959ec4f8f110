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
from dataclasses import dataclass
from itertools import islice
from typing import Any, Unpack

import numpy as np

from isocost.cells import Cells
from isocost.checks import check_threshold
from isocost.errors import Problem, UsageError, listing
from isocost.grid import TENTHS
from isocost.groups import Group, names_of
from isocost.measures.table import MEASURES
from isocost.question import DEFAULT
from isocost.repairs.composition import edges_of, question_of
from isocost.result import Record, Result
from isocost.rules import Rule, check_rule
from isocost.tables import columns_from, number_text
from isocost.tallies import DataOptions, Tally, TallyLike, as_tally
from isocost.typing import Floats

EDGES = (0.0, *TENTHS, 1.0)
"""The tenths in which the scores of those handed over are counted."""

SAME = 1e-9
"""Rates that differ by no more are the same."""

REVIEWERS = ("perfect", "score", "coin")
"""Possible reviewers: somebody who is always right, the score itself, or a fair coin."""

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
    """The result of :func:`handed_over`.

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
        """The largest differences of FPR and FNR between whole groups, for one of REVIEWERS."""
        return _apart(self.whole[reviewer].values())

    def headline(self) -> str:
        """The share handed over, in a line."""
        return f"{self.share:.2%} of people are handed over; FPR and FNR at {self.threshold:g}"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the printed table: the decided, the handed over, the whole."""
        names = names_of(self.groups)
        numbers = {
            "handed over": ("share", ".2%"),
            "of those selected so far": ("of_selected", ".2%"),
            "of those who turned out positive": ("of_positives", ".2%"),
            "of those who turned out negative": ("of_negatives", ".2%"),
            "base rate, decided": ("decided_base_rate", ".4f"),
            "base rate, handed over": ("base_rate", ".4f"),
            "old mean score, handed over": ("mean_score", ".4f"),
        }
        rows = [
            [title, *(number_text(getattr(g, name), style) for g in self.groups.values())]
            for title, (name, style) in numbers.items()
        ]
        pairs = {
            "FPR, FNR before": self.before,
            "FPR, FNR decided": {g: one.decided for g, one in self.groups.items()},
            "the reviewer must reach": {g: one.must_reach for g, one in self.groups.items()},
            "the old score reaches": {g: one.by_score for g, one in self.groups.items()},
            **{f"whole, reviewer: {name}": self.whole[name] for name in REVIEWERS},
        }
        for title, by_group in pairs.items():
            rows.append([title, *(", ".join(map(number_text, by_group[g])) for g in self.groups)])
        return ["", *names.values()], rows

    def notes(self) -> list[str]:
        """Sentences on what the reviewer must reach, and on who is missing."""
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
                f"With the reviewer {reviewer!r}, whole groups differ by {number_text(fpr)} in "
                f"FPR and {number_text(fnr)} in FNR."
            )
        was = " and ".join(map(number_text, _apart(self.before.values())))
        lines.append(f"Before the rule they differ by {was}.")
        lines.append(
            f"Accuracy among the decided is {self.accuracy[1]:.4f} ({self.accuracy[0]:.4f} among "
            f"all before); scores explain {self.information[1]:.2%} of the variance of labels "
            f"({self.information[0]:.2%})."
        )
        return [*lines, *self._missing()]

    def _missing(self) -> Iterator[str]:
        """Sentences on groups that lost most of the people who matter, those with most first."""
        names = names_of(self.groups)
        for what, name in KINDS_HANDED.items():
            shares = self._shares(name)
            for group, share in sorted(shares.items(), key=lambda item: -item[1]):
                if share > max(2.0 / 3.0, self.groups[group].share):
                    yield (
                        f"In the group {names[group]}, {share:.1%} of those {what} are handed "
                        "over: what is equal among the others says little about them."
                    )

    def warnings(self) -> Iterator[str]:
        """Sentences that nobody should overlook: on who bears it, and on who is left."""
        shares = [one.share for one in self.groups.values()]
        if np.ptp(shares) > 0.01:
            yield (
                f"Groups bear it unequally: {self.share:.1%} of all people are handed over, "
                f"{self._of_each('share')}."
            )
        yield from islice(self._missing(), 1)

    def remarks(self) -> Iterator[str]:
        """Sentences on the decided, and on the people missing among them."""
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
            whole = {reviewer: self.whole[reviewer][group] for reviewer in REVIEWERS}
            for name, value in {**vars(one), **whole}.items():
                if not isinstance(value, tuple):
                    row[name] = value
                elif name != "scores":
                    row[f"{name}_fpr"], row[f"{name}_fnr"] = value
            rows.append(row)
        return self.tally.frame_by_group(list(self.groups), columns_from(rows), backend)


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
    own = question_of(rule).get("threshold", DEFAULT.threshold)
    at = check_threshold(own if threshold is None else threshold)
    return reviewed(rule, as_tally(tally, reading, at, *edges_of([rule])), at)


def reviewed(rule: Rule, tally: Tally, at: float) -> HandedOver:
    """The result of :func:`handed_over` for any rule, also one that hands over nobody."""
    after, gone, first = rule.expected(tally), rule.deferred(tally), tally.grid.first_bin(at)
    # A group that is handed over as a whole is not among those of the decided.
    decided_cells = after.cells.recoded([tally.index_of(group) for group in after.groups])
    before, decided, away = (
        cells.kinds(len(tally.groups), first) for cells in (tally.cells, decided_cells, gone)
    )
    # Weights by group and label, from those of the kinds tn, fp, fn, tp: of all, and of the wrong.
    all_before, all_decided, all_away = (
        kinds.w[:, ::2] + kinds.w[:, 1::2] for kinds in (before, decided, away)
    )
    wrong_before, wrong, wrong_away = (kinds.w[:, 1:3] for kinds in (before, decided, away))
    whole = all_decided + all_away
    own, low, high = (
        _ratio(wrong, all_decided), _ratio(wrong, whole), _ratio(wrong + all_away, whole)
    )  # fmt: skip
    targets, possible = [], []
    for label in (0, 1):
        target, most = max(low[:, label].tolist()), min(high[:, label].tolist())
        rate = float(own[0, label])
        if np.ptp(own[:, label]) <= SAME and target - SAME <= rate <= most + SAME:
            target = rate
        possible.append(bool(target <= most + SAME))
        targets.append(target if possible[-1] else math.nan)
    must = np.clip(_ratio(np.array(targets) * all_before - wrong, all_away), 0.0, 1.0)
    added: dict[str, Any] = {"perfect": 0.0, "score": wrong_away, "coin": all_away / 2.0}

    def by_group(rates: Floats) -> dict[Group, Pair]:
        return dict(zip(tally.groups, map(tuple, rates.tolist()), strict=True))

    pairs = {
        "decided": by_group(own),
        "by_score": by_group(_ratio(wrong_away, all_away)),
        "must_reach": by_group(must),
        "low": by_group(low),
        "high": by_group(high),
    }
    tenths = [tally.grid.first_bin(edge, "tenth") for edge in EDGES[:-1]]
    groups = {}
    for index, group in enumerate(tally.groups):
        cells, mine = (one.take(one.of_group(index)) for one in (tally.cells, gone))
        there, left = (
            np.bincount(np.searchsorted(tenths, one.bin, side="right") - 1, one.w, len(tenths))
            for one in (cells, mine)
        )
        then, now = before.w[index], away.w[index]
        ratios = {
            "share": (now.sum(), then.sum()),
            "base_rate": (all_away[index, 1], all_away[index].sum()),
            "decided_base_rate": (all_decided[index, 1], all_decided[index].sum()),
            "mean_score": (mine.wh.sum(), mine.w.sum()),
            "of_selected": (now[[1, 3]].sum(), then[[1, 3]].sum()),
            "of_positives": (all_away[index, 1], all_before[index, 1]),
            "of_negatives": (all_away[index, 0], all_before[index, 0]),
        }
        numbers: dict[str, Any] = {name: pair[group] for name, pair in pairs.items()}
        numbers |= {name: float(_ratio(*parts)) for name, parts in ratios.items()}
        groups[group] = HandedOverGroup(
            rows=float(mine.n.sum()),
            score_can=_can_reach(mine, must[index].tolist()),
            scores=tuple(_ratio(left, there).tolist()),
            **numbers,
        )
    accuracy = MEASURES["accuracy"]
    return HandedOver(
        groups=groups,
        share=float(away.w.sum() / before.w.sum()),
        threshold=at,
        target=(targets[0], targets[1]),
        possible=(possible[0], possible[1]),
        whole={name: by_group(_ratio(wrong + added[name], whole)) for name in REVIEWERS},
        before=by_group(_ratio(wrong_before, all_before)),
        accuracy=(
            float(accuracy.of(before.pooled())[0]),
            float(accuracy.of(decided.pooled())[0]),
        ),
        information=(explained(tally), explained(after)),
        edges=EDGES,
        tally=tally,
    )


def _ratio(part: Any, whole: Any) -> Floats:
    """The ratio of numbers or arrays; NaN where the whole is 0."""
    out = np.full(np.shape(whole), math.nan)
    np.divide(part, whole, out=out, where=np.asarray(whole) > 0.0)
    return out


def _can_reach(cells: Cells, point: list[float]) -> bool:
    """True if thresholds of the old score, and coins between them, reach FPR and FNR.

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


def explained(tally: Tally) -> float:
    """The share of the variance of labels within groups that calibrated scores explain.

    1 - E[(y - h)^2] / E[(y - mu)^2], with mu the base rate of the group: how much scores tell.
    """
    totals = tally.totals
    brier = float((totals.wh2.sum(axis=1) - 2.0 * totals.wh[:, 1] + totals.w[:, 1]).sum())
    spread = float((totals.w[:, 0] * totals.w[:, 1] / totals.weight).sum())
    return 1.0 - brier / spread
