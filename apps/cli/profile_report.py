"""`vsrt profile report`: what a profile shows, by operation, in a table, as JSON or as a page; beside another one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from apps.cli.common import InputError, emit_json, emit_table
from apps.cli.profile_page import page
from apps.cli.profile_texts import ProfileReport, cell, change_text, head_lines, others_text, waits_text
from apps.cli.progress import ProgressBar
from apps.cli.whole_files import write_whole_text
from apps.profile_file import Profile, ProfileFileError, read_profile
from controller.profiles.figures import OperationChange, OperationFigures, Times, compared, figures_of
from controller.profiles.spans import Operation, SpanOutcome

HELP = "tell what a profile shows, or how it compares with another"

WAITS = ("loop", "controller", "switch", "disk")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the files."""
    parser.epilog = (
        "Times are of operations that are done; the others are counted by how they ended. With --against status 1 "
        "says that the 95th percentile of an operation is worse than before by more than --tolerance."
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="profile (Parquet)")
    parser.add_argument("--against", type=Path, metavar="FILE", help="an earlier profile to compare it with")
    parser.add_argument(
        "--tolerance", type=_percent, default=25.0, metavar="PCT", help="what counts as alike (%(default)g%%)"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with plots, which needs nothing else")


def run(args: argparse.Namespace) -> int:
    """Tell it; 1 where an operation is slower than in the profile before."""
    bar = ProgressBar()
    try:
        report = _report(args.file, bar)
        earlier = None if args.against is None else _report(args.against, bar)
    finally:
        bar.clear()
    changes = [] if earlier is None else _changes(earlier, report, args.tolerance)
    if args.html is not None:
        write_whole_text(args.html, page(report, earlier, changes, args.tolerance))
    if args.json:
        document = report.document()
        if earlier is not None:
            document["against"] = earlier.document()
            document["changes"] = [
                {**each._asdict(), "before": each.before.document(), "after": each.after.document()}
                for each in changes
            ]
        emit_json(document)
    else:
        _print(report, changes, args.tolerance)
    return 1 if any(each.verdict == "slower" for each in changes) else 0


def _report(path: Path, bar: ProgressBar) -> ProfileReport:
    try:
        profile = read_profile(path, bar.draw)
    except ProfileFileError as error:
        raise InputError(str(error)) from None
    return ProfileReport(profile, list(_operations(profile, bar)))


def _operations(profile: Profile, bar: ProgressBar) -> Sequence[OperationFigures]:
    table = profile.table
    names = table.column("operation").cast("string")
    began_s = float(profile.about.get("begun_s", 0.0))
    ends = pc.add(table.column("start_s"), table.column("took_s"))
    length_s = max(0.0, (pc.max(ends).as_py() or began_s) - began_s)
    found = []
    for number, operation in enumerate(Operation):
        bar.draw("operations", number, len(Operation))
        of_it = table.filter(pc.equal(names, operation.value))
        if not of_it.num_rows:
            continue
        outcomes = of_it.column("outcome").cast("string")
        counts = {each["values"]: each["counts"] for each in pc.value_counts(outcomes).to_pylist()}
        done = of_it.filter(pc.equal(outcomes, SpanOutcome.DONE.value))
        columns = {name: _column(done, f"wait_{name}_s") for name in WAITS}
        start_s = _column(done, "start_s") - began_s
        found.append(figures_of(operation.value, start_s, _column(done, "took_s"), columns, counts, length_s))
    return found


def _column(table: Any, name: str) -> Any:
    return np.asarray(table.column(name).to_numpy(), np.float64)


def _changes(before: ProfileReport, after: ProfileReport, tolerance_pct: float) -> list[OperationChange]:
    none = Times(0, None, None, None, None, None)
    earlier = {each.operation: each.times for each in before.operations}
    later = {each.operation: each.times for each in after.operations}
    names = [each.value for each in Operation if each.value in earlier or each.value in later]
    return [compared(name, earlier.get(name, none), later.get(name, none), tolerance_pct) for name in names]


def _print(report: ProfileReport, changes: Sequence[OperationChange], tolerance_pct: float) -> None:
    for line in head_lines(report):
        print(line)
    rows = [
        (
            each.operation,
            f"{each.times.spans:,}",
            *(cell(value) for value in each.times[1:]),
            waits_text(each),
            others_text(each),
        )
        for each in report.operations
    ]
    if rows:
        titles = ("OPERATION", "COUNT", "MEAN MS", "P50 MS", "P95 MS", "P99 MS", "MAX MS", "MEAN WAITS MS", "OTHERS")
        emit_table(titles, rows)
    else:
        print("no operation ended while it ran")
    if changes:
        print(f"\nbeside the earlier one; alike is within {tolerance_pct:g} % of the 95th percentile")
        emit_table(
            ("OPERATION", "COUNT BEFORE", "NOW", "P95 MS BEFORE", "NOW", "CHANGE", ""),
            [
                (
                    *(each.operation, f"{each.before.spans:,}", f"{each.after.spans:,}"),
                    *(cell(each.before.p95_ms), cell(each.after.p95_ms), change_text(each), each.verdict),
                )
                for each in changes
            ],
        )


def _percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = float("nan")
    if not 0 <= value <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no percentage from 0 to 10000")
    return value
