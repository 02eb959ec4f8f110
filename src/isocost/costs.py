"""Cost: what an error costs, as a linear function of the two generalized rates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from isocost.checks import as_number, check_flag, short
from isocost.errors import Problem, UsageError, listing, setting, spoken
from isocost.groups import Group, as_group
from isocost.result import Record
from isocost.typing import Floats

Amount: TypeAlias = float | Mapping[Group, float]

LEAST, MOST = 1e-100, 1e100
"""A cost that is not 0 lies between these, so that products and ratios of costs are numbers."""


@dataclass(frozen=True)
class Cost(Record):
    """The cost of a group's errors, g = a c_fp + b c_fn.

    Parameters
    ----------
    fp, fn : float or {group: float}
        What a false positive and a false negative cost; at least 0, not both 0.
    by_base_rate : bool
        If true, a = fp (1 - mu) and b = fn mu with mu the group's base rate, so that
        g is the expected cost per person: the paper's weighted cost.  If false, a = fp and b = fn.

    Notes
    -----
    For calibrated scores the weighted cost is (fp + fn)(mu - E[h^2]): the ratio fp : fn
    cancels out of "equal cost for every group", only miscalibration makes it matter.

    Examples
    --------
    >>> import isocost as ic, numpy as np
    >>> ic.Cost.fnr()
    Cost('fnr')
    >>> ic.Cost.weighted(fp=1, fn=3).coefficients(["a"], np.array([0.25]))
    (array([0.75]), array([0.75]))
    >>> ic.Cost.parse("weighted:1,3") == ic.Cost.weighted(fp=1, fn=3)
    True
    """

    fp: float | Mapping[Group, float]
    fn: float | Mapping[Group, float]
    by_base_rate: bool = False

    def __post_init__(self) -> None:
        for name, amount in (("fp", self.fp), ("fn", self.fn)):
            if isinstance(amount, Mapping):
                if not amount:
                    raise _not_a_cost({})
                checked: Amount = {
                    as_group(group): _check_amount(f"{name} of group {group!r}", number)
                    for group, number in amount.items()
                }
            else:
                checked = _check_amount(name, amount)
            object.__setattr__(self, name, checked)
        check_flag("by_base_rate", self.by_base_rate)
        if isinstance(self.fp, Mapping) and isinstance(self.fn, Mapping):
            self.check_groups(list(self.fp))
        for group in self._named_groups() or [None]:
            if _amount(self.fp, group) == 0 == _amount(self.fn, group):
                got = "fp=0, fn=0" + ("" if group is None else f" for group {group!r}")
                step = "give at least one of them a positive number"
                raise UsageError(Problem("cost", "fp and fn must not both be 0", got, step))

    @classmethod
    def fpr(cls) -> Cost:
        """Only false positives cost: g = c_fp."""
        return cls(fp=1.0, fn=0.0)

    @classmethod
    def fnr(cls) -> Cost:
        """Only false negatives cost: g = c_fn."""
        return cls(fp=0.0, fn=1.0)

    @classmethod
    def weighted(cls, fp: Amount = 1.0, fn: Amount = 1.0) -> Cost:
        """The expected cost per person: g = fp (1 - mu) c_fp + fn mu c_fn."""
        return cls(fp=fp, fn=fn, by_base_rate=True)

    @classmethod
    def parse(cls, text: str) -> Cost:
        """Read a cost as the command line writes it: "fpr", "fnr", "weighted:1,3", "plain:1,3"."""
        if not isinstance(text, str):
            raise _not_a_cost(text)
        kind, _, numbers = text.strip().lower().partition(":")
        if kind in ("fpr", "fnr") and not numbers:
            return cls.fpr() if kind == "fpr" else cls.fnr()
        try:
            fp, fn = map(float, numbers.split(","))
        except ValueError as error:
            raise _not_a_cost(text) from error
        if kind not in ("weighted", "plain"):
            raise _not_a_cost(text)
        return cls(fp=fp, fn=fn, by_base_rate=kind == "weighted")

    def coefficients(self, groups: Sequence[Group], base_rates: Floats) -> tuple[Floats, Floats]:
        """The numbers a and b of each group.

        ``base_rates`` may have leading dimensions; its last runs over the groups.
        """
        self.check_groups(groups)
        fp, fn = (np.array([_amount(each, g) for g in groups]) for each in (self.fp, self.fn))
        if self.by_base_rate:
            return fp * (1.0 - base_rates), fn * base_rates
        return np.broadcast_to(fp, base_rates.shape), np.broadcast_to(fn, base_rates.shape)

    @property
    def kind(self) -> str:
        """The word for it on the command line: "fpr", "fnr", "weighted" or "plain"."""
        if not self.by_base_rate and (self.fp, self.fn) in ((1.0, 0.0), (0.0, 1.0)):
            return "fpr" if self.fp else "fnr"
        return "weighted" if self.by_base_rate else "plain"

    @property
    def is_per_group(self) -> bool:
        """True if the amounts differ by group."""
        return bool(self._mappings())

    def among(self, groups: Iterable[Group]) -> Cost:
        """The cost for some of the groups only; nothing changes unless amounts differ by group."""
        kept = list(groups)
        fp, fn = (
            {group: amount[group] for group in kept if group in amount}
            if isinstance(amount, Mapping)
            else amount
            for amount in (self.fp, self.fn)
        )
        return Cost(fp, fn, by_base_rate=self.by_base_rate)

    def amounts(self, group: Group | None) -> tuple[float, float]:
        """The costs of a false positive and a false negative, in this group if that differs."""
        if any(group not in amount for amount in self._mappings()):
            rule, got = "must have a number for each group", f"none for group {short(group)}"
            raise UsageError(Problem("cost", rule, got, "add the group, or use one number for all"))
        return _amount(self.fp, group), _amount(self.fn, group)

    def _mappings(self) -> list[Mapping[Group, float]]:
        return [amount for amount in (self.fp, self.fn) if isinstance(amount, Mapping)]

    def _named_groups(self) -> list[Any]:
        return list(dict.fromkeys(chain.from_iterable(self._mappings())))

    def check_groups(self, groups: Sequence[Group]) -> None:
        """Raise unless a cost per group names exactly these."""
        known, amounts = set(groups), self._mappings()
        unknown = [group for group in self._named_groups() if group not in known]
        lacking = [g for g in groups if any(g not in amount for amount in amounts)]
        if unknown or lacking:
            got = [f"unknown group {short(group)}" for group in unknown[:5]]
            got += [f"no number for group {short(group)}" for group in lacking[:5]]
            rule = "a cost per group must name each group of the data and no other"
            step = f"use exactly the groups {listing(map(repr, groups))}"
            raise UsageError(Problem("cost", rule, ", ".join(got), step))

    @classmethod
    def from_dict(cls, content: Any) -> Cost:
        """The reverse of :meth:`to_dict`; everything is checked."""
        if not isinstance(content, dict) or content.keys() != {"fp", "fn", "by_base_rate"}:
            raise _not_a_cost(content)
        amounts = dict(content)
        for name, value in content.items():
            if isinstance(value, list):
                try:
                    amounts[name] = {as_group(group): number for group, number in value}
                except (TypeError, ValueError) as error:
                    raise _not_a_cost(content) from error
                if len(amounts[name]) != len(value):
                    raise _not_a_cost(content)
        return cls(**amounts)

    def __str__(self) -> str:
        if self.is_per_group:
            return f"{self.kind} per group"
        named = self.kind in ("fpr", "fnr")
        return self.kind if named else f"{self.kind}:{self.fp:.12g},{self.fn:.12g}"

    def __repr__(self) -> str:
        if self.is_per_group:
            return f"Cost(fp={self.fp!r}, fn={self.fn!r}, by_base_rate={self.by_base_rate})"
        return f"Cost('{self}')"


CostLike: TypeAlias = Cost | str


def as_cost(cost: CostLike) -> Cost:
    """A cost from a :class:`Cost` or a text such as "fnr"."""
    return cost if isinstance(cost, Cost) else Cost.parse(cost)


def _not_a_cost(got: object) -> UsageError:
    words = '"fpr", "fnr", "weighted:1,3" or "plain:1,3"'
    rule = f"must be {spoken('a Cost, or one of', 'one of')} {words}"
    return UsageError(Problem("cost", rule, short(got), f"for example {setting('cost', 'fnr')}"))


def _amount(amount: Amount, group: Any) -> float:
    return amount[group] if isinstance(amount, Mapping) else amount


def _check_amount(name: str, value: Any) -> float:
    number = as_number(value)
    if number != 0 and not LEAST <= number <= MOST:
        rule = f"{name} must be a number that is at least 0; from {LEAST:g} to {MOST:g} if not 0"
        step = "costs are amounts of harm: use 0 for an error that does not count"
        raise UsageError(Problem("cost", rule, short(value), step))
    return number
