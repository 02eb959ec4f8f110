"""A real terminal of any width for tests: a pseudo-terminal with a window size."""

import fcntl
import os
import pty
import re
import struct
import termios
import threading

from tests.processes import finish, start

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(*arguments, columns=80, cwd=None, code=0, errors=True, **environment):
    """What the command writes to a terminal, its errors and bars among it."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    # These would be believed more than the terminal.
    said = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    terminal = os.ttyname(theirs)
    job = start(
        arguments,
        [terminal, terminal, terminal if errors else os.devnull],
        cwd,
        {**said, "TERM": "xterm-256color", **environment},
    )
    chunks = []
    reader = threading.Thread(target=_read_all, args=(ours, chunks))
    reader.start()
    exit_code = finish(job)
    os.close(theirs)
    reader.join()
    os.close(ours)
    text = b"".join(chunks).decode().replace("\r\n", "\n")
    assert exit_code == code, text
    return text


def _read_all(terminal, chunks):
    try:
        while chunk := os.read(terminal, 65536):
            chunks.append(chunk)
    except OSError:
        pass  # Linux says so when the other end is closed.


def without_escapes(text):
    return ESCAPE.sub("", text)
