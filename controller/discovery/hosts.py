"""Which hosts are where, under which addresses: learning, ageing, moves and claims to what others hold."""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import inf
from typing import Protocol

from controller.discovery.addresses import MAC_BYTES, is_host_address, is_host_mac, spread, text_of
from controller.discovery.former import FormerPlaces, GivenWay
from controller.discovery.host_states import Challenge, LocatedHost
from controller.discovery.owners import Owners
from controller.discovery.probes import host_probe
from controller.discovery.settings import DiscoverySettings
from controller.discovery.timers import Timer, TimerKind
from controller.effects import SendPacket
from controller.kernel.deadlines import Deadlines
from controller.kernel.domains import address_of, domain_of
from controller.kernel.ports import End
from controller.kernel.token_bucket import TokenBucket
from controller.wire.addresses import format_ip, format_mac
from topology.events import HostGone, HostLearnt
from topology.host_names import SharedNames, shared_name

TURNOVER_BURST, TURNOVER_PER_S = 32, 2.0
"""Addresses of one host that may give way to others of it at once, and on average."""


class Counted(Protocol):
    """Counts something under a stable key, and tells the operator now and then."""

    def __call__(self, kind: str, end: End, does: str, now: float) -> None:
        """Count one."""


class HostTable:
    """The hosts behind edge ports; addresses are names in their domains (`controller.kernel.domains`).

    Parameters
    ----------
    settings : DiscoverySettings
        Its timers and bounds.
    deadlines : Deadlines
        Where the table sets its timers; their owner calls `host_due` and `challenge_due`.
    emit : Callable
        Takes each HostLearnt, HostGone and SendPacket.
    counted : Counted
        Takes each refusal and overflow.
    was_heard : Callable
        Tells whether all would have been heard that hosts at a port said since a time: without that they do not age,
        nor lose what others claim.
    framed : Callable
        Returns a frame as a port has it in a VLAN: with its tag, or without.
    is_one_fabric : Callable
        Tells of two datapath ids whether links join them: a MAC or IP address is one host's in each fabric.
    """

    def __init__(
        self,
        settings: DiscoverySettings,
        deadlines: Deadlines[Timer],
        emit: Callable[[HostLearnt | HostGone | SendPacket], None],
        counted: Counted,
        was_heard: Callable[[End, float], bool],
        framed: Callable[[End, bytes, int], bytes],
        is_one_fabric: Callable[[int, int], bool],
    ) -> None:
        self.settings_changed(settings)
        self._deadlines = deadlines
        self._emit = emit
        self._counted = counted
        self._was_heard = was_heard
        self._framed = framed
        self._former = FormerPlaces(settings.remembered_hosts)
        self._given_way = GivenWay()
        self.hosts: dict[bytes, LocatedHost] = {}
        self._at: dict[End, dict[bytes, LocatedHost]] = {}
        self._owners = Owners(lambda mac: self.hosts[mac].end, is_one_fabric)
        self._names = SharedNames(self._dpid_of, is_one_fabric)
        self.challenges: dict[bytes, Challenge] = {}
        self._claims_at: dict[End, dict[bytes, Challenge]] = {}

    def settings_changed(self, settings: DiscoverySettings) -> None:
        """Go by these settings from now on."""
        self._settings = settings
        self._idle_s = settings.host_timeout_s - settings.host_probe_count * settings.host_probe_interval_s

    def seen(self, mac: bytes, address: bytes | None, end: End, now: float, answer: bool = False) -> None:
        """Take note of a packet from `mac` and `address` at an edge port; `answer` where it answers a question."""
        host = self.hosts.get(mac)
        if host is None or host.end != end:
            mac = self._name(mac, end)
            host = self.hosts.get(mac)
        if host is not None and host.end != end and self._former.returns(mac, mac, end, now):
            self._take_back(mac, end, now)
            host = None
        if host is None:
            self._learn(mac, address, end, now)
        elif host.end == end:
            host.seen_s = now
            if self.challenges:
                self._hold(mac, end, now, answer)
            if address is not None:
                self._bind(host, address, now, answer)
        else:
            self._claim(mac, host, mac, end, now, address)

    def remembered(self, mac: bytes, addresses: Collection[bytes], end: End, now: float) -> None:
        """Take a host back that was at this port before, and ask it at once whether it still is.

        One without addresses cannot be asked: it stays for as long as one that spoke now. What somebody else took
        meanwhile is asked for as well, and is the host's again as soon as it speaks with it here.
        """
        if len(self._at.get(end, ())) >= self._settings.hosts_per_port:
            return
        mac = self._name(mac, end)
        until_s = now + self._settings.host_timeout_s
        moved = mac in self.hosts and self.hosts[mac].end != end
        taken = [address for address in addresses if moved or self._user(address, end) not in (b"", mac)]
        for claimed in [mac, *taken] if moved else taken:
            self._former.note(claimed, mac, end, until_s)
        if mac not in self.hosts:
            self._restore(mac, addresses, end, now)
        for address in taken:
            self._probe(mac, address, end)

    def _restore(self, mac: bytes, addresses: Collection[bytes], end: End, now: float) -> None:
        host = LocatedHost(mac, end, now - self._idle_s if addresses else now)
        for address in addresses:
            if not self._user(address, end) and len(host.addresses) < self._settings.addresses_per_host:
                host.use(address, now - self._idle_s)
        self._add(host)
        self._tell(host)
        self._deadlines.set(Timer(TimerKind.HOST, mac), now + spread(mac))

    def leave(self, end: End, now: float, *, is_down: bool = False) -> None:
        """Forget the hosts of a port that is down or leads to hosts no more; those of one that is down may return."""
        if is_down:
            until_s = now + self._settings.host_timeout_s
            for mac, host in self._at.get(end, {}).items():
                for claimed in (mac, *host.addresses, *self._given_way.of(mac)):
                    self._former.note(claimed, mac, end, until_s)
        for claimed in tuple(self._claims_at.get(end, ())):
            self._drop(self.challenges[claimed])
        for mac in sorted(self._at.get(end, ())):
            self._gone(self.hosts[mac], now)

    def keep_domains(self, end: End, vlan_ids: Collection[int], now: float) -> None:
        """Forget the hosts of a port, and what is claimed there, that are in none of these domains."""
        for claimed in [name for name in self._claims_at.get(end, ()) if domain_of(name) not in vlan_ids]:
            self._drop(self.challenges[claimed])
        for mac in sorted(mac for mac in self._at.get(end, ()) if domain_of(mac) not in vlan_ids):
            self._gone(self.hosts[mac], now)

    def at(self, end: End) -> list[tuple[bytes, tuple[bytes, ...]]]:
        """Return the hosts of a port with their addresses."""
        return [(mac, tuple(sorted(host.addresses))) for mac, host in sorted(self._at.get(end, {}).items())]

    def ask(self, end: End) -> None:
        """Ask the hosts of a port whether they are there, each about the address that it used last."""
        for mac, host in sorted(self._at.get(end, {}).items()):
            if host.addresses:
                self._probe(mac, max(host.addresses, key=lambda held: (host.used_s[held], held)), end)

    def has_some(self, end: End) -> bool:
        """Tell whether hosts are known at a port."""
        return end in self._at

    def tell(self, mac: bytes) -> None:
        """Tell of a host again, where it is by now."""
        self._tell(self.hosts[mac])

    def host_due(self, mac: bytes, now: float) -> None:
        """Ask a host that was quiet for long about its addresses, and forget those it never answered for."""
        settings = self._settings
        host = self.hosts[mac]
        if not self._was_heard(host.end, now - settings.host_probe_count * settings.host_probe_interval_s):
            host.probed_count.clear()
            self._deadlines.set(Timer(TimerKind.HOST, mac), now + settings.host_probe_interval_s)
            return
        silent = []
        due = host.seen_s + settings.host_timeout_s if not host.addresses else inf
        for address, seen_s in host.addresses.items():
            ask_at = seen_s + self._idle_s
            if ask_at > now:
                host.probed_count.pop(address, None)
            elif host.probed_count.get(address, 0) < settings.host_probe_count:
                host.probed_count[address] = host.probed_count.get(address, 0) + 1
                self._probe(mac, address, host.end)
                ask_at = now + settings.host_probe_interval_s
            else:
                silent.append(address)
                continue
            due = min(due, ask_at)
        for address in silent:
            self._unbind(host, address, now)
        if not host.addresses:
            due = host.seen_s + settings.host_timeout_s
            if due <= now or (silent and host.seen_s + self._idle_s <= now):
                self._gone(host, now)
                return
        if silent:
            self._tell(host)
        self._deadlines.set(Timer(TimerKind.HOST, mac), due)

    def challenge_due(self, claimed: bytes, now: float) -> None:
        """Ask the holder of a claimed address again, or give the address to the claimant."""
        challenge = self.challenges[claimed]
        if challenge.refuted:
            self._drop(challenge)
        elif not self._was_heard(challenge.holder_end, challenge.started):
            challenge.started, challenge.probe_count = now, 0
            self._deadlines.set(Timer(TimerKind.CHALLENGE, claimed), now + self._settings.challenge_s)
        elif challenge.probe_count < len(self._settings.challenge_probe_offsets_s):
            self._question(challenge)
        else:
            self._settle(challenge, now)

    def _dpid_of(self, mac: bytes) -> int | None:
        return self.hosts[mac].end[0] if mac in self.hosts else None

    def _name(self, mac: bytes, end: End) -> bytes:
        """Return the name of the host with a MAC address in a port's fabric, or of a new one."""
        return self._names.near(mac, end[0]) or (self._names.free(mac) if mac in self.hosts else mac)

    def _learn(self, mac: bytes, address: bytes | None, end: End, now: float) -> None:
        if not is_host_mac(mac):
            text = f"receives frames from {format_mac(mac)}, which is no host's address"
            self._counted("host-address-invalid", end, text, now)
            return
        if len(self._at.get(end, ())) >= self._settings.hosts_per_port:
            limit = self._settings.hosts_per_port
            self._counted("host-limit", end, f"has {limit} hosts, its limit: {format_mac(mac)} is not learnt", now)
            return
        host = LocatedHost(mac, end, now)
        self._add(host)
        if address is None or not self._bind(host, address, now, False):
            self._tell(host)
        jitter_s = 0.1 * self._idle_s * spread(mac)
        self._deadlines.set(Timer(TimerKind.HOST, mac), now + self._idle_s - jitter_s)

    def _bind(self, host: LocatedHost, address: bytes, now: float, answer: bool) -> bool:
        """Note that `host` uses `address` and tell whether its addresses changed."""
        if address in host.addresses:
            if answer and (address in host.probed_count or address in self.challenges or host.mac in self.challenges):
                host.addresses[address] = now
            else:
                host.use(address, now)
            if self.challenges:
                self._hold(address, host.end, now, answer)
            return False
        if not is_host_address(address):
            return False
        user = self._user(address, host.end)
        if user == host.mac:
            self._hold(address, host.end, now, answer)
        elif user and self._former.returns(address, host.mac, host.end, now):
            self._take_back(address, host.end, now)
        elif user:
            self._claim(address, self.hosts[user], host.mac, host.end, now, None)
            return False
        if len(host.addresses) >= self._settings.addresses_per_host and not self._make_room(host, address, now):
            return False
        self._given_way.forget(address)
        host.use(address, now)
        self._owners.add(address, host.mac)
        self._tell(host)
        return True

    def _user(self, address: bytes, end: End) -> bytes:
        """Return who in a port's fabric holds an address, or held it until it used others; empty for nobody."""
        user = self._owners.owner(address, end) or self._given_way.user(address)
        return user if user and self._owners.is_near(user, end) else b""

    def fabrics_joined(self, now: float) -> None:
        """Leave each address that two hosts of what is one fabric now hold to who had it first.

        The other one is looked into like any that claims another's address, as soon as it uses it again. That of a
        MAC address is no host until then.
        """
        for first, mac in list(self._names.doubled()):
            end, host = self.hosts[first].end, self.hosts[mac]
            own, where = format_mac(shared_name(mac)), f"port {end[0]}:{end[1]}"
            text = f"has a host with the MAC address {own}, which one at {where} has too"
            self._counted("mac-in-both-fabrics", host.end, f"{text}: a link joined their fabrics", now)
            self._gone(host, now)
        for address, first, mac in list(self._owners.doubled()):
            host = self.hosts[mac]
            text = (
                f"has a host, {format_mac(mac)}, that uses {text_of(address)}, as {format_mac(first)} did before it"
            )
            self._counted("address-in-both-fabrics", host.end, f"{text}: a link joined their fabrics", now)
            host.drop(address)
            self._owners.remove(address, mac)
            self._tell(host)

    def _make_room(self, host: LocatedHost, address: bytes, now: float) -> bool:
        """Let the address that a host has not used for longest give way, unless it changes them too fast.

        The host is asked for it all the same before another gets it. What others claim stays while there is a choice,
        and so do those of the other family: new IPv6 addresses do not cost a host its IPv4 address.
        """
        if host.turnover is None:
            host.turnover = TokenBucket(TURNOVER_BURST, TURNOVER_PER_S, now)
        allowed = self._settings.addresses_per_host
        name = f"has a host, {format_mac(host.mac)}, with more than {allowed} addresses"
        if not host.turnover.take(now):
            self._counted("address-turnover", host.end, f"{name}, which change too fast to be followed", now)
            self._counted("address-limit", host.end, f"{name}: {format_ip(address)} is not learnt", now)
            return False
        while len(host.addresses) >= allowed:
            oldest = min(
                host.addresses,
                key=lambda held: (held in self.challenges, len(held) != len(address), host.used_s[held], held),
            )
            text = f"{name}: {format_ip(oldest)}, unused longest, gives way to {format_ip(address)}"
            self._counted("address-limit", host.end, text, now)
            host.drop(oldest)
            self._owners.remove(oldest, host.mac)
            for forgotten in self._given_way.note(oldest, host.mac, allowed):
                self._end_challenges(forgotten, host.mac, now)
        return True

    def _unbind(self, host: LocatedHost, address: bytes, now: float) -> None:
        host.drop(address)
        self._owners.remove(address, host.mac)
        self._end_challenges(address, host.mac, now)

    def _take_back(self, claimed: bytes, end: End, now: float) -> None:
        """Take a MAC or IP address from who got it while its former holder, back at a port, could not be asked."""
        challenge = self.challenges.get(claimed)
        if challenge is not None:
            self._drop(challenge)
        owner = claimed if claimed in self.hosts else self._owners.owner(claimed, end)
        if not owner:
            return
        holder = self.hosts[owner]
        text = f"loses {text_of(claimed)}, which {format_mac(holder.mac)} took while its holder was away: it is back"
        self._counted("address-reclaimed", holder.end, text, now)
        if claimed == holder.mac:
            self._gone(holder, now)
            return
        holder.drop(claimed)
        self._owners.remove(claimed, owner)
        self._tell(holder)

    def _claim(
        self, claimed: bytes, holder: LocatedHost, claimant: bytes, end: End, now: float, address: bytes | None
    ) -> None:
        challenge = self.challenges.get(claimed)
        if challenge is None:
            at_port = self._claims_at.setdefault(end, {})
            settings = self._settings
            if len(at_port) >= settings.challenges_per_port or len(self.challenges) >= settings.challenges:
                if not at_port:
                    del self._claims_at[end]
                text = "has too many hosts with others' addresses: a further claim is ignored"
                self._counted("challenge-limit", end, text, now)
                return
            challenge = Challenge(claimed, holder.mac, holder.end, claimant, end, now)
            self.challenges[claimed] = at_port[claimed] = challenge
            self._question(challenge)
        elif challenge.refuted:
            self._counted(
                "spoof-blocked",
                end,
                f"has a host that uses {text_of(claimed)}, which belongs to {format_mac(holder.mac)}: it is refused",
                now,
            )
            return
        if (
            address is not None
            and challenge.end == end
            and len(challenge.addresses) < self._settings.addresses_per_host
            and is_host_address(address)
        ):
            challenge.addresses[address] = None

    def _question(self, challenge: Challenge) -> None:
        """Ask the holder about what is claimed (about one address where it is the MAC address)."""
        offsets_s = self._settings.challenge_probe_offsets_s
        challenge.probe_count += 1
        address: bytes | None = challenge.claimed
        if challenge.claimed == challenge.holder:
            addresses = self.hosts[challenge.holder].addresses
            address = max(addresses, key=lambda address: (addresses[address], address), default=None)
        if address is not None:
            self._probe(challenge.holder, address, challenge.holder_end)
        last = challenge.probe_count >= len(offsets_s)
        wait_s = self._settings.challenge_s if last else offsets_s[challenge.probe_count]
        self._deadlines.set(Timer(TimerKind.CHALLENGE, challenge.claimed), challenge.started + wait_s)

    def _hold(self, claimed: bytes, end: End, now: float, answer: bool) -> None:
        """Refute the claim to an address whose holder has shown up."""
        challenge = self.challenges.get(claimed)
        if challenge is None or challenge.refuted or challenge.holder_end != end:
            return
        if answer or now - challenge.started >= self._settings.challenge_quiet_s:
            challenge.refuted = True
            self._deadlines.set(Timer(TimerKind.CHALLENGE, claimed), now + self._settings.challenge_hold_s)
            where = f"port {challenge.holder_end[0]}:{challenge.holder_end[1]}"
            claim = f"has a host, {format_mac(challenge.claimant)}, that claims {text_of(claimed)}"
            text = f"{claim}: its holder answers at {where}, and the claim is refused"
            self._counted("spoof-suspected", challenge.end, text, now)

    def _settle(self, challenge: Challenge, now: float) -> None:
        """Give what is claimed to the claimant: nobody else answers for it any more."""
        self._drop(challenge)
        holder = self.hosts.get(challenge.holder)
        if challenge.claimed == challenge.holder:
            before = () if holder is None else sorted(holder.used_s, key=holder.used_s.__getitem__, reverse=True)
            addresses = dict.fromkeys([*challenge.addresses, *before])
            if holder is not None:
                self._gone(holder, now)
            if len(self._at.get(challenge.end, ())) >= self._settings.hosts_per_port:
                self._counted(
                    "host-limit",
                    challenge.end,
                    f"has as many hosts as its limit: {text_of(challenge.claimed)} is not learnt",
                    now,
                )
                return
            if challenge.claimed not in self.hosts:
                self.remembered(challenge.claimed, addresses, challenge.end, now)
                if (host := self.hosts.get(challenge.claimed)) is not None:
                    host.seen_s = now
                    for address in challenge.addresses.keys() & host.addresses.keys():
                        host.use(address, now)
            return
        claimant = self.hosts.get(challenge.claimant)
        if claimant is None or claimant.end != challenge.end:
            return
        if holder is not None and challenge.claimed in holder.addresses:
            holder.drop(challenge.claimed)
            self._owners.remove(challenge.claimed, holder.mac)
            self._tell(holder)
        self._given_way.forget(challenge.claimed)
        self._bind(claimant, challenge.claimed, now, False)

    def _drop(self, challenge: Challenge) -> None:
        del self.challenges[challenge.claimed]
        at_port = self._claims_at[challenge.end]
        del at_port[challenge.claimed]
        if not at_port:
            del self._claims_at[challenge.end]
        self._deadlines.cancel(Timer(TimerKind.CHALLENGE, challenge.claimed))

    def _end_challenges(self, claimed: bytes, holder: bytes, now: float) -> None:
        """Settle the claim to an address that its holder holds no more."""
        challenge = self.challenges.get(claimed)
        if challenge is None or challenge.holder != holder:
            return
        if challenge.refuted:
            self._drop(challenge)
        else:
            self._settle(challenge, now)

    def _add(self, host: LocatedHost) -> None:
        self.hosts[host.mac] = host
        self._names.add(host.mac)
        self._at.setdefault(host.end, {})[host.mac] = host
        for address in host.addresses:
            self._owners.add(address, host.mac)

    def _gone(self, host: LocatedHost, now: float) -> None:
        for address in host.addresses:
            self._owners.remove(address, host.mac)
        del self.hosts[host.mac]
        self._names.remove(host.mac)
        at_port = self._at[host.end]
        del at_port[host.mac]
        if not at_port:
            del self._at[host.end]
        self._deadlines.cancel(Timer(TimerKind.HOST, host.mac))
        self._emit(HostGone(host.mac, *host.end))
        for claimed in (host.mac, *sorted(host.addresses), *self._given_way.forget_host(host.mac)):
            self._end_challenges(claimed, host.mac, now)

    def _tell(self, host: LocatedHost) -> None:
        self._emit(HostLearnt(host.mac, *host.end, tuple(sorted(host.addresses))))

    def _probe(self, mac: bytes, address: bytes, end: End) -> None:
        settings = self._settings
        if len(mac) == MAC_BYTES:
            frame = host_probe(mac, address, settings.controller_mac, settings.probe_ipv4)
        else:
            asked = address_of(mac), address_of(address)
            frame = host_probe(*asked, settings.controller_mac, settings.probe_ipv4)
            frame = self._framed(end, frame, domain_of(mac))
        self._emit(SendPacket(end[0], (end[1],), frame))
