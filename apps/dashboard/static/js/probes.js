// Scripts that look at the controller: begun from the library or from text, watched while they run, ended with the view.

import {html, useEffect, useState} from "../vendor/preact.js";
import {ask} from "./actions.js";
import {order, read} from "./api.js";
import {count, counted, number, span} from "./format.js";
import {State} from "./parts.js";

const POLL_MS = 1000;
const SHOWN = 64;
const DRAWN = 6;
const LINES = 500;
const USUAL_S = 60;
const LONGEST_S = 86_400;

const pathOf = (id) => `/probes/${id}`;

export function Probes() {
  const [scripts, setScripts] = useState([]);
  const [name, setName] = useState("");
  const [script, setScript] = useState("");
  const [forS, setForS] = useState(USUAL_S);
  const [begun, setBegun] = useState(null);
  const [found, setFound] = useState(null);
  const [printed, setPrinted] = useState([]);
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    read("/probes/library").then((answer) => setScripts(answer.scripts), setProblem);
  }, []);
  useEffect(() => begun && follow(begun.id, {
    found: (answer) => {
      setProblem(null);
      setFound(answer);
      setPrinted((before) => [...before, ...answer.printed].slice(-LINES));
    },
    failed: setProblem,
  }), [begun]);
  const onSubmit = (event) => {
    event.preventDefault();
    ask({
      title: "Run the script", verb: "Run", method: "POST", path: "/probes", body: {script, for_s: forS},
      text: "It looks and counts, and changes nothing. It ends with its time, and when this view is left.",
      then: (answer) => {
        setFound(null);
        setPrinted([]);
        setProblem(null);
        setBegun(answer);
      },
    });
  };
  const choose = (chosen) => {
    setName(chosen);
    setScript(scripts.find((one) => one.name === chosen)?.script ?? script);
  };
  return html`<section class="page" aria-label="Probes">
    <div class="bar"><h1>Probes</h1><p class="quiet">Questions to the controller that runs; nothing is changed by them.</p></div>
    <div class="policy">
      <form class="probe-form" onSubmit=${onSubmit}>
        <label class="field">Question
          <select name="library" value=${name} onChange=${(event) => choose(event.target.value)}>
            <option value="">one of your own</option>
            ${scripts.map((one) => html`<option key=${one.name} value=${one.name}>${one.question}</option>`)}</select></label>
        <label class="field">Script
          <textarea name="script" rows="10" spellcheck=${false} autocomplete="off" value=${script} onInput=${(event) => {
            setScript(event.target.value);
            setName("");
          }}></textarea></label>
        <label class="field">For at most (s)
          <input type="number" name="for" min="1" max=${LONGEST_S} step="1" value=${forS} onInput=${(event) => setForS(Number(event.target.value))} /></label>
        <div class="buttons"><button type="submit" class="button is-primary" disabled=${!script.trim()}>Run…</button></div>
      </form>
      ${problem && html`<p class="note is-bad" role="alert">${problem.message}${found && ". What was found before is shown."}</p>`}
      ${found && html`<${Found} found=${found} printed=${printed} isFollowed=${!problem} onStop=${() => order("DELETE", pathOf(found.id)).catch(setProblem)} />`}
    </div>
  </section>`;
}

/** Ask what a script has found until it has ended; what is returned ends it, and asks no more. */
function follow(id, {found, failed}) {
  let isLeft = false;
  let isOver = false;
  let known = [];
  let timer = null;
  const look = async () => {
    try {
      const answer = await read(`${pathOf(id)}?lines=${known.join(",")}`);
      if (isLeft) return;
      known = answer.lines;
      isOver = answer.ended != null;
      found(answer);
    } catch (error) {
      if (isLeft) return;
      isOver = error.status != null && error.status !== 503;
      failed(error);
    }
    if (!isOver) timer = setTimeout(look, POLL_MS);
  };
  look();
  return () => {
    isLeft = true;
    clearTimeout(timer);
    if (isOver) return;
    order("DELETE", pathOf(id)).catch(() => {}); // one that cannot be ended so ends when nobody looks at it
  };
}

function Found({found, printed, isFollowed, onStop}) {
  const isOver = found.ended != null;
  const lost = [
    [found.skipped, "not looked at, for want of time"], [found.lost_keys, "without room for their key"], [found.lost_lines, "lines without room"],
    ...Object.entries(found.faults).map(([kind, times]) => [times, `ended by a fault: ${kind}`]),
  ].filter(([times]) => times > 0);
  return html`<section class="probe-found" aria-label="What was found">
    <div class="bar"><h2>${isOver ? html`<${State} tone="quiet">Ended: ${found.ended}<//>` : isFollowed ? html`<${State} tone="good">Runs, for ${span(found.for_s)} at most<//>` : html`<${State} tone="warning">Not heard of<//>`}</h2>
      <p class="quiet" role="status">${counted(found.fired, "firing")}${lost.map(([times, what]) => `; ${count(times)} ${what}`)}</p>
      ${!isOver && isFollowed && html`<div class="buttons"><button type="button" class="button" onClick=${onStop}>Stop</button></div>`}</div>
    ${Object.entries(found.aggregates).map(([name, rows]) => html`<${Aggregate} key=${name} name=${name} rows=${rows} amount=${found.rows[name]} isSampled=${found.sampled.includes(name)} />`)}
    ${printed.length > 0 && html`<pre class="request probe-lines" aria-label="Printed" tabindex="0">${printed.join("\n")}</pre>`}
  </section>`;
}

const keysOf = (row) => row.keys.map(String).join(", ") || "all";

function Aggregate({name, rows, amount, isSampled}) {
  const shown = rows.slice(0, SHOWN);
  const drawn = isSampled ? rows.slice(0, DRAWN).filter((row) => row.histogram.length > 1) : [];
  const figures = (row) => (isSampled ? [row.sum === 0 ? 0 : Number(row.sum) / row.count, row.min, row.max] : []);
  return html`<div class="probe-aggregate"><div class="scrolled" tabindex="0" role="group" aria-label=${name}><table class="small members"><caption>${name}${amount > shown.length && `: ${count(shown.length)} of ${count(amount)}`}</caption>
    <thead><tr><th scope="col">Key</th><th scope="col">Count</th>${isSampled && html`<th scope="col">Mean</th><th scope="col">Least</th><th scope="col">Most</th>`}</tr></thead>
    <tbody>${shown.map((row) => html`<tr key=${keysOf(row)}><th scope="row">${keysOf(row)}</th><td>${count(row.count)}</td>${figures(row).map((value, at) => html`<td key=${at}>${typeof value === "number" ? number(value) : String(value)}</td>`)}</tr>`)}</tbody></table></div>
    ${drawn.map((row) => html`<${Histogram} key=${keysOf(row)} name=${keysOf(row)} buckets=${row.histogram} />`)}</div>`;
}

/** How samples are spread, a bar for each power of two from the least to the greatest. */
function Histogram({name, buckets}) {
  const most = Math.max(...buckets.map(([, times]) => times));
  return html`<table class="small histogram"><caption>${name}</caption>
    <thead><tr><th scope="col">From</th><th scope="col">Samples</th></tr></thead>
    <tbody>${buckets.map(([low, times]) => html`<tr key=${String(low)}><th scope="row">${typeof low === "number" ? count(low) : String(low)}</th>
      <td><span class="share"><span class="share-figure">${count(times)}</span><span class="load-track" aria-hidden="true"><span class="load-bar bar-good" ref=${(bar) => bar && (bar.style.width = `${(100 * times) / most}%`)}></span></span></span></td></tr>`)}</tbody></table>`;
}
