"""The guide that gives a feed priority, command by command as it stands there, on switches with queues."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from apps.emulation.network import EmulatedFabric
from how_to import ROOT, SYSTEM_PATH, Reader, blocks, files, wait
from topology.generators import make

pytestmark = [pytest.mark.emulation]

PAGE = "give-a-feed-priority.md"
PORTS = 8
_LOST = re.compile(r"(\d+)/ *(\d+) \(")


def lost_pct(log: str) -> float:
    """Return how much iperf says was lost, of its last report."""
    lost, of = map(int, _LOST.findall(log)[-1])
    return 100 * lost / of


def at_hosts(reader: Reader, fabric: EmulatedFabric, block: str) -> None:
    """Run what is typed at Mininet's prompt."""
    for line in block.splitlines():
        host, command = line.removeprefix("mininet> ").split(" ", 1)
        reader.run(f"nsenter --net=/proc/{fabric.pid(host)}/ns/net -- {command}")


def test_a_feed_is_given_priority(tmp_path: Path) -> None:
    check, shorten, serve, see_rows, sort, see_logs, see = blocks(PAGE)
    _, listens, sends = blocks(PAGE, "text")
    with EmulatedFabric(make("leaf-spine", {"leaves": 2, "spines": 1, "hosts_per_leaf": 2})) as fabric:
        fabric.wait_addresses()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("VSRT_")}
        environment |= {"PATH": f"{Path(sys.executable).parent}:{SYSTEM_PATH}", "PYTHONPATH": str(ROOT)}
        server = str(fabric.ovs.directory / "db.sock")
        for name, text in files(PAGE).items():
            (tmp_path / name).write_text(text.replace("/run/openvswitch/db.sock", server))
        with Reader(tmp_path, environment) as reader:
            assert "good" in reader.run(check)
            reader.run(shorten)
            reader.run(serve)
            wait(lambda: reader.run(see_rows).count("max-rate") == PORTS)
            fabric.announce()
            wait(lambda: reader.ask({"show": "status"})["hosts"] >= 4)
            reader.run(sort)
            at_hosts(reader, fabric, listens)
            wait(lambda: {"239.1.1.1", "239.2.1.1"} <= {found["group"] for found in reader.ask({"show": "groups"})})
            wait(lambda: reader.ask({"show": "status"})["in_sync"])
            at_hosts(reader, fabric, sends)

            def logs() -> list[str]:
                return [(tmp_path / f"h3-{name}.log").read_text() for name in ("market", "backup")]

            wait(lambda: all(_LOST.search(log) for log in logs()))
            market, backup = map(lost_pct, logs())
            assert backup > 10
            assert market < backup / 4, "a busy machine loses packets of both, a queue those of one"
            assert reader.run(see_logs)
            shown = reader.run(see)
            assert re.search(r"^market .* 6 +loss_pct 0.1 ", shown, re.MULTILINE)
