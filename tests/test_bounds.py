"""All the theorems, for a tally."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isocost as ic
from isocost.errors import DataError, UsageError
from isocost.examples import compas
from isocost.measures import bounds as mb
from tests.populations import (
    CLOSE,
    Population,
    costs,
    populations,
    tally_of,
)


@settings(deadline=None)
@given(st.lists(populations(), min_size=2, max_size=4), costs(), st.none() | costs())
def test_bounds_of_a_tally_agree_with_its_populations(scores, cost, other):
    coefficients = cost[1]
    found = mb.bounds(
        tally_of(dict(enumerate(scores))), cost[0], None if other is None else other[0]
    )
    for p, group in zip(scores, found.groups.values(), strict=True):
        assert group.residual == pytest.approx(p.mu - p.mean_score, abs=CLOSE)
        assert group.gap_at_least <= group.gap <= p.gap + CLOSE
        assert group.linearity == mb.Bound(group.gap, 2 * group.gap)
        assert group.cost == pytest.approx(p.cost(*coefficients(p.mu)), abs=CLOSE)
        for name, rate in zip(("generalized_fpr", "generalized_fnr"), p.rates, strict=True):
            low, high = getattr(group.at_cost, name)
            assert low - CLOSE <= rate <= high + CLOSE
            assert high - low <= getattr(group.drop, name).sharp + CLOSE
    assert json.loads(found.to_json())["format"] == "isocost-bounds"
    if other is not None:
        assert found.comparison.distinct == mb.distinct(
            cost[0], other[0], [g.base_rate for g in found.groups.values()]
        )


def test_bounds_of_compas():
    found = mb.bounds(compas(), "fpr", "fnr")
    white = found.groups["Caucasian"]
    assert white.residual == pytest.approx(0.3936 - 0.4047, abs=1e-4)
    assert white.gap == pytest.approx(0.0170, abs=5e-5)
    assert white.at_cost.generalized_fpr == pytest.approx((0.36, 0.36), abs=5e-5)
    assert white.drop.generalized_fnr.sharp == pytest.approx(2 * white.gap / white.base_rate)
    assert found.impossibility.gap == white.gap
    assert found.impossibility.tight == pytest.approx(0.1534, abs=1e-4)
    text = str(found)
    assert "Caucasian           -0.0111  0.0170" in text
    assert "only scores with lower ones can do it" in text
    assert "<table>" in found._repr_html_()
    assert mb.bounds(compas()).impossibility is None
    assert mb.bounds(compas(), "fpr", "fnr", gap=0.0).impossibility.tight == 0.0


def test_bounds_of_perfect_scores():
    perfect = Population.of([(0.0, 0.5, 0.0), (1.0, 0.0, 0.5)])
    found = mb.bounds(tally_of({"a": perfect, "b": perfect}), "weighted:1,3")
    assert found.groups["a"].at_cost == mb.RateRange((0.0, 0.0), (0.0, 0.0))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: mb.bounds(compas(), "fpr", "fnr", gap=True), "got:  True"),
    ],
)
def test_bad_input(call, text):
    with pytest.raises(UsageError) as caught:
        call()
    assert text in str(caught.value)


@pytest.mark.parametrize("call", [mb.bounds, lambda t: mb.both_costs(t, "fpr", "fnr")])
def test_bad_tally(call):
    with pytest.raises(DataError, match="group: must have at least two values"):
        call(compas().select(["Caucasian"]))
    data = {"score": [0.1, 0.2, 0.3], "label": [0, 1, 1], "group": list("aab")}
    with pytest.raises(DataError, match="group 'b': must have negatives"):
        call(ic.tally(data))
