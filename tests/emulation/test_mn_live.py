"""Mininet's own command, as the README gives it: its pingall, and iperf in its hosts."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from apps.emulation.controller import ControllerProcess
from apps.emulation.namespace import private_network
from apps.emulation.network import CONTROLLER_PORT
from apps.emulation.ovs import PrivateOpenVSwitch

pytestmark = [pytest.mark.emulation, pytest.mark.unhurried]

ROOT = Path(__file__).parents[2]
MN = Path(sys.executable).with_name("mn")

SCRIPT = """\
pingall
h2 iperf -s -u -B 239.1.1.1 -t 60 > {directory}/h2 2>&1 &
h9 iperf -s -u -B 239.1.1.1 -t 60 > {directory}/h9 2>&1 &
h5 iperf -s -u -B 239.9.9.9 -t 60 > {directory}/h5 2>&1 &
h1 sleep 2; iperf -c 239.1.1.1 -u -b 2M -t 1 -T 32; sleep 4
"""


def test_mn_s_hosts_ping_and_join(tmp_path: Path) -> None:
    # Should mn fail it kills by name: in a process namespace of its own it finds nobody else's.
    command = [
        "unshare",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        MN,
        "--custom",
        ROOT / "topology" / "mn.py",
    ]
    command += ["--topo", "fattree,4", "--controller", "remote", "--switch"]
    with (
        private_network(),
        PrivateOpenVSwitch() as ovs,
        ControllerProcess(CONTROLLER_PORT, policy=ROOT / "policies" / "open.yaml"),
    ):
        command.append(f"ovs,datapath={ovs.datapath},protocols=OpenFlow13")
        done = subprocess.run(
            command,
            input=SCRIPT.format(directory=tmp_path),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "0% dropped (240/240 received)" in said
    for host in ("h2", "h9"):
        assert re.search(r" 0/\d\d+ \(0%\)", (tmp_path / host).read_text()), host
    assert "connected with" not in (tmp_path / "h5").read_text()
