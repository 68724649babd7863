// The lists: which rows they hold, and their columns.

import {html} from "../vendor/preact.js";
import {bps, count, counted, number, pct, pps, text, words} from "./format.js";
import {called, hexOf, label, orderOfPort} from "./ids.js";
import {Load, Place, State, Time, severityTone} from "./parts.js";
import {TableBar, hitPct, tableTone, tenantsOf, usedPct} from "./tables.js";
import {groups, isMissing, linkAtPort, links, parties, section} from "./store.js";

const fit = (least, grow = 1) => ({least, grow});
const all = (name) => () => [...section(name).values()];

const end = {align: "end"};
const wide = {wide: true};
const load = (key, label, more) => ({key, label, ...fit(104), ...end, cell: (row) => html`<${Load} value=${row[key]} />`, ...more});
const rate = (key, label, more) => ({key, label, ...fit(88), ...end, cell: (row) => bps(row[key]), ...more});
const share = (key, label, more) => ({key, label, ...fit(70), ...end, cell: (row) => pct(row[key]), ...more});
const portColumn = {
  key: "port", label: "Port", ...fit(92, 1.2), value: (row) => (row.dpid == null ? null : orderOfPort(row)),
  cell: (row) => html`<${Place} ...${row} />`,
};
/** The VLANs of a port to hosts: that of frames without a tag by its name, and those with one. */
export function vlansOf({vlans}) {
  if (!vlans) return null;
  const {untagged, tagged, names = {}} = vlans;
  const own = untagged == null ? [] : [names[untagged] ?? (untagged === 0 ? "untagged" : String(untagged))];
  return [...own, ...(tagged ? [`${tagged} tagged`] : [])].join(" + ") || "none";
}

/** From which VLAN the receivers of a group get it, where that is another one; to which others it goes. */
export const sourceVlanOf = ({source_vlan, source_vlan_name}) => vlanOf({vlan: source_vlan, vlan_name: source_vlan_name});
export const receiverVlansOf = ({receiver_vlans}) =>
  receiver_vlans?.map((row) => `${vlanOf(row) ?? "untagged"}: ${row.ports} ports`).join(", ") || null;
const noteOf = (row) => row.unsupported
  ?? (row.source_vlan != null ? `from VLAN ${sourceVlanOf(row)}` : row.detached?.length ? `cut off: ${row.detached.map(label).join(", ")}` : "");
export const vlanOf = ({vlan, vlan_name}) => (vlan == null ? null : vlan_name ? `${vlan} (${vlan_name})` : String(vlan));

const groupColumn = {key: "group", label: "Group", ...fit(120, 1.4), cell: (row) => text(row.group)};

export function switchTone(node) {
  if (node.connected === false) return ["critical", "not connected"];
  if (node.drained) return ["quiet", "drained"];
  if (node.in_sync == null) return ["quiet", "connected"];
  return node.in_sync ? ["good", "in sync"] : ["warning", "not in sync"];
}

export const linkTone = (link) => (isMissing(link) ? ["critical", link.state] : ["good", "up"]);

const stateColumn = (key, label, of, more) => ({
  key, label, ...fit(96, 1.2), value: (row) => of(row)[1],
  cell: (row) => {
    const [tone, word] = of(row);
    return html`<${State} tone=${tone}>${word}<//>`;
  },
  ...more,
});

const partyTone = (row) => [row.state === "refused" ? "refused" : "good", row.state];
const eventTone = (event) => [severityTone(event.severity), text(event.severity)];

export const tierOrder = (node) => ["core", "aggregation", "tor"].indexOf(node.tier);

export const isMember = (party) => party.role === "receiver" && party.state !== "refused";
const isRefused = (party) => party.state === "refused";
const ROLES = [["member", isMember], ["sender", (party) => party.role === "sender" && !isRefused(party)], ["refusal", isRefused]];

const alarmColumns = [
  {key: "severity", label: "Severity", ...fit(84), value: (row) => ["critical", "warning", "info"].indexOf(row.severity),
    cell: (row) => html`<${State} tone=${severityTone(row.severity)}>${text(row.severity)}<//>`},
  {key: "since_s", label: "Since", ...fit(74), cell: (row) => html`<${Time} at_s=${row.since_s} />`},
  {key: "kind", label: "What", ...fit(90), cell: (row) => words(row.kind), ...wide},
  {key: "text", label: "Text", ...fit(140, 4), cell: (row) => text(row.text), title: (row) => row.text},
];
const acknowledgedColumn = {key: "acknowledged_by", label: "Acknowledged by", ...fit(110), cell: (row) => text(row.acknowledged_by), ...wide};

/** By view: the title, the section of the API, the kind of its things, rows, columns and the first order. */
export const LISTS = {
  groups: {
    title: "Groups", kind: "group", rows: () => groups.value, sort: "group", empty: "No group has a member or a sender.",
    columns: [
      {...groupColumn, ...fit(116, 1.6)},
      {key: "member_count", label: "Members", ...fit(74), ...end},
      {key: "sender_count", label: "Senders", ...fit(72), ...end, ...wide},
      {key: "refused_count", label: "Refused", ...fit(72), ...end,
        cell: (row) => (row.refused_count ? html`<span class="is-refused">${row.refused_count}</span>` : 0)},
      {key: "link_count", label: "Tree links", ...fit(80), ...end, ...wide},
      rate("rate_bps", "Rate"),
      {key: "vlan", label: "VLAN", ...fit(70), ...wide, cell: (row) => vlanOf(row) ?? ""},
      {key: "unsupported", label: "Note", ...fit(80, 1.4), cell: noteOf, ...wide},
    ],
  },
  members: {
    title: "Members and senders", kind: "group", idOf: (row) => row.group, rows: () => parties.value, sort: "group",
    amount: (rows) => ROLES.map(([name, is]) => counted(rows.filter(is).length, name)).join(", "),
    empty: "Nobody receives or sends.",
    columns: [
      groupColumn,
      {key: "role", label: "Role", ...fit(70)},
      stateColumn("state", "State", partyTone),
      portColumn,
      {key: "ip", label: "IP address", ...fit(104, 1.2), cell: (row) => text(row.ip), ...wide},
      {key: "mac", label: "MAC address", ...fit(128, 1.2), cell: (row) => text(row.mac), ...wide},
      {key: "sources", label: "Sources", ...fit(90), cell: (row) => sourcesOf(row), ...wide},
      {key: "rule", label: "Rule", ...fit(90), cell: (row) => text(row.rule), title: (row) => row.reason, ...wide},
    ],
  },
  switches: {
    title: "Switches", kind: "switch", rows: all("switches"), sort: "dpid", empty: "No switch has connected.",
    columns: [
      {key: "dpid", label: "Switch", ...fit(92, 1.4), value: (row) => label(row.dpid), cell: (row) => label(row.dpid), title: (row) => label(row.dpid)},
      {key: "tier", label: "Tier", ...fit(88), value: (row) => tierOrder(row) + row.tier},
      {key: "fabric", label: "Fabric", ...fit(90), cell: (row) => text(row.fabric), ...wide},
      stateColumn("state", "State", switchTone),
      {key: "ofp_version", label: "OpenFlow", ...fit(96), cell: (row) => openflow(row.ofp_version) + (row.encrypted ? " by TLS" : ""), ...wide},
      share("cpu_pct", "CPU"),
      share("memory_pct", "Memory", wide),
      {key: "id", label: "Datapath id", ...fit(134), ...wide, value: (row) => hexOf(row.dpid), cell: (row) => hexOf(row.dpid)},
      {key: "answered_s", label: "Last answer", ...fit(90), ...end, ...wide, cell: (row) => html`<${Time} at_s=${row.answered_s} />`},
    ],
  },
  ports: {
    title: "Ports", kind: "port", rows: all("ports"), sort: "port", empty: "No ports are known.",
    columns: [
      portColumn,
      {key: "name", label: "Name", ...fit(84, 1.1), cell: (row) => text(row.name), ...wide},
      {key: "role", label: "Role", ...fit(60), cell: (row) => text(row.role), ...wide},
      {key: "vlans", label: "VLANs", ...fit(84, 1.1), ...wide, value: (row) => vlansOf(row), cell: (row) => vlansOf(row) ?? "", title: (row) => vlansOf(row)},
      load("rx_utilisation_pct", "Receiving"),
      load("tx_utilisation_pct", "Sending"),
      rate("rx_bps", "Rx", wide),
      rate("tx_bps", "Tx", wide),
      {key: "errors", label: "Errors", ...fit(64), ...end, ...wide, value: (row) => sum(row.rx_errors_pps, row.tx_errors_pps), cell: (row) => pps(sum(row.rx_errors_pps, row.tx_errors_pps))},
      {key: "dropped", label: "Drops", ...fit(64), ...end, ...wide, value: (row) => sum(row.rx_dropped_pps, row.tx_dropped_pps), cell: (row) => pps(sum(row.rx_dropped_pps, row.tx_dropped_pps))},
      {key: "score", label: "Score", ...fit(56), ...end, ...wide, cell: (row) => number(row.score)},
    ],
  },
  links: {
    title: "Links", kind: "link", rows: () => links.value, sort: "-utilisation_pct", empty: "No link was discovered.",
    columns: [
      {key: "id", label: "Link", ...fit(150, 2), value: (row) => called("link", row.id), cell: (row) => html`<span class="ends"><${Place} dpid=${row.dpid_a} port_no=${row.port_a} /><span> – </span><${Place} dpid=${row.dpid_b} port_no=${row.port_b} /></span>`, title: (row) => called("link", row.id)},
      {key: "tiers", label: "Between", ...fit(120, 1.3), ...wide, value: tiersOf, cell: tiersOf},
      stateColumn("state", "State", linkTone, fit(76)),
      load("utilisation_pct", "Utilisation", {...fit(104, 1.2)}),
      share("utilisation_ab_pct", "a → b", {...wide, title: (row) => `${label(row.dpid_a)} → ${label(row.dpid_b)}`}),
      share("utilisation_ba_pct", "b → a", {...wide, title: (row) => `${label(row.dpid_b)} → ${label(row.dpid_a)}`}),
      rate("capacity_bps", "Capacity", wide),
    ],
  },
  hosts: {
    title: "Hosts", kind: "host", rows: all("hosts"), sort: "mac", empty: "No host was seen.",
    columns: [
      {key: "mac", label: "MAC address", ...fit(132, 1.2)},
      {key: "ips", label: "IP addresses", ...fit(110, 2), value: (row) => row.ips?.[0], cell: (row) => text(row.ips?.join(", "))},
      portColumn,
    ],
  },
  tables: {
    title: "Flow tables", kind: "switch", idOf: (row) => String(row.dpid), rows: all("tables"), sort: "-used",
    empty: "All groups are in all flow tables: the policy has no overcommit, or no group has entries yet.",
    columns: [
      {key: "dpid", label: "Switch", ...fit(80, 1.2), value: (row) => label(row.dpid), cell: (row) => label(row.dpid)},
      {key: "table", label: "Table", ...fit(46), ...end},
      stateColumn("state", "State", tableTone),
      {key: "used", label: "Used", ...fit(190, 1.2), ...end, value: usedPct, cell: (row) => html`<${TableBar} row=${row} />`},
      {key: "groups", label: "Groups in", ...fit(70), ...end, cell: (row) => count(row.groups)},
      {key: "groups_covered", label: "Covered", ...fit(70), ...end, ...wide, cell: (row) => count(row.groups_covered)},
      {key: "groups_out", label: "Out", ...fit(56), ...end, cell: (row) => count(row.groups_out)},
      {key: "hits", label: "Hits", ...fit(64), ...end, ...wide, cell: (row) => count(row.hits), title: (row) => `${pct(hitPct(row))} of packets`},
      {key: "faults", label: "Faults", ...fit(64), ...end, cell: (row) => count(row.faults)},
      {key: "tenants", label: "Tenants: entries of what they are entitled to", ...fit(150, 2.4), ...wide, value: tenantsOf, cell: tenantsOf, title: tenantsOf},
    ],
  },
  events: {
    title: "Events", kind: "event", rows: all("events"), sort: "-time_s", empty: "Nothing has happened yet.",
    columns: [
      {key: "time_s", label: "Time", ...fit(74), cell: (row) => html`<${Time} at_s=${row.time_s} />`},
      stateColumn("severity", "Severity", eventTone, {...fit(84)}),
      {key: "source", label: "From", ...fit(76), cell: (row) => text(row.source), ...wide},
      {key: "kind", label: "What", ...fit(110), cell: (row) => words(row.kind), ...wide},
      {key: "state", label: "State", ...fit(70), cell: (row) => text(row.state), ...wide},
      {key: "text", label: "Text", ...fit(140, 4), cell: (row) => text(row.text), title: (row) => row.text},
    ],
  },
  alarms: {
    title: "Open alarms", kind: "alarm", rows: all("alarms"), sort: "severity", empty: "Nothing is wrong.",
    columns: [
      ...alarmColumns,
      {key: "consequence_count", label: "Follows", ...fit(60), ...end, cell: (row) => count(row.consequence_count), ...wide},
      acknowledgedColumn,
    ],
  },
  "cleared-alarms": {
    title: "Cleared alarms", kind: "cleared", rows: all("cleared-alarms"), sort: "-cleared_s", empty: "No alarm was cleared.",
    columns: [
      {key: "cleared_s", label: "Until", ...fit(74), cell: (row) => html`<${Time} at_s=${row.cleared_s} />`},
      ...alarmColumns, acknowledgedColumn,
    ],
  },
  anomalies: {
    title: "Open anomalies", kind: "anomaly", rows: all("anomalies"), sort: "-score", empty: "No anomaly is open.",
    columns: [
      {key: "member", label: "Member", ...fit(84), cell: (row) => (row.dpid == null ? text(row.member) : html`<${Place} ...${row} />`)},
      {key: "peer_group", label: "Peers", ...fit(90), cell: (row) => text(row.peer_group), ...wide},
      {key: "metric", label: "Metric", ...fit(84), cell: (row) => words(text(row.metric)), ...wide},
      {key: "score", label: "Score", ...fit(60), ...end, cell: (row) => number(row.score)},
      {key: "since_s", label: "Since", ...fit(74), ...end, cell: (row) => html`<${Time} at_s=${row.since_s} />`},
      {key: "text", label: "Text", ...fit(120, 4), cell: (row) => text(row.text), title: (row) => row.text},
    ],
  },
  allocations: {
    title: "Allocation decisions", kind: "allocation", rows: all("allocations"), sort: "-time_s", empty: "No ports were requested.",
    columns: [
      {key: "time_s", label: "Time", ...fit(74), cell: (row) => html`<${Time} at_s=${row.time_s} />`},
      {key: "asked", label: "Asked", ...fit(56), ...end, value: (row) => row.request?.count, cell: (row) => count(row.request?.count)},
      stateColumn("result", "Result", allocationTone),
      {key: "ports", label: "Ports", ...fit(100, 3), value: (row) => row.ports?.length, cell: (row) => text(row.ports?.map((id) => called("port", String(id))).join(", "))},
    ],
  },
};

export function allocationTone(row) {
  return row.error ? ["refused", "not met"] : ["good", `${row.ports?.length ?? 0} chosen`];
}

const sum = (a, b) => (a == null && b == null ? null : (a ?? 0) + (b ?? 0));

export function sourcesOf(row) {
  if (!row.sources?.length) return row.role === "sender" || row.state === "refused" ? "" : "any source";
  return `${row.mode} ${row.sources.join(", ")}`;
}

export const openflow = (version) =>
  text({1: "1.0", 2: "1.1", 3: "1.2", 4: "1.3", 5: "1.4", 6: "1.5"}[version] ?? version);

function tiersOf(link) {
  const tier = (dpid) => section("switches").get(String(dpid))?.tier ?? "switch";
  return [tier(link.dpid_a), tier(link.dpid_b)].sort().join(" – ");
}

/** What is at the other end of a port: a switch's port, or nothing known. */
export function farEnd(dpid, port_no) {
  const link = linkAtPort.value.get(`${dpid}:${port_no}`);
  if (!link) return null;
  return link.dpid_a === dpid && link.port_a === port_no
    ? {link, dpid: link.dpid_b, port_no: link.port_b}
    : {link, dpid: link.dpid_a, port_no: link.port_a};
}
