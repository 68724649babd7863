"""The outputs under Ryu's green threads: a scrape and a disk hold no other thread up."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from apps.exporters.history import read_history
from apps.exporters.schema import RecordKind

ROOT = Path(__file__).parents[3]

CONTROLLER = """
from ryu.lib import hub
hub.patch(thread=False)  # as ryu-manager does
import ryu.base.app_manager
import json, logging, sys
import numpy as np
from pathlib import Path
from apps.exporters.registry import build_sinks
from apps.exporters.settings import OutputSettings, PrometheusSettings
from apps.exporters.sink import RatedSamples
from apps.openflow.framework import NAME
from controller.performance.batch import SampleRates, Samples
from controller.performance.ports import PortRows
ports = PortRows()
for row in range(4096):
    ports.add(1 + row // 64, 1 + row % 64, "eth", 1e9)
settings = OutputSettings(prometheus=PrometheusSettings(port=0))
sinks = build_sinks(settings, Path(sys.argv[1]), ports, logging.getLogger())
rows, at, none = np.arange(4096, dtype=np.int32), np.full(4096, 1_700_002_800.0), np.zeros(4096, np.uint16)
counters = np.full((4096, 12), 7, np.uint64)
rates = SampleRates(rows, at, at, np.ones((4096, 12)), np.ones((4096, 2)), none.astype(np.uint8), none, none)
turns = [0]
def poll():
    while True:
        turns[0] += 1
        hub.sleep(0)
def watch():
    sink = sinks.by_name["prometheus"]
    before = turns[0]
    while sink.state().totals["scraped"] == 0:
        before = turns[0]
        hub.sleep(0)
    while sink.server.answering:
        hub.sleep(0)
    during = turns[0] - before
    sinks.close()
    print(json.dumps({"framework": NAME, "during": during, "faults": sink.state().faults}), flush=True)
sinks.write(RatedSamples(Samples(rows, at, at, counters), rates))
print(sinks.by_name["prometheus"].server.port, flush=True)
hub.spawn(poll)
hub.joinall([hub.spawn(watch)])
"""


def test_others_get_their_turn_during_a_scrape_and_the_history_is_written(tmp_path: Path) -> None:
    pytest.importorskip("ryu")
    with subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as controller:
        assert controller.stdout is not None
        try:
            port = int(controller.stdout.readline())
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
                text = answer.read().decode()
            told = json.loads(controller.stdout.readline())
        finally:
            controller.kill()
    assert text.count("\nvsrt_port_receive_bytes_total{") == 4096
    assert (told["framework"], told["faults"]) == ("ryu", [])
    assert told["during"] >= 4 * 14, "polls had a turn between any two pieces"
    assert read_history(tmp_path / "history", RecordKind.COUNTERS, since_s=0, until_s=1e10).num_rows == 4096
