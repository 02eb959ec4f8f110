"""Tables and sentences on terminals of several widths: no number is ever broken."""

import json
import re
from functools import cache

import numpy as np
import pandas as pd
import pytest

import isocost as ic
from isocost.cli.output import Block, blocks_of, listed, width_of
from isocost.tables import text_table, width
from tests.terminals import on_terminal, without_escapes

NUMBER = re.compile(r"\d\.\d{4}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data of eight groups and of two, and rules for the two."""
    folder = tmp_path_factory.mktemp("terminal")
    rng = np.random.default_rng(5)
    for many in (8, 2):
        which = rng.integers(0, many, 40_000)
        # Each group's scores say less than those of the one before, so that costs differ.
        score = (0.5 + (rng.random(40_000) - 0.5) * (1.0 - which / 10.0)).round(3)
        label = (rng.random(40_000) < score).astype(int)
        group = np.array([f"group number {i}" for i in range(many)])[which]
        frame = pd.DataFrame({"score": score, "label": label, "group": group})
        frame.to_csv(folder / f"{many}.csv", index=False)
    tally = ic.tally(folder / "2.csv")
    ic.withhold(tally).save(folder / "withhold.json")
    ic.reconcile(tally).save(folder / "reconcile.json")
    tally.save(folder / "tally.json")
    return folder


@cache
def audited(folder, many, columns, *options):
    fixed = ("--replicates", "200", "--no-plot", "--full")
    text = on_terminal("audit", f"{many}.csv", *fixed, *options, columns=columns, cwd=folder)
    return without_escapes(text)


@cache
def told_by_python(folder, many):
    return ic.audit(ic.tally(folder / f"{many}.csv"), replicates=0)


def numbers_of(folder, many):
    """Every rate of the audit, as it is to be printed."""
    told = told_by_python(folder, many)
    return [f"{one.generalized_fnr:.4f}" for one in told.groups.values()]


@pytest.mark.parametrize(
    ("many", "columns"), [(8, 100), (8, 80), (8, 60), (8, 40), (8, 24), (2, 60), (2, 40), (2, 24)]
)
def test_no_number_is_broken_and_no_line_too_long(folder, many, columns):
    text = audited(folder, many, columns)
    for number in numbers_of(folder, many):
        assert number in text
    # Commands stay whole too, so that they can be copied.
    assert all(width(line) <= columns or "isocost " in line for line in text.splitlines())
    # Names of groups are whole too.
    assert all(f"group number {i}" in text for i in range(many))


def test_every_number_of_the_pipe_is_on_the_terminal(folder):
    piped = repr(told_by_python(folder, 8))
    table = piped[: piped.index("Cost differs")]
    for columns in (80, 40, 24):
        text = audited(folder, 8, columns)
        assert sorted(NUMBER.findall(text[: text.index("Cost differs")])) == sorted(
            NUMBER.findall(table)
        )


def test_intervals_stay_as_long_as_there_is_room(folder):
    assert "[." in audited(folder, 2, 80)
    assert "[." in audited(folder, 2, 40).split("Cost differs")[0]
    assert "[" not in audited(folder, 2, 24).split("Cost differs")[0]


def test_sentences_are_as_wide_as_the_terminal_but_not_wider_than_80(folder):
    for columns, most in ((50, 50), (200, 80)):
        text = audited(folder, 2, columns)
        advice = text[text.index("Selection rates:") :]
        longest = max(width(line) for line in advice.splitlines() if "isocost " not in line)
        assert most - 15 < longest <= most


def test_a_drawing_needs_forty_columns_unless_it_is_asked_for(folder):
    def drawn(columns, *options):
        fixed = ("audit", "2.csv", "--replicates", "0", "--no-color")
        return "●" in on_terminal(*fixed, *options, columns=columns, cwd=folder)

    assert drawn(40)
    assert not drawn(39)
    assert drawn(39, "--plot")


@pytest.mark.parametrize("columns", [80, 30])
def test_other_commands_break_no_number(folder, columns):
    told = ic.compare(
        ic.Tally.load(folder / "tally.json"),
        [ic.Rule.load(folder / name) for name in ("withhold.json", "reconcile.json")],
        remakes=20,
    )
    few = ("--remakes", "20")
    several = ("compare", "2.csv", "withhold.json", "reconcile.json", *few)
    text = without_escapes(on_terminal(*several, columns=columns, cwd=folder))
    for number in NUMBER.findall(repr(told)):
        assert number in text
    assert all(width(line) <= columns for line in text.splitlines())
    made = ("fit", "tally.json", *few, "-o", "again.json", "--force", "--method")
    text = without_escapes(on_terminal(*made, "odds", columns=columns, cwd=folder))
    for row in json.loads((folder / "again.json").read_text())["rows"]:
        assert f"{row['probability']:.4f}" in text
    assert all(width(line) <= columns for line in text.splitlines())
    # A long rule is not listed: what it does to each group is.
    text = without_escapes(on_terminal(*made, "reconcile", columns=columns, cwd=folder))
    rule = ic.Rule.load(folder / "again.json")
    assert rule.is_long
    found = ic.compare(ic.Tally.load(folder / "tally.json"), [rule]).rules["reconcile"]
    for one in found.by_group.values():
        assert f"{one.mean_rise:.3f}" in text
        assert f"{one.by_coin:.1%}" in text
    assert all(width(line) <= columns for line in text.splitlines())
    watched = ("watch", "withhold.json", "tally.json")
    text = without_escapes(on_terminal(*watched, columns=columns, cwd=folder, code=1))
    assert re.search(r"\[-?\d\.\d{3}, \d\.\d{3}\]", text)
    assert all(width(line) <= columns for line in text.splitlines())


def test_the_demo_fits_a_narrow_terminal():
    text = without_escapes(on_terminal("demo", "--no-report", columns=40))
    assert all(width(line) <= 40 for line in text.splitlines())
    assert "0.0875" in text


HEADER = ["", "one", "two words"]
ROWS = [["cost", "0.2500 [.2, .3]", "0.5000 [.4, .6]"], ["n", "1,234,567", "8"]]


def test_a_table_that_fits_is_one_block():
    whole = Block(HEADER, ROWS)
    assert blocks_of(HEADER, ROWS, width_of(whole)) == [whole]
    assert blocks_of(HEADER, ROWS, width_of(whole) - 1) != [whole]


def test_blocks_hold_as_many_whole_columns_as_fit():
    header = ["group", *(f"measure {i}" for i in range(7))]
    rows = [[f"g{i}", *[f"0.{i}{j}00" for j in range(7)]] for i in range(9)]
    blocks = blocks_of(header, rows, 45)
    assert [len(block.header) for block in blocks] == [4, 4, 2]
    assert all(width_of(block) <= 45 for block in blocks)
    assert all([row[0] for row in block.rows] == [row[0] for row in rows] for block in blocks)
    assert blocks[0].header[1] == "measure\n0"
    cells = [[cell for block in blocks for cell in block.rows[i][1:]] for i in range(9)]
    assert cells == [row[1:] for row in rows]


def test_long_names_of_groups_are_not_said_again_in_every_block():
    header = ["group", *(f"measure {i}" for i in range(7))]
    rows = [["a" * 60, *["0.1234"] * 7]]
    lines = blocks_of(header, rows, 80)
    assert lines == ["a" * 60, *(f"measure {i}  0.1234" for i in range(7))]


def test_a_list_puts_a_value_below_its_name_where_it_must():
    lines = listed(Block(["data", "licence"], [["x", "none named by anybody"]]), 16)
    assert lines == ["x", "licence", "  none named by", "  anybody"]


def test_wide_letters_count_twice():
    rows = [["日本語", "0.1234"]]
    assert width_of(Block(["", "値"], rows)) == 1 + 3 + 6 + 3 + 6


def test_wide_text_is_cut_into_parts_with_the_first_column():
    header, rows = ["group", "n", "cost"], [["a", "100", "0.25"], ["b", "50", "0.50"]]
    assert text_table(header, rows) == text_table(header, rows, 16)
    parts = text_table(header, rows, 15).split("\n\n")
    assert [part.split("\n")[0] for part in parts] == ["group    n", "group  cost"]
    assert [part.split("\n")[2] for part in parts] == ["a      100", "a      0.25"]
