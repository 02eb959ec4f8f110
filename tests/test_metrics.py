import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import cross_val_score

import isocost as ic
from tests.conftest import measured, sample


def test_the_same_numbers_as_the_audit():
    data = sample(4_000, weighted=True)
    result = measured(ic.tally(data, weight="weight"))
    for group, measures in result.groups.items():
        mine = data["group"] == group
        arguments = (data["label"][mine], data["score"][mine])
        for function in (ic.generalized_fpr, ic.generalized_fnr, ic.calibration_gap):
            found = function(*arguments, sample_weight=data["weight"][mine])
            assert found == pytest.approx(getattr(measures, function.__name__), abs=1e-12)


def test_inside_a_scorer():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 3))
    y = (X[:, 0] + random.normal(size=300) > 0).astype(int)
    for function in (ic.generalized_fpr, ic.generalized_fnr, ic.calibration_gap):
        scorer = make_scorer(function, response_method="predict_proba", greater_is_better=False)
        scores = cross_val_score(LogisticRegression(), X, y, scoring=scorer, error_score="raise")
        assert (scores <= 0).all()
        assert (scores > -0.5).all()


def test_all_problems_at_once():
    with pytest.raises(ic.DataError) as error:
        ic.generalized_fpr([0, 2], [1.5, np.nan], sample_weight=[0, 1])
    text = str(error.value)
    assert "y_true: labels must be 0 or 1" in text
    assert "y_score: scores must lie in [0, 1]\n  got:  2 others, such as 1.5 in row 0" in text
    assert "sample_weight: weights must be positive" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [0.5]), "must have the same length, at least 1"),
        (([], []), "must have the same length, at least 1"),
        (([0, 1], [[0.1, 0.9], [0.2, 0.8]]), "pass its second column"),
        ((["a", "b"], [0.1, 0.2]), "y_true: must hold numbers"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ic.DataError, match=message):
        ic.generalized_fpr(*arguments)


@pytest.mark.parametrize(
    ("function", "label", "kind"),
    [(ic.generalized_fpr, 1, "negatives"), (ic.generalized_fnr, 0, "positives")],
)
def test_without_the_label_it_is_about_a_rate_is_nan(function, label, kind):
    with pytest.warns(ic.UncertainWarning, match=f"there are no {kind} among 2 rows") as caught:
        assert np.isnan(function([label, label], [0.1, 0.2]))
    assert caught[0].filename == __file__
