"""Selectors: which switches, ports, links and hosts are meant, by their labels and what is known of every switch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from controller.config.terms import LABEL_KEY
from controller.snapshot.reader import Document, DocumentCopy
from controller.wire.dpids import parse_dpid

MAX_LENGTH = 1024
"""Characters of a selector."""

MAX_TERMS = 32

_TERM = re.compile(rf"\s*({LABEL_KEY})\s*(!=|==?)\s*([^,=!]*?)\s*\Z")
_KEY = re.compile(rf"\s*({LABEL_KEY})")

Values = Mapping[str, set[Any]]


class SelectorInvalid(ValueError):  # noqa: N818
    """A selector that cannot be read; the text names the position of the fault, from 1."""


class Term(NamedTuple):
    """A condition: `key` has the value, or (`negated`) has not."""

    key: str
    value: str | int
    negated: bool

    def holds(self, values: Values) -> bool:
        """Tell whether the condition holds of something; who lacks the key has no value of it."""
        return (self.value in values.get(self.key, ())) is not self.negated


def parse_selector(text: str) -> tuple[Term, ...]:
    """Return the conditions of ``tier=core,pod=2,rack!=b7``, all of which must hold; SelectorInvalid."""
    if len(text) > MAX_LENGTH:
        raise SelectorInvalid(f"position {MAX_LENGTH + 1}: a selector has at most {MAX_LENGTH} characters")
    terms = list[Term]()
    start = 0
    for part in text.split(","):
        if len(terms) >= MAX_TERMS:
            raise SelectorInvalid(f"position {start + 1}: a selector has at most {MAX_TERMS} conditions")
        terms.append(_term(part, start))
        start += len(part) + 1
    return tuple(terms)


def _term(part: str, start: int) -> Term:
    match = _TERM.match(part)
    if match is None:
        begun = _KEY.match(part)
        at = start + (begun.end() if begun else len(part) - len(part.lstrip())) + 1
        wanted = "= or != and a value" if begun else "a key, such as tier, pod or rack"
        raise SelectorInvalid(f"position {at}: expected {wanted}, as in tier=core,pod=2,rack!=b7")
    key, sign, value = match.groups()
    at = start + match.start(3) + 1
    if not value:
        raise SelectorInvalid(f"position {at}: expected a value of {key}")
    if key != "dpid":
        return Term(key, value, sign == "!=")
    try:
        return Term(key, parse_dpid(value), sign == "!=")
    except ValueError as error:
        raise SelectorInvalid(f"position {at}: {error}") from None


def selected(
    documents: Sequence[Document], terms: Sequence[Term], switches: DocumentCopy, ports: DocumentCopy
) -> list[Document]:
    """Return the documents of switches, ports, links or hosts of which all conditions hold."""
    return [
        document
        for document in documents
        if all(term.holds(values) for values in [values_of(document.fields, switches, ports)] for term in terms)
    ]


def unknown_keys(
    documents: Sequence[Document], terms: Sequence[Term], switches: DocumentCopy, ports: DocumentCopy
) -> list[str]:
    """Return the keys of conditions that no document has."""
    known = {key for document in documents for key in values_of(document.fields, switches, ports)}
    return sorted({term.key for term in terms} - known)


def values_of(fields: Mapping[str, Any], switches: DocumentCopy, ports: DocumentCopy) -> dict[str, set[Any]]:
    """Return what conditions look at: the values by key of a switch, port, link or host.

    A port has the labels of its switch too, unless it has others of the same key; a host those of its port; a link
    those of both ports.
    """
    values: dict[str, set[Any]] = {}
    for dpid, port_no in _places(fields):
        switch = switches.documents.get(str(dpid))
        of_switch: Mapping[str, Any] = fields if "tier" in fields else (switch.fields if switch else {})
        port = ports.documents.get(f"{dpid}:{port_no}") if port_no is not None else None
        of_port: Mapping[str, Any] = port.fields if port else {}
        labels = {**(of_switch.get("labels") or {}), **(of_port.get("labels") or {})}
        for key, value in labels.items():
            values.setdefault(key, set()).add(value)
        values.setdefault("dpid", set()).add(dpid)
        for name in (of_switch.get("name"), of_port.get("name")):
            values.setdefault("name", set()).update([name] if name else [])
        for name in ("tier", "fabric"):
            values.setdefault(name, set()).update([of_switch[name]] if of_switch.get(name) else [])
        if "dpid_a" not in fields:
            values.setdefault("state", set()).update(_states(of_switch if port_no is None else of_port))
    if "dpid_a" in fields:
        values["state"] = {fields.get("state") or "up"}
    return values


def _places(fields: Mapping[str, Any]) -> Iterator[tuple[int, int | None]]:
    if "dpid" in fields:
        yield fields["dpid"], fields.get("port_no")
    for end in "ab":
        if f"dpid_{end}" in fields:
            yield fields[f"dpid_{end}"], fields.get(f"port_{end}")


def _states(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the states of a switch, or the one of a port: what it leads to."""
    if "role" in fields:
        yield str(fields["role"])
        return
    away = fields.get("connected") is False
    yield "disconnected" if away else "up"
    if fields.get("drained"):
        yield "drained"
    if fields.get("in_sync") is False and not away:
        yield "not-in-sync"
