"""A scenario of `vsrt emulate` from a capture: which hosts of a fabric play which of its senders and receivers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from controller.captures.figures import CaptureFigures
from controller.captures.interests import CapturedInterest, InterestKind
from controller.kernel.domains import address_of, domain_of
from controller.wire.addresses import format_ip, is_link_scope_group

SHORTEST_S, LONGEST_S = 0.1, 3600.0
"""What a scenario may last."""

LOWEST_RATE_BPS = 1000.0
SCENARIO_VERSION = 1


class CastImpossible(ValueError):  # noqa: N818 - it names what is the case
    """No scenario can be made; the text says why, and what to do."""


class _Part(NamedTuple):
    group: bytes
    player: bytes


class CaptureCast:
    """Who of a capture sends and receives in a scenario, of its `busiest` groups, or of all where that is None.

    Groups that never leave a link are left out, and VLANs are: what was in one is in none. Groups for which nobody
    asks in the capture have `receivers` hosts of their own, and are left out with 0.

    Attributes
    ----------
    player_count
        How many hosts it takes.
    notes
        What of the capture is otherwise in the scenario, in sentences.

    CastImpossible where nothing would be left, or it would last too long.
    """

    def __init__(self, figures: CaptureFigures, receivers: int = 0, busiest: int | None = None) -> None:
        self.notes: list[str] = []
        self._rates_bps: dict[_Part, float] = {}
        self._sizes_bytes: dict[bytes, int] = {}
        self._own_receivers = receivers
        self._interests: dict[bytes, list[CapturedInterest]] = {}
        for each in figures.interests:
            self._interests.setdefault(address_of(each.group), []).append(each)
        self._read_senders(figures)
        self._groups = self._choose(busiest)
        chosen = [key for key in figures.senders if address_of(key.group) in self._groups]
        self._start_ns = min(figures.senders[key].first_ns for key in chosen)
        lasted_s = (max(figures.senders[key].last_ns for key in chosen) - self._start_ns) / 1e9
        if lasted_s > LONGEST_S:
            raise CastImpossible(
                f"its groups are sent to for {lasted_s:,.0f} s, and a scenario lasts {LONGEST_S:g} at most"
            )
        self._duration_s = max(SHORTEST_S, round(lasted_s + SHORTEST_S, 3))
        if any(domain_of(key.group) for key in chosen):
            self.notes.append("What the capture has in VLANs is in none in the scenario.")
        self._players: dict[bytes, None] = dict.fromkeys(
            part.player for part in self._rates_bps if part.group in self._groups
        )
        for group in self._groups:
            for interest in self._interests.get(group, ()):
                self._players.setdefault(_player(interest))
                self._players.update(dict.fromkeys(() if interest.is_exclude else interest.sources))
        self.player_count = len(self._players) + (receivers if self._lonely() else 0)

    def _read_senders(self, figures: CaptureFigures) -> None:
        for (name, source), each in figures.senders.items():
            group = address_of(name)
            if is_link_scope_group(group):
                continue
            lasted_s = max((figures.last_ns - figures.first_ns) / 1e9, 1.0)
            rate_bps = each.rate_bps() or each.size_bytes * 8 / lasted_s
            part = _Part(group, source)
            self._rates_bps[part] = self._rates_bps.get(part, 0.0) + rate_bps
            self._sizes_bytes[group] = self._sizes_bytes.get(group, 0) + each.size_bytes

    def _choose(self, busiest: int | None) -> list[bytes]:
        if not self._sizes_bytes:
            raise CastImpossible("nobody sends to a group in it that leaves a link")
        order = sorted(self._sizes_bytes, key=lambda group: (-self._sizes_bytes[group], group))
        wanted = [group for group in order if self._interests.get(group) or self._own_receivers]
        if not wanted:
            raise CastImpossible(
                "nobody asks for one of its groups: `vsrt trace scenario --receivers N` gives each N receivers"
            )
        if len(wanted) < len(order):
            self.notes.append(
                f"{len(order) - len(wanted):,} groups for which nobody asks are left out: --receivers N of"
                " `vsrt trace scenario` gives each N."
            )
        return wanted[:busiest]

    def _lonely(self) -> list[bytes]:
        return [group for group in self._groups if not self._interests.get(group)]

    def document(self, topology: dict[str, Any], hosts: Sequence[str]) -> dict[str, Any]:
        """Return the scenario, whose hosts are the first of `hosts`; CastImpossible where these are too few."""
        if len(hosts) < self.player_count:
            raise CastImpossible(
                f"it takes {self.player_count:,} hosts, and the fabric has {len(hosts):,}: another --topology, or "
                "--groups N for the N busiest groups alone"
            )
        by_player = dict(zip(self._players, hosts, strict=False))
        own = hosts[len(by_player) : len(by_player) + self._own_receivers]
        groups, events = [], []
        for group in self._groups:
            receivers, changes = self._members(group, by_player)
            groups.append(
                {
                    "group": format_ip(group),
                    "senders": [
                        {"host": by_player[part.player], "rate_bps": round(max(rate_bps, LOWEST_RATE_BPS), 1)}
                        for part, rate_bps in self._rates_bps.items()
                        if part.group == group
                    ],
                    "receivers": receivers if self._interests.get(group) else list(own),
                }
            )
            events += changes
        if events:
            events.sort(key=lambda event: float(event["at_s"]))
        return {
            "version": SCENARIO_VERSION,
            "topology": topology,
            "warmup_s": 2,
            "duration_s": self._duration_s,
            "addresses": {format_ip(player): host for player, host in by_player.items() if len(player) in (4, 16)},
            "groups": groups,
            **({"events": events} if events else {}),
        }

    def _members(self, group: bytes, by_player: dict[bytes, str]) -> tuple[list[Any], list[dict[str, Any]]]:
        """Return who is a member from the start, and who joins and leaves while packets are sent."""
        first: dict[str, CapturedInterest] = {}
        events: list[dict[str, Any]] = []
        moved: set[str] = set()
        for each in self._interests.get(group, ()):
            host = by_player[_player(each)]
            at_s = round((each.at_ns - self._start_ns) / 1e9, 3)
            is_member = each.kind is not InterestKind.LEAVE
            is_there_from_start = each.kind is InterestKind.STANDING or bool(each.sources)
            if at_s <= 0 or (is_there_from_start and host not in moved and host not in first):
                if is_member:
                    first[host] = each
                else:
                    first.pop(host, None)
            elif at_s <= self._duration_s:
                events.append(
                    {
                        "at_s": at_s,
                        "do": "join" if is_member else "leave",
                        "host": host,
                        "group": format_ip(group),
                    }
                )
            moved.add(host)
            if is_member and each.sources and at_s > 0:
                note = "Who asks for sources by name asks for them from the start in the scenario."
                if note not in self.notes:
                    self.notes.append(note)
        return [_receiver(host, each, by_player) for host, each in first.items()], events


def _player(interest: CapturedInterest) -> bytes:
    """Return who a host is: its address, or its MAC address where it had none yet."""
    return interest.address if any(interest.address) else interest.mac


def _receiver(host: str, interest: CapturedInterest, by_player: dict[bytes, str]) -> str | dict[str, Any]:
    sources = [by_player[source] for source in interest.sources if source in by_player]
    if not sources:
        return host
    return {"host": host, "exclude" if interest.is_exclude else "include": sources}
