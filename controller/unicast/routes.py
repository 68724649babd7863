"""One flow entry per destination host and switch, and the edits that lead from one topology to the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

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

_LAST = 1 << 32


def host_rule(ofp_version: int, mac: bytes, port_no: int) -> Rule:
    """Return the entry that sends what is meant for a host out of a port."""
    table = 0 if ofp_version == OPENFLOW_1_0 else UNICAST
    key = RuleKey(table, PRIORITY_UNICAST, Match(eth_dst=mac))
    return Rule(key, (Output(port_no),), cookie_of(UNICAST_TAG, ("host", mac)))


class Routes:
    """The output port of every known host at every switch that reaches it.

    All packets to a host take one path from each switch; the hosts spread over equal paths. The outcome depends on
    graph and hosts alone, whatever came before.
    """

    def __init__(self) -> None:
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

    def path(self, dpid: int, mac: bytes) -> Iterator[int]:
        """Yield the switches on the way from a switch to a host, both ends included; nothing where there is none."""
        if mac not in self._hosts or dpid not in self._ports.get(mac, ()):
            return
        paths, seed = self._paths[self._hosts[mac].dpid], _seed(mac)
        yield dpid
        while dpid in paths.next_hops:
            dpid = choose(seed, dpid, paths.next_hops[dpid]).dpid
            yield dpid

    def update(
        self,
        graph: Graph,
        versions: Mapping[int, int],
        hosts: Iterable[tuple[bytes, HostLearnt | None]],
        rewired: bool,
    ) -> list[Plan]:
        """Follow a change and return the edits as plans that need not wait for each other.

        Entries that change go in from the destination outwards: what a changed switch sends to is changed already,
        so no packet circles. There is a plan for each destination switch, so that a switch that hangs holds up no
        more than it must. New hosts go in at once, as nothing points at them, and hosts that are gone go out at once.

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
        """
        affected: dict[bytes, set[int] | None] = {}
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
        at_once: Stage = []
        outwards: dict[int, dict[int, Stage]] = {}
        for mac in sorted(affected):
            self._reroute(mac, affected[mac], at_once, outwards)
        self._versions = dict(versions)
        plans = [[at_once]] if at_once else []
        plans += [[stages[rank] for rank in sorted(stages)] for _root, stages in sorted(outwards.items()) if stages]
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
        self, mac: bytes, switches: set[int] | None, at_once: Stage, outwards: dict[int, dict[int, Stage]]
    ) -> None:
        """Bring the entries of a host up to date at some switches, or at all; stages rank by distance."""
        host = self._hosts.get(mac)
        paths = NO_PATHS if host is None else self._paths[host.dpid]
        ports = self._ports.setdefault(mac, {})
        ranked = outwards.setdefault(host.dpid, {}) if host is not None and ports else None
        seed = _seed(mac)
        for dpid in sorted(ports.keys() | paths.distance.keys() if switches is None else switches):
            former = ports.get(dpid)
            rank = paths.distance.get(dpid)
            edit: Edit
            if host is not None and rank is not None:
                port_no = host.port_no if rank == 0 else choose(seed, dpid, paths.next_hops[dpid]).port_no
                if port_no == former:
                    continue
                ports[dpid] = port_no
                edit = Put(host_rule(self._versions[dpid], mac, port_no))
            elif former is not None:
                del ports[dpid]
                edit = Remove(host_rule(self._versions[dpid], mac, former).key)
            else:
                continue
            stage = at_once if ranked is None else ranked.setdefault(_LAST if rank is None else rank, [])
            stage.append((dpid, edit))
        if not ports:
            del self._ports[mac]


def _seed(mac: bytes) -> int:
    return mix(int.from_bytes(mac, "big"))
