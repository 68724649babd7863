"""Discovered policies as documents of the change feed: each by a name of its own, and of bounded size."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from controller.policy_discovery.configuration import PORT, SECTIONS, SWITCH, Fields

CANDIDATES_BOUND = 64
"""Candidates that are told, those that save most; how many are beyond is told too."""

LISTED, VARIETIES_LISTED = 32, 16
"""Resources, deviations and varieties that a document has; how many there are it tells."""

VALUE_LENGTH = 200
"""Characters of a value that a document has."""

OF_SWITCH = ("tier", "pod")
"""Fields of a switch by which it is told, besides its labels."""


def identified(policies: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each policy with an id that follows from its types and properties: the same after each search."""
    times: dict[str, int] = {}
    for policy in policies:
        told = json.dumps([sorted(policy["types"]), sorted(policy["properties"])])
        id_ = sha256(told.encode()).hexdigest()[:12]
        times[id_] = times.get(id_, 0) + 1
        yield id_ if times[id_] == 1 else f"{id_}-{times[id_]}", policy


def candidate_document(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is told of a policy, itself as `documents.policies_document` has it."""
    return {
        "properties": policy["properties"][:LISTED],
        "types": policy["types"],
        "resources": policy["resources"][:LISTED],
        "resource_count": len(policy["resources"]),
        "told_by": policy["told_by"][:LISTED],
        "varieties": [
            {"values": _short(variety["values"]), "resource_count": len(variety["resources"])}
            for variety in policy["varieties"][:VARIETIES_LISTED]
        ],
        "variety_count": len(policy["varieties"]),
        "deviations": [
            {"resource": each["resource"], "missing": each["missing"][:LISTED], "other": _short(each["other"])}
            for each in policy["deviations"][:LISTED]
        ],
        "deviation_count": len(policy["deviations"]),
        "near": [{**each, "missing": each["missing"][:LISTED]} for each in policy["near"][:LISTED]],
        "near_count": len(policy["near"]),
        "bits_saved": policy["bits_saved"],
    }


def _short(values: Mapping[str, str | None]) -> dict[str, str | None]:
    some = list(values.items())[:LISTED]
    return {name: None if value is None else value[:VALUE_LENGTH] for name, value in some}


class FabricInventory:
    """Which switches and ports there are, changed or not, and what is known of each; followed by documents."""

    def __init__(self) -> None:
        self._switches: dict[str, Mapping[str, str]] = {}
        self._ports: dict[str, tuple[str, Mapping[str, str]]] = {}

    def put(self, section: str, fields: Fields) -> None:
        """Take a document of a section."""
        own = {key: str(value) for key, value in (fields.get("labels") or {}).items()}
        if section == "switches":
            known = {name: str(fields[name]) for name in OF_SWITCH if fields.get(name) is not None}
            self._switches[fields["id"]] = {**known, **own}
        elif section == "ports":
            role = {"role": str(fields["role"])} if fields.get("role") else {}
            self._ports[fields["id"]] = (str(fields["dpid"]), {**role, **own})

    def remove(self, section: str, id_: str) -> None:
        """Take it that there is a document no more."""
        if section in SECTIONS[:2]:
            (self._switches if section == "switches" else self._ports).pop(id_, None)

    def kinds(self) -> dict[str, str]:
        """Return the type of each resource by its name."""
        return dict.fromkeys(self._switches, SWITCH) | dict.fromkeys(self._ports, PORT)

    def labels(self) -> dict[str, dict[str, str]]:
        """Return what is known of each resource; of a port, what is known of its switch too."""
        found = {name: dict(known) for name, known in self._switches.items()}
        for name, (switch, known) in self._ports.items():
            found[name] = {**self._switches.get(switch, {}), **known}
        return found
