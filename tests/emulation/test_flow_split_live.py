"""One sender's flows over several trees of a hot group: they take different ways, and each packet arrives once."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.emulation.test_check_command_live import check, found
from topology.generators.draft import Draft
from topology.graph import Graph, NodeKind

pytestmark = pytest.mark.emulation

SPINE_BPS = 10e6
MEMBERS = ("h2", "h3")
FLOWS = range(1, 25)
POLICY = """\
version: 1
default: allow
discovery: {{link_capacity_bps: 10000000}}
multicast: {{querier: {{response_interval_s: 1, last_member_interval_s: 0.2}}}}
aliases: {{mode: {mode}, split: {split}, static: {{{group}: {count}}}}}
check: {{interval_s: 0}}
"""
OFF = POLICY.format(mode="off", split="sender", group="239.0.0.0/8", count=1)


@pytest.fixture(scope="module")
def bench() -> tuple[Graph, dict[str, Any]]:
    """A host at one leaf and two at others, joined by four spines that pass 10 Mbit/s each."""
    draft = Draft(100e6)
    leaves = [draft.switch(NodeKind.TOR) for _ in range(3)]
    spines = [draft.switch(NodeKind.AGGREGATION) for _ in range(4)]
    for leaf in leaves:
        draft.hosts(leaf, 1)
        for spine in spines:
            draft.link(leaf, spine, SPINE_BPS / 100e6)
    return draft.graph, {"capacities": True}


def give(live: Any, group: str, count: int, split: str = "flow") -> None:
    """Have the policy give a group so many aliases, and wait until its flows are on its trees."""
    mode = "static" if count else "off"
    live.set_policy(POLICY.format(mode=mode, split=split, group=group, count=max(count, 1)))
    live.controller.wait_until("groups", lambda groups: is_split(groups, group, count, split == "flow" and count > 0))
    live.wait_ready()


def is_split(groups: list[dict[str, Any]], group: str, count: int, divided: bool) -> bool:
    found = next((document for document in groups if document["group"] == group), None)
    if found is None or len(found["aliases"]) != count:
        return False
    has_parts = all(bool(tree["flow_parts"]) is divided for tree in (found, *found["aliases"]))
    are_divided = all(sender["divided"] is divided for sender in found["senders"])
    return has_parts and are_divided and all(alias["state"] == "bound" for alias in found["aliases"])


def start(live: Any, group: str, rate_bps: float) -> None:
    live.set_policy(OFF)
    live.join(group, *MEMBERS)
    for number in FLOWS:
        live.stream(number, "h1", group, rate_bps, source_port=4000 + number)


def uplinks(live: Any) -> dict[int, int]:
    """How many packets the sender's switch has sent to each spine, by port."""
    fabric = live.fabric
    (leaf,) = fabric.graph.neighbours("h1")
    spines = [node for node in fabric.graph.neighbours(leaf) if node in fabric.graph.switches()]
    found = {}
    for port_no in (fabric.graph.port(leaf, spine) for spine in spines):
        told = fabric.ofctl("dump-ports", leaf, str(port_no))
        found[port_no] = int(re.search(r"tx pkts=(\d+)", told)[1])
    return found


def assert_received_once(live: Any, group: str, phase: int) -> None:
    for member in MEMBERS:
        for number in FLOWS:
            live.assert_all_received(phase, f"{member} {group}", stream=number)


def spread(live: Any, group: str, phase: int) -> list[float]:
    """Return which share of the packets of a phase of all flows went to each spine, the least first.

    What switches send by themselves goes there too.
    """
    before = uplinks(live)
    live.send(phase, 1.0)
    assert_received_once(live, group, phase)
    sent = sum(live.fabric.sent()[str(number)]["phases"][str(phase)]["sent"] for number in FLOWS)
    return sorted((count - before[port_no]) / sent for port_no, count in uplinks(live).items())


def test_trees_come_and_go_under_flows_and_each_packet_arrives_once(live: Any, group: str) -> None:
    start(live, group, 0.1e6)
    live.fabric.send(1)
    for count, split in ((3, "flow"), (1, "flow"), (1, "sender"), (2, "flow"), (0, "flow")):
        give(live, group, count, split)
    live.halt()
    assert_received_once(live, group, 1)


def test_flows_of_one_sender_take_all_trees_and_all_together_one(live: Any, group: str) -> None:
    start(live, group, 0.2e6)
    live.halt()
    give(live, group, 3, "sender")
    *others, most = spread(live, group, 2)
    assert most > 0.9 and sum(others) < 0.13, "what the sender sends as a whole takes one tree"
    give(live, group, 3)
    least, *_, most = spread(live, group, 3)
    assert least > 0.04 and most < 0.83
    give(live, group, 1)
    *others, third, most = spread(live, group, 4)
    assert sum(others) < 0.13 and third > 0.3, "two trees, each with half of the parts"


def test_one_sender_passes_as_much_more_as_its_flows_find_trees(live: Any, group: str) -> None:
    """24 flows of 1.25 Mbit/s ask for three spines of 10 Mbit/s."""
    start(live, group, 1.25e6)
    live.halt()
    came = {}
    for phase, count in enumerate((0, 1, 3), 1):
        give(live, group, count)
        live.send(phase, 5.0)
        counts = [live.counts(phase, f"h2 {group}", number) for number in FLOWS]
        assert sum(twice for _, _, twice in counts) == 0
        came[count] = sum(received for _, received, _ in counts)
    assert came[1] / came[0] >= 1.6
    assert came[3] / came[0] >= 2.3


def wrong(live: Any) -> dict[tuple[str, int, str], int]:
    """How many entries of the controller are not as they shall be, by app, switch and kind."""
    return {key: count for key, count in found(check(live)[1]).items() if key[2] != "foreign"}


def test_check_finds_entries_of_parts_as_they_shall_be_and_what_was_altered(live: Any, group: str) -> None:
    start(live, group, 0.1e6)
    give(live, group, 3)
    document = live.document(group)
    assert [tree["flow_parts"] for tree in (document, *document["aliases"])] == [4, 4, 4, 4]
    fabric = live.fabric
    (leaf,) = fabric.graph.neighbours("h1")
    assert "symmetric_l3l4+udp,0,modulo_n,16,0,NXM_OF_ETH_DST[0..7]),resubmit(,4)" in fabric.ofctl("dump-flows", leaf)
    assert wrong(live) == {}
    hashed = "multipath(eth_src,0,modulo_n,16,0,NXM_OF_ETH_DST[0..7]),resubmit(,4),goto_table:2"
    fabric.ofctl(
        "mod-flows", leaf, f"table=1,ip,nw_dst={group},actions=set_field:03:4e:00:00:00:00->eth_dst,{hashed}"
    )
    fabric.ofctl("mod-flows", leaf, "table=4,dl_dst=03:4e:00:00:00:03,actions=drop")
    assert wrong(live) == {("multicast", fabric.dpid(leaf), "altered"): 2}
    assert check(live, "--repair", "--force")[0] == 0
    live.wait_ready()
    assert wrong(live) == {}


def test_a_controller_that_was_killed_divides_flows_again_and_no_packet_is_lost(live: Any, group: str) -> None:
    start(live, group, 0.1e6)
    give(live, group, 3)
    live.fabric.send(1)
    live.controller.kill()
    live.controller.start()
    live.controller.wait_until("groups", lambda groups: is_split(groups, group, 3, True), timeout_s=60)
    live.wait_ready()
    live.halt()
    assert_received_once(live, group, 1)
    assert wrong(live) == {}
