"""isocost.mlflow against real tracking stores."""

import json
import math

import numpy as np
import pytest

import isocost as ic
from isocost.examples import compas
from isocost.mlflow import log_audit, metrics_of

mlflow = pytest.importorskip("mlflow")
pytestmark = pytest.mark.filterwarnings("ignore")

AUDIT = ic.audit(compas(), "fpr", replicates=0, tolerance=0.06)
RULE = ic.withhold(compas(), "fpr", 0.06)
STORES = ("sqlite", "file")


@pytest.fixture(params=STORES)
def store(request, tmp_path, monkeypatch):
    """A tracking store of its own, with one experiment whose artifacts are in a folder."""
    if request.param == "sqlite":
        pytest.importorskip("sqlalchemy")
        uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    else:
        # Newer releases want to be told that a store of files is meant.
        monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        uri = (tmp_path / "runs").as_uri()
    mlflow.set_tracking_uri(uri)
    experiment = mlflow.create_experiment("audits", (tmp_path / "artifacts").as_uri())
    mlflow.set_experiment(experiment_id=experiment)
    yield
    while mlflow.active_run():
        mlflow.end_run()


def artifact(run_id, name):
    return mlflow.artifacts.load_text(f"runs:/{run_id}/{name}")


def test_everything_comes_back(store):
    with mlflow.start_run() as run:
        assert log_audit(AUDIT, RULE) == run.info.run_id
    data = mlflow.get_run(run.info.run_id).data
    assert data.metrics == metrics_of(AUDIT)
    assert data.metrics["isocost/groups/African-American/generalized_fpr"] == pytest.approx(
        AUDIT.groups["African-American"].generalized_fpr
    )
    assert data.metrics["isocost/disparities/cost"] == AUDIT.disparity.difference
    low, high = AUDIT.intervals.disparities["cost"]
    assert data.metrics["isocost/disparities/cost_low"] == low
    assert data.metrics["isocost/disparities/cost_high"] == high
    assert data.params == {
        "isocost.cost": "fpr",
        "isocost.threshold": "0.5",
        "isocost.tolerance": "0.06",
        "isocost.confidence": "0.95",
        "isocost.score": "score",
        "isocost.label": "label",
        "isocost.group": "group",
        "isocost.rule": "withhold",
    }
    headline = " ".join(data.tags["isocost.verdict"].split())
    assert headline.endswith("is not established.")
    assert " ".join(str(AUDIT).split()).startswith(headline)
    assert json.loads(artifact(run.info.run_id, "isocost/audit.json")) == AUDIT.to_dict()
    assert ic.Rule.from_json(artifact(run.info.run_id, "isocost/rule.json")) == RULE
    page = artifact(run.info.run_id, "isocost/report.html")
    assert page.startswith("<!doctype html>")
    assert "Caucasian" in page


def test_a_run_is_started_if_there_is_none(store):
    run_id = log_audit(AUDIT, report=False)
    assert mlflow.active_run().info.run_id == run_id
    names = [one.path for one in mlflow.MlflowClient().list_artifacts(run_id, "isocost")]
    assert names == ["isocost/audit.json"]


def test_before_and_after_in_one_run(store):
    after = ic.audit(RULE.expected(compas()), "fpr", confidence=None)
    with mlflow.start_run() as run:
        log_audit(AUDIT, report=False)
        log_audit(after, report=False, prefix="after")
        # The same audit again is no contradiction.
        log_audit(AUDIT, report=False)
        with pytest.raises(ic.UsageError) as error:
            log_audit(ic.audit(compas(), "fnr", confidence=None), report=False)
    assert str(error.value) == (
        "prefix: must be new in a run, unless the audit was made with the same arguments\n"
        "  got:  'isocost', and isocost.cost is fpr there, not fnr\n"
        '  next: pass another prefix, for example prefix="after", or start another run'
    )
    metrics = mlflow.get_run(run.info.run_id).data.metrics
    assert metrics["after/disparities/cost"] == pytest.approx(0.06)
    assert metrics["isocost/disparities/cost"] == AUDIT.disparity.difference


def test_many_groups_of_any_name(store):
    strange = ["a/b", "a|b", "A/B", "..", ".", " ", "żółć", "x" * 300, "100 %", "a:b", "日本"]
    names = strange + [f"group {i}" for i in range(30)]
    random = np.random.default_rng(0)
    score = random.random(20_000)
    people = {
        "score": score,
        "label": random.random(20_000) < score,
        "group": np.array(names, dtype=object)[random.integers(0, len(names), 20_000)],
    }
    audit = ic.audit(ic.tally(people), confidence=None)
    assert len(metrics_of(audit)) > 1000
    with mlflow.start_run() as run:
        log_audit(audit, report=False)
    metrics = mlflow.get_run(run.info.run_id).data.metrics
    values = [value for name, value in metrics.items() if name.endswith("/generalized_fpr")]
    expected = [numbers.generalized_fpr for numbers in audit.groups.values()]
    assert len(values) == len(names) + 2
    assert {*expected} <= {*values}


def test_undefined_numbers_are_left_out(store):
    people = {
        "score": [0.1, 0.2] * 40 + [0.3] * 4,
        "label": [0, 1] * 40 + [0] * 4,
        "group": ["a", "b", "b", "a"] * 20 + ["c"] * 4,
    }
    audit = ic.audit(ic.tally(people), confidence=None)
    assert math.isnan(audit.groups["c"].fnr)
    with mlflow.start_run() as run:
        log_audit(audit, report=False)
    metrics = mlflow.get_run(run.info.run_id).data.metrics
    assert "isocost/groups/c/fnr" not in metrics
    assert "isocost/groups/c/fpr" in metrics
