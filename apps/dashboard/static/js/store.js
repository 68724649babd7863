// What the controller told: a map of documents for each section, and what follows from them.

import {batch, computed, signal} from "../vendor/preact.js";

export const SECTIONS = [
  "status", "switches", "links", "ports", "hosts", "groups", "rules", "staged", "routers", "events", "alarms",
  "cleared-alarms", "anomalies", "allocations", "policy", "cluster", "monitors", "scaling", "classes", "tables", "maintenance", "candidates", "runs",
];

const documents = new Map(SECTIONS.map((name) => [name, new Map()]));
const versions = new Map(SECTIONS.map((name) => [name, signal(0)]));

/** The documents of a section by id; who reads them in a render or a computed value follows their changes. */
export function section(name) {
  versions.get(name).value;
  return documents.get(name);
}

/** A number that grows with each change of a section. */
export const versionOf = (name) => versions.get(name).value;

/** Begin anew with the documents of `sections`. */
export function applySnapshot(sections) {
  batch(() => {
    for (const name of SECTIONS) {
      const held = documents.get(name);
      held.clear();
      for (const document of sections[name] ?? []) held.set(document.id, document);
      versions.get(name).value += 1;
    }
  });
}

/** Take over what changed. */
export function applyChange(sections) {
  batch(() => {
    for (const [name, {put = [], remove = []}] of Object.entries(sections)) {
      const held = documents.get(name);
      if (!held) continue;
      for (const id of remove) held.delete(id);
      for (const document of put) held.set(document.id, document);
      versions.get(name).value += 1;
    }
  });
}

const highest = (...values) => {
  const known = values.filter((value) => value != null);
  return known.length ? Math.max(...known) : null;
};

const nodeOf = (dpid, port_no) => `${dpid}:${port_no}`;

/** Whether a link is expected and not there. */
export const isMissing = (link) => link.state === "failed" || link.state === "moved";

/** Service classes by importance, last who is in none: what is known of their goals, and who sends in them. */
export const classRows = computed(() => {
  const found = new Map([...section("classes").values()].map((one) => [one.service_class, {...one, name: one.service_class}]));
  for (const group of section("groups").values()) {
    const here = new Set();
    for (const sender of group.senders ?? []) {
      if (!sender.admitted || (sender.service_class == null && sender.dscp == null)) continue;
      const name = sender.service_class ?? null;
      const row = found.get(name) ?? {name: name ?? "", service_class: name};
      found.set(name, {
        ...row, groups: (row.groups ?? 0) + (here.has(name) ? 0 : 1), senders: (row.senders ?? 0) + 1, rate_bps: (row.rate_bps ?? 0) + (sender.rate_bps ?? 0),
      });
      here.add(name);
    }
  }
  const last = (one) => (one.service_class == null ? 8 : one.importance ?? 7);
  return [...found.values()].sort((a, b) => last(a) - last(b) || a.name.localeCompare(b.name));
});

/** Links with the utilisation of each direction and of the busier one, in percent; null where nobody measured it. */
export const links = computed(() => {
  const ports = section("ports");
  return [...section("links").values()].map((link) => {
    if (isMissing(link)) return {...link, utilisation_ab_pct: null, utilisation_ba_pct: null, utilisation_pct: null, ab_bps: null, ba_bps: null};
    const a = ports.get(nodeOf(link.dpid_a, link.port_a));
    const b = ports.get(nodeOf(link.dpid_b, link.port_b));
    const ab = highest(a?.tx_utilisation_pct, b?.rx_utilisation_pct);
    const ba = highest(b?.tx_utilisation_pct, a?.rx_utilisation_pct);
    return {
      ...link,
      utilisation_ab_pct: ab,
      utilisation_ba_pct: ba,
      utilisation_pct: highest(ab, ba),
      ab_bps: a?.tx_bps ?? b?.rx_bps ?? null,
      ba_bps: b?.tx_bps ?? a?.rx_bps ?? null,
    };
  });
});

export const linkById = computed(() => new Map(links.value.map((link) => [link.id, link])));

/** The id of the link at each port of one. */
export const linkAtPort = computed(() => {
  const found = new Map();
  for (const link of section("links").values()) {
    found.set(nodeOf(link.dpid_a, link.port_a), link);
    found.set(nodeOf(link.dpid_b, link.port_b), link);
  }
  return found;
});

const listed = (rows, keyOf) => {
  const found = new Map();
  for (const row of rows) {
    const key = keyOf(row);
    if (found.has(key)) found.get(key).push(row);
    else found.set(key, [row]);
  }
  return found;
};

export const portsOfSwitch = computed(() => listed(section("ports").values(), (port) => port.dpid));
export const hostsOfSwitch = computed(() => listed(section("hosts").values(), (host) => host.dpid));
export const hostsOfPort = computed(() => listed(section("hosts").values(), (host) => nodeOf(host.dpid, host.port_no)));

/** Groups with counts of what they hold. */
export const groups = computed(() => [...section("groups").values()].map(counted));

const COUNTED = new WeakMap();

function counted(group) {
  let row = COUNTED.get(group);
  if (!row) {
    row = {
      ...group,
      member_count: group.members?.length ?? 0,
      sender_count: group.senders?.filter((sender) => sender.admitted).length ?? 0,
      refused_count:
        (group.refused?.length ?? 0) + (group.senders?.filter((sender) => !sender.admitted).length ?? 0),
      link_count: group.links?.length ?? 0,
    };
    COUNTED.set(group, row);
  }
  return row;
}

const PARTIES = new WeakMap();

/** Members, static members, senders and the refused of a group, one row each. */
export function partiesOf(group) {
  let rows = PARTIES.get(group);
  if (!rows) {
    const row = (part, role, state) => ({
      ...part,
      id: [group.group, role, state, part.dpid, part.port_no, part.mac ?? "", part.ip ?? ""].join(","),
      group: group.group,
      role,
      state,
    });
    rows = [
      ...(group.members ?? []).map((part) => row(part, "receiver", "admitted")),
      ...(group.static_members ?? []).map((part) => row(part, "receiver", "static")),
      ...(group.senders ?? []).map((part) => row(part, "sender", part.admitted ? "admitted" : "refused")),
      ...(group.refused ?? []).map((part) => row(part, "receiver", "refused")),
    ];
    PARTIES.set(group, rows);
  }
  return rows;
}

export const parties = computed(() => [...section("groups").values()].flatMap(partiesOf));

/** The newest event of a refusal by `group,dpid,port_no`: a refused member's document does not say why. */
export const refusals = computed(() => {
  const found = new Map();
  for (const event of section("events").values()) {
    if (!event.kind?.endsWith("-refused")) continue;
    const key = [event.group, event.dpid, event.port_no].join();
    if (!(found.get(key)?.time_s > event.time_s)) found.set(key, event);
  }
  return found;
});

/** The epoch seconds of the newest counters; null where nobody measures. Rates that stay as they are are seldom told, answers always. */
export const sampled_s = computed(() => {
  let newest = null;
  for (const node of section("switches").values()) if (node.answered_s > (newest ?? 0)) newest = node.answered_s;
  return newest;
});

const SEVERITIES = ["critical", "warning", "info"];

/** Open alarms, the gravest first, of equally grave ones the oldest. */
export const gravestFirst = computed(() => [...section("alarms").values()].sort((a, b) =>
  SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity) || a.since_s - b.since_s));

/** Open alarms by severity, the gravest first: [severity, number] where there are any. */
export const alarmCounts = computed(() => {
  const alarms = [...section("alarms").values()];
  return SEVERITIES.map((severity) => [severity, alarms.filter((alarm) => alarm.severity === severity).length]).filter(([, amount]) => amount);
});
