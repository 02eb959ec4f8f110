"""What log_audit refuses; tests/integrations logs to real stores."""

import sys

import pytest

import isocost as ic
from isocost.examples import compas
from isocost.mlflow import _safe_names, log_audit, metrics_of

AUDIT = ic.audit(compas(), confidence=None)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"audit": 3}, "audit"),
        ({"audit": None}, "audit"),
        ({"rule": AUDIT}, "rule"),
        ({"report": "yes"}, "report"),
        ({"prefix": ""}, "prefix"),
        ({"prefix": "a/b"}, "prefix"),
        ({"prefix": None}, "prefix"),
        ({"prefix": "x" * 51}, "prefix"),
    ],
)
def test_bad_arguments(arguments, name):
    with pytest.raises(ic.UsageError, match=f"^{name}: must"):
        log_audit(**{"audit": AUDIT, **arguments})


def test_without_mlflow_the_command_is_printed(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ic.MissingDependencyError) as error:
        log_audit(AUDIT)
    assert str(error.value).startswith("mlflow: is needed to log an audit\n  got:  no mlflow\n")
    assert error.value.problems[0].next_step == 'pip install "isocost[mlflow]"'


def test_names_are_safe_and_told_apart():
    names = _safe_names(["a", "A", "a_2", "a/b", "a|b", "..", "x" * 300, "x" * 301])
    assert len({name.casefold() for name in names}) == len(names)
    assert names[:2] == ["a", "A_2"]
    assert max(map(len, names)) <= 102


def test_every_number_of_the_audit_is_a_metric():
    found = metrics_of(ic.audit(compas(), replicates=0))
    assert {f"isocost/overall/{name}" for name in AUDIT.overall.values} <= set(found)
    assert {f"isocost/disparities/{name}" for name in AUDIT.disparities} <= set(found)
