"""A checked policy: frozen values that say who may receive and send, and how the controller is set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from controller.config.anomaly_settings import Anomaly
from controller.config.faults import PolicyError
from controller.config.settings import Allocation, Dashboard, Discovery, Limits, Monitor, Multicast, Unicast
from controller.config.terms import HostTerm, Prefix

VERSION = 1
DEFAULT_RULE = "default"
"""The name under which a decision is told that no rule made."""

ANY_HOST = "any"
"""Stands for every host in a rule's `hosts`."""


class Role(StrEnum):
    """What a host asks for: to get a group's packets, or to send to it."""

    RECEIVER = "receiver"
    SENDER = "sender"


ROLES: Mapping[str, frozenset[Role]] = MappingProxyType(
    {"receiver": frozenset({Role.RECEIVER}), "sender": frozenset({Role.SENDER}), "any": frozenset(Role)}
)
"""What `role` of a rule may say, and the roles it covers."""

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

    Where `sources` is not empty the rule applies only to a join for one of these sources, or to a sender among them.
    """

    name: str
    groups: tuple[Prefix, ...]
    roles: frozenset[Role]
    allow: bool
    any_host: bool = False
    tenants: tuple[str, ...] = ()
    hosts: tuple[HostTerm, ...] = ()
    sources: tuple[Prefix, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Policy:
    """A whole policy file. The first rule that matches decides, else `default_allow`; `warnings` forbid nothing."""

    tenants: tuple[Tenant, ...] = ()
    rules: tuple[Rule, ...] = ()
    default_allow: bool = False
    limits: Limits = field(default_factory=Limits)
    multicast: Multicast = field(default_factory=Multicast)
    unicast: Unicast = field(default_factory=Unicast)
    discovery: Discovery = field(default_factory=Discovery)
    monitor: Monitor = field(default_factory=Monitor)
    allocation: Allocation = field(default_factory=Allocation)
    dashboard: Dashboard = field(default_factory=Dashboard)
    anomaly: Anomaly = field(default_factory=Anomaly)
    warnings: tuple[PolicyError, ...] = field(default=(), compare=False)
