"""A verdict in words: which sentences are said, in which order, and what they are filled with.

The headline gives the reason of the verdict, the next step what follows from it in the reader's
words, the details the numbers behind it, and the notes what else a reader should know, with
commands.  Nothing after the headline contradicts it.  The order is that of the judgement.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isocost.checks import short
from isocost.errors import UNSET, listing, setting
from isocost.groups import Group, names_of, shown_names
from isocost.measures.feasibility import MIN_LABEL
from isocost.measures.intervals import stretch
from isocost.readings import Command, Reading
from isocost.tables import round_up
from isocost.verdict.judgement import CALIBRATED, SLACK, Findings, Verdict
from isocost.verdict.sentences import (
    CLEAR,
    NEUTRAL,
    SENTENCES,
    Figures,
    Name,
    Note,
    Sentence,
    Vocabulary,
    fill,
    joined,
    percent,
    plain,
)

if TYPE_CHECKING:
    from isocost.judging.audit import Audit
    from isocost.measures.feasibility import Feasibility

FEW = 3
"""So many groups are named in a sentence; the table has all."""

MOST_IN_PLANE = 8
"""With more groups than this, rows of dots take the place of the plane."""

MOST_SHARES = 4
"""With more groups to change than this, a sentence names only those that lose most."""


MOST_TIMES = 1000
"""Nobody gathers more than this many times as many people."""

DETAILS = {
    "few": ("few_groups",),
    "uncalibrated": ("recalibrated", "off", "same"),
    "one_label": ("off",),
    "equal": ("off", "calibrated", "same", "range"),
    "unestablished": ("off", "calibrated", "same", "difference"),
    "infeasible": ("off", "calibrated", "same", "difference", "highest", "limit"),
    "unreachable": ("off", "calibrated", "same", "difference", "highest", "excess"),
    "uncertain": ("off", "calibrated", "same", "difference", "highest", "excess"),
    "unhelpful": ("off", "calibrated", "same", "difference", "highest", "unhelpful"),
    "repair": ("off", "calibrated", "same", "difference", "highest", "helps"),
}
"""The sentences of the details for each reason of a verdict; the page reads the same table.  One
on calibration, on the difference or on new people takes the form that fits the answer.  Groups
whose scores are off have a sentence each; whether a score means the same in each group is said only
if there are none, and it is known."""

LEFT_OUT = ("read_dropped", "read_unknown")
"""Notes on rows that no number rests on; they stand in the first lines."""

HOW = {
    "few": "few_how",
    "uncalibrated": "off_how",
    "unestablished": "more_data_how",
    "unreachable": "more_data_how",
    "unhelpful": "unhelpful_how",
}
"""How to take the next step, in commands."""


@dataclass(frozen=True)
class Statement:
    """The verdict on an audit in words."""

    headline: Sentence
    next: Sentence
    details: list[Sentence]
    left_out: list[Sentence]
    notes: list[Note]

    @property
    def lead(self) -> list[str]:
        """Everything but the notes: what a reader must know, a sentence each."""
        return [plain(one) for one in (self.headline, self.next, *self.details, *self.left_out)]


def statement(
    audit: Audit,
    names: Mapping[Group, Name] | None = None,
    data: Sequence[str] | None = None,
    vocabulary: Vocabulary = NEUTRAL,
) -> Statement:
    """The verdict on an audit in words; groups may be given other names.

    Advice names functions, or with ``data``, the files that were read, commands.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> from isocost.verdict.sentences import plain
    >>> words = Vocabulary("defendants", "reoffended", "risk")
    >>> print(plain(statement(ic.audit(compas(), "fpr"), vocabulary=words).headline))
    Defendants who did not reoffend were given an average risk of 45\u00a0% if African-American, \
36\u00a0% if Caucasian. No repair can close this gap and keep the scores calibrated.
    """
    if names is None:
        names = {group: Name(name) for group, name in shown_names(named_groups(audit)).items()}
    calls = commands(audit, data)
    fields = _fields(audit, names, vocabulary)
    return Statement(
        headline(audit.advised, audit.cost.kind, fields),
        fill(SENTENCES[f"next_{audit.advised.reason}"], **fields),
        list(_details(audit, names, fields)),
        list(_left_out(audit, names, fields)),
        list(_notes(audit, names, {**fields, **calls})),
    )


def named_groups(audit: Audit) -> tuple[Group, ...]:
    """The groups of an audit, and those that it does not hold but speaks of."""
    return (*audit.groups, *audit.others.examined, *audit.others.small)


def commands(audit: Audit, data: Sequence[str] | None = None) -> dict[str, str | Command]:
    """Calls that plan, and that repair by each method, with the settings of the audit.

    With ``data``, the files that were read, they are commands of a shell.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> commands(ic.audit(compas(), "fpr"))["plan"]
    'ic.plan(tally, "fpr", detect=0.087)'
    >>> print(commands(ic.audit(compas(), "fpr"), ["data.csv"])["reconcile"])
    isocost fit data.csv --method reconcile --cost fpr -o reconcile.json
    """
    cost, question = audit.cost, audit.question
    # What was seen is what one would like to tell from the tolerance; few people tell nothing.
    difference = abs(audit.disparity.difference - question.tolerance)
    known = audit.verdict.enough and 0 < difference < 1
    rates = question.changed(
        "threshold", "confidence", "replicates", "remakes", "seed", "min_group"
    )
    costs = question.changed("tolerance") | rates
    detect = {"detect": float(f"{difference:.2g}") if known else 0.05}
    made: dict[str, tuple[str, str, dict[str, Any]]] = {
        "plan": ("plan", "", detect | question.changed("confidence", "min_group")),
        "withhold": ("fit", "withhold", costs),
        "coarsen": ("fit", "coarsen", costs),
        "coarsen_decisions": ("fit", "coarsen", costs | {"allow_decision_changes": True}),
        "reconcile": ("fit", "reconcile", rates),
        "odds": ("fit", "odds", rates),
    }

    def call(name: str, method: str, options: Mapping[str, Any]) -> str:
        function = {"odds": "equalize_odds"}.get(method, method or name)
        words = ["tally.known" if audit.tally.reading.unknown_rows else "tally"]
        if method not in ("reconcile", "odds"):
            words.append("cost" if cost.is_per_group else f'"{cost}"')
        words += [f"{option}={value!r}" for option, value in options.items()]
        return f"ic.{function}({', '.join(words)})"

    def line(name: str, method: str, options: Mapping[str, Any]) -> Command:
        words = ["--method", method] if method else []
        words += ["--cost", str(cost)] if name != "recalibrate" else []
        for option, value in options.items():
            # There is no option for no intervals.
            if value is not None:
                words.append(f"--{option.replace('_', '-')}")
                words += [] if value is True else [f"{value:.12g}"]
        words += ["-o", f"{method or name}.json"] if name != "plan" else []
        return audit.tally.reading.command(name, data or (), *words, bins=audit.tally.bins)

    if data is None or cost.is_per_group:
        return {key: call(*one) for key, one in made.items()}
    made |= {"plan_repair": ("plan", "withhold", costs), "recalibrate": ("recalibrate", "", {})}
    return {key: line(*one) for key, one in made.items()}


Fields = dict[str, Any]
"""What sentences are filled with: texts, names and sentences."""


def headline(verdict: Verdict, kind: str, fields: Fields) -> Sentence:
    """The sentence that gives the reason of a verdict about a kind of cost."""
    form = {"unreachable": "uncertain", "one_label": "uncalibrated"}.get(
        verdict.reason, verdict.reason
    )
    if verdict.findings.tolerance > 0:
        form = {"unestablished": "unsettled", "repair": "closer"}.get(form, form)
    elif form == "unestablished" and not verdict.differs:
        form = "same"
    if verdict.reason == "uncalibrated" and not math.isnan(verdict.findings.change):
        form = "turned" if fields["is_turned"] else "moved"
    elif form == "uncalibrated":
        form += "_one" if "base_rate" in fields else "" if fields["off"] else "_between"
    gap = fill(SENTENCES[f"gap_{kind}"], **fields)
    if int(fields["count"]) > 2:
        gap = fill(SENTENCES["of_many"], gap=gap, count=fields["count"])
    alike = fill(SENTENCES[f"alike_{kind}"], **fields)
    return fill(SENTENCES[f"headline_{form}"], **{**fields, "gap": gap, "alike": alike})


def extremes(
    kind: str, figures: Figures, high: tuple[Name, float], low: tuple[Name, float]
) -> Fields:
    """The groups with the highest and the lowest cost, and the numbers that a headline gives."""
    costs = (high[1], low[1])
    shown = figures
    if figures.decimals == 1 and high[1] - low[1] >= CLEAR:
        shown = Figures(0, figures.of_scores) if figures.of_scores else figures
    # A miss is a low score: what people were given is what is left of 1.
    values = (1.0 - cost if kind == "fnr" else cost for cost in costs)
    high_value, low_value = map(shown.cost, values)
    names = {"high": high[0], "low": low[0]}
    return {**names, "high_value": high_value, "low_value": low_value}


def _fields(audit: Audit, names: Mapping[Group, Name], vocabulary: Vocabulary) -> Fields:
    """Everything that a sentence of the verdict may be filled with."""
    reach, findings = audit.feasibility, audit.advised.findings
    figures = figures_of(audit)
    d, tolerance, blocked = audit.disparity, reach.tolerance, blocked_group(reach)
    costs = {group: audit.groups[group].cost for group in audit.compared}
    required = reach.required_cost + tolerance
    costly = [names[group] for group, cost in reach.costs.items() if cost > required]
    ceiling, short = reach.ceiling(blocked), reach.smallest_tolerance - tolerance
    found = audit.recalibrated
    one, other = found.between
    now = costs[one] - costs[other]
    then = now + found.change
    fields: Fields = {
        **vocabulary.fields(),
        **extremes(audit.cost.kind, figures, (names[d.highest], costs[d.highest]),
                   (names[d.lowest], costs[d.lowest])),
        "count": str(len(audit.compared)),
        "tolerance": figures.tolerance(tolerance),
        "candidates": few_names([names[group] for group in audit.verdict.highest], SENTENCES["or"]),
        "threshold": f"{audit.threshold:g}",
        "changed": changed_groups(reach.changed, names),
        "shares": _shares(reach.alpha, names),
        "shares_then": _shares(found.alpha, names),
        "one": names[one],
        "other": names[other],
        "now": figures.difference(now),
        "then": figures.difference(abs(then)),
        "is_turned": then < 0.0,
        "by": figures.difference(found.change),
        "if_calibrated": figures.difference(found.difference),
        "off": few_names([names[group] for group in audit.miscalibrated]),
        "difference": figures.difference(d.difference),
        "lowest_cost": figures.cost(costs[d.lowest]),
        "highest_cost": figures.cost(costs[d.highest]),
        "more_data": more_data(findings, stretch(audit.question.level, len(audit.compared))),
        "costly": few_names(costly),
        "smallest": figures.enough(reach.smallest_tolerance),
        "required": figures.cost(required),
        "decisions": "",
        "blocked": names[blocked],
        "blocked_cost": figures.cost(reach.costs[blocked]),
        "ceiling": figures.cost(ceiling),
        "short": figures.difference(short),
        "expected": figures.difference(findings.expected),
        "unrepaired": figures.difference(findings.unrepaired),
        "limit": f"{100 * CALIBRATED:g} points",
        "level": f"{100 * audit.question.level:.4g}\u00a0%",
        "min_group": f"{audit.question.min_group:,}",
        "min_label": str(max(1, min(MIN_LABEL, audit.question.min_group))),
        "large": SENTENCES["few_one" if findings.groups == 1 else "few_none"],
        "span_low": figures.bare(audit.cost_interval[0]),
        "span_high": figures.difference(audit.cost_interval[1]),
    }  # fmt: skip
    for name in ("excess", "excess_low", "excess_high"):
        fields[name] = figures.difference(getattr(findings, name) + tolerance)
    if audit.advised.reason in ("infeasible", "unreachable") and is_offered(audit, "reconcile"):
        fields["decisions"] = fill(SENTENCES["next_decisions"], **fields)
    if ends := found.intervals:
        for name, (low, high) in {"by": ends.change, "if": ends.difference}.items():
            fields |= {f"{name}_low": figures.bare(low), f"{name}_high": figures.difference(high)}
    if len(audit.miscalibrated) == 1:
        fields |= _means(audit, audit.miscalibrated[0], figures)
    return fields | between_fields(audit, names)


def between_fields(audit: Audit, names: Mapping[Group, Name]) -> dict[str, str | Name]:
    """The groups whose mean scores are furthest too low and too high, and their numbers."""
    order = sorted(audit.examined.items(), key=lambda one: one[1].base_rate - one[1].mean_score)
    fields: dict[str, str | Name] = {}
    for end, (group, one) in (("over", order[0]), ("under", order[-1])):
        fields |= {end: names[group]}
        fields |= {f"{end}_score": percent(one.mean_score), f"{end}_rate": percent(one.base_rate)}
    ends = (f"{100 * end:.1f}" for end in audit.bias)
    return fields | dict(zip(("bias_low", "bias_high"), ends, strict=True))


def figures_of(audit: Audit) -> Figures:
    """The form in which the numbers of an audit are written."""
    return Figures.of((audit.groups[g].cost for g in audit.compared), audit.cost.kind)


def _means(audit: Audit, group: Group, figures: Figures) -> Fields:
    numbers = vars(audit.examined[group])
    return {name: figures.percent(numbers[name]) for name in ("mean_score", "base_rate")}


def is_offered(audit: Audit, name: str) -> bool:
    """True if a repair is on the list, changes something, and nothing known speaks against it."""
    offer = audit.offers[name] if name in list(audit.offers) else None
    if offer is None or offer.rule is None or not offer.rule.rows:
        return False
    return not offer.doubt and not offer.uninformative


def few_names(names: Sequence[Name], last: str = " and ") -> Sentence:
    """The names of a few groups; of more, how many they are."""
    if len(names) > FEW:
        some = "any_of" if last == SENTENCES["or"] else "several"
        return fill(SENTENCES[some], count=str(len(names)))
    return joined(names, last)


def _details(audit: Audit, names: Mapping[Group, Name], fields: Fields) -> Iterator[Sentence]:
    verdict, off, figures = audit.advised, audit.miscalibrated, figures_of(audit)
    for name in DETAILS[verdict.reason]:
        if name == "off":
            for group in off[:FEW]:
                own = {
                    "group": names[group],
                    "gap": f"{figures.points(audit.examined[group].gap)} points",
                    "floor": f"{figures.points(audit.examined[group].gap_low)} points",
                    **_means(audit, group, figures),
                }
                yield fill(SENTENCES["off_group"], **{**fields, **own})
            if len(off) > FEW:
                yield fill(SENTENCES["off_more"], count=str(len(off) - FEW))
        elif name == "calibrated":
            yield _calibrated(audit, names, fields)
        elif name == "same":
            if verdict.same != "unknown" and not off:
                yield fill(SENTENCES[f"same_{verdict.same}"], **fields)
        elif name == "difference":
            many = "_many" if len(audit.compared) > 2 else ""
            form = many if audit.intervals else "_measured"
            yield fill(SENTENCES[f"difference{form}"], **fields)
        elif name == "helps":
            if verdict.helps == "yes":
                yield fill(SENTENCES["helps_yes"], **fields)
        elif name != "highest" or len(verdict.highest) > 1:
            yield fill(SENTENCES[name], **fields)


def _left_out(audit: Audit, names: Mapping[Group, Name], fields: Fields) -> Iterator[Sentence]:
    """Who was left out of which question: groups with their numbers of people, then rows."""
    no_cost = {g: one.n for g, one in audit.examined.items() if g not in audit.compared}
    for key, some in (("no_cost", no_cost), ("too_small", audit.too_small)):
        most = sorted(some, key=lambda group: -some[group])
        listed: list[str | Name | Sentence] = [
            names[g]
            if math.isnan(some[g])
            else fill(SENTENCES["with_people"], group=names[g], count=people_text(some[g]))
            for g in most[:FEW]
        ]
        if len(some) > FEW:
            listed.append(fill(SENTENCES["others"], count=str(len(some) - FEW)))
        if some:
            yield fill(SENTENCES[key], **{**fields, "groups": joined(listed)})
    for note in reading_notes(audit.tally.reading, audit.tally.groups):
        if note.key in LEFT_OUT:
            yield note.sentence


def more_data(findings: Findings, stretch: float) -> str:
    """The sentence on how many people would settle whether costs differ beyond the tolerance.

    ``stretch`` is how much wider the lower side of the interval is than the upper one.
    """
    away = findings.difference - findings.tolerance
    if findings.tolerance <= 0.0 and away <= SLACK:
        return SENTENCES["more_data_same"]
    # The lower end of an interval may be cut off at 0.
    room = (findings.difference_high - findings.difference) * (stretch if away > 0 else 1.0)
    if math.isnan(room):
        return SENTENCES["more_data_some"]
    # The width of an interval falls with the square root of the rows.
    times = (room / max(abs(away), SLACK)) ** 2
    if times > MOST_TIMES:
        return SENTENCES["more_data_none"]
    return SENTENCES["more_data"].format(times=max(2, math.ceil(times)))


def blocked_group(reach: Feasibility) -> Group:
    """The group that is furthest from where it would have to be."""
    others = [group for group in reach.costs if group != reach.target_group]
    return min(reach.unreachable or others, key=reach.ceiling)


def changed_groups(changed: Sequence[Group], names: Mapping[Group, Name]) -> str | Name | Sentence:
    """The groups whose scores are to be changed."""
    if len(changed) == 1:
        return names[changed[0]]
    return fill(SENTENCES["several"], count=str(len(changed)))


def _shares(alpha: Mapping[Group, float], names: Mapping[Group, Name]) -> str | Sentence:
    changed = [group for group in alpha if alpha[group] > 0]
    if not changed or max(alpha[group] for group in changed) > 1.0:
        return SENTENCES["no_share" if changed else "nobody"]
    named = changed
    if len(changed) > MOST_SHARES:
        named = sorted(changed, key=lambda group: -alpha[group])[: MOST_SHARES - 1]
    shares: list[str | Name | Sentence] = [
        fill(SENTENCES["share_of"], share=percent(alpha[group]), group=names[group])
        for group in named
    ]
    if len(changed) > len(named):
        more = str(len(changed) - len(named))
        shares.append(fill(SENTENCES["share_of_more"], count=more))
    return joined(shares)


def people_text(n: float) -> str:
    """A number of people with its unit."""
    return f"{n:,.0f} {'person' if n == 1 else 'people'}"


def left_out_notes(left_out: Mapping[Group, float]) -> list[str]:
    """The sentence that names groups without numbers and how many people they have, if any."""
    names = shown_names(left_out)
    each = [f"{names[group]} ({people_text(n)})" for group, n in left_out.items()]
    return [SENTENCES["left_out"].format(groups=listing(each, FEW))] if each else []


def guess_note(reading: Reading, groups: Iterable[Group]) -> Note | None:
    """The doubt in an encoding that was guessed, if a name of a group is not all ASCII."""
    names = names_of(groups).values() if reading.guessed == "encoding" else ()
    odd = [short(name) for name in names if not name.isascii()]
    fields = {"value": reading.encoding, "groups": listing(odd, FEW)}
    return Note("read_guessed", fields) if odd else None


def reading_notes(reading: Reading, groups: Iterable[Group]) -> Iterator[Note]:
    """Notes on how the data were read, where that is not the usual way."""
    usual, scale = Reading(), reading.scale
    rank = re.fullmatch(r"rank:(-?\d+)-(-?\d+)", scale)
    if rank:
        size = str(int(rank[2]) - int(rank[1]) + 1)
        yield Note("read_rank", {"low": rank[1], "high": rank[2], "size": size})
    elif scale != usual.scale:
        key = f"read_{scale}" if f"read_{scale}" in SENTENCES else "read_scale"
        yield Note(key, {"value": scale})
    for name in ("encoding", "sheet", "decimal"):
        value = getattr(reading, name)
        if name == "encoding" and (doubt := guess_note(reading, groups)):
            yield doubt
        elif value != getattr(usual, name):
            yield Note(f"read_{name}", {"value": repr(value) if name == "sheet" else value})
    if 0 < reading.ids < reading.read_rows:
        rows, ids = reading.read_rows, reading.ids
        person = setting("person", reading.columns.get("id", UNSET))
        fields = {"rows": f"{rows:,}", "ids": f"{ids:,}", "times": f"{rows / ids:.2f}"}
        yield Note("read_repeated", {**fields, "person": person})
    for key, rows, values in (
        ("read_dropped", reading.dropped_rows, reading.missing_values),
        ("read_unknown", reading.unknown_rows, reading.unknown_values),
    ):
        columns = [
            fill(SENTENCES["read_without"], count=f"{count:,}", column=repr(name))
            for name, count in values.items()
        ]
        if rows:
            yield Note(key, {"rows": f"{rows:,}", "columns": joined(columns)})


def _notes(audit: Audit, names: Mapping[Group, Name], fields: Fields) -> Iterator[Note]:
    verdict, reach, cost = audit.advised, audit.feasibility, audit.cost
    for note in reading_notes(audit.tally.reading, audit.tally.groups):
        if note.key not in LEFT_OUT:
            yield note
    # At the very tolerance no number of people settles whether costs differ by more.
    settles = abs(audit.disparity.difference - reach.tolerance) > SLACK
    is_open = settles or verdict.reason != "unestablished"
    if verdict.reason in HOW and is_open and 0.0 < audit.overall.base_rate < 1.0:
        yield Note(HOW[verdict.reason], fields)
    if audit.intervals is not None and verdict.reason not in ("few", "uncalibrated"):
        yield Note("note_recalibrated", fields)
    if verdict.reason in ("infeasible", "unreachable"):
        possible = audit.offers["withhold"].possible_with
        key = "way_out" if possible else "way_out_scores"
        yield Note(key, {**fields, "exactly": "".join(map(round_up, possible.values()))})
    if verdict.act:
        spans = {} if audit.intervals is None else audit.intervals.alpha
        most = sorted(reach.changed, key=lambda group: -reach.alpha[group])[:FEW]
        for group in (group for group in most if group in spans):
            low, high = spans[group]
            ends = {"low": percent(low), "high": percent(high), "level": fields["level"]}
            share = "advice_share" if high <= 1 else "advice_share_open"
            yield Note(share, {"group": names[group], **ends})
        key = "advice_repair"
        if not is_offered(audit, "coarsen"):
            crossing = audit.offers["coarsen"].but(allow_decision_changes=True)
            key = "advice_withhold" if crossing.rule is None else "advice_repair_decisions"
        yield Note(key, fields)
    if verdict.reason in ("infeasible", "unreachable", "uncertain", "repair"):
        for name in ("reconcile", "odds"):
            if is_offered(audit, name):
                yield Note(f"advice_{name}", fields)
    untold = [group for group in reach.uninformative if _tells_nothing(audit, group)]
    if untold:
        groups = few_names([names[group] for group in untold])
        yield Note("note_uninformative", {"groups": groups})
    persons, intervals = audit.tally.persons, audit.intervals
    rough = () if intervals is None else intervals.approximate
    if shown := [audit.measures[name].title for name in rough if name in audit.shown]:
        yield Note("note_approximate", {"measures": listing(shown)})
    if persons is not None and persons.several:
        yield Note("note_several_groups", {"count": f"{persons.several:,}"})
    if cost.by_base_rate and not isinstance(cost.fp, Mapping) and cost.fp != cost.fn:
        yield Note("note_weights", {"cost": str(cost)})


def _tells_nothing(audit: Audit, group: Group) -> bool:
    """True if a cost is exactly the trivial one, or above it beyond chance."""
    numbers = audit.groups[group]
    if not audit.verdict.enough:
        return False
    if audit.intervals is None or numbers.cost <= numbers.trivial_cost:
        return True
    return numbers.intervals["cost"][0] > numbers.intervals["trivial_cost"][1]


def _calibrated(audit: Audit, names: Mapping[Group, Name], fields: Fields) -> Sentence:
    if audit.verdict.calibrated != "unknown":
        return fill(SENTENCES[f"calibrated_{audit.verdict.calibrated}"], **fields)

    kind, own = "measured", {g: one.gap for g, one in audit.examined.items()}
    if audit.intervals is not None:
        kind, own = "unknown", {g: one.gap_high for g, one in audit.examined.items()}
    worst = max(own, key=lambda group: own[group])
    gap = f"{figures_of(audit).points(own[worst])} points"
    return fill(SENTENCES[f"calibrated_{kind}"], **{**fields, "gap": gap, "group": names[worst]})
