"""Files through DuckDB: the same tally as the arrays, the same coins, and clear errors."""

import csv
import gzip
import json
import re
from functools import partial

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import isocost as ic
from isocost.rules import Row
from tests.conftest import sample

DATA = sample(2_000, groups=3, weighted=True)
DATA["name"] = np.array(["x, y", 'say "no"', "it's"])[DATA["group"]]
DATA["yes"] = np.where(DATA["label"] == 1, "yes", "no")
FRAME = pd.DataFrame(DATA)


@pytest.fixture
def folder(tmp_path):
    FRAME.to_csv(tmp_path / "data.csv", index=False)
    FRAME.to_csv(tmp_path / "data.tsv", index=False, sep="\t")
    FRAME.to_csv(tmp_path / "data.csv.gz", index=False)
    FRAME.to_parquet(tmp_path / "data.parquet")
    FRAME[:700].to_parquet(tmp_path / "part-1.parquet")
    FRAME[700:].to_parquet(tmp_path / "part-2.parquet")
    return tmp_path


def test_yes_and_no_and_dates_are_texts(tmp_path):
    path = tmp_path / "d.csv"
    rows = ["0.1,no,yes,2026-01-01,True", "0.9,yes,no,2026-01-02,False"]
    path.write_text("\n".join(["score,label,flag,day,bool", *rows]))
    options = {"label": "label", "positive": "yes"}
    assert ic.tally(path, group="flag", **options).groups == ("no", "yes")
    assert ic.tally(path, group="day", **options).groups == ("2026-01-01", "2026-01-02")
    assert ic.tally(path, group="bool", **options).groups == (False, True)
    pd.read_csv(path, parse_dates=["day"]).to_parquet(tmp_path / "d.parquet")
    with pytest.raises(ic.DataError, match="group: values must be text, numbers or booleans"):
        ic.tally(tmp_path / "d.parquet", group="day", **options)


def test_unreadable_files(tmp_path):
    with pytest.raises(ic.FileError, match="file: must exist\n  got:  nothing at"):
        ic.tally(tmp_path / "no.csv")
    with pytest.raises(ic.FileError, match="must end in"):
        ic.tally(tmp_path / "data.doc")
    (tmp_path / "bad.parquet").write_text("not parquet")
    with pytest.raises(ic.FileError, match="must be readable as Parquet"):
        ic.tally(tmp_path / "bad.parquet")
    (tmp_path / "bad.csv.gz").write_bytes(gzip.compress(b"x" * 1000)[:-20])
    with pytest.raises(ic.FileError, match="must be readable as CSV"):
        ic.tally(tmp_path / "bad.csv.gz")


def damaged(content, kind):
    """The same content with a wrong checksum, a wrong length, or an end that is missing."""
    if kind == "checksum":
        return content[:-6] + bytes([content[-6] ^ 1]) + content[-5:]
    if kind == "length":
        return content[:-2] + bytes([content[-2] ^ 1]) + content[-1:]
    return content[: -int(kind)]


@pytest.mark.parametrize("kind", ["checksum", "length", "1", "8", "400"])
@pytest.mark.parametrize("before", [False, True])
def test_gzip_that_is_damaged(tmp_path, kind, before):
    text = FRAME.to_csv(index=False)
    first, second = (gzip.compress(part.encode()) for part in (text[:50_000], text[50_000:]))
    (tmp_path / "d.csv.gz").write_bytes(first + second)
    assert ic.tally(tmp_path / "d.csv.gz") == ic.tally(DATA)
    content = damaged(first, kind) + second if before else first + damaged(second, kind)
    (tmp_path / "d.csv.gz").write_bytes(content)
    for path in (tmp_path / "d.csv.gz", tmp_path / "*.gz", tmp_path):
        with pytest.raises(
            ic.FileError, match=r"file: must be readable as CSV\n  got: .*d.csv.gz:"
        ):
            ic.tally(path)


def test_zstandard_that_is_cut_off(tmp_path):
    """Cut off at the end of a block that ends a line, it looks like a whole file to DuckDB."""
    line = "0.{:03},{},g{}\n"
    lines = ["".join(line.format(i, i % 2, i % 2) for i in range(1000)) for _ in range(2)]
    # A frame of two blocks that hold whole lines as they are, without a checksum.
    blocks = [f"score,label,group\n{lines[0]}".encode(), lines[1].encode()]
    frame = b"\x28\xb5\x2f\xfd\x00\x58"
    for last, block in enumerate(blocks):
        frame += (len(block) << 3 | last).to_bytes(3, "little") + block
    path = tmp_path / "d.csv.zst"
    path.write_bytes(frame)
    assert ic.tally(path).n == 2000
    skippable = b"\x50\x2a\x4d\x18\x05\x00\x00\x00hello"
    path.write_bytes(skippable + frame)
    assert ic.tally(path).n == 2000
    for cut in (1, len(blocks[1]), len(blocks[1]) + 3):
        path.write_bytes(frame[:-cut])
        with pytest.raises(ic.FileError, match="ended before the end of its last frame"):
            ic.tally(path)
    path.write_bytes(frame + b"more")
    with pytest.raises(ic.FileError, match=f"no Zstandard frame at byte {len(frame)}"):
        ic.tally(path)


@pytest.mark.parametrize("writer", [{}, {"write_checksum": True}])
def test_zstandard_of_others(tmp_path, writer):
    zstandard = pytest.importorskip("zstandard")
    text = FRAME.to_csv(index=False).encode()
    path = tmp_path / "d.csv.zst"
    for size in (-1, len(text)):
        made = zstandard.ZstdCompressor(**writer).compressobj(size=size)
        content = made.compress(text) + made.flush()
        path.write_bytes(content)
        assert ic.tally(path) == ic.tally(DATA)
        for cut in (1, 4, 100):
            path.write_bytes(content[:-cut])
            with pytest.raises(ic.FileError, match="must be readable as CSV"):
                ic.tally(path)


BAD_PATHS = ["a\0.csv", "\ud800.csv", "\udcff.csv", "x" * 300 + ".csv", "y/" * 3000 + "z.csv"]


@pytest.mark.parametrize("path", [*BAD_PATHS, "\udcff*.csv"])
def test_paths_that_cannot_be_read_or_written(folder, path):
    if "*" in path:
        (folder / "\udcff1.csv").touch()
    with pytest.raises(ic.FileError, match="next:") as caught:
        ic.tally(f"{folder}/{path}")
    assert str(caught.value).encode()
    with pytest.raises(ic.FileError, match="next:") as caught:
        ic.apply_file(
            RULE, folder / "data.csv", f"{folder}/{path}", group="name", force=True, id="id"
        )
    assert str(caught.value).encode()


RULE = ic.Rule(
    groups=("x, y", 'say "no"', "it's"),
    rows=(
        Row("x, y", 0.0, 1.0, "set", 0.25, 0.5),
        Row("it's", 0.0, 0.3, "mirror", None, 0.25),
        Row("it's", 0.0, 0.3, "set", 0.1, 0.75),
        Row('say "no"', 0.5, 1.0, "set", 0.9, 1.0),
        Row('say "no"', 0.1, 0.5, "line", 0.2, 1.0, 0.3),
    ),
    method="test",
    salt="it's",
)


def read(path):
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    # Older versions of pandas round the last digit of a number in a CSV; Python does not.
    texts = pd.read_csv(path, dtype=str, keep_default_na=False)
    return pd.DataFrame({name: typed(texts[name].tolist()) for name in texts})


def typed(values):
    for kind in (int, float):
        try:
            return [kind(value) for value in values]
        except ValueError:
            continue
    return values


def test_texts_pass_through_a_csv_as_they_stand(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("id,zip,score,group\n007,01234,0.9,a\n8,00001,0.8,b\n")
    rule = ic.Rule(groups=("a", "b"), rows=(Row("a", 0.0, 1.0, "set", 0.5, 0.5),), method="test")
    ic.apply_file(rule, path, tmp_path / "o.csv", id="id")
    assert (tmp_path / "o.csv").read_text().splitlines()[1].startswith("007,01234,")
    found = pd.read_csv(tmp_path / "o.csv")["repaired_score"][0]
    assert found == rule.apply(score=[0.9], group=["a"], id=["007"])[0]


def test_groups_of_a_csv_are_read_as_those_of_the_rule(folder):
    rows = (Row("0", 0.0, 1.0, "set", 0.2, 1.0),)
    texts = ic.Rule(groups=("0", "1", "2"), rows=rows, method="test")
    ic.apply_file(texts, folder / "data.csv", folder / "n.csv", id="id")
    found = read(folder / "n.csv")
    np.testing.assert_array_equal(found["repaired_score"] == 0.2, found["group"] == 0)
    with pytest.raises(ic.UsageError, match="0 is of type int here"):
        ic.apply_file(texts, folder / "data.parquet", folder / "n.parquet", id="id")


def test_the_output_is_whole_or_not_there(folder, monkeypatch):
    before = sorted(p.name for p in folder.iterdir())
    (folder / "bad.csv").write_text("id,score,name\n1,0.5,it's\n,2.0,\n")
    with pytest.raises(ic.DataError) as error:
        ic.apply_file(RULE, folder / "bad.csv", folder / "o.csv", group="name", id="id")
    for part in ("1 outside [0, 1]", "1 null", "id: must be a whole number or a text"):
        assert part in str(error.value)
    with pytest.raises(ic.DataError, match="2,000 numbers that are not whole"):
        ic.apply_file(RULE, folder / "data.csv", folder / "o.csv", group="name", id="weight")
    with pytest.raises(ic.UsageError, match="because this rule throws a coin"):
        ic.apply_file(RULE, folder / "data.csv", folder / "o.csv", group="name", id=None)

    def stop(*_args):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.link", stop)
    monkeypatch.setattr("pathlib.Path.replace", stop)
    for force in (False, True):
        with pytest.raises(KeyboardInterrupt):
            ic.apply_file(
                RULE, folder / "data.csv", folder / "o.csv", group="name", force=force, id="id"
            )
    (folder / "bad.csv").unlink()
    assert sorted(p.name for p in folder.iterdir()) == before


def test_nothing_is_overwritten(folder):
    data = folder / "data.csv"
    content = data.read_bytes()
    with pytest.raises(ic.FileError, match="output: must not be the input"):
        ic.apply_file(RULE, data, data, group="name", force=True, id="id")
    with pytest.raises(ic.FileError, match="output: must not be the input"):
        ic.apply_file(
            RULE, folder / "part-*.parquet", folder / "part-1.parquet", group="name", id="id"
        )
    with pytest.raises(ic.FileError, match="output: must not exist yet"):
        ic.apply_file(RULE, data, folder / "data.parquet", group="name", id="id")
    with pytest.raises(ic.FileError, match="must be in a folder that exists"):
        ic.apply_file(RULE, data, folder / "no" / "o.csv", group="name", id="id")
    ic.apply_file(RULE, data, folder / "data.tsv", group="name", force=True, id="id")
    assert data.read_bytes() == content


@pytest.mark.parametrize("name", ["data.parquet", "data.csv"])
def test_counting_reports_its_progress(folder, name, monkeypatch):
    from isocost.checks import check_columns
    from isocost.engines import files
    from isocost.engines.files import tally_files
    from isocost.grid import Grid

    seen, columns = [], check_columns("score", "label", "name")
    # So short that counting cannot end before it is asked how far it is.
    monkeypatch.setattr(files, "_PAUSE", 0.0)
    found = tally_files(
        folder / name, columns, grid=Grid(), progress=lambda *done: seen.append(done)
    )
    assert found == ic.tally(folder / name, group="name")
    rows = int(found.totals.n.sum()) if name == "data.parquet" else None
    assert seen
    assert all(0 <= share <= 1 and known == rows for share, known in seen)


def test_a_path_cannot_be_applied_in_memory(folder):
    with pytest.raises(ic.UsageError, match="apply_file"):
        RULE.apply(folder / "data.csv", id="id")


def test_missing_groups_of_another_type(tmp_path):
    path = tmp_path / "d.parquet"
    group = pd.array([0, 1, None, 1], dtype="Int64")
    pd.DataFrame({"score": [0.1] * 4, "label": [0, 1, 0, 1], "group": group}).to_parquet(path)
    assert ic.tally(path, missing_group="unknown").groups == (0, 1, "unknown")
    rule = ic.Rule(
        groups=(0, 1, "unknown"), rows=(Row("unknown", 0.0, 1.0, "set", 0.7, 1.0),), method="test"
    )
    ic.apply_file(rule, path, tmp_path / "o.parquet", missing_group="unknown", id="id")
    assert read(tmp_path / "o.parquet")["repaired_score"].tolist() == [0.1, 0.1, 0.7, 0.1]


def test_a_name_that_looks_like_a_glob(tmp_path):
    row = "score,label,group\n{},1,a\n"
    (tmp_path / "q1.csv").write_text(row.format(0.1))
    (tmp_path / "q[1].csv").write_text(row.format(0.9))
    assert ic.tally(tmp_path / "q[1].csv").totals.wh.sum() == pytest.approx(0.9)
    rule = ic.Rule(groups=("a",), rows=(), method="test")
    with pytest.raises(ic.FileError, match="output: must not be the input"):
        ic.apply_file(rule, tmp_path / "q[1].csv", tmp_path / "q[1].csv", force=True, id="id")


def test_the_positive_label_by_the_type_of_the_column(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("score,group,tf,number\n0.1,a,True,1.0\n0.2,a,False,2.0\n")
    for label, positive in (("tf", "True"), ("tf", True), ("number", "1"), ("number", 1.0)):
        tally = ic.tally(path, label=label, positive=positive)
        assert tally.totals.wh.tolist() == [[0.2, 0.1]]
    with pytest.raises(ic.DataError, match="must hold the positive label 'x'"):
        ic.tally(path, label="number", positive="x")


def test_labels_of_several_types_are_shown_as_they_stand(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("score,label,group\n0.1,yes,a\n0.2,3,a\n0.3,x,b\n")
    with pytest.raises(ic.DataError, match=r"3 or more: 'yes', '3.0', 'x'"):
        ic.tally(path, positive="yes")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1e0,1,a,1\n-0.2,0,b,1\n", "1 outside [0, 1] (first: -0.2)"),
        ("0.1,1,a,0\n0.2,0,b,1e150\n", "1 below 1e-70 or above 1e70 (first: 1e+150)"),
        ("0.1,nan,a,1\n0.2,x,b,1\n", "1 null or NaN, 1 other than 0 and 1 (first: 'x')"),
    ],
)
def test_the_example_of_a_problem_is_a_bad_value_of_its_kind(tmp_path, rows, message):
    (tmp_path / "d.csv").write_text("score,label,group,weight\n" + rows)
    with pytest.raises(ic.DataError, match=re.escape(message)):
        ic.tally(tmp_path / "d.csv", weight="weight")


def test_text_scores_in_parquet(tmp_path):
    pd.DataFrame({"score": ["0.5", "1.5"], "label": [0, 1], "group": ["a", "b"]}).to_parquet(
        tmp_path / "d.parquet"
    )
    with pytest.raises(ic.DataError, match=r"1 outside \[0, 1\] \(first: '1.5'\)"):
        ic.tally(tmp_path / "d.parquet")


def test_a_failed_write_names_the_output(folder, monkeypatch):
    from isocost.engines.files import Source

    run = Source.run

    def full(self, query, progress=None):
        if query.startswith("COPY"):
            raise self._explained(OSError("IO Error: could not write: No space left on device"))
        return run(self, query, progress)

    monkeypatch.setattr(Source, "run", full)
    with pytest.raises(ic.FileError, match="output: must be written whole, and could not be") as e:
        ic.apply_file(RULE, folder / "data.csv", folder / "o.csv", group="name", id="id")
    assert "No space left" in str(e.value)
    assert not (folder / "o.csv").exists()


LATE = 40_000
"""More rows than DuckDB looks at before it decides what a column holds."""


def late_csv(path, *rows):
    early = "".join(f"{i},1,{i % 2},1,1,5\n" for i in range(LATE))
    path.write_text("id,score,label,group,weight,other\n" + early + "".join(rows))
    return path


def test_numbers_that_come_late_are_not_rounded(tmp_path):
    path = late_csv(tmp_path / "d.csv", "a,0.7,1,1.5,0.75,0.7\n", "b,0.6,0,1,1.25,1.4\n")
    found = ic.tally(path, weight="weight")
    assert found.groups == (1.0, 1.5)
    assert found.totals.wh.sum() == pytest.approx(LATE + 0.7 * 0.75 + 0.6 * 1.25)
    assert found.totals.w.sum() == pytest.approx(LATE + 2)
    rule = ic.Rule(groups=(1.0, 1.5), rows=(Row(1.5, 0.0, 1.0, "set", 0.25, 1.0),), method="test")
    ic.apply_file(rule, path, tmp_path / "o.parquet", id="id")
    written = pd.read_parquet(tmp_path / "o.parquet")
    assert written["other"].tolist()[-2:] == [0.7, 1.4]
    assert written["repaired_score"].tolist()[-2:] == [0.25, 0.6]
    assert written["id"].tolist()[-2:] == ["a", "b"]


def test_labels_that_come_late_are_not_rounded(tmp_path):
    path = late_csv(tmp_path / "d.csv", "1,0.5,0.7,1,1,1\n", "1,0.5,1.4,1,1,1\n")
    with pytest.raises(ic.DataError, match=r"2 other than 0 and 1 \(first: 0.7\)"):
        ic.tally(path)


def test_float_ids_that_come_late_are_refused(tmp_path):
    path = late_csv(tmp_path / "d.csv", "99.5,0.5,1,1,1,1\n")
    rule = ic.Rule(groups=(1,), rows=(Row(1, 0.0, 1.0, "set", 0.2, 0.5),), method="test")
    with pytest.raises(ic.DataError, match="1 numbers that are not whole"):
        ic.apply_file(rule, path, tmp_path / "o.csv", id="id")
    assert not (tmp_path / "o.csv").exists()


def test_quotes_that_come_late_are_quotes(tmp_path):
    path = late_csv(tmp_path / "d.csv", '99,0.5,1,"1",1,1\n')
    assert ic.tally(path).groups == (1,)


def test_no_line_is_a_comment_and_none_is_skipped(tmp_path):
    rows = [f"{'#' if i % 10 == 0 else ''}{i},0.2,{i % 2},{'ab'[i % 2]}\n" for i in range(100)]
    (tmp_path / "d.csv").write_text("id,score,label,group\n" + "".join(rows))
    assert ic.tally(tmp_path / "d.csv").n == 100
    rule = ic.Rule(("a", "b"), (Row("a", 0.0, 1.0, "set", 0.5, 0.5),), "test")
    assert ic.apply_file(rule, tmp_path / "d.csv", tmp_path / "o.csv", id="id") == 100
    ids = [row.split(",")[0] for row in rows]
    out = read(tmp_path / "o.csv").set_index("id")["repaired_score"]
    wanted = rule.apply(score=[0.2] * 100, group=["a", "b"] * 50, id=ids)
    assert out[ids].tolist() == wanted.tolist()
    # Five rows, and then a second header with another column: not the one that is meant.
    first = "id,score,label,group\n" + "".join(f"{i},0.5,{i % 2},a\n" for i in range(5))
    second = "id,score,label,group,x\n" + "".join(f"{i},0.5,{i % 2},b,9\n" for i in range(100))
    (tmp_path / "two.csv").write_text(first + second)
    (tmp_path / "note.csv").write_text("# made by x\n" + first)
    for name in ("two.csv", "note.csv"):
        with pytest.raises(ic.FileError, match="as many values in every line as it has names"):
            ic.tally(tmp_path / name)


def test_single_quotes_are_letters(tmp_path):
    rows = [f"'{i}',0.{i + 1},{i % 2},a\n" for i in range(5)]
    (tmp_path / "d.csv").write_text("id,score,label,group\n" + "".join(rows))
    rule = ic.Rule(("a",), (Row("a", 0.0, 1.0, "set", 0.95, 0.5),), "test")
    ic.apply_file(rule, tmp_path / "d.csv", tmp_path / "o.csv", id="id")
    out = (tmp_path / "o.csv").read_text().splitlines()[1:]
    wanted = rule.apply(
        score=[0.1, 0.2, 0.3, 0.4, 0.5], group=["a"] * 5, id=[f"'{i}'" for i in range(5)]
    )
    assert [line.split(",")[0] for line in out] == [f"'{i}'" for i in range(5)]
    assert [float(line.split(",")[-1]) for line in out] == wanted.tolist()


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_files_with_other_types_and_columns(tmp_path, kind):
    """Whole numbers in forty files; scores with decimals and a new column in the last ones."""
    (tmp_path / "in").mkdir()
    frames = []
    for i in range(40):
        frame = pd.DataFrame({"id": [i], "score": [1], "label": [i % 2], "group": [i % 2]})
        if i >= 35:
            frame = frame.assign(score=[0.7], extra=["x"])
        frames.append(frame)
        path = tmp_path / "in" / f"{i:02}.{kind}"
        if kind == "csv":
            frame.to_csv(path, index=False)
        elif kind == "parquet":
            frame.to_parquet(path)
        else:
            frame.to_json(path, orient="records", lines=True)
    assert ic.tally(tmp_path / "in").totals.wh.sum() == pytest.approx(35 + 5 * 0.7)
    rule = ic.Rule((0, 1), (Row(1, 0.0, 0.9, "set", 0.25, 1.0),), "test")
    ic.apply_file(rule, tmp_path / "in", tmp_path / "o.parquet", id="id")
    out, whole = pd.read_parquet(tmp_path / "o.parquet"), pd.concat(frames)
    assert out["id"].tolist() == whole["id"].tolist()
    assert out["repaired_score"].tolist() == rule.apply(whole, id="id")["repaired_score"].tolist()
    assert out["extra"].isna().tolist() == [True] * 35 + [False] * 5


def test_folders_that_are_no_good_keys(tmp_path):
    for name in ("GROUP=a", "=x"):
        (tmp_path / name).mkdir()
        frame = pd.DataFrame({"score": [0.1, 0.6], "label": [0, 1], "group": ["b", "b"]})
        frame.assign(who=["c", "d"]).to_parquet(tmp_path / name / "d.parquet")
        assert ic.tally(tmp_path / name, group="who").groups == ("c", "d")
    assert ic.tally(tmp_path / "=x").groups == ("b",)
    with pytest.raises(ic.DataError, match="got:  a folder 'GROUP=' and a column 'group' in "):
        ic.tally(tmp_path / "GROUP=a")


def written(folder, names, rows, kind):
    """A file with these columns, whose names may be alike."""
    path = folder / f"d.{kind}"
    if kind == "parquet":
        columns = [pa.array(list(column)) for column in zip(*rows, strict=True)]
        pq.write_table(pa.Table.from_arrays(columns, names=names), path)
        return path
    lines = [",".join(map(str, row)) for row in (names, *rows)]
    text = "\n".join([*lines, ""]).encode()
    path.write_bytes(gzip.compress(text) if kind == "csv.gz" else text)
    return path


ROWS = [(0.1, 0, "a", 0.9, 7, 1, 1), (0.6, 1, "b", 0.8, 8, 2, 2)]
CERTAIN = ic.Rule(("a", "b"), (Row("a", 0.0, 1.0, "set", 0.25, 1.0),), "test")
COIN = ic.Rule(("a", "b"), (Row("a", 0.0, 1.0, "set", 0.25, 0.5),), "test")


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
@pytest.mark.parametrize("twin", ["score", "label", "group", "weight", "id", "Score", "GROUP"])
def test_columns_of_one_name_are_refused_where_they_are_used(tmp_path, kind, twin):
    names = ["score", "label", "group", twin, "other", "weight", "id"]
    path = written(tmp_path, names, ROWS, kind)
    title = twin.lower()
    apply = partial(ic.apply_file, COIN, output=tmp_path / "o.csv", id="id")
    use = apply if title == "id" else partial(ic.tally, weight="weight")
    with pytest.raises(ic.DataError, match=f"{title}: must name one column") as error:
        use(path)
    if title in ("score", "group"):
        with pytest.raises(ic.DataError, match=f"{title}: must name one column"):
            apply(path)
    (problem,) = error.value.problems
    assert problem.got == f"2 columns '{title}' and {twin!r} in {path}"
    assert problem.next_step == "rename or drop all but one of them"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_of_one_name_do_not_matter_where_others_are_used(tmp_path, kind):
    names = ["score", "label", "group", "x", "x", "X", "id"]
    path = written(tmp_path, names, ROWS, kind)
    wanted = {"score": [0.1, 0.6], "label": [0, 1], "group": ["a", "b"]}
    assert ic.tally(path) == ic.tally(wanted)
    ic.apply_file(COIN, path, tmp_path / "o.csv", id="id")
    ids = {**wanted, "id": [1, 2]}
    repaired = COIN.apply(ids, id="id")["repaired_score"].tolist()
    assert pd.read_csv(tmp_path / "o.csv")["repaired_score"].tolist() == repaired
    with pytest.raises(ic.DataError, match=r"output_column \(column 'x'\): must name one column"):
        ic.apply_file(COIN, path, tmp_path / "o2.csv", output_column="x", id="id")
    # The name that DuckDB gives the second x is not one of the file.
    with pytest.raises(ic.UsageError, match="score: must name a column of the data"):
        ic.tally(path, score="x_1")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_first_of_two_columns_is_not_taken_for_the_other(tmp_path, kind):
    path = written(tmp_path, ["Score", "label", "group", "score", "x", "y", "z"], ROWS, kind)
    for name in ("Score", "score"):
        with pytest.raises(ic.DataError, match="got:  2 columns 'Score' and 'score' in"):
            ic.tally(path, score=name)
    path = written(tmp_path, ["score", "label", "group", "x_1", "x", "y", "z"], ROWS, kind)
    assert ic.tally(path, score="x_1").totals.wh.sum() == pytest.approx(1.7)


def test_many_files_with_headers_that_differ(tmp_path):
    for name, header in (("a", "score,label,group"), ("b", "score,label,Group")):
        (tmp_path / f"{name}.csv").write_text(f"{header}\n0.1,0,x\n0.9,1,x\n")
    with pytest.raises(ic.DataError, match="got:  'Group' and 'group' in different files"):
        ic.tally(tmp_path / "*.csv")
    (tmp_path / "b.csv").write_text("score,label,group,label\n0.1,0,x,1\n")
    with pytest.raises(ic.DataError, match=r"2 columns 'label' and 'label' in .*b\.csv"):
        ic.tally(tmp_path / "*.csv")


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_a_folder_does_not_replace_a_column(tmp_path, kind):
    folder = tmp_path / "group=x"
    folder.mkdir()
    frame = pd.DataFrame({"score": [0.1, 0.6], "label": [0, 1], "group": ["a", "b"]})
    frame = frame.assign(who=["c", "d"])
    if kind == "parquet":
        frame.to_parquet(folder / "d.parquet")
    elif kind == "csv":
        frame.to_csv(folder / "d.csv", index=False)
    else:
        frame.to_json(folder / "d.jsonl", orient="records", lines=True)
    for path in (tmp_path, folder / f"d.{kind}"):
        with pytest.raises(ic.DataError, match="group: must name one column") as error:
            ic.tally(path)
        assert "a folder 'group=' and a column 'group' in " in str(error.value)
        with pytest.raises(ic.DataError, match="group: must name one column"):
            ic.apply_file(CERTAIN, path, tmp_path / f"o.{kind}", id="id")
        assert ic.tally(path, group="who").groups == ("c", "d")
    frame.drop(columns="group").to_csv(folder / "e.csv", index=False)
    assert ic.tally(folder / "e.csv").groups == ("x",)


def test_keys_of_json_that_differ_in_case(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text('{"score": 0.1, "label": 1, "group": "a", "Group": "b"}\n')
    with pytest.raises(ic.DataError, match="keys must differ in more than upper and lower case"):
        ic.tally(path)
    path.write_text('{"score": 0.1, "label": 1, "group": "a", "group_1": "b"}\n')
    assert ic.tally(path).groups == ("a",)
    path.write_text('{"score": 0.1, "score": 0.2, "label": 1, "group": "a"}\n')
    with pytest.raises(ic.FileError, match='duplicate key "score"'):
        ic.tally(path)


# Before 1.5 DuckDB takes 2^63 for a BIGINT and then cannot read it: refused, not rounded.
OLD_DUCKDB = tuple(map(int, duckdb.__version__.split(".")[:2])) < (1, 5)

LARGE = {
    "2^63": [2**63, 2**63 + 1, 2**63],
    "2^63 and below 0": [2**63, 2**63 + 1, -1],
    "2^64": [2**64, 2**64 + 1, 1],
    "2^53 and a fraction": [2**53, 2**53 + 1, 0.5],
    "2^63 and a fraction": [2**63, 2**63 + 1, 0.5],
    "texts and numbers": ["a", 'say "b"', 1],
    "booleans and numbers": [True, 2, 3],
    "texts": ["a", "it's\nb", "ü"],
    "a fraction": [1, 2, 0.5],
}


@pytest.mark.parametrize("values", LARGE.values(), ids=LARGE)
def test_groups_of_json_lines_are_what_python_reads(tmp_path, values):
    data = {"score": [0.1, 0.6, 0.9], "label": [0, 1, 1], "group": values, "id": [1, 2, 3]}
    rows = [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=True)]
    (tmp_path / "d.jsonl").write_text("\n".join(map(json.dumps, rows)))
    if OLD_DUCKDB and 2**63 in values and 0.5 not in values:
        with pytest.raises(ic.FileError, match="must be readable as JSON lines"):
            ic.tally(tmp_path / "d.jsonl")
        return
    found = ic.tally(tmp_path / "d.jsonl")
    assert found == ic.tally(data)
    assert set(found.groups) == set(values)
    rule = ic.Rule(
        tuple(dict.fromkeys(values)), (Row(values[1], 0.0, 1.0, "set", 0.25, 0.9),), "test"
    )
    ic.apply_file(rule, tmp_path / "d.jsonl", tmp_path / "o.jsonl", id="id")
    out = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert [row["group"] for row in out] == values
    assert [row["repaired_score"] for row in out] == rule.apply(data, id="id")[
        "repaired_score"
    ].tolist()
    ic.apply_file(rule, tmp_path / "d.jsonl", tmp_path / "o.parquet", id="id")
    kept = pq.read_table(tmp_path / "o.parquet")["group"].to_pylist()
    # Where no type of Parquet holds them all, they stay as JSON writes them.
    assert kept in (values, [json.dumps(value, ensure_ascii=False) for value in values])


def as_written(path):
    """The rows of a file, not read by DuckDB: old releases round large whole numbers."""
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    with path.open() as file:
        return list(csv.DictReader(file)) if path.suffix == ".csv" else list(map(json.loads, file))


@pytest.mark.parametrize(
    "ids", [[2**63, 2**63 + 1, 5], [2**53, 2**53 + 1, 7], [2**64, 2**64 + 1, 3]]
)
def test_large_ids_keep_their_own_coins_and_stay_apart(tmp_path, ids):
    data = {"score": [0.1, 0.6, 0.9], "group": ["a", "a", "a"], "id": ids}
    rows = [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=True)]
    (tmp_path / "d.jsonl").write_text("\n".join(map(json.dumps, rows)))
    pd.DataFrame(data).to_csv(tmp_path / "d.csv", index=False)
    wanted = [COIN.apply(score=[0.1], group=["a"], id=[str(id)])[0] == 0.25 for id in ids]
    for name in ("d.csv", "d.jsonl"):
        for out in ("o.parquet", "o.jsonl", "o.csv"):
            files = tmp_path / name, tmp_path / out
            use = partial(ic.apply_file, COIN, *files, force=True, id="id")
            if name == "d.jsonl" and max(ids) >= 2**64:
                with pytest.raises(ic.DataError, match=r"got:  values of type DOUBLE"):
                    use()
                continue
            if name == "d.jsonl" and max(ids) >= 2**63 and OLD_DUCKDB:
                with pytest.raises(ic.FileError, match="must be readable as JSON lines"):
                    use()
                continue
            use(changed="c")
            rows = as_written(tmp_path / out)
            assert [str(row["id"]) for row in rows] == list(map(str, ids))
            assert [str(row["c"]).lower() == "true" for row in rows] == wanted


def test_a_rule_of_whole_numbers_and_a_file_of_fractions(tmp_path):
    (tmp_path / "d.csv").write_text("score,group\n0.1,1\n0.2,2\n0.3,2.5\n")
    rule = ic.Rule((1.0, 2, 2.5), (Row(1.0, 0.0, 1.0, "set", 0.5, 1.0),), "test")
    ic.apply_file(rule, tmp_path / "d.csv", tmp_path / "o.csv", id="id")
    assert pd.read_csv(tmp_path / "o.csv")["repaired_score"].tolist() == [0.5, 0.2, 0.3]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_names_with_line_breaks_in_files(tmp_path, kind):
    names = {"score": "the\nscore", "group": "a\n  b", "id": "i\td"}
    data = {"the\nscore": [0.1, 0.6], "a\n  b": ["x\ny", "b"], "i\td": [1, 2]}
    frame, path = pd.DataFrame(data), tmp_path / f"d.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    rows = (
        Row("x\ny", 0.0, 0.5, "set", 0.25, 0.9),
        Row("x\ny", 0.5, 1.0, "set", 0.75, 0.5),
        Row("b", 0.0, 1.0, "mirror", None, 0.9),
    )
    rule = ic.Rule(("x\ny", "b"), rows, "test", salt="s\n  t")
    ic.apply_file(rule, path, tmp_path / "o.parquet", output_column="new", **names)
    found = pd.read_parquet(tmp_path / "o.parquet")["new"].tolist()
    assert found == rule.apply(data, output="new", **names)["new"].tolist()
