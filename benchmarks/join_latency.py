"""From a membership report on the wire to its flow entry on one Open vSwitch: ours beside Ryu's igmplib. As root.

    python benchmarks/join_latency.py [--joins 200] [--json]

A report leaves a raw socket on a veth pair; Open vSwitch's own flow monitor tells when the entry is there. igmplib
(ryu.app.simple_switch_igmp_13) is sent IGMPv2 reports, the only ones it snoops; ours IGMPv3 ones, admitted by policy.
"""

from __future__ import annotations

import argparse
import selectors
import socket
import subprocess
import time
from pathlib import Path

from control_plane import _address, _group, _mac
from controllers import CONTROLLERS, controller
from measure import Measurement, names_of, report

from apps.emulation import processes
from apps.emulation.namespace import private_network
from apps.emulation.ovs import PrivateOpenVSwitch
from controller.wire.encode import encode
from controller.wire.packets import GroupRecord, Query, RecordType, Report

BRIDGE, PORTS = "br0", 3
PAUSE_S = 0.01
TIMEOUT_S = 5.0


class OneSwitch:
    """A bridge whose ports end in raw sockets here."""

    def __init__(self, datapath: str, controller_port: int) -> None:
        kind = "netdev" if datapath == "user" else "system"
        processes.run(
            "ovs-vsctl", "add-br", BRIDGE, "--", "set", "bridge", BRIDGE, f"datapath_type={kind}",
            "protocols=OpenFlow10,OpenFlow13", "fail_mode=secure", "other-config:datapath-id=0000000000000001",
        )  # fmt: skip
        self.sockets: dict[int, socket.socket] = {}
        for number in range(1, PORTS + 1):
            near, far = f"p{number}", f"h{number}"
            processes.run("ip", "link", "add", near, "type", "veth", "peer", "name", far)
            for name in (near, far):
                Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")
                processes.run("ip", "link", "set", name, "up")
            processes.run(
                "ovs-vsctl", "add-port", BRIDGE, near, "--", "set", "interface", near, f"ofport_request={number}"
            )
            raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            raw.bind((far, 0))
            self.sockets[number] = raw
        processes.run("ovs-vsctl", "set-controller", BRIDGE, f"tcp:127.0.0.1:{controller_port}")
        processes.run("ovs-vsctl", "--timeout=10", "wait-until", "controller", ".", "is_connected=true")

    def close(self) -> None:
        for raw in self.sockets.values():
            raw.close()
        processes.run("ovs-vsctl", "del-br", BRIDGE)
        for number in self.sockets:
            processes.run("ip", "link", "del", f"h{number}")


def latencies_ms(name: str, joins: int) -> list[float]:
    with private_network(), PrivateOpenVSwitch() as ovs, controller(name) as process:
        switch = OneSwitch(ovs.datapath, process.port)
        time.sleep(2.0)
        if name == "igmplib":
            switch.sockets[1].send(encode(Query(4, 2, _mac(1), _address(1), None, (), 10.0, False, None, None)))
            time.sleep(0.5)
        monitor = subprocess.Popen(
            ["ovs-ofctl", "-O", "OpenFlow10", "monitor", BRIDGE, "watch:!initial,!delete"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            time.sleep(0.5)
            return _join_all(switch, monitor, 2 if name == "igmplib" else 3, joins)
        finally:
            monitor.terminate()
            monitor.wait()
            switch.close()


def _join_all(switch: OneSwitch, monitor: subprocess.Popen[bytes], version: int, joins: int) -> list[float]:
    assert monitor.stdout is not None
    kind = RecordType.CHANGE_TO_EXCLUDE if version == 3 else RecordType.MODE_IS_EXCLUDE
    found = []
    with selectors.DefaultSelector() as selector:
        selector.register(monitor.stdout, selectors.EVENT_READ)
        for number in range(joins):
            group = _group(number)
            frame = encode(Report(4, version, _mac(2), _address(2), (GroupRecord(kind, group),)))
            wanted = f"nw_dst={'.'.join(map(str, group))}".encode()
            start = time.perf_counter()
            switch.sockets[2].send(frame)
            seen = b""
            while wanted not in seen:
                if not selector.select(TIMEOUT_S) or time.perf_counter() - start > TIMEOUT_S:
                    raise TimeoutError(
                        f"no flow entry for {wanted.decode()} after {TIMEOUT_S} s; last seen: {seen!r}"
                    )
                seen += monitor.stdout.read1(65536)  # type: ignore[attr-defined]
            found.append(1000 * (time.perf_counter() - start))
            time.sleep(PAUSE_S)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--joins", type=int, default=200)
    parser.add_argument("--controllers", type=names_of(CONTROLLERS), default=["vsrt", "igmplib", "vsrt-os-ken"])
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    results = [
        Measurement(f"report to flow entry, {name}", "ms", latencies_ms(name, args.joins))
        for name in args.controllers
    ]
    report(results, as_json=args.json, source=Path(__file__).name)


if __name__ == "__main__":
    main()
