"""Controllers that share a fabric in tests with Open vSwitch: what is waited for, what is cut off, what was lost."""

from __future__ import annotations

import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from apps.emulation import processes
from apps.emulation.cluster import FABRIC, EmulatedCluster, EtcdServer, store_address, wait_that
from apps.emulation.controller import ControllerProcess
from apps.emulation.network import EmulatedFabric
from apps.emulation.processes import EmulationError
from apps.status_client import query
from controller.cluster.engine import KeyPage, PutKey, ReadPage, Silent, Transaction
from controller.cluster.keys import Keys, Leader, read_present
from patience import HeldUp
from topology.graph import Graph, NodeKind

GROUP = "239.1.1.1"
RATE_BPS = 4e6
SERVED_S = 5.0
"""A join is served within a second on a quiet machine (docs/cluster.md); a busy one has this long, and as long as
processes that would serve it have no processor."""

SETTLED_S = 60.0

SLOW_STORE = ("engine-unreachable", "engine-unconfirmed")
"""Why a controller refuses an order while the store's answers take longer than it waits."""

VERSIONS: dict[str, dict[str, Any]] = {
    "OpenFlow13": {},
    "OpenFlow10": {"protocols": "OpenFlow10"},
    "mixed": {"old_switches": ("s3",)},
}
"""Which switches of a fabric speak OpenFlow 1.3 and 1.0."""

CUTS = "cuts"
"""The table of nftables that loses frames."""


class Clustered:
    """Three switches in a ring with two hosts each, and their controllers; h1 sends, h3 receives."""

    def __init__(self, cluster: EmulatedCluster, fabric: EmulatedFabric) -> None:
        self.cluster = cluster
        self.fabric = fabric
        self.before = cluster.wait_leader()
        self.leader.wait_discovered(fabric)
        fabric.announce()
        self.fabric.join("h3", GROUP)
        self.wait_group(self.leader, "members", 1)
        fabric.open_stream(1, "h1", GROUP, RATE_BPS, pattern="constant")
        fabric.send(0)
        self.wait_group(self.leader, "senders", 1)
        self.wait_in_sync(self.leader)
        fabric.send(1)
        self.wait_received("h3")
        self._wait_shared()

    def _wait_shared(self) -> None:
        """Wait until another controller could lead: it is connected to all switches, and the log says what there is.

        A group is in the log some moments after it is served; who begins without it leaves it as it is, and serves
        nobody more, until its hosts have been asked. So are links: who begins without them takes a port whose LLDP
        frames come late for one to hosts, and the sender that it hears there for a forged one.
        """
        ways = {f"heard/{GROUP}/{self.fabric.dpid(switch)}" for switch in ("s1", "s2")}
        self.cluster.wait_journal(lambda keys: {*ways, f"tree/{GROUP}"} <= keys)
        ends = 2 * self.fabric.switch_link_count()
        self.cluster.wait_hosts(lambda keys: sum(key.startswith("trunk/") for key in keys) == ends)
        self.wait_connected()

    def wait_connected(self) -> None:
        """Wait until all controllers are members, and connected to all switches."""
        count = len(self.fabric.graph.switches())
        wait_that("all members are connected to all switches", lambda: self._are_connected(count), SETTLED_S)

    def _are_connected(self, count: int) -> bool:
        held = self.cluster.store.read(Keys(FABRIC).members).held
        present = [read_present(each.value) for each in held]
        return len(present) == len(self.cluster.members) and all(one and one.switches == count for one in present)

    @property
    def leader(self) -> ControllerProcess:
        """The controller that led at first."""
        return self.cluster.members[self.before.member]

    def follower(self) -> ControllerProcess:
        """Return another one."""
        return next(member for name, member in self.cluster.members.items() if name != self.before.member)

    def address(self, name: str) -> str:
        """Return the address by which a controller reaches the store, and others hear it."""
        return store_address(int(name.removeprefix("c")))

    def wait_group(self, member: ControllerProcess, what: str, count: int) -> None:
        """Wait until a controller knows so many members or senders of the group."""

        def known(groups: list[dict[str, Any]]) -> bool:
            return any(found["group"] == GROUP and len(found[what]) >= count for found in groups)

        member.wait_until("groups", known)

    def wait_in_sync(self, member: ControllerProcess) -> None:
        """Wait until every switch holds what a controller wants there."""
        count = len(self.fabric.graph.switches())
        member.wait_until("status", lambda status: status["in_sync"] and status["switches"] == count, SETTLED_S)

    def wait_received(self, host: str, within_s: float = SERVED_S) -> float:
        """Wait until a host receives the stream; return how long that took, in seconds."""
        begun_s = time.monotonic()
        members = [member.pid for member in self.cluster.members.values() if member.running]
        held_up = HeldUp(*members, self.fabric.ovs.vswitchd_pid)
        while not self.received(host):
            assert time.monotonic() < begun_s + within_s + held_up.seconds(), self.cluster.logs()
            time.sleep(0.01)
        return time.monotonic() - begun_s

    def received(self, host: str) -> int:
        """Return how many packets of the stream a host has received."""
        found = self.fabric.received()[f"{host} {GROUP}"]["streams"]
        return int(found.get("1:1", {}).get("received", 0))

    def wait_more(self, host: str, count: int) -> None:
        """Wait until a host has received so many more packets of the stream."""
        before = self.received(host)
        wait_that(f"{host} receives {count} more", lambda: self.received(host) >= before + count, SETTLED_S)

    def join(self, host: str, within_s: float = SERVED_S) -> float:
        """Let a host join; return how long it takes until it receives, in seconds."""
        self.fabric.join(host, GROUP)
        return self.wait_received(host, within_s)

    def wait_other_leader(self) -> Leader:
        """Wait until another one leads, and all switches are as it wants them."""
        now = self.cluster.wait_leader(self.before.epoch)
        assert now.member != self.before.member
        self.wait_in_sync(self.cluster.members[now.member])
        return now

    def wait_led(self, above: int) -> Leader:
        """Wait until somebody leads in an epoch above `above`, and all switches are as it wants them."""
        found: list[Leader] = []

        def is_led() -> bool:
            leader = self.cluster.leader()
            if leader is None or leader.epoch <= above:
                return False
            found[:] = [leader]
            return self._leads_all(self.cluster.members[leader.member])

        wait_that(f"somebody leads all switches in an epoch above {above}", is_led, SETTLED_S)
        return found[0]

    def wait_leads(self, name: str) -> Leader:
        """Have a member lead that is connected to all switches, and wait until these are as it wants them.

        On a machine where a controller stands still the lead goes on from it: whoever leads then is asked again.
        """
        self.wait_connected()
        found: list[Leader] = []

        def leads() -> bool:
            leader = self.cluster.leader()
            if leader is None:
                return False
            if leader.member == name:
                found[:] = [leader]
                return self._leads_all(self.cluster.members[name])
            with suppress(OSError):  # who leads may begin anew meanwhile
                query(self.cluster.members[leader.member].socket, {"do": "hand-over", "to": name})
            return False

        wait_that(f"{name} leads all switches", leads, SETTLED_S)
        return found[0]

    def _leads_all(self, member: ControllerProcess) -> bool:
        """Tell whether a controller says that all switches are as it wants them; one that begins says nothing yet."""
        try:
            status = member.show("status")
        except OSError:
            return False
        count = len(self.fabric.graph.switches())
        return "error" not in status and status["in_sync"] and status["switches"] == count

    def order(self, member: ControllerProcess, action: str, **asked: Any) -> Any:
        """Return what a controller says once it has done something: the store of a busy machine may be slow."""
        told: dict[str, Any] = {}

        def is_done() -> bool:
            told.clear()
            told.update(query(member.socket, {"do": action, **asked}))
            return told.get("reason") not in SLOW_STORE

        wait_that(f"the store takes {action}", is_done, SETTLED_S)
        assert "error" not in told, told
        return told

    def kill_all(self) -> None:
        """End all controllers at once."""
        for member in self.cluster.members.values():
            member.kill()

    def start_all(self) -> None:
        """Start all controllers."""
        for member in self.cluster.members.values():
            member.launch()
        self.cluster.wait_listening()

    def check_nothing_lost(self) -> None:
        """End the stream: h3 has received each packet once, other than those that the machine lost."""
        self.fabric.sender.ask("halt")
        sent = self.fabric.sent()["1"]["phases"]["1"]["sent"]
        seen = self.fabric.settled()[f"h3 {GROUP}"]["streams"]["1:1"]
        assert seen["duplicates"] == 0
        assert 0 <= sent - seen["received"] <= self.fabric.overruns(), (sent, seen, self.cluster.logs())

    def flows(self) -> list[set[str]]:
        """Return the flow entries of each switch, without their counters."""
        dumps = (
            self.fabric.ofctl("dump-flows", switch, "--no-stats") for switch in sorted(self.fabric.graph.switches())
        )
        return [{line.strip() for line in dump.splitlines() if "actions=" in line} for dump in dumps]


def three_switches() -> Graph:
    """Return three switches in a ring with two hosts each."""
    graph = Graph()
    for name in ("s1", "s2", "s3"):
        graph.add_node(name, NodeKind.TOR)
    for one, other in (("s1", "s2"), ("s2", "s3"), ("s1", "s3")):
        graph.add_link(one, other)
    for number in range(1, 7):
        graph.add_node(f"h{number}", NodeKind.HOST)
        graph.add_link(f"s{(number + 1) // 2}", f"h{number}")
    return graph


def let_go(net: Clustered, member: ControllerProcess) -> None:
    """Have no switch connected to a controller any more, though all else reaches it."""
    others = [f"tcp:127.0.0.1:{port}" for port in net.cluster.ports if port != member.port]
    for switch in sorted(net.fabric.graph.switches()):
        processes.run("ovs-vsctl", "set-controller", str(switch), *others)


def follower_name(net: Clustered) -> str:
    """Return the name of a controller that did not lead at first."""
    return next(name for name in net.cluster.members if name != net.before.member)


def vsrt(member: ControllerProcess, *words: str) -> str:
    """Return what a command says of a controller; while its store is slow, so that nothing is done, once it does."""
    command = (str(Path(sys.executable).parent / "vsrt"), *words, "--socket", str(member.socket))
    give_up_s = time.monotonic() + SETTLED_S
    while True:
        try:
            return processes.run(*command)
        except EmulationError as error:
            if "does not answer: nothing was done" not in str(error) or time.monotonic() > give_up_s:
                raise


def beside_of(pid: int) -> list[int]:
    """Return the processes that are beside a controller."""
    found = [child for task in Path(f"/proc/{pid}/task").iterdir() for child in read(task / "children").split()]
    return [int(child) for child in found if "apps.cluster" in read(Path(f"/proc/{child}/cmdline"))]


def read(path: Path) -> str:
    """Return what a file says, nothing where the thread or process that it is of has ended."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def lose(*frames: str) -> None:
    """Lose frames in the network of the test, as nftables matches them: ``ip daddr 127.0.0.11``."""
    processes.run("nft", "add", "table", "inet", CUTS)
    processes.run("nft", "add", "chain", "inet", CUTS, "out", "{ type filter hook output priority 0; }")
    for frame in frames:
        processes.run("nft", "add", "rule", "inet", CUTS, "out", *frame.split(), "drop")


def lose_no_more() -> None:
    """Let all frames through that were lost."""
    processes.run("nft", "delete", "table", "inet", CUTS)


def cut_off(address: str) -> None:
    """Lose all that goes to an address of the loopback, and all that comes from it."""
    lose(f"ip daddr {address}", f"ip saddr {address}")


def fill(store: EtcdServer) -> None:
    """Have a store full, so that it takes no more keys."""
    with closing(store.engine()) as engine:
        number, reply = 0, None
        while type(reply) is not Silent:
            number += 1
            assert number < 1000, "the store never was full"
            reply = engine.ask(Transaction((), (PutKey("/other/large", f"{number}" * 250_000),)))
        assert "space" in reply.why


def make_room(store: EtcdServer) -> None:
    """Have a store that is full take keys again: what is past goes."""
    with closing(store.engine()) as engine:
        page = engine.ask(ReadPage("/other/", limit=1))
        assert type(page) is KeyPage
        engine.question("/v3/kv/compaction", {"revision": page.revision, "physical": True})
        engine.question("/v3/maintenance/defragment")
        for alarm in engine.question("/v3/maintenance/alarm", {"action": "GET"})["alarms"]:
            engine.question("/v3/maintenance/alarm", {**alarm, "action": "DEACTIVATE"})
