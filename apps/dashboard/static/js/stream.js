// The server-sent events of the API, read by fetch so that heartbeats and refusals are seen too.

import {computed, effect, signal} from "../vendor/preact.js";
import {answerOf, headed, token} from "./api.js";
import {setClock} from "./clock.js";
import {parseExactly} from "./ids.js";
import {SECTIONS, applyChange, applySnapshot, section} from "./store.js";

const SILENCE_MS = 25_000;
const RETRY_MS = [500, 1000, 2000, 4000, 8000];
/** Refusals for want of a token, and for too many wrong ones. */
const LOCKED = [401, 429];
const FORGOTTEN = "the token was forgotten";
let current = null;

/** How it stands with the server: `state` is "connecting", "live", "away", or "locked" until there is a token. */
export const connection = signal({state: "connecting", since_ms: Date.now(), reason: null, retry_ms: null});

/** Whether what is shown is as it is now: the server is there, and the controller behind it. */
export const isCurrent = computed(() => connection.value.state === "live" && section("status").get("status")?.connected !== false);

/** Follow the stream for ever; where it ends, connect again, each time after a longer pause. */
export async function follow() {
  for (let failures = 0; ; failures += 1) {
    let reason;
    try {
      reason = await read(() => (failures = 0));
    } catch (error) {
      if (error === FORGOTTEN) continue;
      if (LOCKED.includes(error.status)) {
        await unlocked(error.message);
        failures = -1;
        continue;
      }
      reason = error.name === "AbortError" ? "nothing came for 25 s" : reasonOf(error);
    }
    const retry_ms = RETRY_MS[Math.min(failures, RETRY_MS.length - 1)];
    const since_ms = connection.value.state === "away" ? connection.value.since_ms : Date.now();
    connection.value = {state: "away", since_ms, reason, retry_ms};
    await new Promise((resolve) => setTimeout(resolve, retry_ms));
  }
}

/** Show nothing more of what was told, and wait for another token. */
async function unlocked(message) {
  const reason = token.value ? `The token was refused: ${message}.` : null;
  token.value = "";
  applySnapshot({});
  connection.value = {state: "locked", since_ms: Date.now(), reason, retry_ms: null};
  let end;
  await new Promise((resolve) => {
    end = effect(() => token.value && resolve());
  });
  end();
  connection.value = {state: "connecting", since_ms: Date.now(), reason: null, retry_ms: null};
}

/** Forget the token, and what was read by it where reads need one. */
export function forget() {
  token.value = "";
  if (section("status").get("status")?.dashboard?.reads_need_token) current?.abort(FORGOTTEN);
}

const reasonOf = (error) => (error instanceof TypeError ? "the dashboard's server does not answer" : error.message);

async function read(opened) {
  const abort = new AbortController();
  current = abort;
  let timer = setTimeout(() => abort.abort(), SILENCE_MS);
  try {
    const answer = await fetch(`/api/v1/stream?sections=${SECTIONS.join(",")}`, {
      signal: abort.signal,
      headers: headed({Accept: "text/event-stream"}),
      cache: "no-store",
    });
    if (!answer.ok) await answerOf(answer);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let at_ms = Date.now();
    const take = parser((name, data) => handle(name, data, at_ms));
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return "the server closed the stream";
      clearTimeout(timer);
      timer = setTimeout(() => abort.abort(), SILENCE_MS);
      at_ms = Date.now();
      take(value);
      opened();
    }
  } finally {
    clearTimeout(timer);
    abort.abort();
  }
}

/** Take over an event that came at `at_ms` of the browser's clock. */
function handle(name, data, at_ms) {
  if (name !== "snapshot" && name !== "change") return;
  const {sections, time_s} = parseExactly(data);
  setClock(time_s, at_ms);
  if (name === "change") return applyChange(sections);
  applySnapshot(sections);
  connection.value = {state: "live", since_ms: Date.now(), reason: null, retry_ms: null};
}

/** A function that takes text as it comes and calls `onEvent(name, data)` for each whole event in it. */
export function parser(onEvent) {
  let parts = [];
  let name = "message";
  let data = [];
  const line = (text) => {
    if (text === "") {
      if (data.length) onEvent(name, data.join("\n"));
      name = "message";
      data = [];
    } else if (text.startsWith("event:")) {
      name = text.slice(6).trim();
    } else if (text.startsWith("data:")) {
      data.push(text.slice(text[5] === " " ? 6 : 5));
    }
  };
  return (text) => {
    const lines = text.split("\n");
    parts.push(lines[0]);
    if (lines.length === 1) return;
    line(parts.join("").replace(/\r$/, ""));
    for (const whole of lines.slice(1, -1)) line(whole.replace(/\r$/, ""));
    parts = [lines.at(-1)];
  };
}
