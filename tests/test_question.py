"""One question: its checks, its keywords, and the functions that take it."""

import inspect
import json

import pytest

import isocost as ic
from isocost.examples import compas, compas_rows
from isocost.question import DEFAULT, FIELDS, asks

ASKING = (ic.audit, ic.intervals, ic.feasibility, ic.bounds)
OF_AUDITS = (ic.report, ic.report_html)


@pytest.mark.parametrize("function", [*ASKING, *OF_AUDITS], ids=lambda one: one.__name__)
def test_every_default_is_that_of_the_question(function):
    parameters = inspect.signature(function).parameters
    for name in FIELDS:
        assert parameters[name].default == inspect.signature(ic.Question).parameters[name].default
    assert parameters["question"].default is None
    assert next(reversed(parameters)) == "reading"


@pytest.mark.parametrize("function", ASKING, ids=lambda function: function.__name__)
def test_keywords_and_a_question_give_the_same(function):
    asked = ic.Question("fpr", tolerance=0.03, replicates=0)
    by_question = function(compas(), question=asked)
    by_keywords = function(compas(), cost="fpr", tolerance=0.03, replicates=0)
    assert by_question.to_dict() == by_keywords.to_dict()


def test_a_keyword_beside_a_question_counts_if_it_is_present():
    asked = ic.Question("fpr", threshold=0.4, replicates=0)
    assert ic.audit(compas(), question=asked).question is asked
    changed = ic.audit(compas(), question=asked, confidence=None, threshold=0.3)
    assert changed.question == ic.Question("fpr", 0.3, confidence=None, replicates=0)
    assert changed.intervals is None
    # A keyword with the default's value counts too.
    assert ic.audit(compas(), question=asked, threshold=0.5).threshold == 0.5
    # By position, a cost and a threshold.
    assert ic.audit(compas(), "fnr", 0.3, question=asked).question == asked.but(
        cost="fnr", threshold=0.3
    )


def test_a_keyword_that_nobody_knows():
    with pytest.raises(
        TypeError, match=r"audit\(\) got an .* 'treshold'; did you mean 'threshold'"
    ):
        ic.audit(compas(), treshold=0.4)
    with pytest.raises(TypeError, match="too many positional arguments"):
        ic.feasibility(compas(), "fpr", 0.1, 0.5)
    with pytest.raises(TypeError, match="multiple values for argument 'cost'"):
        ic.audit(compas(), "fpr", cost="fnr")
    # Columns belong to data, and a tally has been counted.
    with pytest.raises(ic.UsageError, match="score: must be left out with this tally"):
        ic.audit(compas(), score="risk")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cost": "nothing"}, "cost: must be"),
        ({"threshold": 1.0}, "threshold: must be a number strictly between 0 and 1"),
        ({"tolerance": -0.1}, "tolerance: must be a number that is at least 0"),
        ({"confidence": 95}, "strictly between 0 and 1\n  got:  95\n  next: use confidence=0.95"),
        ({"confidence": "high"}, "confidence: must be a number strictly .*\n  got:  'high'"),
        ({"confidence": 0.999, "replicates": 500}, "whole number from 10000 to 100000"),
        ({"confidence": 0.99999}, "use a lower confidence, or replicates=0"),
        ({"replicates": 50}, "replicates: must be 0, or a whole number from 200 to 100000 for "),
        ({"replicates": 50}, "got:  50\n  next: use replicates=2000, or 0 for closed forms only"),
        ({"replicates": False}, "replicates: must be .*\n  got:  False"),
        ({"replicates": 300.0}, "replicates: must be .*\n  got:  300.0"),
        ({"remakes": 3}, "remakes: must be a whole number from 10 to 1000000"),
        ({"seed": -1}, "must be a whole number that is at least 0\n  got:  -1\n  next: use seed=0"),
        ({"min_group": 2.5}, "min_group: must be a whole number that is at least 0"),
        ({"favourable": "yes"}, 'favourable: must be "selected" or "not_selected"'),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ic.UsageError, match=message):
        ic.Question(**settings)
    with pytest.raises(ic.UsageError, match=message):
        DEFAULT.but(**settings)


def test_a_question_is_json_and_its_cost_is_that_of_some_groups():
    own = ic.Measure("mine", "Mine", over=("fp", "tp"), adds={"tp": (1, 0, 0)})
    asked = ic.Question(ic.Cost({"a": 1.0, "b": 2.0, "c": 3.0}, 0.5), measures=["auc", own])
    written = asked.to_dict()
    assert json.loads(json.dumps(written)) == written
    assert written["measures"] == ["auc", "mine"]
    assert written.keys() == set(FIELDS)
    assert asked.among(["a", "c"]).cost == ic.Cost({"a": 1.0, "c": 3.0}, 0.5)
    assert DEFAULT.among(["a"]) is DEFAULT


def test_an_own_parameter_comes_before_a_field_of_its_name():
    @asks("tolerance")
    def rates(tally, question, tolerance=0.0):
        return tolerance, question.tolerance

    asked = ic.Question(tolerance=0.3)
    assert rates(compas(), 0.1) == (0.1, 0.0)
    assert rates(compas(), tolerance=0.1, question=asked) == (0.1, 0.3)
    assert rates(compas(), question=asked) == (0.0, 0.3)


def test_further_edges_and_own_parameters():
    @asks("extra", "cost", edges=lambda own: own.get("extra", ()))
    def edges(tally, question, extra=(), *, loud=False):
        return tally.edges, question.cost, loud

    assert edges(compas_rows(), (0.21,), "fpr", loud=True) == ((0.21,), ic.Cost.fpr(), True)
    assert str(inspect.signature(edges)).startswith("(tally, extra=(), cost: ")
