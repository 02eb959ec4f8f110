"""Put the real output of commands into the Markdown pages: python tools/refresh_docs.py [--check].

A comment `<!-- output: COMMAND -->` is followed by a code block that holds what the command prints
in a folder with data.csv, the built-in COMPAS rows.  The page of measures is made from their table.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import measures_page

from isocost.examples import compas_rows

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"<!-- output: (?P<command>[^\n]+?) -->\n(\n```text\n.*?\n```\n)?", re.DOTALL)


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def write_data(folder: Path) -> None:
    """The built-in rows as data.csv."""
    columns = {name: values.tolist() for name, values in compas_rows().items()}
    lines = [",".join(columns)]
    lines += [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    (folder / "data.csv").write_text("\n".join(lines) + "\n")


def output_of(command: str, folder: Path) -> str:
    executable = Path(sys.executable).with_name(command.split()[0])
    done = subprocess.run(
        [str(executable), *command.split()[1:]],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    text = done.stdout + done.stderr
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())


def refreshed(text: str, folder: Path) -> str:
    """The page with every output block made anew."""

    def block(match: re.Match[str]) -> str:
        command = match["command"]
        shown = output_of(command, folder)
        return f"<!-- output: {command} -->\n\n```text\n$ {command}\n{shown}\n```\n"

    return BLOCK.sub(block, text)


def main() -> int:
    check = "--check" in sys.argv
    stale = []
    with tempfile.TemporaryDirectory() as name:
        write_data(Path(name))
        for page in pages():
            before = page.read_text()
            after = refreshed(before, Path(name))
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
