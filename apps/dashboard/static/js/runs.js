// What operators have the controller go through: a profile of it, and a storm against it, as they go on.

import {html} from "../vendor/preact.js";
import {now_s} from "./clock.js";
import {count, counted, number, span, text} from "./format.js";
import {Facts, State, Time} from "./parts.js";
import {section} from "./store.js";
import {isCurrent} from "./stream.js";
import {WorkflowRuns} from "./workflows.js";

/** Whether there was a run. */
export const hasRuns = () => section("runs").size > 0;

export function Runs() {
  const profile = section("runs").get("profile");
  const storm = section("runs").get("storm");
  return html`<section class="page" aria-label="Runs">
    <div class="bar"><h1>Runs</h1><p class="quiet">A profile of the controller, a storm against it, and workflows.</p></div>
    <div class="policy">
      ${!profile && !storm && html`<p class="quiet">There was none yet: <code>vsrt profile start</code> has the controller note what its operations take, <code>vsrt storm</code> plays switches against it.</p>`}
      ${storm && html`<${Storm} of=${storm} />`}
      ${profile && html`<${Profile} of=${profile} />`}
      <${WorkflowRuns} />
    </div>
  </section>`;
}

const TONES = {running: "good", playing: "good", ending: "warning", lost: "warning"};
const WORDS = {lost: "lost: nobody tells of it any more"};

/** The state of a run, which is not known while the controller is away. */
const Stated = ({state, going}) => (isCurrent.value || !going
  ? html`<${State} tone=${TONES[state] ?? "quiet"}>${WORDS[state] ?? state}<//>`
  : html`<${State} tone="warning">not heard of: the controller is away<//>`);

const ms = (value) => (value == null ? text(null) : `${number(value)} ms`);

function Profile({of}) {
  const going = of.state !== "ended";
  const past_s = Math.min(of.for_s, Math.max(0, now_s.value - of.begun_s));
  return html`<section aria-label="Profile">
    <h2>Profile ${of.name}</h2>
    ${going && isCurrent.value && html`<progress aria-label="Time of the profile" max=${of.for_s} value=${past_s}></progress>`}
    <${Facts} of=${[
      ["State", html`<${Stated} state=${of.state} going=${going} />`],
      ["Begun", html`<${Time} at_s=${of.begun_s} />, for ${span(of.for_s)} at most`],
      ["By", text(of.by)],
      ["Ended", of.ended],
      ["Fault", of.fault && html`<${State} tone="critical">${of.fault}<//>`],
      ["Operations", `${count(of.spans)} ended, ${count(of.under_way)} under way${of.missed ? `, ${count(of.missed)} found no room` : ""}`],
      ["File", of.path],
    ]} />
    ${of.operations.length > 0 && html`<div class="scrolled" tabindex="0" role="group" aria-label="Operations"><table class="small members"><caption>Operations that are done, and how long they took</caption>
      <thead><tr><th scope="col">Operation</th><th scope="col">Done</th><th scope="col">Mean</th><th scope="col">Median</th><th scope="col">p95</th><th scope="col">p99</th><th scope="col">Longest</th><th scope="col">Otherwise</th></tr></thead>
      <tbody>${of.operations.map((each) => html`<tr key=${each.operation}><th scope="row">${each.operation}</th><td>${count(each.count)}</td>
        ${["mean_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms"].map((name) => html`<td key=${name}>${ms(each[name])}</td>`)}<td>${count(each.others)}</td></tr>`)}</tbody></table></div>`}
  </section>`;
}

function Storm({of}) {
  const going = of.state === "playing";
  return html`<section aria-label="Storm">
    <h2>Storm of ${counted(of.joins, "join")}</h2>
    ${going && isCurrent.value && of.total > 0 && html`<progress aria-label=${of.stage} max=${of.total} value=${of.done}></progress>`}
    <${Facts} of=${[
      ["State", html`<${Stated} state=${of.state} going=${going} />`],
      ["Stage", of.stage && `${of.stage}: ${count(of.done)} of ${count(of.total)}`],
      ["Begun", html`<${Time} at_s=${of.begun_s} />`],
      ["By", text(of.by)],
      ["Shape", `${of.shape}, standard deviation ${number(of.sigma_s)} s, ${count(of.switches)} switches, at ${of.target}`],
      ["Goal", `99 % within ${ms(of.slo_ms)}`],
      ["Fault", of.fault && html`<${State} tone="critical">${of.fault}<//>`],
    ]} />
    ${of.storms.length > 0 && html`<div class="scrolled" tabindex="0" role="group" aria-label="Storms"><table class="small members"><caption>Storms that were played</caption>
      <thead><tr><th scope="col">Joins</th><th scope="col">Peak</th><th scope="col">Median</th><th scope="col">p95</th><th scope="col">p99</th><th scope="col">Not served</th><th scope="col">Goal</th></tr></thead>
      <tbody>${of.storms.map((each, at) => html`<tr key=${at}><th scope="row">${count(each.joins)}</th><td>${each.peak_per_s == null ? text(null) : `${number(each.peak_per_s)}/s`}</td>
        ${["p50_ms", "p95_ms", "p99_ms"].map((name) => html`<td key=${name}>${ms(each[name])}</td>`)}<td>${count(each.unserved)}</td><td><${State} tone=${each.keeps_goal ? "good" : "warning"}>${each.keeps_goal ? "kept" : "missed"}<//></td></tr>`)}</tbody></table></div>`}
  </section>`;
}
