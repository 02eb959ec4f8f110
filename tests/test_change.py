import numpy as np
import pytest

import isocost as ic
from isocost.examples import compas, compas_rows
from isocost.measures import rates
from isocost.repairs.compare import changes
from tests.conftest import DATA

pytest.importorskip("matplotlib", reason='needs pip install "isocost[plot]"')
from isocost.plots import ChangeDisplay
from isocost.plots.repairs import fates
from tests.test_plane import no_global_state  # noqa: F401


def income():
    tally = ic.Tally.load(DATA / "income.json")
    return tally.relabel({0.0: "men", 1.0: "women"})


def rules_of(tally):
    return [
        ic.withhold(tally, "fpr"), ic.coarsen(tally, "fpr"), ic.equalize_odds(tally),
        ic.reconcile(tally),
    ]  # fmt: skip


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("method", [0, 1, 2, 3])
def test_fates_against_changes_and_what_is_expected(method, place):
    tally = income()
    rule = rules_of(tally)[method]
    found, known = fates(tally, rule, place), changes(tally, rule, group=place)
    distance = np.abs(found.new - found.old)
    assert found.share.sum() == pytest.approx(1.0)
    assert found.share[found.moved].sum() == pytest.approx(known.changed)
    assert found.share @ distance == pytest.approx(known.mean_change)
    assert distance.max() == pytest.approx(known.largest_change)
    after = rates.mean_score(rule.expected(tally).totals)[place]
    assert found.share @ found.new == pytest.approx(after)


def test_fates_against_the_coin():
    tally, rows = compas(), compas_rows()
    rule = ic.withhold(tally, "fpr", 0.07)
    new = rule.apply(rows, id="id")["repaired_score"]
    mine = rows["group"] == "Caucasian"
    found = fates(tally, rule, 1)
    for size in (0.0, 0.1, 0.2, 0.3):
        share = (np.abs(new - rows["score"])[mine] > size + 1e-12).mean()
        expected = found.share[np.abs(found.new - found.old) > size + 1e-12].sum()
        assert share == pytest.approx(expected, abs=0.03)


def test_gathering_keeps_people_and_means():
    tally = income()
    found = fates(tally, ic.coarsen(tally, "fpr"), 0)
    few = found.gathered()
    assert len(few.share) < len(found.share)
    assert few.share.sum() == pytest.approx(1.0)
    assert few.share @ few.new == pytest.approx(found.share @ found.new)
    assert few.share[few.moved].sum() == pytest.approx(found.share[found.moved].sum())


def test_what_is_drawn():
    tally = income()
    rules = rules_of(tally)
    display = ChangeDisplay.from_tally(tally, rules)
    assert display.shown == [0, 1]
    assert len(display.axes_) == 8
    mixed = np.asarray(display.moved_["withhold", "men"].get_offsets())
    mu = rates.base_rate(tally.totals)[0]
    assert mixed[:, 1] == pytest.approx(mu), "all that is withheld becomes the base rate"
    turned = np.asarray(display.moved_["odds", "women"].get_offsets())
    assert turned.sum(axis=1) == pytest.approx(1.0), "what is turned round lies across"
    kept = np.asarray(display.kept_["withhold", "men"].get_offsets())
    assert kept[:, 0] == pytest.approx(kept[:, 1])
    assert len(display.moved_["withhold", "women"].get_offsets()) == 0
    text = " ".join(t.get_text() for t in display.axes_["withhold", "men"].texts)
    found = changes(tally, rules[0], group=0)
    assert f"{found.changed:.1%} changed, by up to {found.largest_change:.2f}" in text
    assert f"{found.decisions:.1%} of decisions" in text
    still = display.axes_["withhold", "women"].texts[0].get_text()
    assert still.startswith("nobody is changed")


def test_areas_are_shares():
    tally = compas()
    display = ChangeDisplay.from_tally(tally, [ic.withhold(tally, "fpr", 0.07)])
    drawn = display.moved_["withhold", "Caucasian"].get_sizes()
    few = display.fates["withhold"][1].gathered()
    share = few.share[few.moved]
    large = drawn > 2.0
    assert large.sum() > 5
    assert drawn[large] / drawn.max() == pytest.approx(share[large] / share.max())


def test_only_groups_that_change_are_shown():
    tally = compas()
    display = ChangeDisplay.from_tally(tally, {"a rule": ic.withhold(tally, "fpr", 0.07)})
    assert list(display.axes_) == [("a rule", "Caucasian")]


def test_a_rule_that_changes_nobody():
    from matplotlib.figure import Figure

    nothing = ic.Rule(groups=compas().groups, rows=(), method="none")
    display = ChangeDisplay.from_tally(compas(), [nothing], ax=Figure().subplots())
    assert display.shown == []
    assert display.axes_ == {}


def test_from_predictions_makes_the_edges_that_rules_need():
    rows = compas_rows()
    tally = ic.tally(rows, edges=(0.437,))
    rule = ic.coarsen(tally, "fpr", (0.437,), 0.07, allow_decision_changes=True)
    one = ChangeDisplay.from_predictions(
        rows["label"], rows["score"], rows["group"], iter([rule]), threshold=0.437
    )
    known = changes(tally, rule, 0.437, 1)
    assert one.changes["coarsen"][1].decisions == pytest.approx(known.decisions)


def test_from_estimator():
    from sklearn.linear_model import LogisticRegression

    random = np.random.default_rng(0)
    X = random.normal(size=(500, 2))
    y = (random.random(500) < 1 / (1 + np.exp(-X[:, 0] - X[:, 1]))).astype(int)
    group, model = X[:, 1] > 0, LogisticRegression().fit(X, y)
    tally = ic.tally(score=model.predict_proba(X)[:, 1], label=y, group=group)
    rule = ic.withhold(tally, "weighted:1,1", infeasible="closest")
    display = ChangeDisplay.from_estimator(model, X, y, [rule], sensitive_features=group)
    # The first group keeps its scores, so its Gini is NaN, which Python 3.13 holds unequal.
    first, second = display.changes["withhold"]
    assert repr(first) == repr(changes(tally, rule, group=0))
    assert second == changes(tally, rule, group=1)
    assert second.changed > 0.0
