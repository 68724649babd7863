"""Who may receive and send: the policy, the bound on groups, and addresses that belong elsewhere."""

from __future__ import annotations

from collections.abc import Callable

from controller.admission.admission import Admission
from controller.admission.host import Decision, Host, HostLike
from controller.config.policy import Policy, Role
from controller.membership.events import HostRef
from controller.multicast.effects import Audit
from controller.multicast.group import SenderKey
from controller.multicast.groups import GroupPlane
from controller.wire.addresses import is_link_scope_group
from topology.live import LiveFabric


class Gate:
    """Admits receivers and senders, and has every decision audited.

    Groups that were admitted but have no tree yet count towards the bound until `settled`.
    """

    def __init__(
        self,
        policy: Policy,
        plane: GroupPlane,
        fabric: LiveFabric,
        audit: Callable[[Audit], None],
        group_refused: Callable[[bytes], None],
    ) -> None:
        self.admission = Admission(policy)
        self._groups_bound = policy.limits.groups
        self._plane = plane
        self._fabric = fabric
        self._audit = audit
        self._group_refused = group_refused
        self._promised: set[bytes] = set()

    def replace(self, policy: Policy) -> None:
        """Decide by another policy from now on."""
        self.admission.replace(policy)
        self._groups_bound = policy.limits.groups

    def admit(self, host: HostRef, group: bytes, source: bytes | None) -> bool:
        """Decide whether a host may receive from a group."""
        if is_link_scope_group(group):
            return True
        if self._is_over_bound(group):
            return False
        decision = self.admission.decide(host, group, Role.RECEIVER, source)
        self._audit(Audit(decision, host, group, Role.RECEIVER, source))
        if decision.admit and group not in self._plane.forest:
            self._promised.add(group)
        return decision.admit

    def decide_sender(self, key: SenderKey, group: bytes) -> Decision:
        """Decide whether a sender may feed a group."""
        host: HostLike = Host(key.mac, key.address, key.dpid, key.port_no)
        if self._is_over_bound(group):
            decision = Decision(False, "limits.groups", "as many groups as the policy allows have a tree")
        else:
            decision = self.admission.decide(host, group, Role.SENDER, None)
        self._audit(Audit(decision, host, group, Role.SENDER, None))
        return decision

    def has_room(self, group: bytes) -> bool:
        """Tell whether a group has a tree already, or there is room for one more."""
        return group in self._plane.forest or len(self._plane.forest) < self._groups_bound

    def settled(self) -> None:
        """Count as groups from now on what has a tree."""
        if self._promised:
            self._promised.clear()

    def _is_over_bound(self, group: bytes) -> bool:
        promised = self._promised
        if len(self._plane.groups) + len(promised) < self._groups_bound:
            return False
        forest = self._plane.forest
        if len(forest) + len(promised) < self._groups_bound or group in forest or group in promised:
            return False
        self._group_refused(group)
        return True

    def is_spoofed(self, key: SenderKey) -> bool:
        """Tell whether the sender's addresses are known to be somewhere else; routers speak for others."""
        if self._plane.is_router_port(key.dpid, key.port_no, 4 if len(key.address) == 4 else 6):
            return False
        return self._fabric.binding_conflict(key.mac, key.address, key.dpid, key.port_no)

    def is_bound(self, key: SenderKey) -> bool:
        """Tell whether the sender is known to be where it sends from, with the address that it uses."""
        if self._plane.is_router_port(key.dpid, key.port_no, 4 if len(key.address) == 4 else 6):
            return True
        host = self._fabric.host(key.mac)
        return host is not None and (host.dpid, host.port_no) == key[:2] and key.address in host.addresses
