"""What the log says of groups against what is: would a restart know where they are wanted and sent from?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from controller.multicast.findings import Finding, finding
from controller.multicast.journal import MulticastJournal, group_of
from controller.multicast.pending_writes import PendingWrites
from controller.snapshot.names import Names
from controller.wire.addresses import format_ip

Value = Mapping[str, Any]


class JournalCheck:
    """A comparison that begins when this is made, before the log is read.

    Groups that wait to be written then, or change until the comparison has ended, are passed over; so are those of
    the keys `not_committed`.
    """

    def __init__(
        self,
        journal: MulticastJournal,
        pending_writes: PendingWrites,
        names: Names,
        not_committed: Iterable[str] = (),
    ) -> None:
        self._journal = journal
        self._pending_writes = pending_writes
        self._names = names
        self._passed_over = pending_writes.watch()
        self._passed_over |= {group for group in map(group_of, not_committed) if group is not None}

    def search(self, values: Mapping[str, Value], now: float) -> Iterator[Finding | None]:
        """Yield what differs, and None at each step that found nothing; `values` are those of the log by key."""
        written: dict[bytes, list[Value]] = {}
        for key, value in values.items():
            group = group_of(key)
            if group is not None:
                written.setdefault(group, []).append(value)
        known = self._journal.groups()
        try:
            for address in [*known, *(address for address in written if address not in known)]:
                if address in self._passed_over:
                    yield None
                    continue
                kept = _essence(written.get(address, ()))
                present = _essence(self._journal.group_values(address, now))
                unlike = [name for name, what in present.items() if kept[name] != what]
                text = f"The journal says otherwise of {format_ip(address)} than is the case: {', '.join(unlike)}."
                yield finding(self._names, "journal-differs", text, group=address) if unlike else None
        finally:
            self._pending_writes.unwatch()


def _essence(values: Iterable[Value]) -> dict[str, object]:
    """Return what of a group a restart cannot do without: ports with members, senders, and the tree's links."""
    values = list(values)
    return {
        "ports with members": {
            (member["dpid"], member["port_no"]) for value in values for member in value.get("members", ())
        },
        "senders": {
            (
                *(sender[name] for name in ("dpid", "port_no", "mac", "address", "admitted")),
                sender.get("alias", 0),
            )
            for value in values
            for sender in value.get("senders", ())
        },
        "links": {(value.get("number", 0), *link) for value in values for link in value.get("links", ())},
    }
