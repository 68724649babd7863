// Workflows at what they are about: which there are, what one would do, and what became of each of its items.

import {html, signal, useEffect, useRef, useState} from "../vendor/preact.js";
import {isTokenRefused, writes} from "./actions.js";
import {say} from "./announce.js";
import {order, read, token} from "./api.js";
import {useAsked} from "./asked.js";
import {count, counted, text} from "./format.js";
import {called, label, placeLabel} from "./ids.js";
import {TokenField} from "./locked.js";
import {State, Time} from "./parts.js";
import {section} from "./store.js";

const LOOK_MS = 500;
const OFFER_MS = 5000;
const LIST_MS = 3000;
const FEW = 8;
const GOING = ["running", "stopping"];
const STATES = {
  running: ["good", "runs"], stopping: ["warning", "stops after this item"], done: ["good", "done"],
  failed: ["critical", "failed"], stopped: ["warning", "stopped before its end"],
};
const ITEM_STATES = {waiting: ["quiet", "waits"], begun: ["warning", "is done now"], done: ["good", "done"], failed: ["critical", "failed"]};

/** What the dialog is about: a workflow that is to be begun (`name`, `kind`, `id`), or a run (`run`). */
const shown = signal(null);

/** Whether the server offers workflows. */
export const hasWorkflows = () => section("status").get("status")?.dashboard?.workflows === true;

const query = (kind, id) => (kind ? `?at=${kind}/${encodeURIComponent(id)}` : "");

/** The workflows that are about a thing; `state` is what they may depend on, so that they are asked for anew with it. */
export const Workflows = (props) => (hasWorkflows() ? html`<${Offered} key=${`${props.kind} ${props.id}`} ...${props} />` : null);

function Offered({kind, id, state}) {
  const [answer, problem] = useAsked(`/workflows${query(kind, id)}`, OFFER_MS, state);
  const all = (answer?.workflows ?? []).toSorted((one, other) => categoryOf(one).localeCompare(categoryOf(other)) || one.name.localeCompare(other.name));
  const categories = [...new Set(all.map(categoryOf))];
  return html`<section class="part" aria-label="Workflows"><h3>Workflows <span class="amount">${answer ? all.length : ""}</span></h3>
    ${answer && !all.length && html`<p class="quiet">None is about this ${kind}.</p>`}
    ${categories.map((category) => html`<div key=${category}>${category && html`<p class="row-more">${category}</p>`}
      <ul class="rows">${all.filter((one) => categoryOf(one) === category).map((one) => html`<li key=${one.name} class="workflow">
        <span>${one.about || one.name} <span class="row-more">${one.at ? counted(one.steps.length, "step") : `${counted(one.steps.length, "step")}, for all it finds`}</span></span>
        <button type="button" class="button" aria-label=${`Begin ${one.name}`} onClick=${() => (shown.value = {name: one.name, kind: one.at ? kind : null, id: one.at ? id : null})}>Begin…</button></li>`)}</ul></div>`)}
    ${answer?.faults.length > 0 && html`<p class="note is-warning">${counted(answer.faults.length, "file")} cannot be used: ${answer.faults.map((fault) => fault.text).join("; ")}</p>`}
    ${problem && problem.status !== 404 && html`<p class="note is-bad">${problem.message}</p>`}
  </section>`;
}

const categoryOf = (workflow) => workflow.categories.join(", ");

/** Runs of workflows, the newest first, each with what became of its items. */
export function WorkflowRuns() {
  const [answer, problem] = useAsked("/workflow-runs", LIST_MS, null);
  const runs = answer?.runs ?? [];
  if (!hasWorkflows() && !runs.length) return null;
  return html`<section aria-label="Workflows"><h2>Workflows</h2>
    ${problem && html`<p class="note is-bad">${problem.message}</p>`}
    ${answer && !runs.length && html`<p class="quiet">None was begun yet: switches, ports, groups and hosts have those that are about them.</p>`}
    ${runs.length > 0 && html`<div class="scrolled" tabindex="0" role="group" aria-label="Runs of workflows"><table class="small members"><caption>Runs of workflows</caption>
      <thead><tr><th scope="col">Workflow</th><th scope="col">At</th><th scope="col">State</th><th scope="col">Items</th><th scope="col">Begun</th><th scope="col">By</th><th scope="col"><span class="unseen">Results</span></th></tr></thead>
      <tbody>${runs.map((run) => html`<tr key=${run.id}><th scope="row">${run.workflow}</th><td>${text(run.at)}</td><td><${RunState} of=${run} /></td>
        <td>${count(run.done)} of ${count(run.items)}</td><td><${Time} at_s=${run.begun_s} /></td><td>${text(run.by)}</td>
        <td><button type="button" class="button is-quiet" aria-label=${`Results of run ${run.id}`} onClick=${() => (shown.value = {run: run.id})}>Results</button></td></tr>`)}</tbody></table></div>`}
  </section>`;
}

const RunState = ({of}) => html`<${State} tone=${STATES[of.state][0]}>${STATES[of.state][1]}<//>`;

const itemName = (item) => {
  if (item.group) return item.group;
  if (item.mac) return item.mac;
  if (item.dpid == null) return "";
  return item.port_no == null ? label(item.dpid) : placeLabel(item.dpid, item.port_no);
};

const few = (items, all) => items.slice(0, FEW).map(itemName).filter(Boolean).join(", ") + (all > FEW ? `, and ${count(all - FEW)} more` : "");

export function WorkflowDialog() {
  const what = shown.value;
  const dialog = useRef(null);
  useEffect(() => {
    if (what && !dialog.current.open) dialog.current.showModal();
  }, [what]);
  const close = () => dialog.current.close();
  return html`<dialog ref=${dialog} class="dialog is-wide" aria-labelledby="workflow-title" onClose=${() => (shown.value = null)}>
    ${what && (what.run ? html`<${Run} key=${what.run} id=${what.run} close=${close} />` : html`<${Plan} key=${what.name} what=${what} close=${close} />`)}
  </dialog>`;
}

/** Sends an order with the token that is typed or known; what was refused is kept. */
function useOrder() {
  const [typed, setTyped] = useState("");
  const [problem, setProblem] = useState(null);
  const [isBusy, setBusy] = useState(false);
  const send = async (method, path) => {
    const before = token.value;
    if (typed) token.value = typed;
    setBusy(true);
    try {
      const answer = await order(method, path);
      setProblem(null);
      return answer;
    } catch (error) {
      if (isTokenRefused(error)) token.value = typed ? before : "";
      setProblem(error);
      return null;
    } finally {
      setBusy(false);
    }
  };
  const needsToken = writes() && (!token.value || isTokenRefused(problem));
  const fields = html`${!writes() && html`<p class="note is-warning" role="alert">The server takes no orders: no token is set (<code>dashboard.token_file</code> in the policy file).</p>`}
    ${needsToken && html`<${TokenField} value=${typed} onType=${setTyped} />`}
    ${problem && html`<div class="note is-bad" role="alert"><b>Refused${problem.status ? ` (${problem.status})` : ""}.</b> ${problem.message}</div>`}`;
  return {send, fields, may: writes() && !isBusy && (!needsToken || Boolean(typed))};
}

function Plan({what, close}) {
  const [plan, setPlan] = useState(null);
  const [problem, setProblem] = useState(null);
  const {send, fields, may} = useOrder();
  useEffect(() => {
    read(`/workflows/${what.name}/plan${query(what.kind, what.id)}`).then(setPlan, setProblem);
  }, []);
  const onSubmit = async (event) => {
    event.preventDefault();
    const digest = plan.digest ? `${what.kind ? "&" : "?"}digest=${plan.digest}` : "";
    const run = await send("POST", `/workflows/${what.name}/runs${query(what.kind, what.id)}${digest}`);
    if (!run) return;
    say(`workflow ${what.name}: begun`);
    shown.value = {run: run.id};
  };
  return html`<form onSubmit=${onSubmit}>
    <h2 id="workflow-title">Begin ${what.name}${what.kind ? ` at ${called(what.kind, what.id)}` : ""}</h2>
    ${plan?.about && html`<p>${plan.about}</p>`}
    ${!what.kind && html`<p class="quiet">It is done for all that its queries find.</p>`}
    ${!plan && !problem && html`<p class="note" role="status">Asking the controller…</p>`}
    ${problem && html`<p class="note is-bad" role="alert">${problem.message}</p>`}
    ${plan && html`<div class="scrolled" tabindex="0" role="group" aria-label="Steps"><table class="small members"><caption>What would be done, in order</caption>
      <thead><tr><th scope="col">Step</th><th scope="col">Items</th><th scope="col">Do</th><th scope="col">For</th></tr></thead>
      <tbody>${plan.steps.map((step) => html`<tr key=${step.name}><th scope="row">${step.name}</th><td>${count(step.items)}</td><td><code>${step.do}</code></td>
        <td class="may-wrap">${few(step.of, step.items) || text(step.for_each || null)}</td></tr>`)}</tbody></table></div>
      ${plan.refused && html`<div class="note is-bad" role="alert"><b>It would be refused.</b> ${plan.refused}</div>`}`}
    ${fields}
    <div class="buttons"><button type="button" class="button" onClick=${close}>Cancel</button>
      <button type="submit" class="button is-primary" disabled=${!plan || Boolean(plan.refused) || !may}>Begin</button></div>
  </form>`;
}

function Run({id, close}) {
  const [again, setAgain] = useState(0);
  const [run, problem] = useAsked(`/workflow-runs/${id}`, LOOK_MS, again);
  const {send, fields, may} = useOrder();
  const isGoing = run && GOING.includes(run.state);
  const told = useRef(null);
  useEffect(() => {
    if (run && told.current !== run.state) {
      if (told.current) say(`workflow ${run.workflow}: ${STATES[run.state][1]}`);
      told.current = run.state;
    }
  }, [run?.state]);
  const act = async (method, path) => {
    if (await send(method, path)) setAgain(again + 1);
  };
  return html`<form onSubmit=${(event) => event.preventDefault()}>
    <h2 id="workflow-title">${run ? `Run ${run.id} of ${run.workflow}` : `Run ${id}`}</h2>
    ${problem && html`<p class="note is-bad" role="alert">${problem.message}</p>`}
    ${run && html`<p role="status"><${RunState} of=${run} />: ${count(run.done)} of ${counted(run.items, "item")}</p>
      <progress aria-label="Items that are done" max=${run.items} value=${run.done}></progress>
      ${run.fault && html`<p class="note is-bad" role="alert">${run.fault}</p>`}
      <div class="scrolled run-results" tabindex="0" role="group" aria-label="Results"><table class="small members"><caption>What became of each item</caption>
        <thead><tr><th scope="col">Step</th><th scope="col">Item</th><th scope="col">State</th><th scope="col">What was told</th></tr></thead>
        <tbody>${run.results.map((each, at) => html`<tr key=${at}><th scope="row">${each.step}</th><td>${text(itemName(each.item) || null)}</td>
          <td><${State} tone=${ITEM_STATES[each.state][0]}>${ITEM_STATES[each.state][1]}<//></td><td class="may-wrap">${each.text}</td></tr>`)}</tbody></table></div>
      <p class="quiet may-wrap">Results: <code>${run.path}</code></p>
      ${run.state !== "done" && fields}`}
    <div class="buttons"><button type="button" class="button" onClick=${close}>Close</button>
      ${isGoing && html`<button type="button" class="button is-danger" disabled=${!may || run.state === "stopping"} onClick=${() => act("DELETE", `/workflow-runs/${id}`)}>Stop</button>`}
      ${run && !isGoing && run.state !== "done" && html`<button type="button" class="button is-primary" disabled=${!may} onClick=${() => act("POST", `/workflow-runs/${id}/resume`)}>Go on</button>`}</div>
  </form>`;
}
