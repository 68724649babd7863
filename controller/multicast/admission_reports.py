"""What operators hear of decisions: all in the audit log, and refusals, unless there are too many, as events."""

from __future__ import annotations

from collections import Counter

from controller.effects import Notice
from controller.kernel.notices import NoticeLimiter
from controller.multicast.callbacks import PolicyInForce
from controller.multicast.effects import Audit
from controller.multicast.outbox import Outbox
from controller.multicast.registered import RegisteredGroups
from controller.overcommit.slots import SlotView
from controller.snapshot.events import EventRing, Severity
from controller.wire.addresses import format_ip, format_mac

REFUSALS_PER_S, REFUSALS_BURST = 20.0, 200.0
"""AdmissionReports that become events; the others are only counted."""

ROOM_INTERVAL_S = 10.0
"""How often it is told that groups are refused for want of room, and looked for those that are not remembered."""


class AdmissionReports:
    """Has decisions audited, and tells of who is refused."""

    def __init__(
        self,
        counters: Counter[str],
        policy: PolicyInForce,
        registered: RegisteredGroups,
        events: EventRing,
        outbox: Outbox,
    ) -> None:
        self._counters = counters
        self._policy = policy
        self._registered = registered
        self._events = events
        self._outbox = outbox
        self._left, self._left_s = REFUSALS_BURST, outbox.now
        self._room_told_s = outbox.now - ROOM_INTERVAL_S
        self._slots_told = NoticeLimiter(ROOM_INTERVAL_S)

    def audited(self, audit: Audit) -> None:
        """Take a decision."""
        self._outbox.effects.append(audit)
        if not audit[0][0]:
            self._refused(audit, self._outbox.now)

    def group_refused(self, _group: bytes) -> None:
        """Count it; one notice stands for all refused in an interval."""
        self._counters["groups-bound"] += 1
        if self._outbox.now >= self._room_told_s + ROOM_INTERVAL_S:
            self._room_told_s = self._outbox.now
            bound = self._policy().limits.groups
            text = f"{bound} groups have a tree, the limit: members and senders of other groups are refused."
            self._outbox.perform([Notice("groups-bound", text, (("bound", bound),))])

    def slot_refused(self, slots: SlotView, store: int) -> None:
        """Count a join for which the store has no slot; one notice stands for all of a tenant in an interval."""
        self._counters["swap-slots-refused"] += 1
        tenant, kept, taken = slots
        if self._slots_told.passes(tenant, self._outbox.now):
            whose = f"hosts of tenant {tenant}, {kept} of which are kept for it," if tenant else "hosts of no tenant"
            text = (
                f"The store has no slot left of {store} (`overcommit.store`) for {whose} that join further groups: "
                f"they are refused. {taken} groups of theirs have one."
            )
            fields = (("tenant", tenant), ("kept", kept), ("taken", taken), ("store", store))
            self._outbox.perform([Notice("swap-slots-used-up", text, fields)])

    def _refused(self, audit: Audit, now: float) -> None:
        """Make an event of a refusal, if there are not too many."""
        self._left = min(REFUSALS_BURST, self._left + (now - self._left_s) * REFUSALS_PER_S)
        self._left_s = now
        if self._left < 1:
            self._counters["refusal-events-suppressed"] += 1
            return
        self._left -= 1
        decision, host, group, role, source = audit
        address = format_ip(group)
        text = (
            f"{format_mac(host.mac)} at port {host.dpid}:{host.port_no} is refused as a {role} of {address}"
            + self._comes_from(group)
            + (f" from {format_ip(source)}" if source is not None else "")
            + f" by {decision.rule}: {decision.reason}."
        )
        kind = f"{role}-refused"
        self._events.add(
            now, kind, text, severity=Severity.WARNING, dpid=host.dpid, port_no=host.port_no, group=address
        )

    def _comes_from(self, group: bytes | None) -> str:
        """Say from which VLAN receivers get a group, where that is another than the one they are in."""
        found = None if group is None else self._registered.registration(group)
        return "" if found is None else f" (which comes from VLAN {found.source_vlan})"
