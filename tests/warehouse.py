"""One table of people and several rules, for every database that the tests can run."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

import isocost as ic
from isocost.rules import Row
from tests.conftest import sample

HOSTILE = (
    "'); drop table x;--",
    "back\\slash",
    "ends in \\",
    "\\' or 1=1 --",
    "line\nbreak\r\nand tab\t.",
    'double "quotes" and `ticks`',
    "${env:HOME} $1 %s %(a)s {0} :a ?",
    "/* comment */ -- # x",
    "größer ☃ 🦉 \u2028 e\u0301",
    "A",
    "a",
    "a ",
    "",
)
TEXT_IDS = ("plain", "it's", "ü☃🦉", "back\\slash", "", " ", "a\nb", "007", "-1", "x" * 300)
WHOLE_IDS = (0, -1, 7, 10**9, -(2**63), 2**63 - 1)


def custom() -> ic.Rule:
    """Every hostile group, with shared coins, mirrors, lines, certain outcomes and a gap."""
    rows = []
    for group in HOSTILE[:-1]:
        rows += [
            Row(group, 0.0, 0.1, "set", 0.1, 0.3),
            Row(group, 0.0, 0.1, "mirror", None, 0.4),
            Row(group, 0.1, 0.3, "set", 1e-5, 1.0),
            Row(group, 0.3, 0.4, "line", 0.21, 0.5, 1.0),
            Row(group, 0.3, 0.4, "line", 0.9, 0.25, 0.0),
            Row(group, 0.4, 0.45, "line", 1 / 3, 1.0, 0.7),
            Row(group, 0.45, 0.48, "defer", None, 0.6),
            Row(group, 0.48, 0.5, "defer", None, 1.0),
            Row(group, 0.5, 1.0, "mirror", None, 0.5),
            Row(group, 0.5, 1.0, "set", 1 / 3, 0.0),
            Row(group, 0.5, 1.0, "set", 0.7, 0.5),
        ]
    return ic.Rule(
        HOSTILE, tuple(rows), "by hand", notes=("a note\nof two lines ${x}",), salt="it's\\"
    )


@cache
def rules() -> dict[str, ic.Rule]:
    data = sample(20_000, groups=3, seed=3)
    names = np.array(HOSTILE[:3])[data["group"]]
    tally = ic.tally({**data, "group": names})
    first = ic.recalibrate(tally, "beta")
    return {
        "recalibrated": first.then(ic.withhold(first.expected(tally), "fnr"), tally),
        "withhold": ic.withhold(tally, "fnr"),
        "coarsen": ic.coarsen(tally, "fnr", allow_decision_changes=True),
        "odds": ic.equalize_odds(tally),
        "reconcile": ic.reconcile(tally, tolerance=0.01),
        "custom": custom(),
    }


@cache
def people() -> dict[str, np.ndarray]:
    """Rows with ids of both kinds, groups that hate SQL, and scores on, above and below edges."""
    random = np.random.default_rng(5)
    edges = {0.0, 1.0, 0.1, 0.3, 0.5, 5e-324, 1e-300}
    for rule in rules().values():
        edges |= {end for row in rule.rows for end in (row.lo, row.hi)}
    near = [math.nextafter(e, to) for e in edges for to in (0.0, 1.0)]
    score = np.concatenate([sorted(edges), near, random.random(2_000)])
    rows = len(score)
    names = np.array(HOSTILE, dtype=object)
    whole = random.integers(-(10**12), 10**12, rows)
    whole[: len(WHOLE_IDS)] = WHOLE_IDS
    text = np.array([f"id {i} é" if i % 3 else f"id-{i}" for i in range(rows)], dtype=object)
    text[: len(TEXT_IDS)] = TEXT_IDS
    return {
        "row": np.arange(rows),
        "score": score,
        "group": names[random.integers(0, len(names), rows)],
        "three": names[random.integers(0, 3, rows)],
        "number": random.integers(-1, 2, rows),
        "half": random.integers(0, 3, rows) / 2,
        "flag": random.random(rows) < 0.5,
        "id": whole,
        "name": text,
        "label": random.integers(0, 2, rows),
        "yes": np.where(random.random(rows) < 0.4, "yes", "n'o"),
        "weight": random.gamma(2.0, 1.0, rows) + 0.05,
    }


def group_of(name: str) -> str:
    return "group" if name == "custom" else "three"


def check_rule(run, dialect: str, rule: ic.Rule, group, id: str = "id", table="people") -> None:
    """The repaired scores of a database are those of NumPy, bit by bit."""
    data = people()
    columns = {"group": group, "id": id}
    flags = {"changed": "moved", "handed_over": "gone"}
    wanted = rule.apply(data, output="new", **flags, **columns)
    query = rule.to_sql(dialect, table, output="new", **flags, columns=["row", "score"], **columns)
    found = sorted((tuple(row) for row in run(query)), key=lambda row: row[0])
    assert [row[0] for row in found] == data["row"].tolist()
    assert [row[1] for row in found] == data["score"].tolist()
    new = np.array([row[2] for row in found], dtype=float)
    np.testing.assert_array_equal(new, wanted["new"])
    assert [row[2] is None for row in found] == wanted["gone"].tolist()
    assert [bool(row[3]) for row in found] == wanted["moved"].tolist()
    assert [bool(row[4]) for row in found] == wanted["gone"].tolist()
    assert any(row[3] for row in found)


def typed_rule(kind: str) -> tuple[ic.Rule, object]:
    """A rule over groups of another type, and the columns of those groups."""
    groups, columns = {
        "whole": ((-1, 0, 1), "number"),
        "float": ((0.0, 0.5, 1.0), "half"),
        "boolean": ((False, True), "flag"),
        "pairs": (tuple((n, h) for n in (-1, 0, 1) for h in HOSTILE[:3]), ["number", "three"]),
    }[kind]
    rows = [Row(g, 0.0, 0.5, "set", 0.125, 0.5) for g in groups[1:]]
    return ic.Rule(groups, tuple(rows), "by hand"), columns


TALLIES = {
    "plain": {},
    "weighted": {"weight": "weight", "edges": (0.123, 1 / 3)},
    "seven bins": {"bins": 7},
    "hundred bins": {"bins": 100, "weight": "weight"},
    "positive": {"label": "yes", "positive": "yes"},
    "pairs": {"group": ["number", "group"], "weight": "weight"},
    "floats": {"group": "half"},
    "booleans": {"group": "flag", "label": "flag"},
    "named boolean": {"label": "flag", "positive": True},
    "named number": {"label": "label", "positive": 1},
    "persons": {"group": "three", "person": "group", "weight": "weight", "edges": (0.3, 0.123)},
    "persons and labels": {"person": "number", "label": "yes", "positive": "yes"},
}


def check_tally(run, dialect: str, name: str, table="people") -> None:
    """The cells of a database make the tally that NumPy makes."""
    options = TALLIES[name]
    data = people()
    if dialect in ("postgres", "redshift") and "weight" in options:
        # Products that are too small are errors there: such scores add nothing to weighted sums.
        data = {**data, "score": np.where(data["score"] < 1e-200, 0.0, data["score"])}
    wanted = ic.tally(data, **options)
    found = ic.tally_from_cells(run(ic.tally_sql(dialect, table, **options)))
    assert found == wanted
    assert found.columns == wanted.columns
    assert found.fingerprint == wanted.fingerprint
    assert found.persons is wanted.persons is None or (
        found.persons.several == wanted.persons.several
    )


BAD = {
    "score": [0.1, None, math.nan, math.inf, -0.5, 1.5, 0.4],
    "label": [0, 1, 1, 0, 1, None, 2],
    "group": ["a", "a", "a", "a", "b", "b", None],
    "weight": [1.0, 2.0, math.nan, 0.0, -1.0, 1e200, None],
}
TOLD = (
    "score: must be a number in [0, 1] in every row",
    "2 null or NaN, 1 infinite, 2 outside [0, 1], of 7 rows",
    "1 null or NaN, 1 other than 0 and 1, of 7 rows",
    "1 null, of 7 rows",
    "2 null or NaN, 1 zero, 1 negative, 1 below 1e-70 or above 1e70",
)
