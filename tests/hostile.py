"""Rules and tallies as somebody may have changed them, and what must then still hold."""

import copy
import json
import math
import warnings

import numpy as np
from hypothesis import strategies as st

import isocost as ic
from isocost.cells import KEYS, SUMS
from isocost.grid import Grid
from isocost.page.payload import payload
from isocost.page.view import compact
from isocost.plots import (
    ChangeDisplay,
    MeasuresDisplay,
    NetBenefitDisplay,
    PlaneDisplay,
    PredictiveValuesDisplay,
    ReliabilityDisplay,
)


def nested(depth):
    value = "a"
    for _ in range(depth):
        value = [value]
    return value


ODD = [
    None, True, False, 0, 1, 2, -1, 0.5, -0.5, 0.3, 1.5, -0.0, 1e308, 1e200, 1e150, 1e100, 1e-100,
    1e-308, 5e-324, 2**31, 2**53, 2**63, 2**64, 10**25, 10**299, 10**400, math.nan, math.inf, "",
    "a", "b", "0.5", "fnr", "odds", "hard", "reconcile", "coarsen", "\ud800", "\x00", "\x1b[31m",
    "'; DROP TABLE x; --", "x" * 5000, [], {}, [[]], [1], ["a"], ["fpr"], ["a", 1], {"a": 1},
    {"fpr": 0.1}, {"fp": 1, "fn": 1, "by_base_rate": True}, nested(3), nested(100),
]  # fmt: skip
FACTORS = [0, -1, 0.5, 2, 1 + 1e-12, 1e-200, 1e200]


def places(content, at=()):
    """The ways to all values inside."""
    inside = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in inside:
        yield (*at, key)
        if isinstance(value, dict | list):
            yield from places(value, (*at, key))


def found_at(content, way):
    for key in way:
        content = content[key]
    return content


@st.composite
def tampered(draw, contents):
    """JSON text of one of the contents with up to three changes."""
    content = copy.deepcopy(draw(st.sampled_from(contents)))
    for _ in range(draw(st.integers(1, 3))):
        ways = list(places(content))
        if not ways:
            break
        # A field first, or nearly all changes would be to the many rows or cells.
        field = draw(st.sampled_from(list(content)))
        *way, last = draw(st.sampled_from([way for way in ways if way[0] == field]))
        parent = found_at(content, way)
        change = draw(st.sampled_from(["replace", "nudge", "delete", "copy", "swap"]))
        if change == "delete":
            del parent[last]
        elif change == "copy" and isinstance(parent, list):
            parent.append(copy.deepcopy(parent[last]))
        elif change == "swap":
            other = found_at(content, draw(st.sampled_from(ways)))
            parent[last] = copy.deepcopy(other)
        elif change == "nudge" and type(parent[last]) in (int, float):
            parent[last] *= draw(st.sampled_from(FACTORS))
        else:
            parent[last] = copy.deepcopy(draw(st.sampled_from(ODD)))
    return json.dumps(content)


GROUPS = ["a", "b", "", "a b", "\x1b[1m", 1, 2.5, 10**30, True, ["x", 1], "x" * 3000, -1e300, "1"]


@st.composite
def extreme(draw):
    """JSON text of a tally that is valid, or just not, and as uneven as it can be."""
    bins = draw(st.sampled_from([1, 2, 8, 1000, 1024]))
    edges = draw(st.sampled_from([[], [0.33], [1e-300], [0.5000000000000001]]))
    grid = Grid(bins, tuple(edges))
    groups = draw(st.lists(st.sampled_from(GROUPS), min_size=2, max_size=4, unique_by=json.dumps))
    weighted = draw(st.booleans())
    scale = draw(st.sampled_from([1, 1e-20, 1e20, 1e-70, 1e70])) if weighted else 1
    rows = []
    for group in range(len(groups)):
        for label in (0, 1):
            inside = sorted({0, 1, grid.size // 2, grid.size - 1})
            for place in draw(st.sets(st.sampled_from(inside), min_size=1, max_size=3)):
                n = draw(st.sampled_from([1, 2, 3, 100, 10**6, 10**12]))
                w = n * (scale * draw(st.sampled_from([1, 0.5, 1e-3, 1e3])) if weighted else 1.0)
                w2 = w * w / n * draw(st.sampled_from([1, min(n, 2)])) if weighted else w
                w4 = w2 * w2 / n if weighted else w
                low, high = grid.cuts[place], grid.cuts[place + 1]
                share = draw(st.sampled_from([0, 1, 0.5, 1e-15, 1 - 1e-16]))
                wh = w * (low + share * (high - low)) * draw(st.sampled_from([1, 1, 1 + 1e-10]))
                wh2 = draw(st.sampled_from([wh * wh / w, wh * wh / w if n == 1 else high * wh]))
                rows.append([group, label, int(place), n, w, w2, w4, wh, wh2])
    names = (*KEYS, *SUMS)
    cells = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    content = {"format": "isocost-tally", "version": 1, "bins": bins, "edges": edges}
    return json.dumps({**content, "columns": {}, "groups": groups, "cells": cells})


def survived(work):
    """What work gives; None if it refuses with an error of four parts.  Nothing else may happen."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ic.IsocostWarning)
            return work()
    except ic.IsocostError as error:
        for problem in error.problems:
            parts = (problem.name, problem.rule, problem.got, problem.next_step)
            assert all(isinstance(part, str) and part for part in parts)
        str(error).encode()
        return None


def written(result):
    """A result as people and programs read it."""
    repr(result).encode()
    result._repr_html_().encode()
    content = result.to_dict()
    json.dumps(content, allow_nan=False)


def use_rule(rule, tally, data):
    """Do with a rule whatever can be done with one."""
    assert ic.Rule.from_json(rule.to_json()) == rule
    written(rule)
    json.dumps(compact(rule.groups, rule), allow_nan=False)
    after = survived(lambda: rule.expected(tally))
    assert after is None or ic.Tally.from_json(after.to_json()) == after
    survived(lambda: written(ic.compare(tally, [rule])))
    survived(lambda: written(ic.watch(rule, [tally, tally])))
    survived(lambda: rule.alpha)
    survived(lambda: rule.apply(data, id="id"))
    survived(lambda: rule.apply(data, seed=1, unknown="keep"))
    survived(lambda: PlaneDisplay.from_tally(tally, [rule]))
    survived(lambda: ChangeDisplay.from_tally(tally, [rule]))
    for dialect in ("duckdb", "bigquery", "mysql"):
        survived(lambda dialect=dialect: rule.to_sql(dialect, id="id").encode())


def use_tally(tally):
    """Do with a tally whatever can be done with one."""
    assert ic.Tally.from_json(tally.to_json()) == tally
    written(tally)
    survived(lambda: written(ic.audit(tally, confidence=None)))
    survived(lambda: written(ic.audit(tally, "weighted:1,3", replicates=100, confidence=0.9)))
    survived(lambda: written(ic.bounds(tally, "fpr", "fnr")))
    makers = (
        lambda: ic.withhold(tally, infeasible="closest"),
        lambda: ic.coarsen(tally, infeasible="closest"),
        lambda: ic.equalize_odds(tally),
        lambda: ic.reconcile(tally, levels=3, infeasible="closest"),
    )
    for make in makers:
        rule = survived(make)
        if rule is not None:
            assert ic.Rule.from_json(rule.to_json()) == rule
            after = survived(lambda rule=rule: rule.expected(tally))
            survived(lambda after=after: ic.Tally.from_json(after.to_json()))
            survived(lambda rule=rule: written(ic.compare(tally, [rule])))
            survived(lambda rule=rule: written(ic.watch(rule, [tally])))
    survived(lambda: tally + tally)
    survived(lambda: tally.drop(tally.groups[:1]))
    survived(lambda: json.dumps(payload(tally, 2), allow_nan=False))
    survived(lambda: PlaneDisplay.from_tally(tally))
    survived(lambda: ReliabilityDisplay.from_tally(tally, replicates=3))
    survived(lambda: PredictiveValuesDisplay.from_tally(tally))
    survived(lambda: NetBenefitDisplay.from_tally(tally))
    survived(lambda: MeasuresDisplay.from_tally(tally))


def population(seed, rows=60):
    """Two groups, one with better scores, as columns."""
    random = np.random.default_rng(seed)
    group = random.choice(["a", "b"], rows)
    score = random.random(rows)
    label = (random.random(rows) < score).astype(int)
    score = np.where(group == "a", score, 0.3 + 0.4 * score).round(3)
    weight = random.random(rows) + 0.1
    return {"id": np.arange(rows), "score": score, "label": label, "group": group, "weight": weight}
