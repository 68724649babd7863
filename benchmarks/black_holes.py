"""How long hosts wait for a join while what is outside of the controller swallows all that is sent to it.

    sudo python benchmarks/black_holes.py [--controller vsrt-os-ken] [--parts webhook,syslog] [--joins 250]
        [--turns 12] [--json]

Each part is something outside that the policy names: the receiver of alarms, the database of switches' processor
times, the one of queues, the receiver of syslog, each by its address and by a name, and all together. Three
controllers run beside each other in a network of its own: `hole`, where packets to that address, or questions for
that name, vanish; `refused`, where it is an address of this machine at which nobody listens, so that each attempt
ends at once; and `none`, which is told of nothing outside. Storms of joins are played against the three in turn, in
another order each time. A ratio is that of the 99th percentiles of storms of one turn; "all turns" has the joins of
all storms as one, and its spread is that of turns drawn anew from those that were played. `refused, to none` says
what naming something costs, and how far storms alike differ.
"Waits seen" is for how many answers from there the controller was seen to wait after each storm.

A part takes about 20 s and 4 s a turn.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from ipaddress import ip_address
from pathlib import Path
from socket import AF_INET, AF_INET6, SOCK_DGRAM, socket

import numpy as np
from controllers import OPEN_POLICY
from measure import Measurement, names_of, report
from played_storms import QUICK_LEAVES, StormBench, settle_together

from apps.emulation.namespace import private_network

HOLE, NAME = "192.0.2.1", "outside.example"
"""Where all that is outside leads to (RFC 5737), and a name that no server tells the address of (RFC 2606)."""

NOBODY = "127.0.0.9"
"""Of this machine, where nobody listens."""

EXPECTED = "topology: {switches: [0xdead]}\n"
"""A switch that never comes, so that there is an alarm to be told of all the while."""

WEBHOOK = f"{EXPECTED}alarms: {{start_grace_s: 0, webhook: {{url: 'http://@/', timeout_s: 5, attempts: 100}}}}\n"
DATABASE = "ovsdb: 'tcp:@:6640'"
SYSLOG = "syslog: {enabled: true, target: '@:514', least: info}"
QUEUES = "queues: {mode: static, ovsdb: ['tcp:@:6641']}\n"

PARTS = {
    "webhook": WEBHOOK,
    "database": f"monitor: {{{DATABASE}}}\n",
    "queues": QUEUES,
    "syslog": f"monitor: {{{SYSLOG}}}\n",
    "all": f"{WEBHOOK}monitor: {{{DATABASE}, {SYSLOG}}}\n{QUEUES}",
}
"""What the policy says, by part; ``@`` stands for an address or a name."""

BY_NAME = " by name"
KNOWN_PARTS = (*PARTS, *(part + BY_NAME for part in PARTS))
DEFAULT_PARTS = (*PARTS, "all" + BY_NAME)
DRAWS = 500

REST_S = 0.05
"""How long switches answer what they were asked while others had their storm."""

APPS = ("multicast", "unicast", "monitor", "queues")
NONE, REFUSED, SWALLOWED = CONTENDERS = ("none", "refused", "hole")


@contextmanager
def black_hole() -> Iterator[None]:
    """Be in a network in which everything but loopback vanishes without an answer, questions for names too."""
    with private_network(), ExitStack() as stack:
        for line in (
            "link add hole type veth peer name end",
            "link set hole up",
            "link set end up",
            "address add 192.0.2.2/24 dev hole",
            f"neighbour add {HOLE} lladdr 02:00:00:00:00:01 dev hole nud permanent",
            f"route add default via {HOLE}",
        ):
            subprocess.run(["ip", *line.split()], check=True)
        for server in name_servers():
            family = AF_INET if ip_address(server).version == 4 else AF_INET6
            if not ip_address(server).is_loopback:
                subprocess.run(["ip", "address", "add", server, "dev", "lo"], check=True)
            silent = stack.enter_context(socket(family, SOCK_DGRAM))
            silent.bind((server, 53))
        yield


def name_servers() -> Sequence[str]:
    """Return the addresses that this machine asks for names."""
    lines = [line.split() for line in Path("/etc/resolv.conf").read_text().splitlines()]
    return [words[1] for words in lines if len(words) > 1 and words[0] == "nameserver"]


def main() -> int:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--controller", choices=("vsrt", "vsrt-os-ken"), default="vsrt-os-ken")
    parser.add_argument("--parts", type=names_of(KNOWN_PARTS), default=list(DEFAULT_PARTS), metavar="NAMES")
    parser.add_argument("--joins", type=int, default=250)
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    measurements: list[Measurement] = []
    with black_hole():
        for part in args.parts:
            measurements += _measured(part, args.controller, args.joins, args.turns)
    report(measurements, as_json=args.json, source=f"{args.controller}, {args.joins} joins a storm")
    return 0


def _policies(part: str) -> dict[str, str]:
    text = PARTS[part.removesuffix(BY_NAME)]
    is_name = part.endswith(BY_NAME)
    named = {
        NONE: "",
        REFUSED: text.replace("@", "localhost" if is_name else NOBODY),
        SWALLOWED: text.replace("@", NAME if is_name else HOLE),
    }
    return {contender: OPEN_POLICY + QUICK_LEAVES + policy for contender, policy in named.items()}


def _measured(part: str, name: str, joins: int, turns: int) -> Sequence[Measurement]:
    took_ms: dict[str, list[list[float]]] = {contender: [] for contender in CONTENDERS}
    waits: list[float] = []
    with ExitStack() as stack:
        benches = {contender: StormBench(stack, name, policy, APPS) for contender, policy in _policies(part).items()}
        settle_together(list(benches.values()))
        for turn in range(turns + 1):
            for number in range(len(CONTENDERS)):
                contender = CONTENDERS[(turn + number) % len(CONTENDERS)]
                benches[contender].set_carrier(bool(turn % 2))  # so that there is something to tell
                states = benches[contender].join(joins, turn)
                if turn:  # the first one fills what later ones find
                    taken_s = [took_s for state in states if (took_s := state.took_s) is not None]
                    took_ms[contender].append([1000 * took_s for took_s in taken_s])
                benches[contender].leave_all()
                for bench in benches.values():
                    bench.rest(REST_S)
            waits.append(_waiting())
    p99_ms = {
        contender: [float(np.percentile(storm, 99)) for storm in storms] for contender, storms in took_ms.items()
    }
    draws = np.random.default_rng(1).integers(0, turns, (DRAWS, turns))
    drawn_ms = {
        contender: [float(np.percentile(np.concatenate([storms[turn] for turn in draw]), 99)) for draw in draws]
        for contender, storms in took_ms.items()
    }
    found = [Measurement(f"{part}: p99, {contender}", "ms", p99_ms[contender]) for contender in CONTENDERS]
    for one, other in ((SWALLOWED, REFUSED), (SWALLOWED, NONE), (REFUSED, NONE)):
        for what, of_ms in (("", p99_ms), (", all turns", drawn_ms)):
            ratios = [this / that for this, that in zip(of_ms[one], of_ms[other], strict=True)]
            found.append(Measurement(f"{part}: {one}, to {other}{what}", "ratio", ratios))
    return (*found, Measurement(f"{part}: waits seen", "connections", waits))


def _waiting() -> float:
    """Return how many connections, and questions for names, wait for an answer now."""
    told = subprocess.run(["ss", "-Htuan"], capture_output=True, text=True, check=True).stdout
    peers = [line.split()[5] for line in told.splitlines()]
    return float(sum(peer.startswith(f"{HOLE}:") or peer.endswith(":53") for peer in peers))


if __name__ == "__main__":
    raise SystemExit(main())
