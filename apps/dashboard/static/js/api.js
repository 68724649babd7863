// Questions and orders to the API. The token is held in memory only, and sent as a header only.

import {signal} from "../vendor/preact.js";
import {parseExactly} from "./ids.js";

const BASE = "/api/v1";

export const token = signal("");

/** The headers of a request, with the token where there is one. */
export const headed = (headers = {}) => (token.value ? {...headers, Authorization: `Bearer ${token.value}`} : headers);

/** The answer to a read; an error says what the server said. */
export async function read(path, options = {}) {
  return answerOf(await fetch(BASE + path, {cache: "no-store", headers: headed(), ...options}));
}

/** The answer to an order, with the token. */
export async function order(method, path, body) {
  const headers = headed(body === undefined ? {} : {"Content-Type": "application/json"});
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

/** The document of an answer; a Problem where it is a refusal. */
export async function answerOf(response) {
  const body = await response.text();
  let document = null;
  try {
    document = body === "" ? null : parseExactly(body);
  } catch {
    document = {detail: body.slice(0, 500)};
  }
  if (!response.ok) throw new Problem(response.status, document);
  return document;
}
