"""What the pages say is what happens: examples run, outputs are those of the commands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from isocost.repairs.registry import REPAIRS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def runs_elsewhere(page):
    """Whether the examples run when outputs that stand in the page are made again."""
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
        assert "No repair can make that equal" in printed
        assert "0.0538" in printed
        assert (tmp_path / "rule.json").exists()


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


def test_readme_has_the_two_commands():
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text
    assert "make test" in text


@pytest.mark.parametrize("name", REPAIRS)
def test_every_repair_is_in_the_pages(name):
    repair = REPAIRS[name]
    assert f"`ic.{repair.function}`" in (ROOT / "README.md").read_text()
    assert f"isocost.{repair.function}\n" in (ROOT / "docs" / "reference.md").read_text()
    page = (ROOT / "docs" / "repairs.md").read_text()
    row = f"| `{repair.name}` | `ic.{repair.function}` | {repair.sentence} | {repair.keeps} |"
    assert row in page
