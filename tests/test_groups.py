import datetime as dt

import numpy as np
import pytest

import isocost as ic
from isocost.groups import as_group, group_names


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
