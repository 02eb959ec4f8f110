"""The scores that the paper's authors published, for those who have the files.

They are scores of the post-processing and evaluation parts together (20 % of the people), but
for COMPAS, whose scores need no training: those are of everybody.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.errors import DataError, Problem, UsageError
from reproduction.catalogue import SOURCES
from reproduction.sources import locate, published

__all__ = ["SCORED", "scored"]

#: experiment: (file, names of the groups 0 and 1)
SCORED = {
    "income": ("income.csv", ("men", "women")),
    "health": ("health.csv", ("younger", "older")),
    "recidivism": ("criminal_recidivism.csv", ("Caucasian", "African-American")),
}


def scored(
    name: str, folder: str | Path | None = None, *, turned: bool = False, verify: bool = True
) -> dict[str, npt.NDArray[Any]]:
    """Label, group and score of the paper's own classifiers, as its authors published them.

    **income.csv has its labels the other way round from the paper**: its label 1 is an income of
    at most $50K.  The paper's equal false-negative rates are therefore equal false-positive rates
    of the file as it is; ``turned=True`` makes both labels and scores those of the paper.

    Parameters
    ----------
    name : str
        "income", "health" or "recidivism".
    folder : optional
        A folder with the files, itself or in a folder ``scored``; ``ISOCOST_DATA`` if none is
        given.  They are not fetched.
    turned : bool
        Only for income: label 1 becomes an income above $50K, and a score 1 - score.
    verify : bool
        Refuse a file that is not the published one, byte for byte.
    """
    file, groups = _known(name, turned)
    item = next(item for item in SOURCES["scored"].items if item.name == file)
    path = locate(item, folder, verify=verify)
    rows = _read(published(path, item, verify=verify), path)
    label, score = rows["label"].astype(np.intp), rows["prediction"]
    return {
        "label": 1 - label if turned else label,
        "group": np.array(groups)[rows["group"].astype(np.intp)],
        "score": 1 - score if turned else score,
    }


def _known(name: str, turned: bool) -> tuple[str, tuple[str, str]]:
    if name not in SCORED:
        step = f"name one of {', '.join(SCORED)}"
        raise UsageError(Problem("name", "must be an experiment of the paper", repr(name), step))
    if turned and name != "income":
        step = f"leave turned= out: the labels of {name} are those of the paper"
        raise UsageError(Problem("turned", "must be False but for income", "True", step))
    return SCORED[name]


def _read(content: bytes, path: Path) -> dict[str, npt.NDArray[np.float64]]:
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig", "replace"), newline="")))
    try:
        values = {
            name: np.array([float(row[name]) for row in rows])
            for name in ("label", "group", "prediction")
        }
    except (KeyError, TypeError, ValueError) as error:
        raise _not_scores(path, f"{type(error).__name__}: {error}") from error
    binary = np.isin([values["label"], values["group"]], (0, 1)).all()
    within = (values["prediction"] >= 0) & (values["prediction"] <= 1)
    if not rows or not binary or not within.all():
        raise _not_scores(path, "no rows, or values out of range")
    return values


def _not_scores(path: Path, reason: str) -> DataError:
    return DataError(
        Problem(
            "file",
            "must have columns label and group of 0 and 1, and prediction from 0 to 1",
            f"{path} ({reason})",
            "check that this is the authors' file",
        )
    )
