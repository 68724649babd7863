"""What apps tell Prometheus, from what they know; each function is called on the loop of the app in question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from apps.exporters import controller_metrics as metrics
from apps.exporters.exposition import Labels, Metric, Value, label_set
from controller.alarms.core import AlarmCore
from controller.alarms.known import LINKS_BOUND, Cable, LinkState
from controller.config.vlans import UNTAGGED
from controller.discovery.detection import ProbingPace
from controller.histogram import Histogram
from controller.multicast.core import MulticastCore
from controller.multicast.figures import OTHER_VLANS, FiguresView
from controller.rules.inspection import Inspection
from controller.snapshot.events import Severity

OFP_VERSIONS = {1: "1.0", 4: "1.3"}

if TYPE_CHECKING:
    from apps.policy_file import PolicyReading


def app_figures(app: str, turns: Histogram, notices: Mapping[str, int], policy: PolicyReading) -> list[Metric]:
    """Return what every app tells: how its loop fares, its notices, and whether it could read the policy."""
    labels: Labels = {"app": app}
    found: list[Metric] = [
        (metrics.TURNS, [(labels, turns.reading())]),
        (metrics.NOTICES, [({"app": app, "kind": kind}, count) for kind, count in sorted(notices.items())]),
    ]
    if policy.loaded_s is not None:
        found.append((metrics.POLICY_OK, [(labels, int(not policy.errors))]))
        found.append((metrics.POLICY_LOADED, [(labels, round(policy.loaded_s, 3))]))
    return found


def counted_figures(app: str, counters: Mapping[str, int]) -> list[Metric]:
    """Return what an app counted of frames that it refused or left out, whether it gives notice of them or not."""
    return [(metrics.COUNTED, [({"app": app, "kind": kind}, count) for kind, count in sorted(counters.items())])]


def entry_figures(app: str, installer: Inspection) -> list[Metric]:
    """Return how many flow entries of an app each switch holds, and how many find no room there."""
    held: list[tuple[Labels, Value]] = []
    waiting: list[tuple[Labels, Value]] = []
    for dpid, entry_count, waiting_count in installer.entry_counts():
        labels = {"dpid": dpid, "app": app}
        held.append((labels, entry_count))
        waiting.append((labels, waiting_count))
    return [(metrics.FLOW_ENTRIES, held), (metrics.WAITING_ENTRIES, waiting)]


def discovery_figures(pace: ProbingPace) -> list[Metric]:
    """Return what discovery tells: frames by urgency, and how soon a silent failure is found."""
    return [
        (metrics.DISCOVERY_FRAMES, [({"urgency": name}, count) for name, count in pace.sent_counts.items()]),
        (metrics.SILENT_FAILURE, [({}, round(pace.within_s, 3))]),
    ]


def core_figures(core: MulticastCore) -> list[Metric]:
    """Return what the multicast core tells: groups, trees, joins, and every switch."""
    found = core.figures.all()
    switches = list(core.figures.by_switch())
    return [
        (metrics.GROUPS, [({}, found.group_count)]),
        (metrics.MEMBERS, [({}, found.member_count)]),
        (metrics.SENDERS, [({}, found.sender_count)]),
        *_vlan_figures(core.figures),
        (
            metrics.DECISIONS,
            [
                ({"rule": rule, "verdict": verdict}, count)
                for rule, counts in found.decisions.items()
                for verdict, count in counts.items()
            ],
        ),
        (metrics.TREE_CHANGES, [({}, found.tree_change_count)]),
        (metrics.TREE_REPAIRS, [({}, found.tree_repair_count)]),
        (metrics.ALIASES, [({}, found.alias_count)]),
        (metrics.ALIAS_POOL, [({}, found.alias_pool)]),
        (metrics.ALIAS_MOVES, [({"by": by}, count) for by, count in found.alias_moves.items()]),
        (metrics.GROUPS_OUT, [({}, found.groups_out)]),
        (metrics.GROUPS_COVERED, [({}, found.groups_covered)]),
        (metrics.MAINTENANCE, [({"step": step}, count) for step, count in core.campaigns.counts().items()]),
        (metrics.GROUP_SWAPS, [({"direction": to}, count) for to, count in found.swaps.items()]),
        (metrics.GROUP_FAULTS, [({"outcome": outcome}, count) for outcome, count in found.faults.items()]),
        *_table_figures(core),
        (
            metrics.SWAP_SLOTS,
            [
                ({"tenant": each.tenant, "kind": kind}, count)
                for each in found.slots
                for kind, count in (("kept", each.kept), ("taken", each.taken))
            ],
        ),
        (metrics.JOIN_LATENCY, [({}, found.join_latency)]),
        (metrics.JOINS_UNMEASURED, [({}, found.unmeasured_join_count)]),
        (metrics.FABRICS, [({}, len(core.fabric.fabrics))]),
        (
            metrics.SWITCH_INFO,
            [
                (
                    {
                        "dpid": each.dpid,
                        "name": each.name,
                        "fabric": each.fabric,
                        "ofp_version": OFP_VERSIONS.get(each.ofp_version or 0, ""),
                    },
                    1,
                )
                for each in switches
            ],
        ),
        (metrics.SWITCH_CONNECTED, [({"dpid": each.dpid}, int(each.is_connected)) for each in switches]),
        (metrics.SWITCH_IN_SYNC, [({"dpid": each.dpid}, int(each.in_sync)) for each in switches]),
        *entry_figures("multicast", core.installer),
    ]


def _table_figures(core: MulticastCore) -> list[Metric]:
    """Return what the multicast core tells of the flow tables that groups go in and out of."""
    capacities: list[tuple[Labels, Value]] = []
    entries: list[tuple[Labels, Value]] = []
    for _, each in core.table_view.figures():
        labels = {"dpid": each.dpid, "table": each.table}
        entries.append(({**labels, "kind": "groups"}, each.entries))
        if each.capacity is not None and each.pinned is not None:
            capacities.append((labels, each.capacity))
            entries.append(({**labels, "kind": "pinned"}, each.pinned))
    tenants: list[tuple[Labels, Value]] = []
    for tenant, (held, entitled) in core.table_view.tenants().items():
        tenants.append(({"tenant": tenant or "", "kind": "held"}, held))
        tenants.append(({"tenant": tenant or "", "kind": "entitled"}, entitled))
    return [
        (metrics.TABLE_CAPACITY, capacities),
        (metrics.TABLE_ENTRIES, entries),
        (metrics.TENANT_ENTRIES, tenants),
    ]


def staged_figures(counts: Mapping[str, int]) -> list[Metric]:
    """Return what a staged policy would decide, by verdict; nothing where none is staged."""
    return [(metrics.STAGED_DECISIONS, [({"verdict": verdict}, count) for verdict, count in counts.items()])]


def _vlan_figures(figures: FiguresView) -> list[Metric]:
    """Return what the multicast core tells of each VLAN, by its id, ``untagged`` or ``other``."""
    names = {0: UNTAGGED, OTHER_VLANS: "other"}
    counted = [({"vlan": names.get(vlan_id, vlan_id)}, found) for vlan_id, found in figures.by_vlan().items()]
    families = (metrics.VLAN_GROUPS, metrics.VLAN_MEMBERS, metrics.VLAN_SENDERS)
    return [(family, [(labels, found[at]) for labels, found in counted]) for at, family in enumerate(families)]


def class_figures(classes: Mapping[str, Mapping[str, Any]]) -> list[Metric]:
    """Return what the core of queues tells of each service class, by its name."""
    fields = {metrics.CLASS_INDEX: "index", metrics.CLASS_MISSING: "missing_bps", metrics.CLASS_PORTS: "ports"}
    return [
        (family, [({"class": name}, found[field]) for name, found in classes.items() if found[field] is not None])
        for family, field in fields.items()
    ]


def alarm_figures(core: AlarmCore) -> list[Metric]:
    """Return what the alarms' core tells: open alarms by severity, and how every known link is."""
    alarms = Counter(alarm.condition.severity for alarm in core.register)
    known = core.known
    links: list[tuple[Labels, Value]] = [
        (partial(_ends, link.cable), 0 if link.up_s is None else 1) for link in known.links.values()
    ]
    states = Counter(known.state(link) for link in known.links.values() if link.up_s is None)
    states[LinkState.UP] = len(links) - states.total()
    return [
        (metrics.LINKS, [({"state": state.value}, states[state]) for state in LinkState]),
        (metrics.LINK_UP, links),
        (metrics.ALARMS, [({"severity": severity.value}, alarms[severity]) for severity in Severity]),
    ]


@lru_cache(maxsize=LINKS_BOUND)
def _ends(cable: Cable) -> str:
    """Return the labels of a link: made once, for there are many, and by who writes them rather than on the loop."""
    (dpid_a, port_a), (dpid_b, port_b) = cable
    return label_set({"dpid_a": dpid_a, "port_a": port_a, "dpid_b": dpid_b, "port_b": port_b})
