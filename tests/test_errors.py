"""Messages name settings as they are written where they are read."""

import re

import pytest

import isocost as ic
from isocost.errors import UNSET, setting, speaking, spoken
from isocost.examples import compas, compas_csv
from isocost.page.server import PAGE
from isocost.readings import SHELL

IN_PYTHON = re.compile(
    r"(?<![-\w])[a-z_]{2,}=(?=[\"'\[({\d.T]|\W|$)|\bic\.|\bisocost\.[a-z]|\btally\.|True|None"
)
"""What only Python would say: name=value, functions and methods."""

IN_SHELL = re.compile(r"(?<!\w)--[a-z]|\bisocost [a-z]+ (?=-|\S+\.(csv|json))")
"""What only a shell would say: options, and commands with them."""

BAD_CALLS = {
    "audit data.csv --score scor": "did you mean --score score?",
    "audit data.csv --cost tpr": "for example --cost fnr",
    "audit data.csv --bins 0": "use --bins 1024, the default",
    "audit data.csv --replicates 7": "use --replicates 2000",
    "audit data.csv --min-group -1": "use --min-group 30, the default",
    "audit data.csv --measures nothing": "for example --measures all, or --measures ppv,auc",
    "audit data.csv --label decile": "name the positive label with --positive",
    "audit data.csv --group decile --drop-group 1": "",
    "audit holes.csv": "of their own with --missing-group unknown",
    "fit onesided.csv": "merge groups (--merge-groups), or gather more data",
    "fit data.csv --cost fpr": "accept --tolerance 0.0539 or more",
    "fit data.csv --method coarsen --cost fpr --tolerance 0.06": "pass --allow-decision-changes",
    "fit data.csv --method reconcile --levels 1": "use --levels auto, the default",
    "fit data.csv --method reconcile --floor fpr=0.3": "use for example --floor selection_rate=0.1",
    "fit data.csv --method reconcile --equal cost --equal selection_rate --no-worse": "",
    "fit few.csv --cost fpr --tolerance 0.01": "(--merge-groups); or pass --anyway",
    "tally data.csv -o data.csv": "",
    "tally data.csv -o taken.json": "pass --force to replace it",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    header, *rows = compas_csv().splitlines()
    (folder / "data.csv").write_text(compas_csv())
    (folder / "holes.csv").write_text("\n".join([header, *rows[:9], "7,,1,0,0.3"]))
    few = [f"{i},{'ab'[i % 2]},1,{i // 2 % 2},{0.2 + i // 2 % 2 / 2}" for i in range(20)]
    (folder / "few.csv").write_text("\n".join([header, *few, "20,a,1,0,0.7"]))
    onesided = [f"{i},{'ab'[i % 2]},1,{int(i % 4 == 0)},0.3" for i in range(40)]
    (folder / "onesided.csv").write_text("\n".join([header, *onesided]))
    (folder / "taken.json").write_text("")
    return folder


@pytest.mark.parametrize("line", BAD_CALLS)
def test_the_shell_is_told_options(line, folder, monkeypatch, command):
    monkeypatch.chdir(folder)
    said = " ".join(command(*line.split())[2].split())
    assert BAD_CALLS[line] in said
    # The value of this option is NAME=NUMBER.
    assert not IN_PYTHON.search(re.sub(r"--floor \S+", "", said)), said


def calls():
    tally = compas()
    yield lambda: ic.audit(tally, cost="tpr"), 'for example cost="fnr"'
    yield lambda: ic.audit(tally, replicates=7), "use replicates=2000"
    yield lambda: ic.audit(tally, min_group=-1), "use min_group=30"
    yield lambda: ic.withhold(tally, "fpr"), "accept tolerance=0.0539 or more"
    yield (
        lambda: ic.withhold(tally, "fpr"),
        'or pass infeasible="closest": every one of 2,454 scores in group Caucasian becomes '
        "0.3936, and a difference of 0.0539 remains",
    )
    yield lambda: ic.coarsen(tally, "fpr", tolerance=0.06), "pass allow_decision_changes=True to"
    yield lambda: ic.reconcile(tally, levels=1), 'use levels="auto", the default'
    yield lambda: ic.reconcile(tally, floor={"fpr": 1}), 'example floor={"selection_rate": 0.1}'
    yield lambda: ic.tally({"scores": [1]}), 'did you mean score="scores"?'
    yield lambda: ic.tally({"score": [1], "label": [1], "group": [None]}), 'missing_group="unknown"'
    yield lambda: ic.withhold(ic.tally(score=[0, 1], label=[1, 1], group=[0, 1])), "(tally.relabel)"
    yield lambda: tally.grid.first_bin(0.33), "make the tally with edges=(0.33,)"


@pytest.mark.parametrize(("call", "step"), list(calls()))
def test_python_is_told_arguments(call, step):
    with pytest.raises(ic.IsocostError) as caught:
        call()
    said = " ".join(str(caught.value).split())
    assert step in said
    assert not IN_SHELL.search(said), said


def test_a_setting_in_each_language():
    with speaking(SHELL):
        assert setting("edges", (0.3, 0.7)) == "--edge 0.3 --edge 0.7"
        assert setting("floor", {"tpr": 0.1}) == "--floor tpr=0.1"
        assert setting("missing_group", "not known") == "--missing-group 'not known'"
        assert setting("no_worse", True) == setting("no_worse", UNSET) == "--no-worse"
        assert spoken("tally.drop", "--drop-group") == "--drop-group"
    with speaking(PAGE):
        assert setting("tolerance", 0.06) == "“Costs may differ by”: 0.06"
        assert setting("positive") == "“Which outcome does the score predict?”"
        assert setting("missing_group", "unknown") == "“Name for rows without a group”: unknown"
        assert setting("min_group", 30) == "min group: 30"
    assert setting("force", True) == "force=True"
