"""What goes wrong in a simulated fabric, or is changed there, and how long the controller takes to put it right."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from controllers import OPEN_POLICY
from measure import Measurement

from apps.simulated_fabric import messages
from apps.simulated_fabric.fabric import End
from apps.simulated_fabric.hosts import SimulatedHost
from apps.simulated_fabric.switch import Service
from apps.simulated_fabric.table import Entry, HeldTable, Key
from controller.rules.pipeline import FORWARD, PRIORITY_UNICAST, SENDER_COOKIE_BIT, UNICAST
from fabric_simulator.parts import Amounts, Join, JoinTimes, Part, join, join_measurements, one, phase
from fabric_simulator.run import LiveRun, TookTooLong, group_address

PROGRAMMED_GROUPS, MEANWHILE_GROUPS, FRESH_GROUPS = 100_000, 200_000, 300_000
"""Numbers of groups that no other part uses."""

JOIN_EVERY_S = 0.1
LOOK_EVERY_S = 0.2
ONE_MORE_RULE = "rules: [{name: none, groups: [239.255.0.0/16], role: any, hosts: [any], action: deny}, "

OTHER_TABLE = b"\x00\x01\x00\x08\x05\x00\x00\x00"
"""An instruction to go on in table 5, which is empty."""

T = TypeVar("T")


class Samples:
    """Samples of many quantities, in the order in which they were first told."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], list[float]] = {}

    def add(self, name: str, unit: str, value: float) -> None:
        """Add a sample."""
        self._kept.setdefault((name, unit), []).append(value)

    def measurements(self) -> list[Measurement]:
        """Return each quantity with its samples."""
        return [Measurement(name, unit, values) for (name, unit), values in self._kept.items()]


def core_links(run: LiveRun) -> list[End]:
    """Return an end of each link between switches that have no hosts; of every link where there are none such."""
    edges = set(run.fabric.edge_switches())
    ends = [end for end, far in run.fabric.links.items() if end < far]
    inner = [end for end in ends if end[0] not in edges and run.fabric.links[end][0] not in edges]
    return inner or ends


def core_switches(run: LiveRun) -> list[int]:
    """Return the switches that have no hosts, all where there are none such."""
    edges = set(run.fabric.edge_switches())
    return [dpid for dpid in run.fabric.switches if dpid not in edges] or list(run.fabric.switches)


def chosen(run: LiveRun, some: list[T], count: int) -> list[T]:
    """Return so many of some things, or all, at random."""
    return run.random.sample(some, min(count, len(some)))


def link_failure(run: LiveRun, amounts: Amounts) -> list[Measurement]:
    """Have links far from hosts fail, one after the other, and come back."""
    run.populate(amounts.groups, amounts.members)
    run.wait_quiet()
    samples = Samples()
    for end in chosen(run, core_links(run), amounts.failures):
        _change(run, samples, "link failure", lambda end=end: run.fabric.set_link(end, False), missing_links=1)
        _change(run, samples, "link return", lambda end=end: run.fabric.set_link(end, True))
    return samples.measurements()


def switch_failure(run: LiveRun, amounts: Amounts) -> list[Measurement]:
    """Have switches without hosts die, one after the other, and come back empty."""
    run.populate(amounts.groups, amounts.members)
    run.wait_quiet()
    samples = Samples()
    for dpid in chosen(run, core_switches(run), amounts.failures):
        cables = len(run.fabric.switches[dpid].far)
        kill, revive = (lambda dpid=dpid: run.fabric.kill(dpid)), (lambda dpid=dpid: run.fabric.revive(dpid))
        _change(run, samples, "switch failure", kill, missing_links=cables, missing_switches=1)
        _change(run, samples, "switch return", revive)
    return samples.measurements()


def _change(
    run: LiveRun,
    samples: Samples,
    name: str,
    change: Callable[[], None],
    *,
    missing_links: int = 0,
    missing_switches: int = 0,
) -> None:
    """Change the fabric, and add what followed until the controller was done with it."""
    phases: list[Measurement] = []
    with phase(run, name, phases):
        began_s = time.monotonic()
        change()
        run.wait_found(missing_links, missing_switches)
        if not missing_switches:
            run.wait_in_sync()
        run.wait_quiet()
        for app in ("multicast", "unicast"):
            edits = run.watch.of(app)
            samples.add(f"{name}: edits of {app}", "", edits.count)
            if edits.count:
                samples.add(f"{name}: first edit of {app}", "ms", 1000 * (edits.first_s - began_s))
                samples.add(f"{name}: last edit of {app}", "ms", 1000 * (edits.last_s - began_s))
    for found, unit, (value,) in phases:
        samples.add(found, unit, value)


def programming(run: LiveRun, amounts: Amounts) -> list[Measurement]:
    """Have a slow switch with hosts come back empty, and hosts of it join groups while it is programmed anew."""
    fabric = run.fabric
    dpid = fabric.edge_switches()[0]
    switch = fabric.switches[dpid]
    at_switch = [host for host in run.hosts.all if host.end[0] == dpid]
    for number in range(amounts.programmed):
        run.hosts.join(at_switch[number % len(at_switch)], group_address(PROGRAMMED_GROUPS + number))
        if number % 16 == 15:
            fabric.turn(0.001)
    run.wait_quiet()
    before, readings, drops = len(switch.table.held), switch.readings, switch.drops
    fabric.set_service(Service(amounts.edits_per_s, amounts.barrier_s, amounts.held_edits), [dpid])
    found: list[Measurement] = []
    joining: list[Join] = []
    with phase(run, "programming", found):
        fabric.blink(dpid, empty=True)
        if not fabric.run_until(lambda: switch.table.held, run.timeout_s):
            raise TookTooLong(f"switch {dpid} was not programmed")
        began_s = time.monotonic()
        while len(switch.table.held) < before + len(joining):
            if time.monotonic() - began_s > run.timeout_s:
                raise TookTooLong(f"switch {dpid} holds {len(switch.table.held)} of {before} entries")
            if len(switch.table.held) < before:
                number = len(joining)
                host = at_switch[number % len(at_switch)]
                joining.append(Join(run, host, group_address(MEANWHILE_GROUPS + number), again=True))
            fabric.run_for(JOIN_EVERY_S)
        took_s = time.monotonic() - began_s
        times = [each.wait(each.is_over) for each in joining]
        run.wait_quiet()
    fabric.set_service(Service(), [dpid])
    return [
        one("programming: entries of the switch", "", before),
        one("programming: until it held them all and the joins'", "s", took_s),
        one("programming: joins meanwhile", "", len(times)),
        one("programming: readings of the switch", "", switch.readings - readings),
        one("programming: connections that the switch dropped", "", switch.drops - drops),
        *join_measurements("join at a switch that is programmed", times),
        *found,
    ]


def stalled(run: LiveRun, amounts: Amounts) -> list[Measurement]:
    """Have a switch without hosts stop reading, and hosts join groups meanwhile."""
    run.populate(amounts.groups, 1)
    run.wait_quiet()
    dpid = core_switches(run)[0]
    lost = run.fabric.lost_connections
    cut_s: list[float] = []
    times: list[JoinTimes] = []
    found: list[Measurement] = []
    with phase(run, "stalled", found):
        run.fabric.set_reading(dpid, False)
        began_s = time.monotonic()
        while time.monotonic() - began_s < amounts.stall_s:
            joining = Join(run, *_next_join(run, amounts))
            times.append(joining.wait(joining.served))
            run.fabric.run_for(JOIN_EVERY_S)
            if run.fabric.lost_connections > lost and not cut_s:
                cut_s.append(time.monotonic() - began_s)
        run.fabric.set_reading(dpid, True)
        run.wait_found()
        run.wait_in_sync()
    return [
        *join_measurements("join while a switch does not read", times, confirmed=False),
        *(one("stalled: until its connection ended", "s", each) for each in cut_s),
        *found,
    ]


def _next_join(run: LiveRun, amounts: Amounts) -> tuple[SimulatedHost, bytes]:
    """Return a host, and a group that it has not joined: one that has a sender, if there is any."""
    group = group_address(run.random.randrange(amounts.groups))
    host = run.new_member(group)
    if host is not None:
        return host, group
    group = group_address(FRESH_GROUPS + len(run.members))
    host = run.new_member(group)
    assert host is not None
    return host, group


def reload(run: LiveRun, amounts: Amounts) -> list[Measurement]:
    """Have the policy read again, as it is and with one more rule, and hosts join groups meanwhile."""
    run.populate(amounts.groups, amounts.members)
    run.wait_quiet()
    found: list[Measurement] = []
    for name, rules in (("as it is", OPEN_POLICY), ("one more rule", OPEN_POLICY.replace("rules: [", ONE_MORE_RULE))):
        times: list[JoinTimes] = []
        run.set_rules(rules)
        with phase(run, f"reload {name}", found):
            began_s = time.monotonic()
            asked = run.questions.ask({"do": "policy-reload"})
            while not asked.done() or len(times) < 10:
                if time.monotonic() - began_s > run.timeout_s:
                    raise TookTooLong("the policy was not read")
                times.append(join(run, *_next_join(run, amounts)))
            took_s = time.monotonic() - began_s
            run.wait_quiet()
        found.append(one(f"reload {name}: answered, with {len(times)} joins beside", "s", took_s))
        found += join_measurements(f"join during a reload {name}", times)
    return found


def corruption(run: LiveRun, amounts: Amounts) -> list[Measurement]:
    """Have somebody else delete, alter and add entries at switches, and wait until each is right again."""
    run.wait_quiet()
    samples = Samples()
    found: list[Measurement] = []
    with phase(run, "corruption", found):
        began_s = time.monotonic()
        wrong: dict[int, dict[Key, Entry]] = {}
        for dpid in chosen(run, list(run.fabric.switches), amounts.corrupted):
            table = run.fabric.switches[dpid].table
            wrong[dpid] = lasting(table)
            corrupt(table, list(wrong[dpid]), began_s)
        while wrong:
            if time.monotonic() - began_s > run.timeout_s:
                raise TookTooLong(f"switches {sorted(wrong)} are not as they were")
            run.fabric.run_for(LOOK_EVERY_S)
            for dpid, before in list(wrong.items()):
                if _say(before) == _say(lasting(run.fabric.switches[dpid].table)):
                    del wrong[dpid]
                    samples.add("corruption: until a switch is right again", "s", time.monotonic() - began_s)
        run.wait_quiet()
    return [*samples.measurements(), *found]


def lasting(table: HeldTable) -> dict[Key, Entry]:
    """Return the entries that do not change while hosts and links stay: those of groups follow their trees."""
    return {
        key: entry
        for key, entry in table.held.items()
        if key[0] != FORWARD and not entry.cookie & SENDER_COOKIE_BIT and not any(entry.times)
    }


def corrupt(table: HeldTable, keys: list[Key], now: float) -> None:
    """Delete the first of each ten entries, alter the second, and add one that nobody wants."""
    cookie = table.held[keys[1]].cookie
    for key in keys[::10]:
        table.delete(key)
    for key in keys[1::10]:
        table.modify(key, OTHER_TABLE)
    table.add((UNICAST, PRIORITY_UNICAST + 1, messages.MATCH_ALL), Entry(cookie, (0, 0), now, b""))


def _say(entries: dict[Key, Entry]) -> dict[Key, tuple[int, bytes]]:
    return {key: (entry.cookie, entry.instructions) for key, entry in entries.items()}


PARTS: dict[str, Part] = {
    "link-failure": Part(link_failure, "links far from hosts fail and come back"),
    "switch-failure": Part(switch_failure, "switches without hosts die and come back empty"),
    "programming": Part(programming, "joins at a slow switch that is programmed anew"),
    "stalled": Part(stalled, "joins while a switch does not read"),
    "reload": Part(reload, "joins while the policy is read again"),
    "corruption": Part(corruption, "somebody else changes entries"),
}
