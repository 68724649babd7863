// Switches and ports by what they are called: names, else datapath ids with 16 hexadecimal digits.

import {computed} from "../vendor/preact.js";
import {section} from "./store.js";

const BEYOND = /[:[,]\s*\d{16,}\s*[,\]}]/;
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Parse JSON; whole numbers of 16 digits and more, which a number may not hold exactly, become texts of their digits. */
export function parseExactly(text) {
  return JSON.parse(BEYOND.test(text) ? text.replace(TOKENS, (token) => (/^\d{16,}$/.test(token) ? `"${token}"` : token)) : text);
}

/** The datapath id of an id of a document, as documents have it: a number, or a text where it is too large. */
export const dpidOf = (id) => (/^\d{1,15}$/.test(id) ? Number(id) : id);

/** A datapath id as Open vSwitch prints it. */
export const hexOf = (dpid) => BigInt(dpid).toString(16).padStart(16, "0");

const told = computed(() => JSON.stringify([...section("switches").values()].map(({dpid, name}) => [dpid, name])));
const names = computed(() => new Map(JSON.parse(told.value)));

/** What a switch is called; follows changes of names alone. */
export const label = (dpid) => (dpid == null ? "–" : names.value.get(dpid) ?? hexOf(dpid));

/** What a port is called: `leaf1:49`. */
export const placeLabel = (dpid, port_no) => (port_no == null ? label(dpid) : `${label(dpid)}:${port_no}`);

const PORT = /^(\d+):(\d+)$/;
const LINK = /^(\d+):(\d+)-(\d+):(\d+)$/;

/** What the thing of a document's id is called. */
export function called(kind, id) {
  if (kind === "switch") return label(dpidOf(id));
  const port = kind === "port" && PORT.exec(id);
  if (port) return placeLabel(dpidOf(port[1]), port[2]);
  const link = kind === "link" && LINK.exec(id);
  return link ? `${placeLabel(dpidOf(link[1]), link[2])} – ${placeLabel(dpidOf(link[3]), link[4])}` : id;
}

const HEX = /^[0-9a-f]{16}(?![0-9a-f])/;
const {compare} = new Intl.Collator("en", {numeric: true});

/** Order texts as people do, their numbers as numbers; texts that begin with datapath ids by these. */
export function compareTexts(a, b) {
  const [first, second] = [HEX.exec(a), HEX.exec(b)];
  if (first && second && first[0] !== second[0]) return first[0] < second[0] ? -1 : 1;
  return compare(a, b);
}

/** Order switches by what they are called. */
export const byLabel = (a, b) => compareTexts(label(a), label(b));

/** Text that orders ports by switch and number. */
export const orderOfPort = ({dpid, port_no}) => `${label(dpid)}:${port_no ?? ""}`;

/** At most `room` characters of what a switch is called: its end tells it from its neighbours. */
export const shortened = (text, room) => (text.length <= room ? text : room < 3 ? "" : `…${text.slice(1 - room)}`);
