"""Kinds of files, folders, partitions, limits and progress: each against the arrays or pandas."""

import gzip
import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import isocost as ic
from isocost.engines.files import Source
from isocost.engines.kinds import FileReading, _memory, _size, find_files
from isocost.rules import Row
from tests.conftest import sample

ISOCOST = str(Path(sys.executable).with_name("isocost"))
APPLY = [ISOCOST, "apply", "r.json", "big.parquet", "--id", "id"]
DATA = sample(1_500, groups=2)
DATA["group"] = np.array(["F", "M"])[DATA["group"]]
DATA["day"] = np.array(["2026-01-01", "2026-01-02"])[DATA["id"] % 2]
DATA["code"] = np.array(["007", "8"])[DATA["id"] % 2]
FRAME = pd.DataFrame(DATA)
RULE = ic.Rule(groups=("F", "M"), rows=(Row("F", 0.0, 1.0, "set", 0.25, 0.5),), method="test")
COPIED = {
    "data.csv": "FORMAT csv, HEADER",
    "data.csv.gz": "FORMAT csv, HEADER, COMPRESSION gzip",
    "data.csv.zst": "FORMAT csv, HEADER, COMPRESSION zstd",
    "data.tsv": "FORMAT csv, HEADER, DELIMITER '\t'",
    "data.parquet": "FORMAT parquet",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formats")
    connection = duckdb.connect()
    connection.register("frame", FRAME)
    for name, options in COPIED.items():
        connection.execute(f"COPY (SELECT * FROM frame) TO '{folder}/{name}' ({options})")
    # JSON lines by Python, so that DuckDB reads what another wrote.
    text = "\n".join(json.dumps(row) for row in FRAME.to_dict(orient="records"))
    (folder / "data.jsonl").write_text(text)
    (folder / "data.ndjson.gz").write_bytes(gzip.compress(text.encode()))
    for kind in ("parquet", "csv"):
        options = f'FORMAT {kind}, PARTITION_BY ("group", day)'
        connection.execute(f"COPY frame TO '{folder}/parts-{kind}' ({options})")
    for place in range(3):
        part = folder / "days" / f"d{place}"
        part.mkdir(parents=True)
        FRAME[place * 500 : place * 500 + 500].to_parquet(part / "x.parquet")
    (folder / "days" / "_SUCCESS").touch()
    (folder / "days" / ".x.parquet.crc").write_text("no data")
    return folder


NAMES = [*COPIED, "data.jsonl", "data.ndjson.gz", "days", "days/", "days/*", "days/**/*.parquet"]
NAMES += ["parts-parquet", "parts-csv", "parts-parquet/**/*.parquet", "parts-*quet"]
NAMES += ["days/**", "parts-csv/**"]


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_gives_the_tally_of_the_arrays(folder, name):
    assert ic.tally(folder / name) == ic.tally(DATA)
    options = {"group": ["group", "day"], "edges": (0.123,), "bins": 100}
    assert ic.tally(f"{folder}/{name}", **options) == ic.tally(DATA, **options)


def test_nothing_is_printed_when_python_ends(folder):
    code = f"import isocost as ic; ic.tally({str(folder / 'data.parquet')!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_partitions_are_columns(folder):
    source = Source(folder / "parts-parquet")
    assert set(source.file_set.partitions) == {"group", "day"}
    # A date stays the text it is in the name of the folder.
    assert source.types["day"] == "VARCHAR"
    assert ic.tally(folder / "parts-csv", group="day").groups == ("2026-01-01", "2026-01-02")


def test_a_partition_without_a_value_is_a_missing_group(tmp_path):
    frame = FRAME.assign(group=FRAME["group"].where(FRAME["group"] == "F"))
    connection = duckdb.connect()
    connection.register("frame", frame)
    connection.execute(f"COPY frame TO '{tmp_path}/p' (FORMAT parquet, PARTITION_BY (\"group\"))")
    with pytest.raises(ic.DataError, match="must be known in every row"):
        ic.tally(tmp_path / "p")
    assert ic.tally(tmp_path / "p", missing_group="M") == ic.tally(DATA)


def test_values_of_json_stay_what_they_are(tmp_path):
    rows = [
        {"id": "007", "score": 0, "label": 1, "group": "a", "at": "2026-01-01T10:00:00", "x": [1]},
        {"id": "8", "score": 0.5, "label": 0, "group": "b", "at": "2026-01-02T10:00:00", "x": None},
        {"id": "9", "score": 1, "label": 0, "group": "b", "late": {"k": 2}},
    ]
    text = "\n".join(json.dumps(row) for row in rows)
    (tmp_path / "d.jsonl").write_text(text)
    rule = ic.Rule(groups=("a", "b"), rows=(Row("a", 0.0, 1.0, "set", 0.25, 1.0),), method="test")
    ic.apply_file(rule, tmp_path / "d.jsonl", tmp_path / "o.jsonl", id="id")
    found = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert [row["repaired_score"] for row in found] == [0.25, 0.5, 1.0]
    keys = ("id", "label", "group", "at", "x", "late")
    assert [[row[k] for k in keys] for row in found] == [[r.get(k) for k in keys] for r in rows]


def test_what_is_no_json(tmp_path):
    (tmp_path / "d.jsonl").write_text('{"score": 0.1, "label": 0, "group": "a"}\n{"score": 0.')
    with pytest.raises(ic.DataError, match="must hold one kind of value per column"):
        ic.tally(tmp_path / "d.jsonl")
    (tmp_path / "d.jsonl").write_text('{"score": "hi", "label": 0, "group": "a"}\n')
    with pytest.raises(ic.DataError, match="must hold numbers"):
        ic.tally(tmp_path / "d.jsonl")


def read_back(path):
    """Each value as it is written, by pandas and Python, without DuckDB."""
    kind = path.name.split(".", 1)[1]
    if kind == "parquet":
        return pd.read_parquet(path)
    if "json" in kind:
        content = path.read_bytes()
        lines = (gzip.decompress(content) if kind.endswith("gz") else content).splitlines()
        return pd.DataFrame([json.loads(line) for line in lines])
    if kind.endswith("zst"):
        plain = path.with_suffix("")
        plain.write_bytes(pa.input_stream(str(path), compression="zstd").read())
        path.unlink()
        return read_back(plain.rename(path.with_name("out.csv")))
    texts = pd.read_csv(path, sep="\t" if kind.startswith("tsv") else ",", dtype=str)
    kinds = {"id": int, "label": int, "score": float, "repaired_score": float}
    return texts.assign(**{name: texts[name].map(kind) for name, kind in kinds.items()})


OUTPUTS = ["csv", "tsv", "jsonl", "ndjson", "parquet", "csv.gz", "tsv.gz", "jsonl.gz", "csv.zst"]


@pytest.mark.parametrize("ending", OUTPUTS)
@pytest.mark.parametrize("name", ["data.parquet", "data.csv.gz", "data.jsonl"])
def test_every_kind_is_written(folder, tmp_path, name, ending):
    out = tmp_path / f"out.{ending}"
    assert ic.apply_file(RULE, folder / name, out, id="id") == len(FRAME)
    assert [p.name for p in tmp_path.iterdir()] == [out.name]
    found, wanted = read_back(out), RULE.apply(FRAME, id="id")
    np.testing.assert_array_equal(found["repaired_score"], wanted["repaired_score"])
    assert list(found.columns) == list(wanted.columns)
    for column in ("id", "label", "group"):
        assert found[column].tolist() == wanted[column].tolist()
    # A CSV does not say that 007 is a text; where types are written, it becomes a number.
    if "csv" not in name or ending.startswith(("csv", "tsv")):
        assert found["code"].tolist() == wanted["code"].tolist()


def test_partitions_are_written_out_as_columns(folder, tmp_path):
    ic.apply_file(RULE, folder / "parts-csv", tmp_path / "o.parquet", id="id")
    found = pd.read_parquet(tmp_path / "o.parquet").set_index("id").sort_index()
    wanted = RULE.apply(FRAME, id="id").set_index("id")
    np.testing.assert_array_equal(found["repaired_score"], wanted["repaired_score"])
    assert found["group"].tolist() == wanted["group"].tolist()
    assert found["day"].astype(str).tolist() == wanted["day"].tolist()


def test_rows_in_any_order(folder, tmp_path):
    ic.apply_file(
        RULE, folder / "days", tmp_path / "o.parquet", keep_order=False, threads=2, id="id"
    )
    found = pd.read_parquet(tmp_path / "o.parquet").sort_values("id")
    np.testing.assert_array_equal(
        found["repaired_score"], RULE.apply(FRAME, id="id")["repaired_score"]
    )


def test_limits_reach_the_engine(folder):
    reading = FileReading(memory_limit="512MB", threads=1, keep_order=False)
    source = Source(folder / "data.parquet", reading=reading)
    found = [
        source.run(f"SELECT current_setting('{name}')").fetchone()[0]
        for name in ("memory_limit", "threads", "preserve_insertion_order")
    ]
    assert found == ["488.2 MiB", 1, False]
    assert ic.tally(folder / "data.parquet", memory_limit="64MB", threads=1) == ic.tally(DATA)


def many_groups(path):
    columns = "range AS id, random() AS score, (random() < 0.5)::INT AS label"
    query = f"SELECT {columns}, 'group ' || range AS \"group\" FROM range(2000000)"
    duckdb.sql(f"COPY ({query}) TO '{path}'")


def test_the_usual_limit_is_far_below_what_the_machine_has():
    shown = FileReading(threads=2).connect().execute("SELECT current_setting('memory_limit')")
    machine = duckdb.connect().execute("SELECT current_setting('memory_limit')").fetchone()[0]
    assert shown.fetchone()[0] == ("1.0 GiB" if _size(machine) > 2**30 else machine)


def test_work_that_needs_more_than_the_usual_limit_gets_it(tmp_path, monkeypatch):
    monkeypatch.setattr("isocost.engines.kinds._LEAST", 2)
    monkeypatch.setattr("isocost.engines.kinds._EACH", 1)
    many_groups(tmp_path / "d.parquet")
    source = Source(tmp_path / "d.parquet", reading=FileReading(threads=1))
    query = f'SELECT count(*) FROM (SELECT "group" FROM {source.reader} GROUP BY ALL)'
    assert source.run(query).fetchone() == (2000000,)
    limit = source.run("SELECT current_setting('memory_limit')").fetchone()[0]
    assert 2**25 < _size(limit) < 1.1 * _memory()
    assert not source.reading.relax(source.connection)


def test_too_little_memory_is_said_so(tmp_path):
    path = tmp_path / "d.parquet"
    many_groups(path)
    with pytest.raises(ic.UsageError, match="memory_limit: must be enough for the work"):
        ic.tally(path, memory_limit="2MB")


ABSURD = ["banana", "0", "0GB", "0.0MB", "1KB", "99999999999TB", "٣GB", "512", "-1MB", "80%"]


@pytest.mark.parametrize("limit", [*ABSURD, "", "9" * 400 + "GB", 10**30, 512, "512MB; DROP"])
def test_bad_limits(folder, limit):
    with pytest.raises(ic.UsageError, match="memory_limit: must be a number with a unit"):
        ic.tally(folder / "data.csv", memory_limit=limit)


def test_limits_of_other_kinds(folder):
    for threads in (0, -1, 1.5, True, "2", 10**30):
        with pytest.raises(ic.UsageError, match="threads: must be a whole number"):
            ic.tally(folder / "data.csv", threads=threads)
    with pytest.raises(ic.UsageError, match="memory_limit: is a setting for files"):
        ic.tally(DATA, memory_limit="512MB")


def test_folders_that_cannot_be_read(tmp_path, folder):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ic.FileError, match="must be of one kind\n  got:  none"):
        ic.tally(tmp_path / "empty")
    (tmp_path / "mixed").mkdir()
    FRAME.to_csv(tmp_path / "mixed" / "a.csv")
    FRAME.to_parquet(tmp_path / "mixed" / "b.parquet")
    with pytest.raises(ic.FileError, match=r"one kind\n  got:  .*a\.csv and .*b\.parquet"):
        ic.tally(tmp_path / "mixed")
    (tmp_path / "mixed" / "notes.txt").write_text("hello")
    with pytest.raises(ic.FileError, match=r"must end in .*\.jsonl.*\n  got:  .*notes.txt"):
        ic.tally(tmp_path / "mixed")
    with pytest.raises(ic.FileError, match="must exist"):
        ic.tally(tmp_path / "no*.parquet")
    with pytest.raises(ic.FileError, match="output: must not be the input"):
        ic.apply_file(
            RULE, folder / "days", folder / "days" / "d1" / "x.parquet", force=True, id="id"
        )


def test_names_that_look_like_globs(tmp_path):
    odd = tmp_path / "a[1] *x"
    odd.mkdir()
    FRAME.to_parquet(odd / "d?.parquet")
    assert len(find_files(odd).patterns) == 1
    assert ic.tally(odd) == ic.tally(DATA)
    assert ic.tally(odd / "d?.parquet") == ic.tally(DATA)


def test_hidden_files_are_never_data(tmp_path):
    FRAME.to_csv(tmp_path / "day1.csv", index=False)
    (tmp_path / ".tmp").mkdir()
    for hidden in (tmp_path / ".day2-0123456789abcdef.csv", tmp_path / ".tmp" / "day2.csv"):
        FRAME.to_csv(hidden, index=False)
    for name in ("*.csv", "**/*.csv", "*", "**", "", "da*.csv"):
        assert ic.tally(tmp_path / name) == ic.tally(DATA), name
    (tmp_path / "day1.csv").unlink()
    with pytest.raises(ic.FileError, match="file: must exist"):
        ic.tally(tmp_path / "*.csv")


def test_a_folder_that_cannot_be_listed(tmp_path, monkeypatch):
    (tmp_path / "in" / "closed").mkdir(parents=True)
    FRAME.to_csv(tmp_path / "in" / "a.csv")
    plain = os.scandir

    def closed(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return plain(path)

    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(ic.FileError, match=r"folder: must be readable\n  got:  .*closed"):
        ic.tally(tmp_path / "in")


@pytest.fixture
def run_without_privileges(tmp_path):
    """Run the command as a user whom the system may refuse files."""
    caps = "-dac_override,-dac_read_search"
    prefix = []
    if os.geteuid() == 0:
        # Root reads everything by these capabilities.
        prefix = ["setpriv", f"--bounding-set={caps}", f"--inh-caps={caps}"]
        if shutil.which("setpriv") is None:
            pytest.skip("root can read everything, and there is no setpriv to change that")

    def run(*arguments):
        command = [*prefix, sys.executable, "-m", "isocost", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)

    return run


@pytest.mark.parametrize(
    ("closed", "mode", "asked", "message"),
    [
        ("in/d.csv", 0o000, "in/d.csv", "file: must be readable\n  got:  {}: Permission denied"),
        ("in/d.csv", 0o000, "in", "file: must be readable\n  got:  {}: Permission denied"),
        ("in/d.csv", 0o000, "in/*.csv", "file: must be readable\n  got:  {}: Permission denied"),
        ("in/d.csv.gz", 0o000, "in", "file: must be readable\n  got:  {}: Permission denied"),
        ("in/d.parquet", 0o000, "in/d.parquet", "file: must be readable as Parquet\n  got:  {}: "),
        ("in/d.xlsx", 0o000, "in/d.xlsx", "file: must be readable\n  got:  {}: Permission denied"),
        ("in", 0o000, "in", "folder: must be readable\n  got:  {}: Permission denied"),
        ("in", 0o000, "in/d.csv", "file: must be accessible\n  got:  {}/d.csv: Permission denied"),
        ("in", 0o000, "in/*.csv", "folder: must be readable\n  got:  {}: Permission denied"),
        ("in", 0o444, "in/*.csv", "file: must be accessible\n  got:  {}/d.csv: Permission denied"),
    ],
)
def test_what_may_not_be_read_is_said(
    run_without_privileges, tmp_path, closed, mode, asked, message
):
    (tmp_path / "in").mkdir()
    path = tmp_path / closed if "." in closed else tmp_path / "in" / "d.csv"
    FRAME.to_parquet(path) if path.suffix == ".parquet" else FRAME.to_csv(path, index=False)
    (tmp_path / closed).chmod(mode)
    try:
        done = run_without_privileges("audit", asked)
    finally:
        (tmp_path / closed).chmod(0o755)
    assert done.returncode == 2, done.stderr
    assert message.format(closed) in done.stderr
    assert "defect" not in done.stderr


def test_only_regular_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "device.csv").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket.csv"))
    (tmp_path / "gone.csv").symlink_to(tmp_path / "nothing")
    for name in ("pipe.csv", "device.csv", "socket.csv", "pipe*.csv", "dev*.csv"):
        with pytest.raises(ic.FileError, match="file: must be a regular file") as error:
            ic.tally(tmp_path / name)
        assert "standard input, as -" in str(error.value)
    for name in ("gone.csv", "gone*.csv"):
        with pytest.raises(ic.FileError, match="file: must exist"):
            ic.tally(tmp_path / name)
    with pytest.raises(ic.FileError, match="must be a regular file"):
        ic.tally(tmp_path)


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    folder = tmp_path_factory.mktemp("big")
    query = (
        "SELECT range AS id, random() AS score, (random() < 0.5)::INT AS label, "
        "'g' || (range % 2) AS \"group\" FROM range(3000000)"
    )
    duckdb.sql(f"COPY ({query}) TO '{folder}/big.parquet'")
    rows = (Row("g0", 0.0, 1.0, "set", 0.4, 0.5),)
    ic.Rule(groups=("g0", "g1"), rows=rows, method="test").save(folder / "r.json")
    return folder


@pytest.mark.parametrize(
    ("out", "sign", "code"),
    [
        ("out.parquet", signal.SIGINT, 130),
        ("out.jsonl.gz", signal.SIGINT, 130),
        ("out.csv", signal.SIGTERM, 143),
    ],
)
def test_being_stopped_has_its_code_and_leaves_nothing(big, out, sign, code):
    before = sorted(p.name for p in big.iterdir())
    command = [*APPLY, "-o", out, "--memory-limit", "512MB"]
    job = subprocess.Popen(command, cwd=big, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    # Not before it writes: then there is something to leave behind.
    while not list(big.glob(".out*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert list(big.glob(".out*"))
    time.sleep(0.2)
    job.send_signal(sign)
    _, errors = job.communicate(timeout=60)
    assert job.returncode == code, errors
    assert "interrupted; nothing was written" in errors
    assert sorted(p.name for p in big.iterdir()) == before


def test_a_file_that_is_being_written_is_not_counted(big, tmp_path):
    FRAME.to_csv(tmp_path / "day1.csv", index=False)
    glob = str(tmp_path / "*.csv")
    job = subprocess.Popen([*APPLY, "--threads", "1", "-o", tmp_path / "day2.csv"], cwd=big)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            parts = list(tmp_path.glob(".day2*"))
            if parts and parts[0].stat().st_size > 10_000_000:
                break
            time.sleep(0.02)
        for place in (glob, tmp_path):
            assert ic.tally(place) == ic.tally(DATA)
        # Nor does a run that ends meanwhile touch it.
        RULE.save(tmp_path / "r.json")
        assert job.poll() is None
    finally:
        job.kill()
        job.communicate(timeout=60)
    [part] = tmp_path.glob(".day2*")
    shown = subprocess.run([ISOCOST, "audit", glob, "--json"], capture_output=True, check=True)
    assert sum(group["n"] for _, group in json.loads(shown.stdout)["groups"]) == len(FRAME)
    (tmp_path / "r.json").unlink()
    assert ic.tally(tmp_path) == ic.tally(DATA)
    tally = [ISOCOST, "tally", glob, "-o", tmp_path / "day.json"]
    done = subprocess.run(tally, capture_output=True, text=True, check=True)
    assert done.stderr.startswith(f"warning: Removed {part}, which a run that was killed")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["day.json", "day1.csv"]


def test_of_two_runs_with_one_output_only_one_succeeds(big, tmp_path):
    command = [*APPLY, "-o", tmp_path / "o.csv", "--threads"]
    start = {"cwd": big, "stderr": subprocess.PIPE, "text": True}
    jobs = [subprocess.Popen([*command, str(threads)], **start) for threads in (1, 2)]
    errors = [job.communicate(timeout=300)[1] for job in jobs]
    assert sorted(job.returncode for job in jobs) == [0, 2]
    failed = errors[[job.returncode for job in jobs].index(2)]
    assert "output: must not exist yet" in failed
    assert "next:" in failed
    assert [p.name for p in tmp_path.iterdir()] == ["o.csv"]


def test_a_terminal_sees_rows_and_time_left(big):
    main, side = pty.openpty()
    command = [*APPLY, "-o", "seen.csv", "--threads", "1"]
    # A dumb terminal gets no bar.
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    job = subprocess.Popen(command, cwd=big, stderr=side, stdout=subprocess.PIPE, env=env)
    os.close(side)
    seen = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    job.communicate(timeout=60)
    os.close(main)
    assert job.returncode == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    assert re.search(r"[0-9,]+ of 3,000,000 rows", text)
    assert re.search(r"\d:\d\d:\d\d", text)
    (big / "seen.csv").unlink()
