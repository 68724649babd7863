"""Which of some tenants a host is of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controller.admission.host import HostLike
from controller.config.policy import Role, Rule, Tenant
from controller.config.rule_index import RuleIndex
from controller.overcommit.shares import OTHERS

HOSTS_CACHED = 16384
"""Hosts of which it is kept whose they are."""


class TenantNames:
    """Finds the first of some tenants that a host is of."""

    def __init__(self, names: Iterable[str] = (), tenants: Sequence[Tenant] = ()) -> None:
        self._names = list(names)
        roles = frozenset((Role.SENDER,))
        self._index = RuleIndex([Rule(name, (), roles, True, tenants=(name,)) for name in self._names], tenants)
        self._of_hosts: dict[HostLike, str] = {}

    def of(self, host: HostLike) -> str:
        """Return the tenant of a host, `OTHERS` where it is of none."""
        found = self._of_hosts.get(host)
        if found is None:
            about = self._index.of_host(host.mac, host.ip, host.dpid, host.port_no, host.known) if self._names else 0
            found = self._names[(about & -about).bit_length() - 1] if about else OTHERS
            if len(self._of_hosts) >= HOSTS_CACHED:
                self._of_hosts.clear()
            self._of_hosts[host] = found
        return found
