"""What a controller writes is for its user and group, whatever the umask it was started with."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePath

import pytest

from apps.emulation.controller import ControllerProcess
from apps.emulation.free_ports import free_port
from apps.exporters.journal import SUFFIX
from apps.simulated_fabric.lone import LoneSwitch
from apps.status_client import query

pytest.importorskip("os_ken")

APPS = ("discovery", "multicast", "unicast", "monitor", "alarms", "anomaly", "allocator", "queues")
ON = "{enabled: true}"
POLICY = f"version: 1\nmonitor: {{interval_s: 1, history: {ON}, roll_ups: {ON}, event_log: {ON}}}\n"
TIMEOUT_S = 30.0


def modes(directory: Path) -> dict[str, int]:
    return {str(path.relative_to(directory)): stat.S_IMODE(path.stat().st_mode) for path in directory.rglob("*")}


def test_files_of_a_controller_are_for_its_user_and_group(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    state = tmp_path / "state"
    record = tmp_path / "recordings"
    record.mkdir()
    env = {"VSRT_STATE_DIR": str(state), "VSRT_RECORD": str(record / "all")}
    umask = os.umask(0)
    try:
        process = ControllerProcess(free_port(), framework="os-ken", policy=policy, apps=APPS, env=env)
        with process:
            switch = LoneSwitch(1, 4, ("127.0.0.1", process.port))
            assert switch.run_until(lambda: any(state.rglob(f"*{SUFFIX}")), TIMEOUT_S)
            assert "error" not in query(process.socket, {"do": "policy-reload"}, TIMEOUT_S)
    finally:
        os.umask(umask)
    found = modes(state) | modes(record)
    assert {PurePath(path).suffix for path in found} >= {".parquet", ".sqlite", ".jsonl"}
    assert {path: f"{mode:o}" for path, mode in found.items() if mode & 0o027} == {}
