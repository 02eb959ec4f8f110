"""ChangeDisplay: who is changed by a rule, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from isocost.checks import check_threshold
from isocost.groups import Group, group_names
from isocost.plots.display import Display
from isocost.plots.plane import Rules
from isocost.plots.style import (
    GREY,
    INK,
    SIZE,
    SMALL,
    Look,
    axes_for,
    cells,
    looks,
    plain_axes,
    short_name,
)
from isocost.repairs.compare import Changes, changes, named_rules
from isocost.rules import Rule
from isocost.tallies import Tally, check_tally

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ChangeDisplay", "Fates", "fates"]

Floats = npt.NDArray[np.float64]

STEPS = 40
"""Into how many steps old and new scores are gathered for drawing."""

LARGEST = 130.0
"""The area of the largest bubble, in square points."""

SAME = 1e-12


@dataclass(frozen=True)
class Fates:
    """What may happen to the people of a group: parts of them with an old and a new score.

    Attributes
    ----------
    old, new : arrays
        The score before (the mean of its bin) and after.
    share : array
        Which share of the group each part is; they add up to 1.
    """

    old: Floats
    new: Floats
    share: Floats

    @property
    def moved(self) -> npt.NDArray[np.bool_]:
        """Whose score changes."""
        return np.abs(self.new - self.old) > SAME

    def beyond(self, size: float) -> float:
        """The share of the group whose score moves by more than this."""
        return float(self.share[np.abs(self.new - self.old) > size].sum())

    def gathered(self, steps: int = STEPS) -> Fates:
        """Parts whose old and new scores are nearly the same put together, by their means."""
        # The old score decides where it goes; what did not move must stay on the diagonal.
        key = np.column_stack([np.rint(self.old * steps), np.rint(self.new * steps), self.moved])
        _, place = np.unique(key, axis=0, return_inverse=True)
        place = place.ravel()
        share: Floats = np.bincount(place, self.share).astype(np.float64)
        old, new = (np.bincount(place, self.share * x) / share for x in (self.old, self.new))
        return Fates(old, new, share)


def fates(tally: Tally, rule: Rule, group: int) -> Fates:
    """Every fate that the rule has for a group of the tally, given by its place.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> found = fates(compas(), ic.withhold(compas(), "fpr", 0.07), 1)
    >>> round(float(found.share[found.moved].sum()), 4), round(found.beyond(0.3), 4)
    (0.5194, 0.0343)
    """
    cells, parts = tally.cells, []
    for part in rule.parts(tally, group):
        old = cells.wh[part.place] / cells.w[part.place]
        parts.append((old, part.after(old), cells.w[part.place] * part.share))
    before, after, weight = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    total = weight.sum()
    kept = weight > SAME * total
    return Fates(before[kept], after[kept], weight[kept] / total)


@dataclass
class ChangeDisplay(Display):
    """Old score against new, a small diagram for each group (down) and rule (across).

    A bubble is a part of the group, its area the share.  On the diagonal nothing changes; the
    further from it, the larger the change.  In the shaded corners the decision changes too.

    Parameters
    ----------
    groups : sequence
        The groups.
    fates : {rule: sequence of Fates}
        What each rule may do to each group.
    changes : {rule: sequence of Changes}
        The same in a few numbers.
    threshold : float
        The score from which people are treated as positive.

    Attributes
    ----------
    names : list of str
        How the groups are called.
    shown : list of int
        The places of the groups that some rule changes; they have a row each.
    ax_, figure_
        The axes that were given or made; they hold the small ones.
    axes_ : {(rule, group): Axes}
        The diagrams.
    moved_, kept_ : {(rule, group): PathCollection}
        The bubbles off the diagonal and on it.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> display = ChangeDisplay.from_tally(compas(), [ic.withhold(compas(), "fpr", 0.07)])
    >>> [display.names[place] for place in display.shown]
    ['Caucasian']
    """

    groups: Sequence[Group]
    fates: Mapping[str, Sequence[Fates]]
    changes: Mapping[str, Sequence[Changes]] = field(default_factory=dict)
    threshold: float = 0.5

    def __post_init__(self) -> None:
        self.names = group_names(list(self.groups))
        self.shown = [
            place
            for place in range(len(self.names))
            if any(found[place].moved.any() for found in self.fates.values())
        ]

    @classmethod
    def from_tally(
        cls,
        tally: Tally,
        rules: Rules,
        *,
        threshold: float = 0.5,
        ax: Axes | None = None,
    ) -> Self:
        """What rules, by name or several, would do to the people of a tally."""
        check_tally(tally)
        threshold = check_threshold(threshold)
        named, places = named_rules(rules), range(len(tally.groups))
        display = cls(
            tally.groups,
            {name: [fates(tally, rule, place) for place in places] for name, rule in named.items()},
            {
                name: [changes(tally, rule, threshold, place) for place in places]
                for name, rule in named.items()
            },
            threshold,
        )
        return display._drawn_on(ax)

    @classmethod
    def _edges(
        cls,
        rules: Rules,
        *,
        threshold: float = 0.5,
        **options: Any,  # noqa: ARG003
    ) -> tuple[float, ...]:
        """The edges of the rules and the threshold, so that no bin is divided."""
        rows = [row for rule in named_rules(rules).values() for row in rule.rows]
        edges = {edge for row in rows for edge in (row.lo, row.hi)}
        return tuple(sorted({*edges, threshold} - {0.0, 1.0}))

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the axes given, or on those of a new figure."""
        rows, columns = max(len(self.shown), 1), max(len(self.fates), 1)
        self.ax_, self.figure_ = axes_for(ax, (2.45 * columns + 0.6, 2.85 * rows + 0.4))
        grid = cells(self.ax_, rows, columns, (0.45, 0.75))
        self.axes_: dict[tuple[str, Group], Axes] = {}
        self.moved_: dict[tuple[str, Group], Any] = {}
        self.kept_: dict[tuple[str, Group], Any] = {}
        style = looks(len(self.names))
        if not self.shown:
            self._nobody(grid)
        for row, place in enumerate(self.shown):
            for column, rule in enumerate(self.fates):
                self._panel(grid[row][column], rule, place, style[place])
            self._names(grid[row], row, place, style[place])
        return self

    def _nobody(self, grid: list[list[Axes]]) -> None:
        for panel in grid[0]:
            panel.set_axis_off()
        grid[0][0].text(0.5, 0.5, "nobody is changed", ha="center", color=GREY, fontsize=SIZE)

    def _names(self, panels: list[Axes], row: int, place: int, look: Look) -> None:
        """Groups to the left, rules on top, what the corners are in the first diagram."""
        panels[0].set_ylabel(
            f"{short_name(self.names[place])}\nscore after", fontsize=SIZE, color=look.ink,
            fontweight="bold", parse_math=False,
        )  # fmt: skip
        if row == len(self.shown) - 1:
            for panel in panels:
                panel.set_xlabel("score before", fontsize=SIZE, color=INK)
        if row == 0:
            for panel, rule in zip(panels, self.fates, strict=True):
                panel.set_title(
                    short_name(rule), loc="left", fontsize=SIZE + 0.5, color=INK,
                    fontweight="bold", parse_math=False, pad=27,
                )  # fmt: skip
            panels[0].text(
                0.0, 1.0, "decision\nchanges", fontsize=SMALL, color=GREY, va="top", zorder=0.6
            )

    def _panel(self, ax: Axes, rule: str, place: int, look: Look) -> None:
        key = (rule, self.groups[place])
        plain_axes(ax)
        ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
        ax.set(xticks=np.arange(6) / 5, yticks=np.arange(6) / 5, aspect="equal")
        self._corners(ax)
        ax.plot([0, 1], [0, 1], color="#bdbdbd", linewidth=0.8, zorder=1)
        found = self.fates[rule][place].gathered()
        area = LARGEST * found.share / max(float(found.share.max()), 0.05)
        for moved, store, colour in (
            (~found.moved, self.kept_, "#9a9a9a"),
            (found.moved, self.moved_, look.colour),
        ):
            store[key] = ax.scatter(
                found.old[moved], found.new[moved], s=np.maximum(area[moved], 2.0), color=colour,
                alpha=0.75, linewidth=0, zorder=2 + int(store is self.moved_),
            )  # fmt: skip
        self.axes_[key] = ax
        ax.text(
            0.0, 1.015, self._summary(rule, place), transform=ax.transAxes, va="bottom",
            fontsize=SMALL, color=INK, linespacing=1.25,
        )  # fmt: skip

    def _corners(self, ax: Axes) -> None:
        at = self.threshold
        for x, y, wide, high in (
            (-0.03, at, at + 0.03, 1.03 - at),
            (at, -0.03, 1.03 - at, at + 0.03),
        ):
            ax.fill(
                [x, x + wide, x + wide, x], [y, y, y + high, y + high], color="#f1f1f1",
                linewidth=0, zorder=0,
            )  # fmt: skip

    def _summary(self, rule: str, place: int) -> str:
        """Who is changed, in two short lines."""
        parts = self.fates[rule][place]
        share = float(parts.share[parts.moved].sum())
        largest = float(np.abs(parts.new - parts.old)[parts.moved].max(initial=0.0))
        if not share:
            return "nobody is changed\n"
        text = f"{share:.1%} changed, by up to {largest:.2f}\n"
        if rule in self.changes:
            found = self.changes[rule][place]
            text += f"{found.decisions:.1%} of decisions; coin for {found.by_coin:.1%}"
        return text
