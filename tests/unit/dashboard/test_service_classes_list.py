"""Who sends in which service class, counted from the documents of groups."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from apps.dashboard.lists import classes
from controller.snapshot.reader import Document


def sender(service_class: str | None, dscp: int | None, rate_bps: int = 10, admitted: bool = True) -> dict[str, Any]:
    return {"service_class": service_class, "dscp": dscp, "rate_bps": rate_bps, "admitted": admitted}


def listed(*groups: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    documents = [Document(f"239.1.1.{number}", {"senders": senders}) for number, senders in enumerate(groups)]
    found = classes(SimpleNamespace(in_order=lambda: documents))  # type: ignore[arg-type]
    names = ("service_class", "dscp", "groups", "senders", "rate_bps")
    return [tuple(document.fields[name] for name in names) for document in found]


def test_senders_of_all_groups_are_counted_by_class_and_those_of_none_come_last() -> None:
    one = [sender("market", None, 5), sender("market", 46), sender(None, 0, 1), sender("archive", 8)]
    other = [sender("market", 46, 100), sender("market", 46, 900, admitted=False), sender("archive", 8)]
    assert listed(one, other) == [("archive", 8, 2, 2, 20), ("market", 46, 2, 3, 115), (None, 0, 1, 1, 1)]


def test_where_nothing_is_marked_there_are_none() -> None:
    assert listed([sender(None, None)], []) == []
