"""Whether the data support a repair: what the verdict says before a rule is made and used.

Functions that make rules warn and write the doubt into the rule; ``isocost fit`` refuses.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar, cast

from isocost.checks import check_numbers
from isocost.errors import (
    IsocostWarning,
    NotAdvisedError,
    Problem,
    UncalibratedWarning,
    UncertainWarning,
    spoken,
)
from isocost.groups import shown_names
from isocost.measures.audit import audit
from isocost.measures.feasibility import large_groups
from isocost.measures.table import MEASURES
from isocost.tallies import Reading, Tally, TallyLike, as_tally
from isocost.verdict.judgement import CALIBRATED, MIN_GROUP, MIN_LABEL, Verdict
from isocost.verdict.sentences import SENTENCES, fill, plain
from isocost.verdict.wording import FEW

if TYPE_CHECKING:
    from isocost.promises import Promise
    from isocost.rules import Rule

Make = TypeVar("Make", bound=Callable[..., Any])

DOUBTS: dict[str, type[IsocostWarning]] = {
    "few": UncertainWarning,
    "small": UncertainWarning,
    "uncalibrated": UncalibratedWarning,
    "unestablished": UncertainWarning,
}
"""The reasons for which a repair is not advised although one can be made, and what is warned of."""


def verdict_on_repair(tally: Tally, promise: Promise, cost: object = None) -> Verdict:
    """The verdict on what a rule promises to make equal.

    Calibration is asked for only if the repaired scores are to be calibrated.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> rule = ic.reconcile(compas())
    >>> verdict_on_repair(compas(), rule.promise).reason
    'repair'
    """
    options: dict[str, Any] = {
        "threshold": 0.5 if promise.threshold is None else promise.threshold,
        "tolerance": max(promise.asked.values(), default=0.0),
    }
    cost = "fnr" if cost is None else cost
    few = len(large_groups(tally)) < 2
    measured = audit(tally, cost, confidence=None, **options)  # type: ignore[arg-type]
    if not few:
        # No gap is above the one measured, so only a large one has to be looked at closely.
        gaps = [measured.groups[group].calibration_gap for group in measured.compared]
        draws = 2000 if promise.calibrated and max(gaps) > CALIBRATED else 0
        measured = audit(tally, cost, replicates=draws, warn=False, **options)  # type: ignore[arg-type]
    return measured.verdict_on(*promise.equal, calibrated=promise.calibrated)


def doubt_of(tally: Tally, promise: Promise, cost: object = None) -> tuple[str, str]:
    """The reason why the data do not support the repair, and the sentence; empty if they do.

    A verdict is about the groups that are large enough; a rule is about all of them.
    """
    reason = verdict_on_repair(tally, promise, cost).reason
    large = set(large_groups(tally))
    small = [name for group, name in shown_names(tally.groups).items() if group not in large]
    if small and reason != "few":
        reason = "small"
    if reason not in DOUBTS:
        return "", ""
    listed = f"{len(small)} groups" if len(small) > FEW else " and ".join(small)
    fields = {"what": titles_of(promise), "groups": listed, "min_group": MIN_GROUP}
    return reason, SENTENCES[f"doubt_{reason}"].format(**fields, min_label=MIN_LABEL)


def titles_of(promise: Promise | None) -> str:
    """What a rule makes equal, in words."""
    equal = () if promise is None else promise.equal
    return " and ".join(MEASURES[name].title if name in MEASURES else name for name in equal)


def heed(rule: Rule, tally: Tally, stacklevel: int = 2) -> Rule:
    """The rule, with a note and a warning if the data do not support it."""
    if rule.promise is None or not rule.rows:
        return rule
    reason, doubt = doubt_of(tally, rule.promise, rule.cost)
    if not doubt:
        return rule
    warnings.warn(doubt, DOUBTS[reason], stacklevel=stacklevel + 1)
    return replace(rule, notes=(*rule.notes, doubt))


def require_support(tally: Tally, promise: Promise, cost: object = None) -> None:
    """Raise :class:`isocost.NotAdvisedError` if the data do not support what a rule promises."""
    reason, doubt = doubt_of(tally, promise, cost)
    if doubt:
        raise not_advised("must be supported by the data", doubt, reason)


def not_advised(rule: str, doubt: str, reason: str) -> NotAdvisedError:
    """The error for a repair that can be made but should not be."""
    step = plain(fill(SENTENCES[f"doubt_{reason}_next"]))
    step += spoken("", "; or pass --anyway")
    return NotAdvisedError(Problem("repair", rule, doubt, step))


def _thresholds_in(arguments: Mapping[str, Any]) -> list[float]:
    """The thresholds among the arguments of a repair, and what they are for flipped scores."""
    names = [name for name in ("threshold", "thresholds") if name in arguments]
    asked = [one for name in names for one in check_numbers(name, arguments[name])]
    return [*asked, *(1.0 - one for one in asked)]


def heeding(make: Make) -> Make:
    """A function that makes a rule, and warns if the data do not support it.

    It takes a tally, or data with the keywords of :func:`isocost.tally`.  The function without
    the warning is its ``__wrapped__``.
    """
    own = signature(make)

    @wraps(make)
    def checked(tally: TallyLike, *args: Any, **options: Any) -> Rule:
        names = Reading.__annotations__.keys() & options.keys() - own.parameters.keys()
        reading = {name: options.pop(name) for name in names}
        given = own.bind_partial(tally, *args, **options).arguments
        tally = as_tally(tally, reading, *_thresholds_in(given))
        return heed(make(tally, *args, **options), tally, stacklevel=2)

    return cast("Make", checked)
