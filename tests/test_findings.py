"""Claims on terminals of several widths."""

from __future__ import annotations

import pytest

from isocost.cli.findings import paragraphs, show_findings

HEADER = ["claim", "scores", "measured", "needed", "verdict"]
CLAIM = "Equal cost matches neither error type: the groups have different kinds of errors."
MEASURED = "0.1023 [0.0075, 0.2277]"
ROWS = [
    [CLAIM, scores, MEASURED, "above 0.03", "does not hold, not beyond chance"]
    for scores in ("retrained", "published")
]


def shown(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    show_findings("Claims", HEADER, ROWS)
    return capsys.readouterr().out


def test_on_a_narrow_terminal_no_number_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(80, monkeypatch, capsys)
    assert text.count(MEASURED) == 2
    assert text.count("different kinds of") == 1
    assert all(len(line) <= 80 for line in text.splitlines())


def test_on_a_wide_terminal_there_is_a_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(200, monkeypatch, capsys)
    assert text.count(ROWS[0][0]) == 2
    assert "┃" in text


def test_in_a_pipe_every_row_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    show_findings("Claims", HEADER, ROWS)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[-2:]] == ["Equal", "Equal"]
    assert len(lines) == 5


def test_nothing_is_shown_of_nothing() -> None:
    assert paragraphs([], 80) == ""
