"""Adult: 48842 people of the census of 1994, and who of them earned more than $50K a year."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reproduction.catalogue import SOURCES
from reproduction.sources import locate
from reproduction.tables import Dataset, bad_value, numbers, read_texts, together

__all__ = ["adult"]

NUMERIC = (
    "age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week",
)  # fmt: skip
CATEGORICAL = (
    "workclass", "education", "marital_status", "occupation", "relationship", "race", "sex",
    "native_country",
)  # fmt: skip
NAMES = (
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation",
    "relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week",
    "native_country", "income",
)  # fmt: skip

LABELS = {"<=50K": 0, ">50K": 1}
PARTS = ("train", "test")


def adult(folder: str | Path | None = None, *, verify: bool = True) -> Dataset:
    """Both parts of Adult, in the order of the files: 32561 people to train on, 16281 to test.

    The label is 1 for an income above $50K.  A missing category stays "?", a category of its own.
    The 14 features of the paper are all there; ``fnlwgt`` among them is the census's weight
    of a row, and no attribute of a person.  The column ``part`` is "train" or "test".

    Parameters
    ----------
    folder : optional
        A folder with adult.data and adult.test; see :func:`reproduction.sources.locate`
        for where else they are looked for.
    verify : bool
        Refuse files that are not the published ones, byte for byte.
    """
    source = SOURCES["adult"]
    paths = tuple(locate(item, folder, verify=verify) for item in source.items)
    columns = together(
        [
            _part(read_texts(path, item, NAMES, verify=verify), part, path)
            for item, path, part in zip(source.items, paths, PARTS, strict=True)
        ]
    )
    label = columns.pop("income").astype(np.intp)
    return Dataset(columns, label, CATEGORICAL, NUMERIC, source, paths)


def _part(texts: dict[str, tuple[str, ...]], part: str, path: Path) -> dict[str, npt.NDArray[Any]]:
    return (
        {name: numbers(name, texts[name], path) for name in NUMERIC}
        | {name: np.array(texts[name]) for name in CATEGORICAL}
        | {
            "part": np.full(len(texts["income"]), part),
            "income": np.array([_label(text, path) for text in texts["income"]]),
        }
    )


def _label(text: str, path: Path) -> int:
    """Whether income is above $50K; in adult.test a dot follows."""
    try:
        return LABELS[text.removesuffix(".")]
    except KeyError as error:
        raise bad_value("income", "<=50K or >50K", text, path) from error
