"""EO-Trained: its constraint and loss, and no better solution where all can be looked through."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from reproduction import zafar
from reproduction.datasets import compas
from reproduction.models import zafar_features
from tests.reproduction.conftest import need
from tests.test_trained import people


def covariance(kind, z, y, group, name="a"):
    """Zafar et al.'s covariance, written row by row."""
    g = np.where(y == (kind == "fnr"), np.minimum(0, (2 * y - 1) * z), 0.0)
    inside = group == name
    return np.mean((inside - inside.mean()) * g)


def decision(program, w, X):
    return (X - program.center) / program.scale @ w[:-1] + w[-1]


@pytest.mark.parametrize("kinds", [("fpr",), ("fnr",), ("fpr", "fnr")])
@pytest.mark.parametrize("bound", [0.0, 0.01])
def test_constraint_and_loss_are_what_the_rows_say(kinds, bound):
    X, y, group = people(levels=2)
    program = zafar.program(X, y, group, kinds=kinds, C=1.0)
    w = zafar.train(program, bound)
    found = program.covariances(w)
    wanted = [covariance(kind, decision(program, w, X), y, group) for kind in kinds]
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    assert np.abs(found).max() <= bound + 1e-5
    assert program.loss(w) == pytest.approx(log_loss(y, program.scores(w, X)), abs=1e-12)
    assert program.objective(w) > program.objective(program.free)


@pytest.mark.parametrize("C", [1.0, np.inf])
def test_a_bound_that_does_not_bind_gives_logistic_regression(C):
    X, y, group = people()
    X = X * [1.0, 30.0]
    program = zafar.program(X, y, group, C=C)
    peer = LogisticRegression(C=C, tol=1e-12, max_iter=10_000).fit(X, y)
    scores = program.scores(zafar.train(program, 50.0), X)
    np.testing.assert_allclose(scores, peer.predict_proba(X)[:, 1], atol=1e-6)


@pytest.mark.parametrize("kind", ["fpr", "fnr"])
@pytest.mark.parametrize("seed", range(3))
def test_no_direction_is_better(kind, seed):
    # With one feature and an intercept the covariance depends on the direction but for its size:
    # all directions can be looked through.
    X, y, group = people(seed=seed, levels=2)
    x = X[:, :1]
    program = zafar.program(x, y, group, kinds=[kind])
    w = zafar.train(program, 0.0, [5.0])
    design = np.column_stack([x, np.ones(len(x))])
    angles = np.linspace(0, 2 * np.pi, 1001)

    def cov(angle):
        return covariance(kind, design @ [np.cos(angle), np.sin(angle)], y, group)

    values = np.array([cov(angle) for angle in angles])
    feasible = list(angles[np.abs(values) < 1e-12])
    for i in np.flatnonzero(values[:-1] * values[1:] < -1e-30):
        low, high = angles[i], angles[i + 1]
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if cov(middle) * cov(low) > 0 else (low, middle)
        feasible.append(low)
    sign, sizes = 2 * y - 1, np.linspace(0, 6, 121)
    z = [design @ [np.cos(a), np.sin(a)] for a in feasible]
    losses = [np.logaddexp(0, np.outer(sizes, -sign * row)).mean(axis=1).min() for row in z]
    assert zafar.Search(program, 0.0).is_met(w)
    assert program.loss(w) <= min(losses) + 1e-6


def test_nobody_is_left_on_the_boundary():
    # Few distinct rows: the optimum runs through some of them.
    for seed in range(6):
        X, y, group = people(seed=seed, levels=1)
        program = zafar.program(X, y, group, kinds=["fpr"])
        w = zafar.train(program)
        assert np.abs(decision(program, w, X)).min() > 1e-7
        assert np.abs(program.covariances(w)).max() < 1e-5


def test_losses_rise_as_the_bound_tightens():
    X, y, group = people()
    program = zafar.program(X, y, group, kinds=["fpr"])
    bounds = [9.0, 0.05, 0.02, 0.01, 0.0]
    path = zafar.path(program, bounds, [])
    losses = [program.loss(w) for w in path]
    assert losses == sorted(losses)
    assert all(zafar.Search(program, b).is_met(w) for b, w in zip(bounds, path, strict=True))
    assert losses[-1] == pytest.approx(program.loss(zafar.train(program)), abs=1e-5)


def single_run(X, y, group, start):
    """One dccp run from tau = 5, as the paper's authors do it; the loss it ends with."""
    import cvxpy as cp
    import dccp  # noqa: F401

    design = np.column_stack([X, np.ones(len(X))])
    cells, place = np.unique(design, axis=0, return_inverse=True)
    inside = group == "Caucasian"
    factor = np.bincount(place.ravel(), (inside - inside.mean()) * (y == 0)) / len(y)
    n, positive = np.bincount(place.ravel()), np.bincount(place.ravel(), y)
    w = cp.Variable(cells.shape[1])
    w.value = start
    loss = (n @ cp.logistic(cells @ w) - positive @ (cells @ w)) / n.sum()
    distance = cp.pos(cells @ w)
    one, other = np.maximum(factor, 0) @ distance, np.maximum(-factor, 0) @ distance
    problem = cp.Problem(cp.Minimize(loss), [one <= other, other <= one])
    with warnings.catch_warnings():
        # Some versions of cvxpy say so of a step on the way.
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        problem.solve(
            method="dccp", tau_ini=5.0, mu=1.2, tau_max=1e10, max_iter=50, solver="CLARABEL"
        )
    z = cells @ w.value
    return (n @ np.logaddexp(0, z) - positive @ z) / n.sum()


def test_compas():
    need("compas")
    study = zafar_features(compas())
    accuracy, gap = [], []
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(len(study.y))
        train, test = np.array_split(order, 2)
        X, y, group = study.X[train], study.y[train], study.group[train]
        program = zafar.program(X, y, group, kinds=["fpr"])
        w = zafar.train(program, 0.0, [0.5, 5.0, 50.0])
        assert abs(covariance("fpr", decision(program, w, X), y, group, "Caucasian")) < 1e-6
        free = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000).fit(X, y)
        single = single_run(X, y, group, np.append(free.coef_, free.intercept_))
        assert program.loss(w) <= single
        said, truth = decision(program, w, study.X[test]) > 0, study.y[test]
        accuracy.append((said == truth).mean())
        negative = truth == 0
        black = study.group[test] == "African-American"
        gap.append(abs(said[negative & black].mean() - said[negative & ~black].mean()))
    assert np.mean(accuracy) >= 0.65
    assert np.mean(gap) <= 0.05
