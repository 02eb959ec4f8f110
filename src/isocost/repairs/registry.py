"""The table of repairs, which commands, reports, displays and estimators read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from isocost.errors import InfeasibleError, Problem, UsageError
from isocost.measures.feasibility import fitted_groups
from isocost.promises import Promise
from isocost.repairs.coarsen import coarsen
from isocost.repairs.composition import merged, merging
from isocost.repairs.counsel import heed, heeding, require_support
from isocost.repairs.hand_over import KEEPS, hand_over
from isocost.repairs.odds import equalize_odds
from isocost.repairs.recalibrate import fitted_rule
from isocost.repairs.reconcilability import FLOORS, RATES
from isocost.repairs.reconcile import reconcile
from isocost.repairs.withhold import withhold
from isocost.rules import DEFAULT_SALT, Rule
from isocost.tallies import Tally


@dataclass(frozen=True)
class Option:
    """An argument of the function that makes a rule, besides the tally and the salt.

    Attributes
    ----------
    name : str
        As the function calls it; the rule's settings use the same name.
    kind : type
        Of the value, or of each value if there are several.
    default : object
        As in the function's signature.
    help : str
        One line, as shown by ``isocost fit --help``.
    choices : tuple of str
        The values that are allowed; empty if they cannot be listed.
    many : bool
        Whether several values may be given.
    shared : str
        The common setting of all repairs that this option follows, if its name is another.
    """

    name: str
    kind: type
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    many: bool = False
    shared: str = ""

    @property
    def setting(self) -> str:
        """What commands and reports, which treat all repairs alike, call it."""
        return self.shared or self.name


@dataclass(frozen=True)
class Repair:
    """A way to make a rule from a tally.

    Attributes
    ----------
    name : str
        The method of its rules, and what ``isocost fit --method`` calls it.
    title, sentence, keeps : str
        What it is called, what it does to scores, and what it promises.
    make : callable
        The function that makes the rule, and warns if the data do not support it.
    goal : {"cost", "rates"}
        What the tolerance is about: one cost, or rates at a threshold.
    options : tuple of Option
        The arguments of ``make``.
    defers : bool
        Whether it hands people over, so that what it promises is about the others.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> [repair.title for repair in ic.REPAIRS.values()]
    ['Withhold', 'Coarsen', 'Equalize odds', 'Reconcile', 'Hand over']
    >>> ic.REPAIRS["odds"].make_with(compas(), threshold=0.3, tolerance=0.1).settings
    {'threshold': 0.3, 'rates': 'generalized'}
    """

    name: str
    title: str
    sentence: str
    keeps: str
    make: Callable[..., Rule]
    goal: Literal["cost", "rates"]
    options: tuple[Option, ...]
    defers: bool = False

    @property
    def function(self) -> str:
        """The name of the function in Python."""
        return self.make.__name__

    def has(self, setting: str) -> bool:
        """Whether it has an option for a setting."""
        return any(option.setting == setting for option in self.options)

    def make_with(self, tally: Tally, *, salt: str = DEFAULT_SALT, **settings: Any) -> Rule:
        """Make a rule with those of the settings that it has options for."""
        arguments = {o.name: settings[o.setting] for o in self.options if o.setting in settings}
        return self.unheeding(tally, **arguments, salt=salt)

    @property
    def unheeding(self) -> Callable[..., Rule]:
        """The function that does not ask whether the data support the rule."""
        made = self.make if hasattr(self.make, "__wrapped__") else heeding(self.make)
        unheeding: Callable[..., Rule] = made.__wrapped__  # type: ignore[attr-defined]
        return unheeding


_COST = Option("cost", str, "fnr", "What an error costs: fpr, fnr, weighted:FP,FN or plain:FP,FN.")

_TOLERANCE = Option("tolerance", float, 0.0, "How far groups may differ.")

_THRESHOLD = Option("threshold", float, 0.5, "Score from which people are treated as positive.")

_LEVELS = Option("levels", str, "auto", "The most levels of a group: auto, or a number.")

_INFEASIBLE = Option(
    "infeasible",
    str,
    "raise",
    "If the goal cannot be reached: stop, or get as close as possible.",
    ("raise", "closest"),
)

REPAIRS: Mapping[str, Repair] = {
    repair.name: repair
    for repair in (
        Repair(
            "withhold",
            "Withhold",
            "A coin picks people whose score becomes the group’s average.",
            "Scores stay calibrated; one cost becomes equal.",
            withhold,
            "cost",
            (_COST, _TOLERANCE, _INFEASIBLE),
        ),
        Repair(
            "coarsen",
            "Coarsen",
            "Neighbouring scores are rounded to a common value; equal scores stay equal.",
            "Scores stay calibrated; one cost becomes equal; decisions stay as they are.",
            coarsen,
            "cost",
            (
                _COST,
                Option(
                    "thresholds",
                    float,
                    (0.5,),
                    "Scores at which decisions must not change.",
                    many=True,
                    shared="threshold",
                ),
                _TOLERANCE,
                _INFEASIBLE,
                Option("allow_decision_changes", bool, False, "Pool across the threshold."),
                Option(
                    "minimize",
                    str,
                    "largest",
                    "Which change of the scores to make small.",
                    ("largest", "mean"),
                ),
            ),
        ),
        Repair(
            "odds",
            "Equalize odds",
            "A coin flips some scores: high becomes low, low becomes high.",
            "Both error rates of the scores become equal; calibration is given up.",
            equalize_odds,
            "rates",
            (
                _THRESHOLD,
                Option(
                    "rates",
                    str,
                    "generalized",
                    "Rates of the scores or of the decisions at the threshold.",
                    ("generalized", "hard"),
                ),
            ),
        ),
        Repair(
            "reconcile",
            "Reconcile",
            "Scores become what came true for them; a coin moves some across the threshold.",
            "Scores stay calibrated; wrong decisions at the threshold become equally common.",
            reconcile,
            "rates",
            (
                _THRESHOLD,
                Option(
                    "equal",
                    str,
                    ("fpr", "fnr"),
                    "Which rates to equalize; repeat the option for several.",
                    RATES,
                    many=True,
                ),
                _TOLERANCE,
                Option("cost", str, None, "What an error costs, with --equal cost."),
                _LEVELS,
                Option(
                    "floor",
                    str,
                    None,
                    f"NAME=NUMBER, the least that may be left of {', '.join(FLOORS)}; "
                    "repeat the option for several.",
                ),
                Option(
                    "no_worse",
                    bool,
                    False,
                    "No rate of a group may get worse than it is now.",
                ),
                Option("monotone", bool, False, "A higher score never gets a lower output."),
                _INFEASIBLE,
            ),
        ),
        Repair(
            "hand_over",
            "Hand over",
            "Some people get no score: somebody else decides about them.",
            "Scores of the others are calibrated, and all their rates become equal.",
            hand_over,
            "rates",
            (
                Option("share", float, 0.25, 'Share to hand over: a number, or "least".'),
                _TOLERANCE,
                _THRESHOLD,
                Option("keep", str, "information", "What to keep most of.", KEEPS),
                _LEVELS,
                _INFEASIBLE,
            ),
            defers=True,
        ),
    )
}
"""The repairs by name, in the order in which they are shown."""

RECALIBRATE = "recalibrate"
"""The method of rules that make scores calibrated: no repair, because nothing becomes equal, but
what may come before one."""


def remade(rule: Rule, tally: Tally, heedful: bool = False) -> Rule:
    """The rule made again from a tally; see :meth:`isocost.Rule.remake`.

    Only if ``heedful`` is it asked whether the data support the rule.
    """
    whole, (tally,) = merged(rule, tally)
    return _remade(whole, tally, heedful).unmerged(merging(rule))


def _remade(rule: Rule, tally: Tally, heedful: bool) -> Rule:
    """The same for a rule whose groups are those of the tally."""
    first, _, second = rule.method.partition("+")
    if first != RECALIBRATE:
        return _remade_repair(rule, rule.method, rule.settings, tally, heedful)
    settings = rule.settings.get(first) if second else rule.settings
    arguments = _arguments("recalibrate", {"method", "shrinkage", "bins"}, settings)
    recalibrated = fitted_rule(tally, **arguments)
    if not second:
        return recalibrated
    basis = recalibrated.expected(tally)
    repair = _remade_repair(rule, second, rule.settings.get(second), basis, heedful)
    return recalibrated.then(repair, tally)


def _remade_repair(rule: Rule, method: str, settings: Any, tally: Tally, heedful: bool) -> Rule:
    repair = REPAIRS.get(method)
    if repair is None:
        known = ", ".join(map(repr, (*REPAIRS, RECALIBRATE)))
        got, step = f"a rule made by {rule.method!r}", "call the function that made it"
        must = f"must be made by one of {known} to be made again"
        raise UsageError(Problem("rule", must, got, step))
    names = {option.name for option in repair.options}
    given = dict(settings) if isinstance(settings, Mapping) else {}
    if "cost" in names:
        given["cost"] = rule.cost
    arguments = _arguments(repair.function, names, given)
    # Of other groups nobody knows whether they should be left out.
    fitted = rule.fitted if set(tally.groups) <= set(rule.groups) else None
    made = repair.unheeding(tally, **arguments, salt=rule.salt, fitted=fitted)
    return heed(made, tally, stacklevel=None) if heedful else made


def _arguments(function: str, names: set[str], settings: Any) -> dict[str, Any]:
    """The settings of a rule if they are the arguments of the function that made it."""
    given = dict(settings) if isinstance(settings, Mapping) else {}
    if given.keys() != names:
        differences = [f"no {name!r}" for name in sorted(names - given.keys())]
        differences += [f"an unknown {name!r}" for name in sorted(given.keys() - names)]
        must = f"must be the arguments of {function} for the rule to be made again"
        step = f"call isocost.{function} with the arguments you want"
        raise UsageError(Problem("settings", must, ", ".join(differences), step))
    return given


def advised(repair: Repair, tally: Tally, settings: Mapping[str, Any]) -> Rule:
    """The rule, unless the data do not support it: then :class:`isocost.NotAdvisedError`.

    The questions come in their order: what cannot be established is not called infeasible.
    """
    try:
        rule = repair.make_with(tally, **settings)
    except InfeasibleError:
        if repair.goal == "cost":
            limit = {"cost": settings["tolerance"]}
            some, promise = tally.select(fitted_groups(tally)), Promise(limit, limit, True, False)
            require_support(some, promise, settings["cost"])
        raise
    if rule.rows:
        require_support(tally.select(rule.fitted), rule.promise, rule.cost)
    return rule
