// Where each switch stands: tiers from top to bottom, pods side by side; a fabric without tiers as a ring.

import {compareTexts} from "../ids.js";

const TIERS = ["core", "aggregation", "tor"];
const MARGIN = {left: 20, labels: 92, right: 20, top: 40, bottom: 56};
const ROOMY_PX = 640;
const POD_GAP = 0.7;

/**
 * Place `switches` (documents) joined by `links` (documents) in `width` x `height` px.
 * `labelOf` is what a switch is called. Returns nodes by dpid (x, y: centre; w, h), the pods' bands and the tiers' rows.
 */
export function layout(switches, links, width, height, labelOf = String) {
  const order = new Map(sorted(switches, labelOf).map(({dpid}, at) => [dpid, at]));
  const rows = rowsOf(sorted(switches, labelOf));
  if (rows.length === 1 && rows[0].members.length > 2) return ring(rows[0].members, width, height, labelOf);
  const pods = podsOf(rows, links, order);
  const slots = pods.reduce((sum, pod) => sum + pod.slots, 0) + POD_GAP * (pods.length - 1);
  const left = width >= ROOMY_PX ? MARGIN.labels : MARGIN.left;
  const slot = (width - left - MARGIN.right) / Math.max(slots, 1);
  const size = sizeOf(slot, height, rows.length, longest(switches, labelOf));
  const nodes = new Map();
  const yOf = (index) =>
    rows.length === 1 ? height / 2 : MARGIN.top + ((height - MARGIN.top - MARGIN.bottom) * index) / (rows.length - 1);
  const place = (members, from, to, index, row) => {
    members.forEach((node, at) => {
      const x = from + ((to - from) * (at + 0.5)) / members.length;
      nodes.set(node.dpid, {dpid: node.dpid, label: labelOf(node.dpid), tier: row.tier, row: index, order: 0, x, y: yOf(index), ...size});
    });
  };
  const bands = [];
  let x = left;
  for (const pod of pods) {
    const end = x + pod.slots * slot;
    pod.rows.forEach((members, index) => place(members, x, end, index, rows[index]));
    const used = pod.rows.map((members, index) => (members.length ? index : -1)).filter((index) => index >= 0);
    if (pods.length > 1 && used.length > 1) {
      const top = yOf(used[0]) - size.h / 2 - 12;
      bands.push({x: x - slot * 0.1, y: top, w: end - x + slot * 0.2, h: yOf(used.at(-1)) + size.h / 2 + 30 - top});
    }
    x = end + POD_GAP * slot;
  }
  if (pods.spine) place(rows[0].members, left, width - MARGIN.right, 0, rows[0]);
  numbered(nodes);
  return {nodes, bands, rows: rows.map((row, index) => ({label: row.label, y: yOf(index)})), isRing: false, slot};
}

function rowsOf(switches) {
  const rows = new Map();
  for (const node of switches) {
    const tier = TIERS.indexOf(node.tier);
    const key = tier >= 0 ? `0 ${tier}` : `1 ${String(99 - (node.level ?? 0)).padStart(3, "0")}`;
    const label = tier >= 0 ? {core: "Core", aggregation: "Aggregation", tor: "ToR"}[node.tier] : "Switches";
    if (!rows.has(key)) rows.set(key, {tier: node.tier, label, members: []});
    rows.get(key).members.push(node);
  }
  return [...rows.keys()].sort().map((key) => rows.get(key));
}

/** Parts that hang together below the uppermost row; one part where there is no such row. */
function podsOf(rows, links, order) {
  const isSpine = rows.length > 2;
  const below = isSpine ? rows.slice(1).flatMap((row) => row.members) : rows.flatMap((row) => row.members);
  const root = new Map(below.map((node) => [node.dpid, node.dpid]));
  const find = (dpid) => {
    while (root.get(dpid) !== dpid) {
      root.set(dpid, root.get(root.get(dpid)));
      dpid = root.get(dpid);
    }
    return dpid;
  };
  if (isSpine) {
    for (const {dpid_a, dpid_b} of links) {
      if (!root.has(dpid_a) || !root.has(dpid_b)) continue;
      const [a, b] = [find(dpid_a), find(dpid_b)];
      if (a !== b) root.set(order.get(a) < order.get(b) ? b : a, order.get(a) < order.get(b) ? a : b);
    }
  } else {
    for (const node of below) root.set(node.dpid, below[0].dpid);
  }
  const parts = new Map();
  rows.forEach((row, index) => {
    if (isSpine && index === 0) return;
    for (const node of row.members) {
      const key = find(node.dpid);
      if (!parts.has(key)) parts.set(key, {least: order.get(node.dpid), rows: rows.map(() => [])});
      const part = parts.get(key);
      part.least = Math.min(part.least, order.get(node.dpid));
      part.rows[index].push(node);
    }
  });
  const pods = [...parts.values()].sort((a, b) => a.least - b.least);
  for (const pod of pods) pod.slots = Math.max(...pod.rows.map((members) => members.length));
  pods.spine = isSpine;
  return pods;
}

const sorted = (switches, labelOf) => [...switches].sort((a, b) => compareTexts(labelOf(a.dpid), labelOf(b.dpid)));
const longest = (switches, labelOf) => switches.reduce((most, {dpid}) => Math.max(most, labelOf(dpid).length), 0);

/** Boxes are as wide as their labels where there is room. */
function sizeOf(slot, height, rowCount, label) {
  const w = Math.min(Math.max(slot * 0.74, 3), Math.min(Math.max(52, label * 7 + 12), 136));
  const h = Math.min(Math.max(w * 0.52, 12), 26, height / (rowCount * 3));
  return {w, h};
}

function ring(members, width, height, labelOf) {
  const nodes = new Map();
  const radius = {x: (width - 120) / 2, y: (height - 120) / 2};
  const slot = (Math.PI * (radius.x + radius.y)) / members.length;
  const size = sizeOf(slot, height, 4, longest(members, labelOf));
  members.forEach(({dpid, tier}, at) => {
    const angle = (2 * Math.PI * at) / members.length - Math.PI / 2;
    const x = width / 2 + radius.x * Math.cos(angle);
    nodes.set(dpid, {dpid, label: labelOf(dpid), tier, row: 0, order: at, x, y: height / 2 + radius.y * Math.sin(angle), ...size});
  });
  return {nodes, bands: [], rows: [], isRing: true, slot};
}

function numbered(nodes) {
  const rows = new Map();
  for (const node of nodes.values()) rows.set(node.row, [...(rows.get(node.row) ?? []), node]);
  for (const row of rows.values()) row.sort((a, b) => a.x - b.x).forEach((node, at) => (node.order = at));
}

/** The node that an arrow key leads to from `dpid`; the first one where none is given. */
export function neighbour(placed, dpid, key) {
  const nodes = [...placed.nodes.values()];
  const from = placed.nodes.get(dpid);
  if (!from) return nodes.reduce((least, node) => (node.row + node.order / 1e6 < least.row + least.order / 1e6 ? node : least));
  const step = {ArrowLeft: -1, ArrowRight: 1}[key];
  if (step || placed.isRing) {
    const by = step ?? (key === "ArrowUp" ? -1 : 1);
    return nodes.find((node) => node.row === from.row && node.order === from.order + by) ?? from;
  }
  const row = from.row + (key === "ArrowUp" ? -1 : 1);
  const there = nodes.filter((node) => node.row === row);
  return there.length
    ? there.reduce((best, node) => (Math.abs(node.x - from.x) < Math.abs(best.x - from.x) ? node : best))
    : from;
}
