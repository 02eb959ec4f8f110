"""Files that were tampered with: JSON of rules and tallies with odd values in odd places."""

import copy
import json
import math

from hypothesis import strategies as st

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


def places(content, at=()):
    """The paths to all values inside."""
    inside = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in inside:
        yield (*at, key)
        if isinstance(value, dict | list):
            yield from places(value, (*at, key))


@st.composite
def tampered(draw, contents):
    """JSON text of one of the contents with up to three changes."""
    content = copy.deepcopy(draw(st.sampled_from(contents)))
    for _ in range(draw(st.integers(1, 3))):
        found = list(places(content))
        if not found:
            break
        *way, last = draw(st.sampled_from(found))
        parent = content
        for key in way:
            parent = parent[key]
        change = draw(st.sampled_from(["replace", "nudge", "delete", "copy", "swap"]))
        other = content
        for key in draw(st.sampled_from(found)):
            other = other[key]
        if change == "delete":
            del parent[last]
        elif change == "copy" and isinstance(parent, list):
            parent.append(copy.deepcopy(parent[last]))
        elif change == "swap":
            parent[last] = copy.deepcopy(other)
        elif change == "nudge" and type(parent[last]) in (int, float):
            parent[last] *= draw(st.sampled_from([0, -1, 0.5, 2, 1 + 1e-12, 1e-200, 1e200]))
        else:
            parent[last] = copy.deepcopy(draw(st.sampled_from(ODD)))
    return json.dumps(content)
