"""How many people a repair needs to hold within a tolerance on people not seen."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isocost.checks import (
    check_amount,
    check_confidence,
    check_seed,
    check_whole,
    finite_or_none,
)
from isocost.errors import IsocostWarning, Problem, UsageError
from isocost.groups import Group, beside_groups, names_of, to_json
from isocost.repairs.counsel import titles_of
from isocost.repairs.population import Population
from isocost.repairs.unseen import LEAST, Replicates, Report, Yardstick, safe_level
from isocost.rules import Rule, check_rule
from isocost.tables import frame_of, html_table, text_table
from isocost.tallies import Tally, check_tally
from isocost.typing import Floats

TIMES = tuple(2.0**power for power in range(-2, 9))
"""How many times as many people are tried, until they are enough."""


@dataclass(frozen=True, repr=False)
class RepairPlan:
    """How many people a repair needs to hold on new ones.

    Attributes
    ----------
    groups : {group: float}
        How many people of each group are needed; infinity if 256 times as many are not enough.
    now : {group: float}
        How many there are.
    times : array
        The sizes that were tried, as multiples of what there is.
    expected, limit : arrays
        At each size, how far groups are expected to differ on new people in what the rule makes
        equal, and at most.
    rule, within, confidence
        What it was made with.
    columns, backend
        Those of the tally.
    """

    groups: Mapping[Group, float]
    now: Mapping[Group, float]
    times: Floats
    expected: Floats
    limit: Floats
    rule: Rule
    within: float
    confidence: float
    columns: Mapping[str, Any] = field(default_factory=dict)
    backend: str | None = None

    def to_frame(self, *, backend: str | None = None) -> Any:
        """A row for each group, in the library of the data; see :meth:`isocost.Audit.to_frame`."""
        numbers = {
            "rows": list(self.now.values()),
            "needed": list(map(float, self.groups.values())),
        }
        table = beside_groups(list(self.groups), numbers, self.columns.get("group"))
        return frame_of(table, backend or self.backend)

    def headline(self) -> str:
        """What the numbers are for, in a line."""
        return (
            f"People needed for {self.rule.method} to hold {titles_of(self.rule.promise)} within "
            f"{self.within:g} on new people, confidence {self.confidence:.4g}"
        )

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The printed table, as header and rows."""
        names = names_of(self.groups)

        def shown(rows: float) -> str:
            return f"{rows:,.0f}" if math.isfinite(rows) else "out of reach"

        return ["group", "now", "needed"], [
            [names[group], f"{self.now[group]:,.0f}", shown(rows)]
            for group, rows in self.groups.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is out of reach becomes null."""
        return {
            "method": self.rule.method,
            "within": self.within,
            "confidence": self.confidence,
            "groups": [
                [to_json(group), {"rows": self.now[group], "needed": finite_or_none(rows)}]
                for group, rows in self.groups.items()
            ],
            "sizes": [
                {"times": times, "expected": expected, "limit": limit}
                for times, expected, limit in zip(
                    self.times.tolist(), self.expected.tolist(), self.limit.tolist(), strict=True
                )
            ],
        }

    def to_json(self) -> str:
        """The plan as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        return f"{self.headline()}\n{text_table(*self.table())}"

    def _repr_html_(self) -> str:
        return html_table(*self.table(), caption=self.headline())


def plan_repair(
    tally: Tally,
    rule: Rule,
    within: float = 0.02,
    *,
    replicates: int = 100,
    confidence: float = 0.95,
    seed: int = 0,
    progress: Report | None = None,
) -> RepairPlan:
    """Say how many people a repair needs to hold within a tolerance on new people.

    As in :func:`isocost.unseen`, with samples of other sizes than that of the tally: a quarter of
    it, half of it and so on, until the limit is within the tolerance.  Between two sizes the
    limit is taken to be a power of the size.

    Parameters
    ----------
    tally : Tally
        A first sample.
    rule : Rule
        Made from it by the method and with the settings that are planned.
    within : float
        How far groups may differ, on new people, in what the rule makes equal.
    replicates, confidence, seed, progress
        As in :func:`isocost.unseen`.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> plan = ic.plan_repair(compas(), ic.reconcile(compas()), within=0.05, replicates=20)
    >>> plan.times[:2], bool(plan.limit[0] > plan.limit[-1])
    (array([0.25, 0.5 ]), True)
    """
    check_tally(tally)
    check_rule(rule)
    within = check_within(within)
    replicates = check_whole("replicates", replicates, LEAST, 1_000_000)
    confidence, random = check_confidence(confidence), np.random.default_rng(check_seed(seed))
    if rule.promise is None or not rule.promise.equal:
        step = "make the rule again with withhold, coarsen, equalize_odds or reconcile"
        raise UsageError(Problem("rule", "must promise what it makes equal", "none", step))
    rule.remake(tally)
    sizes = []
    for size, true in _tried(tally, rule, replicates, random, progress):
        limit = float(np.quantile(true, safe_level(confidence, len(true))))
        sizes.append((size, float(true.mean()), limit))
        if limit <= within:
            break
    times, expected, limits = np.array(sizes).T
    enough = _crossing(times, limits, within)
    rows = tally.totals.n.sum(axis=1)
    now = {group: float(n) for group, n in zip(tally.groups, rows, strict=True)}
    needed = {
        group: math.ceil(n * enough) if math.isfinite(enough) else math.inf
        for group, n in now.items()
    }
    return RepairPlan(
        needed, now, times, expected, limits, rule, within, confidence, tally.columns, tally.backend
    )


def check_within(within: Any, name: str = "within") -> float:
    """How far groups may differ among new people, which is never nothing."""
    step = "use 0.02, for example, or the difference you accept"
    checked = check_amount(name, within, step)
    if checked == 0.0:
        must = "must be greater than 0: new people differ by chance, however many there are"
        raise UsageError(Problem(name, must, f"{within!r}", step))
    return checked


def _tried(
    tally: Tally,
    rule: Rule,
    replicates: int,
    random: np.random.Generator,
    progress: Report | None,
) -> Iterator[tuple[float, Floats]]:
    """How far groups differ on the population after the rules of samples, by size."""
    yardstick, population = Yardstick.of(tally, rule), Population(tally)
    base = yardstick.numbers(tally, rule)
    for step, times in enumerate(TIMES):
        made = Replicates(yardstick, population, rule, remake=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IsocostWarning)
            for index in range(replicates):
                made.add(population.draw(random, times), base)
                if progress is not None:
                    progress((step + (index + 1) / replicates) / len(TIMES), None)
        if len(made.true) >= LEAST:
            yield times, np.array(made.true)[:, -1]


def _crossing(times: Floats, limits: Floats, within: float) -> float:
    """Where the limit comes down to the tolerance, on a line through logarithms."""
    if limits[-1] > within:
        return math.inf
    if len(limits) == 1:
        return float(times[-1])
    x, y = np.log2(times[-2:]), np.log(np.maximum(limits[-2:], 1e-300))
    share = (y[0] - math.log(within)) / (y[0] - y[1])
    return float(2.0 ** (x[0] + share * (x[1] - x[0])))
