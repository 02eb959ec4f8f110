"""A real terminal of any width for tests: a pseudo-terminal with a window size."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

ISOCOST = str(Path(sys.executable).with_name("isocost"))

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(*arguments, columns=80, cwd=None, code=0, errors=True, **environment):
    """What the command writes to a terminal, its errors and bars among it."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    # These would be believed more than the terminal.
    said = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    job = subprocess.Popen(
        [ISOCOST, *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs if errors else subprocess.DEVNULL,
        cwd=cwd,
        env={**said, "TERM": "xterm-256color", **environment},
    )
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 65536):
            parts.append(part)
    except OSError:
        pass  # Linux says so when the other end is closed.
    os.close(ours)
    text = b"".join(parts).decode().replace("\r\n", "\n")
    assert job.wait(timeout=60) == code, text
    return text


def without_escapes(text):
    return ESCAPE.sub("", text)
