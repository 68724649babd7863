"""`vsrt overcommit simulate`: which packets of a trace miss at a flow table that is too small for its groups."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from apps.cli.allocate_input import read_as
from apps.cli.common import InputError, emit_json, emit_table
from apps.cli.packet_trace import read_named_trace
from controller.overcommit.documents import sharing_of
from controller.overcommit.shares import OTHERS
from controller.simulation.table_choices import CHOICES, OWN, ByShares
from controller.simulation.table_trace import GroupTally, run_trace

HELP = "show which packets of a trace miss at a flow table that is too small for its groups"
LARGEST_TABLE = 10_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the trace, the table and who chooses."""
    parser.add_argument(
        "--trace", type=Path, required=True, metavar="FILE", help="CSV or Parquet: time_s, group; sorted by time"
    )
    parser.add_argument("--table", type=int, required=True, metavar="N", help="groups that have an entry at a time")
    parser.add_argument(
        "--latency-ms",
        type=float,
        default=10.0,
        help="from a miss until packets find the entry (default: %(default)g)",
    )
    parser.add_argument(
        "--warmup-s", type=float, default=0.0, help="from the first packet on, not counted (default: %(default)g)"
    )
    parser.add_argument(
        "--policy",
        choices=list(CHOICES),
        default=OWN,
        help="who chooses: the controller, or another to hold it against (default: %(default)s)",
    )
    parser.add_argument(
        "--tenants",
        type=Path,
        metavar="FILE",
        help="JSON: the tax on idle entries, and of each tenant its name, groups, shares, reservation and limit",
    )
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Print what became of the packets."""
    if not 1 <= args.table <= LARGEST_TABLE:
        raise InputError(f"--table: {args.table} is not a whole number from 1 to {LARGEST_TABLE}")
    for name, value in (("--latency-ms", args.latency_ms), ("--warmup-s", args.warmup_s)):
        if not 0 <= value < math.inf:
            raise InputError(f"{name}: {value:g} is not a number from 0 on")
    trace, names = read_named_trace(args.trace)
    chance = Random(args.seed)
    shares, owners = None, dict[str, str]()
    if args.tenants is not None:
        shares, owners = read_as(args.tenants, lambda document: sharing_of(document, args.table))
    tenants = [owners.get(name, OTHERS) for name in names]
    own = ByShares(args.table, chance, shares, tenants) if shares is not None and args.policy == OWN else None
    choice = own or CHOICES[args.policy](trace, args.table, chance)
    warmup_s = (trace.times_s[0] if trace.times_s else 0.0) + args.warmup_s
    tally = GroupTally()
    timing = {"latency_s": args.latency_ms / 1000, "warmup_s": warmup_s}
    found: dict[str, Any] = run_trace(trace, args.table, choice, **timing, tally=tally)._asdict()
    by_tenant = {} if shares is None else _by_tenant(tally, tenants, own)
    if args.json:
        emit_json({**found, "tenants": by_tenant} if shares is not None else found)
        return 0
    emit_table(tuple(name.replace("_", " ") for name in found), [tuple(f"{value:,}" for value in found.values())])
    if by_tenant:
        rows = [(name or "(none)", *(_shown(value) for value in row.values())) for name, row in by_tenant.items()]
        emit_table(("tenant", *next(iter(by_tenant.values()))), rows)
    return 0


def _by_tenant(tally: GroupTally, tenants: Sequence[str], own: ByShares | None) -> dict[str, dict[str, Any]]:
    """Return what became of each tenant's packets, and what it has at the end; `entitled` by the controller alone."""
    entitled = {} if own is None else own.entitled()
    found = {name: {"packets": 0, "misses": 0, "resident": 0} for name in sorted(set(tenants))}
    for group, name in enumerate(tenants):
        row = found[name]
        row["packets"] += tally.packets[group]
        row["misses"] += tally.misses[group]
        row["resident"] += group in tally.inside
    return {name: {**row, "entitled": _rounded(entitled.get(name))} for name, row in found.items()}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:,}"
