"""What is measured of a controller that drives a simulated fabric: each part goes on where the last one ended."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from measure import Measurement

from apps.simulated_fabric.hosts import SimulatedHost
from apps.simulated_fabric.messages import FLOW_MOD
from apps.simulated_fabric.watch import APPS
from fabric_simulator.process import Page, Usage, resident_bytes
from fabric_simulator.run import LiveRun, TookTooLong, format_group, group_address

REST_S = 6.0
"""After the last event of a start a port goes on being asked for a while; so long, then it is at rest."""

JOIN_QUIET_S = 0.02
"""A join is over when all its edits are confirmed and none came for so long."""


@dataclass
class Amounts:
    """How much of everything the parts measure; the command has an option for each."""

    idle_s: float = 10.0
    hosts: int | None = None
    groups: int = 100
    members: int = 4
    joins: int = 200
    burst: int = 1000
    failures: int = 5
    programmed: int = 2000
    edits_per_s: float = 1000.0
    barrier_s: float = 0.001
    held_edits: int | None = None
    stall_s: float = 20.0
    corrupted: int = 5


class Part(NamedTuple):
    """A part: what it does, by name."""

    measure: Callable[[LiveRun, Amounts], list[Measurement]]
    help: str


class JoinTimes(NamedTuple):
    """From a report that a switch hands to the controller to the first flow-mod, and to the last barrier reply."""

    first_ms: float
    confirmed_ms: float


def one(name: str, unit: str, value: float) -> Measurement:
    """Return a quantity that was measured once."""
    return Measurement(name, unit, [value])


@contextmanager
def phase(run: LiveRun, name: str, found: list[Measurement]) -> Iterator[Usage]:
    """Add to `found` what a phase took of processors and loops, and how many edits it was."""
    before = run.page()
    run.watch.start_anew()
    flow_mods = run.watch.received[FLOW_MOD]
    usage = run.usage()
    yield usage
    found += [
        one(f"{name}: processor time of the controller", "s", usage.controller_s()),
        one(f"{name}: processor time of the simulator", "s", usage.simulator_s()),
        one(f"{name}: flow-mods", "", run.watch.received[FLOW_MOD] - flow_mods),
    ]
    found += longest_turns(name, run.page(), before)


def longest_turns(name: str, page: Page, before: Page | None = None) -> list[Measurement]:
    """Return the bucket of the longest turn of each loop, since an earlier page perhaps."""
    found = []
    for app, turns in page.turns.items():
        new = turns - (Counter() if before is None else before.turns.get(app, Counter()))
        longest_s = max((bound for bound, count in new.items() if count), default=0.0)
        found.append(one(f"{name}: longest turn of {app}, at most", "ms", 1000 * longest_s))
    return found


def start(run: LiveRun, _amounts: Amounts) -> list[Measurement]:
    """Connect all switches."""
    found: list[Measurement] = []
    usage, began_s = run.usage(), time.monotonic()
    run.fabric.connect()
    links_s = run.wait_found() - began_s
    synced_s = max(run.wait_in_sync() - began_s, links_s)
    run.wait_quiet()
    page = run.page()
    found.append(one("start: all links found", "s", links_s))
    found.append(one("start: all found and in sync", "s", synced_s))
    found.append(one("start: last edit confirmed", "s", last_confirmed_s(run) - began_s))
    found.append(one("start: processor time of the controller", "s", usage.controller_s()))
    found.append(one("start: processor time of the simulator", "s", usage.simulator_s()))
    found.append(one("start: flow-mods", "", run.watch.edit_count()))
    found.append(one("start: readings of a switch", "", run.watch.readings))
    found.append(one("start: connections lost", "", run.fabric.lost_connections))
    found.append(one("start: memory of the controller", "MiB", resident_bytes(run.process.pid) / (1 << 20)))
    return found + longest_turns("start", page)


def last_confirmed_s(run: LiveRun) -> float:
    """Return when the last edit of any app was confirmed."""
    return max((edits.confirmed_s for edits in run.watch.edits.values()), default=0.0)


def idle(run: LiveRun, amounts: Amounts) -> list[Measurement]:
    """Do nothing for a while."""
    found: list[Measurement] = []
    run.fabric.run_for(REST_S)
    watch = run.watch
    readings, lldp = watch.readings, watch.lldp_frames
    with phase(run, "idle", found) as usage:
        run.fabric.run_for(amounts.idle_s)
        past_s = usage.past_s()
        share = 100 * usage.controller_s() / past_s
    return [
        one("idle: share of a core", "%", share),
        one("idle: LLDP frames", "1/s", (watch.lldp_frames - lldp) / past_s),
        one("idle: readings of a switch", "1/s", (watch.readings - readings) / past_s),
        *found,
    ]


def hosts(run: LiveRun, amounts: Amounts) -> list[Measurement]:
    """Have hosts announce themselves, spread over the fabric."""
    every = run.hosts.all
    chosen = every if amounts.hosts is None else run.random.sample(every, min(amounts.hosts, len(every)))
    found: list[Measurement] = []
    began_s = time.monotonic()
    with phase(run, "hosts", found) as usage:
        run.speak(chosen)
        run.wait_quiet()
        each_ms = 1000 * usage.controller_s() / max(1, len(chosen))
    last_s = last_confirmed_s(run) - began_s
    return [
        one("hosts: that announced themselves", "", len(chosen)),
        one("hosts: last entry confirmed", "s", last_s),
        one("hosts: processor time of the controller, each", "ms", each_ms),
        *found,
    ]


def joins(run: LiveRun, amounts: Amounts) -> list[Measurement]:
    """Have hosts join groups one after the other, then many at once."""
    found: list[Measurement] = []
    times: list[JoinTimes] = []
    run.populate(amounts.groups, 1)
    run.wait_quiet()
    with phase(run, "joins one by one", found):
        for number in range(amounts.joins):
            group = group_address(number % amounts.groups)
            host = run.new_member(group)
            if host is not None:
                times.append(join(run, host, group))
    return [*join_measurements("join", times), *found, *_burst(run, amounts)]


class Join:
    """A host that joins a group, beginning now; `again` as in `Hosts.join`."""

    def __init__(self, run: LiveRun, host: SimulatedHost, group: bytes, *, again: bool = False) -> None:
        self.group = group
        self._run = run
        self._edits = run.watch.follow(group)
        self._began_s = time.monotonic()
        run.hosts.join(host, group, again=again)

    def served(self) -> bool:
        """Tell whether a first flow-mod has come."""
        return self._edits.count > 0

    def is_over(self) -> bool:
        """Tell whether all edits are confirmed, and no other has come for a while."""
        edits = self._edits
        return self.served() and edits.settled and time.monotonic() - edits.last_s > JOIN_QUIET_S

    def wait(self, reached: Callable[[], bool]) -> JoinTimes:
        """Go on until one of the above; TookTooLong where it takes too long."""
        end_s = time.monotonic() + self._run.timeout_s
        while not reached():
            if time.monotonic() > end_s:
                state = "its edits are not confirmed" if self.served() else "it led to no edit"
                raise TookTooLong(f"a join of group {format_group(self.group)}: {state}")
            self._run.fabric.turn(JOIN_QUIET_S / 4)
        self._run.watch.unfollow(self.group)
        edits = self._edits
        return JoinTimes(1000 * (edits.first_s - self._began_s), 1000 * (edits.confirmed_s - self._began_s))


def join(run: LiveRun, host: SimulatedHost, group: bytes) -> JoinTimes:
    """Have a host join a group, and wait until all that follows is confirmed."""
    joining = Join(run, host, group)
    return joining.wait(joining.is_over)


def join_measurements(name: str, times: list[JoinTimes], *, confirmed: bool = True) -> list[Measurement]:
    """Return what joins took, nothing where there were none."""
    if not times:
        return []
    found = [Measurement(f"{name}: report to first flow-mod", "ms", [each.first_ms for each in times])]
    if confirmed:
        samples = [each.confirmed_ms for each in times]
        found.append(Measurement(f"{name}: report to last barrier reply", "ms", samples))
    return found


def _burst(run: LiveRun, amounts: Amounts) -> list[Measurement]:
    """Have many hosts join at once."""
    found: list[Measurement] = []
    share_at_rest = _share_at_rest(run)
    began_s = time.monotonic()
    with phase(run, "joins at once", found) as usage:
        count = join_at_once(run, amounts)
        busy_s = usage.controller_s() - share_at_rest * usage.past_s()
    last_s = last_confirmed_s(run) - began_s
    return [
        one("joins at once: joins", "", count),
        one("joins at once: last barrier reply", "s", last_s),
        one("joins at once: processor time beyond that at rest, each", "us", 1e6 * busy_s / max(1, count)),
        *found,
    ]


def join_at_once(run: LiveRun, amounts: Amounts) -> int:
    """Have many hosts join as fast as they can, wait until all is confirmed, and return how many did."""
    count = 0
    for number in range(amounts.burst):
        group = group_address(number % amounts.groups)
        host = run.new_member(group)
        if host is not None:
            run.hosts.join(host, group)
            count += 1
        if number % 16 == 15:
            run.fabric.turn(0.0)
    run.wait_quiet()
    return count


def _share_at_rest(run: LiveRun, duration_s: float = 3.0) -> float:
    usage = run.usage()
    run.fabric.run_for(duration_s)
    return usage.controller_s() / usage.past_s()


def entries(run: LiveRun, _amounts: Amounts) -> list[Measurement]:
    """Count the flow entries that switches hold, by app and tier."""
    graph = run.fabric.graph
    held: dict[tuple[str, str], list[float]] = {}
    for node in graph.switches():
        switch = run.fabric.switches[int(graph.attributes(node)["dpid"])]
        tags = Counter(entry.cookie >> 48 for entry in switch.table.held.values())
        for app, tag in APPS.items():
            held.setdefault((str(graph.kind(node)), app), []).append(tags[tag])
    return [Measurement(f"entries of {app}, {tier}", "", counts) for (tier, app), counts in sorted(held.items())]


PARTS: dict[str, Part] = {
    "start": Part(start, "all switches connect; always the first"),
    "idle": Part(idle, "nothing happens"),
    "hosts": Part(hosts, "hosts announce themselves"),
    "joins": Part(joins, "hosts join groups, one by one and many at once"),
    "entries": Part(entries, "what switches hold at that moment"),
}
