"""A rule as one CASE expression, for any dialect."""

from __future__ import annotations

from dataclasses import dataclass

from isocost.coin import BITS, hex_bound
from isocost.engines.grammar import Dialect
from isocost.engines.layout import Lines, indented
from isocost.grid import Grid
from isocost.groups import Group
from isocost.rows import Row, Segment
from isocost.rules import Rule

__all__ = ["Case", "bin_of", "repaired_group"]

_LONG = 90


@dataclass(frozen=True)
class Case:
    """CASE WHEN ... THEN ... ELSE ... END, whose outcomes may be further cases.

    Examples
    --------
    >>> print(Case((("x < 1", "0"), ("x < 2", Case((("y", "1"),), "2"))), "3"))
    CASE
      WHEN x < 1 THEN 0
      WHEN x < 2 THEN
        CASE
          WHEN y THEN 1
          ELSE 2
        END
      ELSE 3
    END
    """

    whens: tuple[tuple[str, str | Case], ...]
    otherwise: str | Case | Lines

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Lines:
        """The lines of the expression, indented by two."""
        found = ["CASE"]
        for condition, outcome in self.whens:
            found += _branch(f"WHEN {condition} THEN", outcome)
        return [*found, *_branch("ELSE", self.otherwise), "END"]


def _branch(word: str, outcome: str | Case | Lines) -> Lines:
    if isinstance(outcome, str):
        if len(word) + len(outcome) < _LONG:
            return indented([f"{word} {outcome}"])
        outcome = [outcome]
    lines = outcome.lines() if isinstance(outcome, Case) else outcome
    return indented([word, *indented(lines)])


def repaired_group(rule: Rule, group: Group, score: str, coin: str, dialect: Dialect) -> str | Case:
    """The score of one group after the rule; ``score`` is known to lie in [0, 1].

    Parameters
    ----------
    score, coin : str
        SQL for the score, a double, and for the coin, 13 hexadecimal digits.
    """
    segments = rule.segments(group)
    if len(segments) == 1 and (segments[0].lo, segments[0].hi) == (0.0, 1.0):
        return _outcome(segments[0], score, coin, dialect)
    whens = []
    for segment in segments:
        inside = f"{score} >= {dialect.number(segment.lo)}"
        # The last interval includes 1.
        inside += "" if segment.hi == 1.0 else f" AND {score} < {dialect.number(segment.hi)}"
        whens.append((inside, _outcome(segment, score, coin, dialect)))
    return Case(tuple(whens), score) if whens else score


def _outcome(segment: Segment, score: str, coin: str, dialect: Dialect) -> str | Case:
    """What becomes of a score in an interval."""
    whens = []
    for row, low, high in segment.outcomes():
        if high > low:
            if low == 0 and high == 2**BITS:
                return _new(row, score, dialect)
            whens.append((f"{coin} < '{hex_bound(high)}'", _new(row, score, dialect)))
    return Case(tuple(whens), score) if whens else score


def _new(row: Row, score: str, dialect: Dialect) -> str:
    return f"1 - {score}" if row.value is None else dialect.number(row.value)


def bin_of(score: str, grid: Grid, dialect: Dialect) -> list[str]:
    """The bin of a score in [0, 1] as terms to add: its equal part, and the edges below it.

    Floor, never a cast: some databases round when they cast.
    """
    last = grid.bins - 1
    part = f"LEAST(FLOOR({score} * {grid.bins}), {last})"
    if not grid.is_dyadic:
        # The product may round across an edge: compare with the edge itself.
        below = _flag(f"{score} < {part} / {grid.bins}", dialect)
        above = _flag(f"{score} >= ({part} + 1) / {grid.bins}", dialect)
        part = f"LEAST({part} - {below} + {above}, {last})"
    beyond = [_flag(f"{score} >= {dialect.number(edge)}", dialect) for edge in grid.extra]
    return [f"CAST({part} AS {dialect.whole})", *beyond]


def _flag(condition: str, dialect: Dialect) -> str:
    return f"CAST({condition} AS {dialect.whole})"
