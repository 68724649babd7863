"""One flow entry per destination host and switch, and the edits that lead from one topology to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from controller.datapath.lanes import Urgency
from controller.effects import Edit, Put, Remove
from controller.rules.cookies import cookie_of
from controller.rules.model import Match, Output, Rule, RuleKey
from controller.rules.pipeline import OPENFLOW_1_0, PRIORITY_UNICAST, UNICAST, UNICAST_TAG
from controller.unicast.paths import NO_PATHS, PathsTo, approaches, choose, mix, paths_to
from topology.events import HostLearnt
from topology.graph import Graph

Stage: TypeAlias = list[tuple[int, Edit]]
Plan: TypeAlias = list[Stage]
"""Stages of edits, each to be in place before the next is sent."""

_FIRST, _LAST = -1, 1 << 32


def host_rule(ofp_version: int, mac: bytes, port_no: int) -> Rule:
    """Return the entry that sends what is meant for a host out of a port."""
    table = 0 if ofp_version == OPENFLOW_1_0 else UNICAST
    key = RuleKey(table, PRIORITY_UNICAST, Match(eth_dst=mac))
    return Rule(key, (Output(port_no),), cookie_of(UNICAST_TAG, ("host", mac)))


Held: TypeAlias = Callable[[int, bytes], int | None]
"""The port by which a switch without a connection goes on sending to a host; None for no entry, or an unsure one."""


class Routes:
    """The output port of every known host at every switch that reaches it.

    All packets to a host take one path from each switch; the hosts spread over equal paths. The outcome depends on
    graph and hosts alone, whatever came before, but for switches that are `away`: those that have lost their
    connection and go on with the entries that they hold. Nothing is sent to one whose entry does not lead nearer to
    the host (it is astray): another path of equal length is taken, or none. So every hop leads nearer to the host,
    and nothing circles.
    """

    def __init__(self, held: Held) -> None:
        self.away: set[int] = set()
        self._held = held
        self._detoured: dict[bytes, set[int]] = {}
        self._hosts: dict[bytes, HostLearnt] = {}
        self._at: dict[int, dict[bytes, int]] = {}
        self._paths: dict[int, PathsTo] = {}
        self._ports: dict[bytes, dict[int, int]] = {}
        self._versions: dict[int, int] = {}

    def port_to(self, dpid: int, mac: bytes) -> int | None:
        """Return the port that leads from a switch towards a host, None where there is none."""
        return self._ports.get(mac, {}).get(dpid)

    def location(self, mac: bytes) -> tuple[int, int] | None:
        """Return the datapath id and port that a host's entries lead to, None for a host that has none."""
        host = self._hosts.get(mac)
        return None if host is None else (host.dpid, host.port_no)

    def hosts_at(self, dpid: int) -> list[bytes]:
        """Return the hosts whose entries lead to a switch, by MAC address."""
        return sorted(self._at.get(dpid, ()))

    def rule_to(self, dpid: int, mac: bytes) -> Rule | None:
        """Return the entry for a host at a switch, None where there is none."""
        port_no = self.port_to(dpid, mac)
        return None if port_no is None else host_rule(self._versions[dpid], mac, port_no)

    def detoured(self) -> list[bytes]:
        """Return the hosts that have another entry somewhere, or none, because of switches that are away."""
        return sorted(self._detoured)

    def path(self, dpid: int, mac: bytes) -> list[int]:
        """Return the switches on the way from a switch to a host, both ends included; none where there is no way."""
        ports = self._ports.get(mac, {})
        if mac not in self._hosts or dpid not in ports:
            return []
        next_hops = self._paths[self._hosts[mac].dpid].next_hops
        way = [dpid]
        while dpid in next_hops:
            found = [hop.dpid for hop in next_hops[dpid] if hop.port_no == ports.get(dpid)]
            if not found:
                return []
            dpid = found[0]
            way.append(dpid)
        return way

    def update(
        self,
        graph: Graph,
        versions: Mapping[int, int],
        hosts: Iterable[tuple[bytes, HostLearnt | None]],
        rewired: bool,
        again: Iterable[bytes] = (),
        urgency: Urgency = Urgency.PROMPT,
    ) -> list[tuple[Plan, Urgency]]:
        """Follow a change and return the edits as plans that need not wait for each other.

        Entries that change go in from the destination outwards: what a changed switch sends to is changed already,
        so no packet circles. There is a plan for each destination switch, so that a switch that hangs holds up no
        more than it must. New hosts go in at once, as nothing points at them, and hosts that are gone go out at once;
        of these nothing is prompt but a new host's entry at its own switch.

        Parameters
        ----------
        graph : Graph
            The switches and links.
        versions : Mapping
            The OpenFlow version of each switch of the graph.
        hosts : iterable of (bytes, HostLearnt or None)
            The hosts that changed, None for one that is gone.
        rewired : bool
            Whether switches or links may have changed since the last call.
        again : iterable of bytes
            Hosts for which a switch that is away may be astray now, or be so no more.
        urgency : Urgency
            That of entries that change: prompt where packets may go astray.
        """
        affected: dict[bytes, set[int] | None] = {mac: set() for mac in again if mac in self._hosts}
        before = self._versions
        self._versions = {**before, **versions}
        for mac, host in hosts:
            self._move(mac, host)
            affected[mac] = None
        roots = set(self._at)
        for root in set(self._paths) - roots:
            del self._paths[root]
        towards = approaches(graph) if rewired or roots - self._paths.keys() else {}
        for root in sorted(roots):
            known = self._paths.get(root)
            if known is not None and not rewired:
                continue
            paths = self._paths[root] = paths_to(towards, root)
            former = NO_PATHS if known is None else known
            changed = {
                dpid
                for dpid in former.distance.keys() | paths.distance.keys()
                if former.next_hops.get(dpid) != paths.next_hops.get(dpid)
                or (dpid in former.distance) != (dpid in paths.distance)
            }
            if changed:
                for mac in self._at[root]:
                    if affected.get(mac, changed) is not None:
                        affected[mac] = changed
        near: Stage = []
        far: Stage = []
        outwards: dict[int, dict[int, Stage]] = {}
        for mac in sorted(affected):
            self._reroute(graph, mac, affected[mac], near, far, outwards)
        self._versions = dict(versions)
        plans = [([stage], at_once) for stage, at_once in ((near, Urgency.PROMPT), (far, Urgency.BULK)) if stage]
        for _root, stages in sorted(outwards.items()):
            if stages:
                plans.append(([stages[rank] for rank in sorted(stages)], urgency))
        return plans

    def _move(self, mac: bytes, host: HostLearnt | None) -> None:
        former = self._hosts.pop(mac, None)
        if former is not None:
            at = self._at[former.dpid]
            del at[mac]
            if not at:
                del self._at[former.dpid]
        if host is not None:
            self._hosts[mac] = host
            self._at.setdefault(host.dpid, {})[mac] = host.port_no

    def _reroute(
        self,
        graph: Graph,
        mac: bytes,
        switches: set[int] | None,
        near: Stage,
        far: Stage,
        outwards: dict[int, dict[int, Stage]],
    ) -> None:
        """Bring the entries of a host up to date at some switches, or at all; stages rank by distance.

        What is sent to a switch that is astray is stopped before anything else changes.
        """
        host = self._hosts.get(mac)
        paths = NO_PATHS if host is None else self._paths[host.dpid]
        ports = self._ports.setdefault(mac, {})
        ranked = outwards.setdefault(host.dpid, {}) if host is not None and ports else None
        astray = self._astray(mac, host, paths) if self.away and host is not None else set()
        around = {near for dpid in astray for near in graph.neighbours(dpid) if isinstance(near, int)}
        detoured = self._detoured.pop(mac, set())
        seed = _seed(mac)
        concerned = ports.keys() | paths.distance.keys() if switches is None else switches | around | detoured
        for dpid in sorted(concerned):
            former = ports.get(dpid)
            rank = paths.distance.get(dpid)
            port_no = None
            if host is not None and rank is not None:
                hops = paths.next_hops.get(dpid, ())
                right = tuple(hop for hop in hops if hop.dpid not in astray) if astray else hops
                if len(right) < len(hops):
                    self._detoured.setdefault(mac, set()).add(dpid)
                if rank == 0:
                    port_no = host.port_no
                elif right:
                    port_no = choose(seed, dpid, right).port_no
            if port_no == former:
                continue
            rule = host_rule(self._versions[dpid], mac, former if port_no is None else port_no)  # type: ignore[arg-type]
            misled = former is not None and dpid in around and _leads_to(graph, dpid, former, astray)
            if misled and ranked is not None and dpid not in self.away:
                ranked.setdefault(_FIRST, []).append((dpid, Remove(rule.key)))
            if port_no is None:
                del ports[dpid]
            else:
                ports[dpid] = port_no
            if port_no is not None or not misled or dpid in self.away:
                if ranked is not None:
                    stage = ranked.setdefault(_LAST if rank is None else rank, [])
                else:
                    stage = near if rank == 0 else far
                stage.append((dpid, Remove(rule.key) if port_no is None else Put(rule)))
        if not ports:
            del self._ports[mac]

    def _astray(self, mac: bytes, host: HostLearnt, paths: PathsTo) -> set[int]:
        """Return the switches that are away and hold an entry for a host that does not lead nearer to it."""
        astray: set[int] = set()
        away = [dpid for dpid in self.away if dpid in paths.distance]
        for dpid in sorted(away, key=lambda dpid: (paths.distance[dpid], dpid)):
            held = self._held(dpid, mac)
            nearer = {hop.port_no for hop in paths.next_hops.get(dpid, ()) if hop.dpid not in astray}
            if held is None or held not in (nearer if paths.distance[dpid] else {host.port_no}):
                astray.add(dpid)
        return astray


def _leads_to(graph: Graph, dpid: int, port_no: int, switches: Iterable[int]) -> bool:
    return any(graph.has_link(dpid, other) and graph.port(dpid, other) == port_no for other in switches)


def _seed(mac: bytes) -> int:
    return mix(int.from_bytes(mac, "big"))
