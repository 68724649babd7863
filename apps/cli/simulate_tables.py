"""Options of `vsrt simulate` for flow tables that are too small for the groups, and what they give."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from apps.cli.common import InputError, emit_table

if TYPE_CHECKING:
    from controller.simulation.data_centre import DataCentre, Ints
    from controller.simulation.groups import SimulatedGroups
    from controller.simulation.table_trace import Trace

LARGEST_TABLE = 10_000_000
LONGEST_TRAFFIC_S = 86_400.0
MOST_IN_VAIN_PCT = 100.0
WARM_UP = 0.25
"""Part of the traffic that is not counted."""

REMEMBERED = 1 << 20
TRAFFIC = ("sessions", "traffic_s", "packets")
"""The options that say what is sent."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the size of the tables, and what is sent."""
    group = parser.add_argument_group(
        "flow tables too small for the groups",
        "With --overcommit the trees of vsrt meet tables of N entries, groups send and are silent in turn or as in "
        "--packets, and it is told which packets miss; the first quarter is not counted.",
    )
    group.add_argument("--overcommit", type=int, metavar="N", help="entries that each switch has room for")
    group.add_argument(
        "--sessions",
        type=_sessions,
        metavar="ON:OFF",
        help="mean seconds for which a group sends and is silent (default: 30:300)",
    )
    group.add_argument(
        "--traffic-s", type=float, metavar="S", help=f"how long groups send, at most {LONGEST_TRAFFIC_S:g} (200)"
    )
    group.add_argument(
        "--packets", type=Path, metavar="FILE", help="packets instead, CSV or Parquet: time_s, group; sorted by time"
    )
    group.add_argument(
        "--cover-spurious-pct",
        type=float,
        metavar="PCT",
        help="silent groups have covering trees in common, by which links carry at most so much in vain",
    )


def check(args: argparse.Namespace) -> None:
    """Raise InputError for options that do not go together, or are out of range."""
    others = [name for name in (*TRAFFIC, "cover_spurious_pct") if getattr(args, name) is not None]
    if args.overcommit is None:
        if others:
            raise InputError(f"--{others[0].replace('_', '-')}: needs --overcommit")
        return
    if not 1 <= args.overcommit <= LARGEST_TABLE:
        raise InputError(f"--overcommit: {args.overcommit} is not a whole number from 1 to {LARGEST_TABLE}")
    if args.packets is not None and (said := [name for name in TRAFFIC[:2] if getattr(args, name) is not None]):
        raise InputError(f"--{said[0].replace('_', '-')}: not together with --packets")
    pct = args.cover_spurious_pct
    if pct is not None and not 0 <= pct <= MOST_IN_VAIN_PCT:
        raise InputError(f"--cover-spurious-pct: {pct:g} is not from 0 to {MOST_IN_VAIN_PCT:g}")
    if args.traffic_s is not None and not 0 < args.traffic_s <= LONGEST_TRAFFIC_S:
        raise InputError(f"--traffic-s: {args.traffic_s:g} is not above 0 and at most {LONGEST_TRAFFIC_S:g}")


def run_tables(
    args: argparse.Namespace, centre: DataCentre, groups: SimulatedGroups, names: Sequence[str]
) -> dict[str, Any]:
    """Return the document under ``overcommit``.

    Parameters
    ----------
    args
        The command line: the options of this module, ``seed`` and ``groups_file``.
    centre, groups
        The fabric, and the groups of the first seed, whose members are connected.
    names
        Names of the groups in a file; without, they are called 0, 1, 2, ....
    """
    from controller.overcommit.tables import GroupTables
    from controller.simulation.covered_tables import CoveredTrees, needs_of
    from controller.simulation.fabric_tables import (
        WholeTrees,
        entries_of_groups,
        fullest_need,
        run_fabric_trace,
        shared_need,
    )
    from controller.simulation.placement import place_trees
    from controller.simulation.trees import TreeLinks

    trace = _trace(args, len(groups), names)
    links: list[TreeLinks] = []
    place_trees(centre, groups, seed=args.seed, links=links)
    entries = entries_of_groups(centre, groups, links)
    need = fullest_need(entries, len(centre.switches))
    tables: GroupTables[int] = GroupTables(Random(args.seed), REMEMBERED)
    for number in range(len(centre.switches)):
        tables.set_capacity(number, args.overcommit)
    begins_s, ends_s = (trace.times_s[0], trace.times_s[-1]) if trace.times_s else (0.0, 0.0)
    warmup_s = begins_s + WARM_UP * (ends_s - begins_s)
    choice, covers = WholeTrees(tables, entries), None
    if args.cover_spurious_pct is not None:
        needs = needs_of(groups)
        choice = covers = CoveredTrees(centre, tables, entries, args.overcommit, needs, args.cover_spurious_pct)
    found = run_fabric_trace(trace, choice, warmup_s=warmup_s)
    return {
        "table": args.overcommit,
        "most_needed": int(need.max(initial=0)),
        "switches_too_small": int((need > args.overcommit).sum()),
        "needed": _by_kind(centre, need, shared_need(centre, groups, links)),
        "counted_s": ends_s - warmup_s,
        **found.document(),
        **({} if covers is None else {"covers": covers.figures()._asdict()}),
    }


def print_tables(found: dict[str, Any]) -> None:
    """Print what the tables of all switches together had to do."""
    print(
        f"Tables of {found['table']:,} entries: all groups at once need up to {found['most_needed']:,}, "
        f"and {found['switches_too_small']:,} switches have fewer than they need."
    )
    kinds = [(kind, f"{need['alone']:,}", f"{need['shared']:,}") for kind, need in found["needed"].items()]
    emit_table(("switches", "most entries", "most, shared by groups that go on alike"), kinds)
    print(f"In {found['counted_s']:,.0f} s:")
    victims = found["victims_per_need"]
    row = [f"{found[name]:,}" for name in COUNTED]
    emit_table((*COUNTED.values(), "victims each"), [(*row, "-" if victims is None else f"{victims:.2f}")])
    if (covers := found.get("covers")) is not None:
        print("Under covering trees, from the first packet on:")
        emit_table(tuple(COVERED.values()), [tuple(f"{covers[name]:,.4g}" for name in COVERED)])


COUNTED = {
    "packets": "packets",
    "misses": "misses",
    "swaps_in": "swaps in",
    "swaps_out": "swaps out",
    "turned_away": "turned away",
    "readings": "readings",
    "needing": "in for others",
}
"""What is shown, and under which title."""

COVERED = {
    "trees": "trees",
    "covered": "groups",
    "went_under": "went under",
    "left": "left",
    "packets": "packets",
    "in_vain": "copies in vain",
    "fullest_pct": "fullest link, % in vain",
}
"""The same of covering trees."""


def _by_kind(centre: DataCentre, alone: Ints, shared: Ints) -> dict[str, dict[str, int]]:
    """Return by kind of switch what the fullest one needs, with an entry for each group and with shared ones."""
    found: dict[str, dict[str, int]] = {}
    for node, each, together in zip(centre.switches, alone.tolist(), shared.tolist(), strict=True):
        most = found.setdefault(str(centre.graph.kind(node)), {"alone": 0, "shared": 0})
        most["alone"], most["shared"] = max(most["alone"], each), max(most["shared"], together)
    return found


def _trace(args: argparse.Namespace, count: int, names: Sequence[str]) -> Trace:
    from controller.simulation.sessions import sessions

    if args.packets is not None:
        from apps.cli.packet_trace import read_packet_trace

        called = names or [str(number) for number in range(count)]
        return read_packet_trace(args.packets, {name: number for number, name in enumerate(called)})
    on_s, off_s = args.sessions or (30.0, 300.0)
    duration_s = 200.0 if args.traffic_s is None else args.traffic_s
    return sessions(Random(args.seed), count, on_s=on_s, off_s=off_s, duration_s=duration_s)


def _sessions(text: str) -> tuple[float, float]:
    try:
        on_s, off_s = (float(part) for part in text.split(":"))
    except ValueError:
        on_s = off_s = math.nan
    if not (0 < on_s < math.inf and 0 < off_s < math.inf):
        raise argparse.ArgumentTypeError(f"{text!r} is not two positive numbers of seconds with a colon between them")
    return on_s, off_s
