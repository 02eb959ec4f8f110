"""Put real output into the Markdown pages: python tools/refresh_docs.py [--check] [--peer PYTHON].

A comment `<!-- output: COMMAND -->` is followed by a code block that holds what the command prints
in a folder with data.csv, the built-in COMPAS rows.  The page of measures is made from their table.

A comment `<!-- printed -->` after a block of Python is followed by what that block prints; the
blocks of a page share their names.  Blocks marked ```py and `<!-- printed by NAME -->` need the
library NAME, which the environment of development lacks.  They are left as they are; with --peer,
the Python of an environment that has it, they are made again and nothing else is.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import measures_page

from isocost.examples import compas_csv

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests import processes  # noqa: E402

BLOCK = re.compile(r"<!-- output: (?P<command>[^\n]+?) -->\n(\n```text\n.*?\n```\n)?", re.DOTALL)

PRINTED = re.compile(
    r"(?P<block>```(?P<kind>python|py)\n(?P<code>.*?)```\n)"
    r"(?P<mark>\n<!-- printed(?: by (?P<maker>[\w-]+)[^\n]*)? -->\n(\n```text\n.*?\n```\n)?)?",
    re.DOTALL,
)
RUN = """
import contextlib, io, json, logging, sys, warnings
warnings.simplefilter("ignore")
logging.disable()
names, printed = {}, []
for code in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, names)
    printed.append(out.getvalue())
json.dump(printed, sys.__stdout__)
"""
HAS = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def write_data(folder: Path) -> None:
    """The data.csv that isocost demo --data leaves."""
    (folder / "data.csv").write_text(compas_csv())


def output_of(command: str, folder: Path) -> str:
    done = processes.run(*command.split()[1:], cwd=folder)
    text = done.stdout + done.stderr
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())


def refreshed(text: str, folder: Path) -> str:
    """The page with every output block made anew."""

    def block(match: re.Match[str]) -> str:
        command = match["command"]
        shown = output_of(command, folder)
        return f"<!-- output: {command} -->\n\n```text\n$ {command}\n{shown}\n```\n"

    return BLOCK.sub(block, text)


def with_printed(text: str, folder: Path, kind: str, python: str) -> str:
    """The page with what its blocks of one kind print."""
    codes = [match["code"] for match in PRINTED.finditer(text) if match["kind"] == kind]
    makers = {match["maker"] for match in PRINTED.finditer(text) if match["kind"] == kind}
    if not any(match["mark"] for match in PRINTED.finditer(text) if match["kind"] == kind):
        return text
    said = {None: "printed"}
    for maker in makers - {None}:
        found = _run(python, HAS, maker, folder=folder)
        if found is None:
            return text
        said[maker] = f"printed by {maker} {found.strip()}"
    answer = _run(python, RUN, folder=folder, given=json.dumps(codes))
    if answer is None:
        raise SystemExit(f"an example fails: {codes[0][:60]!r} ...")
    printed = iter(json.loads(answer))

    def block(match: re.Match[str]) -> str:
        if match["kind"] != kind:
            return match[0]
        shown = next(printed)
        if not match["mark"]:
            return match[0]
        lines = "\n".join(line.rstrip() for line in shown.rstrip().splitlines())
        mark = f"<!-- {said[match['maker']]} -->"
        return f"{match['block']}\n{mark}\n\n```text\n{lines}\n```\n"

    return PRINTED.sub(block, text)


def _run(python: str, code: str, *arguments: str, folder: Path, given: str = "") -> str | None:
    """What Python code prints in the folder; None if it fails."""
    command = [python, "-c", code, *arguments]
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, cwd=folder, check=False
    )
    if done.returncode and given:
        print(done.stderr, file=sys.stderr)
    return done.stdout if done.returncode == 0 else None


def main() -> int:
    check = "--check" in sys.argv
    peer = sys.argv[sys.argv.index("--peer") + 1] if "--peer" in sys.argv else None
    stale = []
    with tempfile.TemporaryDirectory() as name:
        write_data(Path(name))
        for page in pages():
            before = page.read_text()
            if peer is not None:
                after = with_printed(before, Path(name), "py", peer)
            else:
                after = refreshed(before, Path(name))
                after = with_printed(after, Path(name), "python", sys.executable)
            if after != before:
                stale.append(page.name)
                if not check:
                    page.write_text(after)
    for path, text in measures_page.files().items():
        if not path.exists() or path.read_text() != text:
            stale.append(path.name)
            if not check:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
    if stale:
        print(("stale: " if check else "refreshed: ") + ", ".join(stale))
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
