"""One group: what its cost, its two error rates and its calibration gap say about each other.

With base rate mu, generalized rates c_fp and c_fn, and a cost g = a c_fp + b c_fn:

    residual   r  = mu c_fn - (1-mu) c_fp = mu - E[h]       always
    gap           >= |r|                                    so calibrated scores lie on r = 0
    trivial cost  T = a mu + b (1-mu)                       the cost of the score mu for everybody
    c_fp = (mu g - b r) / T,   c_fn = ((1-mu) g + a r) / T  two linear equations, solved

The paper's supplement has the same statements with constants twice as large: it bounds the two
rates one by one and adds both errors, where their difference is known exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from isocost.checks import check_amount, check_base_rate, check_unit
from isocost.costs import CostLike, as_cost
from isocost.errors import Problem, UsageError

__all__ = [
    "Bound",
    "ErrorDrop",
    "RateRange",
    "cost_after_interpolation",
    "cost_error_bound",
    "costs_at_rate",
    "gap_after_interpolation",
    "linearity_bound",
    "linearity_residual",
    "rates_at_cost",
]

SLACK = 1e-12
"""How far rounding may put a number beyond a bound that it meets."""


@dataclass(frozen=True)
class Bound:
    """The same bound twice: with the best constant, and with the paper's."""

    sharp: float
    paper: float


@dataclass(frozen=True)
class ErrorDrop:
    """By how much each error rate can fall while the cost does not."""

    generalized_fpr: Bound
    generalized_fnr: Bound


@dataclass(frozen=True)
class RateRange:
    """The lowest and highest value of each error rate."""

    generalized_fpr: tuple[float, float]
    generalized_fnr: tuple[float, float]


def linearity_residual(base_rate: float, generalized_fpr: float, generalized_fnr: float) -> float:
    """How far a group is from its calibrated line, mu c_fn - (1-mu) c_fp.

    It equals mu - E[h] for any scores whatever, because E[(1-h) y] - E[h (1-y)] = E[y] - E[h].
    Its absolute value is a lower bound of the calibration gap that needs no binning.

    Examples
    --------
    >>> round(linearity_residual(0.3936, 0.3600, 0.5263), 4)  # mean score 0.4047
    -0.0112
    """
    mu = check_base_rate(base_rate)
    c_fp = check_unit("generalized_fpr", generalized_fpr)
    c_fn = check_unit("generalized_fnr", generalized_fnr)
    return mu * c_fn - (1.0 - mu) * c_fp


def linearity_bound(gap: float) -> Bound:
    """The largest |residual| of scores with this calibration gap: the gap itself.

    The gap is a mean of absolute values and the residual the mean of the same values, so
    |residual| <= gap, with equality when every level errs to the same side.  The paper's
    lemma has 2 gap.

    Examples
    --------
    >>> linearity_bound(0.02)
    Bound(sharp=0.02, paper=0.04)
    """
    gap = check_amount("gap", gap)
    return Bound(gap, 2.0 * gap)


def cost_error_bound(base_rate: float, gap: float, cost: CostLike | None = None) -> ErrorDrop:
    """By how much other scores can have a lower error rate without a lower cost.

    Let h and h' be scores of one group, both with a calibration gap of at most ``gap``, and let
    h' cost at least as much as h.  Then, with T the trivial cost,

        c_fp(h') >= c_fp(h) - 2 gap b / T       and       c_fn(h') >= c_fn(h) - 2 gap a / T.

    So for calibrated scores a lower cost and lower error rates are the same thing.  Without
    ``cost`` the bounds are those of the worst cost: 2 gap / (1-mu), which "fnr" has, and
    2 gap / mu, which "fpr" has.  The paper's lemma has 4 in place of 2, for every cost.

    Examples
    --------
    >>> cost_error_bound(0.5, 0.1).generalized_fpr
    Bound(sharp=0.4, paper=0.8)
    >>> cost_error_bound(0.5, 0.1, "fpr").generalized_fpr  # this rate is the cost itself
    Bound(sharp=0.0, paper=0.8)
    """
    mu, gap = check_base_rate(base_rate), check_amount("gap", gap)
    if cost is not None:
        return drop_of(*_coefficients(cost, mu), mu, gap)
    # Of all costs "fnr" leaves c_fp the most room, and "fpr" c_fn.
    fp, fn = drop_of(0.0, 1.0, mu, gap), drop_of(1.0, 0.0, mu, gap)
    return ErrorDrop(fp.generalized_fpr, fn.generalized_fnr)


def drop_of(a: float, b: float, mu: float, gap: float) -> ErrorDrop:
    """:func:`cost_error_bound` from the numbers a and b of the cost."""
    trivial = a * mu + b * (1.0 - mu)
    return ErrorDrop(
        Bound(2.0 * gap * b / trivial, 4.0 * gap / (1.0 - mu)),
        Bound(2.0 * gap * a / trivial, 4.0 * gap / mu),
    )


def rates_at_cost(value: float, cost: CostLike, base_rate: float, gap: float) -> RateRange:
    """The error rates that scores with this cost and at most this calibration gap can have.

    c_fp lies within gap b / T of mu g / T, and c_fn within gap a / T of (1-mu) g / T, where T is
    the trivial cost; neither leaves [0, 1].  The lower ends hold for every cost of at least
    ``value``, the upper ends for every cost of at most ``value``.

    Examples
    --------
    >>> rates_at_cost(0.25, "fnr", 0.5, 0.0625)
    RateRange(generalized_fpr=(0.125, 0.375), generalized_fnr=(0.25, 0.25))
    """
    mu, gap = check_base_rate(base_rate), check_amount("gap", gap)
    a, b = _coefficients(cost, mu)
    return range_at(check_amount("value", value), a, b, mu, gap)


def range_at(value: float, a: float, b: float, mu: float, gap: float) -> RateRange:
    """:func:`rates_at_cost` from the numbers a and b of the cost."""
    trivial = a * mu + b * (1.0 - mu)
    # Each limit of a rate, 0 or 1, is a limit of the residual.
    low, high = -gap, gap
    if b > 0:
        low, high = max(low, (mu * value - trivial) / b), min(high, mu * value / b)
    if a > 0:
        low = max(low, -(1.0 - mu) * value / a)
        high = min(high, (trivial - (1.0 - mu) * value) / a)
    largest = a * min(1.0, (mu + gap) / (1.0 - mu)) + b * min(1.0, (1.0 - mu + gap) / mu)
    if value > largest * (1.0 + SLACK):
        raise UsageError(
            Problem(
                "value",
                f"must be a cost that scores with a calibration gap of {gap:g} can have",
                repr(value),
                f"use a value of at most {largest:.6g}, or a larger gap",
            )
        )
    # At the largest cost there is one residual left, and rounding may swap its two limits.
    low, high = min(low, high), max(low, high)
    fp = [_clip((mu * value - b * r) / trivial) for r in (high, low)]
    fn = [_clip(((1.0 - mu) * value + a * r) / trivial) for r in (low, high)]
    return RateRange((fp[0], fp[1]), (fn[0], fn[1]))


def costs_at_rate(
    cost: CostLike,
    base_rate: float,
    gap: float,
    *,
    generalized_fpr: float | None = None,
    generalized_fnr: float | None = None,
) -> tuple[float, float]:
    """The lowest and highest cost of scores of which one error rate and the gap are known.

    The unknown rate is c_fn = ((1-mu) c_fp + r) / mu, or c_fp = (mu c_fn - r) / (1-mu), with the
    residual r between -gap and gap.

    Examples
    --------
    >>> costs_at_rate("fnr", 0.5, 0.0625, generalized_fpr=0.25)
    (0.125, 0.375)
    """
    mu, gap = check_base_rate(base_rate), check_amount("gap", gap)
    a, b = _coefficients(cost, mu)
    if (generalized_fpr is None) == (generalized_fnr is None):
        raise UsageError(
            Problem(
                "generalized_fpr, generalized_fnr",
                "exactly one of them must be given",
                "both" if generalized_fpr is not None else "neither",
                "leave out the rate that is not known",
            )
        )
    if generalized_fpr is not None:
        known = check_unit("generalized_fpr", generalized_fpr)
        mine, its, own, factor = 1.0 - mu, mu, a, b
    else:
        known = check_unit("generalized_fnr", generalized_fnr)
        mine, its, own, factor = mu, 1.0 - mu, b, a
    if mine * known - gap > its + SLACK:
        raise UsageError(
            Problem(
                "gap",
                "must be large enough for the error rate: the other rate cannot exceed 1",
                f"{gap!r} with an error rate of {known!r}",
                f"use a gap of at least {mine * known - its:.6g}",
            )
        )
    low, high = (_clip((mine * known + r) / its) for r in (-gap, gap))
    return own * known + factor * low, own * known + factor * high


def gap_after_interpolation(gap: float, alpha: float) -> float:
    """The calibration gap when a share alpha of the scores is replaced by the base rate.

    It is (1-alpha) gap: the replaced scores are calibrated and add nothing, also where they fall
    on a level that was there before.  The paper states "at most"; it is equal.

    Examples
    --------
    >>> gap_after_interpolation(0.02, 0.25)
    0.015
    """
    return (1.0 - check_unit("alpha", alpha)) * check_amount("gap", gap)


def cost_after_interpolation(value: float, trivial_cost: float, alpha: float) -> float:
    """The cost when a share alpha of the scores is replaced by the base rate.

    (1-alpha) g + alpha T: linear, since both error rates are means.

    Examples
    --------
    >>> cost_after_interpolation(0.25, 0.75, 0.25)
    0.375
    """
    alpha = check_unit("alpha", alpha)
    value, trivial_cost = check_amount("value", value), check_amount("trivial_cost", trivial_cost)
    return (1.0 - alpha) * value + alpha * trivial_cost


def _clip(rate: float) -> float:
    return min(1.0, max(0.0, rate))


def _coefficients(cost: CostLike, base_rate: float) -> tuple[float, float]:
    cost = as_cost(cost)
    if isinstance(cost.fp, Mapping) or isinstance(cost.fn, Mapping):
        raise UsageError(
            Problem(
                "cost",
                "must not differ by group here, where there is one group without a name",
                repr(cost),
                "make a Cost with the numbers of this group alone",
            )
        )
    a, b = cost.coefficients([0], np.array([base_rate]))
    return float(a[0]), float(b[0])
