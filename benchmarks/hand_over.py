"""How many people must be handed over, and what is equal among the others on people not seen.

    python -m benchmarks.hand_over [halves]

writes docs/deferral.md.  Each data set is split in halves many times; a rule is fitted on the one
and measured on the other.  Numbers are averages over the coin, so no coin is thrown.
"""

from __future__ import annotations

import sys
import textwrap
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import isocost as ic
from benchmarks.decisions import Floats, People, adult, compas, drawn, markdown, scored

TARGET = Path(__file__).parents[1] / "docs" / "deferral.md"
HALVES = 20
ABOVE = 0.02
"""How much more than the least is handed over: at the least itself scores tell little."""

RATES = ("fpr", "fnr", "ppv", "npv")

TEXT = """# How many are handed over

Made by `python -m benchmarks.hand_over`; do not edit. `ic.hand_over` gives the people it does not
hand over calibrated scores of one distribution in every group, so that every rate is equal at every
threshold. This page says how many people that takes, and what is left of it on people not seen.

{least}

*Least* is the share of each group that must be handed over; a linear program proves that no smaller
one is enough. Accuracy, and the
share of the variance of labels that scores explain (R²), are those of everybody before, and of the
decided if {above:.0%} more than the least are handed over. *Of the selected* is how many of those
at or above 0.5 are handed over then, in the groups where that is least and most. Scores of COMPAS,
income and health are as published; those of the other data come from models that had not seen these
people.

## On people not seen

Means of {halves} random halves; the rule is fitted on the one with {above:.0%} more than the least
share, and measured on the other. How far groups differ before and among the decided, at 0.5; the
share that is then handed over of the new half; and how often nothing could be made. A dash stands
where nobody of the decided is below 0.5, so that there is no NPV: all are selected.

{unseen}

{worse}

Nothing here is about the people handed over. What is equal among the decided holds for everybody
only if whoever decides about the others has the same error rates: `ic.handed_over(rule, tally)`.

## Time

With {levels} levels and {groups} groups the least share takes {seconds:.1f} s of one processor, and
a rule with a larger one {more:.1f} s.
"""


def adult_by_race() -> People:
    """The same people as in :func:`adult`, by race."""
    from reproduction.datasets import adult as read

    people = adult()
    race = read().table["race"].to_numpy()[-len(people.score) :]
    return people._replace(group=race)


def held_out(name: str) -> People:
    """German credit, Law school or Taiwan credit, with scores of models that had not seen people.

    German credit is small, so its model is a logistic regression; the others have trees.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from reproduction import datasets
    from reproduction.models import encode
    from reproduction.study import EXPERIMENTS

    column, value = {"german": ("sex", 0), "law": ("Race_Black", 1), "taiwan": ("SEX", 1)}[name]
    data = getattr(datasets, name)()
    model = (
        make_pipeline(StandardScaler(), LogisticRegression(C=0.1))
        if name == "german"
        else HistGradientBoostingClassifier(random_state=0, learning_rate=0.05, max_leaf_nodes=15)
    )
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    answers = cross_val_predict(model, encode(data), data.label, cv=folds, method="predict_proba")
    group = np.where(data.table[column] == value, *EXPERIMENTS[name].groups)
    return People(answers[:, 1], data.label, group)


DATA: dict[str, Callable[[], People]] = {
    "COMPAS, by race": compas,
    "income, by sex": lambda: scored("income"),
    "health, by age": lambda: scored("health"),
    "Adult, by sex": adult,
    "Adult, by race": adult_by_race,
    "German credit, by sex": lambda: held_out("german"),
    "Law school, by race": lambda: held_out("law"),
    "Taiwan credit, by sex": lambda: held_out("taiwan"),
}


def make(tally: ic.Tally, share: float | None, **options: Any) -> ic.Rule:
    """The rule, without asking whether the data support it."""
    return ic.REPAIRS["hand_over"].rule(tally, share=share, **options)


def share_of(rule: ic.Rule, tally: ic.Tally) -> float:
    return rule.expected(tally).share_handed_over


def spreads(tally: ic.Tally) -> Floats:
    """How far groups differ in each rate."""
    kinds = tally.kinds(0.5)
    return np.array([np.ptp(ic.MEASURES[name].of(kinds)) for name in RATES])


def numbers(tally: ic.Tally) -> str:
    from isocost.repairs.review import explained

    accuracy = float(ic.MEASURES["accuracy"].of(tally.kinds(0.5).pooled())[0])
    return f"{accuracy:.3f}, {explained(tally):.3f}"


def least_shares() -> str:
    """The table of least shares, where fitted."""
    head = [
        "data, people",
        "groups",
        "least",
        "accuracy, R²",
        "decided",
        "of the selected",
    ]
    lines = [head, ["---"] * len(head)]
    for name, read in DATA.items():
        people = read()
        tally = people.tally
        try:
            least = share_of(make(tally, None), tally)
        except ic.InfeasibleError as error:
            lines.append([f"{name}, {len(people.score):,}", "", str(error.feasibility), *[""] * 3])
            continue
        rule = make(tally, least + ABOVE)
        selected = [one.of_selected for one in rule.handed_over(tally).groups.values()]
        lines.append(
            [
                f"{name}, {len(people.score):,}",
                f"{len(tally.groups)}",
                f"{least:.1%}",
                numbers(tally),
                numbers(rule.expected(tally)),
                f"{min(selected):.1%} to {max(selected):.1%}",
            ]
        )
        print(lines[-1], flush=True)
    return markdown(lines)


def on_new_people(halves: int) -> tuple[str, str]:
    """The table of differences on halves that rules were not fitted on, and what got worse."""
    worse = []
    head = ["data", "", *(name.upper() for name in RATES), "handed over", "not made"]
    lines = [head, ["---"] * len(head)]
    for name, read in DATA.items():
        before, after, shares, failed = [], [], [], 0
        for fitted, new in read().halves(halves):
            tally, other = fitted.tally, new.tally
            try:
                least = share_of(make(tally, None), tally)
                decided = make(tally, min(least + ABOVE, 0.99)).expected(other)
            except ic.IsocostError:
                failed += 1
                continue
            before.append(spreads(other))
            after.append(spreads(decided))
            shares.append(decided.share_handed_over)
        missing = f"{failed} of {halves}" if failed else "-"
        for rate, was, now in zip(RATES, np.transpose(before), np.transpose(after), strict=True):
            first, second = np.nanmean(was), np.nanmean(now)
            if round(second, 3) > round(first, 3):
                worse.append(f"{rate.upper()} of {name} ({first:.3f} to {second:.3f})")
        for what, found in (("before", before), ("decided", after)):
            means = [
                np.mean(x[~np.isnan(x)]) if not np.isnan(x).all() else None
                for x in np.transpose(found or np.full((1, len(RATES)), np.nan))
            ]
            first, last = (name, "") if what == "before" else ("", missing)
            share = "" if what == "before" or not shares else f"{np.mean(shares):.1%}"
            lines.append(
                [first, what, *("-" if x is None else f"{x:.3f}" for x in means), share, last]
            )
        print(lines[-2:], flush=True)
    larger = f"These become larger: {'; '.join(worse)}."
    return markdown(lines), f"On new people not every difference becomes smaller. {larger}"


def main() -> None:
    halves = int(sys.argv[1]) if len(sys.argv) > 1 else HALVES
    levels = 128
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ic.IsocostWarning)
        shapes = ((0.8, 1.2), (0.7, 1.5), (1.0, 1.5), (0.9, 1.3))
        tally = drawn(shapes, (50_000,) * len(shapes), 0).tally
        start = time.process_time()
        least = share_of(make(tally, None, levels=levels), tally)
        middle = time.process_time()
        make(tally, least + 0.1, levels=levels)
        larger = time.process_time()
        unseen, worse = on_new_people(halves)
        text = TEXT.format(
            halves=halves,
            above=ABOVE,
            levels=levels,
            groups=len(shapes),
            seconds=middle - start,
            more=larger - middle,
            least=least_shares(),
            unseen=unseen,
            worse="\n".join(textwrap.wrap(worse, 100)),
        )
    TARGET.write_text(text)


if __name__ == "__main__":
    main()
