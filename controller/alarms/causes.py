"""What is alarmed, by its cause, and what follows from that: functions of the facts alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from controller.alarms.events import ConditionReported
from controller.alarms.known import Cable, End, KnownFabric, KnownLink, LinkState, read_cable
from controller.alarms.register import GRAVITY, Condition, alarm_key
from controller.snapshot.events import Severity
from topology.graph import Graph
from topology.live import LiveFabric

SWITCH_DOWN, LINK_FAILED, CABLE_MOVED, PORT_DOWN = "switch-down", "link-failed", "cable-moved", "port-down"

KINDS_OF: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"switch": (SWITCH_DOWN,), "link": (LINK_FAILED, CABLE_MOVED), "port": (PORT_DOWN,), "reported": ()}
)
"""The kinds of alarms about each kind of subject."""

Subject: TypeAlias = tuple[str, Any]
"""What may be wrong: ``("switch", dpid)``, ``("link", cable)``, ``("port", end)`` or ``("reported", key)``."""


class Consequence(NamedTuple):
    """Something that follows from an alarm's cause."""

    kind: str
    text: str
    dpid: int | None = None
    port_no: int | None = None


def name_of(subject: Subject) -> str:
    """Return a subject as keys have it."""
    return str(subject[1])


def key_of(subject: Subject) -> str:
    """Return the key of the alarm that a subject has as a rule."""
    return subject[1] if subject[0] == "reported" else alarm_key(KINDS_OF[subject[0]][0], name_of(subject))


def subject_of(condition: Condition) -> Subject | None:
    """Return the subject of an alarm that the core finds by itself, None for one that was reported."""
    text = condition.subject
    if condition.kind == SWITCH_DOWN:
        return "switch", int(text)
    if condition.kind in (LINK_FAILED, CABLE_MOVED):
        return "link", read_cable(text)
    if condition.kind == PORT_DOWN:
        return "port", End(*map(int, text.split(":")))
    return None


def is_known(known: KnownFabric, subject: Subject) -> bool:
    """Tell whether a subject is expected at all."""
    kind, what = subject
    return what in (known.switches if kind == "switch" else known.links if kind == "link" else known.expected_ports)


def why_kept(known: KnownFabric, subject: Subject) -> str | None:
    """Return why a switch or link cannot be forgotten, None where it can."""
    kind, what = subject
    if not is_known(known, subject):
        return f"there is no {kind} {what}"
    if what in (known.expected_switches if kind == "switch" else known.expected_links):
        return f"the policy file expects {kind} {what}"
    if kind == "link" and not known.is_missing(known.links[what]):
        return f"link {what} is part of the fabric; only one that is missing can be forgotten"
    if kind == "switch" and (known.switches[what].connected or known.switches[what].present):
        return f"switch {what} is part of the fabric; only one that is gone can be forgotten"
    return None


# Causes


def is_troubled(known: KnownFabric, dpid: int) -> bool:
    """Tell whether a switch is lost or cut off, so that what is missing of its links follows from that."""
    switch = known.switches.get(dpid)
    return switch is not None and (not switch.connected or known.is_cut_off(dpid))


def of_switch(known: KnownFabric, dpid: int) -> Condition | None:
    """Return what is wrong with a switch."""
    switch = known.switches.get(dpid)
    if switch is None or not is_troubled(known, dpid):
        return None
    severity, count = Severity.CRITICAL, sum(1 for link in known.links_of(dpid) if known.is_missing(link))
    links = _counted(count, "link")
    if switch.connected:
        text = (
            f"Switch {dpid} is cut off: all its {links} have failed, though its connection to the controller is up."
        )
    elif switch.present and (not count or any(link.is_up for link in known.links_of(dpid))):
        severity = Severity.WARNING
        text = f"The connection to switch {dpid} ended; the switch goes on forwarding by the entries that it has."
    elif switch.connected_s is None:
        text = f"Switch {dpid} is expected and has not connected since the controller started."
    else:
        text = f"Switch {dpid} is gone: its connection ended, and {links} to it are out of service."
    return Condition(SWITCH_DOWN, str(dpid), severity, text, dpid)


def cause_of(known: KnownFabric, cable: Cable) -> int | None:
    """Return the switch whose trouble explains that a link is missing, None where the link itself is the cause."""
    return next((dpid for dpid in cable.pair if is_troubled(known, dpid)), None)


def of_link(known: KnownFabric, cable: Cable, parts: Mapping[Any, int], fabric: LiveFabric) -> Condition | None:
    """Return what is wrong with a link, where the link itself is the cause; `parts` are those of `parts_of`."""
    link = known.links.get(cable)
    if link is None or not known.is_missing(link) or cause_of(known, cable) is not None:
        return None
    if known.state(link) is LinkState.MOVED:
        moves = [
            f"port {end} leads to port {other} now, and not to port {_other(cable, end)}"
            for end, other in known.elsewhere(link)
        ]
        expected = (
            "The cabling differs from what is expected" if cable in known.expected_links else "A cable was moved"
        )
        text = f"{expected}: {'; '.join(moves)}."
        return Condition(CABLE_MOVED, str(cable), Severity.WARNING, text, *cable.a)
    what = f"The link of port {cable.a} and port {cable.b}"
    failed = "has failed" if link.is_seen else "is expected and was never found"
    cut = cut_off(cable, parts, fabric)
    if cut is None:
        return Condition(
            LINK_FAILED, str(cable), Severity.WARNING, f"{what} {failed}; other links carry on.", *cable.a
        )
    switches, hosts = cut
    behind = _counted(switches, "switch") + (f" with {_counted(hosts, 'host')}" if hosts else "")
    text = f"{what} {failed}: {behind} {_is(switches)} cut off."
    return Condition(LINK_FAILED, str(cable), Severity.CRITICAL, text, *cable.a)


def of_port(known: KnownFabric, end: End) -> Condition | None:
    """Return what is wrong with a port that shall be up."""
    switch = known.switches.get(end.dpid)
    if end not in known.expected_ports or switch is None or not switch.connected or known.port_down_s(end) is None:
        return None
    text = f"Port {end} is down, and the policy file expects it to be up."
    return Condition(PORT_DOWN, str(end), Severity.WARNING, text, *end)


def of_reports(reports: Iterable[ConditionReported]) -> Condition | None:
    """Return what apps report of one thing: the gravest, of equally grave ones that of the first app by name."""
    gravest = min(reports, key=lambda report: (-GRAVITY[report.severity], report.source), default=None)
    return None if gravest is None else Condition(*gravest[1:])


# Consequences


def consequences(known: KnownFabric, condition: Condition) -> Iterator[Consequence]:
    """Yield what follows from an alarm's cause."""
    subject = subject_of(condition)
    if subject is None or not is_known(known, subject):
        return
    if subject[0] == "link":
        yield from _of_link(known, known.links[subject[1]])
    elif subject[0] == "switch":
        dpid = subject[1]
        switch = known.switches[dpid]
        for link in sorted(known.links_of(dpid), key=lambda link: link.cable):
            if known.is_missing(link) and cause_of(known, link.cable) == dpid:
                yield Consequence(
                    "link-failed", f"The link of port {link.cable.a} and port {link.cable.b} is out of service.", dpid
                )
        if switch.host_count and not switch.present:
            text = f"{_counted(switch.host_count, 'host')} of the switch {_is(switch.host_count)} cut off."
            yield Consequence("hosts-cut-off", text, dpid)


def _of_link(known: KnownFabric, link: KnownLink) -> Iterator[Consequence]:
    for end in link.cable:
        if known.port_down_s(end) is not None:
            yield Consequence("port-down", f"Port {end} is down.", *end)
    yield from _repaired(link.repaired_count)


def _repaired(tree_count: int) -> Iterator[Consequence]:
    if tree_count:
        verb = "was" if tree_count == 1 else "were"
        yield Consequence("trees-repaired", f"{_counted(tree_count, 'tree')} {verb} built around it.")


def parts_of(graph: Graph) -> dict[Any, int]:
    """Return, for every switch, the number of the connected part that it is in."""
    parts: dict[Any, int] = {}
    for number, start in enumerate(graph.switches()):
        if start in parts:
            continue
        parts[start] = number
        waiting = [start]
        while waiting:
            for neighbour in graph.neighbours(waiting.pop()):
                if neighbour not in parts:
                    parts[neighbour] = number
                    waiting.append(neighbour)
    return parts


def cut_off(cable: Cable, parts: Mapping[Any, int], fabric: LiveFabric) -> tuple[int, int] | None:
    """Return how many switches and hosts a missing link leaves apart from the larger part, None where none."""
    a, b = (parts.get(dpid) for dpid in cable.pair)
    if a is None or b is None or a == b:
        return None
    members = [[dpid for dpid, part in parts.items() if part == number] for number in (a, b)]
    apart = min(members, key=lambda switches: (len(switches), switches))
    return len(apart), sum(len(fabric.hosts_of(dpid)) for dpid in apart)


def _other(cable: Cable, end: End) -> End:
    return cable.b if end == cable.a else cable.a


def _counted(count: int, noun: str) -> str:
    plural = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{count} {noun if count == 1 else plural}"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"
