"""One experiment with one kind of scores: its numbers, and how far chance moves them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from isocost.errors import DataError
from reproduction.definitions import Experiment
from reproduction.numbers import FIRST, METHODS, Numbers, mean_of, numbers_of, stage_numbers
from reproduction.parts import Part, Split

__all__ = ["Study"]


@dataclass(frozen=True, eq=False)
class Study:
    """One experiment with one kind of scores.

    Attributes
    ----------
    experiment : Experiment
        What is asked.
    source : str
        Where the scores come from: "retrained", "published" or "counts".
    splits : tuple of Split
        One or, with repeats, several divisions of the same people.
    trained : tuple of Part
        For recidivism, per split: people held out from training, with the scores of models
        trained under bounds from the loosest to the tightest, in this order.
    facts : {name: number}
        What the data are, such as how many people and features.
    """

    experiment: Experiment
    source: str
    splits: tuple[Split, ...]
    trained: tuple[Part, ...] = field(default=())
    facts: Numbers = field(default_factory=dict)

    @property
    def held_out(self) -> bool:
        """Whether rules are judged on people they were not fitted on."""
        return all(split.held_out for split in self.splits)

    @cached_property
    def by_split(self) -> list[Numbers]:
        """The numbers of every split, with all methods.

        COMPAS's scores are not trained, so they have one split, while models trained under
        bounds may have several: the numbers of the one then stand beside those of each.
        """
        own = [numbers_of(split, self.experiment, METHODS) for split in self.splits]
        return [
            self.facts | own[place % len(own)] | self._trained_numbers(self._trained_part(place))
            for place in range(self._divisions)
        ]

    @cached_property
    def numbers(self) -> Numbers:
        """The mean over the splits."""
        return mean_of(self.by_split)

    def replicates(
        self,
        count: int,
        seed: int = 0,
        methods: Iterable[str] = FIRST,
    ) -> list[Numbers]:
        """The numbers if other people had been drawn, with rules fitted anew; not the models.

        Replicates are spread evenly over the splits.  Those in which a group loses all its
        positives or negatives have no numbers and are left out.
        """
        # Each with a stream of its own: whether there are trained models changes nothing else.
        random, other = np.random.default_rng(seed).spawn(2)
        found = []
        for place in range(count):
            trained = self._trained_part(place)
            part = trained.redrawn(other) if trained else None
            split = self.splits[place % len(self.splits)].redrawn(random)
            try:
                numbers = numbers_of(split, self.experiment, methods)
                found.append(self.facts | numbers | self._trained_numbers(part))
            except DataError:
                continue
        return found

    @property
    def _divisions(self) -> int:
        return max(len(self.splits), len(self.trained))

    def _trained_part(self, place: int) -> Part | None:
        return self.trained[place % len(self.trained)] if self.trained else None

    def _trained_numbers(self, part: Part | None) -> Numbers:
        if part is None:
            return {}
        loosest, *_, tightest = part.scores
        return stage_numbers("untrained", part.tally(loosest), self.experiment) | stage_numbers(
            "trained", part.tally(tightest), self.experiment
        )
