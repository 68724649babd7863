// The policy file as it runs, how often each rule decided, and what is wrong with a newer file.

import {html, useEffect, useState} from "../vendor/preact.js";
import {Order, reload, resetCounters} from "./actions.js";
import {read} from "./api.js";
import {count, text} from "./format.js";
import {Time} from "./parts.js";
import {section} from "./store.js";

/** The line (from 0) at which each rule is named. */
export function linesOfRules(lines, names) {
  const found = new Map();
  lines.forEach((line, at) => {
    const match = /\bname:\s*["']?([^"',}\s]+)/.exec(line) ?? /^\s*(default):/.exec(line);
    if (match && names.has(match[1]) && !found.has(at)) found.set(at, match[1]);
  });
  return found;
}

/** Tell whether a rule never decided; the default need not. */
function isUnused(rule) {
  return rule.rule !== "default" && !rule.allow && !rule.deny;
}

export function Policy() {
  const policy = section("policy").get("policy");
  const rules = [...section("rules").values()];
  const byName = new Map(rules.map((rule) => [rule.rule, rule]));
  const lines = (policy?.text ?? "").replace(/\n$/, "").split("\n");
  const at = linesOfRules(lines, byName);
  const errors = policy?.errors ?? [];
  const faulty = new Set(errors.map((error) => error.line));
  const most = Math.max(1, ...rules.map((rule) => (rule.allow ?? 0) + (rule.deny ?? 0)));
  return html`<section class="page" aria-label="Policy">
    <div class="bar"><h1>Policy</h1>
      ${policy && html`<p class="quiet"><code>${text(policy.path)}</code>, loaded <${Time} at_s=${policy.loaded_s} /></p>`}
      <div class="buttons"><${Order} what=${reload()} label="Reload" /><${Order} what=${resetCounters()} label="Reset counters" /></div></div>
    <div class="policy">
      ${errors.length > 0 && html`<div class="note is-bad" role="alert"><b>The newer file has faults; the policy before it runs on.</b>
        <ul>${errors.map((error, index) => html`<li key=${index}>${typeof error === "string" ? error : `line ${error.line}, ${error.field}: ${error.message}`}</li>`)}</ul></div>`}
      <table class="small rules"><caption>Rules in their order: the first that matches decides</caption>
        <thead><tr><th scope="col">Rule</th><th scope="col">Allowed</th><th scope="col">Denied</th></tr></thead>
        <tbody>${rules.map((rule) => html`<tr key=${rule.id} class=${isUnused(rule) ? "is-unused" : null}><th scope="row">${rule.rule}</th><td><${Share} value=${rule.allow} of=${most} tone="good" /></td><td><${Share} value=${rule.deny} of=${most} tone="refused" /></td></tr>`)}</tbody></table>
      <${Unused} key=${policy?.loaded_s} />
      <${Staged} />
      ${policy ? html`<ol class="source" aria-label="Policy file" tabindex="0">${lines.map((line, index) => {
        const rule = byName.get(at.get(index));
        return html`<li key=${index} class=${faulty.has(index + 1) ? "is-faulty" : rule && isUnused(rule) ? "is-unused" : null}><code>${line || " "}</code>${rule && html`<span class="source-count">${count(rule.allow)} allowed, ${count(rule.deny)} denied</span>`}</li>`;
      })}</ol>` : html`<p class="quiet">The controller told of no policy file.</p>`}
    </div>
  </section>`;
}

/** Tenants without hosts and addresses that nobody uses, as they are when the view is opened; rules stand in their own list. */
function Unused() {
  const [found, setFound] = useState([]);
  useEffect(() => {
    let isLeft = false;
    read(`/unused?limit=${UNUSED}`).then((answer) => isLeft || setFound(answer.items.filter((one) => one.kind !== "rule")), () => null);
    return () => {
      isLeft = true;
    };
  }, []);
  if (!found.length) return null;
  return html`<table class="small rules"><caption>Nobody uses: tenants without hosts, addresses of pools</caption>
    <thead><tr><th scope="col">What</th><th scope="col">Name</th><th scope="col">Why</th></tr></thead>
    <tbody>${found.slice(0, SHOWN).map((one) => html`<tr key=${one.id} class="is-unused"><th scope="row">${one.kind}</th><td>${one.name}</td><td class="may-wrap">${one.reason}</td></tr>`)}</tbody></table>
    ${found.length > SHOWN && html`<p class="quiet">More: <code>vsrt show unused</code></p>`}`;
}

/** What a staged policy would decide otherwise; nothing where none is staged. */
function Staged() {
  const all = [...section("staged").values()];
  const summary = all.find((one) => one.would_be === "alike");
  if (!summary) return null;
  const otherwise = all.filter((one) => one !== summary);
  const errors = summary.errors ?? [];
  return html`<div class="staged">
    ${errors.length > 0 && html`<div class="note is-bad" role="alert"><b>The staged file has faults.</b><ul>${errors.map((error, index) => html`<li key=${index}>${error}</li>`)}</ul></div>`}
    ${!summary.loaded_s ? html`<p class="quiet">${errors.length > 0 ? "Nothing is judged by" : "No file yet:"} ${text(summary.path)}, which is to be staged.</p>` : html`<table class="small"><caption>What ${text(summary.path)}, which is staged, would decide otherwise: ${count(otherwise.length)}; alike: ${count(summary.count)}${summary.beyond > 0 && `; not told one by one: ${count(summary.beyond)}`}</caption>
      <thead><tr><th scope="col">Group</th><th scope="col">Would be</th><th scope="col">Role</th><th scope="col">Host</th><th scope="col">Rule now</th><th scope="col">Rule then</th><th scope="col">Times</th></tr></thead>
      <tbody>${otherwise.slice(0, SHOWN).map((one) => html`<tr key=${one.id}><th scope="row">${text(one.group)}${one.source && ` from ${one.source}`}</th><td>${text(one.would_be)}</td><td>${text(one.role)}</td><td>${text(one.ip ?? one.mac)}</td><td>${text(one.rule)}</td><td>${text(one.staged_rule)}</td><td>${count(one.count)}</td></tr>`)}</tbody></table>`}
    ${otherwise.length > SHOWN && html`<p class="quiet">${count(otherwise.length - SHOWN)} more: <code>vsrt show staged</code></p>`}</div>`;
}

const SHOWN = 100;

const UNUSED = 2000;

const Share = ({value, of, tone}) => html`<span class="share"><span class="share-figure">${count(value)}</span><span class="load-track" aria-hidden="true"><span class=${`load-bar bar-${tone}`}
  ref=${(bar) => bar && (bar.style.width = `${(100 * (value ?? 0)) / of}%`)}></span></span></span>`;
