"""Runs of `vsrt simulate` over time: every algorithm over the same stream of events, timed."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from apps.cli.common import InputError, emit_table
from apps.cli.whole_files import write_whole
from controller.simulation.churn import (
    STORM_SIGMAS,
    in_order,
    join_storm,
    link_failures,
    poisson_churn,
    storm_sigma_s,
)
from controller.simulation.data_centre import DataCentre
from controller.simulation.dynamics import MEMBER_EVENTS, Dynamics, EventKind, GroupEvent, homes_of
from controller.simulation.dynamics_file import EventFileError, read_events
from controller.simulation.dynamics_record import Record, play
from controller.simulation.groups import SimulatedGroups
from topology.graph import Graph, NodeId, NodeKind

Progress = Callable[[str, int, int], None]
"""Told the algorithm, the events done and the events in all."""


def run_events(
    args: argparse.Namespace, graph: Graph, centre: DataCentre, groups: SimulatedGroups, progress: Progress
) -> dict[str, Any]:
    """Return the document under ``dynamics``: the stream, and per algorithm what it changed.

    Parameters
    ----------
    args
        The command line: the options of `simulate_events`, ``algorithms`` and ``seed``.
    graph, centre
        The fabric with its hosts, and as the simulation sees it.
    groups
        The simulated groups; each member of them is a switch.
    """
    standing = [
        (key, centre.switches[number])
        for key, number in zip(groups.group_of_terminal().tolist(), groups.terminals.tolist(), strict=True)
    ]
    before, events = stream(args, graph, centre, standing, len(groups))
    rates_bps = [] if args.events is not None else groups.rates_bps.tolist()
    homes = homes_of(graph)
    found: dict[str, Any] = {}
    records: dict[str, Record] = {}
    for algorithm in args.algorithms:
        world = Dynamics(centre.graph, homes, algorithm, args.seed, rebalances=args.rebalance)
        for key, rate_bps in enumerate(rates_bps):
            world.forest.set_group_rate(key, rate_bps)
        for event in before:
            world.step(event)

        def told(done: int, algorithm: str = algorithm) -> None:
            progress(algorithm, done, len(events))

        start_s = perf_counter()
        record = records[algorithm] = play(world, events, told)
        found[algorithm] = _document(world, record, perf_counter() - start_s)
    if args.event_rows is not None:
        write_rows(args.event_rows, events, records)
    return {
        "events": len(events),
        "members_before": len(before),
        "end_s": events[-1].time_s if events else 0.0,
        "algorithms": found,
    }


def stream(
    args: argparse.Namespace,
    graph: Graph,
    centre: DataCentre,
    standing: Sequence[tuple[int, NodeId]],
    group_count: int,
) -> tuple[list[GroupEvent], list[GroupEvent]]:
    """Return the joins before the beginning, and the events in order of time; InputError where there can be none."""
    storming, churning, failing = (np.random.default_rng(s) for s in np.random.SeedSequence(args.seed).spawn(3))
    streams: list[Any] = []
    duration_s = args.duration_s or 60.0
    present = [] if args.events is not None or args.storm is not None else standing
    if args.events is not None:
        streams.append(_read(args.events, graph))
        duration_s = args.duration_s or streams[0][-1].time_s
    if args.storm is not None:
        duration_s = args.duration_s or 2 * STORM_SIGMAS * storm_sigma_s(args.storm)
        streams.append(join_storm(standing, args.storm, storming))
    if args.churn is not None:
        who = list(homes_of(graph)) or centre.graph.nodes(NodeKind.TOR) or list(centre.switches)
        keys = range(group_count)
        try:
            joins = poisson_churn(keys, who, args.churn, args.holding_s, duration_s, churning, present)
        except ValueError as error:
            raise InputError(f"--churn: {error}") from None
        streams.append(joins)
    if args.fail_links:
        try:
            failures = link_failures(centre.cables, args.fail_links, duration_s, args.repair_s, failing)
        except ValueError as error:
            raise InputError(f"--fail-links: {error}") from None
        streams.append(failures)
    before = [GroupEvent(0.0, EventKind.JOIN, key, node) for key, node in present]
    return before, list(in_order(*streams))


def _read(path: Path, graph: Graph) -> list[GroupEvent]:
    try:
        with path.open(encoding="utf-8") as lines:
            return read_events(lines, str(path), graph)
    except EventFileError as error:
        raise InputError(str(error)) from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: no UTF-8: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


def _document(world: Dynamics, record: Record, run_s: float) -> dict[str, Any]:
    return {
        "run_s": run_s,
        "events_per_s": len(record) / run_s if run_s else 0.0,
        "peak_max_pct": 100 * world.peak_utilisation,
        "end_max_pct": 100 * world.forest.loads.max_utilisation(),
        "peak_entries_per_switch": world.peak_entries,
        "groups": len(world.members),
        "members": sum(len(here) for places in world.members.values() for here in places.values()),
        "members_cut_off": world.cut_off(),
        "loads_exact": world.loads_are_exact(),
        "kinds": record.summary(),
        "over_time": [sample._asdict() for sample in record.samples],
    }


def write_rows(path: Path, events: Sequence[GroupEvent], records: dict[str, Record]) -> None:
    """Write one row per algorithm and event, whole or not at all; OperationFailed where that cannot be done."""
    import pyarrow as pa

    table = pa.concat_tables(_table(pa, algorithm, events, record) for algorithm, record in records.items())
    write_whole(path, lambda beside: _write(table, beside, path.suffix.lower()))


def _write(table: Any, path: Path, suffix: str) -> None:
    if suffix == ".parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, path)
    else:
        from pyarrow import csv

        csv.write_csv(table, path)


def _table(pa: Any, algorithm: str, events: Sequence[GroupEvent], record: Record) -> Any:
    def names(values: Any) -> Any:
        return pa.array([None if value is None else str(value) for value in values], type=pa.string())

    return pa.table(
        {
            "algorithm": pa.array([algorithm] * len(events), type=pa.string()),
            "time_s": pa.array(record.time_s, type=pa.float64()),
            "event": names(event.kind for event in events),
            "group": names(event.group if event.kind in MEMBER_EVENTS else None for event in events),
            "member": names(event.member for event in events),
            "u": names(event.u for event in events),
            "v": names(event.v for event in events),
            "applied": pa.array(np.array(record.applied, dtype=bool)),
            **{name: pa.array(np.array(values)) for name, values in record.counts.items()},
        }
    )


def print_events(document: dict[str, Any]) -> None:
    """Print a table of what each kind of event changed, and the peaks."""
    rows = []
    for name, found in document["algorithms"].items():
        for kind, counts in found["kinds"].items():
            means = (f"{counts[column]['mean']:.2f}" for column in MEANS)
            most = counts["trees_changed"]["max"]
            rows.append((name, kind, counts["count"], *means, most, counts["members_cut_off"]["total"]))
    print(f"{document['events']:,} events until {document['end_s']:.1f} s; means of one event:")
    emit_table(("algorithm", "event", "events", *MEANS.values(), "most trees", "members cut off"), rows)
    for name, found in document["algorithms"].items():
        print(
            f"{name}: busiest link {found['peak_max_pct']:.1f} % at its peak, "
            f"{found['end_max_pct']:.1f} % in the end; "
            f"at most {found['peak_entries_per_switch']:,} flow entries in a switch; "
            f"{found['events_per_s']:,.0f} events/s"
        )


MEANS = {
    "trees_changed": "trees",
    "links_added": "links +",
    "links_removed": "links -",
    "rules_put": "rules put",
    "rules_removed": "rules removed",
}
"""What is shown of every kind of event, and under which title."""
