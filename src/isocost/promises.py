"""What a rule promises: which numbers become equal, and whether scores stay calibrated."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from isocost.checks import as_number, short
from isocost.groups import Group, from_json
from isocost.result import Record
from isocost.rows import Row, bad_rule


@dataclass(frozen=True)
class Promise(Record):
    """What a rule promises about the scores that it repairs.

    Parameters
    ----------
    equal : {name: float}
        What becomes equal over the groups, and within which tolerance: "cost", or measures by
        their names in ``isocost.MEASURES``.
    asked : {name: float}
        The tolerance that was requested.  It is smaller than that of ``equal`` where the rule
        could not reach it and ``infeasible="closest"`` was passed.
    calibrated : bool
        Whether the repaired scores are calibrated if the scores were.
    coin : bool
        Whether a coin may decide for anybody.
    threshold : float or None
        The threshold of rates that need one.
    floor : {name: float}
        What measures of every group are at least; with ``overall_`` before the name, of everybody
        together.
    handed_over : {group: float}
        The share of each group that the rule hands over; what it makes equal is equal among the
        others.  Empty if it hands over nobody.

    Without arguments it promises nothing.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> promise = ic.withhold(compas(), "fpr", tolerance=0.06).promise
    >>> promise.equal, promise.calibrated, promise.coin
    ({'cost': 0.06}, True, True)
    >>> ic.reconcile(compas(), floor={"selection_rate": 0.3}).promise.floor
    {'selection_rate': 0.3}
    """

    equal: Mapping[str, float] = field(default_factory=dict)
    asked: Mapping[str, float] = field(default_factory=dict)
    calibrated: bool = False
    coin: bool = True
    threshold: float | None = None
    floor: Mapping[str, float] = field(default_factory=dict)
    handed_over: Mapping[Group, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.handed_over, Mapping) or not all(
            0.0 <= as_number(share) <= 1.0 for share in self.handed_over.values()
        ):
            rule = "must be a share between 0 and 1 for each group"
            raise bad_rule("rule promise handed_over", rule, short(self.handed_over))
        for name in ("equal", "asked", "floor"):
            object.__setattr__(self, name, _tolerances(name, getattr(self, name)))
        if self.equal.keys() != self.asked.keys():
            got = f"{short(sorted(self.equal))} and {short(sorted(self.asked))}"
            raise bad_rule("rule promise", "must have the same names in equal and asked", got)
        better = [name for name in self.equal if self.equal[name] < self.asked[name]]
        if better:
            raise bad_rule(
                "rule promise",
                "must not be stricter in equal than in asked",
                f"{short(better[0])}: {self.equal[better[0]]!r} < {self.asked[better[0]]!r}",
            )
        for name in ("calibrated", "coin"):
            if not isinstance(getattr(self, name), bool):
                got = short(getattr(self, name))
                raise bad_rule(f"rule promise {name}", "must be true or false", got)
        if self.threshold is not None and not 0.0 < as_number(self.threshold) < 1.0:
            rule = "must be null or a number strictly between 0 and 1"
            raise bad_rule("rule promise threshold", rule, short(self.threshold))

    @classmethod
    def of(
        cls,
        rows: Iterable[Row],
        asked: Mapping[str, float],
        reached: Mapping[str, float] | None = None,
        *,
        calibrated: bool = True,
        threshold: float | None = None,
        floor: Mapping[str, float] | None = None,
        handed_over: Mapping[Group, float] | None = None,
    ) -> Promise:
        """The promise of a rule with these rows; by default ``reached`` is what was requested."""
        coin = any(0.0 < row.probability < 1.0 for row in rows)
        # A smaller tolerance than the requested one is met by chance, not promised.
        equal = {
            name: max(limit, (reached or {}).get(name, limit)) for name, limit in asked.items()
        }
        return cls(equal, asked, calibrated, coin, threshold, floor or {}, handed_over or {})

    @property
    def is_empty(self) -> bool:
        """True if nothing is promised, so that there is nothing to test."""
        return not (self.equal or self.calibrated or self.floor or self.handed_over)

    def __str__(self) -> str:
        if self.is_empty:
            return "nothing"
        equal = [f"{name} within {limit:.4g}" for name, limit in self.equal.items()]
        at = "" if self.threshold is None else f" at {self.threshold:g}"
        return "; ".join(
            [
                f"equal {' and '.join(equal)}{at}" if equal else "nothing becomes equal",
                "scores stay calibrated" if self.calibrated else "scores do not stay calibrated",
                "a coin decides for some" if self.coin else "no coin",
                *self._handed(),
            ]
        )

    def _handed(self) -> list[str]:
        shares = sorted({f"{share:.2%}" for share in self.handed_over.values()})
        if not shares:
            return []
        low, high = (f"{pick(self.handed_over.values()):.2%}" for pick in (min, max))
        return [f"{low if len(shares) == 1 else f'{low} to {high}'} of each group is handed over"]


def _tolerances(name: str, tolerances: Any) -> dict[str, float]:
    if not isinstance(tolerances, Mapping) or not all(
        isinstance(key, str) and 0.0 <= as_number(value) < math.inf
        for key, value in tolerances.items()
    ):
        rule = "must be a finite number of at least 0 for each name"
        raise bad_rule(f"rule promise {name}", rule, short(tolerances))
    return {key: float(value) for key, value in tolerances.items()}


def read_promise(content: Any) -> Promise:
    """The promise in a rule file; raise a :class:`RuleError` if it is invalid."""
    names = [field.name for field in fields(Promise)]
    if not isinstance(content, dict) or content.keys() != set(names):
        raise bad_rule("rule promise", f"must have the fields {', '.join(names)}", short(content))
    handed = content["handed_over"]
    if not isinstance(handed, list) or not all(isinstance(x, list) and len(x) == 2 for x in handed):
        rule = "must be a share between 0 and 1 for each group"
        raise bad_rule("rule promise handed_over", rule, short(handed))
    return Promise(**{**content, "handed_over": {from_json(group): x for group, x in handed}})
