"""The page on architecture says which lines a new thing takes: with them it is everywhere."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import isocost

SOURCE = Path(isocost.__file__).parent
PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"


def block_of(title):
    """The lines to add that the page shows under a title."""
    section = re.search(rf"\n### {title}\n(.*?)(?=\n##|\Z)", PAGE.read_text(), re.DOTALL)[1]
    (block,) = re.findall(r"```diff\n(.*?)```", section, re.DOTALL)
    return block


def added(block, root):
    """Add lines to a source tree; the lines they stand beside must occur there exactly once."""
    for part in re.split(r"^\+\+\+ ", block, flags=re.MULTILINE)[1:]:
        name, _, changes = part.partition("\n")
        path = root / name
        for hunk in changes.split("@@\n"):
            lines = hunk.splitlines(keepends=True)
            assert all(line[0] in " +" for line in lines), hunk
            old = "".join(line[1:] for line in lines if line[0] == " ")
            new = "".join(line[1:] for line in lines)
            if not old:
                assert not path.exists(), f"{name} exists"
                path.write_text(new)
                continue
            text = path.read_text()
            assert text.count(old) == 1, f"{name} must have once:\n{old}"
            path.write_text(text.replace(old, new))


@pytest.fixture
def tree(tmp_path):
    """A copy of the source and its bytecode, to which lines are added, to run scripts with."""
    root = tmp_path / "src" / "isocost"
    # Another worker may be writing bytecode, to files that are renamed.
    shutil.copytree(SOURCE, root, ignore=shutil.ignore_patterns("*.pyc.*"))
    start = f"import isocost\nassert isocost.__file__ == {str(root / '__init__.py')!r}\n"

    def run(*command, code=0):
        done = subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(root.parent), "COLUMNS": "200", "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, f"{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    class Tree:
        folder = tmp_path

        @staticmethod
        def add(block):
            added(block, root)

        @staticmethod
        def script(text):
            # From a file, so that a traceback shows the line.
            (tmp_path / "script.py").write_text(start + text)
            return run("-W", "error", "script.py")

        @staticmethod
        def isocost(*arguments, code=0):
            return run("-c", "from isocost.cli import main; main()", *arguments, code=code)

    return Tree


USUAL = """
import json, re
import isocost as ic
from isocost.examples import compas, compas_rows
from isocost.page.report import report_html

def data_of(html):
    pattern = r'<script[^>]*type="application/json"[^>]*>(.*?)</script>'
    return json.loads(re.search(pattern, html, re.S)[1])

def refusal(function, argument):
    try:
        function(argument)
    except ic.IsocostError as error:
        return str(error)
"""

MEASURE = """
import warnings
from isocost import metrics
from isocost.judging.evidence import WATCHABLE

a = ic.audit(compas(), "fpr")
white = a.groups["Caucasian"]
assert 0.5 < white.selected_score < 1.0
low, high = white.intervals["selected_score"]
assert low < white.selected_score < high
assert a.overall.selected_score > 0 and a.disparities["selected_score"].difference > 0
assert a.intervals.disparities["selected_score"][0] <= a.disparities["selected_score"].difference
assert re.search("^score of selected  ", str(a), re.M) and "score of selected" in a._repr_html_()
content = json.loads(a.to_json())
assert content["groups"][1][1]["selected_score"] == white.selected_score
assert "selected_score" in content["disparities"]
html = report_html(a)
assert "Average score of the selected" in html
page = data_of(html)
assert page["tally"]["measures"]["selected_score"]["over"] == ["fp", "tp"]
titles = page["words"]["rows"]["selected_score"]
assert titles == ["Average score of the selected", "score of selected"]
own = page["own"]
at = own["at"][own["thresholds"].index(0.5)]
assert at["selected_score"][1] == [float(f"{end:.6g}") for end in (low, high)]
assert metrics.selected_score([0, 1, 1, 1], [0.6, 0.7, 0.8, 0.2]) == 2.1 / 3
assert "selected_score" in WATCHABLE
groups = compas().groups
promise = ic.Promise({"selected_score": 0.001}, {"selected_score": 0.001}, False, False, 0.5)
found = ic.watch(ic.Rule(groups, (), "mine", promise=promise), [compas()] * 2)
assert found.limits == {"selected_score": 0.001} and found.periods[0].running > 0.01
"""

EQUAL = """
from isocost.repairs.reconcile import RATES
print("selected_score" in RATES)
"""

REPAIR = """
rule = ic.REPAIRS["erase"].make(compas())
after = ic.audit(rule.expected(compas()), "fpr", confidence=None)
assert after.generalized_equalized_odds_difference < 1e-12
assert rule.remake(compas()) == ic.Rule.load("rule.json").remake(compas()) == rule
html = report_html(ic.audit(compas(), "fpr"))
assert "Everybody gets the same score." in re.sub("<script.*?</script>", "", html, flags=re.S)
page = data_of(html)
method = page["words"]["methods"]["erase"]
assert (method["name"], method["goal"], method["label"]) == ("erase", "rates", "Erase")
assert any(one["method"] == "erase" and one["rule"] for one in page["given"])
found = ic.watch(rule, [rule.expected(compas())])
assert found.equal == ("generalized_fpr", "generalized_fnr") and not found.alarm
assert "erase" in ic.compare(compas(), [rule], "fpr").rules
"""

DIALECT = """
import duckdb
people = compas_rows()
database = duckdb.connect()
database.execute('CREATE TABLE scores (id INT, score DOUBLE, label INT, "group" VARCHAR)')
rows = zip(*(people[name].tolist() for name in ("id", "score", "label", "group")))
database.executemany("INSERT INTO scores VALUES (?, ?, ?, ?)", list(rows))
query = ic.tally_sql("mydb")
assert query != ic.tally_sql("duckdb") and "FLOAT8" in query
assert ic.tally_from_cells(database.execute(query).fetchall()) == ic.tally(people)
rule = ic.Rule.load("rule.json")
query = rule.to_sql(dialect="mydb", columns=["id"], output="score", id="id")
repaired = dict(database.execute(query).fetchall())
wanted = rule.apply(people, id="id")["repaired_score"]
assert (wanted != people["score"]).any()
assert [repaired[i] for i in people["id"].tolist()] == wanted.tolist()
assert "clickhouse, mydb" in refusal(ic.tally_sql, "nodb")
"""

FORMAT = """
import gzip
people = compas_rows()
names = ("id", "score", "label", "group")
rows = [names, *zip(*(people[name].tolist() for name in names))]
with gzip.open("people.psv.gz", "wt") as file:
    file.writelines("|".join(map(str, row)) + "\\n" for row in rows)
assert ic.tally("people.psv.gz") == ic.tally(people)
rule = ic.Rule.load("rule.json")
ic.apply_file(rule, "people.psv.gz", "repaired.psv", id="id")
assert open("repaired.psv").readline() == "id|score|label|group|repaired_score\\n"
assert ic.tally("repaired.psv", "repaired_score") == ic.tally(
    rule.apply(people, id="id"), "repaired_score"
)
endings = ".csv, .tsv, .psv, .jsonl or .ndjson (also .gz and .zst), or .parquet"
assert endings in refusal(ic.tally, "people.txt")
"""

SENTENCE = """
said = "Nobody has a score of 0.95 or more."
rows = {"score": [0.2, 0.3, 0.4, 0.6] * 50, "label": [0, 0, 1, 1] * 50}
rows["group"] = ["a"] * 100 + ["b"] * 100
tally = ic.tally(rows, edges=[0.95])
a = ic.audit(tally, threshold=0.95, confidence=None)
assert said in str(a) and said in a._repr_html_() and said in a.advice
assert said in json.loads(a.to_json())["advice"]
html = report_html(a)
assert f"<li>{said}</li>" in html
assert data_of(html)["words"]["note_nobody"].startswith("Nobody has")
assert "Nobody has" not in str(ic.audit(tally, confidence=None))
"""


CHART = """
html = report_html(ic.audit(compas(), "fpr", confidence=None))
assert 'data-chart="people"' in html, "no place"
assert data_of(html)["charts"]["people"]["layer"][0]["data"] == {"name": "bars"}
open("report.html", "w", encoding="utf-8").write(html)
"""


@pytest.fixture
def rule_file(tmp_path):
    from isocost.examples import compas

    path = tmp_path / "rule.json"
    isocost.withhold(compas(), "fpr", 0.06).save(path)
    return path


@pytest.mark.parametrize(
    ("script", "missing"),
    [
        (MEASURE, "no number 'selected_score'"),
        (REPAIR, "KeyError: 'erase'"),
        (DIALECT, "got:  'mydb'"),
        (FORMAT, r"got:  'people\.psv\.gz'"),
        (SENTENCE, r"assert said in str\(a\)"),
        (CHART, "no place"),
    ],
)
def test_without_the_lines_it_is_not_there(tree, rule_file, script, missing):
    with pytest.raises(AssertionError, match=missing):
        tree.script(USUAL + script)


def test_a_measure(tree):
    tree.add(block_of("Add a measure"))
    tree.script(USUAL + MEASURE)
    assert tree.script(EQUAL) == "False\n"


def test_a_measure_over_a_label_can_be_made_equal(tree):
    block = block_of("Add a measure")
    whole = block.replace('("fp", "tp")', "EVERYBODY")
    assert whole != block
    tree.add(whole)
    assert tree.script(EQUAL) == "True\n"
    assert "selected_score" in tree.isocost("fit", "--help")


def test_a_repair(tree):
    tree.add(block_of("Add a repair"))
    tree.script("from isocost.examples import compas\ncompas().save('compas.json')")
    tree.isocost("fit", "compas.json", "--method", "erase", "-o", "rule.json")
    assert json.loads((tree.folder / "rule.json").read_text())["method"] == "erase"
    assert "erase" in tree.isocost("fit", "--help")
    tree.script(USUAL + REPAIR)


def test_a_dialect(tree, rule_file):
    tree.add(block_of("Add a dialect"))
    tree.script(USUAL + DIALECT)
    assert "clickhouse, mydb" in " ".join(tree.isocost("sql", "--help").replace("│", " ").split())
    assert "FLOAT8" in tree.isocost("sql", rule_file.name, "--dialect", "mydb", "--id", "id")
    assert "FLOAT8" in tree.isocost("sql", "--tally", "--dialect", "mydb")


def test_a_file_format(tree, rule_file):
    tree.add(block_of("Add a file format"))
    tree.script(USUAL + FORMAT)
    assert json.loads(tree.isocost("audit", "people.psv.gz", "--json"))["overall"]["n"] == 6150
    tree.isocost("apply", rule_file.name, "people.psv.gz", "--id", "id", "-o", "again.psv")
    assert (tree.folder / "again.psv").read_text() == (tree.folder / "repaired.psv").read_text()


def test_a_sentence(tree):
    tree.add(block_of("Add a sentence"))
    tree.script(USUAL + SENTENCE)


def test_a_chart(tree):
    tree.add(block_of("Add a chart"))
    tree.script(USUAL + CHART)
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("needs Chromium")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000"]
    page = (tree.folder / "report.html").as_uri()
    command = [browser, *flags, f"--user-data-dir={tree.folder / 'profile'}", "--dump-dom", page]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert 'id="people-text">African-American: 3696 people; Caucasian: 2454 people<' in shown
    drawn = re.search(r'id="people-chart".*?</figure>', shown, re.DOTALL)[0]
    assert drawn.count('aria-label="Save people as ') == 3
    assert len(re.findall("<line [^>]*stroke-width=.12", drawn)) == 2


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("+++ verdict/sentences.py\n     not there\n+    new\n", "must have once"),
        ('+++ engines/kinds.py\n     """\n+    new\n', "must have once"),
        ("+++ verdict/sentences.py\n+    new\n", "exists"),
    ],
)
def test_lines_that_do_not_fit_are_seen(tree, lines, message):
    with pytest.raises(AssertionError, match=message):
        tree.add(lines)
