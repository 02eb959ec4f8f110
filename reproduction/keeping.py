"""Scores that took long to make, kept in the cache."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.atomic import replacing

__all__ = ["kept", "key_of"]

Column = npt.NDArray[Any]


def key_of(arrays: Iterable[Column], text: str) -> str:
    """A name that changes with every number of the arrays and every letter of the text."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    digest.update(text.encode())
    return digest.hexdigest()[:24]


def kept(cache: Path | None, key: str, make: Callable[[], dict[str, Column]]) -> dict[str, Column]:
    """The arrays that are kept under a key, or new ones, which are then kept; in their order."""
    if cache is None:
        return make()
    place = cache / f"{key}.npz"
    found = _load(place)
    if found is None:
        found = make()
        place.parent.mkdir(parents=True, exist_ok=True)
        with replacing(place) as temporary, temporary.open("wb") as file:
            np.savez(file, **found)  # type: ignore[arg-type]
    return found


def _load(place: Path) -> dict[str, Column] | None:
    try:
        with place.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, zipfile.BadZipFile):
        return None
