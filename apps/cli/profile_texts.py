"""A profile with what it shows, and the words that tables and pages have for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from apps.profile_file import Profile
from controller.profiles.figures import OperationChange, OperationFigures
from controller.profiles.spans import SpanOutcome


class ProfileReport(NamedTuple):
    """A profile with what it shows, in the order of `Operation`."""

    profile: Profile
    operations: Sequence[OperationFigures]

    def document(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "file": str(self.profile.path),
            **self.profile.about,
            **self.profile.end,
            "operations": [each.document() for each in self.operations],
        }


def head_lines(report: ProfileReport) -> list[str]:
    """Return what a profile is, in sentences."""
    about, end = report.profile.about, report.profile.end
    began = datetime.fromtimestamp(about["begun_s"], UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    lasted = "" if "ended_s" not in end else f", {end['ended_s'] - about['begun_s']:.1f} s long: {end['ended']}"
    lines = [f"profile {about.get('name', report.profile.path.name)} of {began}{lasted}"]
    if end.get("missed"):
        lines.append(f"{end['missed']:,} spans found no room and are not in it")
    return lines


def cell(value: float | None) -> str:
    """Return a time, or a hyphen for none."""
    return "-" if value is None else f"{value:,.1f}"


def change_text(change: OperationChange) -> str:
    """Return a change in percent, or a hyphen where it is not told."""
    return "-" if change.change_pct is None else f"{change.change_pct:+.1f} %"


def waits_text(figures: OperationFigures) -> str:
    """Return the mean waits, such as ``loop 0.2, switch 1.1``; a hyphen for none."""
    return ", ".join(f"{name} {value:.1f}" for name, value in figures.waits_ms.items()) or "-"


def others_text(figures: OperationFigures) -> str:
    """Return how many ended otherwise, such as ``3 no-edits``; a hyphen for none."""
    others = {name: count for name, count in figures.outcomes.items() if name != SpanOutcome.DONE.value}
    return ", ".join(f"{count:,} {name}" for name, count in sorted(others.items())) or "-"
