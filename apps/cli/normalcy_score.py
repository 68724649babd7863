"""`vsrt normalcy score`: an anomaly score for every row of a file, each from the rows before it in time."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from apps.cli.common import InputError, emit_json
from apps.cli.metric_file import TIME_COLUMN
from apps.cli.normalcy_input import add_input_arguments, read_series, settings_of
from apps.cli.text_files import open_text
from apps.cli.whole_files import write_whole
from controller.anomaly.normalcy.score import Scorer
from controller.anomaly.normalcy.settings import Settings
from controller.anomaly.series import RawSeries

HELP = "an anomaly score from 0 to 1 for every row, from the rows before it alone"
COLUMNS = ("timestamp", "value", "anomaly_score")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare input and output."""
    add_input_arguments(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="CSV to write (default: standard output)")
    parser.add_argument(
        "--threshold",
        type=float,
        help=f"events that --json lists have this score at least (default: alarm_score, {Settings().alarm_score:g})",
    )
    parser.add_argument("--plot", type=Path, metavar="DIR", help="write the scores over the series as PNG and SVG")


def run(args: argparse.Namespace) -> int:
    """Score one series and write its rows."""
    settings = settings_of(args.set)
    if args.json and args.output is None:
        raise InputError("--json: name a file for the scores with -o")
    threshold = settings.alarm_score if args.threshold is None else args.threshold
    if not 0 <= threshold <= 1:
        raise InputError(f"--threshold: expected 0 to 1, found {threshold:g}")
    found = read_series(args)
    if len(found) > 1:
        names = sorted({f"{one.name.member} {one.name.metric}" for one in found})
        raise InputError(f"{args.input}: {len(found)} series; choose one by --member and --metric: {names[0]}, ...")
    series = found[0] if found else None
    scorer, scores = scored(series, settings)
    rows = [
        (at, value, f"{score:.6g}")
        for (at, value), score in zip(texts_of(args.input, series), scores.tolist(), strict=True)
    ]
    if args.output is None:
        _write(sys.stdout, rows)
    else:
        write_whole(args.output, lambda path: _write_file(path, rows))
    if args.plot is not None and series is not None:
        from apps.cli.normalcy_plot import write_score_plot

        write_score_plot(args.plot, args.input.stem, series.at_s, series.values, scores)
    if args.json:
        events = [event._asdict() for event in scorer.events if event.score >= threshold]
        emit_json(
            {
                "rows": len(rows),
                "not_finite": scorer.not_finite,
                "highest": float(scores.max(initial=0.0)),
                "events": events,
                "category": scorer.normalcy.category,
                "reason": scorer.normalcy.reason,
            }
        )
    return 0


def scored(series: RawSeries | None, settings: Settings) -> tuple[Scorer, NDArray[np.float64]]:
    """Return the scorer, and the scores in the order of the rows; rows are taken in the order of time."""
    scorer = Scorer(settings)
    if series is None:
        return scorer, np.empty(0)
    order = np.argsort(series.at_s, kind="stable")
    scores = np.empty(len(order))
    scores[order] = scorer.extend(series.at_s[order], series.values[order])
    scorer.close_event()
    return scorer, scores


def texts_of(path: Path, series: RawSeries | None) -> list[tuple[str, str]]:
    """Return time and value of each row: as the file has them where it has a column for the series, else anew."""
    if series is None:
        return []
    found = _columns_of(path, series.name.member)
    if found is not None and len(found) == len(series.at_s):
        return found
    return [
        (datetime.fromtimestamp(at_s, UTC).isoformat(), repr(value))
        for at_s, value in zip(series.at_s.tolist(), series.values.tolist(), strict=True)
    ]


def _columns_of(path: Path, name: str) -> list[tuple[str, str]] | None:
    try:
        with open_text(path) as file:
            reader = csv.reader(file)
            header = [word.strip() for word in next(reader, [])]
            if header.count(TIME_COLUMN) != 1 or header.count(name) != 1:
                return None
            at, value = header.index(TIME_COLUMN), header.index(name)
            return [(row[at], row[value]) for row in reader if row]
    except (OSError, UnicodeDecodeError, csv.Error, IndexError):
        return None


def _write_file(path: Path, rows: Iterable[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        _write(file, rows)


def _write(file: object, rows: Iterable[Sequence[str]]) -> None:
    writer = csv.writer(file, lineterminator="\n")  # type: ignore[arg-type]
    writer.writerow(COLUMNS)
    writer.writerows(rows)
