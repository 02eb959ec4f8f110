"""Question: everything that is asked of a tally, in one frozen object.

Every default of an analysis is written here and nowhere else.  A public function takes the fields
of a question as keywords, or a whole ``question=`` that such keywords then change; :func:`asks`
turns both, and data in place of a tally, into the two arguments that the function's body has.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import wraps
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

import numpy as np

from isocost.checks import (
    check_confidence,
    check_seed,
    check_threshold,
    check_tolerance,
    check_whole,
    check_word,
    short,
)
from isocost.costs import Cost, CostLike, as_cost
from isocost.errors import Problem, UsageError, setting
from isocost.groups import Group, as_group
from isocost.result import Record
from isocost.tallies import DataOptions, Tally, as_tally

Favourable: TypeAlias = Literal["selected", "not_selected"]

MOST_REPLICATES = 100_000

LEAST_REMAKES = 10
"""With fewer remakes than this nothing is known about people not seen."""

Result = TypeVar("Result")


@dataclass(frozen=True, init=False)
class Question(Record):
    """Everything that is asked of a tally: costs, decisions, and how sure to be.

    Parameters
    ----------
    cost : Cost or str
        What an error costs: "fpr", "fnr", "weighted:1,3", or a :class:`isocost.Cost`.
    threshold : float
        Scores at or above this are treated as positive.
    tolerance : float
        How far the costs of two groups may differ.
    confidence : float or None
        How often an interval should hold the true number, over many data sets; None for no
        intervals.
    replicates : int
        Random draws for the intervals of calibration gaps; with 0 these have no intervals.
    remakes : int, optional
        How often a rule is made again to find out what it does to people not seen.  By default
        200 times for one rule and 30 times for each of a list, fewer with many groups.
    seed : int
        Of everything that is drawn: the same seed gives the same numbers.
    min_group : int
        Groups with fewer people, or with fewer than five of a label, are measured and listed, but
        not compared or repaired.  If fewer than two are larger, all that have both labels are
        compared, and nothing counts as established.  With 15 people per label the interval of a
        rate reaches about 0.25 to each side, as far as differences between groups ever go.
    measures : str or list, optional
        The measures to compute, as for :func:`isocost.audit`.
    reference : group, optional
        The group that impact ratios and standardized differences compare with.
    favourable : {"selected", "not_selected"}
        The decision that people want.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> asked = ic.Question(cost="fpr", threshold=0.4)
    >>> ic.audit(compas(), question=asked).question == asked
    True
    >>> ic.audit(compas(), question=asked, threshold=0.3).question.threshold
    0.3
    """

    cost: Cost
    threshold: float
    tolerance: float
    confidence: float | None
    replicates: int
    remakes: int | None
    seed: int
    min_group: int
    measures: Any
    reference: Group | None
    favourable: Favourable

    unwritten: ClassVar[tuple[str, ...]] = ("measures",)
    also: ClassVar[tuple[str, ...]] = ("_measures",)

    def __init__(
        self,
        cost: CostLike = "fnr",
        threshold: float = 0.5,
        tolerance: float = 0.0,
        confidence: float | None = 0.95,
        replicates: int = 2000,
        remakes: int | None = None,
        seed: int = 0,
        min_group: int = 30,
        measures: Any = None,
        reference: Group | None = None,
        favourable: Favourable = "selected",
    ) -> None:
        check_word("favourable", favourable, ("selected", "not_selected"))
        if confidence is not None:
            confidence = check_confidence(confidence)
            replicates = _check_replicates(replicates, confidence)
        if remakes is not None:
            remakes = check_whole("remakes", remakes, LEAST_REMAKES, 1_000_000)
        if isinstance(measures, Iterable) and not isinstance(measures, str | Mapping):
            measures = tuple(measures)
        step = f"use {setting('min_group', 30)}, the default"
        vars(self).update(
            cost=as_cost(cost),
            threshold=check_threshold(threshold),
            tolerance=check_tolerance(tolerance),
            confidence=confidence,
            replicates=replicates,
            remakes=remakes,
            seed=check_seed(seed),
            min_group=check_whole("min_group", min_group, 0, step=step),
            measures=measures,
            reference=reference,
            favourable=favourable,
        )

    def among(self, groups: Iterable[Group]) -> Question:
        """The question about some of the groups: a cost per group is that of these."""
        return self.but(cost=self.cost.among(groups)) if self.cost.is_per_group else self

    def but(self, **changes: Any) -> Question:
        """The question with some fields changed."""
        return replace(self, **changes) if changes else self

    def changed(self, *names: str) -> dict[str, Any]:
        """The fields among these that are not as usual."""
        return {n: x for n in names if (x := getattr(self, n)) != getattr(DEFAULT, n)}

    @property
    def _measures(self) -> Any:
        """The measures for JSON, in which measures of one's own are only named."""
        if not isinstance(self.measures, tuple):
            return self.measures
        return [getattr(one, "name", one) for one in self.measures]

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Question:
        """The question of :meth:`to_dict`; measures of one's own must be added."""
        cost, reference = Cost.from_dict(content["cost"]), content["reference"]
        reference = None if reference is None else as_group(reference)
        return cls(**{**content, "cost": cost, "reference": reference})

    @property
    def level(self) -> float:
        """The confidence of intervals that are needed whether or not they are shown."""
        return DEFAULT.level if self.confidence is None else self.confidence

    @property
    def edges(self) -> tuple[float, float]:
        """The thresholds at which data need a bin edge; a repair that mirrors scores needs both."""
        return self.threshold, 1.0 - self.threshold


def _check_replicates(replicates: Any, confidence: float) -> int:
    # Five replicates beyond each end are the least that an end can be read from.
    least = max(100, math.ceil(10.0 / (1.0 - confidence) - 1e-6))
    whole = isinstance(replicates, int | np.integer) and not isinstance(replicates, bool)
    if whole and (replicates == 0 or least <= replicates <= MOST_REPLICATES):
        return int(replicates)
    rule = f"must be 0, or a whole number from {least} to {MOST_REPLICATES} for "
    step = f"use a lower confidence, or {setting('replicates', 0)} for closed forms only"
    if least <= MOST_REPLICATES:
        step = f"use {setting('replicates', max(2000, least))}, or 0 for closed forms only"
    rule += setting("confidence", confidence)
    raise UsageError(Problem("replicates", rule, short(replicates), step))


DEFAULT = Question()
"""The question of somebody who sets nothing."""

_PARAMETERS = inspect.signature(Question).parameters

FIELDS = tuple(_PARAMETERS)

Others: TypeAlias = dict[str, Any]
"""Arguments of a function other than the tally and the fields of its question."""


def asks(
    *positional: str,
    edges: Callable[[Others], Iterable[float]] | None = None,
    defaults: Callable[[Others], Mapping[str, Any]] | None = None,
    also: tuple[str, ...] = (),
    audited: tuple[type[Any], Callable[..., Any]] | None = None,
    with_unknown: bool = False,
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Make a public function of one whose first two parameters are a tally and a question.

    The public function has a tally or data, the function's other parameters, a keyword for each
    field of a question, ``question=`` for a whole one, and with data the keywords of
    :func:`isocost.tally`.  A keyword that is present counts, even if it is None.

    Parameters
    ----------
    *positional : str
        Parameters of the function, or fields of a question, that may be given by position, in
        this order.
    edges : callable, optional
        Further thresholds at which data need a bin edge, from the function's other arguments.
    defaults : callable, optional
        Fields of the question where neither a keyword nor ``question=`` gives them, from the
        function's other arguments: the cost of a rule, for example.
    also : tuple of str
        Other parameters that may be given data, which are counted in the same way.
    audited : (class, callable), optional
        The class of an audit, and the function that makes one of a tally and a question.  The
        function then has an audit as its first parameter, in place of tally and question.
    with_unknown : bool
        True if the function accepts people whose label or group is unknown, as an audit does.

    Examples
    --------
    >>> @asks("cost", "tolerance")
    ... def described(tally, question, *, loud=False):
    ...     return f"{tally.n:g} people, {question.cost}, {question.tolerance:g}{'!' * loud}"
    >>> data = {"score": [0.2, 0.7], "label": [0, 1], "group": ["a", "b"]}
    >>> described(data, "fpr", 0.05, loud=True)
    '2 people, fpr, 0.05!'
    >>> described(data, question=Question("fpr", tolerance=0.1), tolerance=0)
    '2 people, fpr, 0'
    """

    def door(function: Callable[..., Result]) -> Callable[..., Result]:
        kinds, private = inspect.Parameter, inspect.signature(function)
        first, *rest = private.parameters.values()
        own = {one.name: one for one in (rest if audited else rest[1:])}
        # A repair of rates has a tolerance of its own.
        fields_asked = {name: one for name, one in _PARAMETERS.items() if name not in own}
        keyword = {
            name: one.replace(kind=kinds.KEYWORD_ONLY) for name, one in (own | fields_asked).items()
        }
        placed = [keyword.pop(n).replace(kind=kinds.POSITIONAL_OR_KEYWORD) for n in positional]
        whole = kinds("question", kinds.KEYWORD_ONLY, default=None, annotation="Question | None")
        reads = kinds("reading", kinds.VAR_KEYWORD, annotation="Unpack[DataOptions]")
        signature = private.replace(parameters=[first, *placed, *keyword.values(), whole, reads])
        known = [*DataOptions.__annotations__, *own, *FIELDS, "question"]

        @wraps(function)
        def asking(*args: Any, **keywords: Any) -> Result:
            try:
                given = signature.bind(*args, **keywords).arguments
            except TypeError as error:
                raise TypeError(f"{function.__name__}() {error}") from None
            for name in positional:
                if isinstance(given.get(name), Question):
                    step = f"use {function.__name__}(..., question=...)"
                    rule = "must be passed by its name"
                    raise UsageError(Problem("question", rule, f"one as {name}", step))
            data, reading = given.pop(first.name), given.pop("reading", {})
            if unknown := [name for name in reading if name not in known]:
                near = get_close_matches(unknown[0], known, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                got = f"got an unexpected keyword argument {unknown[0]!r}{hint}"
                raise TypeError(f"{function.__name__}() {got}")
            others = {name: given.pop(name) for name in own if name in given}
            if audited and isinstance(data, audited[0]):
                if settings := [*given, *reading]:
                    rule, got = "belong to the audit already", ", ".join(settings)
                    step = "leave them out, or pass the tally instead of the audit"
                    raise UsageError(Problem("settings", rule, got, step))
                return function(data, **others)
            asked = given.get("question")
            if asked is not None:
                question = check_question(asked)
            else:
                question = DEFAULT.but(**(defaults(others) if defaults else {}))
            question = question.but(**{n: given[n] for n in fields_asked if n in given})
            cuts = (*question.edges, *(edges(others) if edges else ()))
            several = {first.name: data}
            several |= {name: others[name] for name in also if others.get(name) is not None}
            # Keywords of data are wrong only where there are no data.
            only = all(isinstance(one, Tally) for one in several.values())
            for name, one in several.items():
                read = {} if isinstance(one, Tally) and not only else reading
                can_use = with_unknown or audited is not None
                several[name] = as_tally(one, read, *cuts, name=name, with_unknown=can_use)
            tally = several.pop(first.name)
            if audited:
                return function(audited[1](tally, question=question), **others)
            return function(tally, question, **(others | several))

        asking.__signature__ = signature  # type: ignore[attr-defined]
        return asking

    return door


def check_question(question: Any) -> Question:
    """A question, or an error that says how to make one."""
    if not isinstance(question, Question):
        rule, step = "must be a Question", 'use ic.Question(cost="fpr"), or audit.question'
        raise UsageError(Problem("question", rule, short(question), step))
    return question
