"""People with scores of one model or several, divided into a part to fit on and one to judge by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.engines.arrays import tally_arrays
from isocost.grid import Grid
from isocost.tallies import Tally

__all__ = ["Part", "Split", "divide"]

Column = npt.NDArray[Any]

POSTPROCESSING = EVALUATION = 0.1
"""The paper's shares; the rest trains the models."""


@dataclass(frozen=True, eq=False)
class Part:
    """Some people: their labels, groups, the scores of each model, and what else is known."""

    label: Column
    group: Column
    scores: dict[str, Column]
    more: dict[str, Column] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.label)

    def tally(self, model: str, group: Column | None = None) -> Tally:
        """The tally of one model's scores, by the groups or by other ones."""
        by = self.group if group is None else group
        columns = {"score": model, "label": "label", "group": ["group"], "weight": None}
        return tally_arrays(self.scores[model], self.label, [by], grid=Grid(), columns=columns)

    def rows(self, chosen: Column) -> Part:
        """These rows, in this order; a row may be chosen more than once."""
        return Part(
            self.label[chosen],
            self.group[chosen],
            {name: values[chosen] for name, values in self.scores.items()},
            {name: values[chosen] for name, values in self.more.items()},
        )

    def redrawn(self, random: np.random.Generator) -> Part:
        """As many people drawn with replacement, within each group: one bootstrap replicate."""
        chosen = np.arange(len(self))
        for group in np.unique(self.group):
            own = np.flatnonzero(self.group == group)
            chosen[own] = random.choice(own, len(own))
        return self.rows(chosen)


@dataclass(frozen=True, eq=False)
class Split:
    """Rules are fitted on one part and judged on the other, unchanged.

    Where people are too few or the parts are not known, both are the same people.
    """

    fitting: Part
    evaluation: Part

    @property
    def held_out(self) -> bool:
        """Whether rules are judged on people they were not fitted on."""
        return self.evaluation is not self.fitting

    def redrawn(self, random: np.random.Generator) -> Split:
        """Both parts redrawn, apart if they are two."""
        fitting = self.fitting.redrawn(random)
        return Split(fitting, self.evaluation.redrawn(random) if self.held_out else fitting)


def divide(label: Column, group: Column, seed: int) -> tuple[Column, Column, Column]:
    """Rows for training (80 %), post-processing (10 %) and evaluation (10 %).

    Each group and label is divided alike, so that no part lacks one.

    Examples
    --------
    >>> label, group = np.arange(200) % 2, np.repeat(["a", "b"], 100)
    >>> [len(rows) for rows in divide(label, group, seed=0)]
    [160, 20, 20]
    """
    random = np.random.default_rng(seed)
    parts: tuple[list[Column], ...] = ([], [], [])
    for name in np.unique(group):
        for value in np.unique(label):
            own = random.permutation(np.flatnonzero((group == name) & (label == value)))
            ends = [round(len(own) * EVALUATION), round(len(own) * (EVALUATION + POSTPROCESSING))]
            evaluation, fitting, training = np.split(own, ends)
            for part, rows in zip(parts, (training, fitting, evaluation), strict=True):
                part.append(rows)
    training, fitting, evaluation = (random.permutation(np.concatenate(part)) for part in parts)
    return training, fitting, evaluation
