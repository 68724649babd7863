// A campaign of rolling maintenance: how far it is, where each switch is and why, and orders to it.

import {html} from "../vendor/preact.js";
import {Order, abortMaintenance, pauseMaintenance, resumeMaintenance, skipMaintenance} from "./actions.js";
import {count, text} from "./format.js";
import {Facts, State} from "./parts.js";
import {section} from "./store.js";

/** Whether there was a campaign. */
export const isMaintained = () => section("maintenance").size > 0;

const TONES = {running: "good", done: "good", paused: "warning", aborting: "warning", halted: "critical", aborted: "critical"};
const STEPS = {
  waiting: ["quiet", "waits"], draining: ["warning", "is drained"], hook: ["warning", "is upgraded"], back: ["warning", "is waited for"],
  soaking: ["warning", "is in use and watched"], done: ["good", "done"], failed: ["critical", "failed"], skipped: ["quiet", "left out"],
};
const ORDER = ["failed", "draining", "hook", "back", "soaking", "waiting", "skipped", "done"];

const inOrder = (one, other) => ORDER.indexOf(one.step) - ORDER.indexOf(other.step) || one.dpid - other.dpid;

export function Maintenance() {
  const documents = section("maintenance");
  const campaign = documents.get("campaign");
  const switches = [...documents.values()].filter((document) => document.id !== "campaign").toSorted(inOrder);
  return html`<section class="page" aria-label="Maintenance">
    <div class="bar"><h1>Maintenance</h1>${campaign && html`<${Orders} state=${campaign.state} />`}</div>
    <div class="policy">
      ${!campaign && html`<p class="quiet">No switches were maintained yet: <code>vsrt maintain start</code> begins a campaign.</p>`}
      ${campaign && html`<progress aria-label="Switches that are done" max=${campaign.switches} value=${campaign.done}></progress>
        <${Facts} of=${[
          ["State", html`<${State} tone=${TONES[campaign.state]}>${campaign.state}<//>`],
          ["Done", `${count(campaign.done)} of ${count(campaign.switches)} switches, phase ${campaign.phase} of ${campaign.phases}`],
          ["In work", campaign.now?.length ? campaign.now.join(", ") : "none"],
          ["Waits for", campaign.waits_for || null],
        ]} />`}
      ${switches.length > 0 && html`<div class="scrolled" tabindex="0"><table class="small members"><caption>Switches</caption>
        <thead><tr><th scope="col">Switch</th><th scope="col">Group</th><th scope="col">Step</th><th scope="col">Why</th><th scope="col"><span class="unseen">Orders</span></th></tr></thead>
        <tbody>${switches.map((each) => html`<${Switch} key=${each.id} each=${each} isOver=${isOver(campaign)} />`)}</tbody></table></div>`}
    </div>
  </section>`;
}

const isOver = (campaign) => !campaign || campaign.state === "done" || campaign.state === "aborted";

function Orders({state}) {
  if (isOver({state})) return null;
  return html`${state === "running" && html`<${Order} what=${pauseMaintenance()} label="Pause" />`}
    ${(state === "paused" || state === "halted") && html`<${Order} what=${resumeMaintenance()} label="Resume" />`}
    ${state !== "aborting" && html`<${Order} what=${abortMaintenance()} label="Abort" danger />`}`;
}

function Switch({each, isOver}) {
  const [tone, words] = STEPS[each.step] ?? ["quiet", each.step];
  return html`<tr><th scope="row">${each.name}</th><td>${each.redundancy_group}</td><td><${State} tone=${tone}>${words}<//></td>
    <td>${text(each.reason || null)}</td>
    <td>${!isOver && (each.step === "waiting" || each.step === "failed") && html`<${Order} what=${skipMaintenance(each.dpid)} label="Leave out" danger />`}</td></tr>`;
}
