"""Every kind of rule does to people what it promises, on every engine there is."""

import inspect
import warnings
from dataclasses import replace

import numpy as np
import pytest

import isocost as ic
from isocost.examples import compas
from isocost.page.view import lines_of
from isocost.repairs.base import repairs
from isocost.rules import Row
from tests.conftest import measured, sample


def simulated(groups, weighted):
    data = sample(60_000, groups=groups, seed=11, weighted=weighted)
    data["name"] = np.array([f"group {g}" for g in range(groups)])[data["group"]]
    return data


def counted(data, weighted):
    options = {"weight": "weight"} if weighted else {}
    return ic.tally(data, group="name", edges=(0.37, 0.63), handed_over=True, **options)


# By threshold, of which not all are tenths.
MAKERS = {
    "withhold": (0.37, lambda t: ic.withhold(t, "fnr")),
    "coarsen": (0.37, lambda t: ic.coarsen(t, "fnr", 0.37, allow_decision_changes=True)),
    "odds": (0.5, ic.equalize_odds),
    "odds at 0.37": (0.37, lambda t: ic.equalize_odds(t, 0.37)),
    "odds, hard": (0.63, lambda t: ic.equalize_odds(t, 0.63, rates="hard")),
    "reconcile": (0.37, lambda t: ic.reconcile(t, 0.37, tolerance=0.01)),
    "recalibrate": (0.37, ic.recalibrate),
    "hand_over": (0.5, lambda t: ic.hand_over(t, 0.5)),
}


@pytest.fixture(scope="module", params=[(2, False), (3, True), (10, False)], ids=str)
def population(request):
    groups, weighted = request.param
    data = simulated(groups, weighted)
    return data, counted(data, weighted), weighted


@pytest.mark.parametrize("name", MAKERS)
def test_people_get_what_was_expected(population, name):
    data, tally, weighted = population
    threshold, make = MAKERS[name]
    rule = make(tally)
    assert ic.Rule.from_json(rule.to_json()) == rule
    repaired = counted(rule.apply(data, group="name", id="id", output="score"), weighted)
    expected = measured(rule.expected(tally), threshold=threshold)
    applied = measured(repaired, threshold=threshold)
    shares = expected.tally.shares_handed_over
    assert repaired.shares_handed_over == pytest.approx(shares, abs=0.03)
    for group in tally.groups:
        mine = tally.totals
        place = tally.groups.index(group)
        # The coin moves a mean of scores in [0, 1] by at most 1/2 standard deviation a row.
        rows = (mine.w[place] ** 2 / mine.w2[place]).min()
        noise = 4.5 * 0.5 / np.sqrt(rows)
        for number in ("generalized_fpr", "generalized_fnr", "fpr", "fnr", "mean_score"):
            found = getattr(applied.groups[group], number)
            assert abs(found - getattr(expected.groups[group], number)) < noise, number


@pytest.mark.parametrize("name", MAKERS)
def test_nothing_to_do_for_identical_groups(name):
    data = simulated(2, weighted=False)
    half = {key: values[data["group"] == 0] for key, values in data.items()}
    twice = {key: np.concatenate([values, values]) for key, values in half.items()}
    twice["name"] = np.repeat(["a", "b"], len(half["score"]))
    tally = counted(twice, weighted=False)
    rule = MAKERS[name][1](tally)
    if not name.startswith(("rec", "hand")):
        assert rule.rows == ()
    assert measured(rule.expected(tally)).disparity.difference < 1e-9


# Settings that are no defaults, for every repair there is.
UNUSUAL = {
    "withhold": {"cost": "fpr", "tolerance": 0.01, "infeasible": "closest"},
    "coarsen": {
        "cost": ic.Cost.weighted(1, 3),
        "thresholds": (0.3, 0.7),
        "tolerance": 0.01,
        "infeasible": "closest",
        "allow_decision_changes": True,
        "minimize": "mean",
    },
    "odds": {"threshold": 0.3, "rates": "hard"},
    "reconcile": {
        "threshold": 0.4,
        "equal": ["fpr", "cost"],
        "tolerance": {"fpr": 0.01, "cost": 0.02},
        "cost": "fnr",
        "levels": 16,
        "floor": {"selection_rate": 0.1, "overall_accuracy": 0.5},
        "no_worse": True,
        "monotone": True,
        "infeasible": "closest",
    },
    "hand_over": {
        "share": 0.2,
        "tolerance": 0.05,
        "threshold": 0.4,
        "keep": "brier",
        "levels": 8,
        "infeasible": "closest",
    },
}


@pytest.fixture(scope="module")
def two_tallies():
    return [ic.tally(sample(5_000, groups=2, seed=seed)) for seed in (1, 2)]


def defaults_of(repair):
    """The arguments of a repair besides those of a question, with their defaults."""
    asked = {"tally", "salt", "question", "reading", *inspect.signature(ic.Question).parameters}
    own = asked - {option.name for option in repair.options}
    signature = inspect.signature(repair.make).parameters
    return {name: one.default for name, one in signature.items() if name not in own}


@pytest.mark.parametrize("name", ic.REPAIRS)
def test_the_table_knows_every_argument(name):
    repair = ic.REPAIRS[name]
    usual = defaults_of(repair)
    assert usual.keys() == {option.name for option in repair.options}
    assert set(repair.asks) <= set(inspect.signature(ic.Question).parameters)
    for option in repair.options:
        values = usual[option.name] if option.many else (usual[option.name],)
        assert not option.choices or set(values) <= set(option.choices)
        assert option.help.endswith(".")


@pytest.mark.parametrize("name", ic.REPAIRS)
def test_a_rule_is_made_again_by_its_own_settings(two_tallies, name):
    repair, arguments = ic.REPAIRS[name], UNUSUAL[name]
    # Every option is set to something else than its default.
    assert arguments.keys() == {*repair.asks, *(option.name for option in repair.options)}
    assert all(arguments[option] != usual for option, usual in defaults_of(repair).items())
    here, there = two_tallies
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ic.InfeasibleWarning)
        warnings.simplefilter("ignore", ic.DeferralWarning)
        rule = repair.make(here, **arguments, salt="pepper")
        assert rule.method == name
        assert rule.settings.keys() == arguments.keys() - {"cost"}
        back = ic.Rule.from_json(rule.to_json())
        assert back == rule
        assert rule.remake(here) == back.remake(here) == rule
        elsewhere = repair.make(there, **arguments, salt="pepper")
        assert rule.remake(there) == elsewhere != rule


@pytest.mark.parametrize("change", [{"reached": 0.01}, {"monotone": None}])
def test_settings_that_are_not_the_arguments_are_refused(change):
    rule = ic.reconcile(compas(), levels=64)
    settings = {k: v for k, v in {**rule.settings, **change}.items() if v is not None}
    with pytest.raises(ic.UsageError, match="settings: must be the arguments of reconcile"):
        replace(rule, settings=settings).remake(compas())


def test_the_settings_of_the_closest_rule_are_its_arguments():
    with pytest.warns(ic.InfeasibleWarning):
        rules = [
            ic.withhold(compas(), "fpr", infeasible="closest"),
            ic.coarsen(compas(), "fpr", infeasible="closest"),
            ic.reconcile(compas(), equal="generalized_fpr", infeasible="closest"),
        ]
    for rule in rules:
        assert rule.promise.equal != rule.promise.asked, "the promise says what was reached"
        assert rule.settings.keys() == ic.REPAIRS[rule.method].settings


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"method": "mine"},
            "rule: must be made by one of 'withhold', 'coarsen', 'odds', 'reconcile', "
            "'hand_over', 'recalibrate' to be made again\n  got:  a rule made by 'mine'\n"
            "  next: call the function that made it",
        ),
        (
            {"settings": {"tolerance": 0.0, "bins": 3}},
            "settings: must be the arguments of withhold for the rule to be made again\n"
            "  got:  no 'infeasible', an unknown 'bins'\n"
            "  next: call isocost.withhold with the arguments you want",
        ),
    ],
)
def test_rules_that_cannot_be_made_again(two_tallies, change, message):
    rule = replace(ic.withhold(two_tallies[0], "fnr", 0.01), **change)
    with pytest.raises(ic.UsageError) as error:
        rule.remake(two_tallies[0])
    assert str(error.value) == message


@repairs("cost", "tolerance")
def erase(tally, question, *, salt="isocost"):
    """A repair of our own: everybody gets one score, so that every cost is the same."""
    rows = tuple(Row(group, 0.0, 1.0, "set", 0.5, 1.0) for group in tally.groups)
    promise = ic.Promise.of(rows, {"cost": question.tolerance}, calibrated=False)
    settings = {"tolerance": question.tolerance}
    return ic.Rule(tally.groups, rows, "erase", question.cost, settings, salt=salt, promise=promise)


@pytest.mark.filterwarnings("ignore::isocost.UncertainWarning")
def test_one_entry_is_enough_for_a_new_repair(two_tallies, monkeypatch):
    asks = ("cost", "tolerance")
    mine = ic.Repair("erase", "Erase", "Does.", "Keeps.", erase, "cost", asks, ())
    monkeypatch.setitem(ic.REPAIRS, "erase", mine)
    here, there = two_tallies
    rule = erase(here, "fpr", 0.01)
    assert rule.remake(there) == erase(there, "fpr", 0.01)
    found = ic.frontier(here, "fpr", "erase", points=2)
    assert [point.disparity for point in found.points] == [0.0, 0.0]
    shown = lines_of(ic.audit(here, "fpr", confidence=None), None)
    assert [one.label for one in shown][-1] == "Erase"
    assert shown[-1].rule.rows == erase(here, "fpr").rows
    assert ic.watch(rule, [rule.expected(here)]).limits == {"cost": 0.01}
    assert ic.compare(here, [rule], "fpr").rules["erase"].audit.disparity.difference == 0.0
