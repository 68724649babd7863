"""What VLANs cost: joins, memory and repairs of a fabric in one VLAN against one in none, and 4,000 VLANs.

    PYTHONPATH=. python benchmarks/vlans.py [--k 8] [--groups 200] [--members 10] [--processes 9] [--rounds 3]
        [--counted-k 4] [--vlans 4000] [--receiver-vlans 20] [--parts counted,one-vlan] [--json]

Cores over a fat tree as in `fabric_joins.py`, one fabric beside the other in one process; rounds of each take
turns, so that other work meets both alike. Times are processor time; the bytecodes and function calls of a join, and
the bytecodes of a repair, are told too: other work does not move them.
In the first comparison all ports to hosts are access ports of VLAN 10. How fast the same work is done depends on
where its objects lie, by some hundredths, so each of several processes has two fabrics of either kind, which tell how
much that is; Python's cyclic collector waits until turns are over. In the second one the ports of 20 switches
are trunks, each VLAN has two of them and ten groups, and is compared with as many groups in none; entries are
looked for at switches that have neither a port nor a tree of their VLAN. In the third one hosts at access ports of
20 VLANs receive what one host sends: in a source VLAN that theirs are registered with, or in each of theirs;
packets are followed through the entries, link by link.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import multiprocessing
import random
import statistics
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any

from fabric_joins import POLICY, SETTLE_S, Fabric, host_at
from measure import Measurement, names_of, report, tallied

from apps.openflow.collector import COLLECTOR_THRESHOLDS
from controller.config.check_settings import Check
from controller.config.registrations import Registration, Registrations
from controller.config.terms import SwitchPort, parse_prefix
from controller.config.vlans import PortVlans, VlanEntry, Vlans
from controller.events import PacketReceived
from controller.kernel.domains import address_of, domain_of, in_domain
from controller.kernel.ports import End
from controller.rules.model import Output
from controller.rules.pipeline import VLAN_FORWARD
from controller.trees.tree import Tree
from controller.wire.encode import encode
from controller.wire.ethernet import with_tag
from controller.wire.packets import GroupRecord, RecordType, Report
from controller.wire.udp import encode_udp
from topology.events import HostLearnt, LinkDown, LinkUp

VLAN_ID = 10
JOIN, LEAVE = RecordType.CHANGE_TO_EXCLUDE, RecordType.CHANGE_TO_INCLUDE
PLAIN, TAGGED = "no VLAN", f"VLAN {VLAN_ID}"
SMALL_K = 4
COUNTED_REPAIRS = 4
TURN = 48
"""Reports of a turn."""

GROUPS_PER_VLAN = 10
PORTS_PER_VLAN = 2
SOURCE_VLAN, REGISTERED_MEMBERS = 4000, 60


def in_one_vlan(k: int, vlan_id: int) -> Fabric:
    """Return a fabric whose ports to hosts are all access ports of a VLAN, or in none where that is 0.

    Switches are not checked: those of `Fabric` say that they hold nothing, and all entries would be sent again.
    """
    policy = replace(POLICY, check=Check(interval_s=0.0), vlans=Vlans(default=PortVlans(vlan_id, frozenset())))
    return Fabric(k, policy=policy, hosts_at=lambda number, end: [in_vlan(host_at(number, end), vlan_id)])


def in_vlan(host: HostLearnt, vlan_id: int) -> HostLearnt:
    """Return a host by its names in a VLAN."""
    return HostLearnt(in_domain(host.mac, vlan_id), host.dpid, host.port_no,
                      tuple(in_domain(address, vlan_id) for address in host.addresses))  # fmt: skip


def frame_of(host: HostLearnt, frame: bytes) -> PacketReceived:
    """Return what the controller gets of a frame: with the tag of its host's VLAN."""
    vlan_id = domain_of(host.mac)
    return PacketReceived(host.dpid, host.port_no, with_tag(frame, vlan_id) if vlan_id else frame)


def told(host: HostLearnt, group: bytes, kind: RecordType) -> PacketReceived:
    """Return a report of a group."""
    mac, address = address_of(host.mac), address_of(host.addresses[0])
    return frame_of(host, encode(Report(4, 3, mac, address, (GroupRecord(kind, group),))))


def sent(host: HostLearnt, group: bytes) -> PacketReceived:
    """Return a packet to a group."""
    return frame_of(host, encode_udp(address_of(host.mac), address_of(host.addresses[0]), group, b"x"))


def group_address(number: int) -> bytes:
    """Return the address of a group."""
    return bytes((239, 1, number >> 8, number & 255))


def members_of(fabric: Fabric, groups: int, members: int) -> list[tuple[HostLearnt, bytes]]:
    """Return members of groups, drawn anew."""
    chosen = [fabric.random.sample(fabric.hosts, members) for _ in range(groups)]
    return [(chosen[number][place], group_address(number)) for place in range(members) for number in range(groups)]


def heard_us(fabric: Fabric, reports: list[tuple[HostLearnt, bytes]], kind: RecordType) -> float:
    """Have hosts report groups; return the microseconds that each took."""
    events = [told(host, group, kind) for host, group in reports]
    began_s = time.process_time()
    fabric.hear(events)
    return 1e6 * (time.process_time() - began_s) / len(events)


def repair_ms(fabric: Fabric, links: list[LinkUp]) -> Iterator[float]:
    """Have links fail and come back one after the other; yield the milliseconds that each repair took."""
    for link in links:
        began_s = time.process_time()
        fabric.feed_all(LinkDown(link.dpid_a, link.port_a, link.dpid_b, link.port_b))
        fabric.advance(2.0)
        yield 1e3 * (time.process_time() - began_s)
        fabric.feed_all(link)
        fabric.advance(20.0)


def one_vlan(arguments: argparse.Namespace) -> list[Measurement]:
    """Compare fabrics in one VLAN with such in none, in several processes, which are the samples of each ratio."""
    found: dict[tuple[str, str], list[float]] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, max_tasks_per_child=1) as pool:
        for of_process in pool.map(one_process, range(arguments.processes), repeat(arguments)):
            for (name, unit), values in of_process.items():
                found.setdefault((name, unit), []).extend(values)
    return [Measurement(name, unit, values) for (name, unit), values in found.items()]


def one_process(number: int, arguments: argparse.Namespace) -> dict[tuple[str, str], list[float]]:
    """Compare two fabrics in a VLAN with two in none, by turns in an order that is drawn anew for each.

    All have the same reports in the same turns. A ratio is the median of those of the turns; beside that of those in
    none to those in the VLAN stand those of each kind to itself, which are 1 but for where things lie in memory.
    """
    kinds = (PLAIN, TAGGED, TAGGED, PLAIN) if number % 2 else (TAGGED, PLAIN, PLAIN, TAGGED)
    fabrics = [in_one_vlan(arguments.k, VLAN_ID if kind == TAGGED else 0) for kind in kinds]
    order = list(range(len(fabrics)))
    shuffle = random.Random(number).shuffle
    turns: dict[tuple[str, str], list[list[float]]] = {}

    def take_turn(what: tuple[str, str], work: Callable[[int], float]) -> None:
        shuffle(order)
        took = {place: work(place) for place in order}
        turns.setdefault(what, []).append([took[place] for place in range(len(fabrics))])

    for fabric in fabrics:
        fabric.feed_all(*(sent(fabric.hosts[group % len(fabric.hosts)], group_address(group))
                          for group in range(arguments.groups)))  # fmt: skip
    gc.collect()
    gc.freeze()
    gc.disable()
    for round_number in range(arguments.rounds + 1):
        drawn = [members_of(fabric, arguments.groups, arguments.members) for fabric in fabrics]
        for what, kind in (("join", JOIN), ("leave", LEAVE)):
            for first in range(0, len(drawn[0]), TURN):
                take_turn(
                    (what if round_number else "warm-up", "us"),
                    lambda place, first=first, kind=kind, drawn=drawn: heard_us(
                        fabrics[place], drawn[place][first : first + TURN], kind
                    ),
                )
            for fabric in fabrics:
                fabric.write()
            gc.collect()
    for fabric, reports in zip(fabrics, drawn, strict=True):
        heard_us(fabric, reports, JOIN)
        fabric.write()
    repairs = [repair_ms(fabric, fabric.random.sample(fabric.links, arguments.repairs)) for fabric in fabrics]
    for _ in range(arguments.repairs):
        take_turn(("repair of a link", "ms"), lambda place: next(repairs[place]))
        gc.collect()
    del turns["warm-up", "us"]
    return ratios_of(kinds, turns)


def ratios_of(
    kinds: tuple[str, ...], turns: dict[tuple[str, str], list[list[float]]]
) -> dict[tuple[str, str], list[float]]:
    """Return what turns took of each kind, and the median ratios; the fabrics of a turn are of these kinds."""
    plain, tagged = ([place for place, kind in enumerate(kinds) if kind == wanted] for wanted in (PLAIN, TAGGED))
    found: dict[tuple[str, str], list[float]] = {}
    for (what, unit), took in turns.items():
        for kind, places in ((PLAIN, plain), (TAGGED, tagged)):
            found[f"{what}, {kind}", unit] = [turn[place] for turn in took for place in places]
        for name, above, below in (
            (f"{PLAIN} / {TAGGED}", plain, tagged),
            (f"{PLAIN} / {PLAIN}", plain[:1], plain[1:]),
            (f"{TAGGED} / {TAGGED}", tagged[:1], tagged[1:]),
        ):
            ratios = [sum(turn[place] for place in above) / sum(turn[place] for place in below) for turn in took]
            found[f"{what}: {name}", ""] = [statistics.median(ratios)]
    return found


def memory(arguments: argparse.Namespace) -> list[Measurement]:
    """Return what a group takes with its members, in none and in one VLAN."""
    found = []
    for name, vlan_id in (("no VLAN", 0), ("VLAN 10", VLAN_ID)):
        fabric = in_one_vlan(SMALL_K, vlan_id)
        reports = members_of(fabric, arguments.groups, min(arguments.members, 8))
        events = [told(host, group, JOIN) for host, group in reports]
        gc.collect()
        tracemalloc.start()
        fabric.hear(events)
        fabric.write()
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        found.append(Measurement(f"memory of a group, {name}", "bytes", [held / arguments.groups]))
    return found


def counted(arguments: argparse.Namespace) -> list[Measurement]:
    """Return what a join and a repair take, in none and in one VLAN: the same whatever else the machine does.

    For a join these are bytecodes, and the functions that are called, those of C too; for a repair bytecodes. The
    more switches are on the way to a member, the more of a join is of switches without members.
    """
    found: dict[str, list[float]] = {}
    for vlan_id in (0, VLAN_ID):
        fabric = in_one_vlan(arguments.counted_k, vlan_id)
        for number in range(arguments.groups):
            fabric.feed_all(sent(fabric.hosts[number % len(fabric.hosts)], group_address(number)))
        reports = members_of(fabric, arguments.groups, min(arguments.members, 8))
        for kind in (JOIN, LEAVE):
            heard_us(fabric, reports, kind)
        events = [told(host, group, JOIN) for host, group in reports]
        fabric.profile = cProfile.Profile()
        fabric.hear(events)
        calls = sum(entry.callcount for entry in fabric.profile.getstats())
        found.setdefault("function calls of a join", []).append(calls / len(events))
        fabric.profile = None
        heard_us(fabric, reports, LEAVE)
        fabric.advance(SETTLE_S)
        bytecodes = tallied(lambda fabric=fabric, heard=events: fabric.hear(heard))[0]
        found.setdefault("bytecodes of a join", []).append(bytecodes / len(events))
        cut = fabric.random.sample(fabric.links, COUNTED_REPAIRS)
        bytecodes = tallied(lambda fabric=fabric, cut=cut: list(repair_ms(fabric, cut)))[0]
        found.setdefault("bytecodes of a link's failure, repair and return", []).append(bytecodes / len(cut))
    names = ("no VLAN", "VLAN 10")
    told_apart = [
        Measurement(f"{what}, {name}", "", [count])
        for what, counts in found.items()
        for name, count in zip(names, counts, strict=True)
    ]
    ratios = [
        Measurement(f"{what}: no VLAN / VLAN 10", "", [plain / tagged]) for what, (plain, tagged) in found.items()
    ]
    return told_apart + ratios


def many_vlans(arguments: argparse.Namespace) -> list[Measurement]:
    """Compare joins in many VLANs with as many in none, and look for entries where nobody needs them."""
    ids = range(1, arguments.vlans + 1)
    half = SMALL_K // 2
    port_count = SMALL_K * half * half
    of_port: dict[int, list[int]] = {number: [] for number in range(port_count)}
    for vlan_id in ids:
        for place in range(PORTS_PER_VLAN):
            of_port[(vlan_id + place * (1 + vlan_id // port_count % (port_count - 1))) % port_count].append(vlan_id)
    ends = Fabric(SMALL_K).edges
    entries = tuple(
        VlanEntry(PortVlans(None, frozenset(of_port[number])), ports=(SwitchPort(*end),))
        for number, end in enumerate(ends)
    )
    trunks = replace(POLICY, vlans=Vlans(entries=entries))

    def hosts_at(number: int, end: End) -> list[HostLearnt]:
        return [in_vlan(host_at(number, end), vlan_id) for vlan_id in of_port[number]]

    fabrics = {
        "no VLAN": Fabric(SMALL_K),
        f"{arguments.vlans} VLANs": Fabric(SMALL_K, policy=trunks, hosts_at=hosts_at),
    }
    work = [
        (number, vlan_id, group)
        for place in range(GROUPS_PER_VLAN)
        for number, vlan_ids in of_port.items()
        for vlan_id in vlan_ids
        for group in (bytes((239, 2 + place, vlan_id >> 8, vlan_id & 255)),)
    ]
    samples: dict[str, list[float]] = {name: [] for name in fabrics}
    size = max(1, len(work) // 20)
    gc.freeze()
    for first in range(0, len(work), size):
        for name, fabric in fabrics.items():
            has_vlans = fabric.multicast.vlan_ports.is_used
            reports = [
                (in_vlan(host_at(number, ends[number]), vlan_id if has_vlans else 0), group)
                for number, vlan_id, group in work[first : first + size]
            ]
            samples[name].append(heard_us(fabric, reports, JOIN))
            fabric.write()
    plain, tagged = samples.values()
    needless, held = entries_without_need(fabrics[f"{arguments.vlans} VLANs"])
    return [
        *(Measurement(f"join, {arguments.vlans * GROUPS_PER_VLAN} groups in {name}", "us", found)
          for name, found in samples.items()),
        Measurement("join: VLANs / no VLAN", "", [b / a for a, b in zip(plain, tagged, strict=True)]),
        Measurement("entries with a VLAN id, all switches", "", [float(held)]),
        Measurement("entries at switches without a port or tree of their VLAN", "", [float(needless)]),
    ]  # fmt: skip


def _dpids(tree: Tree) -> Iterable[Any]:
    return tree.nodes()


def entries_without_need(fabric: Fabric) -> tuple[int, int]:
    """Return how many entries match a VLAN of which their switch has no port and no tree, and how many match one."""
    core = fabric.multicast
    needed: dict[int, set[int]] = {}
    for dpid in core.fabric.switches():
        for vlan_id in core.vlan_ports.at(dpid):
            needed.setdefault(vlan_id, set()).add(dpid)
    for name in core.plane.groups:
        for tree in core.plane.islands.trees(name):
            needed.setdefault(domain_of(name), set()).update(_dpids(tree))
    needless = held = 0
    for dpid in core.fabric.switches():
        for key in core.installer.installed(dpid):
            if key.match.vlan_id is not None:
                held += 1
                needless += dpid not in needed.get(key.match.vlan_id, ())
    return needless, held


def registered(arguments: argparse.Namespace) -> list[Measurement]:
    """Compare receivers of many VLANs that are registered with a source VLAN with a sender in each of theirs."""
    receivers = frozenset(range(1, arguments.receiver_vlans + 1))
    ends = Fabric(arguments.k).edges
    sender = host_at(0, ends[0])

    def vlan_at(number: int) -> int:
        return 1 + number % arguments.receiver_vlans

    ports = [VlanEntry(PortVlans(vlan_at(number), frozenset()), ports=(SwitchPort(*end),))
             for number, end in enumerate(ends) if number]  # fmt: skip

    def fabric_of(at_sender: PortVlans, registrations: Registrations) -> Fabric:
        first = VlanEntry(at_sender, ports=(SwitchPort(*ends[0]),))
        limits = replace(POLICY.limits, unknown_packets_per_second_per_port=1e6, senders_per_port=65536)
        policy = replace(POLICY, limits=limits, vlans=Vlans(entries=(first, *ports)), registrations=registrations)

        def hosts_at(number: int, end: End) -> list[HostLearnt]:
            host = host_at(number, end)
            untagged = [] if at_sender.untagged is None else [at_sender.untagged]
            sends_in = {*untagged, *at_sender.tagged}
            return [in_vlan(host, vlan_id) for vlan_id in (sends_in if not number else (vlan_at(number),))]

        return Fabric(arguments.k, policy=policy, hosts_at=hosts_at)

    line = Registration(SOURCE_VLAN, (parse_prefix("239.1.0.0/16"),), receivers)
    one, each = "registered", f"a sender in each of {len(receivers)} VLANs"
    sends_in = {one: (SOURCE_VLAN,), each: tuple(sorted(receivers))}
    fabrics = {
        one: fabric_of(PortVlans(SOURCE_VLAN, frozenset()), Registrations((line,))),
        each: fabric_of(PortVlans(None, receivers), Registrations()),
    }
    samples: dict[str, list[float]] = {}
    for number in range(arguments.groups):
        for name, fabric in fabrics.items():
            fabric.feed_all(*(sent(in_vlan(sender, vlan_id), group_address(number)) for vlan_id in sends_in[name]))
    gc.freeze()
    for number in range(arguments.groups):
        group = group_address(number)
        places = fabrics[one].random.sample(range(1, len(ends)), REGISTERED_MEMBERS)
        reports = [(in_vlan(host_at(place, ends[place]), vlan_at(place)), group) for place in places]
        for name, fabric in list(fabrics.items())[:: 1 if number % 2 else -1]:
            samples.setdefault(f"join, {name}", []).append(heard_us(fabric, reports, JOIN))
            fabric.write()
            crossed = Counter[End]()
            for vlan_id in sends_in[name]:
                crossed.update(crossings(fabric, in_domain(group, vlan_id), ends[0]))
            samples.setdefault(f"copies on the busiest link, {name}", []).append(float(max(crossed.values())))
            samples.setdefault(f"copies on all links, {name}", []).append(float(crossed.total()))
    return [Measurement(name, "us" if name.startswith("join") else "", found) for name, found in samples.items()]


def crossings(fabric: Fabric, name: bytes, start: End) -> Counter[End]:
    """Follow a packet of a group from a port to hosts by the entries; return how often it went out of each trunk."""
    far = {}
    for link in fabric.links:
        one, other = (link.dpid_a, link.port_a), (link.dpid_b, link.port_b)
        far |= {one: other, other: one}
    entries = fabric.multicast.plane.groups[name].rules
    crossed, waiting = Counter[End](), [start]
    while waiting:
        dpid, in_port = waiting.pop()
        for entry in entries.get(dpid, ()):
            if entry.key.table != VLAN_FORWARD:
                continue
            for action in entry.actions:
                if not isinstance(action, Output):
                    continue
                end = (dpid, action.port_no)
                if end in far and end != (dpid, in_port):
                    crossed[end] += 1
                    waiting.append(far[end])
    return crossed


PARTS = {
    "counted": counted,
    "memory": memory,
    "one-vlan": one_vlan,
    "many-vlans": many_vlans,
    "registered": registered,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, default=8)
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--processes", type=int, default=9)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repairs", type=int, default=15)
    parser.add_argument("--parts", type=names_of(PARTS), default=list(PARTS), help="comparisons; all by default")
    parser.add_argument("--counted-k", type=int, default=SMALL_K, help="k of the fat tree in which work is counted")
    parser.add_argument("--vlans", type=int, default=4000)
    parser.add_argument("--receiver-vlans", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if "registered" in arguments.parts and arguments.k**3 // 4 <= REGISTERED_MEMBERS:
        parser.error(f"--k: the part `registered` has {REGISTERED_MEMBERS} members, each at a port of its own")
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    found = [one for part in arguments.parts for one in PARTS[part](arguments)]
    report(found, as_json=arguments.json, source=Path(__file__).name)


if __name__ == "__main__":
    main()
