"""A world whose policy has groups of a source VLAN for receivers of others; copies that cross links are counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from controller.config.policy import Policy
from controller.config.registrations import Registration, Registrations
from controller.config.terms import parse_prefix
from controller.config.vlans import PortVlans
from controller.kernel.domains import in_domain
from controller.multicast.events import PolicyLoaded
from controller.wire.addresses import parse_ip
from controller.wire.encode import encode
from controller.wire.packets import GroupRecord, RecordType, Report

from .conftest import OPEN
from .vlan_world import VlanWorld, vlans_of

SOURCE, HOME, SHOP = 100, 20, 30
GROUP, GROUP_V6 = parse_ip("239.5.1.1"), parse_ip("ff1e:5::1")
OTHER = parse_ip("239.6.1.1")
NAME = in_domain(GROUP, SOURCE)
LINE = Registration(
    SOURCE, (parse_prefix("239.5.0.0/16"), parse_prefix("ff1e:5::/32")), frozenset({0, HOME, SHOP}), line=7
)
REGISTERED = replace(OPEN, registrations=Registrations((LINE,)))


def access(vlan_id: int) -> PortVlans:
    return PortVlans(vlan_id, frozenset())


PORTS = {
    "h1": access(SOURCE),
    "h2": access(SOURCE),
    "h3": access(HOME),
    "h5": PortVlans(None, frozenset((HOME, SHOP))),
    "h7": PortVlans(SOURCE, frozenset((HOME,))),
    "h9": access(HOME),
    "h10": PortVlans(None, frozenset((SOURCE, HOME))),
    "h13": access(HOME),
    "h16": access(SHOP),
}
"""The ports of a fat tree's hosts that are in VLANs; the others are in the fabric's own domain."""


class RegisteredWorld(VlanWorld):
    """Counts the copies that cross each link, either way."""

    def __init__(self, policy: Policy = REGISTERED, version: int = 4) -> None:
        super().__init__(PORTS, version=version, policy=policy)
        self.crossed: Counter[tuple[int, int]] = Counter()
        forward = self.fabric.forward

        def counted(copy, fields, size_bytes=0):
            hop = forward(copy, fields, size_bytes)
            self.crossed.update((onward.dpid, onward.in_port) for onward in hop.onward)
            return hop

        self.fabric.forward = counted

    def use(self, policy: Policy) -> None:
        """Load a policy, with the VLANs of the ports as they are."""
        self.feed(PolicyLoaded(replace(policy, vlans=vlans_of(self.port_vlans))))
        self.settle()

    def moved(self, port_vlans: dict[tuple[int, int], PortVlans]) -> None:
        """Put ports into other VLANs, as the policy says and as discovery tells the switches."""
        self.port_vlans = port_vlans
        self.use(self.policy)
        for switch in self.switches.values():
            self.lay_vlans(switch)
        self.settle()

    def asks_v6(self, name, vlan_id=None):
        host = self.hosts[name]
        record = GroupRecord(RecordType.CHANGE_TO_EXCLUDE, GROUP_V6, ())
        self.speak(name, encode(Report(6, 2, host.mac, host.v6, (record,))), vlan_id)

    def asks_for(self, name, source, vlan_id=None):
        host = self.hosts[name]
        record = GroupRecord(RecordType.ALLOW_NEW_SOURCES, GROUP, (source,))
        self.speak(name, encode(Report(4, 3, host.mac, host.v4, (record,))), vlan_id)


def join_all(world):
    for name in ("h3", "h9", "h16", "h4", "h2", "h7"):
        world.joins(name, GROUP)
    for name, vlan_id in (("h5", HOME), ("h5", SHOP), ("h7", HOME), ("h10", HOME), ("h10", SOURCE)):
        world.joins(name, GROUP, vlan_id)
    world.settle()


EVERYBODY = {
    ("h3", ()): 1,
    ("h9", ()): 1,
    ("h16", ()): 1,
    ("h4", ()): 1,
    ("h2", ()): 1,
    ("h7", ()): 1,
    ("h7", (HOME,)): 1,
    ("h5", (HOME,)): 1,
    ("h5", (SHOP,)): 1,
    ("h10", (HOME,)): 1,
    ("h10", (SOURCE,)): 1,
}
