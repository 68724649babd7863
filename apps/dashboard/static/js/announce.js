// One polite live region for what a screen reader should hear.

import {html, signal} from "../vendor/preact.js";

const spoken = signal("");

export const say = (text) => (spoken.value = text);

export const Announcer = () => html`<div class="unseen" role="status" aria-live="polite">${spoken.value}</div>`;
