// The topology's page: the drawing or its table, the legend, and the overview beside it.

import {html, useState} from "../../vendor/preact.js";
import {LISTS, tierOrder} from "../columns.js";
import {bps, count, counted} from "../format.js";
import {byLabel, label, placeLabel} from "../ids.js";
import {List, found} from "../list.js";
import {Load, Ref, State, Time, severityTone} from "../parts.js";
import {go, hashOf, route, selected, selection, treeOf} from "../route.js";
import {gravestFirst, groups, links, section} from "../store.js";
import {Drawing, isOnTree} from "./view.js";

const MANY = 8;

export function Topology() {
  const current = route.value;
  const tree = treeOf(current);
  const group = tree ? section("groups").get(tree) : null;
  const isTable = current.as === "table";
  const to = (as) => hashOf({...current, as});
  return html`<div class=${`topology${current.select ? "" : " has-overview"}`}>
    <section class="topology-main" aria-label="Topology">
      <div class="bar">
        <h1>Topology</h1>
        ${tree && html`<p class="chip">Tree of <${Ref} kind="group" id=${tree} /><button type="button" aria-label="Show no tree" onClick=${() => go({tree: "", select: current.select.startsWith("group/") ? "" : current.select})}>✕</button></p>`}
        <nav class="switcher" aria-label="Show the topology as"><a href=${to("")} aria-current=${isTable ? null : "true"}>Drawing</a><a href=${to("table")} aria-current=${isTable ? "true" : null}>Table</a></nav>
      </div>
      ${isTable ? html`<${Table} group=${group} />` : html`<${Drawing} />`}
    </section>
    ${!current.select && html`<${Overview} />`}
  </div>`;
}

const ends = (dpid) => {
  const node = section("switches").get(String(dpid));
  return `${label(dpid)} ${node?.tier ?? ""}`;
};

/** The links as rows, of the marked tree alone where there is one. */
function Table({group}) {
  const isShown = group && isOnTree(group);
  const order = (dpid) => tierOrder(section("switches").get(String(dpid)) ?? {});
  const rows = links.value
    .filter((link) => !isShown || isShown(link))
    .map((link) => {
      const byTier = order(link.dpid_a) - order(link.dpid_b);
      const [upper, lower] = byTier < 0 || (!byTier && byLabel(link.dpid_a, link.dpid_b) <= 0) ? [link.dpid_a, link.dpid_b] : [link.dpid_b, link.dpid_a];
      return {...link, upper, lower};
    });
  const columns = [
    {key: "upper", label: "Switch above", least: 110, grow: 1.3, value: (row) => ends(row.upper), cell: (row) => ends(row.upper)},
    {key: "lower", label: "Switch below", least: 110, grow: 1.3, value: (row) => ends(row.lower), cell: (row) => ends(row.lower)},
    ...LISTS.links.columns.filter(({key}) => ["utilisation_pct", "capacity_bps"].includes(key)),
    {...LISTS.links.columns[0], wide: true},
  ];
  const current = route.value;
  const chosen = selected(current);
  return html`<${List} name="table" label=${group ? `Links of the tree of ${group.group}` : "Links between switches"} rows=${rows} columns=${columns}
    sort=${current.sort || "upper"} onSort=${(sort) => go({sort}, {replace: true})} selected=${chosen?.kind === "link" ? chosen.id : null}
    onSelect=${(row) => go(selection(current, "link", row.id))} empty="No link was discovered." />`;
}

function Overview() {
  const [search, setSearch] = useState("");
  const busiest = links.value.filter((link) => link.utilisation_pct != null).sort((a, b) => b.utilisation_pct - a.utilisation_pct).slice(0, MANY);
  const chosen = found(groups.value, search).toSorted((a, b) => (b.rate_bps ?? 0) - (a.rate_bps ?? 0));
  const events = [...section("events").values()].sort((a, b) => b.time_s - a.time_s).slice(0, MANY);
  const alarms = gravestFirst.value;
  const anomalies = [...section("anomalies").values()];
  return html`<aside class="panel overview" aria-label="Overview"><div class="panel-body">
    ${alarms.length > 0 && html`<section class="part"><div class="part-head"><h2>Open alarms <span class="amount">${alarms.length}</span></h2><a href=${hashOf({view: "alarms"})}>All</a></div>
      <ul class="rows">${alarms.slice(0, MANY).map((one) => html`<li key=${one.id} class="event-row"><${Ref} kind="alarm" id=${one.id}><${State} tone=${severityTone(one.severity)}><span class="unseen">${one.severity}: </span>${one.text}<//><//></li>`)}</ul></section>`}
    <section class="part"><div class="part-head"><h2>Groups <span class="amount">${count(groups.value.length)}</span></h2><a href=${hashOf({view: "groups"})}>All</a></div>
      <input type="search" placeholder="Find a group, member or sender" aria-label="Find a group, member or sender" value=${search} onInput=${(event) => setSearch(event.target.value)} />
      <ul class="rows">${chosen.slice(0, MANY).map((group) => html`<li key=${group.id}><${Ref} kind="group" id=${group.group} />
        <span class="row-more">${counted(group.member_count, "member")}${group.refused_count ? html`, <span class="is-refused">${group.refused_count} refused</span>` : ""}</span><span>${bps(group.rate_bps)}</span></li>`)}</ul>
      ${!chosen.length && html`<p class="quiet">${search ? "Nothing found." : "No group has a member or a sender."}</p>`}</section>
    <section class="part"><div class="part-head"><h2>Busiest links</h2><a href=${hashOf({view: "links"})}>All</a></div>
      <ul class="rows">${busiest.map((link) => html`<li key=${link.id}><${Ref} kind="link" id=${link.id} /><${Load} value=${link.utilisation_pct} /></li>`)}</ul>
      ${!busiest.length && html`<p class="quiet">Nobody measures links: the monitor does not run.</p>`}</section>
    ${anomalies.length > 0 && html`<section class="part"><div class="part-head"><h2>Open anomalies <span class="amount">${anomalies.length}</span></h2><a href=${hashOf({view: "anomalies"})}>All</a></div>
      <ul class="rows">${anomalies.slice(0, MANY).map((one) => html`<li key=${one.id}><${Ref} kind="anomaly" id=${one.id}>${one.dpid == null ? String(one.member) : placeLabel(one.dpid, one.port_no)}<//><span class="row-more">${one.text}</span></li>`)}</ul></section>`}
    <section class="part"><div class="part-head"><h2>Events</h2><a href=${hashOf({view: "events"})}>All</a></div>
      <ul class="rows">${events.map((event) => html`<li key=${event.id} class="event-row"><span class="row-more"><${Time} at_s=${event.time_s} /></span>
        <${Ref} kind="event" id=${event.id}><${State} tone=${severityTone(event.severity)}><span class="unseen">${event.severity}: </span>${event.text}<//><//></li>`)}</ul>
      ${!events.length && html`<p class="quiet">Nothing has happened yet.</p>`}</section>
  </div></aside>`;
}
