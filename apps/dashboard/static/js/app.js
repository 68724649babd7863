// The page around the views: header, navigation, and what to know of the connection.

import {html, useEffect, useRef, useState} from "../vendor/preact.js";
import {OrderDialog, unlock} from "./actions.js";
import {Announcer, say} from "./announce.js";
import {token} from "./api.js";
import {age_s as ageOf} from "./clock.js";
import {Candidates, isSearched} from "./candidates.js";
import {Classes} from "./classes.js";
import {Cluster, isClustered} from "./cluster.js";
import {LISTS, isMember} from "./columns.js";
import {AllocationForm} from "./details/things.js";
import {Panel} from "./details/panel.js";
import {count, span, time} from "./format.js";
import {List, found, isNarrow} from "./list.js";
import {Locked} from "./locked.js";
import {Maintenance, isMaintained} from "./maintenance.js";
import {Age} from "./parts.js";
import {Policy} from "./policy.js";
import {Probes} from "./probes.js";
import {Runs, hasRuns} from "./runs.js";
import {VIEWS, go, route, selected, selection, viewHash} from "./route.js";
import {alarmCounts, isMissing, parties, sampled_s, section} from "./store.js";
import {connection, forget} from "./stream.js";
import {hasTables} from "./tables.js";
import {WorkflowDialog, hasWorkflows} from "./workflows.js";
import {Topology} from "./topology/page.js";

const OLD_S = 60;
const NAMES = {
  topology: "Topology", groups: "Groups", members: "Members", switches: "Switches", ports: "Ports", links: "Links",
  hosts: "Hosts", tables: "Flow tables", events: "Events", alarms: "Alarms", "cleared-alarms": "Cleared alarms", anomalies: "Anomalies",
  allocations: "Allocations", classes: "Service classes", maintenance: "Maintenance", cluster: "Cluster", policy: "Policy", candidates: "Candidates", probes: "Probes", runs: "Runs",
};
const TOTALS = {switches: "switch", links: "link", hosts: "host", groups: "group"};
const COUNTED = ["groups", "switches", "ports", "links", "hosts", "tables", "events", "alarms", "cleared-alarms", "anomalies", "allocations"];

export function App() {
  const view = route.value.view;
  useEffect(() => {
    document.title = `${NAMES[view]} – vsrt`;
  }, [view]);
  return html`<a class="skip" href="#main" onClick=${(event) => {
      event.preventDefault();
      document.getElementById("main").focus();
    }}>Skip to the view</a>
    <${Header} /><${Away} />
    ${connection.value.state === "locked" ? html`<div class="body"><main id="main" tabindex="-1"><${Locked} /></main></div>` : html`<div class="body"><${Navigation} view=${view} />
      <main id="main" tabindex="-1">${view === "topology" ? html`<${Topology} />` : view === "policy" ? html`<${Policy} />` : view === "candidates" ? html`<${Candidates} />` : view === "maintenance" ? html`<${Maintenance} />` : view === "cluster" ? html`<${Cluster} />` : view === "classes" ? html`<${Classes} />` : view === "probes" ? html`<${Probes} />` : view === "runs" ? html`<${Runs} />` : html`<${ListPage} key=${view} view=${view} />`}</main>
      <${Panel} /></div>`}
    <${OrderDialog} /><${WorkflowDialog} /><${Critical} /><${Announcer} />`;
}

function Header() {
  const status = section("status").get("status");
  const isHere = connection.value.state === "live" && status?.connected !== false;
  const state = connection.value.state === "locked" ? ["warning", "Locked"] : !status ? ["quiet", "Connecting"] : !isHere ? ["critical", "Away"] : !status.ready ? ["warning", notReady(status)] : status.degraded ? ["warning", `Degraded: ${status.degraded_because}`] : ["good", "Ready"];
  return html`<header class="top">
    <a class="brand" href="#/topology"><img src="/static/favicon.svg" alt="" width="22" height="22" />vsrt</a>
    <span class=${`status is-${state[0]}`} role="status" title=${state[1]}>${state[1]}</span>
    <${AlarmCounts} />
    <ul class="totals">${Object.entries(TOTALS).map(([name, one]) => html`<li key=${name}>${total(name)} ${section(name).size === 1 ? one : name}</li>`)}</ul>
    <${Freshness} isHere=${isHere} />
    ${connection.value.state === "locked" ? null : status?.dashboard?.writes === false && !token.value
      ? html`<span class="quiet" title="The server takes no orders: no token is set (dashboard.token_file)">Read only</span>`
      : token.value
      ? html`<button type="button" class="button is-quiet" onClick=${() => { forget(); say("token forgotten"); }}>Forget token</button>`
      : html`<button type="button" class="button is-quiet" title="Changes need a token" onClick=${unlock}>Enter token</button>`}
  </header>`;
}

const MISSED = {switches: (node) => node.connected === false, links: isMissing};

/** How many things of a kind there are, and of how many that are expected. */
function total(name) {
  const all = section(name);
  const missing = MISSED[name] ? [...all.values()].filter(MISSED[name]).length : 0;
  return missing ? html`<b class="is-warning">${count(all.size - missing)}</b> of ${count(all.size)}` : html`<b>${count(all.size)}</b>`;
}

function AlarmCounts() {
  const counts = alarmCounts.value;
  if (!counts.length) return null;
  return html`<a class=${`alarm-counts is-${counts[0][0]}`} href="#/alarms">${counts.map(([severity, amount]) => `${count(amount)} ${severity}`).join(", ")}</a>`;
}

const notReady = ({not_ready_reason: reason}) => (reason ? `Not ready: ${reason}` : "Not ready");

/** How old the newest counters are. */
function Freshness({isHere}) {
  if (!isHere) return html`<span class="freshness"></span>`;
  const sampled = sampled_s.value;
  if (sampled == null) return html`<span class="freshness">${isNarrow.value ? "No counters" : "Live, no counters"}</span>`;
  const isOld = ageOf(sampled) > OLD_S;
  return html`<span class=${isOld ? "freshness is-old" : "freshness"} title="Age of the newest counters">${isOld ? "▲ " : ""}${isNarrow.value ? "" : "Counters "}<${Age} at_s=${sampled} /></span>`;
}

function Away() {
  const {state, since_ms, reason, retry_ms} = connection.value;
  const status = section("status").get("status");
  const [shownFor, setShownFor] = useState(null);
  const isControllerAway = state === "live" && status?.connected === false;
  const isAway = state === "away" || isControllerAway;
  useEffect(() => {
    if (isAway) setShownFor(Date.now());
    else if (shownFor) {
      say("the controller is back");
      setShownFor(null);
    }
  }, [isAway]);
  if (!isAway) return null;
  const what = isControllerAway
    ? `The controller is away since ${time((shownFor ?? Date.now()) / 1000)} (${status.disconnected_reason ?? "it does not answer"}).`
    : `No connection since ${time(since_ms / 1000)}: ${reason}. Trying again every ${span(Math.max(1, retry_ms / 1000))}.`;
  return html`<div class="away" role="alert"><b aria-hidden="true">◆</b> ${what} What is shown is as it was then.</div>`;
}

/** Say what is critical to those who do not see it come. */
function Critical() {
  const known = useRef(null);
  const raised = [...section("events").values()].filter((event) => event.severity === "critical" && event.state === "raised");
  useEffect(() => {
    const newest = raised.reduce((latest, event) => (event.time_s > (latest?.time_s ?? 0) ? event : latest), null);
    if (known.current && newest && newest.time_s > known.current.time_s) say(`critical: ${newest.text}`);
    if (connection.value.state === "live") known.current = newest ?? {time_s: 0};
  }, [raised.length, connection.value.state]);
  return null;
}

const amountOf = (view) => (view === "members" ? parties.value.filter(isMember).length : COUNTED.includes(view) ? section(view).size : null);

function Navigation({view}) {
  useEffect(() => document.querySelector(".views [aria-current]")?.scrollIntoView({block: "nearest", inline: "nearest"}), [view]);
  return html`<nav class="views" aria-label="Views"><ul>${VIEWS.filter((name) => name === view || ((name !== "cluster" || isClustered()) && (name !== "maintenance" || isMaintained()) && (name !== "candidates" || isSearched()) && (name !== "tables" || hasTables()) && (name !== "runs" || hasRuns() || hasWorkflows()))).map((name) => {
    const amount = amountOf(name);
    const isOpen = (name === "alarms" || name === "anomalies") && amount > 0;
    return html`<li key=${name}><a href=${viewHash(name)} aria-current=${name === view ? "page" : null}>${NAMES[name]}${amount == null ? null : html`<span class=${isOpen ? "amount is-open" : "amount"}>${count(amount)}</span>`}</a></li>`;
  })}</ul></nav>`;
}

const amountOfAll = (rows) => count(rows.length);

function ListPage({view}) {
  const list = LISTS[view];
  const current = route.value;
  const chosen = selected(current);
  const rows = list.rows();
  const shown = found(rows, current.search);
  const idOf = list.idOf ?? ((row) => row.id);
  const isChosen = chosen?.kind === list.kind;
  const mark = isChosen ? (list.idOf ? shown.find((row) => list.idOf(row) === chosen.id)?.id : chosen.id) : null;
  const [picked, setPicked] = useState(null);
  return html`<section class="page" aria-label=${list.title}>
    <div class="bar"><h1>${list.title}</h1>
      <input type="search" placeholder="Search" aria-label=${`Search ${list.title.toLowerCase()}`} value=${current.search} onInput=${(event) => go({search: event.target.value}, {replace: true})} />
      <p class="quiet" role="status">${current.search ? `${count(shown.length)} of ${count(rows.length)}` : (list.amount ?? amountOfAll)(rows)}</p>
      ${view === "allocations" && html`<${AllocationForm} />`}</div>
    <${List} name=${view} label=${list.title} rows=${shown} columns=${list.columns} sort=${current.sort || list.sort} onSort=${(sort) => go({sort}, {replace: true})}
      selected=${isChosen && list.idOf && picked ? picked : mark} onSelect=${(row) => {
        setPicked(row.id);
        go(selection(current, list.kind, idOf(row)));
      }}
      empty=${current.search ? `Nothing has "${current.search}".` : list.empty} />
  </section>`;
}
