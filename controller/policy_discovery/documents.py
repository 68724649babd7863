"""Discovered policies as a document that JSON can write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from controller.policy_discovery.change_table import BASELINE, ChangeTable
from controller.policy_discovery.varieties import DiscoveredPolicy


def policies_document(
    table: ChangeTable, policies: Sequence[DiscoveredPolicy], labels: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    """Return the policies of a table: names in place of rows and columns, and what was left out of it.

    `labels` says what is known of resources; `told_by` has each label that the policy's resources have, and no other
    resource of the table.
    """
    labelled: dict[tuple[str, str], set[int]] = {}
    for row, name in enumerate(table.resources):
        for key, text in labels.get(name, {}).items():
            labelled.setdefault((key, text), set()).add(row)

    def value(code: int) -> str | None:
        return None if code == BASELINE else table.values[code]

    def names(rows: Sequence[int]) -> list[str]:
        return [table.resources[row] for row in rows]

    def unset(row: int, columns: Sequence[int]) -> list[str]:
        return [table.properties[column] for column in columns if not table.indicator[row, column]]

    told = []
    for policy in policies:
        columns = policy.block.columns
        properties = [table.properties[column] for column in columns]
        within = set(policy.block.rows)
        told.append(
            {
                "properties": properties,
                "types": sorted({table.kinds[row] for row in policy.block.rows}),
                "resources": names(policy.block.rows),
                "told_by": [f"{key}={text}" for (key, text), at in sorted(labelled.items()) if at == within],
                "varieties": [
                    {
                        "values": dict(zip(properties, (value(code) for code in one.values), strict=True)),
                        "resources": names(one.rows),
                    }
                    for one in policy.varieties
                ],
                "deviations": [
                    {
                        "resource": table.resources[one.row],
                        "missing": [table.properties[column] for column in one.missing],
                        "other": {
                            table.properties[column]: value(int(table.final[one.row, column])) for column in one.other
                        },
                    }
                    for one in policy.deviations
                ],
                "near": [
                    {
                        "resource": table.resources[row],
                        "missing": [
                            table.properties[column] for column in columns if not table.indicator[row, column]
                        ],
                    }
                    for row in policy.near
                ],
                "bits_saved": round(policy.block.bits, 1),
            }
        )
    return {"policies": told, "left_out": table.left_out, "counted": table.counted}
