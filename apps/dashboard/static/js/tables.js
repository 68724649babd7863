// Flow tables that are too small for all groups: how full each is, of what, and how short of free entries.

import {html} from "../vendor/preact.js";
import {count, pct} from "./format.js";
import {State} from "./parts.js";
import {section} from "./store.js";

const TONES = {high: "good", soft: "info", hard: "warning", low: "critical"};

/** Whether groups may be out of flow tables, so that there is something to see of these. */
export const hasTables = () => section("tables").size > 0;

/** The tables of a switch, by their numbers there. */
export const tablesOf = (dpid) => [...section("tables").values()].filter((row) => row.dpid === dpid).sort((a, b) => a.table - b.table);

/** Entries in use, those that stay and those of groups, and how much of the table that is; null where nobody knows. */
export const usedOf = (row) => (row.pinned ?? 0) + (row.entries ?? 0);
export const usedPct = (row) => (row.capacity ? (100 * usedOf(row)) / row.capacity : null);

/** How short a table is of free entries; of a switch that is away nobody knows. */
export function tableTone(row) {
  if (section("switches").get(String(row.dpid))?.connected === false) return ["critical", "not connected"];
  return row.state == null ? ["quiet", "no limit known"] : [TONES[row.state] ?? "quiet", row.state];
}

/** Packets of hosts at the switch that met the table's entries, of all that it had to know. */
export function hitPct({hits, faults}) {
  const all = (hits ?? 0) + (faults ?? 0);
  return all ? (100 * (hits ?? 0)) / all : null;
}

/** What each tenant has, of what it is entitled to. */
export const tenantsOf = ({tenants}) => (tenants ?? [])
  .map(({tenant, entries, entitled}) => `${tenant ?? "(none)"} ${count(entries)} of ${entitled}`).join(", ");

const spanned = (part) => (bar) => bar && (bar.style.width = `${100 * Math.min(1, Math.max(0, part))}%`);

/** How full a table is: what stays, then what groups have, of what it has room for. */
export function TableBar({row}) {
  const isAway = tableTone(row)[1] === "not connected";
  const words = row.capacity == null ? count(usedOf(row)) : `${count(usedOf(row))} of ${count(row.capacity)}`;
  if (row.capacity == null) return html`<span class="load"><span class="table-figure">${words}</span></span>`;
  return html`<span class=${isAway ? "load is-away" : "load"} title=${`${words}: ${count(row.pinned ?? 0)} stay, ${count(row.entries ?? 0)} of groups (${pct(usedPct(row))})`}>
    <span class="table-figure">${words}</span><span class="table-track" aria-hidden="true"><span class="table-pinned" ref=${spanned((row.pinned ?? 0) / row.capacity)}></span><span
      class=${`table-groups is-${tableTone(row)[0]}`} ref=${spanned((row.entries ?? 0) / row.capacity)}></span></span></span>`;
}

/** How many groups are in a table, are under covering trees, where any is, and are out. */
const groupsOf = ({groups, groups_covered, groups_out}) => [
  `${count(groups)} groups in`, groups_covered ? `${count(groups_covered)} covered` : "", `${count(groups_out)} out`,
].filter(Boolean).join(", ");

/** A table of a switch, in one line. */
export const TableLine = ({row}) => {
  const [tone, word] = tableTone(row);
  return html`<span>Table ${row.table} <${State} tone=${tone}>${word}<//></span>
    <span class="row-more">${[groupsOf(row), `${count(row.hits)} hits, ${count(row.faults)} faults`, tenantsOf(row)].filter(Boolean).join(" · ")}</span>
    <${TableBar} row=${row} />`;
};
