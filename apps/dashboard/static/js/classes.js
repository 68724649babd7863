// Service classes: how far each is from its goal, which groups have further trees and why, and what ports' queues do.

import {html} from "../vendor/preact.js";
import {useAsked} from "./asked.js";
import {bps, count, counted, number, pct, pps, text} from "./format.js";
import {label} from "./ids.js";
import {Place, Ref, State, Time} from "./parts.js";
import {viewHash} from "./route.js";
import {classRows, section} from "./store.js";

const POLL_MS = 2000;
const SHOWN = 50;
const MOVES = ["alias-moved", "alias-returned", "alias-pool-empty", "stale-version"];
const QUEUES_PATH = `/queues?sort=-index&limit=${SHOWN}`;

const GOALS = {
  loss_pct: (value) => `loss ${pct(value)}`,
  delay_ms: (value) => `delay ${number(value)} ms`,
  velocity_pct: (value) => `velocity ${pct(value)}`,
  rate_bps: (value) => `rate ${bps(value)}`,
};
const goalOf = ({goal}) => Object.entries(goal ?? {}).map(([kind, value]) => (GOALS[kind] ?? text)(value)).join(", ") || "none";

/** An index, with whether the goal is met. */
const Index = ({value}) => value == null ? "–" : html`<${State} tone=${value > 1 ? "critical" : "good"}>${number(value)} ${value > 1 ? "missed" : "met"}<//>`;

const isDead = (dpid) => dpid != null && section("switches").get(String(dpid))?.connected === false;
const Where = ({dpid, port_no}) => dpid == null ? "–" : html`<${Place} dpid=${dpid} port_no=${port_no} />${isDead(dpid) && html` <${State} tone="critical">not connected, as told last<//>`}`;

const newestOf = (events) => events.toSorted((a, b) => b.time_s - a.time_s);

export function Classes() {
  const classes = classRows.value;
  const groups = [...section("groups").values()].filter((group) => group.aliases?.length);
  const moves = newestOf([...section("events").values()].filter((event) => MOVES.includes(event.kind)));
  const dead = [...section("switches").values()].filter((node) => node.connected === false);
  const isStale = (section("policy").get("policy")?.errors ?? []).length > 0;
  return html`<section class="page" aria-label="Service classes">
    <div class="bar"><h1>Service classes</h1><p class="quiet">Who gets further trees, and who waits.</p></div>
    <div class="policy">
      ${isStale && html`<p class="note is-bad" role="alert">The newer policy file has faults: classes and goals are those of <a href=${viewHash("policy")}>the policy before it</a>.</p>`}
      ${dead.length > 0 && html`<p class="note is-warning" role="alert">${counted(dead.length, "switch").replace(/switchs$/, "switches")} ${dead.length === 1 ? "is" : "are"} not connected (${dead.map((node) => label(node.dpid)).join(", ")}): of ${dead.length === 1 ? "its" : "their"} ports all is as it was told last.</p>`}
      ${classes.length > 0 ? html`<div class="scrolled" tabindex="0"><table class="small members"><caption>Classes</caption>
        <thead><tr><th scope="col">Class</th><th scope="col">Importance</th><th scope="col">Goal</th><th scope="col">Index</th><th scope="col">Farthest at</th><th scope="col">Lacks</th><th scope="col">Queue</th><th scope="col">Competes with</th><th scope="col">Groups</th><th scope="col">Senders</th><th scope="col">Rate</th></tr></thead>
        <tbody>${classes.map((one) => html`<${ClassRow} key=${one.name} one=${one} />`)}</tbody></table></div>` : html`<p class="quiet">No sender is in a class, and no class has a queue (<code>classes</code> of the policy).</p>`}
      ${groups.length > 0 ? html`<div class="scrolled" tabindex="0"><table class="small members"><caption>Groups with further trees</caption>
        <thead><tr><th scope="col">Group</th><th scope="col">Trees</th><th scope="col">State</th><th scope="col">Senders</th><th scope="col">Rate</th><th scope="col">Packets that wait</th><th scope="col">Fullest link</th><th scope="col">Why it has them</th><th scope="col">Last move</th></tr></thead>
        <tbody>${groups.map((group) => html`<${AliasRow} key=${group.id} group=${group} last=${moves.find((event) => event.group === group.group)} />`)}</tbody></table></div>` : html`<p class="quiet">No group has a further tree (<code>aliases</code> of the policy).</p>`}
      ${moves.length > 0 && html`<div class="scrolled" tabindex="0"><table class="small members"><caption>Last moves of trees</caption>
        <thead><tr><th scope="col">Time</th><th scope="col">What and why</th></tr></thead>
        <tbody>${moves.slice(0, SHOWN).map((event) => html`<tr key=${event.id}><td><${Time} at_s=${event.time_s} /></td><td class="may-wrap">${event.text}</td></tr>`)}</tbody></table></div>`}
      <${Queues} />
    </div>
  </section>`;
}

function ClassRow({one}) {
  return html`<tr><th scope="row">${one.service_class ?? "in no class"}</th><td>${text(one.importance)}</td><td>${goalOf(one)}</td>
    <td><${Index} value=${one.index} /></td><td><${Where} ...${one} /></td><td>${one.missing_bps ? bps(one.missing_bps) : "–"}</td><td>${text(one.queue_id)}</td>
    <td>${one.competes_with?.join(", ") || "–"}</td><td>${count(one.groups)}</td><td>${count(one.senders)}</td><td>${bps(one.rate_bps)}</td></tr>`;
}

function AliasRow({group, last}) {
  const own = (group.senders ?? []).filter((sender) => sender.admitted && !sender.alias).length;
  const trees = [group, ...group.aliases];
  const taking = trees.some((tree) => tree.flow_parts)
    ? `${trees.map((tree) => tree.flow_parts ?? 0).join(" + ")} parts of flows` : [own, ...group.aliases.map((alias) => alias.senders)].join(" + ");
  const states = [...new Set(group.aliases.map((alias) => alias.state))];
  return html`<tr><th scope="row"><${Ref} kind="group" id=${group.id}>${group.group}<//></th><td>${1 + group.aliases.length}</td>
    <td><${State} tone=${states.every((state) => state === "bound") ? "good" : "warning"}>${states.join(", ")}<//></td>
    <td>${taking}</td><td>${bps(group.rate_bps)}</td>
    <td>${number(group.queue_packets)}</td><td>${pct(group.utilisation_pct)}</td>
    <td class="may-wrap">${group.aliases.map((alias) => html`<div key=${alias.number}>Alias ${alias.number}: ${text(alias.reason)}</div>`)}</td><td class="may-wrap">${last ? html`<${Time} at_s=${last.time_s} /> ${last.text}` : "–"}</td></tr>`;
}

/** Queues are many, and change all the time: they are asked for while they are looked at, the worst first. */
function Queues() {
  const [answer, problem] = useAsked(QUEUES_PATH, POLL_MS);
  if (problem && !answer) return html`<p class="note is-bad" role="alert">Queues are not known: ${problem.message}</p>`;
  if (!answer) return null;
  if (!answer.total) return html`<p class="quiet">No port has queues (<code>queues</code> of the policy, and the app <code>queues</code>).</p>`;
  return html`<div class="scrolled" tabindex="0">${problem && html`<p class="note is-bad" role="alert">Queues are as they were told last: ${problem.message}</p>`}
    <table class="small members"><caption>Queues, those farthest from a goal first${answer.total > answer.items.length ? `: ${count(answer.items.length)} of ${count(answer.total)}` : ""}</caption>
    <thead><tr><th scope="col">Port</th><th scope="col">Queue</th><th scope="col">Classes</th><th scope="col">Sure of</th><th scope="col">Sends</th><th scope="col">Drops</th><th scope="col">Index</th><th scope="col">Lacks</th></tr></thead>
    <tbody>${answer.items.map((queue) => html`<tr key=${queue.id}><th scope="row"><${Where} ...${queue} /></th><td>${text(queue.queue_id)}</td><td>${queue.classes?.join(", ") || "–"}</td>
      <td>${bps(queue.min_rate_bps)}</td><td>${bps(queue.tx_bps)}</td><td>${pps(queue.dropped_pps)}</td><td><${Index} value=${queue.index} /></td><td>${queue.missing_bps ? bps(queue.missing_bps) : "–"}</td></tr>`)}</tbody></table></div>`;
}
