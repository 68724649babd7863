"""Reports that a Linux kernel sends for real joins, captured in a network namespace of the test's own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from controller.wire.addresses import parse_ip
from controller.wire.frame import decode
from controller.wire.packets import GroupRecord, Malformed, RecordType, Report

pytestmark = pytest.mark.emulation

CAPTURE = r"""
import json, select, socket, struct, subprocess, sys, time

version, steps = sys.argv[1], json.loads(sys.argv[2])
run = lambda *command: subprocess.run(command, check=True, capture_output=True)
run("ip", "link", "add", "left", "type", "veth", "peer", "name", "right")
for family, name in (("ipv4", "force_igmp_version"), ("ipv6", "force_mld_version")):
    with open(f"/proc/sys/net/{family}/conf/left/{name}", "w") as knob:
        knob.write(version if family == "ipv4" else str(max(int(version) - 1, 1)))
with open("/proc/sys/net/ipv6/conf/left/accept_dad", "w") as knob:
    knob.write("0")
capture = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
run("ip", "address", "add", "10.0.0.1/24", "dev", "left")
for link in ("lo", "left", "right"):
    run("ip", "link", "set", link, "up")
run("ip", "route", "add", "224.0.0.0/4", "dev", "left")
capture.bind(("right", 0))
deadline = time.monotonic() + 10
while "fe80" not in open("/proc/net/if_inet6").read() and time.monotonic() < deadline:
    select.select([], [], [], 0.05)
index = socket.if_nametoindex("left")
four, six = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
local = socket.inet_aton("10.0.0.1")
storage = lambda text: struct.pack("=HHI16s104x", socket.AF_INET6, 0, 0, socket.inet_pton(socket.AF_INET6, text))
for action, group, source in steps:
    if ":" not in group:
        packed = socket.inet_aton(group)
        number = {"join": 35, "leave": 36, "join-source": 39, "leave-source": 40}[action]
        tail = packed + local + (socket.inet_aton(source) if source else b"")
        four.setsockopt(socket.IPPROTO_IP, number, tail)
    else:
        number = {"join": 20, "leave": 21, "join-source": 46, "leave-source": 47}[action]
        if source:
            value = struct.pack("=I4x", index) + storage(group) + storage(source)
        else:
            value = socket.inet_pton(socket.AF_INET6, group) + struct.pack("=I", index)
        six.setsockopt(socket.IPPROTO_IPV6, number, value)
    wanted = socket.inet_pton(socket.AF_INET6 if ":" in group else socket.AF_INET, group)
    if source:  # a report of the step before may be repeated after this one has begun
        wanted = bytes((5 if action == "join-source" else 6, 0, 0, 1)) + wanted
    for _ in range(400):
        if not select.select([capture], [], [], 1.5)[0]:
            break
        frame = capture.recv(2000)
        print(json.dumps([action, group, frame.hex()]))
        if wanted in frame[54:] + frame[38:54]:
            break
"""


def captured(version: int, steps: list[tuple[str, str, str]]) -> Iterator[tuple[str, str, bytes]]:
    """Each frame seen on the wire, with the step that was the last before it."""
    command = ["unshare", "--net", sys.executable, "-c", CAPTURE, str(version), json.dumps(steps)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        action, group, frame = json.loads(line)
        yield action, group, bytes.fromhex(frame)


@pytest.fixture(autouse=True)
def needs_a_namespace() -> None:
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("ip"):
        pytest.skip("needs root, unshare and ip")


STEPS = [
    ("join", "239.1.2.3", ""),
    ("leave", "239.1.2.3", ""),
    ("join", "ff1e::1234", ""),
    ("leave", "ff1e::1234", ""),
]
SOURCE_STEPS = [
    ("join-source", "232.1.2.3", "10.9.9.9"),
    ("leave-source", "232.1.2.3", "10.9.9.9"),
    ("join-source", "ff3e::1234", "2001:db8::9"),
    ("leave-source", "ff3e::1234", "2001:db8::9"),
]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_kernel_reports_are_understood(version: int) -> None:
    seen: dict[tuple[str, str], set[tuple[int, GroupRecord]]] = {}
    steps = STEPS + (SOURCE_STEPS if version == 3 else [])
    for action, group, frame in captured(version, steps):
        packet = decode(frame)
        assert not isinstance(packet, Malformed), (packet, frame.hex())
        if isinstance(packet, Report):
            wanted = {record for record in packet.records if record.group == parse_ip(group)}
            seen.setdefault((action, group), set()).update((packet.version, record) for record in wanted)
    mld_version = max(version - 1, 1)
    join = RecordType.CHANGE_TO_EXCLUDE if version == 3 else RecordType.MODE_IS_EXCLUDE
    leave = RecordType.CHANGE_TO_INCLUDE
    for text, number in (("239.1.2.3", version), ("ff1e::1234", mld_version)):
        group = parse_ip(text)
        kind = join if (text[0] == "2" or mld_version == 2) else RecordType.MODE_IS_EXCLUDE
        assert seen["join", text] == {(number, GroupRecord(kind, group))}
        if number > 1 or ":" in text:
            assert seen["leave", text] == {(number, GroupRecord(leave, group))}
        else:
            assert ("leave", text) not in seen or not seen["leave", text]
    if version == 3:
        for text, source, number in (("232.1.2.3", "10.9.9.9", 3), ("ff3e::1234", "2001:db8::9", 2)):
            joined = GroupRecord(RecordType.ALLOW_NEW_SOURCES, parse_ip(text), (parse_ip(source),))
            left = GroupRecord(RecordType.BLOCK_OLD_SOURCES, parse_ip(text), (parse_ip(source),))
            assert (number, joined) in seen["join-source", text]
            assert (number, left) in seen["leave-source", text]
