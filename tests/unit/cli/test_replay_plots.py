"""Plots of a replay, of many receivers and of one, and of a single packet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.cli.replay_plots import SHOWN_RECEIVERS, write_replay_plots


def result(receivers: int, gap_errors: list[tuple[float, int]]) -> dict[str, Any]:
    return {
        "replay": {"gap_errors": gap_errors},
        "receivers": [
            {"host": f"h{number}", "group": "239.1.1.1", "sent": 100, "received": 100 - number, "lost_pct": number}
            for number in range(receivers)
        ],
    }


@pytest.mark.parametrize(("receivers", "gap_errors"), [(1, [(1e-5, 99)]), (60, [(0.0, 3), (0.002, 1)]), (0, [])])
def test_plots_are_written_and_name_who_lost_most(
    tmp_path: Path, receivers: int, gap_errors: list[tuple[float, int]]
) -> None:
    paths = write_replay_plots(tmp_path / "plots", result(receivers, gap_errors), "feed.pcap")
    assert {path.name for path in paths} == {
        f"{name}.{kind}" for name in ("gap-errors", "receivers") for kind in ("png", "svg")
    }
    text = (tmp_path / "plots" / "receivers.svg").read_text()
    assert ("h59 of 239.1.1.1" in text) is (receivers == 60)
    assert text.count(" of 239.1.1.1") == min(receivers, SHOWN_RECEIVERS)
