"""Which documents of the multicast core changed: stages say so here, and what the documents say is read from them."""

from __future__ import annotations

from typing import Any

from controller.config.policy import Policy
from controller.kernel.ports import Cable
from controller.snapshot.events import EventRing
from controller.snapshot.log import ChangeLog
from controller.snapshot.names import Names
from topology.aggregations import Place


class ChangeFeed:
    """The changes of each section by key, the events that operators are told, and what switches and ports are called.

    Groups and hosts are by name, router ports by (dpid, port number, family, VLAN id).
    """

    def __init__(self, policy: Policy) -> None:
        self.names = Names(policy.switches, policy.labels)
        self.events = EventRing("multicast", self.names.spoken)
        self.status: ChangeLog[str] = ChangeLog()
        self.switches: ChangeLog[int] = ChangeLog()
        self.links: ChangeLog[Cable] = ChangeLog()
        self.ports: ChangeLog[Place] = ChangeLog()
        self.hosts: ChangeLog[bytes] = ChangeLog()
        self.groups: ChangeLog[bytes] = ChangeLog()
        self.rules: ChangeLog[str] = ChangeLog()
        self.routers: ChangeLog[Any] = ChangeLog()

    def router_port_changed(self, dpid: int, port_no: int, family: int, vlan_id: int = 0) -> None:
        """Take note that a router port of a domain came, went, or was set by the operator."""
        self.routers.touch((dpid, port_no, family, vlan_id))
