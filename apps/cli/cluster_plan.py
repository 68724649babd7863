"""`vsrt cluster plan`: the lines that make controllers and monitors known to switches of Open vSwitch."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from apps.cli.common import InputError, emit_json, read_topology
from controller.config.terms import parse_host_port

HELP = "print the lines of `ovs-vsctl set-controller` for switches: all controllers, and all or some of the monitors"

DEFAULT_PORT = 6653


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare switches, controllers and monitors."""
    parser.add_argument("switches", nargs="*", metavar="SWITCH", help="names of bridges")
    parser.add_argument("--topology", type=Path, metavar="FILE", help="the switches of a topology file")
    for what in ("controller", "monitor"):
        parser.add_argument(
            f"--{what}", action="append", default=[], metavar="ADDRESS[:PORT]", help=f"a {what} (port {DEFAULT_PORT})"
        )
    parser.add_argument(
        "--each", type=int, metavar="COUNT", help="monitors that each switch is to know, such as 3 (all of them)"
    )
    parser.add_argument("--tls", action="store_true", help="by TLS (ssl:, not tcp:)")


def run(args: argparse.Namespace) -> int:
    """Print a line for each switch."""
    switches = [*args.switches]
    if args.topology is not None:
        switches += sorted(map(str, read_topology(args.topology).graph.switches()))
    if not switches:
        raise InputError("SWITCH: name switches, or a topology file that has some (--topology)")
    controllers = [_target(text, "controller", args.tls) for text in args.controller]
    monitors = [_target(text, "monitor", args.tls) for text in args.monitor]
    if not controllers and not monitors:
        raise InputError("--controller, --monitor: name at least one address")
    if args.each is not None and not 1 <= args.each <= len(monitors):
        raise InputError(f"--each: {args.each} of {len(monitors)} monitors cannot be chosen")
    chosen = choose(switches, monitors, args.each)
    plan = {switch: [*controllers, *chosen[switch]] for switch in switches}
    if args.json:
        emit_json({"switches": plan})
    else:
        for switch, known in plan.items():
            print(" ".join(("ovs-vsctl set-controller", switch, *known)))
    return 0


def choose(switches: Sequence[str], monitors: Sequence[str], each: int | None) -> Mapping[str, list[str]]:
    """Return the monitors of each switch: all, or so many that each monitor has as many switches as any other.

    Which of those with equally few switches is drawn by the names, so that two switches seldom have all in common.
    """
    known: Counter[str] = Counter()
    chosen = {}
    for switch in switches:
        order = sorted(
            monitors, key=lambda monitor: (known[monitor], sha256(f"{switch} {monitor}".encode()).digest())
        )
        mine = order[: len(monitors) if each is None else each]
        known.update(mine)
        chosen[switch] = [monitor for monitor in monitors if monitor in mine]
    return chosen


def _target(text: str, what: str, tls: bool) -> str:
    has_port = text.count(":") == 1 or "]:" in text
    with_port = text if has_port else f"[{text.strip('[]')}]:{DEFAULT_PORT}"
    try:
        host, port = parse_host_port(with_port)
    except ValueError as error:
        raise InputError(f"--{what}: {text!r} is no ADDRESS or ADDRESS:PORT") from error
    host = f"[{host}]" if ":" in host else host
    return f"{'ssl' if tls else 'tcp'}:{host}:{port}"
