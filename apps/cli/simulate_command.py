"""`vsrt simulate`: trees of many groups over a planned fabric, all algorithms side by side."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.cli import simulate_background, simulate_events, simulate_tables
from apps.cli.common import InputError, OperationFailed, emit_json, emit_table, read_topology
from controller.trees.algorithms import ALGORITHMS

if TYPE_CHECKING:
    from apps.cli.progress import ProgressBar
    from controller.simulation.data_centre import DataCentre
    from controller.simulation.groups import SimulatedGroups
    from controller.simulation.rates import RateDistribution
    from topology.graph import Graph


DEFAULT_ALGORITHMS = "vsrt,vsrt-literal,pim-sm-fixed-core,pim-sm-random-core,pim-sm-static-uplink"
DEFAULT_TOPOLOGY = "portland-p6"
MAX_SEED = 2**63 - 1
MAX_SEEDS = 1000
MAX_POOL = 65536
LINES_PER_DRAWING = 10_000
TITLES = {
    "unused_pct": "unused %",
    "below_5_pct": "< 5 %",
    "max_pct": "max %",
    "p99_pct": "p99 %",
    "over_100_pct": "> 100 %",
    "links_per_group": "links/group",
    "optimal_pct": "optimal %",
    "max_over_lower_bound": "max/bound",
    "build_s": "build s",
    "groups_per_s": "groups/s",
}
ALIAS_TITLES = {"aliases_used": "aliases"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments; the defaults are the article's first simulation."""
    parser.add_argument(
        "--topology",
        metavar="NAME|FILE",
        help=f"fabric to make, or file (default: {DEFAULT_TOPOLOGY})",
    )
    parser.add_argument(
        "--servers", type=int, metavar="N", help="servers of a data centre, in racks, instead (default: 11520)"
    )
    parser.add_argument("--per-rack", type=int, metavar="M", help="servers of a rack (default: 40)")
    parser.add_argument(
        "--type", choices=("fattree", "tree"), help="how their racks are joined: fattree or tree (default: fattree)"
    )
    parser.add_argument(
        "--vms", type=int, default=100_000, metavar="N", help="virtual machines (default: %(default)s)"
    )
    parser.add_argument("--groups", type=int, default=1000, metavar="N", help="groups (default: %(default)s)")
    parser.add_argument(
        "--group-size", type=_sizes, default=(3, 20), metavar="LO:HI", help="members of a group (default: 3:20)"
    )
    parser.add_argument(
        "--sizes", default="uniform", metavar="uniform|wve", help="how sizes are distributed (default: %(default)s)"
    )
    parser.add_argument(
        "--placement",
        default="uniform",
        metavar="uniform|tenant",
        help="virtual machines and members anywhere, or by tenant in few racks (default: %(default)s)",
    )
    parser.add_argument(
        "--rate-bps", type=_rates, default=(1e5, 1e7), metavar="LO:HI", help="rate of a group (default: 1e5:1e7)"
    )
    parser.add_argument(
        "--rates",
        type=_distribution,
        default="uniform",
        metavar="uniform|pareto:ALPHA",
        help="how rates are distributed; pareto has the mean of --rate-bps (default: %(default)s)",
    )
    parser.add_argument(
        "--aliases",
        type=int,
        metavar="N",
        help="further trees, at most so many, for groups on the busiest links; tells how many were used",
    )
    parser.add_argument(
        "--capacity-bps", type=_capacity, metavar="X", help="of every link between switches (default: the topology's)"
    )
    parser.add_argument(
        "--groups-file", type=Path, metavar="FILE", help="groups from CSV or JSON lines instead of drawn ones"
    )
    parser.add_argument(
        "--algorithms",
        type=_algorithms,
        default=DEFAULT_ALGORITHMS,
        metavar="A,B,...",
        help=f"any of {', '.join(ALGORITHMS)} (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of groups and ties (default: %(default)s)")
    parser.add_argument(
        "--seeds",
        type=int,
        default=1,
        metavar="N",
        help="runs with seeds from --seed on; means are shown (default: 1)",
    )
    parser.add_argument("--loads", type=Path, metavar="FILE", help="write every link's load, to a .csv or .parquet")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="write plots there, PNG and SVG")
    simulate_events.add_options(parser)
    simulate_tables.add_options(parser)
    simulate_background.add_options(parser)


def run(args: argparse.Namespace) -> int:
    """Simulate and print the figures."""
    from apps.cli.event_runs import print_events, run_events
    from apps.cli.loads_file import check_loads_path, write_loads
    from apps.cli.progress import ProgressBar
    from apps.cli.simulation_runs import document, link_loads, maximum_by_count, run_seed
    from controller.simulation.data_centre import DataCentre

    if not 0 <= args.seed <= MAX_SEED:
        raise InputError(f"--seed: {args.seed} is not a whole number from 0 to {MAX_SEED}")
    if not 1 <= args.seeds <= MAX_SEEDS:
        raise InputError(f"--seeds: {args.seeds} is not a whole number from 1 to {MAX_SEEDS}")
    if args.loads is not None:
        check_loads_path(args.loads)
        if args.seeds > 1:
            raise InputError("--loads: holds the loads of one seed; leave --seeds out")
    if args.plot is not None and args.plot.exists() and not args.plot.is_dir():
        raise InputError(f"--plot: {args.plot} is no folder")
    if args.aliases is not None and not 0 <= args.aliases <= MAX_POOL:
        raise InputError(f"--aliases: {args.aliases} is not a whole number from 0 to {MAX_POOL}")
    simulate_tables.check(args)
    simulate_background.check(args)
    timed = simulate_events.wanted(args)
    args.topology, graph = _topology(args)
    centre = DataCentre(graph, args.capacity_bps)
    bar = ProgressBar()
    try:
        names, drawn = _groups(args, centre, bar)
        runs = [run_seed(centre, drawn(seed), args.algorithms, seed, bar, args.aliases) for seed in _seeds(args)]
        by_count = None if args.plot is None else maximum_by_count(centre, runs[0], bar)
        dynamics = run_events(args, graph, centre, runs[0].groups, bar.draw) if timed else None
        beside = None
        if args.background is not None:
            seeded = [(run.seed, run.groups) for run in runs]
            beside = simulate_background.run_background(args.background, centre, seeded, bar.draw)
        tables = None
        if args.overcommit is not None:
            tables = simulate_tables.run_tables(args, centre, runs[0].groups, names)
    except MemoryError:
        raise OperationFailed("not enough memory for so many groups") from None
    finally:
        bar.clear()
    if args.loads is not None:
        write_loads(args.loads, link_loads(centre, runs[0]))
    if args.plot is not None and by_count is not None:
        from apps.cli.plots import write_plots

        write_plots(args.plot, runs, by_count, args.topology)
    result = {"topology": args.topology, **document(runs, names, centre)}
    if dynamics is not None:
        result["dynamics"] = dynamics
    if tables is not None:
        result["overcommit"] = tables
    if beside is not None:
        result["background"] = beside
    _warn(result["disconnected"])
    if args.json:
        emit_json(result)
    else:
        _print(result)
        if dynamics is not None:
            print_events(dynamics)
        if tables is not None:
            simulate_tables.print_tables(tables)
        if beside is not None:
            simulate_background.print_background(beside)
    return 0


def _seeds(args: argparse.Namespace) -> range:
    return range(args.seed, args.seed + args.seeds)


def _topology(args: argparse.Namespace) -> tuple[str, Graph]:
    """Return the fabric, and what it is called."""
    from topology.generators import GENERATORS, make

    of_racks = {name: value for name in ("servers", "per_rack") if (value := getattr(args, name)) is not None}
    if of_racks or args.type is not None:
        if args.topology is not None:
            raise InputError("--topology: gives the fabric; leave --servers, --per-rack and --type out")
        try:
            graph = make(f"servers-{args.type or 'fattree'}", of_racks)
        except ValueError as error:
            raise InputError(f"--{str(error).replace('_', '-')}") from None
        return f"servers-{args.type or 'fattree'}", graph
    name = args.topology or DEFAULT_TOPOLOGY
    if name in GENERATORS:
        return name, make(name)
    path = Path(name)
    if not path.exists():
        raise InputError(f"--topology: {name!r} is no file and none of {', '.join(GENERATORS)}")
    return name, read_topology(path).graph


def _groups(
    args: argparse.Namespace, centre: DataCentre, bar: ProgressBar
) -> tuple[Sequence[str], Callable[[int], SimulatedGroups]]:
    """Return the names of the groups, if they have any, and what gives the groups of a seed."""
    from controller.simulation.group_file import GroupFileError, read_groups
    from controller.simulation.workload import Workload, WorkloadError, generate

    if args.groups_file is not None:
        try:
            with args.groups_file.open(encoding="utf-8", errors="surrogateescape", newline="") as lines:
                size = os.fstat(lines.fileno()).st_size
                groups, names = read_groups(_told(lines, size, bar), str(args.groups_file), centre)
        except GroupFileError as error:
            raise InputError(str(error)) from None
        except OSError as error:
            raise InputError(f"{args.groups_file}: {error.strerror}") from None
        return names, lambda seed: groups
    workload = Workload(args.vms, args.groups, args.group_size, args.sizes, args.placement, args.rate_bps, args.rates)

    def draw(seed: int) -> SimulatedGroups:
        try:
            return generate(centre, workload, seed)
        except WorkloadError as error:
            where = args.topology if error.field == "hosts" else f"--{error.field.replace('_', '-')}"
            raise InputError(f"{where}: {error.message}") from None

    return (), draw


def _told(lines: Iterable[str], size: int, bar: ProgressBar) -> Iterator[str]:
    """Pass the lines of a file on and show how far it is read, in characters."""
    read = 0
    for number, line in enumerate(lines):
        read += len(line)
        if not number % LINES_PER_DRAWING:
            bar.draw("reading groups", min(read, size), size)
        yield line


def _algorithms(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in ALGORITHMS:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(ALGORITHMS)}")
    return list(dict.fromkeys(names))


def _span(text: str, number: Callable[[str], Any], what: str) -> tuple[Any, Any]:
    lowest, _, highest = text.partition(":")
    try:
        return number(lowest), number(highest or lowest)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what} or two with a colon between them") from None


def _sizes(text: str) -> tuple[int, int]:
    return _span(text, int, "a whole number")


def _rates(text: str) -> tuple[float, float]:
    return _span(text, float, "a number")


def _distribution(text: str) -> RateDistribution:
    from controller.simulation.rates import parse_rates

    try:
        return parse_rates(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _capacity(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return value


def _warn(disconnected: dict[str, Any]) -> None:
    if disconnected["members"]:
        named = ", ".join(f"group {cut['group']} at {cut['switch']}" for cut in disconnected["first"])
        more = ", ..." if len(disconnected["first"]) < disconnected["members"] else ""
        print(
            f"vsrt: {disconnected['members']} members of {disconnected['groups']} groups are not connected with the "
            f"rest of their group and were left out: {named}{more}",
            file=sys.stderr,
        )


def _print(result: dict[str, Any]) -> None:
    spread = result.get("standard_deviation", {})
    titles = TITLES | ALIAS_TITLES if "aliases_used" in next(iter(result["algorithms"].values())) else TITLES
    rows = []
    for name, figures in result["algorithms"].items():
        cells = [name]
        for field in titles:
            cell = _cell(field, figures[field])
            if name in spread and field not in ("build_s", "groups_per_s") and figures[field] is not None:
                cell += f" +- {_cell(field, spread[name][field])}"
            cells.append(cell)
        rows.append(cells)
    seeds = result["seeds"]
    print(
        f"{result['topology']}: {result['switches']:,} switches, {result['links']:,} links between them; "
        f"{result['groups']:,} groups of {result['members']:,.0f} members together"
        + (f"; means of {len(seeds)} seeds +- standard deviation" if len(seeds) > 1 else f"; seed {seeds[0]}")
    )
    emit_table(("algorithm", *titles.values()), rows)
    print(f"No trees have a busiest link below {result['lower_bound_pct']:.1f} %.")


def _cell(field: str, value: float | None) -> str:
    if value is None:
        return "-"
    if field == "groups_per_s":
        return f"{value:,.0f}"
    return f"{value:.3f}" if field in ("max_over_lower_bound", "build_s") else f"{value:.2f}"
