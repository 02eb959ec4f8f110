"""Files that are written whole or not at all, and read with clear errors."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from isocost.errors import FileError, Problem

__all__ = ["MAX_TEXT_BYTES", "check_ending", "read_text", "replacing", "write_text"]

MAX_TEXT_BYTES = 256 * 2**20


def check_ending(path: str | Path, *endings: str) -> None:
    """Raise if a name promises another kind of file than is written; no ending promises nothing.

    Examples
    --------
    >>> check_ending("rule.JSON", ".json")
    >>> check_ending("rule", ".json")
    >>> check_ending("rule.csv", ".json")
    Traceback (most recent call last):
    ...
    isocost.errors.FileError: output: must end in .json
      got:  rule.csv
      next: name it rule.json
    """
    target = Path(path)
    if target.suffix and target.suffix.lower() not in endings:
        step = f"name it {target.with_suffix(endings[0])}"
        if target.suffix.lower() == ".pdf" and ".html" in endings:
            step += ", and print it to PDF in a browser"
        rule = f"must end in {' or '.join(endings)}"
        raise FileError(Problem("output", rule, str(target), step))


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside ``path``; on success it takes that place.

    Whatever goes wrong inside, also Ctrl-C, removes the temporary file and leaves what was
    at ``path`` as it was.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.stem}-{secrets.token_hex(8)}{target.suffix}")
    try:
        # Inside, because Ctrl-C may come as soon as the file is there.
        _create(temporary, target)
        yield temporary
        temporary.chmod(target.stat().st_mode if target.exists() else 0o666 & ~_umask())
        temporary.replace(target)
    except BaseException as error:
        # What cannot be removed was never there: a folder that does not exist, or is a file.
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and not isinstance(error, FileError):
            raise _cannot(
                "written", target, error, "free space, or choose another place"
            ) from error
        raise


def _create(temporary: Path, target: Path) -> None:
    """An empty file that nobody else may read."""
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise _cannot("written", target, error, "choose a folder that exists") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_text(path: str | Path, text: str) -> None:
    """Write text to a file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def read_text(path: str | Path) -> str:
    """Read a text file of at most 256 MiB."""
    source = Path(path)
    try:
        if source.stat().st_size > MAX_TEXT_BYTES:
            raise FileError(
                Problem(
                    "file",
                    f"must be at most {MAX_TEXT_BYTES // 2**20} MiB",
                    f"{source} of {source.stat().st_size // 2**20} MiB",
                    "check that this is a rule or a tally, not data",
                )
            )
        return source.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FileError(
            Problem("file", "must be UTF-8 text", str(source), "check that this is the right file")
        ) from error
    except FileError:
        raise
    except OSError as error:
        raise _cannot("read", source, error, "check the path and your permissions") from error


def _cannot(verb: str, path: Path, error: OSError, step: str) -> FileError:
    return FileError(
        Problem("file", f"must be one that can be {verb}", f"{path}: {error.strerror}", step)
    )
