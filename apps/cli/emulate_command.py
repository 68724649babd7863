"""`vsrt emulate`: an experiment on an emulated fabric under a live controller, measured at every receiver."""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.cli.common import InputError, OperationFailed, emit_json, emit_table
from apps.end_signals import raised_once

if TYPE_CHECKING:
    from apps.emulation.plan import ExperimentPlan
    from apps.emulation.replay import ReplayPlan

FRAMEWORKS = ("ryu", "os-ken")
SLOWEST, FASTEST = 0.01, 100.0
OPENFLOW_VERSIONS = ("1.0", "1.3")
SHORTEST_S = {"duration_s": 0.1, "warmup_s": 0.0}
LONGEST_S = 3600.0
TITLES = ("group", "host", "sent", "received", "lost %", "twice", "Mbit/s", "first ms")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "scenario",
        nargs="?",
        metavar="avalanche24|SCENARIO.yaml",
        help="the article's experiment, or a file; with --replay made of the capture where it is not given",
    )
    parser.add_argument(
        "--replay",
        type=Path,
        metavar="FILE",
        help="send packets at the times and of the sizes of a capture (pcap, pcapng), by whom the scenario's "
        "`addresses` say",
    )
    parser.add_argument(
        "--speed", type=_speed, default=1.0, metavar="X", help="replay it X times as fast (%(default)g)"
    )
    parser.add_argument(
        "--plot", type=Path, metavar="DIR", help="of a replay: write plots of gaps' errors and of receivers there"
    )
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
    """Run the experiment and print its result; 1 where not all packets of a capture could be sent."""
    with tempfile.TemporaryDirectory(prefix="vsrt-replay-") as folder:
        return _run(args, Path(folder))


def _run(args: argparse.Namespace, folder: Path) -> int:
    plan = _plan(args, folder)
    replay = None
    if args.replay is not None:
        plan, replay = _replay(args, plan, folder)
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
            result = run_plan(plan, setting, _progress if sys.stderr.isatty() else lambda text: None, replay)
    except EmulationError as error:
        raise OperationFailed(str(error)) from error
    if args.plot is not None:
        from apps.cli.replay_plots import write_replay_plots

        result["plots"] = [str(path) for path in write_replay_plots(args.plot, result, args.replay.name)]
    if args.json:
        emit_json(result)
    else:
        _print(result)
    return 1 if result.get("replay", {}).get("errors") else 0


def _replay(args: argparse.Namespace, plan: ExperimentPlan, folder: Path) -> tuple[ExperimentPlan, ReplayPlan]:
    """Return what is replayed, and the plan with its events and its length at the speed of that."""
    from apps.cli.capture_input import CaptureInput, whole_frames
    from apps.emulation.replay import ReplayImpossible, plan_replay

    try:
        frames = whole_frames(CaptureInput(args.replay))
        replay = plan_replay(args.replay, frames, plan, folder / "records", args.speed)
    except ReplayImpossible as error:
        raise InputError(f"{args.replay}: {error}") from None
    except OSError as error:
        raise OperationFailed(f"{folder}: {error.strerror}") from error
    if replay.duration_s > LONGEST_S:
        raise InputError(f"--replay: it takes {replay.duration_s:,.0f} s, {LONGEST_S:g} at most: add --speed")
    events = tuple(replace(event, at_s=event.at_s / args.speed) for event in plan.events)
    return replace(plan, events=events, duration_s=replay.duration_s), replay


def _scenario_of_capture(args: argparse.Namespace, folder: Path) -> Path:
    import yaml

    from apps.cli.trace_scenario import scenario_of

    document, notes = scenario_of(args.replay, None, 0, None, args.seed)
    for note in notes:
        print(f"vsrt: {args.replay}: {note}", file=sys.stderr)
    path = folder / "scenario.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def _plan(args: argparse.Namespace, folder: Path) -> ExperimentPlan:
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
    if args.replay is None and args.scenario is None:
        raise InputError("what is to be run? A scenario, `avalanche24`, or --replay with a capture")
    if args.replay is None and args.speed != 1.0:
        raise InputError("--speed is that of a replay: add --replay")
    if args.replay is None and args.plot is not None:
        raise InputError("--plot is of a replay: add --replay")
    if args.replay is not None and args.duration_s is not None:
        raise InputError("--duration-s: a replay lasts as long as its capture: see --speed")
    if args.scenario == "avalanche24":
        plan = avalanche_plan(make("avalanche24"), args.seed)
    else:
        path = _scenario_of_capture(args, folder) if args.scenario is None else Path(args.scenario)
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


def _speed(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not SLOWEST <= value <= FASTEST:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from {SLOWEST:g} to {FASTEST:g}")
    return value


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
    if "replay" in result:
        _print_replay(result["replay"])
    for path in result.get("plots", ()):
        print(path)
    print(
        f"{result['algorithm']}: {result['lost_pct']:.2f} % lost ({result['forced_lost_pct']:.2f} % forced by "
        f"the hosts' links), {result['rate_bps'] / 1e6:.1f} Mbit/s delivered"
    )


def _print_replay(replay: dict[str, Any]) -> None:
    p50_ms, p99_ms, most_ms = (replay["gap_error"][name] for name in ("p50_ms", "p99_ms", "max_ms"))
    print(
        f"replayed {replay['packets']:,} packets, {replay['bytes']:,} bytes, at {replay['speed']:g} times the speed; "
        f"gaps differ from captured ones by {p50_ms:.3f} ms (median), {p99_ms:.3f} (99 %), {most_ms:.3f} (most)"
    )
    why = {"other": "no data of a group", "group": "to other groups", "sender": "of other senders"}
    for name, count in replay["skipped"].items():
        print(f"not replayed: {count:,} frames, {why[name]}")
    for name, what in (
        ("enlarged", "packets were sent larger than captured, to have room for what counts them"),
        ("shortened", "packets were sent smaller than captured, to fit a cable"),
        ("backward", "packets have a time before that in front of them"),
        ("errors", "packets could not be sent"),
    ):
        if replay[name]:
            print(f"{replay[name]:,} {what}")
