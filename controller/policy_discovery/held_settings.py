"""Discovered policies as a file of templates: the settings that databases of switches are to be held to.

Properties that no database has, such as labels, and columns that templates do not know are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from controller.config.terms import LABEL_KEY, MAX_PORT_NO
from controller.policy_discovery.change_table import BASELINE, ChangeTable
from controller.policy_discovery.database_columns import (
    BRIDGE,
    CONFIGURED_COLUMNS,
    INTERFACE,
    PORT_TABLE,
    ColumnShape,
    ConfiguredColumn,
)
from controller.policy_discovery.varieties import DiscoveredPolicy
from controller.wire.dpids import MAX_DPID, format_dpid

_SECTIONS: Mapping[str, str] = {table.lower(): table for table in (BRIDGE, PORT_TABLE, INTERFACE)}
"""The tables that templates are about, by their sections."""

_UNHELD = {(INTERFACE, "type")}
"""Columns that make a row another one where they change."""

_RESOURCE = re.compile(r"([0-9]{1,20})(:[0-9]{1,10})?\Z")
_SELECTOR = re.compile(rf"({LABEL_KEY})=([^,=!\x00-\x20\"\\]+)\Z")
_AS_SELECTED = {"role": "state"}
"""What is called otherwise in selectors."""


class HeldSettings(NamedTuple):
    """Values, by property, that resources are held to."""

    resources: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]


def held_settings(table: ChangeTable, policy: DiscoveredPolicy) -> list[HeldSettings]:
    """Return what the resources of a policy are held to, those together that are held to the same.

    A resource is not held to a value of its variety where it has another one of another policy, and so does not
    deviate.
    """
    other = {deviation.row: set(deviation.other) for deviation in policy.deviations}
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for variety in policy.varieties:
        for row in variety.rows:
            settings = tuple(
                (table.properties[column], table.values[value])
                for column, value in zip(policy.block.columns, variety.values, strict=True)
                if value != BASELINE
                and (table.final[row, column] in (BASELINE, value) or column in other.get(row, ()))
                and _column_of(table.properties[column]) is not None
            )
            if settings and _resource(table.resources[row]):
                groups.setdefault(settings, []).append(table.resources[row])
    return [HeldSettings(tuple(names), settings) for settings, names in groups.items()]


def templates_text(
    table: ChangeTable,
    policies: Sequence[DiscoveredPolicy],
    documents: Sequence[Mapping[str, Any]],
    names: Sequence[str],
) -> str:
    """Return a file of templates that hold resources to policies, '' where no setting of these stands in a database.

    `documents` are the policies as `documents.policies_document` has them. Each policy has a template under its name,
    and further ones with a number where its resources are held to different values.
    """
    lines: list[str] = []
    for policy, document, name in zip(policies, documents, names, strict=True):
        held = held_settings(table, policy)
        for number, group in enumerate(held, 1):
            lines += _template(document, group, name if number == 1 else f"{name}-{number}")
    return "".join(f"{line}\n" for line in ("version: 1", "templates:", *lines)) if lines else ""


def _template(document: Mapping[str, Any], group: HeldSettings, name: str) -> Iterator[str]:
    deviating = {each["resource"] for each in document["deviations"]} & set(group.resources)
    left_out = [one for one in document["properties"] if _column_of(one) is None]
    if left_out:
        yield f"  # without {_comment(', '.join(left_out))}, which no template can have"
    yield f"  {name}:"
    yield f'    about: "discovered: {len(group.resources)} resources, {len(deviating)} of which deviate"'
    selector = _selector(document) if set(group.resources) == set(document["resources"]) else ""
    if selector:
        yield f"    select: {_quoted(selector)}"
    else:
        yield f"    resources: [{', '.join(map(_resource, group.resources))}]"
    for section in _SECTIONS:
        own = [(held, value) for held, value in group.settings if held.startswith(f"{section}.")]
        if own:
            yield f"    {section}:"
            for held, value in own:
                yield f"      {_quoted(held.removeprefix(f'{section}.'))}: {_value(held, value)}"


def _selector(document: Mapping[str, Any]) -> str:
    for told in document["told_by"]:
        match = _SELECTOR.match(told)
        if match is not None:
            return f"{_AS_SELECTED.get(match[1], match[1])}={match[2]}"
    return ""


def _resource(name: str) -> str:
    """Return a switch or a port as templates have it, '' for anything else."""
    if _RESOURCE.match(name) is None:
        return ""
    dpid, colon, port_no = name.partition(":")
    fits = 1 <= int(dpid) <= MAX_DPID and (not colon or 1 <= int(port_no) <= MAX_PORT_NO)
    return f'"{format_dpid(int(dpid))}{colon}{port_no}"' if fits else ""


def _column_of(name: str) -> ConfiguredColumn | None:
    """Return the column that a property is of; None where no template can have it."""
    section, _, rest = name.partition(".")
    column, colon, key = rest.partition(":")
    table = _SECTIONS.get(section)
    found = CONFIGURED_COLUMNS[table].get(column) if table is not None else None
    if found is None or (table, column) in _UNHELD:
        return None
    return found if (found.shape is ColumnShape.MAP) is bool(colon and key) else None


def _value(name: str, text: str) -> str:
    """Return a value as YAML reads it; one that the column cannot have is a text, which a check finds fault with."""
    column = _column_of(name)
    if column is not None and (not column.is_text or column.shape is ColumnShape.SET):
        with suppress(ValueError):
            found = json.loads(text)
            if isinstance(found, bool | int):
                return json.dumps(found)
            if isinstance(found, list):
                return (
                    f"[{', '.join(_quoted(each) if isinstance(each, str) else json.dumps(each) for each in found)}]"
                )
    return _quoted(text)


def _quoted(text: str) -> str:
    """Return a text as YAML reads it in quotes."""
    return re.sub(r"[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]", _escaped, json.dumps(text, ensure_ascii=False))


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _comment(text: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in text)
