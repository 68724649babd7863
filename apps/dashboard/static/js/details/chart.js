// The history of a port, with the bounds of what is normal where they are known.

import uPlot from "../../vendor/uplot.js";
import {html, useEffect, useRef, useState} from "../../vendor/preact.js";
import {read} from "../api.js";
import {bps, pct, pps} from "../format.js";
import {hexOf} from "../ids.js";

const METRICS = {
  rx_bps: "Receiving, rate",
  tx_bps: "Sending, rate",
  rx_utilisation_pct: "Receiving, utilisation",
  tx_utilisation_pct: "Sending, utilisation",
  errors_pps: "Errors, both directions",
};
const AGAIN_MS = 10_000;
const HEIGHT = 168;
const darkQuery = matchMedia("(prefers-color-scheme: dark)");

const unit = (metric) => (metric.endsWith("_pct") ? pct : metric.endsWith("_bps") ? bps : pps);

/** Times, values and bounds (each null where not known) of the API's answer, as columns. */
const columnsOf = ({points}) =>
  ["time_s", "value", "upper", "lower"].map((field) => points.map((point) => point[field] ?? null));

export function History({dpid, port_no}) {
  const [metric, setMetric] = useState("tx_bps");
  const [data, setData] = useState(null);
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    const abort = new AbortController();
    const load = async () => {
      try {
        setData(columnsOf(await read(`/ports/0x${hexOf(dpid)}/${port_no}/history?metric=${metric}`, {signal: abort.signal})));
        setProblem(null);
      } catch (error) {
        if (error.name !== "AbortError") setProblem(error);
      }
    };
    setData(null);
    load();
    const timer = setInterval(load, AGAIN_MS);
    return () => {
      abort.abort();
      clearInterval(timer);
    };
  }, [dpid, port_no, metric]);
  const last = data && data[1].findLast((value) => value != null);
  const isEmpty = data && !data[1].some((value) => value != null);
  return html`<section class="part">
    <div class="part-head"><h3>History</h3>
      <select aria-label="Metric" value=${metric} onChange=${(event) => setMetric(event.target.value)}>
        ${Object.entries(METRICS).map(([name, label]) => html`<option key=${name} value=${name}>${label}</option>`)}
      </select></div>
    ${problem && html`<p class="note is-warning">No history: ${problem.message}</p>`}
    ${isEmpty && !problem && html`<p class="quiet">Nothing is remembered of this yet.</p>`}
    ${data && !isEmpty && !problem && html`<${Plot} ...${{data, metric}} />
      <p class="quiet">Now ${unit(metric)(last)}, highest ${unit(metric)(highest(data[1]))}${data[2].some((value) => value != null) ? "; the band is what is normal" : ""}.</p>`}
  </section>`;
}

const highest = (values) => values.reduce((most, value) => (value != null && value > most ? value : most), -Infinity);

function Plot({data, metric}) {
  const box = useRef(null);
  const plot = useRef(null);
  const [isDark, setDark] = useState(darkQuery.matches);
  useEffect(() => {
    const onTheme = () => setDark(darkQuery.matches);
    darkQuery.addEventListener("change", onTheme);
    return () => darkQuery.removeEventListener("change", onTheme);
  }, []);
  useEffect(() => {
    plot.current = new uPlot(optionsOf(box.current, metric), data, box.current);
    const watch = new ResizeObserver(([{contentRect}]) => plot.current.setSize({width: contentRect.width, height: HEIGHT}));
    watch.observe(box.current);
    return () => {
      watch.disconnect();
      plot.current.destroy();
      plot.current = null;
    };
  }, [metric, isDark]);
  useEffect(() => plot.current?.setData(data), [data]);
  return html`<div class="plot" ref=${box} role="img" aria-label=${`${METRICS[metric]}, over the last hour`}></div>`;
}

function optionsOf(box, metric) {
  const style = getComputedStyle(box);
  const colour = (name) => style.getPropertyValue(name).trim();
  const format = unit(metric);
  const axis = {
    stroke: colour("--muted"), font: `11px ${style.fontFamily}`, grid: {stroke: colour("--line"), width: 1},
    ticks: {stroke: colour("--line"), width: 1, size: 4},
  };
  const bound = {stroke: colour("--line-strong"), width: 1, dash: [3, 3], points: {show: false}};
  return {
    width: box.clientWidth, height: HEIGHT, legend: {show: false}, padding: [10, 18, 0, 0],
    cursor: {y: false, drag: {x: false, y: false}},
    scales: {y: {range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1]}},
    axes: [
      {...axis, size: 30, space: 64, values: [[3600, "{HH}:{mm}"], [60, "{HH}:{mm}"], [1, "{HH}:{mm}:{ss}"]]},
      {...axis, size: 76, space: 34, values: (_plot, values) => values.map(format)},
    ],
    series: [
      {},
      {stroke: colour("--accent"), width: 1.6, fill: colour("--accent-faint"), points: {show: false}},
      bound,
      bound,
    ],
    bands: [{series: [2, 3], fill: colour("--band-normal")}],
  };
}
