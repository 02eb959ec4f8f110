"""The claims of Section 5 and of the supplement's procedures, and the same on other data.

Each claim is decided by one number, which the functions below derive from a study's values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from reproduction.claims import APPROXIMATELY, LARGE, LITTLE, OFTEN, Measure, PaperClaim
from reproduction.study import RATES, Values

GROUPS = (1, 2)

IMPROVEMENT = 0.1
"""The share by which better scores are assumed to reduce the errors of a group."""


def fact(name: str) -> Measure:
    """A value as it is."""
    return lambda n: n[name]


def apart(stage: str, *names: str) -> Measure:
    """The difference between the groups in a quantity; the largest if there are several.

    Examples
    --------
    >>> apart("odds", "cost")({"odds cost 1": 0.25, "odds cost 2": 0.75})
    0.5
    """
    return lambda n: max(abs(n[f"{stage} {name} 1"] - n[f"{stage} {name} 2"]) for name in names)


def further_apart(stage: str, name: str) -> Measure:
    """The rise of that difference from the original scores to a stage."""
    return lambda n: apart(stage, name)(n) - apart("original", name)(n)


def off_line(stage: str, groups: Iterable[int] = GROUPS) -> Measure:
    """The largest ``|mean score - base rate|``: 0 on the line of calibrated scores."""
    return lambda n: max(n[f"{stage} off_line {group}"] for group in groups)


def moved_off_line(stage: str, before: str = "original", groups: Iterable[int] = GROUPS) -> Measure:
    """The rise of that distance."""
    return lambda n: off_line(stage, groups)(n) - off_line(before, groups)(n)


def rises(n: Values, stage: str, group: int) -> list[float]:
    """The rise of each rate of a group."""
    return [n[f"{stage} {rate} {group}"] - n[f"original {rate} {group}"] for rate in RATES]


def normalized(stage: str, weights: float) -> Measure:
    """The difference in a weighted cost, divided by fp + fn as the authors' code does."""
    return lambda n: apart(stage, "cost")(n) / weights


def accuracy_lost(n: Values) -> float:
    """The accuracy that the changed group loses; negative if it gains."""
    return -n["changed accuracy"]


def degraded(n: Values) -> float:
    """The smaller of the rises of the changed group's two rates."""
    return min(n[f"changed {rate}"] for rate in RATES)


def after_improving(name: str) -> Measure:
    """The change of the difference if the group with the higher cost makes a tenth fewer errors.

    Scores a tenth of the way nearer to the labels are as calibrated as before, and both
    generalized rates of the group are a tenth lower.

    Examples
    --------
    >>> n = {"original cost 1": 0.5, "original cost 2": 0.25}
    >>> n |= {"original generalized_fnr 1": 0.5, "original generalized_fnr 2": 0.75}
    >>> round(after_improving("generalized_fnr")(n), 4)
    0.05
    """

    def change(n: Values) -> float:
        costly = 1 if n["original cost 1"] >= n["original cost 2"] else 2
        one, other = n[f"original {name} {costly}"], n[f"original {name} {3 - costly}"]
        return abs((1 - IMPROVEMENT) * one - other) - abs(one - other)

    return change


def sag(n: Values) -> float:
    """How far the level curve of cost 1:3 lies from its chord between the two groups' lines."""
    mu = np.array([n["original base_rate 1"], n["original base_rate 2"]])
    target = max(n["original cost 1"], n["original cost 2"])
    along = np.linspace(mu.min(), mu.max(), 101)
    # On the line of base rate mu a point is t (mu, 1 - mu), and costs 4 t mu (1 - mu).
    reach = target / (4 * along * (1 - along))
    points = reach[:, None] * np.column_stack([along, 1 - along])
    chord = points[-1] - points[0]
    offset = points - points[0]
    if not chord.any():
        return 0.0  # both groups are on one line
    return float(np.max(np.abs(offset @ [-chord[1], chord[0]]) / np.hypot(*chord)))


def _overstated(n: Values, group: int) -> float:
    """How much higher EO-Derived's scores of a group are than its risk, on average."""
    return n[f"odds mean_score {group}"] - n[f"odds base_rate {group}"]


FPR, FNR = RATES
ON_THE_LINES = "largest |mean score - base rate| of a group"
OFF_THE_LINES = "rise of the largest |mean score - base rate|"
BOTH = "larger of the differences in generalized FPR and FNR"


GROUP, EVERYBODY = "share of the changed group", "share of everybody"
"""Two readings of "little"."""

HEALTH_WEIGHTS = 1 + 3


def _count(name: str, sentence: str, what: str, number: int, note: str = "") -> PaperClaim:
    """A number that the paper states about its data."""
    measured = f"{what} in the published files"
    return PaperClaim(name, sentence, fact(what), measured, exactly=number, unit=what, note=note)


def _readings(claim: PaperClaim, everybody: Measure) -> tuple[PaperClaim, PaperClaim]:
    """A claim about the changed group, and the same about everybody."""
    of_all = replace(
        claim,
        name=f"{claim.name}-everybody",
        measure=everybody,
        measured=f"{claim.measured.partition(',')[0]}, of everybody",
        unit=EVERYBODY,
    )
    return replace(claim, unit=GROUP), of_all


CALIBRATED = PaperClaim(
    "calibrated",
    "The original classifiers lie approximately on the calibrated lines.",
    off_line("original"),
    ON_THE_LINES,
    below=APPROXIMATELY,
)
ODDS_MATCH = PaperClaim(
    "odds-match",
    "EO-Derived (approximately) matches both error rates.",
    apart("odds", *RATES),
    BOTH,
    below=APPROXIMATELY,
    constructed="fitted",
)
ODDS_OFF_LINE = PaperClaim(
    "odds-off-line",
    "EO-Derived sacrifices calibration.",
    moved_off_line("odds"),
    OFF_THE_LINES,
    above=APPROXIMATELY,
)
OFTEN_INFEASIBLE = PaperClaim(
    "often-infeasible",
    "Equal cost with calibration is often infeasible.",
    lambda n: 1.0 - n["feasible"],
    "share of models and splits in which it is infeasible",
    above=0.5,
    unit=OFTEN,
)
EQUAL_COST = PaperClaim(
    "equal-cost",
    "Withholding makes the costs (approximately) equal.",
    apart("withhold", "cost"),
    "difference in cost",
    below=APPROXIMATELY,
    constructed="fitted",
)
DEGRADED = PaperClaim(
    "degraded",
    "Performance is degraded.",
    degraded,
    "smaller of the rises of the two rates of the group that is changed",
    above=0.0,
)
OTHER_DISPARITY = PaperClaim(
    "other-disparity",
    "Another disparity is increased.",
    lambda n: max(further_apart("withhold", rate)(n) for rate in RATES),
    "rise of the difference in generalized FPR or FNR, whichever is larger",
    above=0.0,
)
ELSEWHERE = (
    CALIBRATED, ODDS_MATCH, ODDS_OFF_LINE, OFTEN_INFEASIBLE, EQUAL_COST, DEGRADED, OTHER_DISPARITY,
)  # fmt: skip
"""The sentences of Section 5 that are not about one data set, for data the paper did not have."""


def _about(experiment: str, claim: PaperClaim, sentence: str = "", **more: Any) -> PaperClaim:
    """A general claim about one experiment, in the paper's words about it."""
    name = f"{experiment}-{claim.name}"
    return replace(claim, name=name, sentence=sentence or claim.sentence, **more)


INCOME = (
    _count("income-features", "Adult contains 14 features.", "features", 14),
    PaperClaim(
        "income-naturally-calibrated",
        "The random forest and the multi-layer perceptron are naturally well calibrated.",
        lambda n: max(n[f"off_line of {m}"] for m in ("random forest", "multi-layer perceptron")),
        ON_THE_LINES + ", in the model where it is larger",
        below=APPROXIMATELY,
    ),
    _about("income", CALIBRATED),
    _about("income", ODDS_MATCH),
    _about(
        "income",
        ODDS_OFF_LINE,
        "EO-Derived moves h_1 (women) off the calibrated line.",
        measure=moved_off_line("odds", groups=(1,)),
        measured="rise of |mean score - base rate| of women",
    ),
    PaperClaim(
        "income-feasible",
        "Equal generalized FN rates with calibration are feasible.",
        fact("hardest alpha"),
        "share to withhold, alpha, of the model that needs most (above 1: infeasible)",
        below=1.0,
        unit="share of the group",
    ),
    replace(
        EQUAL_COST,
        name="income-same-level",
        sentence="Then both lie on the same level curve of the cost.",
    ),
    PaperClaim(
        "income-still-calibrated",
        "And both remain on their calibrated lines.",
        off_line("withhold"),
        ON_THE_LINES,
        below=APPROXIMATELY,
    ),
    PaperClaim(
        "income-someone-pays",
        "Either notion costs at least one of the groups something.",
        lambda n: min(max(r for g in GROUPS for r in rises(n, s, g)) for s in ("odds", "withhold")),
        "largest rise of a rate, in the method where it is smaller",
        above=0.0,
    ),
    PaperClaim(
        "income-fp-widens",
        "Matching FN with calibration increases the difference in FP rates: one disparity is "
        "traded for another.",
        further_apart("withhold", FPR),
        "rise of the difference in generalized FPR",
        above=0.0,
    ),
    PaperClaim(
        "income-more-errors",
        "It increases the overall error rates.",
        lambda n: min(
            n[f"withhold {r} of everybody"] - n[f"original {r} of everybody"] for r in RATES
        ),
        "smaller of the rises of the two rates of everybody",
        above=0.0,
    ),
    *_readings(
        PaperClaim(
            "income-not-little-cost",
            "The additional cost is not little: only in health prediction it is.",
            accuracy_lost,
            "accuracy lost, of the group that is changed",
            above=APPROXIMATELY,
        ),
        fact("accuracy lost by everybody"),
    ),
)

HEALTH = (
    _count("health-people", "Heart has 906 adults.", "people", 906),
    _count("health-places", "They are from 4 geographical locations.", "places", 4),
    _count(
        "health-features",
        "Heart has 14 features.",
        "features and the label",
        14,
        "if the label is counted, which it is not among Adult's 14",
    ),
    _about("health", CALIBRATED, "The original classifiers are calibrated."),
    PaperClaim(
        "health-curved",
        "The level curves of the weighted cost are curved.",
        sag,
        "largest distance of the curve from its chord",
        above=0.0,
        unit="distance in the plane",
        constructed="always",
    ),
    PaperClaim(
        "health-same-level",
        "The original classifiers lie approximately on the same level curve.",
        normalized("original", HEALTH_WEIGHTS),
        "difference in cost / (1 + 3), the normalization of the authors' code",
        below=APPROXIMATELY,
    ),
    *_readings(
        PaperClaim(
            "health-little-change",
            "Little change is required to equalize the costs.",
            fact("withheld"),
            "share to withhold, of the group that is changed",
            below=LITTLE,
        ),
        fact("withheld of everybody"),
    ),
    _about(
        "health",
        EQUAL_COST,
        "Then the costs are equal.",
        measure=normalized("withhold", HEALTH_WEIGHTS),
        measured="difference in cost / (1 + 3)",
    ),
    PaperClaim(
        "health-nearer",
        "Equalizing the costs brings them nearer to each other, for the people it is used on.",
        lambda n: (
            normalized("original", HEALTH_WEIGHTS)(n) - normalized("withhold", HEALTH_WEIGHTS)(n)
        ),
        "fall of the difference in cost / (1 + 3)",
        above=0.0,
        constructed="fitted",
    ),
    PaperClaim(
        "health-still-calibrated",
        "Calibration is maintained.",
        moved_off_line("withhold"),
        OFF_THE_LINES,
        below=APPROXIMATELY,
        constructed="fitted",
    ),
    *_readings(
        PaperClaim(
            "health-little-cost",
            "The calibrated framework incurs little additional cost.",
            accuracy_lost,
            "accuracy lost, of the group that is changed",
            below=APPROXIMATELY,
        ),
        fact("accuracy lost by everybody"),
    ),
    _about("health", DEGRADED, "As in many cases, performance is degraded.", constructed="fitted"),
    _about("health", OTHER_DISPARITY, "As in many cases, another disparity is increased."),
    PaperClaim(
        "health-different-errors",
        "Equal cost matches neither error type: the groups have different kinds of errors.",
        lambda n: min(apart("withhold", rate)(n) for rate in RATES),
        "smaller of the differences in generalized FPR and FNR",
        above=APPROXIMATELY,
    ),
    _about("health", ODDS_MATCH, "EO-Derived can match both rates instead."),
    _about("health", ODDS_OFF_LINE),
)

RECIDIVISM = (
    _about("recidivism", CALIBRATED, "The original classifiers are calibrated."),
    PaperClaim(
        "recidivism-disproportionate",
        "African Americans get disproportionately many FP predictions.",
        lambda n: n[f"original {FPR} 1"] - n[f"original {FPR} 2"],
        "generalized FPR of h_1 less that of h_2",
        above=APPROXIMATELY,
    ),
    PaperClaim(
        "recidivism-large-rates",
        "The original classifiers have large generalized FP and FN rates.",
        lambda n: min(n[f"original {rate} {group}"] for rate in RATES for group in GROUPS),
        "smallest of the four rates",
        above=LARGE,
    ),
    _about("recidivism", ODDS_MATCH, "EO-Derived matches the error rates."),
    _about("recidivism", ODDS_OFF_LINE),
    PaperClaim(
        "recidivism-odds-meaning",
        "Then the same score means another risk in each group.",
        lambda n: abs(_overstated(n, 1) - _overstated(n, 2)),
        "difference between the groups in mean score less base rate, EO-Derived",
        above=APPROXIMATELY,
    ),
    PaperClaim(
        "recidivism-trained-match",
        "EO-Trained matches the error rates.",
        apart("trained", *RATES),
        BOTH + ", tightest bound",
        below=APPROXIMATELY,
    ),
    PaperClaim(
        "recidivism-trained-nearer",
        "EO-Trained brings the error rates nearer to each other.",
        lambda n: apart("trained", *RATES)(n) - apart("untrained", *RATES)(n),
        "change of that difference from the loosest to the tightest bound",
        below=0.0,
    ),
    PaperClaim(
        "recidivism-trained-off-line",
        "EO-Trained sacrifices calibration.",
        moved_off_line("trained", "untrained"),
        OFF_THE_LINES,
        above=APPROXIMATELY,
    ),
    PaperClaim(
        "recidivism-infeasible",
        "The calibrated relaxation is infeasible: matching the FP rate of h_1 needs a classifier "
        "worse than the trivial one of G_2.",
        fact("alpha"),
        "share of Caucasian to withhold, alpha; above 1 exactly when the generalized FPR of h_1 "
        "is above the trivial one of G_2",
        above=1.0,
        unit="share of the group",
    ),
    PaperClaim(
        "recidivism-any-constraint",
        "Calibration is completely incompatible with any error-rate constraint.",
        fact("alpha of both rates"),
        "share to withhold for equal FPR + FNR (plain:1,1); at most 1: calibrated scores can do it",
        above=1.0,
        unit="share of the group",
    ),
    PaperClaim(
        "recidivism-either-rate",
        "With calibration there is inherent disparity in FP and in FN rates.",
        lambda n: min(n["left fpr"], n["left fnr"]),
        "difference that calibrated scores must leave, in FPR or FNR, whichever is smaller",
        above=0.0,
    ),
    PaperClaim(
        "recidivism-improved",
        "Fewer errors in the group with the higher cost lead to less disparity.",
        after_improving("cost"),
        "change of the difference in generalized FPR with a tenth fewer errors in G_1",
        below=0.0,
        constructed="always",
    ),
    PaperClaim(
        "recidivism-improved-both",
        "Fewer errors there lead to less disparity in both error rates.",
        lambda n: max(after_improving(rate)(n) for rate in RATES),
        "the same for FPR or FNR, whichever is larger",
        below=0.0,
    ),
)


CLAIMS = {
    "income": INCOME,
    "health": HEALTH,
    "recidivism": RECIDIVISM,
    **{
        name: tuple(_about(name, claim) for claim in ELSEWHERE)
        for name in ("german", "law", "taiwan")
    },
}
