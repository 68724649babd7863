"""Which tenant the entries of a group are of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from controller.admission.host import HostLike
from controller.config.overcommit_settings import Overcommit
from controller.config.policy import Tenant
from controller.multicast.group import SenderKey
from controller.multicast.groups import GroupPlane
from controller.multicast.tenant_names import TenantNames
from controller.overcommit.shares import OTHERS, Allotment, Shares


class TableTenants:
    """Finds the tenant of a group: that of the first of its senders, of those that the policy gives shares.

    `host_of` tells who a sender is to the policy.
    """

    def __init__(self, plane: GroupPlane, host_of: Callable[[SenderKey], HostLike]) -> None:
        self._plane = plane
        self._host_of = host_of
        self._names = TenantNames()

    def use(self, settings: Overcommit, tenants: Sequence[Tenant]) -> Shares | None:
        """Go by another policy; return what tenants may have, None where it says nothing of it."""
        self._names = TenantNames((each.tenant for each in settings.tenants), tenants)
        if not settings.tenants:
            return None
        known = {name: Allotment(share.shares, share.reservation, share.limit) for name, share in settings.tenants}
        return Shares(settings.tax_pct, known)

    def of(self, address: bytes) -> str:
        """Return the tenant of a group, `OTHERS` where none of its senders is of one."""
        group = self._plane.groups.get(address)
        for key, sender in group.senders.items() if group is not None else ():
            if sender.admitted and (name := self._names.of(self._host_of(key))) != OTHERS:
                return name
        return OTHERS
