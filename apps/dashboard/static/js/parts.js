// Small parts that views share.

import {html} from "../vendor/preact.js";
import {age_s} from "./clock.js";
import {pct, span, time} from "./format.js";
import {called, label} from "./ids.js";
import {stepOf} from "./scale.js";
import {go, hashOf, route, selection} from "./route.js";

/** A reference to one thing: selects it in the present view. */
export function Ref({kind, id, children}) {
  const to = {...route.value, ...selection(route.value, kind, String(id))};
  const onClick = (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    go(to);
  };
  return html`<a href=${hashOf(to)} onClick=${onClick}>${children ?? called(kind, String(id))}</a>`;
}

/** A port; where there is little room its switch is cut short, never its number. */
export const Place = ({dpid, port_no}) =>
  dpid == null ? "–" : html`<span class="place" title=${port_no == null ? label(dpid) : `${label(dpid)}:${port_no}`}><span class="place-switch"><bdi>${label(dpid)}</bdi></span>${port_no == null ? "" : html`<span>:${port_no}</span>`}</span>`;

export const Time = ({at_s}) =>
  at_s == null ? "–" : html`<time dateTime=${new Date(at_s * 1000).toISOString()}>${time(at_s)}</time>`;

/** How old counters are that were true at a moment; it alone is drawn anew as they grow older. */
export const Age = ({at_s}) => `${span(age_s(at_s))} old`;

/** A utilisation as a figure and a bar with the colour of its step. */
export function Load({value}) {
  const step = stepOf(value);
  return html`<span class="load"><span class="load-figure">${pct(value)}</span><span class="load-track" aria-hidden="true"><span
    class=${`load-bar load-${step}`} ref=${(bar) => bar && (bar.style.width = `${Math.min(100, Math.max(0, value ?? 0))}%`)}></span></span></span>`;
}

const SIGNS = {
  good: "●", warning: "▲", critical: "◆", quiet: "○", refused: "✕", info: "•",
};

/** A state in a word, with a sign so that colour is not all that tells it. */
export const State = ({tone, children}) =>
  html`<span class=${`state is-${tone}`}><span aria-hidden="true" class="state-sign">${SIGNS[tone]}</span>${children}</span>`;

export const severityTone = (severity) => ({critical: "critical", warning: "warning"}[severity] ?? "info");

/** Names and values, what is not known left out. */
export const Facts = ({of}) => html`<dl class="facts">${of
  .filter(([, value]) => value != null && value !== "" && value !== "–")
  .map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
