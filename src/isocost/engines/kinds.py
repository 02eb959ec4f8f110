"""Files before they are read: their kinds, which a path stands for, their encoding, the sheets.

Text in another encoding than UTF-8, and sheets of workbooks, are converted to temporary files,
because DuckDB's own ways are extensions that must be downloaded.
"""

from __future__ import annotations

import base64
import codecs
import csv
import glob
import gzip
import lzma
import math
import os
import re
import stat
import struct
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, BinaryIO, NoReturn, cast
from xml.parsers import expat

from isocost.atomic import PERMISSIONS, cannot, check_regular, status_of
from isocost.checks import check_kind, is_writable
from isocost.engines.columns import check_decimal
from isocost.errors import (
    FileError,
    IsocostError,
    Problem,
    UsageError,
    listing,
    require_package,
    setting,
)


@dataclass(frozen=True)
class Format:
    """A kind of file, and how DuckDB reads and writes it; ``name`` is for messages."""

    name: str
    # The first one is its key in FORMATS.
    endings: tuple[str, ...]
    # The table function, given the files and further options.
    reader: str
    # The options of COPY; empty if files of this kind are only read.
    writer: str
    # Options for the first look at the columns.
    look: str = ""
    # Every value is read as text.
    is_text: bool = False
    # Files may be compressed as a whole.
    is_compressible: bool = True
    # One of its sheets is converted to CSV first.
    is_workbook: bool = False


PLAINLY = "header = true, comment = '', quote = '\"', escape = '\"', skip = 0, all_varchar = true"
"""Only the delimiter is guessed: otherwise DuckDB would take # for a comment, skip odd lines, and
miss quotes that come late."""


def _delimited(ending: str, delimiter: str = "") -> Format:
    """Lines of values with a delimiter between them; guessed if it is not given."""
    read, write = (
        (f"delim = '{delimiter}', ", f", DELIMITER '{delimiter}'") if delimiter else ("", "")
    )
    reader = f"read_csv({{files}}, {read}{PLAINLY}{{options}})"
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
        replace(
            _delimited(".xlsx", ","),
            name="an Excel workbook",
            endings=(".xlsx", ".xlsm"),
            writer="",
            is_compressible=False,
            is_workbook=True,
        ),
    )
}
"""Every kind of file, by its first ending."""

_PANDAS = "python -c \"import pandas as pd; pd.{}.to_parquet('data.parquet')\""

FOREIGN = {
    ending: (name, line)
    for endings, name, line in (
        (".xls .xlsb", "an old Excel workbook", "save it as .xlsx"),
        (".ods", "an OpenDocument sheet", "soffice --headless --convert-to csv {}"),
        (".sas7bdat .xpt", "a SAS data set", _PANDAS.format("read_sas('{}')")),
        (".sav .zsav .por", "an SPSS file", _PANDAS.format("read_spss('{}')")),
        (".dta", "a Stata file", _PANDAS.format("read_stata('{}')")),
        (
            ".rds .rdata .rda",
            "an R object",
            "Rscript -e \"write.csv(readRDS('{}'), 'data.csv', row.names = FALSE)\"",
        ),
        (".feather .arrow .ipc", "an Arrow file", _PANDAS.format("read_feather('{}')")),
        (".orc", "an ORC file", _PANDAS.format("read_orc('{}')")),
        (".pkl .pickle", "a Python pickle", "data.to_parquet('data.parquet') where it was made"),
        (".h5 .hdf5 .hdf", "an HDF5 file", _PANDAS.format("read_hdf('{}')")),
        (".avro", "an Avro file", "duckdb -c \"COPY (FROM read_avro('{}')) TO 'data.parquet'\""),
        (
            ".db .sqlite .sqlite3",
            "an SQLite database",
            "sqlite3 -header -csv {} 'SELECT * FROM scores' > data.csv",
        ),
        (".zip .bz2 .xz .7z", "an archive", "unpack it; .gz and .zst can be read as they are"),
        (".txt .dat", "a text file", "rename it to data.csv if its first line has the names"),
    )
    for ending in endings.split()
}
"""Kinds of files that are not read, and the line that converts each, by ending."""

_KINDS = {ending: kind for kind, form in FORMATS.items() for ending in form.endings}

_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}

_TO_FILE = "save the data to a file; a command also reads CSV from standard input, as -"

_CHUNK = 2**18


@dataclass(frozen=True)
class FileSet:
    """Files of one kind, a key of :data:`FORMATS`, and the path as it was passed.

    ``patterns`` are for DuckDB: globs, with special characters in names escaped.  ``partitions``
    are the columns that come from folders such as ``sex=F``.  ``files`` is empty if they are not on
    this machine, and ``compression`` is DuckDB's name for it, if the path does not show it.
    """

    path: str
    kind: str
    patterns: tuple[str, ...]
    partitions: tuple[str, ...] = ()
    is_many: bool = True
    files: tuple[str, ...] = ()
    compression: str | None = None

    def compression_of(self, file: str) -> str:
        """DuckDB's name for the compression of one of the files."""
        return self.compression or compression_of(file)


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
        return FileSet(text, kind_of(name), (glob.escape(text),), (), False, (text,), zipped)
    try:
        status = status_of(text)
    except FileError:
        # Too long for a file name, but perhaps not for a glob.
        if not glob.has_magic(text):
            raise
        status = None
    if _is_folder(status):
        return _of_files(text, _below(text))
    if status is not None:
        check_regular(text, status, "file", _TO_FILE)
        partitions = _partitions([text])
        return FileSet(text, kind_of(text), (glob.escape(text),), partitions, False, (text,))
    if "://" in text:
        # DuckDB can read from elsewhere, with extensions that the user has installed.
        return FileSet(text, kind_of(text), (text,))
    matches = sorted(glob.glob(text, recursive=True))  # noqa: PTH207 - the glob may be absolute
    if not matches:
        folder = next(folder for folder in Path(text).parents if not glob.has_magic(str(folder)))
        try:
            os.scandir(folder).close()
        except PermissionError as error:
            _cannot_list(error)
        except OSError:
            pass
        kind_of(text)
        raise nothing_at(text)
    named = matches if Path(_plain(text)).suffix in _KINDS else filter(_is_data, matches)
    below = (_below(name) if _is_folder(status_of(name)) else [str(Path(name))] for name in named)
    # With ** a file is matched by itself and in each folder above it.
    return _of_files(text, list(dict.fromkeys(name for names in below for name in names)))


def _is_folder(status: os.stat_result | None) -> bool:
    return status is not None and stat.S_ISDIR(status.st_mode)


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
    patterns = tuple(map(glob.escape, files))
    return FileSet(path, kind_of(files[0]), patterns, _partitions(files), files=tuple(files))


def _partitions(files: list[str]) -> tuple[str, ...]:
    """The keys of folders named key=value, if they are the same for all files."""
    keys = {
        tuple(part.split("=")[0] for part in Path(name).parts[:-1] if part.count("=") == 1)
        for name in files
    }
    names = keys.pop() if len(keys) == 1 else ()
    return names if all(names) else ()


def _plain(path: str) -> str:
    lower = path.lower()
    for ending in _COMPRESSIONS:
        lower = lower.removesuffix(ending)
    return lower


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
        got, step = repr(path), "convert the file, or load it into a frame and pass that"
        for ending in (Path(plain).suffix, Path(path.lower()).suffix):
            if ending in FOREIGN:
                name, line = FOREIGN[ending]
                step = f"convert it: {line.replace('{}', Path(path).name)}"
                got = f"{path!r}, {name}"
        zipped = [end for form in FORMATS.values() if form.is_compressible for end in form.endings]
        whole = [end for end in _KINDS if end not in zipped]
        endings = f"{', '.join(zipped[:-1])} or {zipped[-1]} (also {' and '.join(_COMPRESSIONS)})"
        rule = f"must end in {endings}, or {' or '.join(whole)}"
        raise FileError(Problem("file", rule, got, step))
    return kind


def compression_of(path: str) -> str:
    """DuckDB's name for the compression of a file."""
    # Not "none", which DuckDB before 2.0 does not accept for JSON.
    return _COMPRESSIONS.get(Path(path.lower()).suffix, "uncompressed")


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


ARROW_SCHEMA, _DURATION = b"ARROW:schema", 18
"""Where Parquet files keep Arrow's schema, and Arrow's number for the type of time spans."""


def durations_of(schema: bytes) -> list[str]:
    """Columns that are time spans in a schema of Arrow; none if the schema cannot be read.

    The schema is a flatbuffer (arrow/format/Schema.fbs), in base64.  A table starts with the way
    back to the places of its slots; a slot holds a value, or the way to one.
    """

    def number(form: str, at: int) -> int:
        return int(struct.unpack_from(f"<{form}", data, at)[0])

    def slot(table: int, index: int) -> int:
        places = table - number("i", table)
        step = number("H", places + 4 + 2 * index) if 4 + 2 * index < number("H", places) else 0
        if not step:
            raise IndexError(f"no slot {index}")
        return table + step

    def there(at: int) -> int:
        return at + number("I", at)

    try:
        data = base64.b64decode(schema)
        data = data[8 if data.startswith(b"\xff" * 4) else 4 :]
        columns = there(slot(there(slot(there(0), 2)), 1))
        names = []
        for index in range(number("I", columns)):
            column = there(columns + 4 + 4 * index)
            if data[slot(column, 2)] == _DURATION:
                name = there(slot(column, 0))
                names.append(data[name + 4 : name + 4 + number("I", name)].decode())
    except (ValueError, IndexError, struct.error):
        return []
    return names


WESTERN = "windows-1252"
"""What text that is not UTF-8 is read as, if it can be."""

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""The encodings that a file names in its first bytes; the longer marks come first."""

_HEAD = 2**12


@dataclass(frozen=True)
class Converted:
    """Files that DuckDB reads in place of others, whose names are the values of ``names``.

    ``guessed`` is "encoding" if that was neither asked for nor named in the files.  ``doubt`` is
    the reason if DuckDB does not accept the text as UTF-8.  The folder is deleted with this object
    at the latest.
    """

    file_set: FileSet
    names: Mapping[str, str]
    encoding: str | None = None
    sheet: str | None = None
    guessed: str | None = None
    doubt: Problem | None = None
    folder: Any = None


def converted(file_set: FileSet, encoding: str | None, sheet: str | None) -> Converted:
    """The files as DuckDB can read them: workbooks as CSV, other encodings as UTF-8."""
    form = FORMATS[file_set.kind]
    is_utf8 = encoding is not None and codecs.lookup(encoding).name in (
        "utf-8",
        "utf-8-sig",
        "ascii",
    )
    why = {
        "encoding": "",
        "sheet": "" if form.is_workbook else "only workbooks (.xlsx) have sheets",
    }
    if form.is_workbook or not form.is_compressible:
        why["encoding"] = f"{'a workbook' if form.is_workbook else form.name} has none"
    elif not file_set.files and not is_utf8:
        why["encoding"] = "only files of this machine have one"
    for name, value in (("encoding", encoding), ("sheet", sheet)):
        if value is not None and why[name]:
            got, rule = f"{value!r} for {file_set.path}", f"must be left out: {why[name]}"
            raise UsageError(Problem(name, rule, got, "leave it out"))
    if form.is_workbook:
        return _sheets(file_set, sheet)
    if not form.is_compressible or not file_set.files:
        return Converted(file_set, {})
    if encoding is not None and not is_utf8:
        return _transcoded(file_set, encoding)
    marked = {_marked(file_set, name) for name in file_set.files if encoding is None} - {None}
    if len(marked) == 1:
        return _transcoded(file_set, str(marked.pop()))
    # All files are read to the end, because DuckDB would not notice if one is damaged.
    odd = [one for name in file_set.files if (one := _other_text(file_set, name)) is not None]
    if odd and encoding is None and isinstance(odd[0], str):
        return replace(_transcoded(file_set, odd[0]), guessed="encoding")
    got, step = file_set.path, f"name it with {setting('encoding')}, or save it as UTF-8"
    if encoding is not None:
        got, step = f"{got}, which is not", f"leave out {setting('encoding')} to have it found"
    doubt = Problem("file", "must be text in UTF-8", got, step)
    if odd and encoding is None and isinstance(odd[0], Problem):
        # Perhaps in a column that is not used.
        doubt = odd[0]
    return Converted(file_set, {}, doubt=doubt)


@contextmanager
def _opened(file_set: FileSet, path: str) -> Iterator[BinaryIO]:
    """A file, unpacked if it is gzip; an error names it if it is damaged."""
    try:
        file = open(path, "rb")  # noqa: PTH123, SIM115 - as the path was given; closed below
    except OSError as error:
        raise cannot("must be readable", path, error, PERMISSIONS) from error
    with file:
        is_gzip = file_set.compression_of(path) == "gzip"
        try:
            yield cast(BinaryIO, gzip.GzipFile(fileobj=file)) if is_gzip else file
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise unreadable(file_set.kind, f"{path}: {error}") from error


def unreadable(kind: str, got: str) -> FileError:
    """The error for a file that is not of its kind, or damaged."""
    rule = f"must be readable as {FORMATS[kind].name}"
    step = "check that the file has the right ending and is complete"
    return FileError(Problem("file", rule, got, step))


def _marked(file_set: FileSet, path: str) -> str | None:
    """The encoding that a byte order mark names; None without one, as in UTF-8."""
    if file_set.compression_of(path) == "zstd":
        return None
    with _opened(file_set, path) as file:
        head = file.read(_HEAD)
    for mark, encoding in _MARKS.items():
        if head.startswith(mark):
            return encoding
    if head.count(0) > len(head) // 4:
        # In UTF-16, Latin letters have a zero byte: the second one if it is little-endian.
        likely = "utf-16-le" if head[1::2].count(0) > head[::2].count(0) else "utf-16-be"
        step = f"pass {setting('encoding', likely)}, or save it as UTF-8"
        got = f"{path}, which looks like UTF-16 without a byte order mark"
        raise FileError(Problem("file", "must be text in a known encoding", got, step))
    return None


def _other_text(file_set: FileSet, path: str) -> str | Problem | None:
    """None if a file is text in UTF-8, or else its encoding; the problem if that is unknown."""
    decoder, position, is_ascii = codecs.getincrementaldecoder("utf-8")(), 0, True
    odd: tuple[int, int] | None = None
    with _opened(file_set, path) as file:
        if file_set.compression_of(path) == "zstd":
            _check_zstd(file)
            return _zstd_problem(path)
        while chunk := file.read(_CHUNK):
            waiting = len(decoder.getstate()[0])
            if odd is None and (waiting or not chunk.isascii()):
                try:
                    is_ascii &= decoder.decode(chunk).isascii()
                except UnicodeDecodeError as error:
                    is_ascii &= error.object[: error.start].isascii()
                    odd = position - waiting + error.start, error.object[error.start]
            position += len(chunk)
    if odd is None:
        return None
    if not is_ascii:
        got = f"{path}: UTF-8 up to byte {odd[0]:,}, and then 0x{odd[1]:02X}, which is not"
        step = f"save the file in one encoding, or name it with {setting('encoding')}"
        return Problem("file", "must be text in one encoding", got, step)
    what = ""
    try:
        with _opened(file_set, path) as file:
            for text in _texts(file, WESTERN):
                control = next((c for c in text if c < " " and c not in "\t\n\r\f\x1a"), None)
                if control is not None:
                    what = f"the control character 0x{ord(control):02X}"
                    break
    except UnicodeDecodeError as error:
        what = f"the byte 0x{error.object[error.start]:02X}"
    if not what:
        return WESTERN
    step = f"pass its encoding, for example {setting('encoding', 'cp850')}; or save it as UTF-8"
    got = f"{path}: {what}, which neither has"
    return Problem("file", "must be text in UTF-8 or Windows-1252", got, step)


def _zstd_problem(path: str) -> Problem:
    rule, step = "must be UTF-8, because it is compressed by Zstandard", "decompress it first"
    return Problem("file", rule, path, step)


def _texts(file: BinaryIO, encoding: str) -> Iterator[str]:
    """The text of a file, piece by piece."""
    decoder = codecs.getincrementaldecoder(encoding)()
    while chunk := file.read(_CHUNK):
        yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)


def _transcoded(file_set: FileSet, encoding: str) -> Converted:
    """Copies of files in UTF-8; memory does not grow with their size."""

    def write(path: str, target: Path) -> None:
        if file_set.compression_of(path) == "zstd":
            raise FileError(_zstd_problem(path))
        try:
            with _opened(file_set, path) as file, target.open("wb") as copy:
                for text in _texts(file, encoding):
                    copy.write(text.removeprefix("\ufeff").encode())
        except UnicodeError as error:
            rule = f"must be text in {encoding}"
            step = "name another encoding, or leave it out: UTF-8 and Windows-1252 are found"
            raise FileError(Problem("file", rule, f"{path}: {error}"[:300], step)) from error

    return _copied(file_set, write, file_set.kind, encoding=encoding)


def _copied(file_set: FileSet, write: Any, ending: str, **how: Any) -> Converted:
    """Copies of all files, in folders of the same partitions."""
    folder = tempfile.TemporaryDirectory(prefix="isocost-", ignore_cleanup_errors=True)
    names: dict[str, str] = {}
    try:
        for index, path in enumerate(file_set.files):
            keys = [part for part in Path(path).parts[:-1] if part.count("=") == 1]
            # Sorted as the files are, so that rows keep their order.
            target = Path(folder.name, f"{index:06}", *keys, f"data{ending}")
            target.parent.mkdir(parents=True)
            write(path, target)
            names[str(target)] = path
    except OSError as error:
        folder.cleanup()
        if isinstance(error, FileError):
            raise
        if isinstance(error, PermissionError) and error.filename == path:
            raise cannot("must be readable", path, error, PERMISSIONS) from error
        rule = "must be readable, and its copy fit into the temporary folder"
        step = "free space there, or set TMPDIR to another folder"
        raise FileError(Problem("file", rule, f"{error}"[:300], step)) from error
    except BaseException:
        folder.cleanup()
        raise
    patterns = tuple(map(glob.escape, names))
    plain = "uncompressed" if file_set.compression else None
    new = replace(file_set, patterns=patterns, files=tuple(names), compression=plain)
    return Converted(new, names, folder=folder, **how)


_DAMAGED = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, expat.ExpatError, EOFError, ValueError,
    NotImplementedError, RuntimeError,
)  # fmt: skip
"""What a damaged archive, an encrypted one, or a damaged part of one raises."""

_CALAMINE = "needs the package python-calamine", 'pip install "isocost[excel]"'


_MOST_BYTES, _MOST_CELLS = 2**30, 2**25
"""Limits of a workbook: what it may unpack to, and the rectangle that its cells may span.  The
reader keeps texts in memory, and 32 bytes for each place of the rectangle, empty or not."""

_WORKBOOKS = {"xl/workbook.xml", "xl/workbook.bin", "content.xml"}
"""The parts by which the reader knows .xlsx, .xlsb and .ods."""

_REFERENCE = re.compile("([A-Za-z]{1,7})([0-9]{1,10})")

_UNPLACED = re.compile(rb"<(?:[^\s<>/:]+:)?c(?!\s+r=[\"'][A-Z]{1,3}[0-9]{1,7}[\"'])[\s/>]")
"""A cell that does not begin with its reference, as cells of every usual program do."""

_FAR = [
    re.compile(rb"\sr=[\"'](?:[A-Z]{2}|[A-Z]?[0-9]{7})"),
    re.compile(rb"\sr=[\"'](?:[A-Z]{3}|[A-Z]?[A-Z]?[0-9]{5})"),
]
"""References beyond 26 columns or 999,999 rows, and beyond 702 columns or 9,999 rows: a sheet
without one or the other is within the limit."""


def _check_workbook(path: str) -> None:
    """Raise unless a file is an .xlsx workbook that can be read within the limits.

    Parts are unpacked piece by piece here: a small file may hold gigabytes, or one far cell, and
    the reader would take the memory for them or abort the process.
    """
    with zipfile.ZipFile(path) as book, open(path, "rb") as file:  # noqa: PTH123
        names = {part.filename.lower().replace("\\", "/") for part in book.infolist()}
        if file.read(2) != b"PK" or names & _WORKBOOKS != {"xl/workbook.xml"}:
            raise zipfile.BadZipFile("not an .xlsx workbook")
        left = _MOST_BYTES
        for part in book.infolist():
            # What it says about its size need not be true.
            part.file_size = sys.maxsize
            is_sheet, is_unplaced, is_far = False, False, [False, False]
            with book.open(part) as content:
                for piece in _pieces(content):
                    left -= len(piece)
                    if left < 0:
                        rule = f"must unpack to at most {_MOST_BYTES // 2**20:,} MiB"
                        raise FileError(Problem("file", rule, f"{path}, which is larger", _AS_CSV))
                    # Only below this element are there cells.
                    is_sheet = is_sheet or b"sheetData" in piece
                    is_unplaced = is_unplaced or _UNPLACED.search(piece) is not None
                    is_far = [is_far[i] or _FAR[i].search(piece) is not None for i in range(2)]
            if is_sheet and (is_unplaced or all(is_far)):
                with book.open(part) as content:
                    _check_cells(path, content)


_AS_CSV = "save the sheet as CSV, without what is outside the table"


def _pieces(content: IO[bytes]) -> Iterator[bytes]:
    """The bytes of a part in pieces that do not end inside a tag; very long ones overlap."""
    rest = b""
    while chunk := content.read(_CHUNK):
        rest += chunk
        end = rest.rfind(b">") + 1
        if end or len(rest) > _CHUNK:
            yield rest[:end] if end else rest
            rest = rest[end:] if end else rest[-20:]
    yield rest


def _check_cells(path: str, content: IO[bytes]) -> None:
    """Raise if the cells of a sheet that hold something span too large a rectangle."""
    row = column = right = bottom = 0
    left = top = sys.maxsize

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal row, column, left, right, top, bottom
        name, place = name.rpartition(":")[2], attributes.get("r")
        if name == "row":
            row, column = row + 1 if place is None else int(place), 0
        elif name == "c":
            # Without a reference it is the next one.
            column += 1
            if place is not None:
                match = _REFERENCE.fullmatch(place)
                if match is None:
                    raise ValueError(f"a cell called {place[:80]!r}")
                row, column = int(match[2]), 0
                for letter in match[1].upper():
                    column = 26 * column + ord(letter) - 64
        elif name in ("v", "is"):
            left, right = min(left, column), max(right, column)
            top, bottom = min(top, row), max(bottom, row)

    def refuse(*_: object) -> NoReturn:
        raise ValueError("a document type, which no workbook has")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.StartDoctypeDeclHandler = start, refuse
    parser.ParseFile(content)
    height, width = max(bottom - top + 1, 0), max(right - left + 1, 0)
    if height * width > _MOST_CELLS:
        rule = f"must have sheets whose cells span at most {_MOST_CELLS:,} places"
        got = f"{path}: a sheet of {height:,} rows and {width:,} columns"
        raise FileError(Problem("file", rule, got, _AS_CSV))


def _sheets(file_set: FileSet, sheet: str | None) -> Converted:
    """The rows of a sheet of each workbook as CSV."""
    calamine = require_package("python_calamine", "an Excel workbook", *_CALAMINE)
    chosen: list[str] = []

    def write(path: str, target: Path) -> None:
        try:
            _check_workbook(path)
            # As a file, because the path of an upload has no ending.
            with open(path, "rb") as file:  # noqa: PTH123 - as the path was given
                book = calamine.CalamineWorkbook.from_filelike(file)
                name = _sheet_of(book, path, sheet)
                rows = book.get_sheet_by_name(name).iter_rows()
            chosen.append(name)
            with target.open("w", encoding="utf-8", newline="") as copy:
                csv.writer(copy).writerows([_cell(value) for value in row] for row in rows)
        except IsocostError:
            raise
        except (calamine.CalamineError, *_DAMAGED) as error:
            step = "check that the file has the right ending and is complete"
            got = f"{path}: {error}"[:300]
            problem = Problem("file", "must be readable as an Excel workbook", got, step)
            raise FileError(problem) from error

    copies = _copied(file_set, write, ".csv")
    return replace(copies, sheet=chosen[0] if chosen else sheet)


def sheet_names(path: str | Path) -> list[str]:
    """The sheets of a workbook that can be read."""
    calamine = require_package("python_calamine", "an Excel workbook", *_CALAMINE)
    with Path(path).open("rb") as file:
        return [str(name) for name in calamine.CalamineWorkbook.from_filelike(file).sheet_names]


def _sheet_of(book: Any, path: str, sheet: str | None) -> str:
    """The sheet to read: the one that is named, or the only one with rows."""
    names = [str(name) for name in book.sheet_names]
    if sheet is not None:
        if sheet not in names:
            got = f"{sheet!r}, and the sheets of {path} are {listing(map(repr, names))}"
            step = "name one of these"
            raise UsageError(Problem("sheet", "must name a sheet of the workbook", got, step))
        return sheet
    full = [name for name in names if book.get_sheet_by_name(name).height > 1]
    if len(full) != 1:
        got = f"{path} has {len(full)} with rows: {listing(map(repr, full))}"
        step = f"pass {setting('sheet', full[0] if full else 'Sheet1')}, for example"
        if not full:
            got, step = f"{path} has none with rows", "save the rows below one line of names"
        rule = "must be named, unless only one sheet has rows"
        raise UsageError(Problem("sheet", rule, got, step))
    return full[0]


def _cell(value: Any) -> Any:
    """A cell as CSV has it; a workbook holds every number as a double."""
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if is_whole else value


_LEAST, _EACH = 1024, 256
"""The default memory limit in MiB: at least the first, and the second for each thread."""

_SIZE = re.compile(r"\s*(\d{1,20}(?:\.\d{1,20})?)\s*([KMGT]i?B)\s*", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class FileReading:
    """Settings for reading and writing files, as in :func:`isocost.tally` and ``apply_file``.

    What is left out is detected, or the usual way.
    """

    decimal: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    memory_limit: str | None = None
    threads: int | None = None
    keep_order: bool = True

    def __post_init__(self) -> None:
        check_decimal(self.decimal)
        try:
            known = self.encoding is None or codecs.lookup(self.encoding)._is_text_encoding
        except (LookupError, TypeError, ValueError):
            known = False
        if not known:
            rule = "must be the name of a text encoding"
            step = "use utf-8, utf-16, windows-1252 or latin-1, or leave it out"
            raise UsageError(Problem("encoding", rule, repr(self.encoding)[:80], step))
        if self.sheet is not None:
            step = "use the name on its tab"
            check_kind("sheet", self.sheet, str, "must be the name of a sheet", step)
        limit, threads = self.memory_limit, self.threads
        match = _SIZE.fullmatch(limit) if isinstance(limit, str) else None
        base = 1024.0 if match and "i" in match[2].lower() else 1000.0
        size = float(match[1]) * base ** " KMGT".index(match[2][0].upper()) if match else 0.0
        # What DuckDB accepts.
        if limit is not None and not 1e6 <= size <= 1e15:
            rule = "must be a number with a unit (KB, MB, GB or TB), from 1MB to 1000TB"
            raise UsageError(Problem("memory_limit", rule, repr(limit)[:80], 'use "512MB"'))
        whole = isinstance(threads, int) and not isinstance(threads, bool)
        if threads is not None and not (whole and 1 <= threads <= 4096):
            rule = "must be a whole number from 1 to 4096"
            raise UsageError(Problem("threads", rule, repr(threads), "leave it out for all cores"))

    def connect(self) -> Any:
        """A connection to a database in memory, which spills to the temporary folder."""
        import duckdb

        # DuckDB's default is .tmp in the working directory.
        spill = Path(tempfile.gettempdir()) / f"isocost-{os.getpid()}-{os.urandom(4).hex()}"
        options: dict[str, Any] = {
            "autoinstall_known_extensions": "false",
            "temp_directory": str(spill),
            "preserve_insertion_order": "true" if self.keep_order else "false",
        }
        if self.memory_limit is not None:
            options["memory_limit"] = self.memory_limit.strip()
        if self.threads is not None:
            options["threads"] = str(self.threads)
        connection = duckdb.connect(config=options)
        if self.memory_limit is None:
            # DuckDB's default is four fifths of the memory.
            usual = f"{max(_LEAST, _EACH * int(_setting(connection, 'threads')))} MiB"
            if _size(usual) < _size(_setting(connection, "memory_limit")):
                connection.execute(f"SET memory_limit = '{usual}'")
        return connection

    def relax(self, connection: Any) -> bool:
        """Raise the default limit to DuckDB's own; false if that changes nothing."""
        if self.memory_limit is not None:
            return False
        import duckdb

        before = _size(_setting(connection, "memory_limit"))
        # Not RESET, after which DuckDB 1.3 has no limit at all.
        with duckdb.connect() as fresh:
            most = min(_size(_setting(fresh, "memory_limit")), _memory())
        if before < most:
            connection.execute(f"SET memory_limit = '{most / 2**10:.0f} KiB'")
        return before < _size(_setting(connection, "memory_limit"))


def _setting(connection: Any, name: str) -> str:
    return str(connection.execute(f"SELECT current_setting('{name}')").fetchall()[0][0])


def _size(text: str) -> float:
    """A size as DuckDB prints it, such as 1.5 GiB, in bytes."""
    number, unit = text.split()
    return float(number) * 1024.0 ** max(" KMGTPE".find(unit[0]), 0)


def _memory() -> float:
    """Four fifths of the machine's memory in bytes, or infinity where it cannot be asked.

    DuckDB takes as much by itself, but before 1.4 it takes petabytes in a container without a
    limit, and cannot read that number back.
    """
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return math.inf
    return 0.8 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
