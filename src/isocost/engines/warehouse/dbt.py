"""A query as a macro for dbt, whose argument is the relation to read."""

from __future__ import annotations

import re
from collections.abc import Callable

from isocost.checks import short
from isocost.engines.warehouse.dialects import dialect_named
from isocost.errors import Problem, UsageError


def dbt_macro(name: str, dialect: str, query: Callable[[str], str]) -> str:
    """The text of a macro that dbt expands to a query.

    Parameters
    ----------
    name : str
        The macro's name; ``{{ name(ref('scores')) }}`` is then the query.
    dialect : str
        That of the query.
    query : callable
        Gives the query for the name of a table.

    Examples
    --------
    >>> print(dbt_macro("people", "duckdb", lambda table: f'SELECT 1 FROM "{table}" AS t'))
    {% macro people(relation) -%}
    SELECT 1 FROM {{ relation }} AS t
    {%- endmacro %}
    <BLANKLINE>
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        step = "for example --dbt isocost_repair"
        rule = "must be a name of letters, digits and underscores for the macro"
        raise UsageError(Problem("--dbt", rule, short(name), step))
    table, quoted = _unused(dialect, query)
    pieces = [_literal(piece) for piece in query(table).rstrip("\n").split(quoted)]
    body = "{{ relation }}".join(pieces)
    return f"{{% macro {name}(relation) -%}}\n{body}\n{{%- endmacro %}}\n"


def _unused(dialect: str, query: Callable[[str], str]) -> tuple[str, str]:
    """The name of a table that occurs nowhere else in the query, also as it is quoted."""
    # With a space no dialect writes it without quotes.
    table, other = "isocost relation", query("isocost other")
    while dialect_named(dialect).table_of([table]) in other:
        table += " "
    return table, dialect_named(dialect).table_of([table])


def _literal(text: str) -> str:
    """A text in which Jinja finds nothing to expand.

    Examples
    --------
    >>> _literal("a group '{{ x }}'")
    "a group '{{ '{' }}{ x }}'"
    """
    return re.sub(r"\{(?=[{%#])", "{{ '{' }}", text)
