"""What must hold between the entries of a policy, and what is allowed but hardly meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_address
from typing import NamedTuple

from controller.config.faults import Faults, quoted
from controller.config.policy import Rule, Tenant
from controller.config.rule_index import RuleIndex
from controller.config.settings import Dashboard, PrometheusEndpoint
from controller.config.terms import HostTerm, MacAddress, Prefix, SwitchLink, SwitchPort, mask_address
from controller.wire.addresses import format_ip


class TenantTerm(NamedTuple):
    """One host of a tenant, with its place in the file."""

    tenant: str
    term: HostTerm
    line: int
    field: str


def overlapping_tenants(terms: Sequence[TenantTerm], faults: Faults) -> None:
    """Report hosts that are named twice: an error for a MAC address in two tenants, else a warning.

    A MAC address is one host, which has one tenant. An IP address, a prefix or a port may well be shared.
    """
    first: dict[HostTerm, TenantTerm] = {}
    lengths: dict[int, set[int]] = {4: set(), 16: set()}
    for entry in terms:
        other = first.setdefault(entry.term, entry)
        if isinstance(entry.term, Prefix):
            lengths[len(entry.term.network)].add(entry.term.length)
        if other is entry:
            continue
        report = faults.warn
        if other.tenant != entry.tenant and isinstance(entry.term, MacAddress):
            report = faults.error
        report(
            entry.line, entry.field, f"{entry.term} is in tenant {quoted(other.tenant)} already (line {other.line})"
        )
    for entry in terms:
        if not isinstance(entry.term, Prefix):
            continue
        for length in sorted(lengths[len(entry.term.network)]):
            if length >= entry.term.length:
                break
            outer = Prefix(mask_address(entry.term.network, length), length)
            other = first.get(outer, entry)
            if other.tenant != entry.tenant:
                message = f"{entry.term} is within {outer} of tenant {quoted(other.tenant)} (line {other.line})"
                faults.warn(entry.line, entry.field, message)


def idle_rules(rules: Sequence[Rule], tenants: Sequence[Tenant], faults: Faults) -> None:
    """Warn of rules that match nothing, and of those where an earlier rule matches all that they match."""
    for position, verb, reason in idle(rules, tenants):
        rule = rules[position]
        faults.warn(rule.line, f"rules[{position}]", f"rule {quoted(rule.name)} never {verb}: {reason}")


def idle(rules: Sequence[Rule], tenants: Sequence[Tenant]) -> Iterator[tuple[int, str, str]]:
    """Yield the places of rules that never apply, or never decide, each with that verb and the reason."""
    index = RuleIndex(rules, tenants)
    populated = {tenant.name for tenant in tenants if tenant.hosts}
    for position, rule in enumerate(rules):
        families = {len(group.network) for group in rule.groups}
        if not (rule.any_host or rule.hosts or populated.intersection(rule.tenants)):
            yield position, "applies", "its tenants have no hosts"
        elif rule.groups and rule.sources and families.isdisjoint(len(source.network) for source in rule.sources):
            yield position, "applies", "its sources are not of its groups' family"
        elif (shadow := index.shadow_of(position)) is not None:
            yield position, "decides", f"{quoted(rules[shadow].name)} (line {rules[shadow].line}) comes first"


def ports_in_two_links(links: Iterable[SwitchLink]) -> list[SwitchPort]:
    """Return the ports that are an end of more than one link, in ascending order."""
    counts = Counter(end for link in links for end in link)
    return sorted(end for end, count in counts.items() if count > 1)


def sends_tokens_in_clear(dashboard: Dashboard) -> bool:
    """Tell whether tokens would cross a network without TLS, though nobody has accepted that."""
    has_tokens = dashboard.token_file or dashboard.read_token_file
    accepted = dashboard.certificate or dashboard.tokens_over_plain_http == "accepted"
    return bool(has_tokens) and not accepted and not ip_address(dashboard.host).is_loopback


def tokens_in_clear(host: str) -> str:
    """Return what is told of a server with tokens at an address that is no loopback one, and has no certificate."""
    return (
        f"{host} is not a loopback address, so tokens would cross the network in clear: set certificate and key, or "
        "a loopback address as host, or this to 'accepted'"
    )


def same_place(dashboard: Dashboard, prometheus: PrometheusEndpoint) -> str | None:
    """Return what is told where page and Prometheus's endpoint cannot both listen, None where they can."""
    ours, theirs = dashboard.host, prometheus.address
    meet = len(ours) == len(theirs) and (ours == theirs or not any(ours) or not any(theirs))
    if not prometheus.enabled or not dashboard.port or dashboard.port != prometheus.port or not meet:
        return None
    return (
        f"page and API (dashboard, {format_ip(ours)}) and the endpoint for Prometheus (monitor.prometheus, "
        f"{format_ip(theirs)}) cannot both listen on TCP port {dashboard.port}"
    )
