"""The same ids throw the same coins on every engine, to the last of their 52 bits."""

import numpy as np
import pytest

import isocost as ic
from isocost.coin import coins
from isocost.engines.frames import as_frame
from isocost.engines.lazy import Guard, guarded
from isocost.rules import Row
from tests.coin_vectors import NUMBERS, SALT, TEXTS, by_hashlib
from tests.lazy_frames import KINDS, SPARK_AND_PANDAS, as_lazy, columns_of, session_of

pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings(SPARK_AND_PANDAS)

EAGER = ("numpy", "pandas", "pandas-pyarrow", "polars-eager", "pyarrow")
VECTORS = {"numbers": NUMBERS, "texts": TEXTS}


def as_eager(kind, data):
    table = pa.table(data)
    if kind == "pandas":
        return table.to_pandas()
    if kind == "pandas-pyarrow":
        return table.to_pandas(types_mapper=pytest.importorskip("pandas").ArrowDtype)
    return pytest.importorskip("polars").from_arrow(table) if "polars" in kind else table


def eager_coins(kind, ids):
    column = np.array(ids) if kind == "numpy" else as_frame(as_eager(kind, {"id": ids})).ids("id")
    return coins(column, SALT).tolist()


def lazy_coins(kind, ids, spark):
    """The coins by id, because some engines keep no order."""
    import narwhals as nw

    data = {"id": ids, "h": [0.5] * len(ids), "fault": [0] * len(ids)}
    guard = Guard("h", "fault", {1: "no"}, "id", SALT, "checked", "coin")
    frame = guarded(nw.from_native(as_lazy(kind, data, spark)), guard)
    found = columns_of(kind, nw.to_native(frame))
    thrown = [int(c, 16) if isinstance(c, str) else c for c in found["coin"]]
    return dict(zip(found["id"], thrown, strict=True))


@pytest.mark.parametrize("vector", VECTORS)
@pytest.mark.parametrize("kind", [*EAGER, *KINDS])
def test_bit_for_bit(kind, vector, request):
    ids = VECTORS[vector]
    expected = [by_hashlib(value) for value in ids]
    if kind in EAGER:
        assert eager_coins(kind, ids) == expected
        return
    spark = session_of(kind, request)
    assert lazy_coins(kind, ids, spark) == dict(zip(ids, expected, strict=True))


RULE = ic.Rule(groups=("a",), rows=(Row("a", 0.0, 1.0, "set", 0.5, 0.5),), method="test", salt=SALT)


@pytest.mark.parametrize("kind", [*EAGER[1:], *KINDS])
def test_null_and_float_ids_are_refused(kind, request):
    spark = session_of(kind, request)
    text = "id: must be a whole number or a text in every row"
    for ids in ([1.0, 2.0], ["x", None], [7, None]):
        data = {"score": [0.1, 0.2], "group": ["a", "a"], "id": ids}
        is_lazy = kind in KINDS
        frame = as_lazy(kind, data, spark) if is_lazy else as_eager(kind, data)
        if is_lazy and None in ids:
            # The engine stops when it comes to the row.
            with pytest.raises(Exception, match=text):
                columns_of(kind, RULE.apply(frame, id="id"))
        else:
            with pytest.raises(ic.DataError, match=text):
                RULE.apply(frame, id="id")


def test_the_table_tells_engines_apart_that_would_normalise_or_round():
    # A lower-casing, NFC-normalising, or float engine would map two of these to one.
    assert len(set(map(by_hashlib, NUMBERS + TEXTS))) == len(NUMBERS + TEXTS)
    assert float(2**53 + 1) == float(2**53)
