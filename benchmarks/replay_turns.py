"""How long the cores of a recorded run take for each event, by processor time: what else goes on hardly counts.

    VSRT_RECORD=run.jsonl python benchmarks/live_fabric.py --k 16 --parts start,hosts,joins,link-failure
    python benchmarks/replay_turns.py run.jsonl [--top 20] [--over-ms 5] [--json]

Python's cyclic collector is off. What a core left for later goes on at the next deadline that was recorded.
"""

from __future__ import annotations

import argparse
import gc
import heapq
import json
import time
from dataclasses import dataclass
from pathlib import Path

from measure import print_table

from apps.replays import Replay, read_lines


@dataclass
class Kind:
    """Events of one kind at one core, in milliseconds of processor time."""

    count: int = 0
    sum_ms: float = 0.0
    longest_ms: float = 0.0
    over_count: int = 0


def measure(path: Path, over_ms: float) -> dict[tuple[str, str], Kind]:
    """Replay a recording and return what it took by app and kind of event; `over_count` is of those over a time."""
    replay, found = Replay(), dict[tuple[str, str], Kind]()
    gc.collect()
    gc.disable()
    try:
        with path.open(encoding="utf-8") as lines:
            for line in read_lines(lines):
                began_s = time.thread_time()
                replay.take(line)
                took_ms = 1e3 * (time.thread_time() - began_s)
                if line.kind == "start":
                    continue
                kind = found.setdefault((line.app, type(line.content).__name__), Kind())
                kind.count += 1
                kind.sum_ms += took_ms
                kind.longest_ms = max(kind.longest_ms, took_ms)
                kind.over_count += took_ms > over_ms
    finally:
        gc.enable()
    return found


def main() -> None:
    """Print the kinds of events with the longest ones first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="a recording (made where VSRT_RECORD names a file)")
    parser.add_argument("--top", type=int, default=20, help="kinds of events to print (default: %(default)s)")
    parser.add_argument("--over-ms", type=float, default=5.0, help="count longer ones (default: %(default)s)")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = measure(arguments.file, arguments.over_ms)
    top = heapq.nlargest(arguments.top, found.items(), key=lambda item: item[1].longest_ms)
    if arguments.json:
        print(json.dumps([{"app": app, "event": event, **vars(kind)} for (app, event), kind in top]))
        return
    heading = ("app", "event", "count", "sum, ms", "longest, ms", f"over {arguments.over_ms:g} ms")
    rows = [
        (app, event, kind.count, f"{kind.sum_ms:.0f}", f"{kind.longest_ms:.1f}", kind.over_count)
        for (app, event), kind in top
    ]
    print_table(heading, rows)


if __name__ == "__main__":
    main()
