// The server-sent events of the API, read by fetch so that heartbeats and refusals are seen too.

import {signal} from "../vendor/preact.js";
import {SECTIONS, applyChange, applySnapshot} from "./store.js";

const SILENCE_MS = 25_000;
const RETRY_MS = [500, 1000, 2000, 4000, 8000];

/** How it stands with the server: `state` is "connecting", "live" or "away". */
export const connection = signal({state: "connecting", since_ms: Date.now(), reason: null, retry_ms: null});

/** When the last byte of the server came, and how far its clock is ahead, in ms. */
export const heard = {at_ms: 0, ahead_ms: 0};

/** Follow the stream for ever; where it ends, connect again, each time after a longer pause. */
export async function follow() {
  for (let failures = 0; ; failures += 1) {
    let reason;
    try {
      reason = await read(() => (failures = 0));
    } catch (error) {
      reason = error.name === "AbortError" ? "nothing came for 25 s" : reasonOf(error);
    }
    const retry_ms = RETRY_MS[Math.min(failures, RETRY_MS.length - 1)];
    const since_ms = connection.value.state === "away" ? connection.value.since_ms : Date.now();
    connection.value = {state: "away", since_ms, reason, retry_ms};
    await new Promise((resolve) => setTimeout(resolve, retry_ms));
  }
}

const reasonOf = (error) => (error instanceof TypeError ? "the dashboard's server does not answer" : error.message);

async function read(opened) {
  const abort = new AbortController();
  let timer = setTimeout(() => abort.abort(), SILENCE_MS);
  try {
    const answer = await fetch(`/api/v1/stream?sections=${SECTIONS.join(",")}`, {
      signal: abort.signal,
      headers: {Accept: "text/event-stream"},
      cache: "no-store",
    });
    if (!answer.ok) throw new Error(`the server answered ${answer.status} ${answer.statusText}`);
    const date = Date.parse(answer.headers.get("Date") ?? "");
    heard.ahead_ms = Number.isNaN(date) ? 0 : date - Date.now();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const take = parser(handle);
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return "the server closed the stream";
      clearTimeout(timer);
      timer = setTimeout(() => abort.abort(), SILENCE_MS);
      heard.at_ms = Date.now();
      take(value);
      opened();
    }
  } finally {
    clearTimeout(timer);
    abort.abort();
  }
}

function handle(name, data) {
  if (name === "snapshot") {
    applySnapshot(JSON.parse(data).sections);
    connection.value = {state: "live", since_ms: Date.now(), reason: null, retry_ms: null};
  } else if (name === "change") {
    applyChange(JSON.parse(data).sections);
  }
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
