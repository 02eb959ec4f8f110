"""Promise: what must hold after a rule is deployed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from isocost.checks import as_number, short
from isocost.rows import Row, bad_rule

__all__ = ["Promise", "read_promise"]


@dataclass(frozen=True)
class Promise:
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
        Whether a coin decides for anybody.
    threshold : float or None
        The threshold of rates that need one.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> ic.withhold(compas(), "fpr", tolerance=0.06).promise
    Promise(equal={'cost': 0.06}, asked={'cost': 0.06}, calibrated=True, coin=True, threshold=None)
    """

    equal: Mapping[str, float]
    asked: Mapping[str, float]
    calibrated: bool
    coin: bool
    threshold: float | None = None

    def __post_init__(self) -> None:
        for name in ("equal", "asked"):
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
    ) -> Promise:
        """The promise of a rule with these rows; by default ``reached`` is what was requested."""
        coin = any(0.0 < row.probability < 1.0 for row in rows)
        # A smaller tolerance than the requested one is met by chance, not promised.
        equal = {
            name: max(limit, (reached or {}).get(name, limit)) for name, limit in asked.items()
        }
        return cls(equal, asked, calibrated, coin, threshold)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def read_promise(content: Any) -> Promise:
    """The promise in a rule file; raise a :class:`RuleError` if it is invalid."""
    names = [field.name for field in fields(Promise)]
    if not isinstance(content, dict) or content.keys() != set(names):
        raise bad_rule("rule promise", f"must have the fields {', '.join(names)}", short(content))
    return Promise(**content)


def _tolerances(name: str, tolerances: Any) -> dict[str, float]:
    if not isinstance(tolerances, Mapping) or not all(
        isinstance(key, str) and 0.0 <= as_number(value) < math.inf
        for key, value in tolerances.items()
    ):
        rule = "must be a finite number of at least 0 for each name"
        raise bad_rule(f"rule promise {name}", rule, short(tolerances))
    return {key: float(value) for key, value in tolerances.items()}
