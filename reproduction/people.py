"""People with the scores of one or several models, and how they are split.

The paper trains models on 80 % of the people, fits the repairs on 10 % and evaluates on 10 %.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.engines.arrays import tally_arrays
from isocost.grid import Grid
from isocost.tallies import Tally

Column = npt.NDArray[Any]

POSTPROCESSING = EVALUATION = 0.1
"""The paper's shares; the rest trains the models."""


@dataclass(frozen=True, eq=False)
class People:
    """Labels, groups, the scores of each model, and further columns of some people."""

    label: Column
    group: Column
    scores: dict[str, Column]
    extra: dict[str, Column] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.label)

    def tally(self, model: str, group: Column | None = None) -> Tally:
        """The tally of one model's scores, by ``self.group`` or by other groups."""
        by = self.group if group is None else group
        columns = {"score": model, "label": "label", "group": ["group"], "weight": None}
        return tally_arrays(self.scores[model], self.label, [by], grid=Grid(), columns=columns)

    def take(self, rows: Column) -> People:
        """These rows, in this order; a row may occur more than once."""
        return People(
            self.label[rows],
            self.group[rows],
            {name: values[rows] for name, values in self.scores.items()},
            {name: values[rows] for name, values in self.extra.items()},
        )

    def resample(self, random: np.random.Generator) -> People:
        """A bootstrap sample: as many people, drawn with replacement within each group."""
        rows = np.arange(len(self))
        for group in np.unique(self.group):
            members = np.flatnonzero(self.group == group)
            rows[members] = random.choice(members, len(members))
        return self.take(rows)


@dataclass(frozen=True, eq=False)
class Split:
    """The people that rules are fitted on, and those they are evaluated on.

    Where there are too few people or the parts are not known, both are the same object.
    """

    fitting: People
    evaluation: People

    @property
    def held_out(self) -> bool:
        """Whether rules are evaluated on people they were not fitted on."""
        return self.evaluation is not self.fitting

    def resample(self, random: np.random.Generator) -> Split:
        """A bootstrap sample of each part."""
        fitting = self.fitting.resample(random)
        return Split(fitting, self.evaluation.resample(random) if self.held_out else fitting)


def split_rows(label: Column, group: Column, seed: int) -> tuple[Column, Column, Column]:
    """Rows for training (80 %), post-processing (10 %) and evaluation (10 %).

    Stratified by group and label, so that no part lacks one.

    Examples
    --------
    >>> label, group = np.arange(200) % 2, np.repeat(["a", "b"], 100)
    >>> [len(rows) for rows in split_rows(label, group, seed=0)]
    [160, 20, 20]
    """
    random = np.random.default_rng(seed)
    strata: list[tuple[Column, ...]] = []
    for name in np.unique(group):
        for value in np.unique(label):
            rows = random.permutation(np.flatnonzero((group == name) & (label == value)))
            ends = np.round(len(rows) * np.cumsum([EVALUATION, POSTPROCESSING])).astype(np.intp)
            evaluation, fitting, training = np.split(rows, ends)
            strata.append((training, fitting, evaluation))
    training, fitting, evaluation = (
        random.permutation(np.concatenate(part)) for part in zip(*strata, strict=True)
    )
    return training, fitting, evaluation
