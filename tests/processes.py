"""The command line in a process of its own each time, without waiting for imports each time.

A server that has imported the package forks a process for each command.  Arguments, streams, files
and exit codes are as real as from a shell, and a process starts in milliseconds, not in a second.
What belongs to starting (imports, signals meanwhile, pipes that close) is tested from a shell.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ISOCOST = str(Path(sys.executable).with_name("isocost"))

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    [
        "isocost.cli.app",
        "typer._adapters",
        "duckdb",
        "isocost.engines.lazy",
        "narwhals._duckdb.dataframe",
        "scipy.optimize",
        "scipy.stats",
        "isocost.page.report",
    ]
)


def run(*arguments, stdin="", cwd=None, env=None, timeout=120):
    """Run the command as ``subprocess.run`` would, with what it writes captured as text."""
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("in", "out", "error")]
        for stream, text in zip(streams, (stdin or "", "", ""), strict=True):
            stream.write_text(text)
        process = start(arguments, streams, cwd, env)
        code = finish(process, timeout)
        out, error = (stream.read_text() for stream in streams[1:])
    return subprocess.CompletedProcess(list(arguments), code, out, error)


def start(arguments, streams, cwd=None, env=None):
    """Start the command with these three files, or terminals, as its standard streams."""
    words, files = list(map(str, arguments)), list(map(str, streams))
    settings = (words, files, str(cwd or Path.cwd()), dict(env or os.environ))
    process = SERVER.Process(target=_become, args=settings)
    process.start()
    return process


def finish(process, timeout=120):
    """Wait for a process and return its exit code."""
    process.join(timeout)
    if process.is_alive():
        process.kill()
        raise TimeoutError(f"still running after {timeout} s")
    code = process.exitcode
    process.close()
    return code


def _become(arguments, files, cwd, env):
    """What the forked process does: take streams, folder and environment, and run the command."""
    for number, file in enumerate(files):
        opened = os.open(file, os.O_RDWR)
        os.dup2(opened, number)
        os.close(opened)
    streams = [os.fdopen(i, mode, closefd=False) for i, mode in enumerate("rww")]
    sys.stdin, sys.stdout, sys.stderr = streams
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = streams
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)

    from isocost.cli import main

    main(arguments)
