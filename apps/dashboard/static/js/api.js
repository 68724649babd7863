// Questions and orders to the API. The token is held in memory only, and sent with orders only.

import {signal} from "../vendor/preact.js";

const BASE = "/api/v1";

export const token = signal("");

/** The answer to a read; an error says what the server said. */
export async function read(path, options = {}) {
  return answerOf(await fetch(BASE + path, {cache: "no-store", ...options}));
}

/** The answer to an order, with the token. */
export async function order(method, path, body) {
  const headers = {Authorization: `Bearer ${token.value}`};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const sent = body === undefined ? undefined : JSON.stringify(body);
  return answerOf(await fetch(BASE + path, {method, headers, body: sent, cache: "no-store"}));
}

/** What the API refused, by its problem document. */
export class Problem extends Error {
  constructor(status, document) {
    super(document?.detail || document?.title || `the server answered ${status}`);
    this.status = status;
    this.document = document;
  }
}

async function answerOf(response) {
  const body = await response.text();
  let document = null;
  try {
    document = body === "" ? null : JSON.parse(body);
  } catch {
    document = {detail: body.slice(0, 500)};
  }
  if (!response.ok) throw new Problem(response.status, document);
  return document;
}
