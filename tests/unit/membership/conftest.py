"""A playbook for the membership core: short words for hosts' reports, and effects as comparable text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from controller.effects import Notice
from controller.membership.core import MembershipCore
from controller.membership.events import (
    AdmitRouter,
    FilterMode,
    HostRef,
    Interest,
    InterestChanged,
    MembershipRefused,
    RouterJudged,
    RouterPortChanged,
    SendQuery,
)
from controller.membership.settings import MembershipLimits, MembershipSettings
from controller.wire.addresses import format_ip, parse_ip
from controller.wire.packets import GroupRecord, PimHello, Query, RecordType, Report

KINDS = {
    "is_in": RecordType.MODE_IS_INCLUDE,
    "is_ex": RecordType.MODE_IS_EXCLUDE,
    "to_in": RecordType.CHANGE_TO_INCLUDE,
    "to_ex": RecordType.CHANGE_TO_EXCLUDE,
    "allow": RecordType.ALLOW_NEW_SOURCES,
    "block": RecordType.BLOCK_OLD_SOURCES,
}


def mac(host: int) -> bytes:
    return b"\x02\x00\x00\x00\x00" + bytes((host,))


def text(effect: Any) -> str:
    if isinstance(effect, InterestChanged):
        return f"{effect.dpid}:{effect.port_no} {format_ip(effect.group)} {interest_text(effect.interest)}"
    if isinstance(effect, SendQuery):
        what = "general" if effect.group is None else format_ip(effect.group)
        sources = " {" + ",".join(sorted(map(format_ip, effect.sources))) + "}" if effect.sources else ""
        flag = " S" if effect.suppress else ""
        return f"{effect.dpid}:{effect.port_no} query{effect.family} {what}{sources}{flag}"
    if isinstance(effect, MembershipRefused):
        source = "any" if effect.source is None else format_ip(effect.source)
        return f"refused {effect.host.mac[-1]} {format_ip(effect.group)} {source}"
    if isinstance(effect, RouterJudged):
        return f"{'admitted' if effect.verdict.admit else 'refused'} router {format_ip(effect.host.ip)}"
    if isinstance(effect, RouterPortChanged):
        return f"{effect.dpid}:{effect.port_no} router{effect.family} {'present' if effect.present else 'gone'}"
    assert isinstance(effect, Notice)
    return f"notice {effect.kind}"


def interest_text(interest: Interest | None) -> str:
    if interest is None:
        return "nothing"
    sources = ",".join(sorted(map(format_ip, interest.sources)))
    return ("only" if interest.mode is FilterMode.INCLUDE else "all but") + " {" + sources + "}"


class Playbook:
    """A core with one or more edge ports; every method returns the effects as text."""

    def __init__(
        self,
        ports: Iterable[tuple[int, int]] = ((1, 1),),
        limits: MembershipLimits | None = None,
        admit: Callable[[HostRef, bytes, bytes | None], bool] | None = None,
        start: float = 0.0,
        admit_router: AdmitRouter = lambda _host: None,
        **settings: Any,
    ) -> None:
        self.settings = MembershipSettings(**{"accept_queriers": True, "learn_router_ports": True, **settings})
        limits = limits or MembershipLimits(reports_per_second_per_port=1e6, report_burst=1e6)
        admit = admit or (lambda host, group, source: True)
        self.core = MembershipCore(self.settings, limits, admit, admit_router=admit_router)
        self.log: list[tuple[float, Any]] = []
        for dpid, port_no in ports:
            self.core.port_added(dpid, port_no, start)

    def keep(self, effects: list[Any], now: float) -> list[str]:
        self.log += [(now, effect) for effect in effects]
        return [text(effect) for effect in effects]

    def report(
        self,
        now: float,
        host: int,
        kind: str,
        group: str,
        sources: str = "",
        version: int | None = None,
        port: tuple[int, int] = (1, 1),
        ip: str | None = None,
    ) -> list[str]:
        address = parse_ip(group)
        family = 4 if len(address) == 4 else 6
        default_ip = f"10.0.0.{host}" if family == 4 else f"fe80::{host:x}"
        report = Report(
            family,
            version or (3 if family == 4 else 2),
            mac(host),
            parse_ip(ip or default_ip),
            (GroupRecord(KINDS[kind], address, tuple(map(parse_ip, sources.split()))),),
        )
        return self.keep(self.core.report_received(*port, report, now), now)

    def query(
        self,
        now: float,
        source: str,
        group: str | None = None,
        sources: str = "",
        port: tuple[int, int] = (1, 1),
        version: int | None = None,
        suppress: bool = False,
        response_s: float = 10.0,
        robustness: int | None = 2,
        interval_s: float | None = 125.0,
    ) -> list[str]:
        address = parse_ip(source)
        family = 4 if len(address) == 4 else 6
        query = Query(
            family,
            version or (3 if family == 4 else 2),
            mac(200),
            address,
            None if group is None else parse_ip(group),
            tuple(map(parse_ip, sources.split())),
            response_s,
            suppress,
            robustness,
            interval_s,
        )
        return self.keep(self.core.query_received(*port, query, now), now)

    def hello(self, now: float, source: str, holdtime_s: float, port: tuple[int, int] = (1, 1)) -> list[str]:
        address = parse_ip(source)
        hello = PimHello(4 if len(address) == 4 else 6, mac(201), address, holdtime_s)
        return self.keep(self.core.pim_hello_received(*port, hello, now), now)

    def run_until(self, end: float) -> list[tuple[float, str]]:
        """Wake the core at each of its deadlines up to `end`; return what it did and when."""
        done: list[tuple[float, str]] = []
        while (at := self.core.next_deadline()) is not None and at <= end:
            done += [(at, line) for line in self.keep(self.core.on_deadline(at), at)]
        done += [(end, line) for line in self.keep(self.core.on_deadline(end), end)]
        return done

    def quiet_until(self, end: float) -> list[tuple[float, str]]:
        """As `run_until`, without the general queries."""
        return [(at, line) for at, line in self.run_until(end) if "general" not in line]

    def interest(self, group: str, port: tuple[int, int] = (1, 1)) -> str:
        found = [
            i.interest for i in self.core.interests() if (i.dpid, i.port_no) == port and i.group == parse_ip(group)
        ]
        return interest_text(found[0] if found else None)


@pytest.fixture
def playbook() -> type[Playbook]:
    return Playbook
