"""Files that are written completely or not at all, and read with clear errors."""

from __future__ import annotations

import os
import stat
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from isocost.errors import FileError, IsocostWarning, Problem, setting

if sys.platform != "win32":
    import fcntl

MAX_TEXT_BYTES = 256 * 2**20

PART = ".isocost-part"
"""The ending of a file that is being written, which no reader takes for data."""

PERMISSIONS = "check the path and your permissions"

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def check_ending(path: str | Path, *endings: str) -> None:
    """Raise if a name has the ending of another kind of file; it may have no ending."""
    target = Path(path)
    if target.suffix and target.suffix.lower() not in endings:
        step = f"name it {target.with_suffix(endings[0])}"
        if target.suffix.lower() == ".pdf" and ".html" in endings:
            step += ", and print it to PDF in a browser"
        rule = f"must end in {' or '.join(endings)}"
        raise FileError(Problem("output", rule, str(target), step))


@contextmanager
def replacing(path: str | Path, *, force: bool = True) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; on success the file replaces that at ``path``.

    On any error, also Ctrl-C, the temporary file is removed and ``path`` is left unchanged.
    Unless ``force``, it is an error if another process has created ``path`` in the meantime.
    """
    target = Path(path)
    check_target(target, force)
    _remove_leftovers(target.parent)
    # File names are limited to 255 bytes.
    name = target.name.encode(errors="ignore")[:120].decode(errors="ignore")
    unique = f"{os.getpid()}-{os.urandom(8).hex()}"
    temporary = target.with_name(f".{name}.{unique}{PART}")
    lock = None
    try:
        # Inside, because Ctrl-C may come as soon as the file exists.
        lock = _create(temporary, target)
        yield temporary
        _publish(temporary, target, force)
    except BaseException as error:
        # What cannot be removed was never created: its folder does not exist, or is a file.
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and not isinstance(error, FileError):
            step = "free space, or choose another place"
            raise cannot("must be writable", target, error, step) from error
        raise
    finally:
        if lock is not None:
            os.close(lock)


def _create(temporary: Path, target: Path) -> int | None:
    """Create an empty, private file; the returned descriptor locks it until it is closed."""
    try:
        while True:
            file = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            locked = _locked(file, wait=True)
            # Another process may have removed it as a leftover before it was locked.
            if locked and os.fstat(file).st_nlink:
                return file
            os.close(file)
            if not locked:
                return None
    except OSError as error:
        raise cannot("must be writable", target, error, "choose a folder that exists") from error


def _locked(file: int, *, wait: bool) -> bool:
    """Lock a file; false if another process holds the lock, or if it must not be locked."""
    if sys.platform == "win32":
        return False
    # DuckDB locks the files it writes with fcntl.  On NFS and on macOS that conflicts with flock:
    # there files are written without our lock, and leftovers stay.
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(file, fcntl.LOCK_UN)
    except OSError:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)
        return False
    return True


def _remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of processes that were killed, and warn about each."""
    if sys.platform == "win32":
        return
    try:
        leftovers = sorted(folder.glob(f".*{PART}"))
    except OSError:
        # Creating the file will fail for the same reason, with a clear error.
        return
    for path in leftovers:
        with suppress(OSError), _opened(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK) as file:
            locked, status = _locked(file, wait=False), os.fstat(file)
            # Without a link it is already gone, and another file may have its name.
            if locked and stat.S_ISREG(status.st_mode) and status.st_nlink > 0:
                path.unlink()
                text = f"Removed {path}, which a run that was killed had left unfinished."
                warnings.warn(IsocostWarning(text), stacklevel=5)


def _publish(temporary: Path, target: Path, force: bool) -> None:
    """Rename a complete file, which is synced to disk before and its folder after."""
    status = status_of(target)
    if status is None:
        mask = os.umask(0)
        os.umask(mask)
    temporary.chmod(stat.S_IMODE(status.st_mode) if status else 0o666 & ~mask)
    with _opened(temporary, os.O_RDONLY) as file:
        os.fsync(file)
    check_target(target, force)
    if force:
        temporary.replace(target)
    else:
        _claim(temporary, target)
    # Not every file system can sync a folder.
    with suppress(OSError), _opened(target.parent, os.O_RDONLY) as folder:
        os.fsync(folder)


def _claim(temporary: Path, target: Path) -> None:
    """Rename a file, but never over one that was created in the meantime."""
    try:
        os.link(temporary, target)
    except FileExistsError as error:
        raise _taken(target) from error
    except OSError:
        # There are no hard links here: an empty file reserves the name.
        try:
            target.touch(0o600, exist_ok=False)
        except FileExistsError as error:
            raise _taken(target) from error
        try:
            temporary.replace(target)
        except BaseException:
            target.unlink()
            raise
    else:
        temporary.unlink()


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    file = os.open(path, flags)
    try:
        yield file
    finally:
        os.close(file)


def write_text(path: str | Path, text: str, *, force: bool = True) -> None:
    """Write text to a file, completely or not at all."""
    with replacing(path, force=force) as temporary:
        temporary.write_text(text, encoding="utf-8")


def read_text(path: str | Path) -> str:
    """Read a text file of at most 256 MiB."""
    source = Path(path)
    try:
        status = source.stat()
        check_regular(source, status, "file", "save it to a file first")
        if status.st_size > MAX_TEXT_BYTES:
            rule = f"must be at most {MAX_TEXT_BYTES // 2**20} MiB"
            got = f"{source} of {status.st_size // 2**20} MiB"
            step = "check that this is a rule or a tally, not data"
            raise FileError(Problem("file", rule, got, step))
        return source.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        step = "check that this is the right file"
        raise FileError(Problem("file", "must be UTF-8 text", str(source), step)) from error
    except FileError:
        raise
    except (OSError, ValueError) as error:
        raise cannot("must be readable", source, error, PERMISSIONS) from error


def status_of(path: str | Path) -> os.stat_result | None:
    """The status of a path, None if it does not exist; an error if that cannot be determined."""
    try:
        return Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise cannot("must be accessible", path, error, PERMISSIONS) from error


def check_regular(path: str | Path, status: os.stat_result, name: str, step: str) -> None:
    """Raise for a pipe, a socket, a device or a folder, which would block or be destroyed."""
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise FileError(Problem(name, "must be a regular file", f"{path}, {kind}", step))


def check_target(path: str | Path, force: bool, *endings: str) -> None:
    """Raise if a path to write to is taken: by a file unless ``force``, by others always.

    With ``endings``, its name must have one of them, or no ending.
    """
    if endings:
        check_ending(path, *endings)
    status = status_of(path)
    if status is not None:
        check_regular(path, status, "output", "choose another path for the output")
    if not force and os.path.lexists(path):
        raise _taken(path)


def _taken(path: str | Path) -> FileError:
    step = f"choose another path, or pass {setting('force', True)} to replace it"
    return FileError(Problem("output", "must not exist yet", str(path), step))


def cannot(rule: str, path: str | Path, error: Exception, step: str) -> FileError:
    """The error for a file that the system does not let one use."""
    # Characters outside UTF-8 could not be printed.
    shown = str(path).encode(errors="backslashreplace").decode().replace("\0", "\\0")
    if len(shown) > 200:
        shown = f"{shown[:100]}...{shown[-90:]}"
    if not isinstance(error, OSError):
        step = "remove null characters, and characters outside UTF-8"
    why = error.strerror if isinstance(error, OSError) else error
    return FileError(Problem("file", rule, f"{shown}: {why}", step))
