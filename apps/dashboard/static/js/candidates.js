// Policies that the configuration seems to follow, as its changes tell: what, where, who deviates; and orders about them.

import {html} from "../vendor/preact.js";
import {Order, acceptCandidate, considerCandidate, ignoreCandidate} from "./actions.js";
import {count, text, time} from "./format.js";
import {Facts, State} from "./parts.js";
import {section} from "./store.js";

/** Whether the controller looks for policies. */
export const isSearched = () => section("candidates").size > 0;

const STATES = {new: ["info", "new"], accepted: ["good", "accepted"], ignored: ["quiet", "ignored"]};
const ORDER = ["new", "accepted", "ignored"];
const SHOWN = 8;

const inOrder = (one, other) => ORDER.indexOf(one.state) - ORDER.indexOf(other.state) || other.bits_saved - one.bits_saved;

export function Candidates() {
  const documents = section("candidates");
  const search = documents.get("search");
  const found = [...documents.values()].filter((document) => document.id !== "search").toSorted(inOrder);
  return html`<section class="page" aria-label="Candidates">
    <div class="bar"><h1>Candidates</h1><p class="quiet" role="status">${count(found.length)}</p></div>
    <div class="policy">
      ${!search && html`<p class="quiet">The controller looks for no policies: <code>policy_discovery: {enabled: true}</code> in the policy file has it do so.</p>`}
      ${search?.fault && html`<div class="note is-bad" role="alert"><b>The last search failed.</b> ${search.fault}</div>`}
      ${search && html`<p class="quiet">${search.searched_s == null ? "Nothing has been looked for yet." : `Looked for at ${time(search.searched_s)} in ${count(search.lines)} changes of ${count(search.resource_count)} switches and ports.`} Nothing here is in force.${search.beyond > 0 && ` ${count(search.beyond)} that save less are not shown.`}</p>`}
      ${search?.searched_s != null && found.length === 0 && html`<p class="quiet">No settings are set together more often than chance would have it.</p>`}
      ${found.map((each) => html`<${Candidate} key=${each.id} each=${each} />`)}
    </div>
  </section>`;
}

function Candidate({each}) {
  const [tone, words] = STATES[each.state] ?? ["quiet", each.state];
  const name = listed(each.properties, each.properties.length);
  return html`<article class="candidate" aria-label=${name}>
    <div class="candidate-head"><h2>${name}</h2><${State} tone=${tone}>${words}<//>
      <span class="candidate-orders">${each.state === "new" ? html`<${Order} what=${acceptCandidate(each.id)} label="Accept" /><${Order} what=${ignoreCandidate(each.id)} label="Ignore" />` : html`<${Order} what=${considerCandidate(each.id)} label="Consider again" />`}</span></div>
    <${Facts} of=${[
      ["On", each.told_by.length ? each.told_by.join(" and ") : listed(each.resources, each.resource_count)],
      ["Resources", `${count(each.resource_count)}, type ${each.types.join(", ")}`],
      ["Said by", each.by],
      ["File", each.path && html`<code>${each.path}</code>`],
    ]} />
    <div class="scrolled" tabindex="0"><table class="small members"><caption>Values: ${count(each.variety_count)} ${each.variety_count === 1 ? "variety" : "varieties"}</caption>
      <thead><tr>${each.properties.map((property) => html`<th scope="col" key=${property}>${property}</th>`)}<th scope="col">Resources</th></tr></thead>
      <tbody>${each.varieties.map((variety, index) => html`<tr key=${index}>${each.properties.map((property) => html`<td key=${property}>${text(variety.values[property])}</td>`)}<td>${count(variety.resource_count)}</td></tr>`)}</tbody></table></div>
    <${Odd} title="Deviate" rows=${each.deviations} amount=${each.deviation_count} />
    <${Odd} title="Near: all but one" rows=${each.near} amount=${each.near_count} />
  </article>`;
}

/** Resources that lack something, or have other values. */
function Odd({title, rows, amount}) {
  if (!amount) return null;
  const shown = rows.slice(0, SHOWN);
  return html`<div class="scrolled" tabindex="0"><table class="small members"><caption>${title}: ${count(amount)}</caption>
    <thead><tr><th scope="col">Resource</th><th scope="col">Lacks</th><th scope="col">Has instead</th></tr></thead>
    <tbody>${shown.map((row) => html`<tr key=${row.resource}><th scope="row">${row.resource}</th><td>${row.missing.join(", ") || "–"}</td><td>${Object.entries(row.other ?? {}).map(([name, value]) => `${name}=${value}`).join(", ") || "–"}</td></tr>`)}</tbody></table>
    ${amount > shown.length && html`<p class="quiet">${count(amount - shown.length)} more</p>`}</div>`;
}

const listed = (names, amount) => names.slice(0, SHOWN).join(", ") + (amount > SHOWN ? ` and ${count(amount - SHOWN)} more` : "");
