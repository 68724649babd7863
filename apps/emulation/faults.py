"""What can befall a network that is up: dead cables and switches, connections cut, hosts moved; and back."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any

from apps.emulation import processes

_LOSE_ALL = "table=0,priority=65535"

NOWHERE = "tcp:127.0.0.1:1"
"""A controller's address at which nobody listens."""


class NetworkFaults:
    """The faults of one Mininet network; `restore` ends those that still last.

    Ports joined inside Open vSwitch (patch ports) have no carrier: their cables are pulled by removing the ports, and
    a switch that goes takes its neighbours' ports along. Elsewhere interfaces go down, which the other end sees.
    """

    def __init__(self, net: Any, controllers: Sequence[Any]) -> None:
        self._net = net
        self._controllers = controllers
        self._links: dict[frozenset[str], Any] = {}
        for link in net.links:
            self._links[self._new_cable(link.intf1.node.name, link.intf2.node.name)] = link
        self._switches = {switch.name for switch in net.switches}
        self._pulled: set[frozenset[str]] = set()
        self._gone: set[str] = set()
        self._cut: set[str] = set()
        self._deaf: set[tuple[str, str]] = set()
        self._dead: set[str] = set()
        self._moved: dict[str, str] = {}

    def pull(self, u: str, v: str, number: int = 1) -> None:
        """Pull a cable, of several that with this number: both ends see it go."""
        cable = _cable(u, v, number)
        self._pulled.add(cable)
        if not self._gone & cable:
            self._unplug(self._ends(cable), {u if u in self._switches else v})

    def put_back(self, u: str, v: str, number: int = 1) -> None:
        """Put a cable back."""
        self._put_back(_cable(u, v, number))

    def _put_back(self, cable: frozenset[str]) -> None:
        self._pulled.discard(cable)
        if not self._gone & cable:
            self._plug(self._ends(cable))

    def take_switch(self, name: str) -> None:
        """Take a switch away: its bridge, flows and connections are gone, and its cables are dead."""
        if name in self._gone:
            return
        self._unplug([end for cable in self._cables(name) for end in self._ends(cable)], {name})
        self._gone.add(name)
        processes.run("ovs-vsctl", "--if-exists", "del-br", name)
        wait_flows()

    def bring_switch(self, name: str) -> None:
        """Bring a switch back, empty."""
        away = {host: switch for host, switch in self._moved.items() if frozenset((host, name)) in self._links}
        for host in away:
            self.move_host(host, name)
        self._net[name].start(self._controllers)
        self._gone.discard(name)
        for cable in sorted(self._pulled, key=sorted):
            if name in cable:
                self._unplug(self._ends(cable), {name})
        self._plug([end for cable in self._cables(name) for end in self._ends(cable)])
        for host, switch in away.items():
            self.move_host(host, switch)

    def cut_control(self, *names: str) -> None:
        """End the connections of switches to the controller, all at once; they go on forwarding."""
        self._cut.update(names)
        _set_controllers(names, [NOWHERE])

    def mend_control(self, *names: str) -> None:
        """Let switches connect to the controller again, all at once."""
        self._cut.difference_update(names)
        _set_controllers(names, [f"tcp:{controller.IP()}:{controller.port}" for controller in self._controllers])

    def deafen(self, name: str, neighbour: str) -> None:
        """Lose all that arrives at a switch from a neighbour, while both ends keep their carrier."""
        self._deaf.add((name, neighbour))
        self._flows(name, "add-flow", f"{_LOSE_ALL},in_port={self._port(name, neighbour)},actions=drop")

    def mend_hearing(self, name: str, neighbour: str) -> None:
        """Let a switch hear a neighbour again."""
        self._deaf.discard((name, neighbour))
        self._flows(name, "--strict", "del-flows", f"{_LOSE_ALL},in_port={self._port(name, neighbour)}")

    def kill_switch(self, name: str) -> None:
        """Let a switch die that forwards nothing and says nothing, while its cables keep their carrier."""
        self._dead.add(name)
        self._flows(name, "add-flow", f"{_LOSE_ALL},actions=drop")
        self.cut_control(name)

    def revive_switch(self, name: str) -> None:
        """Let a dead switch work again."""
        self._dead.discard(name)
        self._flows(name, "--strict", "del-flows", _LOSE_ALL)
        self.mend_control(name)

    def move_host(self, host: str, switch: str) -> None:
        """Plug a host into another switch, or back into its own, by the cable that it has."""
        link = next(link for cable, link in self._links.items() if host in cable)
        end = link.intf1 if link.intf2.node.name == host else link.intf2
        edits: list[tuple[str, ...]] = [("--if-exists", "del-port", end.name)]
        if switch not in self._gone:
            edits.append(("add-port", switch, end.name))
        if switch != end.node.name:
            self._moved[host] = switch
        else:
            self._moved.pop(host, None)
            if switch not in self._gone:
                edits.append(("set", "Interface", end.name, f"ofport_request={end.node.ports[end]}"))
        processes.run("ovs-vsctl", *_joined(edits))
        processes.run("ip", "link", "set", end.name, "up")

    def restore(self) -> None:
        """End every fault that still lasts."""
        for host in sorted(self._moved):
            self.move_host(host, next(name for cable in self._links if host in cable for name in cable - {host}))
        for name in sorted(self._gone):
            self.bring_switch(name)
        for cable in sorted(self._pulled, key=sorted):
            self._put_back(cable)
        for name, neighbour in sorted(self._deaf):
            self.mend_hearing(name, neighbour)
        for name in sorted(self._dead):
            self.revive_switch(name)
        for name in sorted(self._cut):
            self.mend_control(name)

    def _new_cable(self, u: str, v: str) -> frozenset[str]:
        """Name the next cable between two nodes."""
        number = 1
        while _cable(u, v, number) in self._links:
            number += 1
        return _cable(u, v, number)

    def _flows(self, name: str, *command: str) -> None:
        processes.run("ovs-ofctl", "-O", "OpenFlow10,OpenFlow13", *command[:-1], name, command[-1])

    def _port(self, name: str, neighbour: str) -> int:
        """Return the number of the port of a switch that leads to a neighbour."""
        ends = self._ends(frozenset((name, neighbour)))
        return next(int(end.node.ports[end]) for end in ends if end.node.name == name)

    def _cables(self, node: str) -> list[frozenset[str]]:
        """Return the cables of a switch that are in use there."""
        return [
            cable
            for cable in self._links
            if node in cable and cable not in self._pulled and not cable & self._moved.keys()
        ]

    def _ends(self, cable: frozenset[str]) -> list[Any]:
        link = self._links[cable]
        return [end for end in (link.intf1, link.intf2) if end.node.name not in self._gone]

    def _unplug(self, ends: Iterable[Any], at: Container[str]) -> None:
        """Take ports away; where they have a carrier, the other ends see that those `at` some switches go down."""
        patched: list[tuple[str, ...]] = []
        for end in ends:
            if _is_patched(end):
                patched.append(("--if-exists", "del-port", end.node.name, end.name))
            elif end.node.name in at:
                processes.run("ip", "link", "set", end.name, "down")
        if patched:
            processes.run("ovs-vsctl", *_joined(patched))
            wait_flows()

    def _plug(self, ends: Iterable[Any]) -> None:
        patched: list[tuple[str, ...]] = []
        for end in ends:
            if _is_patched(end):
                peer = end.link.intf2 if end is end.link.intf1 else end.link.intf1
                patched.append(("--may-exist", "add-port", end.node.name, end.name))
                patched.append(
                    (
                        *("set", "Interface", end.name, "type=patch", f"options:peer={peer.name}"),
                        f"ofport_request={end.node.ports[end]}",
                    )
                )
            elif end.node.name in self._switches:
                processes.run("ip", "link", "set", end.name, "up")
        if patched:
            processes.run("ovs-vsctl", *_joined(patched))


def wait_flows() -> None:
    """Wait until Open vSwitch forwards by the flow entries and ports it has; barriers do not wait for its caches."""
    processes.run("ovs-appctl", "-t", "ovs-vswitchd", "revalidator/wait")


def _cable(u: str, v: str, number: int) -> frozenset[str]:
    """Return what names the first, second, ... cable between two nodes."""
    return frozenset((u, v) if number == 1 else (u, v, f"#{number}"))


def _is_patched(end: Any) -> bool:
    return type(end).__name__ == "OVSIntf"


def _joined(edits: Iterable[tuple[str, ...]]) -> list[str]:
    words: list[str] = []
    for edit in edits:
        words += ["--", *edit]
    return words


def _set_controllers(names: Iterable[str], targets: Sequence[str]) -> None:
    """Have switches connect to these controllers and no others, in one transaction of Open vSwitch."""
    processes.run("ovs-vsctl", *_joined(("set-controller", name, *targets) for name in names))
