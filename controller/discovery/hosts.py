"""Which hosts are where, under which addresses: learning, ageing, moves and claims to what others hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

from controller.discovery.deadlines import Deadlines
from controller.discovery.ports import End
from controller.discovery.probes import host_probe
from controller.discovery.settings import DiscoverySettings
from controller.discovery.timers import Timer, TimerKind
from controller.discovery.tokens import fraction
from controller.effects import SendPacket
from controller.wire.addresses import format_ip, format_mac, is_multicast_ip
from topology.events import HostGone, HostLearnt


@dataclass(slots=True)
class HostState:
    """A host: where it is and when each of its addresses was last seen there."""

    mac: bytes
    end: End
    seen_s: float
    addresses: dict[bytes, float] = field(default_factory=dict)
    probed_count: dict[bytes, int] = field(default_factory=dict)


@dataclass(slots=True)
class Challenge:
    """A claim to an address that another location holds; the holder is asked, and keeps it by any sign of life.

    `claimed` is the MAC address of a host that seems to have moved, or an IP address of `holder`. Once `refuted` it
    stands until its time is over, and the claimant's packets count for nothing.
    """

    claimed: bytes
    holder: bytes
    holder_end: End
    claimant: bytes
    end: End
    started: float
    addresses: dict[bytes, None] = field(default_factory=dict)
    probe_count: int = 0
    refuted: bool = False


class Counted(Protocol):
    """Counts something under a stable key, and tells the operator now and then."""

    def __call__(self, kind: str, end: End, text: str, now: float) -> None:
        """Count one."""


class HostTable:
    """The hosts behind edge ports.

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
    is_connected : Callable
        Tells whether a switch can pass a question on: without that its hosts do not age, nor lose what others claim.
    """

    def __init__(
        self,
        settings: DiscoverySettings,
        deadlines: Deadlines[Timer],
        emit: Callable[[HostLearnt | HostGone | SendPacket], None],
        counted: Counted,
        is_connected: Callable[[int], bool],
    ) -> None:
        self.settings_changed(settings)
        self._deadlines = deadlines
        self._emit = emit
        self._counted = counted
        self._is_connected = is_connected
        self.hosts: dict[bytes, HostState] = {}
        self._at: dict[End, dict[bytes, HostState]] = {}
        self._owners: dict[bytes, bytes] = {}
        self.challenges: dict[bytes, Challenge] = {}
        self._claims_at: dict[End, dict[bytes, Challenge]] = {}

    def settings_changed(self, settings: DiscoverySettings) -> None:
        """Go by these settings from now on."""
        self._settings = settings
        self._idle_s = settings.host_timeout_s - settings.host_probe_count * settings.host_probe_interval_s

    def seen(self, mac: bytes, address: bytes | None, end: End, now: float, answer: bool = False) -> None:
        """Take note of a packet from `mac` and `address` at an edge port; `answer` where it answers a question."""
        host = self.hosts.get(mac)
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

    def remembered(self, mac: bytes, addresses: Iterable[bytes], end: End, now: float) -> None:
        """Take a host back that was at this port before, and ask it at once whether it still is."""
        if mac in self.hosts or len(self._at.get(end, ())) >= self._settings.hosts_per_port:
            return
        host = HostState(mac, end, now - self._idle_s)
        for address in addresses:
            if address not in self._owners and len(host.addresses) < self._settings.addresses_per_host:
                host.addresses[address] = now - self._idle_s
        self._add(host)
        self._tell(host)
        self._deadlines.set(Timer(TimerKind.HOST, mac), now + fraction(int.from_bytes(mac, "big")))

    def leave(self, end: End, now: float) -> None:
        """Forget the hosts of a port that is down or leads to hosts no more."""
        for claimed in tuple(self._claims_at.get(end, ())):
            self._drop(self.challenges[claimed])
        for mac in sorted(self._at.get(end, ())):
            self._gone(self.hosts[mac], now)

    def at(self, end: End) -> list[tuple[bytes, tuple[bytes, ...]]]:
        """Return the hosts of a port with their addresses."""
        return [(mac, tuple(sorted(host.addresses))) for mac, host in sorted(self._at.get(end, {}).items())]

    def host_due(self, mac: bytes, now: float) -> None:
        """Ask a host that was quiet for long about its addresses, and forget those it never answered for."""
        settings = self._settings
        host = self.hosts[mac]
        if not self._is_connected(host.end[0]):
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
            del host.addresses[address], self._owners[address]
            del host.probed_count[address]
            self._end_challenges(address, now)
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
        elif not self._is_connected(challenge.holder_end[0]):
            challenge.started, challenge.probe_count = now, 0
            self._deadlines.set(Timer(TimerKind.CHALLENGE, claimed), now + self._settings.challenge_s)
        elif challenge.probe_count < len(self._settings.challenge_probe_offsets_s):
            self._question(challenge)
        else:
            self._settle(challenge, now)

    def _learn(self, mac: bytes, address: bytes | None, end: End, now: float) -> None:
        if mac == bytes(6) or mac[0] & 1:
            self._counted("host-address-invalid", end, f"{format_mac(mac)} is not the address of a host", now)
            return
        if len(self._at.get(end, ())) >= self._settings.hosts_per_port:
            limit = self._settings.hosts_per_port
            self._counted("host-limit", end, f"{format_mac(mac)} not learnt: {limit} hosts at this port", now)
            return
        host = HostState(mac, end, now)
        self._add(host)
        if address is None or not self._bind(host, address, now, False):
            self._tell(host)
        jitter_s = 0.1 * self._idle_s * fraction(int.from_bytes(mac, "big"))
        self._deadlines.set(Timer(TimerKind.HOST, mac), now + self._idle_s - jitter_s)

    def _bind(self, host: HostState, address: bytes, now: float, answer: bool) -> bool:
        """Note that `host` uses `address` and tell whether its addresses changed."""
        if address in host.addresses:
            host.addresses[address] = now
            if self.challenges:
                self._hold(address, host.end, now, answer)
            return False
        if not _is_host_address(address):
            return False
        owner = self._owners.get(address)
        if owner is not None:
            self._claim(address, self.hosts[owner], host.mac, host.end, now, None)
            return False
        if len(host.addresses) >= self._settings.addresses_per_host:
            text = f"{format_ip(address)} of {format_mac(host.mac)} not learnt: too many addresses"
            self._counted("address-limit", host.end, text, now)
            return False
        host.addresses[address] = now
        self._owners[address] = host.mac
        self._tell(host)
        return True

    def _claim(
        self, claimed: bytes, holder: HostState, claimant: bytes, end: End, now: float, address: bytes | None
    ) -> None:
        challenge = self.challenges.get(claimed)
        if challenge is None:
            at_port = self._claims_at.setdefault(end, {})
            settings = self._settings
            if len(at_port) >= settings.challenges_per_port or len(self.challenges) >= settings.challenges:
                if not at_port:
                    del self._claims_at[end]
                self._counted("challenge-limit", end, "a claim to another host's address is not looked into", now)
                return
            challenge = Challenge(claimed, holder.mac, holder.end, claimant, end, now)
            self.challenges[claimed] = at_port[claimed] = challenge
            self._question(challenge)
        elif challenge.refuted:
            self._counted("spoof-blocked", end, f"{_text(claimed)} is held by {format_mac(holder.mac)}", now)
            return
        if (
            address is not None
            and challenge.end == end
            and len(challenge.addresses) < self._settings.addresses_per_host
            and _is_host_address(address)
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
            where = f"{challenge.holder_end[0]:#x}:{challenge.holder_end[1]}"
            text = f"{_text(claimed)} claimed by {format_mac(challenge.claimant)} answers at {where}"
            self._counted("spoof-suspected", challenge.end, text, now)

    def _settle(self, challenge: Challenge, now: float) -> None:
        """Give what is claimed to the claimant: nobody else answers for it any more."""
        self._drop(challenge)
        holder = self.hosts.get(challenge.holder)
        if challenge.claimed == challenge.holder:
            addresses = dict.fromkeys([*(() if holder is None else holder.addresses), *challenge.addresses])
            if holder is not None:
                self._gone(holder, now)
            if len(self._at.get(challenge.end, ())) >= self._settings.hosts_per_port:
                self._counted("host-limit", challenge.end, f"{_text(challenge.claimed)} not learnt", now)
                return
            if challenge.claimed not in self.hosts:
                self.remembered(challenge.claimed, addresses, challenge.end, now)
                host = self.hosts[challenge.claimed]
                host.seen_s = now
                host.addresses.update((address, now) for address in challenge.addresses if address in host.addresses)
            return
        claimant = self.hosts.get(challenge.claimant)
        if claimant is None or claimant.end != challenge.end:
            return
        if holder is not None and challenge.claimed in holder.addresses:
            del holder.addresses[challenge.claimed], self._owners[challenge.claimed]
            holder.probed_count.pop(challenge.claimed, None)
            self._tell(holder)
        self._bind(claimant, challenge.claimed, now, False)

    def _drop(self, challenge: Challenge) -> None:
        del self.challenges[challenge.claimed]
        at_port = self._claims_at[challenge.end]
        del at_port[challenge.claimed]
        if not at_port:
            del self._claims_at[challenge.end]
        self._deadlines.cancel(Timer(TimerKind.CHALLENGE, challenge.claimed))

    def _end_challenges(self, claimed: bytes, now: float) -> None:
        """Settle the claim to an address that nobody holds any more."""
        challenge = self.challenges.get(claimed)
        if challenge is not None and challenge.refuted:
            self._drop(challenge)
        elif challenge is not None:
            self._settle(challenge, now)

    def _add(self, host: HostState) -> None:
        self.hosts[host.mac] = host
        self._at.setdefault(host.end, {})[host.mac] = host
        for address in host.addresses:
            self._owners[address] = host.mac

    def _gone(self, host: HostState, now: float) -> None:
        del self.hosts[host.mac]
        at_port = self._at[host.end]
        del at_port[host.mac]
        if not at_port:
            del self._at[host.end]
        for address in host.addresses:
            del self._owners[address]
        self._deadlines.cancel(Timer(TimerKind.HOST, host.mac))
        self._emit(HostGone(host.mac, *host.end))
        for claimed in (host.mac, *sorted(host.addresses)):
            self._end_challenges(claimed, now)

    def _tell(self, host: HostState) -> None:
        self._emit(HostLearnt(host.mac, *host.end, tuple(sorted(host.addresses))))

    def _probe(self, mac: bytes, address: bytes, end: End) -> None:
        frame = host_probe(mac, address, self._settings.controller_mac, self._settings.probe_ipv4)
        self._emit(SendPacket(end[0], (end[1],), frame))


def _is_host_address(address: bytes) -> bool:
    """Tell whether one host can own an address: no unspecified, loopback, multicast or broadcast one."""
    if is_multicast_ip(address) or not any(address):
        return False
    if len(address) == 4:
        return address[0] not in (0, 127) and address[0] < 240
    return address != bytes(15) + b"\x01"


def _text(claimed: bytes) -> str:
    return format_mac(claimed) if len(claimed) == 6 else format_ip(claimed)
