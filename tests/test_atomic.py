"""Files are written whole or not at all."""

import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys

import pytest

import isocost as ic
from isocost.atomic import PART, read_text, replacing, write_text
from isocost.errors import FileError, IsocostWarning
from isocost.examples import compas


def test_saved_names_do_not_promise_something_else(tmp_path):
    for made in (ic.withhold(compas(), "fpr", 0.07), compas()):
        with pytest.raises(FileError, match=r"output: must end in \.json\n  got:  .*a\.parquet"):
            made.save(tmp_path / "a.parquet")
        made.save(tmp_path / "a")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("name", ["a.csv", "ä" * 127, "x" * 251 + ".csv"])
def test_the_temporary_file_is_beside_it_and_no_reader_takes_it(tmp_path, name):
    with replacing(tmp_path / name) as temporary:
        assert temporary.parent == tmp_path
        assert temporary.name.startswith(".")
        assert temporary.stat().st_mode & 0o777 == 0o600
        with pytest.raises(FileError, match="must end in"):
            ic.tally(temporary)
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("mode", [0o640, 0o600])
def test_a_replaced_file_keeps_its_permissions(tmp_path, mode):
    (tmp_path / "a.json").touch(mode)
    write_text(tmp_path / "a.json", "new")
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == mode
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]
    assert read_text(tmp_path / "a.json") == "new"


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, GeneratorExit])
def test_nothing_is_left_and_nothing_is_lost(tmp_path, error):
    write_text(tmp_path / "a.json", "old")

    def fail():
        with replacing(tmp_path / "a.json") as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]
    assert read_text(tmp_path / "a.json") == "old"


def test_ctrl_c_as_soon_as_the_file_is_there(tmp_path, monkeypatch):
    plain = os.open

    def interrupted(*given):
        os.close(plain(*given))
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "open", interrupted)
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "a.json"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("parent", ["nowhere", "a file"])
def test_a_place_that_cannot_be(tmp_path, parent):
    (tmp_path / "a file").touch()
    with pytest.raises(FileError, match="must be writable") as caught:
        write_text(tmp_path / parent / "a.json", "new")
    assert "choose a folder that exists" in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["a file"]


@pytest.mark.parametrize("path", ["a\0.json", "\ud800.json", "x" * 300 + ".json", "y/" * 3000])
def test_paths_that_cannot_be(tmp_path, path):
    for use in (read_text, lambda given: write_text(given, "new")):
        with pytest.raises(FileError, match="next:") as caught:
            use(f"{tmp_path}/{path}")
        assert str(caught.value).encode()
        assert len(str(caught.value)) < 600


HOLD = """
import sys, time
from isocost.atomic import replacing
with replacing(sys.argv[1]) as temporary:
    temporary.write_text("half")
    print("ready", flush=True)
    time.sleep(600)
"""


def test_what_a_killed_process_left_goes_and_what_a_living_one_writes_stays(tmp_path):
    jobs = []
    for name in ("dead.csv", "alive.csv"):
        command = [sys.executable, "-c", HOLD, str(tmp_path / name)]
        jobs.append(subprocess.Popen(command, stdout=subprocess.PIPE))
        assert jobs[-1].stdout.readline() == b"ready\n"
    dead, alive = jobs
    try:
        dead.kill()
        dead.communicate(timeout=60)
        os.mkfifo(tmp_path / f".pipe{PART}")
        (tmp_path / f"visible{PART}").touch()
        with pytest.warns(IsocostWarning, match=r"Removed .*\.dead\.csv\..*unfinished") as seen:
            write_text(tmp_path / "a.json", "new")
        assert len(seen) == 1
        left = sorted(p.name.split(".csv.")[0] for p in tmp_path.iterdir())
        assert left == [".alive", f".pipe{PART}", "a.json", f"visible{PART}"]
    finally:
        alive.send_signal(signal.SIGINT)
        alive.communicate(timeout=60)
    assert not list(tmp_path.glob(".alive*"))


def test_a_file_that_was_removed_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    plain, removed = fcntl.flock, []

    def late(file, how):
        if not removed:
            removed.extend(tmp_path.iterdir())
            removed[0].unlink()
        plain(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    write_text(tmp_path / "a.json", "new")
    assert len(removed) == 1
    assert read_text(tmp_path / "a.json") == "new"


def test_where_locks_exclude_those_of_duckdb_nothing_is_removed(tmp_path, monkeypatch):
    def held(*_given):
        raise BlockingIOError(errno.EAGAIN, "held")

    monkeypatch.setattr(fcntl, "lockf", held)
    (tmp_path / f".left.csv.1-ab{PART}").touch()
    with replacing(tmp_path / "a.json") as temporary:
        file = os.open(temporary, os.O_RDWR)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(file)
    assert sorted(p.name for p in tmp_path.iterdir()) == [f".left.csv.1-ab{PART}", "a.json"]


def test_only_regular_files_are_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "to-device").symlink_to("/dev/null")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
    before = sorted(p.name for p in tmp_path.iterdir())
    kinds = {"pipe": "a named pipe", "folder": "a folder", "to-device": "a device"}
    for name, kind in {**kinds, "socket": "a socket"}.items():
        with pytest.raises(FileError, match="output: must be a regular file") as caught:
            write_text(tmp_path / name, "new")
        assert f"{name}, {kind}\n" in str(caught.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == before
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "to-device").is_symlink()


def test_links_are_replaced_by_the_file(tmp_path):
    write_text(tmp_path / "other.json", "other")
    for name in ("other.json", "nowhere"):
        link = tmp_path / "link.json"
        link.symlink_to(tmp_path / name)
        with pytest.raises(FileError, match="output: must not exist yet"):
            write_text(link, "new", force=False)
        assert link.is_symlink()
        write_text(link, "new")
        assert not link.is_symlink()
        assert read_text(link) == "new"
        link.unlink()
    assert read_text(tmp_path / "other.json") == "other"


@pytest.mark.parametrize("links", [True, False])
def test_what_another_writes_in_the_meantime_is_kept(tmp_path, monkeypatch, links):
    def unsupported(*_given):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    if not links:
        monkeypatch.setattr(os, "link", unsupported)
    path = tmp_path / "a.json"

    def second(checked):
        with replacing(path, force=False) as temporary:
            temporary.write_text("second")
            write_text(path, "first", force=False)
            if not checked:
                # As if the first had come after all checks.
                monkeypatch.setattr("isocost.atomic.check_target", lambda *_given: None)

    for checked in (True, False):
        with pytest.raises(FileError, match="output: must not exist yet") as caught:
            second(checked)
        assert "force=True" in str(caught.value)
        assert [p.name for p in tmp_path.iterdir()] == ["a.json"]
        assert read_text(path) == "first"
        os.umask(mask := os.umask(0))
        assert path.stat().st_mode & 0o777 == 0o666 & ~mask
        path.unlink()


@pytest.mark.parametrize(("force", "rename"), [(True, "replace"), (False, "link")])
def test_the_file_is_on_the_disk_before_its_name_and_the_name_is_too(
    tmp_path, monkeypatch, force, rename
):
    steps = []
    plain_sync, plain_rename = os.fsync, getattr(os, rename)

    def sync(file):
        kind = "folder" if os.path.isdir(f"/proc/self/fd/{file}") else "file"  # noqa: PTH112
        steps.append(kind)
        plain_sync(file)

    def renamed(*given, **more):
        steps.append("name")
        plain_rename(*given, **more)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, rename, renamed)
    write_text(tmp_path / "a.json", "new", force=force)
    assert steps == ["file", "name", "folder"]
