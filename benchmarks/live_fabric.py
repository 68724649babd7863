"""A live controller that drives a simulated fabric of OpenFlow 1.3 switches over loopback, measured from outside.

    python benchmarks/live_fabric.py [--k 4 8] [--parts start,idle,joins,link-failure] [--json]
    python benchmarks/live_fabric.py --topology leaf-spine --set leaves=8 --set spines=4

The controller is a child process: `vsrt run multicast unicast` under os-ken, ryu-manager with `--framework ryu`.
Switches, tables, cables and hosts are in this process, whose own processor time is told beside the controller's.
Parts run in the order given, on one controller, the fabric being as the part before left it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fabric_arguments import add_fabric_arguments, fabric_of
from fabric_simulator import failures, parts
from fabric_simulator.parts import Amounts
from fabric_simulator.run import TookTooLong, live_run
from measure import Measurement, report

from topology.graph import Graph

PARTS = {**parts.PARTS, **failures.PARTS}
DEFAULT_PARTS = "start,idle,hosts,joins,link-failure,entries"


def graphs(arguments: argparse.Namespace) -> list[tuple[str, Graph]]:
    """Return the fabrics to measure with what they are called; ValueError where one cannot be made."""
    if arguments.file is not None:
        return [(arguments.file.name, fabric_of(arguments))]
    if arguments.topology != "fattree":
        return [(arguments.topology, fabric_of(arguments))]
    return [(f"fattree k={k}", fabric_of(arguments, k=k)) for k in arguments.k]


def measure(graph: Graph, names: Sequence[str], arguments: argparse.Namespace) -> list[Measurement]:
    """Run the parts on a fabric and return what they found; a part that takes too long is told and ends it."""
    amounts = Amounts(**{name: getattr(arguments, name) for name in Amounts.__dataclass_fields__})
    policy = "" if arguments.policy is None else arguments.policy.read_text()
    found: list[Measurement] = []
    with live_run(
        graph,
        framework=arguments.framework,
        apps=arguments.apps.split(","),
        policy=policy,
        timeout_s=arguments.timeout_s,
        seed=arguments.seed,
    ) as run:
        if arguments.keep_log is not None:
            print(f"controller: process {run.process.pid}, log {run.process.log_path}", file=sys.stderr)
        for name in names:
            try:
                found += PARTS[name].measure(run, amounts)
            except TookTooLong as late:
                print(f"{name} took longer than {arguments.timeout_s:g} s: {late}", file=sys.stderr)
                break
            finally:
                if arguments.keep_log is not None:
                    arguments.keep_log.write_text(run.process.log())
    return found


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = "; ".join(f"{name}: {part.help}" for name, part in PARTS.items())
    parser.add_argument("--k", type=int, nargs="+", default=[4, 8], help="ports per switch of fat trees")
    add_fabric_arguments(parser)
    parser.add_argument("--parts", default=DEFAULT_PARTS, help=f"{known} (default: %(default)s)")
    parser.add_argument("--framework", default="os-ken", choices=("os-ken", "ryu"))
    parser.add_argument("--apps", default="multicast,unicast", help="apps of the controller (default: %(default)s)")
    parser.add_argument("--policy", type=Path, help="more lines for the controller's policy file")
    parser.add_argument("--timeout-s", type=float, default=120.0, help="for each step (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of who joins and what fails (default: %(default)s)")
    parser.add_argument("--keep-log", type=Path, metavar="FILE", help="write the controller's log there")
    parser.add_argument("--json", action="store_true")
    for name, field in Amounts.__dataclass_fields__.items():
        kind = float if "float" in str(field.type) else int
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=field.default)
    return parser


def main() -> None:
    """Measure each fabric and print one table, or one JSON document, of all."""
    parser = build_parser()
    arguments = parser.parse_args()
    names = arguments.parts.split(",")
    unknown = set(names) - PARTS.keys()
    if unknown:
        parser.error(f"--parts: {', '.join(sorted(unknown))}: known are {', '.join(PARTS)}")
    if names[0] != "start":
        names.insert(0, "start")
    try:
        fabrics = graphs(arguments)
    except (OSError, ValueError) as fault:
        parser.error(str(fault))
    results = []
    for name, graph in fabrics:
        results += [Measurement(f"{name}, {found[0]}", *found[1:]) for found in measure(graph, names, arguments)]
    report(results, as_json=arguments.json, source=Path(__file__).name)


if __name__ == "__main__":
    main()
