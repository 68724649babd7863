"""FRR's configuration (`frr.conf`, `pimd.conf`, what vtysh writes) as a policy of the fabric that the router is at.

The router stays a router, at its port. The policy admits it there, has the controller query hosts as the router does,
and judges hosts' joins by the router's boundaries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from controller.config.faults import quoted
from controller.config.terms import Prefix, SwitchPort, mask_address
from controller.migration.draft import DraftRule, PolicyDraft, address
from controller.migration.faucet_acls import GROUPS, intersection, is_link_scope
from controller.migration.querier_values import AskedValue, write_values
from controller.migration.report import BadConfiguration, Fault, ImportReport, InputFile, Outcome, Place
from controller.wire.addresses import parse_ip

MAX_LINES = 200_000
MAX_RULES = 4096
_STAYS = "a setting of the router itself, which stays there"
_ROUTES = "the router's unicast routing, which stays there"
_NOT_AT_THE_FABRIC = ("lo", "dummy", "pimreg", "ipmr")
"""How interfaces begin that lead to no port of a fabric."""

_SSM = "232.0.0.0/8"
_FIRST_WORDS_THAT_STAY = (
    *("hostname", "domainname", "log", "service", "frr", "password", "enable", "line", "debug", "agentx", "username"),
    *("banner", "exec-timeout", "end", "exit", "exit-vrf", "exit-address-family", "zebra", "fpm", "mgmt", "!"),
    *("allow-external-route-update", "key", "bfd", "pbr-map", "nexthop-group", "vni", "mpls", "segment-routing"),
    *("no", "vrf", "evpn", "l2vpn", "affinity-map", "nhrp"),
    *("route-map", "access-list", "as-path", "bgp", "community-list", "vrrp", "rpki", "Building", "Current"),
)
_NOTE = (
    "The router stays, and keeps its own configuration: this policy admits it where it is attached, has hosts "
    "queried as it does, and judges their joins by its boundaries. Without --at it is known by its addresses, which "
    "a host could claim while the router is away: give the port of each interface."
)


class PrefixLine(NamedTuple):
    """An entry of a prefix-list."""

    seq: int
    allow: bool
    prefix: Prefix
    least: int | None
    most: int | None
    place: Place


@dataclass(slots=True)
class _Interface:
    name: str
    addresses: list[tuple[bytes, int, Place]] = field(default_factory=list)
    speaks: list[tuple[Place, str]] = field(default_factory=list)
    boundaries: list[tuple[int, str, Place]] = field(default_factory=list)
    asked: list[AskedValue] = field(default_factory=list)


_TIMERS = {
    "query-interval": ("query_interval_s", 1.0),
    "query-max-response-time": ("response_interval_s", 0.1),
    "query-max-response-time-dsec": ("response_interval_s", 0.1),
    "last-member-query-interval": ("last_member_interval_s", 0.1),
    "last-member-query-count": ("last_member_count", 1.0),
    "robustness": ("robustness", 1.0),
    "robustness-variable": ("robustness", 1.0),
}
"""What FRR calls timers of a querier, the setting of each, and FRR's unit in terms of the setting's."""


def read_frr(sources: Sequence[InputFile], places: Mapping[str, SwitchPort]) -> tuple[PolicyDraft, ImportReport]:
    """Return the policy that configurations of FRR come to, and what became of their lines.

    `places` says at which port of the fabric an interface is. BadConfiguration is raised for addresses, numbers and
    prefix-lists that FRR would refuse.
    """
    reader = _Frr(places)
    for source in sources:
        reader.file(source)
    return reader.finish()


class _Frr:
    """Goes through the lines, then makes rules of what the interfaces have."""

    def __init__(self, places: Mapping[str, SwitchPort]) -> None:
        self.draft = PolicyDraft()
        self.report = ImportReport(("!", "#"))
        self.faults: list[Fault] = []
        self._places = places
        self._interfaces: dict[str, _Interface] = {}
        self._lists: dict[tuple[int, str], list[PrefixLine]] = {}
        self._ssm: list[tuple[int, str, Place]] = []
        self._asked: list[AskedValue] = []
        self._used: set[tuple[int, str]] = set()

    def file(self, source: InputFile) -> None:
        self.report.add(source)
        lines = source.text.splitlines()
        if len(lines) > MAX_LINES:
            raise BadConfiguration([Fault(source.name, 0, f"more than {MAX_LINES} lines")])
        interface: _Interface | None = None
        section = ""
        for number, line in enumerate(lines, 1):
            words = line.split()
            place = Place(source.name, number, number)
            if not words or words[0][0] in "!#":
                continue
            is_below = line[0].isspace() or (interface is not None and _is_of_interface(words))
            if not is_below or words[0] in ("exit", "exit-vrf", "end"):
                interface, section = None, words[0]
                if words[0] == "router" and words[1:2] in (["pim"], ["pim6"]):
                    section = words[1]
            if words[0] == "interface" and len(words) > 1 and not line[0].isspace():
                interface = self._interfaces.setdefault(words[1], _Interface(words[1]))
                self._say_interface(interface, words, place)
            elif interface is not None:
                self._of_interface(interface, words, place)
            else:
                self._of_router(section, words, place)

    def finish(self) -> tuple[PolicyDraft, ImportReport]:
        for interface in self._interfaces.values():
            self._admit(interface)
            self._asked += interface.asked
        for interface in self._interfaces.values():
            for family, name, place in interface.boundaries:
                self._boundary(interface, family, name, place)
        for family, name, place in self._ssm:
            self._ssm_range(family, name, place)
        for key, lines in self._lists.items():
            for line in lines:
                if key not in self._used:
                    self.report.idle(line.place, "no boundary of an interface names this prefix-list")
        write_values(self.draft, self.report, self._asked)
        if self.faults:
            raise BadConfiguration(sorted(self.faults))
        self.report.note(_NOTE)
        return self.draft, self.report

    def _say_interface(self, interface: _Interface, words: Sequence[str], place: Place) -> None:
        where = self._places.get(interface.name)
        at = f"at port {where.port_no} of switch {where.dpid:#x}" if where else "known by its addresses"
        if "vrf" in words[2:]:
            self.report.changed(
                place, f"{at}; the policy has no VRF: its hosts are told apart by address, port and VLAN"
            )
        else:
            self.report.taken(place, at)

    def _of_router(self, section: str, words: list[str], place: Place) -> None:
        """Read a line that is no interface's."""
        family = 6 if words[0] == "ipv6" or section == "pim6" else 4
        if words[0] in ("ip", "ipv6") and words[1:2] == ["prefix-list"]:
            self._prefix_line(family, words[2:], place)
            return
        pim = (
            words[2:]
            if words[0] in ("ip", "ipv6") and words[1:2] == ["pim"]
            else words
            if section in ("pim", "pim6")
            else []
        )
        if pim[:1] == ["join-prune-interval"]:
            self._number("multicast.router_ports.pim_join_interval_s", pim[1:2], 1.0, place, self._asked)
        elif pim[:2] == ["ssm", "prefix-list"] and len(pim) > 2:
            self._ssm.append((family, pim[2], place))
        elif pim[:1] == ["rp"]:
            self.report.idle(place, "stays on the router; no rendezvous point is needed within the fabric")
        elif (
            pim
            or (words[0] == "router" and section in ("pim", "pim6"))
            or (words[0] in ("ip", "ipv6") and words[1:2] in (["igmp"], ["mld"], ["mroute"], ["multicast"], ["msdp"]))
            or words[0] in _FIRST_WORDS_THAT_STAY
            or section in _FIRST_WORDS_THAT_STAY
        ):
            self.report.idle(place, _STAYS)
        elif section in ("ip", "ipv6", "router"):
            self.report.idle(place, _ROUTES)
        else:
            self.report.impossible(place, "no command of FRR that is known here", "see whether it is about multicast")

    def _of_interface(self, interface: _Interface, words: list[str], place: Place) -> None:
        """Read a line of an interface."""
        family = 6 if words[0] == "ipv6" else 4
        protocol, rest = (words[1] if len(words) > 1 else ""), words[2:]
        if words[0] not in ("ip", "ipv6"):
            self.report.idle(place, _STAYS)
        elif protocol == "address" and rest:
            self._address(interface, rest[0], place)
        elif protocol == "pim":
            if rest[:1] == ["passive"] or not rest or rest[:1] == ["ssm"]:
                interface.speaks.append((place, "a multicast router: a rule with role router"))
            else:
                self.report.idle(place, _STAYS)
        elif protocol in ("igmp", "mld"):
            self._of_querier(interface, family, rest, place)
        elif protocol == "multicast" and rest[:2] == ["boundary", "oil"] and len(rest) > 2:
            interface.boundaries.append((family, rest[2], place))
        elif protocol == "multicast" and rest[:1] == ["boundary"]:
            why = "an access-list that is a boundary is not read"
            self.report.impossible(place, why, "write it as a prefix-list, or as rules with role receiver")
        elif protocol == "mroute":
            self.report.idle(place, _STAYS)
        else:
            self.report.idle(place, _ROUTES)

    def _of_querier(self, interface: _Interface, family: int, rest: list[str], place: Place) -> None:
        """Read what follows `ip igmp` or `ipv6 mld` at an interface."""
        word = rest[0] if rest else ""
        if not rest or word == "enable":
            interface.speaks.append((place, "a querier: a rule with role router"))
        elif word in _TIMERS:
            name, unit = _TIMERS[word]
            self._number(f"multicast.querier.{name}", rest[1:2], unit, place, interface.asked)
        elif word == "version":
            self._number(
                f"multicast.querier.{'mld' if family == 6 else 'igmp'}_version",
                rest[1:2],
                1.0,
                place,
                interface.asked,
            )
        elif word == "max-groups":
            self._number(
                "limits.groups_per_port", rest[1:2], 1.0, place, interface.asked, "counted by port of a host"
            )
        elif word in ("join", "join-group"):
            self.report.taken(place, "the router's port gets every group")
        elif word == "static-group":
            self.report.changed(
                place, "hosts there get the group where they join it; name others in `static_members`"
            )
        elif word == "route-map":
            todo = "write rules with role receiver for the hosts of this interface"
            self.report.impossible(place, "route-maps for IGMP and MLD are not read", todo)
        elif word in ("max-sources", "watermark-warn", "immediate-leave", "proxy"):
            names = {
                "max-sources": ("sources are limited by port and group", "set `limits.sources_per_group`"),
                "immediate-leave": (
                    "ports leave at once where they are named",
                    "name ports in `multicast.fast_leave`",
                ),
                "proxy": (
                    "reports are sent at ports that are named",
                    "name the router's port in `multicast.proxy.router_ports`",
                ),
                "watermark-warn": ("no warning at a number of groups", "watch `vsrt_groups` of the exporter"),
            }
            self.report.impossible(place, *names[word])
        else:
            self.report.impossible(place, f"{quoted(word)} is not known of IGMP and MLD", "look up what it does")

    def _address(self, interface: _Interface, text: str, place: Place) -> None:
        address_text, _, length_text = text.partition("/")
        try:
            found = parse_ip(address_text)
            length = int(length_text) if length_text else 8 * len(found)
            if not 0 <= length <= 8 * len(found):
                raise ValueError
        except ValueError:
            self.faults.append(
                Fault(place.file, place.line, f"{quoted(text)} is no address with the length of its prefix")
            )
            return
        interface.addresses.append((found, length, place))

    def _number(
        self, path: str, words: list[str], unit: float, place: Place, into: list[AskedValue], how: str = ""
    ) -> None:
        text = words[0] if words else ""
        if not (text.isascii() and text.isdecimal()):
            self.faults.append(Fault(place.file, place.line, f"{quoted(text)} is no number"))
            return
        into.append(AskedValue(path, round(int(text) * unit, 3), place, how=how))

    def _prefix_line(self, family: int, words: list[str], place: Place) -> None:
        """Read ``NAME [seq N] permit|deny PREFIX|any [ge N] [le N]``."""
        name, rest = (words[0] if words else ""), words[1:]
        if rest[:1] == ["description"]:
            self.report.idle(place, "a description")
            return
        lines = self._lists.setdefault((family, name), [])
        seq = max((line.seq for line in lines), default=0) + 5
        if rest[:1] == ["seq"] and len(rest) > 1 and rest[1].isdecimal():
            seq, rest = int(rest[1]), rest[2:]
        if len(rest) < 2 or rest[0] not in ("permit", "deny"):
            self.faults.append(Fault(place.file, place.line, "expected: prefix-list NAME [seq N] permit|deny PREFIX"))
            return
        try:
            prefix = _any(family) if rest[1] == "any" else _prefix(rest[1])
            bounds = dict(zip(rest[2::2], map(int, rest[3::2]), strict=False))
        except ValueError as error:
            self.faults.append(Fault(place.file, place.line, str(error)))
            return
        most = 8 * len(prefix.network) if rest[1] == "any" else bounds.get("le")
        lines.append(PrefixLine(seq, rest[0] == "permit", prefix, bounds.get("ge"), most, place))

    def _admit(self, interface: _Interface) -> None:
        """Make a rule that admits the router at an interface, and say what its addresses are for."""
        where = self._places.get(interface.name)
        is_at_fabric = not interface.name.startswith(_NOT_AT_THE_FABRIC)
        for _, _, place in interface.addresses:
            if is_at_fabric and interface.speaks and (where is None or interface.boundaries):
                self.report.taken(place, "the router is known by it, and its hosts by their prefix")
            else:
                self.report.idle(place, _STAYS)
        if where is not None:
            self.draft.switch(where.dpid, f"switch-{where.dpid:x}")
            hosts: tuple[str, ...] = (self.draft.port_text(where),)
        else:
            own = (Prefix(found, 8 * len(found)) for found, _, _ in interface.addresses)
            hosts = tuple(address(prefix) for prefix in own if any(prefix.network))
        for place, what in interface.speaks:
            if not is_at_fabric:
                self.report.idle(place, "an interface that leads to no port of a fabric")
            elif hosts:
                self.report.taken(place, what)
            else:
                why = f"nothing says where {interface.name} is: it has no address"
                self.report.impossible(place, why, f"say it: --at {interface.name}=DPID:PORT")
        if interface.speaks and is_at_fabric and hosts:
            name = self.draft.rule_name(f"router-{interface.name}")
            self.draft.rules.append(DraftRule(name, "router", (), hosts, True, str(interface.speaks[0][0])))

    def _boundary(self, interface: _Interface, family: int, name: str, place: Place) -> None:
        """Make rules of a boundary about the hosts of an interface's prefixes."""
        size = 4 if family == 4 else 16
        networks = [Prefix(mask_address(a, length), length) for a, length, _ in interface.addresses if len(a) == size]
        lines = sorted(self._lists.get((family, name), ()))
        if not lines:
            # pimd lets everything pass where the list is not there.
            self.report.taken(place, f"there is no prefix-list {quoted(name)}, so that nothing is refused")
            return
        if not networks:
            why = f"{interface.name} has no IPv{family} address, so that nothing says who its hosts are"
            self.report.impossible(place, why, "write rules with role receiver for their ports")
            return
        self._used.add((family, name))
        hosts = tuple(address(network) for network in networks)
        self.report.changed(
            place,
            f"rules for hosts of {', '.join(map(str, networks))}; what PIM routers there join has a rule of its own",
        )
        for line in [*lines, None]:
            group = GROUPS[family] if line is None else self._groups(line, family)
            if group is None:
                continue
            allow, origin = (
                (line.allow, str(line.place)) if line is not None else (False, f"{place}, what no entry is about")
            )
            if len(self.draft.rules) >= MAX_RULES:
                raise BadConfiguration([Fault(place.file, place.line, f"more than {MAX_RULES} rules come of it")])
            wanted = f"{interface.name}-{name}-{line.seq if line is not None else 'else'}"
            self.draft.rules.append(
                DraftRule(self.draft.rule_name(wanted), "receiver", (group,), hosts, allow, origin)
            )
            if group == GROUPS[family]:
                break

    def _groups(self, line: PrefixLine, family: int) -> Prefix | None:
        """Return the groups that an entry is about, and report it; None where it is about none."""
        shared = intersection(line.prefix, GROUPS[family])
        size = 8 * len(line.prefix.network)
        if shared is None:
            self.report.taken(line.place, "no group is in this prefix, so that no rule comes of it")
        elif is_link_scope(shared):
            self.report.taken(line.place, "groups of link scope are never refused, and need no rule")
            shared = None
        elif line.most == size or line.prefix.length == size:
            self.report.taken(line.place, f"{'admits' if line.allow else 'refuses'} receivers of {shared}")
        elif line.most is None and line.least is None:
            what = f"{'admits' if line.allow else 'refuses'} receivers of every group in {shared}"
            self.report.changed(line.place, f"{what}; without `le {size}` some versions of FRR match no group by it")
        else:
            why = "single groups have the full length, which this entry does not match"
            self.report.changed(line.place, f"no rule comes of it: {why}")
            shared = None
        return shared

    def _ssm_range(self, family: int, name: str, place: Place) -> None:
        lines = self._lists.get((family, name), [])
        self._used.add((family, name))
        fits = family == 4 and [str(line.prefix) for line in lines if line.allow] == [_SSM] and len(lines) == 1
        outcome = Outcome.TAKEN if fits else Outcome.IMPOSSIBLE
        for where in (place, *(line.place for line in lines)):
            if outcome is Outcome.TAKEN:
                self.report.taken(where, "`multicast.enforce_ssm`, which is on unless said otherwise")
            else:
                why = f"groups for source-specific multicast are {_SSM} and ff3x::/32, and no others"
                self.report.impossible(where, why, "write rules with `sources` for the other groups")


def _is_of_interface(words: Sequence[str]) -> bool:
    """Tell whether a line that is not indented can be an interface's alone."""
    return (words[0] in ("ip", "ipv6") and words[1:2] in (["igmp"], ["mld"], ["address"], ["ospf"])) or words == [
        "ip",
        "pim",
    ]


def _any(family: int) -> Prefix:
    return Prefix(bytes(4 if family == 4 else 16), 0)


def _prefix(text: str) -> Prefix:
    """Return a prefix whose host bits may be set, as FRR takes it."""
    address_text, slash, length = text.partition("/")
    if not slash or not length.isdecimal():
        raise ValueError(f"{quoted(text)} is no prefix")
    found = parse_ip(address_text)
    if int(length) > 8 * len(found):
        raise ValueError(f"{quoted(text)}: the length of the prefix is too great")
    return Prefix(mask_address(found, int(length)), int(length))
