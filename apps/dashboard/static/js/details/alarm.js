// What is known of one alarm: what is wrong, since when, what follows from it, who takes care.

import {html} from "../../vendor/preact.js";
import {Order, acknowledge, forget, forgetLink} from "../actions.js";
import {text, words} from "../format.js";
import {Facts, Ref, State, Time, severityTone} from "../parts.js";
import {section} from "../store.js";
import {Gone, Some} from "./things.js";

const PlaceRef = ({dpid, port_no}) =>
  port_no == null ? html`<${Ref} kind="switch" id=${dpid} />` : html`<${Ref} kind="port" id=${`${dpid}:${port_no}`} />`;

/** The order that takes what an alarm misses to be gone for good, if it misses something. */
function forgetting({kind, subject, dpid}) {
  if (kind === "switch-down") return forget(dpid);
  return kind === "link-failed" || kind === "cable-moved" ? forgetLink(subject) : null;
}

/** What is said of an alarm, be it open or over; `more` goes before who took care. */
const factsOf = (alarm, more) => [
  ["Severity", html`<${State} tone=${severityTone(alarm.severity)}>${text(alarm.severity)}<//>`],
  ["Since", html`<${Time} at_s=${alarm.since_s} />`],
  ["What", words(alarm.kind)],
  ["At", alarm.dpid == null ? null : html`<${PlaceRef} ...${alarm} />`],
  ["Link", alarm.dpid_a == null ? null : html`<${Ref} kind="link" id=${alarm.subject} />`],
  ["Raised", alarm.occurrences > 1 ? `${alarm.occurrences} times` : null],
  ...more,
  ["Acknowledged", alarm.acknowledged_by && html`by ${alarm.acknowledged_by}, <${Time} at_s=${alarm.acknowledged_s} />`],
];

export function Alarm({id}) {
  const alarm = section("alarms").get(id);
  if (!alarm) return html`<${Gone} what="This alarm" />`;
  const consequences = alarm.consequences ?? [];
  const forgets = forgetting(alarm);
  return html`<p class="lead">${text(alarm.text)}</p><${Facts} of=${factsOf(alarm, [
      ["Over", alarm.over_s == null ? null : html`since <${Time} at_s=${alarm.over_s} />, and kept open, for it flaps`],
    ])} />
    <div class="buttons">${!alarm.acknowledged_by && html`<${Order} what=${acknowledge(id)} label="Acknowledge" />`}${forgets && html`<${Order} what=${forgets} label="Forget" danger />`}</div>
    <section class="part"><h3>What follows from it <span class="amount">${alarm.consequence_count ?? consequences.length}</span></h3>
      <${Some} rows=${consequences} none="Nothing." each=${(one) => html`<li key=${one.text}>${one.text}</li>`} /></section>`;
}

export function ClearedAlarm({id}) {
  const alarm = section("cleared-alarms").get(id);
  if (!alarm) return html`<${Gone} what="This alarm" />`;
  return html`<p class="lead">${text(alarm.text)}</p><${Facts} of=${factsOf(alarm, [
    ["Until", html`<${Time} at_s=${alarm.cleared_s} />`],
    ["Part of", alarm.part_of],
  ])} />`;
}
