"""integrations/dbt in a real project: models, and a test that passes and fails."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import isocost as ic
from isocost.examples import compas_rows
from tests.integrations.conftest import ROOT

ROWS = compas_rows()
TALLY = ic.tally(ROWS)
RULE = ic.withhold(TALLY, "fpr", 0.06)
DIFFERENCE = ic.audit(TALLY, "fpr", confidence=None).disparity.difference
HEAVY = {**ROWS, "half": ROWS["id"] % 2, "weight": 1.0 + ROWS["id"] % 3}
CROSSED = ic.tally(HEAVY, group=["group", "half"], weight="weight")
CROSSED_DIFFERENCE = ic.audit(CROSSED, "plain:1,3", confidence=None).disparity.difference
ONE = {"fp": 1, "fn": 0}
TWO = {"fp": 1, "fn": 3, "groups": 2, "weighted": True}

SCHEMA = {
    "version": 2,
    "models": [
        {
            "name": name,
            "data_tests": [
                {
                    "isocost_cost_difference": {
                        "name": f"{name}_{label}",
                        "arguments": {"above": limit, **options},
                    }
                }
                for label, limit, options in tests
            ],
        }
        for name, tests in {
            "cells": [
                ("below", DIFFERENCE + 1e-9, ONE),
                ("above", DIFFERENCE - 1e-9, ONE),
                ("small", 0.9, ONE | {"min_group": 10_000}),
            ],
            "broken_cells": [("rows", 0.9, ONE)],
            "crossed": [
                ("below", CROSSED_DIFFERENCE + 1e-9, TWO),
                ("above", CROSSED_DIFFERENCE - 1e-9, TWO),
            ],
        }.items()
    ],
}


def run(program, *arguments, cwd):
    """Run a command of this environment."""
    command = [str(Path(sys.executable).with_name(program)), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def written(*arguments, cwd):
    done = run("isocost", "sql", *arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project whose models were run."""
    folder = tmp_path_factory.mktemp("dbt")
    for name in ("models", "macros", "tests/generic"):
        (folder / name).mkdir(parents=True)
    content = {"name": "risk", "version": "1.0", "profile": "risk", "config-version": 2}
    (folder / "dbt_project.yml").write_text(json.dumps(content))
    target = {"type": "duckdb", "path": str(folder / "risk.duckdb"), "threads": 1}
    profile = {"risk": {"target": "dev", "outputs": {"dev": target}}}
    (folder / "profiles.yml").write_text(json.dumps(profile))
    with (folder / "people.csv").open("w") as file:
        names = ["id", "score", "label", "group"]
        columns = [ROWS[name].tolist() for name in names]
        file.write(",".join(names) + "\n")
        file.writelines(",".join(map(str, row)) + "\n" for row in zip(*columns, strict=True))
    models = {
        "scores": f"SELECT * FROM read_csv('{folder / 'people.csv'}')",
        "broken": 'SELECT CASE WHEN id < 3 THEN 1.5 ELSE score END AS score, label, "group" '
        "FROM {{ ref('scores') }}",
        "repaired": "{{ isocost_repair(ref('scores')) }}",
        "cells": "{{ isocost_tally(ref('scores')) }}",
        "heavy": "SELECT *, id % 2 AS half, 1.0 + id % 3 AS weight FROM {{ ref('scores') }}",
        "crossed": "{{ tally_of_heavy(ref('heavy')) }}",
        "broken_cells": "{{ isocost_tally(ref('broken')) }}",
    }
    for name, text in models.items():
        (folder / "models" / f"{name}.sql").write_text(text)
    (folder / "models" / "schema.yml").write_text(json.dumps(SCHEMA))
    RULE.save(folder / "rule.json")
    shutil.copy(ROOT / "integrations/dbt/isocost_cost_difference.sql", folder / "tests/generic")
    written("rule.json", "--id", "id", "--dbt", "isocost_repair", "-o", "macros/r.sql", cwd=folder)
    written("--tally", "--dbt", "isocost_tally", "-o", "macros/t.sql", cwd=folder)
    crossed = ("--tally", "--group", "group", "--group", "half", "--weight", "weight")
    written(*crossed, "--dbt", "tally_of_heavy", "-o", "macros/heavy.sql", cwd=folder)
    done = run("dbt", "run", "--profiles-dir", ".", cwd=folder)
    assert done.returncode == 0, done.stdout
    return folder


def rows_of(project, query):
    with duckdb.connect(str(project / "risk.duckdb"), read_only=True) as database:
        found = database.execute(query)
        return [name for name, *_ in found.description], found.fetchall()


def test_the_same_people_get_the_same_scores(project):
    _, rows = rows_of(project, "SELECT repaired_score FROM repaired ORDER BY id")
    expected = dict(
        zip(ROWS["id"].tolist(), RULE.apply(ROWS, id="id")["repaired_score"].tolist(), strict=True)
    )
    assert [score for (score,) in rows] == [expected[key] for key in sorted(expected)]
    assert len({*expected.values()} - {*ROWS["score"].tolist()}) == 1


def test_the_cells_are_the_tally(project):
    names, rows = rows_of(project, "SELECT * FROM cells")
    assert ic.tally_from_cells([dict(zip(names, row, strict=True)) for row in rows]) == TALLY


def test_the_test_passes_below_the_limit_and_fails_above(project):
    done = run("dbt", "test", "--profiles-dir", ".", cwd=project)
    assert done.returncode == 1
    results = json.loads((project / "target" / "run_results.json").read_text())["results"]
    found = {r["unique_id"].split(".")[2]: (r["status"], r["failures"]) for r in results}
    assert found == {
        "cells_below": ("pass", 0),
        "cells_above": ("fail", 1),
        "cells_small": ("fail", 1),
        "broken_cells_rows": ("fail", 1),
        "crossed_below": ("pass", 0),
        "crossed_above": ("fail", 1),
    }
