"""Access lists of Faucet as rules about groups: who may send them, who may receive them, who is a router.

A list is gone through for each packet that a port takes, the first rule that matches decides, and what none matches
is dropped. Of these packets a policy decides on those to groups (senders), on IGMP and MLD reports (receivers), and
on PIM (routers). Where a port and its VLAN both have lists, both must let a packet through.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import yaml

from controller.config.terms import Prefix, parse_prefix
from controller.migration.report import Fault, ImportReport, Outcome, Place
from controller.migration.yaml_file import YamlEntry, YamlFile, is_integer
from controller.wire.addresses import format_ip, is_link_scope_group, is_multicast_ip, parse_ip

IPV4, IPV6 = 0x0800, 0x86DD
GROUPS = {4: Prefix(parse_ip("224.0.0.0"), 4), 6: Prefix(parse_ip("ff00::"), 8)}
ALL_GROUPS = (GROUPS[4], GROUPS[6])

TCP, UDP, IGMP, ICMPV6, PIM = 6, 17, 2, 58, 103
_MLD_TYPES = (131, 143)
_IGMP_REPORTS_TO = ("224.0.0.22", "224.0.0.0/4", "224.0.0.0/24")

_ALIASES = {
    "dl_type": "eth_type",
    "nw_proto": "ip_proto",
    "nw_src": "ipv4_src",
    "nw_dst": "ipv4_dst",
    "dl_vlan": "vlan_vid",
    "dl_src": "eth_src",
    "dl_dst": "eth_dst",
    "tp_src": "udp_src",
    "tp_dst": "udp_dst",
    "icmp_type": "icmpv4_type",
}
_NARROWER = (
    *("udp_src", "udp_dst", "tcp_src", "tcp_dst", "sctp_src", "sctp_dst", "eth_src", "eth_dst", "in_port"),
    *("ip_dscp", "ip_ecn", "ipv6_flabel", "vlan_pcp", "vlan_vid", "metadata"),
    *(
        "icmpv4_type",
        "icmpv4_code",
        "icmpv6_type",
        "icmpv6_code",
        "arp_spa",
        "arp_tpa",
        "arp_sha",
        "arp_tha",
        "arp_op",
    ),
)
_NEVER_TO_GROUPS = {"tcp_src", "tcp_dst", "arp_spa", "arp_tpa", "arp_sha", "arp_tha", "arp_op", "icmpv4_type"}
_NOT_ABOUT_GROUPS = "it is not about groups, and a policy decides on groups alone"
_FILTER = "filter it at the hosts, or at a router or firewall between the VLANs"


class GroupRule(NamedTuple):
    """What a rule says of groups: who asks (`role`), which, from which sources (any where there are none)."""

    role: str
    groups: tuple[Prefix, ...]
    allow: bool
    origin: str
    sources: tuple[Prefix, ...] = ()
    vlan: int | None = None

    @property
    def is_about_all(self) -> bool:
        """Whether nothing of its role is left for later rules."""
        return not self.sources and self.vlan is None and set(ALL_GROUPS) <= set(self.groups)


class AccessList(NamedTuple):
    """A list's name, its rules about groups in their order, and the line of its name."""

    name: str
    rules: tuple[GroupRule, ...]
    place: Place


def read_access_list(file: YamlFile, entry: YamlEntry, report: ImportReport) -> AccessList:
    """Return what a list says of groups; what it says otherwise goes into the report."""
    rules: list[GroupRule] = []
    node = entry.node
    if isinstance(node, yaml.MappingNode):
        below = file.entries(node, "a list of rules")
        for key, other in below.items():
            if key == "rules":
                report.taken(other.place._replace(last=other.place.line), "its rules")
            elif key == "exact_match":
                report.taken(other.place, "how Faucet lays out its tables")
            else:
                file.faults.append(Fault(file.name, other.place.line, f"{key!r} is no key of an access list"))
        node = below["rules"].node if "rules" in below else yaml.SequenceNode("tag:yaml.org,2002:seq", [])
    for item in file.items(node, "a list of rules"):
        rules += _rule(file, item, report)
    if not any(rule.is_about_all and rule.role == "sender" for rule in rules) or not rules:
        report.impossible(
            entry.place._replace(last=entry.place.line),
            "Faucet drops what no rule of a list matches; here groups are refused then, and all else is forwarded",
            _FILTER,
        )
    else:
        report.taken(entry.place._replace(last=entry.place.line), "rules for the ports and VLANs that name the list")
    return AccessList(entry.key, tuple(rules), entry.place)


def _rule(file: YamlFile, node: yaml.Node, report: ImportReport) -> list[GroupRule]:
    """Return what one rule says of groups, and report each of its lines."""
    place = file.place(node)
    fields = file.entries(node, "a mapping with `rule`")
    if "rule" in fields:
        node = fields["rule"].node
        fields = file.entries(node, "matches and actions")
    matches = {
        _ALIASES.get(key, key): entry
        for key, entry in fields.items()
        if key not in ("actions", "description", "cookie")
    }
    actions = file.entries(fields["actions"].node, "a mapping of actions") if "actions" in fields else {}
    allow = bool(file.boolean(actions["allow"].node)) if "allow" in actions else False
    found, why = _meaning(file, matches, allow, str(place))
    diverted = sorted(key for key in actions if key not in ("allow", "cookie"))
    if diverted and not allow:
        found, why = [], f"`{diverted[0]}` sends packets elsewhere, which no policy does"
    outcome = Outcome.TAKEN
    if why:
        outcome = Outcome.IMPOSSIBLE if not found or not allow else Outcome.CHANGED
    what = _sentence(found) if found else "nothing is refused here that it allows" if allow else ""
    if allow and why == _NOT_ABOUT_GROUPS:
        outcome, what, why = Outcome.TAKEN, _sentence(found) or "everything but groups is forwarded anyway", ""
    head = place._replace(last=place.line)
    if outcome is Outcome.IMPOSSIBLE:
        so_far = f"{what}; beyond that " if found else ""
        report.impossible(place, f"{so_far}{why}", _FILTER)
    elif outcome is Outcome.CHANGED:
        report.changed(place, f"{what}; {why}")
    else:
        report.taken(place, what)
    for key, entry in {**fields, **actions}.items():
        if entry.place.line == head.line or key == "actions":
            continue
        if key in diverted:
            report.impossible(entry.place, f"no action `{key}`", "have the switch or a host do it")
        else:
            report.with_line(entry.place, outcome, head.line)
    return found


def _sentence(rules: Sequence[GroupRule]) -> str:
    return "; ".join(
        f"{'allows' if rule.allow else 'refuses'} {rule.role}s of {', '.join(map(str, rule.groups))}"
        for rule in rules
    )


def _meaning(file: YamlFile, matches: dict[str, YamlEntry], allow: bool, origin: str) -> tuple[list[GroupRule], str]:
    """Return what a rule says of groups, and what of it a policy cannot say ('' where nothing is left)."""
    eth_type = _number(file, matches, "eth_type", 0xFFFF)
    proto = _number(file, matches, "ip_proto", 255)
    icmpv6 = _number(file, matches, "icmpv6_type", 255)
    if eth_type not in (None, IPV4, IPV6) or proto == TCP or not _NEVER_TO_GROUPS.isdisjoint(matches):
        return [], _NOT_ABOUT_GROUPS
    families = (4, 6) if eth_type is None else (4,) if eth_type == IPV4 else (6,)
    destination = _prefix(file, matches, "ipv4_dst") or _prefix(file, matches, "ipv6_dst")
    source = _prefix(file, matches, "ipv4_src") or _prefix(file, matches, "ipv6_src")
    for prefix in (destination, source):
        if prefix is not None:
            families = (4 if len(prefix.network) == 4 else 6,)
    vlan = _number(file, matches, "vlan_vid", 0x1FFF)
    vlan = None if vlan is None else vlan & 0xFFF
    narrower = [key for key in matches if key in _NARROWER and key not in ("vlan_vid", "icmpv6_type")]
    unknown = [key for key in matches if key not in _NARROWER and key not in _KNOWN]
    if unknown:
        return [], f"`{unknown[0]}` is not a match that this command knows"
    reports = proto == IGMP or icmpv6 in _MLD_TYPES
    if (icmpv6 is not None and not reports) or (proto == ICMPV6 and icmpv6 is None and allow):
        return [], _NOT_ABOUT_GROUPS
    if narrower:
        return [], f"no rule of a policy goes by `{narrower[0]}`"
    if reports:
        return _of_reports(destination, source, families, allow, origin, vlan, 6 if icmpv6 is not None else 4)
    groups = _groups_of(destination, families)
    if not groups:
        return [], "" if destination is not None and is_link_scope(destination) else _NOT_ABOUT_GROUPS
    sources = () if source is None else (source,)
    if proto == PIM:
        if source is None and vlan is None:
            return [GroupRule("router", (), allow, origin)], ""
        return [], "a rule about routers goes by neither source nor VLAN"
    senders = GroupRule("sender", groups, allow, origin, sources, vlan)
    found = [senders]
    why = ""
    if destination is None:
        if source is None:
            found.append(GroupRule("receiver", groups, allow, origin, (), vlan))
        why = "" if allow else _NOT_ABOUT_GROUPS
    if proto is not None and proto != UDP:
        return [], "packets of a single protocol are not told apart, but UDP, IGMP and PIM"
    return found, why


_KNOWN = ("eth_type", "ip_proto", "ipv4_src", "ipv4_dst", "ipv6_src", "ipv6_dst", "icmpv6_type", "vlan_vid")


def _of_reports(
    destination: Prefix | None,
    source: Prefix | None,
    families: tuple[int, ...],
    allow: bool,
    origin: str,
    vlan: int | None,
    family: int,
) -> tuple[list[GroupRule], str]:
    """Return what a rule says that is about IGMP or MLD: of reports, which say who receives."""
    if source is not None:
        return [], "who receives is not told by port and source address together"
    if family not in families:
        return [], _NOT_ABOUT_GROUPS
    if destination is None or str(destination) in _IGMP_REPORTS_TO or is_link_scope(destination):
        return [GroupRule("receiver", (GROUPS[family],), allow, origin, (), vlan)], ""
    groups = _groups_of(destination, (family,))
    if not groups:
        return [], _NOT_ABOUT_GROUPS
    return [GroupRule("receiver", groups, allow, origin, (), vlan)], ""


def _groups_of(destination: Prefix | None, families: Iterable[int]) -> tuple[Prefix, ...]:
    """Return the groups that a destination may be, but for those of link scope alone, of which no policy decides."""
    if destination is None:
        return tuple(GROUPS[family] for family in families)
    both = intersection(destination, GROUPS[4 if len(destination.network) == 4 else 6])
    return () if both is None or is_link_scope(both) else (both,)


def is_link_scope(prefix: Prefix) -> bool:
    """Tell whether all addresses of a prefix are groups of link scope, of which no policy decides."""
    size = 8 * len(prefix.network)
    last = int.from_bytes(prefix.network, "big") | (1 << size - prefix.length) - 1
    ends = prefix.network, last.to_bytes(size // 8, "big")
    return all(is_multicast_ip(end) and is_link_scope_group(end) for end in ends)


def intersection(a: Prefix, b: Prefix) -> Prefix | None:
    """Return the addresses of two prefixes that are in both: the longer one where it is within the other."""
    longer, shorter = (a, b) if a.length >= b.length else (b, a)
    return longer if shorter.contains(longer.network) else None


def in_turn(lists: Sequence[AccessList]) -> tuple[GroupRule, ...]:
    """Return the rules of lists that a port goes through one after the other, with what stands behind the last.

    Rules about a role behind one that is about all of it are left out: nothing comes to them.
    """
    found: list[GroupRule] = []
    decided: set[str] = set()
    for rule in (rule for each in lists for rule in each.rules):
        if rule.role in decided:
            continue
        found.append(rule)
        if rule.is_about_all:
            decided.add(rule.role)
    if lists:
        origin = str(lists[-1].place)
        found += [
            GroupRule(role, ALL_GROUPS, False, origin) for role in ("sender", "receiver") if role not in decided
        ]
    return tuple(found)


def both(first: Sequence[GroupRule], second: Sequence[GroupRule], vlan: int) -> list[GroupRule]:
    """Return the rules by which two sequences must both let somebody through, in a VLAN."""
    found: list[GroupRule] = []
    for rule in first:
        if rule.vlan not in (None, vlan) or rule.role == "router":
            continue
        if not rule.allow:
            found.append(rule._replace(vlan=vlan))
            continue
        for other in second:
            if other.role != rule.role or other.vlan not in (None, vlan):
                continue
            groups = tuple(
                dict.fromkeys(
                    shared for a in rule.groups for b in other.groups if (shared := intersection(a, b)) is not None
                )
            )
            sources = _shared_sources(rule.sources, other.sources)
            if groups and sources is not None:
                found.append(GroupRule(rule.role, groups, other.allow, other.origin, sources, vlan))
    return found


def _shared_sources(a: tuple[Prefix, ...], b: tuple[Prefix, ...]) -> tuple[Prefix, ...] | None:
    """Return the sources that both allow: () for any, None where there are none."""
    if not a or not b:
        return a or b
    return tuple(shared for one in a for two in b if (shared := intersection(one, two)) is not None) or None


def _number(file: YamlFile, matches: dict[str, YamlEntry], key: str, most: int) -> int | None:
    if key not in matches:
        return None
    node = matches[key].node
    if key == "eth_type" and isinstance(node, yaml.ScalarNode) and not is_integer(node):
        names = {"ip": IPV4, "ipv4": IPV4, "ipv6": IPV6, "arp": 0x0806}
        if str(node.value).lower() in names:
            return names[str(node.value).lower()]
    return file.integer(node, 0, most, key)


def _prefix(file: YamlFile, matches: dict[str, YamlEntry], key: str) -> Prefix | None:
    """Return the prefix of a match, whose host bits may be set and whose mask may be written out."""
    if key not in matches:
        return None
    node = matches[key].node
    text = file.text(node, "an address or prefix")
    if text is None:
        return None
    try:
        return masked_prefix(text)
    except ValueError as error:
        file.fault(node, str(error))
        return None


def masked_prefix(text: str) -> Prefix:
    """Return the prefix of ``address``, ``address/length`` or ``address/mask``, whatever its host bits.

    ValueError where it is none, or the mask has holes.
    """
    address_text, slash, rest = text.partition("/")
    address = parse_ip(address_text)
    size = 8 * len(address)
    if not slash:
        return parse_prefix(text)
    if rest.isdecimal() and int(rest) <= size:
        length = int(rest)
    else:
        mask = int.from_bytes(parse_ip(rest), "big")
        length = mask.bit_count()
        if mask != ((1 << length) - 1) << size - length or len(parse_ip(rest)) != len(address):
            raise ValueError(f"{text!r}: the mask has holes")
    value = int.from_bytes(address, "big") >> size - length << size - length
    return parse_prefix(f"{format_ip(value.to_bytes(size // 8, 'big'))}/{length}")
