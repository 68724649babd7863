"""A simulated fabric of OpenFlow 1.3 switches that connects to a controller which runs already.

    python benchmarks/serve_fabric.py --topology fattree --set k=8 --port 6653
    python benchmarks/serve_fabric.py --switches 2084 --ports 48        # switches without cables, to load a monitor

Runs until it is ended; switches connect again when they lose their connection. Counters of ports rise with time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fabric_arguments import add_fabric_arguments, fabric_of

from apps.simulated_fabric.fabric import SimulatedFabric
from apps.simulated_fabric.hosts import SimulatedHosts
from apps.simulated_fabric.lone import unconnected_switches
from topology.graph import Graph

LONGEST_S = 3600.0


def serve(graph: Graph, address: tuple[str, int], speak: bool) -> None:
    """Connect all switches, say so on standard output, and go on until the process is ended."""
    fabric = SimulatedFabric(graph, address)
    hosts = SimulatedHosts(fabric)
    fabric.connect()
    count = len(fabric.switches)
    while fabric.connected_count < count:
        fabric.turn()
    print(json.dumps({"connected": count}), flush=True)
    if speak:
        fabric.run_for(2.0)
        for host in hosts.all:
            hosts.speak(host)
            fabric.turn(0.0)
    while True:
        fabric.run_for(LONGEST_S)


@contextmanager
def served_switches(switches: int, ports: int, port: int) -> Iterator[subprocess.Popen[str]]:
    """Run switches without cables in a process of their own, connected to a controller on this machine."""
    command = [sys.executable, str(Path(__file__).resolve()), "--switches", str(switches), "--ports", str(ports)]
    with subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["connected"] == switches
            yield process
        finally:
            process.kill()


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_fabric_arguments(parser)
    parser.add_argument("--switches", type=int, help="so many switches without cables instead")
    parser.add_argument("--ports", type=int, default=48, help="of each of them (default: %(default)s)")
    parser.add_argument("--host", default="127.0.0.1", help="where the controller listens (default: %(default)s)")
    parser.add_argument("--port", type=int, default=6653, help="and on which TCP port (default: %(default)s)")
    parser.add_argument("--speak", action="store_true", help="have hosts announce themselves after two seconds")
    arguments = parser.parse_args()
    try:
        if arguments.switches is None:
            graph = fabric_of(arguments)
        else:
            graph = unconnected_switches(range(1, arguments.switches + 1), arguments.ports)
    except (OSError, ValueError) as fault:
        parser.error(str(fault))
    serve(graph, (arguments.host, arguments.port), arguments.speak)


if __name__ == "__main__":
    main()
