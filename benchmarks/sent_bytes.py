"""What a controller sends its switches, byte for byte, beside what another version of it sends, in one session.

    python benchmarks/sent_bytes.py --other DIRECTORY [--k 4] [--json]
    python benchmarks/sent_bytes.py --without apps.cluster,controller.cluster
    python benchmarks/sent_bytes.py --policy 'overcommit: {mode: off, capacity: {default: 24}}'

DIRECTORY has the other version's files (`git worktree add DIRECTORY REVISION`); `--without` has the same version run
again where these packages cannot be imported, `--policy` with these lines at the end of its policy file. Both
controllers are alone, and have the same simulated fabric, whose hosts speak, send, join and leave in the same order,
one after the other. Compared are, for each switch, its flow entries when the fabric is known and in the end, and
what it was sent in between, but for transaction ids, and but for LLDP and ARP frames, which have a key that is drawn
at the start and times of day in them. Of readings, barriers and packets it is compared which were sent, not how
often, for that follows time. Ends with status 1 where something differs, and says what.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TypeAlias

from controllers import OPEN_POLICY
from fabric_simulator.run import LiveRun, PolicyText, group_address
from measure import Measurement, report

from apps.emulation.controller import ControllerProcess
from apps.emulation.free_ports import free_port
from apps.simulated_fabric import messages
from apps.simulated_fabric.fabric import SimulatedFabric
from apps.simulated_fabric.frames import LLDP
from apps.simulated_fabric.switch import SimulatedSwitch
from topology.generators import make

TIMEOUT_S = 60.0
GROUPS, MEMBERS = 12, 3
ARP = b"\x08\x06"
BY_TIME = (
    *(messages.ECHO_REPLY, messages.ECHO_REQUEST, messages.BARRIER_REQUEST),
    *(messages.MULTIPART_REQUEST, messages.PACKET_OUT),
)
"""Messages that are sent again and again."""

Held: TypeAlias = set[tuple[object, ...]]

REFUSING = """\
import sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if any(name == each or name.startswith(each + ".") for each in {names!r}):
            raise ModuleNotFoundError(f"{{name}} is not there", name=name)

sys.meta_path.insert(0, Refusing())
"""


class Sent:
    """What each switch was sent: flow-mods and the like by their bytes, packets that the controller sends apart."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[int, bytes]] = Counter()
        self.once: set[tuple[int, bytes]] = set()

    def take(self, dpid: int, message: bytes) -> None:
        """Take a message that a switch was sent."""
        kind = message[1]
        masked = message[:4] + bytes(4) + message[8:]
        if kind == messages.PACKET_OUT:
            start = 24 + int.from_bytes(message[16:18], "big")
            if message[start + 12 : start + 14] in (LLDP, ARP):
                return
        (self.once.add if kind in BY_TIME else self._count)((dpid, masked))

    def _count(self, message: tuple[int, bytes]) -> None:
        self.counts[message] += 1


def record(switch: SimulatedSwitch, sent: Sent) -> None:
    """Have what a switch takes recorded."""
    take, rest = switch.take, bytearray()

    def taken(data: bytes, now: float) -> None:
        rest.extend(data)
        while len(rest) >= 8 and len(rest) >= (length := int.from_bytes(rest[2:4], "big")):
            sent.take(switch.dpid, bytes(rest[:length]))
            del rest[:length]
        take(data, now)

    switch.take = taken  # type: ignore[method-assign]


def held_by(fabric: SimulatedFabric) -> Held:
    """Return the flow entries of all switches."""
    return {
        (dpid, key, entry.cookie, entry.times, entry.instructions)
        for dpid, switch in fabric.switches.items()
        for key, entry in switch.table.held.items()
    }


def session(k: int, env: dict[str, str], lines: str = "") -> tuple[Held, Sent, Held]:
    """Return entries when the fabric is known, what switches are sent from then on, and entries in the end."""
    port, sent = free_port(), Sent()
    fabric = SimulatedFabric(make("fattree", {"k": k}), ("127.0.0.1", port))
    for switch in fabric.switches.values():
        record(switch, sent)
    with tempfile.TemporaryDirectory() as directory:
        policy = Path(directory) / "policy.yaml"
        policy.write_text(f"{OPEN_POLICY}monitor: {{prometheus: {{port: 0}}}}\n{lines}\n")
        with ControllerProcess(port, framework="os-ken", policy=policy, env=env) as process:
            run = LiveRun(process, fabric, PolicyText(policy, ""), 0, TIMEOUT_S, 1)
            try:
                for dpid in fabric.switches:
                    fabric.connect([dpid])
                    fabric.run_for(0.05)
                run.wait_found()
                settle(run)
                known = held_by(fabric)
                sent.counts.clear()
                sent.once.clear()
                talk(run)
            finally:
                run.questions.close()
                fabric.close()
    return known, sent, held_by(fabric)


def talk(run: LiveRun) -> None:
    """Have hosts speak, send, join and leave."""
    for host in run.hosts.all:
        run.speak([host])
        settle(run, 0.1)
    for number in range(GROUPS):
        group = group_address(number)
        run.hosts.send(run.random.choice(run.hosts.all), group)
        settle(run, 0.2)
        for _ in range(MEMBERS):
            member = run.new_member(group)
            if member is not None:
                run.hosts.join(member, group)
                settle(run, 0.2)
    for number in range(0, GROUPS, 2):
        for host in run.members[group_address(number)][:2]:
            run.hosts.leave(host, group_address(number))
            settle(run, 0.2)
    settle(run, 3.0)


def settle(run: LiveRun, for_s: float = 1.0) -> None:
    """Go on until nothing was edited for a time."""
    before = -1
    while before != run.watch.edit_count():
        before = run.watch.edit_count()
        run.fabric.run_for(for_s)


def told(what: str, one: set[object], other: set[object]) -> int:
    """Tell what differs, some of it, and return how much."""
    for side, more in (("this alone", one - other), ("the other alone", other - one)):
        for each in sorted(more, key=repr)[:5]:
            print(f"{what}, {side}: {each!r}", file=sys.stderr)
    return len(one ^ other)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--other", type=Path)
    parser.add_argument("--without", default="", help="packages, with commas between")
    parser.add_argument("--policy", default="", metavar="YAML", help="lines of the other's policy file")
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "sitecustomize.py").write_text(REFUSING.format(names=args.without.split(",")))
        here = str(Path(__file__).parent.parent)
        path = str(args.other.resolve()) if args.other is not None else f"{name}:{here}"
        one, other = session(args.k, {}), session(args.k, {"PYTHONPATH": path}, args.policy)
    found = [
        Measurement("flow entries when the fabric is known", "", [len(one[0])]),
        Measurement("messages that change switches", "", [one[1].counts.total()]),
        Measurement("other messages, different ones", "", [len(one[1].once)]),
        Measurement("flow entries in the end", "", [len(one[2])]),
    ]
    differences = {
        "flow entries of one alone when the fabric is known": told("held", set(one[0]), set(other[0])),
        "messages of one alone, or not as often": told(
            "sent", set(one[1].counts.items()), set(other[1].counts.items())
        ),
        "other messages of one alone": told("asked", set(one[1].once), set(other[1].once)),
        "flow entries of one alone in the end": told("held", set(one[2]), set(other[2])),
    }
    found += [Measurement(what, "", [count]) for what, count in differences.items()]
    report(found, as_json=args.json, source="sent_bytes")
    sys.exit(1 if any(differences.values()) else 0)


if __name__ == "__main__":
    main()
