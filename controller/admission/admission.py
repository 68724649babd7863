"""The policy as a decision for each host, group and role: the first rule that matches, else the default."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from controller.admission.host import Decision, HostLike
from controller.admission.routers import RouterDecision, RouterGroups
from controller.config.policy import DEFAULT_RULE, Policy, Role, Rule
from controller.config.rule_index import RuleIndex
from controller.config.terms import SwitchPort
from controller.config.vlans import UNTAGGED
from controller.kernel.domains import OWN_DOMAIN
from controller.wire.addresses import is_link_scope_group, is_multicast_ip

VERDICTS = {True: "allow", False: "deny"}

_LISTED_TERMS = 3
_RECEIVER = Role.RECEIVER

HOSTS_CACHED = 16384
"""Hosts of which it is kept which rules are about them."""

_Cell: TypeAlias = list[int]
"""A counter that decisions share; its one item is the count."""


class Admission:
    """Decides by a checked policy, and counts every decision by rule and verdict."""

    def __init__(self, policy: Policy) -> None:
        self._cells: dict[str, dict[bool, _Cell]] = {}
        self._policy = policy
        self._exempt: _Cell = [0]
        self._compile(policy)

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._policy

    def replace(self, policy: Policy) -> bool:
        """Decide by another policy from now on; the counts of rules whose name stays go on.

        False where it says nothing else of hosts and groups, down to the lines that reasons name.
        """
        if _worded(policy) == _worded(self._policy):
            self._policy = policy
            return False
        self._compile(policy)
        return True

    def decide(
        self, host: HostLike, group: bytes, role: Role, source: bytes | None = None, vlan_id: int = OWN_DOMAIN
    ) -> Decision:
        """Tell whether a host may receive from, or send to, a group.

        Parameters
        ----------
        host
            Its MAC address, the IP address it uses (4 or 16 bytes, None where unknown), others that it is known to
            hold, and where it is. A rule is about it that names any of them.
        group
            4 or 16 bytes. Link scope is admitted whatever the policy; what is no multicast address is refused.
        role
            What the host asks for.
        source
            The source that a receiver asks for, None for any; a sender's address where it is not `host.ip`.
        vlan_id
            The VLAN in which the host asks, 0 for the fabric's own domain.
        """
        if source is None and role is _RECEIVER and len(group) == 4 and 224 < group[0] < 240:
            known = self._of_receivers.get(vlan_id)
            of_host = None if known is None else known.get(host)
            if of_host is None:
                of_host = self._rules_of_receiver(host, vlan_id)
            found = of_host and of_host & self._index.of_group(group)
            if found:
                answer = self._answers[(found & -found).bit_length() - 1]
                answer[1][0] += 1
                return answer[0]
        decision, cell = self._evaluate(host, group, role, source, vlan_id)
        cell[0] += 1
        return decision

    def explain(
        self, host: HostLike, group: bytes, role: Role, source: bytes | None = None, vlan_id: int = OWN_DOMAIN
    ) -> Decision:
        """Return what `decide` would, and count nothing."""
        return self._evaluate(host, group, role, source, vlan_id)[0]

    def rules_about(self, host: HostLike) -> int:
        """Return the rules that are about a host by any of its names, bit i for rule i."""
        found = self._about.get(host)
        if found is None:
            if len(self._about) >= HOSTS_CACHED:
                self._about.clear()
            found = self._index.of_host(host.mac, host.ip, host.dpid, host.port_no, host.known)
            self._about[host] = found
        return found

    def decide_router(self, host: HostLike, family: int) -> RouterDecision:
        """Tell whether a host may be a multicast router, or a querier, of family 4 or 6, and of which groups.

        A router must be allowed by a rule: neither the default nor role `any` admits one. Where no rule decides, the
        settings of the port have the last word, so that nothing is counted.
        """
        of_role = self._index.of_role(Role.ROUTER)
        of_host = of_role and of_role & self.rules_about(host)
        rules = [self._policy.rules[position] for position in _bits(of_host)]
        groups = RouterGroups(tuple((rule.allow, rule.groups) for rule in rules))
        first = groups.first_that_decides(family)
        if first is None:
            return RouterDecision(self._defaults[Role.ROUTER][2 if of_host else 1][0], groups)
        rule = rules[first]
        self._cells[rule.name][rule.allow][0] += 1
        return RouterDecision(Decision(rule.allow, rule.name, _reason(rule)), groups)

    def counters(self) -> dict[str, dict[str, int]]:
        """Return how often each rule, in the policy's order and with the default last, allowed and denied."""
        return {
            name: {verdict: cells[admit][0] for admit, verdict in VERDICTS.items()}
            for name, cells in self._cells.items()
        }

    @property
    def exempt_count(self) -> int:
        """How many decisions were about groups that no policy applies to."""
        return self._exempt[0]

    def reset(self) -> None:
        """Count from 0 again."""
        self._exempt[0] = 0
        for cells in self._cells.values():
            for cell in cells.values():
                cell[0] = 0

    def _compile(self, policy: Policy) -> None:
        self._policy = policy
        self._index = RuleIndex(policy.rules, policy.tenants)
        self._about: dict[HostLike, int] = {}
        self._of_receivers: dict[int, dict[HostLike, int]] = {}
        self._receiver_count = 0
        names = [rule.name for rule in policy.rules]
        self._cells = {name: self._cells.get(name) or {True: [0], False: [0]} for name in [*names, DEFAULT_RULE]}
        self._answers = [
            (Decision(rule.allow, rule.name, _reason(rule)), self._cells[rule.name][rule.allow])
            for rule in policy.rules
        ]
        self._defaults = {role: self._default_answers(role) for role in Role}

    def _rules_of_receiver(self, host: HostLike, vlan_id: int) -> int:
        """Return the rules about a host in a VLAN as a receiver of any source, whatever the group; they are kept."""
        if self._receiver_count >= HOSTS_CACHED:
            self._of_receivers.clear()
            self._receiver_count = 0
        index = self._index
        found = self.rules_about(host) & index.of_role(_RECEIVER) & index.of_vlan(vlan_id) & index.of_source(None)
        self._of_receivers.setdefault(vlan_id, {})[host] = found
        self._receiver_count += 1
        return found

    def _evaluate(
        self, host: HostLike, group: bytes, role: Role, source: bytes | None, vlan_id: int
    ) -> tuple[Decision, _Cell]:
        if not (len(group) == 4 and 224 < group[0] < 240):  # else a policy applies
            ungoverned = _ungoverned(group)
            if ungoverned is not None:
                return ungoverned, self._exempt
        if source is None and role == Role.SENDER:
            source = host.ip
        of_group = self._index.of_group(group) & self._index.of_role(role)
        of_host = of_group and of_group & self.rules_about(host)
        in_vlan = of_host and of_host & self._index.of_vlan(vlan_id)
        found = in_vlan and in_vlan & self._index.of_source(source)
        if found:
            return self._answers[(found & -found).bit_length() - 1]
        if not of_group:
            return self._defaults[role][0]
        return self._defaults[role][1 if not of_host else 2 if in_vlan else 3]

    def _default_answers(self, role: Role) -> list[tuple[Decision, _Cell]]:
        """Return the answers where no rule is about the group, the host too, the source too, or about the VLAN."""
        admit = self._policy.default_allow and role is not Role.ROUTER
        reasons: tuple[str, ...] = (
            f"no rule is about {role}s of this group",
            f"no rule about {role}s of this group is about this host",
            "the rules about this host and group are about other sources",
            "the rules about this host and group are about other VLANs",
        )
        what_then = f"the default is {VERDICTS[admit]}"
        if role is Role.ROUTER:
            no_group = "no rule allows this host any group"
            reasons = (reasons[0], "no rule about routers is about this host", no_group, no_group)
            what_then = "a router is admitted by a rule or by the settings of its port alone"
        return [
            (Decision(admit, DEFAULT_RULE, f"{why}; {what_then}"), self._cells[DEFAULT_RULE][admit])
            for why in reasons
        ]


def explain_router(policy: Policy, host: HostLike, group: bytes | None) -> Decision:
    """Tell whether a host may be a multicast router, of one group or of any: by rules, and by settings of its port.

    The order is that in which queries and PIM hellos are judged: a static port, a rule, a port that learns.
    """
    ports, here = policy.multicast.router_ports, SwitchPort(host.dpid, host.port_no)
    if here in ports.static:
        return Decision(True, "multicast.router_ports.static", f"port {here} is a router port whoever is behind it")
    admission = Admission(policy)
    if group is not None:
        decision = admission.decide(host, group, Role.ROUTER)
    else:
        decision = admission.decide_router(host, 6 if host.ip is not None and len(host.ip) == 16 else 4).decision
    if decision.rule != DEFAULT_RULE:
        return decision
    if ports.learn is True or (ports.learn is not False and here in ports.learn):
        reason = "queries and PIM hellos make the port a router port, whoever sends them"
        return Decision(True, "multicast.router_ports.learn", reason)
    return decision


def _ungoverned(group: bytes) -> Decision | None:
    """Return what holds for a group that no policy applies to; None for any other."""
    if len(group) not in (4, 16) or not is_multicast_ip(group):
        return Decision(False, DEFAULT_RULE, "not a multicast group")
    if is_link_scope_group(group):
        return Decision(True, DEFAULT_RULE, "the group is link scope, which no policy applies to")
    return None


def _worded(policy: Policy) -> tuple[object, ...]:
    """Return all of a policy that decisions and their reasons are made of."""
    return policy.default_allow, policy.tenants, policy.rules, [rule.line for rule in policy.rules]


def _bits(mask: int) -> Iterator[int]:
    """Yield the positions of the bits that are set, the lowest first."""
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def _reason(rule: Rule) -> str:
    """Return what a rule says, as a phrase."""
    roles = " and ".join(f"{role}s" for role in Role if role in rule.roles)
    groups = _listed(rule.groups) or "every group"
    hosts = ["any host"] if rule.any_host else [*rule.tenants, *rule.hosts]
    sources = f" from {_listed(rule.sources)}" if rule.sources else ""
    vlans = _listed([vlan_id or UNTAGGED for vlan_id in sorted(rule.vlans)])
    where = f" in VLAN{'s' if len(rule.vlans) > 1 else ''} {vlans}" if rule.vlans else ""
    line = f" on line {rule.line}" if rule.line else ""
    verb = "allows" if rule.allow else "denies"
    return f"the rule{line} {verb} {roles} of {groups}{sources} at {_listed(hosts)}{where}"


def _listed(terms: Sequence[object]) -> str:
    """Return the first few of some terms, and how many more there are."""
    shown = ", ".join(str(term) for term in terms[:_LISTED_TERMS])
    more = len(terms) - _LISTED_TERMS
    return f"{shown} and {more} more" if more > 0 else shown
