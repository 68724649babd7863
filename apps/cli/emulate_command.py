"""`vsrt emulate`: an experiment on an emulated fabric under a live controller, measured at every receiver."""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from apps.cli.common import InputError, OperationFailed, emit_json, emit_table
from apps.end_signals import raised_once

FRAMEWORKS = ("ryu", "os-ken")
OPENFLOW_VERSIONS = ("1.0", "1.3")
SHORTEST_S = {"duration_s": 0.1, "warmup_s": 0.0}
LONGEST_S = 3600.0
TITLES = ("group", "host", "sent", "received", "lost %", "twice", "Mbit/s", "first ms")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("scenario", metavar="avalanche24|SCENARIO.yaml", help="the article's experiment, or a file")
    parser.add_argument("--algorithm", default="vsrt", metavar="NAME", help="as of `vsrt tree` (default: vsrt)")
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="of groups, joins, traffic and trees (default: 1)"
    )
    parser.add_argument("--no-capacities", action="store_true", help="leave the links' capacities unenforced")
    parser.add_argument(
        "--duration-s", type=float, metavar="S", help="measured time (default: the scenario's, or 20)"
    )
    parser.add_argument(
        "--warmup-s", type=float, metavar="S", help="traffic before that (default: the scenario's, or 8)"
    )
    parser.add_argument(
        "--framework", choices=FRAMEWORKS, default="ryu", help="what runs the controller (default: ryu)"
    )
    parser.add_argument("--openflow", choices=OPENFLOW_VERSIONS, default="1.3", help="version (default: 1.3)")


def run(args: argparse.Namespace) -> int:
    """Run the experiment and print its result."""
    plan = _plan(args)
    if os.geteuid() != 0:
        raise OperationFailed("emulate needs root: it makes network namespaces")
    for tool in ("ovs-vswitchd", "mnexec", "ethtool", "tc"):
        if shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
            raise OperationFailed(f"{tool} is missing (Debian: openvswitch-switch, mininet, ethtool, iproute2)")
    if importlib.util.find_spec("mininet") is None:
        raise OperationFailed(f"this Python ({sys.executable}) lacks Mininet: pip install mininet==2.3.0.dev6")
    if args.framework == "ryu" and not Path(sys.executable).with_name("ryu-manager").exists():
        raise OperationFailed("this Python lacks Ryu: add --framework os-ken")
    from apps.emulation.experiment import Conditions, run_plan
    from apps.emulation.processes import EmulationError

    setting = Conditions(args.algorithm, args.seed, args.framework, args.openflow)
    try:
        with raised_once(KeyboardInterrupt):
            result = run_plan(plan, setting, _progress if sys.stderr.isatty() else lambda text: None)
    except EmulationError as error:
        raise OperationFailed(str(error)) from error
    if args.json:
        emit_json(result)
    else:
        _print(result)
    return 0


def _plan(args: argparse.Namespace) -> Any:
    from apps.emulation.plan import avalanche_plan
    from apps.emulation.scenario import ScenarioInvalid, load_scenario
    from controller.trees.algorithms import ALGORITHMS
    from topology.files import parse
    from topology.generators import make

    if args.algorithm not in ALGORITHMS:
        raise InputError(f"--algorithm: {args.algorithm!r} is none of {', '.join(ALGORITHMS)}")
    for name in SHORTEST_S:
        value = getattr(args, name)
        if value is not None and not SHORTEST_S[name] <= value <= LONGEST_S:
            option = name.replace("_", "-")
            raise InputError(f"--{option}: {value:g} is not within {SHORTEST_S[name]:g} and {LONGEST_S:g}")
    if args.scenario == "avalanche24":
        plan = avalanche_plan(make("avalanche24"), args.seed)
    else:
        path = Path(args.scenario)
        try:
            plan = load_scenario(path, make, lambda file: parse(file.read_bytes(), str(file)).graph)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from error
        except ScenarioInvalid as error:
            raise InputError(str(error)) from error
    if args.no_capacities:
        plan = replace(plan, capacities=False)
    if plan.capacities and args.openflow == "1.0":
        raise InputError("capacities are enforced by meters, which OpenFlow 1.0 has not: add --no-capacities")
    given = {name: getattr(args, name) for name in SHORTEST_S if getattr(args, name) is not None}
    return replace(plan, **given)


def _progress(text: str) -> None:
    sys.stderr.write(f"vsrt emulate: {text}\n")


def _print(result: dict[str, Any]) -> None:
    rows = [
        (
            entry["group"],
            entry["host"],
            entry["sent"],
            entry["received"],
            f"{entry['lost_pct']:.2f}",
            entry["duplicates"],
            f"{entry['rate_bps'] / 1e6:.2f}",
            "-" if entry["first_packet_ms"] is None else f"{entry['first_packet_ms']:.1f}",
        )
        for entry in result["receivers"]
    ]
    emit_table(TITLES, rows)
    for entry in result["refused"]:
        received = f", received {entry['received']}" if "received" in entry else ""
        print(f"refused: {entry['host']} as {entry['role']} of {entry['group']}{received}")
    print(
        f"{result['algorithm']}: {result['lost_pct']:.2f} % lost ({result['forced_lost_pct']:.2f} % forced by "
        f"the hosts' links), {result['rate_bps'] / 1e6:.1f} Mbit/s delivered"
    )
