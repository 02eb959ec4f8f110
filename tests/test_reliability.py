import numpy as np
import pytest

import isocost as ic
from isocost.examples import compas, compas_rows
from isocost.plots.measures import isotonic_shares, reliability
from tests.conftest import DATA, sample

pytest.importorskip("matplotlib", reason='needs pip install "isocost[plot]"')
from isocost.plots import ReliabilityDisplay
from tests.test_plane import no_global_state  # noqa: F401


def rows_of(group):
    rows = compas_rows()
    mine = rows["group"] == group
    return rows["label"][mine], rows["score"][mine]


@pytest.mark.parametrize(
    ("strategy", "theirs"), [("equal_width", "uniform"), ("equal_mass", "quantile")]
)
def test_bins_are_those_of_scikit_learn(strategy, theirs):
    from sklearn.calibration import calibration_curve

    data = sample(3000, groups=1)
    found = reliability(ic.tally(data), 0, strategy=strategy, replicates=0)
    share, score = calibration_curve(data["label"], data["score"], n_bins=10, strategy=theirs)
    # Bins of equal mass keep the people of one fine bin together.
    close = 1e-9 if strategy == "equal_width" else 0.02
    assert found.score == pytest.approx(score, abs=close)
    assert found.share == pytest.approx(share, abs=close)
    assert found.weight.sum() == 3000
    assert np.isnan(found.low).all()


def test_isotonic_is_that_of_scikit_learn():
    from sklearn.isotonic import IsotonicRegression

    label, score = rows_of("Caucasian")
    found = reliability(compas(), 1, replicates=0)
    model = IsotonicRegression(out_of_bounds="clip").fit(score, label)
    assert found.isotonic_share == pytest.approx(model.predict(found.isotonic_score))


def test_isotonic_with_weights_by_hand():
    curve = isotonic_shares(np.array([0.5, 0.1, 0.9]), np.array([1.0, 3.0, 1.0]))
    assert curve == pytest.approx([0.2, 0.2, 0.9])


def test_bands_are_binomial_where_a_bin_is_one_score():
    from scipy.special import bdtr

    rows = {"score": [0.3] * 200, "label": [0, 1] * 100, "group": ["a"] * 200}
    found = reliability(ic.tally(rows), 0, replicates=4000, confidence=0.9)
    low, high = found.low[0] * 200, found.high[0] * 200
    # The quantiles of a binomial, up to one step of chance.
    assert bdtr(low - 2, 200, 0.3) < 0.05 < bdtr(low + 1, 200, 0.3)
    assert bdtr(high - 2, 200, 0.3) < 0.95 < bdtr(high + 1, 200, 0.3)
    assert found.isotonic_low[0] == found.low[0], "one level: both curves are the same"


def test_calibrated_scores_stay_in_their_bands_and_others_do_not():
    inside = outside = total = 0
    for seed in range(12):
        data = sample(1500, groups=1, seed=seed)
        found = reliability(ic.tally(data), 0, replicates=200, seed=seed)
        inside += ((found.share >= found.low) & (found.share <= found.high)).sum()
        wrong = reliability(ic.tally(data | {"score": data["score"] ** 2}), 0, replicates=100)
        outside += ((wrong.share < wrong.low) | (wrong.share > wrong.high)).sum()
        total += len(found.share)
    assert 0.9 < inside / total <= 1.0
    assert outside / total > 0.5


def test_weights_widen_the_bands():
    data = sample(3000, groups=1, weighted=True)
    plain = reliability(ic.tally(data), 0, replicates=300)
    heavy = reliability(ic.tally(data, weight="weight"), 0, replicates=300)
    assert (heavy.high - heavy.low).sum() > (plain.high - plain.low).sum()


def test_the_histogram_counts_everybody():
    label, score = rows_of("African-American")
    found = reliability(compas(), 0, replicates=0)
    for counts, wanted in ((found.negatives, 0), (found.positives, 1)):
        expected, _ = np.histogram(score[label == wanted], found.edges)
        assert counts == pytest.approx(expected)


def test_what_is_drawn():
    tally = ic.Tally.load(DATA / "income.json")
    display = ReliabilityDisplay.from_tally(tally, replicates=50)
    assert len(display.axes_) == len(display.histograms_) == 2
    for place, curve in enumerate(display.curves):
        dots = np.asarray(display.dots_[place].get_offsets())
        assert dots == pytest.approx(np.column_stack([curve.score, curve.share]))
        line = display.isotonic_[place].get_xydata()
        assert line == pytest.approx(np.column_stack([curve.isotonic_score, curve.isotonic_share]))
        bands = np.array(display.bands_[place].get_segments())
        assert bands[:, :, 1] == pytest.approx(np.column_stack([curve.low, curve.high]))
        heights = [bar.get_height() for bar in display.histograms_[place].patches]
        assert sum(heights) == pytest.approx(1.0)
        gap = ic.audit(tally, confidence=None).groups[tally.groups[place]].calibration_gap
        texts = [text.get_text() for text in display.axes_[place].texts]
        assert any(text.endswith(f"calibration gap {gap:.3f}") for text in texts)


def test_the_band_of_the_rising_curve():
    display = ReliabilityDisplay.from_tally(compas(), replicates=50, binned=False, histogram=False)
    assert display.dots_ == display.histograms_ == []
    drawn = display.bands_[0].get_paths()[0].vertices
    curve = display.curves[0]
    assert drawn[:, 1].max() == pytest.approx(curve.isotonic_high.max())
    assert drawn[:, 1].min() == pytest.approx(curve.isotonic_low.min())


def test_many_groups_on_axes_of_a_user():
    from matplotlib.figure import Figure

    ax = Figure(figsize=(9, 9)).subplots()
    data = sample(2000, groups=5)
    names = np.array(["a", "b$c$", "d", "e", "a name that is far too long for its place " * 3])
    display = ReliabilityDisplay.from_predictions(
        data["label"], data["score"], names[data["group"]], replicates=20, ax=ax
    )
    assert display.ax_ is ax
    assert len(display.axes_) == 5
    titles = [panel.get_title(loc="left") for panel in display.axes_]
    assert "b$c$" in titles
    assert any(title.endswith("...") for title in titles)


def test_from_estimator():
    from sklearn.linear_model import LogisticRegression

    random = np.random.default_rng(0)
    X = random.normal(size=(300, 2))
    y = (random.random(300) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    model = LogisticRegression().fit(X, y)
    group = X[:, 1] > 0
    one = ReliabilityDisplay.from_estimator(model, X, y, sensitive_features=group, replicates=0)
    score = model.predict_proba(X)[:, 1]
    other = ReliabilityDisplay.from_predictions(y, score, group, replicates=0)
    assert one.curves[1].share == pytest.approx(other.curves[1].share)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"bins": 0}, "bins: must be a whole number from 1 to 65536\n  got:  0"),
        ({"replicates": 2.5}, "replicates: must be a whole number from 0 to 100000\n  got:  2.5"),
        ({"strategy": "wide"}, 'strategy: must be "equal_width" or "equal_mass"'),
    ],
)
def test_wrong_options(options, text):
    with pytest.raises(ic.UsageError) as error:
        reliability(compas(), 0, **options)
    assert text in str(error.value)
