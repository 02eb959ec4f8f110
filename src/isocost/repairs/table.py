"""The table of repairs, which commands, reports, displays and estimators read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from isocost.errors import Problem, UsageError
from isocost.groups import Group
from isocost.measures.feasibility import large_groups
from isocost.question import DEFAULT, Question
from isocost.repairs.base import with_doubt
from isocost.repairs.coarsen import Minimize, coarsen
from isocost.repairs.composition import merged, merging
from isocost.repairs.hand_over import hand_over
from isocost.repairs.lp import FLOORS, KEEPS, RATES
from isocost.repairs.odds import equalize_odds
from isocost.repairs.recalibrate import fitted_rule
from isocost.repairs.reconcile import reconcile
from isocost.repairs.withhold import withhold
from isocost.rules import DEFAULT_SALT, Rule
from isocost.tallies import Tally


@dataclass(frozen=True)
class Option:
    """An option of a repair, besides the fields of a question and the salt.

    The function and the rule's settings call it by its name; ``help`` is the line in
    ``isocost fit --help``; without ``choices`` the allowed values cannot be listed, and there may
    be ``many`` of them at once.
    """

    name: str
    help: str
    choices: tuple[str, ...] = ()
    many: bool = False


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
        The public function, made by :func:`isocost.repairs.base.repairs`.
    goal : {"cost", "rates"}
        What becomes equal: the cost of the question, or rates at a threshold.
    asks : tuple of str
        The fields of a question that the rule depends on.
    options : tuple of Option
        The other arguments of ``make``.
    defers : bool
        True if it hands people over, so that its promise is about the others.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> [repair.title for repair in ic.REPAIRS.values()]
    ['Withhold', 'Coarsen', 'Equalize odds', 'Reconcile', 'Hand over']
    >>> ic.REPAIRS["odds"].rule(compas(), ic.Question(threshold=0.3), infeasible="raise").settings
    {'threshold': 0.3, 'rates': 'generalized'}
    """

    name: str
    title: str
    sentence: str
    keeps: str
    make: Callable[..., Rule]
    goal: Literal["cost", "rates"]
    asks: tuple[str, ...]
    options: tuple[Option, ...]
    defers: bool = False

    @property
    def function(self) -> str:
        """The name of the function in Python."""
        return self.make.__name__

    @property
    def settings(self) -> set[str]:
        """The names of a rule's settings: the question's but for the cost, and the options."""
        return {*self.asks, *(option.name for option in self.options)} - {"cost"}

    def rule(
        self,
        tally: Tally,
        question: Question = DEFAULT,
        *,
        salt: str = DEFAULT_SALT,
        fitted: Collection[Group] | None = None,
        **options: Any,
    ) -> Rule:
        """Make a rule, ignoring options that this repair does not take.

        Nobody is warned if the data do not support it.
        """
        own = {one.name: options[one.name] for one in self.options if one.name in options}
        make: Callable[..., Rule] = self.make.unadvised  # type: ignore[attr-defined]
        return make(tally, question, salt=salt, fitted=fitted, **own)


_TOLERANCE = Option("tolerance", "How far groups may differ.")

_LEVELS = Option("levels", "The most levels of a group: auto, or a number.")

_INFEASIBLE = Option(
    "infeasible",
    "If the goal cannot be reached: stop, or get as close as possible.",
    ("raise", "closest"),
)

_FLOOR = (
    f"NAME=NUMBER, the least that may be left of {', '.join(FLOORS)}; "
    "repeat the option for several."
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
            ("cost", "tolerance"),
            (_INFEASIBLE,),
        ),
        Repair(
            "coarsen",
            "Coarsen",
            "Neighbouring scores are rounded to a common value; equal scores stay equal.",
            "Scores stay calibrated; one cost becomes equal; decisions stay as they are.",
            coarsen,
            "cost",
            ("cost", "tolerance"),
            (
                Option(
                    "thresholds",
                    "Scores at which decisions must not change, if not at --threshold alone.",
                ),
                _INFEASIBLE,
                Option("allow_decision_changes", "Pool across the threshold."),
                Option("minimize", "Which change of the scores to make small.", get_args(Minimize)),
            ),
        ),
        Repair(
            "odds",
            "Equalize odds",
            "A coin flips some scores: high becomes low, low becomes high.",
            "Both error rates of the scores become equal; calibration is given up.",
            equalize_odds,
            "rates",
            ("threshold",),
            (
                Option(
                    "rates",
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
            ("cost", "threshold"),
            (
                Option(
                    "equal", "Which rates to equalize; repeat the option for several.", RATES, True
                ),
                _TOLERANCE,
                _LEVELS,
                Option("floor", _FLOOR, many=True),
                Option("no_worse", "No rate of a group may get worse than it is now."),
                Option("monotone", "A higher score never gets a lower output."),
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
            ("threshold",),
            (
                Option("share", 'Share to hand over: a number, or "least".'),
                _TOLERANCE,
                Option("keep", "What to keep most of.", KEEPS),
                _LEVELS,
                _INFEASIBLE,
            ),
            defers=True,
        ),
    )
}
"""The repairs by name, in the order in which they are shown."""

RECALIBRATE = "recalibrate"
"""The method of rules that calibrate: no repair, as nothing becomes equal, but one may follow."""


def remade(rule: Rule, tally: Tally, *, advised: bool = False) -> Rule:
    """The rule made again from a tally; see :meth:`isocost.Rule.remake`.

    If ``advised``, it has a note where the data do not support it.
    """
    whole, (tally,) = merged(rule, tally)
    first, _, second = whole.method.partition("+")
    if first != RECALIBRATE:
        made = _remade_repair(whole, first, whole.settings, tally, advised)
    else:
        settings = whole.settings.get(first) if second else whole.settings
        arguments = _arguments("recalibrate", {"method", "shrinkage", "bins"}, settings)
        made = fitted_rule(tally, **arguments)
        if second:
            own = whole.settings.get(second)
            repair = _remade_repair(whole, second, own, made.expected(tally), advised)
            made = made.then(repair, tally)
    return made.unmerged(merging(rule))


def _remade_repair(rule: Rule, method: str, settings: Any, tally: Tally, advised: bool) -> Rule:
    repair = REPAIRS.get(method)
    if repair is None:
        known = ", ".join(map(repr, (*REPAIRS, RECALIBRATE)))
        got, step = f"a rule made by {rule.method!r}", "call the function that made it"
        must = f"must be made by one of {known} to be made again"
        raise UsageError(Problem("rule", must, got, step))
    options = _arguments(repair.function, repair.settings, settings)
    asked = {name: options.pop(name) for name in repair.asks if name in options}
    question = DEFAULT.but(**asked, **({} if rule.cost is None else {"cost": rule.cost}))
    new = set(tally.groups) - set(rule.groups)
    large = large_groups(tally, DEFAULT.min_group) if new else ()
    fitted = [group for group in tally.groups if group in rule.fitted or group in new & {*large}]
    made = repair.rule(tally, question, salt=rule.salt, fitted=fitted, **options)
    return with_doubt(made, tally, question, stacklevel=None) if advised else made


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
