import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isocost as ic
from isocost.checks import check_threshold
from isocost.grid import TENTHS, Grid

BINS = st.sampled_from([1, 2, 10, 16, 100, 1000, 1024])
SCORES = st.lists(
    st.one_of(st.floats(0, 1), st.integers(0, 1000).map(lambda i: i / 1000)), min_size=1
)


@given(bins=BINS, edges=st.lists(st.floats(0.001, 0.999), max_size=4), scores=SCORES)
def test_a_score_lies_between_the_cuts_of_its_bin(bins, edges, scores):
    grid = Grid(bins, tuple(edges))
    h = np.array(scores)
    place = grid.index(h)
    assert (grid.cuts[place] <= h).all()
    assert ((h < grid.cuts[place + 1]) | (h == 1.0)).all()


@given(bins=BINS)
def test_cuts_are_the_equal_parts_and_the_tenths(bins):
    wanted = {i / bins for i in range(bins + 1)} | set(TENTHS)
    assert set(Grid(bins).cuts.tolist()) == wanted


def test_products_that_round_across_an_edge_are_put_right():
    # 0.29 * 100 is 28.999999999999996 in floating point, but 0.29 is the edge of bin 29.
    grid = Grid(100)
    assert grid.cuts[grid.index(np.array([0.29]))[0]] == 0.29


def test_edges_already_on_the_grid_are_dropped_so_equal_cuts_are_equal_grids():
    assert Grid(1024, (0.5, 0.3)) == Grid(1024)
    assert Grid(1024, (0.33, 0.33)).edges == (0.33,)


def test_one_is_in_the_last_bin():
    grid = Grid(8)
    assert grid.index(np.array([1.0]))[0] == grid.size - 1


@pytest.mark.parametrize("bins", [0, -1, 2**17, 2.5, "many", True])
def test_bad_bins(bins):
    with pytest.raises(ic.UsageError, match="bins: must be a whole number from 1 to 65536"):
        Grid(bins)


@pytest.mark.parametrize("value", [0.0, 1.0, -0.2, float("nan"), "x", None])
def test_bad_threshold(value):
    with pytest.raises(ic.UsageError, match="threshold: must be a number strictly between 0 and 1"):
        check_threshold(value)


def test_a_threshold_inside_a_bin_is_refused_with_the_way_out():
    with pytest.raises(ic.UsageError) as error:
        Grid().first_bin(0.33)
    assert "edges=(0.33,)" in str(error.value)
