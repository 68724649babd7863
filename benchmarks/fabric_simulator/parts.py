"""What is measured of a controller that drives a simulated fabric: each part goes on where the last one ended."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from measure import Measurement

from fabric_simulator.fabric import End
from fabric_simulator.messages import FLOW_MOD
from fabric_simulator.process import Page, Usage, resident_bytes
from fabric_simulator.run import LiveRun, TookTooLong, group_address
from fabric_simulator.watch import APPS
from topology.graph import Kind

REST_S = 6.0
"""After the last event of a start a port goes on being asked for a while; so long, then it is at rest."""

JOIN_QUIET_S = 0.02
"""A join is over when all its edits are confirmed and none came for so long."""


@dataclass
class Amounts:
    """How much of everything the parts measure."""

    idle_s: float = 10.0
    hosts: int | None = None
    groups: int = 100
    members: int = 4
    joins: int = 200
    burst: int = 1000
    failures: int = 5


class Part(NamedTuple):
    """A part: what it does, by name."""

    measure: Callable[[LiveRun, Amounts], list[Measurement]]
    help: str


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
    first_ms: list[float] = []
    confirmed_ms: list[float] = []
    run.populate(amounts.groups, 1)
    run.wait_quiet()
    idle_share = _idle_share(run)
    with phase(run, "joins one by one", found) as usage:
        for number in range(amounts.joins):
            group = group_address(number % amounts.groups)
            times = _join(run, group)
            if times is not None:
                first_ms.append(1000 * times[0])
                confirmed_ms.append(1000 * times[1])
        busy_s = usage.controller_s() - idle_share * usage.past_s()
    (edits,) = next(each.samples for each in found if each.name.endswith("flow-mods"))
    each_us = 1e6 * busy_s / max(1, len(first_ms))
    found += _burst(run, amounts)
    return [
        Measurement("join: report to first flow-mod", "ms", first_ms or [0.0]),
        Measurement("join: report to last barrier reply", "ms", confirmed_ms or [0.0]),
        one("join: processor time beyond that at rest", "us", each_us),
        one("join: flow-mods", "", edits / max(1, len(first_ms))),
        *found,
    ]


def _idle_share(run: LiveRun, duration_s: float = 2.0) -> float:
    usage = run.usage()
    run.fabric.run_for(duration_s)
    return usage.controller_s() / usage.past_s()


def _join(run: LiveRun, group: bytes) -> tuple[float, float] | None:
    """Have one more host join; return the times to the first flow-mod and to the last barrier reply."""
    host = run.new_member(group)
    if host is None:
        return None
    edits = run.watch.follow(group)
    began_s = time.monotonic()
    run.hosts.join(host, group)
    if not run.fabric.run_until(lambda: edits.count, run.timeout_s):
        raise TookTooLong(f"a join of group {'.'.join(map(str, group))} led to no edit")
    while not (edits.settled and time.monotonic() - edits.last_s > JOIN_QUIET_S):
        run.fabric.turn(JOIN_QUIET_S / 4)
    return edits.first_s - began_s, edits.confirmed_s - began_s


def _burst(run: LiveRun, amounts: Amounts) -> list[Measurement]:
    """Have many hosts join at once."""
    found: list[Measurement] = []
    began_s = time.monotonic()
    with phase(run, "joins at once", found) as usage:
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
        each_us = 1e6 * usage.controller_s() / max(1, count)
    last_s = last_confirmed_s(run) - began_s
    return [
        one("joins at once: joins", "", count),
        one("joins at once: last barrier reply", "s", last_s),
        one("joins at once: processor time, each", "us", each_us),
        *found,
    ]


def core_links(run: LiveRun) -> list[End]:
    """Return an end of each link between switches that have no hosts; of every link where there are none such."""
    edges = set(run.fabric.edge_switches())
    ends = [end for end, far in run.fabric.links.items() if end < far]
    inner = [end for end in ends if end[0] not in edges and run.fabric.links[end][0] not in edges]
    return inner or ends


def link_failure(run: LiveRun, amounts: Amounts) -> list[Measurement]:
    """Have links far from hosts fail, one after the other, and come back."""
    run.populate(amounts.groups, amounts.members)
    run.wait_quiet()
    samples: dict[str, list[float]] = {}
    phases: list[Measurement] = []
    for end in run.random.sample(core_links(run), amounts.failures):
        for name, up in (("failure", False), ("return", True)):
            with phase(run, name, phases):
                began_s = time.monotonic()
                run.fabric.set_link(end, up)
                run.wait_found(missing_links=0 if up else 1)
                run.wait_in_sync()
                run.wait_quiet()
                for app in ("multicast", "unicast"):
                    edits = run.watch.of(app)
                    samples.setdefault(f"{name}: edits of {app}", []).append(edits.count)
                    if edits.count:
                        for which, at_s in (("first", edits.first_s), ("last", edits.last_s)):
                            key = f"{name}: {which} edit of {app}"
                            samples.setdefault(key, []).append(1000 * (at_s - began_s))
    units = {name: unit for name, unit, _ in phases}
    for name, _, (value,) in phases:
        samples.setdefault(name, []).append(value)
    return [
        Measurement(name, units.get(name, "" if ": edits" in name else "ms"), values)
        for name, values in samples.items()
    ]


def entries(run: LiveRun, _amounts: Amounts) -> list[Measurement]:
    """Count the flow entries that switches hold, by app and tier."""
    graph = run.fabric.graph
    held: dict[tuple[str, str], list[float]] = {}
    for node in graph.switches():
        switch = run.fabric.switches[int(graph.attributes(node)["dpid"])]
        tags = Counter(entry.cookie >> 48 for entry in switch.table.held.values())
        tier = str(graph.kind(node)) if graph.kind(node) is not Kind.SWITCH else "switch"
        for app, tag in APPS.items():
            held.setdefault((tier, app), []).append(tags[tag])
    return [Measurement(f"entries of {app} at a {tier}", "", counts) for (tier, app), counts in sorted(held.items())]


PARTS: dict[str, Part] = {
    "start": Part(start, "all switches connect; always the first"),
    "idle": Part(idle, "nothing happens"),
    "hosts": Part(hosts, "hosts announce themselves"),
    "joins": Part(joins, "hosts join groups, one by one and many at once"),
    "link-failure": Part(link_failure, "links far from hosts fail and come back"),
    "entries": Part(entries, "what switches hold at that moment"),
}
