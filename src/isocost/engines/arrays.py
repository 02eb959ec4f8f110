"""Arrays: the kernel that counts cells in chunks, and applies a rule to scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from isocost.cells import LABELS, OF_WEIGHTS, SUMS, Cells, add_up
from isocost.engines.columns import (
    USUAL_WEIGHTS,
    WRONG,
    GroupEncoder,
    LabelReader,
    Problems,
    column_array,
    no_rows,
    null_rows,
    number_text,
    text_numbers,
    title_of,
)
from isocost.engines.repeated import PersonSums, distinct
from isocost.errors import DataError, Problem
from isocost.grid import PROBABILITY, Grid, Scale
from isocost.groups import Group, is_null
from isocost.readings import REFUSE, Missing
from isocost.rules import Rule, unknown_groups
from isocost.tallies import Tally
from isocost.typing import Bools, Floats, Ints

CHUNK = 2**17
"""Rows per chunk: large enough to hide NumPy's call overhead, small enough for the cache."""

DENSE = 2**22
"""Up to this many possible cells the sums are dense arrays; beyond, only cells that occur."""


def tally_arrays(
    score: Any,
    label: Any,
    groups: Sequence[Any],
    weight: Any = None,
    person: Any = None,
    id: Any = None,
    *,
    grid: Grid,
    positive: Any = None,
    missing: Missing | None = None,
    names: dict[str, str] | None = None,
    columns: dict[str, Any] | None = None,
    scale: Scale = PROBABILITY,
    decimal: str | None = None,
    handed_over: bool = False,
    labels: LabelReader | None = None,
) -> Tally:
    """Count the cells of columns that are arrays; see :func:`isocost.tally`.

    If ``missing`` is None, rows without a value are refused, and errors do not offer to drop them.
    Where there are more rows elsewhere, their ``labels`` are read together.
    """
    names, columns = names or {}, columns or {}
    problems = Problems(names, scale=scale, decimal=decimal, can_drop=missing is not None)
    missing = missing or REFUSE
    score = as_scores(score, problems, "score")
    weight = None if weight is None else as_scores(weight, problems, "weight")
    label = column_array("label", label)
    groups = [column_array("group", column) for column in groups]
    named = {"score": score, "label": label, **({} if weight is None else {"weight": weight})}
    if person is not None:
        named["person"] = column_array("person", person)
    others = {f"group {i}": g for i, g in enumerate(groups)}
    others |= {} if id is None else {"id": column_array("id", id)}
    rows = same_length({**named, **others})
    problems.rows = rows
    if scale.is_open:
        problems.scale = scale.within(*_range(score))
    encoder = GroupEncoder(groups, missing.name, missing.keeps("group"))
    reader = labels or LabelReader(positive, missing.keeps("label"))
    totals, handed = _Totals(grid, LABELS if reader.keep else 2), _Totals(grid)
    persons = None
    if person is not None:
        persons = PersonSums(named["person"], grid.thresholds, weight is not None)

    def add(part: Any, start: int, is_handed: bool = False) -> None:
        w = None if weight is None else _checked_weights(weight[part], problems, start)
        g = encoder.encode([column[part] for column in groups], problems, start)
        if is_handed:
            # Labels of people handed over may be unknown, and are not needed.
            handed.add(np.zeros(len(g)), np.zeros_like(g), g, w, len(encoder.groups))
            return
        h = _checked_scores(score[part], problems, start)
        y = reader.read(label, part, problems, start)
        totals.add(h, y, g, w, len(encoder.groups))
        if persons is not None:
            persons.add(part, y, g, h, w, problems, start)

    several = [f"group {i}" for i in range(len(groups))] if len(groups) > 1 else ["group"]
    of_groups = dict(zip(columns.get("group", several), groups, strict=True))
    by_role = {role: {columns.get(role, role): x} for role, x in named.items()}
    treated = missing.treated({**by_role, "group": of_groups})
    not_needed = {columns.get(role, role) for role in ("score", "label", "person") if handed_over}
    for first in range(0, rows, CHUNK):
        part = slice(first, first + CHUNK)
        apart = np.isnan(score[part]) if handed_over else np.zeros(1, dtype=bool)
        dropped, unknown = ({n: null_rows(x, part) for n, x in own.items()} for own in treated)
        for nulls in (dropped, unknown):
            for name in nulls.keys() & not_needed:
                nulls[name] &= ~apart
        kept = problems.sort_out(dropped, unknown)
        if not (handed_over or treated[0]):
            add(part, first)
            continue
        for is_handed, mine in ((False, kept & ~apart), (True, kept & apart)):
            problems.places = first + np.flatnonzero(mine)
            if len(problems.places):
                add(problems.places, 0, is_handed)
    if any(role == "score" for role, _ in problems.counts):
        problems.span = (*_range(score), bool((score[np.isfinite(score)] % 1.0 == 0.0).all()))
    problems.check([] if labels else reader.finish(names.get("label", "label")))
    ids = distinct(others["id"]) if id is not None and person is None else 0
    reading = problems.reading(columns, positive, missing, handed_over=handed_over, ids=ids)
    apart_groups = handed.cells().handed(encoder.groups) if handed_over else None
    held = (encoder.groups, totals.cells(), reading)
    sums = None if persons is None else persons.finish(encoder.groups)
    return Tally.build(grid, *held, handed_over=apart_groups, persons=sums)


def _range(score: Floats) -> tuple[float, float]:
    """The least and the greatest finite number."""
    finite = score[np.isfinite(score)]
    return (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)


def as_scores(column: Any, problems: Problems, role: str) -> Floats:
    """A column as floats; null becomes NaN, and values that are not numbers are counted."""
    array = column_array(role, column)
    if array.dtype.kind in "biuf":
        return np.asarray(array, dtype=np.float64)
    values = list(array)
    if set(map(type, values)) <= {float, int, bool, type(None)}:
        try:
            return np.asarray(array, dtype=np.float64)  # None becomes NaN
        except OverflowError:
            pass
    # NumPy would also convert "0_1", b"1", nanoseconds and the real part of complex numbers.
    asked = problems.decimal
    numbers = np.array([_as_number(value, asked or ".") for value in values])
    wrong = np.flatnonzero(numbers == -np.inf)
    if not len(wrong):
        return numbers
    texts = [str(value) for value in values if isinstance(value, str)]
    if asked == "," or not any("," in text for text in texts):
        problems.add(role, "not a number", len(wrong), values[wrong[0]], wrong[0])
        return np.where(numbers == -np.inf, 0.5, numbers)
    written = text_numbers(texts, asked or ".")
    if asked is None and written.fits_comma and len(texts) == sum(not is_null(v) for v in values):
        problems.decimal = ","
        return np.array([_as_number(value, ",") for value in values])
    problems.texts.append(written.problem(title_of(role, problems.names.get(role, role)), asked))
    return np.full(len(values), 0.5)


def _as_number(value: Any, decimal: str) -> float:
    """A value as a float: NaN for null, minus infinity if it is not a number."""
    if is_null(value):
        return np.nan
    if isinstance(value, str):
        text = number_text(value, decimal)
        return -np.inf if text is None else float(text)
    # NumPy's time spans are integers.
    span = isinstance(value, np.generic) and value.dtype.kind == "m"
    if span or not isinstance(value, Real | Decimal | np.bool_):
        return -np.inf
    try:
        return float(value)
    except OverflowError:
        return -np.inf


def same_length(columns: dict[str, Any]) -> int:
    """The common length of columns, at least 1."""
    sizes = {name: len(column) for name, column in columns.items()}
    if len(set(sizes.values())) > 1:
        got = ", ".join(f"{name} has {size:,}" for name, size in sizes.items())
        rule, step = "columns must have the same length", "pass columns of the same rows"
        raise DataError(Problem("data", rule, got, step))
    rows = next(iter(sizes.values()))
    if rows == 0:
        raise no_rows()
    return rows


def _checked_scores(h: Floats, problems: Problems, start: int) -> Floats:
    """The scores as probabilities; bad ones are counted and replaced."""
    scale = problems.scale
    # NaN fails both comparisons, so two reductions check everything.
    if not (h.min() >= scale.low and h.max() <= scale.high) or scale.is_rank:
        wrong = (np.isnan(h), np.isinf(h), np.isfinite(h) & ~scale.holds(h))
        h = _without(h, wrong, problems, "score", start, max(scale.low, 0.0))
    return np.asarray(scale.probability(h), dtype=np.float64)


def _checked_weights(w: Floats, problems: Problems, start: int) -> Floats:
    least, most = USUAL_WEIGHTS
    if w.min() >= least and w.max() <= most:
        return w
    finite = np.isfinite(w)
    extreme = finite & (w > 0.0) & ((w < least) | (w > most))
    wrong = (np.isnan(w), np.isinf(w), w == 0.0, finite & (w < 0.0), extreme)
    return _without(w, wrong, problems, "weight", start, 1.0)


def _without(
    values: Floats,
    wrong: tuple[Bools, ...],
    problems: Problems,
    role: str,
    start: int,
    filler: float,
) -> Floats:
    """The values with wrong ones counted and replaced; ``wrong`` is in the order of the codes."""
    bad = np.zeros(len(values), dtype=bool)
    for (code, kind), these in zip(WRONG[role].items(), wrong, strict=True):
        rows = np.flatnonzero(these)
        if len(rows):
            value = None if code == -1 else values[rows[0]]
            problems.add(role, kind, len(rows), value, start + int(rows[0]))
        bad |= these
    return np.where(bad, filler, values)


class _Totals:
    """The sums of every cell, added chunk by chunk."""

    def __init__(self, grid: Grid, labels: int = 2) -> None:
        self.grid, self.labels = grid, labels
        self.full: dict[str, Floats] = {}
        self.sparse: list[Cells] = []
        self.weighted = False

    def add(self, h: Floats, y: Ints, g: Ints, w: Floats | None, groups: int) -> None:
        """Add a chunk with scores h, labels y, group codes g and weights w."""
        cell = g * self.labels
        cell += y
        cell *= self.grid.size
        cell += self.grid.index(h)
        size = groups * self.labels * self.grid.size
        self.weighted = w is not None
        if size > DENSE:
            cell, inverse = np.unique(cell, return_inverse=True)
            sums = _sums(inverse, h, w, len(cell))
            self.sparse.append(self._located(cell, sums))
            return
        for name, added in _sums(cell, h, w, size).items():
            before = self.full.get(name)
            if before is not None:
                added[: len(before)] += before
            self.full[name] = added

    def cells(self) -> Cells:
        """All cells that occur."""
        chunks = list(self.sparse)
        if self.full or not chunks:
            full = self.full or dict.fromkeys(SUMS, np.zeros(0))
            cell = np.flatnonzero(full["n"])
            sums = {name: values[cell] for name, values in full.items()}
            chunks.append(self._located(cell, sums))
        return Cells.merge(chunks)

    def _located(self, cell: Ints, sums: dict[str, Floats]) -> Cells:
        if not self.weighted:
            sums |= dict.fromkeys(OF_WEIGHTS, sums["n"])
        rest, bin_ = np.divmod(cell, self.grid.size)
        group, label = np.divmod(rest, self.labels)
        return Cells(group, label, bin_, **sums)


def _sums(cell: Ints, h: Floats, w: Floats | None, size: int) -> dict[str, Floats]:
    n = np.bincount(cell, minlength=size).astype(np.float64)
    if w is None:
        return {"n": n, "wh": add_up(cell, h, size), "wh2": add_up(cell, h * h, size)}
    square, product = w * w, w * h
    return {
        "n": n,
        "w": add_up(cell, w, size),
        "w2": add_up(cell, square, size),
        "w4": add_up(cell, square * square, size),
        "wh": add_up(cell, product, size),
        "wh2": add_up(cell, product * h, size),
    }


def apply_arrays(
    rule: Rule,
    score: Any,
    groups: Sequence[Any],
    coins: Callable[[], npt.NDArray[np.uint64]],
    *,
    unknown: Literal["error", "keep"] = "error",
    missing_group: Group | None = None,
    names: dict[str, str] | None = None,
    scale: Scale = PROBABILITY,
) -> tuple[Floats, Floats]:
    """The scores as probabilities before and after; ``coins`` is called only when needed."""
    problems = Problems(names or {}, scale=scale)
    score = as_scores(score, problems, "score")
    groups = [column_array("group", column) for column in groups]
    problems.rows = rows = same_length(
        {"score": score, **{f"group {i}": g for i, g in enumerate(groups)}}
    )
    encoder = GroupEncoder(groups, missing_group)
    codes = np.empty(rows, dtype=np.intp)
    probabilities = score if scale.is_plain else np.empty(rows)
    for start in range(0, rows, CHUNK):
        part = slice(start, start + CHUNK)
        checked = _checked_scores(score[part], problems, start)
        if not scale.is_plain:
            probabilities[part] = checked
        codes[part] = encoder.encode([column[part] for column in groups], problems, start)
    problems.check()
    known = set(rule.groups)
    others = [group for group in encoder.groups if group not in known]
    if others and unknown == "error":
        raise unknown_groups(others, rule.groups)
    thrown = coins() if rule.needs_coin else np.zeros(rows, dtype=np.uint64)
    score = probabilities
    out: Floats = score.copy()
    # NumPy sorts small integers in one pass.
    small = codes.astype(np.uint16) if len(encoder.groups) <= 2**16 else codes
    order = np.argsort(small, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(encoder.groups)))
    for group, first, last in zip(encoder.groups, [0, *ends[:-1]], ends, strict=True):
        if not rule.segments(group):
            continue
        mine = order[first:last]
        h, coin = score[mine], thrown[mine]
        new: Floats = h.copy()
        for segment in rule.segments(group):
            inside = segment.holds(h)
            for row, low, high in segment.outcomes():
                chosen = inside & (coin >= np.uint64(low)) & (coin < np.uint64(high))
                new[chosen] = row.after(h[chosen])
        out[mine] = new
    return score, out
