"""The reproduction as a Markdown page."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

from reproduction.beyond import ENOUGH, HALVES, CostDifferences, ManyGroups, RepairSummary
from reproduction.claims import Finding
from reproduction.experiments import AGE_CUT, RunOptions
from reproduction.rerun import Reproduction, StudyResult
from reproduction.section5 import CLAIMS

__all__ = ["by_claim", "page", "relative", "verdicts"]

INTRODUCTION = """\
# The paper's experiments, rerun

Section 5 of *On Fairness and Calibration* (Pleiss et al., NeurIPS 2017) and the supplement's
training procedures. This page was written by

    {command}

Each sentence of Section 5, and of the supplement's procedures, that can be true or false is a
claim with a number that decides it: of the average over models, as in the paper's figure.
Brackets are 95 % bootstrap intervals: people are drawn again and rules fitted again; models are
not trained again. Three bars were set before looking: "approximately" is 0.03 on the scale of a
rate, "little" is one person in ten, "large" is a third. Claims that were added after the first
run use the same bars. A claim whose interval reaches across its bar is marked "not beyond chance".
Where rules are judged on the people they were fitted on (published scores and counts), costs and
rates that a rule makes equal are equal by construction.
"""

READING = """\
## How to read the figures and tables

The plane has a group's generalized false-positive rate to the right and its generalized
false-negative rate upwards, averaged over the models. A **circle** is a group before, a **diamond**
after a repair. The **line** in a group's colour holds all calibrated scores that it can have; it
ends in a **hollow dot**: the base rate for everybody. On the **dashed grey curve** calibrated
scores have the highest cost of a group. A group that is not calibrated may cost the same and not be
on it, and on people that a rule has not seen repaired groups only come near it. A **cross** beyond
the end of a line is where a group would have to be, and cannot. A filled **ellipse** is the 95 %
interval of a group, an outline that of a repaired one, with rules fitted again.

In the tables of repairs, *costs differ by* is the largest difference between groups on the people
that rules are judged on. *FPR or FNR at 0.5* are the rates of decisions at a threshold of 0.5, not
the generalized ones that the claims are about. *Calibration gap* is that of ten bins, of the group
where it is largest. *A coin is tossed for* counts those whose score depends on a coin, *people
changed* those whose score becomes another on average over the coin.
"""

COMMON = """\
## What differs from the paper, and why

- **Which scores.** "retrained" are models that this command trained; rules are fitted on one
  tenth of the people and judged, unchanged, on another tenth that no step has seen. "published"
  are the authors' own scores; which of those people belong to which part is not known, so rules
  are fitted and judged on the same people, as in closed form. "counts" are COMPAS's deciles,
  which need no training.
- **Rates for the evaluation part.** The authors' code finds the shares to withhold on one part and
  finds them again with the labels of the part it is judged on, so its test results are too
  good. Here rules go to the evaluation part unchanged: the tables "where a rule was fitted and on
  people it has not seen" show the difference.
- **Equalized odds, derived.** The supplement's program prints each group's FP rate equal to its
  own FN rate. That is a slip: the rates are equal *across* groups, as in Hardt et al. and in the
  figure.
"""

TRAINED = """\
- **Grids.** The supplement names models and says that three folds tuned them, but prints no grid.
  Ours are in `reproduction/models.py`; forests and networks are tuned by logarithmic loss, support
  vector machines, which become probabilities only afterwards, by the area under the curve. As it
  says, tuning uses the part that is later used for post-processing.
"""

DIFFERENCES = {
    "income": """\
- **Income.** The published file has its labels the other way round from the paper; it is turned
  here. "Only in health prediction the additional cost is little" is measured as the accuracy
  that the changed group loses, in both experiments.
""",
    "health": f"""\
- **Health.** The paper counts 906 adults, the four files hold 920. Its 14 features are 13 and the
  label. It gives no age at which middle age ends: {AGE_CUT} comes nearest to the shares of its
  published scores; other ages are in the table above if the models could be trained. A tenth is
  92 people, so its intervals are wide.
""",
    "recidivism": """\
- **Equalized odds, trained.** Zafar et al.'s filter leaves 5,278 people; models are trained on
  half and judged on the other half. Both covariances are bounded. The constraint is a proxy, so
  the rates come nearer to each other without meeting.
- **Names.** The text calls African Americans G_1 and, once, their classifier h_2. Here they are
  group 1 throughout.
- **Mixtures of the two rates.** "Incompatible with any error-rate constraints" is true of the FP
  rate and of the FN rate, each alone. Between them lie weighted costs that calibrated scores do
  equalize: *recidivism-any-constraint* counts those that they do not.
- **Better scores.** Fewer errors in the group with more false positives bring the FP rates
  nearer to each other. But that group has fewer false negatives already, so the FN rates come
  further apart: the paper's last sentence is true of the rate that is constrained.
""",
}

GROUPINGS = {
    "race": "A decile's score is its share of recidivism among all races here, so the numbers "
    "of two of them differ a little from those above.",
    "race and gender": "People, costs and shares are those of the part that rules are fitted on.",
}

NEAREST = "Equal cost is not feasible: withhold and coarsen go as near as they can.\n"


def page(done: Sequence[Reproduction], options: RunOptions, command: str, figures: str) -> str:
    """The whole page; ``figures`` is the folder of the pictures, as seen from the page."""
    sections = [INTRODUCTION.format(command=command), READING, _geometry(figures)]
    sections += [_experiment(one, figures) for one in done]
    sections += [_differences([one.experiment.name for one in done]), _made(options)]
    return "\n".join(sections)


def _differences(names: Sequence[str]) -> str:
    """What is to be said about these experiments, and no other."""
    trained = TRAINED if {"income", "health"} & set(names) else ""
    return COMMON + trained + "".join(DIFFERENCES[name] for name in names)


def verdicts(findings: Iterable[Finding]) -> tuple[list[str], list[list[str]]]:
    """The table of claims: what was claimed, what was measured, what became of it."""
    header = ["claim", "scores", "measured", "needed", "verdict"]
    rows = [[f.claim.sentence, f.source, _shown(f), f.claim.needs(), f.verdict] for f in findings]
    return header, rows


def by_claim(one: Reproduction) -> list[Finding]:
    """All findings of an experiment, those of one claim together."""
    order = {claim.name: i for i, claim in enumerate(CLAIMS[one.experiment.name])}
    every = [finding for result in one.results for finding in result.findings]
    return sorted(every, key=lambda finding: order[finding.claim.name])


def _shown(finding: Finding) -> str:
    spread = "" if finding.spread is None else f" (sd {finding.spread:.4f})"
    return f"{finding.shown}{spread}"


def _geometry(figures: str) -> str:
    return (
        f"## The geometry (Figures 1 and 2)\n\n![Figure 1]({figures}/figure-1.png)\n\n"
        "Figure 1: calibrated scores of a group lie on a line from perfect ones to the base rate "
        "for everybody; a cost is equal on a level curve.\n\n"
        f"![Figure 2]({figures}/figure-2.png)\n\n"
        "Figure 2: a group is brought to the other's cost by mixing its scores with the base rate; "
        "where its line ends before, it cannot be.\n"
    )


def _experiment(one: Reproduction, figures: str) -> str:
    experiment = one.experiment
    first, second = experiment.groups
    lines = [
        f"## {experiment.title} (Figure {experiment.figure})\n",
        f"{experiment.data}. Positive: {experiment.positive}. Cost: {experiment.cost}. "
        f"G_1: {first}; G_2: {second}.\n",
    ]
    for result in one.results:
        name = f"figure-{experiment.figure}-{experiment.name}-{result.study.source}.png"
        lines.append(f"![{experiment.title}, {result.study.source} scores]({figures}/{name})\n")
    ordered = by_claim(one)
    lines += ["### Claims\n", _table(*verdicts(ordered))]
    lines += ["What is measured:\n", *_measures(ordered), ""]
    lines += [_beyond(result) for result in one.results]
    lines += [_many(title, groups, one) for title, groups in one.many_groups.items()]
    if one.age_cuts:
        lines += ["### Where seniors begin\n", _ages(one)]
    lines += [f"Not done: {_flat(reason)}\n" for reason in one.missing]
    return "\n".join(lines)


def _measures(findings: Sequence[Finding]) -> list[str]:
    return list(dict.fromkeys(f"- *{f.claim.name}*: {f.claim.measured}" for f in findings))


def _beyond(result: StudyResult) -> str:
    study = result.study
    return "\n".join(
        [
            f"### Repairs side by side, {study.source} scores, {_judged(study.held_out)}\n",
            _table(*_repairs(result.compared)),
            *([] if study.values["feasible"] == 1 else [NEAREST]),
            _unseen(result.held_out, study.held_out),
        ]
    )


def _judged(held_out: bool) -> str:
    return "people held out" if held_out else "the same people"


def _repairs(rows: Sequence[RepairSummary]) -> tuple[list[str], list[list[str]]]:
    header = ["rule", "costs differ by", "FPR or FNR at 0.5 differ by", "calibration gap"]
    header += ["accuracy", "people changed", "a coin is tossed for", "decisions changed"]
    return header, [
        [
            row.rule,
            f"{row.cost_difference:.4f}",
            f"{row.hard_difference:.4f}",
            f"{row.calibration_gap:.4f}",
            f"{row.accuracy:.4f}",
            *(f"{share:.1%}" for share in (row.changed, row.by_coin, row.decisions)),
        ]
        for row in rows
    ]


def _unseen(rows: Sequence[CostDifferences], held_out: bool) -> str:
    who = "the evaluation part" if held_out else f"the other half, mean of {HALVES} divisions"
    header = ["rule", "fitted on", "unseen"]
    table = [[row.rule, f"{row.fitted:.4f}", f"{row.unseen:.4f}"] for row in rows]
    intro = f"Costs differ, where a rule was fitted and on people it has not seen ({who}):\n"
    return f"{intro}\n{_table(header, table)}"


def _many(title: str, many: ManyGroups, one: Reproduction) -> str:
    header = ["group", "people", "cost", "highest calibrated cost", "share to withhold"]
    rows = [
        [name, f"{size:,}", f"{cost:.4f}", f"{trivial:.4f}", _share(alpha)]
        for name, (size, cost, trivial, alpha) in many.groups.items()
    ]
    left = ", ".join(f"{name} ({count})" for name, count in many.left_out.items())
    return "\n".join(
        [
            f"### More than two groups: {title}, {_judged(many.judged_elsewhere)}\n",
            f"{GROUPINGS[title]}\n",
            *(["Of the first division.\n"] if len(one.results[0].study.splits) > 1 else []),
            f"Equal cost is {'feasible' if many.feasible == 1 else 'not feasible'}"
            + (f" (for {many.feasible:.0%} of the models)" if 0 < many.feasible < 1 else "")
            + "."
            + (f" Left out, with fewer than {ENOUGH} of a label in a part: {left}." if left else "")
            + "\n",
            _table(header, rows),
            _table(*_repairs(many.rows)),
            _unseen(many.unseen, many.judged_elsewhere),
        ]
    )


def _ages(one: Reproduction) -> str:
    first, second = one.experiment.groups
    header = ["age", "share of seniors", f"cost of {first}", f"cost of {second}"]
    header += [f"share of {first} to withhold", f"share of {second} to withhold"]
    rows = [
        [
            f"{cut.age}",
            f"{cut.seniors:.0%}",
            *(f"{cost:.4f}" for cost in cut.costs),
            *map(_share, cut.alpha),
        ]
        for cut in one.age_cuts
    ]
    note = "Both parts of the retrained scores together; shares are means over the models.\n"
    return _table(header, rows) + "\n" + note


def _share(alpha: float) -> str:
    if alpha > 1:
        return f"not feasible ({alpha:.2f})" if math.isfinite(alpha) else "not feasible"
    return f"{alpha:.4f}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _flat(text: str) -> str:
    return " ".join(text.split())


def _made(options: RunOptions) -> str:
    how = "full grids, all rows" if options.full else "small grids, fewer rows (`--quick`)"
    return (
        "## How it was made\n\n"
        f"{how}; {options.repeats} division(s) of the people, seed {options.seed}. "
        "All numbers are in `results.json` beside the figures.\n"
    )


def relative(figures: Path, page_path: Path) -> str:
    """The folder of the figures as seen from the page, as a link may hold it.

    Examples
    --------
    >>> relative(Path("my results"), Path("docs/page.md"))
    '../my%20results'
    """
    return quote(Path(os.path.relpath(figures, page_path.parent)).as_posix())
