// The view is held by the URL's hash, so that a link shows another person the same.

import {signal} from "../vendor/preact.js";

export const VIEWS = [
  "topology", "groups", "members", "switches", "ports", "links", "hosts", "tables", "events", "alarms", "cleared-alarms",
  "anomalies", "allocations", "classes", "maintenance", "cluster", "policy", "candidates", "probes", "runs",
];
const FIELDS = ["select", "tree", "search", "sort", "as", "least"];

/** Read a hash such as `#/ports?sort=-tx_bps&select=port/1:2`. */
export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const parameters = new URLSearchParams(query);
  const found = {view: VIEWS.includes(path) ? path : "topology"};
  for (const field of FIELDS) found[field] = parameters.get(field) ?? "";
  return found;
}

export function hashOf(route) {
  const parameters = new URLSearchParams();
  for (const field of FIELDS) if (route[field]) parameters.set(field, route[field]);
  const query = parameters.toString().replaceAll("%2F", "/").replaceAll("%3A", ":");
  return `#/${route.view}${query && "?"}${query}`;
}

export const route = signal(parse(location.hash));

addEventListener("hashchange", () => (route.value = parse(location.hash)));

/** Go to the present view with `changes`; with `replace` the way back leads past it. */
export function go(changes, {replace = false} = {}) {
  const next = {...route.value, ...changes};
  const hash = hashOf(next);
  if (hash === hashOf(route.value)) return;
  history[replace ? "replaceState" : "pushState"](null, "", hash);
  route.value = next;
}

export const viewHash = (view) => hashOf({view});

export const selected = (current) => {
  const at = current.select.indexOf("/");
  return at < 0 ? null : {kind: current.select.slice(0, at), id: current.select.slice(at + 1)};
};

/** The group whose tree is marked: the selected one, else the one kept while something else is looked at. */
export const treeOf = (current) => (current.select.startsWith("group/") ? current.select.slice(6) : current.tree);

/** What to go to so that `kind` `id` is selected; a tree that is marked stays so. */
export const selection = (current, kind, id) => ({
  select: `${kind}/${id}`,
  tree: kind === "group" ? "" : treeOf(current),
});
