"""How long a fabric is without a leader: from the end of one to a join served by the next, with real processes.

    python benchmarks/cluster_take_over.py [--runs 10] [--members 3] [--ending kill|stop|end] [--json]
                                           [--framework os-ken|ryu] [--store-too] [--apart 62]
                                           [--old-switches s3]

Three switches in a ring under Open vSwitch, one etcd, all on this machine, in a network of their own (as root). A
host joins at the moment at which the leader ends; packets of a stream that runs meanwhile are counted at a
member of before. Who ended takes part again before the next run. With `--store-too` there are three servers of etcd,
and the one that leads them is killed at the same moment. After two changes within a minute elections wait: runs that
are further `--apart`, in seconds, show what a change takes without that. `--old-switches` speak OpenFlow 1.0; the
host that joins is at s3.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from measure import Measurement, report

from apps.emulation.cluster import EmulatedCluster, EtcdServer
from apps.emulation.controller import FRAMEWORKS
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from apps.emulation.take_over import Ending, TakeOverBench, TakeOverOutcome
from topology.graph import Graph, NodeKind

GROUP = "239.1.1.1"
RATE_BPS = 4e6


def ring() -> Graph:
    graph = Graph()
    for name in ("s1", "s2", "s3"):
        graph.add_node(name, NodeKind.TOR)
    for one, other in (("s1", "s2"), ("s2", "s3"), ("s1", "s3")):
        graph.add_link(one, other)
    for number in range(1, 7):
        graph.add_node(f"h{number}", NodeKind.HOST)
        graph.add_link(f"s{(number + 1) // 2}", f"h{number}")
    return graph


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--ending", type=Ending, choices=list(Ending), default=Ending.KILL)
    parser.add_argument("--framework", choices=FRAMEWORKS, default="os-ken")
    parser.add_argument("--apart", type=float, default=0.0)
    parser.add_argument("--store-too", action="store_true")
    parser.add_argument("--old-switches", nargs="*", choices=("s1", "s2", "s3"), default=[])
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    store = EtcdServer(3 if args.store_too else 1)
    found: list[TakeOverOutcome] = []
    with tempfile.TemporaryDirectory() as directory:
        cluster = EmulatedCluster(
            Path(directory), CONTROLLER_PORT, args.members, framework=args.framework, store=store
        )
        with EmulatedFabric(
            ring(),
            controller=cluster,
            more_controller_ports=cluster.ports[1:],
            old_switches=args.old_switches,
        ) as fabric:
            bench = TakeOverBench(cluster, fabric, GROUP, ("h1", "h3", "h5"), RATE_BPS)
            bench.begin()
            for _ in range(args.runs):
                server = store.wait_leading() if args.store_too else None
                found.append(bench.run(args.ending, server))
                if server is not None:
                    server.launch()
                bench.recover(found[-1].former)
                time.sleep(args.apart)
    measurements = [
        Measurement(f"leader {args.ending}: until a join was served", "s", [each.served_s for each in found]),
        Measurement("packets sent meanwhile", "", [each.sent for each in found]),
        Measurement("packets lost", "", [each.lost for each in found]),
        Measurement("packets received twice", "", [each.duplicated for each in found]),
    ]
    report(measurements, as_json=args.json, source="cluster_take_over")


if __name__ == "__main__":
    main()
