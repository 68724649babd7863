"""Which ports that lead to hosts are in which VLANs, tagged or not, switch by switch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import count
from typing import NamedTuple, TypeAlias

from controller.config.vlans import PortVlans, Vlans
from controller.effects import SendPacket
from controller.kernel.oifs import port_of_oif, vlan_of_oif
from controller.rules.model import FlowKey
from controller.rules.pipeline import PRIORITY_PORT_CLOSED
from controller.wire.ethernet import with_tag
from topology.graph import NodeKind
from topology.live import LiveFabric


class VlanOifs(NamedTuple):
    """The ports of a switch that have a VLAN, in ascending order: with the tag, and without; and all of them.

    `number` is theirs alone, for tables in which much is looked up by them.
    """

    tagged: tuple[int, ...]
    untagged: tuple[int, ...]
    both: frozenset[int]
    number: int


_numbers = count()


@lru_cache(maxsize=16384)
def vlan_oifs(tagged: tuple[int, ...], untagged: tuple[int, ...]) -> VlanOifs:
    """Return the ports that have a VLAN; VLANs that have the same ports share it."""
    return VlanOifs(tagged, untagged, frozenset((*tagged, *untagged)), next(_numbers))


NO_OIFS = vlan_oifs((), ())

TAGS_KEPT = 65536
"""Tags of ports of which it is kept that they are let in."""

_TIER = NodeKind.TOR.value
"""The tier of every switch whose ports lead to hosts."""

Ingress: TypeAlias = tuple[int, int | None]
"""A port, and the tag, None for none, that frames of a VLAN have there: how they enter a switch."""


def ingresses(oifs: VlanOifs, vlan_id: int) -> list[Ingress]:
    """Return how frames of a VLAN enter the switch with these ports, in ascending order."""
    by_tag: list[Ingress] = [(port_no, vlan_id) for port_no in oifs.tagged]
    by_port: list[Ingress] = [(port_no, None) for port_no in oifs.untagged]
    return sorted(by_tag + by_port)


class VlanPorts:
    """What the policy says of the ports to hosts of a fabric, kept by switch until its ports or the policy change.

    `is_used` tells whether any port is in a VLAN, `passes_double_tagged` whether frames with a second tag behind that
    of a VLAN go to others of it. `let_in` has the VLAN of tags that were let in at ports that lead to hosts, by port
    and by the tag's four bytes. `known` has what `at` has returned since the ports of a switch or the policy changed,
    by switch.
    """

    def __init__(self, vlans: Vlans, fabric: LiveFabric) -> None:
        self.is_used = vlans.is_used
        self.passes_double_tagged = vlans.is_used and vlans.passes_double_tagged
        self._vlans = vlans
        self._fabric = fabric
        self.known: dict[int, dict[int, VlanOifs]] = {}
        self.let_in: dict[tuple[int, int, bytes], int] = {}
        self._let_in_at: dict[int, list[tuple[int, int, bytes]]] = {}
        self._tags: dict[bytes, bytes] = {}

    def all_vlans(self) -> list[int]:
        """Return the VLANs that the policy names anywhere, in ascending order; none where no port is in one."""
        return sorted(self._vlans.all_vlans()) if self.is_used else []

    def of(self, dpid: int, port_no: int) -> PortVlans:
        """Return what the policy says of a port, if it leads to hosts."""
        return self._vlans.of(dpid, port_no, _TIER)

    def is_let_in(self, dpid: int, port_no: int, tag: bytes, vlan_id: int) -> None:
        """Keep that a port to hosts lets frames with a tag (4 bytes) into a VLAN, until it changes or the policy."""
        if len(self.let_in) >= TAGS_KEPT:
            self._let_none_in()
        key = (dpid, port_no, self._tags.setdefault(tag, tag))
        self.let_in[key] = vlan_id
        self._let_in_at.setdefault(dpid, []).append(key)

    def _let_none_in(self) -> None:
        self.let_in.clear()
        self._let_in_at.clear()
        self._tags.clear()

    def at(self, dpid: int) -> dict[int, VlanOifs]:
        """Return the ports of a switch by VLAN id, those in the fabric's own domain under 0."""
        found = self.known.get(dpid)
        if found is None:
            found = self.known[dpid] = self._look(dpid) if self.is_used else {}
        return found

    def oifs(self, dpid: int, vlan_id: int) -> VlanOifs:
        """Return the ports of a switch that have a VLAN."""
        try:
            return self.known[dpid].get(vlan_id, NO_OIFS)
        except KeyError:
            return self.at(dpid).get(vlan_id, NO_OIFS)

    def untagged_oifs(self, dpid: int, vlan_id: int, oifs: Iterable[int]) -> tuple[int, ...]:
        """Return which OIFs of a group of a VLAN have its frames without a tag: ports of that VLAN, used or not.

        `oifs` are those that the group has at a switch, of which those in other VLANs are looked at, and those that
        lead to hosts no more: the leg of a link aggregation group that has just gone down, until it is replaced.
        """
        _, own, both, _ = self.oifs(dpid, vlan_id)
        if both.issuperset(oifs):
            return own
        others = [oif for oif in oifs if oif not in both]
        return (*own, *(o for o in others if not self.is_tagged(dpid, port_of_oif(o), vlan_of_oif(o, vlan_id))))

    def domain_of_sender(self, dpid: int, key: FlowKey) -> int:
        """Return the domain of the group that the entry of a sender is for, as the policy has it now.

        In OpenFlow 1.0 entries for frames without a tag do not name the VLAN of their port.
        """
        vlan_id, port_no = key.match.vlan_id, key.match.in_port
        if vlan_id is None and port_no is not None and key.priority > PRIORITY_PORT_CLOSED:
            vlan_id = self.of(dpid, port_no).untagged
        return vlan_id or 0

    def is_tagged(self, dpid: int, port_no: int, vlan_id: int) -> bool:
        """Tell whether frames of a domain have a tag at a port."""
        return bool(vlan_id) and self.of(dpid, port_no).untagged != vlan_id

    def has(self, dpid: int, port_no: int, vlan_id: int) -> bool:
        """Tell whether a port that leads to hosts is in a domain."""
        return vlan_id in self.of(dpid, port_no).vlans() if self.is_used else not vlan_id

    def framed(self, dpid: int, port_no: int, frame: bytes, vlan_id: int) -> bytes | None:
        """Return a frame of a domain as a port has it, with the tag or without; None where it is not in it."""
        if not self.has(dpid, port_no, vlan_id):
            return None
        return with_tag(frame, vlan_id) if self.is_tagged(dpid, port_no, vlan_id) else frame

    def all_of(self, dpid: int, vlan_id: int) -> list[int]:
        """Return the ports to hosts of a switch that are in a domain."""
        if not self.is_used:
            return [] if vlan_id else list(self._fabric.edge_ports(dpid))
        oifs = self.oifs(dpid, vlan_id)
        return sorted((*oifs.tagged, *oifs.untagged))

    def sent(self, dpid: int, ports: Sequence[int], frame: bytes, vlan_id: int) -> list[SendPacket]:
        """Return what sends a frame without tag out of ports of a domain, with its tag where it has one there."""
        tagged = tuple(port_no for port_no in ports if self.is_tagged(dpid, port_no, vlan_id))
        others = tuple(port_no for port_no in ports if port_no not in tagged)
        packets = [SendPacket(dpid, others, frame)] if others else []
        return [*packets, SendPacket(dpid, tagged, with_tag(frame, vlan_id))] if tagged else packets

    def ports_changed(self, dpid: int) -> None:
        """Take note that other ports of a switch lead to hosts now."""
        self.known.pop(dpid, None)
        self.switch_gone(dpid)

    def switch_gone(self, dpid: int) -> None:
        """Keep no longer what is let in at a switch, which is not connected or has other ports to hosts."""
        for key in self._let_in_at.pop(dpid, ()):
            del self.let_in[key]

    def policy_loaded(self, vlans: Vlans) -> bool:
        """Go by another policy from now on; False where that says the same of VLANs."""
        if vlans == self._vlans:
            return False
        self._vlans, self.is_used = vlans, vlans.is_used
        self.passes_double_tagged = vlans.is_used and vlans.passes_double_tagged
        self.known.clear()
        self._let_none_in()
        return True

    def _look(self, dpid: int) -> dict[int, VlanOifs]:
        tagged: dict[int, list[int]] = {}
        untagged: dict[int, list[int]] = {}
        for port_no in sorted(self._fabric.edge_ports(dpid)):
            port = self.of(dpid, port_no)
            for vlan_id in port.tagged:
                tagged.setdefault(vlan_id, []).append(port_no)
            if port.untagged is not None:
                untagged.setdefault(port.untagged, []).append(port_no)
        return {
            vlan_id: vlan_oifs(tuple(tagged.get(vlan_id, ())), tuple(untagged.get(vlan_id, ())))
            for vlan_id in sorted(tagged.keys() | untagged.keys())
        }
