"""ChangeDisplay: who is changed by a rule, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from isocost.cells import add_up
from isocost.checks import check_threshold
from isocost.groups import Group, group_names
from isocost.plots.display import (
    GREY,
    INK,
    SIZE,
    SMALL,
    Display,
    Look,
    looks,
    panels,
    plain_axes,
    short_name,
    write_title,
)
from isocost.plots.plane import Rules
from isocost.repairs.compare import Changes, changes
from isocost.repairs.composition import edges_of, named_rules
from isocost.rules import Rule
from isocost.tallies import DataOptions, Tally, TallyLike, as_tally
from isocost.typing import Bools, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STEPS = 40
"""Number of steps to which old and new scores are rounded for drawing."""

LARGEST = 130.0
"""The area of the largest bubble, in square points."""

SAME = 1e-12


@dataclass(frozen=True)
class Fates:
    """What may happen to the people of a group: segments with an old and a new score.

    Attributes
    ----------
    old, new : arrays
        The score before (the mean of its bin) and after.
    share : array
        The share of the group in each segment; they add up to 1.
    """

    old: Floats
    new: Floats
    share: Floats

    @property
    def moved(self) -> Bools:
        """Whose score changes."""
        return np.abs(self.new - self.old) > SAME

    def beyond(self, size: float) -> float:
        """The share of the group whose score moves by more than this."""
        return float(self.share[np.abs(self.new - self.old) > size].sum())

    def gathered(self) -> Fates:
        """Segments whose old and new scores are nearly the same merged, by their means."""
        # What did not move must stay on the diagonal.
        key = np.column_stack([np.rint(self.old * STEPS), np.rint(self.new * STEPS), self.moved])
        _, index = np.unique(key, axis=0, return_inverse=True)
        index = index.ravel()
        share = add_up(index, self.share, int(index.max()) + 1)
        old, new = (np.bincount(index, self.share * x) / share for x in (self.old, self.new))
        return Fates(old, new, share)


def fates(tally: Tally, rule: Rule, group: int) -> Fates:
    """What the rule may do to a group of the tally, given by its index.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> changed = fates(compas(), ic.withhold(compas(), "fpr", 0.07), 1)
    >>> round(float(changed.share[changed.moved].sum()), 4), round(changed.beyond(0.3), 4)
    (0.5194, 0.0343)
    """
    cells, portions = tally.cells, []
    for portion in rule.portions(tally, group):
        if portion.row is not None and portion.row.defers:
            # Who is handed over has no new score.
            continue
        before = cells.wh[portion.cells] / cells.w[portion.cells]
        weight = cells.w[portion.cells] * portion.share
        portions.append((before, portion.after(before), weight))
    old, new, weight = (np.concatenate(columns) for columns in zip(*portions, strict=True))
    total = tally.totals.weight[group]
    some = weight > SAME * total
    return Fates(old[some], new[some], weight[some] / total)


@dataclass
class ChangeDisplay(Display):
    """Old score against new, a small diagram for each group (down) and rule (across).

    The area of a bubble is a share of the group.  On the diagonal nothing changes; the
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
        The names of the groups.
    shown : list of int
        The indices of the groups that some rule changes; they have a row each.
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
    >>> from isocost.plots import ChangeDisplay
    >>> display = ChangeDisplay.from_tally(compas(), [ic.withhold(compas(), "fpr", 0.07)])
    >>> [display.names[index] for index in display.shown]
    ['Caucasian']
    """

    groups: Sequence[Group]
    fates: Mapping[str, Sequence[Fates]]
    changes: Mapping[str, Sequence[Changes]] = field(default_factory=dict)
    threshold: float = 0.5

    def __post_init__(self) -> None:
        self.names = group_names(list(self.groups))
        self.shown = [
            index
            for index in range(len(self.names))
            if any(groups[index].moved.any() for groups in self.fates.values())
        ]

    @classmethod
    def from_tally(
        cls,
        tally: TallyLike,
        rules: Rules,
        *,
        threshold: float = 0.5,
        ax: Axes | None = None,
        **reading: Unpack[DataOptions],
    ) -> Self:
        """What rules, by name or as a list, would do to the people of a tally or of data."""
        threshold, named = check_threshold(threshold), named_rules(rules)
        tally = as_tally(tally, reading, *edges_of(named.values(), threshold))
        indices = range(len(tally.groups))
        display = cls(
            tally.groups,
            {
                name: [fates(tally, rule, index) for index in indices]
                for name, rule in named.items()
            },
            {
                name: [changes(tally, rule, threshold, index) for index in indices]
                for name, rule in named.items()
            },
            threshold,
        )
        return display.plot(ax)

    @classmethod
    def _edges(
        cls,
        rules: Rules,
        *,
        threshold: float = 0.5,
        **options: Any,  # noqa: ARG003
    ) -> tuple[float, ...]:
        """The edges of the rules and the threshold, so that no bin is divided."""
        return edges_of(named_rules(rules).values(), check_threshold(threshold))

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the given axes, or on those of a new figure."""
        rows, columns = max(len(self.shown), 1), max(len(self.fates), 1)
        size, margin, gap = (2.45, 2.85), (0.6, 0.4), (0.45, 0.75)
        self.ax_, self.figure_, small = panels(ax, rows * columns, columns, size, margin, gap)
        self.axes_: dict[tuple[str, Group], Axes] = {}
        self.moved_: dict[tuple[str, Group], Any] = {}
        self.kept_: dict[tuple[str, Group], Any] = {}
        style = looks(len(self.names))
        if not self.shown:
            self._nobody(small)
        for row, index in enumerate(self.shown):
            line = small[row * columns : (row + 1) * columns]
            for panel, rule in zip(line, self.fates, strict=True):
                self._panel(panel, rule, index, style[index])
            self._names(line, row, index, style[index])
        return self

    def _nobody(self, panels: list[Axes]) -> None:
        for panel in panels:
            panel.set_axis_off()
        panels[0].text(0.5, 0.5, "nobody is changed", ha="center", color=GREY, fontsize=SIZE)

    def _names(self, panels: list[Axes], row: int, index: int, look: Look) -> None:
        """Groups to the left, rules on top, what the corners are in the first diagram."""
        panels[0].set_ylabel(
            f"{short_name(self.names[index])}\nscore after", color=look.ink, fontweight="bold",
            parse_math=False,
        )  # fmt: skip
        if row == len(self.shown) - 1:
            for panel in panels:
                panel.set_xlabel("score before")
        if row == 0:
            for panel, rule in zip(panels, self.fates, strict=True):
                write_title(panel, short_name(rule), fontsize=SIZE + 0.5, fontweight="bold", pad=27)
            panels[0].text(
                0.0, 1.0, "decision\nchanges", fontsize=SMALL, color=GREY, va="top", zorder=0.6
            )

    def _panel(self, ax: Axes, rule: str, index: int, look: Look) -> None:
        key = (rule, self.groups[index])
        plain_axes(ax)
        ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
        ax.set(xticks=np.arange(6) / 5, yticks=np.arange(6) / 5, aspect="equal")
        self._corners(ax)
        ax.plot([0, 1], [0, 1], color="#bdbdbd", linewidth=0.8, zorder=1)
        fate = self.fates[rule][index].gathered()
        area = LARGEST * fate.share / max(float(fate.share.max()), 0.05)
        for chosen, store, colour in (
            (~fate.moved, self.kept_, "#9a9a9a"),
            (fate.moved, self.moved_, look.colour),
        ):
            store[key] = ax.scatter(
                fate.old[chosen], fate.new[chosen], s=np.maximum(area[chosen], 2.0), color=colour,
                alpha=0.75, linewidth=0, zorder=2 + int(store is self.moved_),
            )  # fmt: skip
        self.axes_[key] = ax
        ax.text(
            0.0, 1.015, self._summary(rule, index), transform=ax.transAxes, va="bottom",
            fontsize=SMALL, color=INK, linespacing=1.25,
        )  # fmt: skip

    def _corners(self, ax: Axes) -> None:
        at, low, high = self.threshold, -0.03, 1.03
        for x, y in (((low, at), (at, high)), ((at, high), (low, at))):
            ax.fill_between(x, *y, color="#f1f1f1", linewidth=0, zorder=0)

    def _summary(self, rule: str, index: int) -> str:
        """Who is changed, in two short lines."""
        fate = self.fates[rule][index]
        share = float(fate.share[fate.moved].sum())
        largest = float(np.abs(fate.new - fate.old)[fate.moved].max(initial=0.0))
        if not share:
            return "nobody is changed\n"
        text = f"{share:.1%} changed, by up to {largest:.2f}\n"
        if rule in self.changes:
            change = self.changes[rule][index]
            text += f"{change.decisions:.1%} of decisions; coin for {change.by_coin:.1%}"
        return text
