"""Rows that belong to the same person: sums of products, merged, saved and read again."""

import numpy as np
import pytest

import isocost as ic
from isocost.engines import repeated as engine
from isocost.persons import terms_of
from tests.engines import Engine


@pytest.fixture
def rows():
    draw = np.random.default_rng(3)
    person = draw.integers(300, size=2000)
    score = draw.random(2000).round(3)
    label = (draw.random(2000) < score).astype(int)
    group = np.array(list("abc"))[person % 3]
    return {"score": score, "label": label, "group": group, "person": person}


def part(rows, where):
    return {name: np.asarray(values)[where] for name, values in rows.items()}


def test_a_person_per_row_gives_the_sums_of_squares(rows):
    tally = ic.tally({**rows, "person": np.arange(2000)}, person="person")
    terms = terms_of(tally.persons.thresholds)
    assert terms == [(y, t) for y in (0, 1) for t in ("w", "wh", "wh2", 0.5)]
    totals = tally.totals
    assert tally.persons.number.tolist() == totals.n.sum(axis=1).tolist()
    for group in range(3):
        own = tally.persons.products[group]
        # w w is 1 for each row, w wh the score, and so on; labels do not mix.
        for label, first in ((0, 0), (1, 4)):
            assert own[first, first] == totals.n[group, label]
            assert own[first, first + 1] == pytest.approx(totals.wh[group, label])
            assert own[first + 1, first + 1] == pytest.approx(totals.wh2[group, label])
        assert (own[:4, 4:] == 0.0).all()


@pytest.mark.parametrize(
    "change",
    [
        lambda person: person * 10**12,
        lambda person: -person,
        lambda person: person.astype(float),
        lambda person: person.astype(str),
        lambda person: np.array([f"x{one}" for one in person], dtype=object),
        lambda person: person.astype(np.uint64) + np.uint64(2**63),
    ],
)
def test_any_kind_of_value_names_a_person(rows, change):
    tally = ic.tally(rows, person="person")
    assert ic.tally({**rows, "person": change(rows["person"])}, person="person") == tally


def test_a_person_must_be_a_plain_value(rows):
    rows["person"] = [{}] * 2000
    with pytest.raises(ic.DataError, match="must be texts, numbers or dates"):
        ic.tally(rows, person="person")


@pytest.mark.parametrize("block", [100, 700])
def test_sums_do_not_depend_on_how_rows_are_added(rows, block, monkeypatch):
    rows["person"] = rows["person"] % 20
    whole = ic.tally(rows, person="person")
    monkeypatch.setattr(engine, "_BLOCK", block)
    monkeypatch.setattr("isocost.engines.arrays.CHUNK", 64)
    again = ic.tally(rows, person="person")
    assert again == whole
    assert again.persons.several == whole.persons.several > 0


def test_tallies_without_a_common_person_add_up(rows):
    first = rows["person"] < 140
    tallies = [ic.tally(part(rows, where), person="person") for where in (first, ~first)]
    added, whole = sum(tallies), ic.tally(rows, person="person")
    assert added == whole
    assert (added.persons.added, whole.persons.added) == (True, False)
    assert "assumed to be in one of the added tallies only" in repr(added)
    assert added.reading.read_rows == 2000
    other = ic.tally(part(rows, ~first), person="person", edges=(0.3, 0.5))
    assert (tallies[0] + other).persons.thresholds == (0.5,)
    with pytest.raises(ic.UsageError, match="both must know whose rows belong together"):
        tallies[0] + ic.tally(part(rows, ~first))


def test_groups_become_one_only_if_they_share_no_person(rows):
    tally = ic.tally(rows, person="person")
    merged = tally.relabel({"b": "a"})
    renamed = {**rows, "group": np.where(rows["group"] == "b", "a", rows["group"])}
    assert merged == ic.tally(renamed, person="person")
    rows["group"][:50] = "c"
    shared = ic.tally(rows, person="person")
    assert shared.persons.several > 0
    with pytest.raises(ic.UsageError, match=r"must not share persons.*\n.*persons with rows in"):
        shared.relabel({"b": "a"})
    # To leave a group out is no problem, and one group alone shares nobody.
    assert shared.drop(["c"]).persons.number.tolist() == shared.persons.number[:2].tolist()
    assert shared.select(["a"]).persons.several == 0


def test_a_rule_leaves_no_persons(rows):
    tally = ic.tally(rows, person="person")
    assert ic.equalize_odds(tally).expected(tally).persons is None


def test_batches_are_read_together(rows):
    import pyarrow as pa
    import pyarrow.dataset as ds

    table, whole = pa.table(rows), ic.tally(rows, person="person")
    assert ic.tally(table.to_reader(max_chunksize=100), person="person") == whole
    assert ic.tally(ds.dataset(table), person="person") == whole


@pytest.mark.parametrize(
    ("change", "got"),
    [
        (lambda x: x.update(number=[1, 2]), "are not those of each group"),
        (lambda x: x.update(number=[0, 100, 100]), "a number of persons"),
        (lambda x: x.update(number=[10.5, 100, 100]), "a number of persons"),
        (lambda x: x.update(number=[1e6, 100, 100]), "a number of persons"),
        (lambda x: x.update(several=-1), "a number of persons"),
        (lambda x: x.update(several=0.0), "not counted"),
        (lambda x: x.update(added="no"), "not counted"),
        (lambda x: x.update(more=1), "unknown field of persons 'more'"),
        (lambda x: x.pop("several"), "no field of persons 'several'"),
        (lambda x: x.update(thresholds=[2.0]), "are not those of each group"),
        (lambda x: x.update(thresholds=[0.1, 0.5]), "are not those of each group"),
        (lambda x: x.update(thresholds=[0.123]), "thresholds that are no edges"),
        (lambda x: x["products"][0].__setitem__(0, 1e9), "products of persons"),
        (lambda x: x["products"][0].__setitem__(0, -1.0), "products of persons"),
        (lambda x: x["products"][0].__setitem__(1, 1e9), "products of persons"),
        (lambda x: x["products"][0].__setitem__(1, float("nan")), "products of persons"),
    ],
)
def test_files_with_impossible_persons_are_refused(rows, change, got):
    content = ic.tally(rows, person="person").to_dict()
    change(content["persons"])
    with pytest.raises(ic.DataError, match=got):
        ic.Tally.from_dict(content)
    with pytest.raises(ic.DataError, match="not values by name"):
        ic.Tally.from_dict({**content, "persons": []})


def test_a_fingerprint_is_that_of_the_counts(rows):
    tally = ic.tally(rows)
    content = tally.to_dict()
    assert content["fingerprint"] == tally.fingerprint
    turned = part(rows, slice(None, None, -1))
    assert ic.tally(turned).fingerprint == tally.fingerprint
    assert ic.tally(turned, edges=(0.123,)).fingerprint != tally.fingerprint
    assert ic.tally(rows, person="person").fingerprint != tally.fingerprint
    assert ic.tally({**rows, "group": rows["person"] % 3}).fingerprint != tally.fingerprint
    content["cells"]["n"][:2] = [content["cells"]["n"][0] + 1, content["cells"]["n"][1]]
    with pytest.raises(ic.DataError):
        ic.Tally.from_dict(content)
    with pytest.raises(ic.DataError, match="fingerprint of the file"):
        ic.Tally.from_dict({**tally.to_dict(), "fingerprint": "0" * 32})


MENDED = ("dict", "pandas", "polars", "duckdb", "ibis", "dask", "csv", "jsonl", "parquet")


@pytest.mark.parametrize("name", MENDED)
@pytest.mark.parametrize("columns", [("group",), ("group", "place")])
def test_persons_without_a_group_may_be_in_one_that_occurs(rows, columns, name, tmp_path):
    rows = part(rows, slice(0, 300))
    rows |= {"group": rows["group"].tolist(), "place": ["a", "x"] * 150}
    for column, step in (("group", 4), ("place", 6)):
        rows[column][::step] = [None] * (300 // step)
    filled = {n: ["a" if x is None else x for x in rows[n]] for n in columns}
    options = {"person": "person", "group": list(columns)}
    wanted = ic.tally({**rows, **filled}, **options)
    engine = Engine(name, tmp_path)
    assert engine.tally(rows, **options, missing_group="a") == wanted
    assert wanted.persons.several > 0


@pytest.mark.parametrize("name", ["pandas", "duckdb", "dask", "jsonl", "parquet", "sql"])
def test_nan_and_null_name_no_person(rows, name, tmp_path):
    engine, person = Engine(name, tmp_path), rows["person"].astype(float)
    person[::9] = np.nan
    if name == "jsonl":
        person = [None if np.isnan(one) else one for one in person]
    with pytest.raises(ic.DataError, match="223 null"):
        engine.tally({**rows, "person": person}, person="person")
    tally = engine.tally({**rows, "person": person}, person="person", drop_missing=True)
    assert tally.n == 1777
    assert tally == ic.tally(part(rows, np.arange(2000) % 9 != 0), person="person")


@pytest.mark.parametrize("name", ["dict", "polars", "duckdb", "csv"])
def test_nobody_left_is_told_as_without_persons(rows, name, tmp_path):
    data = {**part(rows, slice(0, 3)), "person": ["x", None, None], "label": [None, 0, 1]}
    with pytest.raises(ic.DataError, match="3 rows, all dropped: 1 without 'label', 2 without"):
        Engine(name, tmp_path).tally(data, person="person", drop_missing=True)


def test_a_query_counts_groups_without_labelled_persons(rows, tmp_path):
    engine = Engine("sql", tmp_path)
    label = np.where(rows["group"] == "b", None, rows["label"]).tolist()
    options = {"person": "person", "missing_label": "keep"}
    found = engine.tally({**rows, "label": label}, **options)
    assert found == ic.tally({**rows, "label": label}, **options)
    assert found.groups == ("a", "c")
    # Products that were counted apart cannot be those of one group.
    some = [None if i % 5 == 0 else one for i, one in enumerate(rows["group"].tolist())]
    with pytest.raises(ic.UsageError, match="must not share persons"):
        engine.tally({**rows, "group": some}, person="person", missing_group="a")
    own = {"person": np.arange(2000), "group": some}
    found = engine.tally({**rows, **own}, person="person", missing_group="a")
    assert found == ic.tally({**rows, **own}, person="person", missing_group="a")


def test_groups_that_are_equal_have_the_same_fingerprint(rows):
    whole = [int(one) % 3 for one in rows["person"]]
    one, other = (ic.tally({**rows, "group": kind}) for kind in (whole, np.array(whole) + 0.0))
    assert one == other
    assert one.fingerprint == other.fingerprint
    assert one.fingerprint != ic.tally({**rows, "group": list(map(str, whole))}).fingerprint


@pytest.mark.parametrize("name", ["dict", "polars", "duckdb", "csv"])
def test_people_handed_over_need_no_person(rows, name, tmp_path):
    decided = np.arange(300) % 7 != 0
    data = {n: values.tolist() for n, values in part(rows, slice(0, 300)).items()}
    for column in ("score", "label", "person"):
        data[column] = [x if some else None for x, some in zip(data[column], decided, strict=True)]
    wanted = ic.tally(part(rows, np.flatnonzero(decided)), person="person")
    for drop in (False, True):
        options = {"person": "person", "handed_over": True, "drop_missing": drop}
        tally = Engine(name, tmp_path).tally(data, **options)
        assert sum(n for n, _, _ in tally.handed_over.values()) == 43
        assert tally.persons.products == pytest.approx(wanted.persons.products)
        assert tally.persons.number.tolist() == wanted.persons.number.tolist()


# Without persons


def test_ids_that_repeat_are_counted_and_warned_of(rows, tmp_path):
    import polars as pl

    frame = pl.DataFrame(rows)
    frame.write_csv(tmp_path / "rows.csv")
    sources = [rows, frame, frame.lazy(), frame.to_arrow().to_reader(), tmp_path / "rows.csv"]
    tallies = [ic.tally(source, id="person") for source in sources]
    assert [tally.reading.ids for tally in tallies] == [len(np.unique(rows["person"]))] * 5
    added = tallies[0] + tallies[0]
    assert (added.reading.ids, added.reading.read_rows) == (2 * tallies[0].reading.ids, 4000)
    assert ic.Tally.from_json(added.to_json()).reading.ids == added.reading.ids
    with pytest.warns(ic.ReadingWarning, match=r"2,000 rows have 299 different ids, 6.69 rows"):
        audit = ic.audit(tallies[0], "fpr", replicates=0)
    assert 'Say whose row it is: person="person".' in audit.advice
    # Nothing is wrong with ids of one row each, nor where it is known whose row it is.
    rows["row"] = np.arange(2000)
    for options in ({"id": "row"}, {"id": "person", "person": "person"}):
        assert "different ids" not in ic.audit(rows, "fpr", replicates=0, **options).advice


def test_rows_without_an_id_are_of_different_people(rows):
    import polars as pl

    frame = pl.DataFrame(rows)
    who = pl.when(pl.col("person") < 100).then(None).otherwise(pl.col("person").cast(pl.String))
    frame = frame.with_columns(person=who)
    known = frame["person"].drop_nulls()
    expected = known.n_unique() + len(frame) - len(known)
    for source in (frame, frame.lazy(), frame.to_pandas()):
        assert ic.tally(source, id="person").reading.ids == expected
    assert ic.tally(frame, id="person") == ic.tally(frame)
