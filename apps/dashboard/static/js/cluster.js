// Controllers that share the fabric and monitors that share its switches: who leads, who polls what, what is wrong.

import {html} from "../vendor/preact.js";
import {Order, drainMonitor, handOver, undrainMonitor} from "./actions.js";
import {count, counted, pct, text} from "./format.js";
import {Facts, State, Time} from "./parts.js";
import {ScalingAdvice} from "./scaling.js";
import {section} from "./store.js";

/** Whether there is anything to tell: a controller that is alone has no members, and no monitors that share. */
export const isClustered = () => section("cluster").size + section("monitors").size > 0;

const since = (what, at_s, isLeast) => html`${what} ${isLeast ? "at least since" : "since"} <${Time} at_s=${at_s} />`;

/** What a member is about; who is not asked is as it was when the store last answered. */
function roleOf(member, isSilent) {
  if (member.leads) return ["good", member.leads_since_s == null ? "leads" : since("leads", member.leads_since_s, member.leads_at_least)];
  if (member.is_there) return ["quiet", isSilent && !member.answers ? "followed when the store last answered" : "follows"];
  return ["critical", member.gone_s == null ? "gone" : since("gone", member.gone_s)];
}

function monitorRole(monitor) {
  if (!monitor.is_there) return ["critical", since("gone", monitor.gone_s)];
  const words = [monitor.divides && "divides", monitor.drained ? "drained" : "polls"].filter(Boolean).join(", ");
  return [monitor.drained ? "quiet" : "good", words];
}

const COURSES = {following: "follows", "taking-over": "takes over", leading: "leads", leaving: "begins anew"};

const switchesOf = (member) =>
  member.answers && member.course === "leading" ? `${count(member.switches_led)} of ${count(member.switches)} led` : count(member.switches);

export function Cluster() {
  const members = [...section("cluster").values()].toSorted((a, b) => a.member.localeCompare(b.member));
  const monitors = [...section("monitors").values()].toSorted((a, b) => a.monitor.localeCompare(b.monitor));
  const own = members.find((member) => member.answers);
  const leader = members.find((member) => member.leads);
  const problems = own?.problems ?? [];
  const isSilent = own?.store === "silent";
  return html`<section class="page" aria-label="Cluster">
    <div class="bar"><h1>Cluster</h1>
      ${own && html`<p class="quiet">as ${own.member} knows it, which ${COURSES[own.course] ?? text(own.course)}</p>`}</div>
    <div class="policy">
      ${problems.length > 0 && html`<div class=${isSilent || !leader ? "note is-bad" : "note is-warning"} role="alert"><b>What is wrong</b>
        <ul>${problems.map((problem) => html`<li key=${problem}>${problem}</li>`)}</ul></div>`}
      ${own && problems.length === 0 && html`<p class="note is-good">Nothing is wrong.</p>`}
      ${own && html`<${Facts} of=${[
        ["Leader", leader ? html`${leader.member}, in epoch ${leader.epoch}` : html`<${State} tone="critical">nobody<//>`],
        ["Store", isSilent ? html`<${State} tone="critical">${since("silent", own.store_silent_s)}<//>` : html`<${State} tone="good">answers<//>`],
        ["Log", own.log_lag_s > 0 ? `behind for ${own.log_lag_s.toFixed(1)} s` : "up to date"],
        ["Last take-over", own.take_over_s == null ? null : `${own.take_over_s.toFixed(3)} s`],
      ]} />`}
      ${members.length > 0 && html`<div class="scrolled" tabindex="0"><table class="small members"><caption>Controllers</caption>
        <thead><tr><th scope="col">Member</th><th scope="col">What it is about</th><th scope="col">Switches</th><th scope="col">Address</th><th scope="col"><span class="unseen">Orders</span></th></tr></thead>
        <tbody>${members.map((member) => html`<${Member} key=${member.id} member=${member} isSilent=${isSilent} canLead=${Boolean(own?.leads)} />`)}</tbody></table></div>`}
      ${monitors.length > 0 && html`<div class="scrolled" tabindex="0"><table class="small members"><caption>Monitors</caption>
        <thead><tr><th scope="col">Monitor</th><th scope="col">What it is about</th><th scope="col">Polls</th><th scope="col">Ports</th><th scope="col">Part of all</th><th scope="col">Metrics</th><th scope="col"><span class="unseen">Orders</span></th></tr></thead>
        <tbody>${monitors.map((monitor) => html`<${Monitor} key=${monitor.id} monitor=${monitor} />`)}</tbody></table></div>`}
      <${ScalingAdvice} />
      ${!isClustered() && html`<p class="quiet">This controller is alone: its policy file names no store (<code>cluster.engine</code>).</p>`}
    </div>
  </section>`;
}

function Member({member, isSilent, canLead}) {
  const [tone, words] = roleOf(member, isSilent);
  return html`<tr><th scope="row">${member.member}${member.answers ? " (this one)" : ""}</th>
    <td><${State} tone=${tone}>${words}<//></td><td>${switchesOf(member)}</td><td>${text(member.peer)}</td>
    <td>${canLead && member.is_there && !member.leads && html`<${Order} what=${handOver(member.member)} label="Hand over" danger />`}</td></tr>`;
}

function Monitor({monitor}) {
  const [tone, words] = monitorRole(monitor);
  const leaving = monitor.leaving ? html`<span class="quiet">, ${counted(monitor.leaving, "other")} until the next one does</span>` : null;
  return html`<tr><th scope="row">${monitor.monitor}</th><td><${State} tone=${tone}>${words}<//></td>
    <td>${monitor.is_there ? html`${count(monitor.switches)} of ${count(monitor.connected)} switches${leaving}` : "–"}</td>
    <td>${count(monitor.ports)}</td><td>${pct(monitor.load_pct)}</td><td>${text(monitor.metrics)}</td>
    <td>${monitor.is_there && (monitor.drained ? html`<${Order} what=${undrainMonitor(monitor.monitor)} label="Undrain" />` : html`<${Order} what=${drainMonitor(monitor.monitor)} label="Drain" danger />`)}</td></tr>`;
}
