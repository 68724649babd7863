// The page's one clock, which is the server's: all ages go by it, and move on together.

import {signal} from "../vendor/preact.js";

const TICK_MS = 1000;
let ahead_ms = 0;

const serverNow_s = () => (Date.now() + ahead_ms) / 1000;

/** Epoch seconds by the server's clock; moves on each second, and with all that the server tells. */
export const now_s = signal(serverNow_s());

const tick = () => (now_s.value = serverNow_s());

/** Go by the server's clock, which read `time_s` when what came at `at_ms` of the browser's clock was sent. */
export function setClock(time_s, at_ms) {
  ahead_ms = time_s * 1000 - at_ms;
  tick();
}

/** Seconds since a moment of the server's clock; who reads them in a render follows them. */
export const age_s = (epoch_s) => Math.max(0, now_s.value - epoch_s);

setInterval(tick, TICK_MS);
document.addEventListener("visibilitychange", tick);
