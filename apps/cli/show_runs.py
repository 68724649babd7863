"""What is shown of runs: a profile of the controller, and a storm against it."""

from __future__ import annotations

from collections.abc import Iterator

from apps.cli.called import SnapshotNames
from apps.cli.show_cells import Fields, Row, text

RUN_TITLES = ("RUN", "STATE", "BEGUN (UTC)", "BY", "WHAT")


def run_rows(run: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the run, and below it its operations, or the storms that were played."""
    start = run.get("run"), text(run.get("state")), called.clock(run.get("begun_s")), text(run.get("by"))
    if run.get("run") == "profile":
        yield *start, f"{run['name']}: {run['spans']:,} operations ended, {run['under_way']:,} under way"
        for each in run.get("operations") or ():
            yield "", "", "", "", f"{each['operation']}: {each['count']:,} done{_times(each)}"
    else:
        yield *start, f"{run['joins']:,} joins, {run['stage']}: {run['done']:,} of {run['total']:,}"
        for each in run.get("storms") or ():
            goal = "kept" if each["keeps_goal"] else "missed"
            yield (
                "",
                "",
                "",
                "",
                f"{each['joins']:,} joins{_times(each)}; {each['unserved']:,} not served, goal {goal}",
            )
    if run.get("fault"):
        yield "", "", "", "", text(run["fault"])


def _times(each: Fields) -> str:
    told = [f"{name[:-3]} {each[name]:,.1f} ms" for name in ("p50_ms", "p99_ms") if each.get(name) is not None]
    return f", {', '.join(told)}" if told else ""
