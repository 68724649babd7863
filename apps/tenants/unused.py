"""What nobody uses: rules that never decided, tenants without hosts, addresses of pools that no group has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apps.tenants.hosts import NEEDED, TenantHosts, policy_in
from controller.config.policy import DEFAULT_RULE, Policy
from controller.config.rule_index import RuleIndex
from controller.snapshot.reader import Document, Snapshot

SECTIONS = ("rules", "groups", "addresses", *NEEDED)

PARTIES = ("members", "static_members", "senders", "refused")
"""Who groups tell of."""


def unused(snapshot: Snapshot) -> list[Document]:
    """Return the rules that never decided, in their order, then tenants, then addresses of pools, that nobody uses.

    PolicyUnreadable where the policy cannot be read.
    """
    policy = policy_in(snapshot)
    return [
        Document(id_, {"id": id_, **fields})
        for found in (_rules(snapshot, policy), _tenants(snapshot, policy), _addresses(snapshot))
        for fields in found
        for id_ in [f"{fields['kind']}/{fields['name']}"]
    ]


def _rules(snapshot: Snapshot, policy: Policy) -> Iterator[dict[str, Any]]:
    index = RuleIndex(policy.rules, policy.tenants)
    positions = {rule.name: position for position, rule in enumerate(policy.rules)}
    for document in snapshot.section("rules").documents.values():
        name = document.fields.get("rule")
        if name == DEFAULT_RULE or document.fields.get("allow") or document.fields.get("deny"):
            continue
        position, reason = positions.get(str(name)), "It never decided."
        line = None if position is None else policy.rules[position].line or None
        if position is not None:
            first = index.shadow_of(position)
            if first is not None:
                reason = f"It cannot decide: rule {policy.rules[first].name} before it matches whenever it does."
        yield {**_named("rule", name, line), "since_s": document.fields.get("since_s"), "reason": reason}


def _tenants(snapshot: Snapshot, policy: Policy) -> Iterator[dict[str, Any]]:
    if not policy.tenants:
        return
    hosts = [document.fields for document in snapshot.section("hosts").documents.values()]
    tenants, with_hosts = TenantHosts(policy, hosts), set[str]()
    for host in hosts:
        with_hosts.update(tenants.of(host))
    for document in snapshot.section("groups").documents.values():
        for name in PARTIES:
            for who in document.fields.get(name) or ():
                if who.get("mac"):
                    with_hosts.update(tenants.of(who))
    for tenant in policy.tenants:
        if tenant.name not in with_hosts:
            reason = "None of the hosts that the controller knows is of it."
            yield {**_named("tenant", tenant.name, tenant.line or None), "since_s": None, "reason": reason}


def _addresses(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    used, refused = set[str](), dict[str, int]()
    for document in snapshot.section("groups").documents.values():
        address, fields = document.id.partition("@")[0], document.fields
        senders = fields.get("senders") or ()
        if fields.get("members") or fields.get("static_members") or any(each.get("admitted") for each in senders):
            used.add(address)
        else:
            refused[address] = refused.get(address, 0) + len(fields.get("refused") or ()) + len(senders)
    for document in snapshot.section("addresses").in_order():
        address = str(document.fields.get("address"))
        if address in used:
            continue
        reason = f"Nobody sends to {address} or gets it"
        if count := refused.get(address):
            reason += f"; {count} host{'s are' if count > 1 else ' is'} refused"
        yield {**_named("address", document.id, None), "address": address, "since_s": None, "reason": f"{reason}."}


def _named(kind: str, name: object, line: int | None) -> dict[str, Any]:
    return {"kind": kind, "name": name, "line": line}
