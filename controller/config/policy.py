"""A checked policy: frozen values that say who may receive and send, and how the controller is set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from controller.config.alarm_settings import Alarms, ExpectedTopology
from controller.config.anomaly_settings import Anomaly
from controller.config.check_settings import Check
from controller.config.cluster_settings import Cluster
from controller.config.edit_settings import Edits
from controller.config.faults import PolicyError
from controller.config.maintenance_settings import Maintenance
from controller.config.overcommit_settings import Overcommit
from controller.config.policy_discovery_settings import PolicyDiscovery
from controller.config.probe_settings import Probes
from controller.config.registrations import Registrations
from controller.config.scaling_settings import ScalingSettings
from controller.config.service_class_settings import Aliases, QueuePolicy
from controller.config.service_classes import ServiceClass
from controller.config.settings import Allocation, Dashboard, Discovery, Limits, Monitor, Multicast, Unicast
from controller.config.terms import HostTerm, Labelled, NamedSwitch, Prefix, SwitchPort
from controller.config.vlans import Vlans

VERSION = 1
DEFAULT_RULE = "default"
"""The name under which a decision is told that no rule made."""

ANY_HOST = "any"
"""Stands for every host in a rule's `hosts`."""


class Role(StrEnum):
    """What a host asks for: to get a group's packets, to send to it, or to be a multicast router or querier."""

    RECEIVER = "receiver"
    SENDER = "sender"
    ROUTER = "router"


HOST_ROLES = frozenset({Role.RECEIVER, Role.SENDER})

ROLES: Mapping[str, frozenset[Role]] = MappingProxyType(
    {**{str(role): frozenset({role}) for role in Role}, "any": HOST_ROLES}
)
"""What `role` of a rule may say, and the roles it covers; a router must be named as one."""

ACTIONS: Mapping[str, bool] = MappingProxyType({"allow": True, "deny": False})
"""What `action` and `default` may say, and whether it admits."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """A named set of hosts."""

    name: str
    hosts: tuple[HostTerm, ...]
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Rule:
    """Allows or denies `roles` of the `groups` to hosts: any, those of `tenants`, and those of `hosts`.

    A rule without `groups`, which only one about routers may be, is about every group.
    Where `sources` is not empty the rule applies only to a join for one of these sources, or to a sender among them.
    Where `vlans` is not empty it applies only in these VLANs, 0 being the fabric's own domain.
    """

    name: str
    groups: tuple[Prefix, ...]
    roles: frozenset[Role]
    allow: bool
    any_host: bool = False
    tenants: tuple[str, ...] = ()
    hosts: tuple[HostTerm, ...] = ()
    sources: tuple[Prefix, ...] = ()
    vlans: frozenset[int] = frozenset()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class StaticMember:
    """A port that is given a group whatever its hosts say."""

    group: bytes
    port: SwitchPort
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class LinkAggregation:
    """A link aggregation group (IEEE 802.1AX), whose ports are its legs; the first stands for all of them."""

    name: str
    mode: str
    ports: tuple[SwitchPort, ...]
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class AddressPool:
    """Ranges that addresses of groups are taken from by name, the first with room first."""

    name: str
    ranges: tuple[Prefix, ...]
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class NamedFabric:
    """What a fabric is called: the one where the first of these switches is that is there."""

    name: str
    switches: tuple[int, ...]
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Policy:
    """A whole policy file. The first rule that matches decides, else `default_allow`, which admits no router.

    `warnings` forbid nothing.
    """

    tenants: tuple[Tenant, ...] = ()
    rules: tuple[Rule, ...] = ()
    default_allow: bool = False
    switches: tuple[NamedSwitch, ...] = ()
    labels: tuple[Labelled, ...] = ()
    static_members: tuple[StaticMember, ...] = ()
    vlans: Vlans = field(default_factory=Vlans)
    link_aggregations: tuple[LinkAggregation, ...] = ()
    fabrics: tuple[NamedFabric, ...] = ()
    pools: tuple[AddressPool, ...] = ()
    registrations: Registrations = field(default_factory=Registrations)
    limits: Limits = field(default_factory=Limits)
    multicast: Multicast = field(default_factory=Multicast)
    unicast: Unicast = field(default_factory=Unicast)
    discovery: Discovery = field(default_factory=Discovery)
    edits: Edits = field(default_factory=Edits)
    check: Check = field(default_factory=Check)
    monitor: Monitor = field(default_factory=Monitor)
    allocation: Allocation = field(default_factory=Allocation)
    dashboard: Dashboard = field(default_factory=Dashboard)
    anomaly: Anomaly = field(default_factory=Anomaly)
    alarms: Alarms = field(default_factory=Alarms)
    topology: ExpectedTopology = field(default_factory=ExpectedTopology)
    cluster: Cluster = field(default_factory=Cluster)
    classes: tuple[ServiceClass, ...] = ()
    aliases: Aliases = field(default_factory=Aliases)
    queues: QueuePolicy = field(default_factory=QueuePolicy)
    probes: Probes = field(default_factory=Probes)
    policy_discovery: PolicyDiscovery = field(default_factory=PolicyDiscovery)
    overcommit: Overcommit = field(default_factory=Overcommit)
    maintenance: Maintenance = field(default_factory=Maintenance)
    scaling: ScalingSettings = field(default_factory=ScalingSettings)
    warnings: tuple[PolicyError, ...] = field(default=(), compare=False)

    def known_switches(self) -> frozenset[int]:
        """Return the switches that the policy speaks of as parts of the fabric, connected or not."""
        named = {switch.dpid for switch in self.switches} | {member.port.dpid for member in self.static_members}
        aggregated = {port.dpid for group in self.link_aggregations for port in group.ports}
        fabrics = {dpid for fabric in self.fabrics for dpid in fabric.switches}
        return self.topology.all_switches() | named | self.vlans.switches | aggregated | fabrics
