"""Which documents of a table are meant: by switch, port, group and words, in which order, how many."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from apps.cli.called import SnapshotNames, is_spelled_out
from apps.cli.common import InputError
from apps.cli.reach import add_source
from apps.cli.show_tables import TABLES, Table
from apps.cli.times import add_zone, clock_of
from apps.dashboard.lists import GRAVITIES, at_least, is_field, matching, ordered
from apps.tenants.hosts import policy_in
from controller.snapshot.reader import Document, Snapshot
from controller.snapshot.selectors import SelectorInvalid, Term, parse_selector, selected, unknown_keys
from controller.wire.addresses import format_ip, is_multicast_ip, parse_name

Place = tuple[int, int | None]

_MEMBER = re.compile(r"([0-9]+):([0-9]+)\Z")


def read_group(text: str, field: str) -> str:
    """Return a group's address, or ``239.1.1.1@20`` in a VLAN, as documents have it; InputError, naming `field`."""
    try:
        group = parse_name(text)
    except ValueError:
        raise InputError(f"{field}: {text!r} is no IP address, nor one in a VLAN such as 239.1.1.1@20") from None
    if not is_multicast_ip(group):
        raise InputError(f"{field}: {text} is not within the multicast addresses 224.0.0.0/4 or ff00::/8")
    return format_ip(group)


def add_selection(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Declare what is to be shown, which documents of it, and where the controller is."""
    width = max(map(len, TABLES))
    lines = "\n".join(f"  {name:<{width}}  {table.about}" for name, table in TABLES.items())
    parser.epilog = "\n\n".join(part for part in (parser.epilog, f"WHAT is one of:\n\n{lines}") if part)
    parser.add_argument(
        "what",
        choices=tuple(TABLES),
        nargs="?" if default else None,
        default=default,
        metavar="WHAT",
        help="what is to be shown; the list tells what there is" + (f" (default: {default})" if default else ""),
    )
    parser.add_argument("address", nargs="?", metavar="ADDRESS", help="the group, with `group`")
    parser.add_argument("--switch", metavar="SWITCH", help="only what is at this switch, or crosses it")
    parser.add_argument("--port", metavar="SWITCH:PORT", help="only what is at this port")
    parser.add_argument("--group", metavar="ADDRESS", help="only what is of this group")
    parser.add_argument("--tenant", metavar="NAME", help="only what is of this tenant of the policy")
    parser.add_argument(
        "--severity", choices=GRAVITIES, help="only what is at least this grave, of alarms and events"
    )
    parser.add_argument(
        "--select",
        metavar="CONDITIONS",
        help="only switches, ports, links or hosts that fit tier=core,pod=2,rack!=b7: by labels of the policy file, "
        "and by tier, dpid, name, state",
    )
    parser.add_argument("--search", default="", metavar="WORDS", help="only what has all these words in its values")
    parser.add_argument("--sort", metavar="FIELD", help="in the order of a field of the documents that --json prints")
    parser.add_argument("--reverse", action="store_true", help="sort downwards")
    parser.add_argument(
        "--limit", type=int, metavar="N", help="at most so many; of events, cleared alarms and allocations the newest"
    )
    add_zone(parser)
    add_source(parser)


class DocumentSelection:
    """The documents that arguments choose; InputError where these make no sense."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.what: str = args.what
        self.table: Table = TABLES[args.what]
        for name in ("switch", "port", "group", "tenant", "severity", "select"):
            if getattr(args, name) is not None and name not in self.table.by:
                raise InputError(f"--{name}: not with {self.what}")
        if (self.what == "group") != (args.address is not None):
            raise InputError("ADDRESS: missing" if self.what == "group" else f"ADDRESS: not with {self.what}")
        if args.limit is not None and args.limit < 1:
            raise InputError(f"--limit: {args.limit} is not at least 1")
        sought = (args.address, "ADDRESS") if args.address is not None else (args.group, "--group")
        self._group = read_group(*sought) if sought[0] is not None else None
        self._at = (args.switch, args.port)
        if all(text is None or is_spelled_out(text) for text in self._at):
            self._places(SnapshotNames(Snapshot()))
        self._tenant: str | None = args.tenant
        self._severity: str | None = args.severity
        self.clock = clock_of(args)
        self._terms = _terms(args.select)
        self._selector: str = args.select
        self._search: str = args.search
        if args.reverse and args.sort is None:
            raise InputError("--reverse: only with --sort")
        self._sort: str | None = f"-{args.sort}" if args.reverse else args.sort
        self.limit: int | None = args.limit

    def items(self, snapshot: Snapshot) -> Sequence[Document]:
        """Return the documents chosen, no more than the limit; InputError as of `all_items`."""
        found = self.all_items(snapshot)
        if self.limit is None:
            return found
        newest_last = self.table.newest_last and self._sort is None
        return found[-self.limit :] if newest_last else found[: self.limit]

    def all_items(self, snapshot: Snapshot) -> Sequence[Document]:
        """Return the documents chosen, however many; InputError where such documents have no field to sort by."""
        whole = self.table.items(snapshot)
        found = self._fitting(whole, snapshot)
        if self._sort is None:
            return found
        self._check_field(self._sort.removeprefix("-"), whole)
        return ordered(found, self._sort)

    def chooses(self, document: Document, snapshot: Snapshot) -> bool:
        """Tell whether a document of the table is chosen; where there is no limit, others are not looked at."""
        if self.limit is not None or self._sort is not None:
            return any(document.id == each.id for each in self.items(snapshot))
        return bool(self._fitting([document], snapshot))

    def _fitting(self, found: Sequence[Document], snapshot: Snapshot) -> Sequence[Document]:
        """Return the documents of some that all conditions hold of."""
        if self._group is not None:
            found = [document for document in found if self._group in _groups(document.fields)]
        if self._tenant is not None:
            self._check_tenant(self._tenant, snapshot)
            found = [document for document in found if document.fields.get("tenant") == self._tenant]
        dpid, port = self._places(SnapshotNames(snapshot))
        if dpid is not None:
            found = [document for document in found if any(at[0] == dpid for at in places(document.fields))]
        if port is not None:
            found = [document for document in found if port in places(document.fields)]
        found = at_least(found, self._severity)
        if self._terms:
            found = selected(found, self._terms, snapshot.section("switches"), snapshot.section("ports"))
        return matching(found, self._search)

    def _check_tenant(self, name: str, snapshot: Snapshot) -> None:
        tenants = [tenant.name for tenant in policy_in(snapshot).tenants]
        if name not in tenants:
            there_are = f"there are {', '.join(tenants)}" if tenants else "it has none"
            raise InputError(f"--tenant: the policy has no tenant {name!r}; {there_are}")

    def _check_field(self, name: str, whole: Sequence[Document]) -> None:
        from apps.dashboard.model_parts import Identified
        from apps.dashboard.models import DOCUMENTS

        model = DOCUMENTS.get(self.what, Identified)
        if not is_field(name, model, whole):
            known = {field for document in whole for field in document.fields} or model.model_fields
            raise InputError(f"--sort: no document has the field {name!r}; there are {', '.join(sorted(known))}")

    def note(self, snapshot: Snapshot) -> str | None:
        """Return what is to be said where the selector chooses nothing, None where it does or there is none."""
        whole = self.table.items(snapshot)
        beside = snapshot.section("switches"), snapshot.section("ports")
        if not self._terms or selected(whole, self._terms, *beside):
            return None
        unknown = unknown_keys(whole, self._terms, *beside)
        why = f": none has a label {' or '.join(map(repr, unknown))}" if unknown else ""
        return f"of {len(whole)} {self.what} none fits {self._selector}{why}"

    def _places(self, called: SnapshotNames) -> tuple[int | None, tuple[int, int] | None]:
        """Return the switch and the port that documents are chosen by; InputError where there are none such."""
        switch, port = self._at
        return (
            called.switch(switch, "--switch") if switch is not None else None,
            called.port(port, "--port") if port is not None else None,
        )


def _groups(fields: Mapping[str, Any]) -> Iterator[object]:
    """Yield the groups that a document is of, or that it lists."""
    yield fields.get("group")
    for name in ("receives", "sends"):
        yield from (each["group"] for each in fields.get(name) or ())


def _terms(selector: str | None) -> tuple[Term, ...]:
    if selector is None:
        return ()
    try:
        return parse_selector(selector)
    except SelectorInvalid as error:
        raise InputError(f"--select: {error}") from None


def places(fields: Mapping[str, Any]) -> Iterator[Place]:
    """Yield the ports and switches that a document tells of."""
    if isinstance(dpid := fields.get("dpid"), int):
        yield dpid, fields.get("port_no")
    for end in "ab":
        if f"dpid_{end}" in fields:
            yield fields[f"dpid_{end}"], fields.get(f"port_{end}")
    if isinstance(member := fields.get("member"), str) and (match := _MEMBER.match(member)):
        yield int(match[1]), int(match[2])
    for link in fields.get("links") or ():
        yield from ((dpid, None) for dpid in link[:2])
    for name in ("members", "refused", "senders", "static_members", "queriers"):
        for entry in fields.get(name) or ():
            yield from places(entry)
