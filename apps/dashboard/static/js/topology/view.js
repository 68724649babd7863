// The topology: a drawing that is panned, zoomed and walked by keys, its legend, and the same as a table.

import {select, zoom, zoomIdentity} from "../../vendor/d3-zoom.js";
import {html, useEffect, useLayoutEffect, useMemo, useRef, useState} from "../../vendor/preact.js";
import {say} from "../announce.js";
import {bps, counted, pct} from "../format.js";
import {called, dpidOf, label} from "../ids.js";
import {STEPS} from "../scale.js";
import {go, route, selected, selection, treeOf} from "../route.js";
import {hostsOfSwitch, links, partiesOf, section, versionOf} from "../store.js";
import {layout, neighbour} from "./layout.js";
import {colours, paintLinks, paintMark, paintNodes, paintTree, segmentsOf} from "./paint.js";

const ZOOM = [0.8, 24];
const darkQuery = matchMedia("(prefers-color-scheme: dark)");
const stillQuery = matchMedia("(prefers-reduced-motion: reduce)");

export function Drawing() {
  const box = useRef(null);
  const base = useRef(null);
  const over = useRef(null);
  const [size, setSize] = useState(null);
  const [hover, setHover] = useState(null);
  const [cursor, setCursor] = useState(null);
  const [isDark, setDark] = useState(darkQuery.matches);
  const [view, setView] = useState({k: 1, x: 0, y: 0});
  const zooming = useRef(null);

  const switches = section("switches");
  const current = route.value;
  const tree = treeOf(current);
  const group = tree ? section("groups").get(tree) : null;
  const chosen = selected(current);
  const shape = useMemo(
    () => [...switches.values()].map(({dpid, name, tier, level}) => `${dpid}${name}${tier}${level}`).join(),
    [versionOf("switches")],
  );
  const placed = useMemo(
    () => size && layout([...switches.values()], [...section("links").values()], size.width, size.height, label),
    [size, shape, versionOf("links")],
  );
  const segments = useMemo(() => (placed ? segmentsOf(placed, links.value) : []), [placed, links.value]);
  const shown = useMemo(() => shownOf(segments, current, chosen, group), [segments, current.select, current.least, group]);
  const facts = useMemo(() => factsOf(switches, group), [versionOf("switches"), hostsOfSwitch.value, group]);

  useLayoutEffect(() => {
    const watch = new ResizeObserver(([{contentRect}]) => setSize({width: contentRect.width, height: contentRect.height}));
    watch.observe(box.current);
    const onTheme = () => setDark(darkQuery.matches);
    darkQuery.addEventListener("change", onTheme);
    return () => {
      watch.disconnect();
      darkQuery.removeEventListener("change", onTheme);
    };
  }, []);
  useEffect(() => {
    if (!size) return undefined;
    const target = select(over.current);
    zooming.current ??= zoom().on("zoom", ({transform: {k, x, y}}) => setView({k, x, y}));
    zooming.current.scaleExtent(ZOOM).extent([[0, 0], [size.width, size.height]]).translateExtent([[0, 0], [size.width, size.height]]);
    target.call(zooming.current).on("dblclick.zoom", null);
    return () => target.on(".zoom", null);
  }, [size]);

  useEffect(() => {
    if (!placed) return undefined;
    const frame = requestAnimationFrame(() => {
      const context = prepared(base.current, size);
      const colour = colours(base.current);
      paintLinks(context, placed, segments, shown, view, colour, size.width);
      if (group) paintTree(context, placed, segmentsOfTree(segments, group), view, colour);
    });
    return () => cancelAnimationFrame(frame);
  }, [placed, segments, shown, view, group, isDark]);
  useEffect(() => {
    if (!placed) return undefined;
    const frame = requestAnimationFrame(() => {
      const context = prepared(over.current, size);
      const colour = colours(base.current);
      for (const [mark, width] of [[chosen, 3], [hover, 2]]) {
        const segment = mark?.kind === "link" && segments.find(({link}) => link.id === mark.id);
        if (segment) {
          paintMark(context, segment, view, colour.ground, width + 5);
          paintMark(context, segment, view, colour.accent, width + 1);
        }
      }
      paintNodes(context, placed, view, colour, facts);
      for (const [mark, width] of [[chosen, 2.5], [hover, 1.5], [cursor, 2.5]]) {
        const node = mark?.kind === "switch" && placed.nodes.get(dpidOf(mark.id));
        if (node) outline(context, node, view, colour.accent, width);
      }
    });
    return () => cancelAnimationFrame(frame);
  }, [placed, segments, view, facts, hover, cursor, current.select, isDark]);

  const zoomBy = (factor) => {
    const target = stillQuery.matches ? select(over.current) : select(over.current).transition().duration(160);
    if (factor) target.call(zooming.current.scaleBy, factor);
    else target.call(zooming.current.transform, zoomIdentity);
  };
  const pick = (mark) => mark && go(selection(route.value, mark.kind, mark.id));
  const at = (event) => {
    const rect = over.current.getBoundingClientRect();
    return hit(placed, segments, view, event.clientX - rect.left, event.clientY - rect.top);
  };
  const onMove = (event) => {
    const found = placed && event.buttons === 0 ? at(event) : null;
    const rect = over.current.getBoundingClientRect();
    setHover((old) => (same(old, found) ? old : found && {...found, x: event.clientX - rect.left, y: event.clientY - rect.top}));
  };
  const onKeyDown = (event) => {
    if (event.key.startsWith("Arrow") && placed) {
      const node = neighbour(placed, cursor && dpidOf(cursor.id), event.key);
      setCursor({kind: "switch", id: String(node.dpid)});
      say(tellSwitch(node.dpid));
    } else if ((event.key === "Enter" || event.key === " ") && cursor) pick(cursor);
    else if (event.key === "+" || event.key === "-") zoomBy(event.key === "+" ? 1.5 : 1 / 1.5);
    else if (event.key === "0") zoomBy(null);
    else if (event.key === "Escape" && current.select) go({select: "", tree: ""});
    else return;
    event.preventDefault();
  };

  return html`<div class="drawing" ref=${box}>
    ${placed?.rows.map((row) => html`<span key=${row.label} class="tier" aria-hidden="true"
      ref=${(element) => element && (element.style.top = `${row.y * view.k + view.y}px`)}>${row.label}</span>`)}
    <canvas ref=${base} aria-hidden="true"></canvas>
    <canvas ref=${over} tabindex="0" role="application" aria-roledescription="topology drawing"
      aria-label=${`${switches.size} switches and ${section("links").size} links. Arrow keys walk from switch to switch, Enter selects, plus and minus zoom. The same is in the table view.`}
      class=${hover ? "is-over" : null} onPointerMove=${onMove} onPointerLeave=${() => setHover(null)}
      onClick=${(event) => placed && pick(at(event))} onKeyDown=${onKeyDown} onBlur=${() => setCursor(null)}></canvas>
    ${hover && html`<${Hint} ...${{hover, size}} />`}
  </div>
  <div class="under"><${Legend} group=${group} />
    <div class="zoom" role="group" aria-label="Zoom">
      <button type="button" title="Zoom out" aria-label="Zoom out" onClick=${() => zoomBy(1 / 1.5)}>−</button>
      <button type="button" title="Show all" aria-label="Show all" onClick=${() => zoomBy(null)}>⤢</button>
      <button type="button" title="Zoom in" aria-label="Zoom in" onClick=${() => zoomBy(1.5)}>+</button>
    </div>
  </div>`;
}

function prepared(canvas, {width, height}) {
  const ratio = devicePixelRatio;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

const same = (a, b) => a?.kind === b?.kind && a?.id === b?.id;

const pairOf = (a, b) => [String(a), String(b)].sort().join("-");

/** What tells whether a link is on a group's tree, whose links name both ports where several cables join two switches. */
export function isOnTree(group) {
  const names = new Set((group.links ?? []).map(([a, b, portA, portB]) =>
    portA == null ? pairOf(a, b) : pairOf(`${a}:${portA}`, `${b}:${portB}`)));
  return ({dpid_a, port_a, dpid_b, port_b}) =>
    names.has(pairOf(dpid_a, dpid_b)) || names.has(pairOf(`${dpid_a}:${port_a}`, `${dpid_b}:${port_b}`));
}

/** The links drawn with what they carry: those of the chosen switch, those busy enough, and none beside a tree. */
function shownOf(segments, current, chosen, group) {
  if (chosen?.kind === "switch") {
    const dpid = dpidOf(chosen.id);
    return segments.filter(({link}) => link.dpid_a === dpid || link.dpid_b === dpid);
  }
  if (group) return [];
  const least = Number(current.least);
  return least ? segments.filter(({link}) => link.utilisation_pct >= least) : segments;
}

function segmentsOfTree(segments, group) {
  const isShown = isOnTree(group);
  return segments.filter(({link}) => isShown(link));
}

/** What is drawn of each switch besides its place. */
function factsOf(switches, group) {
  const hosts = hostsOfSwitch.value;
  const marks = new Map();
  const inTree = new Set();
  if (group) {
    for (const [a, b] of group.links ?? []) inTree.add(a).add(b);
    for (const part of partiesOf(group)) {
      const sign = part.state === "refused" ? "refused" : part.role === "sender" ? "sender" : "member";
      if (sign !== "refused") inTree.add(part.dpid);
      const there = marks.get(part.dpid) ?? new Map();
      there.set(sign, (there.get(sign) ?? 0) + 1);
      marks.set(part.dpid, there);
    }
  }
  return (dpid) => {
    const node = switches.get(String(dpid));
    const there = marks.get(dpid);
    return {
      state: node?.connected === false ? "away" : node?.in_sync === false ? "behind" : null,
      isDrained: Boolean(node?.drained),
      inTree: inTree.has(dpid),
      isFaint: Boolean(group) && !inTree.has(dpid) && !there,
      hosts: hosts.get(dpid)?.length ?? 0,
      marks: there && ["sender", "member", "refused"].filter((sign) => there.has(sign)).map((sign) => ({sign, count: there.get(sign)})),
    };
  };
}

function outline(context, node, view, style, width) {
  const w = node.w * view.k + 7;
  const h = node.h * Math.min(view.k, 2.2) + 7;
  context.beginPath();
  context.roundRect(node.x * view.k + view.x - w / 2, node.y * view.k + view.y - h / 2, w, h, 7);
  context.strokeStyle = style;
  context.lineWidth = width;
  context.stroke();
}

/** The switch or link at a point; of links near each other the nearest. */
function hit(placed, segments, view, x, y) {
  for (const node of placed.nodes.values()) {
    const dx = Math.abs(node.x * view.k + view.x - x);
    const dy = Math.abs(node.y * view.k + view.y - y);
    if (dx <= Math.max((node.w * view.k) / 2, 4) && dy <= (node.h * Math.min(view.k, 2.2)) / 2 + 3) return {kind: "switch", id: String(node.dpid)};
  }
  let best = null;
  let least = 6;
  const wx = (x - view.x) / view.k;
  const wy = (y - view.y) / view.k;
  for (const {x1, y1, x2, y2, link} of segments) {
    const [dx, dy] = [x2 - x1, y2 - y1];
    const part = Math.min(1, Math.max(0, ((wx - x1) * dx + (wy - y1) * dy) / (dx * dx + dy * dy || 1)));
    const distance = Math.hypot(wx - x1 - part * dx, wy - y1 - part * dy) * view.k;
    if (distance < least) {
      least = distance;
      best = {kind: "link", id: link.id};
    }
  }
  return best;
}

export function stateOfSwitch(node) {
  if (node.connected === false) return "not connected";
  return [node.in_sync == null ? "connected" : node.in_sync ? "in sync" : "not in sync", node.drained ? "drained" : ""].filter(Boolean).join(", ");
}

function tellSwitch(dpid) {
  const node = section("switches").get(String(dpid));
  const busiest = Math.max(-1, ...links.value.filter((link) => link.dpid_a === dpid || link.dpid_b === dpid).map((link) => link.utilisation_pct ?? -1));
  const load = busiest < 0 ? "" : `, busiest link ${pct(busiest)}`;
  return `switch ${label(dpid)}, ${node.tier}, ${stateOfSwitch(node)}, ${counted(hostsOfSwitch.value.get(dpid)?.length ?? 0, "host")}${load}`;
}

function Hint({hover, size}) {
  const place = (element) => {
    if (!element) return;
    element.style.left = `${Math.max(4, Math.min(hover.x + 14, size.width - element.offsetWidth - 6))}px`;
    element.style.top = `${Math.max(4, Math.min(hover.y + 14, size.height - element.offsetHeight - 6))}px`;
  };
  if (hover.kind === "switch") {
    const node = section("switches").get(hover.id);
    if (!node) return null;
    return html`<div class="hint" role="tooltip" ref=${place}><b>Switch ${label(node.dpid)}</b><br />${node.tier} · ${stateOfSwitch(node)}</div>`;
  }
  const link = links.value.find(({id}) => id === hover.id);
  if (!link) return null;
  return html`<div class="hint" role="tooltip" ref=${place}><b>Link ${called("link", link.id)}</b><br />
    ${label(link.dpid_a)} → ${label(link.dpid_b)}: ${pct(link.utilisation_ab_pct)} · ${bps(link.ab_bps)}<br />
    ${label(link.dpid_b)} → ${label(link.dpid_a)}: ${pct(link.utilisation_ba_pct)} · ${bps(link.ba_bps)}</div>`;
}

function Legend({group}) {
  if (group) {
    return html`<div class="legend" aria-label="Legend" role="group">
      <span><i class="key key-tree"></i>tree</span><span><i class="sign sign-sender"></i>sender</span>
      <span><i class="sign sign-member"></i>member</span><span><i class="sign sign-refused"></i>refused</span>
    </div>`;
  }
  const least = Number(route.value.least);
  return html`<div class="legend is-scale" aria-label="Utilisation of the busier direction; a button shows links from there on" role="group">
    <span class="legend-name">Utilisation, busier direction</span>
    ${STEPS.map((step, index) => {
      const isFirst = least > 0 && least === step.from_pct;
      return html`<button key=${index} type="button" aria-pressed=${isFirst} class=${step.from_pct < least ? "is-hidden" : null}
        title=${isFirst ? "Show all links" : `Show only links from ${step.from_pct} % on`}
        onClick=${() => go({least: isFirst || !step.from_pct ? "" : String(step.from_pct)}, {replace: true})}><i class=${`key key-${index}`}></i>${step.label}</button>`;
    })}
    <span><i class="key key-unknown"></i>not measured</span><span><i class="key key-missing"></i>failed</span>
    <span><i class="box box-drained"></i>drained</span><span><i class="box box-behind"></i>not in sync</span><span><i class="box box-away"></i>not connected</span>
  </div>`;
}
