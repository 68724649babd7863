"""`vsrt do`: has a running controller change a setting, or do something once."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from apps.cli.called import SECTIONS, SnapshotNames, is_spelled_out
from apps.cli.common import InputError, emit_json, printable
from apps.cli.reach import add_source, open_source
from apps.cli.show_selection import read_group
from apps.cli.snapshot_source import Action, SnapshotSource
from controller.config.terms import is_address_name, is_label_key, is_label_value, is_pool_name
from controller.snapshot.reader import Snapshot
from controller.wire.dpids import looks_like_dpid

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
    return lambda fields: Action({"do": do, **fields}, method, f"/switches/{fields['dpid']:#x}/drain")


def _static_member(do: str, method: str) -> Callable[[Mapping[str, Any]], Action]:
    return lambda fields: Action(
        {"do": do, **fields},
        method,
        f"/groups/{quote(fields['group'])}/static-members/{fields['dpid']:#x}/{fields['port_no']}",
    )


def _router_port(do: str, method: str) -> Callable[[Mapping[str, Any]], Action]:
    return lambda fields: Action(
        {"do": do, **fields}, method, f"/routers/{fields['dpid']:#x}/{fields['port_no']}/{fields['family']}"
    )


def _forget(fields: Mapping[str, Any]) -> Action:
    if "dpid" in fields:
        return Action({"do": "switch-forget", "dpid": fields["dpid"]}, "DELETE", f"/switches/{fields['dpid']:#x}")
    return Action({"do": "link-forget", "link": fields["link"]}, "DELETE", f"/links/{fields['link']}")


def _acknowledge(fields: Mapping[str, Any]) -> Action:
    path = f"/alarms/{quote(fields['key'], safe='')}/acknowledgement"
    return Action({"do": "alarm-acknowledge", **fields}, "PUT", path)


def _hand_over(fields: Mapping[str, Any]) -> Action:
    query = f"?to={quote(fields['to'], safe='')}" if "to" in fields else ""
    return Action({"do": "hand-over", **fields}, "POST", f"/cluster/hand-over{query}")


def _candidate(verb: str) -> Callable[[Mapping[str, Any]], Action]:
    return lambda fields: Action(
        {"do": f"candidate-{verb}", **fields}, "POST", f"/candidates/{quote(fields['id'], safe='')}/{verb}"
    )


def _monitor(do: str, method: str) -> Callable[[Mapping[str, Any]], Action]:
    return lambda fields: Action({"do": do, **fields}, method, f"/monitors/{quote(fields['monitor'], safe='')}/drain")


def _switches_to_give(answer: Mapping[str, Any]) -> Iterator[str]:
    if answer.get("changed") is False:
        yield "nothing changed"
    elif switches := answer.get("switches"):
        yield f"its {switches} switches go to others (`vsrt show cluster` says when it has none)"


def _label(do: str, method: str) -> Callable[[Mapping[str, Any]], Action]:
    def action(fields: Mapping[str, Any]) -> Action:
        port_no = fields.get("port_no")
        what, place = ("switch", f"/switches/{fields['dpid']:#x}")
        if port_no is not None:
            what, place = "port", f"/ports/{fields['dpid']:#x}/{port_no}"
        value = f"?value={quote(fields['value'])}" if "value" in fields else ""
        return Action({"do": f"{what}-label-{do}", **fields}, method, f"{place}/labels/{quote(fields['key'])}{value}")

    return action


def _address(do: str, method: str) -> Callable[[Mapping[str, Any]], Action]:
    return lambda fields: Action(
        {"do": do, **fields}, method, f"/pools/{quote(fields['pool'])}/addresses/{quote(fields['name'])}"
    )


def _address_told(answer: Mapping[str, Any]) -> Iterator[str]:
    if "address" in answer:
        yield f"{answer['address']} (MAC address {answer.get('mac')})"
    if answer.get("in_pool") is False and not answer.get("released"):
        yield "the pool has this address no more"


def _labels(answer: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(labels := answer.get("labels"), Mapping):
        yield "labels from now: " + (", ".join(f"{key}={labels[key]}" for key in sorted(labels)) or "none")


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


def _alias(name: str, method: str) -> Callable[[Mapping[str, Any]], Action]:
    return lambda fields: Action({"do": name, **fields}, method, f"/groups/{quote(fields['group'])}/aliases")


def _residence(fields: Mapping[str, Any]) -> str:
    return f"/groups/{quote(fields['group'])}/entries"


def _alias_count(answer: Mapping[str, Any]) -> Iterator[str]:
    if "aliases" in answer:
        yield f"aliases from now: {answer['aliases']}"


def _unserved(answer: Mapping[str, Any]) -> Iterator[str]:
    if answer.get("served") is False:
        waiting_for = answer.get("waiting_for")
        yield f"it waits: {waiting_for}" if waiting_for else "it is served once the port leads to hosts"


def _unkept(answer: Mapping[str, Any]) -> Iterator[str]:
    if answer.get("kept") is False:
        yield "the controller cannot write its journal, so a restart will undo it"


VERBS: dict[str, Verb] = {
    "drain": Verb(
        "take trees and packets to hosts away from a switch, without loss where the rest connects",
        ("switch",),
        _switch("switch-drain", "PUT"),
        "switch {place} is drained",
        _still_there,
    ),
    "undrain": Verb(
        "let trees and packets to hosts cross a drained switch again",
        ("switch",),
        _switch("switch-undrain", "DELETE"),
        "switch {place} is not drained",
    ),
    "forget": Verb(
        "take a switch or link that is gone off the lists: it is not to come back",
        ("missing",),
        _forget,
        "{missing} is forgotten",
    ),
    "acknowledge": Verb(
        "say that an open alarm was seen and is taken care of",
        ("alarm",),
        _acknowledge,
        "the alarm {key} is acknowledged",
        lambda answer: iter([answer["text"]] if answer.get("text") else []),
    ),
    "rebuild": Verb(
        "build the tree of a group anew and move its packets over without loss",
        ("group",),
        lambda fields: Action({"do": "group-rebuild", **fields}, "POST", f"/groups/{quote(fields['group'])}/rebuild"),
        "the tree of {group} is built anew",
        _links,
    ),
    "alias add": Verb(
        "give a group one more tree from the pool, where measures move trees",
        ("group",),
        _alias("alias-add", "POST"),
        "{group} gets one more alias",
        _alias_count,
    ),
    "alias remove": Verb(
        "take the alias that a group got last, without loss",
        ("group",),
        lambda fields: Action(
            {"do": "alias-remove", **fields}, "DELETE", f"/groups/{quote(fields['group'])}/aliases"
        ),
        "{group} gives an alias back",
        _alias_count,
    ),
    "swap-out": Verb(
        "take a group out of the flow tables until its next packet",
        ("group",),
        lambda fields: Action({"do": "group-swap-out", **fields}, "DELETE", _residence(fields)),
        "{group} goes out of the flow tables",
    ),
    "swap-in": Verb(
        "have a group in the flow tables before a packet asks for it",
        ("group",),
        lambda fields: Action({"do": "group-swap-in", **fields}, "POST", _residence(fields)),
        "{group} goes into the flow tables",
    ),
    "pin": Verb(
        "keep a group in the flow tables whatever it sends",
        ("group",),
        lambda fields: Action({"do": "group-pin", **fields}, "PUT", f"/groups/{quote(fields['group'])}/pin"),
        "{group} stays in the flow tables",
    ),
    "unpin": Verb(
        "let a pinned group go out of the flow tables again",
        ("group",),
        lambda fields: Action({"do": "group-unpin", **fields}, "DELETE", f"/groups/{quote(fields['group'])}/pin"),
        "{group} may go out of the flow tables",
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
        "port {place} is a static member of {group}",
        _unserved,
    ),
    "static-member remove": Verb(
        "serve a group to a port only while its hosts ask for it",
        ("group", "port"),
        _static_member("static-member-remove", "DELETE"),
        "port {place} is no static member of {group}",
    ),
    "router-port add": Verb(
        "take a multicast router to be behind a port",
        ("port", "family"),
        _router_port("router-port-add", "PUT"),
        "port {place} leads to a router of IPv{family}",
    ),
    "router-port remove": Verb(
        "take no multicast router to be behind a port unless it queries",
        ("port", "family"),
        _router_port("router-port-remove", "DELETE"),
        "port {place} is no set router port of IPv{family}",
    ),
    "label add": Verb(
        "give a switch or port a label, in the place of the policy's of that key",
        ("place", "label"),
        _label("add", "PUT"),
        "{place} has the label {key}={value}",
        _labels,
    ),
    "label remove": Verb(
        "take a label back that an operator gave a switch or port",
        ("place", "key"),
        _label("remove", "DELETE"),
        "the label {key} that {place} was given is taken back",
        _labels,
    ),
    "address take": Verb(
        "give somebody the next free address of a pool, or say which one it is that they have",
        ("pool", "name"),
        _address("address-take", "PUT"),
        "{name} has an address of the pool {pool}",
        _address_told,
    ),
    "address release": Verb(
        "give the address of a pool back that somebody has",
        ("pool", "name"),
        _address("address-release", "DELETE"),
        "{name} has no address of the pool {pool} from now on",
        _address_told,
    ),
    "hand-over": Verb(
        "have another controller lead the fabric: MEMBER, or any other",
        ("member",),
        _hand_over,
        "the lead is handed over",
        lambda answer: iter([f"to {answer['to']}"] if answer.get("to") else []),
    ),
    "drain-monitor": Verb(
        "have a monitor give its switches to others, before it is serviced",
        ("monitor",),
        _monitor("drain-monitor", "PUT"),
        "monitor {monitor} is drained",
        _switches_to_give,
    ),
    "undrain-monitor": Verb(
        "let a drained monitor have its part of the switches again",
        ("monitor",),
        _monitor("undrain-monitor", "DELETE"),
        "monitor {monitor} is not drained",
        lambda answer: iter(["nothing changed"] if answer.get("changed") is False else []),
    ),
    "candidate accept": Verb(
        "write a policy that was found into a file; nothing is put in force",
        ("candidate",),
        _candidate("accept"),
        "candidate {id} is accepted",
        lambda answer: iter([f"it is in {answer['path']}"] if answer.get("path") else []),
    ),
    "candidate ignore": Verb(
        "say that a policy that was found is none", ("candidate",), _candidate("ignore"), "candidate {id} is ignored"
    ),
    "candidate consider": Verb(
        "take back what was said of a policy that was found",
        ("candidate",),
        _candidate("consider"),
        "candidate {id} is to be looked at again",
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
    "address": "addresses of groups, taken from pools of the policy file by name",
    "alias": "further trees of groups",
    "label": "labels of switches and ports, which selectors choose by",
    "candidate": "policies that were found in changes of the configuration",
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
            below[first] = group.add_subparsers(required=True, metavar="|".join(_verbs_below(first)))
        command = (below[first] if second else verbs).add_parser(second or first, help=verb.about)
        for argument in verb.arguments:
            _ARGUMENTS[argument](command)
        add_source(command)
        command.set_defaults(verb=name)


def _verbs_below(first: str) -> Iterator[str]:
    return (name.partition(" ")[2] for name in VERBS if name.startswith(f"{first} "))


_ARGUMENTS: dict[str, Callable[[argparse.ArgumentParser], object]] = {
    "switch": lambda parser: parser.add_argument("switch", metavar="SWITCH", help="name or datapath id"),
    "group": lambda parser: parser.add_argument(
        "group", metavar="GROUP", help="IPv4 or IPv6 address of the group, in a VLAN with its id: 239.1.1.1@20"
    ),
    "port": lambda parser: parser.add_argument("port", metavar="SWITCH:PORT", help="a switch's port"),
    "place": lambda parser: parser.add_argument("at", metavar="SWITCH[:PORT]", help="a switch, or a port of one"),
    "label": lambda parser: parser.add_argument("label", metavar="KEY=VALUE", help="the label, such as rack=b7"),
    "key": lambda parser: parser.add_argument("label_key", metavar="KEY", help="the label's key"),
    "pool": lambda parser: parser.add_argument("pool", metavar="POOL", help="a pool of the policy file"),
    "name": lambda parser: parser.add_argument(
        "--name", required=True, metavar="NAME", help="whose the address is: letters, digits, dots, _ and -"
    ),
    "missing": lambda parser: parser.add_argument(
        "missing", metavar="SWITCH|LINK", help="a switch, or both ends of a link, such as leaf1:3-spine2:1"
    ),
    "member": lambda parser: parser.add_argument(
        "member", metavar="MEMBER", nargs="?", help="the controller that shall lead (`vsrt show cluster`)"
    ),
    "monitor": lambda parser: parser.add_argument(
        "monitor", metavar="MONITOR", help="a monitor that shares the switches (`vsrt show cluster`)"
    ),
    "candidate": lambda parser: parser.add_argument(
        "candidate", metavar="ID", help="a policy that was found (`vsrt show candidates`)"
    ),
    "alarm": lambda parser: parser.add_argument("key", metavar="KEY", help="the alarm's key"),
    "family": lambda parser: parser.add_argument(
        "family", metavar="FAMILY", type=int, choices=FAMILIES, help="4 (IGMP) or 6 (MLD)"
    ),
}


def run(args: argparse.Namespace) -> int:
    """Have it done and say so."""
    answer, text = perform(args)
    if args.json:
        emit_json(answer)
    else:
        print(text)
    return 0


def perform(args: argparse.Namespace, source: SnapshotSource | None = None) -> tuple[Any, str]:
    """Have it done; return what the controller answered, and that as a sentence.

    Without a `source` the arguments say where the controller is; one that is given knows what places are called.
    """
    verb, is_told, source = VERBS[args.verb], source is not None, source or open_source(args)
    fields: dict[str, Any] = {}
    told = (getattr(args, name, None) for name in ("switch", "port", "missing", "at"))
    places = [end for text in told if text is not None for end in _ends(text)]
    if all(map(is_spelled_out, places)) and not is_told:
        called = SnapshotNames(Snapshot())
    else:
        called = SnapshotNames(next(source.follow(SECTIONS)))
    for argument in verb.arguments:
        match argument:
            case "switch":
                fields["dpid"] = called.switch(args.switch, "SWITCH")
            case "group":
                fields["group"] = read_group(args.group, "GROUP")
            case "port":
                fields["dpid"], fields["port_no"] = called.port(args.port, "SWITCH:PORT")
            case "place":
                fields |= _place(args.at, called)
            case "label":
                fields |= _label_fields(args.label)
            case "key":
                fields["key"] = _named(args.label_key, "KEY", is_label_key)
            case "pool":
                fields["pool"] = _named(args.pool, "POOL", is_pool_name)
            case "name":
                fields["name"] = _named(args.name, "--name", is_address_name)
            case "missing":
                fields |= _missing(args.missing, called)
            case "member":
                fields |= {"to": args.member} if args.member else {}
            case "monitor":
                fields["monitor"] = args.monitor
            case "candidate":
                fields["id"] = args.candidate
            case "alarm":
                fields["key"] = args.key
            case "family":
                fields["family"] = args.family
    answer = source.do(verb.action(fields))
    remarks = (*verb.remarks(answer), *_unkept(answer)) if isinstance(answer, Mapping) else ()
    words = {"place": called.label(fields["dpid"], fields.get("port_no")) if "dpid" in fields else ""}
    words["missing"] = words["place"] or getattr(args, "missing", "")
    return answer, printable("; ".join((verb.done.format(**fields, **words), *remarks)))


_LINK = re.compile(r"(.+?:[0-9]+)-(.+:[0-9]+)\Z")


def _ends(text: str) -> tuple[str, ...]:
    """Return the ends of a link, or the switch, that a text says."""
    match = _LINK.match(text)
    return match.groups() if match else (text,)


def _place(text: str, called: SnapshotNames) -> dict[str, int]:
    """Return the switch that a text says, or the port of one; a switch's name has no colon."""
    if ":" not in text or looks_like_dpid(text):
        return {"dpid": called.switch(text, "SWITCH[:PORT]")}
    dpid, port_no = called.port(text, "SWITCH[:PORT]")
    return {"dpid": dpid, "port_no": port_no}


def _named(text: str, field: str, can_be: Callable[[str], bool]) -> str:
    if not can_be(text):
        raise InputError(f"{field}: {text!r} can be none; names are of up to 63 letters, digits, dots, _ and -")
    return text


def _label_fields(text: str) -> dict[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not is_label_key(key) or not is_label_value(value):
        raise InputError(f"KEY=VALUE: {text!r} is no label, such as rack=b7, or it is known of every switch")
    return {"key": key, "value": value}


def _missing(text: str, called: SnapshotNames) -> dict[str, Any]:
    ends = _ends(text)
    if len(ends) == 1:
        return {"dpid": called.switch(text, "SWITCH|LINK")}
    places = sorted(called.port(end, "SWITCH|LINK") for end in ends)
    return {"link": "-".join(f"{dpid}:{port_no}" for dpid, port_no in places)}
