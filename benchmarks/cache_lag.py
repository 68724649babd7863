"""How long Open vSwitch sends by a former flow entry after it has confirmed another, live, as root.

    python benchmarks/cache_lag.py [--rounds 100] [--flows 1 2000]

Open vSwitch forwards from a cache of what its entries said, and its revalidators bring the cache up to date after the
entries. One host sends packets that tell when they were sent; one entry sends them to one of two other hosts, and is
changed to the other one by `ovs-ofctl`, which returns after the barrier. The lag of a change is the time from then on
to when the last packet was sent that took the former way: what a pause must outlast before that way is taken down.
`--flows` are conversations that the cache knows besides, by UDP ports that an entry of each has it tell apart.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import struct
import threading
import time
from contextlib import ExitStack

from measure import print_table

from apps.emulation.namespace import network_of
from apps.emulation.network import EmulatedFabric
from topology.generators import make

PORT, PACKET_S, PAUSE_S = 5001, 0.0005, 0.5
STAMP = struct.Struct("!d")
FIRST_SOURCE = 20_000
FLOW_EVERY_S = 2.0
"""How often each further conversation sends, so that the cache keeps it."""


class Receiver(threading.Thread):
    """Notes when the last packet was sent that a host received."""

    def __init__(self, fabric: EmulatedFabric, host: str) -> None:
        super().__init__(daemon=True)
        self.last_s = 0.0
        self.count = 0
        with network_of(fabric.pid(host)):
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
            self._socket.bind((fabric.interface(host), 0))

    def run(self) -> None:
        while True:
            frame = self._socket.recv(256)
            if len(frame) >= 50 and frame[23] == 17 and frame[34:36] == struct.pack("!H", PORT):
                self.last_s = max(self.last_s, STAMP.unpack_from(frame, 42)[0])
                self.count += 1


def send(fabric: EmulatedFabric, host: str, to: str, flows: int, over: threading.Event) -> None:
    """Have a host send stamped packets, and now and then one of each further conversation."""
    with ExitStack() as stack:
        with network_of(fabric.pid(host)):
            sender = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            sender.bind((fabric.address(host), PORT))
            others = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP))
        address = fabric.address(to)
        sender.connect((address, PORT))
        turn, due_s = 0, time.monotonic()
        each_turn = flows * PACKET_S / FLOW_EVERY_S
        while not over.is_set():
            sender.send(STAMP.pack(time.monotonic()))
            for number in range(int(turn * each_turn), int((turn + 1) * each_turn)):
                header = struct.pack("!4H", FIRST_SOURCE + number % flows, PORT + 1, 8, 0)
                others.sendto(header, (address, 0))
            turn, due_s = turn + 1, due_s + PACKET_S
            time.sleep(max(0.0, due_s - time.monotonic()))


def lags_s(rounds: int, flows: int) -> tuple[list[float], int]:
    """Return the lag of each change, in seconds, and how many packets were received in all."""
    with EmulatedFabric(
        make("leaf-spine", {"leaves": 1, "spines": 1, "hosts_per_leaf": 3}), controller_port=None
    ) as fabric:
        (leaf,) = map(str, fabric.graph.neighbours("h1"))
        ports = {host: fabric.graph.port(leaf, host) for host in ("h1", "h2", "h3")}
        entries = (f"priority=5,udp,tp_src={FIRST_SOURCE + number},actions=drop\n" for number in range(flows))
        fabric.ofctl("add-flows", leaf, "-", text="".join(entries))
        receivers = {host: Receiver(fabric, host) for host in ("h2", "h3")}
        neighbour = (fabric.address("h2"), "lladdr", "02:00:00:00:00:fe", "dev", fabric.interface("h1"))
        fabric.run_on("h1", "ip", "neigh", "replace", *neighbour)
        for receiver in receivers.values():
            receiver.start()
        over = threading.Event()
        sender = threading.Thread(target=send, args=(fabric, "h1", "h2", flows, over))
        _point(fabric, leaf, ports, "h2")
        sender.start()
        found = []
        for number in range(rounds):
            former, new = ("h2", "h3") if number % 2 == 0 else ("h3", "h2")
            time.sleep(PAUSE_S)
            confirmed_s = _point(fabric, leaf, ports, new)
            time.sleep(PAUSE_S)
            found.append(max(0.0, receivers[former].last_s - confirmed_s))
        over.set()
        sender.join()
        return found, sum(receiver.count for receiver in receivers.values())


def _point(fabric: EmulatedFabric, leaf: str, ports: dict[str, int], to: str) -> float:
    """Have what the first host sends go to another, and return when that was confirmed."""
    fabric.ofctl("add-flow", leaf, f"priority=1,udp,in_port={ports['h1']},actions=output:{ports[to]}")
    return time.monotonic()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100, help="changes of the entry")
    parser.add_argument("--flows", type=int, nargs="+", default=[0, 500], help="conversations in the cache besides")
    args = parser.parse_args()
    rows = []
    for flows in args.flows:
        lags, count = lags_s(args.rounds, flows)
        late = [sum(lag > pause_s for lag in lags) for pause_s in (0.01, 0.05, 0.1, 0.2)]
        rows.append((flows, count, f"{1000 * statistics.median(lags):.1f}", f"{1000 * max(lags):.1f}", *late))
    head = ("flows", "packets", "median ms", "most ms", "> 10 ms", "> 50 ms", "> 100 ms", "> 200 ms")
    print_table(head, rows)
    print(f"{args.rounds} changes each; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
