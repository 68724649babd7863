"""A capture of a host's own cable: inspected, made a scenario, and replayed packet for packet."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from apps.cli.main import main
from apps.emulation.controller import ControllerProcess, Framework
from apps.emulation.namespace import network_of
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from how_to import blocks
from topology.generators import make

pytestmark = pytest.mark.emulation
FRAMEWORK = "ryu"
GROUP = "239.1.1.1"


def captured(path: Path, framework: Framework, policy: Path) -> int:
    """Capture at a receiver's cable, which joins in front of it and leaves; return what the receiver counted."""
    controller = ControllerProcess(CONTROLLER_PORT, framework=framework, policy=policy)
    with EmulatedFabric(make("fattree", {"k": 4}), controller=controller) as fabric:
        controller.wait_discovered(fabric)
        fabric.announce()
        with network_of(fabric.pid("h5")):
            command = ("tcpdump", "-i", fabric.interface("h5"), "-n", "-U", "-s", "128", "-w", str(path))
            watch = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert watch.stderr is not None
        with watch:
            while "listening on" not in watch.stderr.readline():
                assert watch.poll() is None
            fabric.join("h5", GROUP)
            controller.wait_until("groups", lambda groups: any(each["members"] for each in groups), 20.0)
            fabric.open_stream(1, "h1", GROUP, 4e6)
            fabric.send(0, 2.0)
            fabric.wait_sent(20.0)
            streams = fabric.settled()[f"h5 {GROUP}"]["streams"]
            fabric.leave("h5", GROUP)
            controller.wait_until("groups", lambda groups: not any(each["members"] for each in groups), 30.0)
            watch.terminate()
        return int(streams["1:0"]["received"])


def test_a_capture_is_replayed_packet_for_packet_by_the_guide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], framework: Framework
) -> None:
    monkeypatch.chdir(tmp_path)
    inspect, make_scenario, replay_it = (
        shlex.split(block.removeprefix("sudo "))[1:] for block in blocks("replay-a-capture.md")
    )
    capture, policy = tmp_path / "feed.pcap", tmp_path / "policy.yaml"
    policy.write_text("version: 1\ndefault: allow\n")
    count = captured(capture, framework, policy)
    assert count > 500
    assert main([*inspect, "--json"]) == 0
    groups = {each["group"]: each for each in json.loads(capsys.readouterr().out)["groups"]}
    group = groups[GROUP]
    assert (group["frames"], group["bytes"]) == (count, count * 1250)
    assert (group["hosts"], group["joins"], group["leaves"]) == (1, 1, 1)
    assert [each["address"] for each in group["senders"]] == ["10.0.0.1"]
    assert main(make_scenario) == 0
    capsys.readouterr()
    assert main([*replay_it, "--framework", framework, "--json", "--speed", "2", "--plot", "plots"]) == 0
    result = json.loads(capsys.readouterr().out)
    (entry,) = result["receivers"]
    assert (entry["sent"], entry["received"], entry["duplicates"]) == (count, count, 0)
    assert entry["bytes"] == count * 1250
    replay = result["replay"]
    assert (replay["packets"], replay["bytes"], replay["errors"]) == (count, count * 1250, 0)
    assert replay["planned"] == {"packets": count, "bytes": count * 1250}
    assert replay["gap_error"]["p50_ms"] < 2
    assert sum(gaps for _, gaps in replay["gap_errors"]) == count - 1
    assert {Path(path).name for path in result["plots"]} == {
        f"{name}.{kind}" for name in ("gap-errors", "receivers") for kind in ("png", "svg")
    }
    assert "h" in (tmp_path / "plots" / "receivers.svg").read_text()
