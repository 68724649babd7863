"""A policy file that is proposed from what an audit log has: tenants, their groups, their senders, with evidence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.config.terms import SwitchPort, can_be_host
from controller.kernel.domains import address_of, domain_of
from controller.policy_discovery.observations import Observations, Pair
from controller.policy_discovery.prefixes import exact_prefixes, prefixes
from controller.policy_discovery.tenants import Tenancy, tenancy
from controller.wire.addresses import format_ip, format_mac

Bools = NDArray[np.bool_]

LINE = 110
_SECTION = re.compile(r"([a-z_]+):(?: |$)")
LISTED = 20
"""Strays that are named in the file; the document has all."""


class ProposedTenant(NamedTuple):
    """A name, the terms of the policy file that stand for its hosts, and how many hosts were seen."""

    name: str
    terms: tuple[str, ...]
    hosts: int


class ProposedRule(NamedTuple):
    """A rule of the policy file and what speaks for it: pairs of host and group seen, and admitted unseen."""

    name: str
    role: str
    groups: tuple[str, ...]
    hosts: tuple[str, ...]
    vlan: int
    seen_hosts: int
    days: int
    pairs_seen: int
    pairs_unseen: int


class Stray(NamedTuple):
    """A host that is in no tenant, or receives groups that are not its tenant's, and those groups."""

    host: str
    tenant: str | None
    groups: tuple[str, ...]


class PolicyProposal(NamedTuple):
    """Tenants, rules and what is admitted by none of them."""

    tenants: tuple[ProposedTenant, ...]
    rules: tuple[ProposedRule, ...]
    strays: tuple[Stray, ...]


def propose(observed: Observations, by: str = "address") -> PolicyProposal:
    """Return the policy that admits what was seen, and what hosts of one tenant receive to all of them.

    Parameters
    ----------
    observed
        What was decided, the newest of a host, role and group; refusals are left out.
    by
        How hosts are written: by ``address`` (prefixes where all hosts known there are the tenant's; a host that has
        link-local addresses alone by its MAC address), ``mac`` or ``port`` (by its MAC address where hosts of two
        tenants are at one).
    """
    macs, groups, received = observed.table()
    found = tenancy(received)
    of_tenant: list[list[bytes]] = [[] for _ in found.groups]
    for mac, tenant in zip(macs, found.of_host.tolist(), strict=True):
        if tenant >= 0:
            of_tenant[tenant].append(mac)
    terms = [_terms(observed, number, of_tenant, by) for number in range(len(of_tenant))]
    tenants = tuple(
        ProposedTenant(f"tenant-{number + 1}", tuple(own), len(of_tenant[number])) for number, own in enumerate(terms)
    )
    rules = _receivers(observed, groups, of_tenant, found, tenants)
    return PolicyProposal(
        tenants, (*rules, *_senders(observed)), _strays(macs, groups, received, found, tenants, observed)
    )


def _routable(addresses: Iterable[bytes]) -> list[bytes]:
    """Return addresses by which a policy can name a host: not link-local, and none that no host has."""
    return [
        address
        for address in addresses
        if can_be_host(address) and not (len(address) == 16 and address[0] == 0xFE and address[1] & 0xC0 == 0x80)
    ]


def _terms(observed: Observations, number: int, of_tenant: Sequence[Sequence[bytes]], by: str) -> list[str]:
    own = of_tenant[number]
    others = [mac for at, macs in enumerate(of_tenant) if at != number for mac in macs]
    if by == "mac":
        return [_quoted(format_mac(mac)) for mac in own]
    if by == "port":
        elsewhere = {port for mac in others for port in observed.hosts[mac].ports}
        alone = [mac for mac in own if elsewhere & observed.hosts[mac].ports]
        ports = {port for mac in own if mac not in alone for port in observed.hosts[mac].ports}
        return [_port(port) for port in sorted(ports)] + [_quoted(format_mac(mac)) for mac in alone]
    addresses = [address for mac in own for address in _routable(observed.hosts[mac].addresses)]
    foreign = [address for mac in others for address in _routable(observed.hosts[mac].addresses)]
    unnamed = [mac for mac in own if not _routable(observed.hosts[mac].addresses)]
    return [_quoted(text) for text in prefixes(addresses, foreign)] + [_quoted(format_mac(mac)) for mac in unnamed]


def _port(port: SwitchPort) -> str:
    return f"{{dpid: {port.dpid}, port: {port.port_no}}}"


def _quoted(text: str) -> str:
    """Return an address as YAML reads it as text."""
    return f'"{text}"' if ":" in text else text


def _receivers(
    observed: Observations,
    groups: Sequence[bytes],
    of_tenant: Sequence[Sequence[bytes]],
    found: Tenancy,
    tenants: Sequence[ProposedTenant],
) -> list[ProposedRule]:
    asked: list[tuple[str, tuple[str, ...], Sequence[bytes], list[bytes]]] = [
        (tenants[number].name, (tenants[number].name,), macs, [groups[column] for column in found.groups[number]])
        for number, macs in enumerate(of_tenant)
    ]
    if found.common:
        everyone = [mac for macs in of_tenant for mac in macs]
        names = tuple(tenant.name for tenant in tenants)
        asked.append(("all-tenants", names, everyone, [groups[column] for column in found.common]))
    received = observed.receivers()
    rules = []
    for name, hosts, macs, theirs in asked:
        for vlan in sorted({domain_of(group) for group in theirs}):
            some = [group for group in theirs if domain_of(group) == vlan]
            pairs = len(macs) * len(some)
            seen = [received[mac, group] for mac in macs for group in some if (mac, group) in received]
            rule_name = f"{name}-receives" + (f"-vlan-{vlan}" if vlan else "")
            texts = tuple(_quoted(text) for text in exact_prefixes(address_of(group) for group in some))
            rules.append(
                ProposedRule(
                    rule_name,
                    "receiver",
                    texts,
                    hosts,
                    vlan,
                    len(macs),
                    _days(seen),
                    len(seen),
                    pairs - len(seen),
                )
            )
    return rules


def _days(days: Iterable[set[int]]) -> int:
    return len(set().union(*days))


def _senders(observed: Observations) -> list[ProposedRule]:
    """Return rules that admit each sender to the groups that it was seen to send to, and to no other."""
    sent: dict[tuple[str, int], dict[bytes, Pair]] = {}
    for (mac, address, group), pair in observed.sent.items():
        if pair.admit:
            named = _routable([] if address is None else [address])
            term = _quoted(format_ip(named[0]) if named else format_mac(mac))
            sent.setdefault((term, domain_of(group)), {})[group] = pair
    alike: dict[tuple[int, tuple[bytes, ...]], list[str]] = {}
    for (term, vlan), theirs in sorted(sent.items()):
        alike.setdefault((vlan, tuple(sorted(theirs))), []).append(term)
    rules = []
    for number, ((vlan, groups), terms) in enumerate(sorted(alike.items()), 1):
        days = _days(pair.days for term in terms for pair in sent[term, vlan].values())
        texts = tuple(_quoted(text) for text in exact_prefixes(address_of(group) for group in groups))
        seen = len(terms) * len(groups)
        rules.append(
            ProposedRule(f"senders-{number}", "sender", texts, tuple(terms), vlan, len(terms), days, seen, 0)
        )
    return rules


def _strays(
    macs: Sequence[bytes],
    groups: Sequence[bytes],
    received: Bools,
    found: Tenancy,
    tenants: Sequence[ProposedTenant],
    observed: Observations,
) -> tuple[Stray, ...]:
    strays = []
    for row, (mac, tenant) in enumerate(zip(macs, found.of_host.tolist(), strict=True)):
        admitted = {*found.common, *found.groups[tenant]} if tenant >= 0 else set()
        left = [groups[column] for column in received[row].nonzero()[0].tolist() if column not in admitted]
        if left:
            addresses = sorted(_routable(observed.hosts[mac].addresses))
            name = format_mac(mac) + "".join(f" {format_ip(address)}" for address in addresses[:4])
            of = tenants[tenant].name if tenant >= 0 else None
            strays.append(Stray(name, of, tuple(format_ip(group) for group in left)))
    return tuple(strays)


def policy_text(proposal: PolicyProposal, observed: Observations, kept: Sequence[str] = ()) -> str:
    """Return a proposal as a policy file: what it was made of and what speaks for each rule stands in comments.

    `kept` are lines of the policy in force, of sections that say nothing of who is admitted (`other_sections`).
    """
    lines = [
        "# Proposed by `vsrt policy propose` from the decisions of an audit log. Read it, change it, then put it in"
    ]
    lines.append("# force: what is not admitted below is refused.")
    if observed.counted["decisions"]:
        span = f"{_day(observed.first_s)} to {_day(observed.last_s)}"
        lines.append(f"# {observed.counted['decisions']} decisions, {span}, by {_listed(observed.rules)}.")
    if refused := observed.refused():
        lines.append(f"# {_number(refused, 'pair')} of host and group, refused in the end: left out.")
    if beyond := observed.counted["beyond_bounds"]:
        lines.append(f"# {beyond} decisions about more hosts or groups than can be looked at are left out.")
    lines += ["version: 1", ""]
    vlans = sorted({rule.vlan for rule in proposal.rules if rule.vlan})
    if kept:
        lines += [*kept, ""]
    elif vlans:
        lines += [f"vlans: {{names: {{{', '.join(f'{vlan}: vlan-{vlan}' for vlan in vlans)}}}}}", ""]
    if proposal.tenants:
        lines.append("tenants:")
        for tenant in proposal.tenants:
            lines.append(f"  # {_number(tenant.hosts, 'host')}")
            lines += _sequence(f"  {tenant.name}: ", tenant.terms, "    ")
        lines.append("")
    if proposal.rules:
        lines.append("rules:")
        for rule in proposal.rules:
            lines += _rule_lines(rule)
        lines.append("")
    lines.append("default: deny")
    if proposal.strays:
        lines += ["", f"# {_number(len(proposal.strays), 'host')} received what is admitted by no rule above:"]
        for stray in proposal.strays[:LISTED]:
            of = f" ({stray.tenant})" if stray.tenant else ""
            more = f" and {len(stray.groups) - 4} more" if len(stray.groups) > 4 else ""
            lines.append(f"#   {stray.host}{of}: {', '.join(stray.groups[:4])}{more}")
        if len(proposal.strays) > LISTED:
            lines.append(f"#   and {len(proposal.strays) - LISTED} more (--json has all)")
    return "\n".join(lines) + "\n"


def other_sections(text: str) -> list[str]:
    """Return the lines of a policy file in block style, without `version`, `tenants`, `rules` and `default`.

    Comments before a section go with it; ValueError where the file is no list of sections.
    """
    kept: list[str] = []
    waiting: list[str] = []
    is_kept = True
    for line in text.splitlines():
        section = _SECTION.match(line)
        if section is not None:
            is_kept = section[1] not in ("version", "tenants", "rules", "default")
        elif line[:1] not in ("", " ", "#", "-"):
            raise ValueError(f"the line {line[:40]!r} begins no section")
        if section is None and (not line.strip() or line.startswith("#")):
            waiting.append(line)
            continue
        if is_kept:
            kept += [*(waiting if kept else [one for one in waiting if one]), line]
        waiting = []
    return kept


def _rule_lines(rule: ProposedRule) -> list[str]:
    seen = f"{_number(rule.seen_hosts, 'host')} on {_number(rule.days, 'day')}"
    pairs = f"{_number(rule.pairs_seen, 'pair')} of host and group seen"
    lines = [f"  # {seen}; {pairs}, {rule.pairs_unseen or 'none'} admitted unseen"]
    lines.append(f"  - name: {rule.name}")
    lines.append(f"    role: {rule.role}")
    lines += _sequence("    groups: ", rule.groups, "      ")
    lines += _sequence("    hosts: ", rule.hosts, "      ")
    if rule.vlan:
        lines.append(f"    vlan: {rule.vlan}")
    return [*lines, "    action: allow"]


def _sequence(before: str, terms: Sequence[str], indent: str) -> list[str]:
    """Return a flow sequence on as many lines as it takes."""
    lines, line = [], before + "["
    for number, term in enumerate(terms):
        piece = term + ("]" if number == len(terms) - 1 else ", ")
        if len(line) + len(piece) > LINE:
            lines.append(line.rstrip())
            line = indent
        line += piece
    return [*lines, line]


def _number(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


def _day(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d")


def _listed(rules: Iterable[str]) -> str:
    names = sorted("".join(sign if sign.isprintable() else "\ufffd" for sign in rule) for rule in rules)
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def proposal_document(proposal: PolicyProposal, observed: Observations, text: str) -> dict[str, Any]:
    """Return a proposal as a document that JSON can write, with the text of the policy file."""
    return {
        "tenants": [
            {"name": one.name, "hosts": list(one.terms), "seen_hosts": one.hosts} for one in proposal.tenants
        ],
        "rules": [
            {**one._asdict(), "groups": list(one.groups), "hosts": list(one.hosts), "vlan": one.vlan or None}
            for one in proposal.rules
        ],
        "strays": [{**one._asdict(), "groups": list(one.groups)} for one in proposal.strays],
        "decisions": observed.counted["decisions"],
        "refused": observed.refused(),
        "beyond_bounds": observed.counted["beyond_bounds"],
        "policy": text,
    }
