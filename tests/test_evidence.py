"""Evidence: its formula, how rarely it grows by chance, and what claims are about."""

import math

import numpy as np
import pytest

import isocost as ic
from isocost.judging.evidence import (
    BANDS,
    EFFECTS,
    WATCHABLE,
    Claim,
    History,
    Stream,
    claims_of,
    evidence,
)
from tests.populations import period


def brute_force(rows, k, constant, limit, sign):
    """The evidence as the docstring writes it, row by row, period by period, start by start."""
    periods = len(rows[0])
    total = []
    for last in range(periods):
        value = 1.0 / (last + 2.0)
        for start in range(last + 1):
            for effect in EFFECTS:
                log_e = 0.0
                for t in range(start, last + 1):
                    before = [np.concatenate([[], *stream[:t]]) for stream in rows]
                    means = [(0.5 + past.sum()) / (1 + len(past)) for past in before]
                    spreads = [
                        (0.25 + ((past - mean) ** 2).sum()) / (1 + len(past))
                        for past, mean in zip(before, means, strict=True)
                    ]
                    n = [len(stream[t]) for stream in rows]
                    variance = sum(
                        f**2 * s / size for f, s, size in zip(k, spreads, n, strict=True)
                    )
                    bold = min(0.5 * size / abs(f) for f, size in zip(k, n, strict=True))
                    weight = min(effect / variance, bold)
                    found = constant + sum(f * s[t].mean() for f, s in zip(k, rows, strict=True))
                    log_e += weight * (sign * found - limit)
                    for f, stream, mean, size in zip(k, rows, means, n, strict=True):
                        step = weight * abs(f) / size
                        psi = -math.log(1 - step) - step
                        log_e -= psi * ((stream[t] - mean) ** 2).sum()
                value += math.exp(log_e) / len(EFFECTS) / ((start + 1) * (start + 2))
        total.append(math.log(value))
    return total


def test_evidence_is_its_formula():
    random = np.random.default_rng(1)
    sizes = ((40, 3, 25), (10, 60, 7))
    rows = [[random.random(n) for n in stream] for stream in sizes]
    k, constant = (1.0, -0.7), 0.1
    streams = [
        Stream(
            factor,
            np.array([float(len(part)) for part in stream]),
            np.array([part.sum() for part in stream]),
            np.array([(part**2).sum() for part in stream]),
        )
        for factor, stream in zip(k, rows, strict=True)
    ]
    found = evidence(streams, constant)
    for limit, sign in ((0.0, 1.0), (0.2, -1.0), (0.05, 1.0)):
        wanted = brute_force(rows, k, constant, limit, sign)
        np.testing.assert_allclose(found.against(limit, sign), wanted, rtol=1e-9)
    everything = [np.concatenate(stream).mean() for stream in rows]
    assert found.running[-1] == pytest.approx(constant + everything[0] - 0.7 * everything[1])
    assert found.limits == pytest.approx((-0.6, 1.1))
    low = found.at_least(0.3, 1.0, 2)
    assert found.against(low, 1.0)[2] == pytest.approx(-math.log(0.3), abs=1e-6)


def test_one_step_never_gains_on_average():
    """E[exp(l (x - mu) - psi(l) (x - m)^2)] <= 1, the inequality that everything rests on."""
    for mu in np.linspace(0.01, 0.99, 15):
        for m in np.linspace(0, 1, 11):
            for step in (0.01, 0.1, 0.3, 0.5):
                psi = -math.log(1 - step) - step
                for low, high in ((0.0, 1.0), (mu / 2, (1 + mu) / 2), (0.0, (1 + mu) / 2)):
                    p = (mu - low) / (high - low)
                    for sign in (1, -1):
                        mean = sum(
                            chance * math.exp(sign * step * (x - mu) - psi * (x - m) ** 2)
                            for x, chance in ((low, 1 - p), (high, p))
                        )
                        assert mean <= 1 + 1e-12


def test_estimates_are_those_of_the_audit():
    random = np.random.default_rng(2)
    tallies = [period(random, 400, weighted=weighted) for weighted in (False, True)]
    for tally in tallies:
        for cost in ("fpr", "fnr", "weighted:1,3", "plain:2,1"):
            history = History([tally], ["a", "b"], 0.5, ic.Cost.parse(cost))
            audit = ic.audit(tally, cost, confidence=None)
            for name in WATCHABLE:
                found = evidence(*history.streams(Claim(name, ("a", "b"), None, 0.0, 0.1)))
                a, b = (getattr(audit.groups[g], name) for g in "ab")
                assert found.estimate[0] == pytest.approx(a - b, abs=1e-12), (cost, name)
            claim = Claim("calibration", ("b",), None, 0.0, 0.1)
            b = audit.groups["b"]
            offset = evidence(*history.streams(claim)).estimate[0]
            assert offset == pytest.approx(b.base_rate - b.mean_score, abs=1e-12)


def test_bands_add_up_to_everybody():
    tally = period(np.random.default_rng(3), 500)
    history = History([tally], ["a", "b"], 0.5, None)
    parts = [history.streams(Claim("calibration", ("a",), b, 0, 0.1))[0][0] for b in BANDS]
    (whole,), _ = history.streams(Claim("calibration", ("a",), None, 0, 0.1))
    for name in ("n", "total", "square"):
        assert sum(getattr(p, name)[0] for p in parts) == pytest.approx(getattr(whole, name)[0])


def test_chances_of_false_alarms_add_up():
    claims = claims_of(["a", "b", "c"], {"fpr": 0.01, "fnr": 0.01}, 0.02, 0.05)
    assert sum(claim.error for claim in claims) == pytest.approx(0.05)
    assert sum(c.error for c in claims_of(["a", "b"], {"cost": 0.0}, None, 0.1)) == 0.1


def test_a_drift_of_some_standard_errors_is_found_after_fifteen_periods_at_the_median():
    """As docs/monitoring.md says: two groups, 52 quiet periods before, the usual confidence."""
    random = np.random.default_rng(0)
    rows, quiet, drift = 1000, 52, 1.3 * math.sqrt(2 * 0.25 / 1000)
    rates = np.where(np.arange(quiet + 60) < quiet, 0.5, 0.5 + drift)
    (claim,) = claims_of(["a", "b"], {"cost": 0.0}, 0.02, 0.05)[:1]
    delays = []
    for _ in range(200):
        counts = [random.binomial(rows, rate, len(rates)).astype(float) for rate in (rates, 0.5)]
        n = np.full(len(rates), float(rows))
        streams = [Stream(k, n, c, c) for k, c in zip((1.0, -1.0), counts, strict=True)]
        loud = evidence(streams).against(0.0) >= -math.log(claim.error / 2)
        delays.append(int(np.argmax(loud)) + 1 - quiet if loud.any() else len(rates))
    assert 14 <= np.median(delays) <= 16
