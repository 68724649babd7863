"""A live controller and a simulated fat tree: what it finds, what packets meet in the tables, and what it repairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from fabric_simulator.failures import lasting
from fabric_simulator.run import LiveRun, live_run

from apps.simulated_fabric.hosts import SimulatedHost
from apps.simulated_fabric.table import HeldTable, Key
from topology.generators import make

MEMBERS = 5
GROUPS = [bytes((239, 1, 1, number)) for number in range(4)] + [b"\xff\x15" + bytes(13) + b"\x01"]
TIMEOUT_S = 60.0


@pytest.fixture(scope="module", params=[("os-ken", 4, 1), ("ryu", 8, 4)], ids=["os-ken-4", "ryu-8"])
def run(request: pytest.FixtureRequest) -> Iterator[LiveRun]:
    framework, k, check_s = request.param
    pytest.importorskip(framework.replace("-", "_"))
    policy = f"check: {{interval_s: {check_s}}}\n"
    with live_run(make("fattree", {"k": k}), framework=framework, policy=policy, timeout_s=TIMEOUT_S) as made:
        made.fabric.connect()
        made.wait_found()
        made.wait_in_sync()
        made.speak(made.hosts.all)
        made.wait_quiet()
        yield made


@pytest.fixture(scope="module")
def senders(run: LiveRun) -> dict[bytes, SimulatedHost]:
    """Each group's sender; the groups have members all over the fabric, and hosts have spoken to each other."""
    chosen = {group: run.random.choice(run.hosts.all) for group in GROUPS}
    for group, sender in chosen.items():
        run.hosts.send(sender, group)
        for _ in range(MEMBERS):
            member = run.new_member(group)
            assert member is not None
            run.hosts.join(member, group)
    run.wait_quiet()
    for host, other in pairs(run):
        run.hosts.send_to(host, other)
    told = [(other.end, other.ip) for _, other in pairs(run)]
    assert run.fabric.run_until(lambda: all(run.hosts.delivered[each] for each in told), TIMEOUT_S)
    run.wait_quiet()
    return chosen


def pairs(run: LiveRun) -> list[tuple[SimulatedHost, SimulatedHost]]:
    """Each host with another one."""
    hosts = run.hosts.all
    made = [(host, hosts[(number * 7 + 3) % len(hosts)]) for number, host in enumerate(hosts)]
    return [(host, other) for host, other in made if host is not other]


def packets_reach_members_alone(run: LiveRun, senders: dict[bytes, SimulatedHost]) -> None:
    """Each member gets each packet once, and nobody else does; hosts reach each other."""
    run.hosts.delivered.clear()
    for group, sender in senders.items():
        run.hosts.send(sender, group)
    wanted = Counter(
        (member.end, group) for group in GROUPS for member in run.members[group] if member is not senders[group]
    )
    for host, other in pairs(run):
        run.hosts.send_to(host, other)
        wanted[other.end, other.ip] += 1
    assert run.hosts.delivered == wanted
    assert run.watch.circles == 0


def links_in_use(run: LiveRun) -> list[tuple[int, int]]:
    """A port of each link between switches without hosts that carries one of the groups."""
    groups = run.answer(run.questions.ask({"show": "groups"}))
    used = {frozenset(link) for group in groups for link in group["links"]}
    edges = set(run.fabric.edge_switches())
    return [
        end
        for end, far in sorted(run.fabric.links.items())
        if frozenset((end[0], far[0])) in used and end[0] not in edges and far[0] not in edges
    ]


def test_every_switch_link_and_port_is_found_and_every_check_finds_the_tables_right(run: LiveRun) -> None:
    status = run.status()
    assert run.found(status)
    assert (status["ready"], status["in_sync"], status["hosts"]) == (True, True, len(run.hosts.all))
    before = status["counters"].get("checks", 0)
    while run.status()["counters"].get("checks", 0) < before + len(run.fabric.switches):
        run.fabric.run_for(0.1)
    assert not {"entries-missing", "entries-altered", "entries-extra"} & run.status()["counters"].keys()
    assert run.fabric.lost_connections == 0


def test_members_are_served_at_their_ports_by_what_the_tables_say(
    run: LiveRun, senders: dict[bytes, SimulatedHost]
) -> None:
    punts = run.watch.packet_ins
    packets_reach_members_alone(run, senders)
    assert run.watch.packet_ins == punts, "what the controller delivered first has entries"


def test_who_leaves_is_served_no_more(run: LiveRun, senders: dict[bytes, SimulatedHost]) -> None:
    group = GROUPS[0]
    leaver = run.members[group].pop()
    edits = run.watch.follow(group)
    run.hosts.leave(leaver, group)
    assert run.fabric.run_until(lambda: edits.count and edits.settled, TIMEOUT_S)
    run.watch.unfollow(group)
    run.wait_quiet()
    packets_reach_members_alone(run, senders)


@pytest.mark.parametrize("silent", [False, True], ids=["told", "silent"])
def test_failed_links_are_repaired_and_come_back(
    run: LiveRun, senders: dict[bytes, SimulatedHost], silent: bool
) -> None:
    end = links_in_use(run)[0]
    run.fabric.set_link(end, False, silent=silent)
    run.wait_found(missing_links=1)
    run.wait_in_sync()
    run.wait_quiet()
    packets_reach_members_alone(run, senders)
    run.fabric.set_link(end, True)
    run.wait_found()
    run.wait_quiet()
    packets_reach_members_alone(run, senders)


def test_a_switch_that_dies_is_done_without_and_filled_again(
    run: LiveRun, senders: dict[bytes, SimulatedHost]
) -> None:
    dpid = links_in_use(run)[0][0]
    held = len(run.fabric.switches[dpid].table.held)
    run.fabric.kill(dpid)
    cut = len(run.fabric.switches[dpid].far)
    run.wait_found(missing_links=cut, missing_switches=1)
    run.wait_quiet()
    packets_reach_members_alone(run, senders)
    run.fabric.revive(dpid, empty=True)
    run.wait_found()
    run.wait_in_sync()
    run.wait_quiet()
    assert len(run.fabric.switches[dpid].table.held) > held / 2
    packets_reach_members_alone(run, senders)


def test_entries_removed_by_somebody_else_are_put_back(run: LiveRun, senders: dict[bytes, SimulatedHost]) -> None:
    table = run.fabric.switches[links_in_use(run)[0][0]].table
    before = said(table)
    for key in list(table.held):
        table.delete(key)
    assert run.fabric.run_until(lambda: said(table) == before, TIMEOUT_S)
    run.wait_in_sync()
    run.wait_quiet()
    packets_reach_members_alone(run, senders)


def said(table: HeldTable) -> dict[Key, tuple[int, bytes]]:
    """Cookies and instructions of the entries that do not follow trees, which may move meanwhile."""
    return {key: (entry.cookie, entry.instructions) for key, entry in lasting(table).items()}
