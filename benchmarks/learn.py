"""What the estimators add to a model: fitting a rule, and applying it at prediction."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

import isocost as ic
from benchmarks.timing import best, in_turns, shown
from isocost.learn import CalibratedEqualizedOdds, EqualizedOdds, Reconciled

ROWS, COLUMNS = 100_000, 20


def _data(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, COLUMNS))
    group = random.integers(0, 2, rows)
    chance = 1 / (1 + np.exp(-(X[:, :5].sum(axis=1) + 0.5 * group - 0.5)))
    return X, (random.random(rows) < chance).astype(int), group


def fitting() -> list[tuple[str, str, str, str]]:
    """Making the rule from a fitted model's scores, as a share of fitting the model."""
    X, y, group = _data(ROWS)
    model = HistGradientBoostingClassifier(random_state=0)
    whole = best(lambda: model.fit(X, y), 3)
    repairs = {
        "withhold": CalibratedEqualizedOdds(model, cv="prefit", infeasible="closest"),
        "coarsen": CalibratedEqualizedOdds(
            model, method="coarsen", cv="prefit", infeasible="closest"
        ),
        "odds": EqualizedOdds(model, cv="prefit"),
        "reconcile": Reconciled(model, cv="prefit", infeasible="closest"),
    }
    rows = []
    for name, repair in repairs.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ic.IsocostWarning)
            together, scoring = in_turns(
                lambda r=repair: r.fit(X, y, sensitive_features=group),
                lambda: model.predict_proba(X),
            )
        took = max(together - scoring, 0.0)
        rows.append(
            (
                f"fit the rule: {name}, {ROWS:.0e} rows",
                shown(took),
                f"{took / whole:.1%} of fitting HistGradientBoosting ({shown(whole)})",
                "< 5 %",
            )
        )
    return rows


def predicting() -> list[tuple[str, str, str, str]]:
    """predict_proba of a million rows, as a multiple of the model's own."""
    X, y, group = _data(ROWS)
    model = HistGradientBoostingClassifier(random_state=0).fit(X, y)
    repaired = CalibratedEqualizedOdds(model, cv="prefit", infeasible="closest")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ic.IsocostWarning)
        repaired.fit(X, y, sensitive_features=group)
    many = np.tile(X, (10, 1))
    groups, ids = np.tile(group, 10), np.arange(10 * ROWS)
    own = best(lambda: model.predict_proba(many), 3)
    ways = {
        "by ids": lambda: repaired.predict_proba(many, sensitive_features=groups, ids=ids),
        "by a hash of the row": lambda: repaired.predict_proba(many, sensitive_features=groups),
    }
    return [
        (
            f"predict_proba, coin {name}, 1e+06 rows",
            shown(took := best(call, 3)),
            f"{took / own:.2f} times that of HistGradientBoosting ({shown(own)})",
            "-",
        )
        for name, call in ways.items()
    ]
