"""The end of a switch's connection is known when it comes, not when the next echo request is due."""

from __future__ import annotations

import time

import pytest
from controllers import controller

from apps.emulation.controller import ControllerProcess
from apps.simulated_fabric.lone import LoneSwitch
from apps.simulated_fabric.messages import FLOW_MOD
from apps.status_client import query
from patience import wait_until

POLICY = "version: 1\ndefault: deny\n"
TIMEOUT_S = 30.0
AT_ONCE_S = 0.6
"""Well below the interval of echo requests, 4 s, and well above what the end takes to be told."""


def has_entries(switch: LoneSwitch) -> bool:
    switch.turn()
    return switch.received[FLOW_MOD] > 0


def is_connected(process: ControllerProcess, dpid: int) -> bool:
    switches = query(process.socket, {"changes": {"switches": 0}})["sections"]["switches"]["multicast"]["put"]
    return bool(switches[str(dpid)]["connected"])


@pytest.mark.parametrize("mode", ["vsrt", "vsrt-os-ken"])
def test_the_end_of_a_connection_is_known_at_once(mode: str) -> None:
    pytest.importorskip("ryu" if mode == "vsrt" else "os_ken")
    ends_s = []
    with controller(mode, POLICY) as process:
        for dpid in range(1, 5):
            switch = LoneSwitch(dpid, 2, ("127.0.0.1", process.port))
            wait_until(lambda switch=switch: has_entries(switch), process.pid, TIMEOUT_S)
            assert is_connected(process, dpid)
            start = time.monotonic()
            switch.close()
            wait_until(lambda dpid=dpid: not is_connected(process, dpid), process.pid, TIMEOUT_S)
            ends_s.append(time.monotonic() - start)
    assert min(ends_s) < AT_ONCE_S
