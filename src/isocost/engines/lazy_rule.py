"""A rule on a lazy frame: the same lazy frame with one column more or replaced.

Nothing is computed here.  What an eager frame is told at once, such as a null id or a group that
the rule does not know, stops the engine when it comes to the row; what the types of the columns
tell is told at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Literal

from isocost.engines.backends import (
    NO_ID,
    Guard,
    column,
    constant,
    guarded,
    limit,
    originally_named,
    plainly_named,
)
from isocost.engines.frames import Lazy
from isocost.engines.lazy import equals, fits, group_column, is_null, number, score_status
from isocost.engines.problems import WRONG, problem_of
from isocost.errors import DataError, Problem, UsageError, missing_column
from isocost.groups import Group
from isocost.rules import Rule, unknown_groups

if TYPE_CHECKING:
    from narwhals import Expr

__all__ = ["apply_lazy"]

_NO_GROUP, _OTHER_GROUP = 4, 5


def apply_lazy(
    rule: Rule,
    source: Lazy,
    *,
    score: str,
    groups: Sequence[str],
    id: str,
    output: str,
    seed: int | None = None,
    unknown: Literal["error", "keep"] = "error",
    missing_group: Group | None = None,
    changed: str | None = None,
) -> Any:
    """The native lazy frame with the repaired scores; see :meth:`isocost.Rule.apply`."""
    import narwhals as nw

    _check_seed(seed)
    source = plainly_named(source, output, *([] if changed is None else [changed]))
    who = _checked_id(source, id) if rule.needs_coin else None
    for name in groups:
        source.check(name, "group")
    source = source.only_texts([*groups, *([] if who is None else [who])])
    known = _known(rule, [source.types[name] for name in groups], unknown, missing_group)
    names = {"score": score, "group": ", ".join(groups), "id": id}
    ours = _free_names(source.columns, "score", "group", "fault", "checked", "coin", "new")
    place = _place(source, groups, known, missing_group)
    frame = source.frame.with_columns(
        **{ours["score"]: number(source, score, "score"), ours["group"]: place}
    )
    fault = _fault(source, ours, groups, who, unknown, missing_group)
    guard = Guard(
        score=ours["score"],
        fault=ours["fault"],
        messages=_messages(names, rule),
        id=None if who is None else source.inside(who),
        salt=rule.salt,
        checked=ours["checked"],
        coin=ours["coin"],
    )
    frame = guarded(frame.with_columns(**{ours["fault"]: fault}), guard)
    frame = frame.with_columns(**{ours["new"]: _repaired(frame, rule, known, ours)})
    new, checked = nw.col(ours["new"]), nw.col(ours["checked"])
    written = {source.inside(output): new}
    if changed is not None:
        written[source.inside(changed)] = new != checked
    spare = [name for role, name in ours.items() if role != "coin" or who is not None]
    return originally_named(source, frame.with_columns(**written).drop(spare))


def _check_seed(seed: int | None) -> None:
    if seed is not None:
        raise UsageError(
            Problem(
                "seed",
                "needs rows that have an order, and those of a lazy frame have none",
                f"seed={seed!r}",
                "pass id= instead, or collect the frame first",
            )
        )


def _checked_id(source: Lazy, id: Any) -> str:
    """The id column, or an error if its type cannot be one."""
    import narwhals as nw

    if id not in source.types:
        raise UsageError(missing_column("id", id, source.columns))
    source.check_name(id, "id")
    kind = source.types[id]
    texts = (nw.String, nw.Categorical, nw.Enum, nw.Object)
    if not (kind.is_integer() or kind in texts):
        title = "id" if id == "id" else f"id (column {id!r})"
        step = "use whole numbers or texts as ids, for example by casting the column to text"
        must = "must be a whole number or a text in every row"
        raise DataError(Problem(title, must, f"a column of type {kind}", step))
    return str(id)


def _known(rule: Rule, kinds: list[Any], unknown: str, missing: Group | None) -> list[Group]:
    """The groups of the rule that the columns can hold, by their types."""
    known = [
        group
        for group in rule.groups
        if len(parts := _parts(group)) == len(kinds)
        and all(
            part == missing or fits(kind, part) for kind, part in zip(kinds, parts, strict=True)
        )
    ]
    if not known and unknown == "error":
        problem = unknown_groups([], rule.groups).problems[0]
        shown = ", ".join(map(str, kinds))
        got = f"{len(kinds)} group columns of type {shown}" if len(kinds) > 1 else f"type {shown}"
        step = "name the group columns, and give them the types, that the rule was made with"
        raise UsageError(replace(problem, got=got, next_step=step))
    return known


def _parts(group: Group) -> tuple[Any, ...]:
    return group if isinstance(group, tuple) else (group,)


def _free_names(taken: Sequence[str], *roles: str) -> dict[str, str]:
    """Names for our own columns that no column of the data has, in any case of letters."""
    lower, prefix = {name.lower() for name in taken}, "isocost_"
    while any(name.startswith(prefix) for name in lower):
        prefix += "_"
    return {role: prefix + role for role in roles}


def _place(
    source: Lazy, groups: Sequence[str], known: Sequence[Group], missing: Group | None
) -> Expr:
    """The place of a row's group among those known; -1 for another group."""
    import narwhals as nw

    whens = []
    for code, group in enumerate(known):
        tests = []
        for name, part in zip(groups, _parts(group), strict=True):
            kind, values = source.types[name], group_column(source, name)
            test = equals(values, kind, part)
            tests.append(test | is_null(values, kind) if part == missing else test)
        whens.append(nw.when(reduce(and_, tests)).then(nw.lit(code)))
    return nw.coalesce(*whens, nw.lit(-1)) if whens else nw.lit(-1)


def _fault(
    source: Lazy,
    ours: dict[str, str],
    groups: Sequence[str],
    id: str | None,
    unknown: str,
    missing: Group | None,
) -> Expr:
    """A number that says what is wrong with a row; 0 if nothing is."""
    import narwhals as nw

    h = nw.col(ours["score"])
    good = (h >= 0.0) & (h <= 1.0)
    faults = [nw.when(~nw.coalesce(good, nw.lit(False))).then((0 - score_status(h)).cast(nw.Int64))]
    if missing is None:
        for name in groups:
            null = is_null(column(source, name), source.types[name])
            faults.append(nw.when(null).then(nw.lit(_NO_GROUP)))
    if unknown == "error":
        faults.append(nw.when(nw.col(ours["group"]) < 0).then(nw.lit(_OTHER_GROUP)))
    if id is not None:
        faults.append(nw.when(column(source, id).is_null()).then(nw.lit(NO_ID)))
    return nw.coalesce(*faults, nw.lit(0)).cast(nw.Int64)


def _messages(names: dict[str, str], rule: Rule) -> dict[int, str]:
    wrong = WRONG["score"].items()
    found = {-code: problem_of("score", names["score"], kind) for code, kind in wrong}
    found[_NO_GROUP] = problem_of("group", names["group"], "null")
    other = unknown_groups([], rule.groups).problems[0]
    found[_OTHER_GROUP] = replace(other, got="another group")
    # There is no seed here to fall back on.
    no_id = problem_of("id", names["id"], "null")
    found[NO_ID] = replace(no_id, next_step="give every row an id")
    return {code: str(problem) for code, problem in found.items()}


def _repaired(frame: Any, rule: Rule, known: Sequence[Group], ours: dict[str, str]) -> Expr:
    """The score after the rule: the first outcome whose condition holds, else the score."""
    import narwhals as nw

    h, coin, outcomes = nw.col(ours["checked"]), nw.col(ours["coin"]), []
    exactly = partial(constant, frame)
    for code, group in enumerate(known):
        mine = nw.col(ours["group"]) == code
        for segment in rule.segments(group):
            inside = mine & (h >= exactly(segment.lo))
            inside = inside if segment.hi == 1.0 else inside & (h < exactly(segment.hi))
            for row, bound in zip(segment.rows, segment.bounds, strict=True):
                if segment.needs_coin:
                    chosen = inside & (coin < limit(frame, bound))
                elif bound > 0:
                    chosen = inside
                else:
                    continue
                new = 1.0 - h if row.value is None else exactly(float(row.value))
                outcomes.append(nw.when(chosen).then(new))
    return nw.coalesce(*outcomes, h) if outcomes else h
