"""The report as a file: what it says, what it holds, and what it must not do."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import isocost as ic
from isocost.cli import main
from isocost.errors import PYTHON, Problem, speaking
from isocost.examples import compas, compas_csv, compas_rows
from isocost.measures.intervals import score_interval
from isocost.page import report as making
from isocost.page.charts import charts
from isocost.page.report import embedded_json, inert, page_script, policy, remade
from isocost.page.server import PAGE
from isocost.page.view import MOST_HANDED, MOST_ROWS, facts, lines_of, spoken_names
from isocost.plots.display import PALETTE
from isocost.readings import SHELL
from isocost.repairs.hand_over import Deferral
from isocost.repairs.lp import check_request
from isocost.repairs.table import Repair
from isocost.verdict.sentences import Name, fill
from isocost.verdict.wording import statement
from tests.conftest import DATA, sample
from tests.populations import INCOME, ROWS, drawn

pytest.importorskip("vl_convert", reason='pip install "isocost[report]"')
pytest.importorskip("jinja2", reason='pip install "isocost[report]"')


class Texts(HTMLParser):
    """The elements and the visible texts of a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.texts, self.scripts, self._open = [], [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag):
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data):
        if "script" in self._open:
            self.scripts.append(data)
        elif "style" not in self._open:
            self.texts.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", "".join(self.texts))


def data_of(html):
    return json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL).group(1))


def ran(*arguments):
    """The exit code of a command."""
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    return left.value.code


@pytest.fixture(scope="module")
def audit():
    return ic.audit(compas(), "fpr", replicates=200)


@pytest.fixture(scope="module")
def html(audit):
    return ic.report_html(audit)


def plain(sentence):
    return "".join(part if isinstance(part, str) else part.text for part in sentence)


def test_says_everything_without_scripts(html, audit):
    text = Texts(html).text
    for words in (
        "an average score of 45 % if African-American, 36 % if Caucasian. No repair can close this",
        "What to do next. Improve the scores of African-American, or accept a difference of 5.39 ",
        "or with a tolerance of 0.0539",
        "It is possible if groups may differ by 0.0539.",
        "Coarsen: impossible if groups may differ by no more than 0. No tolerance changes that.",
        "isocost 0.1.0",
        "6,150",
        "score: score; label: label; group: group",
        "200 draws for calibration gaps, seed 0",
    ):
        assert words in text
    said = statement(audit, data=["data.csv"])
    for sentence in (said.headline, said.next, *said.details, *(n.sentence for n in said.notes)):
        assert re.sub(r"\s", " ", plain(sentence)) in text
    low, high = audit.groups["Caucasian"].intervals["cost"]
    assert f"{low:.3f} to {high:.3f}" in text


def test_is_small_and_asks_for_nothing(html):
    assert len(html.encode()) < 1.2e6
    found = Texts(html)
    links = {
        name: value
        for _, attrs in found.tags
        for name, value in attrs.items()
        if name in ("src", "href", "srcset", "action") and not (value or "").startswith("#")
    }
    assert links == {}
    hosts = set(re.findall(r"https?://([^/\"'\s)]+)", html))
    # Names of standards, and texts inside Vega that the page never follows.
    assert hosts <= {"www.w3.org", "github.com", "vega.github.io"}
    content = dict(found.tags)["meta"]
    policies = [a["content"] for t, a in found.tags if t == "meta" and "http-equiv" in a]
    assert content
    assert policies[0].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policies[0]


def test_the_page_says_at_which_thresholds_rates_can_be_equal():
    html = ic.report_html(ic.audit(compas(), confidence=None))
    table = re.search(r'<table[^>]*id="thresholds".*?</table>', html, re.DOTALL).group(0)
    rows = re.findall(r"<tr.*?</tr>", table, re.DOTALL)[1:]
    texts = [
        [re.sub("<[^>]+>", "", cell) for cell in re.findall(r"<t[hd] .*?</t[hd]>", row, re.DOTALL)]
        for row in rows
    ]
    found = ic.reconcilable(compas())
    assert [row[0] for row in texts] == [f"{point.threshold:g}" for point in found.points]
    assert [row[1] for row in texts] == [point.answer for point in found.points]
    at_half = dict(zip((point.threshold for point in found.points), texts, strict=True))[0.5]
    assert at_half[2:5] == ["0.0000", "64.1\u00a0%", "37.3\u00a0%"]
    assert at_half[6:] == ["38.6\u00a0%", "35.4\u00a0%"]
    assert "Caucasian selected" in table


def test_is_small_with_many_groups_and_bins():
    random = np.random.default_rng(0)
    group = random.integers(0, 24, 200_000)
    score = random.beta(1 + group / 12, 2)
    label = (random.random(len(score)) < score).astype(int)
    tally = ic.tally({"score": score, "label": label, "group": group})
    assert len(json.dumps(tally.to_dict()["cells"])) > 2e6
    html = ic.report_html(ic.audit(tally, "fpr", confidence=None))
    assert len(html.encode()) < 1.6e6
    told = "bins of scores merged, because so many would make the page too large"
    assert told in Texts(html).text
    given = data_of(html)["given"]
    assert sum(len(one["rule"]["rows"]) for one in given if one["rule"]) <= MOST_ROWS
    # Rules that do not fit are left out, those furthest from the audit's threshold first.
    made = [one["threshold"] for one in given if one["method"] == "reconcile"]
    assert made[0] == 0.5
    assert 1 < len(made) < 9
    assert [abs(at - 0.5) for at in made] == sorted(abs(at - 0.5) for at in made)


def test_scripts_are_those_the_policy_allows(html):
    found = Texts(html)
    kinds = [attrs.get("type") for tag, attrs in found.tags if tag == "script"]
    assert kinds == ["application/json", "module", "module"]
    bodies = re.findall(r'<script type="module">(.*?)</script>', html, re.DOTALL)
    assert policy(bodies).replace("'", "&#39;") in html


def test_holds_the_tally_and_no_rows(html):
    data = data_of(html)
    cells = data["tally"]["cells"]
    assert sum(cells["n"]) == 6150
    assert len(cells["n"]) == len(compas().cells)
    assert "id" not in data["tally"]["reading"]["columns"]


HOSTILE = ['<script>alert("1")</script>', "</script><!--", "a & b's", "\u2028line", "x" * 500]


def test_hostile_names_stay_text():
    rows = compas_rows()
    names = np.array(HOSTILE)[np.arange(6150) % len(HOSTILE)]
    audit = ic.audit(ic.tally({**rows, "group": names}), "fpr", confidence=None)
    html = ic.report_html(audit, title="<b>bold</b>")
    found = Texts(html)
    assert [tag for tag, _ in found.tags].count("script") == 3
    assert "b" not in {tag for tag, _ in found.tags}
    assert '<script>alert("1")</script>' in found.text
    assert "<b>bold</b>" in found.text
    data = data_of(html)
    assert sorted(data["tally"]["groups"]) == sorted(HOSTILE)


def test_embedded_json_comes_back():
    content = {"a": "</script>&<!--\u2028\u2029", "b": [1.5, None]}
    text = embedded_json(content)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == content
    assert "</script" not in inert("x='</SCRIPT>'").lower()


def test_written_whole_or_not_at_all(audit, tmp_path):
    path = ic.report(audit, path=tmp_path / "report.html")
    before = path.read_text()
    with pytest.raises(ic.FileError, match="file: must end in"):
        ic.report("nothing", path=path)
    assert path.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(ic.FileError, match="must be writable"):
        ic.report(audit, path=tmp_path / "nowhere" / "report.html")


def test_errors_have_four_parts(audit):
    with pytest.raises(ic.UsageError) as error:
        ic.report_html(3)
    assert str(error.value) == (
        "audit: must be an audit, a tally made by isocost.tally or read with isocost.Tally.load, "
        "or data that isocost.tally takes: a frame, a dict of arrays, or a path\n  got:  3\n"
        "  next: make one: isocost.tally(data, score=..., label=..., group=...)"
    )
    with pytest.raises(ic.UsageError, match="settings: belong to the audit already\n  got:  cost"):
        ic.report_html(audit, cost="fnr")
    with pytest.raises(ic.UsageError, match="rules: must be rules"):
        ic.report_html(audit, ["withhold"])
    with pytest.raises(ic.DataError, match="min_count: must leave"):
        ic.report_html(audit, min_count=1000)


def test_a_tally_is_audited_first():
    html = ic.report_html(compas(), cost="fpr", tolerance=0.06, threshold=0.4)
    text = Texts(html).text
    assert "Whether that can be made equal is not established." in text
    assert "fpr, 0.4, 0.06" in text


def test_rules_that_are_given(audit):
    given = {"mild": ic.withhold(compas(), "fpr", 0.07), "both": ic.equalize_odds(compas())}
    html = ic.report_html(audit, given)
    text = Texts(html).text
    done = ic.compare(compas(), given, "fpr").rules["mild"]
    assert f"mild {done.audit.disparity.difference:.3f}" in text.replace("mild", "mild ").replace(
        "  ", " "
    )
    data = data_of(html)
    [[place, lo, hi, value, probability]] = data["rules"]["mild"]["rows"]
    [row] = given["mild"].rows
    assert (place, lo, hi, value, probability) == (1, 0.0, 1.0, row.value, row.probability)


def with_a_tiny_group():
    """The COMPAS rows, and six of another group."""
    few = {"score": [0.2, 0.8] * 3, "label": [0, 1] * 3, "group": ["few"] * 6}
    rows = compas_rows()
    return ic.tally({name: np.concatenate([rows[name], few[name]]) for name in few})


def test_repairs_are_counted_as_by_compare_and_tiny_groups_are_named():
    html = ic.report_html(ic.audit(with_a_tiny_group(), "fpr", replicates=0))
    table = re.search(r'id="repairs".*?</table>', html, re.DOTALL)[0]
    rows = re.findall(r"<tr role=.row.>.*?</tr>", table, re.DOTALL)
    texts = [re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", row)) for row in rows]
    compared = ic.compare(compas(), cost="fpr")
    for title, name in (("As it is", "original"), ("Reconcile", "reconcile")):
        one = compared.rules[name]
        (told,) = (text for text in texts if text.startswith(f" {title}"))
        for share in (one.audit.overall.accuracy, one.changes.by_coin, one.changes.decisions):
            assert f" {100 * share:.1f} % " in told
        for group, changes in one.by_group.items():
            assert f"{group} {100 * changes.changed:.1f} %" in told or not changes.changed
    text = " ".join(Texts(html).text.split())
    assert "Left out of every test, with fewer than 30 people: few (6 people)." in text
    assert "not on this page, and rules made here leave their scores as they are." in text
    assert data_of(html)["tally"]["roster"] == [
        0, 1, {"group": "few", "n": 6.0, "base_rate": 0.5},
    ]  # fmt: skip


def test_small_cells_are_merged_and_small_groups_left_out():
    audit = ic.audit(with_a_tiny_group(), "fpr", replicates=200)
    html = ic.report_html(audit, min_count=40)
    data = data_of(html)
    assert min(data["tally"]["cells"]["n"]) >= 40
    assert data["tally"]["names"] == ["African-American", "Caucasian"]
    assert data["tally"]["roster"] == [0, 1, {"group": "few"}]
    text = Texts(html).text
    assert "cells of fewer than 40 rows, merged with their neighbours" in text
    assert "groups that are not compared: few" in text
    assert "with fewer than 30 people: few." in " ".join(text.split())
    assert "an average score of 45 % if African-American, 36 % if Caucasian" in text


@pytest.mark.parametrize("weighted", [False, True])
def test_reliability_and_mean_scores_are_counted_as_by_hand(weighted):
    tally = ic.tally(sample(3000, 3, 7, weighted=weighted), weight="weight" if weighted else None)
    page = data_of(ic.report_html(ic.audit(tally, confidence=None)))
    for place, points in enumerate(page["reliability"]):
        cells = tally.cells.take(tally.cells.of_group(place))
        starts = tally.grid.cuts[cells.bin]
        for point in points:
            inside = (starts >= point["lo"]) & (starts < point["hi"])
            w, n = cells.w[inside].sum(), cells.w[inside].sum() ** 2 / cells.w2[inside].sum()
            p, z = float((cells.w * cells.label)[inside].sum() / w), 1.959963984540054
            low, high = score_interval(p, p * (1.0 - p), n, (0.0, 1.0), z)
            wanted = {"n": cells.n[inside].sum(), "weight": w, "mean_label": p, "low": low}
            wanted |= {"mean_score": cells.wh[inside].sum() / w, "high": high}
            assert {name: point[name] for name in wanted} == pytest.approx(wanted, rel=1e-9)
        assert sum(point["n"] for point in points) == pytest.approx(cells.n.sum())
        at = page["own"]["sides"][page["own"]["thresholds"].index(0.3)][place]
        for mean, side in zip(at, (starts < 0.3, starts >= 0.3), strict=True):
            assert mean == pytest.approx(cells.wh[side].sum() / cells.w[side].sum(), rel=1e-9)


@pytest.mark.parametrize(
    ("cost", "tolerance", "confidence", "words"),
    [
        ("fpr", 0.2, 0.95, "given the same average score in every group, to within 20 points."),
        ("fpr", 0.2, None, "Whether costs differ by more than 20 points is not established."),
        ("fpr", 0.06, None, "brought down to 6 points, but only by making scores worse for Cau"),
        ("fnr", 0.0, None, "only 47\u00a0% if Caucasian, 56\u00a0% if African-American. No repair"),
    ],
)
def test_verdicts(cost, tolerance, confidence, words):
    asked = {"tolerance": tolerance, "confidence": confidence, "replicates": 200}
    found = facts(ic.audit(compas(), cost, **asked), "t")
    assert words in plain(found["verdict"])


def test_verdict_when_nothing_is_established():
    with pytest.warns(ic.UncertainWarning):
        audit = ic.audit(ic.Tally.load(DATA / "health.json"), "weighted:1,3", replicates=200)
    found = facts(audit, "t")
    assert plain(found["verdict"]).endswith("It is not established that this is more than chance.")
    assert found["why"] == "Where the groups are"
    assert (
        found["none_advised"]
        == "None of them is advised here: no difference beyond the tolerance is established."
    )
    assert [key["value"] for key in found["figures"]][3] == "none"
    assert "would lose their score" not in {key["label"] for key in found["figures"]}
    assert plain(found["next"]).startswith("Leave everybody’s score as it is.")
    low, _ = audit.intervals.differences["cost"]
    assert f"−{-low:.3f}" in " ".join(map(plain, found["ledes"]))


def few_people(last):
    score, label = [0.2, 0.3, 0.9, 0.6, 0.5, last], [0, 0, 1, 0, 1, 1]
    return ic.tally({"score": score, "label": label, "group": list("aaabbb")})


def test_what_is_not_established_is_no_alarm():
    with pytest.warns(ic.UncertainWarning):
        audit = ic.audit(few_people(last=0.8), "fpr", replicates=200)
    assert not audit.feasibility.feasible
    found = facts(audit, "t")
    assert found["why"] == "As measured, it cannot be equal"
    assert not any(key["alert"] for key in found["figures"])
    sure = facts(ic.audit(compas(), "fpr", replicates=200), "t")
    assert (sure["why"], sure["figures"][3]["alert"]) == ("Why it cannot be equal", True)


def test_people_who_stand_alone_are_told_of(html):
    audit = ic.audit(few_people(last=0.5), "fpr", confidence=None)
    alone = "In 4 of 5 cells there is a single person"
    assert alone in Texts(ic.report_html(audit)).text
    assert "single person" not in Texts(html).text
    assert "not people" not in html


def test_cost_per_group():
    cost = ic.Cost(fp={"African-American": 1, "Caucasian": 2}, fn=0)
    html = ic.report_html(ic.audit(compas(), cost, confidence=None))
    data = data_of(html)
    assert data["own"]["cost"]["fp"] == [1.0, 2.0]


def test_fill_and_names():
    assert fill("{a} and {b}", a=["x", Name("n")], b="y") == ["x", Name("n"), " and y"]
    assert [n.text for n in spoken_names([1, 1.5]).values()] == ["group 1", "group 1.5"]
    assert [n.text for n in spoken_names(["group 1", 1]).values()] == ["group 1", "1"]


def test_intersections_are_told_from_the_commas_of_a_sentence():
    rows = compas_rows()
    half = np.array(["f", "m"])[np.arange(6150) % 2]
    names = list(zip(rows["group"], half, strict=True))
    data = {"score": rows["score"], "label": rows["label"], "race": rows["group"], "sex": half}
    tally = ic.tally(data, group=["race", "sex"])
    assert set(tally.groups) == set(names)
    html = ic.report_html(ic.audit(tally, "fpr", confidence=None))
    text = Texts(html).text
    assert re.search(
        r"if African-American · [fm], .* if Caucasian · [fm], the two extremes of 4 gr", text
    )
    assert "Caucasian, f" not in text
    data = data_of(html)
    # The command line knows them as all the other commands do.
    assert data["tally"]["names"][0] == "African-American, f"


def luminance(color):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return np.dot([0.2126, 0.7152, 0.0722], linear)


@pytest.mark.parametrize(
    ("theme", "papers"),
    [("light", ("#fbfaf7", "#f2f0e9")), ("dark", ("#14161a", "#1e2127"))],
)
def test_marks_stand_out_from_the_page(theme, papers):
    for color in PALETTE[theme]:
        for paper in papers:
            light, dark = sorted([luminance(color), luminance(paper)], reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 3, (color, paper)


def test_charts_have_no_data_of_their_own():
    for spec in charts().values():
        names = {layer["data"]["name"] for layer in spec["layer"] if "data" in layer}
        assert names
        assert not spec.get("datasets")


def test_no_name_is_used_twice_in_the_script():
    declared = re.findall(r"^(?:async )?(?:function|const|let) (\w+)", page_script(), re.MULTILINE)
    assert len(declared) == len(set(declared))
    assert not re.search(r"^(import|export)\b", page_script(), re.MULTILINE)


def test_in_a_notebook(audit):
    shown = ic.show_report(audit, height=500)
    html = shown._repr_html_()
    assert html.startswith('<iframe title="isocost report" sandbox="allow-scripts allow-downloads"')
    assert html.count("<") == 2
    assert 'height="500"' in html
    assert repr(shown).startswith("Report of ")


def test_without_the_packages(tmp_path):
    code = (
        "import sys; sys.modules['vl_convert'] = None\n"
        "import isocost as ic\nfrom isocost.examples import compas\n"
        "try:\n    ic.report_html(ic.audit(compas(), confidence=None))\n"
        "except ic.MissingDependencyError as error:\n    print(error)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "isocost[report]"' in out.stdout


def test_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text(compas_csv())
    ic.withhold(compas(), "fpr", 0.07).save(tmp_path / "mild.json")
    options = ["--cost", "fpr", "--title", "T & T", "--replicates", "200", "--rule", "mild.json"]
    assert ran("report", "data.csv", *options, "--min-count", "5", "-o", "r.html") == 0
    assert capsys.readouterr().out == "The report is in r.html: open it in a browser.\n"
    text = Texts((tmp_path / "r.html").read_text()).text
    assert "T & T" in text
    assert "mild" in text
    (tmp_path / "few.csv").write_text("score,label,group\n0.2,0,a\n0.7,1,a\n0.3,0,b\n0.6,1,b\n")
    assert ran("report", "few.csv", "-o", "few.html", "--replicates", "0") == 0
    assert "In 4 of 4 cells there is a single person" in capsys.readouterr().out
    assert ran("report", "data.csv", "-o", "r.html") == 2
    assert "pass --force" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["r.png", "r.svg", "r.json", "r.html.gz", "r.md"])
def test_names_that_promise_something_else_are_refused(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ic.FileError, match=r"output: must end in .html or .htm or .pdf"):
        ic.report(compas(), path=name)
    (tmp_path / "few.csv").write_text("score,label,group\n0.2,0,a\n0.7,1,a\n0.3,0,b\n0.6,1,b\n")
    for command in (["report", "few.csv", "--force"], ["demo"]):
        assert ran(*command, "-o", name) == 2
        told = capsys.readouterr()
        assert told.out == ""
        rule = (
            rf"isocost: output: must end in .html or .htm( or .pdf)?\n  got:  {name}\n  next: nam"
        )
        assert re.match(rule, told.err)
    assert [path.name for path in tmp_path.iterdir()] == ["few.csv"]


@pytest.mark.parametrize("name", ["r.htm", "R.HTML", "report", "-"])
def test_names_that_promise_nothing_else_are_written(audit, tmp_path, name):
    assert ic.report(audit, path=tmp_path / name).read_text().startswith("<!doctype html>")


def test_three_groups_with_closed_forms_only():
    score = np.tile([0.1, 0.4, 0.6, 0.9], 300)
    label, group = np.tile([0, 1, 0, 1], 300), np.repeat(["a", "b", "c"], 400)
    tally = ic.tally({"score": score, "label": label, "group": group})
    page = Texts(ic.report_html(ic.audit(tally, replicates=0))).text
    assert "difference in cost 95\u00a0% interval" not in page


def test_demo_writes_a_report_over_its_own_only(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for _ in "12":
        assert ran("demo") == 0
        assert "The report is in report.html" in capsys.readouterr().out
    (tmp_path / "report.html").write_text("my own work")
    assert ran("demo") == 2
    assert "must be free, or a report of the demo" in capsys.readouterr().err
    assert (tmp_path / "report.html").read_text() == "my own work"
    assert ran("demo", "--no-report") == 0


def test_of_many_groups_it_may_not_be_known_which_costs_most():
    # Two that cost the same, and one that surely costs less.
    a = {"score": [0.3, 0.7] * 200, "label": [0, 1] * 200}
    b = {"score": [0.1, 0.9] * 200, "label": [0, 1] * 200}
    data = {name: a[name] + a[name] + b[name] for name in a}
    names = ["x"] * 400 + ["y"] * 400 + ["z"] * 400
    audit = ic.audit(ic.tally({**data, "group": names}), confidence=0.9, replicates=0)
    assert audit.verdict.highest == ("x", "y")
    assert audit.verdict.established


def test_a_sentence_names_only_the_groups_that_lose_most():
    parts = []
    for i, spread in enumerate((0.1, 0.2, 0.25, 0.3, 0.35, 0.4)):
        right = round(20 * (0.5 + spread))
        label = [0] * right + [1] * (20 - right) + [1] * right + [0] * (20 - right)
        score = [0.5 - spread] * 20 + [0.5 + spread] * 20
        parts.append(ic.tally({"score": score, "label": label, "group": [f"g{i}"] * 40}))
    audit = ic.audit(sum(parts[1:], parts[0]), "fnr", confidence=None)
    assert len(audit.feasibility.changed) == 5
    lede = plain(facts(audit, "t")["next"])
    assert "93.8\u00a0% of g5" in lede
    assert "and smaller shares of 2 more groups by" in lede
    assert lede.count("%") == 3


def test_a_group_has_one_name_on_the_page():
    rows = compas_rows()
    codes = (np.asarray(rows["group"]) == "Caucasian").astype(float)
    html = ic.report_html(ic.audit(ic.tally({**rows, "group": codes}), "fpr", replicates=200))
    text = Texts(html).text
    assert "45 % if group 0, 36 % if group 1" in text
    assert "Improve the scores of group 0, or" in text
    assert not re.search(r"(?<![\d.])[01]\.0(?![\d\s])", text)
    data = data_of(html)
    assert (data["called"], data["tally"]["names"]) == (["group 0", "group 1"], ["0.0", "1.0"])


def test_few_people_are_told_of_nowhere():
    # Only three people of "a" are above 1/2: neither rates nor intervals may say so.
    scores = [0.1] * 20 + [0.2] * 20 + [0.9] * 3
    labels = [0] * 18 + [1, 1] + [0, 1] * 10 + [1] * 3
    data = {"score": scores + [0.2, 0.8] * 60, "label": labels + [0, 1, 0, 1, 1, 0] * 20,
            "group": ["a"] * 43 + ["b"] * 120}  # fmt: skip
    audit = ic.audit(ic.tally(data), replicates=200)
    html = ic.report_html(audit, min_count=10)
    found = data_of(html)
    own = found["own"]
    assert all("fpr" not in spans for spans in own["intervals"])
    at = own["at"][own["thresholds"].index(0.5)]
    for name in ("fpr", "fnr", "selection_rate", "accuracy", "impact_ratio"):
        assert [span is None for span in at[name]] == [True, False, True], name
    row = re.search(r'<tr data-row="selection_rate">.*?</tr>', html, re.DOTALL).group()
    assert re.findall(r"<td>([^< ]+)", row) == ["–", f"{audit.groups['b'].selection_rate:.3f}", "–"]
    assert 0.5 not in [one["threshold"] for one in found["given"]]
    assert "reconcile" in [one["method"] for one in found["given"]]


@pytest.mark.parametrize(
    ("tally", "why"),
    [
        (
            drawn(9, INCOME, ROWS),
            "unless nobody is selected. It is possible if its rates ",
        ),
        (drawn(9, INCOME, ROWS, flip=True), "unless everybody is selected. It is possible if "),
        (drawn(11, INCOME, ROWS), "unless nobody is selected. It is possible if its rates "),
    ],
)
def test_a_reconciliation_that_selects_nobody_is_told_as_infeasible(tally, why):
    html = ic.report_html(ic.audit(tally, "fpr", confidence=None))
    assert why in Texts(html).text
    data = data_of(html)
    (at,) = [
        one for one in data["given"] if (one["method"], one["threshold"]) == ("reconcile", 0.5)
    ]
    assert at["rule"] is None
    assert at["why"].startswith(f"Reconcile: impossible at 0.5, {why}")


def test_measures_that_the_page_cannot_compute_are_given_for_the_settings_of_the_audit():
    found = ic.audit(compas(), "fpr", measures=["fpr", "auc", "impact_ratio"])
    html = ic.report_html(found)
    assert '<tr data-row="auc">' in html
    page = data_of(html)
    assert page["words"]["rows"]["auc"] == ["Ranking within the group", "AUC"]
    values = [one["auc"] for one in page["own"]["given"]]
    assert values == [*(m.auc for m in found.groups.values()), found.overall.auc]
    # At every threshold that is offered there are the ratio and its interval.
    own = page["own"]
    assert set(own["thresholds"]) >= {0.1, 0.5, 0.9}
    again = ic.audit(compas(), "fpr", 0.3, replicates=0, measures=["impact_ratio", "fpr"])
    at = own["at"][own["thresholds"].index(0.3)]
    for place, one in enumerate(again.groups.values()):
        low, high, ratio = at["impact_ratio"][place]
        assert (low, high) == pytest.approx(one.intervals["impact_ratio"], rel=1e-5)
        assert ratio == pytest.approx(one.impact_ratio, rel=1e-5)
        assert at["fpr"][place] == pytest.approx(one.intervals["fpr"], rel=1e-5)
    assert at["impact_ratio"][-1][2] is None


def test_moving_from_false_alarms_to_misses_keeps_the_evidence(html):
    own = data_of(html)["own"]
    for cost in ("fpr", "fnr"):
        again = ic.audit(compas(), cost, replicates=0)
        known = own["evidence"][cost]
        assert known["disparity"] == pytest.approx(again.intervals.disparities["cost"])
        found = again.verdict.findings
        for name in ("difference_low", "excess_low", "excess_high"):
            assert known["findings"][name] == pytest.approx(getattr(found, name))
        for place, one in enumerate(again.groups.values()):
            assert known["intervals"][place]["cost"] == pytest.approx(
                one.intervals["cost"], rel=1e-5
            )


def test_where_outcomes_are_rare_thresholds_and_digits_fit():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 60_000)
    score = rng.beta(0.3 + 0.1 * group, 30)
    label = (rng.random(len(score)) < score).astype(int)
    audit = ic.audit(
        ic.tally({"score": score, "label": label, "group": group}), "fpr", replicates=0
    )
    html = ic.report_html(audit)
    assert min(data_of(html)["own"]["thresholds"]) < 0.02
    first, second = re.findall(r"(\d\.\d\d) % if group", Texts(html).text)[:2]
    assert first != second


def test_the_headline_speaks_of_people(audit):
    words = {"people": "defendants", "outcome": "reoffended", "positive_means": "risk"}
    html = ic.report_html(audit, **words)
    text = Texts(html).text
    assert (
        "Defendants who did not reoffend were given an average risk of 45 % if African-American, "
        "36 % if Caucasian. No repair can close this gap and keep the scores" in text
    )
    assert "Cost is the average risk of defendants who did not reoffend." in text
    for name in words:
        with pytest.raises(ic.UsageError, match=f"{name}: must be a few words"):
            ic.report_html(audit, **{**words, name: "x" * 81})


def test_reports_are_reproducible_and_name_their_origin(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    path = tmp_path / "scores.csv"
    path.write_text(compas_csv())
    words = ["--replicates", "0", "--people", "defendants", "-o", "a.html", "--force"]
    pages = []
    for _ in "12":
        assert ran("report", str(path), *words) == 0
        pages.append((tmp_path / "a.html").read_text())
    one, other = pages
    assert one == other
    text = Texts(one).text
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert f"scores.csv, {path.stat().st_size:,} bytes, SHA-256 {digest}" in text
    assert "isocost report scores.csv --replicates 0 --people defendants -o a.html --force" in text
    assert "1970-01-01 00:00 UTC" in text
    assert str(tmp_path) not in one
    assert f'<meta name="isocost:file:scores.csv" content="sha256:{digest}">' in one


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    rules = {"mild": ic.withhold(compas(), "fpr", 0.07)}
    audit = ic.audit(compas(), "fpr", replicates=0)
    return ic.report(audit, rules, tmp_path_factory.mktemp("page") / "report.html", min_count=5)


def test_a_report_verifies_and_a_changed_one_does_not(page, tmp_path, capsys, monkeypatch):
    made = {}

    def once(held, how):
        """The page made again; most of the changes below leave what it is made from."""
        key = json.dumps([held, how])
        made[key] = made[key] if key in made else remade(held, how)
        return made[key]

    monkeypatch.setattr(making, "remade", once)
    assert ic.verify(page).unchanged
    html = page.read_text()
    data = re.search(r'id="data">(.*?)</script>', html, re.DOTALL).group(1)
    count = re.search(r'"n":\[(\d+),', data)
    forged = data.replace(count[0], f'"n":[{int(count[1]) + 1},', 1)
    verdict = re.search('<p class="verdict".*?</p>', html, re.DOTALL)[0]
    over = '<div style="position:fixed;inset:0;background:white">Costs are equal.</div>'
    changes = {
        "table": html.replace("<td>0.343", "<td>0.342", 1),
        "sentence": html.replace("That leaves 5.4 points", "That leaves 2.4 points", 1),
        "tile": html.replace('class="figure">8.7', 'class="figure">7.7', 1),
        "interval": html.replace('"disparity":[0.0', '"disparity":[0.1', 1),
        "tally": html.replace(data, forged),
        "data": html.replace(data, data.replace(",", ", ", 1)),
        "words": html.replace('"headline_equal":"', '"headline_equal":"Yes, ', 1),
        "script": html.replace("const MOST_DECIMALS = 3;", "const MOST_DECIMALS = 2;"),
        "vega": html.replace("window.vegaEmbed", "window.alert();window.vegaEmbed", 1),
        "style": html.replace("</style>", ".verdict{display:none}</style>"),
        "more style": html.replace("</head>", "<style>.verdict{display:none}</style></head>"),
        "attribute": html.replace('<p class="verdict"', '<p hidden class="verdict"'),
        "over": html.replace("<body>", f"<body>{over}"),
        "end": html + over,
        "heading": html.replace(">What errors cost each group<", ">What errors gain each group<"),
        "verdict": html.replace(verdict, '<p class="verdict" id="verdict">Costs are equal.</p>'),
        "comment": html.replace("<main>", "<!-- costs are equal --><main>", 1),
        "policy": html.replace("default-src ", "default-src * ", 1),
    }
    for kind, text in changes.items():
        assert text not in (html, ""), kind
        (tmp_path / f"{kind}.html").write_text(text)
    found = ic.verify(tmp_path / "table.html")
    assert found.changes == (
        'table numbers, Wrongly selected FPR, column 1: "0.342 0.322 to 0.365" instead of "0.343 '
        '0.322 to 0.365"',
    )
    assert found.lines()[0] == "Changed: 1 place is not as isocost writes the page."
    (said,) = ic.verify(tmp_path / "heading.html").changes
    assert said.endswith('"What errors gain each group" instead of "What errors cost each group"')
    assert any("Costs are equal." in one for one in ic.verify(tmp_path / "over.html").changes)
    (said,) = ic.verify(tmp_path / "attribute.html").changes
    assert re.fullmatch(r'markup in line \d+: "hidden class=.* instead of "class=.*', said)
    for kind in changes:
        assert not ic.verify(tmp_path / f"{kind}.html").unchanged, kind
    (tmp_path / "windows.html").write_text(html, newline="\r\n")
    assert ic.verify(tmp_path / "windows.html").unchanged
    for name, code in ((page, 0), (tmp_path / "table.html", 1)):
        assert ran("verify", str(name)) == code
    assert capsys.readouterr().out.startswith("Unchanged: ")
    (tmp_path / "other.html").write_text("<p>hello</p>")
    assert ran("verify", str(tmp_path / "other.html")) == 2
    assert "report: must be a report as isocost wrote it" in capsys.readouterr().err


def test_of_a_page_of_another_version_only_numbers_are_verified(page, tmp_path):
    html = page.read_text()
    data = re.search(r'id="data">(.*?)</script>', html, re.DOTALL).group(1)
    outside = html.replace(data, "DATA")
    old = data.replace(f'"isocost":"{ic.__version__}"', '"isocost":"0.0.9"')
    outside = outside.replace(f"isocost {ic.__version__}", "isocost 0.0.9")
    outside = outside.replace(
        f'"isocost:version" content="{ic.__version__}', '"isocost:version" content="0.0.9'
    )
    digests = (f"sha256:{hashlib.sha256(one.encode()).hexdigest()}" for one in (data, old))
    outside = outside.replace(*digests)
    said = outside.replace(">What errors cost each group<", ">What mistakes cost each group<")
    path = tmp_path / "old.html"
    path.write_text(said.replace("DATA", old))
    found = ic.verify(path)
    assert (found.changes, found.wording_checked) == ((), False)
    assert found.made_with["isocost"] == "0.0.9"
    assert found.lines()[0].endswith("The wording was not checked.")
    assert "The page was made with isocost 0.0.9, altair" in found.lines()[-1]
    path.write_text(said.replace("<td>0.343", "<td>0.342", 1).replace("DATA", old))
    assert not ic.verify(path).unchanged
    assert ic.verify(page).wording_checked


def test_a_page_verifies_wherever_it_was_made(tmp_path, monkeypatch, capsys):
    """It names commands, also if Python made it, so that the shell can verify it."""
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text(compas_csv())
    for place in (PYTHON, SHELL, PAGE):
        with speaking(place):
            page = ic.report("data.csv", path=f"{place.place}.html", cost="fpr")
        assert ic.verify(page).unchanged, place.place
        assert ran("verify", str(page)) == 0, capsys.readouterr().out


def test_measures_of_ones_own_are_held_and_verified(tmp_path):
    mine = ic.Measure(
        "mine", "Mine", over=("fp", "tp"), adds={"fp": (0.0, 1.0, 0.0)}, label="My own",
        sentence="It is mine.", better="higher", family="scores", printed=False,
    )  # fmt: skip
    rebuilt = ic.Measure(**json.loads(json.dumps(making._measure_dict(mine))))
    assert replace(rebuilt, adds=mine.adds) == mine
    assert {kind: tuple(adds) for kind, adds in rebuilt.adds.items()} == mine.adds
    audit = ic.audit(compas(), "fpr", confidence=None, measures=[mine])
    path = ic.report(audit, path=tmp_path / "r.html")
    html = path.read_text()
    assert ic.verify(path).unchanged
    assert "My own" in html
    path.write_text(html.replace('"adds":{"fp":[0.0,1.0,0.0]}', '"adds":{"fp":[0.0,0.9,0.0]}'))
    assert any(change.startswith("table numbers, My own") for change in ic.verify(path).changes)
    path.write_text(html.replace(',"over":["fp","tp"],"adds":{"fp":[0.0,1.0,0.0]}', ""))
    with pytest.raises(ic.FileError, match=r"measures that are functions, .* hold: mine"):
        ic.verify(path)


def test_the_people_handed_over_have_a_section(tmp_path):
    rule = ic.hand_over(compas(), 0.25)
    path = ic.report(
        ic.audit(compas(), "fpr", replicates=0), {"hand": rule}, tmp_path / "page.html"
    )
    text = " ".join(Texts(path.read_text()).text.split())
    who = ic.handed_over(rule, compas())
    for name, one in who.groups.items():
        assert f"{name}: 25.0 % handed over, {one.rows:,.0f} of" in text
    for reviewer, said in (("score", "decides as the old score did"), ("coin", "tosses a coin")):
        wrong = (f"differ by {number:.3f}" for number in who.differences(reviewer))
        assert re.search(".{0,30}".join([said, *wrong]), text), reviewer
    assert "All groups as a whole have FPR 0.2191 if the reviewer reaches" in text
    assert "Nobody asked for this rule" not in text
    # No number of the decided stands without the share.
    assert re.search(r"hand, 25.0 % handed over ?0.000", text)
    assert not re.search(r"hand ?0.000", text)
    assert ic.verify(path).unchanged


def test_a_page_hands_people_over_by_itself(html):
    """With the least whole percentage, for any threshold."""
    text = " ".join(Texts(html).text.split())
    assert re.search("Hand over, 24.0 % handed over ?Nobody asked for this rule: it was", text)
    assert "Right decisions: 62.0 % of the decided, 65.6 % of everybody before." in text
    data = data_of(html)
    (given,) = (one for one in data["given"] if one["method"] == "hand_over")
    assert (given["threshold"], given["rule"]["settings"]["share"]) == (None, 0.24)
    with pytest.raises(ic.InfeasibleError, match=r"0\.231"):
        ic.hand_over(compas(), 0.23)


def handing_over(tally):
    """The line of the page that hands people over."""
    asked = ic.audit(tally, confidence=None, min_group=0)
    return lines_of(asked, None)[-1]


@pytest.mark.parametrize(
    ("least", "share"), [(0.2349, 0.24), (0.2351, 0.25), (0.0001, 0.01), (0.9871, 0.99)]
)
def test_a_page_hands_over_half_a_percent_more_than_it_must(monkeypatch, least, share):
    asked = []

    def make(repair, tally, question, *, share=None, infeasible=None):
        if not repair.defers:
            raise ic.UsageError(Problem("repair", "is not asked for here", repair.name, "none"))
        asked.append(share)
        if share == 0.0:
            request = check_request(ic.Question(), 0.0, "auto", share=0.0)
            reach = Deferral(request, False, smallest_share=least, bound=least)
            raise ic.InfeasibleError(Problem("share", "must be more", "0", "use more"), reach)
        return ic.hand_over(tally, "least")

    monkeypatch.setattr(Repair, "rule", make)
    assert handing_over(compas()).rule is not None
    assert asked == [0.0, pytest.approx(share)]


def test_a_page_hands_nobody_over_where_groups_fare_alike():
    both = {"score": [0.2, 0.8] * 80, "label": [0, 0, 0, 1, 1, 1, 0, 1] * 20}
    offer = handing_over(ic.tally({**both, "group": np.repeat(["a", "b"], 80)}))
    assert offer.rule.settings["share"] == 0.0
    assert offer.label == "Hand over"


def test_a_page_says_why_it_hands_nobody_over():
    groups = np.repeat(np.arange(MOST_HANDED + 1), 4)
    many = {"score": [0.2, 0.8] * (len(groups) // 2), "label": [0, 1] * (len(groups) // 2)}
    offer = handing_over(ic.tally({**many, "group": groups}))
    assert offer.rule is None
    assert offer.why.startswith("Not computed for more than 12 groups.")
    few = {"score": [0.9, 0.8, 0.3, 0.7, 0.2, 0.1], "label": [1, 1, 0, 1, 0, 0]}
    offer = handing_over(ic.tally({**few, "group": list("aaabbb")}))
    assert offer.why.endswith("impossible, because hardly anybody of some group would be left.")
    # One score for all, which is right for neither group.
    apart = {"score": [0.5] * 80, "label": [0, 1, 1, 1] * 10 + [0, 0, 0, 1] * 10}
    offer = handing_over(ic.tally({**apart, "group": np.repeat(["a", "b"], 40)}))
    assert offer.why == "Hand over: impossible, whatever share of people is handed over."


def test_a_pdf_takes_a_browser(audit, tmp_path, monkeypatch):
    monkeypatch.setenv("ISOCOST_BROWSER", "no-such-browser")
    with pytest.raises(ic.FileError, match="PDF: takes a browser that prints without a window"):
        ic.report(audit, path=tmp_path / "r.pdf")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.delenv("ISOCOST_BROWSER")
    if shutil.which("chromium") is None:
        pytest.skip("needs Chromium")
    ic.report(audit, path=tmp_path / "r.pdf")
    content = (tmp_path / "r.pdf").read_bytes()
    assert content.startswith(b"%PDF-")
    assert len(content) > 50_000
