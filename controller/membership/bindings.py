"""Whose an address is: what the membership core asks about the hosts that report, and who they are by that."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Protocol

from controller.membership.events import HostRef
from controller.membership.tables import HostMembership, MemberHost

_new = tuple.__new__  # what a named tuple's own constructor does, for a third of its time


class Bindings(Protocol):
    """What is known of MAC addresses, IP addresses and ports apart from what reports say."""

    def is_spoofed(self, mac: bytes, ip: bytes, dpid: int, port_no: int) -> bool:
        """Tell whether the MAC address is known to live elsewhere, or the IP address to be another's."""

    def is_bound(self, mac: bytes, ip: bytes, dpid: int, port_no: int) -> bool:
        """Tell whether the MAC address is known to be at the port and to hold the IP address."""

    def known(self, mac: bytes, dpid: int, port_no: int) -> tuple[bytes, ...] | None:
        """Return the IP addresses that the MAC address holds at the port; None where it is not known there."""

    def standing(self, ref: HostRef) -> Hashable:
        """Return a value that is equal for references that admission cannot tell apart."""


class NoBindings:
    """Nothing is known: every report is believed."""

    def is_spoofed(self, _mac: bytes, _ip: bytes, _dpid: int, _port_no: int) -> bool:
        """Return False."""
        return False

    def is_bound(self, _mac: bytes, _ip: bytes, _dpid: int, _port_no: int) -> bool:
        """Return True."""
        return True

    def known(self, _mac: bytes, _dpid: int, _port_no: int) -> tuple[bytes, ...] | None:
        """Return None."""
        return None

    def standing(self, ref: HostRef) -> Hashable:
        """Return the reference itself."""
        return ref


class Identities:
    """Who the hosts with memberships are: their own references, and the false ones that they were found to use."""

    def __init__(self, bindings: Bindings) -> None:
        self._bindings = bindings
        self._users: dict[bytes, dict[MemberHost, None]] = {}

    def is_spoofed(self, mac: bytes, ip: bytes, dpid: int, port_no: int) -> bool:
        """Tell whether a host that has no memberships yet reports with a false address."""
        return self._bindings.is_spoofed(mac, ip, dpid, port_no)

    def new_host(self, ref: HostRef) -> MemberHost:
        """Return a host that was not there before; a false address tells nothing of it."""
        mac, ip, dpid, port_no, told, _ = ref
        known = self._bindings.known(mac, dpid, port_no)
        own: HostRef = _new(HostRef, (mac, ip, dpid, port_no, told if known is None else known, False))
        if not ref.spoofed:
            return MemberHost(own, self._bindings.standing(own))
        own = own._replace(ip=bytes(len(ref.ip)))
        return MemberHost(own, self._bindings.standing(own), ref)

    def enter(self, host: MemberHost) -> None:
        """Note the addresses of a host that has memberships from now on."""
        for address in _addresses(host):
            self._users.setdefault(address, {})[host] = None

    def leave(self, host: MemberHost) -> None:
        """Forget the addresses of a host that has no memberships any more."""
        for address in _addresses(host):
            hosts = self._users[address]
            del hosts[host]
            if not hosts:
                del self._users[address]

    def using(self, addresses: Iterable[bytes]) -> list[MemberHost]:
        """Return the hosts that report with one of the MAC or IP addresses, each once."""
        return list(dict.fromkeys(host for address in addresses for host in self._users.get(address, ())))

    def accuse(self, host: MemberHost, false_ref: HostRef) -> None:
        """Note the false address that a host uses now."""
        self._refer(host, host.ref, false_ref)

    def readdress(self, host: MemberHost, ip: bytes) -> tuple[bool, list[HostMembership]]:
        """Take in that a host reports with another IP address than its own of before.

        Returns whether that is a false one, and the memberships to judge anew. An unspecified address is nobody's and
        does not replace a known one.
        """
        if not any(ip):
            return False, []
        ref, false_ref = host.ref, host.false_ref
        claimed_before = false_ref is not None and false_ref.ip == ip
        binding = (ref.mac, ip, ref.dpid, ref.port_no)
        if self._bindings.is_spoofed(*binding) or (claimed_before and not self._bindings.is_bound(*binding)):
            if not claimed_before:
                self.accuse(host, HostRef(*binding, (), True))
            return True, []
        return False, self._identify(host, ref._replace(ip=ip), false_ref)

    def look_again(self, host: MemberHost) -> list[HostMembership]:
        """Bring a host up to date with whose its addresses are now; returns the memberships to judge anew."""
        bindings, ref, false_ref = self._bindings, host.ref, host.false_ref
        turned: list[HostMembership] = []
        if false_ref is not None and bindings.is_bound(*false_ref[:4]) and not bindings.is_spoofed(*false_ref[:4]):
            turned = [state for state in host.states.values() if state.is_false]
            ref, false_ref = ref._replace(ip=false_ref.ip), None
        elif any(ref.ip) and bindings.is_spoofed(*ref[:4]):
            turned = [state for state in host.states.values() if not state.is_false]
            ref, false_ref = ref._replace(ip=bytes(len(ref.ip))), HostRef(*ref[:4], (), True)
        for state in turned:
            state.is_false = not state.is_false
        known = bindings.known(ref.mac, ref.dpid, ref.port_no)
        unlike = self._identify(host, ref if known is None else ref._replace(known=known), false_ref)
        return list(dict.fromkeys([*turned, *unlike]))

    def admission_changed(self, host: MemberHost) -> None:
        """Ask anew what admission makes of a host."""
        host.standing = self._bindings.standing(host.ref)

    def _identify(self, host: MemberHost, ref: HostRef, false_ref: HostRef | None) -> list[HostMembership]:
        """Have a host go by other references; returns its own memberships where admission sees a difference."""
        self._refer(host, ref, false_ref)
        standing = self._bindings.standing(ref)
        if standing == host.standing:
            return []
        host.standing = standing
        return [state for state in host.states.values() if not state.is_false]

    def _refer(self, host: MemberHost, ref: HostRef, false_ref: HostRef | None) -> None:
        if host.states:
            self.leave(host)
        host.ref, host.false_ref = ref, false_ref
        if host.states:
            self.enter(host)


def _addresses(host: MemberHost) -> set[bytes]:
    addresses = {host.ref.mac}
    if any(host.ref.ip):
        addresses.add(host.ref.ip)
    if host.false_ref is not None:
        addresses.add(host.false_ref.ip)
    return addresses
