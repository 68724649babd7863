"""Points that keep their names and arguments from release to release, derived from what apps take and ask for.

What they give is made when somebody looks, of records that pass anyway: nothing of them is in the way before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from controller.config.policy import Role
from controller.effects import ActionRefused, ActionTaken, ApplyEdits, Define, Put, Remove
from controller.events import BarrierReplied, EditFailed, PacketReceived, TableChanged
from controller.log import WriteLog
from controller.multicast.effects import Audit
from controller.rules.model import Match
from controller.wire.ethernet import ETHERTYPE_VLAN
from controller.wire.frame import decode
from controller.wire.packets import GroupRecord, RecordType, Report

POINT = "point"

Derive = Callable[[Any, Any], Iterable[Any]]
"""Takes a record and the core that takes it, or asks for it; returns what a point gives of it, in order."""


class DerivedFrom(NamedTuple):
    """What a point is derived from: the ``event`` or ``effect`` of a type.

    `decodes`: that takes longer than most firings, so that it counts as time of the script's.
    """

    what: str
    kind: type
    derive: Derive
    decodes: bool = False


class StaticPoint(NamedTuple):
    """A point by its name; of an app that has one of its sources at least."""

    name: str
    record: type
    sources: tuple[DerivedFrom, ...]


class PacketIn(NamedTuple):
    """A switch handed a packet over; `unmatched`: since no entry took it."""

    dpid: int
    port_no: int
    data: bytes
    unmatched: bool


class ReportSaid(NamedTuple):
    """A host's word about a group, in an IGMP or MLD report; `vlan` is that of its tag, 0 without.

    `kind` is a name of `RecordType`; older protocols' joins are ``MODE_IS_EXCLUDE``, their leaves
    ``CHANGE_TO_INCLUDE``.
    """

    dpid: int
    port_no: int
    vlan: int
    mac: bytes
    host: bytes
    group: bytes
    kind: str
    sources: tuple[bytes, ...]


class Leave(NamedTuple):
    """A host said that it wants a group no more, or some of its sources."""

    dpid: int
    port_no: int
    vlan: int
    mac: bytes
    host: bytes
    group: bytes


class AskerJudged(NamedTuple):
    """A host was admitted to a group (`join`), or refused; `source` is the one asked for, absent for any."""

    dpid: int
    port_no: int
    mac: bytes
    host: bytes | None
    group: bytes | None
    role: str
    source: bytes | None
    rule: str
    reason: str


class TreeChanged(NamedTuple):
    """A group has another tree than before, or none any more; `group` is its address as text."""

    group: str
    gone: bool


class EditSent(NamedTuple):
    """A switch is told to have an entry, a group or a meter, or no longer: `operation` is ``put``, ``remove``, ...

    Of flow entries `table`, `priority` and, where they match one, the address `group`.
    """

    dpid: int
    xid: int
    operation: str
    table: int | None
    priority: int | None
    group: bytes | None


class Confirmed(NamedTuple):
    """A switch has done all that it was sent up to the barrier `xid`."""

    dpid: int
    xid: int


class EditRefused(NamedTuple):
    """A switch refused the message `xid`, with an OpenFlow error."""

    dpid: int
    xid: int
    type: int
    code: int


class SwitchRead(NamedTuple):
    """A switch told all entries that it holds of an app."""

    dpid: int


class JournalEntry(NamedTuple):
    """An entry goes to the log; `gone`: the key has no value any more."""

    key: str
    kind: str
    gone: bool


class ActionEnded(NamedTuple):
    """What an operator asked for was done, or refused for what `field` and `text` say, which are empty otherwise."""

    refused: bool
    field: str
    text: str


def _packet_in(event: PacketReceived, _core: Any) -> tuple[PacketIn]:
    return (PacketIn(event.dpid, event.in_port, event.data, event.unmatched),)


def _said(event: PacketReceived, _core: Any) -> Iterator[ReportSaid]:
    vlan, frame = 0, event.data
    if int.from_bytes(frame[12:14], "big") == ETHERTYPE_VLAN:
        vlan, frame = int.from_bytes(frame[14:16], "big") & 0xFFF, frame[:12] + frame[16:]
    packet = decode(frame)
    if isinstance(packet, Report):
        for record in packet.records:
            at = event.dpid, event.in_port, vlan, packet.eth_src, packet.source
            yield ReportSaid(*at, record.group, record.type.name, record.sources)


def _left(event: PacketReceived, core: Any) -> Iterator[Leave]:
    for said in _said(event, core):
        if _is_leave(GroupRecord(RecordType[said.kind], said.group, said.sources)):
            yield Leave(said.dpid, said.port_no, said.vlan, said.mac, said.host, said.group)


def _is_leave(record: GroupRecord) -> bool:
    """Tell whether less is wanted: nothing any more, or some sources no longer."""
    return record.type is RecordType.BLOCK_OLD_SOURCES or (
        record.type is RecordType.CHANGE_TO_INCLUDE and not record.sources
    )


def _verdict(audit: Audit) -> AskerJudged:
    host, decision = audit.host, audit.decision
    asked = audit.group, audit.role.value, audit.source
    return AskerJudged(host.dpid, host.port_no, host.mac, host.ip, *asked, decision.rule, decision.reason)


def _joined(audit: Audit, _core: Any) -> tuple[AskerJudged, ...]:
    return (_verdict(audit),) if audit.decision.admit and audit.role is Role.RECEIVER else ()


def _refused(audit: Audit, _core: Any) -> tuple[AskerJudged, ...]:
    return () if audit.decision.admit else (_verdict(audit),)


def _trees(write: WriteLog, _core: Any) -> Iterator[TreeChanged]:
    for entry in write.entries:
        about, _, group = entry.key.partition("/")
        if about == "tree":
            yield TreeChanged(group, entry.text is None)


def _edits(effect: ApplyEdits, _core: Any) -> Iterator[EditSent]:
    for number, edit in enumerate(effect.edits):
        at, operation = (effect.dpid, effect.first_xid + number), type(edit).__name__.lower()
        if isinstance(edit, Put | Remove):
            key = edit.rule.key if isinstance(edit, Put) else edit.key
            yield EditSent(*at, operation, key.table, key.priority, _group_of(key.match))
        else:
            yield EditSent(*at, "change" if isinstance(edit, Define) and edit.exists else operation, None, None, None)


def _group_of(match: Match) -> bytes | None:
    address, bits = match.ip_dst, match.ip_dst_prefix
    if address is None or (bits is not None and bits != 8 * len(address)):
        return None
    return address if address[0] == 0xFF or (len(address) == 4 and 224 <= address[0] < 240) else None


def _journal(write: WriteLog, _core: Any) -> Iterator[JournalEntry]:
    for entry in write.entries:
        yield JournalEntry(entry.key, entry.kind.value, entry.text is None)


def _read(event: TableChanged, _core: Any) -> tuple[SwitchRead, ...]:
    return (SwitchRead(event.dpid),) if event.was_read else ()


def _points() -> Iterator[StaticPoint]:
    packet, audit, log = ("event", PacketReceived), ("effect", Audit), ("effect", WriteLog)
    yield StaticPoint("packet-in", PacketIn, (DerivedFrom(*packet, _packet_in),))
    yield StaticPoint("report", ReportSaid, (DerivedFrom(*packet, _said, decodes=True),))
    yield StaticPoint("leave", Leave, (DerivedFrom(*packet, _left, decodes=True),))
    yield StaticPoint("join", AskerJudged, (DerivedFrom(*audit, _joined),))
    yield StaticPoint("refused", AskerJudged, (DerivedFrom(*audit, _refused),))
    yield StaticPoint("tree-changed", TreeChanged, (DerivedFrom(*log, _trees),))
    yield StaticPoint("journal", JournalEntry, (DerivedFrom(*log, _journal),))
    yield StaticPoint("edit", EditSent, (DerivedFrom("effect", ApplyEdits, _edits),))
    done = DerivedFrom("event", BarrierReplied, lambda event, _core: (Confirmed(event.dpid, event.xid),))
    yield StaticPoint("confirmed", Confirmed, (done,))
    failed = DerivedFrom("event", EditFailed, lambda event, _core: (EditRefused(*event),))
    yield StaticPoint("edit-refused", EditRefused, (failed,))
    yield StaticPoint("switch-read", SwitchRead, (DerivedFrom("event", TableChanged, _read),))
    taken = DerivedFrom("effect", ActionTaken, lambda _effect, _core: (ActionEnded(False, "", ""),))
    refused = DerivedFrom(
        "effect", ActionRefused, lambda effect, _core: (ActionEnded(True, effect.field, effect.text),)
    )
    yield StaticPoint("action", ActionEnded, (taken, refused))


STATIC_POINTS: Mapping[str, StaticPoint] = MappingProxyType({point.name: point for point in _points()})
"""By name."""

OF_MULTICAST = frozenset({"report", "leave", "join", "refused", "tree-changed"})
"""Those that are of multicast alone, where others have their sources too."""
