"""What every display does: it is made in the same ways, drawn, and leaves matplotlib as it was."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import isocost as ic
from isocost.examples import compas

matplotlib = pytest.importorskip("matplotlib", reason='needs pip install "isocost[plot]"')
from matplotlib.figure import Figure  # noqa: E402

from isocost import plots  # noqa: E402
from isocost.plots.display import looks  # noqa: E402
from tests.test_plane import no_global_state  # noqa: E402, F401

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(600, 2))
Y = np.where(RANDOM.random(600) < 1 / (1 + np.exp(-X.sum(axis=1))), "yes", "no")
GROUP = np.where(X[:, 1] > 0, "up", "down")
MODEL = LogisticRegression().fit(X, Y)
SCORE = MODEL.predict_proba(X)[:, 1]
ROWS = {"score": SCORE, "label": (Y == "yes").astype(int), "group": GROUP}
TALLY = ic.tally(ROWS, edges=(0.37, 0.63))
# Its ends are edges that a tally does not have by itself.
RULE = ic.coarsen(TALLY, "weighted:1,1", (0.37,), infeasible="closest")
MADE_WITH = {
    "ChangeDisplay": {"rules": [RULE], "threshold": 0.37},
    "FrontierDisplay": {"cost": "weighted:1,1", "points": 2, "threshold": 0.37},
    "MeasuresDisplay": {"measures": ["ppv", "auc"], "threshold": 0.37},
    "NetBenefitDisplay": {"thresholds": [0.37, 0.5]},
    "PlaneDisplay": {"rules": {"mine": RULE}},
    "PredictiveValuesDisplay": {"threshold": 0.37},
    "ReconcilableDisplay": {"thresholds": [0.37, 0.5]},
    "ReliabilityDisplay": {"replicates": 20},
    "RepairPlanDisplay": {"method": "odds", "threshold": 0.37, "remakes": 20},
}
EVERY = pytest.mark.parametrize("name", plots.__all__)


def numbers(display):
    return [repr(value) for name, value in vars(display).items() if not name.endswith("_")]


@EVERY
def test_each_way_to_make_a_display_gives_the_same(name):
    """With the edges that thresholds and rules need; iterators are read once."""
    display, options = getattr(plots, name), MADE_WITH[name]
    wanted = numbers(display.from_tally(TALLY, **options))

    def read_once():
        return {k: iter(v) if isinstance(v, list) else v for k, v in options.items()}

    assert numbers(display.from_tally(ROWS, **read_once())) == wanted
    arrays = ROWS["label"], SCORE, GROUP
    assert numbers(display.from_predictions(*arrays, **read_once())) == wanted
    made = display.from_estimator(MODEL, X, Y, sensitive_features=GROUP, **read_once())
    assert numbers(made) == wanted


@EVERY
def test_a_question_gives_what_is_not_given(name):
    audit = ic.audit(
        TALLY, "weighted:1,1", 0.37, confidence=0.8, replicates=200, min_group=100, warn=False
    )
    display, others = getattr(plots, name), dict(MADE_WITH[name])
    others.pop("threshold", None), others.pop("cost", None)
    made = display.from_audit(audit, **others)
    for field in ("threshold", "confidence", "cost"):
        if field in vars(made) and name != "ReconcilableDisplay":
            assert getattr(made, field) == getattr(audit.question, field)
    if name == "FrontierDisplay":
        assert made.frontiers["withhold"].threshold == 0.37
        assert made.frontiers["withhold"].cost == audit.question.cost
    if name != "MeasuresDisplay":
        asked = display.from_tally(TALLY, question=audit.question, **others)
        assert numbers(asked) == numbers(made)
    with pytest.raises(ic.UsageError, match="question: must be a Question"):
        display.from_tally(TALLY, question="fpr", **others)
    with pytest.raises((TypeError, ic.UsageError), match="tresholds"):
        display.from_tally(TALLY, tresholds=0.3, **others)


@EVERY
def test_it_is_drawn_when_it_is_made_and_may_be_drawn_again_on_axes_of_a_user(name):
    """As scikit-learn's; a notebook shows the picture, and pyplot keeps no figure open."""
    display = getattr(plots, name).from_tally(TALLY, **MADE_WITH[name])
    first = display.ax_
    assert display._repr_png_().startswith(b"\x89PNG")
    assert display.plot().ax_ is not first
    ax = Figure(figsize=(9, 9)).subplots()
    assert display.plot(ax).ax_ is ax
    assert display.figure_ is ax.figure
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or display.figure_ not in map(pyplot.figure, pyplot.get_fignums())


@EVERY
def test_names_from_data_are_no_formulas(name):
    """Neither in titles and labels nor in legends."""
    tally = TALLY.relabel({"up": "$x_1$ <script>", "down": "$"})
    options = dict(MADE_WITH[name])
    if "rules" in options:
        options["rules"] = {"$y^2$": ic.withhold(tally, "weighted:1,1", infeasible="closest")}
    display = getattr(plots, name).from_tally(tally, **options)
    texts = display.figure_.findobj(matplotlib.text.Text)
    named = [text for text in texts if "$" in text.get_text() and text.get_visible()]
    assert not any(text.get_parse_math() for text in named)


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (plots.NetBenefitDisplay, "curve: must be a NetBenefitCurve"),
        (plots.ReconcilableDisplay.from_reconcilable, "found: must be a Reconcilable"),
        (plots.RepairPlanDisplay.from_plan, "plan: must be a RepairPlan"),
        (plots.PredictiveValuesDisplay.from_audit, "audit: must be an audit"),
    ],
)
def test_something_else_is_refused(make, rule):
    with pytest.raises(ic.UsageError, match=rule):
        make(TALLY)


def test_groups_of_several_columns():
    older = np.where(X[:, 0] > 0, 1, 0)
    both = {"up": GROUP, "older": older}
    display = plots.ReliabilityDisplay.from_estimator(
        MODEL, X, Y, sensitive_features=both, replicates=0
    )
    assert display.names == ["down, 0", "down, 1", "up, 0", "up, 1"]


def test_a_display_that_is_not_drawn_has_no_picture():
    bare = plots.PlaneDisplay(["a", "b"], [0.2, 0.3], [0.3, 0.3], [0.6, 0.5])
    assert bare._repr_png_() is None


def test_importing_the_displays_does_not_load_matplotlib():
    script = (
        "import sys, isocost.plots as s\n"
        "assert 'numpy' not in sys.modules\n"
        "from isocost.examples import compas\n"
        "s.PlaneDisplay(['a', 'b'], [0.2, 0.3], [0.3, 0.3], [0.6, 0.5])\n"
        "compas(), s.ReliabilityDisplay, s.FrontierDisplay\n"
        "assert s.ChangeDisplay and 'ChangeDisplay' in dir(s)\n"
        "assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_without_matplotlib_the_command_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ic.MissingDependencyError) as error:
        plots.PlaneDisplay.from_tally(compas())
    assert str(error.value) == (
        'plot: needs matplotlib\n  got:  no matplotlib\n  next: pip install "isocost[plot]"'
    )


def test_colours_differ_in_grey_or_by_dashes_and_inks_can_be_read():
    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    found = looks(35)
    assert len({(look.colour, look.dashes) for look in found}) == 35
    for look in found:
        assert 1.05 / (luminance(look.ink) + 0.05) >= 4.5, "WCAG AA on white"
    for one, other in pairwise(found):
        assert one.dashes != other.dashes
        assert one.marker != other.marker
