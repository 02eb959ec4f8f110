"""The drawing in the terminal: marks where the numbers are, within any width, harmless."""

import os
import re
import subprocess

import numpy as np
import pytest
from rich.cells import cell_len

import isocost as ic
from isocost.examples import compas, compas_csv
from isocost.page.terminal import (
    CHARACTERS,
    MOST_BARS,
    Canvas,
    Window,
    bars_text,
    fitted,
    plane_text,
)
from tests import terminals
from tests.conftest import measured, sample
from tests.processes import ISOCOST

HOSTILE = (
    "\x1b[31mred\x1b[0m",
    "[bold]loud[/bold]",
    "漢字漢字漢字漢字漢字漢字",
    "🦊" * 30,
    "a\nb\rc",
)


def picture(drawing):
    """The rows of the plane itself, and the window that its axes name."""
    lines = drawing.plain.splitlines()
    floor = next(i for i, line in enumerate(lines) if re.match(r"\d\.\d\d[└+]", line))
    rows = [line[5:] for line in lines[1:floor]]
    left, right = map(float, re.findall(r"\d\.\d\d", lines[floor + 1]))
    return rows, (left, right, float(lines[floor][:4]), float(lines[1][:4]))


def found_at(drawing, letter):
    """The middle of the cell that holds a letter, in the numbers of the axes, and half its size."""
    rows, (left, right, bottom, top) = picture(drawing)
    row = next(i for i, line in enumerate(rows) if letter in line)
    across, down = (right - left) / len(rows[0]), (top - bottom) / len(rows)
    column = rows[row].index(letter)
    return (left + (column + 0.5) * across, top - (row + 0.5) * down), (across, down)


@pytest.mark.parametrize("cost", ["fpr", "fnr", "plain:1,2"])
@pytest.mark.parametrize("ascii", [False, True])
@pytest.mark.parametrize(("width", "height"), [(40, 12), (72, 18), (120, 40)])
def test_marks_are_where_the_numbers_are(cost, ascii, width, height):
    audit = measured(compas(), cost)
    drawing = plane_text(audit, width, height, ascii)
    for place, m in enumerate(audit.groups.values()):
        mu = m.base_rate
        wanted = [(m.generalized_fpr, m.generalized_fnr), (mu, 1 - mu)]
        for letters, point in zip(("AB", "ab") if ascii else ("●▲", "○△"), wanted, strict=True):
            at, cell = found_at(drawing, letters[place])
            # A letter is at most one cell from its point: half by rounding, half by the frame.
            assert abs(at[0] - point[0]) <= cell[0]
            assert abs(at[1] - point[1]) <= cell[1]


def test_the_level_line_goes_through_the_target_and_past_the_limit():
    audit = measured(compas(), "fpr")
    rows, (left, right, *_) = picture(plane_text(audit, 72, 18, ascii=True))
    columns = {line.index(":") for line in rows if ":" in line}
    assert len(columns) == 1
    at = left + (columns.pop() + 0.5) * (right - left) / len(rows[0])
    assert at == pytest.approx(audit.feasibility.target_cost, abs=(right - left) / len(rows[0]))
    # Caucasian's line ends at its limit, before the level line: equal cost is out of reach.
    limit = next(line for line in rows if "b" in line)
    assert limit.index("b") < limit.index(":")


def test_a_slanted_level_line_costs_the_same_everywhere():
    audit = measured(compas(), "plain:1,2")
    rows, (left, right, bottom, top) = picture(plane_text(audit, 80, 30, ascii=True))
    across, down = (right - left) / len(rows[0]), (top - bottom) / len(rows)
    places = [(i, j) for i, line in enumerate(rows) for j, c in enumerate(line) if c == ":"]
    assert len(places) > 10
    for i, j in places:
        x, y = left + (j + 0.5) * across, top - (i + 0.5) * down
        assert x + 2 * y == pytest.approx(audit.feasibility.target_cost, abs=across + 2 * down)


def test_a_cost_by_group_has_crosses_where_it_equals_the_target():
    audit = measured(compas(), "weighted:1,3")
    at, cell = found_at(plane_text(audit, 100, 40), "×")
    mu = audit.groups["Caucasian"].base_rate
    cost = (1 - mu) * at[0] + 3 * mu * at[1]
    assert cost == pytest.approx(audit.feasibility.target_cost, abs=cell[0] + 3 * cell[1])


def bar_of(audit, group, width, **options):
    lines = bars_text(audit, width, ascii=True, **options).plain.splitlines()
    line = next(line for line in lines if line.startswith(group[:8]))
    return re.match(r".*?\d\.\d{4} (.*?)(?: [a-z].*)?$", line)[1]


def test_bars_are_in_proportion():
    audit = measured(compas(), "fpr")
    bar = bar_of(audit, "Caucasian", 110)
    m = audit.groups["Caucasian"]
    unit = bar.index("|") / audit.feasibility.target_cost
    assert bar.count("#") == pytest.approx(m.cost * unit, abs=1)
    assert bar.index("]") == pytest.approx(m.trivial_cost * unit, abs=1)
    assert bar.index("]") < bar.index("|")


def test_bars_show_intervals():
    audit = ic.audit(compas(), "fpr", replicates=200)
    low, high = audit.groups["Caucasian"].intervals["cost"]
    bar = bar_of(audit, "Caucasian", 200)
    unit = bar.index("|") / audit.feasibility.target_cost
    assert bar.index("=") == pytest.approx(low * unit, abs=1)
    assert bar.rindex("=") == pytest.approx(high * unit, abs=1)


def test_the_tolerance_moves_the_goal():
    audit = measured(compas(), "fpr", tolerance=0.06)
    bar = bar_of(audit, "Caucasian", 110)
    assert bar.index("|") < bar.index("]")
    text = bars_text(audit, 80).plain
    assert "can reach it" in text
    assert "0.3875, the cost of African-American, less 0.06" in text


def test_verdicts_in_words():
    words = bars_text(measured(compas(), "fpr"), 80).plain
    assert "highest" in words
    assert "cannot reach it" in words
    assert "close enough" in bars_text(measured(compas(), "fpr", tolerance=0.2), 80).plain
    assert "highest" not in bars_text(measured(compas(), "fpr"), 50).plain


def renamed(names):
    rows = sample(2000, groups=len(names))
    return measured(ic.tally({**rows, "group": np.array(names, dtype=object)[rows["group"]]}))


@pytest.mark.parametrize("ascii", [False, True])
@pytest.mark.parametrize("width", range(40, 121, 5))
def test_no_line_is_wider_than_asked(width, ascii):
    audit = renamed(HOSTILE)
    for drawing in (plane_text(audit, width, 14, ascii), bars_text(audit, width, ascii)):
        for line in drawing.plain.splitlines():
            assert cell_len(line) <= width, line
        assert not ascii or drawing.plain.isascii()


def test_hostile_names_are_text():
    audit = renamed(HOSTILE)
    for drawing in (plane_text(audit, 80, 14), bars_text(audit, 80)):
        assert "\x1b" not in drawing.plain
        assert "\r" not in drawing.plain
        assert "[bold]loud[/bold]" in drawing.plain
        assert "\\x1b[31mred" in drawing.plain


def test_six_groups_have_bars_only_and_hundreds_have_the_ends():
    six = renamed([f"g{i}" for i in range(6)])
    assert plane_text(six, 40).plain == "6 groups, too many to draw the plane.\n"
    lines = bars_text(six, 60).plain.splitlines()
    assert sum(line.startswith("g") for line in lines) == 6
    many = renamed([f"g{i:03}" for i in range(60)])
    lines = [line for line in bars_text(many, 60).plain.splitlines() if line.startswith("g")]
    assert len(lines) == MOST_BARS
    costs = sorted((m.cost for m in many.groups.values()), reverse=True)
    shown = [float(re.search(r"\d\.\d{4}", line)[0]) for line in lines]
    assert shown[0] == pytest.approx(costs[0], abs=1e-4)
    assert shown[-1] == pytest.approx(costs[-1], abs=1e-4)
    assert "(36 groups between)" in bars_text(many, 60).plain


def test_groups_at_one_place_share_a_mark():
    canvas = Canvas(Window(0, 1, 0, 1), 20, 10)
    canvas.mark((0.5, 0.5), "A", "")
    canvas.mark((0.5, 0.5), "B", "")
    text = canvas.drawn("x", "y").plain
    assert "*" in text
    assert "A" not in text


def test_fitted_is_exact():
    for text in ("", "abc", *HOSTILE[1:4]):
        for width in range(1, 30):
            assert cell_len(fitted(text, width)) == width


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("drawing") / "data.csv"
    path.write_text(compas_csv())
    return path


def piped(data, *options, **environment):
    done = subprocess.run(
        [ISOCOST, "audit", str(data), "--cost", "fpr", "--replicates", "0", *options],
        capture_output=True,
        check=True,
        env={**os.environ, "COLUMNS": "80", **environment},
    )
    return done.stdout


def on_terminal(data, *options, columns=90, **environment):
    command = ("audit", data, "--cost", "fpr", "--replicates", "0", *options)
    return terminals.on_terminal(*command, columns=columns, errors=False, **environment)


def test_a_pipe_gets_a_drawing_only_when_asked(data):
    plain = piped(data).decode()
    assert "●" not in plain
    drawn = piped(data, "--plot").decode()
    assert "●" in drawn
    assert "\x1b" not in drawn
    assert plain.splitlines()[:17] == drawn.splitlines()[:17]


def test_ascii_where_the_stream_has_no_such_characters(data):
    drawn = piped(data, "--plot", PYTHONIOENCODING="latin-1").decode("latin-1")
    assert drawn.isascii()
    assert "A a African-American" in drawn
    assert "\\u" not in drawn
    with pytest.raises(UnicodeEncodeError):
        CHARACTERS.encode("latin-1")


def test_a_terminal_gets_a_drawing_in_colour(data):
    shown = on_terminal(data)
    assert "●" in shown
    assert "\x1b[" in shown
    assert "●" not in on_terminal(data, "--no-plot")


def test_narrow_terminal(data):
    shown = on_terminal(data, "--no-color", "--full", columns=40)
    drawn = shown[shown.index("generalized FNR (") : shown.index("Cost differs")]
    assert max(cell_len(line.rstrip("\r")) for line in drawn.splitlines()) <= 40
