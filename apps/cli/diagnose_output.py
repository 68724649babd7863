"""What `vsrt diagnose` prints: one JSON document, written as it is made, or tables."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from apps.cli.common import emit_table
from controller.anomaly.peers.diagnosis import Diagnosis

SHOWN_METRICS = 3
WRITTEN_AT_ONCE = 4096
"""Scores per piece of text: a day of a few thousand members has some hundred thousand."""


def emit_document(found: Diagnosis) -> None:
    """Print the JSON form of a diagnosis, alone on its line; its lists are never in memory as a whole."""
    opening = "{"
    for key, value in document(found).items():
        sys.stdout.write(f"{opening}{json.dumps(key)}: ")
        if isinstance(value, Iterator):
            _write_list(value)
        else:
            sys.stdout.write(json.dumps(value, allow_nan=False))
        opening = ", "
    sys.stdout.write("}\n")


def _write_list(entries: Iterator[dict[str, Any]]) -> None:
    before = "["
    while piece := list(islice(entries, WRITTEN_AT_ONCE)):
        sys.stdout.write(before + json.dumps(piece, allow_nan=False)[1:-1])
        before = ", "
    sys.stdout.write("[]" if before == "[" else "]")


def document(found: Diagnosis) -> dict[str, Any]:
    """Return the JSON form, long lists as iterators; times in epoch seconds, hours as Kasick et al. write them."""
    return {
        "windows": len(found.ends_s),
        "faulty": [
            {
                "member": one.member.name,
                "peer_group": one.member.peer_group,
                "first": one.first_s,
                "last": one.last_s,
                "verdict": one.verdict,
                "metrics": one.metrics,
                "score": one.score,
                "silent": one.is_silent,
                "other_end": one.other_end,
                "incident": one.incident,
                "rank": one.rank,
            }
            for one in found.faulty
        ],
        "persistent": [
            {
                "hour": _hour_name(hour_s),
                "ranking": [{"value": value, "member": m.name, "peer_group": m.peer_group} for value, m in ranking],
            }
            for hour_s, ranking in found.persistent
        ],
        "scores": _scores(found),
        "unscored": _unscored(found),
        "settings": {name: getattr(found.settings, name) for name in found.settings.__slots__},
        "notes": found.notes,
    }


def _hour_name(hour_s: float) -> str:
    """Return an hour, from epoch seconds, as in Figure 5 of Kasick et al.: 20110417.00, UTC."""
    return datetime.fromtimestamp(hour_s, UTC).strftime("%Y%m%d.%H")


def _scores(found: Diagnosis) -> Iterator[dict[str, Any]]:
    for group in found.groups:
        for row, end_s in enumerate(found.ends_s.tolist()):
            for member, score in zip(group.members, group.scores[row].tolist(), strict=True):
                if not math.isnan(score):
                    yield {"t": end_s, "member": member, "peer_group": group.peer_group, "score": score}


def _unscored(found: Diagnosis) -> Iterator[dict[str, Any]]:
    """Yield the members that have no score in some windows, for want of samples or of peers and a past."""
    for group in found.groups:
        for member, column in zip(group.members, group.scores.T, strict=True):
            missing = sum(map(math.isnan, column.tolist()))
            if missing:
                yield {"member": member, "peer_group": group.peer_group, "windows": missing}


def print_tables(found: Diagnosis, trained: bool) -> None:
    """Print what was found for people to read; `trained` tells whether a time without faults was named."""
    settings = found.settings
    members = sum(len(group.members) for group in found.groups)
    print(
        f"{members} members in {len(found.groups)} groups, {len(found.ends_s)} windows of {settings.window_samples}"
        f" samples of {settings.interval_s:g} s"
    )
    for note in found.notes:
        print(f"note: {note}")
    if not trained:
        print("note: name a time without faults with --train, or give --thresholds, to see faults of any length")
    print()
    if found.faulty:
        emit_table(
            ("member", "peer group", "first", "last", "incident", "verdict", "metrics, times their threshold"),
            (
                (
                    f"{one.member.name} and {one.other_end}" if one.other_end else one.member.name,
                    one.member.peer_group,
                    _clock(one.first_s),
                    _clock(one.last_s),
                    one.incident,
                    f"{one.verdict}, silent" if one.is_silent else one.verdict,
                    ", ".join(f"{name} {peak:.1f}" for name, peak in list(one.metrics.items())[:SHOWN_METRICS])
                    + (f" and {len(one.metrics) - SHOWN_METRICS} more" if len(one.metrics) > SHOWN_METRICS else ""),
                )
                for one in found.faulty
            ),
        )
    else:
        print("no member passed its threshold for long enough to be called faulty")
    listed = [(hour_s, ranking) for hour_s, ranking in found.persistent if ranking]
    if listed:
        print("\nDate.Hour:  Value PG:member, the most persistent first")
    for hour_s, ranking in listed:
        print(f"{_hour_name(hour_s)}: " + "  ".join(f"{value:3} {m.peer_group}:{m.name}" for value, m in ranking))


def _clock(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
