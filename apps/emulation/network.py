"""An emulated fabric: a `Graph` brought up in Mininet on an Open vSwitch and in a network of its own."""

from __future__ import annotations

import resource
import socket
import struct
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from mininet.link import Link as VethLink
from mininet.link import OVSLink
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import OVSSwitch, RemoteController

from apps.emulation import buffers, capacity, processes, queues
from apps.emulation.agents import Agent
from apps.emulation.faults import NetworkFaults, wait_flows
from apps.emulation.namespace import network_of, private_network
from apps.emulation.ovs import Datapath, PrivateOpenVSwitch
from apps.emulation.processes import EmulationError
from apps.emulation.vlan_devices import make_kernel_device
from topology.graph import Graph, Link, NodeId, NodeKind
from topology.mn import HOST_PREFIX, MULTICAST_ROUTE, OFFLOADS, graph_topo

CONTROLLER_PORT = 6653
OPEN_FILES = 16384
ADDRESS_TIMEOUT_S = 60.0
POLL_S = 0.02
SETTLE_INTERVAL_S = 0.1
SETTLE_LIMIT_S = 5.0


class Controller(Protocol):
    """A controller that can start while the fabric is built."""

    def launch(self) -> None:
        """Start, in the network of the thread that calls."""

    def wait_listening(self) -> None:
        """Wait until switches can connect."""

    def close(self) -> None:
        """End, also where it did not start."""


class _ControllerAddress(RemoteController):  # type: ignore[misc]
    """The address of our controller, without Mininet's probe of it by telnet."""

    def checkListening(self) -> None:  # noqa: N802
        """Take the address as it is."""


class EmulatedFabric:
    """Context manager that brings `graph` up, with hosts ready for multicast, and takes it down again.

    The controller is expected at `controller_port` of this network's loopback (none where that is None). A
    `controller` that is given starts with the fabric, listens before switches connect, and ends with the fabric.
    Switches connect to `more_controller_ports` of the loopback too.
    `patch_links` joins switches inside Open vSwitch, which is cheapest and loses nothing; veth pairs elsewhere
    have a carrier and live counters. `old_switches` speak OpenFlow 1.0 only. `capacities` enforces each link's
    ``capacity_bps`` (OpenFlow 1.3 only). The cables of hosts that `bonds` names are the legs of a bond, which has the
    host's addresses: in mode ``static`` it sends each packet by another leg, in mode ``lacp`` each flow by its own,
    while the other end is in step by LACP. With `bounded_queues` the queues that somebody sets up at ports are short,
    and `sort_by_dscp` has packets wait in them.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        controller_port: int | None = CONTROLLER_PORT,
        controller: Controller | None = None,
        more_controller_ports: Iterable[int] = (),
        protocols: str = "OpenFlow13",
        old_switches: Iterable[NodeId] = (),
        capacities: bool = False,
        patch_links: bool = False,
        datapath: Datapath | None = None,
        bonds: Mapping[NodeId, str] | None = None,
        bounded_queues: bool = False,
    ) -> None:
        if capacities and "OpenFlow13" not in protocols:
            raise ValueError("capacities need meters, which OpenFlow 1.0 has not")
        self.graph = graph
        self.controller_port = controller_port
        self._controller = controller
        self._more_controller_ports = tuple(more_controller_ports)
        self.protocols = protocols
        self._old_switches = frozenset(old_switches)
        self.sender = Agent("sender")
        self.receiver = Agent("receiver")
        self._vlan_devices: Agent | None = None
        self._bond_devices: Agent | None = None
        self._bonds = dict(bonds or {})
        self._capacities = capacities
        self._patch_links = patch_links
        self._bounded_queues = bounded_queues
        self._datapath = datapath
        self._stack = ExitStack()
        self._net: Any = None
        self._names: dict[NodeId, str] = {}
        self._overruns = buffers.OverrunTotal()

    def __enter__(self) -> EmulatedFabric:
        with ExitStack() as stack:
            if self._capacities or self._bounded_queues:
                stack.enter_context(buffers.ample_send_buffer())
            stack.enter_context(buffers.ample_receive_buffer())
            stack.enter_context(private_network())
            # Ports of a switch are no IPv6 hosts: without this each sends reports and solicitations of its own.
            Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
            if self._controller is not None:
                stack.callback(self._controller.close)
                self._controller.launch()
            self.ovs = stack.enter_context(PrivateOpenVSwitch(self._datapath))
            self._build(stack)
            stack.enter_context(self.sender)
            stack.enter_context(self.receiver)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _build(self, stack: ExitStack) -> None:
        setLogLevel("critical")
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES, hard), hard))
        Mininet.inited = True  # its own set-up changes limits of the whole machine
        topo = graph_topo(self.graph)
        self._names = dict(topo.names)
        self._net = Mininet(
            topo=topo,
            build=False,
            controller=None,
            switch=OVSSwitch,
            link=OVSLink if self._patch_links else VethLink,
        )
        stack.callback(self._end_nodes)
        for switch in self.graph.switches():
            name = self._names[switch]
            protocols = self._protocols(switch)
            topo.setNodeInfo(name, {**topo.nodeInfo(name), "datapath": self.ovs.datapath, "protocols": protocols})
            self.ovs.forbid_snooping(name)
        if self.controller_port is not None:
            for number, port in enumerate((self.controller_port, *self._more_controller_ports)):
                self._net.addController(_ControllerAddress(f"c{number}", ip="127.0.0.1", port=port))
        self._net.build()
        if self._bonds:
            devices = self._bond_devices = stack.enter_context(Agent("bond_devices"))
            for host, mode in self._bonds.items():
                self._make_bond(devices, host, mode)
        if self._controller is not None:
            self._controller.wait_listening()
        if self._bounded_queues:
            queues.bound(port.interface for port in self._ports())
        self._net.start()
        self._faults = NetworkFaults(self._net, self._net.controllers)
        for node in self.graph.hosts():
            self._prepare_host(node)
        if self._capacities:
            capacity.enforce(self._ports())

    def _end_nodes(self) -> None:
        """End the nodes' shells: their interfaces and bridges need no dismantling, for they go with their network."""
        for node in (*self._net.hosts, *self._net.switches, *self._net.controllers):
            node.terminate()

    def _make_bond(self, devices: Agent, node: NodeId, mode: str) -> None:
        """Have all cables of a host be the legs of a bond, before anybody hears them."""
        host, name = self.node(node), self.interface(node)
        legs, mac = [str(leg.name) for leg in host.intfList()], str(host.MAC())
        devices.ask("add", pid=host.pid, interfaces=legs, name=name, mac=mac, mode=mode)
        with network_of(host.pid):
            for leg in legs:
                Path(f"/proc/sys/net/ipv6/conf/{leg}/disable_ipv6").write_text("1")
                processes.run("ip", "address", "flush", "dev", leg)
                processes.run("ip", "link", "set", leg, "address", f"02:bd{mac[5:]}")
            Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("0")
            processes.run("ip", "link", "set", name, "address", mac, "up")
            processes.run("ip", "address", "add", f"{host.IP()}/{HOST_PREFIX}", "dev", name)

    def _prepare_host(self, node: NodeId) -> None:
        host, interface = self.node(node), self.interface(node)
        number = host.IP().split(".")
        address = f"fd00::{int(number[1]):x}:{int(number[2]):x}:{int(number[3]):x}/64"
        with network_of(host.pid):
            if node not in self._bonds:
                processes.run("ethtool", "-K", interface, *(word for name in OFFLOADS for word in (name, "off")))
            processes.run("ip", "route", "add", MULTICAST_ROUTE, "dev", interface)
            processes.run("ip", "-6", "address", "add", address, "dev", interface, "nodad")

    def _ports(self) -> Iterable[capacity.CapacityPort]:
        by_name = {name: node for node, name in self._names.items()}
        for link in self._net.links:
            for here, there in ((link.intf1, link.intf2), (link.intf2, link.intf1)):
                node, far = by_name[here.node.name], by_name[there.node.name]
                if self.graph.kind(node) is not NodeKind.HOST:
                    yield capacity.CapacityPort(
                        switch=here.node.name,
                        interface=here.name,
                        port_no=here.node.ports[here],
                        capacity_bps=self._cable(node, far, here.node.ports[here]).capacity_bps,
                        host=capacity.HostInterface(there.node.pid, there.name)
                        if self.graph.kind(far) is NodeKind.HOST
                        else None,
                    )

    def sort_by_dscp(self, queue_ids: Mapping[int, int]) -> None:
        """Have packets wait in the queues of their code points at every port, which have been set up."""
        queues.sort_by_dscp((port.interface for port in self._ports()), queue_ids)

    def _cable(self, node: NodeId, far: NodeId, port_no: int) -> Link:
        """Return the cable at a port, which the graph need not name."""
        return self.graph.cable(node, far, port_no) or self.graph.link(node, far)

    def node(self, node: NodeId) -> Any:
        """Return the Mininet node of a node of the graph (KeyError where unknown)."""
        return self._net[self._names[node]]

    def pid(self, host: NodeId) -> int:
        """Return the process id that names the host's namespace."""
        return int(self.node(host).pid)

    def interface(self, host: NodeId) -> str:
        """Return the name of the host's interface, inside the host: its bond where it has one."""
        return f"{self._names[host]}-bond" if host in self._bonds else str(self.node(host).defaultIntf().name)

    def address(self, host: NodeId, *, ipv6: bool = False) -> str:
        """Return the host's IPv4 address, or its routable IPv6 address."""
        address = str(self.node(host).IP())
        if ipv6:
            first, second, third = (int(part) for part in address.split(".")[1:])
            return f"fd00::{first:x}:{second:x}:{third:x}"
        return address

    def host_with_address(self, address: str) -> NodeId | None:
        """Return the host that has an IPv4 address or MAC, None where none has."""
        for node in self.graph.hosts():
            if address in (self.address(node), str(self.node(node).MAC())):
                return node
        return None

    def dpid(self, switch: NodeId) -> int:
        """Return the datapath id of a switch."""
        return int(self.node(switch).dpid, 16)

    def switch_with_dpid(self, dpid: int) -> NodeId | None:
        """Return the switch that has a datapath id, None where none has."""
        return next((node for node in self.graph.switches() if self.dpid(node) == dpid), None)

    def ofctl(self, command: str, switch: NodeId, *arguments: str, text: str | None = None) -> str:
        """Run ovs-ofctl on a switch and return what it prints."""
        version = "OpenFlow13" if "OpenFlow13" in self._protocols(switch) else "OpenFlow10"
        return processes.run("ovs-ofctl", "-O", version, command, self._names[switch], *arguments, text=text)

    def _protocols(self, switch: NodeId) -> str:
        return "OpenFlow10" if switch in self._old_switches else self.protocols

    def switch_link_count(self) -> int:
        """Return how many links join two switches."""
        hosts = set(self.graph.hosts())
        return sum(1 for link in self.graph.links() if link.u not in hosts and link.v not in hosts)

    def host_link_count(self) -> int:
        """Return how many links join a host and a switch, of those of which a bond uses one at a time one."""
        standby = sum(len(self.graph.neighbours(host)) - 1 for host in self.hosts_of_one_leg())
        return sum(1 for _ in self.graph.links()) - self.switch_link_count() - standby

    def hosts_of_one_leg(self) -> list[NodeId]:
        """Return the hosts on bonds that use one leg at a time."""
        return [host for host, mode in self._bonds.items() if mode == "active-backup"]

    def run_on(self, host: NodeId, *arguments: str, timeout_s: float = 30.0) -> str:
        """Run a command in a host's network and return its output; EmulationError where it fails."""
        with network_of(self.pid(host)):
            return processes.run(*arguments, timeout_s=timeout_s)

    def wait_addresses(self, timeout_s: float = ADDRESS_TIMEOUT_S) -> None:
        """Wait until every host has finished the duplicate detection of its IPv6 addresses."""
        deadline = time.monotonic() + timeout_s
        for host in self.graph.hosts():
            while self.run_on(host, "ip", "-6", "address", "show", "tentative"):
                if time.monotonic() > deadline:
                    raise EmulationError(f"{host}: IPv6 addresses are still tentative after {timeout_s} s")
                time.sleep(POLL_S)

    def announce(self, hosts: Iterable[NodeId] | None = None) -> None:
        """Let hosts announce their IPv4 address by a gratuitous ARP, as a booting machine does."""
        for host in self.graph.hosts() if hosts is None else hosts:
            mac = bytes.fromhex(str(self.node(host).MAC()).replace(":", ""))
            address = socket.inet_aton(self.address(host))
            frame = b"\xff" * 6 + mac + b"\x08\x06" + struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1)
            frame += mac + address + bytes(6) + address
            with network_of(self.pid(host)), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
                sock.bind((self.interface(host), 0))
                sock.send(frame.ljust(60, b"\0"))

    def link_down(self, u: NodeId, v: NodeId, number: int = 1) -> None:
        """Pull the cable between `u` and `v`, of several that with this number: both ends see it go."""
        self._faults.pull(self._names[u], self._names[v], number)

    def link_up(self, u: NodeId, v: NodeId, number: int = 1) -> None:
        """Put the cable between `u` and `v` back, of several that with this number."""
        self._faults.put_back(self._names[u], self._names[v], number)

    def switch_down(self, switch: NodeId) -> None:
        """Take a switch away: its bridge, flows and connections are gone, and its cables are dead."""
        self.overruns()  # what its ports have counted goes with them
        self._faults.take_switch(self._names[switch])

    def switch_up(self, switch: NodeId) -> None:
        """Bring a switch back, empty."""
        self._faults.bring_switch(self._names[switch])

    def control_down(self, *switches: NodeId) -> None:
        """End the connections of switches to the controller, all at once; they go on forwarding."""
        self._faults.cut_control(*map(self._names.__getitem__, switches))

    def control_up(self, *switches: NodeId) -> None:
        """Let switches connect to the controller again, all at once."""
        self._faults.mend_control(*map(self._names.__getitem__, switches))

    def deafen(self, switch: NodeId, neighbour: NodeId) -> None:
        """Lose all that arrives at a switch from a neighbour, while both ends keep their carrier."""
        self._faults.deafen(self._names[switch], self._names[neighbour])

    def kill_switch(self, switch: NodeId) -> None:
        """Let a switch die that forwards nothing and says nothing, while its cables keep their carrier."""
        self._faults.kill_switch(self._names[switch])

    def move_host(self, host: NodeId, switch: NodeId) -> None:
        """Plug a host into another switch, or back into its own."""
        self.overruns()  # what its port has counted goes with it
        self._faults.move_host(self._names[host], self._names[switch])

    def restore(self) -> None:
        """Bring back every cable, switch, connection and host that is away, and end all streams, sockets and taps."""
        self.sender.ask("clear")
        self.receiver.ask("clear")
        self.mend()

    def mend(self) -> None:
        """Bring back every cable, switch, connection and host that is away; streams and sockets stay."""
        self._faults.restore()

    def overruns(self) -> int:
        """Return how many packets the machine was too busy to hand to the switches, on all ports together."""
        return self._overruns.add(buffers.overruns())

    def wait_flows(self) -> None:
        """Wait until packets go by the flow entries that the switches have confirmed; their caches follow later."""
        wait_flows()

    def add_vlan(self, host: NodeId, vlan_id: int, address: str) -> str:
        """Give a host an interface on a VLAN, with an IPv4 address, and return its name; it has the host's MAC.

        What the host gets with the tag of the VLAN comes in there without it, and the other way round. It is the
        kernel's own VLAN device where the kernel has any, else one of `vlan_devices`.
        """
        pid, parent = self.pid(host), self.interface(host)
        name = f"{parent}.{vlan_id}"
        with network_of(pid):
            is_made = make_kernel_device(parent, name, vlan_id)
        if not is_made:
            if self._vlan_devices is None:
                self._vlan_devices = self._stack.enter_context(Agent("vlan_devices"))
            self._vlan_devices.ask("add", pid=pid, interface=parent, vlan_id=vlan_id, name=name)
        with network_of(pid):
            for path in ("ipv4/conf/all/rp_filter", f"ipv4/conf/{name}/rp_filter", f"ipv6/conf/{name}/accept_dad"):
                Path(f"/proc/sys/net/{path}").write_text("0")
            processes.run("ip", "link", "set", name, "address", str(self.node(host).MAC()), "up")
            processes.run("ip", "address", "add", f"{address}/32", "dev", name)
        return name

    def working_legs(self, heard_since_s: float = float("-inf")) -> list[list[str]]:
        """Return the interfaces that are working legs of each bond, in the order in which bonds were added.

        With `heard_since_s`, by the monotonic clock, those whose other end was heard by LACP since then.
        """
        working = [] if self._bond_devices is None else self._bond_devices.ask("report")["working"]
        return [[interface for interface, heard_s in legs if heard_s >= heard_since_s] for legs in working]

    def activate_leg(self, host: NodeId, number: int) -> None:
        """Have a host that is on a bond in mode `active-backup` use one of its legs, from 1, from now on."""
        if self._bond_devices is None:
            raise EmulationError(f"{host} is on no bond")
        self._bond_devices.ask("activate", mac=str(self.node(host).MAC()), number=number)

    def join(
        self, host: NodeId, group: str, *, name: str | None = None, interface: str | None = None, **options: Any
    ) -> int:
        """Let `host` join `group` on a socket called `name`, and return the time of the call (monotonic, ns).

        `interface` is that of a VLAN (`add_vlan`), the host's own where it is None. Options: ``include``, ``exclude``
        (source addresses), ``igmp_version`` (forced until it leaves), ``port``.
        """
        reply = self.receiver.ask(
            "join",
            name=name or f"{host} {group}",
            pid=self.pid(host),
            interface=interface or self.interface(host),
            group=group,
            **options,
        )
        return int(reply["at_ns"])

    def leave(self, host: NodeId, group: str, *, name: str | None = None) -> int:
        """Close the socket that joined; its counts can still be read."""
        return int(self.receiver.ask("leave", name=name or f"{host} {group}")["at_ns"])

    def tap(self, host: NodeId) -> None:
        """Count the test datagrams that reach `host` at all; read by `received` as ``tap HOST``."""
        self.receiver.ask("tap", name=f"tap {host}", pid=self.pid(host), interface=self.interface(host))

    def open_stream(
        self, stream: int, host: NodeId, group: str, rate_bps: float, *, interface: str | None = None, **options: Any
    ) -> None:
        """Prepare a stream from `host` to `group`.

        Options: ``pattern``, ``seed``, ``frame_bytes``, ``ttl``, ``source_port`` (any where it is left out).
        `interface` is that of a VLAN (`add_vlan`), the host's own where it is None.
        """
        self.sender.ask(
            "open",
            stream=stream,
            pid=self.pid(host),
            interface=interface or self.interface(host),
            group=group,
            rate_bps=rate_bps,
            **options,
        )

    def send(self, phase: int = 0, duration_s: float | None = None, streams: Iterable[int] = ()) -> int:
        """Start a phase on streams (all where none is named) without a break in their pace; its start in ns."""
        return int(self.sender.ask("phase", phase=phase, duration_s=duration_s, streams=list(streams))["at_ns"])

    def halt(self) -> None:
        """End the phase of all streams now."""
        self.sender.ask("halt")

    def wait_sent(self, timeout_s: float) -> None:
        """Wait until all streams have ended."""
        self.sender.ask("wait", timeout_s=timeout_s)

    def sent(self) -> dict[str, Any]:
        """Return what each stream has sent, by phase."""
        return self.sender.ask("report")

    def received(self) -> dict[str, Any]:
        """Return what each socket and tap has received so far."""
        return self.receiver.ask("report")

    def settled(
        self, limit_s: float = SETTLE_LIMIT_S, *, received: Callable[[], dict[str, Any]] | None = None
    ) -> dict[str, Any]:
        """Return what each socket and tap has received, once packets under way have arrived.

        Nothing is under way where a little later nothing more was received, and the switches have nothing to do.
        `received` returns it where there are more sockets than those of this fabric's hosts.
        """
        received = received or self.received
        before = received()
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            time.sleep(SETTLE_INTERVAL_S)
            is_idle = self.ovs.is_idle()
            now = received()
            if now == before and is_idle:
                break
            before = now
        return before
