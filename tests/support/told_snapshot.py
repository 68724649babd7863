"""A snapshot of documents as a controller's app of multicast tells them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controller.snapshot.reader import Snapshot


def told(documents: Mapping[str, Mapping[str, Any]]) -> Snapshot:
    """Return a snapshot of `documents`, section by section and id."""
    snapshot = Snapshot()
    for name, section in documents.items():
        for id_, fields in section.items():
            snapshot.section(name).put("multicast", id_, fields, 1)
    return snapshot


def policy_section(text: str) -> dict[str, Any]:
    """Return the section of a policy file that was read without a fault."""
    return {"policy": {"path": "policy.yaml", "text": text, "loaded_s": 60, "errors": []}}
