"""`vsrt emulate` from a scenario file to its JSON document."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from apps.cli.main import main
from apps.emulation.controller import Framework

pytestmark = pytest.mark.emulation
FRAMEWORK = "ryu"

SCENARIO = f"""\
version: 1
topology: {{name: fattree, k: 4}}
policy: {Path(__file__).parents[2] / "policies" / "example.yaml"}
warmup_s: 1
duration_s: 3
groups:
  - group: 239.1.1.1
    senders: [{{host: h1, rate_bps: 2e6}}, {{host: h3, rate_bps: 1e6}}]
    receivers: [h5, h9, h2, {{host: h13, igmp_version: 2}}]
  - group: 239.2.1.1
    senders: [{{host: h2, rate_bps: 2e6}}]
    receivers: [h6]
events:
  - {{at_s: 1, do: join, host: h10, group: 239.2.1.1}}
  - {{at_s: 1.5, do: leave, host: h6, group: 239.2.1.1}}
"""


def test_a_scenario_runs_and_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], framework: Framework
) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO)
    assert main(["emulate", str(file), "--framework", framework, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["algorithm"] == "vsrt"
    received = {(entry["group"], entry["host"]): entry for entry in result["receivers"]}
    assert received.keys() == {
        *(("239.1.1.1", host) for host in ("h5", "h9", "h13")),
        *(("239.2.1.1", host) for host in ("h6", "h10")),
    }
    for entry in received.values():
        assert entry["received"] == entry["sent"] > 0
        assert (entry["lost_pct"], entry["duplicates"]) == (0.0, 0)
        assert entry["first_packet_ms"] < 2000
    assert {"group": "239.1.1.1", "host": "h2", "role": "receiver", "received": 0} in result["refused"]
    assert {"group": "239.1.1.1", "host": "h3", "role": "sender"} in result["refused"]
