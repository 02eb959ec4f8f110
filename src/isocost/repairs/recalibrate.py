"""Recalibrate: a rule after which the scores of each group mean what they say.

The maps are those of :mod:`isocost.repairs.maps`, fitted to the cells of a tally.  Steps become
rows that set a score, curves rows that move it along straight lines between bin edges.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Unpack

import numpy as np

from isocost.cells import add_up
from isocost.checks import check_whole, check_word
from isocost.errors import DataError, Problem, UncertainWarning, UsageError, listing
from isocost.groups import Group, names_of
from isocost.measures.feasibility import large_groups
from isocost.promises import Promise
from isocost.question import DEFAULT
from isocost.repairs.counsel import summary_of
from isocost.repairs.maps import (
    METHODS,
    CalibrationMap,
    GroupMaps,
    check_shrinkage,
    fit_map,
    own_share,
)
from isocost.rows import NARROWEST, Row
from isocost.rules import Rule
from isocost.tallies import ColumnOptions, Tally, TallyLike, as_tally, check_tally
from isocost.typing import Bools, Floats

ERROR = 1e-4
"""How far the scores of a rule may lie from those of the map it stands for."""

CURVES = ("sigmoid", "beta")


def recalibrate(
    tally: TallyLike,
    method: str = "isotonic",
    *,
    shrinkage: float | str = "auto",
    bins: int = 10,
    **reading: Unpack[ColumnOptions],
) -> Rule:
    """Make the scores of each group calibrated.

    Each group t has its own map, and all share a pooled one.  A score h of group t becomes

        lambda_t map_t(h) + (1 - lambda_t) pooled(h),    lambda_t = n_t / (n_t + shrinkage),

    where n_t is the effective number of its rows with the rarer label.  So a small group borrows
    from everybody; a group with one label uses the pooled map.

    Parameters
    ----------
    tally : Tally, or data
        Of people the scores were not trained on.
    method : {"isotonic", "beta", "sigmoid", "histogram"}
        The map; see :mod:`isocost.repairs.maps`.
    shrinkage : "auto" or float
        The number of rows of the rarer label at which a group's own map counts half; "auto" is
        what :class:`isocost.learn.GroupCalibrator` uses.
    bins : int
        Number of bins of the histogram; data are counted in the usual number of bins.
    **reading
        With data: the keywords of :func:`isocost.tally`, such as ``score``, ``label``, ``group``.

    Returns
    -------
    Rule
        It throws no coin, and promises calibration and nothing else.  ``rule.then(other, tally)``
        makes one rule of it and a repair of ``rule.expected(tally)``.

    Notes
    -----
    A tally knows bins, not scores.  Isotonic and histogram maps give all scores of a bin the same
    value.  For curves, the scores of the rule are within 1e-4 of the map's; only where a curve
    bends by more than that inside one bin, as beta calibration may near 0 and 1, does everybody in
    the bin get the map's value for their mean score.  More bins make it finer.

    The rule is fitted to these people, so on the same people the gap is too good: look at others.

    Examples
    --------
    >>> import isocost as ic, numpy as np
    >>> random = np.random.default_rng(0)
    >>> score, group = random.random(20_000), random.choice(["a", "b"], 20_000)
    >>> label = random.random(20_000) < np.where(group == "a", score, score**2)
    >>> t = ic.tally({"score": score, "label": label, "group": group})
    >>> rule = ic.recalibrate(t, "beta")
    >>> rule.apply(score=[0.5, 0.5], group=["a", "b"]).round(2)
    array([0.5 , 0.26])
    >>> [round(ic.audit(s).groups["b"].calibration_gap, 2) for s in (t, rule.expected(t))]
    [0.16, 0.01]
    """
    tally = as_tally(tally, reading)
    rule = fitted_rule(tally, method, shrinkage=shrinkage, bins=bins)
    for note in rule.notes:
        warnings.warn(note, UncertainWarning, stacklevel=2)
    return rule


def fitted_rule(tally: Tally, method: str, *, shrinkage: float | str, bins: int) -> Rule:
    """The rule of :func:`recalibrate`, whose notes are its warnings."""
    check_tally(tally)
    check_word("method", method, METHODS)
    number = check_shrinkage(method, shrinkage)
    if math.isinf(number):
        step = "use a large number such as 1e9, or isotonic regression of everybody together"
        raise UsageError(Problem("shrinkage", "must be finite in a rule", repr(shrinkage), step))
    bins = check_whole("bins", bins, 1, 1024, "use 10")
    maps = _fit_maps(tally, method, number, bins)
    make = _curve_rows if method in CURVES else _step_rows
    rows = tuple(row for code in range(len(tally.groups)) for row in make(tally, maps, code))
    return Rule(
        groups=tally.groups,
        rows=rows,
        method="recalibrate",
        settings={
            "method": method,
            "shrinkage": shrinkage if isinstance(shrinkage, str) else number,
            "bins": bins,
        },
        notes=tuple(_notes(tally, maps)),
        made_from=summary_of(tally),
        promise=Promise({}, {}, calibrated=True, coin=False),
    )


def _fit_maps(tally: Tally, method: str, shrinkage: float, bins: int) -> GroupMaps:
    """The pooled map and each group's own, from the cells."""
    cells, totals = tally.cells, tally.totals
    if not (totals.w.sum(axis=0) > 0).all():
        kind = ("negatives", "positives")[int(totals.w[:, 1].sum() == 0)]
        rule, step = "must have positives and negatives to be recalibrated", "check the labels"
        raise DataError(Problem("tally", rule, f"no {kind}", step))
    # Steps must not tell the labels of a bin apart, so all its people have one score.
    score = cells.wh / cells.w if method in CURVES else bin_scores(tally)[cells.bin]

    def fit(part: slice) -> CalibrationMap:
        chosen = cells.take(part)
        positives = chosen.w * chosen.label
        w, w2 = (add_up(chosen.label, values, 2) for values in (chosen.w, chosen.w2))
        # As for rows: weights count like repeated rows, unless they are small.
        counts = np.maximum(w, w**2 / w2).tolist()
        negatives = chosen.w - positives
        return fit_map(method, score[part], positives, negatives, counts=(*counts,), bins=bins)

    rarer = (totals.w**2 / np.where(totals.w2 > 0, totals.w2, 1.0)).min(axis=1).tolist()
    own = [fit(cells.of_group(code)) if n else None for code, n in enumerate(rarer)]
    return GroupMaps(fit(slice(None)), own, [own_share(n, shrinkage) for n in rarer])


def bin_scores(tally: Tally, group: int | None = None) -> Floats:
    """The mean score of everybody in each bin, or of a group; the middle where there is nobody."""
    cells = tally.cells.take(slice(None) if group is None else tally.cells.of_group(group))
    cuts = tally.grid.cuts
    w, wh = (add_up(cells.bin, values, tally.grid.size) for values in (cells.w, cells.wh))
    middle = (cuts[:-1] + cuts[1:]) / 2.0
    mean = np.divide(wh, w, out=middle, where=w > 0)
    return np.clip(mean, cuts[:-1], cuts[1:])


# Rows


def _step_rows(tally: Tally, maps: GroupMaps, code: int) -> Iterator[Row]:
    """A row for each run of bins with the same value, or values within the error of it."""
    values = maps.of_group(code, bin_scores(tally), stepwise=True)
    cuts, group, first = tally.grid.cuts, tally.groups[code], 0
    cells = tally.cells.take(tally.cells.of_group(code))
    weight = add_up(cells.bin, cells.w, tally.grid.size)
    while first < len(values):
        away = np.abs(values[first:] - values[first]) > ERROR
        last = first + int(np.argmax(away)) if away.any() else len(values)
        own, w = values[first:last], weight[first:last]
        same = own.min() == own.max() or not w.any()
        value = float(own[0] if same else np.average(own, weights=w))
        yield Row(group, float(cuts[first]), float(cuts[last]), "set", value, 1.0)
        first = last


def _curve_rows(tally: Tally, maps: GroupMaps, code: int) -> Iterator[Row]:
    """Lines between bin edges that lie on the curve, as few as the error allows."""
    cuts, group = tally.grid.cuts, tally.groups[code]

    def curve(scores: Floats) -> Floats:
        return maps.of_group(code, scores.ravel()).reshape(scores.shape)

    bent = _bent(cuts, curve)
    at_mean, at_cut = curve(bin_scores(tally, code)), curve(cuts)
    inside = np.linspace(cuts[:-1], cuts[1:], INSIDE, endpoint=False, axis=1)
    truth = curve(inside)
    first = 0
    while first < tally.grid.size:
        last, ends = first + 1, (float(at_mean[first]), float(at_mean[first]))
        if not bent[first]:
            stop = first + int(np.argmax(np.append(bent[first:], True)))
            last = _farthest(first, stop, cuts, at_cut, inside, truth)
            ends = float(at_cut[first]), float(at_cut[last])
        yield Row.leading(group, float(cuts[first]), float(cuts[last]), ends)
        first = last


INSIDE = 4
"""Points of a bin at which a curve is compared with its line, from the lower edge on."""


def _bent(cuts: Floats, curve: Callable[[Floats], Floats]) -> Bools:
    """The bins in which no straight line comes close to the curve."""
    ends, width = curve(cuts), np.diff(cuts)
    share = np.arange(1, 16)[:, None] / 16.0
    line = ends[:-1] + share * np.diff(ends)
    away = np.abs(curve(cuts[:-1] + share * width) - line).max(axis=0)
    return np.asarray((away > ERROR) | (width < NARROWEST))


def _farthest(
    first: int, stop: int, cuts: Floats, at_cut: Floats, inside: Floats, truth: Floats
) -> int:
    """The farthest edge to which one line from the first edge stays close to the curve."""

    def is_close(last: int) -> bool:
        slope = (at_cut[last] - at_cut[first]) / (cuts[last] - cuts[first])
        line = at_cut[first] + slope * (inside[first:last] - cuts[first])
        return bool(np.abs(line - truth[first:last]).max() <= 0.9 * ERROR)

    reached, beyond = first + 1, stop + 1
    while beyond - reached > 1:
        middle = (reached + beyond) // 2
        reached, beyond = (middle, beyond) if is_close(middle) else (reached, middle)
    return reached


def _notes(tally: Tally, maps: GroupMaps) -> Iterator[str]:
    """Which groups are too small for a map of their own."""
    names, large = names_of(tally.groups), set(large_groups(tally, DEFAULT.min_group))
    pooled = [names[g] for g, own in zip(tally.groups, maps.own, strict=True) if own is None]
    small: list[Group] = [g for g in tally.groups if g not in large and names[g] not in pooled]
    if pooled:
        yield (
            f"Recalibrated by the map of all groups together, because they have positives only or "
            f"negatives only: {listing(pooled)}."
        )
    if small:
        shown = listing(names[group] for group in small)
        yield (
            f"There are few people of {shown}: their scores are recalibrated mostly by the map of "
            "all groups together, and it is not known how well it fits them."
        )
