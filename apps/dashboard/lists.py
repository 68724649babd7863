"""What a list answers: its documents searched, sorted and cut to a page; and the lists made of others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from controller.snapshot.events import Severity
from controller.snapshot.reader import Document, DocumentCopy, with_hexadecimal

Key = tuple[int, Any]

GRAVITIES = tuple(severity.value for severity in Severity)
"""Severities, the least grave first."""


def matching(documents: Sequence[Document], search: str) -> Sequence[Document]:
    """Return the documents that hold every word of `search` somewhere in their values."""
    words = search.lower().split()
    return [found for found in documents if all(word in found.text for word in words)] if words else documents


def at_least(documents: Sequence[Document], severity: str | None) -> Sequence[Document]:
    """Return the documents that are at least so grave, all where None is given."""
    least = -1 if severity is None else GRAVITIES.index(severity)
    return [found for found in documents if gravity(found.fields.get("severity")) >= least]


def is_field(name: str, model: Any, whole: Sequence[Document]) -> bool:
    """Tell whether documents of a list have a field, by their form or as an app has added it to one of `whole`."""
    return name in model.model_fields or any(name in document.fields for document in whole)


def ordered(documents: Sequence[Document], sort: str) -> Sequence[Document]:
    """Return the documents by a field, downwards where a ``-`` stands before it; those without it come last."""
    name, down = sort.removeprefix("-"), sort.startswith("-")
    known = [document for document in documents if document.fields.get(name) is not None]
    unknown = [document for document in documents if document.fields.get(name) is None]
    known.sort(key=lambda document: _key(document.fields[name]), reverse=down)
    return known + unknown


def _key(value: Any) -> Key:
    """Order numbers before texts before lists (by length) before the rest."""
    match value:
        case bool() | int() | float():
            return 0, value
        case str():
            return 1, value
        case list() | dict():
            return 2, len(value)
    return 3, 0


def newest_first(section: DocumentCopy) -> list[Document]:
    """Return documents by their time, the newest first."""
    return sorted(section.in_order(), key=lambda document: document.fields.get("time_s") or 0, reverse=True)


def cleared_last(section: DocumentCopy) -> list[Document]:
    """Return cleared alarms, the one that was cleared last first: their ids are numbers in that order."""
    return section.in_order()[::-1]


def gravest_first(section: DocumentCopy) -> list[Document]:
    """Return alarms by their severity, the gravest first, of equally grave ones the oldest."""

    def key(document: Document) -> tuple[int, float]:
        return -gravity(document.fields.get("severity")), document.fields.get("since_s") or 0

    return sorted(section.in_order(), key=key)


def gravity(severity: object) -> int:
    """Return how grave a severity is, the higher the graver; -1 for what is none."""
    return GRAVITIES.index(severity) if severity in GRAVITIES else -1


def fabrics(switches: DocumentCopy) -> list[Document]:
    """Return the fabrics by name: how many switches each has, and how many of these are connected and in sync."""
    counts: dict[str, Counter[str]] = {}
    for switch in switches.in_order():
        name = switch.fields.get("fabric")
        if name is not None:
            is_so = {"connected": switch.fields.get("connected"), "in_sync": switch.fields.get("in_sync")}
            counts.setdefault(name, Counter()).update(["switches", *(key for key, value in is_so.items() if value)])
    names = ("switches", "connected", "in_sync")
    return [
        Document(name, {"id": name, "fabric": name, **{key: found[key] for key in names}})
        for name, found in sorted(counts.items())
    ]


def classes(groups: DocumentCopy) -> list[Document]:
    """Return the service classes of those who send, by name, last who is in none; nothing where none is marked.

    A sender that is behind a trusted port counts without a code point, as one of a class that has others.
    """
    found: dict[str, dict[str, Any]] = {}
    for group in groups.in_order():
        here = set()
        for sender in senders(group):
            name, dscp = sender.get("service_class"), sender.get("dscp")
            if name is None and dscp is None:
                continue
            row = found.setdefault(name or "", {"dscp": None, "groups": 0, "senders": 0, "rate_bps": 0})
            row["dscp"] = dscp if row["dscp"] is None else row["dscp"]
            row["groups"] += name not in here
            row["senders"] += 1
            row["rate_bps"] += sender.get("rate_bps") or 0
            here.add(name)
    names = sorted(found, key=lambda name: (not name, name))
    return [
        Document(name or "-", {"id": name or "-", "service_class": name or None, **found[name]}) for name in names
    ]


def with_aliases(groups: DocumentCopy) -> list[Document]:
    """Return the groups that have aliases."""
    return [group for group in groups.in_order() if group.fields.get("aliases")]


def classes_with_queues(groups: DocumentCopy, states: DocumentCopy) -> list[Document]:
    """Return the service classes of those who send, with what is known of their queues, and those that have one."""
    sent = {document.id: document.fields for document in classes(groups)}
    known = {document.id: document.fields for document in states.in_order()}
    names = sorted({**sent, **known}, key=lambda name: (name == "-", name))
    return [
        Document(name, {"id": name, **known.get(name, {}), **sent.get(name, {"service_class": name})})
        for name in names
    ]


def of_groups(rows: Callable[[Document], Iterator[dict[str, Any]]]) -> Callable[[DocumentCopy], list[Document]]:
    """Return what makes a list out of rows of each group."""

    def make(groups: DocumentCopy) -> list[Document]:
        return [
            Document(id_, with_hexadecimal({"id": id_, "group": group.id, **row}))
            for group in groups.in_order()
            for row in rows(group)
            for id_ in [f"{group.id}/{row['role']}/{row['dpid']}:{row['port_no']}/{row.get('mac') or '-'}"]
        ]

    return make


def members(group: Document) -> Iterator[dict[str, Any]]:
    """Yield the admitted members of a group, then its static ones."""
    for member in group.fields.get("members") or ():
        yield {"role": "receiver", "static": False, **member}
    for port in group.fields.get("static_members") or ():
        yield {"role": "receiver", "static": True, "mac": None, "ip": None, **port}


def senders(group: Document) -> Iterator[dict[str, Any]]:
    """Yield the admitted senders of a group."""
    for sender in group.fields.get("senders") or ():
        if sender.get("admitted"):
            yield {"role": "sender", **sender}


def refusals(group: Document) -> Iterator[dict[str, Any]]:
    """Yield the refused members and senders of a group."""
    for member in group.fields.get("refused") or ():
        yield {"role": "receiver", **member}
    for sender in group.fields.get("senders") or ():
        if not sender.get("admitted"):
            yield {"role": "sender", **sender}
