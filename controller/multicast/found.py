"""Entries of groups that a controller without a log finds on switches: which tree versions they are of, who sends."""

from __future__ import annotations

from collections.abc import Mapping

from controller.kernel.domains import in_domain
from controller.kernel.vlan_ports import VlanPorts
from controller.multicast.group import SenderKey
from controller.rules.compile import TREE_VERSIONS, tree_version_of
from controller.rules.model import FlowEntry, FlowKey
from controller.rules.pipeline import SENDER_COOKIE_BIT


class FoundEntries:
    """The entries of an earlier run by the cookies of their groups and by tree version, as switches tell them."""

    def __init__(self, vlan_ports: VlanPorts) -> None:
        self._vlan_ports = vlan_ports
        self._found: dict[int, dict[int, set[tuple[int, FlowKey]]]] = {}

    def take(self, dpid: int, entries: Mapping[FlowKey, FlowEntry]) -> list[tuple[bytes, SenderKey]]:
        """Take note of what a switch holds, and return the senders in it with their groups."""
        senders = []
        for key, rule in entries.items():
            match = key.match
            if not rule.cookie & SENDER_COOKIE_BIT:
                if match.ip_dst is not None and match.eth_dst is not None:
                    versions = self._found.setdefault(rule.cookie, {})
                    versions.setdefault(tree_version_of(match), set()).add((dpid, key))
            elif match.in_port is not None and match.eth_src and match.ip_src and match.ip_dst:
                vlan_id = self._vlan_ports.domain_of_sender(dpid, key)
                group = in_domain(match.ip_dst, vlan_id)
                senders.append((group, SenderKey(dpid, match.in_port, match.eth_src, match.ip_src)))
        return senders

    def versions(self, cookie: int) -> dict[int, set[tuple[int, FlowKey]]] | None:
        """Return the entries of a group by version, None without any; those of switches read later are added."""
        return self._found.get(cookie)

    def version_beside(self, cookie: int) -> int:
        """Return a version that no entry of a group is of, the next after the first one found where there is one."""
        versions = self._found[cookie]
        first = next(iter(versions)) + 1
        taken = {version % TREE_VERSIONS for version in versions}
        beside = (version % TREE_VERSIONS for version in range(first, first + TREE_VERSIONS))
        return next((version for version in beside if version not in taken), first % TREE_VERSIONS)

    def clear(self) -> None:
        """Forget all: groups that come from now on begin afresh."""
        self._found.clear()
