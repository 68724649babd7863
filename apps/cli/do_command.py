"""`vsrt do`: has a running controller change a setting, or do something once."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from apps.cli.common import emit_json, printable
from apps.cli.show_selection import read_dpid, read_group, read_port
from apps.cli.snapshot_source import Action, add_source, open_source

FAMILIES = (4, 6)
LISTED = 10
"""Groups that are named of those that cross a drained switch still; --json has more."""


class Verb(NamedTuple):
    """One thing to do: its arguments, what becomes of them, and what is said when it is done.

    `remarks` are made of the controller's answer.
    """

    about: str
    arguments: tuple[str, ...]
    action: Callable[[Mapping[str, Any]], Action]
    done: str
    remarks: Callable[[Mapping[str, Any]], Iterator[str]] = lambda _answer: iter(())


def _switch(do: str, method: str) -> Callable[[Mapping[str, Any]], Action]:
    return lambda fields: Action({"do": do, **fields}, method, f"/switches/{fields['dpid']}/drain")


def _static_member(do: str, method: str) -> Callable[[Mapping[str, Any]], Action]:
    return lambda fields: Action(
        {"do": do, **fields},
        method,
        f"/groups/{quote(fields['group'])}/static-members/{fields['dpid']}/{fields['port_no']}",
    )


def _router_port(do: str, method: str) -> Callable[[Mapping[str, Any]], Action]:
    return lambda fields: Action(
        {"do": do, **fields}, method, f"/routers/{fields['dpid']}/{fields['port_no']}/{fields['family']}"
    )


def _still_there(answer: Mapping[str, Any]) -> Iterator[str]:
    if count := answer.get("transit_count"):
        names = ", ".join(answer.get("transit", ())[:LISTED])
        names += ", ..." * (count > LISTED)
        yield f"groups that cross it still, since nothing else connects them: {count} ({names})"
    if count := answer.get("local_count"):
        yield f"groups with members or senders at its own ports: {count}"


def _links(answer: Mapping[str, Any]) -> Iterator[str]:
    if answer.get("changed") is False:
        yield "nothing changed"
    elif "links" in answer:
        yield f"{answer['links']} links, {answer.get('links_before')} before"


def _unserved(answer: Mapping[str, Any]) -> Iterator[str]:
    if answer.get("served") is False:
        yield "it is served once the port leads to hosts"


VERBS: dict[str, Verb] = {
    "drain": Verb(
        "take the trees away from a switch, without loss where the rest connects",
        ("switch",),
        _switch("switch-drain", "PUT"),
        "switch {dpid} is drained",
        _still_there,
    ),
    "undrain": Verb(
        "let trees cross a drained switch again",
        ("switch",),
        _switch("switch-undrain", "DELETE"),
        "switch {dpid} is not drained",
    ),
    "rebuild": Verb(
        "build the tree of a group anew and move its packets over without loss",
        ("group",),
        lambda fields: Action({"do": "group-rebuild", **fields}, "POST", f"/groups/{quote(fields['group'])}/rebuild"),
        "the tree of {group} is built anew",
        _links,
    ),
    "reload": Verb(
        "read the policy file now",
        (),
        lambda _fields: Action({"do": "policy-reload"}, "POST", "/policy/reload"),
        "the policy is in force",
        lambda answer: iter([f"{answer['rules']} rules"] if "rules" in answer else []),
    ),
    "static-member add": Verb(
        "serve a group to a port, whatever its hosts ask for",
        ("group", "port"),
        _static_member("static-member-add", "PUT"),
        "port {dpid}:{port_no} is a static member of {group}",
        _unserved,
    ),
    "static-member remove": Verb(
        "serve a group to a port only while its hosts ask for it",
        ("group", "port"),
        _static_member("static-member-remove", "DELETE"),
        "port {dpid}:{port_no} is no static member of {group}",
    ),
    "router-port add": Verb(
        "take a multicast router to be behind a port",
        ("port", "family"),
        _router_port("router-port-add", "PUT"),
        "port {dpid}:{port_no} leads to a router of IPv{family}",
    ),
    "router-port remove": Verb(
        "take no multicast router to be behind a port unless it queries",
        ("port", "family"),
        _router_port("router-port-remove", "DELETE"),
        "port {dpid}:{port_no} is no set router port of IPv{family}",
    ),
    "reset-counters": Verb(
        "count from 0 again",
        (),
        lambda _fields: Action({"do": "counters-reset"}, "POST", "/counters/reset"),
        "counters are 0",
    ),
}
"""What can be done, in the words of the command; the actions have the names of the socket and the API."""

GROUPS = {
    "static-member": "ports that get a group whatever their hosts ask for",
    "router-port": "ports that lead to multicast routers",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare every verb with its arguments."""
    parser.epilog = (
        "What is set outlasts a restart of the controller and is written to its audit log. Over the API it takes the "
        "token that the dashboard is configured with. A refusal is status 1."
    )
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    below: dict[str, argparse._SubParsersAction[argparse.ArgumentParser]] = {}
    for name, verb in VERBS.items():
        first, _, second = name.partition(" ")
        if second and first not in below:
            group = verbs.add_parser(first, help=GROUPS[first])
            below[first] = group.add_subparsers(required=True, metavar="add|remove")
        command = (below[first] if second else verbs).add_parser(second or first, help=verb.about)
        for argument in verb.arguments:
            _ARGUMENTS[argument](command)
        add_source(command)
        command.set_defaults(verb=name)


_ARGUMENTS: dict[str, Callable[[argparse.ArgumentParser], object]] = {
    "switch": lambda parser: parser.add_argument("switch", metavar="SWITCH", help="datapath id"),
    "group": lambda parser: parser.add_argument("group", metavar="GROUP", help="IPv4 or IPv6 address of the group"),
    "port": lambda parser: parser.add_argument("port", metavar="DPID:PORT", help="a switch's port"),
    "family": lambda parser: parser.add_argument(
        "family", metavar="FAMILY", type=int, choices=FAMILIES, help="4 (IGMP) or 6 (MLD)"
    ),
}


def run(args: argparse.Namespace) -> int:
    """Have it done and say so."""
    verb = VERBS[args.verb]
    fields: dict[str, Any] = {}
    for argument in verb.arguments:
        match argument:
            case "switch":
                fields["dpid"] = read_dpid(args.switch, "SWITCH")
            case "group":
                fields["group"] = read_group(args.group, "GROUP")
            case "port":
                fields["dpid"], fields["port_no"] = read_port(args.port, "DPID:PORT")
            case "family":
                fields["family"] = args.family
    answer = open_source(args).do(verb.action(fields))
    if args.json:
        emit_json(answer)
    else:
        remarks = verb.remarks(answer) if isinstance(answer, Mapping) else ()
        print(printable("; ".join((verb.done.format(**fields), *remarks))))
    return 0
