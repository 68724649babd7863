"""What a port that floods reports costs the controller, with its switch cutting it off and without.

    python benchmarks/membership_flood.py [--per-second 50000] [--seconds 5] [--json]

One edge port of a switch in memory repeats a membership report. What the switch's entries send to the controller goes
through the core; entries that follow take effect 10 ms later. Told are packet-ins and processor time per second.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import deque
from typing import Any

from controller.config.policy import Policy
from controller.config.settings import Limits
from controller.discovery.base_rules import base_rules
from controller.effects import ApplyEdits, RequestFlows
from controller.events import DeadlineReached, PacketReceived, Port, SwitchConnected
from controller.multicast.core import MulticastCore
from controller.rules.evaluate import Fields
from controller.rules.fake import FakeSwitch
from controller.wire.encode import encode
from controller.wire.packets import GroupRecord, RecordType, Report
from topology.events import PortRole, PortRoleChanged, SwitchUp

LAG_S = 0.01
MAC, ADDRESS, GROUP = bytes.fromhex("020000000001"), b"\x0a\0\0\1", b"\xef\1\2\3"
UNLIMITED = 1e12


def measure(per_second: int, seconds: float, *, guarded: bool, version: int = 4) -> dict[str, float]:
    """Run one flood; return packet-ins and processor seconds per second of it."""
    now, spent_s, punted = 0.0, 0.0, 0
    core = MulticastCore(Policy(default_allow=True, limits=Limits()), now)
    if not guarded:
        core.membership_policer.set_limits(Limits(reports_per_second_per_port=UNLIMITED))
    switch = FakeSwitch(1, version)
    for rule in base_rules(version):
        switch.tables.put(rule)
    waiting: deque[Any] = deque()

    def feed(event: object) -> None:
        nonlocal spent_s
        start = time.process_time()
        effects = core.handle(event, now)
        spent_s += time.process_time() - start
        waiting.extend(effect for effect in effects if isinstance(effect, ApplyEdits | RequestFlows))

    def settle() -> None:
        while waiting:
            for event in switch.respond(waiting.popleft(), now):
                feed(event)
        while (due_s := core.next_deadline()) is not None and due_s <= now:
            feed(DeadlineReached())

    feed(SwitchConnected(1, version, (Port(1, "", bytes(6), True, 1e9),)))
    feed(SwitchUp(1, version))
    feed(PortRoleChanged(1, 1, PortRole.EDGE))
    for _ in range(3):
        settle()
        now += LAG_S
    record = GroupRecord(RecordType.MODE_IS_EXCLUDE, GROUP, ())
    frame = encode(Report(4, 3, MAC, ADDRESS, (record,)))
    fields = Fields(frame[:6], MAC, 0x0800, 2, ADDRESS, frame[30:34])
    spent_s, end_s = 0.0, now + seconds
    while now < end_s:
        switch.expire(now)
        for _ in range(round(per_second * LAG_S)):
            if switch.process(fields, 1).sent:
                punted += 1
                feed(PacketReceived(1, 1, frame))
        now += LAG_S
        settle()
    return {"packet_ins_per_s": punted / seconds, "cpu_pct": 100 * spent_s / seconds}


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--per-second", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = {
        name: measure(arguments.per_second, arguments.seconds, guarded=guarded)
        for name, guarded in (("not cut", False), ("cut at the switch", True))
    }
    if arguments.json:
        print(json.dumps(results))
        return
    for name, result in results.items():
        print(f"{name:18} {result['packet_ins_per_s']:9,.0f} packet-ins/s {result['cpu_pct']:6.1f} % of a core")


if __name__ == "__main__":
    main()
