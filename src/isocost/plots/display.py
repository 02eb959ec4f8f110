"""What the displays have in common: they are made from a tally, predictions or an estimator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from isocost.engines.arrays import tally_arrays
from isocost.engines.dispatch import tally as tally_of
from isocost.grid import Grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isocost.tallies import Tally

__all__ = ["Display"]


class Display(ABC):
    """A display holds the numbers it draws; ``plot`` draws them, and keeps the artists."""

    @classmethod
    @abstractmethod
    def from_tally(cls, tally: Tally, *args: Any, **options: Any) -> Self:
        """From a tally."""

    @abstractmethod
    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the given axes, or on those of a new figure."""

    @classmethod
    def _edges(cls, *args: Any, **options: Any) -> tuple[float, ...]:  # noqa: ARG003
        """The edges that a tally needs for these arguments of :meth:`from_tally`."""
        return ()

    @classmethod
    def from_predictions(
        cls, y: Any, score: Any, group: Any, *args: Any, weight: Any = None, **options: Any
    ) -> Self:
        """From labels, scores and groups given as arrays.

        Parameters
        ----------
        y, score, group : arrays
            One value per row.
        weight : array, optional
            Weights of the rows.
        *args, **options
            As for :meth:`from_tally`.
        """

        def count(edges: tuple[float, ...]) -> Tally:
            return tally_of(score=score, label=y, group=group, weight=weight, edges=edges)

        return cls._from(count, args, options)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *args: Any,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        **options: Any,
    ) -> Self:
        """From the scores that a fitted binary classifier gives the rows of X.

        Parameters
        ----------
        estimator : classifier
            The positive class is the last of ``classes_``.  The scores of a repaired estimator
            are those after its coin: their average over the coin is not calibrated.
        X, y : arrays
            Rows and labels.
        sensitive_features : array, series, frame, str or list of str
            The groups, or the names of columns of X.
        sample_weight : array, optional
            Weights of the rows.
        *args, **options
            As for :meth:`from_tally`.
        """
        from isocost.learn.base import raw_scores, response_of
        from isocost.learn.inputs import read_groups

        groups = read_groups(X, sensitive_features)
        response = response_of(estimator, recalibrated=False, needs_calibration=True)
        positive = list(estimator.classes_)[-1]
        scores = raw_scores(estimator, X, response, groups, positive)
        labels = (np.asarray(y) == positive).astype(np.intp)

        def count(edges: tuple[float, ...]) -> Tally:
            grid = Grid(edges=edges)
            return tally_arrays(scores, labels, [groups.encoded], sample_weight, grid=grid)

        return cls._from(count, args, options)

    @classmethod
    def _from(
        cls,
        count: Callable[[tuple[float, ...]], Tally],
        args: tuple[Any, ...],
        options: dict[str, Any],
    ) -> Self:
        # The arguments are read twice, which would leave nothing of an iterator.
        args = tuple(list(value) if isinstance(value, Iterator) else value for value in args)
        options = {k: list(v) if isinstance(v, Iterator) else v for k, v in options.items()}
        return cls.from_tally(count(cls._edges(*args, **options)), *args, **options)

    def _drawn_on(self, ax: Axes | None) -> Self:
        return self if ax is None else self.plot(ax)
