"""The page of measures and its pictures, from the table of measures."""

from __future__ import annotations

from pathlib import Path

from isocost.cells import KINDS
from isocost.measures.table import FAMILIES, MEASURES, Measure

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "measures.md"
PICTURES = ROOT / "docs" / "measures"

START, END = "<!-- measures -->", "<!-- end of measures -->"

HEADINGS = {
    "decisions": "Decisions at the threshold",
    "scores": "Scores",
    "calibration": "Calibration",
}
"""A heading for each family."""

NOTES = {
    "base_rate": (
        "Everybody: no other number can be read without it.",
        "When the label records arrests, not offences, or repayment only of those who got a loan.",
    ),
    "mean_score": (
        "Model owners, as a first check of calibration.",
        "When it equals the base rate, and high and low scores are off in opposite directions.",
    ),
    "generalized_fpr": (
        "Pleiss et al. 2017: what scores do to people who turn out negative, whatever is decided.",
        "When decisions are made at a threshold: then FPR is what people feel.",
    ),
    "generalized_fnr": (
        "Pleiss et al. 2017: what scores withhold from people who turn out positive.",
        "When decisions are made at a threshold: then FNR is what people feel.",
    ),
    "fpr": (
        "ProPublica's side of the COMPAS debate; equalized odds.",
        "When base rates differ, the FPRs of calibrated scores usually differ too.",
    ),
    "fnr": (
        "Screening and hiring; equal opportunity.",
        "It can be bought by selecting nearly everybody: read it beside the selection rate.",
    ),
    "tpr": (
        "Clinicians (sensitivity), fairlearn, equal opportunity.",
        "It says nothing about how many are selected wrongly.",
    ),
    "tnr": (
        "Clinicians (specificity).",
        "When positives are rare: then nearly everybody is a negative, and it is near 1.",
    ),
    "ppv": (
        "Northpointe's side of the COMPAS debate; predictive parity.",
        "When base rates differ: a useful score has a higher PPV where positives are frequent.",
    ),
    "npv": (
        "Clinicians who rule out.",
        "When positives are rare: then it is near 1 whatever the score does.",
    ),
    "false_discovery_rate": (
        "Aequitas; reviewers of those who were selected.",
        "As PPV, whose complement it is.",
    ),
    "false_omission_rate": (
        "Aequitas; people responsible for those passed over.",
        "As NPV, whose complement it is.",
    ),
    "selection_rate": (
        "Statistical parity; US employment law.",
        "When groups differ in what the decision is about: equal rates then need different "
        "treatment of equal risks.",
    ),
    "impact_ratio": (
        "New York City's Local Law 144; the EEOC's four-fifths rule of thumb.",
        "When rates are small, or the reference group is: the ratio then swings by chance, so"
        " read its interval.",
    ),
    "accuracy": (
        "Model owners.",
        "When one label is rare: predicting it never is very accurate.",
    ),
    "balanced_accuracy": (
        "Benchmarks with rare labels.",
        "When errors of the two kinds do not cost the same.",
    ),
    "f1": (
        "Benchmarks of information retrieval.",
        "When compared between groups: it rises with the base rate.",
    ),
    "mcc": (
        "Benchmarks with rare labels.",
        "When compared between groups with different base rates.",
    ),
    "net_benefit": (
        "Clinicians who decide whether a model is worth using (decision curves).",
        "When compared between groups: it rises with the base rate, so compare it with "
        "treating all or none of the same group.",
    ),
    "adjusted_fpr": (
        "Hegarty et al.: whether a difference in FPR is one of risks or of treatment.",
        "When a group has few people where the others are, or the score itself is off for one"
        " group.",
    ),
    "adjusted_fnr": (
        "As adjusted FPR.",
        "As adjusted FPR.",
    ),
    "adjusted_ppv": (
        "As adjusted FPR.",
        "As adjusted FPR.",
    ),
    "auc": (
        "Clinicians and lenders (as Gini, 2 AUC - 1).",
        "When compared between groups: it depends on how spread out risks are; and it says "
        "nothing about calibration.",
    ),
    "cross_auc": (
        "Kallus and Zhou 2019: how one ranking of everybody treats a group.",
        "When base rates differ: then no ranking makes both directions equal.",
    ),
    "cross_auc_negatives": (
        "Kallus and Zhou 2019, the other direction.",
        "As the one for positives.",
    ),
    "scoring_rate": (
        "New York City's Local Law 144, for scores without a threshold.",
        "When many people share the median score: who is above it is then arbitrary.",
    ),
    "standardized_difference": (
        "US fair-lending reviews.",
        "When scores are skewed: a mean then says little about who gets a loan.",
    ),
    "brier": (
        "Model owners; it falls with calibration and with sharpness.",
        "When compared between groups: it depends on the base rate.",
    ),
    "brier_skill": (
        "Forecasters; TRIPOD reports.",
        "When the base rate is near 0 or 1: then it is noisy.",
    ),
    "observed_to_expected": (
        "TRIPOD reports; actuaries.",
        "When it is 1, and high and low scores are off in opposite directions.",
    ),
    "calibration_slope": (
        "TRIPOD reports; clinicians who move a model to another hospital.",
        "When scores are near 0 or 1, whose logits weigh most and which bins know least.",
    ),
    "calibration_intercept": (
        "TRIPOD reports (calibration in the large).",
        "When the slope is far from 1: then it is a mixture of both.",
    ),
    "recalibration_intercept": (
        "Probcal, calzone (Cox 1958).",
        "When read without the slope that belongs to it.",
    ),
    "calibration_gap": (
        "Everybody who wants a score to mean what it says.",
        "When groups are small: chance alone makes it larger, so read the interval or the "
        "debiased gap.",
    ),
    "calibration_gap_equal_mass": (
        "As the gap.",
        "When most people have similar scores: then bins are narrow there and wide elsewhere.",
    ),
    "calibration_gap_debiased": (
        "As the gap, in small groups.",
        "When a group has few people per bin: the correction is then rough.",
    ),
    "calibration_gap_smooth": (
        "Blasiok and Nakkiran 2023.",
        "When compared with numbers of other tools, which bin.",
    ),
    "calibration_gap_bound": (
        "Auditors who need a bound that no choice of bins can move.",
        "When taken for the gap itself: it is only the part that does not cancel.",
    ),
}
"""Who asks for each measure, and when it misleads."""

SIDE, GAP = 34, 2
"""Of a square of the picture, and between two of them."""

FULL, PARTLY, COUNTED, OUTSIDE = "#0f5c8c", "#6fa8cc", "#d6e4ee", "#ffffff"
"""People who add 1, add something that depends on the score, add nothing, are not looked at."""


def colour(measure: Measure, kind: str) -> str:
    if kind not in measure.over:
        return OUTSIDE
    a, b, c = measure.adds.get(kind, (0.0, 0.0, 0.0))
    if b or c:
        return PARTLY
    return FULL if a else COUNTED


def picture(measure: Measure) -> str:
    """Four squares: negatives above positives, passed over left of selected."""
    squares = []
    for index, kind in enumerate(KINDS):
        row, column = divmod(index, 2)
        x, y = (1 + i * (SIDE + GAP) for i in (column, row))
        squares.append(
            f'<rect x="{x}" y="{y}" width="{SIDE}" height="{SIDE}" '
            f'fill="{colour(measure, kind)}" stroke="#9aa7b1"/>'
            f'<text x="{x + SIDE / 2:g}" y="{y + SIDE / 2 + 4:g}" text-anchor="middle" '
            'font-family="sans-serif" font-size="11" '
            f'fill="{"#ffffff" if colour(measure, kind) == FULL else "#33424d"}">{kind}</text>'
        )
    size = 2 * SIDE + GAP + 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" '
        f'role="img" aria-label="{measure.title}: {measure.formula}">{"".join(squares)}</svg>\n'
    )


def section(measure: Measure) -> str:
    """What the page says of a measure."""
    shown = f"\n![{measure.formula}](measures/{measure.name}.svg)\n" if measure.is_plain else ""
    better = f" The {measure.better}, the better." if measure.better else ""
    asked_by, caution = NOTES[measure.name]
    return f"""### {measure.title}

`{measure.name}`. {measure.sentence}{better}
{shown}
- Formula: {measure.formula}.
- Who asks: {asked_by}
- Caution: {caution}
"""


def files() -> dict[Path, str]:
    """Everything that is made from the table: the page and a picture for each plain measure."""
    before, rest = PAGE.read_text().split(START)
    after = rest.split(END)[1]
    blocks = []
    for family in FAMILIES:
        blocks.append(f"## {HEADINGS[family]}\n")
        blocks += [section(row) for row in MEASURES.values() if row.family == family]
    page = f"{before}{START}\n\n{chr(10).join(blocks)}\n{END}{after}"
    pictures = {
        PICTURES / f"{name}.svg": picture(row) for name, row in MEASURES.items() if row.is_plain
    }
    return {PAGE: page, **pictures}
