"""RepairPlanDisplay: how far a repair is off for new people, against how many it is made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from isocost.checks import check_kind, check_threshold, check_word
from isocost.costs import CostLike
from isocost.plots.display import GREY, INK, SIZE, SMALL, Display, axes_for, looks, plain_axes
from isocost.repairs.counsel import titles_of
from isocost.repairs.registry import REPAIRS
from isocost.repairs.sample_size import RepairPlan, plan_repair
from isocost.tallies import Tally

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass
class RepairPlanDisplay(Display):
    """How far groups are expected to differ on new people, and at most, by the number of people.

    Parameters
    ----------
    plan : RepairPlan
        What :func:`isocost.plan_repair` returned.

    Attributes
    ----------
    people : array
        The mean number of people per group at each size tried.
    ax_, figure_
        The axes given or made, and their figure.
    lines_ : {"expected", "at most": Line2D}
        The lines.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> display = RepairPlanDisplay.from_tally(compas(), "reconcile", within=0.05, replicates=20)
    >>> display.people[:2].tolist()
    [768.75, 1537.5]
    """

    plan: RepairPlan

    def __post_init__(self) -> None:
        step = "pass what isocost.plan_repair returned"
        check_kind("plan", self.plan, RepairPlan, "must be a RepairPlan", step)
        now = list(self.plan.now.values())
        self.people = self.plan.times * (sum(now) / len(now))

    @classmethod
    def from_plan(cls, plan: RepairPlan, *, ax: Axes | None = None) -> Self:
        """From what :func:`isocost.plan_repair` returned."""
        return cls(plan)._drawn_on(ax)

    @classmethod
    def from_tally(
        cls,
        tally: Tally,
        method: str = "withhold",
        cost: CostLike = "fnr",
        *,
        threshold: float = 0.5,
        within: float = 0.02,
        replicates: int = 100,
        ax: Axes | None = None,
    ) -> Self:
        """Plan a repair by one of the methods in ``isocost.REPAIRS``."""
        check_word("method", method, tuple(REPAIRS))
        repair, threshold = REPAIRS[method], check_threshold(threshold)
        of_cost: dict[str, Any] = {"cost": cost} if repair.goal == "cost" else {}
        rule = repair.make_with(tally, threshold=threshold, **of_cost)
        return cls(plan_repair(tally, rule, within, replicates=replicates))._drawn_on(ax)

    @classmethod
    def _edges(cls, *args: Any, threshold: float = 0.5, **options: Any) -> tuple[float, ...]:  # noqa: ARG003
        return (threshold,)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the given axes, or on those of a new figure."""
        self.ax_, self.figure_ = axes_for(ax, (5.2, 3.4))
        plain_axes(self.ax_)
        plan, (look, _) = self.plan, looks(2)
        self.lines_ = {}
        for name, values, dashes in (
            ("expected", plan.expected, "-"),
            ("at most", plan.limit, "--"),
        ):
            (self.lines_[name],) = self.ax_.plot(
                self.people, values, color=look.colour, linestyle=dashes, linewidth=1.8,
                marker=look.marker, markersize=4, zorder=3,
            )  # fmt: skip
            self.ax_.annotate(
                name, (self.people[0], values[0]), (6, 3), textcoords="offset points",
                fontsize=SMALL, color=look.ink,
            )  # fmt: skip
        self.ax_.axhline(plan.within, color=GREY, linewidth=1.0, zorder=1)
        self.ax_.annotate(
            f"asked for:\n{plan.within:g}", (1.0, plan.within), (4, 0), fontsize=SMALL, color=GREY,
            xycoords=self.ax_.get_yaxis_transform(), textcoords="offset points", va="center",
        )  # fmt: skip
        self.ax_.set_xscale("log")
        self.ax_.minorticks_off()
        self.ax_.set_xticks(self.people[:: len(self.people) // 7 + 1])
        self.ax_.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
        self.ax_.set_ylim(bottom=0.0)
        self.ax_.set_xlabel("people per group", fontsize=SIZE, color=INK)
        title = f"{plan.rule.method}: difference in {titles_of(plan.rule.promise)} on new people"
        self.ax_.set_title(title, loc="left", fontsize=SIZE, color=INK)
        return self
