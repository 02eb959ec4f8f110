"""What the pages say is what happens: examples run, outputs are those of the commands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from isocost.repairs.table import REPAIRS
from isocost.verdict.judgement import ANSWERS, QUESTIONS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def runs_elsewhere(page):
    """True if the examples run when outputs that stand in the page are made again."""
    return "<!-- printed -->" in page.read_text()


@pytest.mark.parametrize(
    "page", [p for p in PAGES if blocks(p) and not runs_elsewhere(p)], ids=lambda p: p.name
)
def test_python_examples_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks(page):
        exec(compile(block, page.name, "exec"), names)
    if page.name == "README.md":
        printed = " ".join(capsys.readouterr().out.split())
        assert "No repair can close this gap" in printed
        assert "0.0538" in printed
        assert (tmp_path / "rule.json").exists()
        assert {"make demo", "make test"} <= {*re.findall(r"make \w+", page.read_text())}


def test_printed_outputs_are_fresh():
    command = [sys.executable, str(ROOT / "tools" / "refresh_docs.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}: run python tools/refresh_docs.py"


def test_links_between_pages_lead_somewhere():
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_links_of_the_site_lead_somewhere(tmp_path):
    """The landing page is the README, whose links are those of the repository."""
    pytest.importorskip("sphinx", reason='pip install "isocost[docs]"')
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "-b", "dummy"]
    folders = [str(ROOT / "docs"), str(tmp_path)]
    done = subprocess.run([*command, *folders], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_questions_of_the_verdict_are_listed_alike_everywhere():
    """Every answer belongs to a question, and every list has all of them, in order."""
    assert [name for names in QUESTIONS.values() for name in names] == [one[0] for one in ANSWERS]
    page = (ROOT / "docs" / "repairs.md").read_text()
    table = page.split("| question | decided by | if not |\n|---|---|---|\n")[1].split("\n\n")[0]
    rows = [row.split(" | ")[0].removeprefix("| ") for row in table.split("\n")]
    # The last row is what follows the questions; links are left out.
    listed = [re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", row) for row in rows[:-1]]
    assert listed == list(QUESTIONS)
    assert f"asks {['four', 'five', 'six'][len(QUESTIONS) - 4]} questions in this order" in page
    asked = ", ".join(question.rstrip("?") for question in QUESTIONS).lower()
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"The verdict asks in this order: {asked}? The first *no* is its headline." in readme


@pytest.mark.parametrize("name", REPAIRS)
def test_every_repair_is_in_the_pages(name):
    repair = REPAIRS[name]
    assert f"`ic.{repair.function}`" in (ROOT / "README.md").read_text()
    assert f"isocost.{repair.function}\n" in (ROOT / "docs" / "reference.md").read_text()
    page = (ROOT / "docs" / "repairs.md").read_text()
    row = f"| `{repair.name}` | `ic.{repair.function}` | {repair.sentence} | {repair.keeps} |"
    assert row in page
