"""Rows that belong to the same person: sums of products, merged, saved and read again."""

import numpy as np
import pytest

import isocost as ic
from isocost.engines import repeated as engine
from isocost.persons import terms_of


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
