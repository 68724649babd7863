"""Rules of a policy by the access lists that ports and VLANs of a Faucet configuration have."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from controller.config.terms import SwitchPort
from controller.migration.draft import DraftRule, PolicyDraft
from controller.migration.faucet_acls import ALL_GROUPS, AccessList, GroupRule, both, in_turn
from controller.migration.report import BadConfiguration, Fault

MAX_RULES = 4096
_LONGEST_TENANT = 56


def write_rules(
    draft: PolicyDraft,
    lists: Mapping[str, AccessList],
    on_port: Mapping[tuple[str, ...], Sequence[SwitchPort]],
    on_vlan: Mapping[int, Sequence[AccessList]],
) -> None:
    """Write the rules of the lists that ports have, then of those that VLANs have for ports without one.

    `on_port` has the ports by the names of their lists, `on_vlan` the lists of VLANs. BadConfiguration is raised
    where more than `MAX_RULES` come of it.
    """
    for names, places in on_port.items():
        tenant = _tenant(draft, names, places)
        own = in_turn([lists[name] for name in names])
        carried = {vlan_id for place in places for vlan_id in _vlans_at(draft, place)}
        for vlan_id, of_vlan in on_vlan.items():
            if vlan_id in carried:
                _add(draft, both(own, in_turn(of_vlan), vlan_id), tenant, f"{names[0]}-{of_vlan[0].name}")
        _add(draft, own, tenant, names[0])
    for vlan_id, of_vlan in on_vlan.items():
        rules = [rule._replace(vlan=vlan_id) for rule in in_turn(of_vlan) if rule.vlan in (None, vlan_id)]
        _add(draft, rules, None, of_vlan[0].name)
    if draft.vlans:
        name = draft.rule_name("ports-without-vlan")
        origin = "ports that Faucet's file does not name"
        draft.rules.append(DraftRule(name, "any", ALL_GROUPS, None, False, origin, vlan="untagged"))


def _tenant(draft: PolicyDraft, names: Sequence[str], places: Sequence[SwitchPort]) -> str:
    """Return the name of a tenant that is these ports."""
    base = re.sub(r"[^A-Za-z0-9._-]+", "-", f"ports-{'-'.join(names)}")[:_LONGEST_TENANT]
    name, number = base, 2
    while name in draft.tenants:
        name, number = f"{base}-{number}", number + 1
    draft.tenants[name] = list(places)
    return name


def _add(draft: PolicyDraft, rules: Sequence[GroupRule], tenant: str | None, wanted: str) -> None:
    for number, rule in enumerate(rules, 1):
        if len(draft.rules) >= MAX_RULES - 1:
            file = rule.origin.rpartition(":")[0]
            raise BadConfiguration([Fault(file, 0, f"more than {MAX_RULES} rules come of it")])
        is_router = rule.role == "router"
        draft.rules.append(
            DraftRule(
                draft.rule_name(f"{wanted}-{number}-{rule.role}"),
                rule.role,
                () if is_router else rule.groups,
                None if tenant is None else (tenant,),
                rule.allow,
                rule.origin,
                rule.sources,
                "" if rule.vlan is None or is_router else str(rule.vlan or "untagged"),
            )
        )


def _vlans_at(draft: PolicyDraft, place: SwitchPort) -> tuple[int, ...]:
    if place not in draft.vlans:
        return ()
    vlans = draft.vlans[place][0]
    return (*(() if vlans.untagged is None else (vlans.untagged,)), *(vlans.tagged or ()))
