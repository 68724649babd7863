"""A world whose ports are in VLANs: hosts speak with tags and without, and copies are told apart by theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from controller.config.policy import Policy
from controller.config.terms import SwitchPort
from controller.config.vlans import UNTAGGED_ONLY, PortVlans, VlanEntry, Vlans
from controller.discovery.vlan_rules import (
    edge_rules,
    link_rules,
    old_base_rules,
    old_edge_rules,
    old_link_rules,
    vlan_base_rules,
)
from controller.effects import Put
from controller.events import PacketReceived
from controller.kernel.domains import in_domain
from controller.wire.encode import encode
from controller.wire.ethernet import with_tag, without_tag
from controller.wire.packets import GroupRecord, RecordType, Report
from controller.wire.udp import encode_udp
from topology.events import HostLearnt
from wire_frames import fields_of

from .conftest import GRAPHS, GROUP, OPEN, World


class VlanWorld(World):
    """A fabric whose ports are in the VLANs of `ports`; discovery has told its switches so."""

    passes_double_tagged = False

    def __init__(
        self,
        ports: Mapping[str, PortVlans],
        graph: str = "fattree",
        version: int = 4,
        policy: Policy = OPEN,
        passes_double_tagged: bool = False,
    ) -> None:
        self.passes_double_tagged = passes_double_tagged
        plain = World(GRAPHS[graph](), start=False)
        self.port_vlans = {plain.hosts[name].place: port for name, port in ports.items()}
        vlans = replace(vlans_of(self.port_vlans), passes_double_tagged=passes_double_tagged)
        super().__init__(GRAPHS[graph](), replace(policy, vlans=vlans), version, start=False)
        for switch in self.switches.values():
            self.lay_vlans(switch)
        self.connect_all()
        self.settle()
        self.notices.clear()

    def lay_vlans(self, switch):
        """Give a switch the entries that discovery gives it."""
        trunks = {port_no for ends in self.links.values() for dpid, port_no in ends if dpid == switch.dpid}
        edges = {host.port_no: UNTAGGED_ONLY for host in self.hosts.values() if host.dpid == switch.dpid}
        edges |= {port_no: port for (dpid, port_no), port in self.port_vlans.items() if dpid == switch.dpid}
        if switch.ofp_version == 4:
            rules = vlan_base_rules(self.passes_double_tagged)
            rules += [rule for port_no in trunks for rule in link_rules(port_no)]
            rules += [rule for port_no, port in edges.items() for rule in edge_rules(port_no, port)]
        else:
            known = vlans_of(self.port_vlans).all_vlans()
            rules = old_base_rules(known) + [rule for port_no in trunks for rule in old_link_rules(port_no)]
            rules += [rule for port_no, port in edges.items() for rule in old_edge_rules(port_no, port, known)]
        for rule in rules:
            assert switch.apply(Put(rule), self.now) is None

    def at(self):
        """Return who is at which port; None at one that is down."""
        return {host.place: host.name for host in self.hosts.values()}

    def learn(self, host):
        vlan_id = self.domain(host.name)
        addresses = tuple(in_domain(address, vlan_id) for address in (host.v4, host.v6))
        self.feed(HostLearnt(in_domain(host.mac, vlan_id), host.dpid, host.port_no, addresses))

    def domain(self, name):
        """Return the domain in which a host speaks unless told otherwise."""
        port = self.port_vlans.get(self.hosts[name].place, PortVlans(0, frozenset()))
        return min(port.tagged) if port.untagged is None else port.untagged

    def speak(self, name, frame, vlan_id=None):
        """Have a host send a frame, in a domain of its port; return who got copies, and with which tags."""
        place = self.hosts[name].place
        vlan_id = self.domain(name) if vlan_id is None else vlan_id
        port = self.port_vlans.get(place, PortVlans(0, frozenset()))
        return self.utter(place, with_tag(frame, vlan_id) if vlan_id and vlan_id != port.untagged else frame)

    def utter(self, place, frame):
        delivery = self.fabric.deliver(*place, fields_of(frame), len(frame))
        at, got = self.at(), Counter()
        for copy, count in delivery.hosts.items():
            if at[copy.dpid, copy.port_no] is not None:
                got[at[copy.dpid, copy.port_no], copy.vlan_ids] += count
        first, (_, inner) = len(self.packet_outs), without_tag(frame) or (0, frame)
        for punt in delivery.punts:
            assert (punt.dpid, punt.in_port) == place, "the controller got a frame from inside the fabric"
            handed = inner
            for tag in reversed(punt.vlan_ids):
                handed = with_tag(handed, tag)
            self.feed(PacketReceived(*place, handed))
        for to, sent in self.packet_outs[first:]:
            tag, untagged = without_tag(sent) or (0, sent)
            if untagged == inner:
                got[at[to], (tag,) if tag else ()] += 1
        return got

    def tell(self, name, kind, group=GROUP, vlan_id=None):
        host = self.hosts[name]
        report = Report(4, 3, host.mac, host.v4, (GroupRecord(kind, group, ()),))
        return self.speak(name, encode(report), vlan_id)

    def joins(self, name, group=GROUP, vlan_id=None):
        self.tell(name, RecordType.CHANGE_TO_EXCLUDE, group, vlan_id)

    def sends(self, name, group=GROUP, vlan_id=None):
        host = self.hosts[name]
        return self.speak(name, encode_udp(host.mac, host.v4, group, b"data"), vlan_id)


def vlans_of(ports):
    return Vlans(entries=tuple(VlanEntry(port, ports=(SwitchPort(*place),)) for place, port in ports.items()))


def started(world, name, group=GROUP, vlan_id=None):
    """Have a host send until its entries are there, and return what the next packet reaches."""
    world.sends(name, group, vlan_id)
    world.settle()
    return world.sends(name, group, vlan_id)
