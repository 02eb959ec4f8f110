"""Heart Disease: 920 patients of four hospitals, and who of them had a narrowed vessel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reproduction.catalogue import SOURCES, Item
from reproduction.sources import locate
from reproduction.tables import (
    MISSING,
    Dataset,
    bad_value,
    numbers,
    read_texts,
    together,
)

__all__ = ["heart"]

NUMERIC = ("age", "trestbps", "chol", "thalach", "oldpeak", "ca")
NAMES = (
    "age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak",
    "slope", "ca", "thal", "num",
)  # fmt: skip

#: What the codes of the published description mean.
CODES = {
    "sex": {0: "female", 1: "male"},
    "cp": {1: "typical angina", 2: "atypical angina", 3: "non-anginal pain", 4: "asymptomatic"},
    "fbs": {0: "at most 120 mg/dl", 1: "above 120 mg/dl"},
    "restecg": {0: "normal", 1: "ST-T abnormality", 2: "left ventricular hypertrophy"},
    "exang": {0: "no", 1: "yes"},
    "slope": {1: "up", 2: "flat", 3: "down"},
    "thal": {3: "normal", 6: "fixed defect", 7: "reversible defect"},
}  # fmt: skip

NEVER_ZERO = ("chol", "trestbps")
"""Of a living person these are above 0: a zero is a value that was not measured."""


def heart(folder: str | Path | None = None, *, verify: bool = True) -> Dataset:
    """The patients of all four sites, in the order Cleveland, Hungary, Switzerland, Long Beach.

    The label is 1 for heart disease: ``num > 0``, which the files count from 0 to 4.  Missing
    numbers are NaN, and so is a cholesterol of 0 (all 123 Swiss patients, 49 of Long Beach) and a
    blood pressure of 0 (one of Long Beach), which nobody has.  Missing categories are "?".
    Slope, thal and ca are mostly missing outside Cleveland.  The column ``site`` says where; it is
    none of the features, as it is none of the paper's.

    Parameters
    ----------
    folder : optional
        A folder with the four files processed.*.data; see
        :func:`reproduction.sources.locate` for where else they are looked for.
    verify : bool
        Refuse files that are not the published ones, byte for byte.
    """
    source = SOURCES["heart"]
    paths = tuple(locate(item, folder, verify=verify) for item in source.items)
    columns = together(
        [
            _site(read_texts(path, item, NAMES, verify=verify), item, path)
            for item, path in zip(source.items, paths, strict=True)
        ]
    )
    label = (columns.pop("num") > 0).astype(np.intp)
    return Dataset(columns, label, tuple(CODES), NUMERIC, source, paths)


def _site(texts: dict[str, tuple[str, ...]], item: Item, path: Path) -> dict[str, npt.NDArray[Any]]:
    values = {name: numbers(name, texts[name], path) for name in NAMES}
    if np.isnan(values["num"]).any():
        raise bad_value("num", "known, because it is what is predicted", MISSING, path)
    for name in NEVER_ZERO:
        values[name][values[name] == 0] = np.nan
    site = item.name.removeprefix("processed.").removesuffix(".data")
    categories = {name: _meaning(name, values[name], path) for name in CODES}
    return values | categories | {"site": np.full(len(values["num"]), site)}


def _meaning(name: str, codes: npt.NDArray[np.float64], path: Path) -> npt.NDArray[np.str_]:
    """Words for codes; one site writes 1.0 where the others write 1."""
    words = {float(code): word for code, word in CODES[name].items()}
    strange = [code for code in codes.tolist() if code == code and code not in words]
    if strange:
        known = ", ".join(str(code) for code in CODES[name])
        raise bad_value(name, f"one of {known}", f"{strange[0]:g}", path)
    return np.array([words.get(code, MISSING) for code in codes.tolist()])
