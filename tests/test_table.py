"""The table of measures: a row is all that a measure needs."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isocost as ic
from isocost import metrics
from isocost.cells import KINDS
from isocost.measures.table import MEASURES, Measure
from isocost.page.report import report_html
from tests.conftest import counted, measured, populations

PPV = Measure("precision", "Precision", over=("fp", "tp"), adds={"tp": (1, 0, 0)})
SELECTED_SCORE = Measure(
    "selected_score", "score of the selected", ("fp", "tp"), {"fp": (0, 1, 0), "tp": (0, 1, 0)}
)

coefficient = st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0])
measures = st.lists(st.sampled_from(KINDS), min_size=1, unique=True).flatmap(
    lambda over: st.dictionaries(
        st.sampled_from(over), st.tuples(coefficient, coefficient, coefficient)
    ).map(lambda adds: Measure("mine", "Mine", tuple(over), adds))
)


def by_rows(measure, data, group, threshold=0.5):
    """The mean over rows that the row of the table stands for."""
    mine = data["group"] == group
    h, y, w = data["score"][mine], data["label"][mine], data["weight"][mine]
    kind = np.array(KINDS)[(2 * y + (h >= threshold)).astype(int)]
    inside = np.isin(kind, measure.over)
    if not inside.any():
        return math.nan
    x = [np.polyval(measure.adds.get(k, (0, 0, 0))[::-1], s) for k, s in zip(kind, h, strict=True)]
    return np.average(np.array(x)[inside], weights=w[inside])


@given(data=populations(), measure=measures)
def test_any_row_is_the_mean_it_says(data, measure):
    found = ic.audit(counted(data), confidence=None, measures=[measure])
    compute = metrics._function_of(measure)
    for group, numbers in found.groups.items():
        wanted = by_rows(measure, data, group)
        assert numbers["mine"] == pytest.approx(wanted, abs=1e-9, nan_ok=True)
        mine = data["group"] == group
        h, y, w = (data[name][mine] for name in ("score", "label", "weight"))
        if math.isnan(wanted):
            with pytest.warns(ic.UncertainWarning, match="is not defined, and NaN"):
                assert math.isnan(compute(y, h, sample_weight=w))
        else:
            assert compute(y, h, sample_weight=w) == pytest.approx(wanted, abs=1e-9)
            assert measure.limits[0] - 1e-9 <= wanted <= measure.limits[1] + 1e-9


def test_a_page_that_leaves_out_a_group_keeps_the_measures():
    scores, labels = np.tile([0.2, 0.4, 0.6, 0.8], 50), np.tile([0, 1, 0, 1], 50)
    groups = np.repeat(["a", "b", "c"], [100, 92, 8])
    tally = ic.tally({"score": scores, "label": labels, "group": groups})
    found = ic.audit(tally, measures=[PPV], confidence=None, min_group=20)
    assert found.compared == ("a", "b")
    page = report_html(found)
    assert "groups that are not compared: c" in page
    assert '<tr data-row="precision">' in page


def test_one_line_is_in_everything_that_an_audit_shows():
    from isocost.examples import compas

    found = ic.audit(compas(), "fpr", measures=(PPV, SELECTED_SCORE))
    white = found.groups["Caucasian"]
    assert white["precision"] == white.precision == pytest.approx(394 / 613)
    low, high = white.intervals["precision"]
    assert low < white.precision < high
    assert found.disparities["precision"].difference > 0
    assert found.intervals.differences["precision"][0] < found.intervals.differences["precision"][1]
    assert "Precision" in str(found)
    assert json.loads(found.to_json())["groups"][1][1]["precision"] == white.precision
    assert "Precision" in report_html(found)


def test_a_group_of_which_nobody_is_selected_has_no_such_number():
    rng = np.random.default_rng(0)
    data = {
        "score": np.concatenate([rng.uniform(0, 0.4, 200), rng.uniform(0, 1, 200)]),
        "label": rng.integers(0, 2, 400),
        "group": ["low"] * 200 + ["all"] * 200,
    }
    found = ic.audit(ic.tally(data), measures=[PPV])
    low = found.groups["low"]
    assert math.isnan(low.precision)
    assert all(map(math.isnan, low.intervals["precision"]))
    assert math.isnan(found.disparities["precision"].difference)
    content = json.loads(found.to_json())
    assert content["disparities"]["precision"]["difference"] is None
    told = dict(map(tuple, ((str(g), m) for g, m in content["groups"])))
    assert told["low"]["precision"] is None
    assert told["low"]["intervals"]["precision"] == [None, None]
    assert content["intervals"]["disparities"]["precision"] == [None, None]
    (row,) = [row for row in found.table()[1] if row[0] == "Precision"]
    assert "-" in row


@pytest.mark.filterwarnings("ignore::isocost.UncertainWarning")
def test_intervals_of_a_mean_over_the_selected_cover_it():
    # Scores of the selected are uniform on [0.5, 1]: their mean is 3/4.
    hits = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        h = rng.random(300)
        data = {"score": h, "label": rng.random(300) < h, "group": np.arange(300) % 2}
        found = ic.audit(ic.tally(data), measures=[SELECTED_SCORE], replicates=400, seed=seed)
        low, high = found.groups[0].intervals["selected_score"]
        hits += low <= 0.75 <= high
    # 95 of 100, give or take two standard deviations and a half.
    assert 89 <= hits <= 100


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("2x", "Mine", ("fp",)), "name must be a name"),
        (("mine", "", ("fp",)), "title must be a text"),
        (("mine", "Mine"), "must have one of over=, of_sums=, of_people= and of_levels="),
        (("mine", "Mine", ("fp", "fp")), "over must name some of tn, fp, fn, tp, each once"),
        (("mine", "Mine", ("xx",)), "over must name some of"),
        (("mine", "Mine", 3), "over must be a tuple of kinds"),
        (("mine", "Mine", {"of_sums": 3}), "of_sums, of_people and of_levels must be functions"),
        (("mine", "Mine", {"over": ("fp",), "better": "up"}), "better must be"),
        (("mine", "Mine", {"over": ("fp",), "family": "others"}), "family must be one of"),
        (("mine", "Mine", ("fp",), 3), "adds a mapping"),
        (("mine", "Mine", ("fp",), {}, 3), "label and sentence must be texts"),
        (("mine", "Mine", ("fp",), {"tp": (1, 0, 0)}), "adds must name kinds that over names too"),
        (("mine", "Mine", ("fp",), {"fp": (1, 0)}), "adds must hold three finite numbers"),
        (("mine", "Mine", ("fp",), {"fp": ("a", 0, 0)}), "adds must hold three finite numbers"),
    ],
)
def test_a_row_that_makes_no_sense_is_refused(arguments, rule):
    named = arguments[-1] if len(arguments) == 3 and isinstance(arguments[-1], dict) else {}
    with pytest.raises(ic.UsageError, match="measure: ") as caught:
        Measure(*(one for one in arguments if one is not named), **named)
    assert rule in str(caught.value)


@pytest.mark.parametrize("wrong", [["foo"], [PPV, PPV], [Measure("cost", "Cost", ("fp",))], [3]])
def test_measures_of_an_audit_have_names_of_their_own(wrong, scored):
    with pytest.raises(ic.UsageError, match="measures: must"):
        ic.audit(scored, measures=wrong)


def test_each_row_has_its_words():
    for name, row in MEASURES.items():
        assert row.name == name
        assert row.sentence.endswith(".")
        assert row.title
        assert row.label


def test_a_record_can_be_copied_and_pickled(scored):
    import copy
    import pickle

    one = next(iter(measured(scored).groups.values()))
    for again in (copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert again == one
        assert again.fpr == one["fpr"]
    with pytest.raises(AttributeError, match="no number 'nothing'"):
        _ = one.nothing
    assert "brier" in dir(one)
