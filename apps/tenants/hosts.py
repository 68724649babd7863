"""The hosts that a snapshot tells of, by the tenants of the policy that is in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from controller.admission.tenant_index import TenantIndex
from controller.config.expected_topology import Cabling
from controller.config.faults import PolicyInvalid, describe
from controller.config.load import load_policy
from controller.config.policy import Policy
from controller.snapshot.reader import Fields, Snapshot
from controller.wire.addresses import parse_ip, parse_mac


class PolicyUnreadable(ValueError):  # noqa: N818
    """The policy that a controller goes by cannot be read by this version; the text says why."""


NEEDED = ("policy", "hosts")
"""The sections that tenants are told by."""


def policy_in(snapshot: Snapshot) -> Policy:
    """Return the policy in force, one that says nothing where the snapshot has none.

    Raises
    ------
    PolicyUnreadable
        This version cannot read what the controller goes by.
    """
    document = snapshot.section("policy").documents.get("policy")
    text = (document.fields.get("text") or "") if document is not None else ""
    return _loaded(text) if text else Policy()


@lru_cache(maxsize=1)
def _loaded(text: str) -> Policy:
    try:
        return load_policy(text, "policy", lambda _name: Cabling(frozenset(), frozenset()))
    except PolicyInvalid as fault:
        why = describe(fault.errors[0], "policy")
        raise PolicyUnreadable(
            f"the controller's policy cannot be read here, perhaps for it has another version: {why}"
        ) from None


class TenantHosts:
    """Tells the tenants of who is named in documents, by all addresses that the host is known to hold."""

    def __init__(self, policy: Policy, hosts: Iterable[Fields]) -> None:
        self._index = TenantIndex(policy.tenants)
        self._ips: dict[tuple[object, ...], Sequence[str]] = {}
        for host in hosts:
            self._ips[_place(host)] = host.get("ips") or ()

    def of(self, who: Fields) -> tuple[str, ...]:
        """Return the tenants of a host, a member, a sender, or a port that is given a group."""
        return self._index.of(_mac(who), self._addresses(who), who["dpid"], who["port_no"])

    def _addresses(self, who: Fields) -> Iterator[bytes]:
        known = {*self._ips.get(_place(who), ()), *(who.get("ips") or ()), who.get("ip")}
        return (parse_ip(ip) for ip in known if ip)


def _place(who: Fields) -> tuple[object, ...]:
    return who.get("mac"), who.get("dpid"), who.get("port_no")


def _mac(who: Fields) -> bytes | None:
    return parse_mac(who["mac"]) if who.get("mac") else None
