"""Proxying for an IPv6 router at the edge: a querier of MLDv2 made here, over ICMPv6 sockets of the kernel."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any

import pytest

from apps.emulation.namespace import network_of
from router_edge import two_switches, wait
from topology.graph import Graph

pytestmark = pytest.mark.emulation

POLICY = """\
version: 1
default: allow
multicast:
  querier: {accept_others: true, response_interval_s: 1, last_member_interval_s: 0.2}
  router_ports: {learn: true}
  proxy: {router_ports: true}
"""
QUERY, REPORT = 130, 143
IS_IN, IS_EX, TO_IN, TO_EX, ALLOW, BLOCK = range(1, 7)
"""Types of messages and records (RFC 3810, 5.1 and 5.2)."""

EVERY_SOURCE = (True, frozenset[str]())
ROUTER_ALERT = bytes((0, 0, 5, 2, 0, 0, 1, 0))
OF_THE_CONTROLLER = "fe80::ffff:ffff:ffff:fffe"
RESPONSE_MS = 500
RATE_BPS = 2e6


@pytest.fixture(scope="module")
def bench() -> tuple[Graph, dict[str, Any]]:
    """Switches s1 with h1 and the router r1, and s2 with h2."""
    return two_switches({"h1": "s1", "h2": "s2", "r1": "s1"})


class Querier:
    """What a multicast router does on a link: it asks, and keeps what it is told, as (excludes, sources) by group.

    `reporters` are the addresses that told it anything of a group beyond link scope.
    """

    def __init__(self, live: Any, host: str) -> None:
        self.groups: dict[str, tuple[bool, frozenset[str]]] = {}
        self.reporters: set[str] = set()
        with network_of(live.fabric.pid(host)):
            self.socket = socket.socket(
                socket.AF_INET6, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.IPPROTO_ICMPV6
            )
            self.index = socket.if_nametoindex(live.fabric.interface(host))
        for option, value in (
            (socket.IPV6_MULTICAST_IF, self.index),
            (socket.IPV6_MULTICAST_HOPS, 1),
            (socket.IPV6_MULTICAST_LOOP, 0),
            (socket.IPV6_HOPOPTS, ROUTER_ALERT),
            (socket.IPV6_JOIN_GROUP, socket.inet_pton(socket.AF_INET6, "ff02::16") + struct.pack("@I", self.index)),
        ):
            self.socket.setsockopt(socket.IPPROTO_IPV6, option, value)

    def ask(self, group: str = "::") -> None:
        """Send a query: of one group, else of all."""
        fields = (QUERY, 0, 0, RESPONSE_MS, 0, socket.inet_pton(socket.AF_INET6, group), 2, 10, 0)
        to = "ff02::1" if group == "::" else group
        self.socket.sendto(struct.pack("!BBHHH16sBBH", *fields), (to, 0, 0, self.index))

    def forget(self) -> None:
        """Forget what it was told."""
        self.groups.clear()
        self.reporters.clear()

    def knows(self, group: str) -> tuple[bool, frozenset[str]] | None:
        """Take in what came, and return what is wanted of a group: True and the sources that are not, or False."""
        while True:
            try:
                message, (reporter, *_) = self.socket.recvfrom(65535)
            except BlockingIOError:
                return self.groups.get(group)
            if message[0] == REPORT:
                self._take(message, reporter.split("%")[0])

    def _take(self, message: bytes, reporter: str) -> None:
        place = 8
        for _ in range(int.from_bytes(message[6:8], "big")):
            kind, auxiliary_words, count, group = struct.unpack_from("!BBH16s", message, place)
            place += 20
            packed = [message[place + 16 * n : place + 16 * (n + 1)] for n in range(count)]
            place += 16 * count + 4 * auxiliary_words
            if group[1] & 0x0F <= 2:
                continue
            self.reporters.add(reporter)
            name = socket.inet_ntop(socket.AF_INET6, group)
            self._record(name, kind, frozenset(socket.inet_ntop(socket.AF_INET6, source) for source in packed))

    def _record(self, group: str, kind: int, sources: frozenset[str]) -> None:
        excludes, before = self.groups.get(group, (False, frozenset()))
        if kind in (IS_IN, TO_IN, IS_EX, TO_EX):
            excludes, after = kind in (IS_EX, TO_EX), sources
        else:
            after = before | sources if (kind == ALLOW) is not excludes else before - sources
        if excludes or after:
            self.groups[group] = (excludes, after)
        else:
            self.groups.pop(group, None)


@pytest.fixture
def querier(live: Any) -> Iterator[Querier]:
    live.set_policy(POLICY)
    querier = Querier(live, "r1")
    with querier.socket:
        querier.ask()
        wait(lambda: ports(live))
        yield querier


def ports(live: Any) -> list[dict[str, Any]]:
    """Return the ports with a router of IPv6, as the controller shows them."""
    return [port for port in live.controller.show("routers")["router_ports"] if port["family"] == 6]


def test_a_router_of_ipv6_hears_one_host_in_place_of_many(live: Any, querier: Querier) -> None:
    group = "ff0e::1:10"
    live.fabric.join("h1", group, name="one")
    live.fabric.join("h2", group, name="two")
    live.wait_members(group, {"h1", "h2"})
    wait(lambda: querier.knows(group) == EVERY_SOURCE)
    querier.forget()
    querier.ask()
    wait(lambda: querier.knows(group) == EVERY_SOURCE)
    live.fabric.leave("h1", group, name="one")
    live.wait_members(group, {"h2"})
    querier.forget()
    querier.ask(group)
    wait(lambda: querier.knows(group) == EVERY_SOURCE)
    assert querier.reporters == {OF_THE_CONTROLLER}
    assert [(port["dpid"], group in port["reported"]["groups"]) for port in ports(live)] == [
        (live.fabric.dpid("s1"), True)
    ]
    live.fabric.leave("h2", group, name="two")
    wait(lambda: querier.knows(group) is None)
    assert querier.reporters == {OF_THE_CONTROLLER}


def test_a_router_of_ipv6_is_told_which_sources_are_wanted_and_they_arrive(live: Any, querier: Querier) -> None:
    group = "ff3e::2:10"
    source, other = (str(ip_address(live.fabric.address(host, ipv6=True))) for host in ("r1", "h1"))
    live.fabric.join("h2", group, name="two", include=[source])
    wait(lambda: querier.knows(group) == (False, {source}))
    live.stream(1, "r1", group, RATE_BPS)
    live.send(1, 0.5)
    live.assert_all_received(1, "two")
    live.fabric.join("h1", group, name="one", include=[source, other])
    wait(lambda: querier.knows(group) == (False, {source, other}))
    live.fabric.leave("h2", group, name="two")
    live.fabric.leave("h1", group, name="one")
    wait(lambda: querier.knows(group) is None)
