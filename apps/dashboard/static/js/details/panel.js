// The panel beside the view: what is selected.

import {html, useEffect, useRef} from "../../vendor/preact.js";
import {allocationTone} from "../columns.js";
import {number, text, words} from "../format.js";
import {called} from "../ids.js";
import {Facts, Ref, State, Time, severityTone} from "../parts.js";
import {go, hashOf, route, selected} from "../route.js";
import {section} from "../store.js";
import {Alarm, ClearedAlarm} from "./alarm.js";
import {Gone, Group, Host, Link, PortDetails, Switch} from "./things.js";

const PortRef = ({dpid, port_no}) =>
  port_no == null ? html`<${Ref} kind="switch" id=${dpid} />` : html`<${Ref} kind="port" id=${`${dpid}:${port_no}`} />`;

function Event({id}) {
  const event = section("events").get(id);
  if (!event) return html`<${Gone} what="This event" />`;
  return html`<p class="lead">${text(event.text)}</p><${Facts} of=${[
    ["Severity", html`<${State} tone=${severityTone(event.severity)}>${text(event.severity)}<//>`],
    ["Time", html`<${Time} at_s=${event.time_s} />`],
    ["From", event.source],
    ["What", words(event.kind)],
    ["State", event.state],
    ["At", event.dpid == null ? null : html`<${PortRef} ...${event} />`],
    ["Group", event.group && html`<${Ref} kind="group" id=${event.group} />`],
  ]} />`;
}

function Anomaly({id}) {
  const anomaly = section("anomalies").get(id);
  if (!anomaly) return html`<${Gone} what="This anomaly" />`;
  const isPort = section("ports").has(String(anomaly.member));
  return html`<p class="lead">${text(anomaly.text)}</p><${Facts} of=${[
    ["Member", isPort ? html`<${Ref} kind="port" id=${anomaly.member} />` : anomaly.dpid == null ? plain(anomaly.member) : html`<${PortRef} ...${anomaly} />`],
    ["Peers", anomaly.peer_group],
    ["Metric", anomaly.metric && words(anomaly.metric)],
    ["Score", anomaly.score == null ? null : `${number(anomaly.score)} (1 is the threshold)`],
    ["Verdict", anomaly.verdict],
    ["Since", html`<${Time} at_s=${anomaly.since_s} />`],
  ]} />`;
}

const plain = (value) => (value !== null && typeof value === "object" ? JSON.stringify(value) : String(value));

function Allocation({id}) {
  const decision = section("allocations").get(id);
  if (!decision) return html`<${Gone} what="This decision" />`;
  const [tone, word] = allocationTone(decision);
  return html`<${Facts} of=${[
      ["Result", html`<${State} tone=${tone}>${word}<//>`],
      ["Time", html`<${Time} at_s=${decision.time_s} />`],
      ["Why not", decision.error && plain(decision.error)],
    ]} />
    <section class="part"><h3>Steps <span class="amount">${decision.steps?.length ?? 0}</span></h3>
      <ol class="steps">${(decision.steps ?? []).map((step, at) => html`<li key=${at}>
        <b>${section("ports").has(String(step.chosen)) ? html`<${Ref} kind="port" id=${step.chosen} />` : text(step.chosen)}</b>${" "}
        <span class="row-more">${candidatesOf(step)}</span><p>${text(step.reason)}</p></li>`)}</ol></section>
    <section class="part"><h3>Request</h3><${Facts} of=${Object.entries(decision.request ?? {}).map(([name, value]) => [words(name), plain(value)])} /></section>`;
}

const amountOf = (value) => (Array.isArray(value) ? value.length : value ?? 0);

/** How many ports were left: as a number, or after each level. */
function candidatesOf({candidates, tied}) {
  const isByLevel = candidates !== null && typeof candidates === "object" && !Array.isArray(candidates);
  const left = isByLevel
    ? Object.entries(candidates).map(([level, ports]) => `${words(level)} ${amountOf(ports)}`).join(" → ")
    : `${amountOf(candidates)} candidates`;
  return [left && `left: ${left}`, amountOf(tied) > 1 && `${amountOf(tied)} tied`].filter(Boolean).join(", ");
}

const KINDS = {
  group: [(id) => `Group ${id}`, Group],
  switch: [(id) => `Switch ${called("switch", id)}`, Switch],
  port: [(id) => `Port ${called("port", id)}`, PortDetails],
  link: [(id) => `Link ${called("link", id)}`, Link],
  host: [(id) => `Host ${id}`, Host],
  event: [() => "Event", Event],
  alarm: [() => "Alarm", Alarm],
  cleared: [() => "Cleared alarm", ClearedAlarm],
  anomaly: [() => "Anomaly", Anomaly],
  allocation: [() => "Allocation decision", Allocation],
};
const DRAWN = ["group", "switch", "link"];

export function Panel() {
  const current = route.value;
  const chosen = selected(current);
  const heading = useRef(null);
  useEffect(() => {
    if (matchMedia("(max-width: 1000px)").matches) heading.current?.focus();
  }, [current.select]);
  if (!chosen || !KINDS[chosen.kind]) return null;
  const [title, Kind] = KINDS[chosen.kind];
  const close = () => go({select: "", tree: ""});
  const onKeyDown = (event) => event.key === "Escape" && close();
  const isUnder = current.view === "topology" && current.as !== "table";
  return html`<aside class=${isUnder ? "panel is-under" : "panel"} aria-labelledby="panel-title" onKeyDown=${onKeyDown}>
    <header class="panel-head"><h2 id="panel-title" tabindex="-1" ref=${heading}>${title(chosen.id)}</h2>
      <button type="button" class="button is-quiet" aria-label="Close details" onClick=${close}>✕</button></header>
    <div class="panel-body" tabindex="-1" key=${current.select}>
      ${current.view !== "topology" && DRAWN.includes(chosen.kind) && html`<p><a href=${hashOf({view: "topology", select: current.select, tree: current.tree})}>Show in topology</a></p>`}
      <${Kind} id=${chosen.id} /></div>
  </aside>`;
}
