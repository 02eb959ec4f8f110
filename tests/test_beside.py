"""Two files side by side: the changes, their intervals, and what the page may show of them."""

import math

import numpy as np
import pytest

import isocost as ic
from isocost.examples import compas
from isocost.page.server import beside_html, compared
from tests.conftest import sample

FIRST = ic.tally(sample(rows=6000, groups=3, seed=1), bins=64)
FPR = ic.Question("fpr")
SECOND = ic.tally(sample(rows=6000, groups=3, seed=2), bins=64)


@pytest.fixture(scope="module")
def comparison():
    return compared(FIRST, SECOND, FPR)


def test_the_interval_of_a_change_is_that_of_two_independent_means(comparison):
    """Against the normal interval of a difference of means, at Bonferroni's level."""
    changes = comparison.changes("generalized_fpr")
    assert [line.is_group for line in changes] == [True] * 3 + [False] * 2
    z = 2.5758293035489004  # 1 - 0.05 / 5 / 2
    for line, group in zip(changes, FIRST.groups, strict=False):
        error = 0.0
        for tally in (FIRST, SECOND):
            cells = tally.select([group]).cells
            negative = cells.label == 0
            n, s, ss = (float(x[negative].sum()) for x in (cells.n, cells.wh, cells.wh2))
            error += (ss / n - (s / n) ** 2) / n
        low, high = line.interval
        assert (high - low) / 2 == pytest.approx(z * math.sqrt(error), rel=0.03)
        assert (low + high) / 2 == pytest.approx(line.change, abs=0.003)


def test_a_shift_of_one_group_is_marked_and_no_other():
    data = sample(rows=6000, groups=3, seed=3)
    moved = np.where(data["group"] == 0, 0.5 * data["score"], data["score"])
    tally = ic.tally({**data, "score": moved}, bins=64)
    lines = compared(FIRST, tally, FPR).changes("cost")
    assert [line.is_established for line in lines if line.is_group] == [True, False, False]
    assert not any(line.is_established for line in compared(tally, tally, FPR).changes("cost"))
    page = beside_html(compared(FIRST, tally, FPR), ("<a>", "b"))
    assert "fell for" in page
    assert "<a>" not in page


def test_small_counts_cannot_be_read_off(comparison):
    hidden = compared(FIRST, SECOND, FPR, min_count=50)
    assert [line.is_group for line in hidden.changes("cost")] == [True] * 3
    assert 'id="selection_rate"' in beside_html(comparison, "ab")
    assert 'id="selection_rate"' not in beside_html(hidden, "ab")


def test_groups_must_be_the_same():
    with pytest.raises(ic.DataError, match="both files: must share at least two groups"):
        compared(FIRST, compas(), FPR)
