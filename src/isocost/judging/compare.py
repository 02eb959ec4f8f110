"""Repairs side by side, and the choice among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from isocost.checks import check_word
from isocost.errors import command_text, spoken
from isocost.groups import Group, names_of, shown_names
from isocost.judging.audit import Answer, Audit, audit
from isocost.judging.offers import (
    MOST_PROGRAMS,
    PAID_BY,
    Compared,
    Offer,
    Offers,
    compared,
    unrepaired,
)
from isocost.judging.unseen import NUMBERS as OUTLOOKS
from isocost.judging.unseen import Report, Unseen, is_made_from, left_out_of, unseen
from isocost.measures.feasibility import fitted_groups
from isocost.measures.table import MEASURES
from isocost.question import Question, asks
from isocost.repairs.base import titles_of
from isocost.repairs.composition import ORIGINAL, edges_of, named_rules, question_of
from isocost.repairs.table import REPAIRS
from isocost.result import Printed, Record
from isocost.rules import Rule
from isocost.tables import columns_from, frame_of, number_text, transposed
from isocost.tallies import Tally
from isocost.verdict.judgement import Verdict
from isocost.verdict.sentences import SENTENCES, Name, fill, joined, number, percent, plain
from isocost.verdict.wording import few_names, left_out_notes

COLUMNS = {
    "costs differ by": ("cost_difference", ".4f"),
    "FPR or FNR differ by": ("equalized_odds_difference", ".4f"),
    "largest calibration gap": ("calibration_gap", ".4f"),
    "accuracy": ("accuracy", ".4f"),
    "handed over": ("handed_over", ".2%"),
    "people changed": ("changed", ".2%"),
    "mean change": ("mean_change", ".4f"),
    "largest change": ("largest_change", ".4f"),
    "decided by a coin": ("by_coin", ".2%"),
    "decisions changed": ("decisions", ".2%"),
    "Gini of the change": ("largest_gini", ".3f"),
    "information left, least": ("least_information", ".0%"),
}
"""The columns of the printed table after those of each group: numbers of a rule, and their form."""

BY_GROUP = {"cost": "cost", "selection rate": "selection_rate"}
"""What the printed table shows of each group, and what an audit calls it."""

PAYS = {
    "raised": ("raised", ".1%"),
    "raised by": ("mean_rise", ".3f"),
    "lowered": ("lowered", ".1%"),
    "lowered by": ("mean_fall", ".3f"),
    "by a coin": ("by_coin", ".1%"),
    "decisions changed": ("decisions", ".1%"),
    "handed over": ("handed_over", ".1%"),
}
"""The last columns of the table of groups: what a rule does to the people of a group."""

MOST_GROUPS = 4
"""With more groups than this, the table shows the lowest and the highest number only."""

MOST_LISTED = 30
"""With more groups and rules together than this, the table of groups has the rule chosen only."""

WIDEST = 6
"""With more rules than this, each rule gets a line of its own."""

AS_ACCURATE = 0.01
"""An accuracy lower by no more than this counts as the same when a repair is chosen."""

AGAINST = (
    "few", "uncalibrated", "one_label", "unestablished", "unhelpful", "uninformative", "infeasible",
    "equal",
)  # fmt: skip
"""Reasons against a repair, in the order in which they are given when nothing is to be done."""


@dataclass(frozen=True)
class RepairChoice(Record):
    """The repair to choose, if any.

    Attributes
    ----------
    method : str or None
        The repair; None to leave the scores as they are.
    reason : str
        "fit", or why none is to be taken: one of :data:`AGAINST`.
    standings : {method: str}
        "fit", or what speaks against each repair.
    """

    method: str | None
    reason: str
    standings: Mapping[str, str]


def choose(offers: Offers, verdict: Verdict) -> RepairChoice:
    """Choose among repairs, or none of them.

    Without enough data, or with scores that do not mean the same for each group, none.  Of those
    that the data support, that help new people and leave scores informative: those that decide
    about everybody, if any; of these, those that keep scores calibrated, if any; of these, those
    whose expected accuracy is within :data:`AS_ACCURATE` of the highest; and of these the one that
    leaves least to a coin.
    """
    standings = {name: offer.standing for name, offer in offers.items()}
    if verdict.reason in ("few", "uncalibrated", "one_label"):
        return RepairChoice(None, verdict.reason, standings)
    fit = [name for name, standing in standings.items() if standing == "fit"]
    if not fit:
        first = next(code for code in AGAINST if code in standings.values())
        return RepairChoice(None, first, standings)
    done = {name: offers[name].compared.changes for name in fit}
    accuracy = {n: one.accuracy.expected for n in fit if (one := offers[n].unseen) is not None}
    fit = [name for name in fit if not done[name].handed_over] or fit
    fit = [name for name in fit if offers[name].made().promise.calibrated] or fit
    highest = max(accuracy[name] for name in fit)
    fit = [name for name in fit if accuracy[name] >= highest - AS_ACCURATE] or fit
    taken = min(fit, key=lambda name: (done[name].by_coin, done[name].changed))
    return RepairChoice(taken, "fit", standings)


@dataclass(frozen=True, repr=False)
class Comparison(Answer):
    """The result of :func:`compare`; each part is computed when it is first looked at.

    Attributes
    ----------
    question : Question
        What was asked; ``cost`` and ``threshold`` are those of the question.
    offers : Offers
        Every repair for this question, by name: its rule, or why there is none.
    rules : {name: Compared}
        The numbers of the original scores, and of each rule: those given, or of the offers.  They
        are about the groups that the question compares.
    outlooks : {name: Unseen}
        What each rule does to people not seen, if it was made from this tally.
    left_out : {group: float}
        The groups that are not compared and their numbers of people; no number is about them.
    not_made : {method: str}
        Why a repair cannot be made, and what would make it possible.
    choice : RepairChoice or None
        The repair to take, or none, in codes; ``said`` is the same in words.  None if rules were
        given.
    """

    format = "isocost-comparison"
    written = ("question", "rules", "left_out", "_unseen", "_offers?", "choice?", "said?")

    question: Question
    tally: Tally
    given: Mapping[str, Rule] | None
    offers: Offers = field(repr=False)

    @cached_property
    def audit(self) -> Audit:
        """The audit of the original scores."""
        return audit(self.tally, question=self.question, warn=False)

    @cached_property
    def rules(self) -> dict[str, Compared]:
        """The numbers of the original scores and of each rule."""
        if self.given is None:
            own = {n: one.compared for n, one in self.offers.items() if one.rule is not None}
        else:
            own = {n: compared(self.tally, r, self.question) for n, r in self.given.items()}
        return {ORIGINAL: unrepaired(self.tally, self.question), **own}

    @cached_property
    def outlooks(self) -> dict[str, Unseen]:
        """Effects on people not seen of the rules that were made from this tally."""
        if self.given is None:
            expected = {name: offer.unseen for name, offer in self.offers.items()}
            return {name: one for name, one in expected.items() if one is not None}
        return {
            name: unseen(self.tally, rule, question=self.question)
            for name, rule in self.given.items()
            if is_made_from(rule, self.tally)
        }

    def _unseen(self) -> dict[str, Unseen]:
        return self.outlooks

    def _offers(self) -> Mapping[str, Offer]:
        return self.offers if self.given is None else {}

    @property
    def left_out(self) -> dict[Group, float]:
        """The groups that are not compared, and their numbers of people."""
        return left_out_of(self.tally, fitted_groups(self.tally, self.question.min_group))

    @property
    def not_made(self) -> dict[str, str]:
        """The repairs that cannot be made, and why."""
        return {name: offer.said for name, offer in self._offers().items() if offer.why_not}

    @cached_property
    def choice(self) -> RepairChoice | None:
        """The repair to take, in codes."""
        return choose(self.offers, self.audit.verdict) if self.given is None else None

    @cached_property
    def said(self) -> str:
        """The repair to take and why, or why none, in words."""
        if self.choice is None:
            return ""
        method, reason, standings = vars(self.choice).values()
        if method is None:
            kind = "unsound" if reason == "uncalibrated" else reason
            methods = [name for name, code in standings.items() if code == reason]
            names = shown_names(self.audit.groups)
            off = few_names([Name(names[group]) for group in self.audit.miscalibrated])
            fields = {"off": off or "some groups", "methods": joined(methods, SENTENCES["or"])}
            if reason == "unhelpful":
                shell = command_text("plan", "--method", methods[0])
                fields["plan_repair"] = spoken("ic.plan_repair", shell)
            return plain(fill(SENTENCES[f"choice_{kind}"], **fields))
        offer, outlook = self.offers[method], self.outlooks[method]
        done, promise = offer.compared.changes, offer.made().promise
        several = sum(code == "fit" for code in standings.values()) > 1
        coin = "choice_coin" if round(done.by_coin, 3) else "choice_no_coin"
        kept = "choice_calibrated" if promise.calibrated else "choice_uncalibrated"
        sentences = [
            fill(
                SENTENCES["choice_fit"],
                method=method,
                what=titles_of(promise),
                expected=number(outlook.goal.expected),
                unrepaired=number(outlook.goal.unrepaired),
                among=SENTENCES["choice_best" if several else "choice_only"],
                calibration=SENTENCES[kept],
                accuracy=number(outlook.accuracy.expected),
                unrepaired_accuracy=number(outlook.accuracy.unrepaired),
                changed=percent(done.changed),
                coin=fill(SENTENCES[coin], share=percent(done.by_coin)),
            )
        ]
        costs = outlook.cost_difference
        # Where it is the cost that becomes equal, the first sentence says so already.
        if outlook.goal.expected != costs.expected:
            expected, unrepaired_cost = number(costs.expected), number(costs.unrepaired)
            fields = {"cost_expected": expected, "cost_unrepaired": unrepaired_cost}
            sentences.append(fill(SENTENCES["choice_costs"], **fields))
        if done.handed_over:
            share = percent(done.handed_over)
            sentences.append(fill(SENTENCES["choice_handed_over"], share=share))
        return " ".join(map(plain, sentences))

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the printed table: rules across, or down when there are many."""
        names = names_of(self.rules[ORIGINAL].by_group).values()
        few = len(names) <= MOST_GROUPS
        header = ["rule"]
        for title in BY_GROUP:
            each = [f"{title} of {name}" for name in names]
            header += each if few else [f"lowest {title}", f"highest {title}"]
        rows = []
        for name, one in self.rules.items():
            row = [name]
            for measure in BY_GROUP.values():
                numbers = [m[measure] for m in one.audit.groups.values()]
                row += [number_text(x) for x in (numbers if few else (min(numbers), max(numbers)))]
            own = one.numbers()
            rows.append([*row, *(number_text(own[key], form) for key, form in COLUMNS.values())])
        header += COLUMNS
        return (header, rows) if len(self.rules) > WIDEST else transposed(header, rows)

    def by_group(self) -> Printed:
        """Title, header and rows of the table of each group before and after each rule.

        Groups that no rule changes are left out.
        """
        shown = [name for name in self.rules if name != ORIGINAL]
        if len(shown) * len(self.rules[ORIGINAL].by_group) > MOST_LISTED:
            chosen = None if self.choice is None else self.choice.method
            shown = [chosen] if chosen else shown[:1]
        columns = dict(PAYS)
        if not any(self.rules[name].changes.handed_over for name in shown):
            del columns["handed over"]
        header = ["", *(MEASURES[name].title for name in PAID_BY), *columns]
        rows = []
        for group, title in names_of(self.rules[ORIGINAL].by_group).items():
            done = {name: self.rules[name].by_group[group] for name in shown}
            changing = [n for n, one in done.items() if one.changed or one.handed_over]
            for name in [ORIGINAL, *changing] if changing else []:
                numbers = self.rules[name].audit.groups[group]
                row = [f"{title}, {name}", *(number_text(numbers[each]) for each in PAID_BY)]
                row += [
                    "-" if name == ORIGINAL else number_text(getattr(done[name], key), form)
                    for key, form in columns.values()
                ]
                rows.append(row)
        table = transposed(header, rows) if len(rows) == 2 else (header, rows)
        return "Who pays: the groups that are changed, before and after", *table

    def to_frame(self, what: str = "rules", *, backend: str | None = None) -> Any:
        """The numbers as a frame, in the library of the data.

        Parameters
        ----------
        what : {"rules", "groups"}
            "rules": a row for each rule, the original scores first, with how far the groups differ
            then and what it does to people.  "groups": a row for each rule and group, with every
            number of the audit, and what the rule does to this group.
        backend : str, optional
            As for :meth:`isocost.Audit.to_frame`.

        Examples
        --------
        >>> import isocost as ic
        >>> from isocost.examples import compas
        >>> result = ic.compare(compas(), [ic.withhold(compas(), "fpr", 0.06)])
        >>> frame = result.to_frame(backend="dict")
        >>> frame["rule"].tolist(), frame["cost_difference"].round(4).tolist()
        (['original', 'withhold'], [0.0875, 0.06])
        """
        check_word("what", what, ("rules", "groups"))
        if what == "rules":
            rows = [{"rule": name, **one.numbers()} for name, one in self.rules.items()]
            return frame_of(columns_from(rows), backend or self.tally.backend)
        groups, rows = [], []
        for name, one in self.rules.items():
            for group, done in one.by_group.items():
                groups.append(group)
                rows.append({"rule": name, **one.audit.groups[group].values, **asdict(done)})
        return self.tally.frame_by_group(groups, columns_from(rows), backend)

    def headline(self) -> str:
        """A line that says what is compared."""
        return f"Rules compared; cost {self.cost}, threshold {self.threshold:g}"

    def printed(self) -> list[Printed]:
        """Title, header and rows of every printed table: on these people, and on new ones."""
        first, who = [(self.headline(), *self.table())], self.by_group()
        first += [who] if who[-1] else []
        if not self.outlooks:
            return first
        texts = {name: one.texts() for name, one in self.outlooks.items()}
        shown = [name for name in OUTLOOKS if any(name in own for own in texts.values())]
        header = ["rule", *(OUTLOOKS[name] for name in shown)]

        def rows(column: int) -> list[list[str]]:
            return [
                [rule, *(own[name][column] if name in own else "-" for name in shown)]
                for rule, own in texts.items()
            ]

        # Estimates without a repair differ a little by rule; the sentence is about the rule chosen.
        names, chosen = list(texts), self.choice.method if self.choice else None
        place = 0 if chosen is None else names.index(chosen)
        without = [ORIGINAL, *rows(0)[place][1:]]
        return [
            *first,
            ("For new people, expected", *transposed(header, [without, *rows(2)])),
            ("For new people, at most (accuracy: at least)", *transposed(header, rows(3))),
        ]

    def harms(self) -> Iterator[str]:
        """What rules take away that the differences between groups do not show."""
        names = {group: Name(name) for group, name in shown_names(self.audit.groups).items()}
        for name, one in self.rules.items():
            if name == ORIGINAL or not one.changes.changed:
                continue
            fields: dict[str, Any] = {"rule": name}
            for selected, groups in one.as_good_as.items():
                kind = "decisions" if len(groups) == len(one.by_group) else "decisions_of"
                fields |= {"selected": selected, "share": percent(one.audit.overall.accuracy)}
                fields["groups"] = few_names([names[group] for group in groups])
                yield plain(fill(SENTENCES[f"pays_{kind}"], **fields))
            if lost := one.drained:
                fields["groups"] = few_names([names[group] for group in lost])
                fields["share"] = percent(max(lost.values()), 0)
                yield plain(fill(SENTENCES["pays_information"], **fields))

    def notes(self) -> list[str]:
        """The choice, groups left out, what is not feasible, and rules made from other people."""
        others = [] if self.given is None else [n for n in self.given if n not in self.outlooks]
        untried = [n for n in REPAIRS if self.given is None and n not in list(self.offers)]
        many = SENTENCES["untried"].format(methods=", ".join(untried), most=MOST_PROGRAMS)
        return [
            *([self.said] if self.said else []),
            *left_out_notes(self.left_out),
            *self.not_made.values(),
            *([many] if untried else []),
            *self.harms(),
            *(SENTENCES["unseen_others"].format(rule=name) for name in others),
        ]


@asks(
    "rules",
    "cost",
    "threshold",
    edges=lambda others: edges_of(_given(others).values()),
    defaults=lambda others: question_of(*_given(others).values()),
)
def compare(
    tally: Tally,
    question: Question,
    *,
    rules: Mapping[str, Rule] | Iterable[Rule] | None = None,
    progress: Report | None = None,
) -> Comparison:
    """Put rules side by side, with the original scores first; without rules, every repair.

    Without rules, each repair of :data:`isocost.REPAIRS` is made from the tally.  The result then
    also says what each does to people not seen, what is not feasible and what it would take, and
    which repair to take, if any.

    Parameters
    ----------
    tally : Tally, or data
        What the rules would be applied to; data they were not made from say more.  Groups that
        the question does not compare are left out of all numbers, and named in a note.
    rules : {name: Rule} or several rules, optional
        Rules without names are called by their method.
    cost, threshold, tolerance, remakes, ...
        What is asked: see :class:`isocost.Question`.  Cost and threshold are by default those of
        the first rule that has them.  Without ``remakes``, each of the offers is made again 200
        times, 30 if it takes a linear program, and less often with more than eight groups.
    progress : callable, optional
        Called from time to time with the share done.
    **reading
        With data: the keywords of :func:`isocost.tally`, such as ``score``, ``label``, ``group``.

    Returns
    -------
    Comparison
        Per rule: cost and selection rate of each group, how far groups differ, the largest
        calibration gap, accuracy (of the people who are not handed over), and what the rule does to
        people, as in :class:`isocost.judging.offers.Changes`.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> rules = [ic.withhold(compas(), "fpr", 0.06), ic.reconcile(compas())]
    >>> result = ic.compare(compas(), rules)
    >>> list(result.rules)
    ['original', 'withhold', 'reconcile']
    >>> round(result.rules["withhold"].audit.disparity.difference, 4)
    0.06
    >>> result = ic.compare(compas(), cost="fpr", remakes=10)
    >>> result.choice.method, result.choice.standings["withhold"]
    ('reconcile', 'infeasible')
    """
    fitted_groups(tally, question.min_group)
    tally.grid.first_bin(question.threshold, "threshold")
    given = None if rules is None else named_rules(rules)
    comparison = Comparison(question, tally, given, Offers(tally, question, progress))
    if given is not None:
        # They may not fit the data: say so at once.
        comparison.rules  # noqa: B018
    return comparison


def _given(others: dict[str, Any]) -> dict[str, Rule]:
    # Rules may come from a generator, which gives them once.
    if others.get("rules") is None:
        return {}
    others["rules"] = named_rules(others["rules"])
    return dict(others["rules"])
