// What is known of one thing: a group, switch, port, link or host.

import {html, useState} from "../../vendor/preact.js";
import {Order, allocate, drain, forget, forgetLink, rebuild, routerPort, staticMember, undrain} from "../actions.js";
import {farEnd, linkTone, openflow, receiverVlansOf, sourcesOf, sourceVlanOf, switchTone, vlanOf, vlansOf} from "../columns.js";
import {bps, count, counted, number, pct, pps, text, time} from "../format.js";
import {hexOf, label, placeLabel, shortened} from "../ids.js";
import {Age, Facts, Load, Ref, State} from "../parts.js";
import {hostsOfPort, hostsOfSwitch, isMissing, linkById, parties, partiesOf, portsOfSwitch, refusals, section} from "../store.js";
import {TableLine, tablesOf} from "../tables.js";
import {Workflows} from "../workflows.js";
import {History} from "./chart.js";

const FEW = 12;

/** The first rows of many, and a button for all. */
export function Some({rows, each, none}) {
  const [isAll, setAll] = useState(false);
  if (!rows.length) return html`<p class="quiet">${none}</p>`;
  return html`<ul class="rows">${(isAll ? rows : rows.slice(0, FEW)).map(each)}</ul>
    ${rows.length > FEW && html`<button type="button" class="button is-quiet" onClick=${() => setAll(!isAll)}>${isAll ? "Fewer" : `All ${rows.length}`}</button>`}`;
}

const Part = ({title, amount, children}) => html`<section class="part">
  <h3>${title}${amount == null ? null : html` <span class="amount">${amount}</span>`}</h3>${children}</section>`;

const Port = ({at}) => html`<${Ref} kind="port" id=${`${at.dpid}:${at.port_no}`} />`;

const counters = (at_s) => (at_s == null ? null : html`<${Age} at_s=${at_s} />`);

const nameOf = (party) => party.ip ?? party.mac ?? "port";

function Party({party}) {
  const isRefused = party.state === "refused";
  const event = isRefused && refusals.value.get([party.group, party.dpid, party.port_no].join());
  const more = party.role === "sender" ? bps(party.rate_bps) : party.state === "static" ? "static" : sourcesOf(party);
  return html`<li class=${isRefused ? "is-refused-row" : null}>
    <span>${isRefused && html`<span aria-hidden="true" class="is-refused">✕ </span>`}${nameOf(party)}</span>
    <span class="row-more">${[more, party.rule && `rule ${party.rule}`, isRefused && party.reason].filter(Boolean).join(" · ")}${event && html` · <${Ref} kind="event" id=${event.id}>why<//>`}</span>
    <${Port} at=${party} /></li>`;
}

export function Group({id}) {
  const group = section("groups").get(id);
  if (!group) return html`<${Gone} what=${`Group ${id}`} />`;
  const all = partiesOf(group);
  const of = (role, ...states) => all.filter((party) => party.role === role && states.includes(party.state));
  const members = of("receiver", "admitted", "static");
  const senders = of("sender", "admitted");
  const refused = all.filter((party) => party.state === "refused");
  const each = (party) => html`<${Party} key=${party.id} party=${party} />`;
  return html`<${Facts} of=${[
      ["VLAN", vlanOf(group)],
      ["From VLAN", sourceVlanOf(group)],
      ["To VLANs", receiverVlansOf(group)],
      ["Rate", bps(group.rate_bps)],
      ["Tree", counted(group.links?.length ?? 0, "link")],
      ["Cut off", group.detached?.length ? `switches ${group.detached.map(label).join(", ")}` : null],
      ["Unsupported", group.unsupported],
    ]} />
    <div class="buttons"><${Order} what=${rebuild(id)} label="Rebuild tree" /></div>
    <${Workflows} kind="group" id=${id} state=${group.size} />
    <${Part} title="Members" amount=${members.length}><${Some} rows=${members} each=${each} none="No member." /><//>
    <${Part} title="Senders" amount=${senders.length}><${Some} rows=${senders} each=${each} none="Nobody sends." /><//>
    <${Part} title="Refused" amount=${refused.length}><${Some} rows=${refused} each=${each} none="Nobody was refused." /><//>
    <${StaticMembers} group=${group} />`;
}

function StaticMembers({group}) {
  const [port, setPort] = useState("");
  const match = /^\s*([^/:][^/]*):([^:/]+?)\s*$/.exec(port);
  return html`<${Part} title="Static members" amount=${group.static_members?.length ?? 0}>
    <ul class="rows">${(group.static_members ?? []).map((at) => html`<li key=${`${at.dpid}:${at.port_no}`}>
      <${Port} at=${at} />${at.waiting_for && html`<span class="quiet">waits: ${at.waiting_for}</span>`}
      ${at.set_by === "policy" ? html`<span class="quiet">set by the policy file</span>` : html`<${Order} what=${staticMember(group.group, label(at.dpid), at.port_no, true)} label="Remove" />`}</li>`)}</ul>
    <div class="inline-form"><label>Port <input value=${port} placeholder="switch:port" inputmode="text" size="14" onInput=${(event) => setPort(event.target.value)} /></label>
      ${match ? html`<${Order} what=${staticMember(group.group, match[1], match[2], false)} label="Add" />` : html`<button type="button" class="button" disabled>Add</button>`}</div><//>`;
}

export function Switch({id}) {
  const node = section("switches").get(id);
  if (!node) return html`<${Gone} what=${`Switch ${id}`} />`;
  const [tone, word] = switchTone(node);
  const ports = (portsOfSwitch.value.get(node.dpid) ?? []).toSorted((a, b) => a.port_no - b.port_no);
  const tables = tablesOf(node.dpid);
  const through = [...section("groups").values()].filter((group) => group.links?.some(([a, b]) => a === node.dpid || b === node.dpid));
  return html`<${Facts} of=${[
      ["State", html`<${State} tone=${tone}>${word}<//>`],
      ["Datapath id", hexOf(node.dpid)],
      ["Tier", node.tier],
      ["Labels", labelsOf(node)],
      ["OpenFlow", openflow(node.ofp_version)],
      ["CPU", pct(node.cpu_pct)],
      ["Memory", pct(node.memory_pct)],
      ["Hosts", count(hostsOfSwitch.value.get(node.dpid)?.length ?? 0)],
      ["Not connected", node.connected === false && node.disconnected_s != null ? `since ${time(node.disconnected_s)}` : null],
      ["Counters", counters(node.answered_s)],
    ]} />
    <div class="buttons">${node.connected === false && html`<${Order} what=${forget(node.dpid)} label="Forget" danger />`}${node.drained ? html`<${Order} what=${undrain(node.dpid)} label="Undrain" />` : html`<${Order} what=${drain(node.dpid)} label="Drain" danger />`}</div>
    <${Workflows} kind="switch" id=${id} state=${[word, labelsOf(node)].join()} />
    <${Part} title="Ports" amount=${ports.length}>
      <${Some} rows=${ports} none="No ports are known." each=${(port) => html`<li key=${port.id}><span><${Port} at=${port} /> <span class="row-more">${farName(port)}</span></span>
        <${Load} value=${busier(port)} /></li>`} /><//>
    ${tables.length > 0 && html`<${Part} title="Flow tables" amount=${tables.length}>
      <${Some} rows=${tables} each=${(row) => html`<li key=${row.id}><${TableLine} row=${row} /></li>`} /><//>`}
    <${Part} title="Trees through it" amount=${through.length}>
      <${Some} rows=${through} none="None." each=${(group) => html`<li key=${group.id}><${Ref} kind="group" id=${group.group} /><span>${bps(group.rate_bps)}</span></li>`} /><//>`;
}

const labelsOf = ({labels}) => Object.entries(labels ?? {}).map(([key, value]) => `${key}=${value}`).join(", ") || null;

const namesOf = ({vlans}) => Object.entries(vlans?.names ?? {}).map(([id, name]) => `${id} ${name}`).join(", ") || null;

const legsOf = ({link_aggregation: group}) => group
  && `${group.name} (${group.mode}): ${(group.legs ?? []).map((leg) => `${placeLabel(leg.dpid, leg.port_no)} ${leg.works ? "works" : "does not work"}`).join(", ")}`;

const routersInVlans = (port) => [...section("routers").values()]
  .filter((router) => router.vlan != null && router.dpid === port.dpid && router.port_no === port.port_no)
  .map((router) => `IPv${router.family} in VLAN ${router.vlan}`).join(", ") || null;

const busier = (port) => {
  const known = [port.rx_utilisation_pct, port.tx_utilisation_pct].filter((value) => value != null);
  return known.length ? Math.max(...known) : null;
};

function farName(port) {
  const far = farEnd(port.dpid, port.port_no);
  if (far) return `to ${shortened(label(far.dpid), 12)}:${far.port_no}`;
  const hosts = hostsOfPort.value.get(port.id) ?? [];
  if (hosts.length) return hosts.length === 1 ? hosts[0].ips?.[0] ?? hosts[0].mac : counted(hosts.length, "host");
  return port.role ?? "";
}

export function PortDetails({id}) {
  const port = section("ports").get(id);
  const [family, setFamily] = useState("4");
  if (!port) return html`<${Gone} what=${`Port ${id}`} />`;
  const far = farEnd(port.dpid, port.port_no);
  const hosts = hostsOfPort.value.get(id) ?? [];
  const here = parties.value.filter((party) => party.dpid === port.dpid && party.port_no === port.port_no);
  const router = section("routers").get(`${port.dpid}:${port.port_no}:${family}`);
  return html`<${Facts} of=${[
      ["Name", port.name],
      ["Switch", html`<${Ref} kind="switch" id=${port.dpid} />`],
      ["Role", port.role],
      ["Link aggregation", legsOf(port)],
      ["VLANs", vlansOf(port)],
      ["VLAN names", namesOf(port)],
      ["Labels", labelsOf(port)],
      ["Other end", far && html`<${Ref} kind="port" id=${`${far.dpid}:${far.port_no}`} />`],
      ["Link", far && html`<${Ref} kind="link" id=${far.link.id} />`],
      ["Speed", bps(port.speed_bps)],
      ["Counters", port.sampled_s == null ? null : counters(section("switches").get(String(port.dpid))?.answered_s ?? port.sampled_s)],
    ]} />
    <${Part} title="Now"><table class="small"><thead><tr><td></td><th scope="col">Receiving</th><th scope="col">Sending</th></tr></thead><tbody>
      <tr><th scope="row">Utilisation</th><td><${Load} value=${port.rx_utilisation_pct} /></td><td><${Load} value=${port.tx_utilisation_pct} /></td></tr>
      <tr><th scope="row">Rate</th><td>${bps(port.rx_bps)}</td><td>${bps(port.tx_bps)}</td></tr>
      <tr><th scope="row">Packets</th><td>${pps(port.rx_pps)}</td><td>${pps(port.tx_pps)}</td></tr>
      <tr><th scope="row">Errors</th><td>${pps(port.rx_errors_pps)}</td><td>${pps(port.tx_errors_pps)}</td></tr>
      <tr><th scope="row">Drops</th><td>${pps(port.rx_dropped_pps)}</td><td>${pps(port.tx_dropped_pps)}</td></tr>
    </tbody></table><//>
    <${History} dpid=${port.dpid} port_no=${port.port_no} />
    ${(port.score != null || port.port_metric != null || port.disqualified) && html`<${Part} title="Judged"><${Facts} of=${[
      ["Anomaly score", port.score == null ? null : `${number(port.score)}${port.verdict ? `, ${port.verdict}` : ""}`],
      ["Peers", port.peer_group],
      ["Port metric", port.port_metric == null ? null : pct(port.port_metric)],
      ["Usage", port.usage == null ? null : pct(port.usage)],
      ["Not allocated", disqualification(port.disqualified)],
    ]} /><//>`}
    <${Part} title="Hosts" amount=${hosts.length}><${Some} rows=${hosts} none="No host was seen here." each=${(host) => html`<li key=${host.id}><${Ref} kind="host" id=${host.id} /><span>${text(host.ips?.join(", "))}</span></li>`} /><//>
    <${Part} title="Groups here" amount=${here.length}><${Some} rows=${here} none="None." each=${(party) => html`<li key=${party.id}><${Ref} kind="group" id=${party.group} /><span>${party.role}, ${party.state}</span></li>`} /><//>
    <${Workflows} kind="port" id=${id} state=${[port.role, labelsOf(port)].join()} />
    <${Part} title="Router port"><div class="inline-form"><label>IP version <select value=${family} onChange=${(event) => setFamily(event.target.value)}><option>4</option><option>6</option></select></label>
      <${Order} what=${routerPort(port.dpid, port.port_no, Number(family), Boolean(router?.static))} label=${router?.static ? "Remove router port" : "Make it a router port"} /></div>
      ${router && !router.static && html`<p class="quiet">A multicast router was heard here.</p>`}
      ${routersInVlans(port) && html`<p class="quiet">Multicast routers of VLANs: ${routersInVlans(port)}.</p>`}<//>`;
}

const disqualification = (value) => (!value ? null : value === true ? "disqualified" : Array.isArray(value) ? value.join(", ") : String(value));

export function Link({id}) {
  const link = linkById.value.get(id);
  if (!link) return html`<${Gone} what=${`Link ${id}`} />`;
  const over = [...section("groups").values()].filter((group) =>
    group.links?.some(([a, b]) => (a === link.dpid_a && b === link.dpid_b) || (b === link.dpid_a && a === link.dpid_b)));
  const way = (from, to, pct_, bps_) => html`<tr><th scope="row" class="may-wrap">${label(from)} → ${label(to)}</th><td><${Load} value=${pct_} /></td><td>${bps(bps_)}</td></tr>`;
  return html`<${Facts} of=${[
      ["Ends", html`<${Port} at=${{dpid: link.dpid_a, port_no: link.port_a}} />${" – "}<${Port} at=${{dpid: link.dpid_b, port_no: link.port_b}} />`],
      ["State", html`<${State} tone=${linkTone(link)[0]}>${linkTone(link)[1]}<//>`],
      ["Since", link.since_s == null ? null : time(link.since_s)],
      ["Capacity", bps(link.capacity_bps)],
    ]} />
    ${isMissing(link) && html`<div class="buttons"><${Order} what=${forgetLink(link.id)} label="Forget" danger /></div>`}
    <${Part} title="Now"><table class="small"><thead><tr><td></td><th scope="col">Utilisation</th><th scope="col">Rate</th></tr></thead><tbody>
      ${way(link.dpid_a, link.dpid_b, link.utilisation_ab_pct, link.ab_bps)}${way(link.dpid_b, link.dpid_a, link.utilisation_ba_pct, link.ba_bps)}</tbody></table><//>
    <${Part} title="Trees over it" amount=${over.length}><${Some} rows=${over} none="None." each=${(group) => html`<li key=${group.id}><${Ref} kind="group" id=${group.group} /><span>${bps(group.rate_bps)}</span></li>`} /><//>`;
}

export function Host({id}) {
  const host = section("hosts").get(id);
  if (!host) return html`<${Gone} what=${`Host ${id}`} />`;
  const here = parties.value.filter((party) => party.mac === host.mac);
  return html`<${Facts} of=${[["IP addresses", text(host.ips?.join(", "))], ["Port", html`<${Port} at=${host} />`], ["Switch", html`<${Ref} kind="switch" id=${host.dpid} />`]]} />
    <${Workflows} kind="host" id=${id} state=${`${host.dpid}:${host.port_no}`} />
    <${Part} title="Groups" amount=${here.length}><${Some} rows=${here} none="It neither receives nor sends." each=${(party) => html`<li key=${party.id}>
      <${Ref} kind="group" id=${party.group} /><span>${party.role}, ${party.state}</span></li>`} /><//>`;
}

export const Gone = ({what}) => html`<p class="quiet">${what} is not there, or no longer.</p>`;

export const AllocationForm = () => {
  const [amount, setAmount] = useState("2");
  const whole = Number.parseInt(amount, 10);
  return html`<div class="inline-form"><label>Ports <input type="number" min="1" max="10000" value=${amount} onInput=${(event) => setAmount(event.target.value)} /></label>
    ${whole > 0 ? html`<${Order} what=${allocate({count: whole})} label="Request ports" />` : html`<button type="button" class="button" disabled>Request ports</button>`}</div>`;
};
