import datetime as dt

import numpy as np
import pytest

import isocost as ic
from isocost.groups import as_group, group_names, sort_groups, to_json


def test_values_keep_their_type():
    assert [
        type(as_group(v)) for v in (np.int8(1), np.float32(0.5), np.bool_(True), np.str_("a"))
    ] == [
        int,
        float,
        bool,
        str,
    ]


@pytest.mark.parametrize("value", [dt.date(2026, 1, 1), b"x", float("nan"), (), ("a", ("b",))])
def test_what_cannot_name_a_group(value):
    with pytest.raises(ic.DataError, match="group: values must be text, numbers or booleans"):
        as_group(value)


def test_order_is_by_type_then_value():
    assert sort_groups(["b", 2, "a", 10]) == [2, 10, "a", "b"]


def test_values_that_python_holds_equal_are_refused():
    with pytest.raises(ic.DataError, match="must stay different when compared"):
        sort_groups([1, True])


def test_names_show_the_type_only_where_needed():
    assert group_names([1, 2]) == ["1", "2"]
    assert group_names([1, "1"]) == ["1", "'1'"]
    assert group_names([("F", "x"), ("M", "y")]) == ["F, x", "M, y"]


@pytest.mark.parametrize("group", ["a", 1, 1.5, True, ("F", 3)])
def test_json_round_trip(group):
    back = as_group(to_json(group))
    assert back == group
    assert type(back) is type(group)


def test_names_can_do_nothing_to_a_terminal():
    assert group_names(["\x1b[31mred", "a\nb", "\u202eabc"]) == [
        "\\x1b[31mred",
        "a\\nb",
        "\\u202eabc",
    ]


def test_half_a_surrogate_pair_is_no_group():
    with pytest.raises(ic.DataError, match="values must be text"):
        as_group("\ud800")
