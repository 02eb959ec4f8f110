import datetime as dt

import numpy as np
import pytest

import isocost as ic
from isocost.groups import as_group, group_names, sort_groups, to_json


def test_values_keep_their_type():
    values = (np.int8(1), np.float32(0.5), np.bool_(True), np.str_("a"), np.uint64(2**63))
    assert [type(as_group(value)) for value in values] == [int, float, bool, str, int]
    assert as_group(np.uint64(2**63)) == 2**63


# Half a surrogate pair cannot be written.
NONE = [dt.date(2026, 1, 1), b"x", float("nan"), (), ("a", ("b",)), "\ud800"]


@pytest.mark.parametrize("value", NONE)
def test_what_cannot_name_a_group(value):
    with pytest.raises(ic.DataError, match="group: values must be text, numbers or booleans"):
        as_group(value)


def test_order_is_by_type_then_value():
    assert sort_groups(["b", 2, "a", 10]) == [2, 10, "a", "b"]
    with pytest.raises(ic.DataError, match="must stay different when compared"):
        sort_groups([1, True])


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        ([1, 2], ["1", "2"]),
        ([1, "1"], ["1", "'1'"]),
        ([("F", "x"), ("M", "y")], ["F, x", "M, y"]),
        # They can do nothing to a terminal, and stay apart.
        (["\x1b[31mred", "a\nb", "\u202eabc"], ["\\x1b[31mred", "a\\nb", "\\u202eabc"]),
        (["\n", "\\n"], [r"'\n'", r"'\\n'"]),
    ],
)
def test_names_show_the_type_only_where_needed(groups, names):
    assert group_names(groups) == names


@pytest.mark.parametrize("group", ["a", 1, 1.5, True, ("F", 3)])
def test_json_round_trip(group):
    back = as_group(to_json(group))
    assert back == group
    assert type(back) is type(group)
