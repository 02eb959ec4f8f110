"""Levels: neighbouring scores of a group, pooled until their share of positives is known.

The number of levels is a compromise for people who are not seen yet.  Few levels throw away what
the scores say; many have shares of positives that are mostly noise, which a program that looks for
the best rule takes for a difference.  With n people the best number grows like n^(1/3), as that
of the bins of a histogram does; ``"auto"`` means (2 n)^(1/3), the rule of Terrell and Scott
(JASA 1985) for these.  ``python -m benchmarks.decisions`` compares it with fixed numbers on people
that rules have not seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from isocost.cells import add_up
from isocost.tallies import Tally
from isocost.typing import Bools, Floats, Ints

FEWEST = 20
"""The least number of rows of a level, where there are as many: the share of positives of fewer is
noise, and a level of one row would hand out its label as a score."""

SNAP = 1e-12
"""A share of positives this near the threshold is the threshold: rounding decides nothing."""

MOST_LEVELS = 1024

FEW_VALUES = 16
"""With no more different scores than this, each is a level unless it has too few rows."""

FEWEST_AUTO, MOST_AUTO = 4, 64
"""The least and the greatest number of levels that are chosen."""


@dataclass(frozen=True, eq=False)
class ScoreLevels:
    """The levels of one group, from low to high scores.

    Attributes
    ----------
    lo, hi : arrays
        The interval [lo, hi) of scores; none crosses the threshold.
    above : array of bool
        Whether the interval lies at or above the threshold.
    n, w : arrays
        Rows, and share of the group's weight.
    p : array
        Share of positives.
    share : float
        The group's share of everybody.
    base_rate : float
        The group's share of positives.
    """

    lo: Floats
    hi: Floats
    above: Bools
    n: Floats
    w: Floats
    p: Floats
    share: float
    base_rate: float

    def __len__(self) -> int:
        return len(self.w)


def score_levels(
    tally: Tally,
    group: int,
    threshold: float,
    most: int | Literal["auto"] = "auto",
    monotone: bool = False,
) -> ScoreLevels:
    """Pool neighbouring bins of a group into at most ``most`` levels (two or more).

    From low to high, a level is closed when it has 1 / most of the group's weight and
    :data:`FEWEST` rows; the remainder on either side of the threshold joins the last level of
    that side.  Empty bins between two levels are shared half and half.  If ``monotone``, levels
    are pooled further until shares of positives rise on each side of the threshold.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> caucasian = score_levels(compas(), 1, 0.5, 64)
    >>> caucasian.p.round(3).tolist()
    [0.209, 0.313, 0.341, 0.396, 0.461, 0.572, 0.615, 0.719, 0.694, 0.703]
    >>> len(score_levels(compas(), 1, 0.5, 4))
    3
    >>> score_levels(compas(), 1, 0.5, 64, monotone=True).p.round(3).tolist()
    [0.209, 0.313, 0.341, 0.396, 0.461, 0.572, 0.615, 0.707]
    """
    cells = tally.cells.take(tally.cells.of_group(group))
    columns = (cells.n, cells.w, cells.w * cells.label, cells.w2)
    sums = np.stack([add_up(cells.bin, column, tally.grid.size) for column in columns])
    used = np.flatnonzero(sums[1] > 0)
    first = tally.grid.first_bin(threshold)
    above = used >= first
    if not isinstance(most, int):
        most = _number_of_levels(len(used), sums[1].sum() ** 2 / sums[3].sum())
    starts = np.array(list(_starts(above, sums[:2, used], most)), dtype=np.intp)
    if monotone:
        starts = _rising(starts, sums[1:3, used], above)
    n, weight, positive, _ = np.add.reduceat(sums[:, used], starts, axis=1)
    lo, hi = _intervals(tally.grid.cuts, used, starts, first)
    p = positive / weight
    return ScoreLevels(
        lo=lo,
        hi=hi,
        above=above[starts],
        n=n,
        w=weight / weight.sum(),
        p=np.where(np.abs(p - threshold) < SNAP, threshold, p),
        share=float(weight.sum() / tally.totals.w.sum()),
        base_rate=float(positive.sum() / weight.sum()),
    )


def _rising(starts: Ints, sums: Floats, above: Bools) -> Ints:
    """Those of the starts that remain if levels on one side whose shares do not rise are pooled."""
    weight, positive = np.add.reduceat(sums, starts, axis=1)
    kept = [
        starts[side][isotonic(positive[side] / weight[side], weight[side])[1]]
        for side in (~above[starts], above[starts])
    ]
    return np.concatenate(kept)


def isotonic(values: Floats, weights: Floats) -> tuple[Floats, Ints]:
    """The nearest values that never fall, by pooling adjacent violators; and where blocks start.

    Examples
    --------
    >>> fitted, starts = isotonic(np.array([0.1, 0.4, 0.2, 0.9]), np.ones(4))
    >>> fitted.round(3).tolist(), starts.tolist()
    ([0.1, 0.3, 0.3, 0.9], [0, 1, 3])
    """
    blocks: list[tuple[float, float, int]] = []
    for start, (value, weight) in enumerate(zip(values, weights, strict=True)):
        mean, total = float(value), float(weight)
        while blocks and blocks[-1][0] >= mean:
            before, own, start = blocks.pop()
            mean = (mean * total + before * own) / (total + own)
            total += own
        blocks.append((mean, total, start))
    starts = np.array([start for *_, start in blocks], dtype=np.intp)
    sizes = np.diff(np.append(starts, len(values)))
    return np.repeat([mean for mean, *_ in blocks], sizes), starts


def _number_of_levels(values: int, rows: float) -> int:
    """How many levels to make of so many different scores of so many people.

    (2 n)^(1/3), unless there are few scores.  With weights n is (sum w)^2 / sum w^2, as many
    rows as would tell as much without weights.

    Examples
    --------
    >>> _number_of_levels(10, 3000), _number_of_levels(1000, 3000), _number_of_levels(1000, 1e9)
    (64, 18, 64)
    """
    if values <= FEW_VALUES:
        return MOST_AUTO
    return int(np.clip(round((2.0 * rows) ** (1.0 / 3.0)), FEWEST_AUTO, MOST_AUTO))


def _starts(above: Bools, sums: Floats, most: int) -> Iterator[int]:
    """The indices at which a level begins; ``sums`` are the rows and the weight of each bin."""
    enough = sums[1].sum() / most * (1.0 - 1e-12)
    for side in (False, True):
        bins = np.flatnonzero(above == side)
        rest = sums[:, bins].sum(axis=1)
        rows = weight = 0.0
        for k, bin_ in enumerate(bins):
            # What is left must be able to fill a level of its own.
            full = weight >= enough and rows >= FEWEST
            if k == 0 or (full and rest[1] >= enough and rest[0] >= FEWEST):
                yield int(bin_)
                rows = weight = 0.0
            rows, weight = rows + sums[0, bin_], weight + sums[1, bin_]
            rest = rest - sums[:, bin_]


def _intervals(cuts: Floats, used: Ints, starts: Ints, first: int) -> tuple[Floats, Floats]:
    """The intervals of the levels, which fill each side of the threshold that has anybody."""
    begin = used[starts]
    end = np.append(used[starts[1:] - 1], used[-1]) + 1
    above = begin >= first
    inner = np.where(above[1:] != above[:-1], first, (end[:-1] + begin[1:]) // 2)
    lo = np.append(first if above[0] else 0, inner)
    hi = np.append(inner, len(cuts) - 1 if above[-1] else first)
    return cuts[lo], cuts[hi]
