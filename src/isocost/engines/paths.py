"""The files that a path stands for (one file, a glob, a directory, partitions), and their kind."""

from __future__ import annotations

import glob
import gzip
import os
import stat
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn

from isocost.atomic import check_regular, status_of
from isocost.checks import is_writable
from isocost.errors import FileError, Problem


@dataclass(frozen=True)
class Format:
    """A kind of file, and how DuckDB reads and writes it.

    Attributes
    ----------
    name : str
        What messages call it.
    endings : tuple of str
        The endings of its files; the first one is its key in :data:`FORMATS`.
    reader : str
        The table function, given the files and further options.
    writer : str
        The options of COPY.
    look : str
        Options for the first look at the columns.
    is_text : bool
        Whether every value is read as text.
    is_compressible : bool
        Whether files may be compressed as a whole.
    """

    name: str
    endings: tuple[str, ...]
    reader: str
    writer: str
    look: str = ""
    is_text: bool = False
    is_compressible: bool = True


# Only the delimiter is guessed: otherwise DuckDB would take # for a comment, skip odd lines, and
# miss quotes that come late.
_PLAINLY = "header = true, comment = '', quote = '\"', escape = '\"', skip = 0, all_varchar = true"


def _delimited(ending: str, delimiter: str = "") -> Format:
    """Lines of values with a delimiter between them; guessed if it is not given."""
    read, write = (
        (f"delim = '{delimiter}', ", f", DELIMITER '{delimiter}'") if delimiter else ("", "")
    )
    reader = f"read_csv({{files}}, {read}{_PLAINLY}{{options}})"
    return Format("CSV", (ending,), reader, f"FORMAT csv, HEADER{write}", is_text=True)


FORMATS = {
    form.endings[0]: form
    for form in (
        _delimited(".csv"),
        _delimited(".tsv", "\t"),
        Format(
            "JSON lines",
            (".jsonl", ".ndjson"),
            "read_json({files}, format = 'newline_delimited'{options})",
            "FORMAT json",
            # All lines of all files are sampled: a key that comes late would be lost, and a type
            # an error.
            look=", sample_size = -1, maximum_sample_files = -1",
        ),
        Format(
            "Parquet",
            (".parquet",),
            "read_parquet({files}{options})",
            "FORMAT parquet",
            is_compressible=False,
        ),
    )
}
"""Every kind of file, by its first ending."""

_KINDS = {ending: kind for kind, form in FORMATS.items() for ending in form.endings}

_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}

_TO_FILE = "save the data to a file; a command also reads CSV from standard input, as -"

_CHUNK = 2**20


@dataclass(frozen=True)
class FileSet:
    """Files of one kind.

    Attributes
    ----------
    path : str
        The path as it was passed.
    kind : str
        The key in :data:`FORMATS`, such as ".csv".
    patterns : tuple of str
        What DuckDB reads: globs, with special characters in names escaped.
    partitions : tuple of str
        The columns that come from folders such as ``sex=F``.
    is_many : bool
        Whether there may be several files.
    files : tuple of str
        The names of the files; empty if they are not on this machine.
    compression : str, optional
        DuckDB's name for the compression, if the path does not show it.
    """

    path: str
    kind: str
    patterns: tuple[str, ...]
    partitions: tuple[str, ...] = ()
    is_many: bool = True
    files: tuple[str, ...] = ()
    compression: str | None = None


def find_files(path: str | Path, name: str | None = None) -> FileSet:
    """The files of a path, a glob or a directory.

    ``name`` gives the ending of a file whose path has none, such as /dev/fd/3.

    An existing file is that file, even if its name looks like a glob.  In a directory all files
    below it count, except hidden ones and those whose name starts with an underscore, which
    writers such as Spark leave behind.  Globs are expanded here and not by DuckDB, which would
    also read hidden files.
    """
    text = str(path)
    check_encoding(text)
    if name is not None:
        zipped = compression_of(name)
        return FileSet(text, kind_of(name), (_escaped(text),), (), False, (text,), zipped)
    status = _status(text)
    if status is not None and stat.S_ISDIR(status.st_mode):
        return _of_files(text, _below(text))
    if status is not None:
        check_regular(text, status, "file", _TO_FILE)
        partitions = _partitions([text])
        return FileSet(text, kind_of(text), (_escaped(text),), partitions, False, (text,))
    if "://" in text:
        # DuckDB can read from elsewhere, with extensions that the user has installed.
        return FileSet(text, kind_of(text), (text,))
    matches = sorted(glob.glob(text, recursive=True))  # noqa: PTH207 - the glob may be absolute
    if not matches:
        kind_of(text)
        raise nothing_at(text)
    named = matches if _known(text) else filter(_is_data, matches)
    below = (_below(name) if Path(name).is_dir() else [str(Path(name))] for name in named)
    # With ** a file is matched by itself and in each folder above it.
    return _of_files(text, list(dict.fromkeys(name for names in below for name in names)))


def _status(text: str) -> os.stat_result | None:
    try:
        return status_of(text)
    except FileError:
        if glob.has_magic(text):
            # Too long for a file name, but not for a glob.
            return None
        raise


def nothing_at(path: str) -> FileError:
    """The error for a path without a file."""
    step = "check the path; put a glob in quotes so that the shell leaves it alone"
    return FileError(Problem("file", "must exist", f"nothing at {path!r}", step))


def check_encoding(path: str) -> None:
    """Raise if a path cannot be passed to DuckDB, which needs UTF-8."""
    if "\0" in path or not is_writable(path):
        step = "rename the file, or load it into a frame and pass that"
        raise FileError(Problem("file", "must have a name in UTF-8", repr(path)[:200], step))


def _is_data(name: str) -> bool:
    return not Path(name).name.startswith((".", "_"))


def _below(folder: str) -> list[str]:
    files = []
    for parent, folders, names in os.walk(folder, onerror=_cannot_list):
        folders[:] = sorted(filter(_is_data, folders))
        files += [str(Path(parent) / name) for name in sorted(filter(_is_data, names))]
    return files


def _cannot_list(error: OSError) -> NoReturn:
    step = "check your permissions, or name the files with a glob"
    got = f"{error.filename}: {error.strerror}"
    raise FileError(Problem("folder", "must be readable", got, step)) from error


def _of_files(path: str, files: list[str]) -> FileSet:
    """A set of listed files; all must be regular and of one kind."""
    for name in files:
        check_encoding(name)
        status = status_of(name)
        if status is None:
            raise nothing_at(name)
        check_regular(name, status, "file", _TO_FILE)
    kinds = {kind_of(name): name for name in reversed(files)}
    if len(kinds) != 1:
        got = "none" if not files else " and ".join(sorted(kinds.values()))
        step = f"name the files with a glob, such as '{path.rstrip('/')}/*.parquet'"
        raise FileError(Problem("files", f"in {path} must be of one kind", got, step))
    patterns = tuple(map(_escaped, files))
    return FileSet(path, kind_of(files[0]), patterns, _partitions(files), files=tuple(files))


def _partitions(files: list[str]) -> tuple[str, ...]:
    """The keys of folders named key=value, if they are the same for all files."""
    keys = {
        tuple(part.split("=")[0] for part in Path(name).parts[:-1] if part.count("=") == 1)
        for name in files
    }
    names = keys.pop() if len(keys) == 1 else ()
    return names if all(names) else ()


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
    """The kind of a file, from its ending.

    Examples
    --------
    >>> kind_of("day.CSV.gz"), kind_of("day.ndjson"), kind_of("day.parquet")
    ('.csv', '.jsonl', '.parquet')
    """
    plain = _plain(path)
    kind = _KINDS.get(Path(plain).suffix)
    if kind is None or (plain != path.lower() and not FORMATS[kind].is_compressible):
        step = "convert the file, or load it into a frame and pass that"
        raise FileError(Problem("file", f"must end in {_endings()}", repr(path), step))
    return kind


def _endings() -> str:
    """All endings, in words."""
    zipped, whole = (
        [end for form in FORMATS.values() if form.is_compressible is way for end in form.endings]
        for way in (True, False)
    )
    listed = f"{', '.join(zipped[:-1])} or {zipped[-1]}"
    return f"{listed} (also {' and '.join(_COMPRESSIONS)}), or {' or '.join(whole)}"


def compression_of(path: str) -> str:
    """DuckDB's name for the compression of a file."""
    # Not "none", which DuckDB before 2.0 does not accept for JSON.
    return _COMPRESSIONS.get(Path(path.lower()).suffix, "uncompressed")


def damage_of(path: str, compression: str | None = None) -> str | None:
    """What is wrong with a compressed file, if anything; DuckDB would not notice.

    It ignores the checksums of gzip, and reads truncated Zstandard up to the end.
    """
    check = {"gzip": _check_gzip, "zstd": _check_zstd}.get(compression or compression_of(path))
    try:
        if check is not None:
            with open(path, "rb") as file:  # noqa: PTH123 - as the path was given
                check(file)
    except (EOFError, zlib.error, OSError) as error:
        return str(error)
    return None


def _check_gzip(file: BinaryIO) -> None:
    with gzip.GzipFile(fileobj=file) as plain:
        while plain.read(_CHUNK):
            pass


def _check_zstd(file: BinaryIO) -> None:
    """Go from block to block (RFC 8878, section 3.1); DuckDB checks their content."""
    while magic := file.read(4):
        if magic[1:] == b"\x2a\x4d\x18" and magic[0] >> 4 == 5:
            _skip(file, _number(file, 4))
            continue
        if magic != b"\x28\xb5\x2f\xfd":
            raise EOFError(f"no Zstandard frame at byte {file.tell() - len(magic)}")
        descriptor = _number(file, 1)
        single, checksum = descriptor >> 5 & 1, descriptor >> 2 & 1
        size = (single, 2, 4, 8)[descriptor >> 6]
        _skip(file, (1 - single) + (0, 1, 2, 4)[descriptor & 3] + size)
        last = 0
        while not last:
            block = _number(file, 3)
            last, run = block & 1, block >> 1 & 3 == 1
            _skip(file, 1 if run else block >> 3)
        _skip(file, 4 * checksum)


def _number(file: BinaryIO, size: int) -> int:
    data = file.read(size)
    if len(data) < size:
        raise EOFError("Compressed file ended before the end of its last frame")
    return int.from_bytes(data, "little")


def _skip(file: BinaryIO, size: int) -> None:
    """Skip bytes; the last one is read, because seeking beyond the end does not fail."""
    if size:
        file.seek(size - 1, os.SEEK_CUR)
        _number(file, 1)
