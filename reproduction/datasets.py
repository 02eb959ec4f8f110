"""The data of the paper's three experiments, and of three more, as tables.

:mod:`reproduction.fetch` finds or downloads the files and checks their hashes, so what is read
here is known to the byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from reproduction.fetch import SOURCES, locate

MISSING = "?"
"""A missing category, which is a category of its own; a missing number is NaN."""

ADULT = (
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation",
    "relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week",
    "native_country", "income",
)  # fmt: skip
ADULT_NUMERIC = (
    "age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week",
)  # fmt: skip
ADULT_CATEGORICAL = (
    "workclass", "education", "marital_status", "occupation", "relationship", "race", "sex",
    "native_country",
)  # fmt: skip

HEART = (
    "age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak",
    "slope", "ca", "thal", "num",
)  # fmt: skip
HEART_NUMERIC = ("age", "trestbps", "chol", "thalach", "oldpeak", "ca")
HEART_CATEGORIES = {
    "sex": {0: "female", 1: "male"},
    "cp": {1: "typical angina", 2: "atypical angina", 3: "non-anginal pain", 4: "asymptomatic"},
    "fbs": {0: "at most 120 mg/dl", 1: "above 120 mg/dl"},
    "restecg": {0: "normal", 1: "ST-T abnormality", 2: "left ventricular hypertrophy"},
    "exang": {0: "no", 1: "yes"},
    "slope": {1: "up", 2: "flat", 3: "down"},
    "thal": {3: "normal", 6: "fixed defect", 7: "reversible defect"},
}
"""The codes of the categorical features, as UCI describes them."""

NEVER_ZERO = ("chol", "trestbps")
"""Nobody has a cholesterol or blood pressure of 0: it was not measured."""

COMPAS = (
    "sex", "age_cat", "race", "c_charge_degree", "score_text", "priors_count", "decile_score",
    "days_b_screening_arrest", "is_recid", "two_year_recid",
)  # fmt: skip

SCORED_GROUPS = {
    "income": ("men", "women"),
    "health": ("middle-aged", "seniors"),
    "criminal_recidivism": ("Caucasian", "African-American"),
}
"""What the groups 0 and 1 of the authors' files are."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set as published, one row per person.

    Attributes
    ----------
    table : DataFrame
        The columns by name; a missing number is NaN, a missing category is "?".
    label : array
        The outcome to predict, 0 or 1.
    categorical, numeric : tuple of str
        The columns that are features, by kind.
    """

    table: pd.DataFrame
    label: npt.NDArray[np.intp]
    categorical: tuple[str, ...]
    numeric: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.label)


def adult(folder: str | Path | None = None) -> Dataset:
    """Adult: 48,842 people of the 1994 census; label 1 is an income above $50K.

    The rows of adult.data come first.  All 14 features of the paper are there, including
    ``fnlwgt``, which is the census's weight of a row and not an attribute of the person.

    Parameters
    ----------
    folder : optional
        The user's data folder; see :func:`reproduction.fetch.locate`.
    """
    source = SOURCES["adult"]
    # The first line of adult.test is a remark that starts with "|", and its labels end in a dot.
    table = pd.concat(
        [
            pd.read_csv(
                locate(source, file, folder),
                names=ADULT,
                skipinitialspace=True,
                comment="|",
                keep_default_na=False,
            )
            for file in source.files
        ],
        ignore_index=True,
    )
    label = table.pop("income").str.startswith(">50K").to_numpy(np.intp)
    return Dataset(table, label, ADULT_CATEGORICAL, ADULT_NUMERIC)


def heart(folder: str | Path | None = None) -> Dataset:
    """Heart Disease: 920 patients of four hospitals; label 1 is a heart condition (``num`` > 0).

    The sites are in the order Cleveland, Hungary, Switzerland, Long Beach; the column ``site``
    names them and is not a feature, as in the paper.  A cholesterol or blood pressure of 0 is NaN.
    Slope, thal and ca are mostly missing outside Cleveland.

    Parameters
    ----------
    folder : optional
        The user's data folder; see :func:`reproduction.fetch.locate`.
    """
    source = SOURCES["heart"]
    sites = []
    for file in source.files:
        site = pd.read_csv(locate(source, file, folder), names=HEART, na_values=MISSING)
        sites.append(site.astype(np.float64).assign(site=file.split(".")[1]))
    table = pd.concat(sites, ignore_index=True)
    for name in NEVER_ZERO:
        table[name] = table[name].mask(table[name] == 0)
    for name, meanings in HEART_CATEGORIES.items():
        table[name] = table[name].map(meanings).fillna(MISSING)
    label = (table.pop("num") > 0).to_numpy(np.intp)
    return Dataset(table, label, tuple(HEART_CATEGORIES), HEART_NUMERIC)


def compas(folder: str | Path | None = None) -> pd.DataFrame:
    """ProPublica's two-year table: 7,214 defendants, the ten columns that studies use.

    The file has names, birth dates and case numbers; they are not read.
    ``two_year_recid`` is 1 for those charged again within two years.

    Parameters
    ----------
    folder : optional
        The user's data folder; see :func:`reproduction.fetch.locate`.
    """
    source = SOURCES["compas"]
    (file,) = source.files
    return pd.read_csv(
        locate(source, file, folder),
        usecols=COMPAS,
        keep_default_na=False,  # "N/A" is a value of score_text
        na_values={"days_b_screening_arrest": [""]},
    )


def german(folder: str | Path | None = None) -> Dataset:
    """German credit: 1,000 loans; label 1 is one that was not repaid.

    Categories are columns of 0 and 1 already, and ages are only known as 25 or younger, or older.

    Parameters
    ----------
    folder : optional
        The user's data folder; see :func:`reproduction.fetch.locate`.
    """
    table = _one_file("german", folder).drop(columns="sex-age")
    label = table.pop("credit-label").to_numpy(np.intp)
    return Dataset(table, label, (), tuple(table.columns))


def law(folder: str | Path | None = None) -> Dataset:
    """Law school: 19,567 black and white students; label 1 passed the bar exam at once.

    Features are the admission test, the grades before and in the first year, sex and race.

    Parameters
    ----------
    folder : optional
        The user's data folder; see :func:`reproduction.fetch.locate`.
    """
    table = _one_file("law", folder)
    table = table[table["Race_Black"] + table["Race_White"] == 1].reset_index(drop=True)
    features = ("LSAT", "UGPA", "ZFYA", "Race_Black", "Sex_1")
    return Dataset(table, table["PF_1"].to_numpy(np.intp), (), features)


def taiwan(folder: str | Path | None = None) -> Dataset:
    """Taiwan credit: 30,000 holders of credit cards; label 1 did not pay in the next month.

    Parameters
    ----------
    folder : optional
        The user's data folder; see :func:`reproduction.fetch.locate`.
    """
    table = _one_file("taiwan", folder).drop(columns="ID")
    label = table.pop("default-payment-next-month").to_numpy(np.intp)
    return Dataset(table, label, (), tuple(table.columns))


def _one_file(name: str, folder: str | Path | None) -> pd.DataFrame:
    source = SOURCES[name]
    (file,) = source.files
    return pd.read_csv(locate(source, file, folder))


def scored(name: str, folder: str | Path | None = None) -> dict[str, npt.NDArray[Any]]:
    """Label, group and score of the paper's own classifiers, as its authors published them.

    Income and health are the 20 % of people that were not trained on.  **Labels and scores of
    income are flipped**: in income.csv label 1 is an income of at most $50K, in the paper it is
    an income above $50K.

    Parameters
    ----------
    name : str
        "income", "health" or "criminal_recidivism".
    folder : optional
        The user's data folder; see :func:`reproduction.fetch.locate`.
    """
    path = locate(SOURCES["scored"], f"{name}.csv", folder)
    # Python's float is exact to the last digit in every version of pandas.
    table = pd.read_csv(path, converters={"prediction": float})
    label, score = table["label"].to_numpy(np.intp), table["prediction"].to_numpy()
    flipped = name == "income"
    return {
        "label": 1 - label if flipped else label,
        "group": np.array(SCORED_GROUPS[name])[table["group"].to_numpy(np.intp)],
        "score": 1 - score if flipped else score,
    }
