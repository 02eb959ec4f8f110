"""Reading a rule from JSON that nobody vouches for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isocost.checks import LONGEST_SALT, is_writable, parse_json, short
from isocost.coin import SCHEME
from isocost.costs import Cost
from isocost.errors import IsocostError, RuleError
from isocost.groups import from_json
from isocost.promises import read_promise
from isocost.rows import Row, bad_rule

__all__ = ["FORMAT", "VERSION", "check_parts", "read_fields"]

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
        content = parse_json(text)
    except ValueError as error:
        raise bad_rule("rule file", "must be JSON text as isocost writes it", str(error)) from error
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
        got += [f"an unknown {short(name)}" for name in sorted(extra)[:5]]
        raise bad_rule(
            "rule file", "must have the fields of the format and no other", ", ".join(got)
        )
    for name, kind in _FIELDS.items():
        if not isinstance(content[name], kind) or isinstance(content[name], bool):
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


def check_parts(rule: Any) -> None:
    """Check the parts of a rule other than its groups and rows."""
    salt, notes = rule.salt, rule.notes
    if not isinstance(salt, str) or len(salt) > LONGEST_SALT or not is_writable(salt):
        must = f"must be a text of at most {LONGEST_SALT} characters"
        raise bad_rule("rule salt", must, short(salt))
    if not isinstance(notes, tuple) or not all(isinstance(note, str) for note in notes):
        raise bad_rule("rule notes", "must be texts", short(notes))
    if not isinstance(rule.method, str):
        raise bad_rule("rule method", "must be a text", short(rule.method))
    if not isinstance(rule.cost, Cost | None):
        raise bad_rule("rule cost", "must be a Cost or None", short(rule.cost))
    for name in ("settings", "made_from"):
        if not isinstance(getattr(rule, name), Mapping):
            raise bad_rule(f"rule {name}", "must be a mapping", short(getattr(rule, name)))
