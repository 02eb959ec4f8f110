"""COMPAS as forty counts: the decile scores of 6150 defendants and who was charged again.

The counts were made from ProPublica's table of Broward County defendants, African-American and
Caucasian, without a day filter.  The score of a decile is the share of all defendants with that
decile who were charged again within two years: that is how the paper turns deciles into risks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.engines.arrays import tally_arrays
from isocost.grid import Grid
from isocost.tables import csv_text
from isocost.tallies import Tally

GROUPS = ("Caucasian", "African-American")

#: decile: (Caucasian, of which recidivist, African-American, of which recidivist)
COUNTS = (
    (681, 142, 398, 91),
    (361, 113, 393, 119),
    (273, 93, 346, 145),
    (285, 113, 385, 177),
    (241, 111, 365, 176),
    (194, 111, 384, 215),
    (143, 88, 400, 237),
    (114, 82, 359, 245),
    (98, 68, 380, 269),
    (64, 45, 286, 227),
)


def compas_rows() -> dict[str, npt.NDArray[Any]]:
    """One row per defendant: id (a running number), group, decile, label and score.

    Examples
    --------
    >>> from isocost.examples import compas_rows
    >>> rows = compas_rows()
    >>> len(rows["score"]), int(rows["label"].sum())
    (6150, 2867)
    """
    counts = np.array(COUNTS).reshape(10, 2, 2)
    people, positives = counts[..., 0], counts[..., 1]
    # Decile, group, label: the negatives of a cell first.
    cell = np.stack([people - positives, positives], axis=-1).ravel()
    decile, group, label = np.unravel_index(np.repeat(np.arange(40), cell), (10, 2, 2))
    score = positives.sum(axis=1) / people.sum(axis=1)
    return {
        "id": np.arange(1, len(decile) + 1),
        "group": np.array(GROUPS)[group],
        "decile": decile + 1,
        "label": label,
        "score": score[decile],
    }


def compas_csv() -> str:
    """The rows as the text of a CSV file: the data.csv of the documentation.

    Examples
    --------
    >>> from isocost.examples import compas_csv
    >>> print(compas_csv()[:51])
    id,group,decile,label,score
    1,Caucasian,1,0,0.21594
    """
    return csv_text({name: values.tolist() for name, values in compas_rows().items()}) + "\n"


def compas(edges: tuple[float, ...] = ()) -> Tally:
    """The tally of the COMPAS counts.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> compas()
    Tally of 6,150 rows in 2 groups; 1024 bins
    group                 n  positives  base rate  mean score
    ----------------  -----  ---------  ---------  ----------
    African-American  3,696      1,901     0.5143      0.5070
    Caucasian         2,454        966     0.3936      0.4047
    """
    rows = compas_rows()
    return tally_arrays(
        rows["score"],
        rows["label"],
        [rows["group"]],
        grid=Grid(edges=edges),
        columns={"score": "score", "label": "label", "group": ["group"], "weight": None},
    )
