"""`vsrt scaling advise`: what is advised now about the number of monitors, and what each learner would have."""

from __future__ import annotations

import argparse

from apps.cli.called import SECTIONS, SnapshotNames
from apps.cli.common import OperationFailed, emit_json, emit_table
from apps.cli.reach import add_source, open_source
from apps.cli.times import add_zone, clock_of

HELP = "say how many monitors there should be by the latest interval, why, and what each learner would have"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where the controller or monitor is."""
    add_zone(parser)
    add_source(parser)


def run(args: argparse.Namespace) -> int:
    """Print the latest advice; OperationFailed where there is none."""
    snapshot = next(open_source(args).follow(("scaling",), beside=SECTIONS))
    found = [document.fields for document in snapshot.section("scaling").in_order()]
    if not found:
        raise OperationFailed(
            "nothing is advised: no interval is over, or the policy of the monitors says scaling.mode: off"
        )
    latest = max(found, key=lambda fields: int(fields["interval"]))
    if args.json:
        emit_json(latest)
        return 0
    called = SnapshotNames(snapshot, clock_of(args))
    print(f"{called.clock(latest['ended_s'])}: {latest['text']}")
    learners = latest.get("learners") or ()
    if learners:
        print()
        rows = [(each["learner"], each["monitors"], _difference(each["monitors"], latest)) for each in learners]
        emit_table(("LEARNER", "MONITORS", "CHANGE"), rows)
    return 0


def _difference(monitors: int, latest: dict[str, int]) -> str:
    return f"{monitors - latest['monitors']:+d}" if monitors != latest["monitors"] else "none"
