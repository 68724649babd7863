// How many monitors there should be: what is advised and why, the load of the latest intervals, what learners would have.

import {html} from "../vendor/preact.js";
import {count, counted, pct, text} from "./format.js";
import {Facts, State, Time} from "./parts.js";
import {section} from "./store.js";

const SHOWN = 24;

const two = (value) => (value == null ? "–" : value.toFixed(2));
const three = (value) => (value == null ? "–" : value.toFixed(3));
const GOAL = {met: ["good", "met"], missed: ["critical", "missed"]};

function Goal({interval}) {
  const [tone, words] = GOAL[interval.slo] ?? ["quiet", "unknown"];
  return html`<${State} tone=${tone}>${words}<//>`;
}

/** What should become of the pool, in a few words. */
function advisedOf(interval) {
  if (interval.wanted == null) return "–";
  const isPaced = interval.wanted_pace !== interval.pace;
  const what = isPaced ? `polls ${interval.wanted_pace} times as far apart` : counted(interval.wanted, "monitor");
  return interval.is_ordered ? `${what}, ordered` : what;
}

export function ScalingAdvice() {
  const intervals = [...section("scaling").values()].toSorted((a, b) => b.interval - a.interval);
  const latest = intervals[0];
  if (!latest) return null;
  const learners = latest.learners ?? [];
  return html`<section aria-label="Number of monitors"><h2>Number of monitors</h2>
    <p class=${latest.slo === "missed" ? "note is-warning" : "note"}>${latest.text}</p>
    <${Facts} of=${[
      ["As of", html`<${Time} at_s=${latest.ended_s} />`],
      ["Load", latest.load == null ? null : `${two(latest.load)} of ${counted(latest.monitors, "monitor")}`],
      ["Scarcest", latest.usage == null ? null : `${latest.scarcest}, ${pct(100 * latest.usage)} taken`],
      ["Goal", html`<${Goal} interval=${latest} />`],
    ]} />
    ${learners.length > 0 && html`<div class="scrolled" tabindex="0"><table class="small"><caption>What each learner would have</caption>
      <thead><tr><th scope="col">Learner</th><th scope="col">Monitors</th></tr></thead>
      <tbody>${learners.map(({learner, monitors}) => html`<tr key=${learner}><th scope="row">${learner}${learner === latest.learner ? " (goes)" : ""}</th><td>${count(monitors)}</td></tr>`)}</tbody></table></div>`}
    <div class="scrolled" tabindex="0"><table class="small"><caption>The latest intervals</caption>
      <thead><tr><th scope="col">Ended</th><th scope="col">Monitors</th><th scope="col">Load</th><th scope="col">Late by</th><th scope="col">Skipped</th><th scope="col">Goal</th><th scope="col">Advised</th><th scope="col">Why</th></tr></thead>
      <tbody>${intervals.slice(0, SHOWN).map((interval) => html`<tr key=${interval.id}><th scope="row"><${Time} at_s=${interval.ended_s} /></th>
        <td>${count(interval.monitors)}</td><td>${two(interval.load)}</td><td>${three(interval.lateness)}</td><td>${count(interval.skipped)}</td>
        <td><${Goal} interval=${interval} /></td><td>${advisedOf(interval)}</td><td>${text(interval.gap || interval.outcome || interval.withheld || interval.rule)}</td></tr>`)}</tbody></table></div>
  </section>`;
}
