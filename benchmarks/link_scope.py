"""What flooding costs by the size of the fabric: a member of a link-scope group, a port, and all of it from nothing.

    python benchmarks/link_scope.py [--sizes 4 8 16] [--rounds 20] [--json]

Fat trees of k ports per switch; 16 groups have members already. Told is the least processor time of a round.
"""

from __future__ import annotations

import argparse
import json
import time

from controller.multicast.flood import FloodPlane
from controller.multicast.switch_ports import SwitchPorts
from controller.rules.installer import Installer
from controller.rules.pipeline import MULTICAST_TAG, OPENFLOW_1_3
from topology.generators import make
from topology.graph import Graph

GROUPS = [b"\xff\x02" + bytes(12) + bytes((1, number)) for number in range(16)]


def fabric(k: int) -> tuple[Graph, dict[int, SwitchPorts]]:
    """Return the switches of a fat tree, numbered, and what flooding knows of their ports."""
    named = make("fattree", {"k": k})
    number = {name: named.attributes(name)["dpid"] for name in named.switches()}
    graph = Graph()
    edges: dict[int, list[int]] = {dpid: [] for dpid in number.values()}
    for name, dpid in number.items():
        graph.add_node(dpid, named.kind(name))
    for link in named.links():
        if link.u in number and link.v in number:
            graph.add_link(number[link.u], number[link.v], link.u_port, link.v_port)
        else:
            switch, port_no = (link.u, link.u_port) if link.u in number else (link.v, link.v_port)
            assert port_no is not None
            edges[number[switch]].append(port_no)
    return graph, {dpid: SwitchPorts(OPENFLOW_1_3, tuple(sorted(ports)), ()) for dpid, ports in edges.items()}


def _refresh(
    plane: FloodPlane, graph: Graph, switches: dict[int, SwitchPorts], touched: tuple[int, ...] | None = None
) -> None:
    plane.refresh(graph, switches, 0.0, touched)
    while plane.is_behind:
        plane.advance(0.0)


def measure(k: int, rounds: int) -> dict[str, float]:
    """Return milliseconds of processor time for one member more, and for all entries anew."""
    graph, switches = fabric(k)
    places = [(dpid, port_no) for dpid, ports in switches.items() for port_no in ports.edges]

    def plane() -> FloodPlane:
        made = FloodPlane(Installer(MULTICAST_TAG))
        _refresh(made, graph, switches)
        for group in GROUPS:
            made.interest_changed(*places[0], group, True, 0.0)
        return made

    member: list[float] = []
    port: list[float] = []
    anew: list[float] = []
    kept = plane()
    for number in range(rounds):
        place = places[1 + number % (len(places) - 1)]
        start = time.process_time()
        kept.interest_changed(*place, GROUPS[number % len(GROUPS)], True, 0.0)
        member.append(time.process_time() - start)
        dpid, port_no = place
        ports = switches[dpid]
        for changed in (ports._replace(edges=(), closed=(port_no,)), ports):
            switches[dpid] = changed
            start = time.process_time()
            _refresh(kept, graph, switches, (dpid,))
            port.append(time.process_time() - start)
        fresh = FloodPlane(Installer(MULTICAST_TAG))
        for group in GROUPS:
            fresh.interest_changed(*place, group, True, 0.0)
        start = time.process_time()
        _refresh(fresh, graph, switches)
        anew.append(time.process_time() - start)
    return {
        "switches": len(switches),
        "member_ms": 1e3 * min(member),
        "port_ms": 1e3 * min(port),
        "from_nothing_ms": 1e3 * min(anew),
    }


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = {k: measure(k, arguments.rounds) for k in arguments.sizes}
    if arguments.json:
        print(json.dumps(results))
        return
    for k, result in results.items():
        print(
            f"k={k:<3} {result['switches']:4.0f} switches: one member more {result['member_ms']:7.3f} ms, "
            f"a port of a switch {result['port_ms']:7.3f} ms, from nothing {result['from_nothing_ms']:8.2f} ms"
        )


if __name__ == "__main__":
    main()
