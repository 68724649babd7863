// Draws the placed fabric on a canvas. Lines of one look are one path, the busiest on top.

import {STEPS, stepOf} from "../scale.js";
import {pct} from "../format.js";
import {shortened} from "../ids.js";
import {isMissing} from "../store.js";

const LABELLED_FROM_PCT = 80;
const LABELLED_LINKS = 6;
const DENSE_ALPHAS = [0.22, 0.26, 0.34, 0.5, 0.9, 1];

/** The colours of the present theme, from the style sheet. */
export function colours(element) {
  const style = getComputedStyle(element);
  const of = (name) => style.getPropertyValue(name).trim();
  return {
    steps: STEPS.map((_, index) => of(`--load-${index}`)),
    unknown: of("--load-unknown"),
    surface: of("--surface"),
    ground: of("--ground"),
    band: of("--band"),
    line: of("--line-strong"),
    text: of("--text"),
    muted: of("--muted"),
    accent: of("--accent"),
    tree: of("--tree"),
    critical: of("--critical"),
    warning: of("--warning"),
    font: style.fontFamily,
  };
}

/** The ends of each link as drawn, in layout coordinates; parallel links beside each other. */
export function segmentsOf(placed, links) {
  const seen = new Map();
  const pairs = new Map();
  for (const link of links) pairs.set(pairOf(link), (pairs.get(pairOf(link)) ?? 0) + 1);
  const segments = [];
  for (const link of links) {
    const a = placed.nodes.get(link.dpid_a);
    const b = placed.nodes.get(link.dpid_b);
    if (!a || !b) continue;
    const pair = pairOf(link);
    const at = seen.get(pair) ?? 0;
    seen.set(pair, at + 1);
    const aside = (at - (pairs.get(pair) - 1) / 2) * Math.min(6, a.w / 3);
    const [upper, lower] = a.y <= b.y ? [a, b] : [b, a];
    const isLevel = placed.isRing || a.row === b.row;
    segments.push({
      link,
      x1: upper.x + aside,
      y1: isLevel ? upper.y : upper.y + upper.h / 2,
      x2: lower.x + aside,
      y2: isLevel ? lower.y : lower.y - lower.h / 2,
      bend: isLevel && !placed.isRing ? 26 : 0,
    });
  }
  return segments;
}

const pairOf = (link) => `${link.dpid_a}-${link.dpid_b}`;

function trace(context, segment, view) {
  const x1 = segment.x1 * view.k + view.x;
  const y1 = segment.y1 * view.k + view.y;
  const x2 = segment.x2 * view.k + view.x;
  const y2 = segment.y2 * view.k + view.y;
  context.moveTo(x1, y1);
  if (segment.bend) context.quadraticCurveTo((x1 + x2) / 2, (y1 + y2) / 2 + segment.bend * view.k, x2, y2);
  else context.lineTo(x2, y2);
}

/** How wide lines are drawn: thinner in a dense fabric, wider near by. */
export const widthScale = (placed, view) => Math.min(Math.max(Math.sqrt((placed.slot * view.k) / 40), 0.4), 1.4);

/**
 * The lowest layer: bands of pods, links without what they carry, then `shown` links by utilisation, those that are
 * missing dashed, and what the busiest carry.
 */
export function paintLinks(context, placed, segments, shown, view, colour, width) {
  context.fillStyle = colour.band;
  for (const band of placed.bands) {
    context.beginPath();
    context.roundRect(band.x * view.k + view.x, band.y * view.k + view.y, band.w * view.k, band.h * view.k, 8);
    context.fill();
  }
  const isDense = placed.slot * view.k < 16;
  const line = (some, style, lineWidth, alpha) => {
    if (!some.length) return;
    context.beginPath();
    for (const segment of some) trace(context, segment, view);
    context.strokeStyle = style;
    context.lineWidth = lineWidth;
    context.globalAlpha = alpha;
    context.stroke();
  };
  context.lineCap = "round";
  if (shown.length < segments.length) line(segments, colour.unknown, 1, isDense ? 0.25 : 0.8);
  const steps = STEPS.map(() => []);
  const unknown = [];
  const missing = segments.filter((segment) => isMissing(segment.link));
  for (const segment of shown) {
    if (isMissing(segment.link)) continue;
    const step = stepOf(segment.link.utilisation_pct);
    (step < 0 ? unknown : steps[step]).push(segment);
  }
  context.setLineDash([3, 3]);
  line(unknown, colour.unknown, 1, isDense ? 0.5 : 1);
  context.setLineDash([]);
  const scale = widthScale(placed, view);
  const isCrowded = isDense && shown.length === segments.length;
  steps.forEach((some, step) => line(some, colour.steps[step], STEPS[step].width * scale, isCrowded ? DENSE_ALPHAS[step] : 1));
  context.setLineDash([5, 4]);
  line(missing, colour.critical, 2, 1);
  context.setLineDash([]);
  context.globalAlpha = 1;
  labelBusiest(context, shown, view, colour, width);
}

function labelBusiest(context, segments, view, colour, width) {
  const busiest = segments
    .filter((segment) => segment.link.utilisation_pct >= LABELLED_FROM_PCT)
    .sort((a, b) => b.link.utilisation_pct - a.link.utilisation_pct)
    .slice(0, LABELLED_LINKS);
  context.font = `600 11px ${colour.font}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  const taken = [];
  for (const {x1, y1, x2, y2, link} of busiest) {
    const text = pct(link.utilisation_pct);
    const half = context.measureText(text).width / 2 + 5;
    const place = [0.5, 0.38, 0.62, 0.26, 0.74]
      .map((part) => ({x: (x1 + (x2 - x1) * part) * view.k + view.x, y: (y1 + (y2 - y1) * part) * view.k + view.y}))
      .map(({x, y}) => ({x: Math.min(Math.max(x, half + 4), width - half - 4), y}))
      .find(({x, y}) => taken.every((other) => Math.abs(other.x - x) > 2 * half || Math.abs(other.y - y) > 18));
    if (!place) continue;
    taken.push(place);
    context.fillStyle = colour.surface;
    context.strokeStyle = colour.steps.at(-1);
    context.lineWidth = 1;
    context.beginPath();
    context.roundRect(place.x - half, place.y - 9, 2 * half, 18, 9);
    context.fill();
    context.stroke();
    context.fillStyle = colour.text;
    context.fillText(text, place.x, place.y + 0.5);
  }
}

/** The tree of a group over everything else, on a halo so that it is told from what crosses it. */
export function paintTree(context, placed, segments, view, colour) {
  const scale = Math.max(widthScale(placed, view), 0.65);
  for (const [style, width] of [[colour.ground, 8 * scale], [colour.tree, 3.6 * scale]]) {
    context.beginPath();
    for (const segment of segments) trace(context, segment, view);
    context.strokeStyle = style;
    context.lineWidth = width;
    context.lineCap = "round";
    context.stroke();
  }
}

/** Mark one link, as hovered or selected. */
export function paintMark(context, segment, view, style, width) {
  context.beginPath();
  trace(context, segment, view);
  context.strokeStyle = style;
  context.lineWidth = width;
  context.lineCap = "round";
  context.stroke();
}

/** Switches with their state, and below each the number of its hosts or what a group has there. */
export function paintNodes(context, placed, view, colour, facts) {
  for (const node of placed.nodes.values()) {
    const fact = facts(node.dpid);
    const w = node.w * view.k;
    const h = node.h * Math.min(view.k, 2.2);
    const x = node.x * view.k + view.x;
    const y = node.y * view.k + view.y;
    const radius = Math.min(5, w / 3);
    context.globalAlpha = fact.isFaint ? 0.4 : 1;
    context.beginPath();
    context.roundRect(x - w / 2, y - h / 2, w, h, radius);
    context.fillStyle = fact.inTree ? colour.tree : colour.surface;
    context.fill();
    if (fact.isDrained) hatch(context, x, y, w, h, radius, colour.muted);
    context.setLineDash(fact.state === "away" ? [2, 2] : []);
    context.strokeStyle = {away: colour.critical, behind: colour.warning}[fact.state] ?? (fact.inTree ? colour.tree : colour.line);
    context.lineWidth = fact.state ? 2 : w < 8 ? 0.9 : 1.2;
    context.beginPath();
    context.roundRect(x - w / 2, y - h / 2, w, h, radius);
    context.stroke();
    context.setLineDash([]);
    const size = Math.min(12, h - 3);
    const text = shortened(node.label, Math.floor((w - 6) / (size * 0.62)));
    if (text && size >= 8) {
      context.font = `${fact.inTree ? 600 : 500} ${size}px ${colour.font}`;
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillStyle = fact.inTree ? colour.surface : colour.text;
      context.fillText(text, x, y + 0.5);
    }
    below(context, x, y + h / 2, w, colour, fact);
    context.globalAlpha = 1;
  }
}

function hatch(context, x, y, w, h, radius, style) {
  context.save();
  context.beginPath();
  context.roundRect(x - w / 2, y - h / 2, w, h, radius);
  context.clip();
  context.beginPath();
  for (let at = -h; at < w; at += 5) {
    context.moveTo(x - w / 2 + at, y + h / 2);
    context.lineTo(x - w / 2 + at + h, y - h / 2);
  }
  context.strokeStyle = style;
  context.lineWidth = 1;
  context.stroke();
  context.restore();
}

function below(context, x, top, w, colour, {hosts, marks}) {
  if (marks) {
    let y = top + 8;
    for (const mark of marks) {
      sign(context, mark.sign, x - (w >= 22 && mark.count > 1 ? 6 : 0), y, colour);
      if (w >= 22 && mark.count > 1) {
        context.font = `600 10px ${colour.font}`;
        context.textAlign = "left";
        context.textBaseline = "middle";
        context.fillStyle = colour.text;
        context.fillText(mark.count, x + 2, y + 0.5);
      }
      y += 12;
    }
  } else if (hosts) {
    context.strokeStyle = colour.line;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, top);
    context.lineTo(x, top + 5);
    context.stroke();
    if (w >= 13) {
      context.font = `10.5px ${colour.font}`;
      context.textAlign = "center";
      context.textBaseline = "top";
      context.fillStyle = colour.muted;
      context.fillText(hosts, x, top + 8);
    }
  }
}

/** The signs of a group's parts: members a disc, senders a triangle, the refused a cross. */
export function sign(context, name, x, y, colour) {
  context.beginPath();
  if (name === "member") {
    context.arc(x, y, 4, 0, 2 * Math.PI);
    context.fillStyle = colour.tree;
    context.fill();
  } else if (name === "sender") {
    context.moveTo(x, y - 5);
    context.lineTo(x + 5, y + 4);
    context.lineTo(x - 5, y + 4);
    context.closePath();
    context.fillStyle = colour.text;
    context.fill();
  } else {
    context.moveTo(x - 4, y - 4);
    context.lineTo(x + 4, y + 4);
    context.moveTo(x + 4, y - 4);
    context.lineTo(x - 4, y + 4);
    context.strokeStyle = colour.critical;
    context.lineWidth = 2.4;
    context.stroke();
  }
}
