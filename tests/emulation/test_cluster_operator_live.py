"""Another controller takes over: labels, addresses of pools and a campaign go on with it, and no packet is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.emulation.cluster import wait_that
from apps.emulation.controller import ControllerProcess
from apps.status_client import query
from several_controllers import SETTLED_S, Clustered, vsrt

pytestmark = [pytest.mark.emulation, pytest.mark.each_framework, pytest.mark.timeout(300)]

POLICY = """\
version: 1
default: allow
pools: {video: [239.10.0.0/24]}
maintenance: {quiet_s: 0.5, soak_s: 0.5, quiet_limit_s: 60, back_limit_s: 60}
"""


def take(member: ControllerProcess, name: str) -> str:
    told = json.loads(vsrt(member, "do", "address", "take", "video", "--name", name, "--json"))
    return str(told["address"])


def chosen(member: ControllerProcess, selector: str) -> list[int]:
    found = json.loads(vsrt(member, "show", "switches", "--select", selector, "--json"))
    return [int(document["dpid"]) for document in found]


def step_of(member: ControllerProcess, dpid: int) -> tuple[str, bool]:
    told = query(member.socket, {"changes": {"maintenance": 0}})
    work: dict[str, Any] = told["sections"]["maintenance"]["multicast"]["put"].get(str(dpid), {})
    return work.get("step", "none"), work.get("claimed", False)


def maintain(member: ControllerProcess, *words: str) -> list[str]:
    return [str(Path(sys.executable).parent / "vsrt"), "maintain", *words, "--socket", str(member.socket)]


def test_what_operators_set_and_a_campaign_go_on_with_who_takes_over(
    clustered: Callable[..., Clustered], tmp_path: Path
) -> None:
    net = clustered(3, of_cluster={"policy": POLICY})
    s3 = net.fabric.dpid("s3")
    vsrt(net.leader, "do", "label", "add", str(s3), "rack=b7")
    assert [take(net.leader, name) for name in ("cam1", "cam2")] == ["239.10.0.0", "239.10.0.1"]

    hook, begun, may_end = tmp_path / "upgrade", tmp_path / "begun", tmp_path / "may-end"
    hook.write_text(f'#!/bin/sh\necho "$2" >> {begun}\nwhile [ ! -e {may_end} ]; do sleep 0.05; done\n')
    hook.chmod(0o755)
    order = ["--select", "rack=b7", "--disruptive", "--hook", str(hook)]
    first = subprocess.Popen(maintain(net.leader, "start", *order), stdout=subprocess.DEVNULL)
    try:
        wait_that("the upgrade of s3 has begun", begun.exists, SETTLED_S)
        assert step_of(net.leader, s3) == ("hook", True)
        net.leader.kill()
        now = net.cluster.members[net.wait_other_leader().member]
    finally:
        first.terminate()
        first.wait()

    assert chosen(now, "rack=b7") == [s3]
    assert chosen(now, "state=drained") == [s3]
    assert [take(now, name) for name in ("cam2", "cam3")] == ["239.10.0.1", "239.10.0.2"]
    assert step_of(now, s3) == ("hook", True)
    may_end.touch()
    ended = subprocess.run(
        [*maintain(now, "resume", "--hook", str(hook)), "--json"], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, json.loads(ended.stdout)["campaign"]["state"]) == (0, "done"), ended
    assert len(begun.read_text().splitlines()) == 2
    assert chosen(now, "state=drained") == []
    net.check_nothing_lost()
