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
/** Between two readings of an hour; of a longer stretch as much longer. */
const AGAIN_MS = 10_000;
/** Lengths of a stretch in seconds; the last hour is what the monitor remembers, others are in its files. */
const STRETCHES = {3600: "hour", 86_400: "day", 604_800: "week", 2_592_000: "30 days"};
const HEIGHT = 168;
const darkQuery = matchMedia("(prefers-color-scheme: dark)");

const unit = (metric) => (metric.endsWith("_pct") ? pct : metric.endsWith("_bps") ? bps : pps);

/** Times, values and bounds (each null where not known) of the API's answer, as columns. */
const columnsOf = ({points}) =>
  ["time_s", "value", "upper", "lower"].map((field) => points.map((point) => point[field] ?? null));

/** Which part of the past a query asks for: the last hour needs none, other stretches are so many lengths back. */
const stretchOf = (length, back) => {
  if (length === 3600 && !back) return "";
  const until = Date.now() / 1000 - back * length;
  return `&since_s=${Math.floor(until - length)}&until_s=${Math.ceil(until)}`;
};

export function History({dpid, port_no}) {
  const [metric, setMetric] = useState("tx_bps");
  const [{length, back}, setStretch] = useState({length: 3600, back: 0});
  const [data, setData] = useState(null);
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    const abort = new AbortController();
    const load = async () => {
      try {
        setData(columnsOf(await read(`/ports/0x${hexOf(dpid)}/${port_no}/history?metric=${metric}${stretchOf(length, back)}`, {signal: abort.signal})));
        setProblem(null);
      } catch (error) {
        if (error.name !== "AbortError") setProblem(error);
      }
    };
    setData(null);
    load();
    const timer = setInterval(load, (AGAIN_MS * length) / 3600);
    return () => {
      abort.abort();
      clearInterval(timer);
    };
  }, [dpid, port_no, metric, length, back]);
  const last = data && data[1].findLastIndex((value) => value != null);
  const isEmpty = data && !data[1].some((value) => value != null);
  return html`<section class="part">
    <div class="part-head"><h3>History</h3>
      <select aria-label="Metric" value=${metric} onChange=${(event) => setMetric(event.target.value)}>
        ${Object.entries(METRICS).map(([name, label]) => html`<option key=${name} value=${name}>${label}</option>`)}
      </select></div>
    <div class="stretch"><select aria-label="Stretch" value=${length} onChange=${(event) => setStretch({length: Number(event.target.value), back: 0})}>
        ${Object.entries(STRETCHES).map(([seconds, label]) => html`<option key=${seconds} value=${seconds}>${label}</option>`)}
      </select>
      <button type="button" class="button is-quiet" aria-label="Earlier" onClick=${() => setStretch({length, back: back + 1})}>‹</button>
      <button type="button" class="button is-quiet" aria-label="Later" disabled=${!back} onClick=${() => setStretch({length, back: back - 1})}>›</button></div>
    ${problem && html`<p class="note is-warning">No history: ${problem.message}</p>`}
    ${isEmpty && !problem && html`<p class="quiet">Nothing is remembered of this yet.</p>`}
    ${data && !isEmpty && !problem && html`<${Plot} ...${{data, metric, length, back}} />
      <p class="quiet">${isNow(data[0], last) ? "Now" : "Last"} ${unit(metric)(data[1][last])}, highest ${unit(metric)(highest(data[1]))}${data[2].some((value) => value != null) ? "; the band is what is normal" : ""}.</p>`}
  </section>`;
}

/** Whether the newest value that is known is of now, and not of a switch that is gone. */
const isNow = (times, last) => Date.now() / 1000 - times[last] < 3 * (times.length > 1 ? times[1] - times[0] : 60);

const highest = (values) => values.reduce((most, value) => (value != null && value > most ? value : most), -Infinity);

function Plot({data, metric, length, back}) {
  const box = useRef(null);
  const plot = useRef(null);
  const [isDark, setDark] = useState(darkQuery.matches);
  useEffect(() => {
    const onTheme = () => setDark(darkQuery.matches);
    darkQuery.addEventListener("change", onTheme);
    return () => darkQuery.removeEventListener("change", onTheme);
  }, []);
  useEffect(() => {
    plot.current = new uPlot(optionsOf(box.current, metric, length), data, box.current);
    const watch = new ResizeObserver(([{contentRect}]) => plot.current.setSize({width: contentRect.width, height: HEIGHT}));
    watch.observe(box.current);
    return () => {
      watch.disconnect();
      plot.current.destroy();
      plot.current = null;
    };
  }, [metric, length, isDark]);
  useEffect(() => plot.current?.setData(data), [data]);
  return html`<div class="plot" ref=${box} role="img" aria-label=${`${METRICS[metric]}, over ${back ? "an earlier" : "the last"} ${STRETCHES[length]}`}></div>`;
}

function optionsOf(box, metric, length) {
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
      {...axis, size: 30, space: 64, values: length > 86_400
        ? [[86_400, "{MMM} {D}"], [60, "{D} {HH}:{mm}"]]
        : [[3600, "{HH}:{mm}"], [60, "{HH}:{mm}"], [1, "{HH}:{mm}:{ss}"]]},
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
