"""The policy file as a whole: its sections, and what must hold between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import NamedTuple, TypeVar

from controller.config import checks
from controller.config.alarm_settings import Alarms, ExpectedTopology
from controller.config.anomaly_settings import Anomaly
from controller.config.check_settings import Check
from controller.config.cluster_settings import Cluster
from controller.config.document import MAX_BYTES, Mapping, Node, Scalar, Sequence, decode, parse
from controller.config.edit_settings import Edits
from controller.config.expected_topology import ReadCabling, read_expected_topology
from controller.config.fabrics import read_fabrics
from controller.config.faults import Faults, PolicyInvalid, quoted
from controller.config.labels import read_labels
from controller.config.link_aggregations import check_legs, first_ports, read_link_aggregations
from controller.config.maintenance_settings import Maintenance
from controller.config.overcommit_settings import Overcommit
from controller.config.policy import ACTIONS, ANY_HOST, DEFAULT_RULE, ROLES, VERSION, Policy, Role, Rule, Tenant
from controller.config.policy_discovery_settings import PolicyDiscovery
from controller.config.probe_settings import Probes
from controller.config.read import NodeReader, line_of, scalar_value, step
from controller.config.read_alarms import read_alarms
from controller.config.read_classes import ClassReader, Hosts, check_classes, read_aliases, read_queues
from controller.config.read_cluster import read_cluster
from controller.config.read_overcommit import read_overcommit
from controller.config.read_pools import read_pools
from controller.config.read_scaling import check_shares, read_scaling
from controller.config.read_vlan_ids import KnownVlans
from controller.config.read_vlans import VlanSection, read_vlans
from controller.config.scaling_settings import ScalingSettings
from controller.config.service_class_settings import Aliases, QueuePolicy
from controller.config.settings import (
    MINUTES_ABOVE,
    MOST_DAYS,
    SETTING_SECTIONS,
    Allocation,
    Dashboard,
    Discovery,
    Limits,
    Monitor,
    Multicast,
    PortParameters,
    Unicast,
)
from controller.config.static_members import check_domains, read_static_members
from controller.config.terms import (
    MAX_PORT_NO,
    HostTerm,
    NamedSwitch,
    Prefix,
    is_ovsdb_target,
    is_port_name,
    is_switch_name,
    is_syslog_target,
    looks_like_address,
    parse_group_prefix,
    parse_host_prefix,
    parse_host_term,
)
from controller.wire.addresses import format_ip

MAX_RULES = 4096
MAX_TENANTS = 65536
MAX_NAME_LENGTH = 64
MAX_NAMED_SWITCHES = 65536

SECTIONS = (
    *("version", "switches", "tenants", "rules", "default", "labels", "static_members", "vlans"),
    *("link_aggregations", "fabrics", "pools", "classes"),
    *SETTING_SECTIONS,
)
SWITCH_KEYS = ("dpid", "ports")
RULE_KEYS = ("name", "groups", "role", "hosts", "sources", "vlan", "action")
REQUIRED_RULE_KEYS = ("name", "role", "hosts", "action")
"""Of every rule; all but those about routers need `groups` too."""

T = TypeVar("T")


class _TenantName(NamedTuple):
    name: str


def load_policy(text: str | bytes, source: str = "<policy>", read_cabling: ReadCabling | None = None) -> Policy:
    """Read and check a policy file.

    Parameters
    ----------
    text
        The file's text, or its bytes in UTF-8.
    source
        The file's name, for messages.
    read_cabling
        Reads the topology file that the policy names, by its path as it stands there; without it none may be named.

    Returns
    -------
    Policy
        What the file says; its `warnings` list what is allowed but hardly meant.

    Raises
    ------
    PolicyInvalid
        The file has faults: all of them, each with its line. Nothing else is raised, whatever the text.
    """
    faults = Faults()
    if isinstance(text, bytes):
        if len(text) > MAX_BYTES:
            faults.error(1, "", f"the file is larger than {MAX_BYTES} bytes")
            raise PolicyInvalid(faults.errors(), source)
        decoded = decode(text, faults)
    else:
        decoded = text
    root = None if decoded is None else parse(decoded, faults)
    policy = None if root is None else _PolicyReader(faults, read_cabling).policy(root)
    if policy is None or faults.any_error:
        raise PolicyInvalid(faults.errors(), source)
    return policy


class _PolicyReader(NodeReader):
    """Reads the sections in an order of their own, so that rules know the tenants wherever these stand."""

    def __init__(self, faults: Faults, read_cabling: ReadCabling | None) -> None:
        super().__init__(faults)
        self._read_cabling = read_cabling
        self._tenant_terms: list[checks.TenantTerm] = []
        self._known_vlans = KnownVlans(self)

    def policy(self, root: Node) -> Policy | None:
        """Return the policy; it is worth nothing where faults were recorded."""
        if isinstance(root, Scalar) and scalar_value(root) is None:
            self.faults.error(1, "", "the file is empty")
            return None
        found = self.record(root, "", SECTIONS, ("version",), what="a mapping of the policy's sections")
        if found is None:
            return None

        def read(name: str, reader: Callable[[Node, str], T | None]) -> T | None:
            return reader(found[name][1], name) if name in found else None

        read("version", self._version)
        switches = read("switches", self._switches) or ()
        labels = read("labels", lambda node, path: read_labels(self, node, path))
        vlans = read("vlans", lambda node, path: read_vlans(self, node, path, labels or ())) or VlanSection()
        self._known_vlans = vlans.known or self._known_vlans
        self.vlan_of_name = self._known_vlans.of_name
        aggregations = read("link_aggregations", lambda node, path: read_link_aggregations(self, node, path)) or ()
        self.standing_ports = first_ports(aggregations)
        fabrics = read("fabrics", lambda node, path: read_fabrics(self, node, path))
        pools = read("pools", lambda node, path: read_pools(self, node, path))
        tenants = read("tenants", self._tenants) or ()
        rules = read("rules", self._rules) or ()
        default = read("default", lambda node, path: self.choice(node, path, tuple(ACTIONS)))
        classes = read("classes", ClassReader(self, self._group, self._class_hosts, _name_problem).read)
        aliases = read("aliases", lambda node, path: read_aliases(self, node, path))
        queues = read("queues", lambda node, path: read_queues(self, node, path))
        overcommit = read("overcommit", lambda node, path: read_overcommit(self, node, path, aliases))
        limits = read("limits", lambda node, path: self.settings(Limits, node, path))
        multicast = read("multicast", self._multicast)
        members_of = (multicast or Multicast()).enforce_ssm, self._known_vlans
        static_members = read("static_members", lambda node, path: read_static_members(self, node, path, *members_of))
        unicast = read("unicast", lambda node, path: self.settings(Unicast, node, path))
        discovery = read("discovery", lambda node, path: self.settings(Discovery, node, path))
        edits = read("edits", lambda node, path: self.settings(Edits, node, path))
        check = read("check", lambda node, path: self.settings(Check, node, path))
        monitor = read("monitor", self._monitor)
        allocation = read("allocation", self._allocation)
        dashboard = read("dashboard", self._dashboard)
        anomaly = read("anomaly", lambda node, path: self.settings(Anomaly, node, path))
        alarms = read("alarms", lambda node, path: read_alarms(self, node, path))
        maintenance = read("maintenance", lambda node, path: self.settings(Maintenance, node, path))
        probes = read("probes", lambda node, path: self.settings(Probes, node, path))
        discoveries = read("policy_discovery", lambda node, path: self.settings(PolicyDiscovery, node, path))
        scaling = read("scaling", lambda node, path: read_scaling(self, node, path))
        cluster = read("cluster", lambda node, path: read_cluster(self, node, path))
        topology = read("topology", lambda node, path: read_expected_topology(self, node, path, self._read_cabling))
        router_ports = (multicast or Multicast()).router_ports.static
        check_legs(self, aggregations, vlans.vlans, router_ports, (topology or ExpectedTopology()).links)
        check_domains(self, static_members or (), vlans.vlans)
        checks.overlapping_tenants(self._tenant_terms, self.faults)
        self._check_places(found, monitor or Monitor(), dashboard or Dashboard())
        check_shares(self, found, monitor, cluster, scaling)
        if not self.faults.any_error:
            checks.idle_rules(rules, tenants, self.faults)
            check_classes(classes or (), tenants, queues or QueuePolicy(), self.faults)
        return Policy(
            tenants=tenants,
            rules=rules,
            default_allow=ACTIONS[default or "deny"],
            switches=switches,
            labels=labels or (),
            static_members=static_members or (),
            vlans=vlans.vlans,
            registrations=vlans.registrations,
            link_aggregations=aggregations,
            fabrics=fabrics or (),
            pools=pools or (),
            limits=limits or Limits(),
            multicast=multicast or Multicast(),
            unicast=unicast or Unicast(),
            discovery=discovery or Discovery(),
            edits=edits or Edits(),
            check=check or Check(),
            monitor=monitor or Monitor(),
            allocation=allocation or Allocation(),
            dashboard=dashboard or Dashboard(),
            anomaly=anomaly or Anomaly(),
            alarms=alarms or Alarms(),
            topology=topology or ExpectedTopology(),
            probes=probes or Probes(),
            policy_discovery=discoveries or PolicyDiscovery(),
            cluster=cluster or Cluster(),
            classes=classes or (),
            aliases=aliases or Aliases(),
            queues=queues or QueuePolicy(),
            overcommit=overcommit or Overcommit(),
            maintenance=maintenance or Maintenance(),
            scaling=scaling or ScalingSettings(),
            warnings=self.faults.warnings(),
        )

    def _version(self, node: Node, path: str) -> int | None:
        if isinstance(node, Scalar) and type(version := scalar_value(node)) is int and version != VERSION:
            self.faults.error(node.line, path, f"version {version} is not supported, only {VERSION}")
            return None
        return self.integer(node, path, VERSION, VERSION)

    def _switches(self, node: Node, path: str) -> tuple[NamedSwitch, ...]:
        found = self.entries(node, path, "a mapping of switch names to {dpid, ports}") or {}
        if len(found) > MAX_NAMED_SWITCHES:
            self.faults.error(node.line, path, f"{len(found)} switches; at most {MAX_NAMED_SWITCHES} are supported")
            return ()
        switches, lines = [], dict[int, int]()
        for name, (line, child) in found.items():
            own_path = step(path, name)
            if not is_switch_name(name):
                self.faults.error(
                    line,
                    own_path,
                    f"{quoted(name)} cannot name a switch: 1 to {MAX_NAME_LENGTH} letters, digits, spaces, dots, "
                    "underscores and hyphens that could not be taken for a datapath id",
                )
            entry = self.record(child, own_path, SWITCH_KEYS, ("dpid",), what="{dpid: ..., ports: ...}") or {}
            dpid = self.dpid(entry["dpid"][1], f"{own_path}.dpid") if "dpid" in entry else None
            ports = self._port_names(entry["ports"][1], f"{own_path}.ports") if "ports" in entry else ()
            if dpid is None:
                continue
            if dpid in lines:
                self.faults.error(
                    entry["dpid"][1].line, f"{own_path}.dpid", f"the switch has a name already, on line {lines[dpid]}"
                )
            lines.setdefault(dpid, line)
            switches.append(NamedSwitch(name, dpid, ports))
        self.switch_names = {switch.name: switch.dpid for switch in switches}
        return tuple(switches)

    def _port_names(self, node: Node, path: str) -> tuple[tuple[int, str], ...]:
        ports: dict[int, str] = {}
        for key, (line, child) in (self.entries(node, path, "port numbers to names", text_keys=False) or {}).items():
            own_path = step(path, key)
            port_no = self.integer(Scalar(line, key, True), own_path, 1, MAX_PORT_NO)
            name = self.text(child, own_path, "a name (put it in quotes)")
            if name is None or port_no is None:
                continue
            if not is_port_name(name):
                self.faults.error(
                    child.line, own_path, f"{quoted(name)} cannot name a port: a letter, then 63 letters, digits, ..."
                )
            elif name in ports.values():
                self.faults.error(child.line, own_path, f"{quoted(name)} is already the name of another port")
            ports[port_no] = name
        return tuple(ports.items())

    def _tenants(self, node: Node, path: str) -> tuple[Tenant, ...]:
        found = self.entries(node, path, "a mapping of tenant names to lists of hosts") or {}
        if len(found) > MAX_TENANTS:
            self.faults.error(node.line, path, f"{len(found)} tenants; at most {MAX_TENANTS} are supported")
            return ()
        tenants = []
        for name, (line, child) in found.items():
            own_path = step(path, name)
            problem = _tenant_name_problem(name)
            if problem:
                self.faults.error(line, own_path, problem)
            self.tenant_names[name] = line
            hosts = self._tenant_hosts(child, own_path, name)
            if isinstance(child, Sequence) and not child.items:
                self.faults.warn(line, own_path, "the tenant has no hosts")
            tenants.append(Tenant(name, hosts, line))
        return tuple(tenants)

    def _tenant_hosts(self, node: Node, path: str, tenant: str) -> tuple[HostTerm, ...]:
        def read(child: Node, own_path: str) -> HostTerm | None:
            term = self._tenant_host(child, own_path)
            if term is not None:
                self._tenant_terms.append(checks.TenantTerm(tenant, term, child.line, own_path))
            return term

        return tuple(self.items(node, path, "a list of hosts", read))

    def _rules(self, node: Node, path: str) -> tuple[Rule, ...]:
        if isinstance(node, Sequence) and len(node.items) > MAX_RULES:
            self.faults.error(node.line, path, f"{len(node.items)} rules; at most {MAX_RULES} are supported")
            return ()
        names: dict[str, int] = {}

        def read(child: Node, own_path: str) -> Rule | None:
            return self._rule(child, own_path, names)

        return tuple(self.items(node, path, "a list of rules", read))

    def _rule(self, node: Node, path: str, names: dict[str, int]) -> Rule | None:
        found = self.record(node, path, RULE_KEYS, REQUIRED_RULE_KEYS, what="a mapping with name, groups, ...")
        if found is None:
            return None
        before = self.faults.error_count

        def read(name: str, reader: Callable[[Node, str], T | None]) -> T | None:
            return reader(found[name][1], f"{path}.{name}") if name in found else None

        name = read("name", lambda child, own: self._rule_name(child, own, names))
        groups = read("groups", lambda child, own: self._some(child, own, "groups", self._group))
        role = read("role", lambda child, own: self.choice(child, own, tuple(ROLES)))
        hosts = read("hosts", self._rule_hosts)
        sources = read("sources", lambda child, own: self._some(child, own, "sources", self._source))
        vlans = read("vlan", self._rule_vlans)
        action = read("action", lambda child, own: self.choice(child, own, tuple(ACTIONS)))
        self._check_router_rule(found, path, node.line, role)
        if self.faults.error_count > before or not (name and role and hosts and action):
            return None
        return Rule(
            name=name,
            groups=groups or (),
            roles=ROLES[role],
            allow=ACTIONS[action],
            any_host=ANY_HOST in hosts,
            tenants=tuple(host.name for host in hosts if isinstance(host, _TenantName)),
            hosts=tuple(host for host in hosts if not isinstance(host, _TenantName | str)),
            sources=sources or (),
            vlans=vlans or frozenset(),
            line=node.line,
        )

    def _check_router_rule(self, found: dict[str, tuple[int, Node]], path: str, line: int, role: str | None) -> None:
        """Report what only rules about routers lack, and what they must not have."""
        if role == Role.ROUTER:
            for key in ("sources", "vlan"):
                if key in found:
                    message = "a router is told by its host alone: name groups, or nothing for every group"
                    self.faults.error(found[key][0], f"{path}.{key}", message)
        elif "groups" not in found:
            self.faults.error(line, f"{path}.groups", "missing; only a rule about routers may do without")

    def _rule_name(self, node: Node, path: str, names: dict[str, int]) -> str | None:
        name = self.text(node, path, "a name (put it in quotes)")
        if name is None:
            return None
        problem = _name_problem(name)
        if name == DEFAULT_RULE:
            problem = f"{DEFAULT_RULE!r} is reserved for the policy's default"
        elif name in names:
            problem = f"{quoted(name)} is already the name of the rule on line {names[name]}"
        names.setdefault(name, node.line)
        if problem:
            self.faults.error(node.line, path, problem)
        return name

    def _some(self, node: Node, path: str, what: str, read: Callable[[Node, str], T | None]) -> tuple[T, ...]:
        values = tuple(self.items(node, path, f"a list of {what}", read))
        if isinstance(node, Sequence) and not node.items:
            self.faults.error(node.line, path, f"no {what}, so that it never applies")
        return values

    def _rule_hosts(self, node: Node, path: str) -> tuple[HostTerm | _TenantName | str, ...]:
        if isinstance(node, Scalar) and node.text == ANY_HOST:
            return (ANY_HOST,)
        return self._some(node, path, "hosts", self._rule_host)

    def _class_hosts(self, node: Node, path: str) -> Hosts:
        found = self._rule_hosts(node, path)
        tenants = tuple(host.name for host in found if isinstance(host, _TenantName))
        return Hosts(ANY_HOST in found, tenants, tuple(h for h in found if not isinstance(h, _TenantName | str)))

    def _rule_vlans(self, node: Node, path: str) -> frozenset[int]:
        """Return the VLANs that a rule is about, 0 being the fabric's own domain; one may stand without a list."""
        read = self._known_vlans.some
        masks = self._some(node, path, "VLANs", read) if isinstance(node, Sequence) else (read(node, path),)
        named = [mask for mask in masks if mask is not None]
        return frozenset(vlan_id for mask in named for vlan_id in range(mask.bit_length()) if mask >> vlan_id & 1)

    def _rule_host(self, node: Node, path: str) -> HostTerm | _TenantName | str | None:
        if isinstance(node, Scalar):
            if node.text == ANY_HOST:
                return ANY_HOST
            if node.text in self.tenant_names:
                return _TenantName(node.text)
            if isinstance(scalar_value(node), str) and not looks_like_address(node.text):
                near = self.faults.suggestion(node.text, self.tenant_names)
                self.faults.error(node.line, path, f"unknown tenant {quoted(node.text)}{near}")
                return None
        return self._tenant_host(node, path)

    def _tenant_host(self, node: Node, path: str) -> HostTerm | None:
        if isinstance(node, Mapping):
            return self.host_port(node, path)
        return self._term(node, path, "an IP address, prefix, MAC address or {dpid, port}", parse_host_term)

    def _group(self, node: Node, path: str) -> Prefix | None:
        return self._term(node, path, "a group or prefix of groups", parse_group_prefix)

    def _source(self, node: Node, path: str) -> Prefix | None:
        return self._term(node, path, "an IP address or prefix", parse_host_prefix)

    def _term(self, node: Node, path: str, what: str, parse_text: Callable[[str], T]) -> T | None:
        value = scalar_value(node) if isinstance(node, Scalar) else None
        if not isinstance(node, Scalar) or value is None or isinstance(value, bool) or not node.text:
            self.wrong_type(node, path, what)
            return None
        try:
            return parse_text(node.text)
        except ValueError as error:
            self.faults.error(node.line, path, str(error))
            return None

    def _multicast(self, node: Node, path: str) -> Multicast:
        multicast = self.settings(Multicast, node, path)
        querier = multicast.querier
        if querier.response_interval_s >= querier.query_interval_s:
            self.faults.error(
                line_of(node, "querier", "response_interval_s"),
                f"{path}.querier.response_interval_s",
                f"{querier.response_interval_s:g} is not below query_interval_s {querier.query_interval_s:g}",
            )
        return multicast

    def _allocation(self, node: Node, path: str) -> Allocation:
        allocation = self.settings(Allocation, node, path)
        for entry in fields(allocation):
            parameters = getattr(allocation, entry.name)
            if isinstance(parameters, PortParameters):
                days = parameters.days_to_average_utilization
                if MOST_DAYS < days <= MINUTES_ABOVE:
                    name = "days_to_average_utilization"
                    message = f"{days} is not within 1 and {MOST_DAYS} (days), nor above {MINUTES_ABOVE} (minutes)"
                    self.faults.error(line_of(node, entry.name, name), f"{path}.{entry.name}.{name}", message)
        return allocation

    def _monitor(self, node: Node, path: str) -> Monitor:
        monitor = self.settings(Monitor, node, path)
        if monitor.ovsdb and not is_ovsdb_target(monitor.ovsdb):
            message = f"{quoted(monitor.ovsdb)} is neither unix:PATH nor tcp:HOST:PORT"
            self.faults.error(line_of(node, "ovsdb"), f"{path}.ovsdb", message)
        if monitor.syslog.enabled and not is_syslog_target(monitor.syslog.target):
            message = f"{quoted(monitor.syslog.target)} is neither a socket's path, such as /dev/log, nor HOST:PORT"
            self.faults.error(line_of(node, "syslog", "target"), f"{path}.syslog.target", message)
        return monitor

    def _dashboard(self, node: Node, path: str) -> Dashboard:
        dashboard = self.settings(Dashboard, node, path)
        for given, missing in (("certificate", "key"), ("key", "certificate")):
            if getattr(dashboard, given) and not getattr(dashboard, missing):
                self.faults.error(line_of(node, given), f"{path}.{missing}", f"missing, while {given} is there")
        if checks.sends_tokens_in_clear(dashboard):
            message = checks.tokens_in_clear(format_ip(dashboard.host))
            self.faults.error(line_of(node, "host"), f"{path}.tokens_over_plain_http", message)
        return dashboard

    def _check_places(self, found: dict[str, tuple[int, Node]], monitor: Monitor, dashboard: Dashboard) -> None:
        """Report that page and Prometheus have one place; where no page is spoken of, it may well not be served."""
        message = checks.same_place(dashboard, monitor.prometheus)
        if message is None:
            return
        if "dashboard" in found:
            self.faults.error(line_of(found["dashboard"][1], "port"), "dashboard.port", message)
        else:
            line = line_of(found["monitor"][1], "prometheus", "port")
            self.faults.warn(line, "monitor.prometheus.port", message)


def _name_problem(name: str) -> str:
    """Return what is wrong with a name, '' where nothing is."""
    if len(name) > MAX_NAME_LENGTH:
        return f"a name of {len(name)} characters; at most {MAX_NAME_LENGTH} are supported"
    if not name.isprintable() or name != name.strip():
        return f"the name {quoted(name)} has control characters, or spaces at its ends"
    return ""


def _tenant_name_problem(name: str) -> str:
    if name == ANY_HOST:
        return f"{ANY_HOST!r} is reserved for every host"
    if not name or looks_like_address(name):
        return f"the name {quoted(name)} could be taken for an address"
    return _name_problem(name)
