"""`vsrt diagnose`: which of many equal members behaves unlike its peers, from a file of metrics."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from apps.cli.batch import add_batch_arguments, batch
from apps.cli.common import InputError
from apps.cli.diagnose_cables import read_cables
from apps.cli.diagnose_output import emit_document, print_tables
from apps.cli.diagnose_thresholds import ThresholdFile, fitting_settings, read_thresholds, write_thresholds
from apps.cli.metric_file import ONLY_METRIC, read_metric_file
from apps.cli.times import parse_time
from controller.anomaly.peers.combination import kind_of
from controller.anomaly.peers.diagnosis import TimeSpan, diagnose, usual_interval
from controller.anomaly.peers.scoring import DISTANCE_FORMS
from controller.anomaly.peers.settings import INTERVAL_S, PeerSettings, fitted
from controller.anomaly.series import RawSeries, ordered

ALL = "all"
WORTH_CORES = 1 << 20
"""Fewer samples are compared by one process."""

_DEFAULTS = PeerSettings()
_OPTIONS: tuple[tuple[str, str, type, str, object], ...] = (
    ("--interval", "interval_s", float, "S", f"seconds that samples are reduced to ({INTERVAL_S:g})"),
    ("--smoothing", "smoothing_samples", int, "N", f"width of the moving average ({_DEFAULTS.smoothing_samples})"),
    ("--window", "window_samples", int, "N", f"samples of a window ({_DEFAULTS.window_samples})"),
    ("--shift", "shift_samples", int, "N", f"samples from window to window ({_DEFAULTS.shift_samples})"),
    ("--bins", "bins_max", int, "N", f"histogram bins at most ({_DEFAULTS.bins_max})"),
    (
        "--confirm",
        "confirm_windows",
        int,
        "K",
        f"faulty where K of the past 2K-1 windows are ({_DEFAULTS.confirm_windows})",
    ),
    ("--margin", "margin", float, "X", f"thresholds are multiplied by it ({_DEFAULTS.margin:g})"),
    (
        "--share",
        "combined_share",
        float,
        "X",
        f"share of the metrics that count together ({_DEFAULTS.combined_share:g})",
    ),
    ("--ratio-max", "ratio_max", float, "X", f"what one of several metrics counts at most ({_DEFAULTS.ratio_max:g})"),
)
_OPTION_OF = {field: option for option, field, _, _, _ in _OPTIONS} | {
    "scope": "--threshold",
    "form": "--form",
    "offsets": "--offsets",
    "leave_one_out": "--pooled-bins",
    "own_history": "--no-own-history",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the input file and the parameters of the comparison."""
    parser.add_argument("--input", type=Path, required=True, metavar="FILE", help="CSV, Parquet or output of sadf")
    parser.add_argument("--metric", default=ALL, metavar="M", help="the metric to compare, or all (the default)")
    parser.add_argument("--peer-group", metavar="COLUMN", help="column of the peer groups (peer_group)")
    parser.add_argument("--train", metavar="START:END", help="a time without faults; ISO 8601 or epoch seconds")
    parser.add_argument("--save-thresholds", type=Path, metavar="FILE", help="keep what --train told, for later days")
    parser.add_argument(
        "--thresholds", type=Path, metavar="FILE", help="thresholds kept earlier, in place of --train"
    )
    parser.add_argument("--cables", type=Path, metavar="FILE", help="CSV of member, other_end: ends of one cable")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="write plots there, as PNG and SVG")
    parser.add_argument("--ranking", type=int, default=4, metavar="N", help="members per hour in the list (4)")
    add_batch_arguments(parser)
    chain = parser.add_argument_group(
        "parameters", "Defaults in brackets; recordings too short or too coarse for them get shorter windows."
    )
    for option, field, kind, metavar, text in _OPTIONS:
        chain.add_argument(option, dest=field, type=kind, metavar=metavar, help=str(text))
    chain.add_argument(
        "--threshold", dest="scope", choices=("member", "group", "pooled"), help="one per what (member)"
    )
    chain.add_argument("--form", choices=tuple(DISTANCE_FORMS), help="how distributions are compared (pairs)")
    chain.add_argument("--offsets", choices=("keep", "remove"), help="standing differences between members (keep)")
    chain.add_argument(
        "--no-own-history",
        dest="own_history",
        action="store_const",
        const=False,
        help="ask peers alone, never the past",
    )
    chain.add_argument(
        "--pooled-bins",
        dest="leave_one_out",
        action="store_const",
        const=False,
        help="bins over all members in groups of three too, as in the published method",
    )
    chain.add_argument("--no-counters", action="store_true", help="do not turn what only grows into rates")


def run(args: argparse.Namespace) -> int:
    """Compare, and print what was found."""
    if args.ranking < 1:
        raise InputError(f"--ranking: expected at least 1, found {args.ranking}")
    if args.save_thresholds is not None and args.train is None:
        raise InputError("--save-thresholds: name the time without faults with --train")
    if args.thresholds is not None and args.train is not None:
        raise InputError("--thresholds: thresholds come from the file or from --train, not from both")
    kept = None if args.thresholds is None else read_thresholds(args.thresholds)
    file = read_metric_file(args.input, peer_group=args.peer_group)
    series, judged = _chosen(file.series, args.metric, args.input)
    training = None if args.train is None else _period(args.train)
    far = {} if args.cables is None else read_cables(args.cables, {one.name.member for one in series})
    settings = _settings(args, series, training, kept)
    try:
        with batch(
            args, "metrics of groups", worth_it=sum(len(one.at_s) for one in series) >= WORTH_CORES
        ) as run_all:
            found = diagnose(
                series,
                settings,
                training,
                judged=judged,
                counters=not args.no_counters,
                columns=args.ranking,
                trained=None if kept is None else kept.training,
                far=far,
                run=run_all,
            )
    except ValueError as error:
        raise InputError(f"{args.input}: {error}") from None
    if args.save_thresholds is not None and training is not None:
        write_thresholds(args.save_thresholds, found, training)
    found = found._replace(notes=[*file.notes, *found.notes])
    if args.plot is not None:
        from apps.cli.diagnose_plots import write_plots

        write_plots(args.plot, found, series)
    if args.json:
        emit_document(found)
    else:
        print_tables(found, trained=training is not None or kept is not None)
    return 0


def _chosen(series: Sequence[RawSeries], metric: str, path: Path) -> tuple[list[RawSeries], frozenset[str] | None]:
    """Return the series to compare and which metrics are judged; throughput tells the kind of a fault.

    A file that does not name its one metric holds the one asked for.
    """
    if metric == ALL:
        return list(series), None
    known = sorted({one.name.metric for one in series})
    if known == [ONLY_METRIC]:
        return [one._replace(name=one.name._replace(metric=metric)) for one in series], None
    if metric not in known:
        shown = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
        raise InputError(f"{path}: metric: no {metric!r} in the file; it holds {shown or 'none'}")
    chosen = [one for one in series if one.name.metric == metric or kind_of(one.name.metric) == "throughput"]
    return chosen, frozenset((metric,))


def _period(text: str) -> TimeSpan:
    """Return the period that START:END names; times may hold colons themselves."""
    for place, letter in enumerate(text):
        if letter == ":":
            start_s, end_s = _time(text[:place]), _time(text[place + 1 :])
            if start_s is not None and end_s is not None:
                if start_s >= end_s:
                    raise InputError(f"--train: {text!r} ends before it starts")
                return TimeSpan(start_s, end_s)
    raise InputError(f"--train: expected START:END in ISO 8601 or epoch seconds, found {text!r}")


def _time(text: str) -> float | None:
    try:
        at_s, _ = parse_time(text)
    except ValueError:
        return None
    return at_s if math.isfinite(at_s) else None


def _settings(
    args: argparse.Namespace, series: Sequence[RawSeries], training: TimeSpan | None, kept: ThresholdFile | None
) -> PeerSettings:
    given = {field: value for field in _OPTION_OF if (value := getattr(args, field)) is not None}
    if kept is not None:
        return fitting_settings(kept, given, _OPTION_OF)
    tidy = [one for one in map(ordered, series) if len(one.at_s)]
    usual_s = usual_interval(tidy)
    first_s = min((float(one.at_s[0]) for one in tidy), default=0.0)
    last_s = max((float(one.at_s[-1]) for one in tidy), default=0.0)
    training_s = None
    if training is not None:
        training_s = min(training.end_s, last_s) - max(training.start_s, first_s)
        if training_s <= 0:
            raise InputError(f"--train: the file has no sample in that time; it spans {first_s:.0f}:{last_s:.0f}")
    try:
        return fitted(given, INTERVAL_S if math.isnan(usual_s) else usual_s, last_s - first_s, training_s)
    except ValueError as error:
        field, _, rest = str(error).partition(": ")
        raise InputError(f"{_OPTION_OF.get(field, field)}: {rest}") from None
