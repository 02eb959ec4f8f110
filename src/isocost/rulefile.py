"""Reading a rule from JSON that nobody vouches for."""

from __future__ import annotations

import json
import math
from typing import Any

from isocost.coin import SCHEME
from isocost.costs import Cost
from isocost.errors import IsocostError, RuleError
from isocost.groups import from_json, is_writable
from isocost.promises import read_promise
from isocost.rows import Row, bad_rule, short

__all__ = ["FORMAT", "VERSION", "check_texts", "read_fields"]

FORMAT = "isocost-rule"
VERSION = 1

_FIELDS = {
    "format": str,
    "version": int,
    "made_by": str,
    "method": str,
    "cost": dict | None,
    "settings": dict,
    "coin": dict,
    "groups": list,
    "rows": list,
    "notes": list,
    "made_from": dict,
}
_OPTIONAL = {"promise"}
"""Fields that rules of this version may lack: older ones had no promise."""

_ROW_FIELDS = {"group", "lo", "hi", "action", "value", "probability"}


def read_fields(text: str) -> dict[str, Any]:
    """The arguments of a Rule from its JSON text; whatever is wrong is a :class:`RuleError`."""
    try:
        content = json.loads(
            text, parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_unique
        )
    except RuleError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise bad_rule("rule file", "must be JSON text", str(error)) from error
    _check_fields(content)
    try:
        return {
            "groups": tuple(from_json(group) for group in content["groups"]),
            "rows": tuple(_parse_row(row) for row in content["rows"]),
            "method": content["method"],
            "cost": None if content["cost"] is None else Cost.from_dict(content["cost"]),
            "settings": content["settings"],
            "notes": tuple(content["notes"]),
            "made_from": content["made_from"],
            "salt": content["coin"]["salt"],
            "promise": read_promise(content["promise"]) if "promise" in content else None,
        }
    except RuleError:
        raise
    except IsocostError as error:
        raise RuleError(error.problems) from error
    except (TypeError, OverflowError) as error:
        raise bad_rule("rule file", "must hold values of the right kind", str(error)) from error


def _check_fields(content: Any) -> None:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise bad_rule("rule file", f'must say "format": "{FORMAT}"', short(content))
    if content.get("version") != VERSION:
        raise bad_rule(
            "rule version",
            f"must be {VERSION}, the version this isocost reads",
            short(content.get("version")),
            "update isocost, or make the rule again",
        )
    missing = _FIELDS.keys() - content.keys()
    extra = content.keys() - _FIELDS.keys() - _OPTIONAL
    if missing or extra:
        got = [f"no {name!r}" for name in sorted(missing)]
        got += [f"an unknown {name!r}" for name in sorted(extra)]
        raise bad_rule(
            "rule file", "must have the fields of the format and no other", ", ".join(got)
        )
    for name, kind in _FIELDS.items():
        if not isinstance(content[name], kind):
            raise bad_rule(f"rule {name}", "must be of the right kind", short(content[name]))
    coin = content["coin"]
    if coin.keys() != {"scheme", "salt"} or coin["scheme"] != SCHEME:
        raise bad_rule("rule coin", f'must be {{"scheme": "{SCHEME}", "salt": ...}}', short(coin))


def _parse_row(row: Any) -> Row:
    if not isinstance(row, dict) or row.keys() != _ROW_FIELDS:
        raise bad_rule(
            "rule row", f"must have the fields {', '.join(sorted(_ROW_FIELDS))}", short(row)
        )
    return Row(
        from_json(row["group"]),
        row["lo"],
        row["hi"],
        row["action"],
        row["value"],
        row["probability"],
    )


def check_texts(salt: Any, notes: Any) -> None:
    """Check the parts of a rule that are texts."""
    if not isinstance(salt, str) or len(salt) > 1000 or not is_writable(salt):
        raise bad_rule("rule salt", "must be a text of at most 1000 characters", short(salt))
    if not all(isinstance(note, str) for note in notes):
        raise bad_rule("rule notes", "must be texts", short(list(notes)))


def _no_constant(name: str) -> Any:
    raise bad_rule("rule file", "must hold finite numbers only", name)


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_constant(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise bad_rule("rule file", "must not name a field twice", short(twice))
    return content
