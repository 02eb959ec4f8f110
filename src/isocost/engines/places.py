"""Which files a path means: one file, a glob, a directory, partitions; and what kind they are."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from pathlib import Path

from isocost.errors import FileError, Problem

__all__ = ["ENDINGS", "Place", "compression_of", "find", "kind_of"]

ENDINGS = ".csv, .tsv, .jsonl or .ndjson (also .gz and .zst), or .parquet"

_KINDS = {
    ".csv": ".csv",
    ".tsv": ".tsv",
    ".jsonl": ".jsonl",
    ".ndjson": ".jsonl",
    ".parquet": ".parquet",
}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


@dataclass(frozen=True)
class Place:
    """Files of one kind.

    Attributes
    ----------
    path : str
        What the caller wrote.
    kind : str
        ".csv", ".tsv", ".jsonl" or ".parquet".
    patterns : tuple of str
        What DuckDB shall read: globs, in which letters that are meant as they stand are escaped.
    partitions : tuple of str
        The columns that folders such as ``sex=F`` make.
    is_many : bool
        Whether there may be several files.
    compression : str, optional
        How a file whose path does not tell is compressed, in DuckDB's words.
    """

    path: str
    kind: str
    patterns: tuple[str, ...]
    partitions: tuple[str, ...] = ()
    is_many: bool = True
    compression: str | None = None

    @property
    def is_text(self) -> bool:
        """Whether every value is a text until somebody reads it otherwise."""
        return self.kind in (".csv", ".tsv")


def find(path: str | Path, name: str | None = None) -> Place:
    """The files that a path, a glob or a directory means.

    ``name`` says of what kind a file is whose path does not, such as /dev/fd/3.

    A file that is there is meant, even if its name looks like a glob.  In a directory all files
    below it count, but for hidden ones and those whose name starts with an underscore, which
    writers such as Spark leave behind.
    """
    text = str(path)
    if name is not None:
        zipped = compression_of(name)
        return Place(text, kind_of(name), (_escaped(text),), is_many=False, compression=zipped)
    if Path(text).is_file():
        return Place(text, kind_of(text), (_escaped(text),), _partitions([text]), is_many=False)
    if Path(text).is_dir():
        return _of_files(text, _below(text))
    if not glob.has_magic(text):
        return Place(text, kind_of(text), (text,))
    found = sorted(glob.glob(text, recursive=True))  # noqa: PTH207 - the glob may be absolute
    files = [name for name in found if Path(name).is_file()]
    if _known(text) and len(files) == len(found):
        return Place(text, kind_of(text), (text,), _partitions(files))
    if not found:
        return Place(text, kind_of(text), (text,))
    below = (_below(name) if Path(name).is_dir() else [name] for name in found if _is_data(name))
    return _of_files(text, [name for names in below for name in names])


def _is_data(name: str) -> bool:
    return Path(name).name[0] not in "._"


def _below(folder: str) -> list[str]:
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(filter(_is_data, folders))
        found += [str(Path(place) / name) for name in sorted(filter(_is_data, names))]
    return found


def _of_files(path: str, files: list[str]) -> Place:
    """Files that were listed; all must be of one kind."""
    kinds = {kind_of(name): name for name in reversed(files)}
    if len(kinds) != 1:
        got = "none" if not files else " and ".join(sorted(kinds.values()))
        step = f"name the files with a glob, such as '{path.rstrip('/')}/*.parquet'"
        raise FileError(Problem("files", f"in {path} must be of one kind", got, step))
    return Place(path, kind_of(files[0]), tuple(map(_escaped, files)), _partitions(files))


def _partitions(files: list[str]) -> tuple[str, ...]:
    """The keys of folders called key=value, if all files have the same."""
    keys = {
        tuple(part.split("=")[0] for part in Path(name).parts[:-1] if part.count("=") == 1)
        for name in files
    }
    found = keys.pop() if len(keys) == 1 else ()
    return found if all(found) else ()


def _escaped(path: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)


def _plain(path: str) -> str:
    lower = path.lower()
    for ending in _COMPRESSIONS:
        lower = lower.removesuffix(ending)
    return lower


def _known(path: str) -> bool:
    return Path(_plain(path)).suffix in _KINDS


def kind_of(path: str) -> str:
    """The kind of file, by its ending.

    Examples
    --------
    >>> kind_of("day.CSV.gz"), kind_of("day.ndjson"), kind_of("day.parquet")
    ('.csv', '.jsonl', '.parquet')
    """
    plain = _plain(path)
    kind = _KINDS.get(Path(plain).suffix)
    if kind is None or (kind == ".parquet" and plain != path.lower()):
        raise FileError(
            Problem(
                "file",
                f"must end in {ENDINGS}",
                repr(path),
                "convert the file, or load it into a frame and pass that",
            )
        )
    return kind


def compression_of(path: str) -> str:
    """How a file is compressed, in DuckDB's words."""
    return _COMPRESSIONS.get(Path(path.lower()).suffix, "none")
