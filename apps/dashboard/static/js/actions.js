// Orders to the controller: what will be asked is shown, confirmed, and so is the answer.

import {html, signal, useEffect, useRef, useState} from "../vendor/preact.js";
import {say} from "./announce.js";
import {order, token} from "./api.js";
import {hexOf, label, placeLabel} from "./ids.js";
import {TokenField} from "./locked.js";
import {section} from "./store.js";

const asked = signal(null);

/** Ask the operator to confirm an order: `title`, `text`, `verb` of the button, `method`, `path`, `body`; `then` takes the answer, where it is shown elsewhere. */
export const ask = (what) => (asked.value = what);

export const unlock = () => ask({title: "Token for changes", isToken: true, verb: "Keep in memory",
  text: "It is kept in this page's memory only, and gone when the page is closed."});

/** A button that leads to an order. */
export function Order({what, label, danger}) {
  return html`<button type="button" class=${danger ? "button is-danger" : "button"} onClick=${() => ask(what)}>${label ?? what.title}</button>`;
}

const pathOf = (dpid) => `0x${hexOf(dpid)}`;

export const drain = (dpid) => ({
  title: `Drain switch ${label(dpid)}`, verb: "Drain", method: "PUT", path: `/switches/${pathOf(dpid)}/drain`,
  text: "Trees leave the switch where the rest of the fabric connects; members at its own ports stay served. New trees avoid it.",
});
export const undrain = (dpid) => ({
  title: `Undrain switch ${label(dpid)}`, verb: "Undrain", method: "DELETE", path: `/switches/${pathOf(dpid)}/drain`,
  text: "New trees may use the switch again.",
});
export const forget = (dpid) => ({
  title: `Forget switch ${label(dpid)}`, verb: "Forget", method: "DELETE", path: `/switches/${pathOf(dpid)}`,
  text: "The switch is gone and is not to come back: it is shown no longer, and the fabric counts as whole without it.",
});
export const forgetLink = (id) => ({
  title: `Forget link ${id}`, verb: "Forget", method: "DELETE", path: `/links/${id}`,
  text: "The link is missing and is not to come back: it is shown no longer, and the fabric counts as whole without it.",
});
export const acknowledge = (key) => ({
  title: "Acknowledge the alarm", verb: "Acknowledge", method: "PUT", path: `/alarms/${encodeURIComponent(key)}/acknowledgement`,
  text: "It says that somebody takes care. The alarm stays open until its cause is gone.",
});
export const rebuild = (group) => ({
  title: `Rebuild the tree of ${group}`, verb: "Rebuild", method: "POST", path: `/groups/${encodeURIComponent(group)}/rebuild`,
  text: "A new tree is built beside the old one, then the senders are moved over: nobody loses packets.",
});
export const reload = () => ({
  title: "Reload the policy file", verb: "Reload", method: "POST", path: "/policy/reload",
  text: "The file is read anew. With any fault in it the policy that runs stays.",
});
export const resetCounters = () => ({
  title: "Reset counters", verb: "Reset", method: "POST", path: "/counters/reset",
  text: "Counters of rules and of the controller start from 0. Switches' own counters stay.",
});
export const handOver = (member) => ({
  title: `Have ${member} lead`, verb: "Hand over", method: "POST", path: `/cluster/hand-over?to=${encodeURIComponent(member)}`,
  text: "The controller that leads writes what waits and gives the lead away. Packets flow on by what switches have.",
});
const monitorPath = (monitor) => `/monitors/${encodeURIComponent(monitor)}/drain`;
export const drainMonitor = (monitor) => ({
  title: `Drain monitor ${monitor}`, verb: "Drain", method: "PUT", path: monitorPath(monitor),
  text: "Its switches go to other monitors, without a poll left out, until it is undrained or started anew. It is refused where a switch would have no other.",
});
export const undrainMonitor = (monitor) => ({
  title: `Undrain monitor ${monitor}`, verb: "Undrain", method: "DELETE", path: monitorPath(monitor),
  text: "It has its part of the switches again.",
});
export const pauseMaintenance = () => ({
  title: "Pause the maintenance", verb: "Pause", method: "POST", path: "/maintenance/pause",
  text: "No other switch is begun. Those in work come to their end.",
});
export const resumeMaintenance = () => ({
  title: "Go on with the maintenance", verb: "Resume", method: "POST", path: "/maintenance/resume",
  text: "Switches that have failed are tried again where they failed, then others are begun. The command that upgrades them must still run.",
});
export const abortMaintenance = () => ({
  title: "Abort the maintenance", verb: "Abort", method: "POST", path: "/maintenance/abort",
  text: "What is drained and not yet being upgraded is used again. Switches that are being upgraded come to their end; those that have failed stay drained.",
});
export const skipMaintenance = (dpid) => ({
  title: `Leave switch ${label(dpid)} out`, verb: "Leave out", method: "POST", path: `/maintenance/skip?dpid=${pathOf(dpid)}`,
  text: "The maintenance goes on without it. It stays as it is: drained, where it has failed.",
});
const candidate = (verb, id) => ({verb: verb[0].toUpperCase() + verb.slice(1), method: "POST", path: `/candidates/${encodeURIComponent(id)}/${verb}`});
export const acceptCandidate = (id) => ({
  ...candidate("accept", id), title: `Accept candidate ${id}`,
  text: "It is written into a file of the controller's directory, whole. Nothing is put in force by that.",
});
export const ignoreCandidate = (id) => ({
  ...candidate("ignore", id), title: `Ignore candidate ${id}`,
  text: "It is shown last from now on, after each search, until it is considered again.",
});
export const considerCandidate = (id) => ({
  ...candidate("consider", id), title: `Consider candidate ${id}`,
  text: "What was said of it is taken back. A file that was written stays.",
});
export const staticMember = (group, node, port, isThere) => ({
  title: `${isThere ? "Remove" : "Add"} static member ${node}:${port}`, verb: isThere ? "Remove" : "Add",
  method: isThere ? "DELETE" : "PUT", path: `/groups/${encodeURIComponent(group)}/static-members/${encodeURIComponent(node)}/${encodeURIComponent(port)}`,
  text: isThere ? `The port gets ${group} no longer unless a host there asks for it.` : `The port gets ${group} whatever its hosts ask for.`,
});
export const routerPort = (dpid, port_no, family, isThere) => ({
  title: `${isThere ? "Remove" : "Add"} router port ${placeLabel(dpid, port_no)} for IPv${family}`, verb: isThere ? "Remove" : "Add",
  method: isThere ? "DELETE" : "PUT", path: `/routers/${pathOf(dpid)}/${port_no}/${family}`,
  text: isThere ? "The port no longer counts as one with a multicast router." : "A multicast router is taken to be at the port.",
});
export const allocate = (body) => ({
  title: `Request ${body.count} ports`, verb: "Request", method: "POST", path: "/allocations", body,
  text: "The allocator chooses the ports with the least usage and tells why.",
});

/** Whether the server takes orders at all. */
export const writes = () => section("status").get("status")?.dashboard?.writes !== false;

/** Whether another token is needed: nobody has this one, or who has it may read only. */
export const isTokenRefused = (problem) => problem?.status === 401 || problem?.document?.reason === "viewer";

export function OrderDialog() {
  const what = asked.value;
  const dialog = useRef(null);
  const [typed, setTyped] = useState("");
  const [state, setState] = useState({});
  useEffect(() => {
    if (what && !dialog.current.open) {
      setTyped("");
      setState({});
      dialog.current.showModal();
    }
  }, [what]);
  const close = () => dialog.current.close();
  const onSubmit = async (event) => {
    event.preventDefault();
    const before = token.value;
    if (typed) token.value = typed;
    if (what.isToken) {
      if (typed) say("token kept");
      close();
      return;
    }
    setState({isBusy: true});
    try {
      const answer = await order(what.method, what.path, what.body);
      say(`${what.title}: done`);
      if (what.then) {
        what.then(answer);
        close();
      } else setState({answer: answer ?? {}});
    } catch (error) {
      if (isTokenRefused(error)) token.value = typed ? before : "";
      setState({problem: error});
    }
  };
  const needsToken = what?.isToken || (writes() && (!token.value || isTokenRefused(state.problem)) && !state.answer);
  return html`<dialog ref=${dialog} class="dialog" aria-labelledby="order-title" onClose=${() => (asked.value = null)}>
    ${what && html`<form onSubmit=${onSubmit}>
      <h2 id="order-title">${what.title}</h2>
      <p>${what.text}</p>
      ${!what.isToken && html`<p class="request"><code>${what.method} /api/v1${what.path}</code></p>`}
      ${what.body && html`<pre class="request">${JSON.stringify(what.body, null, 1)}</pre>`}
      ${!writes() && html`<p class="note is-warning" role="alert">The server takes no orders: no token is set (<code>dashboard.token_file</code> in the policy file).</p>`}
      ${needsToken && html`<${TokenField} value=${typed} onType=${setTyped} />`}
      <div role="status">
        ${state.isBusy && html`<p class="note">Asking the controller…</p>`}
        ${state.answer && html`<div class="note is-good"><b>Done.</b> The controller answered:<pre>${JSON.stringify(state.answer, null, 1)}</pre></div>`}
        ${state.problem && html`<div class="note is-bad"><b>Refused${state.problem.status ? ` (${state.problem.status})` : ""}.</b> ${state.problem.message}</div>`}
      </div>
      <div class="buttons">
        <button type="button" class="button" onClick=${close}>${state.answer ? "Close" : "Cancel"}</button>
        ${!state.answer && html`<button type="submit" class="button is-primary" disabled=${state.isBusy || (!what.isToken && !writes()) || (needsToken && !typed)}>${what.verb}</button>`}
      </div>
    </form>`}
  </dialog>`;
}
