"""Bounds on what one port makes the controller look at, and what one port is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from controller.kernel.deadlines import Deadlines
from controller.kernel.ports import End
from controller.kernel.token_bucket import TokenBucket
from controller.kernel.vlan_ports import VlanPorts
from controller.rules.model import FlowEntry
from controller.unicast.base_rules import policer_rules
from controller.unicast.settings import UnicastSettings
from topology.live import LiveFabric

Counted: TypeAlias = Callable[[str, End, str], None]


class PacketInPolicer:
    """Token buckets per port; entries that `put` sends to its switch keep what is beyond them from the controller."""

    def __init__(
        self,
        fabric: LiveFabric,
        settings: UnicastSettings,
        vlan_ports: VlanPorts,
        counted: Counted,
        put: Callable[[int, FlowEntry], None],
    ) -> None:
        self._fabric = fabric
        self._vlan_ports = vlan_ports
        self._settings = settings
        self._counted = counted
        self._put = put
        self._misses: dict[End, TokenBucket] = {}
        self._questions: dict[End, TokenBucket] = {}
        self._guarded: Deadlines[End] = Deadlines()
        self.next_deadline: Callable[[], float | None] = self._guarded.next

    def allow_packet(self, end: End, now: float) -> bool:
        """Tell whether a port may have this packet looked at; keep its packets away for a while once it may not."""
        version = self._fabric.ofp_version(end[0])
        if version is None:
            return False
        settings = self._settings
        bucket = self._misses.get(end)
        if bucket is None:
            bucket = self._misses[end] = TokenBucket(settings.miss_burst_count, settings.miss_rate_per_s, now)
        if bucket.take(now):
            return True
        if end not in self._guarded:
            self._guarded.set(end, now + settings.guard_s)
            text = f"receives too many packets to unknown hosts: its switch drops them for {settings.guard_s:g} s"
            self._counted("port-guarded", end, text)
            vlans = self._vlan_ports.of(*end) if self._vlan_ports.is_used else None
            for rule in policer_rules(version, end[1], settings.guard_s, vlans):
                self._put(end[0], rule)
        return False

    def allow_question(self, end: End, now: float) -> bool:
        """Tell whether the host at a port may be asked once more."""
        bucket = self._questions.get(end)
        if bucket is None:
            settings = self._settings
            bucket = TokenBucket(settings.question_burst_count, settings.question_rate_per_s, now)
            self._questions[end] = bucket
        if bucket.take(now):
            return True
        self._counted("question-limit", end, "too many ARP or ND questions to the hosts at this port")
        return False

    def on_deadline(self, now: float) -> None:
        """Forget drops whose time is over."""
        for _end in self._guarded.due(now):
            pass

    def switch_down(self, dpid: int) -> None:
        """Forget the bounds on the ports of a switch that is gone."""
        for buckets in (self._misses, self._questions):
            for end in [end for end in buckets if end[0] == dpid]:
                del buckets[end]
