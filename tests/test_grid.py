import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isocost as ic
from isocost.grid import TENTHS, Grid
from tests.engines import as_lazy, columns_of

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


def test_edges():
    # 0.29 * 100 is 28.999999999999996 in floating point, but 0.29 is the edge of bin 29.
    grid = Grid(100)
    assert grid.cuts[grid.index(np.array([0.29]))[0]] == 0.29
    assert grid.index(np.array([1.0]))[0] == grid.size - 1
    # Those already on the grid are dropped, so that equal cuts are equal grids.
    assert Grid(1024, (0.5, 0.3)) == Grid(1024)
    assert Grid(1024, (0.33, 0.33)).edges == (0.33,)


RAW = {
    "percent": [0.0, 57.0, 100.0, 12.5, 29.0, 58.0],
    "logit": [-800.0, -2.0, 0.0, 0.5, 3.0, 800.0],
    "rank": [1.0, 2.0, 10.0, 3.0, 7.0, 5.0],
}
MEANT = {
    "percent": [0.0, 0.57, 1.0, 0.125, 0.29, 0.58],
    "logit": [0.0, *(1 / (1 + np.exp(-np.array([-2.0, 0.0, 0.5, 3.0])))), 1.0],
    # A decile is the middle of its tenth.
    "rank": [0.05, 0.15, 0.95, 0.25, 0.65, 0.45],
}
REST = {"label": [0, 1, 1, 0, 1, 0], "group": list("ababab"), "id": [1, 2, 3, 4, 5, 6]}


@pytest.mark.parametrize("scale", RAW)
@pytest.mark.parametrize("engine", ["dict", "pandas", "polars", "duckdb", "dask", "csv", "parquet"])
def test_scales_on_every_engine(tmp_path, scale, engine):
    data, meant = {"score": RAW[scale], **REST}, {"score": MEANT[scale], **REST}
    frame = pytest.importorskip("pandas").DataFrame(data)
    path = tmp_path / f"d.{engine}"
    if engine == "csv":
        frame.to_csv(path, index=False)
    elif engine == "parquet":
        frame.to_parquet(path)
    given = {"dict": data, "pandas": frame, "csv": path, "parquet": path}.get(engine)
    given = as_lazy(engine, data) if given is None else given
    tally, name = ic.tally(given, scale=scale), "rank:1-10" if scale == "rank" else scale
    assert tally == ic.tally(meant)
    assert tally.reading.scale == name
    assert f"scores from {name}" in str(tally)
    # A rule remembers the scale, and writes probabilities beside the scores.
    rule = ic.equalize_odds(tally)
    assert rule.made_from["reading"]["scale"] == rule.reading.scale == name
    expected = rule.apply(meant, scale="probability", id="id")["repaired_score"]
    in_place = "must be another column than the score"
    if engine in ("csv", "parquet"):
        out = tmp_path / f"o.{engine}"
        with pytest.raises(ic.UsageError, match=f"output_column: {in_place}"):
            ic.apply_file(rule, path, out, id="id", output_column="score")
        ic.apply_file(rule, path, out, id="id")
        read = pytest.importorskip("pandas")
        back = getattr(read, f"read_{engine}")(out)
        assert back["score"].tolist() == RAW[scale]
    else:
        with pytest.raises(ic.UsageError, match=f"output: {in_place}"):
            rule.apply(given, id="id", output="score")
        back = rule.apply(given, id="id")
        back = columns_of(engine, back) if engine not in ("dict", "pandas") else back
    np.testing.assert_allclose(sorted(back["repaired_score"]), sorted(expected), atol=1e-15)


@pytest.mark.parametrize("engine", ["dict", "polars", "csv"])
@pytest.mark.parametrize(
    ("scores", "scale", "told"),
    [
        ([0.5, 57.0], "probability", 'pass scale="percent" if they are perc'),
        ([2.0, 57.0], "probability", 'or scale="rank" if they are ranks'),
        ([-2.5, 3.5], "probability", 'pass scale="logit" if they are log-odds'),
        ([0.5, 1.0001], "probability", "divide percentages by 100"),
        ([0.5, 157.0], "percent", "must be a percentage in [0, 100] in every row"),
        ([0.5, 3.0], "rank:1-5", "must be a whole number from 1 to 5 in every row"),
        ([1.0, 7.0], "rank:1-5", "1 other than ranks from 1 to 5"),
        ([1.0, float("inf")], "logit", "must be a finite number in every row"),
    ],
)
def test_scores_that_are_on_another_scale(tmp_path, engine, scores, scale, told):
    data = {"score": scores, "label": [0, 1], "group": ["a", "b"]}
    given = as_lazy(engine, data) if engine == "polars" else data
    if engine == "csv":
        given = tmp_path / "d.csv"
        lines = zip(*data.values(), strict=True)
        given.write_text("score,label,group\n" + "".join(f"{h},{y},{g}\n" for h, y, g in lines))
    with pytest.raises(ic.DataError) as raised:
        ic.tally(given, scale=scale)
    assert told in str(raised.value)


def test_scales_and_rules():
    data = {"score": RAW["percent"], **REST}
    rule = ic.equalize_odds(ic.tally(data, scale="percent"))
    again = ic.Rule.from_json(rule.to_json())
    assert again.apply(data, output="new", scale=None, id="id")["new"].max() <= 1.0
    database = pytest.importorskip("duckdb").connect()
    database.execute('CREATE TABLE people (score DOUBLE, label INT, "group" VARCHAR, id INT)')
    rows = list(zip(*data.values(), strict=True))
    database.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", rows)
    rows = database.execute(rule.to_sql("duckdb", "people", columns=["id"], id="id")).fetchall()
    assert dict(rows) == dict(
        zip(data["id"], rule.apply(data, output="new", id="id")["new"], strict=True)
    )
    for scale in ("decile", "rank:5-1", "rank:1", "", None, 3):
        with pytest.raises(ic.UsageError, match="scale: must be probability, percent, logit"):
            ic.tally(data, scale=scale)
    with pytest.raises(ic.UsageError, match="must name the range of the ranks here"):
        rule.apply(data, output="new", scale="rank", id="id")
    both = ic.tally(data, scale="percent") + ic.tally({"score": MEANT["percent"], **REST})
    assert both.reading.scale == "percent and probability"
