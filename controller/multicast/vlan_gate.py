"""The gate of a VLAN: whose an address is there, and who may receive."""

from __future__ import annotations

from collections.abc import Callable

from controller.admission.admission import Admission
from controller.admission.host import Decision
from controller.kernel.domains import SUFFIXES, address_of, in_domain
from controller.membership.core import MembershipCore
from controller.membership.events import HostRef
from controller.membership.settings import MembershipLimits, MembershipSettings
from controller.multicast.gate import Gate
from controller.multicast.router_gate import RouterGate
from controller.snapshot.log import ChangeLog


class VlanGate:
    """Asks the gate of all domains about the groups and addresses of one VLAN."""

    def __init__(self, gate: Gate, vlan_id: int) -> None:
        self._gate = gate
        self._vlan_id = vlan_id

    @property
    def admission(self) -> Admission:
        """What decides by the policy."""
        return self._gate.admission

    def would_admit(self, host: HostRef, group: bytes, source: bytes | None) -> bool:
        """Tell what `admit` would say where there is room; this counts as no decision."""
        return self._gate.would_admit(host, in_domain(group, self._vlan_id), source)

    def spoofed(self, host: HostRef) -> Decision:
        """Return why a host with a false address is refused."""
        return self._gate.spoofed(host, self._vlan_id)

    def is_spoofed(self, mac: bytes, ip: bytes, dpid: int, port_no: int) -> bool:
        """Tell whether the MAC address is known to live elsewhere, or the IP address to be another's."""
        return self._gate.is_spoofed(self._name(mac), self._name(ip), dpid, port_no)

    def is_bound(self, mac: bytes, ip: bytes, dpid: int, port_no: int) -> bool:
        """Tell whether the MAC address is known to be at the port and to hold the IP address."""
        return self._gate.is_bound(self._name(mac), self._name(ip), dpid, port_no)

    def known(self, mac: bytes, dpid: int, port_no: int) -> tuple[bytes, ...] | None:
        """Return the IP addresses that the MAC address holds at the port; None where it is not known there."""
        found = self._gate.known(self._name(mac), dpid, port_no)
        return None if found is None else tuple(address_of(name) for name in found)

    def standing(self, ref: HostRef) -> tuple[int, int]:
        """Return the number of the policy that decides, and its rules about a host, one bit each."""
        return self._gate.standing(ref)

    def _name(self, address: bytes) -> bytes:
        return in_domain(address, self._vlan_id)


def membership_of(
    vlan_id: int,
    gate: Gate,
    settings: MembershipSettings,
    limits: MembershipLimits,
    changes: ChangeLog[bytes],
    is_one_fabric: Callable[[int, int], bool],
) -> MembershipCore:
    """Return the membership of a domain, VLAN 0 being the fabric's own; `changes` has groups by name."""
    admit = gate.receivers_in(vlan_id).admit
    if not vlan_id:
        return MembershipCore(settings, limits, admit, changes.touch, gate, RouterGate(gate).judge, is_one_fabric)
    own = VlanGate(gate, vlan_id)
    suffix = SUFFIXES[vlan_id]

    def changed(group: bytes) -> None:
        if changes.bound:
            changes.touch(group + suffix)

    return MembershipCore(settings, limits, admit, changed, own, RouterGate(own).judge, is_one_fabric)
